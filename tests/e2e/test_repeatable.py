"""The same seed gives the same bytes, whatever else the machine does."""

import hashlib
import os
import subprocess
import sys

import pytest
from runs import run

SPIN = "while True: pass"


def digests(result):
    assert result.code == 0, result.output
    cell = result.cell("qos2")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in cell.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def saturated():
    return {"profile": "cnr-10", "payload": "gps", "protocol": "mqtt", "qos": 2, "messages": 10}


def test_the_same_seed_gives_the_same_bytes_beside_a_busy_machine(out, saturated):
    first = digests(run(out, **saturated, seed=7))
    busy = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in os.sched_getaffinity(0)]
    try:
        second = digests(run(out, **saturated, seed=7))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for name in ("messages.csv", "client-side.pcap", "server-side.pcap"):
        assert first[name] == second[name], name
    other = digests(run(out, **saturated, seed=8))
    assert other["messages.csv"] != first["messages.csv"]


def test_a_cell_does_not_depend_on_the_cells_run_beside_it(out):
    tiny = {"profile": "cnr-10", "payload": "gps", "protocol": "mqtt", "clients": 3, "messages": 4, "seed": 7}
    assert digests(run(out, **tiny, qos=2))["messages.csv"] == digests(run(out, **tiny))["messages.csv"]
