"""Parameters that a protocol or a server declares for itself as a dataclass; a study gives every one of them a value.

A field's unit stands in its metadata: `keepalive: int = duration()`. Values are then written with their unit in the study.
A field with a derivation may also be written `auto`; it is then worked out from the cell's circumstances in the plan.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from testbed import units
from testbed.errors import UserError

_PARSERS: dict[str, Callable[[object], int]] = {
    "duration": units.duration,
    "size": units.size,
    "rate": units.rate,
    "percent": units.percent,
}
_SHOW: dict[str, Callable[[int], str]] = {
    "duration": units.show_duration,
    "size": units.show_size,
    "rate": units.show_rate,
    "percent": units.show_percent,
}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", list: "a list"}


AUTO = -1
"""Stands for the word `auto` until derive() has replaced it; no value with a unit is negative."""


@dataclass(frozen=True)
class Leg:
    """One direction of the channel: rate in bit/s (0: not limited), longest delay in ns, whether packets are lost."""

    rate: int
    delay: int
    loses: bool = False


@dataclass(frozen=True)
class Circumstances:
    """What a derivation may depend on: both directions, the clients of each role, the size of a message in bytes."""

    uplink: Leg
    downlink: Leg
    clients: int
    size: int

    @property
    def round_trip(self) -> int:
        """There and back over the idle channel, in ns, without the time to send."""
        return self.uplink.delay + self.downlink.delay


Derivation = Callable[[Any, Circumstances], int]
"""From the values of the parameters before it, and the circumstances, to a field's value in its base unit."""


def duration(auto: Derivation | None = None) -> Any:
    """A parameter in ns, written like `10s`."""
    return field(metadata={"unit": "duration", "auto": auto})


def size(low: int = 0, high: int = 2**31 - 1, auto: Derivation | None = None) -> Any:
    """A parameter in bytes, written like `50kB`, from `low` to `high`."""
    return field(metadata={"unit": "size", "range": (low, high), "auto": auto})


def choice(*allowed: str) -> Any:
    """A text, one of those allowed."""
    return field(metadata={"choice": allowed})


def rate(auto: Derivation | None = None) -> Any:
    """A parameter in bit/s, written like `250kbit`."""
    return field(metadata={"unit": "rate", "auto": auto})


def number(low: int, high: int = 2**31 - 1, auto: Derivation | None = None) -> Any:
    """A whole number from `low` to `high`."""
    return field(metadata={"range": (low, high), "auto": auto})


def _value(metadata: Any, kind: Any, value: object) -> Any:
    if metadata.get("auto") and value == "auto":
        return AUTO
    if "unit" in metadata:
        try:
            amount = _PARSERS[metadata["unit"]](value)
        except ValueError as error:
            raise ValueError(f"{error}, or auto" if metadata.get("auto") else str(error)) from error
        low, high = metadata.get("range", (amount, amount))
        if not low <= amount <= high:
            raise ValueError(f"allowed is a {metadata['unit']} from {low} B to {high} B, like {low}B")
        return amount
    if "choice" in metadata and value not in metadata["choice"]:
        raise ValueError(f"allowed are {', '.join(metadata['choice'])}")
    if type(value) is not kind:
        raise ValueError(f"allowed is {_KINDS[kind]}")
    if "range" in metadata:
        low, high = metadata["range"]
        if not low <= int(str(value)) <= high:
            raise ValueError(f"allowed is a whole number from {low} to {high}")
    return value


def read(where: str, declared: type, given: dict[str, Any]) -> Any:
    """The dataclass `declared` filled from `given`. Raises UserError naming `where`, key, value and what is allowed."""
    known = {item.name: item for item in fields(declared)}
    for key in given:
        if key not in known:
            raise UserError(f"{where}.{key}: unknown key; allowed are {', '.join(known) or 'none'}")
    values = {}
    for name, item in known.items():
        if name not in given:
            raise UserError(f"{where}.{name}: missing; a study gives every parameter a value")
        try:
            values[name] = _value(item.metadata, item.type, given[name])
        except ValueError as error:
            raise UserError(f"{where}.{name}: {given[name]!r}: {error}") from error
    return declared(**values)


def derive(declared: type, values: dict[str, Any], circumstances: Circumstances) -> dict[str, Any]:
    """`values` of the dataclass `declared`, with every `auto` replaced by what its field derives; in the fields' order."""
    resolved = declared(**values)
    for item in fields(declared):
        if "auto" in item.metadata and getattr(resolved, item.name) == AUTO:
            resolved = replace(resolved, **{item.name: item.metadata["auto"](resolved, circumstances)})
    return {item.name: getattr(resolved, item.name) for item in fields(declared)}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def show(declared: type, values: dict[str, Any]) -> dict[str, str]:
    """Resolved `values` of the dataclass `declared` as a study writes them, with their units; the inverse of read()."""
    unit_of = {item.name: item.metadata.get("unit") for item in fields(declared)}
    return {name: _SHOW[unit](value) if (unit := unit_of.get(name)) else _word(value) for name, value in values.items()}
