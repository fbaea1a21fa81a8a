"""Values as messages show them: whatever Python thinks of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from alluvium.portable.shown import shown


def raw(number: int, kind: pa.DataType) -> pa.Scalar:
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.array([number], width).cast(kind)[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pa.scalar(None, pa.int64()), None),
        (pa.scalar(None), None),
        (pa.scalar(7), "7"),
        (pa.scalar(""), ""),
        (pa.scalar(True), "True"),
        (pa.scalar(dt.date(2024, 2, 29)), "2024-02-29"),
        (pa.scalar(Decimal("1.50")), "1.50"),
        (pa.scalar([1, None]), "[1, None]"),
        # Of years that Python has not.
        (raw(10_000_000, pa.date32()), "29349-01-26"),
        (raw(-800_000, pa.date32()), "-0221-09-04"),
        (raw(300_000_000_000_000_000, pa.timestamp("us")), "11476-08-15 05:20:00.000000"),
    ],
)
def test_values_as_text(value: pa.Scalar, text: str | None) -> None:
    assert shown(value) == text


def test_bytes_that_are_no_text() -> None:
    """A column of texts may hold them: the message is about another matter."""
    buffers = pa.array([b"\xff\xfe"]).buffers()
    value = pa.StringArray.from_buffers(1, buffers[1], buffers[2])[0]
    assert shown(value) == "?"


def test_what_neither_python_nor_arrow_can_write() -> None:
    value = pa.array([[10_000_000]], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))[0]
    assert isinstance(shown(value), str)
