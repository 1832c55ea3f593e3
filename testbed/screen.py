"""What the terminal shows: the plan, live progress, the result table."""

import threading
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from analysis import published
from testbed import estimate
from testbed.netem import describe
from testbed.plan import Plan
from testbed.profile import Profile

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 160  # a log has no edge to break lines at


def _number(value: Any, digits: int = 1) -> str:
    return "–" if value is None or value != value else f"{value:,.{digits}f}"


class Progress:
    """Live progress of a run: a line for each cell that runs; without a terminal, a line as each cell ends."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._running: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)

    def __enter__(self) -> "Progress":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def event(self, event: dict[str, Any]) -> None:
        """A step of a cell, from any thread."""
        with self._lock:
            self._running.setdefault(event["cell"], {}).update(event)

    def finished(self, cell_id: str, row: dict[str, Any], facts: dict[str, Any], error: str) -> None:
        """A cell is done, one way or another."""
        with self._lock:
            self._running.pop(cell_id, None)
            self._done += 1
        count = f"[{self._done}/{self._total}]"
        if row["status"] == "ok":
            figures = f"{row['delivered']}/{row['sent']} delivered, mean {_number(row['delay_mean_ms'])} ms"
            times = f"{_number(row['emulated_s'], 0)} s emulated in {row['wall_s']:.1f} s"
            if containers := facts.get("containers"):
                times += f" (containers up in {containers['up_s']:.1f} s, removed in {containers['down_s']:.1f} s)"
            console.print(f"{count} {cell_id}: {figures}, {times}", markup=False)
        else:
            console.print(f"{count} {cell_id}: {row['status']}: {error}", markup=False, style="red", soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        with self._lock:
            for cell_id, event in self._running.items():
                clock = f"{event['clock'] / 1e9 % 1e6:.0f} s" if "clock" in event else ""
                counts = f"{event['sent']} sent, {event['delivered']} delivered" if "sent" in event else ""
                ready = f"{event['ready']} ready" if event.get("phase") == "connect" else ""
                table.add_row(f"{self._done}/{self._total}", cell_id, event.get("phase", ""), ready or counts, clock)
        return table


def announce(plan: Plan, runtime: str, reason: str, folder: str) -> None:
    """Say what will run before it runs."""
    channel = plan.cells[0].channel
    console.print(f"[b]{plan.profile.name}[/b]  {plan.profile.description}: {describe(plan.profile.netem)}")
    console.print(f"study {plan.study}, channel {channel.label}, seed {plan.seed}, {len(plan.cells)} cells")
    console.print(f"runtime {runtime}: {reason}")
    if runtime != "virtual":
        real, virtual = estimate.real_s(plan.cells, runtime == "docker"), estimate.virtual_s(plan.cells)
        console.print(
            f"this takes about {estimate.words(real)}; RUNTIME=virtual would take about {estimate.words(virtual)}"
        )
    for sentence in plan.deviations:
        console.print(f"not as told: {sentence}", markup=False, style="yellow", soft_wrap=True)
    console.print(f"results in {folder}")


def result_table(plan: Plan, rows: list[dict[str, Any]]) -> None:
    """One row a cell, with the published loss where there is one."""
    table = Table(title=f"{plan.study} on {plan.profile.name}", header_style="bold")
    for name in ("protocol", "QoS", "payload", "ready", "sent", "loss %", "published %", "mean ms", "median ms"):
        table.add_column(name, justify="left" if name in ("protocol", "payload") else "right")
    for name in ("p95 ms", "max ms", "jitter ms", "emulated s", "wall s", "status"):
        table.add_column(name, justify="right")
    for row in rows:
        known = published.loss_pct(plan.study, row["profile"], row["payload"], row["protocol"], row["qos"])
        ready = (row["ready_publishers"] or 0) + (row["ready_subscribers"] or 0)
        qos = "–" if row["qos"] is None else str(row["qos"])
        figures = [_number(row.get(f"delay_{name}_ms")) for name in ("mean", "median", "p95", "max")]
        table.add_row(
            row["protocol"],
            qos,
            row["payload"],
            f"{ready}/{2 * row['clients']}",
            str(row.get("sent", "–")),
            _number(row.get("loss_pct"), 2),
            _number(known, 2),
            *figures,
            _number(row.get("jitter_mean_ms")),
            _number(row.get("emulated_s")),
            _number(row.get("wall_s")),
            "host-limited" if row.get("host_limited") == "yes" else row["status"],
        )
    console.print(table)


def profile_table(profiles: list[Profile]) -> None:
    """The links there are."""
    table = Table(header_style="bold")
    for name in ("profile", "link", "netem", "source"):
        table.add_column(name, overflow="fold")
    for profile in profiles:
        table.add_row(profile.name, profile.description, describe(profile.netem), profile.source)
    console.print(table)
