"""Chunks: cut and put together, in any order, with repeats."""

import random

from hypothesis import given
from hypothesis import strategies as st

from clients.chunks import SMALLEST, Reassembler, describe, split


@given(st.binary(max_size=3000), st.integers(SMALLEST, 1463), st.randoms(use_true_random=False))
def test_round_trip_in_any_order(payload: bytes, size: int, order: random.Random) -> None:
    payload = b"{" + payload
    delivered: list[bytes] = []
    pieces = split(payload, size, 27, 1_000_000)
    assert all(len(piece) <= size for piece in pieces)
    reassembler = Reassembler(delivered.append)
    arriving = pieces if len(pieces) == 1 else pieces + pieces[1:]
    for piece in order.sample(arriving, len(arriving)):
        reassembler.accept(piece)
    assert delivered == [payload]
    assert reassembler.counters() == {"duplicate_chunks": len(arriving) - len(pieces), "incomplete_payloads": 0}


def test_messages_do_not_mix_and_a_gap_is_told() -> None:
    delivered: list[bytes] = []
    reassembler = Reassembler(delivered.append)
    first, second = (split(bytes([65 + seq]) * 100, 60, 1, seq) for seq in (1, 2))
    for piece in (first[0], second[0], *second[1:]):
        reassembler.accept(piece)
    assert delivered == [b"C" * 100]
    assert reassembler.counters()["incomplete_payloads"] == 1


def test_description() -> None:
    assert describe(1000, 1000) == "whole"
    assert describe(50_000, 1000) == "51 chunks of 1000 B"
