"""`make bench`: how fast cells run here, so that it can be followed. Never asserted in a test."""

import os
import statistics
import tempfile
from pathlib import Path

from rich.table import Table

from guest import kernel
from testbed import profile, study
from testbed.cell import Cell
from testbed.plan import Choice, resolve
from testbed.screen import console
from testbed.workers import Virtual, run_all

REPEATS = 3


def main() -> None:
    """Time the default study's GPS cells over satcom, one guest at a time on one core, the median of REPEATS."""
    built = kernel.cached()
    assert built is not None, "make bench runs make setup first"
    name, file = study.load("ffi-2022")
    choice = Choice(payload="gps", repeats=REPEATS)
    plan = resolve(name, file, name, profile.load("satcom"), choice)
    runtime = Virtual(built, places=sorted(os.sched_getaffinity(0))[:1])
    walls: dict[str, list[float]] = {}
    emulated: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="testbed-bench-") as folder:

        def note(event: dict[str, object]) -> None:
            if "clock" in event:
                emulated[str(event["cell"])] = int(str(event["clock"])) / 1e9 % 1e8

        for done in run_all(runtime, plan.cells, lambda cell: Path(folder, cell.id), note):
            cell = done.task
            assert isinstance(cell, Cell)
            label = f"{cell.protocol} {'' if cell.qos is None else f'QoS {cell.qos}'}"
            walls.setdefault(label, []).append(done.wall_s)
            emulated[label] = emulated[cell.id]
    table = Table(
        "cell", "emulated s", "wall s (median)", "emulated/wall", title=f"27+27 clients, one core, {built.version}"
    )
    for label, times in walls.items():
        wall = statistics.median(times)
        table.add_row(label, f"{emulated[label]:.0f}", f"{wall:.2f}", f"{emulated[label] / wall:.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
