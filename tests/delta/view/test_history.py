"""What commits say of themselves, as DESCRIBE HISTORY shows it: usual values, and those of writers with types of their own."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import Any

import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.view.history import HISTORY, commit_time_ms, read_history
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable
from alluvium.storage.stores.memory import MemoryStore

UTC = dt.timezone.utc
METADATA = {"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                         "schemaString": '{"type":"struct","fields":[]}', "configuration": {}}}  # fmt: skip
PLAIN = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
IN_COMMIT = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}


def table(*commits: list[dict[str, Any]]) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    for version, lines in enumerate(commits):
        first = [PLAIN, METADATA] if version == 0 and not any("metaData" in line for line in lines) else []
        store.put(commit_path(version), "\n".join(map(json.dumps, [*lines, *first])).encode())
    return store


def said(**info: Any) -> dict[str, Any]:
    """The row of a commit that says this."""
    (row,) = read_history(load_snapshot(table([{"commitInfo": info}]))).to_pylist()
    return dict(row)


USUAL = {
    "userId": "u", "userName": "n", "operation": "WRITE", "operationParameters": {"mode": "Append"}, "job": "j", "notebook": "b",
    "clusterId": "c", "readVersion": 3, "isolationLevel": "Serializable", "isBlindAppend": True,
    "operationMetrics": {"numFiles": "1"}, "userMetadata": "m", "engineInfo": "e",
}  # fmt: skip


@pytest.mark.parametrize("name", USUAL)
def test_each_value_has_its_column(name: str) -> None:
    row = said(**{name: USUAL[name]})
    expected = [*USUAL[name].items()] if isinstance(USUAL[name], dict) else USUAL[name]
    assert {k: v for k, v in row.items() if v is not None and k not in ("version", "timestamp")} == {name: expected}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("userName", 5, "5"), ("userName", {"a": [1]}, '{"a":[1]}'), ("userName", None, None), ("job", False, "false"),
        ("operationParameters", {"a": 1, "b": None, "c": "x", "d": [1, "y"]}, [("a", "1"), ("b", None), ("c", "x"), ("d", '[1,"y"]')]),
        ("operationParameters", "x", None), ("operationMetrics", [1], None), ("operationMetrics", {}, []),
        ("readVersion", "3", None), ("readVersion", 3.0, None), ("readVersion", True, None), ("readVersion", 2**63 - 1, 2**63 - 1),
        ("readVersion", 2**63, None), ("readVersion", -(2**63), -(2**63)), ("readVersion", -(2**63) - 1, None),
        ("isBlindAppend", "true", None), ("isBlindAppend", 1, None), ("isBlindAppend", False, False),
        ("unheard", "x", None),
    ],
)  # fmt: skip
def test_values_of_other_types_are_texts_or_left_out(name: str, value: Any, shown: Any) -> None:
    row = said(operation="WRITE", **{name: value})
    assert row.get(name) == shown and row["operation"] == "WRITE"
    assert list(row) == HISTORY.names


def test_the_newest_first() -> None:
    store = table(*([{"commitInfo": {"operation": f"V{version}"}}] for version in range(5)))
    for version in range(5):
        snapshot = load_snapshot(store, version)
        for limit in (None, 0, 1, 3, 9):
            expected = list(range(version, -1, -1))[:limit]
            found = read_history(snapshot, limit)
            assert found["version"].to_pylist() == expected and found.schema == HISTORY
            assert found["operation"].to_pylist() == [f"V{number}" for number in expected]


def test_commits_that_say_nothing() -> None:
    (row,) = read_history(load_snapshot(table([]))).to_pylist()
    assert {name for name, value in row.items() if value is not None} == {"version", "timestamp"}


def test_what_a_commit_says_is_not_when_it_was() -> None:
    """Its time is that of its file, but for tables whose commits must carry it."""
    row = said(version=7, timestamp=5)
    assert row["version"] == 0 and row["timestamp"] > dt.datetime(2024, 1, 1, tzinfo=UTC)


def test_times_in_commits_from_when_they_must_be_there() -> None:
    on = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "1",
          "delta.inCommitTimestampEnablementTimestamp": "5000"}  # fmt: skip
    turned_on = {"metaData": {**METADATA["metaData"], "configuration": on}}
    store = table(
        [{"commitInfo": {"operation": "CREATE"}}],
        [{"commitInfo": {"inCommitTimestamp": 5000}}, IN_COMMIT, turned_on],
        [{"commitInfo": {"inCommitTimestamp": 6000}}],
    )
    assert [commit_time_ms(load_snapshot(store, version)) for version in (1, 2)] == [5000, 6000]
    assert read_history(load_snapshot(store))["timestamp"].cast("int64").to_pylist()[:2] == [6000, 5000]
    created = commit_time_ms(load_snapshot(store, 0))
    assert created == store.head(commit_path(0)).modified_ms


def test_times_of_files_rise() -> None:
    store = table([], [], [])
    times = [commit_time_ms(load_snapshot(store, version)) for version in range(3)]
    assert times == sorted(set(times))


def test_a_commit_that_was_cleaned_up_has_the_time_of_its_checkpoint() -> None:
    store = table([{"commitInfo": {}}], [{"commitInfo": {}}])
    snapshot = load_snapshot(store)
    write_checkpoint_at(snapshot)
    for version in range(2):
        store.delete(commit_path(version))
    kept = load_snapshot(store)
    assert kept.version == 1 and commit_time_ms(kept) == kept.timestamp_ms
    assert read_history(kept).num_rows == 0 and read_history(kept).schema == HISTORY


def test_what_must_be_carried_and_is_not_is_damage() -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    always = {"metaData": {**METADATA["metaData"], "configuration": on}}
    store = table(
        [{"commitInfo": {"inCommitTimestamp": 5}}, IN_COMMIT, always], [{"commitInfo": {"operation": "WRITE"}}]
    )
    assert commit_time_ms(load_snapshot(store, 0)) == 5
    snapshot = load_snapshot(store)
    with pytest.raises(CorruptTable) as caught:
        commit_time_ms(snapshot)
    assert (caught.value.code, caught.value.url) == ("no-in-commit-timestamp", store.url)
    # The history is told all the same.
    assert read_history(snapshot)["operation"].to_pylist() == ["WRITE", None]


def test_commits_behind_the_snapshot_are_not_its_history() -> None:
    store = table(*([{"commitInfo": {"operation": f"V{version}"}}] for version in range(3)))
    older = load_snapshot(store, 1)
    assert read_history(older, 1)["operation"].to_pylist() == ["V1"]
    store.delete(commit_path(0))
    assert read_history(older)["version"].to_pylist() == [1]
