"""What a reader must know before trusting a run's figures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis import pace, published
from analysis.run import CellResult, Run


@dataclass(frozen=True)
class Warned:
    """What is wrong, in a sentence, and where: a cell or a series each, with its figures."""

    sentence: str
    where: list[str]


Found = Iterator[tuple[str, str]]
"""Sentences that do not name the cell, and the cell's own figures."""


def _ended_early(cell: CellResult) -> Found:
    if cell.row["status"] != "ok":
        yield (
            "Cells that did not come to their end:",
            f"{cell.row['status']}: {cell.facts.get('error') or 'see its logs'}",
        )


def _not_ready(cell: CellResult) -> Found:
    wanted = 2 * int(cell.plan["clients"])
    if cell.row["status"] == "ok" and cell.ready < wanted:
        yield (
            "Clients that were not ready when the traffic began; their messages count as lost:",
            f"{wanted - cell.ready}",
        )


_PACKET = 1514  # bytes of Ethernet's largest frame (IEEE 802.3)


def _under_way(netem: dict[str, int]) -> float:
    """Bytes that netem holds of a link that is not saturated: those on their way, and one packet that is being sent."""
    return netem["rate"] * (netem["delay"] + netem["jitter"]) / 8e9 + _PACKET


def _saturated(cell: CellResult) -> Found:
    for interface, qdisc in cell.facts.get("channel", {}).get("after", {}).items():
        netem = cell.plan["channel"]["netem"]
        if netem["rate"] and qdisc.get("backlog", 0) > _under_way(netem):
            yield (
                "The link was saturated: packets were still queued at the end of the drain, so loss and delay depend on "
                "how long one waits:",
                f"{interface} {qdisc['qlen']} packets, {qdisc['backlog']:,} B",
            )


def _capture_drops(cell: CellResult) -> Found:
    dropped = cell.facts.get("capture", {}).get("dropped")
    if dropped:
        yield "The capture dropped packets: wire figures and PCAPs are incomplete:", f"{dropped} packets"


def _channel_off(cell: CellResult) -> Found:
    netem = cell.plan["channel"]["netem"]
    if netem["loss_correlation"] or netem["loss_state"] or netem["loss_gemodel"]:
        return  # the interval is that of independent losses
    wanted = netem["loss"] / 10**6
    for interface, measured in cell.facts.get("channel", {}).get("measured", {}).items():
        interval = measured["loss_99_pct"]
        if interval and not interval[0] <= wanted <= interval[1]:
            yield (
                f"The channel was told to lose {wanted:g} % of its packets, which is outside the 99 % interval of what it "
                "lost:",
                f"{interface} {measured['loss_pct']:.2f} % ({interval[0]:.2f} to {interval[1]:.2f} %)",
            )


def _host_limited(cell: CellResult) -> Found:
    if cell.row.get("host_limited") == "yes":
        yield (
            "This machine, not the channel, set the pace (publishes more than "
            f"{pace.LATE_LIMIT_MS:g} ms late at the 99th percentile, or less than {pace.IDLE_LIMIT_PCT:g} % of its "
            "processors idle):",
            f"{cell.facts['late_p99_ms']:.1f} ms late, {cell.facts['cpu_idle_pct']} % idle",
        )


def _strangers(cell: CellResult) -> Found:
    if cell.facts.get("foreign_messages"):
        yield "Messages arrived that were not of their cell:", f"{cell.facts['foreign_messages']}"


_OF_CELL: tuple[Callable[[CellResult], Found], ...] = (
    _ended_early,
    _not_ready,
    _saturated,
    _capture_drops,
    _channel_off,
    _strangers,
    _host_limited,
)


def _of_run(run: Run) -> Iterator[str]:
    done, planned = len(run.cells), len(run.plan["cells"])
    if done < planned:
        yield f"The run was interrupted: {done} of {planned} cells finished."
    if run.manifest.get("clock") != "virtual":
        yield "Real time: delays depend on what else this machine did."
    yield from (f"Not as told: {sentence}." for sentence in run.plan.get("deviations", []))
    wanted = published.figures(run.plan["study"]).get("clients", {})
    other = {
        f"{series.protocol} {series.cells[0].plan['clients']} instead of {wanted[series.protocol]}": None
        for series in run.series
        if wanted.get(series.protocol, series.cells[0].plan["clients"]) != series.cells[0].plan["clients"]
    }
    if other:
        yield f"Not the published number of clients ({', '.join(other)}): like is not compared with like."


def collect(run: Run) -> list[Warned]:
    """All warnings, those that say the same of several cells together."""
    together: dict[str, list[str]] = {sentence: [] for sentence in _of_run(run)}
    for cell in run.cells:
        for look in _OF_CELL:
            for sentence, figures in look(cell):
                together.setdefault(sentence, []).append(f"{cell.name}: {figures}")
    growing = [f"{series.label}, {series.payload}" for series in run.series if len(series.delays) and series.grows]
    if growing:
        sentence = (
            "Delays grow during the run (the last quarter's median is more than twice the first's), so averages depend on "
            "how long it lasts:"
        )
        together[sentence] = growing
    return [Warned(sentence, where) for sentence, where in together.items()]
