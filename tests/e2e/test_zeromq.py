"""ZeroMQ over TCP, PGM and NORM, each a small cell in the guest, and what tshark makes of its packets."""

import hashlib
import ipaddress
import json
import re

import pytest
from runs import run

from clients import registry
from testbed import commands
from testbed.places import PROJECT

LUA = sorted((PROJECT / "analysis").glob("*.lua"))
PROTOCOLS = ("zmq-tcp", "zmq-pgm", "zmq-norm")
MULTICAST = ("zmq-pgm", "zmq-norm")
CLIENTS, MESSAGES, SIZE = 2, 3, 150
SATCOM_MS = 550 + SIZE * 8 / 250  # the channel's delay, and its time to send the payload alone
SMALL = {"profile": "satcom", "payload": "gps", "clients": CLIENTS, "messages": MESSAGES, "seed": 7}


@pytest.fixture(scope="module")
def satcom(out):
    return run(out, **SMALL, protocol=",".join(PROTOCOLS))


def facts(folder):
    return json.loads((folder / "cell.json").read_text())


def packets(pcap, display_filter, *fields, decode_as=()):
    words = ["tshark", "-r", str(pcap), "-Y", display_filter, "-T", "fields"]
    words += [word for script in LUA for word in ("-X", f"lua_script:{script}")]
    words += [word for rule in decode_as for word in ("-d", rule)]
    words += [word for name in fields for word in ("-e", name)]
    return [line.split("\t") for line in commands.run(words).splitlines()]


def passed(folder, ifb):
    channel = facts(folder)["channel"]
    return channel["after"][ifb]["packets"] - channel["before"][ifb]["packets"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_is_lost_and_delays_are_the_channels(satcom, protocol):
    assert satcom.code == 0, satcom.output
    (row,) = satcom.summary[satcom.summary.protocol == protocol].to_dict("records")
    assert (row["ready_publishers"], row["ready_subscribers"]) == (CLIENTS, CLIENTS)
    assert (row["sent"], row["delivered"], row["duplicates"]) == (CLIENTS * MESSAGES, CLIENTS * MESSAGES, 0)
    assert SATCOM_MS < row["delay_median_ms"] < 600
    assert row["delay_mean_ms"] < 700


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_channel_is_idle_when_publishing_begins(satcom, protocol):
    before = facts(satcom.cell(protocol))["channel"]["before"]["ifb-up"]
    assert before["packets"] > 0
    assert before["backlog"] * 8 / 250_000 < 0.02, "seconds of traffic in the queue"


@pytest.mark.parametrize("protocol", MULTICAST)
def test_uplink_multicast_crosses_the_channel(satcom, protocol):
    folder = satcom.cell(protocol)
    multicast = "ip.dst == 239.192.0.0/14 && ip.src != 198.18.0.1 && udp"
    assert passed(folder, "ifb-up") >= CLIENTS * MESSAGES
    before, after = (
        {
            fields[1]: float(fields[0])
            for fields in packets(folder / f"{side}.pcap", multicast, "frame.time_epoch", "data")
        }
        for side in ("client-side", "server-side")
    )
    crossed = [after[data] - before[data] for data in before if b'{"run"' in bytes.fromhex(data) and data in after]
    assert len(crossed) >= CLIENTS * MESSAGES
    assert min(crossed) > 0.55


@pytest.mark.parametrize("protocol", MULTICAST)
def test_downlink_multicast_crosses_it_if_asked(out, protocol):
    both = run(out, **SMALL, protocol=protocol, channel="both")
    assert both.code == 0, both.output
    assert passed(both.cell(protocol), "ifb-down") >= CLIENTS * MESSAGES
    assert both.summary.delay_median_ms[0] > 2 * SATCOM_MS


def test_over_tcp_the_forwarder_filters(satcom):
    """Each subscriber's host gets its own publisher's messages from the server, and no other's."""
    pcap = satcom.cell("zmq-tcp") / "client-side.pcap"
    seen = {}
    for host, payload in packets(pcap, "tcp.srcport == 5557 && tcp.len > 0", "ip.dst", "tcp.payload"):
        for publisher in re.findall(rb'"pub":(\d+)', bytes.fromhex(payload)):
            seen.setdefault(host, set()).add(int(publisher))
    first = ipaddress.IPv4Address("198.18.0.1") + CLIENTS + 1  # server, publishers, subscribers
    assert seen == {str(first + number - 1): {number} for number in range(1, CLIENTS + 1)}


def dissected(folder, protocol, condition):
    """Numbers of the frames for which `condition` holds when tshark is told the protocol's ports."""
    rules = registry.get(protocol).decode_as
    return {
        int(fields[0]) for fields in packets(folder / "client-side.pcap", condition, "frame.number", decode_as=rules)
    }


def test_tshark_dissects_every_zmtp_packet(satcom):
    folder = satcom.cell("zmq-tcp")
    carrying = dissected(folder, "zmq-tcp", "tcp.len > 0")
    assert carrying == dissected(folder, "zmq-tcp", "zmtp || tcp.segment_data")
    assert not dissected(folder, "zmq-tcp", "_ws.malformed || _ws.lua.error || zmtp.bad")
    messages = dissected(folder, "zmq-tcp", 'zmtp.flags == 0 && zmtp.body contains "\\"run\\""')
    assert len(messages) == 2 * CLIENTS * MESSAGES


def test_tshark_dissects_every_pgm_packet(satcom):
    folder = satcom.cell("zmq-pgm")
    requests = dissected(folder, "zmq-pgm", "udp.length == 24 && udp.payload[4] == 0c")
    assert dissected(folder, "zmq-pgm", "pgm_spmr") == requests
    assert dissected(folder, "zmq-pgm", "udp") == dissected(folder, "zmq-pgm", "pgm || pgm_spmr")
    assert not dissected(folder, "zmq-pgm", "_ws.malformed")
    assert len(dissected(folder, "zmq-pgm", 'pgm.hdr.type == 4 && udp contains "\\"run\\""')) == 2 * CLIENTS * MESSAGES


def test_tshark_takes_every_norm_packet_for_one(satcom):
    """It calls DATA malformed, for it does not know the payload id of FEC encoding 5 (RFC 5510)."""
    folder = satcom.cell("zmq-norm")
    assert dissected(folder, "zmq-norm", "udp") == dissected(folder, "zmq-norm", "norm.version == 1")
    assert dissected(folder, "zmq-norm", "_ws.malformed") <= dissected(folder, "zmq-norm", "norm.type == 2")


def test_the_plan_shows_what_was_derived(satcom):
    (cell,) = [cell for cell in satcom.manifest["plan"]["cells"] if cell["protocol"] == "zmq-pgm"]
    assert cell["parameters"]["uplink_rate"] == 250_000
    assert cell["servers"]["zmq-pgm-forwarder"]["recovery_ivl"] == cell["parameters"]["recovery_ivl"] > 8 * 10**9


def test_the_same_seed_gives_the_same_bytes_also_where_packets_are_lost(out):
    lossy = SMALL | {"profile": "cnr-10", "messages": 5, "protocol": ",".join(PROTOCOLS)}

    def digests(seed):
        result = run(out, **lossy | {"seed": seed})
        assert result.code == 0, result.output
        return {
            (protocol, name): hashlib.sha256((result.cell(protocol) / name).read_bytes()).hexdigest()
            for protocol in PROTOCOLS
            for name in ("messages.csv", "client-side.pcap")
        }

    first = digests(7)
    assert digests(7) == first
    assert digests(8)["zmq-pgm", "messages.csv"] != first["zmq-pgm", "messages.csv"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_images_arrive(out, protocol):
    image = run(out, profile="satcom", payload="image", protocol=protocol, clients=1, messages=2)
    assert image.code == 0, image.output
    assert image.summary.delivered[0] == 2
    assert image.summary.delay_mean_ms[0] > 550 + 50_000 * 8 / 250
