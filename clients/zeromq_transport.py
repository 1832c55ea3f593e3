"""ZeroMQ's transports: where clients and forwarder meet, and their socket options (zmq_setsockopt(3)).

Used by the clients and by the forwarder, so that both ends of a leg agree. A leg is one direction of the messages:
*uplink* from publishers to the forwarder, *downlink* from there to subscribers.
"""

import ipaddress
from dataclasses import dataclass, field
from typing import Any

import zmq

from testbed.errors import SetupError
from testbed.parameters import Circumstances, Leg, duration, number, rate, size

UPLINK, DOWNLINK = "uplink", "downlink"

_MS, _KBIT = 10**6, 10**3
_UNLIMITED = 100 * 10**6  # bit/s for a leg that the channel does not limit: Fast Ethernet's
_LEAST_RATE = 8 * 10**3  # libzmq sizes PGM's windows in whole bytes a millisecond; below 8 kbit/s that is none
_ETHERNET_MTU = 1500  # bytes (RFC 894)
_REPAIRS = 10  # repairs that may be lost in a row: at 10 % loss that leaves 1 packet in 10^10
_NAK_WAIT = 250 * _MS  # libzmq's fixed NAK_BO_IVL (50 ms) and NAK_RPT_IVL (200 ms)


def _rate(leg: Leg) -> int:
    return max(_LEAST_RATE, leg.rate // _KBIT * _KBIT) if leg.rate else _UNLIMITED


def _largest_packet(values: Any, _: Circumstances) -> int:
    """What fits Ethernet, and what a sender may send in a second.

    libpgm's rate limiter holds the bytes of one second; a larger packet would never pass it.
    """
    return int(min(_ETHERNET_MTU, values.uplink_rate // 8, values.downlink_rate // 8))


def _recovery(values: Any, at: Circumstances) -> int:
    """The time that a sender must be able to repeat what it sent; libzmq makes the windows as long as this at full rate.

    _REPAIRS times a round trip with the receiver's waits, and once the time to send a message of every client: so long
    may a repair wait in the queue of the channel that all share.
    """
    slowest = min(values.uplink_rate, values.downlink_rate)
    queue = at.clients * at.size * 8 * 10**9 // slowest
    interval = _REPAIRS * (at.round_trip + _NAK_WAIT) + queue
    return -(-interval // _MS) * _MS


@dataclass(frozen=True)
class Queues:
    """Every socket's limits. Water marks in messages, 0: no limit; linger in ns: how long close() waits to send the rest."""

    sndhwm: int = number(0)
    rcvhwm: int = number(0)
    linger: int = duration()

    def options(self, _leg: str) -> dict[zmq.SocketOption, int]:
        """Socket options for one leg."""
        return {
            zmq.SocketOption.SNDHWM: self.sndhwm,
            zmq.SocketOption.RCVHWM: self.rcvhwm,
            zmq.SocketOption.LINGER: self.linger // _MS,
        }


@dataclass(frozen=True)
class Tcp(Queues):
    """ZMTP over TCP. Times in ns; a connect_timeout of 0 leaves it to TCP, a reconnect_ivl_max of 0 means no back-off."""

    reconnect_ivl: int = duration()
    reconnect_ivl_max: int = duration()
    connect_timeout: int = duration()
    handshake_ivl: int = duration()

    def options(self, leg: str) -> dict[zmq.SocketOption, int]:
        """Socket options for one leg."""
        return super().options(leg) | {
            zmq.SocketOption.RECONNECT_IVL: self.reconnect_ivl // _MS,
            zmq.SocketOption.RECONNECT_IVL_MAX: self.reconnect_ivl_max // _MS,
            zmq.SocketOption.CONNECT_TIMEOUT: self.connect_timeout // _MS,
            zmq.SocketOption.HANDSHAKE_IVL: self.handshake_ivl // _MS,
        }


@dataclass(frozen=True)
class Pgm(Queues):
    """PGM (RFC 3208) in UDP, by libpgm. Rates in bit/s of one sender, interval in ns, packet in bytes with its IP header."""

    uplink_rate: int = rate(auto=lambda _, at: _rate(at.uplink))
    downlink_rate: int = rate(auto=lambda _, at: _rate(at.downlink))
    recovery_ivl: int = duration(auto=_recovery)
    multicast_hops: int = number(1, 255)
    multicast_maxtpdu: int = size(auto=_largest_packet)

    def options(self, leg: str) -> dict[zmq.SocketOption, int]:
        """Socket options for one leg."""
        return super().options(leg) | {
            zmq.SocketOption.RATE: (self.uplink_rate if leg == UPLINK else self.downlink_rate) // _KBIT,
            zmq.SocketOption.RECOVERY_IVL: self.recovery_ivl // _MS,
            zmq.SocketOption.MULTICAST_HOPS: self.multicast_hops,
            zmq.SocketOption.MULTICAST_MAXTPDU: self.multicast_maxtpdu,
        }


@dataclass(frozen=True)
class Norm(Queues):
    """NORM (RFC 5740), by libnorm. libzmq 4.3 fixes all of its own settings: congestion control on, 1400 B segments,

    blocks of 16 with 4 for parity, TTL 255; RATE, RECOVERY_IVL and MULTICAST_HOPS have no effect.
    """


@dataclass(frozen=True)
class Transport:
    """A transport's scheme, its parameters, its port on each leg and its multicast group there (none: it is unicast)."""

    scheme: str
    parameters: type[Queues]
    ports: dict[str, int]
    groups: dict[str, str] = field(default_factory=dict)
    library: str = ""

    def endpoint(self, leg: str, address: str, server: str) -> str:
        """Where a host with this IPv4 `address` takes part in a leg (zmq_tcp(7), zmq_pgm(7))."""
        port = self.ports[leg]
        if not self.groups:
            return f"{self.scheme}://{server}:{port}"
        return f"{self.scheme}://{self._node(address)}{address};{self.groups[leg]}:{port}"

    def _node(self, address: str) -> str:
        """NORM's node id: libnorm would take it from the host's name, which hosts in namespaces share."""
        return f"{int(ipaddress.IPv4Address(address)) & 0xFFFF}," if self.scheme == "norm" else ""


def require(library: str) -> None:
    """Nothing, if this libzmq has the transport's library ("": it needs none); else raises SetupError."""
    if library and not zmq.has(library):
        raise SetupError(
            f"libzmq {zmq.zmq_version()} of pyzmq {zmq.__version__} is built without {library.upper()}: install "
            "libzmq3-dev and build pyzmq against it (pip install --no-binary pyzmq pyzmq), as `make setup` does"
        )


# Groups of the organisation-local scope (RFC 2365, section 6.2).
TCP = Transport("tcp", Tcp, {UPLINK: 5556, DOWNLINK: 5557})
PGM = Transport("epgm", Pgm, {UPLINK: 5558, DOWNLINK: 5559}, {UPLINK: "239.192.1.1", DOWNLINK: "239.192.1.2"}, "pgm")
NORM = Transport("norm", Norm, {UPLINK: 5560, DOWNLINK: 5561}, {UPLINK: "239.192.2.1", DOWNLINK: "239.192.2.2"}, "norm")
