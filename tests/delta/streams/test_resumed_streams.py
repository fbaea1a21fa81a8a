"""Streams that begin, go on or come again behind versions with other columns, or where versions are gone."""

from __future__ import annotations

import re

import pytest
from stream_log import Log, add, cdc, metadata, paths, remove

from alluvium.delta.streams.batch import BatchChanges, LostBatch
from alluvium.delta.streams.offset import BEFORE, CHANGED, PASSED, Offset
from alluvium.delta.streams.stream import Stream
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.tree import Literal
from alluvium.schema.types import BOOLEAN

FEED = {"delta__enableChangeDataFeed": "true"}


def retyped(name: str) -> Log:
    """Version 0 has a column of another type than those behind it."""
    log = Log(name, add("a"), **FEED)
    log.commit(metadata((("id", "string"),), **FEED), remove("a"), add("b"))
    log.commit(add("c"))
    return log


def test_who_begins_behind_other_columns_has_not_read_them() -> None:
    log = retyped("resumed-types")
    options = {"starting_version": 1, "ignore_changes": True}
    end = Offset("t", 3)
    for stream in (log.stream(**options), log.stream(**options)):
        assert stream.latest(None) == stream.end_of_run(None) == end
    assert paths(log.stream(**options).batch(None, end)) == ["b", "c"]
    # A beginning that stands in a checkpoint is no place that was read up to.
    start = Offset("t", 1)
    assert log.stream(ignore_changes=True).latest(start, is_resumed=False) == end
    for ask in (
        lambda stream: stream.latest(start),
        lambda stream: stream.end_of_run(start),
        lambda stream: stream.batch(start, end),
    ):
        with pytest.raises(InvalidRequest) as caught:
            ask(log.stream(ignore_changes=True))
        assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 0)


@pytest.mark.parametrize(
    ("start", "looks_at"),
    [
        (Offset("t", 1), 0), (Offset("t", 1, CHANGED), 0), (Offset("t", 1, PASSED), None), (Offset("t", 1, 0), None),
        (Offset("t", 1, BEFORE, in_snapshot=True), None), (Offset("t", 1, 0, in_snapshot=True), None), (Offset("t", 2), None),
    ],
)  # fmt: skip
def test_which_version_a_stream_goes_on_from(start: Offset, looks_at: int | None) -> None:
    """That of its last rows: the version itself where some of its files were read, or it stands for all rows."""
    stream = retyped(f"resumed-from-{start}").stream(ignore_changes=True)
    if looks_at is None:
        assert stream.latest(start) == Offset("t", 3)
        return
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(start)
    assert (caught.value.code, caught.value.version) == ("stream-schema-changed", looks_at)


def test_columns_are_looked_at_once() -> None:
    """A version is known to fit from then on; and no stream remembers all of those that it has passed."""
    log = Log("resumed-once", add("a"))
    stream = log.stream()
    start = stream.latest(None)
    assert start == Offset("t", 1)
    log.commit(add("b"))
    assert stream.latest(start) == Offset("t", 2)
    log.lose(0)
    # What was read is looked at no more, so that it is no matter that it cannot be told.
    assert stream.latest(start) == Offset("t", 2)
    assert paths(stream.batch(start, Offset("t", 2))) == ["b"]


def test_a_beginning_that_is_gone_is_told_where_it_is_read() -> None:
    log = Log("resumed-gone", add("a"), **FEED)
    for name in "bcd":
        log.commit(add(name))
    stream, changes = log.stream(), log.stream(changes=True)
    log.lose(0, 1)
    with pytest.raises(NotFound) as caught:
        stream.latest(Offset("t", 1))
    assert (caught.value.code, caught.value.version) == ("stream-lost-data", 1)
    (lost,) = stream.batch(Offset("t", 1), Offset("t", 3))
    assert isinstance(lost, LostBatch) and lost.error.code == "stream-lost-data"
    assert lost.extra == () and lost.span[-1].count('"reservoirVersion":3') == 1
    (lost,) = changes.batch(Offset("t", 1), Offset("t", 3))
    assert lost.plan_scan().schema.names == ("id", "_change_type", "_commit_version", "_commit_timestamp")


def test_what_is_no_matter_of_who_reads_fails_at_once() -> None:
    log = Log("resumed-at-once", add("a"), add("b"), **FEED)
    log.commit(remove("a"), remove("b"), cdc("c"), cdc("d"), operation="UPDATE")
    stream = log.stream(changes=True)
    with pytest.raises(UnsupportedFeature) as caught:
        stream.batch(Offset("t", 1), Offset("t", 1, 0))
    assert (caught.value.code, caught.value.version) == ("parted-changes", 1)
    rows = log.stream()
    # Whether rows may be changed is asked of those who read: the batch may have been read under other options.
    (refused,) = rows.batch(Offset("t", 1), Offset("t", 2))
    with pytest.raises(InvalidRequest) as said:
        refused.plan_scan(Literal(True, BOOLEAN))
    assert said.value.code == "stream-source-deleted"
    log.commit(metadata((("id", "string"),), **FEED), add("e"))
    with pytest.raises(InvalidRequest) as changed:
        stream.batch(Offset("t", 2), Offset("t", 3))
    assert (changed.value.code, changed.value.version) == ("stream-schema-changed", 2)


def test_batches_are_told_apart_by_their_ends_and_their_options() -> None:
    log = Log("resumed-identity", add("a"))
    for name in "bc":
        log.commit(add(name))
    begin, middle, end = (Offset("t", version) for version in (1, 2, 3))
    stream = log.stream()
    spans = [(begin, middle), (middle, end), (begin, end)]
    identities = [one.identity for span in spans for one in stream.batch(*span)]
    identities += [one.identity for one in log.stream(max_files=7).batch(begin, end)]
    assert len(set(identities)) == 4
    assert identities[2] == log.stream().batch(begin, end)[0].identity


def test_files_that_are_excluded_are_not_among_changes() -> None:
    log = Log("resumed-excluded", add("a1"), add("b1"), **FEED)
    log.commit(remove("a1"), add("a2"), add("b2"))
    log.commit(remove("b1"), add("c"), cdc("a3"), cdc("b3"))
    stream = log.stream(changes=True, exclude=re.compile("^a"))
    assert sorted(paths(stream.batch(Offset("t", 0), Offset("t", 3)))) == ["b1", "b2", "b3"]
    everything = log.stream(changes=True, exclude=re.compile("."))
    assert everything.batch(Offset("t", 0), Offset("t", 3)) == ()
    rows = log.stream(exclude=re.compile("."), ignore_changes=True)
    assert rows.batch(None, Offset("t", 3)) == ()


def test_columns_of_a_stream_are_those_of_rows() -> None:
    """Without what the table itself makes of them, and any of them may be null."""
    log = Log("resumed-schema", add("a"))
    fields = (
        '{"name":"id","type":"long","nullable":false,"metadata":{"comment":"kept","delta.identity.start":1,'
        '"delta.identity.step":1,"delta.identity.allowExplicitInsert":true}},'
        '{"name":"g","type":{"type":"array","elementType":"long","containsNull":false},"nullable":true,'
        '"metadata":{"delta.generationExpression":"id"}}'
    )
    action = metadata(**FEED)
    action["metaData"]["schemaString"] = f'{{"type":"struct","fields":[{fields}]}}'  # type: ignore[index]
    log.commit(action)
    for changes in (False, True):
        schema = log.stream(changes=changes).schema
        assert schema.names == (
            "id",
            "g",
            *(("_change_type", "_commit_version", "_commit_timestamp") if changes else ()),
        )
        assert [(f.nullable, dict(f.metadata)) for f in schema.fields[:2]] == [(True, {"comment": "kept"}), (True, {})]
        assert "contains_null=True" in repr(schema.fields[1].type)


def test_the_newest_version_that_was_seen() -> None:
    log = Log("resumed-newest", add("a"))
    log.commit(add("b"))
    stream = log.stream(starting_version=0, max_files=1)
    assert (stream.newest, stream.table_id) == (1, "t")
    log.commit(add("c"))
    assert stream.newest == 1
    assert stream.latest(None) == Offset("t", 1)
    assert stream.newest == 2


@pytest.mark.parametrize("late", [False, True])
def test_the_first_batch_of_what_begins_at_the_newest_version(late: bool) -> None:
    """Whether it was there, or still to come when it was named."""
    log = Log(f"resumed-first-{late}", add("a"))
    stream: Stream = log.stream(starting_version=1, may_begin_late=late)
    if not late:
        with pytest.raises(NotFound):
            stream.latest(None)
        return
    first = stream.latest(None)
    assert first == Offset("t", 1)
    assert stream.batch(None, first) == ()
    log.commit(add("b"))
    assert stream.latest(None) == Offset("t", 2)
    assert paths(stream.batch(None, Offset("t", 2))) == ["b"]
    assert stream.batch(None, first) == ()
    assert stream.end_of_run(first) == Offset("t", 2)
    far = log.stream(starting_version=5, may_begin_late=True)
    assert far.latest(None) is None
    assert far.end_of_run(None) == Offset("t", 5)


def test_changes_behind_a_version_that_sets_the_protocol_or_the_description_alone() -> None:
    log = Log("resumed-heads", add("a"), **FEED)
    stream = log.stream(changes=True)
    log.commit(metadata(**FEED, my="own"), add("b"))
    log.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, add("c"))
    begin, end = Offset("t", 1), Offset("t", 3)
    assert stream.latest(begin) == end
    (source,) = stream.batch(begin, end)
    assert isinstance(source, BatchChanges) and sorted(source.feed.times) == [1, 2]
    assert paths([source]) == ["b", "c"]
