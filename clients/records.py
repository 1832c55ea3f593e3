"""What happened to every message of a cell, and messages.csv."""

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients import payloads
from clients.protocol import topic

COLUMNS = (
    "publisher",
    "subscriber",
    "topic",
    "seq",
    "size_bytes",
    "scheduled_ns",
    "sent_ns",
    "received_ns",
    "copies",
)


@dataclass
class Records:
    """Sent and received messages of one run tag. Times are ns since the epoch, of the one clock that all hosts share."""

    run: str
    size: int
    sent: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    received: dict[tuple[int, int], int] = field(default_factory=dict)
    copies: dict[tuple[int, int], int] = field(default_factory=dict)
    foreign: int = 0

    def note_sent(self, publisher: int, seq: int, scheduled: int) -> None:
        """A publisher hands a message to its protocol now."""
        self.sent[publisher, seq] = (scheduled, time.time_ns())

    def note_received(self, subscriber: int, payload: bytes) -> None:
        """A subscriber got a payload now. One that is not of this run, pair and size is counted as foreign."""
        now = time.time_ns()
        header = payloads.parse(payload)
        if header is None or (header.run, header.publisher) != (self.run, subscriber) or len(payload) != self.size:
            self.foreign += 1
            return
        key = (header.publisher, header.seq)
        self.received.setdefault(key, now)
        self.copies[key] = self.copies.get(key, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """Plain data, for merge()."""
        return {
            "sent": [[*key, *times] for key, times in self.sent.items()],
            "received": [[*key, when, self.copies[key]] for key, when in self.received.items()],
            "foreign": self.foreign,
        }

    def merge(self, data: dict[str, Any]) -> None:
        """Take in what another process of the same cell noted: to_json() of its records."""
        for publisher, seq, scheduled, sent in data["sent"]:
            self.sent[publisher, seq] = (scheduled, sent)
        for publisher, seq, when, copies in data["received"]:
            self.received[publisher, seq] = when
            self.copies[publisher, seq] = copies
        self.foreign += data["foreign"]

    def write(self, path: Path) -> None:
        """messages.csv: one row a message and subscriber, `received_ns` empty if it was lost."""
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for (number, seq), (scheduled, sent) in sorted(self.sent.items()):
                key = (number, seq)
                writer.writerow(
                    (
                        f"publisher-{number:02d}",
                        f"subscriber-{number:02d}",
                        topic(number),
                        seq,
                        self.size,
                        scheduled,
                        sent,
                        self.received.get(key, ""),
                        self.copies.get(key, 0),
                    )
                )
