"""Types by the names of folders; that they are Spark's is tested in tests/api/delta/upkeep/test_convert.py."""

from __future__ import annotations

import pytest

from alluvium.delta.upkeep.convert.partition_types import infer_type, log_texts
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Decimal


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "__HIVE_DEFAULT_PARTITION__"], t.INTEGER),
        (["1", "2147483648"], t.LONG),
        (["1", "99999999999999999999"], Decimal(20, 0)),
        (["1.5", "1"], t.DOUBLE),
        (["1.5", "2147483648"], t.STRING),
        (["2024-01-01", "2024-01-01 00%3A00%3A00"], t.TIMESTAMP),
        (["2024-01-01"], t.DATE),
        (["2024-01-01", "1"], t.STRING),
        (["__HIVE_DEFAULT_PARTITION__"], t.STRING),
        (["true"], t.STRING),
    ],
)
def test_inferred(values: list[str], expected: t.DataType) -> None:
    assert infer_type(values) == expected
    assert infer_type(values[::-1]) == expected


def test_texts_for_the_log() -> None:
    assert log_texts(["a%2Fb", "__HIVE_DEFAULT_PARTITION__"], t.STRING, "UTC", "p").to_pylist() == ["a/b", None]
    assert log_texts(["2024-07-01 00%3A00%3A00"], t.TIMESTAMP, "+02:00", "p").to_pylist() == [
        "2024-06-30T22:00:00.000000Z"
    ]
    with pytest.raises(InvalidRequest, match="'x' is not of type int"):
        log_texts(["1", "x"], t.INTEGER, "UTC", "p")
    with pytest.raises(UnsupportedFeature):
        log_texts(["1"], t.VARIANT, "UTC", "p")


#: Texts, and the type of a column that has nothing else.
ALONE: list[tuple[str, t.DataType]] = [
    ("0", t.INTEGER), ("+7", t.INTEGER), ("-7", t.INTEGER), ("007", t.INTEGER), (str(2**31 - 1), t.INTEGER), (str(-(2**31)), t.INTEGER),
    (str(2**31), t.LONG), (str(-(2**31) - 1), t.LONG), (str(2**63 - 1), t.LONG), (str(-(2**63)), t.LONG), (str(2**63), Decimal(19, 0)),
    (str(-(2**63) - 1), Decimal(19, 0)), ("9" * 38, Decimal(38, 0)), ("9" * 39, t.DOUBLE), ("1E3", Decimal(4, 0)), ("12e2", Decimal(4, 0)),
    ("1e37", Decimal(38, 0)), ("1e38", t.DOUBLE), ("1e-3", t.DOUBLE), ("1.5", t.DOUBLE), (".5", t.DOUBLE), ("5.", Decimal(1, 0)), (" 5 ", t.DOUBLE),
    ("1.5f", t.DOUBLE), ("1d", t.DOUBLE), ("NaN", t.DOUBLE), ("-Infinity", t.DOUBLE), ("nan", t.STRING), ("inf", t.STRING), ("1_0", t.STRING),
    ("٣", t.STRING), ("0x1", t.STRING), ("--1", t.STRING), ("1-1", t.STRING), ("", t.STRING), ("e5", t.STRING), (".", t.STRING),
    ("2024-02-29", t.DATE), ("2023-02-29", t.STRING), ("2024-2-9", t.STRING), ("2024-01-01 00%3A00%3A00", t.TIMESTAMP), ("0000-01-01", t.DATE),
    ("2024-01-01 00:00:00.123456", t.TIMESTAMP), ("2024-01-01 00:00:00.1234567", t.STRING), ("2024-01-01 24%3A00%3A00", t.STRING),
    ("2024-01-01T00%3A00%3A00", t.STRING), ("2024-01-01 00%3A00", t.STRING), ("__HIVE_DEFAULT_PARTITION__", t.STRING),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ALONE, ids=[text for text, _ in ALONE])
def test_texts_alone(text: str, expected: t.DataType) -> None:
    assert infer_type([text]) == expected
    assert infer_type([text, "__HIVE_DEFAULT_PARTITION__", text]) == expected


INT, LONG, DOUBLE, BIG = "1", str(2**31), "1.5", "9" * 25
PAIRS: dict[tuple[str, str], t.DataType] = {
    (INT, LONG): t.LONG, (INT, DOUBLE): t.DOUBLE, (LONG, DOUBLE): t.STRING, (INT, BIG): Decimal(25, 0), (LONG, BIG): Decimal(25, 0), (DOUBLE, BIG): t.STRING,
    ("9" * 19, INT): Decimal(19, 0), ("9" * 19, LONG): Decimal(20, 0), (BIG, "9" * 30): Decimal(30, 0),
    ("2024-01-01", "2024-01-01 00%3A00%3A00"): t.TIMESTAMP, ("2024-01-01", INT): t.STRING, ("2024-01-01 00%3A00%3A00", INT): t.STRING,
    ("x", INT): t.STRING, ("x", "2024-01-01"): t.STRING,
}  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), PAIRS.items(), ids=str)
def test_texts_of_two_types(texts: tuple[str, str], expected: t.DataType) -> None:
    assert infer_type(texts) == infer_type(reversed(texts)) == expected


def test_nothing_at_all() -> None:
    assert infer_type([]) == t.STRING
