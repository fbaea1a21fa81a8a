"""After a commit: whatever goes wrong, the commit stands, and nobody is told otherwise."""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
import uuid
from pathlib import Path

import pytest
from paimon_rows import append, ks, make, open_target

from alluvium.paimon import PaimonTable
from alluvium.paimon.log.consumers import list_consumers, reset_consumer
from alluvium.paimon.log.names import list_numbers
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots, list_tags, read_tag
from alluvium.paimon.upkeep.life.tags import create_tag, list_all_tags, tag_path
from alluvium.paimon.upkeep.maintain import maintain
from alluvium.paimon.write.target import PaimonTarget
from alluvium.storage.store import Store

ONE = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({**ONE, "consumer.expiration-time": "soon"}, [2]),
        ({**ONE, "tag.automatic-creation": "never"}, [2]),
        ({**ONE, "tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Mars/Olympus"}, [2]),
        ({**ONE, "changelog.num-retained.min": "few"}, [1, 2]),
        ({**ONE, "write-only": "perhaps"}, [1, 2]),
    ],
)
def test_what_options_ask_for_is_not_worth_failing_for(
    tmp_path: Path, options: dict[str, str], kept: list[int]
) -> None:
    store = make(str(tmp_path / "t"))
    for n in range(2):
        append(open_target(store), [{"k": n}])
    path = tmp_path / "t/snapshot/snapshot-1"
    path.write_text(json.dumps({**json.loads(path.read_text()), "watermark": 1000}))
    maintain(store, options)
    assert list_snapshots(store) == kept


@pytest.fixture
def store() -> Store:
    """Three snapshots, and as many of a branch."""
    made = make(f"memory://{uuid.uuid4().hex}/t")
    append(open_target(made), [{"k": 0}])
    create_tag(made, "begin", 1)
    PaimonTable.forPath(made.url).create_branch("b", "begin")
    made.delete(tag_path("begin"))
    for k in (1, 2):
        append(open_target(made), [{"k": k}])
        snapshot = load_snapshot(made, At(), "b")
        append(PaimonTarget(made, snapshot.schema, snapshot), [{"k": 10 * k}])
    made.delete(tag_path("begin", "b"))
    return made


@pytest.mark.parametrize("branch", ["main", "b"])
def test_snapshots_of_a_branch_expire_by_numbers(store: Store, branch: str) -> None:
    maintain(store, {**ONE, "snapshot.num-retained.max": "2"}, branch)
    other = "b" if branch == "main" else "main"
    assert (list_snapshots(store, branch), list_snapshots(store, other)) == ([2, 3], [1, 2, 3])
    maintain(store, {**ONE, "write-only": "true"}, branch)
    maintain(store, {}, branch)
    assert list_snapshots(store, branch) == [2, 3]


def test_snapshots_that_are_old_expire_to_those_that_stay_in_any_case(store: Store) -> None:
    maintain(store, {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 d"})
    assert list_snapshots(store) == [1, 2, 3]
    for number in (1, 2, 3):
        path = f"snapshot/snapshot-{number}"
        store.put(path, json.dumps({**json.loads(store.get(path)), "timeMillis": 1000 * number}).encode())
    maintain(store, {"snapshot.num-retained.min": "2", "snapshot.time-retained": "1 d"})
    assert list_snapshots(store) == [2, 3]


@pytest.mark.parametrize("branch", ["main", "b"])
def test_changelogs_stay_for_longer_than_snapshots_and_then_go(store: Store, branch: str) -> None:
    folder = "changelog" if branch == "main" else "branch/branch-b/changelog"
    maintain(store, {**ONE, "changelog.num-retained.min": "3", "changelog.num-retained.max": "3"}, branch)
    assert (list_snapshots(store, branch), list_numbers(store, folder, "changelog-")) == ([3], [1, 2])
    maintain(store, {**ONE, "changelog.num-retained.min": "2", "changelog.num-retained.max": "2"}, branch)
    assert list_numbers(store, folder, "changelog-") == [2]
    # Where changelogs are of the snapshots, nobody looks for such.
    maintain(store, ONE, branch)
    assert list_numbers(store, folder, "changelog-") == [2]


def test_readers_that_have_not_come_on_for_long_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reset_consumer(store, "idle", 1)
    reset_consumer(store, "of b", 1, "b")
    now_s = store.head("consumer/consumer-idle").modified_ms / 1000
    for seconds, options, left in (
        (3600, {}, ["idle"]), (3599, {"consumer.expiration-time": "1 h"}, ["idle"]),
        (3601, {"consumer.expiration-time": "1 h"}, []),
    ):  # fmt: skip
        monkeypatch.setattr(time, "time", lambda s=seconds: now_s + s)
        maintain(store, {**ONE, "snapshot.num-retained.max": "3", **options})
        assert [one.name for one in list_consumers(store)] == left
    assert [one.name for one in list_consumers(store, "b")] == ["of b"]


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_tag_keeps_what_is_about_to_expire(store: Store, branch: str) -> None:
    options = {**ONE, "tag.automatic-creation": "process-time", "tag.default-time-retained": "2 h"}
    maintain(store, options, branch)
    (tag,) = list_all_tags(store, branch)
    assert (tag.document.id, tag.retained) == (1, dt.timedelta(hours=2))
    assert list_snapshots(store, branch) == [3] and ks(store, branch=branch, tag=tag.name) == [0]
    assert list_tags(store, "b" if branch == "main" else "main") == []


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"tag.automatic-creation": "process-time"}, []),
        ({"tag.automatic-creation": "process-time", "tag.time-expire-enabled": "false"}, ["old"]),
        ({}, ["old"]),
        # What cannot be created does not keep others.
        ({"tag.automatic-creation": "process-time", "tag.creation-delay": "9 d"}, []),
    ],
)
def test_tags_whose_time_is_over_go_where_tags_come(store: Store, options: dict[str, str], left: list[str]) -> None:
    create_tag(store, "old", 1, 1000)
    said = {**json.loads(store.get(tag_path("old"))), "tagCreateTime": [2001, 1, 1, 0, 0]}
    store.put(tag_path("old"), json.dumps(said).encode())
    maintain(store, {"snapshot.num-retained.min": "9", **options})
    assert [name for name in list_tags(store) if name == "old"] == left
    assert not left or read_tag(store, "old").id == 1


def test_what_goes_wrong_is_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "alluvium"):
        maintain(store, {**ONE, "consumer.expiration-time": "soon"})
    assert caplog.text.count("was not tidied up") == 1 and "soon" in caplog.text
    assert list_snapshots(store) == [3]
