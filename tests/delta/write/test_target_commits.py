"""What a target commits: which files go, when there is nothing to say, and what its entry tells of it."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from plain_writer import commit_rows, open_target, stage_rows

from alluvium.delta.description.create import new_config
from alluvium.delta.features.rows.clustering import DOMAIN, clustering_columns, clustering_domain
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Append,
    Describe,
    EditFigures,
    EditRows,
    NewFiles,
    Operation,
    Overwrite,
    ReadScope,
    Replace,
    RewriteFiles,
    WrittenRows,
)
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
DYNAMIC = Replace(dynamic=True)
QUICK = DEFAULT_RETRY


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def where(text: str) -> Expression:
    return parse_predicate(text, SCHEMA)


def by(text: str, *, rows: bool = True) -> Replace:
    return Replace(where(text), text, rows=rows)


def entry(store: MemoryStore, version: int | None = None) -> list[dict[str, Any]]:
    version = load_snapshot(store).version if version is None else version
    return [json.loads(line) for line in store.get(f"_delta_log/{version:020d}.json").splitlines()]


def info(store: MemoryStore) -> dict[str, Any]:
    found: dict[str, Any] = entry(store)[0]["commitInfo"]
    return found


def live(store: MemoryStore) -> list[str]:
    return sorted(dict(row["partitionValues"]).get("p", "-") for row in load_snapshot(store).files.to_pylist())


def nothing(replaced: Replace | None = None, txn: tuple[str, int] | None = None, numbers: bool = False) -> WrittenRows:
    new = replace(NewFiles.none(), numbers=numbers)
    operation = Operation("WRITE", metrics={"numOfTests": "7"})
    if replaced is None:
        return Append(new, operation, ReadScope.nothing(), txn)
    return Overwrite(new, replaced, operation, ReadScope.nothing(), txn)


@pytest.mark.parametrize(
    ("changes", "commits"),
    [
        (nothing(), False),
        (nothing(DYNAMIC), False),
        (nothing(numbers=True), True),
        (nothing(DYNAMIC, numbers=True), True),
        (nothing(Replace()), True),
        (nothing(by("p = 'z'")), True),
        (nothing(txn=("app", 1)), True),
        (nothing(DYNAMIC, txn=("app", 1)), True),
    ],
)
def test_no_rows_make_a_commit_where_there_is_something_else_to_say(
    store: MemoryStore, changes: WrittenRows, commits: bool
) -> None:
    commit_rows(open_target(store, partitioned=True), [1])
    done = open_target(store).commit(changes)
    assert (done.version, done.attempts, done.files.num_rows) == ((1, 1, 0) if commits else (0, 0, 0))
    assert load_snapshot(store).version == done.version and done.metrics["numOfTests"] == "7"
    assert done.files.column_names == ["path", "size", "num_rows", "partition"]


def test_no_rows_make_a_commit_where_the_description_changes(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    target = open_target(store)
    config = new_config(SCHEMA, [], {"delta.appendOnly": "false"})
    assert not target.is_changed and replace(target, config=config).is_changed
    assert replace(target, config=config).commit(nothing()).version == 1
    assert "metaData" in {kind for action in entry(store) for kind in action}
    stronger = replace(target.config, protocol=msgspec.structs.replace(target.config.protocol, min_writer_version=4))
    assert replace(target, config=stronger).is_changed


def test_a_table_to_create_is_made_by_no_rows(store: MemoryStore) -> None:
    target = open_target(store)
    assert not target.exists and target.is_changed
    assert target.commit(nothing(DYNAMIC)).version == 0
    assert open_target(store).exists and open_target(store).url == store.url and open_target(store).schema == SCHEMA


def changed_rows(target: DeltaTarget, masks: dict[str, None], txn: tuple[str, int] | None = None) -> EditRows:
    touched = pa.Table.from_pylist([{"path": path, "mask": mask} for path, mask in masks.items()], schema=TOUCHED_FILES)

    def describe(figures: EditFigures) -> dict[str, str]:
        return {"removed": f"{figures.files_removed}", "records": f"{figures.change_files}"}

    return EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table(), describe=describe, txn=txn)


def test_changes_of_no_rows_make_a_commit_for_an_application_or_a_description(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    target = open_target(store)
    done = target.commit(changed_rows(target, {}))
    assert (done.version, done.attempts, done.metrics) == (0, 0, {"removed": "0", "records": "0"})
    assert target.commit(changed_rows(target, {}, ("app", 3))).version == 1
    assert [action["txn"]["version"] for action in entry(store) if "txn" in action] == [3]
    target = open_target(store)
    config = new_config(SCHEMA, [], {"delta.appendOnly": "false"})
    assert replace(target, config=config).commit(changed_rows(target, {})).version == 2
    target = open_target(store)
    (path,) = target.snapshot.files["path"].to_pylist() if target.snapshot else []
    assert target.commit(changed_rows(target, {path: None})).version == 3
    assert live(store) == []


@pytest.mark.parametrize(
    ("replaced", "left"),
    [
        (Replace(), ["a"]),
        (DYNAMIC, ["a", "b", "c"]),
        (by("p = 'b'"), ["a", "a", "c"]),
        (by("p > 'a'"), ["a", "a"]),
        (by("p is null"), ["a", "a", "b", "c"]),
    ],
)
def test_an_overwrite_removes_the_files_that_it_replaces(
    store: MemoryStore, replaced: Replace, left: list[str]
) -> None:
    for p in "abc":
        commit_rows(open_target(store, partitioned=True), [1], p=p)
    before = {row["path"]: row for row in load_snapshot(store).files.to_pylist()}
    commit_rows(open_target(store), [1, 2], p="a", replace=replaced)
    assert live(store) == left
    gone = [action["remove"] for action in entry(store) if "remove" in action]
    assert len(gone) == 4 - len(left)
    for removed in gone:
        was = before[removed["path"]]
        assert (removed["dataChange"], removed["size"]) == (True, was["size"])
        assert removed["partitionValues"] == dict(was["partitionValues"])


def test_single_rows_are_not_replaced_by_removing_their_files(store: MemoryStore) -> None:
    commit_rows(open_target(store, partitioned=True), [1, 2])
    (path,) = load_snapshot(store).files["path"].to_pylist()
    staged = stage_rows(open_target(store), [1], replace=by("p = 'a'"))
    assert isinstance(staged, Overwrite)
    with pytest.raises(UnsupportedFeature) as caught:
        open_target(store).commit(replace(staged, replace=by("id = 1")))
    assert (caught.value.code, caught.value.path) == ("replace-where-data", path) and "id = 1" in str(caught.value)


def test_which_conditions_of_an_overwrite_need_single_rows(store: MemoryStore) -> None:
    target = open_target(store, partitioned=True)
    assert not target.replaces_rows(by("id = 1", rows=False))
    for p in "ab":
        commit_rows(open_target(store, partitioned=True), [1, 2], p=p)
    target = open_target(store)
    for rows in (True, False):
        assert not any(target.replaces_rows(r) for r in (None, Replace(), DYNAMIC, by("p = 'a'", rows=rows)))
    assert target.replaces_rows(by("id = 1")) and target.replaces_rows(by("id = 1 and p = 'a'"))
    # Also where the values of partitions say that no row is meant.
    assert target.replaces_rows(by("id = 1 and p = 'z'"))
    for text in ("id = 1", "p = 'a' and id = 1", "P = 'a' or ID = 2"):
        with pytest.raises(UnsupportedFeature) as caught:
            target.replaces_rows(by(text, rows=False))
        assert (caught.value.code, caught.value.column) == ("replace-where-data", "id")
        assert "columns: id" in str(caught.value) and "partition columns: p" in (caught.value.hint or "")


def test_new_rows_must_lie_in_what_they_replace(store: MemoryStore) -> None:
    commit_rows(open_target(store, partitioned=True), [1])
    target = open_target(store)
    for replaced in (None, Replace(), DYNAMIC, replace(by("p = 'a'"), unchecked=True), Replace(where("p = 'a'"))):
        assert target.plan_write(replaced, ()).checks == ()
    (check,) = target.plan_write(by("p = 'a' or id > 3"), ()).checks
    assert (check.name, check.sql, check.columns) == ("replaceWhere", "(p = 'a' or id > 3)", ("id", "p"))
    assert target.plan_write(None, (("compression", "zstd"),)).options == (("compression", "zstd"),)


# --- what a commit depends on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replaced", "other", "stands"),
    [
        (None, "a", True),
        (DYNAMIC, "b", True),
        (DYNAMIC, "a", False),
        (by("p = 'a'"), "b", True),
        (by("p = 'a'"), "a", False),
        (Replace(), "b", False),
    ],
)
def test_an_overwrite_depends_on_what_it_replaces(
    store: MemoryStore, replaced: Replace | None, other: str, stands: bool
) -> None:
    commit_rows(open_target(store, partitioned=True), [1])
    late = open_target(store, retry=QUICK)
    # Who adds rows, having read some, does so under no isolation that lets others overlook it.
    reading = stage_rows(open_target(store), [5], p=other)
    assert isinstance(reading, Append)
    open_target(store).commit(replace(reading, read=ReadScope.rows(where("p = 'q'"))))
    staged = stage_rows(late, [2], replace=replaced)
    if stands:
        assert late.commit(staged).version == 2
        assert info(store)["readVersion"] == 0 and info(store)["isBlindAppend"] is (replaced is None)
        return
    with pytest.raises(CommitConflict):
        late.commit(staged)
    assert load_snapshot(store).version == 1


def test_an_overwrite_depends_on_what_its_rows_were_made_of_as_well(store: MemoryStore) -> None:
    commit_rows(open_target(store, partitioned=True), [1])
    late = open_target(store, retry=QUICK)
    reading = stage_rows(open_target(store), [5], p="c")
    assert isinstance(reading, Append)
    open_target(store).commit(replace(reading, read=ReadScope.rows(where("p = 'q'"))))
    staged = stage_rows(late, [2], replace=by("p = 'a'"))
    assert isinstance(staged, Overwrite)
    with pytest.raises(CommitConflict):
        late.commit(replace(staged, read=ReadScope.rows(where("p = 'c'"))))
    assert late.commit(replace(staged, read=ReadScope.rows(where("p = 'd'")))).version == 2


def test_a_rearrangement_says_that_no_rows_change(store: MemoryStore) -> None:
    commit_rows(open_target(store, partitioned=True), [1, 2])
    commit_rows(open_target(store), [1, 2], replace=by("p = 'a'"), data_change=False)
    kinds = [
        (kind, action[kind]["dataChange"]) for action in entry(store) for kind in action if kind in ("add", "remove")
    ]
    assert sorted(kinds) == [("add", False), ("remove", False)] and info(store)["isBlindAppend"] is False


def test_files_written_anew_say_that_no_rows_change(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1, 2])
    target = open_target(store)
    staged = stage_rows(target, [1, 2])
    touched = pa.Table.from_pylist(
        [{"path": p} for p in load_snapshot(store).files["path"].to_pylist()], schema=TOUCHED_FILES
    )
    marks = pa.table({"tags": pa.array([[("k", "v")]], load_snapshot(store).files.schema.field("tags").type)})
    anew = RewriteFiles(staged.new, touched, Operation("OPTIMIZE"), ReadScope.nothing(), marks=marks)
    assert target.commit(anew).version == 1
    (added,) = [action["add"] for action in entry(store) if "add" in action]
    (removed,) = [action["remove"] for action in entry(store) if "remove" in action]
    assert (added["dataChange"], added["tags"], removed["dataChange"]) == (False, {"k": "v"}, False)


# --- what is said of the table --------------------------------------------------------------------------------------


def clustered(store: MemoryStore) -> None:
    config = new_config(SCHEMA, [], {}, ["id"])
    target = DeltaTarget(store, config, None, domains=(clustering_domain([("id",)]),))
    target.commit(nothing())


def columns(store: MemoryStore) -> tuple[tuple[str, ...], ...]:
    snapshot = load_snapshot(store)
    return clustering_columns(snapshot.state.domains, snapshot.config)


def domains(store: MemoryStore) -> list[dict[str, Any]]:
    return [action["domainMetadata"] for action in entry(store) if "domainMetadata" in action]


def test_rows_in_the_place_of_all_others_are_not_clustered(store: MemoryStore) -> None:
    clustered(store)
    for replaced in (None, by("id = 1")):
        open_target(store).commit(nothing(replaced, txn=("app", 1)))
        assert columns(store) == (("id",),) and domains(store) == []
    open_target(store).commit(nothing(Replace()))
    assert columns(store) == () and [d["domain"] for d in domains(store)] == [DOMAIN]
    open_target(store).commit(nothing(Replace()))
    assert domains(store) == []


def test_rows_in_the_place_of_all_others_are_clustered_where_it_is_said_anew(store: MemoryStore) -> None:
    clustered(store)
    target = replace(open_target(store), domains=(clustering_domain([("p",)]),))
    target.commit(nothing(Replace()))
    assert columns(store) == (("p",),) and len(domains(store)) == 1
    other = replace(open_target(store), domains=(DomainMetadata(domain="my.own", configuration="{}", removed=False),))
    other.commit(nothing(Replace()))
    assert columns(store) == () and sorted(d["domain"] for d in domains(store)) == [DOMAIN, "my.own"]


def test_a_description_in_the_place_of_a_table_empties_it(store: MemoryStore) -> None:
    clustered(store)
    commit_rows(open_target(store), [1])
    (path,) = load_snapshot(store).files["path"].to_pylist()
    kept = Describe(Operation("SET TBLPROPERTIES"), ReadScope.nothing())
    target = replace(open_target(store), restates=True)
    assert target.preview(kept).removed == () and target.preview(replace(kept, empties=True)).removed == (path,)
    assert target.preview(kept).version == 1 and target.preview(kept).operation is kept.operation
    assert target.commit(kept).files.num_rows == 0 and columns(store) == (("id",),) and len(live(store)) == 1
    target = replace(open_target(store), restates=True)
    assert target.commit(replace(kept, empties=True)).version == 3
    assert columns(store) == () and live(store) == []
    assert [a["remove"]["dataChange"] for a in entry(store) if "remove" in a] == [True]


def test_a_description_is_repeated_where_that_is_asked(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    for restates in (False, True):
        commit_rows(replace(open_target(store), restates=restates), [2])
        kinds = [kind for action in entry(store) for kind in action]
        assert ("metaData" in kinds, "protocol" in kinds) == (restates, False)


def test_what_is_shown_of_a_table_to_create(store: MemoryStore) -> None:
    shown = open_target(store).preview(Describe(Operation("CREATE TABLE"), ReadScope.nothing(), empties=True))
    assert (shown.version, shown.removed, shown.differences["schema"][0]) == (-1, (), None)


def test_numbers_that_stay_where_they_are_are_told_by_a_tag(store: MemoryStore) -> None:
    """The reference writes the description once more, and says in a tag that it did."""
    commit_rows(open_target(store), [1])
    for numbers in (False, True):
        staged = stage_rows(open_target(store), [2])
        open_target(store).commit(replace(staged, new=replace(staged.new, numbers=numbers)))
        assert ("metaData" in {kind for action in entry(store) for kind in action}) == numbers
        assert info(store).get("tags") == ({"delta.identity.schemaUpdate": "true"} if numbers else None)


def test_an_application_is_told_with_the_time(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1], txn=("app", 7))
    (txn,) = [action["txn"] for action in entry(store) if "txn" in action]
    assert (txn["appId"], txn["version"]) == ("app", 7)
    assert abs(txn["lastUpdated"] - info(store)["timestamp"]) < 60_000


def test_rows_that_were_moved_for_few_files_are_told_of(store: MemoryStore) -> None:
    for moved in (False, True):
        staged = stage_rows(open_target(store), [2])
        open_target(store).commit(replace(staged, new=replace(staged.new, rebalanced=moved)))
        assert ("optimizeWrite" in info(store)["operationParameters"]) == moved
        assert info(store)["operationParameters"]["mode"] == "Append"


def test_change_data_are_recorded_where_the_table_keeps_them(store: MemoryStore) -> None:
    target = open_target(store)
    assert (target.is_recorded, target.before_columns) == (False, ())
    kept = replace(target, config=new_config(SCHEMA, ["p"], {"delta.enableChangeDataFeed": "true"}))
    assert (kept.is_recorded, kept.before_columns) == (True, ("id", "p"))
    plan = kept.plan_change_files()
    assert plan.directory.startswith("_change_data/") and plan.schema.names == ("id", "p", "_change_type")
    kept.commit(nothing())
    commit_rows(open_target(store), [1], p="a b")
    target = open_target(store)
    (path,) = load_snapshot(store).files["path"].to_pylist()
    record = {"path": "_change_data/x y", "size": 5, "modification_time_ms": 1, "num_rows": 1, "partition": ["a b"]}
    edit = replace(
        changed_rows(target, {path: None}), change_files=pa.Table.from_pylist([record], schema=WRITTEN_FILES)
    )
    assert target.commit(edit).metrics == {"removed": "1", "records": "1"}
    (told,) = [action["cdc"] for action in entry(store) if "cdc" in action]
    assert told == {
        "path": "_change_data/x%20y", "partitionValues": {"p": "a b"}, "size": 5, "dataChange": False
    }  # fmt: skip


def test_what_a_caller_is_told_of_files(store: MemoryStore) -> None:
    done = commit_rows(open_target(store, partitioned=True), [1, 2, 3], p="é")
    (row,) = done.files.to_pylist()
    (added,) = load_snapshot(store).files.to_pylist()
    assert row == {"path": added["path"], "size": added["size"], "num_rows": 3, "partition": [("p", "é")]}
    assert done.attempts == 1
