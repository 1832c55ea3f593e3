"""The figures of a run: PNG and SVG under figures/, drawn on all cores, and the words that go with them in the report."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

from matplotlib.figure import Figure

from analysis import pairs, plots, style, wire
from analysis.run import Run, Series


@dataclass(frozen=True)
class Drawn:
    """A figure: its kind and payload, its title, its text alternative, and how to read it."""

    kind: str
    payload: str
    title: str
    alt: str
    note: str

    @property
    def name(self) -> str:
        """Its file's name without an ending."""
        return f"{self.kind}-{self.payload}"


_Make = Callable[[list[Series], dict[str, str]], tuple[Figure, str]]

_KINDS: dict[str, tuple[_Make, str, str]] = {
    "delay": (plots.average_delay, "Average delay", "A thin line is the bootstrap interval over repeats."),
    "loss": (plots.loss, "Loss", "A thin line is the Wilson interval, a diamond what was published."),
    "ecdf": (plots.ecdf, "How many had arrived by when", "A curve ends at the share that was delivered."),
    "box": (plots.box, "Delays", "Box: quartiles; whiskers: 5 % and 95 %; cross: the greatest."),
    "time": (plots.over_time, "Delay over time", "Each point is a message; ticks at the top are lost messages."),
    "wire": (wire.plot, "Where the time went", "Stages of the mean delay, first to last; small ones are left out."),
    "pairs": (pairs.plot, "Each publisher and its subscriber", "A field is a pair; a grey one: nothing arrived."),
}


def _draw(run: Run, kind: str, payload: str) -> Drawn:
    make, title, note = _KINDS[kind]
    figure, alt = make(run.of_payload(payload), style.colours([series.protocol for series in run.series]))
    drawn = Drawn(kind, payload, f"{title}, {payload}", alt, note)
    style.save(figure, run.folder / "figures", drawn.name)
    return drawn


_run: Run
"""What a process that draws works on; inherited, which spares it reading and loading everything again."""


def _begin(run: Run) -> None:
    global _run
    _run = run
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends its pool
    style.apply()


def _draw_inherited(task: tuple[str, str]) -> Drawn:
    return _draw(_run, *task)


@contextmanager
def drawing(run: Run) -> Iterator[Iterator[Drawn]]:
    """Draw every kind of figure for every payload into figures/ while the `with` goes on; yields what is drawn."""
    (run.folder / "figures").mkdir(exist_ok=True)
    tasks = [(kind, payload) for payload in run.payloads for kind in _KINDS]
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores, get_context("fork"), initializer=_begin, initargs=(run,)) as pool:
        yield pool.map(_draw_inherited, tasks)
