"""Values with their units: `250kbit`, `550ms`, `1%`, `50kB`.

Each parser returns an exact integer in a base unit, or raises ValueError with the form that is allowed. Nothing is
rounded: a value that the base unit cannot hold exactly is an error.
"""

import re
from decimal import Decimal

# tc(8): bare k/m/g are powers of 1000, with an `i` powers of 1024.
_RATE = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "kibit": 2**10, "mibit": 2**20, "gibit": 2**30}
_TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "KiB": 2**10, "MiB": 2**20}

PERCENT_SCALE = 10**6
"""Parts of 1 %: a percentage is kept as an integer of 10^-6 per cent."""

_VALUE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z%]+)")


def _parse(value: object, units: dict[str, int], form: str) -> int:
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        raise ValueError(f"allowed is {form}")
    amount = Decimal(match[1]) * units[match[2]]
    if amount != int(amount):
        raise ValueError(f"more digits than can be kept exactly; allowed is {form}")
    return int(amount)


def rate(value: object) -> int:
    """Data rate in bit/s. netem keeps bytes a second, so the rate must be a multiple of 8 bit/s, and not 0."""
    form = f"a number and a unit of {', '.join(_RATE)}, like 250kbit, a multiple of 8 bit/s above 0"
    bits = _parse(value, _RATE, form)
    if bits == 0 or bits % 8:
        raise ValueError(f"allowed is {form}")
    return bits


def duration(value: object) -> int:
    """Time in ns."""
    return _parse(value, _TIME, f"a number and a unit of {', '.join(_TIME)}, like 550ms")


def size(value: object) -> int:
    """Size in bytes."""
    return _parse(value, _SIZE, f"a number and a unit of {', '.join(_SIZE)}, like 50kB")


def percent(value: object) -> int:
    """Share in 10^-6 per cent, from 0% to 100%."""
    form = "a percentage from 0% to 100%, like 1%"
    parts = _parse(value, {"%": PERCENT_SCALE}, form)
    if parts > 100 * PERCENT_SCALE:
        raise ValueError(f"allowed is {form}")
    return parts


def _shortest(amount: int, units: dict[str, int]) -> str:
    for unit, factor in sorted(units.items(), key=lambda item: -item[1]):
        if amount and (amount * 1000) % factor == 0 and amount >= factor:
            return f"{Decimal(amount) / factor:f}{unit}"
    return f"{amount}{min(units, key=lambda unit: units[unit])}"


def show_rate(bits: int) -> str:
    """`250kbit` for 250000; the inverse of rate()."""
    return _shortest(bits, {unit: factor for unit, factor in _RATE.items() if "i" not in unit[:-3]})


def show_duration(nanoseconds: int) -> str:
    """`550ms` for 550000000; the inverse of duration()."""
    if not nanoseconds:
        return "0s"
    return _shortest(nanoseconds, {unit: _TIME[unit] for unit in ("ns", "us", "ms", "s")})


def show_size(octets: int) -> str:
    """`50kB` for 50000; the inverse of size()."""
    return _shortest(octets, {unit: _SIZE[unit] for unit in ("B", "kB", "MB")})


def show_percent(parts: int) -> str:
    """`1%` for 1000000; the inverse of percent()."""
    return f"{Decimal(parts) / PERCENT_SCALE:f}%"
