"""RUNTIME=netns on a machine whose kernel has netem: the guest is one."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from testbed.places import PROJECT


def interfaces():
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def test_a_run_with_runtime_netns(tmp_path):
    before = interfaces()
    words = [
        sys.executable,
        "-m",
        "testbed.cli",
        "run",
        "--runtime",
        "netns",
        "--profile",
        "satcom",
        "--out",
        str(tmp_path),
    ]
    words += ["--protocol", "mqtt", "--payload", "gps", "--qos", "0,2", "--clients", "2", "--messages", "2"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = pd.read_csv(tmp_path / "latest" / "summary.csv")
    assert summary.runtime.tolist() == ["netns", "netns"]
    assert summary.loss_pct.tolist() == [0, 0]
    assert 550 < summary.delay_mean_ms[0] < 575
    assert 1650 < summary.delay_mean_ms[1] < 1710
    assert json.loads((tmp_path / "latest" / "manifest.json").read_text())["clock"] == "real"
    assert interfaces() == before
