"""A study: protocols × QoS × payloads × clients × repeats, the traffic and the channel's placement, from studies/."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from testbed.schema import Duration, Size, Strict, find, read_yaml

FOLDER = Path(__file__).resolve().parent.parent / "studies"

Qos = Literal[-1, 0, 1, 2]


class ChannelFile(Strict):
    """Where the link lies: one for all clients, at the server; which directions; two IFBs (full) or one (half)."""

    scope: Literal["shared"]
    direction: Literal["uplink", "downlink", "both"]
    duplex: Literal["full", "half"]


class Traffic(Strict):
    """One payload and its schedule: every publisher sends `messages` of `size`, one each `interval`, then `drain`."""

    size: Size
    interval: Duration = Field(gt=0)
    messages: int = Field(ge=1)
    drain: Duration


class ProtocolFile(Strict):
    """The QoS levels of a protocol to run (none: the protocol has no QoS), and its own parameters."""

    qos: list[Qos] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)


class Startup(Strict):
    """Clients are started `stagger` apart; those not ready after `timeout` are left out and counted."""

    stagger: Duration
    timeout: Duration = Field(gt=0)


class Limits(Strict):
    """When a cell is given up, in wall time: its virtual clock stood still, or it took this long altogether."""

    stall: Duration = Field(gt=0)
    cell: Duration = Field(gt=0)


class StudyFile(Strict):
    """The keys of a study's YAML. Everything that shapes a number is here or in the profile."""

    description: str
    source: str
    seed: int = Field(ge=0, lt=2**63)
    repeats: int = Field(ge=1, le=1000)
    clients: int = Field(ge=1, le=120)
    channel: ChannelFile
    startup: Startup
    limits: Limits
    tcp: dict[str, str]
    payloads: dict[Literal["gps", "image"], Traffic] = Field(min_length=1)
    protocols: dict[str, ProtocolFile] = Field(min_length=1)
    servers: dict[str, dict[str, Any]]


def load(name: str) -> tuple[str, StudyFile]:
    """The study called `name`, or of the file at that path, with its name. Raises UserError."""
    path = find("study", FOLDER, name)
    return path.stem, read_yaml(path, StudyFile)
