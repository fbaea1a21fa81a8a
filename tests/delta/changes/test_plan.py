"""What a feed's plan looks like, and which files a predicate leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from change_table import EXTRA, VECTORS, ChangeTable, changed, metadata, protocol, vector
from mapped_table import mapped, numbered

import alluvium
from alluvium.delta.changes.bounds import Bound
from alluvium.delta.changes.source import ChangeSource, load_changes
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import FileConstant, Literal, Physical, ScanPlan
from alluvium.schema.types import LONG, STRING, Struct
from alluvium.storage.open import open_store


@pytest.fixture
def table(tmp_path: Path) -> ChangeTable:
    """Version n inserts file n with the ids 10 n and 10 n + 1; 4 masks a row of file 3, 5 records a change."""
    made = ChangeTable(tmp_path)
    made.commit(VECTORS, metadata())
    for n in range(1, 4):
        stats = {"numRecords": 2, "minValues": {"id": 10 * n}, "maxValues": {"id": 10 * n + 1}, "nullCount": {"id": 0}}
        made.commit(made.add(f"{n}.parquet", [10 * n, 10 * n + 1], stats=json.dumps(stats)))
    stats["tightBounds"] = False
    masked = {"deletionVector": vector([0]), "stats": json.dumps(stats)}
    made.commit(made.remove("3.parquet"), made.add("3.parquet", **masked))
    made.commit(made.cdc("c.parquet", [(20, "v20", "delete")]))
    return made


def source_of(table: ChangeTable, start: int = 0) -> ChangeSource:
    return load_changes(load_snapshot(open_store(table.url)), Bound(start))


def planned(table: ChangeTable, where: str) -> ScanPlan:
    source = source_of(table)
    return source.plan_scan(parse_predicate(where, source.schema))


def paths(plan: ScanPlan) -> list[str]:
    return sorted(path for part in plan.parts for path in part.files["path"].to_pylist())


def test_engines_see_columns_like_any_other(table: ChangeTable) -> None:
    plan = source_of(table).plan_scan(None)
    kinds = {part.key: [type(c.value) for c in part.output if c.name in EXTRA] for part in plan.parts}
    assert kinds == {
        "recorded[]": [Physical, FileConstant, FileConstant],
        "added[]": [Literal, FileConstant, FileConstant],
        "masked[]": [Literal, FileConstant, FileConstant],
    }
    assert {part.key: part.keeps_masked for part in plan.parts} == {
        "recorded[]": False, "added[]": False, "masked[]": True,
    }  # fmt: skip
    assert plan.schema.names == ("id", "v", *EXTRA)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("_commit_version > 4", ["_change_data/c.parquet"]),
        ("_commit_version = 2", ["2.parquet"]),
        ("_commit_timestamp <= timestamp'2023-11-14 22:14:20Z'", ["1.parquet"]),
        ("_change_type = 'insert'", ["1.parquet", "2.parquet", "3.parquet", "_change_data/c.parquet"]),
        ("id = 21", ["2.parquet", "_change_data/c.parquet"]),
        ("id > 25", ["3.parquet", "3.parquet", "_change_data/c.parquet"]),
        ("id > 25 and _commit_version < 4", ["3.parquet"]),
        ("id > 25 or _commit_version = 1", ["1.parquet", "3.parquet", "3.parquet", "_change_data/c.parquet"]),
    ],
)
def test_files_are_skipped(table: ChangeTable, where: str, expected: list[str]) -> None:
    assert paths(planned(table, where)) == expected
    t = alluvium.open(table.url)
    everything = t.changes(0)
    kept = alluvium.open(table.url).changes(0, where=where)
    assert kept.num_rows <= everything.num_rows
    assert set(changed(kept)) <= set(changed(everything))


def test_what_was_skipped_is_told(table: ChangeTable) -> None:
    assert dict(planned(table, "_commit_version >= 3 and id > 40").skipped) == {"partition": 2, "statistics": 2}


def test_columns_and_predicates_of_the_front_door(table: ChangeTable) -> None:
    t = alluvium.open(table.url)
    found = t.changes(0, columns=["_CHANGE_TYPE", "id"], where="_commit_version in (4, 5)")
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [("delete", 20), ("delete", 30)]
    with t.changes_batches(1, 3, batch_size=1) as reader:
        assert [batch.num_rows for batch in reader] == [1] * 6
    assert t.changes("1", "3", columns=["*"]).schema.names == ["id", "v", *EXTRA]
    with pytest.raises(InvalidRequest) as caught:
        t.changes(0, columns=["_commit"])
    assert caught.value.code == "unknown-column"


def test_identities_tell_ranges_and_tables_apart(table: ChangeTable) -> None:
    assert source_of(table).identity == source_of(table).identity
    assert source_of(table).identity != source_of(table, 1).identity


NAMES = Struct((mapped("id", LONG, "col-1", 1), mapped("v", STRING, "col-2", 2)))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(tmp_path: Path, mode: str) -> None:
    """ "In `name` mode, readers must resolve columns in the data files by their physical names", "In `id ` mode, readers
    must resolve columns by using the `field_id`": in change data files as in others.
    """
    table = ChangeTable(tmp_path)
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mode}
    table.commit(protocol(2, 5), metadata(NAMES, ["v"], properties))
    write(table, "a.parquet", {"col-1": [1]})
    table.commit(table.add("a.parquet", partitionValues={"col-2": "x"}))
    write(table, "_change_data/c.parquet", {"col-1": [1], "_change_type": ["delete"]})
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {"col-2": "x"}, "size": 1, "dataChange": False}
    table.commit({"cdc": cdc})
    t = alluvium.open(table.url)
    assert changed(t.changes(0)) == [(1, "x", "delete", 2), (1, "x", "insert", 1)]
    assert changed(t.changes(0, where="v = 'y' or id = 7")) == []
    assert all(not f.metadata for f in t.changes(0).schema)


def write(table: ChangeTable, path: str, columns: dict[str, list[object]]) -> None:
    (table.root / path).parent.mkdir(exist_ok=True)
    pq.write_table(numbered(pa.table(columns), {"col-1": 1, "col-2": 2}), table.root / path)


def test_columns_are_those_of_the_last_version_where_they_are_mapped(tmp_path: Path) -> None:
    """delta-spark 4.4: `endVersion`, by default; without column mapping the latest."""
    table = ChangeTable(tmp_path)
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    table.commit(protocol(2, 5), metadata(NAMES, (), properties))
    write(table, "a.parquet", {"col-1": [1], "col-2": ["x"]})
    table.commit(table.add("a.parquet"))
    renamed = Struct((mapped("id", LONG, "col-1", 1), mapped("w", STRING, "col-2", 2)))
    table.commit(metadata(renamed, (), properties))
    table.commit(table.add("a.parquet"))
    t = alluvium.open(table.url)
    assert t.changes(0, 1).schema.names == ["id", "v", *EXTRA]
    assert t.changes(2).schema.names == ["id", "w", *EXTRA]
    for start in (0, 1):
        with pytest.raises(InvalidRequest) as caught:
            t.changes(start, 3)
        assert (caught.value.code, caught.value.column) == ("incompatible-schema", "v")
    snapshot = load_snapshot(open_store(table.url))
    with pytest.raises(InvalidRequest):
        load_changes(snapshot, Bound(0), Bound(1), schema_mode="latest")


def test_columns_that_were_mapped_later_keep_their_names_in_older_files(tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    schema = Struct((mapped("id", LONG, "id", 1), mapped("v", STRING, "v", 2)))
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    table.commit(protocol(2, 5), metadata(schema, (), properties))
    table.commit(table.add("b.parquet", [2]))
    assert changed(alluvium.open(table.url).changes(0)) == [(1, "v1", "insert", 0), (2, "v2", "insert", 2)]
