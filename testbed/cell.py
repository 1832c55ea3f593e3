"""A cell: one combination of a study with everything resolved. Plain data, so that the guest loads nothing to read it."""

import hashlib
from dataclasses import dataclass
from typing import Any

from clients.protocol import PUBLISHER, SUBSCRIBER
from testbed.netem import Netem

DIRECTIONS = {"uplink": ("uplink",), "downlink": ("downlink",), "both": ("uplink", "downlink")}


@dataclass(frozen=True)
class Channel:
    """The emulated medium: netem between all clients and the server."""

    scope: str
    direction: str
    duplex: str
    netem: Netem

    @property
    def label(self) -> str:
        """How summary.csv names it: `shared/uplink/full`."""
        return f"{self.scope}/{self.direction}/{self.duplex}"


@dataclass(frozen=True)
class Cell:
    """One combination, everything resolved: the unit that runs, fails and is reported. Times in ns, size in bytes."""

    id: str
    study: str
    profile: str
    protocol: str
    qos: int | None
    payload: str
    size: int
    interval: int
    messages: int
    drain: int
    clients: int
    repeat: int
    seed: int
    channel: Channel
    stagger: int
    startup_timeout: int
    stall_limit: int
    wall_limit: int
    tcp: dict[str, str]
    parameters: dict[str, Any]
    servers: dict[str, dict[str, Any]]
    capture: tuple[str, ...] = ()
    """Client hosts with a PCAP of their own, beside those of the channel's two sides."""

    @property
    def run_tag(self) -> str:
        """Eight hex digits that every message of this cell carries."""
        return f"{self.seed & 0xFFFFFFFF:08x}"

    @property
    def expected(self) -> int:
        """Messages that would arrive if nothing were lost."""
        return self.clients * self.messages


def cell_from_json(data: dict[str, Any]) -> Cell:
    """The inverse of dataclasses.asdict(cell)."""
    channel = dict(data["channel"])
    channel["netem"] = Netem(**channel["netem"])
    return Cell(**{**data, "channel": Channel(**channel), "capture": tuple(data["capture"])})


def host_names(clients: int) -> list[str]:
    """The client hosts of a cell, publishers first."""
    return [f"{role}-{number:02d}" for role in (PUBLISHER, SUBSCRIBER) for number in range(1, clients + 1)]


def derive_seed(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on the run's seed and the cell's identity only, not on the cells beside it."""
    digest = hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
