"""DELETE, UPDATE and MERGE without Spark, against rows in a list; and what they refuse."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore, When
from sessionless import KINDS, TRACKED, committed, refused, rows, table_of

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown
from alluvium.plan.changes import Committed, Describe, Operation, Preview, ReadScope
from alluvium.plan.retry import RetryPolicy
from alluvium.schema.ddl import CHAR_VARCHAR, parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    return dict(request.param)


def made(url: str, ddl: str, says: Mapping[str, Mapping[str, Any]] | None = None, **properties: str) -> str:
    fields = (replace(f, metadata={**f.metadata, **(says or {}).get(f.name, {})}) for f in parse_fields(ddl))
    config = table_config(NewTable(Struct(tuple(fields)), (), properties))
    DeltaTarget(open_store(url), config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    return url


@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_rows_keep_their_ids(url: str, kind: str) -> None:
    data = pa.table({"id": range(6), "v": [0] * 6})
    alluvium.write(data, url, **TRACKED, **KINDS[kind])
    table = table_of(url)
    table.update("id = 1", {"v": "5"})
    table.delete("id = 0")
    table.merge(
        pa.table({"id": [2, 9], "v": [7, 7]}), "t.id = s.id"
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = alluvium.open(url).to_arrow(columns=["id", "_row_id", "_row_commit_version"]).to_pylist()
    known = {r["id"]: (r["_row_id"], r["_row_commit_version"]) for r in found}
    assert {i: known[i] for i in range(1, 6)} == {1: (1, 1), 2: (2, 3), 3: (3, 0), 4: (4, 0), 5: (5, 0)}
    assert known[9][0] not in range(6) and known[9][1] == 3


# -- what the table asks for ------------------------------------------------------------------------------------------


def test_generated_columns_are_computed_anew(url: str) -> None:
    made(url, "n int, g int, h int", {"g": {GENERATED: "n * 2"}, "h": {GENERATED: "n + 1"}})
    alluvium.write(pa.table({"n": pa.array([1, 2], pa.int32())}), url, mode="append")
    table = table_of(url)
    table.update("n = 1", {"n": "10"})
    assert rows(url) == [{"n": 10, "g": 20, "h": 11}, {"n": 2, "g": 4, "h": 3}]
    assert refused(lambda: table.update("n = 2", {"g": "5"})).code == "generated-column-violated"
    table.update("n = 2", {"g": "4"})
    source = pa.table({"n": pa.array([2, 7], pa.int32())})
    table.merge(source, "t.n = s.n").whenMatchedUpdate(None, {"n": "s.n + 1"}).whenNotMatchedInsertAll().execute()
    assert rows(url) == [{"n": 10, "g": 20, "h": 11}, {"n": 3, "g": 6, "h": 4}, {"n": 7, "g": 14, "h": 8}]


def test_constraints_hold(url: str, properties: dict[str, str]) -> None:
    made(url, "n int not null, m int", **{"delta.constraints.small": "m < 10", **properties})
    alluvium.write(pa.table({"n": pa.array([1, 2], pa.int32()), "m": pa.array([1, 2], pa.int32())}), url, mode="append")
    table, before = table_of(url), {o.path for o in open_store(url).list_tree("")}
    for values, code in (({"m": "n + 9"}, "constraint-violated"), ({"n": "null"}, "not-null-violated"),
                         ({"m": "null"}, "constraint-violated")):  # fmt: skip
        assert refused(lambda v=values: table.update("n = 2", v)).code == code
    new = table.merge(pa.table({"n": pa.array([None], pa.int32())}), "t.n = s.n").whenNotMatchedInsert(None, {"m": "1"})
    assert refused(new.execute).code == "not-null-violated"
    assert {o.path for o in open_store(url).list_tree("")} == before
    table.delete("m = 2")
    assert rows(url) == [{"n": 1, "m": 1}]


def test_identity_default_and_texts_of_limited_length(url: str) -> None:
    says = {
        "id": {START: 10, STEP: 5, ALLOW_EXPLICIT_INSERT: False}, "d": {DEFAULT: "'none'"},
        "c": {CHAR_VARCHAR: "char(3)"}, "w": {CHAR_VARCHAR: "varchar(2)"},
    }  # fmt: skip
    made(url, "id bigint, d string, c string, w string", says, **{"delta.feature.allowColumnDefaults": "supported"})
    source = pa.table({"c": ["x", "y"], "w": ["a", "b"]})
    for _ in range(2):
        insert = (
            table_of(url).merge(source, "trim(t.c) = s.c").whenNotMatchedInsert("s.c = 'x'", {"c": "s.c", "w": "s.w"})
        )
        insert.whenNotMatchedInsert(None, {"c": "s.c", "d": "'said'"}).execute()
    assert [(r["id"], r["c"], r["d"], r["w"]) for r in rows(url)] == [
        (10, "x  ", "none", "a"),
        (15, "y  ", "said", None),
    ]
    table = table_of(url)
    table.update("c = 'x'", {"c": "'z'", "w": "'a    '"})
    assert [(r["c"], r["w"]) for r in rows(url)] == [("z  ", "a "), ("y  ", None)]
    assert refused(lambda: table.update("c = 'z'", {"w": "'abc'"})).code == "text-too-long"
    assert refused(lambda: table.update("c = 'z'", {"id": "1"})).code == "numbers-given"
    assert (
        refused(table.merge(source, "t.c = s.c").whenNotMatchedInsert(None, {"id": "1"}).execute).code
        == "numbers-given"
    )
    alluvium.write(source, url, mode="append")
    assert sorted(r["id"] for r in rows(url)) == [10, 15, 20, 25]


def test_columns_are_told_from_those_that_say_where_rows_are(url: str, properties: dict[str, str]) -> None:
    names = ["__alluvium_file", "__Alluvium_Row", "__alluvium_row_id", "__alluvium_row_version", "__alluvium_file_"]
    alluvium.write(pa.table({"id": [0, 1, 2], **{name: [5, 6, 7] for name in names}}), url, **properties)
    table = table_of(url)
    table.update("__alluvium_file = 5", {"__alluvium_row": "__alluvium_row + 10"})
    table.delete("__alluvium_row_id = 6")
    source = pa.table({"id": [2, 3]})
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"__alluvium_row_version": "-t.__alluvium_row"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "__alluvium_file": "s.id"}).execute()
    assert [list(row.values()) for row in rows(url)] == [
        [0, 5, 15, 5, 5, 5],
        [2, 7, 7, 7, -7, 7],
        [3, 3, None, None, None, None],
    ]


def test_an_insert_of_no_columns_makes_rows(url: str, properties: dict[str, str]) -> None:
    alluvium.write(pa.table({"id": [1], "v": ["x"]}), url, **properties)
    source = pa.table({"id": [1, 2, 3]})
    done = committed(table_of(url).merge(source, "t.id = s.id").whenNotMatchedInsert("s.id > 1", {}).execute())
    assert done["numTargetRowsInserted"] == "2"
    assert rows(url) == [{"id": 1, "v": "x"}, *[{"id": None, "v": None}] * 2]
    numbered = made(f"{url}/numbered", "id bigint", {"id": {START: 1, STEP: 1, ALLOW_EXPLICIT_INSERT: False}})
    for _ in range(2):
        table_of(numbered).merge(source, "t.id = -s.id").whenNotMatchedInsert(values={}).execute()
    assert [row["id"] for row in rows(numbered)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", ["", "t."])
def test_texts_of_fixed_length_are_compared_padded_behind_a_name_too(url: str, name: str) -> None:
    made(url, "c string, n int", {"c": {CHAR_VARCHAR: "char(5)"}})
    one, two = pa.array([1], pa.int32()), pa.array([1, 2], pa.int32())
    alluvium.write(pa.table({"c": ["ab   ", "xy   "], "n": two}), url, mode="append")
    table = table_of(url).alias("t")
    for condition, count in (("= 'ab'", 1), ("in ('ab', 'xy')", 2), ("> 'ab'", 1), ("<=> 'xy      '", 1)):
        told = table.delete(f"{name}c {condition}", dry_run=True)
        assert isinstance(told, Preview) and told.operation.metrics["numDeletedRows"] == str(count)
    assert refused(lambda: table.delete(f"{name}c = concat('a', 'b')")).code == "needs-spark"
    table.merge(pa.table({"n": two}), "t.n = s.n").whenMatchedUpdate(f"{name}c = 'ab'", {"n": "7"}).execute()
    table.merge(pa.table({"n": one}), f"t.n = s.n + 1 and {name}c = 'xy'").whenMatchedUpdate(set={"n": "8"}).execute()
    table.update(f"{name}c = 'xy'", {"n": f"if({name}c = 'xy', 9, 0)"})
    assert [row["n"] for row in rows(url)] == [7, 9]


def test_quotes_that_are_doubled_are_left_to_spark(url: str) -> None:
    """To Spark 4.0 they are nothing, to later versions a quote."""
    alluvium.write(pa.table({"s": ["its", "it's"]}), url)
    table = table_of(url)
    assert refused(lambda: table.delete("s = 'it''s'")).code == "needs-spark"
    assert refused(lambda: table.update({"s": "'it''s'"})).code == "needs-spark"
    assert refused(lambda: alluvium.open(url).to_arrow(where="s = 'it''s'")).code == "unsupported-expression"
    table.update(set={"s": "concat('a' 'b', 'it\\'s', '')"})
    assert [row["s"] for row in rows(url)] == ["abit's"] * 2


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("kind", ["not null", "p is not null", "p <> 'x'"])
def test_a_text_that_comes_back_as_null_is_null_to_constraints(url: str, kind: str, text: str) -> None:
    """As with Spark, and in delta-spark 4.4."""
    never_null = kind == "not null"
    fields = parse_fields(f"p string {kind if never_null else ''}, i int")
    config = table_config(NewTable(Struct(fields), ("p",), {} if never_null else {"delta.constraints.c": kind}))
    DeltaTarget(open_store(url), config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    one = pa.array([1], pa.int32())
    codes = ("constraint-violated", "not-null-violated")
    assert refused(lambda: alluvium.write(pa.table({"p": [text], "i": one}), url, mode="append")).code in codes
    alluvium.write(pa.table({"p": ["y"], "i": one}), url, mode="append")
    table, source = table_of(url), pa.table({"p": [text, "y"]})
    assert refused(lambda: table.update(set={"p": f"'{text}'"})).code in codes
    for merge in (
        table.merge(source, "t.p = s.p").whenNotMatchedInsertAll(),
        table.merge(source, "t.p = s.p").whenNotMatchedInsert(values={"p": "s.p"}),
        table.merge(pa.table({"p": ["y"]}), "t.p = s.p").whenMatchedUpdate(set={"p": f"'{text}'"}),
    ):
        assert refused(merge.execute).code in (*codes, "unknown-column")
    assert rows(url) == [{"p": "y", "i": 1}]


def test_partitions_of_texts_that_come_back_as_null(url: str) -> None:
    data = pa.table({"p": ["", "__HIVE_DEFAULT_PARTITION__", None, "x"], "i": range(4)})
    alluvium.write(data, url, partition_by="p", **KINDS["feed"])
    assert {row["i"]: row["p"] for row in rows(url)} == {0: None, 1: None, 2: None, 3: "x"}
    assert sum(row["p"] is None for row in alluvium.open(url).changes(0).to_pylist()) == 3


@pytest.mark.parametrize(("table", "source"), [("self", "tables"), ("cls", "self")])
def test_any_name_is_one(url: str, table: str, source: str) -> None:
    alluvium.write(pa.table({"id": [1, 2]}), url)
    named = table_of(url).alias(table)
    named.update(f"{table}.id = 1", {"id": f"{table}.id + 10"})
    merge = named.merge(pa.table({"id": [2]}), f"{table}.id = {source}.id", source)
    merge.whenMatchedUpdate(set={"id": f"{source}.id + 10"}).execute()
    assert rows(url) == [{"id": 11}, {"id": 12}]


def test_the_name_of_rows_alone_is_a_column_or_nothing(url: str) -> None:
    alluvium.write(pa.table({"id": [1, 2], "t": [None, "x"]}), url)
    named = table_of(url).alias("t")
    merge = named.merge(pa.table({"id": [1], "u": ["y"]}), "t.id = s.id and s is null", "s").whenMatchedDelete()
    assert refused(merge.execute).code == "unknown-column"
    assert refused(lambda: named.delete("t is null")).code == "needs-spark"
    named.delete("t.t is null")
    assert rows(url) == [{"id": 2, "t": "x"}]


def test_messages_show_times_that_python_does_not_know(url: str) -> None:
    made(url, "d date, s struct<x: date>", **{"delta.constraints.old": "d < date'2000-01-01' or s.x is not null"})
    late = pa.array([2_932_897], pa.date32())
    lone = pa.StructArray.from_arrays([pa.nulls(1, pa.date32())], ["x"], mask=pa.array([True]))
    broken = refused(lambda: alluvium.write(pa.table({"d": late, "s": lone}), url, mode="append"))
    assert (
        broken.code == "constraint-violated" and "d = 10000-01-01" in broken.message and "s.x = null" in broken.message
    )
    alluvium.write(pa.table({"d": late, "s": pa.StructArray.from_arrays([late], ["x"])}), url, mode="append")
    source = pa.table({"d": pa.concat_arrays([late, late])})
    merge = (
        table_of(url).merge(source, "t.d = s2.d", source_alias="s2").whenMatchedUpdate("t.s is not null", {"d": "null"})
    )
    several = refused(merge.execute)
    assert several.code == "multiple-matches" and "d = 10000-01-01" in several.message and "s = ?" in several.message


def test_nested_values_are_copied(url: str) -> None:
    data = pa.table({
        "id": [1, 2, 3],
        "r": [{"a": [1, None], "m": "x"}, None, {"a": None, "m": None}],
        "m": pa.array([[("k", {"z": dt.date(2024, 1, 1)})], None, []], pa.map_(pa.string(), pa.struct([("z", pa.date32())]))),
    })  # fmt: skip
    alluvium.write(data, url, **{"delta.columnMapping.mode": "name"})
    table = table_of(url)
    table.update("id = 3", {"id": "4"})
    expected = [{**r, "id": 4 if r["id"] == 3 else r["id"]} for r in data.to_pylist()]
    assert sorted(rows(url), key=lambda r: r["id"]) == expected
    assert refused(lambda: table.update("id = 1", {"r.m": "'y'"})).code == "needs-spark"
    source = data.select(["id", "r"]).slice(0, 1)
    wider = source.set_column(1, "r", pa.array([{"M": "new", "A": pa.scalar([7], pa.list_(pa.int8())).as_py()}]))
    table.merge(wider, "t.id = s.id").whenMatchedUpdate(None, {"r": "s.r"}).execute()
    assert {r["id"]: r["r"] for r in rows(url)}[1] == {"a": [7], "m": "new"}
    other = source.set_column(1, "r", pa.array([{"z": 1}]))
    assert (
        refused(table.merge(other, "t.id = s.id").whenMatchedUpdate(None, {"r": "s.r"}).execute).code
        == "schema-mismatch"
    )
    assert refused(lambda: table.update(None, {"m": "r"})).code == "needs-spark"


# -- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_not_understood_changes_nothing(url: str) -> None:
    alluvium.write(pa.table({"id": [1, 2], "t": ["a", "b"]}), url)
    table, source = table_of(url), pa.table({"id": [1, 1, 5], "t": ["x", "y", "z"]})
    needs_spark: list[Callable[[], object]] = [
        lambda: table.delete("soundex(t) = 'A000'"),
        lambda: table.update(None, {"t": "soundex(t)"}),
        lambda: table.update("id = 1", {"t": "default"}),
        lambda: table.merge(source, "t.id < s.id").whenMatchedDelete().execute(),
        lambda: table.merge(source, "true").whenMatchedDelete().execute(),
        lambda: table.optimize().executeZOrderBy("id"),
    ]
    for act in needs_spark:
        assert refused(act).code == "needs-spark"
    invalid: dict[str, list[Callable[[], object]]] = {
        "unknown-column": [
            lambda: table.delete("idd = 1"),
            lambda: table.update(None, {"idd": "1"}),
            lambda: table.update(None, {"id": "x.id"}),
            lambda: table.merge(source, "t.id = s.idd").whenMatchedDelete().execute(),
            lambda: table.merge(source.select(["id"]), "t.id = s.id").whenMatchedUpdateAll().execute(),
            lambda: table.merge(source, "t.id = s.id").whenNotMatchedInsert(None, {"id": "t.id"}).execute(),
        ],
        "invalid-predicate": [
            lambda: table.delete("id ="),
            lambda: table.delete("id"),
            lambda: table.delete(""),
            lambda: table.update("id = 2", {"id": "t"}),
        ],
        "duplicate-column": [lambda: table.update(None, {"id": "1", "ID": "2"})],
        "multiple-matches": [lambda: table.merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()],
        "merge-without-clauses": [lambda: table.merge(source, "t.id = s.id").execute()],
        "unreachable-clause": [
            lambda: table.merge(source, "t.id = s.id").whenMatchedDelete().whenMatchedUpdateAll().execute()
        ],
        "ambiguous-name": [lambda: table.merge(source, "t.id = s.id", source_alias="T").whenMatchedDelete().execute()],
        "not-rows": [lambda: table.merge([1], "t.id = s.id")],
        "needs-spark": [lambda: table.merge(source, "t.id = s.id").withSchemaEvolution()],
        "wrong-type": [
            lambda: table.delete(5),  # type: ignore[arg-type]
            lambda: table.update("id = 1", {"id": 5}),  # type: ignore[dict-item]
            lambda: table.update("id = 1"),
            lambda: table.merge(source, None),  # type: ignore[arg-type]
        ],
    }
    for code, acts in invalid.items():
        for act in acts:
            assert refused(act).code == code
    assert (alluvium.open(url).version, len(rows(url))) == (0, 2)
    assert len([o for o in open_store(url).list_tree("") if o.path.endswith(".parquet")]) == 1
    done = table.merge(source, "t.id = s.id").whenMatchedDelete().execute()
    assert isinstance(done, Committed) and done.metrics["numTargetRowsDeleted"] == "1"


def test_a_column_called_as_the_table(url: str) -> None:
    alluvium.write(pa.table({"s": [1, 2], "t": [3, 4]}), url)
    source = pa.table({"s": [2], "u": [9]})
    table_of(url).merge(source, "t.s = s.s").whenMatchedUpdate(None, {"t.t": "s.u + t.t"}).execute()
    assert rows(url) == [{"s": 1, "t": 3}, {"s": 2, "t": 13}]
    table_of(url).alias("x").update("x.s = 1 and t = 3", {"t": "x.t + s"})
    assert rows(url) == [{"s": 1, "t": 4}, {"s": 2, "t": 13}]


def test_append_only(url: str) -> None:
    alluvium.write(pa.table({"id": [1]}), url, **{"delta.appendOnly": "true"})
    table, source = table_of(url), pa.table({"id": [1, 2]})
    assert refused(lambda: table.delete("id = 1")).code == "append-only"
    assert refused(table.merge(source, "t.id = s.id").whenMatchedDelete().execute).code == "append-only"
    table.merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert rows(url) == [{"id": 1}, {"id": 2}]


# -- others, and failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_a_verb_that_lost_is_carried_out_anew(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alluvium.write(pa.table({"id": [1, 2], "v": [0, 0]}), url, **KINDS[kind])
    commit = DeltaTarget.commit
    pending: list[int] = []

    def late(self: DeltaTarget, changes: Any) -> Any:
        if pending:
            alluvium.write(pa.table({"id": [pending.pop()], "v": [0]}), url, mode="append")
        return commit(self, changes)

    monkeypatch.setattr(DeltaTarget, "commit", late)
    table = table_of(url)
    # The append that is interrupted by itself commits first.
    pending.append(7)
    done = table.update("v = 0", {"v": "1"})
    assert isinstance(done, Committed) and done.attempts == 2
    assert rows(url) == [{"id": 1, "v": 1}, {"id": 2, "v": 1}, {"id": 7, "v": 1}]
    pending.append(8)
    with pytest.raises(CommitConflict, match="as often as retry allows"):
        table.update("v < 2", {"v": "2"}, retry=RetryPolicy(max_repeats=0))
    assert [r["v"] for r in rows(url)] == [1, 1, 1, 0]


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("kind", ["plain", "all"])
def test_whatever_request_fails(url: str, kind: str, when: When, monkeypatch: pytest.MonkeyPatch) -> None:
    source = pa.table({"id": [1, 9], "v": [5, 5]})
    at, outcomes = 0, set()
    while True:
        at += 1
        path = f"{url}{at}"
        alluvium.write(pa.table({"id": [1, 2, 3], "v": [0, 0, 0]}), path, **KINDS[kind])
        before = rows(path)
        after = [{"id": 1, "v": 5}, {"id": 2, "v": 0}, {"id": 3, "v": 0}, {"id": 9, "v": 5}]
        faulty = FaultyStore(open_store(path), Fault(at, when))
        table = table_of(path)
        monkeypatch.setattr(
            "alluvium.api.delta.portable.delta_table.open_store", lambda *_, faulty=faulty, **__: faulty
        )
        try:
            table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            expected = [after]
        except CommitUnknown:
            expected = [before, after]
        except AlluviumError:
            expected = [before]
        monkeypatch.undo()
        assert rows(path) in expected
        outcomes.add(len(expected))
        if not faulty.failed:
            break
    assert at > 6


def test_upkeep_by_the_same_object(url: str, tmp_path: Any) -> None:
    place = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1, 2]}), place)
    table = DeltaTable.forPath(place)
    assert isinstance(table, PortableDeltaTable) and PortableDeltaTable.isDeltaTable(place)
    assert not PortableDeltaTable.isDeltaTable(str(tmp_path))
    table.delete("id = 1")
    table.restoreToVersion(0)
    table.addFeatureSupport("deletionVectors")
    table.alter().set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 2")
    assert rows(place) == [{"id": 1}]
    assert [c["operation"] for c in table.history()][:2] == ["DELETE", "SET TBLPROPERTIES"]
    assert table.vacuum(168, dry_run=True).files.num_rows == 0
    table.clone(str(tmp_path / "copy"))
    assert rows(str(tmp_path / "copy")) == [{"id": 1}]
    table.cloneAtVersion(0, str(tmp_path / "whole"), isShallow=True, properties={"delta.appendOnly": "true"})
    assert rows(str(tmp_path / "whole")) == [{"id": 1}, {"id": 2}]
    assert alluvium.open(str(tmp_path / "whole")).properties["delta.appendOnly"] == "true"
    then = alluvium.open(place, version=0).timestamp
    told = table.cloneAtTimestamp(then, str(tmp_path / "copy"), replace=True, dry_run=True)
    assert isinstance(told, Preview) and told.operation.parameters["sourceVersion"] == 0
    table.cloneAtTimestamp(then, str(tmp_path / "copy"), replace=True)
    assert rows(str(tmp_path / "copy")) == [{"id": 1}, {"id": 2}]
    assert refused(lambda: table.cloneAtVersion(99, str(tmp_path / "none"))).code == "missing-version"
    assert not (tmp_path / "none").exists()
    assert refused(lambda: PortableDeltaTable.forPath(str(tmp_path / "none"))).code == "not-a-table"
    assert table.toTable().to_arrow().num_rows == 1


@pytest.mark.parametrize("litter", ["", "x.txt", "_last_checkpoint", "00000000000000000000.crc"])
def test_a_folder_is_a_table_only_where_it_can_be_opened(tmp_path: Path, litter: str) -> None:
    alluvium.write(pa.table({"id": [1], "p": [2]}), str(tmp_path / "t"), partition_by=["p"])
    assert PortableDeltaTable.isDeltaTable(tmp_path / "t")
    assert not any(PortableDeltaTable.isDeltaTable(place) for place in (tmp_path / "t").rglob("*"))
    log = tmp_path / "no table" / "_delta_log"
    log.mkdir(parents=True)
    if litter:
        (log / litter).write_text("{}")
    assert not PortableDeltaTable.isDeltaTable(tmp_path / "no table")
    assert refused(lambda: PortableDeltaTable.forPath(tmp_path / "no table")).code == "not-a-table"


@pytest.mark.long
def test_no_pyspark() -> None:
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import importlib.util as u; found = u.find_spec; u.find_spec = lambda n, *a: None if n == 'pyspark' else found(n, *a)\n"
        "import pyarrow as pa, alluvium\n"
        "alluvium.write(pa.table({'n': [1, 2]}), 'memory://y/t')\n"
        "from alluvium import DeltaTable\n"
        "t = DeltaTable.forPath('memory://y/t')\n"
        "t.update('n = 1', {'n': 'n + 5'}); t.delete('n = 2')\n"
        "assert alluvium.open('memory://y/t').to_arrow().to_pylist() == [{'n': 6}]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("spelling", ["link", "t/../t", "t/"])
def test_rows_of_the_table_itself_are_known_by_any_spelling(tmp_path: Path, spelling: str) -> None:
    place, other = str(tmp_path / "t"), f"{tmp_path}/{spelling}"
    alluvium.write(pa.table({"id": [1]}), place)
    (tmp_path / "link").symlink_to(place)
    for read, written in ((other, place), (place, other)):
        view = alluvium.open(read)
        alluvium.write(pa.table({"id": [2]}), place, mode="append")
        with pytest.raises(CommitConflict):
            alluvium.write(view, written, mode="overwrite")
        merge = table_of(written).merge(view, "t.id = s.id").whenMatchedUpdate(None, {"id": "9"})
        with pytest.raises(CommitConflict, match="read from the table itself"):
            merge.execute()
    assert len(rows(place)) == 3


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_of_the_table_itself_are_those_of_their_version(url: str, mode: str) -> None:
    alluvium.write(pa.table({"id": [1, 2]}), url)
    view = alluvium.open(url)
    alluvium.write(pa.table({"id": [3]}), url, mode="append")
    with pytest.raises(CommitConflict):
        alluvium.write(view, url, mode=mode)
    with pytest.raises(CommitConflict, match="read from the table itself"):
        table_of(url).merge(view, "t.id = s.id").whenMatchedUpdate(None, {"id": "s.id + 10"}).execute()
    assert rows(url) == [{"id": 1}, {"id": 2}, {"id": 3}]
    alluvium.write(alluvium.open(url), url, mode=mode)
    assert len(rows(url)) == (6 if mode == "append" else 3)
    if mode == "overwrite":
        table_of(url).merge(alluvium.open(url), "t.id = s.id - 1").whenMatchedUpdate(
            None, {"id": "s.id + 10"}
        ).execute()
        assert rows(url) == [{"id": 12}, {"id": 13}, {"id": 3}]
    # What is held in memory counts as anybody's.
    alluvium.write(view.to_arrow(), url, mode="overwrite")
    assert rows(url) == [{"id": 1}, {"id": 2}]
