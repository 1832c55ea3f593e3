import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from clients import payloads
from clients.payloads import Header, Message

NUMBERS = {
    "publisher": st.integers(1, 120),
    "seq": st.integers(1, 10**6),
    "scheduled": st.integers(0, 2**63 - 1),
}


@given(kind=st.sampled_from([("gps", 150), ("gps", 400), ("image", 50_000), ("image", 90_000)]), **NUMBERS)
def test_a_payload_has_its_exact_size_and_names_itself(kind, publisher, seq, scheduled):
    name, size = kind
    encoded = Message("00c0ffee", publisher, seq, scheduled, size, name).encode()
    assert len(encoded) == size
    assert payloads.parse(encoded) == Header("00c0ffee", publisher, seq, scheduled)


def test_a_position_is_json_and_moves_at_walking_pace():
    first, second = (json.loads(Message("0" * 8, 3, seq, 0, 150, "gps").encode()) for seq in (10, 20))
    moved = abs(float(first["lat"]) - float(second["lat"])) * 111_320
    assert 20 < moved < 200  # 100 s at 1.4 m/s on a heading of 51 degrees


def test_a_picture_is_a_jpeg_that_opens():
    picture = Image.open(io.BytesIO(Message("0" * 8, 1, 1, 0, 50_000, "image").encode()))
    picture.load()
    assert picture.format == "JPEG"
    assert picture.size == (640, 480)


@pytest.mark.parametrize("kind", payloads.KINDS)
def test_the_smallest_and_largest_size_are_kept_exactly(kind):
    for size in payloads.sizes(kind):
        assert len(Message("0" * 8, 120, 10**6, 2**63 - 1, size, kind).encode()) == size


@pytest.mark.parametrize("noise", [b"", b"{}", b'{"run":"xyz"', bytes(200)])
def test_bytes_without_a_header_are_nobodys(noise):
    assert payloads.parse(noise) is None
