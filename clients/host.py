"""One client in a container of its own: the same loop and schedule as in a guest, `python -m clients.host publisher-07`."""

import sys
from typing import Any

from clients.loop import Loop
from testbed import exchange
from testbed.drive import drive
from testbed.exchange import OWN, SHARED, heard, tell
from testbed.netns import Fabric
from testbed.waiting import wait_for


def _agree(loop: Loop, ready: dict[str, int]) -> int:
    """Tell whether this client is ready, and serve its sockets until the host says when to go."""
    tell(OWN / exchange.READY, ready)

    def look_again() -> None:
        loop.call_later(int(exchange.LOOK * 1e9), look_again)

    look_again()
    forever = 2**62
    loop.run_until(lambda: (SHARED / exchange.GO).exists(), forever)
    return int(str(heard(SHARED / exchange.GO)))


def main(name: str) -> None:
    """Run this container's client for one cell."""
    job = exchange.job()

    def report(event: dict[str, Any]) -> None:
        tell(OWN / exchange.STATUS, event)

    report({"phase": "up"})
    wait_for((SHARED / exchange.BEGIN).exists, "the word to begin", job.cell.wall_limit / 1e9, exchange.LOOK)
    fabric = Fabric(job.host(exchange.SERVER), {name: job.host(name)})
    outcome = drive(job.cell, fabric, report, int(str(heard(SHARED / exchange.BEGIN))), _agree, lambda: None)
    tell(OWN / exchange.OUTCOME, {"records": outcome.records.to_json(), "counters": outcome.counters})


if __name__ == "__main__":
    main(sys.argv[1])
