"""Waiting for a thing to happen, with a bound."""

import time
from collections.abc import Callable

from testbed.errors import SetupError


def wait_for(done: Callable[[], bool], what: str, seconds: float, step: float = 0.01) -> None:
    """Return once done() is true; look every `step` s. Raises SetupError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise SetupError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(step)
