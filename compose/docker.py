"""One cell as a Compose project, in real time: a server pod and a container for each client, on one internal network."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clients import registry as protocols
from clients.protocol import PUBLISHER, SUBSCRIBER
from clients.records import Records
from compose import engine
from compose.images import identity
from compose.project import OWN_IMAGE, Images, Project
from testbed import exchange
from testbed.cell import Cell
from testbed.drive import Report
from testbed.pcapng import Interface
from testbed.trial import write_captures

_NO_LIMIT = 2**62  # ns

_END_GRACE = 30.0
"""Seconds of wall time for the last container to write its outcome."""


@contextmanager
def running(cell: Cell, folder: Path, images: Images, report: Report) -> Iterator[tuple[Project, dict[str, float]]]:
    """A cell's containers, up in the `with` and removed after it; the mapping holds the seconds that both took."""
    times: dict[str, float] = {}
    with ExitStack() as stack:
        with engine.one_at_a_time(lambda: report({"phase": "wait"})):
            begin = time.monotonic()
            project = Project(cell, folder, folder.parent.parent.name, images)
            project.write()
            stack.callback(_remove, project, times)
            project.start(report)
            times["up_s"] = round(time.monotonic() - begin, 3)
        yield project, times


def _remove(project: Project, times: dict[str, float]) -> None:
    project.save_logs()
    begin = time.monotonic()
    for sentence in engine.remove_run(project.run):
        print(sentence, flush=True)  # the results are whole; it is kept in the cell's log
    times["down_s"] = round(time.monotonic() - begin, 3)


def _connect(project: Project, report: Report) -> tuple[dict[str, int], int]:
    """Let all clients connect, and tell them when to go: ready clients by role, and that instant."""
    cell, clients = project.cell, project.clients

    def progress() -> None:
        seen = [project.heard(name, exchange.STATUS) or {} for name in clients]
        totals = {key: sum(one.get(key, 0) for one in seen) for key in ("ready", "sent", "delivered")}
        report({"phase": next((str(one["phase"]) for one in seen if "phase" in one), "up"), **totals})

    up = time.time() + exchange.UP_LIMIT
    project.await_all([exchange.SERVER, *clients], exchange.STATUS, "containers come up", up, progress)
    begin = time.time_ns() + exchange.LEAD
    project.tell(exchange.BEGIN, begin)
    limit = (begin + len(clients) * cell.stagger + cell.startup_timeout) / 1e9 + _END_GRACE
    project.await_all(clients, exchange.READY, "clients connect", limit, progress)
    ready = {PUBLISHER: 0, SUBSCRIBER: 0}
    for name in clients:
        for role, count in (project.heard(name, exchange.READY) or {}).items():
            ready[role] += count
    go = time.time_ns() + exchange.LEAD
    project.tell(exchange.GO, go)
    last = go + cell.messages * cell.interval + cell.drain
    project.await_all(clients, exchange.OUTCOME, "clients finish", last / 1e9 + _END_GRACE, progress)
    project.tell(exchange.STOP, True)
    server_limit = time.time() + 2 * _END_GRACE
    project.await_all([exchange.SERVER], exchange.OUTCOME, "the captures are written", server_limit, progress)
    return ready, go


def _identities(project: Project) -> dict[str, Any]:
    """Which images the containers are made of: the testbed's own, and those of servers in others."""
    return {name: identity(used) for name, used in {OWN_IMAGE: project.image, **project.other_images}.items()}


def run_cell(cell: Cell, folder: Path, report: Report, images: Images) -> dict[str, Any]:
    """Run one cell; messages.csv, PCAPs, logs and compose.yaml go below `folder`. Returns the facts of the run."""
    begin = time.time_ns()
    with running(cell, folder, images, report) as (project, times):
        ready, go = _connect(project, report)
    records = Records(cell.run_tag, cell.size)
    counters: dict[str, dict[str, int]] = {}
    for name in project.clients:
        outcome = project.heard(name, exchange.OUTCOME) or {}
        records.merge(outcome["records"])
        counters |= outcome["counters"]
    records.write(folder / "messages.csv")
    (folder / "logs" / "clients.json").write_text(json.dumps(counters, indent=1))
    report({"phase": "pcap"})
    served = project.heard(exchange.SERVER, exchange.OUTCOME) or {}
    own = project.exchange / exchange.SERVER
    sources = {
        side: [(Interface(name, shows), own / raw) for name, shows, raw in raws]
        for side, raws in served["sources"].items()
    }
    wire = write_captures(cell, folder, sources)
    shutil.rmtree(project.exchange)
    return {
        "status": "ok",
        "ready_publishers": ready[PUBLISHER],
        "ready_subscribers": ready[SUBSCRIBER],
        "go_ns": go,
        "foreign_messages": records.foreign,
        "emulated_s": (served["stopped_ns"] - begin) / 1e9,
        "channel": served["channel"],
        "capture": {**served["capture"], "wire": asdict(wire["client-side"])},
        "kernel": served["kernel"],
        "cpu_idle_pct": served["cpu_idle_pct"],
        "transport": protocols.get(cell.protocol).transport(cell.size, cell.parameters),
        "servers": served["servers"] | project.other_images,
        "containers": {"images": _identities(project), "subnet": f"{project.subnet}.0/24", **times},
    }


def up(cell: Cell, folder: Path, run: str, images: Images) -> None:
    """`make up`: a cell's containers, publishing on schedule, left running for a look by hand."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    with engine.one_at_a_time(lambda: None):
        project = Project(replace(cell, wall_limit=_NO_LIMIT), folder, run, images, kept=True)
        project.write()
        project.start(lambda _event: None)
    limit = time.time() + exchange.UP_LIMIT
    project.await_all(list(project.job.hosts), exchange.STATUS, "containers come up", limit, lambda: None)
    project.tell(exchange.BEGIN, begin := time.time_ns() + exchange.LEAD)
    project.tell(exchange.GO, begin + len(project.clients) * cell.stagger + exchange.LEAD)
