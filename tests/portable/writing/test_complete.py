"""Rows that come are completed: constants, numbers and what is computed of them, beside a plain loop; and what must hold."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.partition_path import DEFAULT_PARTITION
from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.plan.write import Check, Derived, Numbered, WritePlan
from alluvium.portable.writing.complete import completion
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct

UTC = dt.timezone.utc
TOP, BOTTOM = 2**63 - 1, -(2**63)


def struct(ddl: str) -> Struct:
    return Struct(tuple(parse_fields(ddl)))


def plan(schema: Struct, **given: Any) -> WritePlan:
    return WritePlan("memory://x/table", "", schema, **given)


def batches(rows: list[dict[str, Any]], schema: Struct, lot: random.Random) -> list[pa.RecordBatch]:
    table, found, start = pa.Table.from_pylist(rows, schema_to_arrow(schema)), [], 0
    while start < len(rows) or lot.random() < 0.2:
        size = lot.randint(0, 4)
        found += table.slice(start, size).combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], table.schema)
        ]
        start += size
    return found


@pytest.mark.parametrize("seed", range(12))
def test_columns_are_made_in_their_order(seed: int) -> None:
    """Constants first, in place of nulls too, then numbers, then what is computed, which sees both, and the data."""
    lot = random.Random(seed)
    schema = struct("g bigint, a int, c int, n bigint, m bigint, t string")
    first, step = lot.choice([(1, 1), (-7, 5), (10, -3), (0, -1)])
    derived = (
        Derived("g", "a * 100 + n + c", "a * 100 + n + c"),
        Derived("c", "3 + 4", "3 + 4", is_constant=True, fills_nulls=(fills := lot.random() < 0.5)),
        Derived("t", "'x'", "'x'", is_constant=True),
    )
    numbered = (Numbered("n", first, step, False), Numbered("m", 5, 2, True))
    brings = {name: lot.random() < 0.5 for name in ("c", "m")}
    own = [n for n in ("a", "c", "m") if brings.get(n, True)]
    rows = [{"a": lot.choice([None, 1, 2]), "c": lot.choice([None, 40]), "m": lot.choice([None, 9])}
            for _ in range(lot.randint(0, 12))]  # fmt: skip
    data = struct(", ".join(f"{n} {'bigint' if n == 'm' else 'int'}" for n in own))
    made = completion(schema_to_arrow(data), schema, plan(schema, derived=derived, numbered=numbered), "UTC")
    found = [
        r for b in batches([{n: row[n] for n in own} for row in rows], data, lot) for r in made.complete(b).to_pylist()
    ]
    expected = []
    for place, row in enumerate(rows):
        c, n = row["c"] if brings["c"] else 7, first + place * step
        c = 7 if c is None and fills else c
        g = None if row["a"] is None or c is None else row["a"] * 100 + n + c
        m = row["m"] if brings["m"] else 5 + 2 * place
        expected.append({"g": g, "a": row["a"], "c": c, "n": n, "m": m, "t": "x"})
    assert found == expected and all(list(row) == list(schema.names) for row in found)
    assert made.rows == len(rows)
    reached = {"n": first + (len(rows) - 1) * step, **({} if brings["m"] else {"m": 5 + 2 * (len(rows) - 1)})}
    assert made.reached == (reached if rows else {})


@pytest.mark.parametrize(
    ("first", "step", "count", "fits"),
    [
        (TOP, 1, 1, True), (TOP, 1, 2, False), (TOP - 6, 3, 3, True), (TOP - 5, 3, 3, False), (BOTTOM, -1, 1, True),
        (BOTTOM, -1, 2, False), (BOTTOM + 4, -2, 3, True), (BOTTOM + 3, -2, 3, False), (TOP, 1, 0, True), (TOP + 1, 1, 0, True),
    ],
)  # fmt: skip
def test_numbers_end_with_64_bits(first: int, step: int, count: int, fits: bool) -> None:
    schema = struct("a int, n bigint")
    made = completion(
        schema_to_arrow(struct("a int")), schema, plan(schema, numbered=(Numbered("n", first, step, False),)), "UTC"
    )
    rows = pa.RecordBatch.from_pydict({"a": pa.nulls(count, pa.int32())})
    if not fits:
        with pytest.raises(InvalidRequest) as caught:
            made.complete(rows)
        assert (caught.value.code, caught.value.column) == ("numbers-exhausted", "n")
        return
    if first <= TOP:
        assert made.complete(rows)["n"].to_pylist() == [first + k * step for k in range(count)]


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_texts_without_a_directory_of_their_own_are_null(kind: str) -> None:
    schema = struct(f"a string, p {kind}, q int")
    raw = ["", DEFAULT_PARTITION, "x", None, " "]
    values = [v if v is None or kind == "string" else v.encode() for v in raw]
    check = Check("there", "p is not null", ("p",))
    for partition_by, expected in (((), values), (("p", "q"), [None, None, values[2], None, values[4]])):
        made = completion(schema_to_arrow(schema), schema, plan(schema, partition_by=partition_by), "UTC")
        data = pa.RecordBatch.from_pylist([{"a": "", "p": v, "q": 0} for v in values], schema_to_arrow(schema))
        rows = made.complete(data)
        assert rows["p"].to_pylist() == expected and set(rows["a"].to_pylist()) == {""}
    # To constraints, too.
    held = completion(schema_to_arrow(schema), schema, plan(schema, partition_by=("p",), checks=(check,)), "UTC")
    with pytest.raises(InvalidRequest):
        held.complete(data.slice(0, 1))
    assert held.complete(data.slice(2, 1)).num_rows == 1


SAYS = Check("small", "a < 10", ("a", "r.x"), code="of-the-check", hint="say less")


@pytest.mark.parametrize("bad", [[], [10], [None], [9, 10, 8, None, 30], [11, 12, 13, 14, 15, 16, 17]], ids=str)
def test_a_row_passes_only_where_a_check_is_true(bad: list[int | None]) -> None:
    schema = struct("a int, r struct<x: date>")
    made = completion(schema_to_arrow(schema), schema, plan(schema, checks=(SAYS,)), "UTC")
    rows = [{"a": v, "r": None if v is None else {"x": dt.date(2024, 1, 1)}} for v in (1, 2, *bad)]
    data = pa.RecordBatch.from_pylist(rows, schema_to_arrow(schema))
    broken = [v for v in bad if v is None or v >= 10]
    if not broken:
        assert made.complete(data).to_pylist() == rows
        return
    with pytest.raises(InvalidRequest) as caught:
        made.complete(data)
    error = caught.value
    assert (error.code, error.hint, error.url, error.column) == ("of-the-check", "say less", "memory://x/table", None)
    shown = [f"a = {'null' if v is None else v}, r.x = {'null' if v is None else '2024-01-01'}" for v in broken]
    assert [text in str(error) for text in shown] == [place < 5 for place in range(len(shown))]


def test_a_check_of_one_column_names_it() -> None:
    schema = struct("`a.b` int not null")
    check = Check("there", "`a.b` is not null", ("a.b",), "not-null-violated")
    made = completion(schema_to_arrow(schema), schema, plan(schema, checks=(check,)), "UTC")
    with pytest.raises(InvalidRequest) as caught:
        made.complete(pa.RecordBatch.from_pydict({"A.B": pa.nulls(1, pa.int32())}))
    assert caught.value.column == "a.b" and "a.b = null" in str(caught.value)


def test_no_row_breaks_no_check() -> None:
    schema = struct("a int")
    made = completion(schema_to_arrow(schema), schema, plan(schema, checks=(SAYS,)), "UTC")
    assert made.complete(pa.RecordBatch.from_pylist([], schema_to_arrow(schema))).num_rows == 0


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 23), ("Europe/Paris", 1), ("+05:30", 5), ("America/St_Johns", 21)])
def test_expressions_are_in_the_sessions_zone(zone: str, hour: int) -> None:
    schema = struct("ts timestamp, h int")
    derived = (Derived("h", "hour(ts)", "hour(ts)"),)
    check = Check("of the day", f"hour(ts) = {hour}", ("ts",))
    made = completion(
        schema_to_arrow(struct("ts timestamp")), schema, plan(schema, derived=derived, checks=(check,)), zone
    )
    data = pa.RecordBatch.from_pydict(
        {"ts": pa.array([dt.datetime(2024, 6, 30, 23, 45, tzinfo=UTC)], pa.timestamp("us", "UTC"))}
    )
    assert made.complete(data)["h"].to_pylist() == [hour]


def test_computed_structs_fit_their_columns() -> None:
    schema = struct("r struct<x: int, y: string>, s struct<y: string, x: bigint>")
    derived = (Derived("s", "r", "r"),)
    data = struct("r struct<x: int, y: string>")
    made = completion(schema_to_arrow(data), schema, plan(schema, derived=derived), "UTC")
    rows = [{"r": {"x": 1, "y": "a"}}, {"r": None}]
    found = made.complete(pa.RecordBatch.from_pylist(rows, schema_to_arrow(data)))["s"].to_pylist()
    assert found == [{"y": "a", "x": 1}, None]


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"derived": (Derived("c", "reverse(t)", "reverse(t)"),)}, "c"),
        ({"derived": (Derived("c", "uuid()", "uuid()", is_constant=True),)}, "c"),
        ({"checks": (Check("k", "t rlike 'a'", ("t",)),)}, "t"),
        ({"checks": (Check("k", "t rlike 'a' or c rlike 'b'", ("t", "c")),)}, None),
    ],
)
def test_what_only_spark_evaluates_is_refused_at_once(given: dict[str, Any], column: str | None) -> None:
    schema = struct("t string, c string")
    with pytest.raises(UnsupportedFeature) as caught:
        completion(schema_to_arrow(struct("t string")), schema, plan(schema, **given), "UTC")
    assert (caught.value.code, caught.value.column) == ("needs-spark", column)


@pytest.mark.parametrize(
    ("given", "value", "code"),
    [
        ({"derived": (Derived("c", "cast(d as string)", "cast(d as string)"),)}, 1e22, "needs-spark"),
        ({"checks": (Check("k", "cast(d as string) = '1'", ("d",)),)}, 1e22, "needs-spark"),
        ({"derived": (Derived("i", "cast(d as int)", "cast(d as int)"),)}, 1e22, None),
    ],
)
def test_what_depends_on_the_values_is_refused_late(given: dict[str, Any], value: float, code: str | None) -> None:
    schema = struct("d double, c string, i int")
    made = completion(schema_to_arrow(struct("d double")), schema, plan(schema, **given), "UTC")
    with pytest.raises(AlluviumError) as caught:
        made.complete(pa.RecordBatch.from_pydict({"d": [value]}))
    assert (caught.value.code == "needs-spark") == (code == "needs-spark")
    assert caught.value.code == code or code is None


def test_rows_say_in_which_partition_they_are_unless_they_need_not() -> None:
    schema = struct("a int, p string, g int")
    parted = plan(schema, partition_by=("p", "g"), derived=(Derived("g", "a + 1", "a + 1"),))
    data = struct("a int")
    with pytest.raises(InvalidRequest) as caught:
        completion(schema_to_arrow(data), schema, parted, "UTC")
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", "p")
    made = completion(schema_to_arrow(data), schema, parted, "UTC", may_lack_partitions=True)
    assert made.complete(pa.RecordBatch.from_pydict({"a": [1]}, schema_to_arrow(data))).to_pylist() == [
        {"a": 1, "p": None, "g": 2}
    ]
    # What is computed need not come.
    given = struct("a int, P string")
    whole = completion(schema_to_arrow(given), schema, parted, "UTC")
    assert whole.complete(pa.RecordBatch.from_pylist([{"a": 1, "P": "x"}], schema_to_arrow(given))).to_pylist() == [
        {"a": 1, "p": "x", "g": 2}
    ]


def test_columns_that_come_are_never_null_to_arrow_nor_in_another_order() -> None:
    """Whether they may be null is a check's, which has more to say."""
    schema = struct("a int not null, b string")
    made = completion(schema_to_arrow(struct("b string, a int")), schema, plan(schema), "UTC")
    rows = made.complete(
        pa.RecordBatch.from_pylist([{"b": "x", "a": None}], schema_to_arrow(struct("b string, a int")))
    )
    assert rows.schema == pa.schema([("a", pa.int32()), ("b", pa.string())])
    assert rows.to_pylist() == [{"a": None, "b": "x"}]


def test_numbers_go_on_over_batches() -> None:
    schema = struct("a int, n bigint")
    made = completion(
        schema_to_arrow(struct("a int")), schema, plan(schema, numbered=(Numbered("n", 10, -2, False),)), "UTC"
    )
    assert made.reached == {}
    for size, numbers, reached in ((2, [10, 8], 8), (0, [], 8), (1, [6], 6)):
        found = made.complete(pa.RecordBatch.from_pydict({"a": pa.nulls(size, pa.int32())}))
        assert (found["n"].to_pylist(), made.reached) == (numbers, {"n": reached})
    assert made.rows == 3
