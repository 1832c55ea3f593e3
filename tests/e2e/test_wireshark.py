"""The Wireshark profile of a run, read by tshark, which reads the same files; and `make wireshark`."""

import csv
import os
import subprocess
import sys

import pytest
from runs import run

from analysis import wireshark
from testbed import commands
from testbed.places import PROJECT


@pytest.fixture(scope="module")
def satcom(out):
    small = {"profile": "satcom", "payload": "gps", "clients": 2, "messages": 2, "seed": 7}
    result = run(out, **small, protocol="mqtt,mqttsn,zmq-tcp,zmq-pgm,zmq-norm")
    assert result.code == 0, result.output
    return result


@pytest.fixture(scope="module")
def tshark(satcom):
    """Runs tshark with the run's profile; what it says on stderr counts as an error."""

    def call(*words):
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": str(satcom.folder / "wireshark")}
        words = ["tshark", "-C", wireshark.PROFILE, *map(str, words)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        told = [line for line in done.stderr.splitlines() if line and "This could be dangerous" not in line]
        assert told == []
        return [line.split("\t") for line in done.stdout.splitlines()]

    return call


MESSAGE = '(tcp || udp) && frame contains "\\"seq\\":1," && ip.src == 198.18.0.2'


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        ("mqtt-qos1", ["publisher-01", "MQTT", "testbed/unit-01", "1", "1"]),
        ("mqttsn-qos1", ["publisher-01", "MQTT-SN", "3", "0x1", "2"]),  # the topic by its number, given at registration
        ("zmq-tcp", ["publisher-01", "ZMTP", "testbed/unit-01", "", ""]),
        ("zmq-pgm", ["publisher-01", "PGM", "", "", "0x00000002"]),  # after the hellos
        ("zmq-norm", ["publisher-01", "NORM", "", "", "12"]),
    ],
)
def test_a_message_is_decoded_and_coloured(satcom, tshark, protocol, shown):
    columns = ("Source", "Protocol", "Topic", "QoS", "Message id")
    words = [word for name in columns for word in ("-e", f"_ws.col.{name}")]
    capture = satcom.cell(f"-{protocol}-") / "client-side.pcap"
    rows = tshark("--color", "-r", capture, "-Y", MESSAGE, "-T", "fields", *words, "-e", "frame.coloring_rule.name")
    assert [row for row in rows if row[-1] == "data"] == [[*shown, "data"]]


def test_every_button_is_a_filter(satcom, tshark):
    file = satcom.folder / "wireshark" / "profiles" / wireshark.PROFILE / "dfilter_buttons"
    buttons = {line[1]: line[2] for line in csv.reader(file.read_text().splitlines())}
    assert {"data", "retransmission", "acknowledgement", "handshake"} <= buttons.keys()
    found = tshark("-r", satcom.cell("-mqtt-qos1") / "client-side.pcap", "-Y", " || ".join(buttons.values()))
    assert len(found) > 8


def test_a_capture_says_where_it_comes_from(satcom):
    said = commands.run(["capinfos", str(satcom.cell("-mqtt-qos1") / "server-side.pcap")])
    for words in ("cell satcom-mqtt-qos1-gps-r1", "profile satcom", "study ffi-2022", "seed", "virtual time"):
        assert words in said
    assert "server ifb-up: uplink after the channel" in said


def call(*words, **environment):
    words = [sys.executable, "-m", "testbed.cli", "wireshark", *map(str, words)]
    return subprocess.run(words, cwd=PROJECT, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_without_wireshark_there_is_advice(satcom, tmp_path):
    done = call(satcom.cell("-mqtt-qos1"), PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "Wireshark is not installed: apt-get install wireshark\n")


def test_wireshark_is_started_with_the_profile(satcom, tmp_path):
    program = tmp_path / "wireshark"
    program.write_text('#!/bin/sh\necho "$WIRESHARK_CONFIG_DIR $*" >&2; exit 3\n')  # so that its words are shown
    program.chmod(0o755)
    cell = satcom.cell("-mqtt-qos1")
    done = call(cell, "--side", "server-side", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert f"{satcom.folder}/wireshark -C pubsub-testbed -r {cell}/server-side.pcap" in done.stderr


@pytest.mark.parametrize(("words", "told"), [(["nonsense"], "CELL: 'nonsense'"), ([None, "--side", "x"], "SIDE: 'x'")])
def test_a_wrong_cell_is_a_user_error(satcom, words, told):
    done = call(*(satcom.cell("-mqtt-qos1") if word is None else word for word in words))
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
