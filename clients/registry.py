"""The protocols, one line each. Nothing else in the testbed knows a protocol by name."""

from importlib import import_module

from clients.protocol import Protocol

_MODULES = {
    "mqtt": "clients.mqtt",
    "mqttsn": "clients.mqttsn",
    "mqttsn-hybrid": "clients.mqttsn.hybrid",
    "zmq-tcp": "clients.zeromq",
    "zmq-pgm": "clients.zeromq",
    "zmq-norm": "clients.zeromq",
}

NAMES = tuple(_MODULES)


def get(name: str) -> Protocol:
    """The protocol's declaration. Its module is imported on demand, so that a cell loads only what it uses."""
    protocol = import_module(_MODULES[name]).PROTOCOLS[name]
    assert isinstance(protocol, Protocol)
    return protocol
