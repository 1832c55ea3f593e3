"""ZeroMQ's transports: where clients and forwarder meet, and their socket options (zmq_setsockopt(3)).

Used by the clients and by the forwarder, so that both ends of a leg agree. A leg is one direction of the messages:
*uplink* from publishers to the forwarder, *downlink* from there to subscribers.
"""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import zmq

from testbed.errors import SetupError
from testbed.parameters import Circumstances, Leg, duration, number, rate, size

UPLINK, DOWNLINK = "uplink", "downlink"

_PGM_GROUPS, _NORM_GROUPS = "239.192.1", "239.192.2"  # organisation-local scope (RFC 2365, section 6.2)
NORM_PORT = 5600

_MS, _KBIT = 10**6, 10**3
_UNLIMITED = 100 * 10**6  # bit/s for a leg that the channel does not limit: Fast Ethernet's
_LEAST_RATE = 8 * 10**3  # libzmq sizes PGM's windows in whole bytes a millisecond; below 8 kbit/s that is none
_ETHERNET_MTU = 1500  # bytes (RFC 894)
_REPAIRS = 10  # repairs that may be lost in a row: at 10 % loss that leaves 1 packet in 10^10
_NAK_WAIT = 250 * _MS  # libzmq's fixed NAK_BO_IVL (50 ms) and NAK_RPT_IVL (200 ms)


def _rate(leg: Leg) -> int:
    return max(_LEAST_RATE, leg.rate // _KBIT * _KBIT) if leg.rate else _UNLIMITED


def _largest_packet(values: "Pgm", _: Circumstances) -> int:
    """What fits Ethernet, and what a sender may send in a second.

    libpgm's rate limiter holds the bytes of one second; a larger packet would never pass it.
    """
    return min(_ETHERNET_MTU, values.uplink_rate // 8, values.downlink_rate // 8)


def _recovery(values: "Pgm", at: Circumstances) -> int:
    """The time that a sender must be able to repeat what it sent; libzmq makes the windows as long as this at full rate.

    _REPAIRS times a round trip with the receiver's waits, and once the time to send a message of every client: so long
    may a repair wait in the queue of the channel that all share.
    """
    slowest: int = min(values.uplink_rate, values.downlink_rate)
    queue = at.clients * at.size * 8 * 10**9 // slowest
    interval = _REPAIRS * (at.round_trip + _NAK_WAIT) + queue
    return -(-interval // _MS) * _MS


@dataclass(frozen=True)
class Queues:
    """Every socket's limits. Water marks in messages, 0: no limit; linger in ns: how long close() waits to send on."""

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

    def frames(self, data: bytes) -> list[bytes]:
        """The frames that a message's bytes travel in."""
        return [data]


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
    """PGM (RFC 3208) in UDP, by libpgm. Rates in bit/s of one sender, interval in ns, packet in bytes with IP header."""

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
    """NORM (RFC 5740), by libnorm. Longer messages are cut into frames of `frame_bytes`.

    libzmq 4.3 hangs when a frame with its header does not fit its buffer of 2048 B (norm_engine.cpp, send_data), and fixes
    NORM's own settings: congestion control on, segments of 1400 B in blocks of 16 with 4 for parity, TTL 255; RATE,
    RECOVERY_IVL and MULTICAST_HOPS have no effect.
    """

    frame_bytes: int = number(64, 2038)

    def frames(self, data: bytes) -> list[bytes]:
        """The frames that a message's bytes travel in."""
        return [data[start : start + self.frame_bytes] for start in range(0, len(data), self.frame_bytes)]


@dataclass(frozen=True)
class Seat:
    """A socket's place: its leg, whether it sends there, its host's and the server's address, the publishers it is for."""

    leg: str
    sends: bool
    address: str
    server: str
    publishers: Iterable[int]


def _tcp(seat: Seat) -> list[str]:
    return [f"tcp://{seat.server}:{5556 if seat.leg == UPLINK else 5557}"]


def _pgm(seat: Seat) -> list[str]:
    """A sender listens on a group where nobody speaks (repairs are asked for by unicast).

    Else every publisher would take in all that the others send, which changes nothing on the wire and costs much time.
    """
    group, port = (f"{_PGM_GROUPS}.1", 5558) if seat.leg == UPLINK else (f"{_PGM_GROUPS}.2", 5559)
    return [f"epgm://{seat.address};{f'{_PGM_GROUPS}.3;' if seat.sends else ''}{group}:{port}"]


def _norm(seat: Seat) -> list[str]:
    """A port for each publisher, for the reason that PGM's senders listen elsewhere: here both must be one group.

    The node's id is told, for libnorm would take it from the host's name, which hosts in namespaces share.
    """
    ports = [NORM_PORT + number for number in seat.publishers] if seat.leg == UPLINK else [NORM_PORT]
    group = f"{_NORM_GROUPS}.{1 if seat.leg == UPLINK else 2}"
    node = int(ipaddress.IPv4Address(seat.address)) & 0xFFFF
    return [f"norm://{node},{seat.address};{group}:{port}" for port in ports]


@dataclass(frozen=True)
class Transport:
    """A transport's parameters, its endpoints (zmq_tcp(7), zmq_pgm(7)), the library that libzmq needs for it ("": none)."""

    parameters: type[Queues]
    endpoints: Callable[[Seat], list[str]]
    library: str = ""


TCP = Transport(Tcp, _tcp)
PGM = Transport(Pgm, _pgm, "pgm")
NORM = Transport(Norm, _norm, "norm")


def require(library: str) -> None:
    """Nothing, if this libzmq has the transport's library ("": it needs none); else raises SetupError."""
    if library and not zmq.has(library):
        raise SetupError(
            f"libzmq {zmq.zmq_version()} of pyzmq {zmq.__version__} is built without {library.upper()}: install "
            "libzmq3-dev and build pyzmq against it (pip install --no-binary pyzmq pyzmq), as `make setup` does"
        )
