"""Which files a verb reads, and how their rows tell where they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.errors import UnsupportedFeature
from alluvium.expr import tree
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.rows.candidates import PaimonVersion, ensure_append_rows_change
from alluvium.paimon.write.keyed import ensure_rows_change
from alluvium.plan.changes import RowChangeMode
from alluvium.plan.scan import FileConstant, RowPosition
from alluvium.schema import types as t
from alluvium.storage.open import open_store

IS_A = tree.Compare("=", tree.Column(("day",), t.STRING), tree.Literal("a", t.STRING))


def version(path: Path, *keys: str, **options: str) -> PaimonVersion:
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"], keys, options)
    for day in "ab":
        append(open_target(store), [{"k": k, "day": day} for k in range(3)])
    return PaimonVersion(load_snapshot(store))


def test_rows_of_append_tables_have_places(tmp_path: Path) -> None:
    found = version(tmp_path).candidates(IS_A)
    plan = found.plan_scan()
    assert plan.schema.names == ("k", "day", "__alluvium_file", "__alluvium_row")
    ((part,),) = [plan.parts]
    assert [type(column.value) for column in part.output[-2:]] == [FileConstant, RowPosition]
    assert part.files["path"].to_pylist() == found.paths.to_pylist() and part.is_exact
    assert (found.live_counts(found.files).to_pylist(), found.total_files) == ([3], 2)
    assert found.only(pa.array([1])).files.num_rows == 0


def test_rows_of_keys_are_read_by_what_is_known_of_them(tmp_path: Path) -> None:
    """Spark pushes no filter behind the numbers that rows get."""
    table = version(tmp_path, "k", "day", bucket="1")
    found = table.candidates(IS_A)
    plans = found.plan_scan(), table.candidates(None).plan_scan()
    assert [sum(part.files.num_rows for part in plan.parts) for plan in plans] == [1, 2]
    assert plans[0].schema.names == ("k", "day")
    assert found.identity != table.candidates(None).identity


def test_the_way_in_which_rows_change(tmp_path: Path) -> None:
    ways = {
        RowChangeMode.REWRITE_FILES: version(tmp_path / "a"),
        RowChangeMode.MASK_ROWS: version(tmp_path / "b", **{"deletion-vectors.enabled": "true"}),
        RowChangeMode.UPSERT_KEYS: version(tmp_path / "c", "k", "day", bucket="1"),
    }
    assert [table.mode(table.candidates(None)) for table in ways.values()] == list(ways)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_of_any_file_format_change(tmp_path: Path, file_format: str) -> None:
    store = open_store(str(tmp_path / "t"))
    PaimonTable.create(store.url, pa.schema([("k", pa.int32())]), options={"file.format": file_format})
    append(open_target(store), [{"k": 1}])
    ensure_append_rows_change(load_snapshot(store))
    assert PaimonVersion(load_snapshot(store)).candidates(None).files.num_rows == 1


@pytest.mark.parametrize("more", [{"data-evolution.enabled": "true"}, {"bucket": "2", "bucket-key": "k"}], ids=str)
def test_rows_that_are_in_several_files_do_not_change(tmp_path: Path, more: dict[str, str]) -> None:
    snapshot = tracked(tmp_path, {"row-tracking.enabled": "true"})
    schema = replace(snapshot.schema, options={**snapshot.schema.options, **more})
    with pytest.raises(UnsupportedFeature) as refused:
        ensure_append_rows_change(replace(snapshot, schema=schema))
    assert refused.value.code == "unsupported-row-change"


def tracked(path: Path, options: dict[str, str]) -> Snapshot:
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, pa.schema([("k", pa.int32())]), options=options)
    append(open_target(store), [{"k": 1}])
    append(open_target(store), [{"k": 2}, {"k": 3}])
    return load_snapshot(store)


def test_rows_tell_their_ids(tmp_path: Path) -> None:
    snapshot = tracked(tmp_path, {"row-tracking.enabled": "true"})
    ensure_append_rows_change(snapshot)
    found = PaimonVersion(snapshot).candidates(None)
    plan = found.plan_scan()
    assert (
        plan.schema.names == ("k", "_ROW_ID", "_SEQUENCE_NUMBER", *found.columns.names)
        and len(found.columns.names) == 4
    )
    (part,) = plan.parts
    assert tuple(column.name for column in part.output) == plan.schema.names
    ids = found.stored_ids
    assert ids is not None and ids.is_apart and [f.name for f in ids.fields] == ["_ROW_ID", "_SEQUENCE_NUMBER"]
    assert PaimonVersion(tracked(tmp_path / "b", {})).candidates(None).stored_ids is None


@pytest.mark.parametrize("keys", [(), ("k", "day")])
def test_rows_that_a_branch_stands_in_for_do_not_change(tmp_path: Path, keys: tuple[str, ...]) -> None:
    """One row of a partition that only the branch has hid all others of it."""
    snapshot = version(tmp_path, *keys, **{"bucket": "1"} if keys else {}).snapshot
    options = {**snapshot.schema.options, "scan.fallback-branch": "b"}
    snapshot = replace(snapshot, schema=replace(snapshot.schema, options=options))
    with pytest.raises(UnsupportedFeature) as refused:
        ensure_rows_change(snapshot.schema) if keys else ensure_append_rows_change(snapshot)
    assert refused.value.features == ("scan.fallback-branch",)
