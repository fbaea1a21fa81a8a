"""Conditions on the ids of rows, without Spark: which rows they leave, and which files they skip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, make, open_target, write_files

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.rows.candidates import PaimonVersion
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, Patches, ReadScope
from alluvium.storage.store import Store

TRACKED = {"row-tracking.enabled": "true"}
EVOLVES = {**TRACKED, "data-evolution.enabled": "true"}


def three(path: Path, **options: str) -> Store:
    """Ids 0 and 1, 2 and 3, 4 and 5, of the snapshots 1 to 3."""
    store = make(str(path / "t"), **options)
    for first in (0, 2, 4):
        append(open_target(store), [{"k": 10 * k} for k in (first, first + 1)])
    return store


@pytest.mark.parametrize("options", [TRACKED, EVOLVES], ids=["tracked", "evolved"])
@pytest.mark.parametrize(
    ("where", "ks", "files"),
    [
        ("_ROW_ID = 3", [30], 1),
        ("_row_id in (0, 5)", [0, 50], 2),
        ("_ROW_ID > 1 and k <> 20", [30, 40, 50], 2),
        ("_ROW_ID >= 6", [], 0),
        ("_ROW_ID is null", [], 0),
        ("_SEQUENCE_NUMBER = 2", [20, 30], 1),
        ("_SEQUENCE_NUMBER < 2 or _ROW_ID = 4", [0, 10, 40], 2),
        ("_ROW_ID = k", [0], 1),
    ],
)
def test_rows_by_their_ids(tmp_path: Path, options: dict[str, str], where: str, ks: list[int], files: int) -> None:
    store = three(tmp_path, **options)
    table = alluvium.open(store.url)
    assert sorted(table.to_arrow(["k"], where=where)["k"].to_pylist()) == ks
    assert table.to_arrow(where=where).column_names == list(table.schema.names)
    # Of tables with data evolution files are told apart by ids alone.
    if options is TRACKED or ("SEQUENCE" not in where and "= k" not in where):
        assert table.files(where=where).num_rows == files


def test_what_files_store_is_not_taken_for_what_manifests_say(tmp_path: Path) -> None:
    """Rows that came into another file keep their ids, which are not those of the file."""
    store = three(tmp_path, **TRACKED, **{"compaction.min.file-num": "2"})
    target = open_target(store)
    assert target.snapshot is not None
    found = PaimonVersion(target.snapshot).candidates(None)
    ids = found.stored_ids
    assert ids is not None
    paths = found.paths
    touched = pa.table([paths.slice(0, 2), pa.nulls(2, pa.binary())], schema=TOUCHED_FILES)
    plan = target.plan_write(None, ())
    plan = replace(plan, directory=f"{plan.directory}-ids", stats_columns=(*plan.stats_columns, *ids.stats))
    kept = pa.table(
        {
            "k": pa.array([0, 10, 20, 31], pa.int32()),
            "s": pa.nulls(4, pa.string()),
            "day": pa.nulls(4, pa.string()),
            "_ROW_ID": [0, 1, 2, 3],
            "_SEQUENCE_NUMBER": pa.array([1, 1, 2, None], pa.int64()),
        }
    )
    new = write_files(store, plan, {(None,): kept})
    target.commit(EditRows(new, touched, Operation("UPDATE"), ReadScope.table()))
    table = alluvium.open(store.url)
    for where, ks in [("_ROW_ID = 2", [20]), ("_SEQUENCE_NUMBER = 1", [0, 10]), ("_SEQUENCE_NUMBER = 4", [31])]:
        assert table.to_arrow(["k"], where=where)["k"].to_pylist() == ks, where


def test_columns_that_were_written_later(tmp_path: Path) -> None:
    store = three(tmp_path, **EVOLVES)
    target = open_target(store)
    assert target.snapshot is not None
    path = PaimonVersion(target.snapshot).candidates(None).paths[1].as_py()
    plan = target.plan_write(None, ()).only(("k",))
    new = write_files(store, plan, {(None,): pa.table({"k": pa.array([21, 31], pa.int32())})})
    patches = Patches(new, pa.array([path]), ("k",))
    changes = EditRows(
        NewFiles.none(), TOUCHED_FILES.empty_table(), Operation("MERGE"), ReadScope.table(), patches=patches
    )
    target.commit(changes)
    table = alluvium.open(store.url)
    assert table.to_arrow(["k"], where="_ROW_ID = 3")["k"].to_pylist() == [31]
    assert table.files(where="_ROW_ID = 3").num_rows == 2
    assert table.to_arrow(["k"], where="_SEQUENCE_NUMBER = 4")["k"].to_pylist() == [21, 31]


def test_rows_without_ids_have_none_to_ask_for(tmp_path: Path) -> None:
    store = three(tmp_path)
    keyed = PaimonTable.create(str(tmp_path / "k"), pa.schema([("k", pa.int32())]), primary_keys=["k"])
    for url in (store.url, keyed.url):
        with pytest.raises(InvalidRequest) as raised:
            alluvium.open(url).to_arrow(where="_ROW_ID = 1")
        assert raised.value.code == "unknown-column"
