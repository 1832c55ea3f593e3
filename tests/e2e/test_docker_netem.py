"""RUNTIME=docker on shaped links: the Compose project in the guest, with a Docker engine and netem in one kernel.

`make test-docker-netem` runs it with 27 publishers and 27 subscribers, else there are two of each.
"""

import os

import pandas as pd
import pytest
from own_engine import some_engine
from runs import Run, command

from compose import image
from guest import engine, kernel
from testbed import commands

CLIENTS = int(os.environ.get("NETEM_CLIENTS", "2"))
LIMIT = 900 + 90 * CLIENTS
"""Seconds of wall time for the guest, should it hang."""

pytestmark = pytest.mark.skipif(
    kernel.cached(kernel.WITH_DOCKER) is None,
    reason="the guest's kernel for a Docker engine is not built: make docker-kernel",
)

CELLS = {
    "gps": {"protocol": "mqtt", "qos": "0,2", "payload": "gps", "clients": CLIENTS},
    "image": {"protocol": "mqtt", "qos": 0, "payload": "image", "clients": 1},
    "mqttsn": {"protocol": "mqttsn", "qos": 1, "payload": "gps", "clients": CLIENTS},
}
TRAFFIC = {"profile": "satcom", "messages": 3, "interval": "5s", "drain": "10s"}
AGREE = 0.02
"""Between the mean delays of docker and netns at SATCOM, as a share."""

MTU_FRAME = 1514


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What `testbed.cli run` left, by runtime and the name of its cells; all of it ran in one guest."""
    folder = tmp_path_factory.mktemp("guest")
    runs = {(runtime, name): folder / f"{runtime}-{name}" for runtime in ("docker", "netns") for name in CELLS}
    script = [command(out, **TRAFFIC, **CELLS[name], runtime=runtime) for (runtime, name), out in runs.items()]
    with some_engine() as problem:
        if problem is not None:
            pytest.skip(problem)
        engine.save(image.name(), folder)
    output = engine.run(kernel.cached(kernel.WITH_DOCKER), script, folder, LIMIT)
    return {key: Run(0, output, (out / "latest").resolve()) for key, out in runs.items()}


@pytest.mark.parametrize("name", CELLS)
def test_every_message_crosses_the_satellite_link_between_containers(results, name):
    summary = results["docker", name].summary
    assert (summary.status == "ok").all()
    assert (summary.loss_pct == 0).all()
    assert (summary.sent == TRAFFIC["messages"] * CELLS[name]["clients"]).all()
    assert (summary.ready_publishers == CELLS[name]["clients"]).all()
    assert (summary.delay_mean_ms > 550).all()


@pytest.mark.parametrize("name", CELLS)
def test_docker_and_netns_agree(results, name):
    docker, netns = (results[runtime, name].summary for runtime in ("docker", "netns"))
    difference = abs(docker.delay_mean_ms / netns.delay_mean_ms - 1)
    assert (difference < AGREE).all(), f"docker {docker.delay_mean_ms.tolist()} netns {netns.delay_mean_ms.tolist()}"


def sizes(pcap):
    """Length and IPv4 source of every frame."""
    words = ["tshark", "-r", str(pcap), "-Y", "ip", "-T", "fields", "-e", "frame.len", "-e", "ip.src"]
    rows = [line.split() for line in commands.run(words).splitlines()]
    return pd.DataFrame({"size": [int(size) for size, _ in rows], "source": [source for _, source in rows]})


@pytest.mark.parametrize("side", ["client-side", "server-side"])
def test_an_image_crosses_the_channel_in_packets_of_the_mtu(results, side):
    seen = sizes(results["docker", "image"].cell("image") / f"{side}.pcap")
    assert seen["size"].max() <= MTU_FRAME
    assert (seen["size"] == MTU_FRAME).sum() > 3 * 50_000 / 1448 * 0.9


def test_losses_would_repeat_for_tc_in_the_image_takes_a_seed(results):
    (facts,) = [facts for name, facts in results["docker", "image"].manifest["cells"].items()]
    assert facts["channel"]["before"]["ifb-up"]["options"]["seed"] == facts["channel"]["seeds"]["ifb-up"]
