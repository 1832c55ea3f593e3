"""What a reader must know before trusting a run's figures."""

from collections.abc import Callable, Iterator

from analysis import published
from analysis.figures import grows
from analysis.run import CellResult, Run


def _ended_early(cell: CellResult) -> Iterator[str]:
    if cell.row["status"] != "ok":
        yield f"{cell.row['status']}: {cell.facts.get('error') or 'see its logs'}"


def _not_ready(cell: CellResult) -> Iterator[str]:
    wanted = 2 * int(cell.plan["clients"])
    if cell.row["status"] == "ok" and cell.ready < wanted:
        yield f"{cell.ready} of {wanted} clients were ready; the messages of the others count as lost"


def _saturated(cell: CellResult) -> Iterator[str]:
    for interface, qdisc in cell.facts.get("channel", {}).get("after", {}).items():
        if qdisc.get("qlen"):
            yield (
                f"the link was saturated: {qdisc['qlen']} packets ({qdisc['backlog']:,} bytes) were still queued in "
                f"{interface} at the end of the drain; loss depends on how long one waits"
            )


def _capture_drops(cell: CellResult) -> Iterator[str]:
    dropped = cell.facts.get("capture", {}).get("dropped")
    if dropped:
        yield f"the capture dropped {dropped} packets: wire figures and PCAPs are incomplete"


def _channel_off(cell: CellResult) -> Iterator[str]:
    netem = cell.plan["channel"]["netem"]
    if netem["loss_correlation"] or netem["loss_state"] or netem["loss_gemodel"]:
        return  # the interval is that of independent losses
    wanted = netem["loss"] / 10**6
    for interface, measured in cell.facts.get("channel", {}).get("measured", {}).items():
        interval = measured["loss_99_pct"]
        if interval and not interval[0] <= wanted <= interval[1]:
            yield (
                f"{interface} lost {measured['loss_pct']:.2f} % of its packets; {wanted:g} % is outside the 99 % interval "
                f"of that ({interval[0]:.2f} to {interval[1]:.2f} %)"
            )


def _strangers(cell: CellResult) -> Iterator[str]:
    if cell.facts.get("foreign_messages"):
        yield f"{cell.facts['foreign_messages']} messages arrived that were not of this cell"


_OF_CELL: tuple[Callable[[CellResult], Iterator[str]], ...] = (
    _ended_early,
    _not_ready,
    _saturated,
    _capture_drops,
    _channel_off,
    _strangers,
)


def _of_run(run: Run) -> Iterator[str]:
    done, planned = len(run.cells), len(run.plan["cells"])
    if done < planned:
        yield f"The run was interrupted: {done} of {planned} cells finished."
    if run.manifest.get("clock") != "virtual":
        yield "Real time: delays depend on what else this machine did."
    wanted = published.figures(run.plan["study"]).get("clients", {})
    other = {
        f"{series.protocol} {series.cells[0].plan['clients']} instead of {wanted[series.protocol]}": None
        for series in run.series
        if wanted.get(series.protocol, series.cells[0].plan["clients"]) != series.cells[0].plan["clients"]
    }
    if other:
        yield f"Not the published number of clients ({', '.join(other)}): like is not compared with like."


def collect(run: Run) -> list[str]:
    """All warnings, a sentence each."""
    found = list(_of_run(run))
    for cell in run.cells:
        found += [f"{cell.name}: {text}." for look in _OF_CELL for text in look(cell)]
    for series in run.series:
        if len(series.delays) and grows(series):
            found.append(
                f"{series.label}, {series.payload}: delays grow during the run (the last quarter's median is more than "
                "twice the first's), so its averages depend on how long the run is."
            )
    return found
