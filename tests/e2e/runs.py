"""Runs of the command line, for the tests beside this file."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from testbed.places import PROJECT


@dataclass
class Run:
    """A finished run of the command line."""

    code: int
    output: str
    folder: Path

    @property
    def summary(self) -> pd.DataFrame:
        return pd.read_csv(self.folder / "summary.csv")

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())

    def cell(self, part: str) -> Path:
        (found,) = [path for path in (self.folder / "cells").iterdir() if part in path.name]
        return found


def command(out: Path, **variables: object) -> list[str]:
    options = [word for name, value in variables.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, "-m", "testbed.cli", "run", "--out", str(out), *options]


def run(out: Path, **variables: object) -> Run:
    done = subprocess.run(
        command(out, **variables), cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr, (out / "latest").resolve())
