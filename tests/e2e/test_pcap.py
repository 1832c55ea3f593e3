"""What the captures say, held against what the clients, netem's counters and pyshark say."""

import subprocess
import sys
from collections import Counter

import pandas as pd
import pyshark
import pytest
from runs import run

from analysis import pcap
from analysis.pcap import cells, inspect
from analysis.pcap.delays import STAGES
from analysis.pcap.dissect import dissect, options
from testbed.places import PROJECT

LOSSY = ("mqtt-qos0", "mqtt-qos1", "mqtt-qos2", "mqttsn-qos0", "mqttsn-qos1", "mqttsn-qos2", "zmq-tcp", "zmq-pgm")
IMAGES = ("hybrid-qos0", "hybrid-qos2", "zmq-tcp", "zmq-norm")
TYPES = {  # of each cell: pyshark's layer and field of a message's type, and a name of ours for its values
    "mqtt-qos2": ("mqtt", "msgtype", {"3": "PUBLISH", "6": "PUBREL", "7": "PUBCOMP", "9": "SUBACK"}),
    "mqttsn-qos2": ("mqttsn", "msg_type", {"0x0c": "PUBLISH", "0x10": "PUBREL", "0x0e": "PUBCOMP", "0x13": "SUBACK"}),
    "zmq-pgm": ("pgm", "hdr_type", {"0x00": "SPM", "0x04": "ODATA", "0x05": "RDATA", "0x08": "NAK"}),
}


def ran(out, **variables):
    done = run(out, **variables)
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="module")
def lossy(out):
    protocols = "mqtt,mqttsn,zmq-tcp,zmq-pgm"
    return ran(out, profile="cnr-10", payload="gps", protocol=protocols, clients=4, messages=5)


@pytest.fixture(scope="module")
def images(out):
    protocols = "mqttsn-hybrid,zmq-tcp,zmq-norm"
    return ran(out, profile="satcom", payload="image", protocol=protocols, clients=2, messages=2, channel="both/half")


@pytest.fixture(scope="module")
def lan(out):
    return ran(out, profile="lan", payload="gps", protocol="mqtt", qos=1, clients=2, messages=2)


def stages_add_up(folder):
    """Every message that was delivered is followed, and its stages are its delay; returns their means in ms."""
    messages, wire = pd.read_csv(folder / "messages.csv"), pd.read_csv(folder / "wire.csv")
    assert (messages[["publisher", "seq"]] == wire[["publisher", "seq"]]).all(axis=None)
    delivered = messages.received_ns.notna()
    stages = wire.loc[delivered, [f"{stage}_ns" for stage in STAGES]]
    assert stages.notna().all(axis=None)
    assert (stages >= 0).all(axis=None)
    delay = messages.received_ns - messages.scheduled_ns
    assert ((stages.sum(axis=1) - delay[delivered]).abs() < 1000).all()
    assert wire.loc[~delivered, "delivery_ns"].isna().all()
    assert (wire.client_out_ns <= wire.server_in_ns)[delivered].all()
    assert (wire.server_out_ns <= wire.client_in_ns)[delivered].all()
    return stages.mean() / 1e6


@pytest.mark.parametrize("part", LOSSY)
def test_stages_add_up_to_the_delay_where_packets_are_lost(lossy, part):
    stages = stages_add_up(lossy.cell(f"cnr-10-{part}-"))
    assert stages.propagation_ns == pytest.approx(100, abs=0.001)
    assert stages.serialisation_ns > 150 * 8 / 9.6


@pytest.mark.parametrize("part", IMAGES)
def test_stages_add_up_for_messages_of_many_packets(images, part):
    stages = stages_add_up(images.cell(part))
    assert stages.propagation_ns == pytest.approx(2 * 550, abs=0.001)
    assert stages.sending_ns + stages.queueing_ns > 50_000 * 8 / 250 * 0.9
    assert stages.delivery_ns < 1  # the last packet was found: in virtual time the clients take none


def test_one_capture_is_enough_where_nothing_is_shaped(lan):
    assert stages_add_up(lan.cell("lan")).propagation_ns == 0


def test_the_time_went_where_the_protocol_says(lossy):
    means = {part: pcap.known(lossy.cell(f"cnr-10-{part}-"))["delay"]["stages_ms"] for part in LOSSY}
    assert means["mqtt-qos1"]["handshake"] == 0
    assert means["mqtt-qos2"]["handshake"] > 2 * 100
    assert means["mqttsn-qos0"]["retransmission"] == 0
    assert means["mqttsn-qos1"]["retransmission"] > 0


@pytest.mark.parametrize("part", LOSSY)
def test_the_captures_lose_what_netem_dropped(lossy, part):
    folder = lossy.cell(f"cnr-10-{part}-")
    cell = cells.load(folder)
    plan, before = cell.plan, 10**9  # netem is read within the second before go
    end = cell.go + plan.interval * plan.messages - plan.interval // plan.clients + plan.drain
    sent = [one for one in cell.crossings() if one.uplink and cell.go - before <= one.sent < end]
    measured = lossy.manifest["cells"][folder.name]["channel"]["measured"]["ifb-up"]
    assert sum(one.arrived is None for one in sent) == measured["dropped"] > 0


@pytest.mark.parametrize("part", LOSSY)
def test_every_byte_has_a_kind_and_a_layer(lossy, part):
    folder = lossy.cell(f"cnr-10-{part}-")
    summary, messages = pcap.known(folder), pd.read_csv(folder / "messages.csv")
    assert sum(each["bytes"] for each in summary["kinds"].values()) == summary["wire_bytes"]
    assert sum(summary["layers"].values()) == summary["wire_bytes"]
    assert min(summary["layers"].values()) >= 0
    delivered = int(messages.received_ns.notna().sum())
    first_copies = summary["layers"]["payload"] // 150  # up for every message, and down for those that came so far
    assert len(messages) + delivered <= first_copies <= 2 * len(messages)
    assert summary["kinds"]["data"]["packets"] >= len(messages)


@pytest.mark.parametrize("part", TYPES)
def test_pyshark_counts_the_same_messages(lossy, part):
    cell = cells.load(lossy.cell(f"cnr-10-{part}-"))
    path = cell.folder / "client-side.pcap"
    bulk = list(dissect(path, cell.protocol))
    with inspect.opened(path, cell.protocol) as packets:
        assert [packet for _, packet in packets] == bulk
    layer, field, names = TYPES[part]
    counted = Counter()
    with pyshark.FileCapture(str(path), custom_parameters=options(cell.protocol), keep_packets=False) as capture:
        for packet in capture:
            counted.update(names.get(one.get_field(field)) for one in packet.get_multiple_layers(layer))
    ours = Counter(pdu.name for packet in bulk for pdu in packet.pdus)
    assert {name: ours[name] for name in names.values()} == {name: counted[name] for name in names.values()}
    assert ours["PUBLISH"] or ours["ODATA"]


def inspected(*words):
    command = [sys.executable, "-m", "testbed.cli", "inspect", *map(str, words)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)


def test_inspect_prints_what_the_filter_lets_through(lossy):
    folder = lossy.cell("cnr-10-mqtt-qos2-")
    done = inspected(folder, "--filter", "mqtt.msgtype == 3 && ip.src == 198.18.0.2")
    lines = done.stdout.splitlines()[1:]
    assert done.returncode == 0, done.stderr
    assert [line.split()[3:6] for line in lines] == [["publisher-01", "→", "server"]] * len(lines)
    assert len({line.split("message ")[1] for line in lines}) == 5
    assert "PUBLISH testbed/unit-01 QoS 2 id 1, message 1 of publisher-01" in lines[0]
    assert any(line.split()[1] == "lost" for line in inspected(folder).stdout.splitlines())


def test_inspect_says_what_is_wrong_in_one_line(lossy, tmp_path):
    no_filter = inspected(lossy.cell("cnr-10-mqtt-qos2-"), "--filter", "mqtt.nonsense == 1")
    assert (no_filter.returncode, no_filter.stdout) == (2, "")
    assert no_filter.stderr.startswith("FILTER: 'mqtt.nonsense == 1': ")
    assert "field" in no_filter.stderr
    no_cell = inspected(tmp_path)
    assert (no_cell.returncode, len(no_cell.stderr.splitlines())) == (2, 1)
    assert "CELL" in no_cell.stderr


def test_captures_that_cannot_be_read_are_a_problem_that_is_told(lan):
    folder = lan.cell("lan")
    for name in ("packets.json", "wire.csv"):
        (folder / name).unlink()
    (folder / "client-side.pcap").write_bytes(b"no capture")
    pcap.analyse_run(lan.folder)
    assert "not a pcapng file" in pcap.known(folder)["problem"]
    done = subprocess.run(["make", "report", f"RUN={lan.folder}"], cwd=PROJECT, capture_output=True, check=False)
    assert done.returncode == 0
    assert "its captures could not be analysed" in (lan.folder / "report.html").read_text()
