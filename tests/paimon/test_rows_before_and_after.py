"""What the columns are compared by, when changes are told from two states: null is null's equal, and no text's."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from alluvium.paimon.view.changes import _comparable


@pytest.mark.parametrize(
    "values",
    [
        pa.chunked_array([["a", None, "", "\0", "null", "None", "=a"]]),
        pa.chunked_array([[1, None, 0, -1]]),
        pa.chunked_array([[1.5, None, 0.0, -0.0, math.inf]]),
        pa.chunked_array([[b"a", None, b"", b"\0"]]),
        pa.chunked_array([[[1], None, [], [None]]], pa.list_(pa.int64())),
        pa.chunked_array([[True, None, False]]),
    ],
    ids=lambda values: str(values.type),
)
def test_no_two_values_are_compared_by_one_text(values: pa.ChunkedArray) -> None:
    texts = _comparable(values).to_pylist()
    assert None not in texts
    assert len(set(texts)) == len(values)
    again = _comparable(pa.chunked_array([*values.chunks, *values.chunks])).to_pylist()
    assert again == texts * 2
