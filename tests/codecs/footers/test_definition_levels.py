"""Null arrays and maps, counted out of the histograms in a footer: files of Arrow have them as those of Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.definition_levels import null_collections
from alluvium.codecs.footers.parquet_footer import FooterColumn, read_footer
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.types import Array, Map

ROWS = [
    {"l": [1, None], "m": {"k": 1}, "s": {"l": [1], "x": 1}, "a.b": [[1]]},
    {"l": [], "m": {}, "s": {"l": None, "x": 1}, "a.b": None},
    {"l": None, "m": None, "s": None, "a.b": [None]},
    {"l": [None], "m": {"k": None}, "s": {"l": [], "x": None}, "a.b": [[]]},
    {"l": None, "m": {"k": 2}, "s": {"l": [None], "x": None}, "a.b": []},
]
SCHEMA = pa.schema(
    [
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("s", pa.struct([("l", pa.list_(pa.int64())), ("x", pa.int64())])),
        ("a.b", pa.list_(pa.list_(pa.int64()))),
    ]
)
NULLS = {("l",): 2, ("m",): 1, ("s", "l"): 2, ("a.b",): 1}


def written(rows: list[dict], row_group_size: int = 2) -> bytes:
    rows = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink, row_group_size=row_group_size)
    return sink.getvalue().to_pybytes()


def footer_of(content: bytes) -> bytes:
    size = int.from_bytes(content[-8:-4], "little")
    return content[-8 - size : -8]


def test_nulls_of_several_row_groups() -> None:
    assert null_collections(footer_of(written(ROWS)), [*NULLS]) == NULLS


def test_a_path_that_is_not_there_has_no_count() -> None:
    assert null_collections(footer_of(written(ROWS)), [("zz",), ("l",)]) == {("l",): 2}


def test_files_without_histograms_tell_nothing() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"l": [[1], None]}), sink, write_statistics=False)
    assert null_collections(footer_of(sink.getvalue().to_pybytes()), [("l",)]) in ({}, {("l",): 1})


def test_a_footer_that_is_cut_is_damage() -> None:
    footer = footer_of(written(ROWS))
    for size in range(0, len(footer) - 1, 7):
        with pytest.raises(CorruptTable) as caught:
            null_collections(footer[:size], [("l",)])
        assert caught.value.code == "damaged-file"


def test_statistics_of_a_file_count_them() -> None:
    types = {("l",): Array(t.LONG), ("m",): Map(t.STRING, t.LONG), ("s", "l"): Array(t.LONG), ("a.b",): Array(t.LONG)}
    columns = [FooterColumn(path, data_type) for path, data_type in types.items()]
    found = read_footer(pa.BufferReader(written(ROWS)), columns)
    assert {path: stats.null_count for path, stats in found.columns.items()} == NULLS
