"""pcapng files (draft-ietf-opsawg-pcapng) from tcpdump's raw captures: one file for each side of the channel."""

import heapq
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_PCAP_NANO = 0xA1B23C4D  # pcap's magic number with nanosecond stamps, in the writer's byte order
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6  # pcapng block types
_COMMENT, _APPLICATION, _NAME, _DESCRIPTION, _RESOLUTION = 1, 4, 2, 3, 9  # pcapng option codes


@dataclass(frozen=True)
class Interface:
    """Where packets were seen: the device's name, what it shows, and its host."""

    name: str
    shows: str
    host: str = "server"


@dataclass(frozen=True)
class Packet:
    """One captured packet: ns since the epoch, number of its interface, original length, bytes."""

    time: int
    interface: int
    length: int
    data: bytes


def read_pcap(path: Path, interface: int) -> Iterator[Packet]:
    """The packets of a classic nanosecond PCAP; a record cut short at the end of the file is left out."""
    with path.open("rb") as file:
        header = file.read(24)
        if len(header) < 24 or struct.unpack("=I", header[:4])[0] != _PCAP_NANO:
            raise ValueError(f"{path}: not a PCAP with nanosecond stamps in this machine's byte order")
        while len(record := file.read(16)) == 16:
            seconds, nanoseconds, captured, length = struct.unpack("=IIII", record)
            data = file.read(captured)
            if len(data) < captured:
                return
            yield Packet(seconds * 10**9 + nanoseconds, interface, length, data)


def read_pcapng(path: Path) -> Iterator[Packet]:
    """The packets of a file that bring_together() wrote. Raises ValueError if it is another kind of file."""
    data = path.read_bytes()
    if data[:4] != struct.pack("=I", _SECTION):
        raise ValueError(f"{path}: not a pcapng file in this machine's byte order")
    offset = 0
    while offset + 12 <= len(data):
        kind, size = struct.unpack_from("=II", data, offset)
        if kind == _PACKET:
            interface, high, low, captured, length = struct.unpack_from("=IIIII", data, offset + 8)
            yield Packet(high << 32 | low, interface, length, data[offset + 28 : offset + 28 + captured])
        offset += size


def write_pcap(path: Path, packets: Iterable[Packet]) -> None:
    """A classic nanosecond PCAP, the opposite of read_pcap()."""
    with path.open("wb") as file:
        file.write(struct.pack("=IHHiIII", _PCAP_NANO, 2, 4, 0, 0, 262144, 1))  # version 2.4, snap length, Ethernet
        for packet in packets:
            file.write(struct.pack("=IIII", *divmod(packet.time, 10**9), len(packet.data), packet.length))
            file.write(packet.data)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


def _options(*options: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack("=HH", code, len(value)) + _pad(value) for code, value in options) + bytes(4)


@dataclass
class Totals:
    """Packets that carry IP, and their bytes with the Ethernet header."""

    packets: int = 0
    bytes: int = 0

    def counting(self, packets: Iterator[Packet]) -> Iterator[Packet]:
        """The same packets, counted as they pass."""
        for packet in packets:
            if packet.data[12:14] == b"\x08\x00":  # EtherType IPv4
                self.packets += 1
                self.bytes += packet.length
            yield packet


def _write(file: BinaryIO, interfaces: list[Interface], packets: Iterator[Packet], comment: str) -> None:
    section = struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1)
    file.write(_block(_SECTION, section + _options((_COMMENT, comment.encode()), (_APPLICATION, b"pubsub-testbed"))))
    for interface in interfaces:
        body = struct.pack("=HHI", 1, 0, 0)  # link type Ethernet, no snap length
        name = f"{interface.host} {interface.name}: {interface.shows}"
        names = ((_NAME, name.encode()), (_DESCRIPTION, interface.shows.encode()))
        file.write(_block(_INTERFACE, body + _options(*names, (_RESOLUTION, b"\x09"))))
    for packet in packets:
        stamp = struct.pack("=II", packet.time >> 32, packet.time & 0xFFFFFFFF)
        head = struct.pack("=I", packet.interface) + stamp + struct.pack("=II", len(packet.data), packet.length)
        file.write(_block(_PACKET, head + _pad(packet.data)))


def bring_together(sources: list[tuple[Interface, Path]], target: Path, comment: str) -> Totals:
    """Write the packets of several raw captures into one pcapng, in the order of their stamps, and count them."""
    totals = Totals()
    streams = [read_pcap(path, number) for number, (_, path) in enumerate(sources)]
    packets = totals.counting(heapq.merge(*streams, key=lambda packet: packet.time))
    with target.open("wb") as file:
        _write(file, [interface for interface, _ in sources], packets, comment)
    return totals
