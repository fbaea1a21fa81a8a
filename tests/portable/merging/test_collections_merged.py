"""Texts, lists, maps and bytes that are joined value by value, with every option of their functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import MergeRule
from alluvium.portable.merging.collections_merged import COLLECTORS, Collected

LISTS, MAPS = pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())


def collected(function: str, kind: pa.DataType, *steps: tuple[str, Any], **options: str) -> Any:
    """What becomes of one key's values: added (`a`), added as older ones (`o`), taken back (`r`), or put (`p`)."""
    rule = MergeRule("c", function, tuple((name.replace("_", "-"), text) for name, text in options.items()))
    made = Collected(rule, pa.array([value for _, value in steps], kind))
    made.begin(2)
    acts = {"a": made.add, "o": made.add_reversed, "r": made.retract, "p": made.put}
    for row, (verb, _) in enumerate(steps):
        acts[verb](np.array([row, row]), np.array([True, False]))
    found, other = made.result().to_pylist()
    assert other is None
    return found


@pytest.mark.parametrize(
    ("options", "texts", "joined"),
    [
        ({}, ["a", "b", "a"], "a,b,a"), ({"list_agg_delimiter": " - "}, ["a", "b"], "a - b"), ({"list_agg_delimiter": ""}, ["a", "b"], "ab"),
        ({"distinct": "true"}, ["a", "b", "a", "b,c"], "a,b,c"), ({"distinct": "TRUE"}, ["a,a", "a"], "a,a"), ({"distinct": "false"}, ["a", "a"], "a,a"),
        ({"distinct": "true", "list_agg_delimiter": ";"}, ["a;b", "b;c;;c", "a,b"], "a;b;c;a,b"), ({"distinct": "true"}, ["a", ",b,,a,"], "a,b"),
        ({}, [None, "a", None, "", "b"], "a,b"), ({}, ["", "a"], "a"), ({}, ["", ""], ""), ({}, [None, ""], ""), ({}, [None, None], None), ({"distinct": "true"}, ["", "a,a"], "a,a"),
    ],
)  # fmt: skip
def test_texts(options: dict[str, str], texts: list[str | None], joined: str | None) -> None:
    assert collected("listagg", pa.string(), *(("a", text) for text in texts), **options) == joined


@pytest.mark.parametrize(
    ("options", "steps", "expected"),
    [
        ({}, [("a", [1, 1]), ("a", None), ("a", [2, None])], [1, 1, 2, None]), ({"distinct": "true"}, [("a", [1, 1]), ("a", [2, None, 1, None])], [1, 2, None]),
        ({}, [("a", None), ("a", None)], None), ({}, [("a", None), ("a", [])], []), ({}, [("a", [1]), ("o", [2])], [1, 2]), ({}, [("p", [3]), ("a", [1])], [3, 1]),
        ({}, [("a", [1, 2, 1]), ("r", [1, 5])], [2, 1]), ({}, [("a", [1, 1]), ("r", [1, 1, 1])], []), ({}, [("r", [1])], None), ({}, [("a", [1]), ("r", None)], [1]),
        ({}, [("a", [1, None]), ("r", [None])], [1]), ({"distinct": "true"}, [("p", [1, 1]), ("a", None)], [1]),
    ],
)  # fmt: skip
def test_lists(options: dict[str, str], steps: list[tuple[str, Any]], expected: Any) -> None:
    assert collected("collect", LISTS, *steps, **options) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("a", [("a", 1), ("b", 2)]), ("a", [("a", None), ("c", 3)])], [("a", None), ("b", 2), ("c", 3)]), ([("a", None), ("a", [("a", 1)])], [("a", 1)]),
        ([("a", [("a", 1)]), ("a", None)], [("a", 1)]), ([("a", [("a", 1)]), ("o", [("a", 2), ("b", 3)])], [("a", 1), ("b", 3)]), ([("a", []), ("a", None)], []),
        ([("a", [("a", 1), ("b", 2)]), ("r", [("b", 9), ("c", 1)])], [("a", 1)]), ([("a", [("a", 1)]), ("r", [("a", None)])], []), ([("r", [("a", 1)])], None),
        ([("a", [("a", 1)]), ("r", None)], [("a", 1)]), ([("p", [("x", 1)]), ("a", [("a", 1)])], [("x", 1), ("a", 1)]),
    ],
)  # fmt: skip
def test_maps(steps: list[tuple[str, Any]], expected: Any) -> None:
    assert collected("merge_map", MAPS, *steps) == expected


TIMED = pa.map_(pa.string(), pa.struct([("t", pa.string()), ("v", pa.string())]))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [("a", {"t": "1", "v": "b"})]),
        ({"ts_field": "v"}, [("a", {"t": "1", "v": "b"})]),
        ({"ts_field": "t"}, [("a", {"t": "2", "v": "a"})]),
    ],
)
def test_the_field_that_tells_the_time_is_the_last_unless_it_is_named(options: dict[str, str], expected: Any) -> None:
    steps = [("a", [("a", {"t": "2", "v": "a"})]), ("a", [("a", {"t": "1", "v": "b"})])]
    assert collected("merge_map_with_keytime", TIMED, *steps, **options) == expected
    # An older row comes first: of equal times that which was there before stays.
    older = [("a", [("a", {"t": "1", "v": "1"})]), ("o", [("a", {"t": "1", "v": "1"}), ("b", {"t": "0", "v": "0"})])]
    found = collected("merge_map_with_keytime", TIMED, *older, **options)
    assert found == [("a", {"t": "1", "v": "1"}), ("b", {"t": "0", "v": "0"})]


def test_bitmaps() -> None:
    parts = [BitMap([1, 2]).serialize(), None, BitMap([2, 70_000]).serialize()]
    united = collected("rbm32", pa.binary(), *(("a", part) for part in parts))
    assert BitMap.deserialize(united) == BitMap([1, 2, 70_000])
    for function in ("rbm32", "rbm64"):
        assert collected(function, pa.binary(), ("a", None), ("a", b"as it is")) == b"as it is"
        assert collected(function, pa.binary(), ("a", b"as it is"), ("a", None)) == b"as it is"


@pytest.mark.parametrize(
    ("function", "kind", "options"),
    [
        ("listagg", pa.string(), {"distinct": "yes"}), ("collect", LISTS, {"distinct": ""}), ("merge_map_with_keytime", TIMED, {"ts_field": "no"}),
        ("nested_update", pa.list_(pa.struct([("x", pa.int64())])), {"nested_key": "y"}), ("nested_update", pa.list_(pa.struct([("x", pa.int64())])), {"count_limit": "many"}),
        ("nested_partial_update", pa.list_(pa.struct([("x", pa.int64())])), {}),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_those_of_their_column(
    function: str, kind: pa.DataType, options: dict[str, str]
) -> None:
    with pytest.raises(CorruptTable) as caught:
        collected(function, kind, ("a", None), **options)
    assert (caught.value.code, caught.value.column) == ("invalid-options", "c")


@pytest.mark.parametrize("function", ["listagg", "rbm32", "rbm64", "nested_partial_update", "merge_map_with_keytime"])
def test_what_takes_nothing_back_says_so(function: str) -> None:
    kinds = {
        "listagg": pa.string(),
        "nested_partial_update": pa.list_(pa.struct([("x", pa.int64())])),
        "merge_map_with_keytime": TIMED,
    }
    options = {"nested_key": "x"} if function == "nested_partial_update" else {}
    with pytest.raises(UnsupportedFeature) as caught:
        collected(function, kinds.get(function, pa.binary()), ("a", None), ("r", None), **options)
    error = caught.value
    assert (error.code, error.column, error.features) == ("unsupported-retract", "c", (function,))
    assert "fields.c.ignore-retract" in (error.hint or "")


def test_a_value_that_is_damaged_is_of_its_column() -> None:
    with pytest.raises(CorruptTable) as caught:
        collected("rbm32", pa.binary(), ("a", b"no"), ("a", b"bitmap"))
    assert caught.value.column == "c" and caught.value.message.startswith("column 'c': ")
    kind = pa.list_(pa.struct([("x", pa.int64())]))
    with pytest.raises(CorruptTable) as null_key:
        collected("nested_update", kind, ("a", [{"x": None}]), nested_key="x", nested_key_null_strategy="error")
    assert (null_key.value.code, null_key.value.column) == ("null-nested-key", "c")


def test_collections_alone_add_older_rows_behind() -> None:
    assert [name for name, one in COLLECTORS.items() if not one.turns] == ["collect"]
    kind = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    new, old = [{"x": 1, "y": 2}], [{"x": 1, "y": 1}, {"x": 2, "y": 1}]
    assert collected("nested_update", kind, ("a", new), ("o", old), nested_key="x") == [
        {"x": 1, "y": 2},
        {"x": 2, "y": 1},
    ]
    assert collected("listagg", pa.string(), ("a", "new"), ("o", "old"), ("o", "oldest")) == "oldest,old,new"
