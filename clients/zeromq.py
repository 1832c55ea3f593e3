"""ZeroMQ PUB/SUB through a forwarder, over TCP, PGM or NORM, driven by our event loop.

A message is the topic, a space, and the payload, in one frame if the transport takes it. Subscribing to the topic with
its space makes the prefix match exact. What start-up says is explained in docs/zeromq.md: a *hello*, a message with an
empty payload, tells a subscriber that its path is open all the way from its publisher.
"""

import random
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import zmq

from clients import zeromq_packets
from clients.loop import Loop
from clients.packets import Kind
from clients.payloads import Message
from clients.protocol import Assignment, Client, Protocol
from clients.view import View
from clients.zeromq_transport import (
    DOWNLINK,
    NORM,
    NORM_PORT,
    PGM,
    TCP,
    UPLINK,
    Norm,
    Pgm,
    Queues,
    Seat,
    Tcp,
    Transport,
    require,
)
from testbed.parameters import Circumstances, Leg, duration, number

_SUBSCRIBED = b"\x01"  # first byte of the frame that an XPUB socket reads for a new subscription (RFC 29/PUBSUB)
_READS_TSC = ("libzmq.so.5",)
_HELLO_BITS = 600 * 8  # a hello's packet and seven that repeat the sender's state in the next 25 s, with their headers


def _hello_interval(_: object, at: Circumstances) -> int:
    """Twice the round trip and four times what a hello of every client takes on the slower leg, in ns.

    So the hellos fill a quarter of the channel, and one interval after its last a publisher's own have arrived.
    """

    def sending(leg: Leg) -> int:
        return at.clients * _HELLO_BITS * 10**9 // leg.rate if leg.rate else 0

    return 2 * at.round_trip + 4 * max(sending(at.uplink), sending(at.downlink))


def _hellos(_: object, at: Circumstances) -> int:
    """Two; five where packets are lost: at 10 % none of them arrives once in 10^5."""
    return 5 if at.uplink.loses or at.downlink.loses else 2


@dataclass(frozen=True)
class _Hellos:
    """Hellos that a publisher sends at start-up, and the ns from one to the next and from the last to being ready."""

    hellos: int = number(1, 1000, auto=_hellos)
    hello_interval: int = duration(auto=_hello_interval)


@dataclass(frozen=True)
class PgmParameters(_Hellos, Pgm):
    """What a study says of clients over PGM."""


@dataclass(frozen=True)
class NormParameters(_Hellos, Norm):
    """What a study says of clients over NORM."""


class _ZmqClient(Client):
    """One socket in a context of its own, whose I/O thread lives in the namespace of the thread that made it."""

    transport: ClassVar[Transport]
    parameters: ClassVar[type[Queues]]
    leg: ClassVar[str]
    kind: ClassVar[zmq.SocketType]

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        self._loop, self._assignment = loop, assignment
        self._prefix = f"{assignment.topic} ".encode()
        self._counters: dict[str, int] = {}
        self._parameters = self.parameters(**assignment.parameters)
        require(self.transport.library)
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(self.kind)
        for option, value in self._parameters.options(self.leg).items():
            self._socket.setsockopt(option, value)

    def start(self) -> None:
        me = self._assignment
        for endpoint in self.transport.endpoints(
            Seat(self.leg, self.leg == UPLINK, me.address, me.server, [me.number])
        ):
            self._socket.connect(endpoint)
        self._loop.on_readable(self._socket.fileno(), self._drain)
        self._drain()

    def close(self) -> None:
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        self._context.term()

    def counters(self) -> dict[str, int]:
        return self._counters

    def _drain(self) -> None:
        """The socket's descriptor is edge-triggered (zmq_getsockopt(3), ZMQ_FD): what is there must be read to the end."""
        while int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._on_message(b"".join(self._socket.recv_multipart(zmq.NOBLOCK)))

    def _on_message(self, data: bytes) -> None:
        raise NotImplementedError

    def _count(self, what: str) -> None:
        self._counters[what] = self._counters.get(what, 0) + 1


class _Publisher(_ZmqClient):
    leg, kind = UPLINK, zmq.SocketType.XPUB

    def publish(self, message: Message) -> None:
        self._send(message.encode())

    def _send(self, payload: bytes) -> None:
        self._socket.send_multipart(self._parameters.frames(self._prefix + payload), zmq.NOBLOCK)
        self._drain()  # sending may take the descriptor's edge

    def _hello(self) -> None:
        self._count("hellos")
        self._send(b"")


class TcpPublisher(_Publisher):
    """Ready when its subscriber's subscription has come to it through the forwarder; a hello goes back the same way."""

    transport, parameters = TCP, Tcp

    def _on_message(self, data: bytes) -> None:
        if data == _SUBSCRIBED + self._prefix:
            self.ready = True
            self._hello()


class _MulticastPublisher(_Publisher):
    """Subscriptions do not travel over multicast: it says hello some times, and is ready when that is over."""

    def start(self) -> None:
        super().start()
        assert isinstance(self._parameters, _Hellos)
        hellos, interval = self._parameters.hellos, self._parameters.hello_interval
        first = random.Random(self._assignment.seed).randrange(interval + 1)  # spread, else the first would queue
        self._loop.call_later(first, partial(self._greet, hellos, interval))

    def _greet(self, left: int, interval: int) -> None:
        if not left:
            self.ready = True
            return
        self._hello()
        self._loop.call_later(interval, partial(self._greet, left - 1, interval))

    def _on_message(self, data: bytes) -> None:
        pass


class PgmPublisher(_MulticastPublisher):
    """A publisher over PGM."""

    transport, parameters = PGM, PgmParameters


class NormPublisher(_MulticastPublisher):
    """A publisher over NORM."""

    transport, parameters = NORM, NormParameters


class _Subscriber(_ZmqClient):
    """Ready with the first hello, which has come all the way from its publisher."""

    leg, kind = DOWNLINK, zmq.SocketType.SUB

    def start(self) -> None:
        self._socket.setsockopt(zmq.SUBSCRIBE, self._prefix)
        super().start()

    def publish(self, message: Message) -> None:
        raise NotImplementedError("a subscriber does not publish")

    def _on_message(self, data: bytes) -> None:
        payload = data[len(self._prefix) :]
        if payload:
            self._assignment.deliver(payload)
        else:
            self._count("hellos")
            self.ready = True


class TcpSubscriber(_Subscriber):
    """A subscriber over TCP."""

    transport, parameters = TCP, Tcp


class PgmSubscriber(_Subscriber):
    """A subscriber over PGM."""

    transport, parameters = PGM, PgmParameters


class NormSubscriber(_Subscriber):
    """A subscriber over NORM."""

    transport, parameters = NORM, NormParameters


_ZMTP = View(
    dissector="zmtp",
    title="ZMTP",
    topic=("zmtp.topic",),
    filters={  # flags: RFC 23/ZMTP, "Framing"
        Kind.DATA: "zmtp.flags.command == 0",
        Kind.HANDSHAKE: "zmtp.version || zmtp.flags.command == 1",
    },
)
_PGM = View(
    dissector="pgm",
    title="PGM",
    message_id=("pgm.spm.sqn", "pgm.nak.sqn"),
    filters={  # packet types: RFC 3208, section 8.1
        Kind.REPAIR: "pgm.hdr.type == 5",
        Kind.REPAIR_REQUEST: "pgm.hdr.type in {8 .. 10}",
        Kind.DATA: "pgm.hdr.type == 4",
    },
)
_NORM = View(
    dissector="norm",
    title="NORM",
    message_id=("norm.sequence",),
    filters={Kind.REPAIR_REQUEST: "norm.type == 4", Kind.DATA: "norm.type == 2"},  # RFC 5740, section 4.1
)

PROTOCOLS = {
    "zmq-tcp": Protocol(
        name="zmq-tcp",
        qos=(None,),
        servers=("zmq-tcp-forwarder",),
        parameters=Tcp,
        publisher=TcpPublisher,
        subscriber=TcpSubscriber,
        display_filter="zmtp",
        dissections=(zeromq_packets.ZMTP,),
        views=(_ZMTP,),
        decode_as=("tcp.port==5556-5557,zmtp",),
        reads_tsc=_READS_TSC,
    ),
    "zmq-pgm": Protocol(
        name="zmq-pgm",
        qos=(None,),
        servers=("zmq-pgm-forwarder",),
        parameters=PgmParameters,
        publisher=PgmPublisher,
        subscriber=PgmSubscriber,
        display_filter="pgm",
        dissections=(zeromq_packets.PGM,),
        views=(_PGM,),
        decode_as=("udp.port==5558-5559,pgm",),
        multicast=True,
        effort=4,
        spins=True,
        reads_tsc=_READS_TSC,
    ),
    "zmq-norm": Protocol(
        name="zmq-norm",
        qos=(None,),
        servers=("zmq-norm-forwarder",),
        parameters=NormParameters,
        publisher=NormPublisher,
        subscriber=NormSubscriber,
        display_filter="norm",
        dissections=(zeromq_packets.NORM,),
        views=(_NORM,),
        decode_as=(f"udp.port=={NORM_PORT}-{NORM_PORT + 120},norm",),
        multicast=True,
        effort=8,
        spins=True,
        reads_tsc=_READS_TSC,
    ),
}
