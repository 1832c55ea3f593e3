"""results/<run-id>/: what a run leaves. Files are replaced whole, so a crash never leaves half of one."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import messages, pace
from analysis.channel import loss
from testbed.cell import Cell
from testbed.errors import UserError
from testbed.plan import Plan

_IDENTITY = ("study", "profile", "protocol", "qos", "payload", "clients", "repeat", "seed", "runtime", "channel")
COLUMNS = (
    *_IDENTITY,
    "status",
    "host_limited",
    "ready_publishers",
    "ready_subscribers",
    *messages.MEASURES,
    "wire_bytes",
    "wire_packets",
    "emulated_s",
    "wall_s",
)


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.replace(path)


class Results:
    """The folder of one run. Raises UserError if it cannot be made."""

    def __init__(self, out: Path, plan: Plan, runtime: str) -> None:
        self.plan, self.runtime = plan, runtime
        self.rows: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.folder = (out / f"{stamp}-{plan.profile.name}-{os.getpid()}").absolute()
        try:
            (self.folder / "cells").mkdir(parents=True)
            latest = out / f".latest-{os.getpid()}"
            latest.symlink_to(self.folder.name)
            latest.replace(out / "latest")
        except OSError as error:
            raise UserError(f"OUT: {str(out)!r}: {error.strerror}; allowed is a folder that can be written") from error
        _replace(self.folder / "plan.json", json.dumps(plan.to_json(), indent=1))

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell's files go."""
        return self.folder / "cells" / cell.id

    def finish(self, cell: Cell, status: str, wall_s: float, error: str = "") -> dict[str, Any]:
        """Take a finished cell into summary.csv, whatever became of it, and return its row."""
        folder = self.cell_folder(cell)
        folder.mkdir(exist_ok=True)
        written = folder / "cell.json"
        facts: dict[str, Any] = json.loads(written.read_text()) if written.exists() else {}
        facts |= {"status": status} | ({"error": error} if error else {})
        if facts.get("channel"):
            before, after = facts["channel"]["before"], facts["channel"]["after"]
            facts["channel"]["measured"] = {ifb: loss(before[ifb], after[ifb]) for ifb in after}
        self.facts[cell.id] = facts
        identity = {key: getattr(cell, key) for key in _IDENTITY if key not in ("runtime", "channel")}
        row = {**identity, "runtime": self.runtime, "channel": cell.channel.label, "status": status}
        row |= {key: facts.get(key) for key in ("ready_publishers", "ready_subscribers", "emulated_s")}
        if status == "ok":
            table = messages.read(folder / "messages.csv")
            row |= messages.measures(table)
            if self.runtime != "virtual":
                facts["late_p99_ms"] = pace.late_p99_ms(table)
                limited = pace.is_host_limited(facts["late_p99_ms"], facts.get("cpu_idle_pct"))
                row["host_limited"] = "yes" if limited else "no"
            row |= {f"wire_{key}": facts["capture"]["wire"][key] for key in ("bytes", "packets")}
        self.rows[cell.id] = row | {"wall_s": round(wall_s, 3)}
        self._write_summary()
        return self.rows[cell.id]

    def _write_summary(self) -> None:
        rows = [self.rows[cell.id] for cell in self.plan.cells if cell.id in self.rows]
        table = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"qos": "Int64", "seed": "int64"})
        _replace(self.folder / "summary.csv", table.to_csv(index=False, float_format="%.6f", lineterminator="\n"))

    def write_manifest(self, environment: dict[str, Any]) -> None:
        """Everything that is needed to repeat the run and to judge it."""
        manifest = {"plan": self.plan.to_json(), "runtime": self.runtime, **environment, "cells": self.facts}
        _replace(self.folder / "manifest.json", json.dumps(manifest, indent=1))
