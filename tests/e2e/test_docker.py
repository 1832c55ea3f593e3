"""RUNTIME=docker on a real engine: a small cell on `lan`, which needs no netem. Skipped where no engine answers."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest
from runs import command, run

from compose import engine, image
from testbed import commands
from testbed.places import PROJECT

PROBLEM = engine.engine_problem()
if PROBLEM is None and not image.exists(image.name()) and not image.exists(image.BASE_IMAGE):
    PROBLEM = f"the image is not built and {image.BASE_IMAGE} is not here (make base-image, make image)"
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))


def allowed_congestion():
    """The study's congestion control, or one that this kernel allows in containers, asked for by name."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "cubic" if "cubic" in allowed else allowed[0]


SMALL = {
    "profile": "lan",
    "protocol": "mqtt",
    "qos": 1,
    "payload": "gps",
    "clients": 3,
    "messages": 3,
    "interval": "1s",
    "drain": "1s",
    "runtime": "docker",
}


def left(kind):
    words = ["docker", *kind, "--quiet", "--filter", f"label={engine.RUN}"]
    return commands.run(words).split()


@pytest.fixture(scope="module")
def lan(out):
    return run(out, **SMALL, capture="publisher-02", congestion=allowed_congestion())


def test_all_messages_arrive_and_nothing_is_left(lan):
    assert lan.code == 0, lan.output
    row = lan.summary.iloc[0]
    assert (row.status, row.runtime, row.loss_pct, row.sent) == ("ok", "docker", 0, 9)
    assert (row.ready_publishers, row.ready_subscribers) == (3, 3)
    assert 0 < row.delay_mean_ms < 1000
    assert lan.manifest["clock"] == "real"
    assert not left(["ps", "--all"])
    assert not left(["network", "ls"])


def test_captures_show_every_publish_twice(lan):
    cell = lan.cell("qos1")
    words = [
        "tshark",
        "-r",
        str(cell / "client-side.pcap"),
        "-Y",
        "mqtt.msgtype == 3",
        "-T",
        "fields",
        "-e",
        "mqtt.msg",
    ]
    packets = commands.run(words).split()
    assert len(packets) == 2 * len(pd.read_csv(cell / "messages.csv"))
    assert (cell / "publisher-02.pcap").stat().st_size > 500


def test_compose_file_is_valid_and_grants_little(lan):
    words = [*engine.compose(), "--file", str(lan.folder / "compose.yaml"), "config"]
    assert "services:" in commands.run(words)
    text = (lan.folder / "compose.yaml").read_text()
    assert "privileged: true" not in text
    assert "docker.sock" not in text
    assert "ports:" not in text
    assert text.count("cap_drop: [ALL]") == text.count("read_only: true") == 8  # server, mosquitto, six clients
    assert text.count("cap_add") == 1


def test_a_profile_that_needs_netem_stops_before_anything_starts(out):
    problem = engine.netem_problem(image.build())
    if problem is None:
        pytest.skip("this kernel has netem")
    shaped = run(out, **(SMALL | {"profile": "satcom"}))
    assert shaped.code == 1
    assert "RUNTIME=virtual" in shaped.output
    assert "results in" not in shaped.output


def test_an_interrupted_run_removes_its_containers(out):
    words = command(out, **(SMALL | {"messages": 1000}), congestion=allowed_congestion())
    process = subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(left(["ps"])) < 8:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    process.wait(60)
    assert not left(["ps", "--all"])
    assert json.loads((out / "latest" / "manifest.json").read_text())["runtime"] == "docker"


def test_a_killed_run_is_cleaned_up_by_make_down(out):
    words = command(out, **(SMALL | {"messages": 1000}), congestion=allowed_congestion())
    process = subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(left(["ps"])) < 8:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    process.kill()
    process.wait()
    time.sleep(1)  # the kernel ends the cell's process with its parent
    assert left(["ps"])
    commands.run([str(PROJECT / ".venv/bin/python"), "-m", "compose", "down"])
    assert not left(["ps", "--all"])
    assert not left(["network", "ls"])
