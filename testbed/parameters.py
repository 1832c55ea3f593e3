"""Parameters that a protocol or a server declares for itself as a dataclass; a study gives every one of them a value.

A field's unit stands in its metadata: `keepalive: int = duration()`. Values are then written with their unit in the study.
"""

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from testbed import units
from testbed.errors import UserError

_PARSERS: dict[str, Callable[[object], int]] = {
    "duration": units.duration,
    "size": units.size,
    "rate": units.rate,
    "percent": units.percent,
}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", list: "a list"}


def duration() -> Any:
    """A parameter in ns, written like `10s`."""
    return field(metadata={"unit": "duration"})


def size(low: int = 0, high: int = 2**31 - 1) -> Any:
    """A parameter in bytes, written like `50kB`, from `low` to `high`."""
    return field(metadata={"unit": "size", "range": (low, high)})


def choice(*allowed: str) -> Any:
    """A text, one of those allowed."""
    return field(metadata={"choice": allowed})


def number(low: int, high: int = 2**31 - 1) -> Any:
    """A whole number from `low` to `high`."""
    return field(metadata={"range": (low, high)})


def _value(metadata: Any, kind: Any, value: object) -> Any:
    if "unit" in metadata:
        amount = _PARSERS[metadata["unit"]](value)
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
