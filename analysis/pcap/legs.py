"""How messages got over the channel, each way: matched by the publisher and the number in their payload.

A message goes in one piece, or in several (chunks, or datagrams of a numbered stream); a piece may go over several TCP
segments, and may be sent again. TCP and numbered streams hand on in order: a piece is there when all before it is, too.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.pcap.crossings import Crossing
from analysis.pcap.dissect import Dissected, Segment
from clients import chunks, payloads
from clients.packets import Kind, Pdu

CARRIES = (Kind.DATA, Kind.REPAIR)


@dataclass(frozen=True)
class Packet:
    """One IPv4 packet, before the channel and after it, and what tshark says of it."""

    crossing: Crossing
    seen: Dissected

    @property
    def client(self) -> str:
        """The address at the clients' end, or a multicast group."""
        return self.seen.source if self.crossing.uplink else self.seen.target


@dataclass(frozen=True)
class Leg:
    """One piece's way over the channel: when its first and last packet went out (first copies), which one completed it.

    Times in ns since the epoch; `done` is None if it never came whole.
    """

    first: int
    last: int
    done: Crossing | None
    message_id: int | None = None

    @property
    def arrived(self) -> int | None:
        """When it was whole."""
        return self.done.arrived if self.done else None


Key = tuple[bool, int, int]
"""Direction (True: uplink), publisher's number, message's number."""


class Streams:
    """TCP streams as their receivers see them."""

    def __init__(self, packets: Iterable[Packet]) -> None:
        flows: dict[tuple[int, bool], list[tuple[Segment, Crossing]]] = defaultdict(list)
        for packet in packets:
            segment = packet.seen.segment
            if segment and segment.end > segment.start:
                flows[segment.stream, packet.crossing.uplink].append((segment, packet.crossing))
        self.out_of_order = 0
        """Segments that arrived behind a gap."""
        self._steps = {flow: list(self._in_order(sent)) for flow, sent in flows.items()}

    def _in_order(self, sent: list[tuple[Segment, Crossing]]) -> Iterator[tuple[int, Crossing]]:
        """How far the stream had come without a gap, and the packet that closed the last one."""
        reached = min(segment.start for segment, _ in sent)
        beyond: dict[int, int] = {}
        arrived = [one for one in sent if one[1].arrived is not None]
        for segment, crossing in sorted(arrived, key=lambda one: one[1].arrived or 0):
            if segment.start > reached:
                self.out_of_order += 1
                beyond[segment.start] = max(segment.end, beyond.get(segment.start, 0))
            elif segment.end > reached:
                reached = segment.end
                while starts := [start for start in beyond if start <= reached]:
                    reached = max(reached, *(beyond.pop(start) for start in starts))
                yield reached, crossing

    def completed(self, segment: Segment, uplink: bool) -> Crossing | None:
        """The packet with which all up to this segment's end had arrived."""
        steps = self._steps.get((segment.stream, uplink), [])
        place = bisect_left(steps, segment.end, key=lambda step: step[0])
        return steps[place][1] if place < len(steps) else None


def _earliest(legs: list[Leg]) -> Leg:
    """One piece's copies taken together."""
    begun = min(legs, key=lambda leg: leg.first)
    done = min((leg for leg in legs if leg.arrived is not None), key=lambda leg: leg.arrived or 0, default=begun)
    return Leg(begun.first, begun.last, done.done, done.message_id)


class Legs:
    """All messages of a cell on the wire. `pair_of` gives the number of the pair that an address belongs to."""

    def __init__(self, packets: list[Packet], run_tag: str, size: int, pair_of: dict[str, int]) -> None:
        self._packets, self._tag, self._size, self._pair_of = packets, run_tag, size, pair_of
        self.streams = Streams(packets)
        self._copies: dict[Key, dict[int, list[Leg]]] = defaultdict(lambda: defaultdict(list))
        self._count: dict[Key, int] = {}
        self._released: dict[tuple[bool, str, int], list[int]] = defaultdict(list)
        self._numbered: dict[tuple[bool, str, str], dict[int, list[tuple[Packet, Pdu]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for packet in packets:
            for order, pdu in enumerate(packet.seen.pdus):
                self._take(packet, pdu, order == 0)
        for (uplink, *_), datagrams in self._numbered.items():
            self._follow(uplink, datagrams)

    def _leg(self, packet: Packet, pdu: Pdu, first_in_packet: bool) -> Leg:
        crossing, segment = packet.crossing, packet.seen.segment
        if segment is None:
            done = crossing if crossing.arrived is not None else None
            return Leg(crossing.sent, crossing.sent, done, pdu.message_id)
        earlier = [self._packets[number].crossing.sent for number in segment.earlier] if first_in_packet else []
        done = self.streams.completed(segment, crossing.uplink)
        return Leg(min([crossing.sent, *earlier]), crossing.sent, done, pdu.message_id)

    def _take(self, packet: Packet, pdu: Pdu, first_in_packet: bool) -> None:
        uplink = packet.crossing.uplink
        if pdu.releases and pdu.message_id is not None:
            arrived = self._leg(packet, pdu, first_in_packet).arrived
            if arrived is not None:
                self._released[uplink, packet.client, pdu.message_id].append(arrived)
        if pdu.kind not in CARRIES:
            return
        if pdu.span:
            self._numbered[uplink, packet.seen.source, packet.seen.target][pdu.span[0]].append((packet, pdu))
            return
        for publisher, seq, index, count in self._pieces_in(pdu.payload):
            if self._pair_of.get(packet.client, publisher) == publisher:
                key = (uplink, publisher, seq)
                self._count[key] = count
                self._copies[key][index].append(self._leg(packet, pdu, first_in_packet))

    def _pieces_in(self, payload: bytes) -> Iterator[tuple[int, int, int, int]]:
        """Publisher, message, index and count of each piece that lies whole in a payload."""
        chunk = chunks.identify(payload)
        if chunk:
            yield chunk
            return
        for header, start in payloads.locate(payload):
            if header.run == self._tag and len(payload) - start >= self._size:
                yield header.publisher, header.seq, 0, 1

    def _follow(self, uplink: bool, datagrams: dict[int, list[tuple[Packet, Pdu]]]) -> None:
        """Messages of a numbered stream: each begins where its header stands, and goes on for its size."""
        pieces: dict[int, Leg] = {}
        latest: Leg | None = None
        for position in sorted(datagrams):
            leg = _earliest([self._leg(packet, pdu, True) for packet, pdu in datagrams[position]])
            if leg.arrived is not None and (latest is None or leg.arrived > (latest.arrived or 0)):
                latest = leg
            in_order = latest.done if latest and leg.done else None
            pieces[position] = Leg(leg.first, leg.last, in_order)
        for begin, copies in datagrams.items():
            for header, start in payloads.locate(copies[0][1].payload):
                if header.run == self._tag:
                    key, have, place = (uplink, header.publisher, header.seq), -start, begin
                    self._copies[key].clear()
                    while have < self._size and place in datagrams:
                        pdu = datagrams[place][0][1]
                        self._copies[key][place] = [pieces[place]]
                        have += len(pdu.payload)
                        place = pdu.span[1] if pdu.span else place
                    self._count[key] = len(self._copies[key]) + (have < self._size)  # the rest never went out

    def pieces(self, key: Key) -> list[Leg]:
        """The pieces of a message in one direction, in their order; empty unless all of them went out."""
        copies = self._copies.get(key, {})
        if not copies or len(copies) < self._count[key]:
            return []
        return [_earliest(copies[index]) for index in sorted(copies)]

    def released(self, uplink: bool, client: str, leg: Leg) -> int | None:
        """When a message of QoS 2 that was whole might be handed on, by the protocol's own word; None: it said none."""
        if leg.message_id is None or leg.arrived is None:
            return None
        times = self._released.get((uplink, client, leg.message_id), [])
        return min((time for time in times if time >= leg.arrived), default=None)
