"""What is gone leaves the log, for certain only; what else is damaged is mended or said."""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from change_table import vector
from delta_values import make_metadata
from faulty_store import Fault, FaultyStore, When
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.log.names import checksum_path, commit_path
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.terms.spec import Add, DeletionVector, Protocol, Remove, format_actions
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.repair.repair import Repaired, RepairRequest, repair
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, NotFound, StorageError
from alluvium.storage.open import open_store
from alluvium.storage.store import ObjectInfo, Store
from alluvium.storage.stores.memory import MemoryStore

WITHOUT_STATISTICS = RepairRequest(statistics=False, engine="test")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of four commits, each of a file with one row."""
    for number in range(4):
        commit_rows(open_target(open_store(str(tmp_path))), [number])
    return tmp_path


def repaired(table: Path | Store, wanted: RepairRequest = WITHOUT_STATISTICS, dry_run: bool = False) -> Repaired:
    store = open_store(str(table)) if isinstance(table, Path) else table
    with warnings.catch_warnings():
        # That readers pass over what is damaged is known.
        warnings.simplefilter("ignore", UserWarning)
        return repair(store, lambda: load_snapshot(store), wanted, dry_run)


def files_of(table: Path) -> list[str]:
    return alluvium.open(str(table)).files()["path"].to_pylist()


def ids_of(table: Path) -> list[int]:
    return sorted(alluvium.open(str(table)).to_arrow()["id"].to_pylist())


def commit_of(table: Path, version: int) -> list[dict[str, dict[str, object]]]:
    return [json.loads(line) for line in (table / commit_path(version)).read_text().splitlines()]


def test_files_that_are_gone_leave_the_log(table: Path) -> None:
    gone = files_of(table)[1]
    os.remove(table / gone)
    told = repaired(table, dry_run=True)
    assert [row["dataFilePath"] for row in told.missing.to_pylist()] == [gone]
    assert "1 files would be removed" in str(told)
    assert alluvium.open(str(table)).version == 3
    done = repaired(table)
    assert (done.version, done.missing.num_rows, done.left) == (4, 1, ())
    assert len(ids_of(table)) == 3
    info, remove = commit_of(table, 4)
    assert (info["commitInfo"]["operation"], info["commitInfo"]["isBlindAppend"]) == ("FSCK", False)
    assert info["commitInfo"]["operationMetrics"] == {
        "numRemovedFiles": "1",
        "numRemovedBytes": str(remove["remove"]["size"]),
    }
    assert (remove["remove"]["path"], remove["remove"]["dataChange"]) == (gone, True)
    assert repaired(table).is_sound
    assert alluvium.open(str(table)).version == 4


class Absent:
    """A store that says of some files what it is told to say."""

    def __init__(self, inner: Store, answers: dict[str, list[Exception | None]]) -> None:
        self._inner, self._answers = inner, answers

    def head(self, path: str) -> ObjectInfo:
        answers = self._answers.get(path)
        if answers and (answer := answers.pop(0)) is not None:
            raise answer
        return self._inner.head(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


NO = StorageError("permission denied", code="storage")
GONE = NotFound("not there", code="file-not-found")


@pytest.mark.parametrize("answers", [[NO], [GONE, None], [GONE, NO]], ids=["refused", "back again", "then refused"])
def test_nothing_but_a_certain_answer_counts(table: Path, answers: list[Exception | None]) -> None:
    path = files_of(table)[0]
    done = repaired(Absent(open_store(str(table)), {path: list(answers)}))  # type: ignore[arg-type]
    assert (done.missing.num_rows, done.version) == (0, 3)
    assert any(f.path == path and "nobody knows" in f.message for f in done.left) == (NO in answers)


def test_the_table_itself_is_gone(table: Path) -> None:
    store = open_store(str(table))
    snapshot = load_snapshot(store)
    away = table.rename(table.with_name("away"))
    with pytest.raises(NotFound):
        repair(store, lambda: snapshot, WITHOUT_STATISTICS)
    assert not table.exists()
    away.rename(table)
    assert len(ids_of(table)) == 4


def test_files_elsewhere_whose_place_is_gone_are_unknown(table: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    there = tmp_path_factory.mktemp("other")
    (there / "kept.parquet").write_bytes(b"1")
    for number, path in enumerate((f"file:{there}/x.parquet", "file:/nowhere/at/all/of/it/y.parquet")):
        add = Add(path=path, partition_values={}, size=5, modification_time=1, data_change=True)
        (table / commit_path(4 + number)).write_bytes(format_actions([add]))
    done = repaired(table)
    assert [row["dataFilePath"] for row in done.missing.to_pylist()] == [f"file:{there}/x.parquet"]
    assert any(f.path == "file:/nowhere/at/all/of/it/y.parquet" and "mounted" in f.message for f in done.left)


def test_files_elsewhere_are_looked_at(table: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    beside = tmp_path_factory.mktemp("clone")
    clone(load_snapshot(open_store(str(table))), open_store(str(beside)), None, CloneRequest("t", shallow=True))
    assert repaired(beside).is_sound
    (table / files_of(table)[0]).write_bytes(b"cut")
    (found,) = repaired(beside, dry_run=True).left
    assert "has 3 bytes" in found.message and (found.path or "").endswith(files_of(table)[0])
    (table / files_of(table)[1]).unlink()
    done = repaired(beside, dry_run=True)
    assert (done.missing.num_rows, len(done.left)) == (1, 1)


def test_a_vector_that_is_gone_takes_its_file_along(table: Path) -> None:
    path = "a b%/1"
    size = (table / files_of(table)[0]).stat().st_size
    (table / "a b%").mkdir()
    (table / files_of(table)[0]).rename(table / path)
    gone = DeletionVector(
        storage_type="u", path_or_inline_dv="vBn[lx{q8@P<9BNH/isA", offset=1, size_in_bytes=36, cardinality=1
    )
    add = Add(path="a%20b%25/1", partition_values={}, size=size, modification_time=1, data_change=True,
              stats='{"numRecords":1}', deletion_vector=gone)  # fmt: skip
    features = ("deletionVectors",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    old = Remove(path=files_of(table)[0], data_change=True, deletion_timestamp=1)
    (table / commit_path(4)).write_bytes(format_actions([protocol, old, add]))
    # Told once, by the name that the file has on the disk.
    assert repaired(table, dry_run=True).left == ()
    done = repaired(table)
    rows = done.missing.to_pylist()
    assert [(row["dataFilePath"], row["dataFileMissing"], row["deletionVectorFileMissing"]) for row in rows] == [
        (path, False, True)
    ]
    assert rows[0]["deletionVectorPath"].startswith("deletion_vector_")
    # The file without the vector, which an older version has, is another logical file.
    assert commit_of(table, 5)[1]["remove"]["deletionVector"]["offset"] == 1


def test_statistics_of_files_with_vectors_are_said_to_be_wide(table: Path) -> None:
    """ "tightBounds": bounds that a footer tells are of rows that a vector has deleted, too."""
    masked, other = files_of(table)[:2]
    row = vector([0])
    inline = DeletionVector(
        storage_type="i", path_or_inline_dv=row["pathOrInlineDv"], size_in_bytes=row["sizeInBytes"], cardinality=1
    )
    size = (table / masked).stat().st_size
    adds = [
        Add(path=path, partition_values={}, size=size, modification_time=1, data_change=True, deletion_vector=of)
        for path, of in ((masked, inline), (other, None))
    ]
    features = ("deletionVectors",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    (table / commit_path(4)).write_bytes(format_actions([protocol, *adds]))
    done = repaired(table, RepairRequest(engine="test"))
    assert (done.statistics, done.version) == (2, 5)
    told = {line["add"]["path"]: json.loads(str(line["add"]["stats"])) for line in commit_of(table, 5) if "add" in line}
    assert {path: stats["tightBounds"] for path, stats in told.items()} == {masked: False, other: True}


def test_another_writer_was_faster(table: Path) -> None:
    first, second = files_of(table)[:2]
    for path in (first, second):
        os.remove(table / path)
    inner = open_store(str(table))

    def meanwhile() -> None:
        """Somebody overwrites what is there."""
        remove = {"remove": {"path": first, "deletionTimestamp": 1, "dataChange": True}}
        (table / commit_path(4)).write_text(json.dumps(remove) + "\n")

    fault = Fault(1, verb="put_if_absent", path=".json", meanwhile=meanwhile)
    done = repaired(FaultyStore(inner, fault))
    assert [row["dataFilePath"] for row in done.missing.to_pylist()] == [second]
    assert [line["remove"]["path"] for line in commit_of(table, 5) if "remove" in line] == [second]


def test_a_file_that_another_writer_brings_back_stays(table: Path) -> None:
    first, second = files_of(table)[:2]
    kept = (table / first).read_bytes()
    added = next(
        line["add"] for n in range(4) for line in commit_of(table, n) if line.get("add", {}).get("path") == first
    )
    for path in (first, second):
        os.remove(table / path)

    def meanwhile() -> None:
        (table / first).write_bytes(kept)
        (table / commit_path(4)).write_text(json.dumps({"add": added}) + "\n")

    fault = Fault(1, verb="put_if_absent", path=".json", meanwhile=meanwhile)
    done = repaired(FaultyStore(open_store(str(table)), fault))
    assert [row["dataFilePath"] for row in done.missing.to_pylist()] == [second]
    assert first in files_of(table) and len(ids_of(table)) == 3


def test_an_append_only_table_keeps_its_entries(tmp_path: Path) -> None:
    metadata = make_metadata(SCHEMA, properties={"delta.appendOnly": "true"})
    add = Add(path="gone", partition_values={}, size=5, modification_time=1, data_change=True)
    (tmp_path / "_delta_log").mkdir()
    data = format_actions([Protocol(min_reader_version=1, min_writer_version=2), metadata, add])
    (tmp_path / commit_path(0)).write_bytes(data)
    done = repaired(tmp_path)
    assert (done.version, done.missing.num_rows) == (0, 0)
    assert [f.path for f in done.left] == ["gone"] and "append-only" in done.left[0].message


def grow_old(table: Path) -> None:
    """Nobody is writing these files any more."""
    for file in (table / "_delta_log").glob("*.checkpoint.*"):
        os.utime(file, (1_600_000_000, 1_600_000_000))


def test_a_young_checkpoint_may_be_in_the_making(table: Path) -> None:
    _part_of_a_checkpoint(table)
    done = repaired(table)
    assert not done.mended and "younger than an hour" in done.left[0].message
    assert list((table / "_delta_log").glob("*.checkpoint.*"))


def _checkpoint(table: Path) -> None:
    write_checkpoint_at(load_snapshot(open_store(str(table)), 2))


def _damaged_checkpoint(table: Path) -> None:
    _checkpoint(table)
    (table / "_delta_log/00000000000000000002.checkpoint.parquet").write_bytes(b"PAR1 no PAR1")


def _other_checkpoint(table: Path) -> None:
    _checkpoint(table)
    name = "_delta_log/00000000000000000002.checkpoint.parquet"
    write_checkpoint_at(load_snapshot(open_store(str(table)), 1))
    (table / name).write_bytes((table / name.replace("2.c", "1.c")).read_bytes())


def _part_of_a_checkpoint(table: Path) -> None:
    (table / "_delta_log/00000000000000000002.checkpoint.0000000001.0000000002.parquet").write_bytes(b"a part")


def _damaged_hint(table: Path) -> None:
    _checkpoint(table)
    (table / "_delta_log/_last_checkpoint").write_text("{")


def _wrong_checksum(table: Path) -> None:
    (table / checksum_path(3)).write_text('{"tableSizeBytes":1,"numFiles":9,"numMetadata":1,"numProtocol":1}')


def _damaged_checksum(table: Path) -> None:
    (table / checksum_path(3)).write_text("{")


def _damaged_compaction(table: Path) -> None:
    compact_log(open_store(str(table)), 1, 2)
    (table / "_delta_log/00000000000000000001.00000000000000000002.compacted.json").write_text("{")


def _stale_crc(table: Path) -> None:
    (table / "_delta_log/.00000000000000000001.json.crc").write_bytes(b"crc\0\0\0\2\0aaaa")


@pytest.mark.parametrize(
    "damage",
    [
        _damaged_checkpoint, _other_checkpoint, _part_of_a_checkpoint, _damaged_hint, _wrong_checksum,
        _damaged_checksum, _damaged_compaction, _stale_crc,
    ],
)  # fmt: skip
def test_what_stands_for_others_is_mended(table: Path, damage: Callable[[Path], None]) -> None:
    damage(table)
    grow_old(table)
    before = sorted(p.name for p in (table / "_delta_log").iterdir())
    told = repaired(table, dry_run=True)
    assert told.mended and not told.left
    assert sorted(p.name for p in (table / "_delta_log").iterdir()) == before
    done = repaired(table)
    # Read from a wrong checkpoint, a right checksum looks wrong.
    assert done.mended and set(done.mended) <= set(told.mended)
    assert (done.version, done.left) == (3, ())
    store = open_store(str(table))
    assert (*check_log(store), *check_snapshot(load_snapshot(store))) == ()
    assert ids_of(table) == [0, 1, 2, 3]


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "cut"])
def test_a_checkpoint_is_written_anew_of_which_a_sidecar_is_damaged(table: Path, is_gone: bool) -> None:
    store = open_store(str(table))
    apply_change(load_snapshot(store), lambda c: set_properties(c, {"delta.checkpointPolicy": "v2"}), "")
    write_checkpoint_at(load_snapshot(store))
    (sidecar,) = (table / "_delta_log/_sidecars").iterdir()
    sidecar.unlink() if is_gone else sidecar.write_bytes(b"PAR1 no PAR1")
    grow_old(table)
    done = repaired(table)
    assert len(done.mended) == 1 and done.left == ()
    assert (*check_log(store), *check_snapshot(load_snapshot(store))) == ()
    assert ids_of(table) == [0, 1, 2, 3]


def test_what_cannot_be_mended_is_said(table: Path) -> None:
    _damaged_checkpoint(table)
    grow_old(table)
    os.remove(table / commit_path(0))
    (table / files_of_commit(table, 3)).write_bytes(b"cut")
    os.remove(table / commit_path(1))
    done = repaired(table)
    assert done.version == -1
    assert any("nothing else says" in f.message for f in done.left)
    assert not done.mended
    assert isinstance(done.left[0], Finding)


def test_hadoops_checksum_of_a_damaged_commit_stays(table: Path) -> None:
    """It may be the commit that is wrong."""
    _stale_crc(table)
    (table / commit_path(1)).write_text("{")
    grow_old(table)
    done = repaired(table)
    assert not done.mended
    assert any("00000000000000000001" in (finding.path or "") for finding in done.left)
    assert (table / "_delta_log/.00000000000000000001.json.crc").exists()


def files_of_commit(table: Path, version: int) -> str:
    return next(str(line["add"]["path"]) for line in commit_of(table, version) if "add" in line)


def test_files_of_another_size_and_leftovers_are_said(table: Path) -> None:
    path = files_of(table)[0]
    with open(table / path, "ab") as file:
        file.write(b"more")
    (table / ".alluvium-x.tmp").write_bytes(b"123")
    (table / "young.tmp").write_bytes(b"123")
    os.utime(table / ".alluvium-x.tmp", (1, 1))
    done = repaired(table)
    assert {(f.check, f.path) for f in done.left} == {("files", path), ("temporary", ".alluvium-x.tmp")}
    assert (table / ".alluvium-x.tmp").exists()
    assert alluvium.open(str(table)).version == 3


def without_statistics(table: Path, instead: str | None = None) -> str:
    lines = commit_of(table, 3)
    path = ""
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = instead
            path = str(line["add"]["path"])
    (table / commit_path(3)).write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.parametrize("instead", [None, "", "{", '{"numRecords": -1}'])
def test_missing_statistics_are_computed(table: Path, instead: str | None) -> None:
    path = without_statistics(table, instead)
    wanted = RepairRequest(engine="test")
    assert repaired(table, wanted, dry_run=True).statistics == 1
    done = repaired(table, wanted)
    assert (done.statistics, done.version) == (1, 4)
    info, add = commit_of(table, 4)
    assert (info["commitInfo"]["operation"], info["commitInfo"]["isolationLevel"]) == (
        "COMPUTE STATS",
        "SnapshotIsolation",
    )
    assert info["commitInfo"]["operationMetrics"] == {"numUpdatedFiles": "1"}
    assert info["commitInfo"]["operationParameters"] == {"predicate": "[]"}
    assert (add["add"]["path"], add["add"]["dataChange"]) == (path, False)
    assert json.loads(str(add["add"]["stats"]))["minValues"] == {"id": 3, "p": "a"}
    assert alluvium.open(str(table)).files("id = 3").num_rows == 1
    assert ids_of(table) == [0, 1, 2, 3]
    assert repaired(table, wanted).is_sound


def test_a_file_without_statistics_that_is_no_parquet_is_said(table: Path) -> None:
    path = without_statistics(table)
    size = (table / path).stat().st_size
    (table / path).write_bytes(b"x" * size)
    done = repaired(table, RepairRequest())
    assert (done.statistics, done.version) == (0, 3)
    assert [f.path for f in done.left if f.check == "statistics"] == [path]


def test_many_files_are_listed_first(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alluvium.delta.upkeep.repair.missing._FEW", 1)
    gone = files_of(table)[1]
    os.remove(table / gone)
    store = FaultyStore(open_store(str(table)))
    done = repaired(store, RepairRequest(log=False, statistics=False), dry_run=True)
    assert done.missing["dataFilePath"].to_pylist() == [gone]
    assert [path for verb, path in store.requests if verb == "head"][:2] == [gone, gone]
    failing = FaultyStore(open_store(str(table)), Fault(1, verb="list_columns"))
    done = repaired(failing, RepairRequest(log=False, statistics=False), dry_run=True)
    assert done.missing["dataFilePath"].to_pylist() == [gone]
    assert isinstance(done.missing, pa.Table)


@pytest.mark.long
@pytest.mark.parametrize("when", list(When), ids=lambda when: when.value)
def test_each_request_fails_once(table: Path, when: When) -> None:
    """Whatever fails, no file that is there leaves the log, and the next repair makes up for it."""
    gone, *kept = files_of(table)
    os.remove(table / gone)
    _damaged_hint(table)
    _wrong_checksum(table)
    counted = FaultyStore(in_memory(table))
    repaired(counted)
    # Every other one before it took effect, the others after: whatever fails softly is treated alike.
    for at in range(1 + list(When).index(when), len(counted.requests) + 1, 2):
        store = in_memory(table)
        try:
            done = repaired(FaultyStore(store, Fault(at, when)))
            assert set(done.missing["dataFilePath"].to_pylist()) <= {gone}
        except AlluviumError:
            assert load_snapshot(store).version in (3, 4)
        last = repaired(store)
        assert (last.version, last.left) == (4, ()), counted.requests[at - 1]
        assert set(load_snapshot(store).files["path"].to_pylist()) == set(kept)


def in_memory(table: Path) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "table")
    for file in table.rglob("*"):
        if file.is_file():
            store.put(str(file.relative_to(table)), file.read_bytes())
    return store
