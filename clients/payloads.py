"""What the messages carry: a real-looking payload of an exact size that names its run, publisher, number and send time.

A position report is a JSON document; a picture is a JPEG file whose first comment segment holds the same header. So every
message can be told from its bytes alone, in a subscriber and in a PCAP.
"""

import json
import math
import random
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SCENE = Path(__file__).parent / "assets" / "scene.jpg"
_SOI, _COMMENT = b"\xff\xd8", b"\xff\xfe"  # JPEG start of image and comment marker (ITU-T T.81, table B.1)
_BEFORE_COMMENT = len(_SOI) + len(_COMMENT) + 2  # bytes: the segment's length follows its marker
_COMMENT_LIMIT = 65_533  # the segment's 16-bit length counts itself
_HEADER = re.compile(rb'\{"run":"([0-9a-f]{8})","pub":(\d+),"seq":(\d+),"t":(\d+)')


@dataclass(frozen=True)
class Message:
    """One message of one publisher. `scheduled` is its send time, ns since the epoch; delay is counted from it."""

    run: str
    publisher: int
    seq: int
    scheduled: int
    size: int
    kind: str

    def encode(self) -> bytes:
        """Exactly `size` bytes."""
        return _ENCODERS[self.kind](self)


@dataclass(frozen=True)
class Header:
    """What a payload says of itself."""

    run: str
    publisher: int
    seq: int
    scheduled: int


def parse(payload: bytes) -> Header | None:
    """The header found in a payload, or in packet bytes that hold one; None if there is none."""
    found = _HEADER.search(payload)
    return _header(found) if found else None


def _header(found: re.Match[bytes]) -> Header:
    return Header(found[1].decode(), int(found[2]), int(found[3]), int(found[4]))


def locate(data: bytes) -> Iterator[tuple[Header, int]]:
    """Every header in packet bytes, and where the payload that it belongs to begins."""
    for found in _HEADER.finditer(data):
        start = found.start() - _BEFORE_COMMENT
        is_picture = start >= 0 and data.startswith(_SOI + _COMMENT, start)
        yield _header(found), start if is_picture else found.start()


def _document(message: Message, **more: object) -> bytes:
    header = {"run": message.run, "pub": message.publisher, "seq": message.seq, "t": message.scheduled}
    return json.dumps({**header, **more}, separators=(",", ":")).encode()


def _position(message: Message) -> bytes:
    """A unit on foot: it keeps a heading of its own and walks 1.4 m/s, with a metre or so of receiver noise."""
    noise = random.Random(f"{message.run}/{message.publisher}/{message.seq}")
    heading = (message.publisher * 137.5) % 360
    metres = 1.4 * message.seq * 10
    lat = 59.97 + message.publisher * 0.001 + (metres * math.cos(math.radians(heading)) + noise.gauss(0, 1)) / 111_320
    lon = 11.04 + message.publisher * 0.001 + (metres * math.sin(math.radians(heading)) + noise.gauss(0, 1)) / 55_700
    fields = {"lat": f"{lat:.6f}", "lon": f"{lon:.6f}", "hdg": f"{heading:.0f}", "sat": noise.randint(6, 12)}
    text = _document(message, **fields)
    return text[:-1] + b" " * (message.size - len(text)) + text[-1:]


@cache
def _scene() -> bytes:
    return _SCENE.read_bytes()


def _picture(message: Message) -> bytes:
    scene = _scene()
    comment = _document(message)
    comment += b" " * (message.size - len(scene) - 4 - len(comment))
    return _SOI + _COMMENT + struct.pack(">H", len(comment) + 2) + comment + scene[len(_SOI) :]


_ENCODERS: dict[str, Callable[[Message], bytes]] = {"gps": _position, "image": _picture}

KINDS = tuple(_ENCODERS)


def sizes(kind: str) -> tuple[int, int]:
    """The smallest and largest size in bytes that `kind` can have."""
    longest = Message("0" * 8, 999, 10**6, 10**19, 0, kind)
    smallest = len(longest.encode())
    return smallest, smallest + 10**6 if kind == "gps" else len(_scene()) + 4 + _COMMENT_LIMIT
