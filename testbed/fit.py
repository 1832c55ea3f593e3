"""A search for what a paper leaves out: message interval, drain time and channel direction that come closest to its losses.

A grid, with nothing clever. A longer drain holds the shorter ones: in virtual time a cell's messages are the same to the
nanosecond until the shorter drain ends, so each cell is run once, with the longest, and cut. GPS and images meet in no
cell, so for each direction their intervals and drains are searched apart.
"""

import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import messages, published
from testbed import profile
from testbed.cell import Cell
from testbed.plan import Choice, resolve
from testbed.study import StudyFile
from testbed.units import duration
from testbed.workers import Finished, Runtime, run_all

PROTOCOLS = "mqtt,zmq-tcp"
"""Those whose losses over TCP come of interval and drain. Left out: MQTT-SN, for the paper blames its client; PGM, for it

takes long."""

LINKS = ("satcom", "cnr-10")
DIRECTIONS = ("uplink", "downlink", "both")


@dataclass(frozen=True)
class Grid:
    """What is tried with one payload."""

    intervals: tuple[str, ...]
    drains: tuple[str, ...]


GRIDS = {
    "gps": Grid(("2s", "4s", "5s", "6s", "7s", "8s", "10s"), ("0s", "2s", "5s", "10s", "20s", "30s", "60s", "120s")),
    "image": Grid(("30s", "60s", "120s", "300s"), ("0s", "60s", "120s", "300s", "600s", "900s", "1200s", "1800s")),
}


@dataclass(frozen=True)
class Point:
    """One place of the search, and a cell that is run there, with the longest drain."""

    direction: str
    payload: str
    interval: str
    cell: Cell


def points(
    name: str, study: StudyFile, where: str, choice: Choice, directions: Sequence[str], grids: dict[str, Grid]
) -> list[Point]:
    """Every cell that the search runs."""
    made = []
    for direction in directions:
        for payload, grid in grids.items():
            for interval in grid.intervals:
                wanted = dataclasses.replace(
                    choice,
                    protocol=PROTOCOLS,
                    payload=payload,
                    interval=interval,
                    drain=grid.drains[-1],
                    channel=direction,
                )
                for link in LINKS:
                    for cell in resolve(name, study, where, profile.load(link), wanted).cells:
                        unique = dataclasses.replace(cell, id=f"{direction}-{interval}-{cell.id}")
                        made.append(Point(direction, payload, interval, unique))
    return made


def losses(folder: Path, drains: tuple[str, ...]) -> dict[str, float]:
    """Loss in per cent for each drain, from the messages of a cell that was run with the longest."""
    table = messages.read(folder / "messages.csv")
    last = table.scheduled_ns.max()
    return {
        drain: 100 * float(1 - (table.received_ns <= last + duration(drain)).sum() / len(table)) for drain in drains
    }


def measure(runtime: Runtime, found: list[Point], folder: Path) -> Iterator[tuple[Finished, list[dict[str, object]]]]:
    """Run every point's cell; with each comes a row for each drain. Captures are not kept, for there are gigabytes."""
    by_id = {point.cell.id: point for point in found}
    for done in run_all(runtime, [point.cell for point in found], lambda task: folder / task.id, lambda event: None):
        point, rows = by_id[done.task.id], list[dict[str, object]]()
        cell, place = point.cell, folder / done.task.id
        known = published.loss_pct(cell.study, cell.profile, cell.payload, cell.protocol, cell.qos)
        if done.status == "ok":
            series = cell.protocol if cell.qos is None else f"{cell.protocol}/{cell.qos}"
            where = {"direction": point.direction, "payload": point.payload, "interval": point.interval}
            what = {"profile": cell.profile, "series": series, "published": known}
            cut = losses(place, GRIDS[point.payload].drains)
            rows = [{**where, "drain": drain, **what, "ours": ours} for drain, ours in cut.items()]
            shutil.rmtree(place / "logs")
        for capture in place.glob("*.pcap"):
            capture.unlink()
        yield done, rows


_PLACE = ["direction", "payload", "interval", "drain"]


def distances(trace: pd.DataFrame) -> pd.DataFrame:
    """For each place the sum of squared differences between our and the published losses, in squared percentage points.

    Nearest first; a place that lacks a cell, because it did not come to its end, is left out.
    """
    told = trace.assign(distance=(trace.ours - trace.published) ** 2)
    sums = told.groupby(_PLACE, as_index=False, sort=False).agg(
        distance=("distance", "sum"), cells=("distance", "size")
    )
    whole: pd.DataFrame = sums[sums.cells == sums.cells.max()]
    return whole.sort_values(["distance", *_PLACE]).reset_index(drop=True)


def best(sums: pd.DataFrame) -> pd.DataFrame:
    """The best direction's nearest place for each payload: the direction whose payloads' distances have the least sum."""
    nearest = sums.drop_duplicates(["direction", "payload"])
    whole = nearest.groupby("direction").filter(lambda some: len(some) == nearest.payload.nunique())
    chosen = whole.groupby("direction").distance.sum().idxmin()
    return whole[whole.direction == chosen].sort_values("payload")


STUDY = """\
extends: {base}
description: {description}, with what the paper leaves out fitted to its losses
# Found by `make fit`: the least sum of squared differences between our and the published losses, in percentage points,
# over {cells} cells ({links}; {protocols}; seed {seed}). The trace of the search is fit.csv beside its results.
{comments}
channel:
  direction: {direction}
payloads:
{payloads}
"""


def as_study(name: str, study: StudyFile, chosen: pd.DataFrame, sums: pd.DataFrame, cells: int) -> str:
    """The study that the search found, as a file for studies/."""
    nearest = sums.drop_duplicates(["direction", "payload"])
    per_direction = nearest.groupby("direction").distance.sum().sort_values()
    comments = [f"# {direction}: distance {distance:,.0f}" for direction, distance in per_direction.items()]
    comments += [
        f"# {row.payload}: interval {row.interval}, drain {row.drain}: {row.distance:,.0f}"
        for row in chosen.itertuples()
    ]
    payloads = [f"  {row.payload}: {{interval: {row.interval}, drain: {row.drain}}}" for row in chosen.itertuples()]
    return STUDY.format(
        base=name,
        description=study.description,
        cells=cells,
        links=", ".join(LINKS),
        protocols=PROTOCOLS.replace(",", ", "),
        seed=study.seed,
        comments="\n".join(comments),
        direction=chosen.direction.iloc[0],
        payloads="\n".join(payloads),
    )
