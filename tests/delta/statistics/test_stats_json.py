"""Decoding of statistics beside `json.loads` and a walk: random documents of good and of any other shape."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.statistics import stats_json
from alluvium.delta.statistics.stats_json import Path, decode_stats, leading_num_records
from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

#: Leaves of every depth, one of whose names msgspec cannot have as a key, beside others.
LEAVES: dict[Path, DataType] = {
    ("i",): t.INTEGER, ("e",): DecimalType(20, 2), ("s", "x"): t.STRING, ("s", "y", "z"): DecimalType(9, 4),
    ('quo"te',): t.LONG, ("w", "line\nbreak"): DecimalType(5, 1), ("w", "plain"): t.DOUBLE, ('a\\b', "deep", "er"): t.INTEGER,
}  # fmt: skip
KEYS = {"minValues": "low", "maxValues": "high", "nullCount": "null_count"}


def walk(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def good(chance: random.Random) -> dict[str, Any]:
    """A document as writers have it, of which any part may be missing."""
    document: dict[str, Any] = {"numRecords": chance.randrange(99), "tightBounds": chance.random() < 0.5}
    for key in KEYS:
        document[key] = {"unknown": {"i": 7}}
        for path, kind in LEAVES.items():
            at = document[key]
            for name in path[:-1]:
                at = at.setdefault(name, {"other": 1})
            number = chance.randrange(10**6)
            is_decimal = isinstance(kind, DecimalType) and key != "nullCount"
            at[path[-1]] = number + 0.25 if is_decimal else str(number) if kind == t.STRING else number
            if chance.random() < 0.1:
                at[path[-1]] = None
            if chance.random() < 0.1:
                del at[path[-1]]
    for key in list(document):
        if chance.random() < 0.15:
            del document[key]
    return document


def damaged(document: dict[str, Any], chance: random.Random) -> Any:
    """The same with something of another shape in it."""
    other = chance.choice([7, "x", [1], True, {"i": {"x": 1}}, [], {}])
    place = chance.choice(["all", "minValues", "maxValues", "nullCount", "leaf"])
    if place == "all":
        return other
    if place == "leaf":
        document.setdefault("minValues", {})["s"] = other
    else:
        document[place] = other
    return document


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def ensure_as_json(documents: list[Any], texts: list[str | None]) -> None:
    found = decode_stats(pa.array(texts, pa.string()), LEAVES)
    documents = [
        d if text is not None and isinstance(d, dict) else {} for d, text in zip(documents, texts, strict=True)
    ]
    assert found.num_records == [d.get("numRecords") for d in documents]
    assert found.tight_bounds == [d.get("tightBounds") for d in documents]
    assert list(found.leaves) == list(LEAVES)
    for path in LEAVES:
        for key, attribute in KEYS.items():
            values = getattr(found.leaves[path], attribute)
            assert list(map(plain, values)) == [walk(d, (key, *path)) for d in documents], (path, key)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("slice_size", [3, 100])
def test_whatever_writers_leave_out(seed: int, slice_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_json, "_SLICE", slice_size)
    chance = random.Random(seed)
    documents: list[Any] = [good(chance) for _ in range(20)]
    texts: list[str | None] = [json.dumps(d) for d in documents]
    ensure_as_json(documents, texts)
    texts = [None if chance.random() < 0.3 else text for text in texts]
    ensure_as_json(documents, texts)


@pytest.mark.parametrize("seed", range(20))
def test_one_of_another_shape_spoils_no_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has in the expected places counts all the same."""
    monkeypatch.setattr(stats_json, "_SLICE", 7)
    chance = random.Random(seed)
    documents: list[Any] = [good(chance) for _ in range(20)]
    for place in chance.sample(range(20), 3):
        documents[place] = damaged(documents[place], chance)
    texts: list[str | None] = [json.dumps(d) for d in documents]
    ensure_as_json(documents, texts)
    # What is no JSON at all is as if there were none.
    place = chance.randrange(20)
    texts[place], documents[place] = chance.choice(["", "{", '{"numRecords": 1', "nul", '{"numRecords": 1}}']), {}
    ensure_as_json(documents, texts)


def test_decimals_keep_their_digits() -> None:
    leaf: dict[Path, DataType] = {("e",): DecimalType(38, 18), ("x",): t.DOUBLE}
    digits = "12345678901234567890.123456789012345678"
    text = '{"numRecords":1,"minValues":{"e":' + digits + ',"x":0.5},"maxValues":{"e":' + digits + "}}"
    found = decode_stats(pa.array([text]), leaf)
    assert found.leaves["e",].low == [Decimal(digits)] == found.leaves["e",].high
    assert found.leaves["x",].low == [0.5]
    # Also where the document has another shape elsewhere, and an exponent beyond all bounds is unknown.
    odd = '{"numRecords":1,"minValues":{"e":' + digits + '},"maxValues":7,"nullCount":{"e":1e99999999999999999999}}'
    found = decode_stats(pa.array([odd]), leaf)
    assert (found.leaves["e",].low, found.leaves["e",].high) == ([Decimal(digits)], [None])


def test_nothing_is_asked_of_leaves() -> None:
    found = decode_stats(pa.array(['{"numRecords":3,"minValues":{"a":1}}', None]), {})
    assert (found.num_records, found.tight_bounds, dict(found.leaves)) == ([3, None], [None, None], {})
    assert decode_stats(pa.array([], pa.string()), LEAVES).num_records == []


@given(
    st.integers(0, 10**18 - 1),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["}", ',"tightBounds":true}', ', "x": 1}']),
)
def test_counts_at_the_beginning(number: int, blank: bool, second: bool, rest: str) -> None:
    text = ("{ " if blank else "{") + '"numRecords":' + (" " if second else "") + str(number) + rest
    found = leading_num_records(pa.chunked_array([[text, None], [text]]))
    assert found is not None and found.to_pylist() == [number, None, number]


@pytest.mark.parametrize(
    "text",
    ['{"minValues":{},"numRecords":1}', '{"numRecords":1', '{"numRecords":1000000000000000000}', '{"numRecords":-1}', "", "{}",
     '{"numRecords":1.5}', '{"numRecords":"1"}', '{  "numRecords":1}', '{"numRecords":  1}', '[{"numRecords":1}', '{"numRecords":1 }',
     '{"numRecordsx":1}', '{"numRecords":1}x'],
)  # fmt: skip
def test_counts_that_stand_elsewhere(text: str) -> None:
    """Then all of the text must be looked at, of every file."""
    assert leading_num_records(pa.chunked_array([['{"numRecords":1}'], [text]])) is None
    assert leading_num_records(pa.chunked_array([[text, None]])) is None


def test_no_statistics_at_all() -> None:
    found = leading_num_records(pa.chunked_array([pa.array([None, None], pa.string())]))
    assert found is not None and found.to_pylist() == [None, None]
    empty = leading_num_records(pa.chunked_array([], pa.string()))
    assert empty is not None and (len(empty), empty.type) == (0, pa.int64())
