"""RUNTIME=docker on a real engine, on `lan`, which needs no netem; the engine is started for it where none answers."""

import json
import signal
import subprocess

import pandas as pd
import pytest
from own_engine import compose_2, some_engine
from runs import command, run
from test_readme import IN_CONTAINERS

from compose import engine, image
from testbed import commands
from testbed.places import PROJECT
from testbed.waiting import wait_for


@pytest.fixture(scope="module", autouse=True)
def docker():
    with some_engine() as problem:
        if problem is not None:
            pytest.skip(problem)
        yield


SMALL = {
    "profile": "lan",
    "protocol": "mqtt",
    "qos": 1,
    "payload": "gps",
    "clients": 2,
    "messages": 3,
    "interval": "1s",
    "drain": "1s",
    "runtime": "docker",
}
CONTAINERS = 2 + 2 * SMALL["clients"]  # server, mosquitto, clients


def left(kind):
    words = ["docker", *kind, "--quiet", "--filter", f"label={engine.RUN}"]
    return commands.run(words).split()


def run_of(container):
    return commands.run(
        ["docker", "inspect", "--format", f'{{{{index .Config.Labels "{engine.RUN}"}}}}', container]
    ).strip()


def nothing_is_left():
    return not left(["ps", "--all"]) and not left(["network", "ls"])


class Background:
    """A run that goes on beside the test."""

    def __init__(self, out, **variables):
        self.log = (out / "background.log").open("w+")
        words = command(out, **(SMALL | variables))
        self.process = subprocess.Popen(words, cwd=PROJECT, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)  # does nothing to a process that has been waited for
        self.process.wait(60)

    def await_containers(self, count):
        wait_for(lambda: len(left(["ps"])) >= count or self.process.poll() is not None, "containers", 240, 0.5)
        assert self.process.poll() is None, self.output()

    def output(self):
        self.log.seek(0)
        return self.log.read()


@pytest.fixture(scope="module")
def small(out):
    """The protocols that have QoS 1."""
    return run(out, **(SMALL | {"protocol": "mqtt,mqttsn,mqttsn-hybrid"}))


@pytest.fixture(scope="module")
def small_zeromq(out):
    without_qos = {name: value for name, value in SMALL.items() if name != "qos"}
    return run(out, **(without_qos | {"protocol": "zmq-tcp,zmq-pgm,zmq-norm"}))


@pytest.mark.parametrize("protocols", ["small", "small_zeromq"])
def test_every_protocol_runs_in_containers_and_nothing_is_left(protocols, request):
    result = request.getfixturevalue(protocols)
    assert result.code == 0, result.output
    summary = result.summary
    assert len(summary) == 3
    assert set(summary.status) == {"ok"}
    assert set(summary.loss_pct) == {0}
    assert set(summary.ready_publishers) == set(summary.ready_subscribers) == {2}
    assert set(summary.host_limited) <= {"yes", "no"}
    assert result.manifest["clock"] == "real"
    assert "RUNTIME=virtual would take about" in result.output
    assert nothing_is_left()


def test_what_the_kernel_does_not_allow_is_told_everywhere(small):
    cell = next(iter(small.manifest["plan"]["cells"]))
    used = cell["tcp"]["net.ipv4.tcp_congestion_control"]
    deviations = [each for each in small.manifest["plan"]["deviations"] if each.startswith("TCP")]
    if "cubic" in engine.allowed_congestion().split():
        assert (used, deviations) == ("cubic", [])
        return
    (sentence,) = deviations
    assert used == "reno"
    assert f"not as told: {sentence}" in small.output
    assert "TCP congestion control reno instead of the study&#39;s cubic" in (small.folder / "report.html").read_text()


def test_captures_show_every_publish_twice(small):
    cell = small.cell("lan-mqtt-qos1")
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
    assert len(commands.run(words).split()) == 2 * len(pd.read_csv(cell / "messages.csv"))


def test_both_generations_of_compose_take_the_files(small, small_zeromq):
    for program in (engine.compose(), compose_2()):
        for file in (small.folder / "compose.yaml", small_zeromq.cell("pgm") / "compose.yaml"):
            commands.run([*program, "--file", str(file), "config", "--quiet"])


@pytest.fixture(scope="module")
def paper_sized(out):
    """27+27 containers of one cell, looked at while they run: the run, all containers and their inspection."""
    with Background(out, clients=27, messages=2, capture="publisher-02") as going:
        going.await_containers(56)
        inspected = json.loads(commands.run(["docker", "inspect", *left(["ps"])]))
        network = json.loads(commands.run(["docker", "network", "inspect", *left(["network", "ls"])]))
        assert going.process.wait(300) == 0, going.output()
    return (out / "latest").resolve(), inspected, network, going.output()


def test_27_pairs_of_containers_lose_nothing(paper_sized):
    folder, inspected, _network, output = paper_sized
    row = pd.read_csv(folder / "summary.csv").iloc[0]
    assert (row.status, row.sent, row.loss_pct) == ("ok", 54, 0)
    assert len(inspected) == 56
    assert "containers up in" in output
    assert (next(folder.glob("cells/*/publisher-02.pcap"))).stat().st_size > 500
    assert nothing_is_left()


def test_containers_have_no_more_privileges_than_they_need(paper_sized):
    _folder, inspected, network, _output = paper_sized
    assert [each["Internal"] for each in network] == [True]
    for container in inspected:
        service, host = container["Config"]["Labels"]["com.docker.compose.service"], container["HostConfig"]
        granted = {"CAP_NET_ADMIN", "CAP_NET_RAW"} if service == "server" else set()
        given = {name if name.startswith("CAP_") else f"CAP_{name}" for name in host["CapAdd"] or []}
        assert (service, given, host["CapDrop"]) == (service, granted, ["ALL"])
        assert not host["Privileged"] and not host["PortBindings"] and host["ReadonlyRootfs"], service
        assert any(option.startswith("no-new-privileges") for option in host["SecurityOpt"]), service
        assert host["Memory"] > 0 and host["PidsLimit"] > 0, service
        assert not any("docker.sock" in mount["Source"] for mount in container["Mounts"]), service
        assert (container["Config"]["User"].split(":")[0] == "0") == (service == "server")


def make(*words, **variables):
    given = [f"{name.upper()}={value}" for name, value in variables.items() if name not in ("profile", "runtime")]
    command = ["make", *words, *given]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=200, check=True).stdout


def test_the_readmes_command_with_a_broker_image_of_ones_own(tmp_path):
    commands.run(["docker", "tag", image.name(), "stand-in:1"])  # none can be pulled; this one has mosquitto too
    try:
        make(*IN_CONTAINERS.split()[1:], **SMALL, broker_image="stand-in:1", out=tmp_path)
    finally:
        commands.run(["docker", "rmi", "stand-in:1"])
    folder = tmp_path / "latest"
    (facts,) = json.loads((folder / "manifest.json").read_text())["cells"].values()
    assert facts["servers"] == {"mosquitto": "stand-in:1"}
    assert facts["containers"]["images"]["mosquitto"]["id"] == facts["containers"]["images"]["testbed"]["id"]
    assert 'entrypoint: ["mosquitto", "-c", "/servers/mosquitto.conf"]' in (folder / "compose.yaml").read_text()


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"broker_image": "no.such.host/broker:1"}, 1, "BROKER_IMAGE: 'no.such.host/broker:1' is not here"),
        (
            {"protocol": "zmq-tcp", "qos": None, "broker_image": "broker:1"},
            2,
            "BROKER_IMAGE: 'broker:1': none of the chosen",
        ),
        ({"protocol": "mqttsn", "gateway": "paho"}, 2, "PAHO_GATEWAY_IMAGE: missing"),
        ({"runtime": "virtual", "broker_image": "broker:1"}, 2, "allowed with RUNTIME=docker only"),
        ({"congestion": "nosuch"}, 1, "nosuch"),
    ],
)
def test_what_cannot_be_had_stops_the_run_before_it_starts(out, variables, code, words):
    given = {name: value for name, value in (SMALL | variables).items() if value is not None}
    result = run(out, **given)
    assert (result.code, "results in" in result.output) == (code, False), result.output
    assert words in result.output


def test_a_profile_that_needs_netem_stops_before_anything_starts(out):
    if engine.netem_problem(image.name()) is None:
        pytest.skip("this kernel has netem")
    shaped = run(out, **(SMALL | {"profile": "satcom"}))
    assert shaped.code == 1
    assert "RUNTIME=virtual" in shaped.output
    assert "results in" not in shaped.output


def test_a_run_beside_a_killed_one_removes_what_that_left_and_nothing_else(tmp_path):
    killed, other = tmp_path / "killed", tmp_path / "other"
    for folder in (killed, other):
        folder.mkdir()
    with Background(killed, messages=1000) as first, Background(other, messages=1000) as second:
        second.await_containers(2 * CONTAINERS)  # two runs at once, each with its own network
        of_each = {identity: run_of(identity) for identity in left(["ps"])}
        first.process.kill()
        first.process.wait()
        assert run(tmp_path, **SMALL).code == 0
        killed_run = (killed / "latest").resolve().name
        assert set(left(["ps"])) == {identity for identity, name in of_each.items() if name != killed_run}
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(60) == 130
    assert nothing_is_left()
    assert json.loads((other / "latest" / "manifest.json").read_text())["runtime"] == "docker"


def test_make_up_leaves_a_cell_running_until_make_down(tmp_path):
    make("up", "PROFILE=lan", **(SMALL | {"protocol": "mqttsn"}), out=tmp_path)
    try:
        listing = make("ps")
        assert listing.count("Up ") == CONTAINERS + 1  # the gateway
        assert "mqttsn-gateway" in listing
    finally:
        make("down")
    assert nothing_is_left()
