"""The loop's verbs one by one: what a draft lands on, whom it meets there, and how its entry is put."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest
from delta_values import make_config, make_draft, make_files
from plain_writer import SCHEMA, commit_rows, open_target

from alluvium.commit.loop import Entry
from alluvium.delta.commit.conflicts import Winner
from alluvium.delta.commit.port import DeltaPort
from alluvium.delta.description.create import new_config
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.spec import Protocol, format_actions
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, CorruptTable, NotFound, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Append, NewFiles, Operation, ReadScope
from alluvium.schema.types import LONG, TIMESTAMP, Field, Struct
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "t")


def info(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entry.data.splitlines()[0])["commitInfo"]
    return found


def test_a_table_that_is_not_there_has_no_winners(store: MemoryStore) -> None:
    assert DeltaPort(store).refresh(None) == (None, ()) and DeltaPort(store).url == store.url
    commit_rows(open_target(store), [1])
    commit_rows(open_target(store), [2])
    newer, winners = DeltaPort(store).refresh(None)
    assert newer is not None and (newer.version, [w.version for w in winners]) == (1, [0, 1])


def test_a_log_that_cannot_be_read_is_no_table_that_is_missing(store: MemoryStore) -> None:
    store.put(commit_path(3), b"{}\n")
    with pytest.raises((NotFound, CorruptTable)) as caught:
        DeltaPort(store).refresh(None)
    assert caught.value.code != "not-a-table"


def test_whom_a_draft_meets(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    base = load_snapshot(store)
    assert DeltaPort(store).refresh(base) == (base, ())
    for n in (2, 3, 4):
        commit_rows(open_target(store), [n])
    newer, winners = DeltaPort(store).refresh(base)
    assert newer is not None and (newer.version, newer.files.num_rows) == (3, 4)
    assert [w.version for w in winners] == [1, 2, 3] and all(w.actions.added.num_rows == 1 for w in winners)


def test_a_newer_version_must_be_one_that_we_may_write(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    base = load_snapshot(store)
    protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("someday",))
    store.put(commit_path(1), format_actions([protocol]))
    with pytest.raises(UnsupportedFeature):
        DeltaPort(store).refresh(base)


def test_another_table_in_its_place_is_no_newer_version(store: MemoryStore) -> None:
    commit_rows(open_target(store), [1])
    base = load_snapshot(store)
    store.delete_tree("")
    for n in range(3):
        commit_rows(open_target(store), [n])
    with pytest.raises(CommitConflict) as caught:
        DeltaPort(store).refresh(base)
    assert caught.value.code == "table-replaced"


def test_a_draft_lands_behind_its_base(store: MemoryStore) -> None:
    draft = make_draft(Actions(added=make_files({"path": "a"})))
    commit_rows(open_target(store), [1])
    base = load_snapshot(store)
    entry = DeltaPort(store).assemble(draft, base)
    assert (entry.version, entry.path) == (1, commit_path(1)) and info(entry)["isolationLevel"] == "Serializable"
    weak = new_config(SCHEMA, [], {"delta.isolationLevel": "WriteSerializable"})
    changed = replace(draft, config=weak)
    # What the table says after the commit holds for it.
    assert info(DeltaPort(store).assemble(changed, base))["isolationLevel"] == "WriteSerializable"
    first = DeltaPort(store).assemble(replace(changed, read_version=-1), None)
    assert (first.version, info(first)["isolationLevel"]) == (0, "WriteSerializable")


def test_commits_that_carry_their_time_are_later_than_their_base(store: MemoryStore) -> None:
    """However the clock of this machine goes."""
    target = DeltaTarget(store, new_config(SCHEMA, [], {"delta.enableInCommitTimestamps": "true"}), None)
    target.commit(Append(NewFiles.none(), Operation("WRITE"), ReadScope.nothing()))
    text = store.get(commit_path(0)).decode()
    now_ms = json.loads(text.splitlines()[0])["commitInfo"]["inCommitTimestamp"]
    ahead_ms = now_ms + 10**9
    store.put(commit_path(0), text.replace(f'"inCommitTimestamp":{now_ms}', f'"inCommitTimestamp":{ahead_ms}').encode())
    base = load_snapshot(store)
    draft = make_draft(Actions(added=make_files({"path": "a"})))
    assert info(DeltaPort(store).assemble(draft, base))["inCommitTimestamp"] == ahead_ms + 1


def test_an_entry_is_put_once(store: MemoryStore) -> None:
    port = DeltaPort(store)
    for version in (0, 1):
        entry = Entry(version, commit_path(version), b'{"commitInfo":{"txnId":"x"}}\n')
        assert port.publish(entry) is PutOutcome.DONE and port.landed(entry) is True
        other = Entry(version, commit_path(version), b'{"commitInfo":{"txnId":"y"}}\n')
        assert port.publish(other) is PutOutcome.EXISTS and port.landed(other) is False
        assert store.get(commit_path(version)) == entry.data


@pytest.mark.parametrize(("zone", "met"), [("Asia/Tokyo", True), ("UTC", False)])
def test_partition_values_are_read_in_the_zone_of_the_base(store: MemoryStore, zone: str, met: bool) -> None:
    schema = Struct((Field("id", LONG), Field("t", TIMESTAMP)))
    config = make_config(schema, ["t"])
    store.put(commit_path(0), format_actions([config.protocol, config.metadata]))
    base = load_snapshot(store, time_zone=zone)
    draft = make_draft(Actions(), ReadScope.rows(parse_predicate("t = timestamp '2024-01-01 00:00:00Z'", schema)))
    theirs = Actions(added=make_files({"path": "n", "partitionValues": {"t": "2024-01-01 09:00:00"}}))
    assert bool(DeltaPort(store).conflicts(draft, base, Winner(1, theirs))) is met
    # Of a table to create the draft says all.
    creating = replace(draft, config=config, read_version=-1, read=ReadScope.table())
    assert [c.rule for c in DeltaPort(store).conflicts(creating, None, Winner(0, theirs))] == ["concurrent-append"]
