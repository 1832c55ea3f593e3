"""How containers and the host that runs them tell each other things: files in a shared volume, replaced whole.

The host writes into SHARED, which all containers can read: `job.json`, then `begin`, `go` and `stop`. A container writes
into OWN: `status.json` again and again, and its outcome at the end. Nothing of it crosses the emulated network.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.cell import Cell, cell_from_json
from testbed.netns import Host

SHARED, OWN = Path("/shared"), Path("/own")
"""Where containers see the shared volume, and their own part of it."""

JOB, BEGIN, GO, STOP, STATUS, READY, OUTCOME = (
    f"{name}.json" for name in ("job", "begin", "go", "stop", "status", "ready", "outcome")
)
SERVER = "server"

LOOK = 0.25
"""Seconds between two looks at a file that is waited for; an instant is told at least LEAD ns before it is due."""

LEAD = 2 * 10**9


def tell(path: Path, data: Any) -> None:
    """Write `data`; a reader sees all of it or nothing."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(data))
    fresh.replace(path)


def heard(path: Path) -> Any | None:
    """What was told at `path`; None if nothing was yet."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class Job:
    """What every container of a cell is told."""

    cell: Cell
    hosts: dict[str, str]
    """IPv4 address of each host by its name, the server's among them."""

    def host(self, name: str) -> Host:
        """The host that this container is, or a host to talk to."""
        return Host(name, self.hosts[name], None)


def job() -> Job:
    """The job, in a container."""
    data = json.loads((SHARED / JOB).read_text())
    return Job(cell_from_json(data["cell"]), data["hosts"])
