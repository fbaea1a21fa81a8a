"""Evaluation on rows without Spark; what Spark itself says is in test_evaluate_spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Struct

SCHEMA = Struct(
    (
        Field("i", t.INTEGER),
        Field("s", t.STRING),
        Field("b", t.BOOLEAN),
        Field("ts", t.TIMESTAMP),
        Field("n", Struct((Field("a", t.INTEGER),))),
        Field("arr", Array(t.INTEGER)),
    )
)
STRUCTS = pa.StructArray.from_arrays([pa.array([5, 6, None], pa.int32())], ["a"], mask=pa.array([True, False, False]))
ROWS = pa.table(
    {
        "i": pa.array([0, 2, None], pa.int32()),
        "s": pa.array(["a", None, "b"]).dictionary_encode(),
        "b": pa.array([True, False, None]),
        "ts": pa.array([0, 1, None], pa.timestamp("ms")),
        "n": STRUCTS,
        "arr": pa.array([[1], None, []], pa.list_(pa.int32())),
    }
)


def run(text: str, rows: pa.Table | pa.RecordBatch = ROWS) -> list[bool | None]:
    result = evaluate(parse_predicate(text, SCHEMA), rows)
    assert isinstance(result, pa.Array)
    assert result.type == pa.bool_()
    return result.to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 2", [False, True, None]),
        ("NOT (i = 2)", [True, False, None]),
        ("b AND i = 2", [False, False, None]),
        ("b OR i = 2", [True, True, None]),
        ("b AND NULL", [None, False, None]),
        ("b OR NULL", [True, None, None]),
        ("i IN (2, NULL)", [None, True, None]),
        ("i NOT IN (2, NULL)", [None, False, None]),
        ("s = 'a'", [True, None, False]),
        ("s LIKE '_'", [True, None, True]),
        # the field of a struct that is null is null, whatever lies below it
        ("n.a > 1", [None, True, None]),
        ("n.a IS NULL", [True, False, True]),
        ("n IS NULL", [True, False, False]),
        ("arr IS NULL", [False, True, False]),
        ("ts > TIMESTAMP'1970-01-01 00:00:00'", [False, True, None]),
        ("true", [True, True, True]),
        ("NULL", [None, None, None]),
        # rows that the left side decides are not computed on the right
        ("i <> 0 AND 10 / i = 5", [False, True, None]),
        ("i = 0 OR 10 / i = 5", [True, True, None]),
        ("CASE WHEN i = 0 THEN false ELSE 10 % i = 0 END", [False, True, None]),
        ("coalesce(i, 1 / 0) IS NULL", None),
        ("if(i IS NULL, 1, i) = 1", [False, False, True]),
        ("round(CAST(i AS DOUBLE) + 0.26D, 1) = 2.3D", [False, True, None]),
        ("round(CAST(i AS DOUBLE) + 0.26D) = 2D", [False, True, None]),
    ],
)
def test_values(text: str, expected: list[bool | None] | None) -> None:
    if expected is None:
        with pytest.raises(InvalidRequest):
            run(text)
        return
    assert run(text) == expected
    assert run(text, ROWS.to_batches()[0]) == expected
    assert run(text, ROWS.slice(0, 0)) == []
    assert run(text, pa.concat_tables([ROWS, ROWS])) == expected * 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1 / i > 1", "division-by-zero"),
        ("i % 0 = 1", "division-by-zero"),
        ("i + 2147483647 > 1", "arithmetic-overflow"),
        ("CAST(s AS INT) = 1", "invalid-predicate"),
        ("CAST(CAST(i AS BIGINT) * 3000000000 AS INT) = 1", "invalid-cast"),
        ("hash(i) = 1", "unsupported-expression"),
        ("arr[0] = 1", "unsupported-expression"),
        ("b AND hash(i) = 1", "unsupported-expression"),
    ],
)
def test_errors(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        run(text)
    assert caught.value.code == code
    if code == "unsupported-expression":
        assert "Spark" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("short", "unit"), [("yyyy", "YEAR"), ("YY", "YEAR"), ("mon", "MONTH"), ("MM", "MONTH"), ("DD", "DAY")]
)
def test_units_have_short_names(short: str, unit: str) -> None:
    times = pa.table({"ts": pa.array(["2024-05-17 13:14:15Z", None]).cast(pa.timestamp("us", "UTC"))})
    text = f"date_trunc('{short}', ts) = date_trunc('{unit}', ts)"
    assert evaluate(parse_predicate(text, SCHEMA), times).to_pylist() == [True, None]


def test_a_column_that_the_rows_lack() -> None:
    with pytest.raises(InvalidRequest) as caught:
        run("i = 1", ROWS.drop_columns(["i"]))
    assert caught.value.code == "unknown-column"


FINE = Struct((Field("ntz", t.TIMESTAMP_NTZ_NANOS), Field("ltz", t.TIMESTAMP_NANOS), Field("t", t.TIME)))
_NANOS = [-1, 1_700_000_000_000_000_999, None]
FINE_ROWS = pa.table(
    {
        "ntz": pa.array(_NANOS, pa.timestamp("ns")),
        "ltz": pa.array(_NANOS, pa.timestamp("ns", tz="UTC")),
        "t": pa.array([0, 45_296_789, None], pa.time32("ms")),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # As Spark, which has no nanoseconds, sees them: microseconds, cut downwards.
        ("ntz > timestamp'2023-01-01 00:00:00'", [False, True, None]),
        ("ntz = '2023-11-14 22:13:20'", [False, True, None]),
        ("ntz = '1969-12-31 23:59:59.999999'", [True, False, None]),
        ("ltz < '2000-01-01'", [True, False, None]),
        ("ltz between timestamp'2023-11-14 22:13:20Z' and timestamp'2023-11-14 22:13:20.000001Z'", [False, True, None]),
        ("ltz = ntz", [True, True, None]),
        ("ntz in ('2023-11-14 22:13:20', '2000-01-01')", [False, True, None]),
        ("t = '12:34:56.789'", [False, True, None]),
        ("t < '12:00'", [True, False, None]),
        ("t in ('00:00:00', '1:2:3')", [True, False, None]),
        ("t is null", [False, False, True]),
    ],
)
def test_times_that_spark_has_no_type_for(text: str, expected: list[bool | None]) -> None:
    assert evaluate(parse_predicate(text, FINE), FINE_ROWS).to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t = 5", "t > '12:30:00'"), ("t = date'2020-01-01'", "t > '12:30:00'"), ("t > '25:00'", ""),
        ("t > 'noon'", ""), ("ntz = true", "AS timestamp_ntz)"), ("ltz = 1.5", "AS timestamp)"),
    ],
)  # fmt: skip
def test_hints_name_what_there_is(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        evaluate(parse_predicate(text, FINE), FINE_ROWS)
    assert said in (caught.value.hint or "")
    assert "nanos" not in (caught.value.hint or "")
