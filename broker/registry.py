"""The servers that protocols can ask for, one line each."""

from importlib import import_module

from broker.server import Server

_MODULES = {
    "mosquitto": "broker.mosquitto",
    "mqttsn-gateway": "broker.mqttsn_gateway",
    "zmq-tcp-forwarder": "broker.forwarder",
    "zmq-pgm-forwarder": "broker.forwarder",
    "zmq-norm-forwarder": "broker.forwarder",
}

NAMES = tuple(_MODULES)


def get(name: str) -> Server:
    """The server's declaration; its module is imported on demand."""
    server = import_module(_MODULES[name]).SERVERS[name]
    assert isinstance(server, Server)
    return server
