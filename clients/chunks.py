"""A payload larger than a datagram, cut into numbered chunks and put together again; for protocols that do not fragment.

A payload that fits is sent as it is. A chunk begins with a header: a mark that neither JSON nor JPEG begins with, the
publisher's number, the message's number, the chunk's index and how many there are, big-endian.
"""

import struct
from collections.abc import Callable

_HEADER = struct.Struct(">2sHIHH")
_MARK = b"\xc4\x4b"

SMALLEST = _HEADER.size + 1
"""Bytes: a chunk that carries anything."""


def split(payload: bytes, size: int, publisher: int, seq: int) -> list[bytes]:
    """The payload as it is, or chunks of `size` bytes (the last one may be shorter), headers included."""
    if len(payload) <= size:
        return [payload]
    room = size - _HEADER.size
    pieces = [payload[start : start + room] for start in range(0, len(payload), room)]
    return [_HEADER.pack(_MARK, publisher, seq, index, len(pieces)) + piece for index, piece in enumerate(pieces)]


def describe(payload_size: int, size: int) -> str:
    """How a payload travels, for the results: `37 chunks of 1400 B`, or `whole`."""
    count = len(split(bytes(payload_size), size, 0, 0))
    return "whole" if count == 1 else f"{count} chunks of {size} B"


def identify(data: bytes) -> tuple[int, int, int, int] | None:
    """Publisher, message number, index and count of a chunk; None if `data` is no chunk."""
    if not data.startswith(_MARK) or len(data) < SMALLEST:
        return None
    _, publisher, seq, index, count = _HEADER.unpack_from(data)
    return publisher, seq, index, count


class Reassembler:
    """Takes what arrives and hands on whole payloads, each chunked one once, as soon as its last chunk is there."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._partial: dict[tuple[int, int], dict[int, bytes]] = {}
        self._whole: set[tuple[int, int]] = set()
        self._duplicates = 0

    def accept(self, data: bytes) -> None:
        """A chunk, or a payload that was not cut."""
        found = identify(data)
        if found is None:
            self._deliver(data)
            return
        publisher, seq, index, count = found
        key = (publisher, seq)
        pieces = self._partial.setdefault(key, {})
        if key in self._whole or index in pieces:
            self._duplicates += 1
            return
        pieces[index] = data[_HEADER.size :]
        if len(pieces) == count:
            self._whole.add(key)
            self._deliver(b"".join(pieces[number] for number in sorted(pieces)))
            pieces.clear()

    def counters(self) -> dict[str, int]:
        """Chunks that came again, and payloads that never became whole."""
        return {
            "duplicate_chunks": self._duplicates,
            "incomplete_payloads": len(self._partial.keys() - self._whole),
        }
