"""Options of aggregate functions: what nobody could merge by."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.plan.aggregates import check_options

ROW = pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.int32())])
NESTED, TIMED = pa.list_(ROW), pa.map_(pa.int32(), ROW)


@pytest.mark.parametrize(
    ("function", "kind", "options", "problem"),
    [
        ("nested_partial_update", NESTED, {}, "needs nested-key"),
        ("nested_partial_update", NESTED, {"nested-key": "no"}, "'no' is no field"),
        ("nested_update", NESTED, {"nested-key": "x, no"}, "'no' is no field"),
        ("nested_update", NESTED, {"nested-key": "x", "nested-sequence-field": "no"}, "'no' is no field"),
        ("nested_update", NESTED, {"nested-sequence-field": "z"}, "without nested-key"),
        ("nested_update", NESTED, {"nested-key-null-strategy": "ignore"}, "without nested-key"),
        ("nested_update", NESTED, {"nested-key": "x", "nested-key-null-strategy": "drop"}, "not one of merge"),
        ("nested_update", NESTED, {"nested-key": "x, x"}, "twice"),
        ("nested_update", NESTED, {"nested-key": " "}, "no field"),
        ("nested_update", NESTED, {"count-limit": "many"}, "no number"),
        ("listagg", pa.string(), {"distinct": "yes"}, "neither true nor false"),
        ("collect", pa.list_(pa.int32()), {"distinct": "1"}, "neither true nor false"),
        ("merge_map_with_keytime", TIMED, {"ts-field": "no"}, "no text"),
        ("merge_map_with_keytime", TIMED, {}, "'z' is no text"),
    ],
)
def test_options_that_make_no_sense(function: str, kind: pa.DataType, options: dict[str, str], problem: str) -> None:
    assert problem in (check_options(function, options, kind) or "")


@pytest.mark.parametrize(
    ("function", "kind", "options"),
    [
        ("nested_update", NESTED, {"nested-key": "x,y", "nested-sequence-field": "z", "count-limit": "2"}),
        ("nested_update", NESTED, {}),
        ("nested_partial_update", NESTED, {"nested-key": "x", "nested-key-null-strategy": "IGNORE"}),
        ("merge_map_with_keytime", TIMED, {"ts-field": "y"}),
        ("sum", pa.int32(), {"nested-key": "no"}),
        ("listagg", pa.string(), {"distinct": "TRUE"}),
    ],
)
def test_options_that_do(function: str, kind: pa.DataType, options: dict[str, str]) -> None:
    assert check_options(function, options, kind) is None
