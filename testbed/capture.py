"""tcpdump on both sides of the channel for a whole cell, and its taps brought together in one PCAP a side."""

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from testbed import commands
from testbed.channel import Tap
from testbed.errors import SetupError
from testbed.netns import Host
from testbed.pcapng import Interface
from testbed.waiting import wait_for

_BUFFER_KIB = "16384"
_STATISTICS = re.compile(r"(\d+) packets? (captured|received by filter|dropped by kernel)")


@dataclass
class _Listener:
    host: str
    tap: Tap
    raw: Path
    log: Path
    process: "Popen[str]"

    def statistics(self) -> list[dict[str, int]]:
        """tcpdump's own counts of packets captured, received and dropped, a mapping for each time it printed them."""
        numbers = [(what, int(count)) for count, what in _STATISTICS.findall(self.log.read_text())]
        return [dict(numbers[start : start + 3]) for start in range(0, len(numbers) - 2, 3)]

    def ask(self) -> dict[str, int]:
        """Fresh statistics."""
        before = len(self.statistics())
        self.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: len(self.statistics()) > before, f"{self.log}: tcpdump's statistics", 10)
        return self.statistics()[-1]


@dataclass
class Capture:
    """Captures that are running, by the side of the channel they show."""

    listeners: dict[str, list[_Listener]]
    dropped: int = 0
    packets: dict[str, int] = field(default_factory=dict)

    def sources(self) -> dict[str, list[tuple[Interface, Path]]]:
        """The raw captures of each side, and what each shows."""
        return {
            side: [(Interface(one.tap.interface, one.tap.shows, one.host), one.raw) for one in some]
            for side, some in self.listeners.items()
        }

    def settle(self) -> None:
        """Wait until tcpdump has written all that its filters let through; the kernel hands packets over in blocks."""
        for listener in (one for some in self.listeners.values() for one in some):
            counts: dict[str, int] = {}

            def written(listener: _Listener = listener, counts: dict[str, int] = counts) -> bool:
                counts.update(listener.ask())
                return counts["captured"] >= counts["received by filter"]

            wait_for(written, f"tcpdump on {listener.tap.interface} to write its last packets", 30, 0.2)
            self.dropped += counts["dropped by kernel"]
            self.packets[listener.raw.stem] = counts["captured"]


@contextmanager
def capture(points: dict[str, tuple[Host, list[Tap]]], folder: Path, live: bool = False) -> Iterator[Capture]:
    """Listen on every tap, in its host's namespace, until the end of the `with`; raw PCAPs lie below `folder`.

    `points` holds the host and the taps of each PCAP that is wanted. `live` writes each packet at once, for who looks on;
    in the guest the many small writes would take a quarter of a cell's wall time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        listeners: dict[str, list[_Listener]] = {}
        for side, (host, taps) in points.items():
            for tap in taps:
                raw, log = folder / f"{side}.{tap.interface}.raw", folder / f"tcpdump-{side}.{tap.interface}.log"
                # It writes nothing but its stdout, so it need not become another user (which containers do not allow).
                words = ["tcpdump", "-Z", "root", "-i", tap.interface, "-n", "-s", "0", "-B", _BUFFER_KIB]
                words += [*(["-U"] if live else []), "--time-stamp-precision=nano", "-w", "-"]
                words += [tap.bpf] if tap.bpf else []
                with host.entered():
                    process = stack.enter_context(commands.background(words, raw, log, stop_signal=signal.SIGINT))
                listeners.setdefault(side, []).append(_Listener(host.name, tap, raw, log, process))
        for one in (one for some in listeners.values() for one in some):
            _wait_until_listening(one)
        yield Capture(listeners)


def _wait_until_listening(listener: _Listener) -> None:
    def listening() -> bool:
        if listener.process.poll() is not None:
            raise SetupError(f"tcpdump on {listener.tap.interface} ended: {listener.log.read_text().strip()}")
        return "listening on" in listener.log.read_text()

    wait_for(listening, f"tcpdump on {listener.tap.interface}", 30)
