"""About how long a run in real time will take, and how long virtual time would: said before it starts."""

import os

from clients import registry as protocols
from testbed.cell import Cell

_CONTAINER_S = 0.4
"""Wall time that a container adds to a cell: started, its Python loaded, removed (measured with 56 on two cores)."""

_GUEST_S = 1.5
"""Wall time that a guest adds to a cell: booted, its clients and servers started, its captures brought together."""

_VIRTUAL_SPEED = 100.0
"""Emulated seconds for each second of a core, MQTT with 27+27 clients (make bench)."""


def _schedule_s(cell: Cell) -> float:
    """From the first client's start to the end of the drain, if all are ready at once."""
    return (2 * cell.clients * cell.stagger + cell.messages * cell.interval + cell.drain) / 1e9


def real_s(cells: list[Cell], containers: bool) -> float:
    """Seconds of wall time in real time, in containers or not."""
    started = _CONTAINER_S * sum(2 * cell.clients + 1 + len(cell.servers) for cell in cells) if containers else 0.0
    return sum(map(_schedule_s, cells)) + started


def virtual_s(cells: list[Cell]) -> float:
    """Seconds of wall time in virtual time, on all cores."""
    cores = min(len(cells), len(os.sched_getaffinity(0)))
    emulated = sum(_schedule_s(cell) * protocols.get(cell.protocol).effort for cell in cells)
    return (emulated / _VIRTUAL_SPEED + _GUEST_S * len(cells)) / cores


def words(seconds: float) -> str:
    """`40 s`, `25 min`, `3.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
