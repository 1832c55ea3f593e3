"""The parts of the PCAP analysis that can be seen without a run: matching, TCP's order, several messages in a packet."""

import struct

import pytest

from analysis.pcap.crossings import Crossing, read
from analysis.pcap.dissect import Segment, dissected
from analysis.pcap.legs import Packet, Streams
from clients import chunks, mqtt, payloads
from clients.mqtt_packets import DISSECTION
from clients.packets import Kind
from testbed import pcapng

SERVER, CLIENT = bytes([198, 18, 0, 1]), bytes([198, 18, 0, 2])
TCP, UDP = 6, 17


def frame(source, protocol, transport):
    target = CLIENT if source == SERVER else SERVER
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(transport), 0, 0, 64, protocol, 0, source, target)
    return bytes(12) + b"\x08\x00" + header + transport


def datagram(source, data, checksum=0):
    return frame(source, UDP, struct.pack(">HHHH", 1883, 1883, 8 + len(data), checksum) + data)


def segment(source, sequence, data, checksum=0):
    return frame(source, TCP, struct.pack(">HHIIBBHHH", 1883, 5000, sequence, 0, 0x50, 0x10, 0, checksum, 0) + data)


def capture(path, *packets):
    """A capture as the testbed writes it, from stamps and frames."""
    raw = path.with_suffix(".raw")
    pcapng.write_pcap(raw, [pcapng.Packet(time, 0, len(data), data) for time, data in packets])
    pcapng.bring_together([(pcapng.Interface("eth0", ""), raw)], path, "")


def crossed(folder):
    return [(one.sent, one.arrived, one.uplink) for one in read(folder, SERVER)]


def test_packets_are_found_again_on_the_other_side(tmp_path):
    up = [datagram(CLIENT, b"%d" % number) for number in range(3)]
    down = datagram(SERVER, b"answer", checksum=0xBEEF)
    capture(tmp_path / "client-side.pcap", (10, up[0]), (11, up[1]), (12, up[2]), (30, down))
    capture(tmp_path / "server-side.pcap", (20, up[0]), (22, up[2]), (30, datagram(SERVER, b"answer")))
    assert crossed(tmp_path) == [(10, 20, True), (11, None, True), (12, 22, True), (30, 30, False)]


def test_packets_of_one_stamp_keep_the_order_of_the_client_side(tmp_path):
    answer, more = datagram(SERVER, b"answer"), datagram(CLIENT, b"more")
    capture(tmp_path / "client-side.pcap", (30, answer), (30, more))
    capture(tmp_path / "server-side.pcap", (30, answer), (80, more))
    assert crossed(tmp_path) == [(30, 30, False), (30, 80, True)]


def test_a_copy_that_the_channel_made_is_not_taken_for_the_next_of_its_like(tmp_path):
    same = datagram(CLIENT, b"ping")
    capture(tmp_path / "client-side.pcap", (10, same), (50, same))
    capture(tmp_path / "server-side.pcap", (20, same), (21, same), (60, same))
    assert crossed(tmp_path) == [(10, 20, True), (50, 60, True)]


def test_a_piece_that_is_cut_later_is_replaced_by_what_came_of_it(tmp_path):
    cut = [segment(SERVER, 2**32 - 3, b"abc"), segment(SERVER, 0, b"def")]
    capture(
        tmp_path / "server-side.pcap", (10, segment(SERVER, 2**32 - 3, b"abcdef")), (11, segment(SERVER, 3, b"lost"))
    )
    capture(tmp_path / "client-side.pcap", (20, cut[0]), (25, cut[1]))
    assert crossed(tmp_path) == [(10, 20, False), (10, 25, False), (11, None, False)]
    assert [one.packet.data for one in read(tmp_path, SERVER)][:2] == cut


def test_where_nothing_is_shaped_packets_arrive_as_they_are_sent(tmp_path):
    capture(tmp_path / "client-side.pcap", (10, datagram(CLIENT, b"a")), (11, datagram(SERVER, b"b")))
    assert crossed(tmp_path) == [(10, 10, True), (11, 11, False)]


def test_another_file_is_refused(tmp_path):
    (tmp_path / "client-side.pcap").write_bytes(bytes(64))
    with pytest.raises(ValueError, match="not a pcapng file"):
        read(tmp_path, SERVER)


def tcp(start, end, sent, arrived):
    fields = {
        "frame.time_epoch": ["0.000000001"],
        "frame.len": ["100"],
        "ip.src": ["198.18.0.2"],
        "ip.dst": ["198.18.0.1"],
        "ip.proto": ["6"],
        "ip.len": ["86"],
        "ip.hdr_len": ["20"],
        "tcp.stream": ["0"],
        "tcp.seq": [str(start)],
        "tcp.len": [str(end - start)],
        "tcp.hdr_len": ["32"],
        "tcp.flags": ["0x0010"],
    }
    return Packet(Crossing(sent, arrived, True, pcapng.Packet(sent, 0, 100, b"")), dissected(fields, [DISSECTION]))


def test_a_message_is_there_when_all_before_it_is():
    packets = [tcp(1, 11, 1, None), tcp(11, 21, 2, 5), tcp(21, 31, 3, 6), tcp(1, 11, 20, 23), tcp(31, 41, 30, 33)]
    streams = Streams(packets)
    assert streams.out_of_order == 2
    done = [streams.completed(packet.seen.segment, True) for packet in packets]
    assert [one.arrived for one in done] == [23, 23, 23, 23, 33]
    assert done[1].sent == 20


def test_what_never_came_whole_is_not_there():
    lost = [tcp(1, 11, 1, None), tcp(11, 21, 2, 5)]
    assert Streams(lost).completed(lost[1].seen.segment, True) is None
    assert Streams(lost).completed(Segment(7, 1, 2, 0, False, ()), True) is None


def test_fields_are_dealt_out_to_the_messages_of_a_packet_that_have_them():
    found = DISSECTION.pdus(
        {
            "mqtt.msgtype": ["4", "3", "6", "3", "12", "9"],
            "mqtt.msgid": ["7", "8", "9", "1"],
            "mqtt.topic": ["a", "b"],
            "mqtt.qos": ["0", "2"],
            "mqtt.dupflag": ["0", "1"],
            "mqtt.msg": ["6162", "63:64"],
        }
    )
    names = [(pdu.name, pdu.message_id, pdu.topic, pdu.qos, pdu.duplicate, pdu.payload) for pdu in found]
    assert names == [
        ("PUBACK", 7, "", None, False, b""),
        ("PUBLISH", None, "a", 0, False, b"ab"),
        ("PUBREL", 8, "", None, False, b""),
        ("PUBLISH", 9, "b", 2, True, b"cd"),
        ("PINGREQ", None, "", None, False, b""),
        ("SUBACK", 1, "", None, False, b""),
    ]
    assert [pdu.releases for pdu in found] == [False, False, True, False, False, False]
    assert found[1].kind == Kind.DATA
    assert mqtt.PROTOCOLS["mqtt"].dissections == (DISSECTION,)


@pytest.mark.parametrize(("kind", "size"), [("gps", 150), ("image", 50_000)])
def test_every_payload_in_packet_bytes_is_located(kind, size):
    messages = [payloads.Message("0a1b2c3d", 7, seq, 10**18, size, kind) for seq in (1, 2)]
    data = b"topic " + b"||".join(message.encode() for message in messages)
    found = list(payloads.locate(data))
    assert [(header.publisher, header.seq) for header, _ in found] == [(7, 1), (7, 2)]
    assert [data[start : start + size] for _, start in found] == [message.encode() for message in messages]


def test_a_chunk_tells_what_it_is_a_part_of():
    pieces = chunks.split(bytes(2500), 1000, publisher=3, seq=9)
    assert [chunks.identify(piece) for piece in pieces] == [(3, 9, index, 3) for index in range(3)]
    assert chunks.identify(b'{"run":"0a1b2c3d"') is None
