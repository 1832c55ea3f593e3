"""Runs side by side: mean delay and loss of every series they share a key with, and their differences with intervals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis import statistics
from analysis.report import parameters_of
from analysis.run import Floats, Run, Series, load
from analysis.statistics import Interval
from testbed.errors import UserError
from testbed.netem import Netem, describe
from testbed.units import show_duration

Key = tuple[str, str, int | None]
"""Payload, protocol, QoS."""


@dataclass(frozen=True)
class Step:
    """From a series of the first run to that of another: the difference of a figure, and its interval if there is one."""

    size: float
    interval: Interval | None

    @property
    def sure(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


@dataclass(frozen=True)
class Row:
    """One key: its series in each run (None where a run has none), and the steps from the first run to each other."""

    key: Key
    series: list[Series | None]

    @property
    def label(self) -> str:
        """`mqtt QoS 1`."""
        return next(series.label for series in self.series if series is not None)

    def delay_step(self, number: int) -> Step | None:
        """Difference of mean delays in ms, from the first run to run `number`."""
        before, now = self.series[0], self.series[number]
        if before is None or now is None or before.mean_ms is None or now.mean_ms is None:
            return None
        return Step(now.mean_ms - before.mean_ms, statistics.mean_difference(*_samples(now, before)))

    def loss_step(self, number: int) -> Step | None:
        """Difference of losses in percentage points, from the first run to run `number`."""
        before, now = self.series[0], self.series[number]
        if before is None or now is None or before.loss_pct is None or now.loss_pct is None:
            return None
        interval = statistics.loss_difference(now.lost, now.sent, before.lost, before.sent)
        return Step(now.loss_pct - before.loss_pct, interval)


def _samples(*both: Series) -> list[Floats]:
    """The means of the repeats where both have several, for messages of one depend on each other; else all delays."""
    repeats = [np.array(series.of_repeats("delay_mean_ms")) for series in both]
    return repeats if all(len(means) > 1 for means in repeats) else [series.delays for series in both]


@dataclass(frozen=True)
class SideBySide:
    """Runs, what each is called, and their rows in the order of the first run that has them."""

    runs: list[Run]
    names: list[str]
    rows: list[Row]

    @property
    def payloads(self) -> list[str]:
        """Payloads in the rows' order."""
        return list(dict.fromkeys(row.key[0] for row in self.rows))

    def of_payload(self, payload: str) -> list[Row]:
        """The rows of one payload."""
        return [row for row in self.rows if row.key[0] == payload]

    def settings_that_differ(self) -> dict[str, list[str]]:
        """What the runs were told that is not the same in all: a value for each run."""
        told = [_settings(run) for run in self.runs]
        keys = list(dict.fromkeys(key for one in told for key in one))
        listed = {key: [one.get(key, "–") for one in told] for key in keys}
        return {key: values for key, values in listed.items() if len(set(values)) > 1}


def _settings(run: Run) -> dict[str, str]:
    plan: dict[str, Any] = run.plan
    told = {
        "study": plan["study"],
        "link": describe(Netem(**plan["profile"]["netem"])),
        "seed": str(plan["seed"]),
        "runtime": run.manifest["runtime"],
        "testbed": str(run.manifest.get("testbed", "–")),
        "repeats": str(max((cell["repeat"] for cell in plan["cells"]), default=0)),
    }
    for cell in run.cells:
        told["clients"], told["channel"] = str(cell.plan["clients"]), cell.row["channel"]
        traffic = (
            f"{cell.plan['size']:,} B every {show_duration(cell.plan['interval'])}, {cell.plan['messages']} messages, "
        )
        told[cell.plan["payload"]] = traffic + f"{show_duration(cell.plan['drain'])} of waiting"
    for name, values in parameters_of(run).items():
        told |= {f"{name} {key}": value for key, value in values.items()}
    return told


def find_run(word: str, results: Path) -> Path:
    """The folder of a run: named by its path, its folder's name below `results`, or its profile (the newest run of it).

    Raises UserError if there is none.
    """
    newest = sorted(results.glob(f"[0-9]*-[0-9]*-{word}-[0-9]*"), reverse=True) if "/" not in word else []
    for folder in (Path(word), results / word, *newest):
        if (folder / "summary.csv").exists():
            return folder.resolve()
    raise UserError(f"RUNS: {word!r}: allowed are folders of results, like results/latest, or profiles that were run")


def compare(folders: list[Path]) -> SideBySide:
    """Put the runs in `folders` side by side, the first being what the others are compared with. Raises UserError."""
    if len(folders) < 2:
        raise UserError("RUNS: allowed are two runs or more, like RUNS='results/a results/b'")
    runs = [load(folder) for folder in folders]
    names = [run.plan["profile"]["name"] for run in runs]
    if len(set(names)) < len(names):
        names = [f"{number} {name}" for number, name in enumerate(names, start=1)]
    keyed: list[dict[Key, Series]] = [{(one.payload, one.protocol, one.qos): one for one in run.series} for run in runs]
    keys = dict.fromkeys(key for some in keyed for key in some)
    return SideBySide(runs, names, [Row(key, [some.get(key) for some in keyed]) for key in keys])
