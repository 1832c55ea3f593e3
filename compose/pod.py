"""What the server pod's first container runs: channel and captures, in the namespace that the servers join."""

import os
import time
from typing import Any

from broker import registry as servers
from clients import registry as protocols
from testbed import commands, exchange
from testbed.capture import capture
from testbed.cell import Cell
from testbed.channel import INTERFACE, Tap, medium
from testbed.exchange import OWN, SHARED, tell
from testbed.netns import Host, offloads_off
from testbed.trial import answers
from testbed.waiting import wait_for


def _await_servers(cell: Cell, server: Host) -> None:
    for name in protocols.get(cell.protocol).servers:
        port = servers.get(name).tcp_port
        if port is not None:
            wait_for(lambda port=port: answers(server.address, port), f"{name} to listen", 60)  # type: ignore[misc]


def _await(name: str, limit: int) -> None:
    wait_for((SHARED / name).exists, f"the host to write {name}", limit / 1e9, exchange.LOOK)


def main() -> None:
    """Serve one cell, from the channel's start to the host's word to stop."""
    job = exchange.job()
    cell, server = job.cell, job.host(exchange.SERVER)
    _await_servers(cell, server)
    offloads_off(INTERFACE)
    with medium(server, cell.channel, cell.seed, cut=True) as link:
        points = {side: (server, taps) for side, taps in link.taps.items()}
        for (
            name
        ) in cell.capture:  # clients have no privilege to capture; on this side of the bridge the packets are the same
            points[name] = (server, [Tap(INTERFACE, f"host {job.hosts[name]}", f"all of {name}, at the server")])
        with capture(points, OWN, live=True) as taps:
            tell(OWN / exchange.STATUS, {"phase": "up"})
            _await(exchange.GO, cell.wall_limit)
            before: dict[str, Any] = link.readback()
            _await(exchange.STOP, cell.wall_limit)
            after = link.readback()
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
            "stopped_ns": time.time_ns(),
            "servers": {name: commands.run(servers.get(name).version(given)) for name, given in cell.servers.items()},
        },
    )


if __name__ == "__main__":
    main()
