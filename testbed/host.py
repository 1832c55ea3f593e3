"""What this machine's own kernel and programs can do; asked of them, not guessed."""

import os
import platform
import shutil
from pathlib import Path
from typing import Any

from broker import registry as servers
from testbed import commands
from testbed.cell import Cell
from testbed.commands import CommandError
from testbed.errors import UserError

TRY_NETEM = "ip link add probe type dummy && tc qdisc add dev probe root netem delay 1ms && ip link add ifb type ifb"


def netem_problem() -> str | None:
    """Why this kernel cannot emulate a link (tried in a namespace of its own); None if it can."""
    if os.geteuid():
        return "needs root to look: run it with sudo"
    try:
        commands.run(["unshare", "--net", "sh", "-ec", TRY_NETEM], timeout=20)
    except CommandError as error:
        return error.output.splitlines()[0] if error.output else str(error)
    return None


def netns_problem(shapes: bool) -> str | None:
    """Why RUNTIME=netns cannot run here, on a link that `shapes` or on one that does not; None if it can."""
    if os.geteuid():
        return "RUNTIME=netns needs root: run it with sudo, or use RUNTIME=virtual"
    problem = netem_problem() if shapes else None
    if problem:
        return (
            f"RUNTIME=netns needs netem and ifb in this machine's kernel, {platform.release()} has not ({problem}); "
            "install them (Debian: linux-image-amd64; Ubuntu: linux-modules-extra-$(uname -r); Fedora: "
            "kernel-modules-extra), or use RUNTIME=virtual, which needs neither"
        )
    return None


def check_servers(cells: list[Cell]) -> None:
    """Raises UserError if a server that a cell asks for cannot run here."""
    for cell in cells:
        for name, settings in cell.servers.items():
            problem = servers.get(name).problem(settings)
            if problem:
                raise UserError(problem)


def versions() -> dict[str, str]:
    """Versions of what shapes a number on this machine, for the manifest."""
    found = {"python": platform.python_version(), "host_kernel": platform.release()}
    for name, words in {
        "tc": ["tc", "-V"],
        "tcpdump": ["tcpdump", "--version"],
        "tshark": ["tshark", "--version"],
    }.items():
        try:
            found[name] = commands.run(words).splitlines()[0]
        except CommandError:
            found[name] = "not found"
    return found


def resources(folder: Path) -> dict[str, Any]:
    """Cores, memory available and disk free at `folder`, in bytes."""
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_available": int(meminfo["MemAvailable"].split()[0]) * 1024,
        "disk_free": shutil.disk_usage(folder).free,
    }
