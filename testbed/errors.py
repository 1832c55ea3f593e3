"""The two ways in which a run can end early, so that the command line can tell them apart."""


class UserError(Exception):
    """The user asked for something impossible; str() is one line that says what and what is allowed (exit code 2)."""


class SetupError(Exception):
    """This machine lacks something, or a kernel refused; str() says what, and how to mend it (exit code 1)."""
