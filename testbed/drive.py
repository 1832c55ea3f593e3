"""The clients' part of a cell's life: connect → ready → go → publish on schedule → drain.

One process drives the clients of the hosts that its fabric holds: all of a cell, or, in a container, one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from clients import registry
from clients.loop import Loop
from clients.payloads import Message
from clients.protocol import PUBLISHER, SUBSCRIBER, Assignment, Client
from clients.records import Records
from testbed.cell import Cell, derive_seed
from testbed.netns import Fabric, Host

HEARTBEAT = 5 * 10**9
"""Emulated ns between two reports of progress; the host takes a longer silence for a clock that stands still."""

_SECOND = 10**9


def whole_second() -> int:
    """A whole second of the clock, 1 to 2 s from now: instants that do not tell how long it took to get there."""
    return (time.time_ns() // _SECOND + 2) * _SECOND


Report = Callable[[dict[str, Any]], None]

Agree = Callable[[Loop, dict[str, int]], int]
"""Called between ready and go with the number of ready clients by role; returns the instant of go, ns since the epoch."""


@dataclass
class Outcome:
    """What the clients saw. `go` is ns since the epoch."""

    records: Records
    go: int
    ready: dict[str, int]
    counters: dict[str, dict[str, int]]


class _Drive:
    def __init__(self, cell: Cell, fabric: Fabric, loop: Loop, report: Report) -> None:
        self.cell, self.fabric, self.loop, self.report = cell, fabric, loop, report
        self.records = Records(cell.run_tag, cell.size)
        self.clients: dict[str, Client] = {}
        self.phase = "connect"

    def _make(self, role: str, number: int, host: Host) -> Client:
        protocol = registry.get(self.cell.protocol)
        assignment = Assignment(
            role=role,
            number=number,
            address=host.address,
            server=self.fabric.server.address,
            qos=self.cell.qos,
            parameters=self.cell.parameters,
            seed=derive_seed(self.cell.seed, role, number),
            deliver=lambda payload: self.records.note_received(number, payload),
        )
        kind = protocol.publisher if role == PUBLISHER else protocol.subscriber
        return kind(self.loop, assignment)

    def _start(self, role: str, number: int) -> None:
        name = f"{role}-{number:02d}"
        host = self.fabric.clients[name]
        with host.entered():
            self.clients[name] = self._make(role, number, host)
            self.clients[name].start()

    def connect(self, begin: int) -> None:
        """Start subscribers, then publishers, a stagger apart; wait until all are ready or the time for it is over."""
        cell = self.cell
        order = [(role, number) for role in (SUBSCRIBER, PUBLISHER) for number in range(1, cell.clients + 1)]
        for position, (role, number) in enumerate(order):
            if f"{role}-{number:02d}" in self.fabric.clients:
                self.loop.call_at(begin + position * cell.stagger, partial(self._start, role, number))
        self.loop.run_until(self._all_ready, begin + len(order) * cell.stagger + cell.startup_timeout)

    def _all_ready(self) -> bool:
        return len(self.clients) == len(self.fabric.clients) and all(client.ready for client in self.clients.values())

    def count_ready(self) -> dict[str, int]:
        """Clients that are ready, by role."""
        return {
            role: sum(client.ready for name, client in self.clients.items() if name.startswith(role))
            for role in (PUBLISHER, SUBSCRIBER)
        }

    def _due(self, go: int, number: int, seq: int) -> int:
        """One message an interval; the publishers' first sends are spread evenly over the interval."""
        interval = self.cell.interval
        return go + (number - 1) * interval // self.cell.clients + (seq - 1) * interval

    def publish_and_drain(self, go: int) -> None:
        """Publish on schedule from `go` on, then wait for stragglers for the study's drain time."""
        cell, last = self.cell, go
        for number in range(1, cell.clients + 1):
            for seq in range(1, cell.messages + 1):
                last = max(last, when := self._due(go, number, seq))
                if f"{PUBLISHER}-{number:02d}" in self.fabric.clients:
                    self.loop.call_at(when, partial(self._publish, number, seq, when))
        self.phase = "publish"
        self.loop.run_until(lambda: False, last)
        self.phase = "drain"
        self.loop.run_until(lambda: False, last + cell.drain)

    def _publish(self, number: int, seq: int, when: int) -> None:
        cell, client = self.cell, self.clients[f"{PUBLISHER}-{number:02d}"]
        self.records.note_sent(number, seq, when)
        if client.ready:
            client.publish(Message(cell.run_tag, number, seq, when, cell.size, cell.payload))

    def heartbeat(self) -> None:
        """Tell how far the cell is, again and again."""
        self.report(
            {
                "phase": self.phase,
                "ready": sum(client.ready for client in self.clients.values()),
                "sent": len(self.records.sent),
                "delivered": len(self.records.received),
                "clock": time.time_ns(),
            }
        )
        self.loop.call_later(HEARTBEAT, self.heartbeat)


def drive(
    cell: Cell, fabric: Fabric, report: Report, begin: int, agree: Agree, after_drain: Callable[[], None]
) -> Outcome:
    """Run the clients of a fabric in this thread; they connect from `begin` (ns since the epoch) on.

    `agree` gives the instant of *go*, `after_drain` is called while the clients are still connected.
    """
    loop = Loop()
    driver = _Drive(cell, fabric, loop, report)
    try:
        driver.heartbeat()
        driver.connect(begin)
        ready = driver.count_ready()
        go = agree(loop, ready)
        driver.publish_and_drain(go)
        after_drain()
    finally:
        counters = {name: client.counters() for name, client in driver.clients.items()}
        for client in driver.clients.values():
            client.close()
        loop.close()
    return Outcome(driver.records, go, ready, counters)
