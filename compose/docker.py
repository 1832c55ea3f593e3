"""One cell as a Compose project, in real time: a server pod and a container for each client, on one internal network."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from broker import registry as servers
from broker.server import Context
from clients import registry as protocols
from clients.protocol import PUBLISHER, SUBSCRIBER
from clients.records import Records
from compose import engine, image
from testbed import commands, exchange
from testbed.cell import Cell, host_names
from testbed.drive import Report
from testbed.errors import SetupError
from testbed.exchange import heard, tell
from testbed.pcapng import Interface
from testbed.trial import write_captures

_CONFIG = Path("/config")
_TEMPLATES = Path(__file__).parent
_NOBODY = 65534
_UP_LIMIT, _END_GRACE = 300.0, 30.0
"""Seconds of wall time for all containers to come up, and for the last of them to write its outcome."""


class Project:
    """A cell's Compose project. `kept` is left running until `make down`."""

    def __init__(self, cell: Cell, folder: Path, run: str, kept: bool = False) -> None:
        self.cell, self.folder, self.run = cell, folder, run
        self.exchange, self.file = folder / "exchange", folder / "compose.yaml"
        self.shared = self.exchange / "shared"
        self.subnet = engine.free_subnet()
        names = host_names(cell.clients)
        addresses = [f"{self.subnet}.{number}" for number in range(1, len(names) + 2)]
        self.hosts = dict(zip([exchange.SERVER, *names], addresses, strict=True))
        self.labels = {engine.RUN: run, engine.OWNER: "" if kept else engine.owner()}
        self.user = os.getuid() or _NOBODY  # clients and servers are never root

    def _servers(self) -> list[dict[str, Any]]:
        found = []
        for name in protocols.get(self.cell.protocol).servers:
            declared = servers.get(name)
            context = Context(
                self.hosts[exchange.SERVER], self.cell.clients, _CONFIG, self.cell.servers[name], self.cell.qos
            )
            for file, text in declared.files(context).items():
                (self.folder / "logs" / file).write_text(text)
            found.append({"name": name, "image": image.name(), "command": declared.command(context)})
        return found

    def write(self) -> None:
        """Lay out the shared volume and render compose.yaml."""
        self.shared.mkdir(parents=True)
        for name in self.hosts:
            own = self.exchange / name
            own.mkdir()
            own.chmod(0o777)  # its container is another user
        tell(self.shared / exchange.JOB, {"cell": asdict(self.cell), "hosts": self.hosts})
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        text = environment.get_template("compose.yaml.j2").render(
            cell=self.cell,
            run=self.run,
            image=image.name(),
            user=f"{self.user}:{os.getgid() or _NOBODY}",
            subnet=self.subnet,
            hosts=self.hosts,
            clients=host_names(self.cell.clients),
            servers=self._servers(),
            labels=self.labels,
            exchange=str(self.exchange),
            config=str(self.folder / "logs"),
        )
        yaml.safe_load(text)
        self.file.write_text(text)
        run_file = self.folder.parent.parent / "compose.yaml"  # the run's first cell stands for all
        if not run_file.exists():
            run_file.write_text(text)

    def start(self, report: Report) -> None:
        """Bring all containers up; each step of Compose is told through `report`, as a sign of life."""
        # docker-compose 1.29 takes a slot for a service and another for its container: with fewer it waits for itself.
        slots = 2 * (len(self.hosts) + len(protocols.get(self.cell.protocol).servers))
        limits = ["env", "COMPOSE_HTTP_TIMEOUT=300", f"COMPOSE_PARALLEL_LIMIT={slots}"]
        words = ["--project-name", f"pubsub-{self.run}".lower(), "--file", str(self.file), "up", "--detach"]
        commands.follow([*limits, *engine.compose(), *words], lambda _line: report({"phase": "up"}))

    def heard(self, host: str, file: str) -> Any | None:
        """What a container told."""
        return heard(self.exchange / host / file)

    def tell(self, file: str, data: Any) -> None:
        """Tell all containers."""
        tell(self.shared / file, data)

    def ended(self) -> list[str]:
        """Services whose container has ended with an error."""
        template = '{{.Label "com.docker.compose.service"}} {{.Status}}'
        words = ["docker", "ps", "--all", "--filter", f"label={engine.RUN}={self.run}", "--filter", "status=exited"]
        lines = commands.run([*words, "--format", template]).splitlines()
        return [line.split()[0] for line in lines if "(0)" not in line]

    def save_logs(self) -> None:
        """Each container's output into the cell's logs."""
        template = '{{.ID}} {{.Label "com.docker.compose.service"}}'
        words = ["docker", "ps", "--all", "--filter", f"label={engine.RUN}={self.run}", "--format", template]
        for line in commands.run(words).splitlines():
            identity, service = line.split()
            text = commands.run(["sh", "-c", 'docker logs "$1" 2>&1', "sh", identity])
            if text:
                (self.folder / "logs" / f"{service}.log").write_text(text)

    def await_all(self, hosts: list[str], file: str, what: str, deadline: float, report: Callable[[], None]) -> None:
        """Until all `hosts` wrote `file`. Raises SetupError at `deadline` (s since the epoch), or if a container ended."""
        looked = time.time()
        while missing := [host for host in hosts if not (self.exchange / host / file).exists()]:
            if time.time() > deadline:
                raise SetupError(f"{what}: waited in vain for {', '.join(missing)}")
            if time.time() - looked > 3:
                looked = time.time()
                report()
                if gone := self.ended():
                    raise SetupError(f"{what}: {', '.join(gone)} ended; see its log beside the cell's results")
            time.sleep(0.1)


@contextmanager
def running(project: Project, report: Report) -> Iterator[dict[str, float]]:
    """Containers up in the `with`, removed after it; the mapping holds the seconds that both took."""
    times: dict[str, float] = {}
    begin = time.monotonic()
    try:
        project.start(report)
        times["up_s"] = round(time.monotonic() - begin, 3)
        yield times
    finally:
        project.save_logs()
        begin = time.monotonic()
        engine.remove_run(project.run)
        times["down_s"] = round(time.monotonic() - begin, 3)


def _connect(project: Project, report: Report) -> tuple[dict[str, int], int]:
    """Let all clients connect, and tell them when to go: ready clients by role, and that instant."""
    cell, clients = project.cell, host_names(project.cell.clients)

    def progress() -> None:
        seen = [project.heard(name, exchange.STATUS) or {} for name in clients]
        totals = {key: sum(one.get(key, 0) for one in seen) for key in ("ready", "sent", "delivered")}
        report({"phase": next((str(one["phase"]) for one in seen if "phase" in one), "up"), **totals})

    up = time.time() + _UP_LIMIT
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


def run_cell(cell: Cell, folder: Path, report: Report) -> dict[str, Any]:
    """Run one cell; messages.csv, PCAPs, logs and compose.yaml go below `folder`. Returns the facts of the run."""
    begin = time.time_ns()
    project = Project(cell, folder, folder.parent.parent.name)
    project.write()
    report({"phase": "up"})
    with running(project, report) as times:
        ready, go = _connect(project, report)
    records = Records(cell.run_tag, cell.size)
    counters: dict[str, dict[str, int]] = {}
    for name in host_names(cell.clients):
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
        "servers": served["servers"],
        "containers": {"image": image.name(), "subnet": f"{project.subnet}.0/24", **times},
    }


def up(cell: Cell, folder: Path, run: str) -> None:
    """`make up`: a cell's containers, publishing on schedule, left running for a look by hand."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    project = Project(cell, folder, run, kept=True)
    project.write()
    project.start(lambda _event: None)
    project.await_all(list(project.hosts), exchange.STATUS, "containers come up", time.time() + _UP_LIMIT, lambda: None)
    project.tell(exchange.BEGIN, begin := time.time_ns() + exchange.LEAD)
    project.tell(exchange.GO, begin + len(project.hosts) * cell.stagger + exchange.LEAD)
