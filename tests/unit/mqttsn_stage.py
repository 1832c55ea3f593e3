"""A gateway that is a scripted socket on loopback, and the MQTT-SN clients that talk to it; for the tests."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clients.loop import Loop
from clients.mqttsn import make_publisher
from clients.mqttsn.session import PORT, Session
from clients.mqttsn.subscriber import Subscriber
from clients.payloads import Message
from clients.protocol import PUBLISHER, SUBSCRIBER, Assignment

MS = 10**6
RETRY = 150 * MS
PARAMETERS = {
    "keepalive": 600 * 10**9,
    "retry_interval": RETRY,
    "retries": 2,
    "congestion_wait": 300 * MS,
    "reconnect_delay": 20 * MS,
    "chunk": 1000,
}
CONNECT_PUBLISHER = bytes.fromhex("12 04 04 01 0258") + b"publisher-03"
CONNECT_SUBSCRIBER = bytes.fromhex("13 04 04 01 0258") + b"subscriber-03"
ACCEPT = bytes.fromhex("03 05 00")
TOPIC = b"testbed/unit-03"
REGISTER = bytes.fromhex("15 0a 0000 0001") + TOPIC


def loopback(last: int) -> str:
    """An address of this process alone, so that tests may run side by side."""
    return f"127.{1 + os.getpid() // 256 % 254}.{os.getpid() % 256}.{last}"


def message(seq: int = 1, size: int = 150) -> Message:
    return Message("0123abcd", 3, seq, 1_700_000_000 * 10**9, size, "image" if size > 10_000 else "gps")


@dataclass
class Stage:
    """A client and its gateway."""

    gateway: socket.socket
    loop: Loop = field(default_factory=Loop)
    delivered: list[bytes] = field(default_factory=list)
    clients: list[Session] = field(default_factory=list)

    def start(self, role: str, qos: int, **changes: int) -> Session:
        assignment = Assignment(
            role=role,
            number=3,
            address=loopback(2),
            server=loopback(1),
            qos=qos,
            parameters=PARAMETERS | changes,
            seed=1,
            deliver=self.delivered.append,
        )
        make: Callable[[Loop, Assignment], Session] = make_publisher if role == PUBLISHER else Subscriber
        client = make(self.loop, assignment)
        self.clients.append(client)
        client.start()
        return client

    def expect(self, wire: str | bytes, within: int = RETRY // 2) -> None:
        """The gateway gets just these bytes next."""
        expected = bytes.fromhex(wire) if isinstance(wire, str) else wire
        assert self.receive(within) == expected

    def receive(self, within: int = RETRY // 2) -> bytes:
        inbox: list[bytes] = []
        self.loop.on_readable(self.gateway.fileno(), lambda: inbox.append(self.gateway.recv(65535)))
        arrived = self.loop.run_until(lambda: bool(inbox), time.time_ns() + within)
        self.loop.forget(self.gateway.fileno())
        assert arrived, "the gateway got nothing"
        return inbox[0]

    def silence(self, during: int = RETRY // 2) -> None:
        """The gateway gets nothing for so long (ns)."""
        inbox: list[bytes] = []
        self.loop.on_readable(self.gateway.fileno(), lambda: inbox.append(self.gateway.recv(65535)))
        self.loop.run_until(lambda: bool(inbox), time.time_ns() + during)
        self.loop.forget(self.gateway.fileno())
        assert not inbox

    def send(self, *wires: str | bytes) -> None:
        for wire in wires:
            datagram = bytes.fromhex(wire) if isinstance(wire, str) else wire
            self.gateway.sendto(datagram, (loopback(2), PORT))
        self.loop.run_until(lambda: False, time.time_ns() + 5 * MS)

    def registered(self, qos: int, **changes: int) -> Session:
        """A publisher that is ready, with topic id 0x0201."""
        client = self.start(PUBLISHER, qos, **changes)
        assert self.receive().endswith(b"publisher-03")
        self.send(ACCEPT)
        self.expect(REGISTER)
        assert not client.ready
        self.send("07 0b 0201 0001 00")
        assert client.ready
        return client

    def subscribed(self, qos: int, **changes: int) -> Session:
        """A subscriber that is ready, with topic id 0x0201."""
        client = self.start(SUBSCRIBER, qos, **changes)
        self.expect(CONNECT_SUBSCRIBER)
        self.send(ACCEPT)
        self.expect(bytes([0x14, 0x12, qos << 5, 0, 1]) + TOPIC)
        assert not client.ready
        self.send(bytes([8, 0x13, qos << 5, 2, 1, 0, 1, 0]))
        assert client.ready
        return client


def publish(flags: int, message_id: int, data: bytes, topic_id: int = 0x0201) -> bytes:
    body = bytes([0x0C, flags]) + topic_id.to_bytes(2, "big") + message_id.to_bytes(2, "big") + data
    return bytes([len(body) + 1]) + body
