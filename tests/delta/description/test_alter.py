"""Changes of a table's description as commits: what the log holds, who wins, what a dry run tells."""

from __future__ import annotations

import json
import threading

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.api.delta.alter import Alteration
from alluvium.api.stores import storage_for
from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import Change, set_properties
from alluvium.delta.description.evolve_columns import NewColumn, add_columns
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import Append, Committed, Describe, NewFiles, Operation, Preview, ReadScope
from alluvium.plan.retry import RetryPolicy
from alluvium.schema.types import LONG, Field
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    store = MemoryStore(request.node.name, "table")
    commit_rows(open_target(store), [1, 2])
    return store


def entry(store: MemoryStore, version: int) -> list[dict]:
    return [json.loads(line) for line in store.get(commit_path(version)).splitlines()]


def set_x(value: str = "1"):
    return lambda config: set_properties(config, {"x": value})


def test_a_change_is_a_commit_without_files(store: MemoryStore):
    done = apply_change(load_snapshot(store), set_x(), "tests")
    assert isinstance(done, Committed)
    assert (done.version, done.metrics, done.attempts) == (1, {}, 1)
    info, metadata = entry(store, 1)
    assert info["commitInfo"]["operation"] == "SET TBLPROPERTIES"
    assert info["commitInfo"]["operationMetrics"] == {}
    assert info["commitInfo"]["isBlindAppend"] is True
    assert metadata["metaData"]["configuration"] == {"x": "1"}
    assert load_snapshot(store).files.num_rows == 1


def test_what_changes_nothing_is_said_all_the_same(store: MemoryStore):
    apply_change(load_snapshot(store), set_x(), "tests")
    assert apply_change(load_snapshot(store), set_x(), "tests").version == 2
    assert [next(iter(line)) for line in entry(store, 2)] == ["commitInfo", "metaData"]


def test_the_protocol_is_written_when_it_changes_and_only_then(store: MemoryStore):
    apply_change(load_snapshot(store), lambda c: set_properties(c, {"delta.minWriterVersion": "3"}), "tests")
    kinds = [next(iter(line)) for line in entry(store, 1)]
    # The description is repeated, as delta-spark does.
    assert kinds == ["commitInfo", "metaData", "protocol"]


def test_a_dry_run_tells_and_writes_nothing(store: MemoryStore):
    done = apply_change(load_snapshot(store), set_x(), "tests", dry_run=True)
    assert isinstance(done, Preview)
    assert (done.version, done.differences) == (0, {"property x": (None, "1")})
    assert load_snapshot(store).version == 0


def test_appends_and_changes_of_the_description_go_together(store: MemoryStore):
    behind = load_snapshot(store)
    commit_rows(open_target(store), [3])
    assert apply_change(behind, set_x(), "tests").version == 2


def test_a_change_is_made_anew_on_what_another_writer_left(store: MemoryStore):
    behind = load_snapshot(store)
    apply_change(behind, lambda c: set_properties(c, {"y": "2"}), "tests")
    done = apply_change(behind, set_x(), "tests")
    assert done.version == 2
    assert load_snapshot(store).config.metadata.configuration == {"y": "2", "x": "1"}


def test_a_change_that_the_winner_made_impossible_is_refused(store: MemoryStore):
    behind = load_snapshot(store)
    column = [NewColumn(("c",), Field("c", LONG))]
    apply_change(behind, lambda c: add_columns(c, column), "tests")
    with pytest.raises(InvalidRequest) as caught:
        apply_change(behind, lambda c: add_columns(c, column), "tests")
    assert caught.value.code == "column-exists"


def test_no_retry_means_no_retry(store: MemoryStore):
    behind = load_snapshot(store)
    apply_change(behind, set_x("1"), "tests")
    with pytest.raises(CommitConflict) as caught:
        apply_change(behind, set_x("2"), "tests", retry=RetryPolicy(max_attempts=1))
    assert caught.value.conflicts[0].rule == "metadata-changed"


def test_a_change_that_depends_on_rows_loses_to_new_rows(store: MemoryStore):
    behind = load_snapshot(store)
    commit_rows(open_target(store), [3])

    def change(config):  # type: ignore[no-untyped-def]
        found = set_properties(config, {"x": "1"})
        return Change(found.config, found.operation, reads=True)

    with pytest.raises(CommitConflict) as caught:
        apply_change(behind, change, "tests")
    assert caught.value.conflicts[0].rule == "concurrent-append"
    assert load_snapshot(store).version == 1


def test_many_writers_of_properties_lose_nothing(store: MemoryStore):
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for i in range(8):
                name = f"p{worker}.{i}"
                apply_change(
                    load_snapshot(store), lambda c, name=name: set_properties(c, {name: "1"}), "tests",
                    retry=RetryPolicy(max_attempts=200, first_delay_ms=1, max_delay_ms=10),
                )  # fmt: skip
                commit_rows(open_target(store), [worker * 100 + i])
        except BaseException as error:  # noqa: BLE001  # told by the test itself
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conflicts = [e for e in errors if isinstance(e, CommitConflict)]
    # An append may lose to a change of the description, as in the reference; a change may not.
    assert len(conflicts) == len(errors)
    assert all(c.conflicts[0].rule == "metadata-changed" for c in conflicts)
    snapshot = load_snapshot(store)
    written = {f"p{w}.{i}" for w in range(4) for i in range(8)}
    assert set(snapshot.config.metadata.configuration) <= written
    assert snapshot.version + 1 == 1 + len(snapshot.config.metadata.configuration) + snapshot.files.num_rows - 1


def test_replacing_a_table_removes_its_files(store: MemoryStore):
    snapshot = load_snapshot(store)
    target = DeltaTarget(store, snapshot.config, snapshot)
    changes = Describe(Operation("REPLACE TABLE"), ReadScope.table(), empties=True)
    assert len(target.preview(changes).removed) == 1
    done = target.commit(changes)
    assert done.metrics == {}
    assert load_snapshot(store).files.num_rows == 0
    assert entry(store, 1)[0]["commitInfo"]["isBlindAppend"] is False


def test_alter_is_the_same_without_spark(tmp_path):
    from_path = str(tmp_path / "t")
    commit_rows(open_target(storage_for(from_path, None, None)), [1])
    change = alluvium.alter(from_path)
    change.add_columns({"c": "int", "d": "struct<x:int>"}, position="after id")
    change.add_columns({"d.y": "string"}, position="first")
    change.alter_column("c", comment="hello", position=("after", "p"))
    change.set_properties({"delta.appendOnly": True})
    change.unset_properties("delta.appendOnly")
    change.upgrade_protocol(1, 3)
    change.drop_feature("checkConstraints")
    t = alluvium.open(from_path)
    assert t.schema.names == ["id", "d", "p", "c"] or tuple(t.schema.names) == ("id", "d", "p", "c")
    assert t.metadata.configuration == {}
    operations = [row["operation"] for row in t.history()]
    assert operations == [
        "DROP FEATURE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "SET TBLPROPERTIES", "CHANGE COLUMN",
        "ADD COLUMNS", "ADD COLUMNS", "WRITE",
    ]  # fmt: skip
    assert t.to_arrow(columns=["id", "c"]).to_pylist() == [{"id": 1, "c": None}]
    assert isinstance(change.restore(version=0, dry_run=True), Preview)
    change.restore(version=0)
    assert tuple(alluvium.open(from_path).schema.names) == ("id", "p")


@pytest.mark.parametrize("position", ["last", "after", "before x", ("x",), "first x"])
def test_places_that_are_none(tmp_path, position):
    commit_rows(open_target(storage_for(str(tmp_path / "t"), None, None)), [1])
    with pytest.raises(InvalidRequest) as caught:
        alluvium.alter(str(tmp_path / "t")).add_columns({"c": "int"}, position=position)
    assert caught.value.code == "invalid-position"


def test_what_is_not_changed_is_not_said_again(store: MemoryStore):
    target = open_target(store)
    target.commit(Append(NewFiles.none(), Operation("X"), ReadScope.nothing(), ("app", 1)))
    assert [key for line in entry(store, load_snapshot(store).version) for key in line] == ["commitInfo", "txn"]


def test_clustering_is_said_by_a_domain_and_nothing_by_none(store: MemoryStore):
    change = Alteration(lambda: load_snapshot(store), "tests")
    assert change.cluster_by().attempts == 0
    assert change.cluster_by("id").version == 1
    assert sorted(next(iter(line)) for line in entry(store, 1)) == ["commitInfo", "domainMetadata", "protocol"]
    assert change.cluster_by().version == 2
    assert [next(iter(line)) for line in entry(store, 2)] == ["commitInfo", "domainMetadata"]


def test_a_clustering_column_stays(store: MemoryStore):
    change = Alteration(lambda: load_snapshot(store), "tests")
    change.set_properties({"delta.columnMapping.mode": "name"})
    change.add_columns({"other": "int"})
    change.cluster_by("id")
    with pytest.raises(InvalidRequest) as caught:
        change.drop_columns("id")
    assert caught.value.code == "clustering-column"
    change.rename_column("id", "key")
    change.drop_columns("other", dry_run=True)


def test_dropping_what_need_not_be_there_may_be_nothing(store: MemoryStore):
    change = Alteration(lambda: load_snapshot(store), "tests")
    assert change.drop_columns("nope", if_exists=True).attempts == 0
    assert load_snapshot(store).version == 0


def test_a_dry_run_tells_who_will_not_read_the_table_any_more(store: MemoryStore):
    done = apply_change(
        load_snapshot(store),
        lambda c: set_properties(c, {"delta.feature.v2Checkpoint": "supported"}),
        "tests",
        dry_run=True,
    )
    assert isinstance(done, Preview) and done.notes
    plain = apply_change(load_snapshot(store), set_x(), "tests", dry_run=True)
    assert isinstance(plain, Preview) and plain.notes == ()


def test_the_engine_stands_in_the_history(store: MemoryStore):
    apply_change(load_snapshot(store), set_x(), "engine of tests")
    assert "engine of tests" in entry(store, 1)[0]["commitInfo"]["engineInfo"]


def test_attempts_are_counted_until_they_are_exhausted(store: MemoryStore):
    """Each time the change is made of what the winner left, at most as often as it is to be tried."""
    seen: list[int] = []

    def change(config: TableConfig) -> Change:
        seen.append(len(config.metadata.configuration))
        # Somebody else is always quicker.
        apply_change(load_snapshot(store), set_x(str(len(seen))), "others")
        return set_properties(config, {"y": "1"})

    with pytest.raises(CommitConflict) as caught:
        apply_change(
            load_snapshot(store), change, "tests", retry=RetryPolicy(max_attempts=3, first_delay_ms=1, max_delay_ms=1)
        )
    assert caught.value.conflicts[0].rule == "metadata-changed"
    assert len(seen) == 3 and seen[0] == 0 and seen[1:] == [1, 1]
    assert load_snapshot(store).version == 3


def test_two_that_cluster_a_table_at_a_time(store: MemoryStore):
    """The later one says so of the table that the other left."""
    behind = load_snapshot(store)
    first = Alteration(lambda: load_snapshot(store), "tests")
    first.set_properties({"delta.columnMapping.mode": "name"})
    second = Alteration(lambda: behind, "tests")
    assert second.cluster_by("id").version == 2
    told = entry(store, 2)[0]["commitInfo"]["operationParameters"]
    assert told == {"oldClusteringColumns": "", "newClusteringColumns": "id"}
    physical = load_snapshot(store).config.physical_names["id"]
    (domain,) = [line["domainMetadata"] for line in entry(store, 2) if "domainMetadata" in line]
    assert json.loads(domain["configuration"])["clusteringColumns"] == [[physical]]
