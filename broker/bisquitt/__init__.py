"""Builds the MQTT-SN gateway from the Go module Bisquitt, into the cache. Standard library only.

go.mod and go.sum pin what it is built from; main.go is the program around it.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from testbed import commands
from testbed.places import CACHE

_HERE = Path(__file__).parent
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -trimpath", "GOWORK": "off"}


def _recipe() -> str:
    sources = sorted(path for path in _HERE.rglob("*") if path.suffix in (".go", ".mod", ".sum"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:10]


def program() -> Path:
    """Where the gateway built from the present sources lies, or will lie."""
    return CACHE / f"bisquitt-{_recipe()}" / "bisquitt"


def build(say: Callable[[str], None]) -> None:
    """Build the gateway if it is not in the cache, telling so through `say`. Raises CommandError."""
    target = program()
    if target.exists():
        return
    say("MQTT-SN gateway: building Bisquitt (a Go module)")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
        fresh = Path(scratch, "bisquitt")
        commands.run(["go", "build", "-o", str(fresh), "."], cwd=_HERE, env=_ENVIRONMENT)
        target.parent.mkdir(exist_ok=True)
        shutil.move(fresh, target)
    say("MQTT-SN gateway: built")
