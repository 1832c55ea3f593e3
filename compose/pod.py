"""What the server pod's first container runs: channel and captures, in the namespace that the servers join."""

import os
import time
from functools import partial
from typing import Any

from broker import registry as servers
from clients import registry as protocols
from testbed import commands, exchange
from testbed.capture import capture
from testbed.cell import Cell
from testbed.channel import INTERFACE, Medium, medium
from testbed.exchange import OWN, SERVERS, SHARED, tell
from testbed.load import Cpu
from testbed.netns import Host, set_offloads
from testbed.waiting import wait_for


def _await_servers(cell: Cell, server: Host) -> None:
    for name in protocols.get(cell.protocol).servers:
        wait_for(partial(servers.get(name).is_up, server.address, SERVERS), f"{name} to listen", exchange.UP_LIMIT)


def _await(name: str, limit: int, link: Medium) -> None:
    """Wait for the host's word. Raises SetupError if the channel was changed meanwhile."""

    def told() -> bool:
        link.check()
        return (SHARED / name).exists()

    wait_for(told, f"the host to write {name}", limit / 1e9, exchange.LOOK)


def main() -> None:
    """Serve one cell, from the channel's start to the host's word to stop."""
    job = exchange.job()
    cell, server = job.cell, job.host(exchange.SERVER)
    _await_servers(cell, server)
    set_offloads(INTERFACE, on=False)
    with medium(server, cell.channel, cell.seed, cut=True) as link:
        points = {side: (server, taps) for side, taps in link.taps.items()}
        # Clients have no privilege to capture; on this side of the bridge the packets are the same.
        for name in cell.capture:
            points[name] = (server, link.taps_of(name, job.hosts[name]))
        with capture(points, OWN, live=True) as taps:
            tell(OWN / exchange.STATUS, {"phase": "up"})
            _await(exchange.GO, cell.wall_limit, link)
            before: dict[str, Any] = link.readback()
            busy = Cpu.now()
            _await(exchange.STOP, cell.wall_limit, link)
            after = link.readback()
            idle_pct = Cpu.now().idle_pct_since(busy)
            taps.settle()
    tell(
        OWN / exchange.OUTCOME,
        {
            "channel": {"commands": link.commands, "seeds": link.seeds, "before": before, "after": after},
            "capture": {"packets": taps.packets, "dropped": taps.dropped},
            "sources": {
                side: [[interface.name, interface.shows, raw.name] for interface, raw in raws]
                for side, raws in taps.sources().items()
            },
            "kernel": os.uname().release,
            "cpu_idle_pct": idle_pct,
            "stopped_ns": time.time_ns(),
            "servers": {name: commands.run(servers.get(name).version(cell.servers[name])) for name in job.own_image},
        },
    )


if __name__ == "__main__":
    main()
