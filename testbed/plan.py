"""A study on a profile, resolved into cells: everything that shapes a number, with no default left open.

Resolving never touches the host and needs no root.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from broker import registry as servers
from clients import payloads
from clients import registry as protocols
from clients.protocol import Protocol
from testbed import parameters, units
from testbed.cell import DIRECTIONS, Cell, Channel, derive_seed, host_names
from testbed.errors import UserError
from testbed.netem import Netem
from testbed.profile import Profile
from testbed.study import ProtocolFile, StudyFile, Traffic

CONGESTION = "net.ipv4.tcp_congestion_control"
"""The sysctl that the variable CONGESTION stands for."""


@dataclass(frozen=True)
class Plan:
    """What a run will do; saved beside the results."""

    study: str
    study_source: str
    profile: Profile
    seed: int
    cells: list[Cell]
    deviations: list[str] = dataclasses.field(default_factory=list)
    """What the runtime could not give as the study or the command line's defaults say, a sentence each."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, for plan.json and the manifest."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Choice:
    """What the command line says instead of the study; None leaves the study's value.

    `servers` holds the variables that servers declare, by their names.
    """

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
    capture: str | None = None
    servers: dict[str, str] = dataclasses.field(default_factory=dict)
    congestion: str | None = None


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
    levels: dict[str, list[int | None]] = {name: list(study.protocols[name].qos) or [None] for name in chosen}
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


def _parameters(where: str, name: str, file: ProtocolFile) -> tuple[Protocol, dict[str, Any]]:
    try:
        protocol = protocols.get(name)
    except KeyError:
        raise UserError(
            f"{where}: protocols.{name}: no such protocol; allowed are {', '.join(protocols.NAMES)}"
        ) from None
    levels: list[int | None] = list(file.qos) or [None]
    for level in levels:
        if level not in protocol.qos:
            allowed = ", ".join(map(str, protocol.qos)) if protocol.qos != (None,) else "none: it has no QoS"
            raise UserError(f"{where}: protocols.{name}.qos: {level}: allowed are {allowed}")
    read = parameters.read(f"{where}: protocols.{name}.parameters", protocol.parameters, file.parameters)
    return protocol, dataclasses.asdict(read)


def _servers(where: str, protocol: Protocol, study: StudyFile, choice: Choice) -> dict[str, dict[str, Any]]:
    resolved = {}
    for name in protocol.servers:
        declared = servers.get(name)
        above = {key: choice.servers[word] for word, key in declared.variables.items() if word in choice.servers}
        given = study.servers.get(name, {}) | above
        resolved[name] = dataclasses.asdict(parameters.read(f"{where}: servers.{name}", declared.settings, given))
    return resolved


def _capture(text: str | None, clients: int) -> tuple[str, ...]:
    known = host_names(clients)
    if text is None:
        return ()
    for name in (names := re.split(r"[,\s]+", text.strip())):
        if name not in known:
            raise UserError(f"CAPTURE: {name!r}: allowed are {known[0]} to {known[-1]}, or several with commas")
    return tuple(names)


def _traffic(payload: str, traffic: Traffic, choice: Choice) -> dict[str, Any]:
    low, high = payloads.sizes(payload)
    if not low <= traffic.size <= high:
        raise UserError(f"payloads.{payload}.size: {traffic.size} B: allowed is {low} B to {high} B")
    return {
        "payload": payload,
        "size": traffic.size,
        "interval": _time("INTERVAL", choice.interval, traffic.interval, 1),
        "messages": _in_range("MESSAGES", choice.messages, traffic.messages, 1, 10**6),
        "drain": _time("DRAIN", choice.drain, traffic.drain, 0),
    }


def _circumstances(cell: Cell) -> parameters.Circumstances:
    netem = cell.channel.netem
    shaped = parameters.Leg(netem.rate, netem.delay + netem.jitter, netem.loses)
    legs = {
        each: shaped if each in DIRECTIONS[cell.channel.direction] else parameters.Leg(0, 0)
        for each in ("uplink", "downlink")
    }
    return parameters.Circumstances(**legs, clients=cell.clients, size=cell.size)


def _derived(cell: Cell) -> Cell:
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
    """All cells of `study` (read from the file `where`) on `profile`, with `choice` put over it. Raises UserError."""
    seed = _in_range("SEED", choice.seed, study.seed, 0, 2**63 - 1)
    clients = _in_range("CLIENTS", choice.clients, study.clients, 1, 120)
    repeats = _in_range("REPEATS", choice.repeats, study.repeats, 1, 1000)
    chosen = _names("PROTOCOL", choice.protocol, list(study.protocols))
    levels = _qos_levels(choice, study, chosen)
    settings = {each: _parameters(where, each, study.protocols[each]) for each in chosen}
    servers_of = {each: _servers(where, settings[each][0], study, choice) for each in chosen}
    common: dict[str, Any] = {
        "study": name,
        "profile": profile.name,
        "clients": clients,
        "channel": _channel(choice.channel, study, profile.netem),
        "stagger": study.startup.stagger,
        "startup_timeout": study.startup.timeout,
        "stall_limit": study.limits.stall,
        "wall_limit": study.limits.cell,
        "tcp": study.tcp | ({CONGESTION: choice.congestion} if choice.congestion else {}),
        "capture": _capture(choice.capture, clients),
    }

    traffic: dict[str, dict[str, Any]] = {kind: _traffic(kind, file, choice) for kind, file in study.payloads.items()}

    def cell(payload: str, protocol: str, qos: int | None, repeat: int) -> Cell:
        parts = (profile.name, protocol, "none" if qos is None else f"qos{qos}", payload, f"r{repeat}")
        return Cell(
            id="-".join(parts),
            protocol=protocol,
            qos=qos,
            repeat=repeat,
            seed=derive_seed(seed, *parts),
            parameters=settings[protocol][1],
            servers=servers_of[protocol],
            **traffic[payload],
            **common,
        )

    cells = [
        cell(payload, protocol, qos, repeat)
        for payload in _names("PAYLOAD", choice.payload, list(study.payloads))
        for protocol in chosen
        for qos in levels[protocol]
        for repeat in range(1, repeats + 1)
    ]
    if not cells:
        raise UserError(f"QOS: {choice.qos!r}: none of the chosen protocols has it in study {name}")
    return Plan(name, study.source, profile, seed, [_derived(cell) for cell in cells])
