"""Builds the MQTT-SN gateway from the Go module Bisquitt, into the cache. Standard library only.

go.mod and go.sum pin what it is built from; main.go is the program around it; of Bisquitt's own files one is replaced,
and one has a line changed (docs/mqttsn.md says why).
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from testbed import commands
from testbed.errors import SetupError
from testbed.places import CACHE

_HERE = Path(__file__).parent
_MODULE = "github.com/energomonitor/bisquitt"
_REPLACED = "util/conn_with_context.go"
_CHANGED = "gateway/handler1.go"
# A repeated SUBSCRIBE gets the topic id that the first one got.
_CHANGE = ("topicID, err = h.newTopicID()", "topicID, err = h.registerTopic(topic)")
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-trimpath -buildvcs=false", "GOWORK": "off"}


def _recipe() -> str:
    sources = sorted(path for path in _HERE.rglob("*") if path.suffix in (".go", ".mod", ".sum", ".py"))
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
        fresh = _compile(Path(scratch))
        target.parent.mkdir(exist_ok=True)
        shutil.move(fresh, target)
    say("MQTT-SN gateway: built")


def _compile(scratch: Path) -> Path:
    for source in ("go.mod", "go.sum", "main.go"):
        shutil.copy(_HERE / source, scratch)
    commands.run(["go", "mod", "vendor"], cwd=scratch, env=_ENVIRONMENT)
    _alter(scratch / "vendor" / _MODULE)
    commands.run(["go", "build", "-mod=vendor", "-o", "bisquitt", "."], cwd=scratch, env=_ENVIRONMENT)
    return scratch / "bisquitt"


def _alter(module: Path) -> None:
    replaced, changed = module / _REPLACED, module / _CHANGED
    before, after = _CHANGE
    if not replaced.is_file() or changed.read_text().count(before) != 1:
        raise SetupError(f"{_MODULE} is not the version that {Path(__file__).name} can alter; see docs/mqttsn.md")
    shutil.copy(_HERE / "replaced" / replaced.name, replaced)
    changed.write_text(changed.read_text().replace(before, after))
