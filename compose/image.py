"""The containers' image: `make image` builds it, `make base-image` makes its base where none can be pulled.

Its tag is a hash of all that goes into it, so a container never runs older code than the checkout's.
"""

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from broker import bisquitt
from guest.debian import codename
from testbed import commands
from testbed.errors import SetupError
from testbed.places import CACHE, PROJECT

BASE_IMAGE = "debian:bookworm-slim"
PACKAGES = ("paho-mqtt", "pyzmq")
"""Of requirements.lock, those that clients and servers import."""

_CODE = ("testbed", "clients", "broker", "compose")
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_SUITE = "bookworm"
_LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")
"""What a base image needs no content of, as in Debian's slim images; half of its size."""


def _requirements() -> str:
    """The lock file's entries of PACKAGES, with their hashes."""
    entries = re.split(r"^(?=\S)", (PROJECT / "requirements.lock").read_text(), flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.split("==")[0] in PACKAGES)


def _sources() -> dict[str, bytes]:
    """What goes into the image from the checkout, by its path in the build context."""
    found = {"Dockerfile": (PROJECT / "compose" / "Dockerfile").read_bytes()}
    found["requirements.txt"] = _requirements().encode()
    for package in _CODE:
        for path in sorted((PROJECT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found[f"project/{path.relative_to(PROJECT)}"] = path.read_bytes()
    gateway = bisquitt.program()
    if not gateway.exists():
        raise SetupError(f"the MQTT-SN gateway is not built yet ({gateway}): make setup")
    found[f"cache/{gateway.relative_to(CACHE.parent)}"] = gateway.read_bytes()
    return found


@functools.cache
def name() -> str:
    """`pubsub-testbed:<hash>` of the checkout as it is."""
    digest = hashlib.sha256(os.environ.get("BASE_IMAGE", BASE_IMAGE).encode())
    for path, data in _sources().items():
        digest.update(f"|{path}|{len(data)}|".encode() + data)
    return f"pubsub-testbed:{digest.hexdigest()[:12]}"


def exists(image: str) -> bool:
    """Whether the engine has it."""
    try:
        commands.run(["docker", "image", "inspect", image], timeout=20)
    except commands.CommandError:
        return False
    return True


def build() -> str:
    """Build the image if the engine has not got it, and return its name. Raises SetupError."""
    if exists(name()):
        return name()
    base = os.environ.get("BASE_IMAGE", BASE_IMAGE)
    print(f"image {name()}: building on {base} (some minutes the first time)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as scratch:
        for path, data in _sources().items():
            target = Path(scratch, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755 if path.startswith("cache/") else 0o644)
        certificates = Path(scratch, "ca-certificates.crt")
        certificates.write_bytes(_CERTIFICATES.read_bytes() if _CERTIFICATES.exists() else b"")
        # The host's network, for an engine's own may have no way out (no NAT, a proxy on the host alone).
        words = ["docker", "build", "--network=host", "--build-arg", f"BASE_IMAGE={base}", "--tag", name(), scratch]
        try:
            commands.run(words)
        except commands.CommandError as error:
            mend = f"if {base} cannot be pulled here: make base-image, or make image BASE_IMAGE=…"
            raise SetupError(f"{error}\n{mend}") from error
    return name()


def make_base() -> None:
    """Make BASE_IMAGE from a Debian mirror, with debootstrap; needs root. Raises SetupError."""
    if not shutil.which("debootstrap"):
        raise SetupError("make base-image needs debootstrap: sudo apt-get install debootstrap")
    if os.geteuid():
        raise SetupError("make base-image needs root (debootstrap): use sudo")
    base = os.environ.get("BASE_IMAGE", BASE_IMAGE)
    mirror = commands.run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"])
    uris = [line.split("|")[0] for line in mirror.splitlines() if line.split("|")[1:] == [codename(), "main"]]
    print(f"base image {base}: debootstrap {_SUITE}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="testbed-base-") as scratch:
        commands.run(["debootstrap", "--variant=minbase", _SUITE, f"{scratch}/root", *uris[:1]])
        archive = f"{scratch}/root.tar"
        left_out = [f"--exclude=./{folder}/*" for folder in _LEFT_OUT]
        commands.run(["tar", "-C", f"{scratch}/root", *left_out, "-cf", archive, "."])
        commands.run(["docker", "import", archive, base])
