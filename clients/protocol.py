"""What a protocol declares, and what the testbed asks of its clients."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clients.loop import Loop
from clients.payloads import Message

PUBLISHER, SUBSCRIBER = "publisher", "subscriber"


@dataclass(frozen=True)
class Assignment:
    """What one client is told: who it is, where the server is, and its protocol's parameters."""

    role: str
    number: int
    address: str
    server: str
    qos: int | None
    parameters: dict[str, Any]
    seed: int
    deliver: Callable[[bytes], None]

    @property
    def name(self) -> str:
        """`publisher-07`, also the client's id on the wire."""
        return f"{self.role}-{self.number:02d}"

    @property
    def topic(self) -> str:
        """Each pair has a topic of its own."""
        return topic(self.number)


def topic(number: int) -> str:
    """The topic of pair `number`."""
    return f"testbed/unit-{number:02d}"


class Client(ABC):
    """One publisher or subscriber in an event loop. It is made, and opens its sockets, in its own host's namespace."""

    ready = False
    """Publisher: connected. Subscriber: its subscription is in place. Never goes back."""

    @abstractmethod
    def __init__(self, loop: Loop, assignment: Assignment) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Begin to connect, without blocking; keep trying until close()."""

    @abstractmethod
    def publish(self, message: Message) -> None:
        """Hand one message to the protocol, without blocking."""

    @abstractmethod
    def close(self) -> None:
        """Leave in an orderly way as far as that goes without waiting, and free all sockets."""

    def counters(self) -> dict[str, int]:
        """What the protocol did that the messages do not show: retries, give-ups, reconnects."""
        return {}


@dataclass(frozen=True)
class Protocol:
    """A protocol's entry: its QoS levels, the servers it needs, its clients and its filter in Wireshark.

    `transport` says in words how a payload of a size in bytes travels with the given parameters; `multicast`, whether
    packets go to multicast groups.
    `effort` is about how much wall time a cell takes beside one of MQTT; the dearest start first.
    Two things that virtual time has to know of its clients' and servers' libraries (guest/cures.py): whether one `spins`,
    that is waits without sleeping, and which of them, by file name, read the processor's time stamp counter.
    """

    name: str
    qos: tuple[int | None, ...]
    servers: tuple[str, ...]
    parameters: type
    publisher: Callable[[Loop, Assignment], Client]
    subscriber: Callable[[Loop, Assignment], Client]
    display_filter: str
    decode_as: tuple[str, ...] = ()
    transport: Callable[[int, dict[str, Any]], str] = lambda size, parameters: "whole"
    multicast: bool = False
    effort: int = 1
    spins: bool = False
    reads_tsc: tuple[str, ...] = ()
