"""How containers and the host that runs them tell each other things: files in a shared volume, replaced whole.

The host writes into SHARED, which all containers can read: `job.json`, then `begin`, `go` and `stop`. A container writes
into OWN: `status.json` again and again, and its outcome at the end. Servers work in SERVERS, which the server pod's
first container can read. Nothing of it crosses the emulated network.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.server import Context
from testbed.cell import Cell, cell_from_json
from testbed.netns import Host

SHARED, OWN, SERVERS = Path("/shared"), Path("/own"), Path("/servers")
"""Where containers see the shared volume, their own part of it, and the folder of all servers."""

JOB, BEGIN, GO, STOP, STATUS, READY, OUTCOME = (
    f"{name}.json" for name in ("job", "begin", "go", "stop", "status", "ready", "outcome")
)
SERVER = "server"

LOOK = 0.25
"""Seconds between two looks at a file that is waited for; an instant is told at least LEAD ns before it is due."""

LEAD = 2 * 10**9

UP_LIMIT = 300.0
"""Seconds of wall time for all containers to come up."""


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
    own_image: list[str]
    """Servers that run in the testbed's own image, so that any of its containers can tell their versions."""

    def host(self, name: str) -> Host:
        """The host that this container is, or a host to talk to."""
        return Host(name, self.hosts[name], None)

    def context(self, server: str) -> Context:
        """What a server's declaration is told."""
        cell = self.cell
        return Context(self.hosts[SERVER], cell.clients, SERVERS, cell.servers[server], cell.qos)


def job() -> Job:
    """The job, in a container."""
    data = json.loads((SHARED / JOB).read_text())
    return Job(cell_from_json(data["cell"]), data["hosts"], data["own_image"])
