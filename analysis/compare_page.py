"""compare.html: runs side by side on one page that needs no network, with a figure for each payload and compare.csv."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import page, style
from analysis.compare import Row, SideBySide, Step
from analysis.plots import show_ms
from analysis.report import inline_svg, number
from analysis.statistics import CONFIDENCE

_DIFFERENCES = tuple(f"difference_{name}{end}" for name in ("delay_ms", "loss_pct") for end in ("", "_low", "_high"))
_COLUMNS = ("payload", "protocol", "qos", "run", "folder", "delay_mean_ms", "loss_pct", *_DIFFERENCES)


def _panel(axes: Any, rows: list[Row], names: list[str], values: list[list[float | None]], title: str) -> None:
    """A mark for each run in each row, and a line from the least to the greatest."""
    known = [[value for value in some if value is not None] for some in values]
    for row, some in enumerate(known):
        axes.plot(
            [min(some, default=np.nan), max(some, default=np.nan)], [row, row], color=style.LINE, linewidth=3, zorder=1
        )
    for column, name in enumerate(names):
        at = [np.nan if some[column] is None else some[column] for some in values]
        colour, mark = style.PALETTE[column % len(style.PALETTE)], style.MARKS[column % len(style.MARKS)]
        axes.plot(at, range(len(rows)), mark, color=colour, label=name, markersize=6)
    everything = [value for some in known for value in some]
    if everything and min(everything) > 0 and max(everything) > 30 * min(everything):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(title)


def plot(comparison: SideBySide, payload: str) -> tuple[Figure, str]:
    """Mean delay (above) and loss (below) of every series in each run, and the same in words."""
    rows, names = comparison.of_payload(payload), comparison.names
    means = [[None if one is None else one.mean_ms for one in row.series] for row in rows]
    losses = [[None if one is None else one.loss_pct for one in row.series] for row in rows]
    figure = Figure(figsize=(style.WIDTH, 1.6 + 2 * 0.27 * len(rows)), layout="constrained")
    above, below = figure.subplots(2, 1)
    _panel(above, rows, names, means, "mean delay (ms)")
    _panel(below, rows, names, losses, "messages lost (%)")
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    told = "; ".join(
        f"{row.label}: " + ", ".join(f"{name} {show_ms(mean)}" for name, mean in zip(names, some, strict=True))
        for row, some in zip(rows, means, strict=True)
    )
    return figure, f"Marks of mean delay and loss in each run. Mean delays: {told}."


def show_step(step: Step | None, digits: int) -> tuple[str, str]:
    """A difference with its sign, and its interval in words; dashes where there is none."""
    if step is None:
        return "–", ""
    sign = "+" if step.size > 0 else "−" if step.size < 0 else "±"
    interval = step.interval
    words = (
        ""
        if interval is None
        else f"{number(interval.low, digits)} to {number(interval.high, digits)}".replace("-", "−")
    )
    return sign + number(abs(step.size), digits), words


def _cells(row: Row) -> list[dict[str, Any]]:
    """What the table says of each run in a row."""
    cells = []
    for column, series in enumerate(row.series):
        steps = {}
        for name, step, digits in (
            (("delay", row.delay_step(column), 1), ("loss", row.loss_step(column), 2)) if column else ()
        ):
            size, interval = show_step(step, digits)
            steps[name] = {"size": size, "interval": interval, "sure": step is not None and step.sure}
        mean, loss = (None, None) if series is None else (series.mean_ms, series.loss_pct)
        cells.append({"mean": number(mean), "loss": number(loss, 2), "steps": steps})
    return cells


def _table(comparison: SideBySide) -> pd.DataFrame:
    """compare.csv: a row for each series of each run, differences from the first run."""
    rows = []
    for row in comparison.rows:
        for column, series in enumerate(row.series):
            payload, protocol, qos = row.key
            found: dict[str, Any] = {
                "payload": payload,
                "protocol": protocol,
                "qos": qos,
                "run": comparison.names[column],
            }
            found["folder"] = comparison.runs[column].folder.name
            if series is not None:
                found |= {"delay_mean_ms": series.mean_ms, "loss_pct": series.loss_pct}
            for name, step in (
                (("delay_ms", row.delay_step(column)), ("loss_pct", row.loss_step(column))) if column else ()
            ):
                if step is not None:
                    found[f"difference_{name}"] = step.size
                if step is not None and step.interval is not None:
                    found |= {
                        f"difference_{name}_low": step.interval.low,
                        f"difference_{name}_high": step.interval.high,
                    }
            rows.append(found)
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype({"qos": "Int64"})


def write(comparison: SideBySide, folder: Path) -> Path:
    """Write compare.html, compare.csv and figures/ into `folder`, which is made; returns the page's path."""
    (folder / "figures").mkdir(parents=True)
    style.apply()
    payloads = []
    for payload in comparison.payloads:
        figure, alt = plot(comparison, payload)
        style.save(figure, folder / "figures", f"compare-{payload}")
        rows = [{"label": row.label, "cells": _cells(row)} for row in comparison.of_payload(payload)]
        payloads.append(
            {"name": payload, "rows": rows, "svg": inline_svg(folder / "figures" / f"compare-{payload}.svg", alt)}
        )
    _table(comparison).to_csv(folder / "compare.csv", index=False, float_format="%.6f", lineterminator="\n")
    context = {"comparison": comparison, "payloads": payloads, "percent": f"{100 * CONFIDENCE:g} %"}
    return page.write(folder, "compare", context)
