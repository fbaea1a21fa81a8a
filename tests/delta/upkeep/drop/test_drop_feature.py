"""Features that leave a table: as delta-spark 4.4 was seen to do it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.log.names import commit_path
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.terms.actions import Actions, tombstones_of
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.drop.drop_feature import drop_feature
from alluvium.delta.upkeep.drop.removals import REMOVALS
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget, publish
from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.plan.changes import Committed, Describe, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

#: Properties, the protocol and properties that are left, what the history says after two commits.
DROPS: dict[str, tuple[dict[str, str], tuple, dict[str, str], list[str]]] = {
    "rowTracking": (
        {"delta.enableRowTracking": "true"},
        (1, 7, {"domainMetadata", "invariants", "appendOnly"}),
        {},
        ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"],
    ),
    "inCommitTimestamp": (
        {"delta.enableInCommitTimestamps": "true"},
        (1, 2, None),
        {"delta.enableInCommitTimestamps": "false"},
        ["UNSET TBLPROPERTIES", "DROP FEATURE"],
    ),
    "v2Checkpoint": (
        {"delta.checkpointPolicy": "v2"},
        (1, 7, {"invariants", "appendOnly", "checkpointProtection"}),
        {"delta.checkpointPolicy": "classic", "delta.requireCheckpointProtectionBeforeVersion": "6"},
        ["SET TBLPROPERTIES", *["Empty Commit"] * 3, "DROP FEATURE"],
    ),
    "deletionVectors": (
        {"delta.enableDeletionVectors": "true"},
        (1, 7, {"invariants", "appendOnly", "checkpointProtection"}),
        {"delta.requireCheckpointProtectionBeforeVersion": "7"},
        ["UNSET TBLPROPERTIES", "Deletion Vector Tombstones", *["Empty Commit"] * 3, "DROP FEATURE"],
    ),
    "typeWidening": (
        {"delta.enableTypeWidening": "true"},
        (1, 7, {"invariants", "appendOnly", "checkpointProtection"}),
        {"delta.requireCheckpointProtectionBeforeVersion": "6"},
        ["UNSET TBLPROPERTIES", *["Empty Commit"] * 3, "DROP FEATURE"],
    ),
    "vacuumProtocolCheck": (
        {"delta.feature.vacuumProtocolCheck": "supported"},
        (1, 7, {"invariants", "appendOnly", "checkpointProtection"}),
        {"delta.requireCheckpointProtectionBeforeVersion": "5"},
        [*["Empty Commit"] * 3, "DROP FEATURE"],
    ),
    "domainMetadata": ({"delta.feature.domainMetadata": "supported"}, (1, 2, None), {}, ["DROP FEATURE"]),
    "checkConstraints": ({"delta.feature.checkConstraints": "supported"}, (1, 2, None), {}, ["DROP FEATURE"]),
    "materializePartitionColumns": (
        {"delta.enableMaterializePartitionColumnsFeature": "true"},
        (1, 2, None),
        {},
        ["DROP FEATURE"],
    ),
}
HIDING = [name for name in DROPS if REMOVALS[name].hides_history]


def create(url: str, properties: Mapping[str, str]) -> Store:
    store = open_store(url)
    config = table_config(NewTable(SCHEMA, properties=properties))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    commit_rows(open_target(store), [1, 2])
    return store


def entry(store: Store, version: int) -> list[dict]:
    return [json.loads(line) for line in store.get(commit_path(version)).splitlines()]


def operations(store: Store, first: int) -> list[str]:
    last = load_snapshot(store).version
    return [entry(store, version)[0]["commitInfo"]["operation"] for version in range(first, last + 1)]


@pytest.mark.parametrize("name", DROPS)
def test_what_is_left(tmp_path: Path, name: str) -> None:
    properties, (reader, writer, features), left, said = DROPS[name]
    store = create(str(tmp_path / "t"), properties)
    done = drop_feature(load_snapshot(store), name.upper(), "test")
    assert isinstance(done, Committed)
    snapshot = load_snapshot(store)
    protocol = snapshot.config.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (reader, writer)
    assert features is None or set(protocol.writer_features or ()) == features
    assert dict(snapshot.config.metadata.configuration) == left
    assert operations(store, 2) == said and done.version == snapshot.version
    assert entry(store, done.version)[0]["commitInfo"]["operationParameters"] == {
        "featureName": name, "truncateHistory": False}  # fmt: skip
    for version, operation in enumerate(said, 2):
        if operation == "ROW TRACKING UNBACKFILL":
            assert entry(store, version)[0]["commitInfo"]["operationParameters"] == {"batchId": "0"}
    commit_rows(open_target(store), [3])
    assert sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2, 3]
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), name, "test")
    assert caught.value.code == "feature-not-supported"


@pytest.mark.parametrize("name", HIDING)
def test_older_versions_are_hidden_behind_checkpoints(tmp_path: Path, name: str) -> None:
    """ "writers to clean up metadata iff metadata can be cleaned up to the `requireCheckpointProtectionBeforeVersion`
    table property in one go"
    """
    store = create(str(tmp_path / "t"), DROPS[name][0])
    drop_feature(load_snapshot(store), name, "test")
    newest = load_snapshot(store).version
    log = tmp_path / "t/_delta_log"
    checkpoints = sorted(int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet"))
    assert checkpoints == list(range(newest - 3, newest + 1))
    # Versions from before are still there for readers that know the feature.
    assert sorted(alluvium.open(store.url, version=1).to_arrow(["id"]).column("id").to_pylist()) == [1, 2]


def test_row_ids_go_and_may_come_back(tmp_path: Path) -> None:
    store = create(str(tmp_path / "t"), {"delta.enableRowTracking": "true"})
    drop_feature(load_snapshot(store), "rowTracking", "test")
    snapshot = load_snapshot(store)
    assert snapshot.files.column("baseRowId").null_count == snapshot.files.num_rows == 1
    assert not snapshot.state.domains
    assert entry(store, snapshot.version)[-1]["domainMetadata"]["removed"] is True
    alluvium.alter(store.url).set_properties({"delta.enableRowTracking": "true"})
    assert load_snapshot(store).files.column("baseRowId").to_pylist() == [0]


def test_a_dry_run_tells_and_changes_nothing(tmp_path: Path) -> None:
    store = create(str(tmp_path / "t"), {"delta.enableDeletionVectors": "true"})
    preview = drop_feature(load_snapshot(store), "deletionVectors", "test", dry_run=True)
    assert isinstance(preview, Preview) and preview.version == 1
    assert preview.differences["property delta.enableDeletionVectors"] == ("true", None)
    assert load_snapshot(store).version == 1


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    """ "Writers must ensure no `delta.typeChanges` metadata key is present in the table schema." """
    mapped = create(str(tmp_path / "mapped"), {"delta.columnMapping.mode": "name"})
    widened = create(str(tmp_path / "widened"), {"delta.enableTypeWidening": "true"})
    alluvium.alter(widened.url).add_columns({"n": "int"})
    alluvium.alter(widened.url).alter_column("n", type="bigint")
    constrained = create(str(tmp_path / "constrained"), {"delta.constraints.positive": "id > 0"})
    rows = create(str(tmp_path / "rows"), {"delta.enableRowTracking": "true"})
    for store, name in (
        (mapped, "columnMapping"),
        (widened, "typeWidening"),
        (constrained, "checkConstraints"),
        (rows, "domainMetadata"),
    ):
        before = load_snapshot(store).version
        with pytest.raises(InvalidRequest) as caught:
            drop_feature(load_snapshot(store), name, "test")
        assert caught.value.code == "feature-in-use" and caught.value.hint
        assert load_snapshot(store).version == before


VECTORS = [
    {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": offset,
        "sizeInBytes": 36,
        "cardinality": 1,
    }
    for offset in (1, 41)
]


def with_vectors(url: str, removed: bool) -> Store:
    """Two files whose vectors lie in one file of vectors; live, or removed again."""
    store = create(url, {"delta.enableDeletionVectors": "true"})
    base = load_snapshot(store)
    file = base.files.to_pylist()[0]
    live = [{**file, "path": f"{n}.parquet", "deletionVector": vector} for n, vector in enumerate(VECTORS)]
    files = pa.Table.from_pylist(live, schema=FILES)
    for actions in (Actions(added=files), Actions(removed=tombstones_of(files, int(time.time() * 1000)))):
        base = load_snapshot(store)
        publish(store, Draft(actions, ReadScope.nothing(), Operation("TEST"), base.version), base, DEFAULT_RETRY)
        if not removed:
            break
    return store


def test_live_vectors_keep_the_feature(tmp_path: Path) -> None:
    store = with_vectors(str(tmp_path / "t"), removed=False)
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), "deletionVectors", "test")
    assert caught.value.code == "feature-in-use" and "2 files" in caught.value.message


def test_vectors_of_older_versions_are_kept_from_those_who_do_not_know_them(tmp_path: Path) -> None:
    store = with_vectors(str(tmp_path / "t"), removed=True)
    drop_feature(load_snapshot(store), "deletionVectors", "test")
    assert operations(store, 4) == [
        "UNSET TBLPROPERTIES", "Deletion Vector Tombstones", *["Empty Commit"] * 3, "DROP FEATURE"]  # fmt: skip
    (removed,) = [line["remove"] for line in entry(store, 5) if "remove" in line]
    assert removed["path"] == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert removed["dataChange"] is False and removed["deletionTimestamp"] > 0


def test_columns_whose_names_are_those_of_the_files(tmp_path: Path) -> None:
    """An existing table that was upgraded to column mapping keeps its files' names, and can go back."""
    store = create(str(tmp_path / "t"), {})
    alluvium.alter(store.url).set_properties({"delta.columnMapping.mode": "name"})
    commit_rows(open_target(store), [3])
    drop_feature(load_snapshot(store), "columnMapping", "test")
    snapshot = load_snapshot(store)
    assert snapshot.config.mapping_mode == "none" and snapshot.config.schema == SCHEMA
    assert not [key for key in snapshot.config.metadata.configuration if "columnMapping" in key]
    assert sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2, 3]


def test_widened_types_are_forgotten(tmp_path: Path) -> None:
    """ "no `delta.typeChanges` metadata key is present in the table schema" of a table that has nothing to widen any more"""
    store = create(str(tmp_path / "t"), {"delta.enableTypeWidening": "true"})
    alluvium.alter(store.url).add_columns({"n": "int"})
    alluvium.alter(store.url).alter_column("n", type="bigint")
    rewritten = []

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        rewritten.extend(files["path"].to_pylist())
        return snapshot

    assert "delta.typeChanges" in load_snapshot(store).config.metadata.schema_string
    drop_feature(load_snapshot(store), "typeWidening", "test", rewrite=rewrite)
    snapshot = load_snapshot(store)
    assert "typeChanges" not in snapshot.config.metadata.schema_string
    assert (
        snapshot.config.protocol.min_writer_version == 7
        and "typeWidening" not in snapshot.config.protocol.writer_features
    )
    assert str(snapshot.config.schema.find("n").type) == "bigint"
    # No file that is there has the column.
    assert snapshot.files.num_rows and not rewritten


def test_checkpoints_stay_protected_while_there_is_a_history(tmp_path: Path) -> None:
    store = create(str(tmp_path / "t"), {"delta.enableTypeWidening": "true"})
    drop_feature(load_snapshot(store), "typeWidening", "test")
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), "checkpointProtection", "test")
    assert caught.value.code == "feature-in-use"
    for version in range(load_snapshot(store).version):
        for path in (tmp_path / "t/_delta_log").glob(f"{version:020}.*"):
            path.unlink()
    drop_feature(load_snapshot(store), "checkpointProtection", "test")
    assert load_snapshot(store).config.protocol.min_writer_version == 2


@pytest.mark.parametrize("name", ["appendOnly", "variantType", "clustering"])
def test_features_that_cannot_leave(tmp_path: Path, name: str) -> None:
    store = create(str(tmp_path / "t"), {})
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), name, "test")
    assert caught.value.code == "feature-not-droppable"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["typeWidening", "rowTracking"])
def test_each_request_fails_once(tmp_path: Path, name: str) -> None:
    """Whatever fails: the rows are there, and the next one who drops the feature succeeds."""
    create(str(tmp_path / "made"), DROPS[name][0])
    shutil.copytree(tmp_path / "made", tmp_path / "count")
    counting = FaultyStore(open_store(str(tmp_path / "count")))
    drop_feature(load_snapshot(counting), name, "test")
    for at in range(1, len(counting.requests) + 1):
        for crash in (False, True):
            url = str(tmp_path / f"t{at}{crash}")
            shutil.copytree(tmp_path / "made", url)
            with contextlib.suppress(AlluviumError, Crash):
                drop_feature(load_snapshot(FaultyStore(open_store(url), Fault(at, When.AFTER, crash=crash))), name, "t")
            if name in (load_snapshot(open_store(url)).config.protocol.writer_features or ()):
                drop_feature(load_snapshot(open_store(url)), name, "test")
            commit_rows(open_target(open_store(url)), [3])
            assert sorted(alluvium.open(url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2, 3]
            assert name not in (load_snapshot(open_store(url)).config.protocol.writer_features or ())


def test_history_that_needs_the_feature_must_be_gone(tmp_path: Path) -> None:
    """The first call ends the use of the feature; a later one, when the versions have expired, the support."""
    store = create(str(tmp_path / "t"), {"delta.enableDeletionVectors": "true"})
    assert_in_history(store, "deletionVectors")
    assert operations(store, 2) == ["UNSET TBLPROPERTIES", "Deletion Vector Tombstones", "Empty Commit"]
    yesterday = time.time() - 25 * 3600
    for file in (tmp_path / "t/_delta_log").iterdir():
        os.utime(file, (yesterday, yesterday))
    done = drop_feature(load_snapshot(store), "deletionVectors", "test", truncate=True)
    snapshot = load_snapshot(store)
    assert done.version == snapshot.version
    assert (snapshot.config.protocol.min_reader_version, snapshot.config.protocol.min_writer_version) == (1, 2)
    assert not snapshot.config.metadata.configuration
    assert entry(store, snapshot.version)[0]["commitInfo"]["operationParameters"]["truncateHistory"] is True
    assert not list((tmp_path / "t/_delta_log").glob("00000000000000000001.json"))
    assert sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2]


def assert_in_history(store: Store, feature: str) -> None:
    """Versions that need the feature can still be read."""
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), feature, "test", truncate=True)
    assert caught.value.code == "feature-in-history"


def age(url: str) -> None:
    """The log, by a day and an hour."""
    yesterday = time.time() - 25 * 3600
    for file in Path(url, "_delta_log").iterdir():
        os.utime(file, (yesterday, yesterday))


def test_protection_goes_with_the_history_that_it_protects(tmp_path: Path) -> None:
    """To delta-spark the only form: a day is enough, whatever `delta.logRetentionDuration` says."""
    place = str(tmp_path / "t")
    store = create(place, {"delta.feature.vacuumProtocolCheck": "supported"})
    drop_feature(load_snapshot(store), "vacuumProtocolCheck", "test")
    before = load_snapshot(store).version
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), "checkpointProtection", "test", truncate=True)
    assert caught.value.code == "feature-in-history" and operations(store, before + 1) == ["Empty Commit"]
    age(place)
    drop_feature(load_snapshot(store), "checkpointProtection", "test", truncate=True)
    snapshot = load_snapshot(store)
    assert operations(store, before + 2) == ["Empty Commit", "DROP FEATURE"]
    assert not snapshot.config.metadata.configuration
    assert snapshot.config.protocol.writer_features is None
    assert sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2]
    with pytest.raises(NotFound):
        alluvium.open(store.url, version=1).to_arrow()


def test_a_file_that_was_removed_with_its_vector_is_history(tmp_path: Path) -> None:
    """To delta-spark's change feed the row that the vector hid would go with the file."""
    place = str(tmp_path / "t")
    store = with_vectors(place, removed=True)
    base = load_snapshot(store)
    # What was before the removal is gone.
    write_checkpoint_at(load_snapshot(store, base.version - 1))
    for version in range(base.version - 1):
        store.delete(commit_path(version))
    for _ in range(2):
        assert_in_history(store, "deletionVectors")
    age(place)
    drop_feature(load_snapshot(store), "deletionVectors", "test", truncate=True)
    assert load_snapshot(store).config.protocol.min_reader_version == 1


def test_a_clock_that_is_ahead_does_not_make_history_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest commit tells what time it is to the store, by which the log's files have their times."""
    store = create(str(tmp_path / "t"), {"delta.enableDeletionVectors": "true"})
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 2 * 86_400)
    for _ in range(2):
        assert_in_history(store, "deletionVectors")
    assert alluvium.open(store.url, version=1).to_arrow().num_rows == 2


def test_checkpoints_of_the_second_kind_must_be_gone(tmp_path: Path) -> None:
    """Whoever wrote them, and whatever the table's policy is."""
    place = str(tmp_path / "t")
    store = create(place, {"delta.feature.v2Checkpoint": "supported", "delta.checkpointPolicy": "v2"})
    write_checkpoint_at(load_snapshot(store))
    assert list(Path(place, "_delta_log/_sidecars").iterdir())
    alluvium.alter(place).set_properties({"delta.checkpointPolicy": "classic"})
    Path(place, "_delta_log", f"{0:020}.json").unlink()
    age(place)
    assert_in_history(store, "v2Checkpoint")
    age(place)
    drop_feature(load_snapshot(store), "v2Checkpoint", "test", truncate=True)
    assert load_snapshot(store).config.protocol.min_reader_version == 1
    assert not Path(place, "_delta_log", f"{1:020}.checkpoint.parquet").exists()
    assert sorted(alluvium.open(place).to_arrow(["id"]).column("id").to_pylist()) == [1, 2]


def test_features_of_writers_alone_have_no_history_to_truncate(tmp_path: Path) -> None:
    store = create(str(tmp_path / "t"), {"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), "rowTracking", "test", truncate=True)
    assert caught.value.code == "feature-without-history"
    assert load_snapshot(store).version == 1


def test_a_type_that_was_never_widened_leaves_no_trace(tmp_path: Path) -> None:
    store = create(str(tmp_path / "t"), {"delta.enableTypeWidening": "true"})
    drop_feature(load_snapshot(store), "typeWidening", "test", truncate=True)
    assert operations(store, 2) == ["UNSET TBLPROPERTIES", "Empty Commit", "DROP FEATURE"]
    assert load_snapshot(store).config.protocol.min_reader_version == 1
