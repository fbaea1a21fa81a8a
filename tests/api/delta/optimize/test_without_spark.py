"""OPTIMIZE without Spark: the same rows in fewer files, whatever the table keeps beside them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore, When
from lazy_table import write_delta
from sessionless import KINDS, TRACKED, VECTORS, refused, rows, table_of

import alluvium
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown
from alluvium.plan.changes import Preview
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.open import open_store


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


def parted(url: str, **properties: str) -> str:
    """Partitions 0 and 1 of three files each, 2 of one."""
    for n in range(3):
        data = pa.table({"id": range(10 * n, 10 * n + 6), "p": [0, 0, 0, 1, 1, 1], "v": ["x"] * 6})
        alluvium.write(data, url, mode="append", partition_by=["p"], **properties)
    alluvium.write(
        pa.table({"id": [100], "p": [2], "v": [None]}, pa.schema([("id", "int64"), ("p", "int64"), ("v", "string")])),
        url,
        mode="append",
    )
    return url


def metrics(done: pa.Table | Preview) -> dict[str, Any]:
    assert isinstance(done, pa.Table)
    (row,) = done.to_pylist()
    found: dict[str, Any] = row["metrics"]
    return found


def files(url: str) -> list[tuple[str, int]]:
    found = alluvium.open(url).files().to_pylist(maps_as_pydicts="strict")
    return sorted((f["partition"].get("p"), f["num_rows"]) for f in found)


def ensure_sound(url: str) -> None:
    found = (*check_log(open_store(url)), *check_snapshot(load_snapshot(open_store(url))))
    assert [finding for finding in found if finding.level == "error"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_their_identities_stay(url: str, kind: str) -> None:
    parted(url, **KINDS[kind])
    table = table_of(url)
    table.delete("id in (0, 13)")
    table.update("id = 1", {"v": "'y'"})
    ids = ["*", "_row_id", "_row_commit_version"] if "delta.enableRowTracking" in KINDS[kind] else ["*"]
    before, version = rows_of(url, ids), alluvium.open(url).version
    done = metrics(table.optimize().executeCompaction())
    assert rows_of(url, ids) == before
    assert files(url) == [("0", 8), ("1", 8), ("2", 1)]
    assert (done["numFilesAdded"], done["partitionsOptimized"], done["numBins"]) == (2, 2, 2)
    assert alluvium.open(url).version == version + 1
    ensure_sound(url)
    newest = alluvium.open(url).history(1)[0]
    assert newest["operation"] == "OPTIMIZE" and newest["readVersion"] == version
    assert newest["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}
    said = newest["operationMetrics"]
    assert isinstance(said, dict) and int(said["numRemovedFiles"]) == done["numFilesRemoved"]
    if "delta.enableChangeDataFeed" in KINDS[kind]:
        assert alluvium.open(url).changes(version + 1).num_rows == 0
    entry = json.loads(
        "[" + ",".join(open_store(url).get(f"_delta_log/{version + 1:020}.json").decode().split("\n")).rstrip(",") + "]"
    )
    assert {one[key]["dataChange"] for one in entry for key in ("add", "remove") if key in one} == {False}
    assert metrics(table.optimize().executeCompaction())["numFilesAdded"] == 0
    assert alluvium.open(url).version == version + 1, "nothing is left to do"


def rows_of(url: str, columns: list[str]) -> list[str]:
    return sorted(map(repr, alluvium.open(url).to_arrow(columns).to_pylist()))


@pytest.mark.parametrize(
    "options", [{}, {"delta.columnMapping.mode": "id", **VECTORS, **TRACKED}], ids=["plain", "all"]
)
def test_values_of_every_type_and_their_bounds(tmp_path: Path, options: dict[str, str]) -> None:
    place = str(tmp_path / "t")
    for _ in range(2):
        write_delta(place, **options)
    before = alluvium.open(place)
    kept, bounds, where = rows_of(place, ["*"]), before.bounds(), "id < 4 and d is not null"
    table_of(place).optimize().executeCompaction()
    after = alluvium.open(place)
    assert rows_of(place, ["*"]) == kept and after.files().num_rows < before.files().num_rows
    assert {n: repr((b.min, b.max)) for n, b in after.bounds().items()} == {
        n: repr((b.min, b.max)) for n, b in bounds.items()
    }
    assert after.count(where) == before.count(where)
    assert after.files("id > 100").num_rows == 0
    ensure_sound(place)


def test_partitions_that_a_condition_chooses(url: str) -> None:
    parted(url)
    table = table_of(url)
    told = table.optimize().where("p = 1").executeCompaction(dry_run=True)
    assert isinstance(told, Preview) and len(told.rewritten) == 3 and alluvium.open(url).version == 3
    assert metrics(table.optimize().where("p >= 1").where("p < 2").executeCompaction())["totalConsideredFiles"] == 3
    assert files(url) == [("0", 3), ("0", 3), ("0", 3), ("1", 9), ("2", 1)]
    assert alluvium.open(url).history(1)[0]["operationParameters"]["predicate"] == '["p >= 1","p < 2"]'  # type: ignore[index]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda o: o.where("id = 1").executeCompaction(), "predicate-on-data"),
        (lambda o: o.where("p = 1 and id = 1").executeCompaction(), "predicate-on-data"),
        (lambda o: o.where("nothing = 1").executeCompaction(), "unknown-column"),
        (lambda o: o.where("p rlike '1'").executeCompaction(), "needs-spark"),
        (lambda o: o.where(1), "wrong-type"),
        (lambda o: o.executeZOrderBy("id"), "needs-spark"),
        (lambda o: o.executeSortBy("id"), "needs-spark"),
        (lambda o: o.executeCompaction(measure=True), "needs-spark"),
        (lambda o: o.executeCompaction(full=True), "clustered-table"),
    ],
)  # fmt: skip
def test_what_is_refused(url: str, act: Any, code: str) -> None:
    parted(url)
    assert refused(lambda: act(table_of(url).optimize())).code == code
    assert alluvium.open(url).version == 3


@pytest.mark.parametrize("orders", ["sorted", "clustered"])
def test_rows_that_are_kept_in_order_are_left_to_spark(url: str, orders: str) -> None:
    for _ in range(2):
        alluvium.write(pa.table({"id": [1], "v": [2]}), url, mode="append")
    table = table_of(url)
    if orders == "sorted":
        table.alter().set_properties({"alluvium.sortBy": "id"})
    else:
        table.alter().cluster_by("id")
    assert refused(lambda: table.optimize().executeCompaction()).code == "needs-spark"
    assert metrics(table.optimize().executePurge())["numFilesRemoved"] == 0
    if orders == "clustered":
        assert refused(lambda: table.optimize().where("id = 1").executePurge()).code == "clustered-table"


def test_files_with_many_deleted_rows_are_written_without_them(url: str) -> None:
    for start in (0, 100):
        alluvium.write(
            pa.table({"id": range(start, start + 100)}), url, mode="append", **VECTORS, **{"delta.targetFileSize": "1"}
        )
    table = table_of(url)
    assert metrics(table.optimize().executeCompaction())["numFilesRemoved"] == 0, "no file is small"
    table.delete("id % 10 = 0")
    done = metrics(table.optimize().executePurge())
    assert done["deletionVectorStats"] == {"numDeletionVectorsRemoved": 2, "numDeletionVectorRowsRemoved": 20}
    assert alluvium.open(url).history(1)[0]["operation"] == "REORG"
    assert sum(f["deleted_rows"] for f in alluvium.open(url).metadata("files").to_pylist()) == 0
    assert alluvium.open(url).to_arrow().num_rows == 180
    assert metrics(table.optimize().executePurge())["numFilesRemoved"] == 0


def test_dropped_columns_are_purged(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1, 2], "v": ["secret", "x"]}), place, **{"delta.columnMapping.mode": "name"})
    table = table_of(place)
    table.alter().drop_columns("v")
    assert metrics(table.optimize().executePurge())["numFilesAdded"] == 1
    (file,) = alluvium.open(place).files()["path"].to_pylist()
    assert b"secret" not in (Path(place) / file).read_bytes()
    assert rows(place) == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_what_others_take_away_is_planned_anew(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parted(url, **KINDS[kind])
    commit, pending = DeltaTarget.commit, ["id = 1 or id = 11", "id = 21"]

    def late(self: DeltaTarget, changes: Any) -> Any:
        if pending and changes.operation.name == "OPTIMIZE":
            table_of(url).delete(pending.pop(0))
            alluvium.write(pa.table({"id": [200 + len(pending)], "p": [1], "v": ["late"]}), url, mode="append")
        return commit(self, changes)

    monkeypatch.setattr(DeltaTarget, "commit", late)
    before = {row["id"] for row in rows(url)}
    table_of(url).optimize().executeCompaction()
    assert {row["id"] for row in rows(url)} == (before - {1, 11, 21}) | {200, 201}
    assert len(rows(url)) == len(before) - 1
    assert not pending
    ensure_sound(url)
    live = {f["path"] for f in alluvium.open(url).files().to_pylist()}
    kept = {o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet") and "_delta_log" not in o.path}
    assert live <= kept


def test_another_description_is_a_conflict(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parted(url)
    commit = DeltaTarget.commit

    def late(self: DeltaTarget, changes: Any) -> Any:
        if changes.operation.name == "OPTIMIZE":
            monkeypatch.undo()
            table_of(url).alter().add_columns({"w": "int"})
        return commit(self, changes)

    monkeypatch.setattr(DeltaTarget, "commit", late)
    files_before = {o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet")}
    with pytest.raises(CommitConflict):
        table_of(url).optimize().executeCompaction(retry=RetryPolicy(max_repeats=0))
    assert {o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet")} == files_before


@pytest.mark.parametrize("when", When)
def test_whatever_request_fails(url: str, when: When, monkeypatch: pytest.MonkeyPatch) -> None:
    at = 0
    while True:
        at += 1
        path = parted(f"{url}{at}", **KINDS["all"])
        before, version = rows(path), alluvium.open(path).version
        faulty = FaultyStore(open_store(path), Fault(at, when))
        table = table_of(path)
        monkeypatch.setattr(
            "alluvium.api.delta.portable.delta_table.open_store", lambda *_, faulty=faulty, **__: faulty
        )
        try:
            table.optimize().executeCompaction()
            made = {1}
        except CommitUnknown:
            made = {0, 1}
        except AlluviumError:
            made = {0}
        monkeypatch.undo()
        assert rows(path) == before
        assert alluvium.open(path).version - version in made
        if not faulty.failed:
            break
    assert at > 6


def test_a_log_that_says_less_than_there_is(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    for start in (0, 10):
        alluvium.write(pa.table({"id": range(start, start + 3)}), place, mode="append")
    newest = sorted(Path(place, "_delta_log").glob("*.json"))[-1]
    whole = newest.read_text()
    before = set(Path(place).rglob("*.parquet"))
    said(newest, stats=json.dumps({"numRecords": 2}))
    assert refused(lambda: table_of(place).optimize().executeCompaction()).code == "num-records-differ"
    assert set(Path(place).rglob("*.parquet")) == before and alluvium.open(place).version == 1
    # A file's size is nothing that its rows depend on here.
    newest.write_text(whole)
    said(newest, size=0)
    table_of(place).optimize().executeCompaction()
    assert sorted(row["id"] for row in rows(place)) == [0, 1, 2, 10, 11, 12]


def said(entry: Path, **fields: Any) -> None:
    """Has a log entry say something else of the files that it adds."""
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"] |= fields
    entry.write_text("\n".join(map(json.dumps, lines)))
    RECENT.clear()


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    place = parted(str(tmp_path / "t"))
    (gone,) = alluvium.open(place).files("id = 11")["path"].to_pylist()
    (tmp_path / "t" / gone).unlink()
    before = set(Path(place).rglob("*.parquet"))
    assert refused(lambda: table_of(place).optimize().executeCompaction()).code == "missing-file"
    assert set(Path(place).rglob("*.parquet")) == before


def test_a_checkpoint_comes_after_it_where_it_is_due(url: str) -> None:
    parted(url, **{"delta.checkpointInterval": "4"})
    table_of(url).optimize().executeCompaction()
    assert any(".checkpoint" in o.path for o in open_store(url).list_tree("_delta_log"))
