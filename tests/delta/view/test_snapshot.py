"""A version as it is loaded: by number, by time, anew; and what it remembers."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.view import recent
from alluvium.delta.view.snapshot import RECENT, load_snapshot, refresh
from alluvium.errors import AlluviumError, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.stores.memory import MemoryStore

PLAIN = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
IN_COMMIT = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}


def metadata(**configuration: str) -> dict[str, Any]:
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    return {"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                         "schemaString": json.dumps(schema), "configuration": configuration}}  # fmt: skip


def add(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}}


class Table:
    def __init__(self, *first: dict[str, Any]) -> None:
        self.store = MemoryStore(uuid.uuid4().hex, "/t")
        self.version = -1
        self.commit(*first)

    def commit(self, *lines: dict[str, Any]) -> None:
        self.version += 1
        self.store.put(commit_path(self.version), "\n".join(map(json.dumps, lines)).encode())


def timed(*times: int) -> Table:
    """Each version carries its time."""
    on = {"delta.enableInCommitTimestamps": "true"}
    table = Table({"commitInfo": {"inCommitTimestamp": times[0]}}, IN_COMMIT, metadata(**on), add("0"))
    for number, time in enumerate(times[1:], 1):
        table.commit({"commitInfo": {"inCommitTimestamp": time}}, add(str(number)))
    return table


def test_the_newest_version_at_a_time() -> None:
    table = timed(1_000, 2_000, 2_005)
    for time, version in ((1_000, 0), (1_999, 0), (2_000, 1), (2_004, 1), (2_005, 2)):
        found = load_snapshot(table.store, timestamp_ms=time)
        assert (found.version, found.files.num_rows) == (version, version + 1)
    with pytest.raises((NotFound, InvalidRequest)):
        load_snapshot(table.store, timestamp_ms=999)


def test_versions_by_number() -> None:
    table = timed(1_000, 2_000, 3_000)
    for version in range(3):
        assert load_snapshot(table.store, version).files["path"].to_pylist() == [str(n) for n in range(version + 1)]
    assert load_snapshot(table.store).version == 2
    with pytest.raises(NotFound) as caught:
        load_snapshot(table.store, 3)
    assert (caught.value.code, caught.value.version) == ("missing-version", 3)
    assert caught.value.url == table.store.url


def test_how_far_an_application_has_come() -> None:
    """ "If this value is greater than or equal to the batch being written, then this data has already been added" """
    table = Table(PLAIN, metadata(), {"txn": {"appId": "a", "version": 5}})
    snapshot = load_snapshot(table.store)
    told = {("a", 4): True, ("a", 5): True, ("a", 6): False, ("b", 0): False, ("b", -1): False}
    assert {txn: snapshot.has_come_to(txn) for txn in told} == told
    assert not snapshot.has_come_to(None)


def test_what_is_found_out_is_found_once_for_each_zone_and_state() -> None:
    table = Table(PLAIN, metadata(), add("a"), add("b"))
    snapshot = load_snapshot(table.store)
    asked: list[int] = []

    def find() -> int:
        asked.append(len(asked))
        return asked[-1]

    assert [snapshot.once("n", find), snapshot.once("n", find), snapshot.once("other", find)] == [0, 0, 1]
    there = replace(snapshot, time_zone="+01:00")
    assert [there.once("n", find), there.once("n", find), snapshot.once("n", find)] == [2, 2, 0]
    fewer = replace(snapshot, state=replace(snapshot.state, files=snapshot.files.slice(1)))
    assert [fewer.once("n", find), fewer.once("n", find)] == [3, 3]
    own = snapshot.statistics(snapshot.files)
    assert snapshot.statistics(snapshot.files) is own
    # Of other files they are decoded for who asks.
    part = snapshot.files.slice(1)
    assert snapshot.statistics(part).num_files == 1 and snapshot.statistics(part) is not snapshot.statistics(part)


def test_a_newer_version_has_what_the_older_was_opened_with() -> None:
    table = Table(PLAIN, metadata(), add("a"))

    def elsewhere(url: str) -> MemoryStore:
        return MemoryStore(url, "/x")

    snapshot = replace(load_snapshot(table.store, time_zone="+01:00"), open_store=elsewhere)
    assert refresh(snapshot) is snapshot
    table.commit(add("b"))
    newer = refresh(snapshot)
    assert (newer.version, newer.time_zone, newer.open_store) == (1, "+01:00", elsewhere)
    assert newer.files["path"].to_pylist() == ["a", "b"] and snapshot.files.num_rows == 1
    table.commit(metadata(k="v"))
    assert refresh(newer).config.metadata.configuration == {"k": "v"} and newer.config.metadata.configuration == {}


@pytest.mark.parametrize("is_known", [False, True])
def test_a_version_that_needs_another_reader(is_known: bool) -> None:
    """Whether it is read as a whole, or behind a version that was read."""
    table = Table(PLAIN, metadata(), add("a"))
    snapshot = load_snapshot(table.store)
    table.commit(
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["newer"],
                "writerFeatures": ["newer"],
            }
        }
    )
    for ask in (lambda: refresh(snapshot), lambda: load_snapshot(table.store)):
        if not is_known:
            RECENT.clear()
        with pytest.raises(UnsupportedFeature) as caught:
            ask()
        assert tuple(caught.value.features) == ("newer",)
    assert load_snapshot(table.store, 0).files.num_rows == 1
    table.commit(
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, metadata(**{"delta.columnMapping.mode": "name"})
    )
    with pytest.raises(AlluviumError) as broken:
        refresh(snapshot)
    assert (broken.value.code, broken.value.url) == ("invalid-column-mapping", table.store.url)


def test_who_asks_again_gets_the_same_by_his_own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is of the log's files: credentials are those of who asks."""
    monkeypatch.setattr(recent, "SETTLED_NEAR_MS", -60_000)
    table = Table(PLAIN, metadata(), add("a"))
    first = load_snapshot(table.store)
    mine = MemoryStore(table.store.url.removeprefix("memory://").removesuffix("/t"), "/t")
    again = load_snapshot(mine)
    assert again.state is first.state and again.store is mine and first.store is table.store
    # Another zone, another number, or another limit is another question.
    zone = load_snapshot(mine, time_zone="+01:00")
    assert zone.state is not first.state and load_snapshot(mine, time_zone="+01:00").state is zone.state
    number = load_snapshot(mine, 0)
    assert number.state is not first.state and load_snapshot(mine, 0).state is number.state
    limited = load_snapshot(mine, max_checkpoint_bytes=5)
    assert limited.state is not first.state
    # A longer log is read from where the shorter one ended.
    table.commit(add("b"))
    newer = load_snapshot(mine)
    assert newer.version == 1 and newer.store is mine
    assert [info.path for info in newer.state.segment.commits] == [commit_path(0), commit_path(1)]
    assert load_snapshot(mine).state is newer.state
    RECENT.clear()


def test_a_time_at_which_the_newest_version_was_there_needs_no_second_look() -> None:
    table = timed(1_000, 2_000)
    assert load_snapshot(table.store, timestamp_ms=2_000).version == 1
    old = load_snapshot(table.store, timestamp_ms=1_500, time_zone="+01:00")
    assert (old.version, old.time_zone) == (0, "+01:00")
    newest = load_snapshot(table.store, timestamp_ms=2_000, time_zone="+02:00")
    assert (newest.version, newest.time_zone) == (1, "+02:00")
