"""Runs cells in processes of their own, several at once, and watches over them: virtual and netns runtimes."""

import json
import os
import queue
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from clients import registry as protocols
from compose import engine
from guest import boot
from guest.cures import environment
from guest.kernel import Kernel
from testbed import commands
from testbed.cell import Cell
from testbed.errors import SetupError
from testbed.trial import write_configurations

_LOOK = 0.25
"""Seconds between two looks at the limits while a process says nothing."""

OnEvent = Callable[[dict[str, Any]], None]


class CellEnded(Exception):
    """A cell that was ended, or whose process ended, before it was done; `status` is what it is reported as."""

    def __init__(self, status: str, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class Runtime(Protocol):
    """How a cell's process is made."""

    name: str
    places: list[int]
    """CPU cores to use, one cell on each at a time."""

    def start(self, cell: Cell, job: Path, core: int) -> "subprocess.Popen[str]":
        """Start the process that runs the job's cells; it tells its steps on stdout."""

    def clean_up(self, folder: Path) -> None:
        """Remove what the process of the cell in `folder` could not, for it was killed."""


@dataclass
class Virtual:
    """A guest for each cell, pinned to a core."""

    kernel: Kernel
    name: str = "virtual"
    places: list[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))

    def start(self, cell: Cell, job: Path, core: int) -> "subprocess.Popen[str]":
        protocol = protocols.get(cell.protocol)
        cures = [f"{name}={value}" for name, value in environment(protocol.spins, protocol.reads_tsc).items()]
        boot.prepare(self.kernel, job.parent, ["env", *cures, *boot.python("guest.inside", str(job))])
        words, env = boot.command(self.kernel, core), boot.environment(self.kernel, cell.seed)
        return commands.start(words, stdout=subprocess.PIPE, env=env, cwd=job.parent, own_group=True)

    def clean_up(self, folder: Path) -> None:
        """A guest leaves nothing."""


@dataclass
class Netns:
    """Namespaces of this machine, in real time, one cell at a time."""

    name: str = "netns"
    places: list[int] = field(default_factory=lambda: [0])

    def start(self, cell: Cell, job: Path, core: int) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "testbed.job", str(job)]
        return commands.start(words, stdout=subprocess.PIPE, own_group=True)

    def clean_up(self, folder: Path) -> None:
        """Namespaces end with their processes."""


@dataclass
class Docker:
    """Containers of a Compose project, in real time, one cell at a time; `images`: see compose.project."""

    images: dict[str, str]
    name: str = "docker"
    places: list[int] = field(default_factory=lambda: [0])

    def start(self, cell: Cell, job: Path, core: int) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "compose.job", str(job), json.dumps(self.images)]
        return commands.start(words, stdout=subprocess.PIPE, own_group=True)

    def clean_up(self, folder: Path) -> None:
        """All containers and networks of the run."""
        engine.remove_run(folder.parent.parent.name)


def _lines(
    process: "subprocess.Popen[str]", log: Path, stall: float, limit: float, stopped: threading.Event
) -> Iterator[str]:
    """The process's lines until it ends. Raises CellEnded if it is silent or alive for too long (s), or on `stopped`."""
    assert process.stdout is not None
    fd, rest, begin = process.stdout.fileno(), b"", time.monotonic()
    heard = begin
    with selectors.DefaultSelector() as selector, log.open("wb") as file:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            ready, now = selector.select(_LOOK), time.monotonic()
            if stopped.is_set():
                raise CellEnded("interrupted", "the run was interrupted")
            if now - begin > limit:
                raise CellEnded("timeout", f"not done after {limit:g} s of wall time")
            if now - heard > stall and not ready:
                raise CellEnded("stalled", f"its clock stood still for {stall:g} s of wall time")
            if not ready:
                continue
            heard, data = now, os.read(fd, 65536)
            if not data:
                return
            file.write(data)
            file.flush()
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace").strip() for line in lines)


def run_cell(runtime: Runtime, cell: Cell, folder: Path, core: int, on_event: OnEvent, stopped: threading.Event) -> str:
    """Run one cell in a process of its own; returns its status. Raises CellEnded if it did not come to its end."""
    log = folder / "logs" / f"{runtime.name}.log"
    log.parent.mkdir(parents=True)
    write_configurations(cell, folder)
    status = ""
    with tempfile.TemporaryDirectory(prefix="testbed-") as scratch:
        job = Path(scratch, "job.json")
        job.write_text(json.dumps([{"cell": asdict(cell), "folder": str(folder)}]))
        process = runtime.start(cell, job, core)
        with ExitStack() as stack:
            stack.callback(runtime.clean_up, folder)
            stack.enter_context(commands.ended_afterwards(process))
            for line in _lines(process, log, cell.stall_limit / 1e9, cell.wall_limit / 1e9, stopped):
                if line.startswith('{"cell":'):
                    event = json.loads(line)
                    status = event.get("status", status)
                    on_event(event)
    if not status:
        raise CellEnded("failed", f"its process ended before it was done; see {log}")
    return status


@dataclass(frozen=True)
class Finished:
    """What became of a cell."""

    cell: Cell
    status: str
    wall_s: float
    error: str = ""


def _effort(cell: Cell) -> int:
    """How long a cell takes, beside others: were a long one the last, the other cores would wait for it."""
    return protocols.get(cell.protocol).effort * cell.messages * cell.size


def run_all(
    runtime: Runtime, cells: list[Cell], folder_of: Callable[[Cell], Path], on_event: OnEvent
) -> Iterator[Finished]:
    """Run cells on all of the runtime's places, the dearest first; yields each as it finishes. Leaving ends what runs."""
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in runtime.places:
        free.put(core)
    stopped = threading.Event()

    def one(cell: Cell) -> Finished:
        core, begin = free.get(), time.monotonic()
        try:
            status = run_cell(runtime, cell, folder_of(cell), core, on_event, stopped)
            return Finished(cell, status, time.monotonic() - begin)
        except CellEnded as ended:
            return Finished(cell, ended.status, time.monotonic() - begin, str(ended))
        except SetupError as error:  # its clean-up failed; the run goes on
            return Finished(cell, "failed", time.monotonic() - begin, str(error))
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(runtime.places)) as pool:
        tasks = [pool.submit(one, cell) for cell in sorted(cells, key=_effort, reverse=True)]
        try:
            for task in as_completed(tasks):
                yield task.result()
        finally:
            stopped.set()
            for task in tasks:
                task.cancel()
