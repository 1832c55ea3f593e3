"""A cell as a Compose project: what it is rendered from, its files, and what its containers tell."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from broker import registry as servers
from clients import registry as protocols
from compose import engine
from testbed import commands, exchange
from testbed.cell import Cell, host_names
from testbed.commands import CommandError
from testbed.drive import Report
from testbed.errors import SetupError
from testbed.exchange import Job, heard, tell

_TEMPLATES = Path(__file__).parent
_NOBODY = 65534
_LOOK = 3.0
"""Seconds between two looks at whether all containers still run, and between two signs of life while they come up."""

OWN_IMAGE = "testbed"

Images = dict[str, str]
"""The testbed's own image by OWN_IMAGE, and by its name that of each server which does not run in it."""


@contextmanager
def _signs_of_life(report: Report) -> Iterator[None]:
    """Report inside the `with`, for UP_LIMIT at most: on a busy machine Compose is silent for minutes."""
    done, until = threading.Event(), time.monotonic() + exchange.UP_LIMIT

    def tell_on() -> None:
        while not done.wait(_LOOK) and time.monotonic() < until:
            report({"phase": "up"})

    thread = threading.Thread(target=tell_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Project:
    """A cell's Compose project. `kept` is left running until `make down`."""

    def __init__(self, cell: Cell, folder: Path, run: str, images: Images, kept: bool = False) -> None:
        self.cell, self.folder, self.run = cell, folder, run
        self.image = images[OWN_IMAGE]
        self.exchange, self.file = folder / "exchange", folder / "compose.yaml"
        self.shared = self.exchange / "shared"
        self.subnet = engine.free_subnet()
        self.servers = protocols.get(cell.protocol).servers
        self.other_images = {name: images[name] for name in self.servers if name in images}
        self.clients = host_names(cell.clients)
        names = [exchange.SERVER, *self.clients]
        hosts = {name: f"{self.subnet}.{number}" for number, name in enumerate(names, start=1)}
        self.job = Job(cell, hosts, [name for name in self.servers if name not in self.other_images])
        self.labels = {engine.RUN: run, engine.OWNER: "" if kept else engine.owner()}
        self.user = f"{os.getuid() or _NOBODY}:{os.getgid() or _NOBODY}"  # clients and servers are never root

    def _server(self, name: str, folder: Path) -> dict[str, Any]:
        """What the template is told of a server; its configuration goes into `folder`, and into the cell's logs."""
        declared, context = servers.get(name), self.job.context(name)
        for file, text in declared.files(context).items():
            (folder / file).write_text(text)
            (self.folder / "logs" / file).write_text(text)
        if name not in self.other_images:
            ours = ["python3", "-m", "compose.serve", name]
            return {"name": name, "image": self.image, "command": ours, "folder": ""}
        assert declared.image is not None  # else it would have no image but ours
        return {
            "name": name,
            "image": self.other_images[name],
            "command": declared.image(context.settings).command(context),
            "folder": str(exchange.SERVERS),
        }

    def write(self) -> None:
        """Lay out the shared volume and render compose.yaml."""
        self.shared.mkdir(parents=True)
        working = self.exchange / "servers"
        for folder in (working, *(self.exchange / name for name in self.job.hosts)):
            folder.mkdir()
            folder.chmod(0o777)  # its containers are other users
        tell(self.shared / exchange.JOB, asdict(self.job))
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        text = environment.get_template("compose.yaml.j2").render(
            cell=self.cell,
            run=self.run,
            image=self.image,
            user=self.user,
            subnet=self.subnet,
            hosts=self.job.hosts,
            clients=self.clients,
            servers=[self._server(name, working) for name in self.servers],
            labels=self.labels,
            exchange=str(self.exchange),
            internal=not (protocols.get(self.cell.protocol).multicast and engine.firewalls_bridges()),
        )
        yaml.safe_load(text)
        self.file.write_text(text)
        run_file = self.folder.parent.parent / "compose.yaml"  # the run's first cell stands for all
        if not run_file.exists():
            run_file.write_text(text)

    @property
    def _compose(self) -> list[str]:
        return [*engine.compose(), "--project-name", f"pubsub-{self.run}".lower(), "--file", str(self.file)]

    def start(self, report: Report) -> None:
        """Bring all containers up, telling signs of life through `report`."""
        # docker-compose 1.29 takes a slot for a service and another for its container: with fewer it waits for itself.
        slots = 2 * (len(self.job.hosts) + len(self.servers))
        limits = ["env", "COMPOSE_HTTP_TIMEOUT=300", f"COMPOSE_PARALLEL_LIMIT={slots}"]
        with _signs_of_life(report):
            commands.follow([*limits, *self._compose, "up", "--detach"], lambda _line: None)

    def heard(self, host: str, file: str) -> Any | None:
        """What a container told."""
        return heard(self.exchange / host / file)

    def tell(self, file: str, data: Any) -> None:
        """Tell all containers."""
        tell(self.shared / file, data)

    def _containers(self, template: str, *filters: str) -> list[list[str]]:
        """The words of `template` for each of the run's containers."""
        words = ["docker", "ps", "--all", "--no-trunc", "--filter", f"label={engine.RUN}={self.run}"]
        words += [word for each in filters for word in ("--filter", each)]
        return [line.split() for line in commands.run([*words, "--format", template]).splitlines()]

    def ended(self) -> list[str]:
        """Services whose container has ended with an error."""
        lines = self._containers('{{.Label "com.docker.compose.service"}} {{.Status}}', "status=exited")
        return [service for service, _exited, code, *_since in lines if code != "(0)"]

    def save_logs(self) -> None:
        """All containers' output into the cell's logs, each line with its service's name."""
        try:
            text = commands.run([*self._compose, "logs", "--no-color"])
        except CommandError as error:  # what comes after a failure must not hide it
            text = str(error)
        (self.folder / "logs" / "containers.log").write_text(text)

    def await_all(self, hosts: list[str], file: str, what: str, deadline: float, report: Callable[[], None]) -> None:
        """Until all `hosts` wrote `file`. Raises SetupError at `deadline` (s since the epoch), or if a container ended."""
        looked = time.time()
        while missing := [host for host in hosts if not (self.exchange / host / file).exists()]:
            if time.time() > deadline:
                raise SetupError(f"{what}: waited in vain for {', '.join(missing)}")
            if time.time() - looked > _LOOK:
                looked = time.time()
                report()
                if gone := self.ended():
                    raise SetupError(f"{what}: {', '.join(gone)} ended; see logs/containers.log of the cell")
            time.sleep(0.1)
