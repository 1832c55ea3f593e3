"""One cell on network namespaces, from an empty kernel to results: runs in the guest, or on a host that has netem."""

import contextlib
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from broker import registry as servers
from broker.server import Context
from clients import registry as protocols
from testbed import commands
from testbed.capture import capture
from testbed.cell import Cell, host_names
from testbed.channel import Tap, medium
from testbed.drive import Report, drive, whole_second
from testbed.load import Cpu
from testbed.netns import SERVER_ADDRESS, Host, fabric
from testbed.pcapng import Interface, Totals, bring_together
from testbed.waiting import wait_for

RunOne = Callable[[Cell, Path, Report], dict[str, Any]]
"""How a fabric runs one cell: see run_cell()."""


def _context(name: str, cell: Cell, folder: Path) -> Context:
    return Context(SERVER_ADDRESS, cell.clients, folder, cell.servers[name], cell.qos)


def write_configurations(cell: Cell, folder: Path) -> None:
    """Render the configuration of every server of a cell into its logs; done on the host, where loading Jinja2 is quick."""
    for name in protocols.get(cell.protocol).servers:
        for file, text in servers.get(name).files(_context(name, cell, folder / "logs")).items():
            (folder / "logs" / file).write_text(text)


@contextlib.contextmanager
def _serving(name: str, cell: Cell, server: Host, folder: Path) -> Iterator[None]:
    declared = servers.get(name)
    context = _context(name, cell, folder)
    log = folder / f"{name}.log"
    with server.entered():
        process = commands.start(declared.command(context), stdout=log.open("w"), cwd=folder)

    def up() -> bool:
        if process.poll() is not None:
            raise commands.CommandError(declared.command(context), process.returncode, log.read_text()[-2000:])
        with server.entered():
            return declared.is_up(server.address, folder)

    try:
        wait_for(up, f"{name} to listen", 60)
        yield
    finally:
        process.terminate()
        process.wait(10)


def write_captures(cell: Cell, folder: Path, sources: dict[str, list[tuple[Interface, Path]]]) -> dict[str, Totals]:
    """Bring the raw captures of each side together in one PCAP below `folder`; the raw ones are removed."""
    wire = {}
    for side, raws in sources.items():
        wire[side] = bring_together(raws, folder / f"{side}.pcap", comment=f"cell {cell.id}, seed {cell.seed}, {side}")
        for _, raw in raws:
            raw.unlink()
    return wire


def run_cell(cell: Cell, folder: Path, report: Report) -> dict[str, Any]:
    """Run one cell; messages.csv, PCAPs and logs go below `folder`. Returns the facts of the run, for the manifest."""
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    begin = time.time_ns()
    with ExitStack() as stack:
        report({"phase": "fabric"})
        net = stack.enter_context(fabric(host_names(cell.clients), cell.tcp))
        for name in protocols.get(cell.protocol).servers:
            stack.enter_context(_serving(name, cell, net.server, logs))
        link = stack.enter_context(medium(net.server, cell.channel, cell.seed))
        points = {side: (net.server, side_taps) for side, side_taps in link.taps.items()}
        points |= {name: (net.clients[name], [Tap("eth0", "", f"all of {name}")]) for name in cell.capture}
        taps = stack.enter_context(capture(points, logs))
        before: dict[str, Any] = {}
        before_traffic: list[Cpu] = []
        after: dict[str, Any] = {}  # read before the clients leave: their farewells would look like a queue

        def agree(*_: object) -> int:
            before.update(link.readback())
            before_traffic.append(Cpu.now())
            return whole_second()

        outcome = drive(cell, net, report, whole_second(), agree, lambda: after.update(link.readback()))
        idle_pct = Cpu.now().idle_pct_since(before_traffic[0])
        taps.settle()
    outcome.records.write(folder / "messages.csv")
    (logs / "clients.json").write_text(json.dumps(outcome.counters, indent=1))
    report({"phase": "pcap"})
    wire = write_captures(cell, folder, taps.sources())
    return {
        "status": "ok",
        "ready_publishers": outcome.ready["publisher"],
        "ready_subscribers": outcome.ready["subscriber"],
        "go_ns": outcome.go,
        "foreign_messages": outcome.records.foreign,
        "emulated_s": (time.time_ns() - begin) / 1e9,
        "channel": {"commands": link.commands, "seeds": link.seeds, "before": before, "after": after},
        "capture": {"packets": taps.packets, "dropped": taps.dropped, "wire": asdict(wire["client-side"])},
        "kernel": os.uname().release,
        "cpu_idle_pct": idle_pct,
        "transport": protocols.get(cell.protocol).transport(cell.size, cell.parameters),
        "servers": {name: commands.run(servers.get(name).version(given)) for name, given in cell.servers.items()},
    }


def run_cell_safely(cell: Cell, folder: Path, report: Report, run_one: RunOne = run_cell) -> dict[str, Any]:
    """`run_one`, but an error is the cell's status and not the end of the run; its traceback is kept in the logs."""
    try:
        facts = run_one(cell, folder, report)
    except Exception as error:
        (folder / "logs" / "error.txt").write_text(traceback.format_exc())
        facts = {"status": "failed", "error": str(error)}
    (folder / "cell.json").write_text(json.dumps(facts, indent=1))
    return facts
