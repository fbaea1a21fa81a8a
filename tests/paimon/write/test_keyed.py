"""Rows of keys without Spark: what manifests say of them, how they are numbered, and which tables are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, open_target, stage

import alluvium
from alluvium.errors import AlluviumError, CommitConflict, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.view.scan import plan_read_optimized
from alluvium.paimon.write.keyed import ensure_rows_change
from alluvium.plan.changes import ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string()), ("kind", pa.string())])
KINDS = {"rowkind.field": "kind"}


def make(path: Path, keys: list[str], parted: list[str] = [], **options: str) -> Store:  # noqa: B006
    url = str(path / "t")
    PaimonTable.create(url, SCHEMA, parted, keys, {"bucket": "1", **options})
    return open_store(url)


def rows(store: Store) -> list[tuple[Any, ...]]:
    found = alluvium.open(store.url).to_arrow(columns=["k", "s", "p"]).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def files(store: Store) -> list[dict[str, Any]]:
    return sorted(alluvium.open(store.url).system("files").to_pylist(), key=lambda f: f["min_sequence_number"])


def test_the_newest_row_of_a_key_is_read(tmp_path: Path) -> None:
    store = make(tmp_path, ["k", "p"], ["p"])
    append(
        open_target(store), [{"k": 1, "s": "a", "p": "x"}, {"k": 2, "s": "b", "p": "x"}, {"k": 1, "s": "c", "p": "y"}]
    )
    append(open_target(store), [{"k": 2, "s": "new", "p": "x"}, {"k": 2, "s": "newer", "p": "x"}])
    assert rows(store) == [(1, "a", "x"), (1, "c", "y"), (2, "newer", "x")]
    document = alluvium.open(store.url).system("snapshots").to_pylist()[-1]
    assert (document["commit_kind"], document["total_record_count"], document["delta_record_count"]) == ("APPEND", 4, 1)


def test_manifests_tell_of_keys_numbers_and_deletions(tmp_path: Path) -> None:
    store = make(tmp_path, ["s", "k"], **KINDS)
    append(
        open_target(store),
        [{"k": 5, "s": "a", "kind": "+I"}, {"k": 1, "s": "b", "kind": "-D"}, {"k": 9, "s": "a", "kind": "+U"}],
    )
    append(open_target(store), [{"k": 5, "s": "a", "kind": "-D"}, {"k": 5, "s": "é" * 200, "kind": "+I"}])
    first, second = files(store)
    # Bounds of single columns are no keys.
    assert (first["min_key"], first["max_key"], first["deleteRowCount"], first["level"]) == ("[a, 5]", "[b, 1]", 1, 0)
    assert [(f["min_sequence_number"], f["max_sequence_number"]) for f in (first, second)] == [(0, 2), (3, 4)]
    entry = alluvium.open(store.url)._snapshot.entries.to_pylist()[0]
    assert (entry["total_buckets"], entry["file_source"]) == (1, 0)
    assert rows(store) == [(5, "é" * 200, None), (9, "a", None)]


def test_numbers_go_on_within_each_bucket_and_begin_anew_after_an_overwrite(tmp_path: Path) -> None:
    store = make(tmp_path, ["k", "p"], ["p"])
    append(open_target(store), [{"k": n, "p": "x"} for n in range(3)])
    append(open_target(store), [{"k": 1, "p": "x"}, {"k": 1, "p": "y"}])
    numbers = sorted((f["partition"], f["min_sequence_number"], f["max_sequence_number"]) for f in files(store))
    assert [n[1:] for n in numbers] == [(0, 2), (3, 3), (0, 0)]
    append(open_target(store), [{"k": 7, "p": "x"}], Replace(dynamic=True))
    assert [(f["min_sequence_number"], f["record_count"]) for f in files(store)] == [(0, 1), (0, 1)]
    append(open_target(store), [{"k": 8, "p": "z"}], Replace())
    assert rows(store) == [(8, None, "z")]


def test_writers_of_rows_never_conflict(tmp_path: Path) -> None:
    store = make(tmp_path, ["k"])
    winner = open_target(store)
    race = Fault(1, verb="put_if_absent", meanwhile=lambda: append(winner, [{"k": 1, "s": "first"}]) and None)
    assert append(open_target(FaultyStore(store, race)), [{"k": 1, "s": "second"}]).attempts == 2
    # Who commits last wins, also where both numbered their rows alike.
    assert rows(store) == [(1, "second", None)]
    late = open_target(store)
    append(open_target(store), [{"k": 2}])
    with pytest.raises(CommitConflict):
        append(late, [{"k": 3}], Replace())


def test_rows_that_were_made_of_others_do_not_outlive_them(tmp_path: Path) -> None:
    """What DELETE and UPDATE write depends on what they read; compactions change nothing of it."""
    store = make(tmp_path, ["k"])
    append(open_target(store), [{"k": 1, "s": "a"}])
    late = open_target(store)
    changes = stage(late, [{"k": 1, "s": "of a"}])
    append(open_target(store), [{"k": 1, "s": "b"}])
    with pytest.raises(CommitConflict) as caught:
        late.commit(replace(changes, read=ReadScope.table()))
    assert [c.rule for c in caught.value.conflicts] == ["concurrent-append"]
    assert rows(store) == [(1, "b", None)]
    deleting = replace(open_target(store), kind=3)
    assert stage(deleting, []).new.table.num_rows == 0
    assert deleting.plan_write(None, ()).keyed.kind == 3


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"bucket": "-1", "index-file-in-data-file-dir": "true"}, "index-file-in-data-file-dir"),
        ({"sequence.snapshot-ordering": "true"}, "sequence.snapshot-ordering"),
        ({"file.compression.per.level": "0:lz4"}, "file.compression.per.level"),
        ({"file.format.per.level": "0:avro"}, "file.format.per.level"),
        ({"bucket-function.type": "hive"}, "bucket-function.type"),
    ],
)
def test_what_a_table_asks_for_and_nobody_does_is_refused_by_its_name(
    tmp_path: Path, options: dict[str, str], feature: str
) -> None:
    store = make(tmp_path, ["k"], **options)
    with pytest.raises(AlluviumError) as caught:
        append(open_target(store), [{"k": 1}])
    assert (caught.value.code, getattr(caught.value, "features", ())) == ("unsupported-option", (feature,))
    assert [info.path for info in store.list_tree("") if not info.path.startswith("schema/")] == []


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("sum", "STRING"),
        ("product", "BOOLEAN"),
        ("bool_or", "INT"),
        ("listagg", "INT"),
        ("listagg", "VARCHAR(3)"),
        ("collect", "INT"),
        ("merge_map", "STRING"),
        ("nested_update", "STRING"),
        ("rbm32", "INT"),
        ("hll_sketch", "BINARY(4)"),
    ],
)
@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_rows_that_nobody_could_merge_are_not_written(tmp_path: Path, function: str, kind: str, engine: str) -> None:
    """Java makes such a table, too, and its writer refuses the first row."""
    options = {"bucket": "1", "merge-engine": engine, "fields.v.aggregate-function": function}
    if engine == "partial-update":
        options["fields.g.sequence-group"] = "v"
    fields = [DataField(0, n, parse_type(text)) for n, text in (("k", "INT NOT NULL"), ("g", "INT"), ("v", kind))]
    url = str(tmp_path / "t")
    PaimonTable.create(url, fields, (), ["k"], options)
    store = open_store(url)
    with pytest.raises(AlluviumError) as caught:
        append(open_target(store), [{"k": 1}])
    assert (caught.value.code, caught.value.column) == ("unsupported-aggregate", "v")
    assert [info.path for info in store.list_tree("") if not info.path.startswith("schema/")] == []


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("nested_partial_update", {}),
        ("nested_update", {"nested-key": "no"}),
        ("nested_update", {"count-limit": "x"}),
    ],
)
def test_rows_are_not_written_whose_options_nobody_could_merge_by(
    tmp_path: Path, function: str, options: dict[str, str]
) -> None:
    """Both rows of a key were written, and from then on no read came to an end."""
    nested = {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 5, "name": "x", "type": "INT"}]}}
    fields = [DataField(0, "k", parse_type("INT NOT NULL")), DataField(0, "v", parse_type(nested))]
    given = {"aggregate-function": function, **options}
    own = {"bucket": "1", "merge-engine": "aggregation", **{f"fields.v.{name}": v for name, v in given.items()}}
    PaimonTable.create(url := str(tmp_path / "t"), fields, (), ["k"], own)
    with pytest.raises(AlluviumError) as caught:
        append(open_target(open_store(url)), [{"k": 1}])
    assert (caught.value.code, caught.value.column) == ("invalid-table-option", "v")


@pytest.mark.parametrize("column", ["k", "s"])
def test_a_deletion_takes_the_row_away_or_leaves_a_column(tmp_path: Path, column: str) -> None:
    options = {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"}
    store = make(tmp_path, ["k"], **options, **{f"fields.{column}.ignore-retract": "true"})
    with pytest.raises(AlluviumError) as caught:
        append(open_target(store), [{"k": 1}])
    assert (caught.value.code, caught.value.column) == ("invalid-table-option", column)


def test_what_compacts_the_table_elsewhere_is_no_reason_to_refuse(tmp_path: Path) -> None:
    store = make(tmp_path, ["k"], **{"merge-engine": "first-row", "changelog-producer": "lookup", "write-only": "true"})
    append(open_target(store), [{"k": 1}])
    # "Batch reads use only level>0 files"
    assert (rows(store), len(files(store))) == ([], 1)


def test_keys_whose_equality_is_not_agreed_upon(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.float64())]), primary_keys=["k"], options={"bucket": "1"})
    with pytest.raises(AlluviumError) as caught:
        append(open_target(open_store(url)), [{"k": 0.0}])
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "k")


@pytest.mark.parametrize(
    ("options", "checks"),
    [
        ({}, [("invalid-row-kind", "+D")]),
        ({"ignore-delete": "true", "merge-engine": "partial-update"}, [("invalid-row-kind", "+D")]),
        ({"merge-engine": "partial-update"}, [("invalid-row-kind", "+D"), ("unsupported-retract", "-D")]),
        ({"merge-engine": "partial-update", "fields.p.sequence-group": "s"}, [("invalid-row-kind", "+D")]),
        ({"merge-engine": "aggregation", "fields.default-aggregate-function": "max"},
         [("invalid-row-kind", "+D"), ("unsupported-retract", "-D")]),
        ({"merge-engine": "aggregation", "fields.default-aggregate-function": "last_value"}, [("invalid-row-kind", "+D")]),
        ({"merge-engine": "first-row", "write-only": "true"}, [("invalid-row-kind", "+D"), ("unsupported-retract", "-D")]),
    ],
)  # fmt: skip
def test_kinds_that_an_engine_refuses_are_conditions_of_the_job(
    tmp_path: Path, options: dict[str, str], checks: list[tuple[str, str]]
) -> None:
    plan = open_target(make(tmp_path, ["k"], **KINDS, **options)).plan_write(None, ())
    found = [check for check in plan.checks if check.columns == ("kind",)]
    assert [check.code for check in found] == [code for code, _ in checks]
    for check, (_, kind) in zip(found, checks, strict=True):
        assert f"'{kind}'" not in check.sql and "'+I'" in check.sql


def test_an_update_does_not_add_a_value_to_itself(tmp_path: Path) -> None:
    """It writes all columns of a row: what an aggregate adds would be added once more."""
    path = tmp_path / "t"
    columns = pa.schema([("k", pa.int32()), ("g", pa.int32()), ("v", pa.int64())])
    grouped = {"bucket": "1", "merge-engine": "partial-update", "fields.g.sequence-group": "v"}
    for function, is_refused in (("sum", True), ("listagg", True), ("max", False), ("last_value", False)):
        options = {**grouped, "fields.v.aggregate-function": function}
        kind = pa.string() if function == "listagg" else pa.int64()
        made = columns.set(2, pa.field("v", kind))
        schema = PaimonTable.create(str(path / function), made, (), ["k"], options).schema
        if not is_refused:
            ensure_rows_change(schema, deletes=False)
            continue
        with pytest.raises(UnsupportedFeature) as refused:
            ensure_rows_change(schema, deletes=False)
        assert refused.value.code == "unsupported-row-change" and repr("v") in refused.value.message


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_rows_written_together_merge_in_ascending_order_whatever_the_table_says(tmp_path: Path, order: str) -> None:
    """Java's write buffer sorts so; `sequence.field.sort-order` is for rows of several files."""
    store = make(tmp_path, ["k"], **{"sequence.field": "s", "sequence.field.sort-order": order})
    keyed = open_target(store).plan_write(None, ()).keyed
    assert keyed is not None
    assert keyed.merge.order and not any(column.descending for column in keyed.merge.order)


def test_what_is_read_without_a_merge_is_what_was_merged(tmp_path: Path) -> None:
    """Of files that wait for a compaction no row is told: an older one of its key may stand beside it."""
    store = make(tmp_path, ["k"])
    append(open_target(store), [{"k": 1, "s": "old"}])
    append(open_target(store), [{"k": 1, "s": "new"}])
    assert alluvium.open(store.url).system("ro").num_rows == 0
    assert rows(store) == [(1, "new", None)]


@pytest.mark.parametrize(
    "options", [{}, {"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}, {"num-levels": "4"}]
)
@pytest.mark.parametrize("level", range(6))
def test_a_view_without_merges_has_the_highest_level_alone(tmp_path: Path, options: dict[str, str], level: int) -> None:
    """`ReadOptimizedTable`: "level == numLevels - 1", whatever batch reads of the table see."""
    store = make(tmp_path, ["k"], **options)
    append(open_target(store), [{"k": 1, "s": "new"}])
    state = load_snapshot(store)
    levels = pa.array([level], state.entries["level"].type)
    entries = state.entries.set_column(state.entries.schema.get_field_index("level"), "level", levels)
    files = [part.files.num_rows for part in plan_read_optimized(replace(state, _loaded={"entries": entries})).parts]
    assert sum(files) == (level == int(options.get("num-levels", 6)) - 1)
