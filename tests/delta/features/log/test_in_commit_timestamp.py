"""inCommitTimestamp. Specification: "In-Commit Timestamps". Finding versions by time: tests/delta/log/test_timeline.py."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from delta_values import make_config, make_metadata

import alluvium
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.log.in_commit_timestamp import FEATURE, Enablement, enablement, on_commit
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import load_state
from alluvium.delta.terms.actions import Actions, format_entry
from alluvium.delta.terms.spec import Action, CommitInfo, Protocol, format_actions
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=(FEATURE.name,))
ON = {"delta.enableInCommitTimestamps": "true"}
SINCE_2 = {
    **ON, "delta.inCommitTimestampEnablementVersion": "2", "delta.inCommitTimestampEnablementTimestamp": "50000"
}  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"delta.enableInCommitTimestamps": "false"}, None),
        (ON, Enablement(0, None)),
        (SINCE_2, Enablement(2, 50_000)),
    ],
)
def test_since_when(properties: dict[str, str], expected: Enablement | None) -> None:
    assert enablement(make_config(properties=properties, protocol=PROTOCOL)) == expected


def test_the_property_counts_only_where_the_feature_is_listed() -> None:
    """ "The feature `inCommitTimestamp` must exist in the table `protocol`'s `writerFeatures`." """
    assert enablement(make_config(properties=ON)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta.inCommitTimestampEnablementVersion": "x"},
        {"delta.inCommitTimestampEnablementTimestamp": "-5"},
        {"delta.inCommitTimestampEnablementVersion": None},
        {"delta.inCommitTimestampEnablementTimestamp": None},
    ],
)
def test_properties_that_contradict_each_other(wrong: dict[str, str | None]) -> None:
    properties = {name: value for name, value in {**SINCE_2, **wrong}.items() if value is not None}
    with pytest.raises(CorruptTable) as caught:
        enablement(make_config(properties=properties, protocol=PROTOCOL))
    assert caught.value.code == "invalid-property"


def test_such_tables_are_read_and_written() -> None:
    config = make_config(properties=ON, protocol=PROTOCOL)
    ensure_readable(config)
    ensure_writable(config)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 and 1 have times of their files (10 s, 20 s); from version 2 on (50 s, 60 s) commits carry theirs."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    commits: list[tuple[int, list[Action]]] = [
        (10, [CommitInfo({"timestamp": 1}), PROTOCOL, make_metadata()]),
        (20, [CommitInfo({"timestamp": 2, "inCommitTimestamp": 99})]),
        (5, [CommitInfo({"inCommitTimestamp": 50_000}), make_metadata(properties=SINCE_2)]),
        (4, [CommitInfo({"inCommitTimestamp": 60_000})]),
    ]
    for version, (seconds, actions) in enumerate(commits):
        path = log / f"{version:020d}.json"
        path.write_bytes(format_actions(actions))
        os.utime(path, (seconds, seconds))
    return tmp_path


def at(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc)


@pytest.mark.parametrize(
    ("seconds", "version"), [(10, 0), (19.9, 0), (20, 1), (30, 1), (49.999, 1), (50, 2), (59.9, 2), (60, 3)]
)
def test_travel_by_time(table: Path, seconds: float, version: int) -> None:
    """ "If `timestamp X` >= `delta.inCommitTimestampEnablementTimestamp`, only table versions >=
    `delta.inCommitTimestampEnablementVersion` should be considered for the query. Otherwise, only table versions less
    than `delta.inCommitTimestampEnablementVersion` should be considered for the query."
    """
    assert alluvium.open(str(table), timestamp=at(seconds)).version == version


@pytest.mark.parametrize("seconds", [9.9, 60.1])
def test_times_outside(table: Path, seconds: float) -> None:
    with pytest.raises(NotFound):
        alluvium.open(str(table), timestamp=at(seconds))


def test_history_and_timestamp(table: Path) -> None:
    """ "For commits with version >= `delta.inCommitTimestampEnablementVersion`, readers should use the
    `inCommitTimestamp` field of the `commitInfo` action. For commits with version <
    `delta.inCommitTimestampEnablementVersion`, readers should use the file modification timestamp."
    """
    history = alluvium.open(str(table)).history()
    assert [(row["version"], row["timestamp"]) for row in history] == [
        (3, at(60)), (2, at(50)), (1, at(20)), (0, at(10)),
    ]  # fmt: skip
    assert [alluvium.open(str(table), version=v).timestamp for v in range(4)] == [at(10), at(20), at(50), at(60)]


def test_versions_before_that_are_gone(table: Path) -> None:
    """Only version 2 and later have commits left: an earlier time is before the table's first version."""
    log = table / "_delta_log"
    store = open_store(str(table))
    state = load_state(store, list_segment(store, 2), lambda protocol: None)
    (log / f"{2:020d}.checkpoint.parquet").write_bytes(format_checkpoint(state, CheckpointOptions(0, 1)))
    for version in (0, 1):
        (log / f"{version:020d}.json").unlink()
    assert alluvium.open(str(table), timestamp=at(55)).version == 2
    with pytest.raises(NotFound):
        alluvium.open(str(table), timestamp=at(20))


def enabled(version: int | None = None, timestamp_ms: int | None = None):
    known = {} if version is None else {VERSION: str(version), TIMESTAMP: str(timestamp_ms)}
    return make_config(properties={"delta.enableInCommitTimestamps": "true", **known}, protocol=PROTOCOL)


VERSION = "delta.inCommitTimestampEnablementVersion"
TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


@pytest.mark.parametrize(
    ("now_ms", "previous_ms", "expected"), [(50, None, 50), (50, 40, 50), (50, 50, 51), (50, 90, 91)]
)
def test_the_time_of_a_commit(now_ms: int, previous_ms: int | None, expected: int) -> None:
    """ "It is the larger of two values: The time [...] at which the writer attempted the commit; One millisecond later
    than the previous commit's `inCommitTimestamp`" """
    config = enabled()
    context = CommitContext(config, config, version=3, now_ms=now_ms, previous_ms=previous_ms)
    made = on_commit(Actions(), context)
    assert made.info == {"inCommitTimestamp": expected}
    # "The `commitInfo` action must be the first action in the commit."
    assert format_entry({"operation": "WRITE"}, made).startswith(b'{"commitInfo":{"inCommitTimestamp":')


def test_the_commit_that_enables_it_says_so() -> None:
    """ "`delta.inCommitTimestampEnablementVersion` must be used to track the version of the table when this feature was
    enabled"; its timestamp "must be the same as the `inCommitTimestamp` of the commit when this feature was enabled" """
    config = enabled()
    context = CommitContext(config, make_config(), version=3, now_ms=50, previous_ms=60)
    made = on_commit(Actions(metadata=config.metadata), context)
    assert made.info == {"inCommitTimestamp": 61}
    assert made.metadata is not None
    assert {key: made.metadata.configuration[key] for key in (VERSION, TIMESTAMP)} == {VERSION: "3", TIMESTAMP: "61"}


def test_a_table_that_is_created_with_it_needs_no_provenance() -> None:
    config = enabled()
    made = on_commit(Actions(metadata=config.metadata), CommitContext(config, now_ms=5))
    assert made.metadata == config.metadata


def test_a_changed_description_keeps_the_provenance() -> None:
    config = enabled()
    made = on_commit(Actions(metadata=config.metadata), CommitContext(config, enabled(2, 40), version=9, now_ms=50))
    assert made.metadata is not None
    assert (made.metadata.configuration[VERSION], made.metadata.configuration[TIMESTAMP]) == ("2", "40")


def test_without_it_commits_carry_no_time() -> None:
    actions = Actions()
    assert on_commit(actions, CommitContext(make_config())) is actions
