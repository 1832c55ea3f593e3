"""A finished run, read back from its folder: what figures, statements, warnings and the report are made of."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import messages, pcap
from testbed.errors import UserError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CellResult:
    """One cell: its place in the plan, its row of the summary, its facts from the manifest, its messages."""

    plan: dict[str, Any]
    row: dict[str, Any]
    facts: dict[str, Any]
    messages: pd.DataFrame
    """messages.csv with `delay_ms` and `at_s`, the scheduled time since *go* in s; empty if there is none."""
    packets: dict[str, Any] = field(default_factory=dict)
    """What its captures say, see pcap.known()."""

    @property
    def name(self) -> str:
        """The cell's identity, `satcom-mqtt-qos0-gps-r1`."""
        return str(self.plan["id"])

    @property
    def ready(self) -> int:
        """Clients that were ready when the traffic began."""
        return int(self.row.get("ready_publishers") or 0) + int(self.row.get("ready_subscribers") or 0)


@dataclass(frozen=True)
class Series:
    """All repeats of a protocol at a QoS with a payload: what a bar, a curve or a table row shows."""

    protocol: str
    qos: int | None
    payload: str
    cells: list[CellResult] = field(default_factory=list)

    @property
    def label(self) -> str:
        """`mqtt QoS 1`, or the protocol alone if it has no QoS."""
        return self.protocol if self.qos is None else f"{self.protocol} QoS {self.qos}"

    @property
    def status(self) -> str:
        """`ok`, or what became of the cells that are not."""
        return ", ".join(sorted({cell.row["status"] for cell in self.cells} - {"ok"})) or "ok"

    @cached_property
    def messages(self) -> pd.DataFrame:
        """The messages of all repeats."""
        return pd.concat([cell.messages for cell in self.cells], ignore_index=True)

    @cached_property
    def delays(self) -> Floats:
        """Delays of the delivered messages of all repeats, in ms."""
        return self.messages["delay_ms"].dropna().to_numpy(dtype=np.float64)

    @property
    def sent(self) -> int:
        """Messages that should have arrived, in the cells that came to their end."""
        return len(self.messages)

    @property
    def lost(self) -> int:
        """Messages that had not arrived by the end of the drain."""
        return self.sent - len(self.delays)

    @property
    def loss_pct(self) -> float | None:
        """Share of lost messages in per cent; None where no cell came to its end."""
        return 100 * self.lost / self.sent if self.sent else None

    @property
    def mean_ms(self) -> float | None:
        """Mean delay in ms; None where nothing arrived."""
        return float(self.delays.mean()) if len(self.delays) else None

    @property
    def grows(self) -> bool:
        """Whether the median delay of the last quarter of the time is over twice that of the first: a link fills up."""
        at, delays = self.messages["at_s"], self.messages["delay_ms"]
        first, last = delays[at <= at.max() / 4].median(), delays[at >= at.max() * 3 / 4].median()
        return bool(last > 2 * first)

    def of_repeats(self, column: str) -> list[float]:
        """A column of the summary, one value for each repeat that has it."""
        values = (cell.row.get(column) for cell in self.cells)
        return [float(value) for value in values if value is not None]

    def total(self, column: str) -> int | None:
        """Sum of a column of the summary over the repeats; None where no repeat has it."""
        values = self.of_repeats(column)
        return int(sum(values)) if values else None


@dataclass(frozen=True)
class Run:
    """A run's folder, its manifest and its series in the plan's order."""

    folder: Path
    manifest: dict[str, Any]
    series: list[Series]

    @property
    def cells(self) -> list[CellResult]:
        """All cells that finished, one way or another."""
        return [cell for series in self.series for cell in series.cells]

    @property
    def plan(self) -> dict[str, Any]:
        """The resolved plan."""
        return dict(self.manifest["plan"])

    @property
    def payloads(self) -> list[str]:
        """Payloads in the plan's order."""
        return list(dict.fromkeys(series.payload for series in self.series))

    def of_payload(self, payload: str) -> list[Series]:
        """The series with one payload."""
        return [series for series in self.series if series.payload == payload]


def _messages(folder: Path, go_ns: int | None) -> pd.DataFrame:
    path = folder / "messages.csv"
    if go_ns is None or not path.exists():
        return pd.DataFrame({"delay_ms": pd.Series(dtype=float), "at_s": pd.Series(dtype=float)})
    table = messages.read(path)
    table["at_s"] = (table["scheduled_ns"] - go_ns) / 1e9
    return table


def _rows(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    table = pd.read_csv(path, dtype={"qos": "Int64"}).astype(object)
    table = table.where(table.notna(), None)
    key = ("protocol", "qos", "payload", "repeat")
    return {tuple(row[name] for name in key): row for row in table.to_dict("records")}  # type: ignore[misc]


def load(folder: Path) -> Run:
    """Read a run's folder. Raises UserError if it is none."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        rows = _rows(folder / "summary.csv")
    except (OSError, ValueError) as error:
        raise UserError(f"RUN: '{folder}': allowed is a folder of results, like results/latest: {error}") from error
    found: dict[tuple[Any, ...], Series] = {}
    for plan in manifest["plan"]["cells"]:
        key = (plan["protocol"], plan["qos"], plan["payload"])
        row = rows.get((*key, plan["repeat"]))
        if row is None:  # an interrupted run did not come to it
            continue
        facts = manifest["cells"].get(plan["id"], {})
        go_ns = facts.get("go_ns") if row["status"] == "ok" else None
        own = folder / "cells" / plan["id"]
        cell = CellResult(plan, row, facts, _messages(own, go_ns), pcap.known(own))
        found.setdefault(key, Series(*key)).cells.append(cell)
    return Run(folder, manifest, list(found.values()))


def find_cell(text: str, latest: Path) -> Path:
    """The folder of a cell, named by its identity in the run `latest`, or by its path. Raises UserError."""
    for folder in (latest / "cells" / text, Path(text)):
        if (folder / "cell.json").exists():
            return folder.resolve()
    known = sorted(path.parent.name for path in latest.glob("cells/*/cell.json"))
    raise UserError(f"CELL: {text!r}: allowed is a cell's folder, or of {latest}: {', '.join(known) or 'none'}")
