"""What the packets of a cell were for, and what their bytes were: each packet once, as it was sent.

What a channel lost is counted, and what it sent again. Before *go* nothing is data: what looks like it is start-up's.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from analysis.pcap.legs import CARRIES, Packet
from clients import chunks, payloads
from clients.packets import Kind

LAYERS = ("Ethernet", "IP", "transport", "sent again", "protocol", "payload")
_ETHERNET = 14  # bytes of header (IEEE 802.3); the check sequence and preamble are not on an emulated wire
_CHUNK_HEADER = chunks.SMALLEST - 1
_ORDER = list(Kind)


def kind_of(packet: Packet, go: int) -> Kind | None:
    """What a packet is for: of several messages in it, the one that matters most.

    A segment that is sent again, or a datagram marked so, is a retransmission whatever it carries. None: the packet holds a
    part of a message that ends later.
    """
    segment, pdus = packet.seen.segment, packet.seen.pdus
    if segment and segment.opens_or_closes:
        return Kind.TCP_HANDSHAKE
    if (segment and segment.again) or (pdus and all(pdu.duplicate for pdu in pdus)):
        return Kind.RETRANSMISSION
    if pdus:
        kind = min((pdu.kind for pdu in pdus), key=_ORDER.index)
        return Kind.HANDSHAKE if kind == Kind.DATA and packet.crossing.sent < go else kind
    if segment:
        return None if packet.seen.carried else Kind.TCP_ACKNOWLEDGEMENT
    return Kind.OTHER


def kinds(packets: list[Packet], go: int) -> list[Kind]:
    """The kind of every packet. A segment without a message of its own is of the kind of the message that it is part of."""
    found = [kind_of(packet, go) for packet in packets]
    for number, packet in enumerate(packets):
        if packet.seen.segment and found[number] is not None:
            for part in packet.seen.segment.earlier:
                found[part] = found[part] or found[number]
    return [kind or Kind.OTHER for kind in found]


def _payload_bytes(packet: Packet, run_tag: str, size: int) -> int:
    """Bytes of the testbed's messages in a packet (or that end in it)."""
    total = 0
    for pdu in packet.seen.pdus:
        if pdu.kind not in CARRIES:
            continue
        headers = [start for header, start in payloads.locate(pdu.payload) if header.run == run_tag]
        if chunks.identify(pdu.payload):
            total += len(pdu.payload) - _CHUNK_HEADER
        elif headers:
            total += sum(min(size, len(pdu.payload) - start) for start in headers)
        elif pdu.span:  # the rest of a message that began in an earlier datagram
            total += len(pdu.payload)
    return total


def layers(packets: Iterable[Packet], kind: Iterable[Kind], run_tag: str, size: int, go: int) -> dict[str, int]:
    """Bytes on the wire by what they are; they add up to all of them. `size` is that of a message."""
    total: Counter[str] = Counter()
    for packet, each in zip(packets, kind, strict=True):
        seen = packet.seen
        total["Ethernet"] += _ETHERNET
        total["IP"] += seen.ip_header
        total["transport"] += seen.transport_header
        again = each in (Kind.RETRANSMISSION, Kind.REPAIR)
        payload = 0 if again or packet.crossing.sent < go else _payload_bytes(packet, run_tag, size)
        total["sent again"] += seen.carried if again else 0
        total["payload"] += payload
        total["protocol"] += 0 if again else seen.carried - payload
        total["protocol"] += seen.length - _ETHERNET - seen.ip_header - seen.transport_header - seen.carried  # padding
    return {name: total[name] for name in LAYERS}


def count(packets: list[Packet], run_tag: str, size: int, go: int) -> dict[str, Any]:
    """Packets and bytes by kind, messages of the protocol by name, bytes by layer, and what TCP did again."""
    of_packet = kinds(packets, go)
    by_kind = {kind: {"packets": 0, "bytes": 0} for kind in dict.fromkeys(Kind) if kind in of_packet}
    for packet, kind in zip(packets, of_packet, strict=True):
        by_kind[kind]["packets"] += 1
        by_kind[kind]["bytes"] += packet.seen.length
    segments = [packet.seen.segment for packet in packets if packet.seen.segment]
    return {
        "packets": len(packets),
        "wire_bytes": sum(packet.seen.length for packet in packets),
        "wire_bytes_from_go": sum(packet.seen.length for packet in packets if packet.crossing.sent >= go),
        "not_arrived": sum(packet.crossing.arrived is None for packet in packets),
        "kinds": by_kind,
        "names": dict(Counter(pdu.name for packet in packets for pdu in packet.seen.pdus).most_common()),
        "layers": layers(packets, of_packet, run_tag, size, go),
        "duplicates": sum(pdu.duplicate for packet in packets for pdu in packet.seen.pdus),
        "tcp": {"segments": len(segments), "retransmissions": sum(segment.again for segment in segments)},
    }
