"""The channel alone, looked at with UDP datagrams: what the link certificate is made of.

A probe has a fabric of one client and the same channel as the cells, put up by the same code, and sends, in each shaped
direction, datagrams far apart (delay), a burst (rate) and small ones in groups (loss). Both sides of the channel are
captured; analysis/certificate.py holds one against the other.
"""

import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.capture import capture
from testbed.cell import DIRECTIONS, Channel
from testbed.channel import medium
from testbed.drive import Report
from testbed.netem import Netem
from testbed.netns import Host, fabric

HEADERS = 14 + 20 + 8
"""Bytes of Ethernet II, IPv4 (RFC 791, no options) and UDP (RFC 768) headers before a datagram's payload."""

_WORD = re.compile(rb"probe([ud])([drl])-(\d{8})")
_LARGEST = 1472  # fills an Ethernet frame of 1500 B and its header
_SMALLEST = 48  # three words, so that two are whole if a bit of one is flipped
_SIZES = (_SMALLEST, 150, 700, _LARGEST)
_GROUP = 50
_DISCARD = 9  # RFC 863
_REAL_SECONDS = 10
"""In real time the burst, and the small datagrams, each take about this long at most."""


@dataclass(frozen=True)
class Probe:
    """One look at the channel, resolved: a job like a cell. Times in ns. `real`: time passes as it does on the wall."""

    id: str
    seed: int
    channel: Channel
    tcp: dict[str, str]
    stall_limit: int
    wall_limit: int
    real: bool


def probe_from_json(data: dict[str, Any]) -> Probe:
    """The inverse of dataclasses.asdict(probe)."""
    channel = dict(data["channel"])
    channel["netem"] = Netem(**channel["netem"])
    return Probe(**{**data, "channel": Channel(**channel)})


@dataclass(frozen=True)
class Phase:
    """Datagrams with payloads of `sizes` bytes, sent in groups of `group` at once with `pause` ns after each."""

    name: str
    sizes: tuple[int, ...]
    group: int
    pause: int


def serialisation(netem: Netem, size: int) -> int:
    """Time in ns that a datagram with a payload of `size` bytes takes at the link's rate; 0 where it has none.

    netem counts the Ethernet header (tc-netem(8): rate "delays packets based on packet size").
    """
    return (size + HEADERS) * 8 * 10**9 // netem.rate if netem.rate else 0


def longest_delay(netem: Netem) -> int:
    """The longest delay in ns without queueing: the tables of tc's distributions end at 4 standard deviations."""
    return netem.delay + 4 * netem.jitter


def phases(netem: Netem, real: bool) -> list[Phase]:
    """What a probe sends in one direction. In virtual time waiting is free, so that no datagram meets another's delay."""
    settle = longest_delay(netem) + 10**7
    room = max(1, netem.limit // 2)
    alone = settle if netem.jitter or netem.reorder or not real else 0
    small, large = serialisation(netem, _SMALLEST), serialisation(netem, _LARGEST)
    burst, count = 100, 3000
    if netem.jitter and large:  # the burst must last longer than jitter moves its ends
        burst += 16 * netem.jitter // large
    if real:
        burst = max(10, min(burst, _REAL_SECONDS * 10**9 // max(large, 1)))
        count = max(200, min(count, _REAL_SECONDS * 10**9 // max(small, 1)))
    burst, group = min(burst, room), min(_GROUP, room)
    between = 0 if real and count <= room else settle
    return [
        Phase("delay", _SIZES * (100 if netem.jitter else 5), 1, large + alone + 10**6),
        Phase("rate", (_LARGEST,) * burst, burst, burst * large + settle),
        Phase("loss", (_SMALLEST,) * count, group, group * small + between + 10**6),
    ]


def _payload(direction: str, phase: str, number: int, size: int) -> bytes:
    word = f"probe{direction[0]}{phase[0]}-{number:08d}".encode()
    return (word * (size // len(word) + 1))[:size]


@dataclass(frozen=True)
class Label:
    """What a datagram of a probe says of itself."""

    direction: str
    phase: str
    number: int


_DIRECTION, _PHASE = {b"u": "uplink", b"d": "downlink"}, {b"d": "delay", b"r": "rate", b"l": "loss"}


def label(frame: bytes) -> Label | None:
    """The label of a captured frame, even of one with a flipped bit; None if it is not a probe's."""
    words = Counter(_WORD.findall(frame)).most_common(1)
    if not words:
        return None
    direction, phase, number = words[0][0]
    return Label(_DIRECTION[direction], _PHASE[phase], int(number))


def _sleep_until(deadline: int) -> None:
    while (left := deadline - time.monotonic_ns()) > 0:
        time.sleep(left / 1e9)


def _send(sender: Host, receiver: Host, direction: str, plan: list[Phase], rest: int) -> Iterator[Phase]:
    """Send one phase after the other, each is yielded once it is over; then wait `rest` ns for the last datagrams."""
    with sender.entered():
        outgoing = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with receiver.entered():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # else the receiver would answer "port unreachable"
    with outgoing, sink:
        sink.bind((receiver.address, _DISCARD))
        outgoing.connect((receiver.address, _DISCARD))
        for phase in plan:
            for number, size in enumerate(phase.sizes):
                outgoing.send(_payload(direction, phase.name, number, size))
                if (number + 1) % phase.group == 0:
                    _sleep_until(time.monotonic_ns() + phase.pause)
            yield phase
        _sleep_until(time.monotonic_ns() + rest)  # were the sink closed now, it would not take in what is on its way


def run_probe(probe: Probe, folder: Path, report: Report) -> dict[str, Any]:
    """Probe the channel; raw captures are left in `folder`/logs for the certificate. Returns what was done and read."""
    logs, plan = folder / "logs", phases(probe.channel.netem, probe.real)
    rest = longest_delay(probe.channel.netem) + 10**9
    with ExitStack() as stack:
        report({"phase": "fabric"})
        net = stack.enter_context(fabric(["probe"], probe.tcp))
        link = stack.enter_context(medium(net.server, probe.channel, probe.seed))
        taps = stack.enter_context(capture({side: (net.server, some) for side, some in link.taps.items()}, logs))
        before = link.readback()
        for direction in DIRECTIONS[probe.channel.direction]:
            ends = (net.clients["probe"], net.server) if direction == "uplink" else (net.server, net.clients["probe"])
            for phase in _send(*ends, direction, plan, rest):
                report({"phase": f"{direction} {phase.name}", "clock": time.time_ns()})
        after = link.readback()
        taps.settle()
    return {
        "status": "ok",
        "channel": {"commands": link.commands, "seeds": link.seeds, "before": before, "after": after},
        "capture": {"packets": taps.packets, "dropped": taps.dropped},
        "sources": {
            side: [[interface.name, interface.shows, str(raw)] for interface, raw in raws]
            for side, raws in taps.sources().items()
        },
        "sent": [asdict(phase) | {"sizes": sorted(set(phase.sizes)), "count": len(phase.sizes)} for phase in plan],
        "kernel": os.uname().release,
    }
