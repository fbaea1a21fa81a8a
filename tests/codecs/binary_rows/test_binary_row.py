"""BinaryRows against the bytes, hashes and buckets that Paimon's Java gives."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_values import array_of, parse_column_type

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.errors import CorruptTable
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataType
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow

ROOT = Path(__file__).resolve().parents[3]
NAMED = os.environ.get("ALLUVIUM_CONFORMANCE")
VECTORS = (Path(NAMED) if NAMED else ROOT.parent / "shared" / "conformance") / "paimon" / "vectors"


def vectors() -> list[object]:
    file = VECTORS / "binary_row_and_bucket.json"
    if not file.exists():
        return [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"))]
    found = json.loads(file.read_text(encoding="utf-8"))["vectors"]
    return [pytest.param(v, id=",".join(str(kind) for kind in v["types"])) for v in found]


def described(types: list[DataType]) -> list[tuple[t.DataType, int]]:
    return [(to_logical(kind), kind.precision) for kind in types]


@pytest.mark.parametrize("vector", vectors())
def test_rows_hashes_and_buckets_of_java(vector) -> None:
    types = [parse_column_type(text) for text in vector["types"]]
    columns = [array_of([row["values"][i] for row in vector["rows"]], kind) for i, kind in enumerate(types)]
    rows = encode_rows(columns, described(types))
    assert [row.hex() for row in rows.to_pylist()] == [row["binary_row"] for row in vector["rows"]]
    hashes = hash_rows(rows)
    assert hashes.to_pylist() == [row["hash"] for row in vector["rows"]]
    for row, value in zip(vector["rows"], hashes, strict=True):
        for count, bucket in row["buckets"].items():
            assert buckets_of(pa.array([value.as_py()], pa.int32()), int(count)).to_pylist() == [bucket]
    for column, decoded in zip(columns, decode_rows(rows, described(types)), strict=True):
        assert decoded.type == column.type
        assert str(decoded) == str(column)


def test_a_row_without_fields_is_twelve_zero_bytes() -> None:
    """ "Empty row (unpartitioned, append keys): 12 zero bytes"."""
    assert decode_rows(pa.array([bytes(12)] * 2), []) == []


def test_fields_may_be_picked() -> None:
    rows = encode_rows([pa.array([1, None]), pa.array(["long enough to lie apart", "x"])], [(t.LONG, 0), (t.STRING, 0)])
    (texts,) = decode_rows(rows, [(t.LONG, 0), (t.STRING, 0)], only=(1,))
    assert texts.to_pylist() == ["long enough to lie apart", "x"]


def test_rows_that_are_absent_are_null() -> None:
    rows = encode_rows([pa.array([7], pa.int32())], [(t.INTEGER, 0)])
    with_gap = pa.array([None, rows[0].as_py()], pa.binary())
    assert decode_rows(with_gap, [(t.INTEGER, 0)])[0].to_pylist() == [None, 7]


def test_wide_decimals_keep_their_sign() -> None:
    kind = t.Decimal(38, 2)
    values = pa.array([Decimal("-1.28"), Decimal("1.27"), Decimal("1.28"), Decimal("-0.01"), None], to_arrow(kind))
    rows = encode_rows([values], [(kind, 0)])
    assert decode_rows(rows, [(kind, 0)])[0].equals(values)


@pytest.mark.parametrize("cut", [0, 3, 11, 12, 19])
def test_rows_cut_short(cut: int) -> None:
    row = encode_rows([pa.array([7], pa.int32())], [(t.INTEGER, 0)])[0].as_py()
    with pytest.raises(CorruptTable) as caught:
        decode_rows(pa.array([row[:cut]], pa.binary()), [(t.INTEGER, 0)])
    assert caught.value.code == "damaged-row"


def test_values_that_lead_out_of_their_rows() -> None:
    row = bytearray(encode_rows([pa.array(["long enough to lie apart"])], [(t.STRING, 0)])[0].as_py())
    row[12:20] = (1 << 62 | 50).to_bytes(8, "little")
    with pytest.raises(CorruptTable):
        decode_rows(pa.array([bytes(row)], pa.binary()), [(t.STRING, 0)])
