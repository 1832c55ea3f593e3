"""Boots the guest: User-Mode Linux in virtual time, with the host's file system as its root, as an ordinary user.

time-travel=inf-cpu makes the kernel jump over idle time and lets CPU work take no time, so delays do not depend on this
machine's load. Clock, random pool and address layout are fixed, so that a guest repeats to the byte.
"""

import os
import shlex
import sys
from pathlib import Path

from guest.inside import EPOCH
from guest.kernel import Kernel
from testbed.places import CACHE, PROJECT

MEMORY = "2G"
CLOCK = "time-travel=inf-cpu"

_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_INIT = """#!/bin/sh
export PATH={path} HOME=/run XDG_CACHE_HOME={cache} LANG=C.UTF-8 TMPDIR=/run PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -o remount,noatime /  # else a file's first reader takes another path through the kernel than the next
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
ip link set lo up
hostname guest
cd {project}
{command}
halt -f
"""


def prepare(kernel: Kernel, folder: Path, command: list[str]) -> None:
    """Write the guest's init into `folder`: it runs `command` in the checkout, then halts."""
    init = folder / "init"
    path = ":".join([*map(str, kernel.tools), *_SYSTEM_PATH])
    init.write_text(
        _INIT.format(
            path=shlex.quote(path),
            cache=shlex.quote(str(CACHE.parent)),
            project=shlex.quote(str(PROJECT)),
            command=shlex.join(command),
        )
    )
    init.chmod(0o755)


def command(kernel: Kernel, core: int, clock: str = CLOCK, memory: str = MEMORY) -> list[str]:
    """The command that boots a guest, to be run in the folder that prepare() filled.

    `clock` is a word of UML's: with `time-travel` idle time is skipped too, but the time that programs take counts.

    Its words are the same for every cell, for the kernel stirs them into its random pool. So the folder is not among
    them: the guest finds it through hostfs, at the host's /proc, as the working folder of the process that carries it.
    """
    return [
        *("taskset", "-c", str(core), str(kernel.linux)),
        *("seccomp=on", clock, f"time-travel-start={EPOCH}", "norandmaps", f"mem={memory}"),
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "init=/proc/self/cwd/init", "uml_dir=./"),
        *("con=null", "con0=fd:0,fd:1", "quiet"),
    ]


def environment(kernel: Kernel, seed: int) -> dict[str, str]:
    """What the guest's process needs in its environment: the seeded random numbers, and memory in RAM."""
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    return {"LD_PRELOAD": str(kernel.random), "GUEST_SEED": str(seed), **memory}


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs one of the project's modules in the guest, with the Python that runs this."""
    return [sys.executable, "-m", module, *arguments]
