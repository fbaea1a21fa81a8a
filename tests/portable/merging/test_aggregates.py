"""Accumulators of many keys at a time, called as a merge calls them: flags for the first so many keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import MergeRule
from alluvium.portable.merging.aggregates import Aggregate, aggregate_of

#: Keys have rows in columns: key 0 has rows 0, 1, 2; key 1 rows 3, 4; key 2 row 5.
STARTS, LENGTHS = [0, 3, 5], [3, 2, 1]


def made(function: str, values: pa.Array, **rule: Any) -> Aggregate:
    found = aggregate_of(MergeRule("v", function, **rule), values)
    assert found is not None
    return found


def taken(aggregate: Aggregate, verbs: str) -> list[Any]:
    """What is left of six rows, which are added (`a`), added as older ones (`o`), taken back (`r`), put (`p`) or left (`-`)."""
    aggregate.begin(3)
    for number in range(3):
        active = [key for key in range(3) if LENGTHS[key] > number]
        rows = np.array([STARTS[key] + number for key in active], np.int64)
        for verb, act in (
            ("p", aggregate.put),
            ("a", aggregate.add),
            ("o", aggregate.add_reversed),
            ("r", aggregate.retract),
        ):
            flags = np.array([verbs[row] == verb for row in rows.tolist()], bool)
            if flags.any():
                act(rows, flags)
    found = aggregate.result()
    found.validate(full=True)
    values: list[Any] = found.to_pylist()
    return values


NUMBERS = pa.array([1, 2, 3, 4, 5, None], pa.int64())


@pytest.mark.parametrize(
    ("function", "verbs", "expected"),
    [
        ("sum", "aaaaaa", [6, 9, None]), ("sum", "a-ara-", [4, 1, None]), ("sum", "r-a-r-", [2, -5, None]), ("sum", "pa-a-p", [3, 4, None]), ("sum", "------", [None] * 3),
        ("product", "aaaaaa", [6, 20, None]), ("product", "-aa-aa", [6, 5, None]), ("product", "-ar-ra", [0, None, None]), ("product", "apaaa-", [6, 20, None]),
        ("min", "aaaaaa", [1, 4, None]), ("min", "-aa-aa", [2, 5, None]), ("min", "oooooo", [1, 4, None]), ("min", "aap-ao", [3, 5, None]),
        ("max", "aaaaaa", [3, 5, None]), ("max", "aa--o-", [2, 5, None]), ("max", "a-pa-p", [3, 4, None]), ("max", "paaa-a", [3, 4, None]),
        ("last_value", "aaaaaa", [3, 5, None]), ("last_value", "aaoao-", [2, 4, None]), ("last_value", "aa-ar-", [2, None, None]), ("last_value", "ap-paa", [2, 5, None]),
        ("primary-key", "aaraar", [3, 5, None]), ("primary-key", "aooao-", [1, 4, None]), ("primary-key", "arr---", [3, None, None]),
        ("last_non_null_value", "aaaaaa", [3, 5, None]), ("last_non_null_value", "ooooaa", [1, 5, None]), ("last_non_null_value", "aarar-", [None, None, None]),
        ("last_non_null_value", "aaoor-", [2, None, None]),
        ("first_value", "aaaaaa", [1, 4, None]), ("first_value", "-aa-aa", [2, 5, None]), ("first_value", "paa-p-", [2, 5, None]),
        ("first_non_null_value", "aaaaaa", [1, 4, None]), ("first_non_null_value", "paa-p-", [2, 5, None]),
    ],
)  # fmt: skip
def test_numbers(function: str, verbs: str, expected: list[Any]) -> None:
    assert taken(made(function, NUMBERS), verbs) == expected


@pytest.mark.parametrize(
    ("function", "verbs", "expected"),
    [
        ("sum", "aaaaaa", ["4.25", "9.00", None]), ("sum", "a-ara-", ["3.00", "1.00", None]), ("sum", "r-ar--", ["1.00", "-4.00", None]), ("sum", "oooooo", ["4.25", "9.00", None]),
        ("sum", "apaap-", ["3.25", "5.00", None]), ("product", "aaaaaa", ["2.50", "20.00", None]), ("product", "-aa--a", ["2.50", None, None]), ("product", "ppa-ap", ["2.50", "5.00", None]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("precision", [9, 18, 19, 38])
def test_decimals(function: str, verbs: str, expected: list[str | None], precision: int) -> None:
    """Of up to 18 digits they are whole numbers to Java, and of more they are decimals."""
    texts = ["1.00", "1.25", "2.00", "4.00", "5.00", None]
    values = pa.array([None if text is None else Decimal(text) for text in texts], pa.decimal128(precision, 2))
    found = taken(made(function, values), verbs)
    assert found == [None if text is None else Decimal(text) for text in expected]


@pytest.mark.parametrize(
    ("function", "verbs", "expected"),
    [("bool_and", "aaaaaa", [False, True, None]), ("bool_or", "aaaaaa", [True, True, None]), ("bool_and", "a-aa-a", [True, True, None]), ("bool_or", "-a--a-", [False, True, None]),
     ("bool_and", "-pa-o-", [False, True, None]), ("bool_or", "-pa-o-", [True, True, None])],
)  # fmt: skip
def test_truth(function: str, verbs: str, expected: list[Any]) -> None:
    assert taken(made(function, pa.array([True, False, True, True, True, None])), verbs) == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_whole_numbers_wrap_as_those_of_java(kind: pa.DataType) -> None:
    top = 2 ** (kind.bit_width - 1) - 1
    values = pa.array([top, 1, 1, -top - 1, -1, None], kind)
    assert taken(made("sum", values), "aaaaaa") == [-top, top, None]
    assert taken(made("sum", values), "rrrrr-") == [top, -top, None]
    assert taken(made("product", values), "aaaaaa") == [top, -top - 1, None]


@pytest.mark.parametrize("function", ["last", "last_non_null"])
def test_columns_that_keep_a_value_have_no_accumulator(function: str) -> None:
    assert aggregate_of(MergeRule("v", function), pa.array([[1]])) is None


@pytest.mark.parametrize("function", ["min", "max", "first_value", "first_non_null_value", "bool_or"])
def test_nothing_is_taken_back_where_nobody_asks(function: str) -> None:
    values = pa.array([True, False, True, True, True, None])
    aggregate = made(function, values)
    aggregate.begin(3)
    aggregate.retract(np.array([0, 3]), np.array([False, False]))
    with pytest.raises(UnsupportedFeature) as caught:
        aggregate.retract(np.array([0, 3]), np.array([False, True]))
    assert (caught.value.code, caught.value.column) == ("unsupported-retract", "v")
    assert "fields.v.ignore-retract" in (caught.value.hint or "")
    ignoring = made(function, values, ignores_retract=True)
    ignoring.begin(3)
    ignoring.add(np.array([0, 3]), np.array([True, True]))
    ignoring.retract(np.array([1, 4]), np.array([True, True]))
    assert ignoring.result().to_pylist() == [True, True, None]


def test_accumulators_begin_anew() -> None:
    for function in ("sum", "max", "last_value", "first_value"):
        aggregate = made(function, NUMBERS)
        assert taken(aggregate, "aaaaaa") == taken(aggregate, "aaaaaa")
        aggregate.begin(2)
        assert aggregate.result().to_pylist() == [None, None]
