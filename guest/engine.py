"""A Docker engine in the guest, whose kernel has netem: containers on shaped links on a machine without netem.

Inside the guest `python -m guest.engine FOLDER COMMAND…` starts the engine, loads the image that lies in FOLDER, runs the
command, and ends. run() does it from outside: a guest for one list of commands.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from guest import boot
from guest.kernel import Kernel
from testbed import commands
from testbed.commands import CommandError
from testbed.errors import SetupError
from testbed.waiting import wait_for

_IMAGE = "image.tar"
_MEMORY = "6G"
_STATE = Path("/run")  # the guest's own tmpfs: images, layers and containers live in its memory
_DOCKERD = [
    "dockerd",
    *("--config-file", str(_STATE / "daemon.json")),  # not the machine's
    *("--data-root", str(_STATE / "data"), "--exec-root", str(_STATE / "docker")),
    *("--pidfile", str(_STATE / "dockerd.pid"), "--storage-driver", "overlay2"),
    # Cells bring a network of their own, internal; the guest's kernel has no netfilter for another.
    *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false", "--userland-proxy=false"),
]


def _keep_writes(folder: str) -> None:
    """What is written below `folder` stays in the guest, instead of going to the host's file system."""
    upper, work = _STATE / "upper" / folder[1:], _STATE / "work" / folder[1:]
    for each in (upper, work):
        each.mkdir(parents=True)
    layers = f"lowerdir={folder},upperdir={upper},workdir={work}"
    commands.run(["mount", "-t", "overlay", "-o", layers, "overlay", folder])


def _answers() -> bool:
    try:
        commands.run(["docker", "version"], timeout=20)
    except CommandError:
        return False
    return True


@contextmanager
def _running(folder: Path) -> Iterator[None]:
    """An engine that has the image; its log is written to `folder`."""
    commands.run(["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"])
    for kept in ("/etc", "/opt"):  # dockerd writes a key into /etc/docker, containerd makes /opt/containerd
        _keep_writes(kept)
    (_STATE / "daemon.json").write_text("{}")
    with commands.background(_DOCKERD, folder / "dockerd.out", folder / "dockerd.log"):
        wait_for(_answers, "dockerd to answer", 120, 0.5)
        commands.run(["docker", "load", "--quiet", "--input", str(folder / _IMAGE)])
        yield


def save(image: str, folder: Path) -> None:
    """Lay this machine's `image` into `folder`, for run()."""
    commands.run(["docker", "save", "--output", str(folder / _IMAGE), image])


def run(kernel: Kernel, script: list[list[str]], folder: Path, limit: float) -> str:
    """Boot a guest whose engine has the image in `folder`, run commands in the checkout; returns what they printed.

    Logs lie in `folder` afterwards, the image no more. Raises SetupError if a command failed, or the guest was not done
    after `limit` s.
    """
    done, log = folder / "done", folder / "guest.log"
    text = "\n".join(["set -e", *map(shlex.join, script), shlex.join(["touch", str(done)])])
    boot.prepare(kernel, folder, boot.python("guest.engine", str(folder), "sh", "-c", text))
    # Programs written in Go wait for each other in loops: for ever, if the time that they take does not count.
    words = boot.command(kernel, max(os.sched_getaffinity(0)), clock="time-travel", memory=_MEMORY)
    with log.open("w") as output:
        process = commands.start(words, stdout=output, env=boot.environment(kernel, 1), cwd=folder, own_group=True)
        with commands.ended_afterwards(process), suppress(subprocess.TimeoutExpired):
            process.wait(limit)
    (folder / _IMAGE).unlink()
    if not done.exists():
        raise SetupError(f"the guest failed, or was not done after {limit:g} s; see {folder}\n{log.read_text()}")
    return log.read_text()


if __name__ == "__main__":
    with _running(Path(sys.argv[1])):
        commands.follow(sys.argv[2:], lambda line: print(line, flush=True))
