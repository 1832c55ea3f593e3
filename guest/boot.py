"""Boots the guest: User-Mode Linux in virtual time, with the host's file system as its root, as an ordinary user.

time-travel=inf-cpu makes the kernel jump over idle time and lets CPU work take no time, so delays do not depend on this
machine's load. Clock, random pool and address layout are fixed, so that a guest repeats to the byte.
"""

import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guest.inside import EPOCH
from testbed import commands
from testbed.plan import Cell

PROJECT = Path(__file__).resolve().parent.parent
MEMORY = "2G"

_INIT = """#!/bin/sh
export PATH={path} HOME=/run LANG=C.UTF-8 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 TMPDIR=/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
ip link set lo up
hostname guest
cd {project}
{python} -m {module} {job}
sync
halt -f
"""


@dataclass(frozen=True)
class Kernel:
    """A built guest kernel, its seeded getrandom, and the folders whose tools come first in the guest."""

    linux: Path
    random: Path
    version: str
    tools: tuple[Path, ...]


class GuestEnded(Exception):
    """The guest was ended, or ended by itself, before its job was done; `status` is what its cell is reported as."""

    def __init__(self, status: str, reason: str) -> None:
        self.status = status
        super().__init__(reason)


def _command(kernel: Kernel, init: Path, core: int, umls: Path) -> list[str]:
    return [
        *("setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(core)),
        str(kernel.linux),
        *("seccomp=on", "time-travel=inf-cpu", f"time-travel-start={EPOCH}", "norandmaps", f"mem={MEMORY}"),
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}", f"uml_dir={umls}"),
        *("con=null", "con0=fd:0,fd:1", "quiet"),
    ]


def _watch(
    process: "subprocess.Popen[str]", log: Path, stall: float, limit: float, on_line: Callable[[str], None]
) -> None:
    """Hand over the guest's lines until it ends. Raises GuestEnded if it is silent or alive for too long (s)."""
    assert process.stdout is not None
    fd, rest, begin = process.stdout.fileno(), b"", time.monotonic()
    with selectors.DefaultSelector() as selector, log.open("wb") as file:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            left = begin + limit - time.monotonic()
            if left <= 0:
                raise GuestEnded("timeout", f"not done after {limit:g} s of wall time")
            if not selector.select(min(stall, left)):
                if left > stall:
                    raise GuestEnded("stalled", f"its virtual clock stood still for {stall:g} s of wall time")
                continue
            data = os.read(fd, 65536)
            if not data:
                return
            file.write(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                on_line(line.decode(errors="replace").strip())


def run(
    kernel: Kernel,
    jobs: list[tuple[Cell, Path]],
    core: int,
    on_event: Callable[[dict[str, Any]], None],
    module: str = "guest.inside",
) -> None:
    """Run cells in one guest, pinned to `core`; each leaves its results in its folder.

    `on_event` gets what guest.inside reports. Raises GuestEnded if the guest did not come to the end of its job.
    """
    cell, folder = jobs[0]
    done: list[str] = []
    with tempfile.TemporaryDirectory(prefix="testbed-guest-") as scratch:
        job, init = Path(scratch, "job.json"), Path(scratch, "init")
        job.write_text(json.dumps([{"cell": asdict(cell), "folder": str(folder)} for cell, folder in jobs]))
        path = ":".join([*map(str, kernel.tools), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        words = {"path": path, "project": str(PROJECT), "python": sys.executable, "module": module, "job": str(job)}
        init.write_text(_INIT.format(**{key: shlex.quote(word) for key, word in words.items()}))
        init.chmod(0o755)

        def on_line(line: str) -> None:
            if line.startswith('{"cell":'):
                event = json.loads(line)
                if event.get("phase") == "done":
                    done.append(event["cell"])
                on_event(event)

        shared_memory = Path("/dev/shm")
        memory = {"TMPDIR": str(shared_memory)} if os.access(shared_memory, os.W_OK) else {}
        process = commands.start(
            _command(kernel, init, core, Path(scratch)),
            stdout=subprocess.PIPE,
            env={"LD_PRELOAD": str(kernel.random), "GUEST_SEED": str(cell.seed), **memory},
            own_group=True,
        )
        log = folder / "logs" / "guest.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            _watch(process, log, cell.stall_limit / 1e9, cell.wall_limit * len(jobs) / 1e9, on_line)
        finally:
            _end(process)
        if len(done) < len(jobs):
            raise GuestEnded("failed", f"the guest ended before its job was done; see {log}")


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill the guest's whole process group: the kernel and the host processes that carry its programs."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process.stdout:
        process.stdout.close()
