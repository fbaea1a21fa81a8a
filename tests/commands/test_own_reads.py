"""Which commits a scan of an older version should have seen; without a JVM."""

from __future__ import annotations

import uuid
from dataclasses import replace

import msgspec
import pytest
from plain_writer import commit_rows, open_target

from alluvium.commands.own_reads import ensure_current, unpinned
from alluvium.commands.repeating import OvertakenRead
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.expr.tree import Column, Compare, Expression, Literal
from alluvium.plan.changes import ReadScope
from alluvium.schema.types import STRING
from alluvium.spark.scan.native_lane.describe import About
from alluvium.storage.stores.memory import MemoryStore


def in_partition(name: str) -> Expression:
    return Compare("=", Column(("p",), STRING), Literal(name, STRING))


@pytest.fixture
def store() -> MemoryStore:
    """Version 0 has rows in the partition a, version 1 in b too."""
    store = MemoryStore(uuid.uuid4().hex, "table")
    for number, p in enumerate("ab"):
        commit_rows(open_target(store, partitioned=True), [number], p)
    return store


def about(store: MemoryStore, version: int, *, is_pinned: bool = False) -> About:
    return About(DeltaSource(load_snapshot(store, version)).identity, "asked for", is_pinned)


def test_what_came_since_counts_where_it_was_asked_for(store):
    newest = load_snapshot(store)
    for read in (DeltaSource(load_snapshot(store, 0)), about(store, 0)):
        for scope in (ReadScope.table(), ReadScope.rows(in_partition("b"))):
            with pytest.raises(OvertakenRead) as caught:
                ensure_current([read], newest, scope, admits_blind=False)
            assert (caught.value.code, caught.value.version) == ("concurrent-append", 1)
        ensure_current([read], newest, ReadScope.rows(in_partition("a")), admits_blind=False)
    ensure_current([DeltaSource(newest), about(store, 1), None], newest, ReadScope.table(), admits_blind=False)


def test_a_blind_append_counts_where_its_rows_are_met(store):
    old, newest = load_snapshot(store, 0), load_snapshot(store)
    weaker = msgspec.structs.replace(old.config.metadata, configuration={"delta.isolationLevel": "WriteSerializable"})
    read = DeltaSource(replace(old, config=replace(old.config, metadata=weaker)))
    ensure_current([read], newest, ReadScope.table(), admits_blind=True)
    with pytest.raises(OvertakenRead):
        ensure_current([read], newest, ReadScope.table(), admits_blind=False)


def test_a_version_that_nobody_can_read_any_more(store):
    read = about(store, 0)
    write_checkpoint(store, load_snapshot(store).state, CheckpointOptions(0, 0))
    store.delete("_delta_log/00000000000000000000.json")
    with pytest.raises(OvertakenRead) as caught:
        ensure_current([read], load_snapshot(store), ReadScope.table(), admits_blind=False)
    assert caught.value.code == "base-expired"


def test_versions_that_were_asked_for_are_none_of_its_business(store):
    asked = [DeltaSource(load_snapshot(store, 0), is_pinned=True), about(store, 0, is_pinned=True)]
    newest = [DeltaSource(load_snapshot(store)), about(store, 1), None]
    assert unpinned([*asked, *newest]) == tuple(newest)
    assert len({read.identity for read in (asked[0], DeltaSource(load_snapshot(store, 0)))}) == 2
