"""Z85: the RFC's own example, a round trip, and texts that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.codecs.z85 import format_z85, parse_z85
from alluvium.errors import CorruptTable


def test_the_example_of_the_rfc() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert format_z85(data) == "HelloWorld"
    assert parse_z85("HelloWorld") == data


@given(st.binary(max_size=70))
def test_round_trip(data: bytes) -> None:
    """Bytes are filled up with zeros to a multiple of four."""
    assert parse_z85(format_z85(data)) == data + bytes(-len(data) % 4)


@pytest.mark.parametrize("text", ["Hello1", "Hell", "Hel\u00e9o", "Hel o", 'Hel"o', "#####", "Hel_o", "\n0000"])
def test_what_is_no_z85(text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_z85(text)
    assert caught.value.code == "malformed-z85"
