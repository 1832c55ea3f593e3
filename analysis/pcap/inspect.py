"""A cell's packets one by one, as pyshark reads them, for people. For many packets at once see dissect."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyshark
from rich.console import Console

from analysis.pcap import cells
from analysis.pcap.crossings import Crossing
from analysis.pcap.dissect import Dissected, dissected, options
from clients import chunks, payloads
from clients.packets import Pdu
from clients.protocol import Protocol
from testbed import commands
from testbed.errors import UserError
from testbed.pcapng import write_pcap


def _fields(packet: Any) -> dict[str, list[str]]:
    """The fields of a pyshark packet as `-T fields` would give them."""
    found: dict[str, list[str]] = {}
    for layer in (packet.frame_info, *packet.layers):
        for name, container in layer._all_fields.items():
            found.setdefault(name, []).extend(field.show for field in container.all_fields)
    return found


@contextmanager
def opened(path: Path, protocol: Protocol, display_filter: str = "") -> Iterator[Iterator[tuple[int, Dissected]]]:
    """The IPv4 packets of a capture that the filter lets through, with their positions in it, read by pyshark."""
    wanted = f"ip and ({display_filter})" if display_filter else "ip"
    capture = pyshark.FileCapture(
        str(path), display_filter=wanted, keep_packets=False, custom_parameters=["-n", *options(protocol)]
    )
    try:
        yield ((int(packet.number) - 1, dissected(_fields(packet), protocol.dissections)) for packet in capture)
    finally:
        capture.close()


def _check(display_filter: str, path: Path) -> None:
    try:
        commands.run(["tshark", "-r", str(path), "-c", "1", "-Y", display_filter])
    except commands.CommandError as error:
        words = " ".join(line.strip() for line in error.output.splitlines() if not line.startswith("Running as"))
        raise UserError(f"FILTER: {display_filter!r}: {words.removeprefix('tshark: ')}") from error


def describe(pdu: Pdu) -> str:
    """`PUBLISH testbed/unit-01 QoS 1 id 3, message 3 of publisher-01`."""
    words = [pdu.name, pdu.topic]
    words += [f"QoS {pdu.qos}"] if pdu.qos is not None else []
    words += [f"id {pdu.message_id}"] if pdu.message_id is not None else []
    words += [f"no. {pdu.span[0]}"] if pdu.span else []
    words += ["DUP"] if pdu.duplicate else []
    carried = [
        f"message {header.seq} of publisher-{header.publisher:02d}" for header, _ in payloads.locate(pdu.payload)
    ]
    if chunk := chunks.identify(pdu.payload):
        publisher, seq, index, count = chunk
        carried = [f"chunk {index + 1} of {count} of message {seq} of publisher-{publisher:02d}"]
    return ", ".join([" ".join(filter(None, words)), *carried])


_FLAGS = ((0x02, "SYN"), (0x01, "FIN"), (0x04, "RST"), (0x10, "ACK"))  # RFC 9293, section 3.1


def _what(packet: Dissected) -> str:
    words = [describe(pdu) for pdu in packet.pdus]
    segment = packet.segment
    if segment and not words:
        words = [name for bit, name in _FLAGS if segment.flags & bit]
        words += [f"{packet.carried} B of a message"] if packet.carried else []
    if segment and segment.again:
        words.append("sent again")
    return "; ".join(words)


@dataclass(frozen=True)
class Line:
    """One packet: seconds since *go*, who to whom, what, its length on the wire; ms over the channel, None if lost."""

    at_s: float
    source: str
    target: str
    protocol: str
    what: str
    length: int
    crossing_ms: float | None


def _line(packet: Dissected, crossing: Crossing, go: int, name_of: dict[str, str]) -> Line:
    took = None if crossing.arrived is None else (crossing.arrived - crossing.sent) / 1e6
    source, target = (name_of.get(address, address) for address in (packet.source, packet.target))
    at = (crossing.sent - go) / 1e9
    return Line(at, source, target, packet.protocol, _what(packet), packet.length, took)


def lines(folder: Path, display_filter: str = "") -> Iterator[Line]:
    """The packets of a cell in the order in which they were sent. Raises UserError for a filter that is none."""
    cell = cells.load(folder)
    crossed = cell.crossings()
    name_of = {address: name for name, address in cell.addresses.items()}
    with tempfile.TemporaryDirectory(prefix="testbed-") as scratch:
        sent = Path(scratch, "sent.pcap")
        write_pcap(sent, (one.packet for one in crossed))
        if display_filter:
            _check(display_filter, sent)
        with opened(sent, cell.protocol, display_filter) as packets:
            for position, packet in packets:
                yield _line(packet, crossed[position], cell.go, name_of)


def show(packets: Iterator[Line], console: Console) -> None:
    """Print packets, a line each, as they come."""
    for number, one in enumerate(packets):
        if not number:
            console.print(f"{'s since go':>14}  {'ms':>8}  {'B':>5}  packet", style="bold")
        took = "lost" if one.crossing_ms is None else f"{one.crossing_ms:.3f}"
        hosts = f"{one.source} → {one.target}"
        line = f"{one.at_s:14.6f}  {took:>8}  {one.length:5}  {hosts:27}  {one.protocol:7}  {one.what}"
        console.print(line, markup=False, soft_wrap=True)
