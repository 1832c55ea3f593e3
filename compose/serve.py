"""What a server's container of the testbed's own image runs: `python -m compose.serve mosquitto` becomes that server."""

import os
import sys

from broker import registry
from testbed import exchange
from testbed.exchange import SERVERS


def main(name: str) -> None:
    """Start the server in the folder with its configuration; this process becomes it."""
    job = exchange.job()
    command = registry.get(name).command(job.context(name))
    os.chdir(SERVERS)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1])
