"""How a protocol's messages are told apart in a capture, from the fields that tshark gives of a packet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Fields = Mapping[str, Sequence[str]]
"""tshark's fields of one packet by name, each with all its values, as it prints them with `-T fields`."""


class Kind(StrEnum):
    """What a packet is for; one that is for several things is of the first kind."""

    RETRANSMISSION = "retransmission"
    REPAIR = "repair"
    REPAIR_REQUEST = "repair request"
    DATA = "data"
    ACKNOWLEDGEMENT = "acknowledgement"
    HANDSHAKE = "handshake"
    CONTROL = "control"  # keep-alive, state of a sender, congestion control
    TCP_HANDSHAKE = "TCP handshake"
    TCP_ACKNOWLEDGEMENT = "TCP acknowledgement"
    OTHER = "other"


@dataclass(frozen=True)
class Pdu:
    """One message of a protocol (a protocol data unit) in a packet, under its name in the protocol's own terms.

    `payload` is what it carries, or more than that: it is searched for one of the testbed's messages. `releases`: a message
    of QoS 2 with this id may now be handed on. `span`: its own place and the next one's in a stream of datagrams of its
    sender; a message may go over several of them.
    """

    name: str
    kind: Kind
    topic: str = ""
    qos: int | None = None
    message_id: int | None = None
    duplicate: bool = False
    releases: bool = False
    span: tuple[int, int] | None = None
    payload: bytes = b""


@dataclass(frozen=True)
class Dissection:
    """A protocol's name, the fields to ask tshark for, and what they say: the messages in a packet, in their order.

    `script` is a Lua dissector under analysis/, for a tshark that does not know the protocol.
    """

    name: str
    fields: tuple[str, ...]
    pdus: Callable[[Fields], list[Pdu]]
    script: str = ""


def octets(text: str) -> bytes:
    """A field of bytes: tshark prints it with colons or without."""
    return bytes.fromhex(text.replace(":", ""))


def first(fields: Fields, name: str) -> str:
    """A field's first value, "" if it has none."""
    return next(iter(fields.get(name, ())), "")


def number(text: str) -> int | None:
    """A field of a number, decimal or hexadecimal; None if it is absent."""
    return int(text, 0) if text else None
