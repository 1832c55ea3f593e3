"""`make bench`: how fast cells run and captures are analysed here, so that it can be followed. Never asserted in a test."""

import os
import resource
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

from rich.table import Table

from analysis import pcap
from analysis.pcap import cells, inspect
from guest import kernel
from testbed import profile, study
from testbed.cell import Cell
from testbed.plan import Choice, resolve
from testbed.results import Results
from testbed.screen import console
from testbed.workers import Virtual, run_all

REPEATS = 3
_FEW = 3000
"""Packets that pyshark is given: it is slow."""


def _processor_s() -> float:
    """Processor time of this process and of those it has waited for."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def analysis() -> None:
    """Time the analysis of two cells with images over 5g, side by side, and pyshark's reading of the first packets."""
    built = kernel.cached()
    assert built is not None, "make bench runs make setup first"
    name, file = study.load("ffi-2022")
    choice = Choice(protocol="mqtt", qos="1", payload="image", messages=12, repeats=2)
    plan = resolve(name, file, name, profile.load("5g"), choice)
    with tempfile.TemporaryDirectory(prefix="testbed-bench-") as folder:
        results = Results(Path(folder), plan, "virtual")
        done = run_all(Virtual(built), plan.cells, lambda cell: results.folder / "cells" / cell.id, lambda _: None)
        assert all(one.status == "ok" for one in done)
        begin, used = time.monotonic(), _processor_s()
        pcap.analyse_run(results.folder)
        bulk, used = time.monotonic() - begin, _processor_s() - used
        first = results.cell_folder(plan.cells[0])
        packets = sum(pcap.known(results.cell_folder(cell))["packets"] for cell in plan.cells)
        begin = time.monotonic()
        with inspect.opened(first / "client-side.pcap", cells.load(first).protocol) as read:
            few = sum(1 for _ in islice(read, _FEW))
        slow = time.monotonic() - begin
    columns = ("captures", "packets", "wall s", "processor s", "packets/s")
    table = Table(*columns, title=f"{len(os.sched_getaffinity(0))} cores")
    speed = f"{packets / bulk:,.0f}"
    table.add_row("analysis (tshark's fields), two cells", f"{packets:,}", f"{bulk:.2f}", f"{used:.2f}", speed)
    table.add_row("pyshark", f"{few:,}", f"{slow:.2f}", "", f"{few / slow:,.0f}")
    console.print(table)


def main() -> None:
    """Print all figures."""
    running()
    analysis()


def running() -> None:
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
