"""What a SET list, a condition and a constraint may name, without Spark: case by case."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from sessionless import VECTORS

import alluvium
from alluvium.commands.rows_here.constraint import add_constraint_here
from alluvium.commands.rows_here.names import Names, ensure_distinct
from alluvium.commands.rows_here.new_rows import Values, all_columns, assigned
from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.expr.literals import format_sql
from alluvium.plan.changes import Committed, Preview
from alluvium.schema.ddl import CHAR_VARCHAR, parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store


def struct(ddl: str, **says: dict[str, Any]) -> Struct:
    return Struct(tuple(replace(f, metadata={**f.metadata, **says.get(f.name, {})}) for f in parse_fields(ddl)))


TABLE = struct(
    "id bigint, v int, s struct<x: int>, c string, vc string, g bigint, n bigint",
    c={CHAR_VARCHAR: "char(3)"},
    vc={CHAR_VARCHAR: "varchar(2)"},
    g={GENERATED: "id + 1"},
    n={START: 1, STEP: 1, ALLOW_EXPLICIT_INSERT: False},
)
SOURCE = struct("ID bigint, w int, s struct<x: int>")
NAMES = Names({"t": TABLE, "src": SOURCE})


@pytest.mark.parametrize(
    ("text", "qualified"),
    [
        ("v = 1", "(t.v = 1)"), ("V = 1", "(t.v = 1)"), ("t.v = 1", "(t.v = 1)"), ("T.V = 1", "(t.v = 1)"), ("w = 1", "(src.w = 1)"),
        ("src.w = t.v", "(src.w = t.v)"), ("t.id = src.id", "(t.id = src.ID)"), ("t.s.x = src.s.x", "(t.s.x = src.s.x)"),
        ("v = 1 and w in (1, v)", "((t.v = 1) AND ((src.w = 1) OR (src.w = t.v)))"),
    ],
)  # fmt: skip
def test_columns_stand_behind_their_rows(text: str, qualified: str) -> None:
    assert format_sql(NAMES.condition(text, "the condition")) == qualified
    assert format_sql(NAMES.known(text)) == qualified


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("id = 1", "unknown-column"), ("s.x = 1", "unknown-column"), ("nope = 1", "unknown-column"), ("t.nope = 1", "unknown-column"),
        ("x.v = 1", "unknown-column"), ("v + 1", "invalid-predicate"), ("hash(v) = 1", "needs-spark"), ("v rlike 'x'", "needs-spark"),
    ],
)  # fmt: skip
def test_conditions_that_are_refused(text: str, code: str) -> None:
    """What both have is nobody's without its rows."""
    with pytest.raises(AlluviumError) as caught:
        NAMES.condition(text, "the condition")
    assert caught.value.code == code
    if code == "needs-spark":
        assert str(caught.value).startswith(f"the condition {text}")
        assert "hash(" in format_sql(NAMES.known(text)) or "rlike" in format_sql(NAMES.known(text)).lower()


@pytest.mark.parametrize(
    ("names", "twice"), [(["t", "s"], None), (["t", "T"], "t"), (["ß", "ss"], None), (["t"], None), (["a", "b", "B"], "b")]
)  # fmt: skip
def test_rows_have_names_of_their_own(names: list[str], twice: str | None) -> None:
    rows = dict.fromkeys(names, SOURCE)
    if twice is None:
        ensure_distinct(rows)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_distinct(rows)
    assert caught.value.code == "ambiguous-name" and repr(twice) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"v": "1"}, {"v": "1"}), ({"V": "w"}, {"v": "src.w"}), ({"t.v": "w + 1"}, {"v": "(src.w + 1)"}), ({"T.`id`": "src.id"}, {"id": "src.ID"}),
        ({"`v`": "null", "id": "v"}, {"v": "CAST(NULL AS INT)", "id": "CAST(t.v AS BIGINT)"}),
    ],
)  # fmt: skip
def test_set_lists(given: dict[str, str], found: dict[str, str]) -> None:
    made = assigned(given, TABLE, NAMES, "t")
    assert {name: format_sql(value) for name, value in made.items()} == found


@pytest.mark.parametrize(
    ("given", "code", "column"),
    [
        ({"nope": "1"}, "unknown-column", "nope"), ({"t.nope": "1"}, "unknown-column", "t.nope"), ({"src.v": "1"}, "unknown-column", "src.v"),
        ({"v": "1", "V": "2"}, "duplicate-column", "v"), ({"t.v": "1", "v": "1"}, "duplicate-column", "v"),
        ({"s.x": "1"}, "needs-spark", "s.x"), ({"t.s.x": "1"}, "needs-spark", "t.s.x"), ({"v": " DEFAULT "}, "needs-spark", "v"),
        ({"v": "hash(v)"}, "needs-spark", None), ({"v": "nope"}, "unknown-column", "nope"),
    ],
)  # fmt: skip
def test_set_lists_that_are_refused(given: dict[str, str], code: str, column: str | None) -> None:
    with pytest.raises(AlluviumError) as caught:
        assigned(given, TABLE, NAMES, "t")
    assert (caught.value.code, getattr(caught.value, "column", None)) == (code, column)


def test_a_column_may_be_called_default() -> None:
    named = struct("default int, v int")
    made = assigned({"v": "default"}, named, Names({"t": named}), "t")
    assert format_sql(made["v"]) == "t.default"


def test_numbers_of_the_table_are_set_by_the_table() -> None:
    for is_insert in (False, True):
        with pytest.raises(InvalidRequest) as caught:
            assigned({"n": "1"}, TABLE, NAMES, "t", is_insert=is_insert)
        assert caught.value.column == "n"
    free = struct("n bigint", n={START: 1, STEP: 1, ALLOW_EXPLICIT_INSERT: True})
    assert list(assigned({"n": "1"}, free, Names({"t": free}), "t", is_insert=True)) == ["n"]
    with pytest.raises(InvalidRequest):
        assigned({"n": "1"}, free, Names({"t": free}), "t")


def test_what_a_star_sets() -> None:
    """All columns but those that the table makes, where the source does not have them."""
    source = struct("ID bigint, V int, s struct<x: int>, C char(3), vc string, more int")
    own = {"`id`": "`src`.`ID`", "`v`": "`src`.`V`", "`s`": "`src`.`s`", "`c`": "`src`.`C`", "`vc`": "`src`.`vc`"}
    found = all_columns(TABLE, source, "src")
    assert {k.replace("`", ""): v.replace("`", "") for k, v in found.items()} == {
        k.replace("`", ""): v.replace("`", "") for k, v in own.items()
    }
    with_made = struct("id bigint, v int, s struct<x: int>, c char(3), vc string, g bigint, n bigint")
    assert [name.strip("`") for name in all_columns(TABLE, with_made, "src")] == list(TABLE.names)
    with pytest.raises(InvalidRequest) as caught:
        all_columns(TABLE, struct("id bigint"), "src")
    assert (caught.value.code, caught.value.column) == ("unknown-column", "v")


def test_rows_afterwards() -> None:
    """Generated columns that are not set are left out, to be computed anew; texts fit their columns as in an UPDATE."""
    rows = pa.table({"id": [1, 2], "v": [3, None], "s": [{"x": 1}, None], "c": ["abc", None], "vc": ["ab", "c"], "g": [2, 3], "n": [1, 2]},
                    schema=pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.struct([("x", pa.int32())])), ("c", pa.string()),
                                      ("vc", pa.string()), ("g", pa.int64()), ("n", pa.int64())]))  # fmt: skip
    names = Names({"t": TABLE})
    named = names.rows(t=rows)
    made = Values(TABLE, assigned({"v": "v + 1", "c": "'x'", "vc": "'y    '"}, TABLE, names, "t"), "UTC").update(
        rows, named
    )
    assert made.column_names == ["id", "v", "s", "c", "vc", "n"]
    assert made.select(["id", "v", "c", "vc"]).to_pylist() == [
        {"id": 1, "v": 4, "c": "x  ", "vc": "y "}, {"id": 2, "v": None, "c": "x  ", "vc": "y "},
    ]  # fmt: skip
    kept = Values(TABLE, assigned({"g": "id"}, TABLE, names, "t"), "UTC").update(rows, named)
    assert kept.column_names == list(TABLE.names) and kept["g"].to_pylist() == [1, 2]
    # What is too long, and no blank, stays for the check of the length.
    long = Values(TABLE, assigned({"vc": "'abc  '", "c": "'abcd'"}, TABLE, names, "t"), "UTC").insert(named)
    assert long.to_pylist() == [{"vc": "abc  ", "c": "abcd"}] * 2
    none = Values(TABLE, {}, "UTC").insert(named)
    assert (none.num_rows, none.column_names) == (2, [])


@pytest.fixture(params=[{}, VECTORS], ids=["plain", "vectors"])
def url(request: pytest.FixtureRequest) -> str:
    url = f"memory://{uuid.uuid4().hex}/t"
    data = pa.table({"id": range(12), "v": [None if n == 11 else n for n in range(12)]})
    for start in (0, 6):
        alluvium.write(data.slice(start, 6), url, mode="append", **request.param)
    return url


def add(url: str, name: str, condition: str, dry_run: bool = False) -> Committed | Preview:
    return add_constraint_here(load_snapshot(open_store(url)), name, condition, "tests", dry_run)


def test_a_constraint_that_holds(url: str) -> None:
    told = add(url, "Small", "id < 12", dry_run=True)
    assert isinstance(told, Preview) and alluvium.open(url).version == 1
    done = add(url, "Small", "id < 12")
    assert isinstance(done, Committed) and done.version == 2
    assert alluvium.open(url).properties["delta.constraints.small"] == "id < 12"
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(pa.table({"id": [12], "v": [0]}), url, mode="append")
    assert caught.value.code == "constraint-violated"
    with pytest.raises(InvalidRequest) as twice:
        add(url, "SMALL", "id < 99")
    assert twice.value.code == "constraint-exists"


@pytest.mark.parametrize(
    ("condition", "count", "shown"),
    [
        ("id < 11", 1, [{"id": 11}]), ("v < 99", 1, [{"v": None}]), ("id < 3", 9, [{"id": n} for n in range(3, 8)]),
        ("id < 11 and v < 10", 2, [{"id": 10, "v": 10}, {"id": 11, "v": None}]), ("1 = 2", 12, []), ("id >= 6", 6, [{"id": n} for n in range(5)]),
    ],
)  # fmt: skip
def test_rows_that_break_a_constraint_are_counted_and_a_few_shown(
    url: str, condition: str, count: int, shown: list[dict[str, Any]]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        add(url, "c", condition)
    message = caught.value.message
    assert caught.value.code == "constraint-violated" and message.startswith(
        f"{count} rows of the table violate the constraint 'c'"
    )
    assert message.endswith(", ".join(map(str, shown)) if shown else f"({condition})")
    assert alluvium.open(url).version == 1


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("id < 12 -- always", "invalid-constraint"), ("id < /* x */ 12", "invalid-constraint"), ("id < 12 /*", "invalid-constraint"),
        ("id + 1", "invalid-predicate"), ("nope = 1", "invalid-constraint"), ("hash(id) = 1", "needs-spark"),
    ],
)  # fmt: skip
def test_constraints_that_are_refused(url: str, condition: str, code: str) -> None:
    with pytest.raises(AlluviumError) as caught:
        add(url, "c", condition)
    assert caught.value.code == code and alluvium.open(url).version == 1


def test_rows_that_are_gone_break_nothing(url: str) -> None:
    alluvium.DeltaTable.forPath(url).delete("id = 11")
    assert isinstance(add(url, "c", "id < 11 and v is not null"), Committed)
