"""What a cell's two captures say together: each packet as it was sent, and when it came out of the channel.

A packet is the same on both sides but for its transport checksum (a packet that the server sends is mirrored before that
is worked out), so it needs no dissecting to be found again. Of packets alike, the first to come is taken for the first that
was sent. One that the channel corrupted is lost.

A TCP sender may hand its interface pieces of up to 64 kB (segmentation offload) that are cut after the first capture: the
packets that came of such a piece take its place.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from struct import unpack_from

from testbed.pcapng import Packet, read_pcapng

CLIENT_SIDE, SERVER_SIDE = "client-side.pcap", "server-side.pcap"
_IPV4 = b"\x08\x00"  # EtherType
_SOURCE = slice(26, 30)  # of the address in an Ethernet frame with IPv4
_IP, _PROTOCOL = 14, 23  # offsets in such a frame
_TCP = 6  # IP protocol number
_CHECKSUM = {_TCP: 16, 17: 6}  # offset in the header of TCP and UDP, by IP protocol number


@dataclass(frozen=True)
class Crossing:
    """One IPv4 packet. Times in ns since the epoch, `arrived` None if the channel lost it."""

    sent: int
    arrived: int | None
    uplink: bool
    packet: Packet


_Seen = tuple[int, Packet]
"""A packet and its position in its capture."""


def _directions(path: Path, server: bytes) -> tuple[list[_Seen], list[_Seen]]:
    """The IPv4 packets of a capture: those that go to the server, those that it sends."""
    up: list[_Seen] = []
    down: list[_Seen] = []
    for seen in enumerate(read_pcapng(path)):
        data = seen[1].data
        if data[12:14] == _IPV4:
            (down if data[_SOURCE] == server else up).append(seen)
    return up, down


def _constant(data: bytes) -> bytes:
    """The packet without its transport checksum."""
    offset = _CHECKSUM.get(data[_PROTOCOL])
    if offset is None:
        return data
    offset += _IP + 4 * (data[_IP] & 0xF)
    return data[:offset] + data[offset + 2 :]


_Place = tuple[bytes, int]
"""A TCP segment's addresses and ports, and its sequence number."""


def _segment(data: bytes) -> tuple[_Place, int] | None:
    """Where a TCP segment begins, and how many bytes it carries; None if it carries none or is something else."""
    if data[_PROTOCOL] != _TCP:
        return None
    header = _IP + 4 * (data[_IP] & 0xF)
    length, sequence = unpack_from(">H", data, _IP + 2)[0], unpack_from(">I", data, header + 4)[0]
    carried = _IP + length - header - 4 * (data[header + 12] >> 4)
    return ((data[_SOURCE.start : header + 4], sequence), carried) if carried else None


def _pieces(big: Packet, after: dict[_Place, list[_Seen]]) -> list[_Seen]:
    """The packets after the channel that one before it was cut into, taken out of `after`; none if some are missing."""
    begun = _segment(big.data)
    if begun is None:
        return []
    (flow, sequence), left = begun
    found: list[tuple[_Place, _Seen]] = []
    while left > 0:
        place = (flow, sequence % 2**32)
        seen = next((one for one in after.get(place, ()) if one[1].time >= big.time), None)
        segment = _segment(seen[1].data) if seen else None
        if seen is None or segment is None or segment[1] > left:
            return []
        found.append((place, seen))
        sequence, left = sequence + segment[1], left - segment[1]
    for place, seen in found:
        after[place].remove(seen)
    return [seen for _, seen in found]


def _matched(before: list[_Seen], after: list[_Seen]) -> Iterator[tuple[_Seen, _Seen | None]]:
    """Each packet before the channel, and after it; instead of one that was cut, what it was cut into."""
    waiting: dict[bytes, deque[_Seen]] = defaultdict(deque)
    for seen in after:
        waiting[_constant(seen[1].data)].append(seen)
    unmatched: list[_Seen] = []
    for seen in before:
        candidates = waiting[_constant(seen[1].data)]
        while candidates and candidates[0][1].time < seen[1].time:  # a copy of one sent before, which the channel made
            candidates.popleft()
        if candidates:
            yield seen, candidates.popleft()
        else:
            unmatched.append(seen)
    left: dict[_Place, list[_Seen]] = defaultdict(list)
    for seen in (one for candidates in waiting.values() for one in candidates):
        segment = _segment(seen[1].data)
        if segment:
            left[segment[0]].append(seen)
    for seen in unmatched:
        pieces = _pieces(seen[1], left)
        for piece in pieces:
            yield (seen[0], replace(piece[1], time=seen[1].time)), piece
        if not pieces:
            yield seen, None


def _in_order(matched: Iterable[tuple[_Seen, _Seen | None]], uplink: bool) -> Iterator[tuple[int, int, Crossing]]:
    """Each packet with the time it was sent and its place in the client-side capture (a lost one: that of those before)."""
    place = 0
    for sent, arrived in sorted(matched, key=lambda pair: pair[0][0]):
        at_client = sent if uplink else arrived
        place = max(place, at_client[0]) if at_client else place
        yield sent[1].time, place, Crossing(sent[1].time, arrived[1].time if arrived else None, uplink, sent[1])


def read(folder: Path, server: bytes) -> list[Crossing]:
    """All IPv4 packets of a cell in the order in which they were sent; `server` is its address, four bytes.

    Where nothing is shaped there is one capture, and a packet arrives as it is sent. Virtual time lets an answer have the
    stamp of what it answers: of packets of one stamp, the client-side capture tells the order.
    """
    up, down = _directions(folder / CLIENT_SIDE, server)
    shaped = (folder / SERVER_SIDE).exists()
    far_up, far_down = _directions(folder / SERVER_SIDE, server) if shaped else (up, down)
    found = [*_in_order(_matched(up, far_up), uplink=True), *_in_order(_matched(far_down, down), uplink=False)]
    return [crossing for _, _, crossing in sorted(found, key=lambda one: one[:2])]
