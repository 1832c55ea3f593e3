"""The messages of MQTT-SN 1.2, section 5.4, to and from datagrams; nothing of their behaviour.

A message is a dataclass whose fields stand in the order of the wire.
"""

import struct
from dataclasses import dataclass

from clients.mqttsn.fields import Code, Data, FlagsOctet, Octet, OptionalFlags, OptionalWord, Packet, Text, Word


class Malformed(ValueError):
    """Bytes that are no MQTT-SN message."""


@dataclass(frozen=True)
class Advertise(Packet):
    """Section 5.4.1; `duration` in s."""

    TYPE = 0x00
    gateway: Octet
    duration: Word


@dataclass(frozen=True)
class SearchGateway(Packet):
    """Section 5.4.2."""

    TYPE = 0x01
    radius: Octet


@dataclass(frozen=True)
class GatewayInfo(Packet):
    """Section 5.4.3; no address if the gateway itself sends it."""

    TYPE = 0x02
    gateway: Octet
    address: Data


@dataclass(frozen=True)
class Connect(Packet):
    """Section 5.4.4; `protocol` is 1, `duration` the keep-alive time in s."""

    TYPE = 0x04
    flags: FlagsOctet
    protocol: Octet
    duration: Word
    client: Text


@dataclass(frozen=True)
class ConnectAck(Packet):
    """Section 5.4.5."""

    TYPE = 0x05
    code: Code


@dataclass(frozen=True)
class WillTopicRequest(Packet):
    """Section 5.4.6."""

    TYPE = 0x06


@dataclass(frozen=True)
class WillTopic(Packet):
    """Section 5.4.7; with neither flags nor topic it takes the will back."""

    TYPE = 0x07
    flags: OptionalFlags
    topic: Text


@dataclass(frozen=True)
class WillMessageRequest(Packet):
    """Section 5.4.8."""

    TYPE = 0x08


@dataclass(frozen=True)
class WillMessage(Packet):
    """Section 5.4.9."""

    TYPE = 0x09
    data: Data


@dataclass(frozen=True)
class Register(Packet):
    """Section 5.4.10; `topic_id` is 0 if the client sends it."""

    TYPE = 0x0A
    topic_id: Word
    message_id: Word
    topic: Text


@dataclass(frozen=True)
class RegisterAck(Packet):
    """Section 5.4.11."""

    TYPE = 0x0B
    topic_id: Word
    message_id: Word
    code: Code


@dataclass(frozen=True)
class Publish(Packet):
    """Section 5.4.12; `message_id` is 0 with QoS 0 and -1. A short topic's two octets stand in `topic_id`."""

    TYPE = 0x0C
    flags: FlagsOctet
    topic_id: Word
    message_id: Word
    data: Data


@dataclass(frozen=True)
class PublishAck(Packet):
    """Section 5.4.13; with a code other than ACCEPTED also the answer to a PUBLISH of another QoS than 1."""

    TYPE = 0x0D
    topic_id: Word
    message_id: Word
    code: Code


@dataclass(frozen=True)
class PublishComplete(Packet):
    """Section 5.4.14."""

    TYPE = 0x0E
    message_id: Word


@dataclass(frozen=True)
class PublishReceived(Packet):
    """Section 5.4.14."""

    TYPE = 0x0F
    message_id: Word


@dataclass(frozen=True)
class PublishRelease(Packet):
    """Section 5.4.14."""

    TYPE = 0x10
    message_id: Word


@dataclass(frozen=True)
class Subscribe(Packet):
    """Section 5.4.15; `topic` is a name, a short name or a predefined id's two octets, as the flags' topic_kind says."""

    TYPE = 0x12
    flags: FlagsOctet
    message_id: Word
    topic: Data


@dataclass(frozen=True)
class SubscribeAck(Packet):
    """Section 5.4.16; the flags hold the granted QoS, `topic_id` is 0 for a name with wildcards."""

    TYPE = 0x13
    flags: FlagsOctet
    topic_id: Word
    message_id: Word
    code: Code


@dataclass(frozen=True)
class Unsubscribe(Packet):
    """Section 5.4.17; `topic` as in Subscribe."""

    TYPE = 0x14
    flags: FlagsOctet
    message_id: Word
    topic: Data


@dataclass(frozen=True)
class UnsubscribeAck(Packet):
    """Section 5.4.18."""

    TYPE = 0x15
    message_id: Word


@dataclass(frozen=True)
class PingRequest(Packet):
    """Section 5.4.19; only a sleeping client names itself."""

    TYPE = 0x16
    client: Text


@dataclass(frozen=True)
class PingResponse(Packet):
    """Section 5.4.20."""

    TYPE = 0x17


@dataclass(frozen=True)
class Disconnect(Packet):
    """Section 5.4.21; a client that goes to sleep says for how long, in s."""

    TYPE = 0x18
    duration: OptionalWord


@dataclass(frozen=True)
class WillTopicUpdate(Packet):
    """Section 5.4.22; with neither flags nor topic it takes the will back."""

    TYPE = 0x1A
    flags: OptionalFlags
    topic: Text


@dataclass(frozen=True)
class WillTopicResponse(Packet):
    """Section 5.4.24."""

    TYPE = 0x1B
    code: Code


@dataclass(frozen=True)
class WillMessageUpdate(Packet):
    """Section 5.4.23."""

    TYPE = 0x1C
    data: Data


@dataclass(frozen=True)
class WillMessageResponse(Packet):
    """Section 5.4.25."""

    TYPE = 0x1D
    code: Code


PACKETS: dict[int, type[Packet]] = {kind.TYPE: kind for kind in Packet.__subclasses__()}
"""All messages of section 5.4 by their type; the forwarder's envelope (5.5) is none of them."""


def decode(datagram: bytes) -> Packet:
    """The message in a datagram. Raises Malformed."""
    long = datagram[:1] == b"\x01"
    header = 4 if long else 2
    if len(datagram) < header:
        raise Malformed(f"{len(datagram)} octets are no message")
    length = struct.unpack(">H", datagram[1:3])[0] if long else datagram[0]
    if length != len(datagram):
        raise Malformed(f"its length says {length}, it has {len(datagram)} octets")
    kind = PACKETS.get(datagram[header - 1])
    if kind is None:
        raise Malformed(f"message type 0x{datagram[header - 1]:02x} is unknown")
    try:
        return kind.parse(datagram[header:])
    except ValueError as error:
        raise Malformed(f"{kind.__name__}: {error}") from error
