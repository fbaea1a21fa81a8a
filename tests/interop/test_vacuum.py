"""VACUUM beside delta-spark's: what its dry run finds in a table, ours finds, too; and it goes on with what ours left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plain_writer import SCHEMA, commit_rows, open_target
from reference_engine import NEEDS_REFERENCE, judge
from vacuumed_tables import age, backdate_tombstones, files_of, litter, live, mask_first_file, newest

from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview, VacuumRequest, vacuum
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Describe, Operation, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

pytestmark = NEEDS_REFERENCE

LITTER = (
    "orphan.parquet", "d/e r/f%20g é.txt", "p=z%2Fz/x.parquet", "_p=1/hidden.parquet", "_h/x", ".h/x", "_x", ".x", "d/_x",
    "d/_h/x", "_change_data/c.parquet", "_change_data/p=a b/c.parquet", "_change_data/_x", "_change_data2/x", "_delta_index/i",
    "d/_change_data/x", "metadata/v1.json", "_symlink_format_manifest/manifest", "_delta_log/orphan.parquet",
    "deletion_vector_00000000-0000-0000-0000-000000000000.bin", "ab/deletion_vector_00000000-0000-0000-0000-000000000001.bin",
)  # fmt: skip


def build(root: Path) -> Store:
    """Partitions of odd names, files of past versions, vectors of past and of present, change data, litter."""
    store = open_store(root)
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    config = table_config(NewTable(SCHEMA, ("p",), properties))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    commit_rows(open_target(store), [1, 2], "a b")
    commit_rows(open_target(store), [3, 4], "x%y ü:/ü")
    commit_rows(open_target(store), [5, 6], "x%y ü:/ü", replace=Replace())
    commit_rows(open_target(store), [7, 8], "a b")
    for _ in range(2):
        mask_first_file(store)
    cdc = {"path": "_change_data/named.parquet", "partitionValues": {"p": "k"}, "size": 5, "dataChange": False}
    store.put(commit_path(newest(store).version + 1), json.dumps({"cdc": cdc}).encode() + b"\n")
    backdate_tombstones(store)
    age(root, 30)
    commit_rows(open_target(store), [9], "new", replace=Replace())
    litter(root, *LITTER, "_change_data/named.parquet")
    litter(root, "young.parquet", days=0)
    return store


def ours(store: Store, request: VacuumRequest) -> set[str]:
    found = vacuum(newest(store), request, dry_run=True)
    assert isinstance(found, VacuumPreview)
    return set(found.files["path"].to_pylist())


def theirs(folder: Path, store: Store, *clauses: str) -> list[set[str]]:
    statements = [f"VACUUM delta.`{folder / 't'}` {clause} DRY RUN" for clause in clauses]
    (answer,) = judge(folder, [{"statements": statements}], "reference_vacuum")
    assert answer["error"] is None, answer["error"]
    prefix = f"{store.url}/"
    found = [{path.removeprefix(prefix) for path in paths} for paths in answer["result"]]
    # It tells of directories that it cannot remove, too.
    return [{path for path in paths if (folder / "t" / path).is_file()} for paths in found]


@pytest.mark.slow
def test_both_find_the_same_files(tmp_path: Path) -> None:
    store = build(tmp_path / "t")
    week, now, lite = theirs(tmp_path, store, "", "RETAIN 0 HOURS", "LITE RETAIN 0 HOURS")
    nothing_is_kept = VacuumRequest(retention_ms=0, checks=False)
    assert ours(store, VacuumRequest()) == week
    assert len(week) > 12
    assert ours(store, nothing_is_kept) == now
    assert ours(store, VacuumRequest(retention_ms=0, checks=False, lite=True)) == lite
    vacuum(newest(store), nothing_is_kept)
    hidden = {path for path in LITTER if path in files_of(tmp_path / "t")}
    assert files_of(tmp_path / "t") == live(store) | hidden
    # It goes on from what ours noted.
    assert theirs(tmp_path, store, "RETAIN 0 HOURS", "LITE RETAIN 0 HOURS") == [set(), set()]
