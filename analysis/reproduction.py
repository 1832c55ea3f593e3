"""A paper's tables and statements beside the runs that repeat them: how many hold, and, where known, why others do not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import page, published, statements, statistics
from analysis.run import Run, load


@dataclass(frozen=True)
class Line:
    """One cell of the paper's tables (`what` is a series) or one of its statements, and what our runs say to it.

    `published` and `ours` are losses in per cent, None for a statement; `holds` is None where nothing was run.
    """

    network: str
    payload: str
    what: str
    published: float | None
    ours: float | None
    holds: bool | None
    figures: str
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the published loss, in percentage points."""
        return None if self.published is None or self.ours is None else self.ours - self.published


@dataclass(frozen=True)
class Comparison:
    """A paper beside our runs."""

    study: str
    source: str
    not_stated: list[str]
    runs: list[Run]
    tables: list[Line]
    statements: list[Line]

    @property
    def lines(self) -> list[Line]:
        """All that was published."""
        return [*self.tables, *self.statements]

    @staticmethod
    def count(lines: list[Line]) -> str:
        """`9 of 17 hold`, and how many were not tested."""
        tested = [line for line in lines if line.holds is not None]
        untested = len(lines) - len(tested)
        return f"{sum(bool(line.holds) for line in tested)} of {len(tested)} hold" + (
            f", {untested} not tested by these runs" if untested else ""
        )


def _why(paper: dict[str, Any], network: str, payload: str, what: str) -> str:
    """What the paper's file says of a line that does not hold; the most special entry counts."""
    for known in paper.get("explanations", []):
        if (
            network in known["networks"]
            and payload in known["payloads"]
            and any(word in what for word in known["what"])
        ):
            return str(known["why"])
    return ""


def _table_lines(paper: dict[str, Any], runs: dict[str, Run]) -> list[Line]:
    lines = []
    for network, payloads in paper["loss_pct"].items():
        found = {
            (series.payload, series.protocol, series.qos): series
            for series in (runs[network].series if network in runs else [])
        }
        for payload, protocols in payloads.items():
            for protocol, tested in protocols.items():
                for qos, loss in tested.items() if isinstance(tested, dict) else [(None, tested)]:
                    if loss is None:
                        continue
                    what = protocol if qos is None else f"{protocol} QoS {qos}"
                    series = found.get((payload, protocol, qos))
                    ours = series.loss_pct if series else None
                    interval = statistics.loss_interval(series.lost, series.sent) if series else None
                    holds = interval.low <= loss <= interval.high if interval else None
                    told = f"{interval.low:.2f} to {interval.high:.2f} %" if interval else ""
                    why = "" if holds else _why(paper, network, payload, what)
                    lines.append(Line(network, payload, what, float(loss), ours, holds, told, why))
    return lines


def _statement_lines(paper: dict[str, Any], runs: dict[str, Run]) -> list[Line]:
    lines = []
    for statement in paper["delay_statements"]:
        network, payload = statement["network"], statement["payload"]
        checked = {(one.payload, one.says): one for one in (statements.check(runs[network]) if network in runs else [])}
        for check in statement["checks"]:
            one = checked.get((payload, check["says"]))
            holds = one.holds if one else None
            figures = f"{one.figures} ({one.bounds})" if one else ""
            why = "" if holds else _why(paper, network, payload, check["says"])
            lines.append(Line(network, payload, check["says"], None, None, holds, figures, why))
    return lines


def compare(study: str, folders: list[Path]) -> Comparison:
    """Put the runs in `folders`, one for each profile, beside what was published for `study`."""
    paper, loaded = published.figures(study), [load(folder) for folder in folders]
    runs = {run.plan["profile"]["name"]: run for run in loaded}
    tables, said = _table_lines(paper, runs), _statement_lines(paper, runs)
    return Comparison(study, paper["source"], paper["not_stated"], loaded, tables, said)


def _traffic(run: Run) -> str:
    """What a run chose where the paper says nothing."""
    cells = {cell["payload"]: cell for cell in run.plan["cells"]}
    words = [
        f"{payload} {cell['size']:,} B every {cell['interval'] / 1e9:g} s, {cell['messages']} messages, "
        f"{cell['drain'] / 1e9:g} s of waiting"
        for payload, cell in cells.items()
    ]
    channel = run.plan["cells"][0]["channel"]
    return f"{'; '.join(words)}; channel {channel['direction']}, {channel['duplex']} duplex; seed {run.plan['seed']}"


def write(found: Comparison, folder: Path) -> Path:
    """reproduction.html and reproduction.csv in `folder`; returns the page's path."""
    rows = [{**vars(line), "difference": line.difference} for line in found.lines]
    pd.DataFrame(rows).to_csv(folder / "reproduction.csv", index=False, float_format="%.4f", lineterminator="\n")
    links = {run.plan["profile"]["name"]: f"{run.folder.name}/report.html" for run in found.runs}
    context = {"found": found, "links": links, "traffic": [_traffic(run) for run in found.runs[:1]]}
    return page.write(folder, "reproduction", context)
