"""A stream that follows the table's columns. Names, offsets and entries are those that delta-spark 4.4 wrote for the same changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from stream_log import Action, Log, add, metadata, paths

from alluvium.delta.streams.agreement import DROP, RENAME, TYPE_CHANGE, Agreement, java_hash
from alluvium.delta.streams.offset import CHANGED, PASSED, Offset
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.streams.stream import Stream
from alluvium.delta.streams.tracking import Tracker
from alluvium.delta.streams.tracking_log import load_tracking_log
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.storage.stores.memory import MemoryStore

PLACE = "file:/c/sources/0"
MAPPED = {"delta__columnMapping__mode": "name"}


def mapped(*columns: tuple[str, str, str], **properties: str) -> Action:
    """A table's metadata, of columns by name, name in files and type."""
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": n, "delta.columnMapping.physicalName": physical},
        }
        for n, (name, physical, kind) in enumerate(columns)
    ]
    action = metadata(**MAPPED, **properties)
    action["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})  # type: ignore[index]
    return action


A, B, B_RENAMED = ("a", "p1", "integer"), ("b", "p2", "string"), ("bb", "p2", "string")
FEATURES = ["columnMapping", "typeWidening"]
PROTOCOL = {
    "protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": FEATURES, "writerFeatures": FEATURES}
}


class Query:
    """A query over a table with columns `a` and `b`, started again and again with one log of columns."""

    def __init__(self, name: str) -> None:
        self.log = Log(f"{name}-first")
        self.log.commit(PROTOCOL, mapped(A, B), add("0"))
        self.kept = MemoryStore(f"{name}-tracked", "/c")
        self.settings: dict[str, str] = {}

    def load(self, **options: str) -> Stream:
        """What a frame has, of which queries are started."""
        snapshot = load_snapshot(self.log.store)
        agreement = Agreement(options, self.settings.get)
        tracker = Tracker(snapshot.store, snapshot.config, load_tracking_log(self.kept, "t"), "/c", agreement)
        tracker.skim()
        return Stream(replace(snapshot, config=tracker.shown, _found={}), StreamOptions(max_files=1), tracker)

    def stream(self, **options: str) -> Stream:
        stream = self.load(**options)
        assert stream.tracker is not None
        stream.tracker.start(lambda: PLACE)
        return stream

    def run(self, start: Offset | None = None, **options: str) -> tuple[Offset | None, list[str]]:
        """What `AvailableNow` does: how far it comes, and the files that it reads."""
        stream, found = self.stream(**options), []
        until, before = stream.end_of_run(start), start
        while (end := stream.latest(before, until=until)) != before:
            assert end is not None
            if before is not None and stream.tracker is not None:
                self.reached = before
                stream.tracker.committed(before)
            found += paths(stream.batch(before, end))
            before = end
        return before, found

    def entries(self) -> list[dict[str, object]]:
        names = sorted(info.path for info in self.kept.list_from(""))
        texts = [self.kept.get(name).decode().split("\n") for name in names]
        assert {text[0] for text in texts} <= {"v1"}
        return [json.loads(text[1]) for text in texts]


def columns(entry: dict[str, object]) -> list[str]:
    return [f["name"] for f in json.loads(str(entry["dataSchemaJson"]))["fields"]]


def test_a_new_column_ends_the_batch_and_is_written_down() -> None:
    query = Query("tracked-add")
    end, files = query.run()
    assert (end, files) == (Offset("t", 2), ["0"])
    (first,) = query.entries()
    assert first["deltaCommitVersion"] == 1
    assert first["sourceMetadataPath"] == PLACE
    assert first["tableConfigurations"] == {"delta.columnMapping.mode": "name"}
    assert json.loads(str(first["protocolJson"])) == PROTOCOL
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    query.log.commit(add("1"))
    with pytest.raises(InvalidRequest) as caught:
        query.run(end)
    assert (caught.value.code, caught.value.version) == ("stream-metadata-changed", 2)
    # Spark calls a batch done when it has begun the next one, which is the second mark.
    assert query.reached == Offset("t", 2, CHANGED)
    assert [columns(entry) for entry in query.entries()] == [["a", "b"], ["a", "b", "c"]]
    stream = query.stream()
    assert stream.schema.names == ("a", "b", "c")
    assert query.run(Offset("t", 2, PASSED)) == (Offset("t", 4), ["1"])


def test_a_stream_that_has_ended_says_so_again() -> None:
    query = Query("tracked-again")
    end, _ = query.run()
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    stream = query.stream()
    assert stream.latest(end) == Offset("t", 2, CHANGED)
    assert stream.latest(Offset("t", 2, CHANGED)) == Offset("t", 2, PASSED)
    assert stream.tracker is not None
    with pytest.raises(InvalidRequest, match="version 2 changes"):
        stream.tracker.committed(Offset("t", 2, CHANGED))
    with pytest.raises(InvalidRequest, match="version 2 changes"):
        stream.tracker.start(lambda: PLACE)
    with pytest.raises(InvalidRequest, match="version 2 changes"):
        stream.latest(Offset("t", 2, PASSED))


@pytest.mark.parametrize("is_limited", [True, False])
def test_a_query_that_died_before_a_change_was_written_down_does_not_wait_for_ever(is_limited: bool) -> None:
    """Spark has the second mark, and says of the first that it is done only when it has planned a third batch."""
    query = Query(f"tracked-died-{is_limited}")
    query.run()
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    query.log.commit(add("1"))
    stream, passed = query.stream(), Offset("t", 2, PASSED)
    assert stream.batch(Offset("t", 2, CHANGED), passed) == ()
    # Nothing goes past it until it is written down.
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(passed) if is_limited else stream.end_of_run(passed)
    assert caught.value.code == "stream-metadata-changed"
    assert [columns(entry) for entry in query.entries()] == [["a", "b"], ["a", "b", "c"]]
    assert query.run(passed) == (Offset("t", 4), ["1"])


def test_the_columns_that_a_stream_began_with_are_not_passed_over() -> None:
    """Its first entry stands for the snapshot that it begins with, and for rows that a sink has by these columns."""
    query = Query("tracked-begun")
    query.log.commit(add("1"))
    query.log.commit(mapped(A, B, delta__appendOnly="true"))
    stream = query.stream()
    first = stream.latest(None)
    assert first == Offset("t", 3, 0, in_snapshot=True), "half of the snapshot"
    query.log.commit(mapped(A, B_RENAMED, delta__appendOnly="true"))
    # A query is started again, and what changed the columns names no file; but nobody has agreed to that.
    stream = query.stream()
    assert stream.schema.names == ("a", "b")
    rest = stream.latest(first)
    assert paths(stream.batch(first, rest)) == ["1"]
    with pytest.raises(InvalidRequest):
        query.run(rest)
    with pytest.raises(InvalidRequest) as caught:
        query.stream()
    assert caught.value.code == "stream-change-not-agreed"
    assert query.run(Offset("t", 4, PASSED), **{RENAME: "always"}) == (Offset("t", 5), [])


@pytest.mark.parametrize(
    ("after", "needed", "said"),
    [
        (mapped(A, B_RENAMED), (RENAME,), "'b' was renamed to 'bb'"),
        (mapped(A), (DROP,), "'b' was dropped"),
        (mapped(B_RENAMED), (RENAME, DROP), "'b' was renamed to 'bb', 'a' was dropped"),
        (mapped(("a", "p1", "long"), B), (TYPE_CHANGE,), "'a' was int, is bigint"),
    ],
)
def test_what_must_be_agreed_to(after: Action, needed: tuple[str, ...], said: str) -> None:
    query = Query(f"tracked-{said}")
    query.run()
    query.log.commit(after)
    query.log.commit(add("1"))
    passed = Offset("t", 2, PASSED)
    with pytest.raises(InvalidRequest):
        query.run(Offset("t", 2))
    for wrong in ({}, dict.fromkeys(needed, "3"), {needed[0]: "sure"}):
        with pytest.raises(InvalidRequest) as caught:
            query.run(passed, **wrong)
        assert (caught.value.code, caught.value.version) == ("stream-change-not-agreed", 2)
        assert said in str(caught.value)
    settings = [f"spark.databricks.delta.streaming.{name}.ckpt_{java_hash(PLACE)}" for name in needed]
    assert all(name in str(caught.value.hint) for name in settings)
    assert query.run(passed, **dict.fromkeys(needed, "2")) == (Offset("t", 4), ["1"])
    query.settings = dict.fromkeys(settings, "always")
    assert query.run(passed) == (Offset("t", 4), ["1"])
    if len(needed) == 2:
        query.settings = {"spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop": "always"}
        assert query.run(passed) == (Offset("t", 4), ["1"])


def test_another_type_is_never_agreed_to() -> None:
    query = Query("tracked-clash")
    query.run()
    query.log.commit(mapped(("a", "p1", "string"), B))
    with pytest.raises(InvalidRequest):
        query.run(Offset("t", 2))
    with pytest.raises(InvalidRequest) as caught:
        query.stream(**{TYPE_CHANGE: "always"})
    assert (caught.value.code, caught.value.column) == ("stream-schema-changed", "a")


def test_changes_one_after_the_other_are_one() -> None:
    query = Query("tracked-skimmed")
    query.run()
    query.log.commit(mapped(A, B_RENAMED))
    query.log.commit(mapped(B_RENAMED))
    query.log.commit(add("1"))
    with pytest.raises(InvalidRequest):
        query.run(Offset("t", 2))
    with pytest.raises(InvalidRequest, match="between version 1 and 3"):
        query.stream()
    assert [columns(entry) for entry in query.entries()] == [["a", "b"], ["a", "bb"], ["bb"]]
    assert query.entries()[2]["previousMetadataSeqNum"] == 0
    agreed = {RENAME: "3", DROP: "always"}
    assert query.run(Offset("t", 2, PASSED), **agreed) == (Offset("t", 5), ["1"])


def test_properties_and_features_are_changes_too_but_not_a_users_own() -> None:
    query = Query("tracked-properties")
    query.run()
    query.log.commit(mapped(A, B, my="own"))
    query.log.commit(add("1"))
    assert query.run(Offset("t", 2)) == (Offset("t", 4), ["1"])
    query.log.commit(mapped(A, B, delta__appendOnly="true"))
    with pytest.raises(InvalidRequest) as caught:
        query.run(Offset("t", 4))
    assert (caught.value.code, caught.value.version) == ("stream-metadata-changed", 4)
    assert query.run(Offset("t", 4, PASSED)) == (Offset("t", 5), [])


def test_a_log_that_comes_late_begins_with_what_was_read() -> None:
    query = Query("tracked-late")
    query.log.commit(mapped(A, B_RENAMED))
    query.log.commit(add("1"))
    stream = query.stream()
    # On a restart Spark asks for the last batch.
    with pytest.raises(InvalidRequest) as caught:
        stream.batch(None, Offset("t", 2))
    assert caught.value.code == "stream-metadata-changed"
    assert [columns(entry) for entry in query.entries()] == [["a", "b"]]
    with pytest.raises(InvalidRequest):
        query.run(Offset("t", 2))
    assert query.run(Offset("t", 2, PASSED), **{RENAME: "always"}) == (Offset("t", 4), ["1"])
    late = Query("tracked-too-late")
    late.log.commit(mapped(A, B_RENAMED))
    late.log.commit(add("1"))
    with pytest.raises(InvalidRequest) as caught:
        late.stream().batch(Offset("t", 1), Offset("t", 4))
    assert caught.value.code == "tracking-log-too-late"
    assert late.entries() == []


def test_a_snapshot_that_changed_before_it_was_read() -> None:
    query = Query("tracked-snapshot")
    stream = query.stream()
    assert stream.tracker is not None
    stream.tracker.begin(1)
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    with pytest.raises(InvalidRequest):
        query.run()
    assert query.entries()[1]["previousMetadataSeqNum"] == -1
    assert query.run() == (Offset("t", 3), ["0"])


def test_whose_log_it_is() -> None:
    query = Query("tracked-whose")
    query.run()
    tracker = query.stream().tracker
    assert tracker is not None
    for place, code in (
        ("file:/c/sources/1", "tracking-location-conflict"),
        ("file:/d/sources/0", "tracking-location-outside"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            tracker.start(lambda place=place: place)  # type: ignore[misc]
        assert caught.value.code == code
    query.settings["spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation"] = "true"
    with pytest.raises(InvalidRequest, match="that of the source"):
        tracker.start(lambda: "file:/d/sources/0")
    with pytest.raises(InvalidRequest) as caught:
        load_tracking_log(query.kept, "u")
    assert caught.value.code == "tracking-log-of-other-table"
    # Somebody else wrote the next entry meanwhile.
    query.kept.put("1", b"v1\n{}")
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    with pytest.raises(InvalidRequest) as caught:
        tracker.committed(Offset("t", 2, CHANGED))
    assert caught.value.code == "tracking-location-conflict"
    for damage in (b"v1\n{}", b"", b"v2\n{}", b"v1\nno"):
        query.kept.put("1", damage)
        with pytest.raises(CorruptTable) as damaged:
            load_tracking_log(query.kept, "t")
        assert damaged.value.code == "tracking-log-damaged"


def test_the_number_of_a_source_is_javas() -> None:
    # As delta-spark 4.4 named `file:/tmp/c/sources/0`; of signs beyond 16 bits each half counts.
    assert [java_hash(text) for text in ("", "a", "polygenelubricants", "\U0001f600")] == [0, 97, -2147483648, 1772899]


def test_changes_must_be_recorded_at_every_version() -> None:
    query = Query("tracked-feed")
    feed = {"delta__enableChangeDataFeed": "true"}
    query.log.commit(mapped(A, B, **feed))
    query.log.commit(mapped(A, B))
    query.log.commit(mapped(A, B, **feed), add("1"))
    stream = query.stream()
    stream.options = StreamOptions(starting_version=2, changes=True)
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(stream.begin())
    assert (caught.value.code, caught.value.version) == ("change-feed-disabled", 3)


@pytest.mark.parametrize("changes", [True, False])
def test_a_full_batch_of_changes_ends_before_a_mark(changes: bool) -> None:
    """As in delta-spark 4.4: one of rows looks as far as the mark, one of a change feed does not."""
    query = Query(f"tracked-full-{changes}")
    feed = {"delta__enableChangeDataFeed": "true"}
    query.log.commit(mapped(A, B, **feed))
    stream = query.stream()
    stream.options = StreamOptions(starting_version=2, changes=changes, max_files=1)
    begin = stream.begin()
    stream.latest(begin)
    query.log.commit(add("1"))
    query.log.commit(mapped(A, B_RENAMED, **feed))
    mark = Offset("t", 4, CHANGED)
    until = stream.end_of_run(begin)
    assert until == mark
    full = Offset("t", 4) if changes else mark
    assert stream.latest(begin) == stream.latest(begin, until=until) == full
    if changes:
        assert stream.latest(full) == stream.latest(full, until=until) == mark


def test_a_stream_goes_on_behind_a_mark_without_its_log() -> None:
    query = Query("tracked-left")
    query.log.commit(mapped(A, B_RENAMED))
    query.log.commit(add("1"))
    stream = Stream(load_snapshot(query.log.store), StreamOptions())
    assert stream.latest(Offset("t", 2, PASSED)) == Offset("t", 4)
    for start in (Offset("t", 2), Offset("t", 2, CHANGED)):
        with pytest.raises(InvalidRequest) as caught:
            Stream(load_snapshot(query.log.store), StreamOptions()).latest(start)
        assert caught.value.code == "stream-columns-remapped"


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_frame_is_not_started_behind_a_change_that_others_wrote_down(is_begun: bool) -> None:
    query = Query(f"tracked-stale-{is_begun}")
    end = query.run()[0] if is_begun else None
    same, stale = query.load(), query.load()
    assert same.tracker is not None and stale.tracker is not None
    if end is None:
        end, _ = query.run()
    same.tracker.start(lambda: PLACE)
    assert same.latest(end) == end
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    with pytest.raises(InvalidRequest):
        query.run(end)
    query.log.commit(add("1"))
    assert query.run(Offset("t", 2, PASSED)) == (Offset("t", 4), ["1"])
    for stream in (same, stale):
        assert stream.tracker is not None
        for _ in range(2):
            with pytest.raises(InvalidRequest) as caught:
                stream.tracker.start(lambda: PLACE)
            assert (caught.value.code, caught.value.version) == ("stream-metadata-changed", 2)


@pytest.mark.parametrize("is_limited", [True, False])
def test_what_a_run_without_the_log_has_passed_is_written_down(is_limited: bool) -> None:
    query = Query(f"tracked-passed-{is_limited}")
    end, _ = query.run()
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    query.log.commit(add("1"))
    passed = Stream(load_snapshot(query.log.store), StreamOptions()).latest(end)
    assert passed == Offset("t", 4)
    stream = query.stream()
    assert stream.schema.names == ("a", "b")
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(passed) if is_limited else stream.end_of_run(passed)
    assert (caught.value.code, caught.value.version) == ("stream-metadata-changed", 3)
    query.log.commit(add("2"))
    assert query.stream().schema.names == ("a", "b", "c")
    assert query.run(passed) == (Offset("t", 5), ["2"])


@pytest.mark.parametrize("starting_version", [4, "latest"])
def test_a_stream_that_begins_behind_what_is_written_down(starting_version: int | str) -> None:
    """A run that died before its first offset, or began elsewhere, has written down other columns than there are."""
    query = Query(f"tracked-later-{starting_version}")
    stream = query.stream()
    stream.options = StreamOptions(starting_version=1)
    assert stream.latest(None) == Offset("t", 2)
    query.log.commit(add("1"))
    query.log.commit(mapped(B_RENAMED))
    query.log.commit(add("2"))
    stream = query.stream()
    stream.options = StreamOptions(starting_version=starting_version)
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(None)
    assert caught.value.code == "stream-metadata-changed"
    stream = query.stream()
    stream.options = StreamOptions(starting_version=starting_version)
    # Nothing has been read by the columns before: nobody has to agree.
    assert stream.schema.names == ("bb",)
    assert stream.latest(None) == Offset("t", 5)
    assert query.entries()[-1]["previousMetadataSeqNum"] == -1


def test_a_run_behind_the_first_mark_of_what_is_written_down_reads_what_there_is() -> None:
    """Over Connect a query stops there; on a classic session only one that dies between the two marks."""
    query = Query("tracked-between")
    query.run()
    query.log.commit(mapped(A, B, ("c", "p3", "long")))
    query.log.commit(add("1"))
    first = Offset("t", 2, CHANGED)
    # Before that is written down, nothing passes it.
    assert query.stream().end_of_run(first) == Offset("t", 2, PASSED)
    stream = query.stream()
    assert stream.tracker is not None
    with pytest.raises(InvalidRequest):
        stream.tracker.committed(first)
    assert query.run(first) == (Offset("t", 4), ["1"])


def test_a_stream_that_begins_before_what_is_written_down() -> None:
    query = Query("tracked-earlier")
    query.log.commit(add("1"))
    query.log.commit(mapped(B_RENAMED))
    query.log.commit(mapped(A, B))
    query.log.commit(add("2"))

    def begun(starting_version: int | str) -> Stream:
        stream = query.stream()
        stream.options = StreamOptions(starting_version=starting_version)
        return stream

    assert begun("latest").latest(None) == Offset("t", 6)
    # The columns are the same, but in between they were others.
    assert begun(2).latest(None) == Offset("t", 3, CHANGED)
    assert [entry["deltaCommitVersion"] for entry in query.entries()] == [5, 2]
    query.log.commit(mapped(B_RENAMED))
    other = begun("latest")
    with pytest.raises(InvalidRequest):
        other.latest(None)
    stream = begun("latest")
    assert stream.latest(None) == Offset("t", 7) and stream.schema.names == ("bb",)
    with pytest.raises(InvalidRequest):
        begun(1).latest(None)


def test_changes_without_files_right_behind_the_beginning_are_not_gone_back_for() -> None:
    """The frame has taken them for one, so that nothing would ever be read."""
    query = Query("tracked-skimmed-begin")
    query.log.commit(mapped(A, B, delta__appendOnly="true"))
    query.log.commit(mapped(A, B, ("c", "p3", "long"), delta__appendOnly="true"))
    query.log.commit(add("1"))
    stream = query.stream()
    stream.options = StreamOptions(starting_version=2)
    with pytest.raises(InvalidRequest):
        stream.latest(None)
    stream = query.stream()
    stream.options = StreamOptions(starting_version=2)
    assert [entry["deltaCommitVersion"] for entry in query.entries()] == [2, 3]
    assert (stream.latest(None), stream.schema.names) == (Offset("t", 5), ("a", "b", "c"))
