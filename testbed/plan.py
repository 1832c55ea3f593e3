"""A study on a profile, resolved into cells: everything that shapes a number, with no default left open.

Resolving never touches the host and needs no root.
"""

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from broker import registry as servers
from clients import registry as protocols
from testbed import parameters, units
from testbed.errors import UserError
from testbed.netem import Netem
from testbed.profile import Profile
from testbed.study import ProtocolFile, StudyFile

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
    return Cell(**{**data, "channel": Channel(**channel)})


@dataclass(frozen=True)
class Plan:
    """What a run will do; saved beside the results."""

    study: str
    study_source: str
    profile: Profile
    seed: int
    cells: list[Cell]

    def to_json(self) -> dict[str, Any]:
        """Plain data, for plan.json and the manifest."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Choice:
    """What the command line says instead of the study; None leaves the study's value."""

    protocol: str | None = None
    qos: str | None = None
    payload: str | None = None
    clients: int | None = None
    messages: int | None = None
    interval: str | None = None
    drain: str | None = None
    seed: int | None = None
    repeats: int | None = None
    channel: str | None = None


def derive_seed(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on the run's seed and the cell's identity only, not on the cells beside it."""
    digest = hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _names(variable: str, text: str | None, known: list[str]) -> list[str]:
    if text is None:
        return known
    names = re.split(r"[,\s]+", text.strip())
    for name in names:
        if name not in known:
            raise UserError(f"{variable}: {name!r}: allowed are {', '.join(known)}, or several with commas")
    return [name for name in known if name in names]


def _qos_levels(choice: Choice, study: StudyFile, chosen: list[str]) -> dict[str, list[int | None]]:
    """QoS levels to run for each chosen protocol; [None] for one without QoS."""
    levels: dict[str, list[int | None]] = {
        name: list(study.protocols[name].qos) or [None] for name in chosen
    }
    if choice.qos is None:
        return levels
    known = sorted({str(level) for some in levels.values() for level in some if level is not None})
    wanted = {int(level) for level in _names("QOS", choice.qos, known)}
    return {name: [level for level in some if level in wanted] for name, some in levels.items()}


def _channel(text: str | None, study: StudyFile, netem: Netem) -> Channel:
    scope, direction, duplex = study.channel.scope, study.channel.direction, study.channel.duplex
    for word in re.split(r"[,/\s]+", text.strip()) if text is not None else []:
        if word in DIRECTIONS:
            direction = word  # type: ignore[assignment]
        elif word in ("full", "half"):
            duplex = word  # type: ignore[assignment]
        elif word != "shared":
            raise UserError(f"CHANNEL: {word!r}: allowed are shared, uplink, downlink, both, full, half, joined by /")
    return Channel(scope, direction, duplex, netem)


def _in_range(variable: str, value: int | None, default: int, low: int, high: int) -> int:
    if value is None:
        return default
    if not low <= value <= high:
        raise UserError(f"{variable}: {value}: allowed is a whole number from {low} to {high}")
    return value


def _time(variable: str, value: str | None, default: int, low: int) -> int:
    if value is None:
        return default
    try:
        time = units.duration(value)
    except ValueError as error:
        raise UserError(f"{variable}: {value!r}: {error}") from error
    if time < low:
        raise UserError(f"{variable}: {value!r}: allowed is a time above 0s, like 10s")
    return time


def _parameters(where: str, name: str, file: ProtocolFile) -> tuple[protocols.Protocol, dict[str, Any]]:
    try:
        protocol = protocols.get(name)
    except KeyError:
        raise UserError(
            f"{where}: protocols.{name}: no such protocol; allowed are {', '.join(protocols.NAMES)}"
        ) from None
    for level in file.qos or [None]:
        if level not in protocol.qos:
            allowed = ", ".join(map(str, protocol.qos)) if protocol.qos != (None,) else "none: it has no QoS"
            raise UserError(f"{where}: protocols.{name}.qos: {level}: allowed are {allowed}")
    read = parameters.read(f"{where}: protocols.{name}.parameters", protocol.parameters, file.parameters)
    return protocol, dataclasses.asdict(read)


def _servers(where: str, protocol: protocols.Protocol, study: StudyFile) -> dict[str, dict[str, Any]]:
    resolved = {}
    for name in protocol.servers:
        given = study.servers.get(name, {})
        resolved[name] = dataclasses.asdict(
            parameters.read(f"{where}: servers.{name}", servers.get(name).settings, given)
        )
    return resolved


def _circumstances(cell: Cell) -> parameters.Circumstances:
    netem = cell.channel.netem
    shaped = parameters.Leg(netem.rate, netem.delay + netem.jitter)
    legs = {
        each: shaped if each in DIRECTIONS[cell.channel.direction] else parameters.Leg(0, 0)
        for each in ("uplink", "downlink")
    }
    return parameters.Circumstances(**legs, clients=cell.clients, size=cell.size)


def derived(cell: Cell) -> Cell:
    """The cell with every parameter that the study leaves to be derived (`auto`) worked out."""
    where = _circumstances(cell)
    return dataclasses.replace(
        cell,
        parameters=parameters.derive(protocols.get(cell.protocol).parameters, cell.parameters, where),
        servers={
            name: parameters.derive(servers.get(name).settings, cell.servers[name], where) for name in cell.servers
        },
    )


def resolve(name: str, study: StudyFile, where: str, profile: Profile, choice: Choice) -> Plan:
    """All cells of `study` on `profile` with `choice` put over it. Raises UserError."""
    seed = _in_range("SEED", choice.seed, study.seed, 0, 2**63 - 1)
    clients = _in_range("CLIENTS", choice.clients, study.clients, 1, 120)
    repeats = _in_range("REPEATS", choice.repeats, study.repeats, 1, 1000)
    channel = _channel(choice.channel, study, profile.netem)
    chosen = _names("PROTOCOL", choice.protocol, list(study.protocols))
    levels = _qos_levels(choice, study, chosen)
    cells = []
    for payload in _names("PAYLOAD", choice.payload, list(study.payloads)):
        traffic = study.payloads[payload]
        for protocol_name in chosen:
            protocol, settings = _parameters(where, protocol_name, study.protocols[protocol_name])
            for qos in levels[protocol_name]:
                for repeat in range(1, repeats + 1):
                    parts = (profile.name, protocol_name, "none" if qos is None else f"qos{qos}", payload, f"r{repeat}")
                    cells.append(
                        Cell(
                            id="-".join(parts),
                            study=name,
                            profile=profile.name,
                            protocol=protocol_name,
                            qos=qos,
                            payload=payload,
                            size=traffic.size,
                            interval=_time("INTERVAL", choice.interval, traffic.interval, 1),
                            messages=_in_range("MESSAGES", choice.messages, traffic.messages, 1, 10**6),
                            drain=_time("DRAIN", choice.drain, traffic.drain, 0),
                            clients=clients,
                            repeat=repeat,
                            seed=derive_seed(seed, *parts),
                            channel=channel,
                            stagger=study.startup.stagger,
                            startup_timeout=study.startup.timeout,
                            stall_limit=study.limits.stall,
                            wall_limit=study.limits.cell,
                            tcp=study.tcp,
                            parameters=settings,
                            servers=_servers(where, protocol, study),
                        )
                    )
    if not cells:
        raise UserError(f"QOS: {choice.qos}: none of the chosen protocols has it")
    return Plan(name, study.source, profile, seed, [derived(cell) for cell in cells])
