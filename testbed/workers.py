"""Runs cells and probes in processes of their own, several at once, and watches over them: virtual and netns runtimes."""

import json
import os
import queue
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from testbed.probe import Probe
from testbed.trial import write_configurations

_LOOK = 0.25
"""Seconds between two looks at the limits while a process says nothing."""

Task = Cell | Probe
"""What a process of its own is made for."""

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

    def start(self, task: Task, job: Path, core: int) -> "subprocess.Popen[str]":
        """Start the process that runs the task in the job's file; it tells its steps on stdout."""

    def clean_up(self, folder: Path) -> None:
        """Remove what the process of the cell in `folder` could not, for it was killed."""


@dataclass
class Virtual:
    """A guest for each task, pinned to a core."""

    kernel: Kernel
    name: str = "virtual"
    places: list[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))

    def start(self, task: Task, job: Path, core: int) -> "subprocess.Popen[str]":
        cures: list[str] = []
        if isinstance(task, Cell):
            protocol = protocols.get(task.protocol)
            cures = [f"{name}={value}" for name, value in environment(protocol.spins, protocol.reads_tsc).items()]
        boot.prepare(self.kernel, job.parent, ["env", *cures, *boot.python("guest.inside", str(job))])
        words, env = boot.command(self.kernel, core), boot.environment(self.kernel, task.seed)
        return commands.start(words, stdout=subprocess.PIPE, env=env, cwd=job.parent, own_group=True)

    def clean_up(self, folder: Path) -> None:
        """A guest leaves nothing."""


@dataclass
class Netns:
    """Namespaces of this machine, in real time, one cell at a time."""

    name: str = "netns"
    places: list[int] = field(default_factory=lambda: [0])

    def start(self, task: Task, job: Path, core: int) -> "subprocess.Popen[str]":
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

    def start(self, task: Task, job: Path, core: int) -> "subprocess.Popen[str]":
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


def run_task(runtime: Runtime, task: Task, folder: Path, core: int, on_event: OnEvent, stopped: threading.Event) -> str:
    """Run one task in a process of its own; returns its status. Raises CellEnded if it did not come to its end."""
    log = folder / "logs" / f"{runtime.name}.log"
    log.parent.mkdir(parents=True)
    if isinstance(task, Cell):
        write_configurations(task, folder)
    status = ""
    with tempfile.TemporaryDirectory(prefix="testbed-") as scratch:
        job = Path(scratch, "job.json")
        job.write_text(json.dumps([{type(task).__name__.lower(): asdict(task), "folder": str(folder)}]))
        process = runtime.start(task, job, core)
        with ExitStack() as stack:
            stack.callback(runtime.clean_up, folder)
            stack.enter_context(commands.ended_afterwards(process))
            for line in _lines(process, log, task.stall_limit / 1e9, task.wall_limit / 1e9, stopped):
                if line.startswith('{"cell":'):
                    event = json.loads(line)
                    status = event.get("status", status)
                    on_event(event)
    if not status:
        raise CellEnded("failed", f"its process ended before it was done; see {log}")
    return status


@dataclass(frozen=True)
class Finished:
    """What became of a cell or a probe."""

    task: Task
    status: str
    wall_s: float
    error: str = ""


def dearest_first(cells: list[Cell]) -> list[Cell]:
    """In the order in which to start them: were a long cell the last, the other cores would wait for it."""
    return sorted(cells, key=lambda cell: -protocols.get(cell.protocol).effort * cell.messages * cell.size)


def run_all(
    runtime: Runtime, tasks: Sequence[Task], folder_of: Callable[[Task], Path], on_event: OnEvent
) -> Iterator[Finished]:
    """Start tasks in their order on all of the runtime's places; yields each as it finishes. Leaving ends what runs."""
    free: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in runtime.places:
        free.put(core)
    stopped = threading.Event()

    def one(task: Task) -> Finished:
        core, begin = free.get(), time.monotonic()
        try:
            status = run_task(runtime, task, folder_of(task), core, on_event, stopped)
            return Finished(task, status, time.monotonic() - begin)
        except CellEnded as ended:
            return Finished(task, ended.status, time.monotonic() - begin, str(ended))
        except SetupError as error:  # its clean-up failed; the run goes on
            return Finished(task, "failed", time.monotonic() - begin, str(error))
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(runtime.places)) as pool:
        futures = [pool.submit(one, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            stopped.set()
            for future in futures:
                future.cancel()
