"""The ZeroMQ forwarder: an XSUB socket for the publishers, an XPUB socket for the subscribers, one for each transport.

Over TCP the subscriptions pass through it to the publishers, so that it filters; over PGM and NORM it repeats everything
to the subscribers' group, and each subscriber filters for itself. broker/forward.py is its process.
"""

import json
import sys
from functools import partial

from broker.server import Context, Server
from clients.zeromq_transport import DOWNLINK, NORM, PGM, TCP, UPLINK, Seat, Transport
from testbed.places import PROJECT

_CONFIGURATION, _READY = "forwarder.json", "forwarder.ready"


def _files(transport: Transport, context: Context) -> dict[str, str]:
    parameters = transport.parameters(**context.settings)
    legs = {
        leg: {
            "endpoints": transport.endpoints(
                Seat(leg, leg == DOWNLINK, context.address, context.address, range(1, context.clients + 1))
            ),
            "options": {option.name: value for option, value in parameters.options(leg).items()},
        }
        for leg in (UPLINK, DOWNLINK)
    }
    return {_CONFIGURATION: json.dumps({"library": transport.library, **legs}, indent=1)}


def _command(context: Context) -> list[str]:
    files = [str(context.folder / name) for name in (_CONFIGURATION, _READY)]
    # A server works in its own folder, so Python is told where the project is.
    return ["env", f"PYTHONPATH={PROJECT}", sys.executable, "-m", "broker.forward", *files]


def _server(name: str, transport: Transport) -> Server:
    return Server(
        name=name,
        settings=transport.parameters,
        files=partial(_files, transport),
        command=_command,
        tcp_port=None,
        version=lambda _: ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", "libzmq5", "libpgm-5.3-0", "libnorm1"],
        ready_file=_READY,
    )


SERVERS = {
    name: _server(name, transport)
    for name, transport in (("zmq-tcp-forwarder", TCP), ("zmq-pgm-forwarder", PGM), ("zmq-norm-forwarder", NORM))
}
