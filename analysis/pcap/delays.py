"""Where a message's delay went: from its scheduled time to its delivery, stage by stage; they add up to the whole.

    scheduled ─ host ► first packet out ─ sending ► last packet out ─ retransmission ► the packet that completed it out
    ─ propagation, serialisation, queueing ► whole at the other side ─ handshake ► released ─ server ► first packet out …

and so on over the downlink, until the subscriber is handed the message (delivery). Of a message in several pieces, the
piece that came last is followed: what passes before its own first packet goes out is sending.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.pcap.crossings import Crossing
from analysis.pcap.legs import Leg, Legs
from testbed.cell import DIRECTIONS, Cell

STAGES = {
    "host": "in the publisher before its first packet goes out: processing, a window that is full, Nagle's wait",
    "sending": "from a message's first packet to its last: windows, waits for acknowledgements between them",
    "queueing": "behind other packets at the channel, and jitter",
    "serialisation": "a packet's bits at the channel's rate",
    "propagation": "the channel's delay",
    "retransmission": "until what the channel lost was sent again, and what waited for it",
    "handshake": "whole, but held until its QoS lets it go on",
    "server": "in the broker, gateway or forwarder, Nagle's wait on the way out included",
    "delivery": "from the last packet to the subscriber",
}
STAMPS = ("client_out_ns", "server_in_ns", "server_out_ns", "client_in_ns")
COLUMNS = ("publisher", "seq", *STAMPS, *(f"{stage}_ns" for stage in STAGES))


@dataclass
class _Clock:
    """Gives each stage the time since the one before."""

    now: int
    spent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STAGES, 0))

    def until(self, stage: str, instant: int) -> None:
        self.spent[stage] += instant - self.now
        self.now = instant


class Delays:
    """The delays of one cell's messages."""

    def __init__(self, cell: Cell, legs: Legs, address_of: dict[str, str]) -> None:
        self._cell, self._legs, self._address_of = cell, legs, address_of
        netem = cell.channel.netem
        directions = DIRECTIONS[cell.channel.direction] if netem.shapes else ()
        self._shaped = {True: "uplink" in directions, False: "downlink" in directions}

    def _cross(self, clock: _Clock, done: Crossing) -> None:
        """Propagation, serialisation, queueing; where the channel is not, all is propagation."""
        assert done.arrived is not None
        taken = left = done.arrived - done.sent
        netem = self._cell.channel.netem
        if self._shaped[done.uplink]:
            rate = netem.rate
            clock.spent["propagation"] += (propagation := min(left, netem.delay))
            left -= propagation
            serialisation = min(left, 8 * 10**9 * done.packet.length // rate) if rate else 0
            clock.spent["serialisation"] += serialisation
            clock.spent["queueing"] += left - serialisation
        else:
            clock.spent["propagation"] += left
        clock.now += taken

    def _travel(self, clock: _Clock, leg: Leg) -> None:
        assert leg.done
        clock.until("sending", min(leg.done.sent, leg.last))
        clock.until("retransmission", leg.done.sent)
        self._cross(clock, leg.done)

    def _held(self, clock: _Clock, released: int | None, onward: int) -> None:
        """A handshake counts if the message went on only after it."""
        if released is not None and released <= onward:
            clock.until("handshake", released)

    def stages(self, number: int, seq: int, scheduled: int, received: int) -> dict[str, int] | None:
        """Stamps and ns of each stage of a delivered message; None where the captures do not show all of it."""
        ups, downs = self._legs.pieces((True, number, seq)), self._legs.pieces((False, number, seq))
        if not ups or len(ups) != len(downs) or any(leg.done is None for leg in (*ups, *downs)):
            return None
        up, down = max(zip(ups, downs, strict=True), key=lambda pair: pair[1].arrived or 0)
        publisher, subscriber = (self._address_of[f"{role}-{number:02d}"] for role in ("publisher", "subscriber"))
        clock = _Clock(scheduled)
        clock.until("host", min(leg.first for leg in ups))
        clock.until("sending", up.first)
        self._travel(clock, up)
        out = max(clock.now, min(leg.first for leg in downs))
        self._held(clock, self._legs.released(True, publisher, up), out)
        clock.until("server", out)
        clock.until("sending", down.first)
        self._travel(clock, down)
        self._held(clock, self._legs.released(False, subscriber, down), received)
        clock.until("delivery", received)
        stamps = (min(leg.first for leg in ups), up.arrived or 0, down.first, down.arrived or 0)
        return dict(zip(STAMPS, stamps, strict=True)) | {f"{stage}_ns": spent for stage, spent in clock.spent.items()}

    def _seen(self, number: int, seq: int) -> dict[str, int]:
        """What the captures show of a message that they do not show whole, or that was never delivered."""
        found = {}
        for uplink, out, into in ((True, *STAMPS[:2]), (False, *STAMPS[2:])):
            legs = self._legs.pieces((uplink, number, seq))
            if legs:
                found[out] = min(leg.first for leg in legs)
                if all(leg.done for leg in legs):
                    found[into] = max(leg.arrived or 0 for leg in legs)
        return found

    def table(self, messages: pd.DataFrame) -> pd.DataFrame:
        """A row for each row of messages.csv: COLUMNS, empty where the captures do not show it."""
        rows = []
        for row in messages.itertuples():
            name, seq = str(row.publisher), int(str(row.seq))
            number, received = int(name.rpartition("-")[2]), row.received_ns
            stages = None
            if pd.notna(received):  # type: ignore[arg-type]
                stages = self.stages(number, seq, int(str(row.scheduled_ns)), int(str(received)))
            rows.append({"publisher": name, "seq": seq, **(stages or self._seen(number, seq))})
        table = pd.DataFrame(rows, columns=list(COLUMNS))
        return table.astype(dict.fromkeys(COLUMNS[2:], "Int64"))


def means_ms(table: pd.DataFrame, messages: pd.DataFrame) -> dict[str, object]:
    """Over the messages whose way is known: their number, mean delay by the application and on the wire, and by stage."""
    known = table["host_ns"].notna().to_numpy()
    found, told = table[known], messages[known]
    application = (told["received_ns"] - told["scheduled_ns"]).to_numpy(dtype=np.float64)
    wire = (found["client_in_ns"] - found["client_out_ns"]).to_numpy(dtype=np.float64)
    empty = not len(found)
    return {
        "messages": len(found),
        "application_ms": None if empty else float(application.mean() / 1e6),
        "wire_ms": None if empty else float(wire.mean() / 1e6),
        "stages_ms": {} if empty else {stage: float(found[f"{stage}_ns"].mean() / 1e6) for stage in STAGES},
    }
