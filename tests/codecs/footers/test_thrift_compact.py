"""Thrift's compact protocol: values as they were written, and bytes that end too early."""

from __future__ import annotations

import pytest

from alluvium.codecs.footers.thrift_compact import DAMAGE, CompactReader

#: A struct of a text (field 1), a list of two integers (2), a double (3), a flag (4), a number (21), each as Thrift's
#: own page has it.
WHOLE = b"\x18\x03abc" + b"\x19\x25\x02\x04" + b"\x17" + bytes(range(8)) + b"\x11" + b"\x05\x2a\x0e" + b"\x00"


def test_a_struct() -> None:
    reader = CompactReader(WHOLE)
    assert reader.struct() == {1: b"abc", 2: [1, 2], 3: bytes(range(8)), 4: True, 21: 7}
    assert reader.at == len(WHOLE)


def test_a_text_that_fills_the_bytes_to_their_end() -> None:
    assert CompactReader(b"\x18\x03abc\x00").struct() == {1: b"abc"}
    reader = CompactReader(b"xabc", 1)
    assert (reader._take(3), reader.at) == (b"abc", 4)


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_bytes_that_end_too_early(length: int) -> None:
    with pytest.raises(DAMAGE):
        CompactReader(WHOLE[:length]).struct()


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_fields_as_they_are_written(length: int) -> None:
    found = CompactReader(WHOLE).written_fields()
    assert next(written for _, _, written in found.values()) == b"\x03abc"
    with pytest.raises(DAMAGE):
        CompactReader(WHOLE[:length]).written_fields()
