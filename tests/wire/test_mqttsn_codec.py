"""MQTT-SN 1.2 on the wire: exact bytes, round trips, malformed datagrams, and what Wireshark makes of every message."""

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.mqttsn.codec import (
    PACKETS,
    Advertise,
    Connect,
    ConnectAck,
    Disconnect,
    GatewayInfo,
    Malformed,
    PingRequest,
    PingResponse,
    Publish,
    PublishAck,
    PublishComplete,
    PublishReceived,
    PublishRelease,
    Register,
    RegisterAck,
    SearchGateway,
    Subscribe,
    SubscribeAck,
    Unsubscribe,
    UnsubscribeAck,
    WillMessage,
    WillMessageRequest,
    WillMessageResponse,
    WillMessageUpdate,
    WillTopic,
    WillTopicRequest,
    WillTopicResponse,
    WillTopicUpdate,
    decode,
)
from clients.mqttsn.fields import Flags, Packet, ReturnCode, TopicKind

ACCEPTED = ReturnCode.ACCEPTED

# Bytes written by hand from the tables of sections 5.2 to 5.4.
EXACT: list[tuple[Packet, str]] = [
    (Advertise(1, 900), "05 00 01 0384"),
    (SearchGateway(0), "03 01 00"),
    (GatewayInfo(1, b""), "03 02 01"),
    (Connect(Flags(clean_session=True), 1, 600, "publisher-01"), "12 04 04 01 0258 7075626c69736865722d3031"),
    (Connect(Flags(will=True), 1, 600, "c"), "07 04 08 01 0258 63"),
    (ConnectAck(ReturnCode.CONGESTION), "03 05 01"),
    (WillTopicRequest(), "02 06"),
    (WillTopic(Flags(qos=1, retain=True), "w"), "04 07 30 77"),
    (WillTopic(None, ""), "02 07"),
    (WillMessageRequest(), "02 08"),
    (WillMessage(b"bye"), "05 09 627965"),
    (Register(0, 7, "a/b"), "09 0a 0000 0007 612f62"),
    (RegisterAck(513, 7, ACCEPTED), "07 0b 0201 0007 00"),
    (Publish(Flags(), 513, 0, b"x"), "08 0c 00 0201 0000 78"),
    (Publish(Flags(qos=1, dup=True), 513, 7, b"x"), "08 0c a0 0201 0007 78"),
    (Publish(Flags(qos=2), 513, 7, b"x"), "08 0c 40 0201 0007 78"),
    (Publish(Flags(qos=-1, topic_kind=TopicKind.PREDEFINED), 3, 0, b"x"), "08 0c 61 0003 0000 78"),
    (Publish(Flags(topic_kind=TopicKind.SHORT), 0x6162, 0, b"x"), "08 0c 02 6162 0000 78"),
    (Publish(Flags(), 1, 0, bytes(248)), "ff 0c 00 0001 0000" + "00" * 248),
    (Publish(Flags(), 1, 0, bytes(249)), "01 0102 0c 00 0001 0000" + "00" * 249),
    (PublishAck(513, 7, ReturnCode.INVALID_TOPIC_ID), "07 0d 0201 0007 02"),
    (PublishComplete(7), "04 0e 0007"),
    (PublishReceived(7), "04 0f 0007"),
    (PublishRelease(7), "04 10 0007"),
    (Subscribe(Flags(qos=1), 7, b"a/#"), "08 12 20 0007 612f23"),
    (Subscribe(Flags(topic_kind=TopicKind.PREDEFINED), 7, b"\x00\x03"), "07 12 01 0007 0003"),
    (SubscribeAck(Flags(qos=2), 513, 7, ACCEPTED), "08 13 40 0201 0007 00"),
    (Unsubscribe(Flags(), 7, b"a/#"), "08 14 00 0007 612f23"),
    (UnsubscribeAck(7), "04 15 0007"),
    (PingRequest(""), "02 16"),
    (PingRequest("c"), "03 16 63"),
    (PingResponse(), "02 17"),
    (Disconnect(None), "02 18"),
    (Disconnect(60), "04 18 003c"),
    (WillTopicUpdate(Flags(), "w"), "04 1a 00 77"),
    (WillTopicResponse(ACCEPTED), "03 1b 00"),
    (WillMessageUpdate(b"bye"), "05 1c 627965"),
    (WillMessageResponse(ReturnCode.NOT_SUPPORTED), "03 1d 03"),
]


@pytest.mark.parametrize(("packet", "wire"), EXACT, ids=lambda value: str(value)[:60])
def test_exact_bytes(packet: Packet, wire: str) -> None:
    assert packet.encode() == bytes.fromhex(wire)
    assert decode(bytes.fromhex(wire)) == packet


def test_examples_cover_every_message() -> None:
    assert {type(packet) for packet, _ in EXACT} == set(PACKETS.values())


flags = st.builds(
    Flags,
    dup=st.booleans(),
    qos=st.integers(-1, 2),
    retain=st.booleans(),
    will=st.booleans(),
    clean_session=st.booleans(),
    topic_kind=st.sampled_from(TopicKind),
)
word = st.integers(0, 65535)
packets = st.one_of(
    st.builds(Publish, flags, word, word, st.binary(max_size=2000)),
    st.builds(Subscribe, flags, word, st.binary(max_size=300)),
    st.builds(Register, word, word, st.text(max_size=100)),
    st.builds(SubscribeAck, flags, word, word, st.sampled_from(ReturnCode)),
    st.builds(Connect, flags, st.integers(0, 255), word, st.text(max_size=23)),
    st.builds(Disconnect, st.none() | word),
)


@given(packets)
def test_round_trip(packet: Packet) -> None:
    assert decode(packet.encode()) == packet


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_malformed(datagram: bytes) -> None:
    try:
        packet = decode(datagram)
    except Malformed:
        return
    assert decode(packet.encode()) == packet


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("", "no message"),
        ("02", "no message"),
        ("01 0004", "no message"),
        ("03 16", "its length says 3"),
        ("02 16 63", "its length says 2"),
        ("02 03", "type 0x03 is unknown"),
        ("02 05", "code is missing"),
        ("04 05 00 00", "1 octets too many"),
        ("03 05 04", "not a valid ReturnCode"),
        ("08 0c 03 0201 0000 78", "not a valid TopicKind"),
        ("07 0a 0000 0007 ff", "can't decode"),
        ("03 18 00", "duration is missing"),
    ],
)
def test_malformed(wire: str, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        decode(bytes.fromhex(wire))


def _frame(payload: bytes) -> bytes:
    """A record of a PCAP file with an IPv4 packet (link type RAW), checksums left at 0."""
    udp = struct.pack(">HHHH", 1883, 1883, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + udp
    return struct.pack("<IIII", 0, 0, len(ip), len(ip)) + ip


def test_wireshark_reads_every_message(tmp_path: Path) -> None:
    # Section 5.4.7 allows a WILLTOPIC without flags and topic; Wireshark does not know that.
    packets = [packet for packet, _ in EXACT if packet != WillTopic(None, "")]
    capture = tmp_path / "all.pcap"
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    capture.write_bytes(header + b"".join(_frame(packet.encode()) for packet in packets))
    fields = ["mqttsn.msg.type", "mqttsn.msg.len", "mqttsn.msg.id", "mqttsn.topic.id", "_ws.malformed"]
    words = ["tshark", "-r", str(capture), "-d", "udp.port==1883,mqttsn", "-T", "fields"]
    words += [word for field in fields for word in ("-e", field)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(packets)
    for packet, line in zip(packets, lines, strict=True):
        kind, length, message_id, topic_id, malformed = line.split("\t")
        assert (int(kind, 0), int(length), malformed) == (packet.TYPE, len(packet.encode()), ""), packet
        if message_id:
            assert int(message_id, 0) == getattr(packet, "message_id", None), packet
        if topic_id and not isinstance(packet, Subscribe):
            assert int(topic_id, 0) == getattr(packet, "topic_id", None), packet
