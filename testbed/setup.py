"""`make`'s first step: install what is missing and say what and why. Standard library only; quick when all is there."""

import hashlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from broker import bisquitt
from guest import kernel
from testbed import commands
from testbed.errors import SetupError
from testbed.places import PROJECT

PACKAGES = {
    "python3-venv": "the Python environment",
    "python3-dev": "to build pyzmq",
    "libzmq3-dev": "ZeroMQ with PGM and NORM, to build pyzmq against",
    "pkg-config": "to build pyzmq",
    "build-essential": "to build pyzmq and the guest's kernel",
    "flex": "to build the guest's kernel",
    "bison": "to build the guest's kernel",
    "bc": "to build the guest's kernel",
    "libelf-dev": "to build the guest's kernel",
    "xz-utils": "to unpack the kernel's source",
    "iproute2": "ip and tc: links and impairments",
    "tcpdump": "packet captures",
    "tshark": "packet analysis",
    "mosquitto": "the MQTT broker",
    "golang-go": "to build the MQTT-SN gateway",
}
"""Debian packages and what each is for."""

TEST_PACKAGES = {
    "docker.io": "a Docker engine, for the tests of RUNTIME=docker",
    "docker-compose": "Compose, for the tests of RUNTIME=docker",
    "chromium": "to look at the report as a reader does",
    "debootstrap": "the base of the containers' image, where none can be pulled",
}
"""What only the tests need; `make run` does not install them."""

_PROGRAMS = {
    "pkg-config": "pkg-config",
    "golang-go": "go",
    "docker.io": "dockerd",
    "docker-compose": "docker-compose",
    "debootstrap": "debootstrap",
}
"""Packages not needed where their program is: pkgconf has a pkg-config too; Go and Docker often come from elsewhere."""

_SERVICES = {"mosquitto": ["mosquitto.service"], "docker.io": ["docker.service", "docker.socket"]}
"""Services that a package brings and starts; the testbed runs brokers, and the tests an engine, of their own."""

VENV = PROJECT / ".venv"
_LOCK = PROJECT / "requirements.lock"
_STAMP = VENV / "installed"
_begin = time.monotonic()


def say(text: str) -> None:
    """A line of progress, with the seconds since the start."""
    print(f"[{time.monotonic() - _begin:4.0f} s] {text}", file=sys.stderr, flush=True)


def missing_packages(wanted: Iterable[str] = PACKAGES) -> list[str]:
    """Those of `wanted` that are not installed."""
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n", *wanted]
    try:
        lines = commands.run(query)
    except commands.CommandError as error:  # it exits with 1 if it does not know one of them
        lines = error.output
    have = {line.split()[0] for line in lines.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in have and not shutil.which(_PROGRAMS.get(name, ""))]


def apt_command(names: list[str]) -> list[str]:
    """The command that installs packages, with sudo where we are not root."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    return [
        *sudo,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        *names,
    ]


def _install_packages(wanted: Mapping[str, str]) -> None:
    names = missing_packages(wanted)
    if not names:
        return
    if os.geteuid() and not shutil.which("sudo"):
        raise SetupError(f"packages are missing and there is no sudo; as root: apt-get install {' '.join(names)}")
    for name in names:
        say(f"Debian package {name}: {wanted[name]}")
    install = apt_command(names)
    commands.run([*install[: install.index("install")], "update"])
    services = [service for name in names for service in _SERVICES.get(name, ())]
    fresh = [service for service in services if not Path("/lib/systemd/system", service).exists()]
    commands.run(install)
    if fresh and Path("/run/systemd/system").is_dir():
        say(f"{', '.join(fresh)}, new with the packages, stopped and disabled: the testbed starts its own")
        commands.run([*install[: install.index("env")], "systemctl", "disable", "--now", *fresh])


def _lock_hash() -> str:
    return hashlib.sha256(_LOCK.read_bytes()).hexdigest()


def venv_is_current() -> bool:
    """Whether the Python environment holds just what the lock file says."""
    return _STAMP.exists() and _STAMP.read_text() == _lock_hash()


def _install_venv() -> None:
    if venv_is_current():
        return
    say(f"Python environment: {VENV.name} from {_LOCK.name} (pyzmq is built from source, against Debian's libzmq)")
    commands.run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    commands.run([*pip, "--require-hashes", "--no-binary", "pyzmq", "-r", str(_LOCK)])
    _STAMP.write_text(_lock_hash())
    say("Python environment: installed")


def _install_guest() -> None:
    kernel.fetch_iproute2(say)
    if kernel.cached() is None:
        kernel.build(say)


def _install_docker_guest() -> None:
    if kernel.cached(kernel.WITH_DOCKER) is None:
        kernel.build(say, kernel.WITH_DOCKER)


def _side_by_side(steps: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def main(extras: list[str]) -> int:
    """Install everything; returns the exit code. `extras`: `tests` and `docker-kernel`, what only some tests need."""
    steps = [_install_venv, _install_guest, lambda: bisquitt.build(say)]
    steps += [_install_docker_guest] if "docker-kernel" in extras else []
    try:
        _install_packages(PACKAGES | TEST_PACKAGES if "tests" in extras else PACKAGES)
        _side_by_side(steps)
    except SetupError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
