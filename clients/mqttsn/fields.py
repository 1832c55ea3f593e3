"""How a field of an MQTT-SN 1.2 message stands on the wire, and what all messages share; the messages are in codec.py.

All section numbers are those of "MQTT For Sensor Networks (MQTT-SN), Protocol Specification, Version 1.2" (IBM, 2013).
"""

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, ClassVar, get_type_hints


class TopicKind(IntEnum):
    """TopicIdType, section 5.3.4. In SUBSCRIBE and UNSUBSCRIBE, 0 means that a topic name follows instead of an id."""

    NORMAL = 0
    PREDEFINED = 1
    SHORT = 2


class ReturnCode(IntEnum):
    """Section 5.3.10."""

    ACCEPTED = 0
    CONGESTION = 1
    INVALID_TOPIC_ID = 2
    NOT_SUPPORTED = 3


@dataclass(frozen=True)
class Flags:
    """The Flags octet, section 5.3.4. QoS is -1 to 2."""

    dup: bool = False
    qos: int = 0
    retain: bool = False
    will: bool = False
    clean_session: bool = False
    topic_kind: TopicKind = TopicKind.NORMAL

    def encode(self) -> int:
        """DUP, two bits of QoS (-1 is 0b11), Retain, Will, CleanSession, two bits of TopicIdType."""
        return (
            self.dup << 7
            | (self.qos & 0b11) << 5
            | self.retain << 4
            | self.will << 3
            | self.clean_session << 2
            | self.topic_kind
        )

    @classmethod
    def decode(cls, octet: int) -> "Flags":
        """Raises ValueError for the reserved TopicIdType 0b11."""
        qos = octet >> 5 & 0b11
        return cls(
            dup=bool(octet & 0x80),
            qos=-1 if qos == 0b11 else qos,
            retain=bool(octet & 0x10),
            will=bool(octet & 0x08),
            clean_session=bool(octet & 0x04),
            topic_kind=TopicKind(octet & 0b11),
        )


@dataclass(frozen=True)
class Coding:
    """`size` octets (None: all that are left), and the ways between value and bytes.

    An optional field at the end of a message may be absent, its value is then None.
    """

    size: int | None
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    optional: bool = False


def _one(value: int) -> bytes:
    return bytes([value])


_WORD = Coding(2, struct.Struct(">H").pack, lambda data: int.from_bytes(data, "big"))
_FLAGS = Coding(1, lambda flags: _one(flags.encode()), lambda data: Flags.decode(data[0]))

Octet = Annotated[int, Coding(1, _one, lambda data: data[0])]
Word = Annotated[int, _WORD]
FlagsOctet = Annotated[Flags, _FLAGS]
Code = Annotated[ReturnCode, Coding(1, _one, lambda data: ReturnCode(data[0]))]
Text = Annotated[str, Coding(None, str.encode, bytes.decode)]
Data = Annotated[bytes, Coding(None, bytes, bytes)]
OptionalWord = Annotated[int | None, dataclasses.replace(_WORD, optional=True)]
OptionalFlags = Annotated[Flags | None, dataclasses.replace(_FLAGS, optional=True)]


_known: dict[type, dict[str, Coding]] = {}


def _codings(kind: Any) -> dict[str, Coding]:
    if kind not in _known:
        hints = get_type_hints(kind, include_extras=True)
        _known[kind] = {item.name: hints[item.name].__metadata__[0] for item in dataclasses.fields(kind)}
    return _known[kind]


@dataclass(frozen=True)
class Packet:
    """What all messages share."""

    TYPE: ClassVar[int]

    def encode(self) -> bytes:
        """The datagram. Length is one octet, or 0x01 and two octets from 256 octets on (section 5.2.1)."""
        body = _one(self.TYPE)
        for name, coding in _codings(type(self)).items():
            value = getattr(self, name)
            body += b"" if value is None else coding.encode(value)
        if len(body) + 1 < 256:
            return _one(len(body) + 1) + body
        return b"\x01" + struct.pack(">H", len(body) + 3) + body

    @classmethod
    def parse(cls, variable: bytes) -> "Packet":
        """The message from its variable part. Raises ValueError."""
        values: dict[str, Any] = {}
        for name, coding in _codings(cls).items():
            if coding.optional and not variable:
                values[name] = None
                continue
            size = len(variable) if coding.size is None else coding.size
            if len(variable) < size:
                raise ValueError(f"{name} is missing")
            values[name] = coding.decode(variable[:size])
            variable = variable[size:]
        if variable:
            raise ValueError(f"{len(variable)} octets too many")
        return cls(**values)
