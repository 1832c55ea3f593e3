"""A tiny study of MQTT over satcom, its files held against each other."""

import pandas as pd
import pytest
from runs import run

from testbed import commands

HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with time stamps, bytes


@pytest.fixture(scope="module")
def satcom(out):
    return run(out, profile="satcom", payload="gps", protocol="mqtt", clients=3, messages=4, capture="publisher-02")


def packets(path, display_filter, *names):
    """Rows of tshark's fields; a packet that carries several MQTT messages gives several."""
    words = ["tshark", "-r", str(path), "-Y", display_filter, "-T", "fields", "-E", "aggregator=;"]
    lines = commands.run([*words, *(word for name in names for word in ("-e", name))]).splitlines()
    return [line.split("\t") for line in lines]


def publishes(path, direction):
    """Time (s) of each PUBLISH in a direction, by topic and payload."""
    rows = packets(path, f"mqtt.msgtype == 3 && tcp.{direction} == 1883", "frame.time_epoch", "mqtt.topic", "mqtt.msg")
    return {(topic, payload): float(time) for time, topic, payload in rows}


def test_every_cell_is_ok_and_delays_obey_physics(satcom):
    assert satcom.code == 0, satcom.output
    summary = satcom.summary.set_index("qos")
    assert (summary.status == "ok").all()
    assert (summary.loss_pct == 0).all()
    assert (summary.ready_publishers == 3).all()
    assert (summary.ready_subscribers == 3).all()
    assert summary.delay_mean_ms[[0, 1]].between(550, 575).all()
    assert 1650 < summary.delay_mean_ms[2] < 1710


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_captures_show_what_messages_csv_says(satcom, qos):
    cell = satcom.cell(f"qos{qos}")
    messages = pd.read_csv(cell / "messages.csv")
    sent, arrived = publishes(cell / "client-side.pcap", "dstport"), publishes(cell / "server-side.pcap", "dstport")
    assert len(sent) == len(arrived) == len(messages) == 12
    assert len(publishes(cell / "client-side.pcap", "srcport")) == messages.received_ns.notna().sum()
    for name, time in sent.items():
        frame = (
            150 + 2 + len(name[0]) + 2 + (2 if qos else 0) + HEADERS
        )  # PUBLISH: fixed header of 3 bytes for this size
        assert arrived[name] - time == pytest.approx(0.550 + (frame + 1) * 8 / 250_000, abs=5e-5)


def test_a_single_client_has_a_capture_of_its_own(satcom):
    addresses = {row[0] for row in packets(satcom.cell("qos1") / "publisher-02.pcap", "tcp", "ip.addr")}
    assert {part for pair in addresses for part in pair.split(";")} == {"198.18.0.1", "198.18.0.3"}


def test_the_manifest_holds_what_shaped_the_numbers(satcom):
    manifest = satcom.manifest
    assert manifest["clock"] == "virtual"
    assert manifest["plan"]["cells"][0]["parameters"]["keepalive"] == 600 * 10**9
    facts = next(iter(manifest["cells"].values()))
    assert any("netem limit 100000 delay 550000000ns rate 250000bit" in line for line in facts["channel"]["commands"])
    assert facts["channel"]["before"]["ifb-up"]["options"]["delay"]["delay"] == 0.55
    assert facts["capture"]["dropped"] == 0
    assert facts["servers"]["mosquitto"]


def test_both_directions_double_the_delay(out):
    both = run(out, profile="satcom", payload="gps", protocol="mqtt", clients=2, messages=2, channel="both", qos="0,2")
    assert both.summary.delay_mean_ms[0] == pytest.approx(1115, abs=15)
    assert both.summary.delay_mean_ms[1] == pytest.approx(3350, abs=50)


def test_the_channel_loses_what_the_profile_says(out):
    lossy = run(out, profile="cnr-10", payload="gps", protocol="mqtt", qos=1)
    (facts,) = lossy.manifest["cells"].values()
    measured = facts["channel"]["measured"]["ifb-up"]
    low, high = measured["loss_99_pct"]
    assert measured["packets"] > 1000
    assert low < 10 < high


def test_an_image_arrives_whole(out):
    image = run(out, profile="5g", payload="image", protocol="mqtt", qos=0, clients=2, messages=2)
    assert image.summary.loss_pct[0] == 0
    assert (
        24 < image.summary.delay_mean_ms[0] < 120
    )  # at least 20 ms and 50 kB at 100 Mbit/s; slow start adds round trips
