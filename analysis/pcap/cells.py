"""A cell as its folder shows it: what was planned, the facts of its run, and its captures."""

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.pcap import crossings
from clients import registry
from clients.protocol import Protocol
from testbed.cell import Cell, cell_from_json, host_names
from testbed.errors import UserError
from testbed.netns import SUBNET

SERVER = "server"


@dataclass(frozen=True)
class Recorded:
    """A cell that ran. `go` is ns since the epoch."""

    folder: Path
    plan: Cell
    facts: dict[str, Any]

    @property
    def go(self) -> int:
        """When publishing began."""
        return int(self.facts["go_ns"])

    @property
    def protocol(self) -> Protocol:
        """What it ran."""
        return registry.get(self.plan.protocol)

    @property
    def addresses(self) -> dict[str, str]:
        """The IPv4 address of every host by its name: the server's is the first of the subnet, the clients' follow."""
        subnet = ipaddress.IPv4Network(self.facts.get("containers", {}).get("subnet", f"{SUBNET}.0/24"))
        names = (SERVER, *host_names(self.plan.clients))
        return {name: str(subnet[number]) for number, name in enumerate(names, start=1)}

    def crossings(self) -> list[crossings.Crossing]:
        """Its IPv4 packets in the order in which they were sent."""
        return crossings.read(self.folder, ipaddress.IPv4Address(self.addresses[SERVER]).packed)


def load(folder: Path) -> Recorded:
    """Read a cell's folder. Raises UserError if there is no cell that came to its end in it."""
    try:
        plan = json.loads((folder.parent.parent / "plan.json").read_text())
        facts = json.loads((folder / "cell.json").read_text())
    except OSError as error:
        raise UserError(
            f"CELL: '{folder}': {error.strerror}; allowed is a cell of results/latest, or the path of one"
        ) from error
    found = next((cell for cell in plan["cells"] if cell["id"] == folder.name), None)
    if found is None or "go_ns" not in facts:
        raise UserError(f"CELL: '{folder}': it did not come to its end: {facts.get('error', 'it is in no plan')}")
    return Recorded(folder, cell_from_json(found), facts)
