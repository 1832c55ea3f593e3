"""The bulk path: tshark's field output of a capture, a packet a line."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clients.packets import Dissection, Fields, Pdu
from clients.protocol import Protocol
from testbed import commands

_LUA = Path(__file__).resolve().parent.parent

# In a capture of what was sent nothing is out of order: a segment that tshark calls so has been sent before.
_SENT_AGAIN = ("tcp.analysis.retransmission", "tcp.analysis.out_of_order")
_COMMON = (
    *("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ip.proto", "ip.len", "ip.hdr_len"),
    *("tcp.stream", "tcp.seq", "tcp.len", "tcp.hdr_len", "tcp.flags", "tcp.segment", "udp.length"),
    *_SENT_AGAIN,
)
_UNASKED = [  # what tshark works out for every packet, and nobody asks for
    word
    for name in ("tcp.calculate_timestamps", "tcp.track_bytes_in_flight", "udp.calculate_timestamps")
    for word in ("-o", f"{name}:FALSE")
]
_TCP, _UDP = 6, 17  # IP protocol numbers (IANA)
_NAMES = {1: "ICMP", 2: "IGMP", _TCP: "TCP", _UDP: "UDP"}
_SYN_FIN_RST = 0x7
_UDP_HEADER = 8  # bytes (RFC 768)


@dataclass(frozen=True)
class Segment:
    """The TCP part of a packet: its stream, the bytes it holds as offsets in that stream and direction."""

    stream: int
    start: int
    end: int
    flags: int
    again: bool
    earlier: tuple[int, ...]
    """Positions in the capture of the packets with the beginning of the message that this one completes."""

    @property
    def opens_or_closes(self) -> bool:
        """Whether it has SYN, FIN or RST."""
        return bool(self.flags & _SYN_FIN_RST)


@dataclass(frozen=True)
class Dissected:
    """One IPv4 packet: ns since the epoch, lengths in bytes. `protocol`: of its messages, or of its transport."""

    time: int
    length: int
    source: str
    target: str
    ip_header: int
    protocol: str
    transport_header: int
    carried: int
    """Bytes that the transport carries."""
    segment: Segment | None
    pdus: list[Pdu]


def options(protocol: Protocol) -> list[str]:
    """What tshark must be told to dissect a protocol's packets, whatever else it would take them for."""
    scripts = dict.fromkeys(one.script for one in protocol.dissections if one.script)
    words = [word for script in scripts for word in ("-X", f"lua_script:{_LUA / script}")]
    return words + [word for rule in protocol.decode_as for word in ("-d", rule)]


def _nanoseconds(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def _segment(fields: Fields) -> Segment:
    start, length = int(fields["tcp.seq"][0]), int(fields["tcp.len"][0])
    return Segment(
        int(fields["tcp.stream"][0]),
        start,
        start + length,
        int(fields["tcp.flags"][0], 0),
        any(name in fields for name in _SENT_AGAIN),
        tuple(int(number) - 1 for number in fields.get("tcp.segment", ())),
    )


def dissected(fields: Fields, dissections: Iterable[Dissection]) -> Dissected:
    """A packet from its fields. ICMP repeats the beginning of another packet: of that are all but a field's first value."""
    transport = int(fields["ip.proto"][0])
    segment = _segment(fields) if transport == _TCP and "tcp.seq" in fields else None
    ip_header, header = int(fields["ip.hdr_len"][0]), 0
    if segment:
        header = int(fields["tcp.hdr_len"][0])
    elif transport == _UDP:
        header = _UDP_HEADER
    found = [(one.name, one.pdus(fields)) for one in dissections] if transport in (_TCP, _UDP) else []
    return Dissected(
        time=_nanoseconds(fields["frame.time_epoch"][0]),
        length=int(fields["frame.len"][0]),
        source=fields["ip.src"][0],
        target=fields["ip.dst"][0],
        ip_header=ip_header,
        protocol=next((name for name, pdus in found if pdus), _NAMES.get(transport, f"IP protocol {transport}")),
        transport_header=header,
        carried=int(fields["ip.len"][0]) - ip_header - header,
        segment=segment,
        pdus=[pdu for _, pdus in found for pdu in pdus],
    )


def dissect(path: Path, protocol: Protocol) -> Iterator[Dissected]:
    """The IPv4 packets of a capture, by one run of tshark that knows nothing of the user's own settings."""
    names = list(dict.fromkeys((*_COMMON, *(name for one in protocol.dissections for name in one.fields))))
    words = ["tshark", "-n", "-r", str(path), *options(protocol), *_UNASKED, "-T", "fields", "-E", "aggregator=;"]
    with tempfile.TemporaryDirectory(prefix="testbed-") as empty:
        text = commands.run(
            [*words, *(word for name in names for word in ("-e", name))], env={"WIRESHARK_CONFIG_DIR": empty}
        )
    for line in text.splitlines():
        values = zip(names, line.split("\t"), strict=True)
        fields = {name: value.split(";") for name, value in values if value}
        if "ip.proto" in fields:
            yield dissected(fields, protocol.dissections)
