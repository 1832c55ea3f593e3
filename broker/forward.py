"""The forwarder's process: repeats what comes in on one socket to the other until it is ended.

Its two arguments are a configuration that broker/forwarder.py wrote, and a file to make when both sockets are open.
"""

import json
import sys
from pathlib import Path
from typing import Any

import zmq

from clients.zeromq_transport import DOWNLINK, UPLINK, require


def _open(context: "zmq.Context[zmq.Socket[bytes]]", kind: zmq.SocketType, leg: dict[str, Any]) -> "zmq.Socket[bytes]":
    socket = context.socket(kind)
    for name, value in leg["options"].items():
        socket.setsockopt(zmq.SocketOption[name], value)
    for endpoint in leg["endpoints"]:
        socket.bind(endpoint)
    return socket


def main(configuration: Path, ready: Path) -> None:
    """Forward for ever. Raises SetupError if this libzmq lacks the transport."""
    legs = json.loads(configuration.read_text())
    require(legs["library"])
    with zmq.Context(io_threads=1) as context:
        publishers = _open(context, zmq.SocketType.XSUB, legs[UPLINK])
        subscribers = _open(context, zmq.SocketType.XPUB, legs[DOWNLINK])
        ready.touch()
        zmq.proxy(publishers, subscribers)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
