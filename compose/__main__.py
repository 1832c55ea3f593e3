"""What `make image`, `base-image`, `ps` and `down` call: `python -m compose image`."""

import sys
from collections.abc import Callable

from compose import engine, image
from testbed.errors import SetupError


def _down() -> None:
    print(f"{engine.remove_orphans(kept_too=True)} containers and networks removed; runs that are alive keep theirs")


_COMMANDS: dict[str, Callable[[], object]] = {
    "image": lambda: print(image.build()),
    "base-image": image.make_base,
    "ps": lambda: print(engine.listing(), end=""),
    "down": _down,
}


def main(name: str) -> int:
    """Run one command; returns the exit code."""
    try:
        problem = engine.engine_problem()
        if problem:
            raise SetupError(problem)
        _COMMANDS[name]()
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
