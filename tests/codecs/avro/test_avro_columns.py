"""Columns of many Avro blocks at once are the records that fastavro reads one after the other."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.avro.avro_columns import Unreadable, read_columns
from alluvium.codecs.avro.avro_container import parse_schema, read_blocks

SCHEMA = {
    "type": "record",
    "name": "outer",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "other", "type": {"type": "array", "items": {"type": "record", "name": "item", "fields": [
            {"name": "n", "type": "int"}, {"name": "t", "type": ["null", "bytes"]}]}}},
        {"name": "inner", "type": ["null", {"type": "record", "name": "inner", "fields": [
            {"name": "b", "type": "bytes"},
            {"name": "longs", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
            {"name": "texts", "type": {"type": "array", "items": "string"}},
            {"name": "again", "type": ["null", "item"]}]}]},
    ],
}  # fmt: skip
PATHS = [
    ("n",),
    ("s",),
    ("inner", "b"),
    ("inner", "longs"),
    ("inner", "texts"),
    ("inner", "again", "n"),
    ("inner", "gone"),
]
LONGS = st.integers(-(2**63), 2**63 - 1)
ITEMS = st.fixed_dictionaries({"n": st.integers(-(2**31), 2**31 - 1), "t": st.none() | st.binary(max_size=3)})
RECORDS = st.fixed_dictionaries(
    {
        "n": LONGS | st.sampled_from([0, -1, 63, 64, -64, -65]),
        "s": st.none() | st.text(max_size=200),
        "other": st.lists(ITEMS, max_size=3),
        "inner": st.none() | st.fixed_dictionaries({
            "b": st.binary(max_size=5),
            "longs": st.none() | st.lists(st.none() | LONGS, max_size=4),
            "texts": st.lists(st.text(max_size=4), max_size=3),
            "again": st.none() | ITEMS,
        }),
    }
)  # fmt: skip


def container(records: list[dict[str, Any]], block_bytes: int) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, records, sync_interval=block_bytes)
    return out.getvalue()


def columns(data: bytes) -> dict[tuple[str, ...], pa.Array | None]:
    schema, blocks = read_blocks(data, "x")
    return read_columns(parse_schema(schema), blocks, PATHS)


def member(record: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        record = None if record is None else record.get(name)
    return record


def comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return [comparable(one) for one in value] if isinstance(value, list) else value


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(RECORDS, max_size=30), st.integers(1, 300))
def test_columns_are_the_records(records: list[dict[str, Any]], block_bytes: int) -> None:
    found = columns(container(records, block_bytes))
    for path, values in found.items():
        expected = [comparable(member(record, path)) for record in records]
        assert (values.to_pylist() if values is not None else [None] * len(records)) == expected


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=6), st.data())
def test_damage_is_noticed_or_harmless(records: list[dict[str, Any]], data: st.DataObject) -> None:
    """Whatever bytes stand there: columns come back, or `Unreadable`; nothing else, and in no time."""
    schema, blocks = read_blocks(container(records, 50), "x")
    number = data.draw(st.integers(0, len(blocks) - 1))
    count, block = blocks[number]
    place = data.draw(st.integers(0, len(block) - 1))
    changed = bytearray(block)
    changed[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.booleans())
    blocks[number] = (count, bytes(changed[:place]) if cut else bytes(changed))
    try:
        found = read_columns(parse_schema(schema), blocks, PATHS)
    except Unreadable:
        return
    assert not cut
    assert all(values is None or len(values) == len(records) for values in found.values())


def test_a_count_that_no_block_can_hold() -> None:
    schema, blocks = read_blocks(container([{"n": 1, "s": None, "other": [], "inner": None}], 50), "x")
    for count in (2**62, -1, 2, 0):
        with pytest.raises(Unreadable):
            read_columns(parse_schema(schema), [(count, blocks[0][1])], PATHS)


def test_sized_blocks_of_arrays() -> None:
    """ "If a block's count is negative, its absolute value is used, and the count is followed by a long block size"."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "long"}}]}
    # -2, of 2 bytes: 1, 2; then 1: 3; then the end.
    body = bytes([3, 4, 2, 4, 2, 6, 0])
    found = read_columns(schema, [(1, body), (1, bytes([0]))], [("a",)])
    assert found[("a",)].to_pylist() == [[1, 2, 3], []]


def test_what_is_not_read_here() -> None:
    for kind in ("double", {"type": "map", "values": "long"}, "boolean"):
        with pytest.raises(Unreadable):
            read_columns(
                {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}, [(1, bytes(8))], [("a",)]
            )
