"""`make doctor`: what this machine can do and lacks, each with the command that mends it. Standard library only."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from guest import kernel
from testbed import commands, host, setup
from testbed.commands import CommandError
from testbed.places import CACHE, PROJECT

_GIB = 2**30
_NEEDED_MEMORY, _NEEDED_DISK, _BUILD_DISK = 2 * _GIB, 1 * _GIB, 4 * _GIB


@dataclass(frozen=True)
class Finding:
    """One line of the screen. `needed` says whether the default run needs it; `mend` is empty if nothing is wrong."""

    what: str
    seen: str
    mend: str
    needed: bool


def _packages() -> Finding:
    missing = setup.missing_packages()
    seen = f"missing: {', '.join(missing)}" if missing else f"all {len(setup.PACKAGES)} installed"
    mend = " ".join(word for word in setup.apt_command(missing) if "=" not in word and word != "env") if missing else ""
    return Finding("Debian packages", seen, mend, needed=True)


def _python() -> Finding:
    if setup.venv_is_current():
        return Finding("Python environment", f"{setup.VENV.name}, as the lock file says", "", needed=True)
    return Finding("Python environment", "missing or not as the lock file says", "make setup", needed=True)


def _kernel() -> Finding:
    built = kernel.cached()
    if built:
        return Finding("guest kernel", f"{built.version}, cached in {built.linux.parent}", "", needed=True)
    return Finding("guest kernel", "not built yet (some minutes, once)", "make setup", needed=True)


def _guest_tc() -> Finding:
    version = commands.run([str(kernel.tools()[0] / "tc") if kernel.tools() else "tc", "-V"]).split(",")[1].strip()
    return Finding("tc with netem seeds", version, "", needed=False)


def _zeromq() -> Finding:
    try:
        words = [str(setup.VENV / "bin" / "python"), "-c", "import zmq; print(zmq.zmq_version(), zmq.has('pgm'))"]
        version, pgm = commands.run(words).split()
    except CommandError:
        return Finding("ZeroMQ with PGM", "pyzmq is not installed", "make setup", needed=False)
    if pgm == "True":
        return Finding("ZeroMQ with PGM", f"libzmq {version}, with PGM", "", needed=False)
    return Finding("ZeroMQ with PGM", f"libzmq {version}, without PGM", "rm -r .venv && make setup", needed=False)


def _netem() -> Finding:
    problem = host.netem_problem()
    if problem is None:
        return Finding("netem and ifb in this kernel", "yes: RUNTIME=netns works", "", needed=False)
    mend = "sudo make doctor" if os.geteuid() else "not needed: RUNTIME=virtual brings its own kernel"
    return Finding("netem and ifb in this kernel", f"no ({problem})", mend, needed=False)


def _docker() -> Finding:
    if not shutil.which("docker"):
        return Finding("Docker engine", "no docker command", "sudo apt-get install docker.io", needed=False)
    try:
        version = commands.run(["docker", "version", "--format", "{{.Server.Version}}"], timeout=20).strip()
    except CommandError:
        return Finding("Docker engine", "does not answer", "sudo systemctl start docker", needed=False)
    return Finding("Docker engine", version, "", needed=False)


def _memory() -> Finding:
    have = host.resources(PROJECT)
    seen = f"{have['memory_available'] / _GIB:.1f} GiB available, {have['cores']} cores"
    enough = have["memory_available"] >= _NEEDED_MEMORY
    return Finding(
        "memory", seen, "" if enough else f"free memory: {_NEEDED_MEMORY // _GIB} GiB are needed", needed=True
    )


def _disk() -> Finding:
    needed = _NEEDED_DISK if kernel.cached() else _BUILD_DISK
    there = next(folder for folder in (CACHE, *CACHE.parents) if folder.exists())
    free = min(host.resources(PROJECT)["disk_free"], host.resources(there)["disk_free"])
    mend = "" if free >= needed else f"free disk space: {needed // _GIB} GiB are needed"
    return Finding("disk", f"{free / _GIB:.0f} GiB free", mend, needed=True)


CHECKS: tuple[Callable[[], Finding], ...] = (
    _packages,
    _python,
    _kernel,
    _guest_tc,
    _zeromq,
    _netem,
    _docker,
    _memory,
    _disk,
)


def main() -> int:
    """Print the screen; 0 where the default run would work."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    works = True
    for check in CHECKS:
        try:
            found = check()
        except (CommandError, OSError) as error:
            found = Finding(check.__name__.strip("_"), str(error).splitlines()[0], "make setup", needed=True)
        mark = "ok" if not found.mend else "LACKS" if found.needed else "--"
        works &= not (found.mend and found.needed)
        print(f"{mark:>5}  {found.what:<29} {found.seen}")
        if found.mend:
            print(f"{'':>36} -> {found.mend}")
    print(
        "\nmake run PROFILE=satcom works here." if works else "\nThe default run would not work yet: see LACKS above."
    )
    return 0 if works else 1


if __name__ == "__main__":
    sys.exit(main())
