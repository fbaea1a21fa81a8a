"""Which files a stream reads, and where it ends. Offsets are those that delta-spark 4.4 wrote for the same tables."""

from __future__ import annotations

import re

import pytest
from stream_log import Action, Log, add, batches, cdc, masked, metadata, paths, remove

from alluvium.api.delta.streams.source import DeltaStream
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.streams.offset import Offset, format_offset
from alluvium.delta.streams.stream import Stream
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.tree import Literal
from alluvium.schema.types import BOOLEAN


def test_rows_first_then_what_is_appended() -> None:
    log = Log("stream-first", add("b", modified=2), add("a", modified=2))
    log.commit(add("c", modified=1))
    stream = log.stream()
    end = stream.latest(None)
    assert end == Offset("t", 2)
    # By time, then path.
    assert paths(stream.batch(None, end)) == ["c", "a", "b"]
    assert stream.latest(end) == end
    log.commit(add("d"))
    assert stream.latest(end) == Offset("t", 3)
    assert paths(stream.batch(end, Offset("t", 3))) == ["d"]


def test_an_empty_table_is_begun() -> None:
    assert Log("stream-empty").stream().latest(None) == Offset("t", 1)


def test_versions_without_rows_are_passed() -> None:
    log = Log("stream-passed", add("a"))
    stream = log.stream()
    start = stream.latest(None)
    assert start is not None
    log.commit(metadata(a="b"))
    log.commit(add("b", data_change=False), remove("a", data_change=False), operation="OPTIMIZE")
    assert stream.latest(start) == Offset("t", 3)
    assert stream.batch(start, Offset("t", 3)) == ()


def test_limits_by_files() -> None:
    log = Log("stream-files", *(add(f"s{n}") for n in range(3)))
    for version in range(2):
        log.commit(*(add(f"{version}{n}") for n in range(3)))
    stream = log.stream(max_files=2)
    assert stream.latest(None) == Offset("t", 2, 1, in_snapshot=True)
    assert [len(each) for each in batches(stream)] == [2, 2, 2, 2, 1]
    by_version = log.stream(max_files=2, starting_version=1)
    assert batches(by_version) == [["00", "01"], ["02", "10"], ["11", "12"]]


def test_what_is_still_to_be_read() -> None:
    log = Log("stream-backlog", *(add(f"s{n}", size=n) for n in range(3)))
    stream = log.stream(max_files=2)
    begin = Offset("t", 0, in_snapshot=True)
    assert stream.backlog(begin) is None
    end = stream.latest(None)
    assert end is not None
    assert (end.index, stream.backlog(end)) == (1, (1, 2))
    log.commit(add("a", size=7), add("b", size=8), add("c", size=9))
    log.commit(add("moved", data_change=False), remove("a", data_change=False))
    stream.end_of_run(end)
    assert stream.backlog(end) == (4, 26)
    assert stream.backlog(Offset("t", 1, 0)) == (2, 17)
    assert stream.backlog(Offset("t", 3)) == (0, 0)
    for version in range(40):
        log.commit(add(f"more{version}"))
    stream.end_of_run(end)
    assert stream.backlog(end) is None
    assert stream.backlog(Offset("t", 20)) == (23, 230)


def test_the_first_batch_ends_with_the_snapshot() -> None:
    log = Log("stream-end", add("a"))
    stream = log.stream()
    begin = stream.latest(None)
    log.commit(add("b"))
    # After a crash it is found by its end alone.
    assert begin is not None
    assert paths(stream.batch(None, begin)) == ["a"]


@pytest.mark.parametrize("named", [0, 1, 2])
def test_the_first_batch_after_a_crash_is_that_which_was_begun(named: int) -> None:
    """A beginning that is named only now counts no more: rows would be lost, or come twice."""
    log = Log(f"stream-begun-{named}", *(add(name) for name in "abc"))
    inside = log.stream(max_files=2).latest(None)
    whole = log.stream().latest(None)
    assert inside is not None and whole is not None
    log.commit(add("d"))
    log.commit(add("e"))
    stream = log.stream(max_files=2, starting_version=named)
    assert paths(stream.batch(None, inside)) == ["a", "b"]
    assert paths(stream.batch(inside, Offset("t", 1))) == ["c"]
    assert paths(stream.batch(None, whole)) == ["a", "b", "c"]
    began = log.stream(max_files=1, starting_version=1).latest(None)
    assert began is not None
    assert paths(log.stream(starting_version=1).batch(None, began)) == ["d"]


def test_streams_that_leave_out_other_files_are_told_apart() -> None:
    """Spark reads what is equal once."""
    log = Log("stream-equal", add("a"), add("b"))
    ways: list[dict[str, object]] = [{}, {"exclude": re.compile("a")}, {"exclude": re.compile("b")}]
    batched = [log.stream(**way).batch(None, Offset("t", 1)) for way in ways]
    assert list(map(paths, batched)) == [["a", "b"], ["b"], ["a"]]
    assert len({source.identity for (source,) in batched}) == 3
    (again,) = log.stream().batch(None, Offset("t", 1))
    assert again.identity == batched[0][0].identity
    log.commit(add("c"), remove("a"))
    log.commit(add("d"))
    ways = [{"ignore_changes": True}, {"skip_changes": True}]
    batched = [log.stream(**way).batch(Offset("t", 1), Offset("t", 3)) for way in ways]
    assert list(map(paths, batched)) == [["c", "d"], ["d"]]
    assert len({source.identity for (source,) in batched}) == 2


def test_a_run_goes_on_behind_the_snapshot() -> None:
    log = Log("stream-run", add("a"), add("b"))
    stream = log.stream(max_files=1)
    inside = stream.latest(None)
    assert inside == Offset("t", 0, 0, in_snapshot=True)
    log.commit(add("c"))
    assert batches(stream, inside) == [["b"], ["c"]]


def test_limits_by_bytes() -> None:
    log = Log("stream-bytes", *(add(f"s{n}") for n in range(3)))
    assert [len(each) for each in batches(log.stream(max_bytes=11, max_files=None))] == [2, 1]


def test_event_order_takes_all_rows_at_once() -> None:
    log = Log("stream-order", *(add(f"s{n}") for n in range(3)))
    assert [len(each) for each in batches(log.stream(max_files=1, in_event_order=True))] == [3]


def test_latest_is_written_down() -> None:
    log = Log("stream-latest", add("a"))
    stream = log.stream(starting_version="latest")
    start = stream.latest(None)
    assert start == Offset("t", 1)
    assert stream.batch(None, start) == ()
    log.commit(add("b"))
    assert batches(stream, start) == [["b"]]


@pytest.mark.parametrize("version", [9, 3])
def test_a_beginning_in_the_future(version: int) -> None:
    log = Log(f"stream-future-{version}", add("a"))
    with pytest.raises(NotFound) as caught:
        log.stream(starting_version=version).latest(None)
    assert caught.value.code == "missing-version"


def test_a_beginning_in_the_future_that_is_allowed() -> None:
    log = Log("stream-late", add("a"))
    for options in ({"starting_version": 1}, {"starting_ms": 1 << 50}):
        # As of "latest", it is written down: what comes until the next run is not passed over.
        assert log.stream(**options, may_begin_late=True).latest(None) == Offset("t", 1)
    late = log.stream(starting_version=3, may_begin_late=True)
    assert late.latest(None) is None
    for name in ("b", "c", "d"):
        log.commit(add(name))
    assert batches(late) == [["d"]]


def test_by_time() -> None:
    log = Log("stream-time", add("a"))
    stream = log.stream(starting_ms=0)
    assert batches(stream) == [["a"]]


def test_deletes_stop_a_stream() -> None:
    log = Log("stream-deletes", add("a"))
    log.commit(remove("a"), operation="DELETE")
    with pytest.raises(InvalidRequest) as caught:
        log.stream(starting_version=0).latest(None)
    error = caught.value
    assert (error.code, error.version, error.path) == ("stream-source-deleted", 1, "a")
    assert "DELETE" in error.message
    assert error.hint is not None
    assert "ignoreDeletes" in error.hint
    assert batches(log.stream(starting_version=0, ignore_deletes=True)) == [["a"]]


def test_updates_stop_a_stream() -> None:
    log = Log("stream-updates", add("a"))
    log.commit(remove("a"), add("b"), operation="UPDATE")
    log.commit(add("c"))
    for options in ({}, {"ignore_deletes": True}):
        with pytest.raises(InvalidRequest) as caught:
            log.stream(starting_version=0, **options).latest(None)
        assert (caught.value.code, caught.value.version) == ("stream-source-changed", 1)
    # On a restart Spark asks for the last batch under other options, and drops it: only who reads it is told.
    (refused,) = log.stream(starting_version=0).batch(None, Offset("t", 3))
    refused.plan_scan(None)
    with pytest.raises(InvalidRequest):
        refused.plan_scan(Literal(True, BOOLEAN))
    assert batches(log.stream(starting_version=0, ignore_changes=True)) == [["a", "b", "c"]]
    assert batches(log.stream(starting_version=0, skip_changes=True)) == [["a", "c"]]
    assert batches(log.stream(starting_version=0, skip_versions=((1, 1),))) == [["a", "c"]]


def test_excluded_files_are_counted_but_not_read() -> None:
    log = Log("stream-exclude", add("0keep"), add("1drop"), add("2keep"))
    assert batches(log.stream(exclude=re.compile("drop"), max_files=2)) == [["0keep"], ["2keep"]]


def test_recorded_changes_that_are_excluded_are_not_made_up_from_files() -> None:
    """Beside delta-spark's: the files of an UPDATE stood as rows that were deleted and inserted, with all that it copied."""
    log = Log("stream-exclude-feed", add("a"), delta__enableChangeDataFeed="true")
    log.commit(remove("a"), add("b"), cdc("_change_data/cdc-1"), operation="UPDATE")
    log.commit(remove("b"), add("c"), cdc("_change_data/cdc-2"), cdc("_change_data/cdc-3"), operation="UPDATE")
    stream = log.stream(changes=True, starting_version=0, exclude=re.compile("cdc-[12]"))
    assert [sorted(batch) for batch in batches(stream)] == [["_change_data/cdc-3", "a"]]
    kept = log.stream(changes=True, starting_version=0, exclude=re.compile("^[abc]$"))
    assert batches(kept) == [["_change_data/cdc-1", "_change_data/cdc-2", "_change_data/cdc-3"]]


def test_a_file_that_was_added_again_is_read_twice() -> None:
    log = Log("stream-twice", add("a"))
    log.commit(remove("a"), add("a"), operation="DELETE")
    assert batches(log.stream(starting_version=0, ignore_changes=True)) == [["a", "a"]]


def test_columns_that_were_added_while_it_ran() -> None:
    log = Log("stream-columns", add("a"))
    stream = log.stream()
    start = stream.latest(None)
    assert start is not None
    log.commit(metadata((("id", "long"), ("n", "string"))), add("b"))
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(start)
    assert (caught.value.code, caught.value.version, caught.value.column) == ("stream-schema-changed", 1, "n")
    assert batches(log.stream(), start) == [["b"]]


def test_a_type_that_was_changed_before() -> None:
    log = Log("stream-types", add("a"))
    start = log.stream().latest(None)
    log.commit(metadata((("id", "string"),)), remove("a"), add("b"), operation="WRITE")
    with pytest.raises(InvalidRequest) as caught:
        log.stream(skip_changes=True).latest(start)
    assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 0)


def test_a_table_that_is_partitioned_anew_stops_a_stream() -> None:
    log, columns = Log("stream-partitions", add("a")), (("id", "long"), ("p", "long"))
    log.commit(metadata(columns))
    stream = log.stream(skip_changes=True)
    start = stream.latest(None)
    assert start is not None
    log.commit(metadata(columns, partition_by=("p",)), remove("a"), operation="WRITE")
    log.commit(add("b"))
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(start)
    assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 2)
    # For good: what was read last is partitioned otherwise than the table is now.
    for again in (log.stream(skip_changes=True), log.stream(skip_changes=True, starting_version=1)):
        with pytest.raises(InvalidRequest) as caught:
            again.latest(start if again.options.starting_version is None else None)
        assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 1)
        assert "schemaTrackingLocation" in str(caught.value.hint)
        assert ("where to start" in caught.value.message) is again.options.names_start
    assert batches(log.stream(skip_changes=True, allows_new_partitions=True), start) == [["b"]]
    assert batches(log.stream(starting_version=3)) == [["b"]]


def test_a_table_that_is_partitioned_anew_between_load_and_start() -> None:
    """As in delta-spark: what begins with all rows begins with those of now, and has been told of no other partitions."""
    log, columns = Log("stream-partitions-early", add("a")), (("id", "long"), ("p", "long"))
    log.commit(metadata(columns))
    stream = log.stream()
    log.commit(metadata(columns, partition_by=("p",)), remove("a"), add("b"))
    first = stream.latest(None)
    assert first is not None
    assert paths(stream.batch(None, first)) == ["b"]
    log.commit(add("c"))
    assert batches(stream, first) == [["c"]]
    # What comes then is told all the same.
    log.commit(metadata(columns), add("d"))
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(Offset("t", 4))
    assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 4)


def test_another_table() -> None:
    log = Log("stream-other", add("a"))
    stream = log.stream()
    log.commit(metadata(table_id="u"))
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(None)
    assert caught.value.code == "different-table"


def test_a_table_made_anew_between_load_and_start() -> None:
    log = Log("stream-anew", add("a"))
    log.commit(add("b"))
    stream, reached = log.stream(), Offset("t", 1)
    log.lose(0, 1)
    log.version = -1
    log.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata(table_id="another"), add("x"))
    log.commit(add("y"))
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(reached)
    assert (caught.value.code, caught.value.version) == ("different-table", 0)
    # One that took another's place in the same log is read from before that.
    log.commit(metadata(table_id="third"), add("z"))
    replaced = log.stream(starting_version=1)
    assert paths(replaced.batch(None, Offset("third", 3))) == ["y", "z"]
    assert replaced.latest(None) == Offset("third", 3)


def test_a_lost_log() -> None:
    log = Log("stream-lost", add("a"))
    stream = log.stream()
    start = stream.latest(None)
    assert start is not None
    for name in "bcd":
        log.commit(add(name))
    tail = log.stream(fails_on_loss=False)
    log.lose(0, 1, 2)
    with pytest.raises(NotFound) as caught:
        stream.latest(start)
    assert caught.value.code == "stream-lost-data"
    # On a restart Spark asks for the last batch, and drops it: only who reads it is told.
    (lost,) = tail.batch(None, start)
    assert [part.is_complete for part in lost.plan_scan(None).parts] == [False]
    with pytest.raises(NotFound):
        lost.plan_scan(Literal(True, BOOLEAN))
    assert batches(tail, start) == [["d"]]


@pytest.mark.parametrize("is_running", [True, False])
def test_columns_that_changed_in_a_lost_version_stop_a_stream(is_running: bool) -> None:
    """Whoever passes over what is lost must not take the rows behind it for rows of the columns before it."""
    log = Log(f"stream-lost-columns-{is_running}", add("a"))
    stream = log.stream(fails_on_loss=False)
    reached = stream.latest(None)
    assert reached == Offset("t", 1)
    if is_running:
        assert stream.latest(reached) == reached
    log.commit(add("b"))
    log.commit(metadata((("id", "string"), ("other", "long"))))
    log.commit(add("c"))
    write_checkpoint_at(load_snapshot(log.store))
    log.commit(add("d"))
    log.lose(0, 1, 2, 3)
    with pytest.raises(InvalidRequest) as caught:
        stream.latest(reached)
    assert (caught.value.code, caught.value.version) == ("stream-schema-changed", 4)
    # Read anew it goes on behind the loss.
    assert batches(log.stream(fails_on_loss=False), reached) == [["d"]]


def test_changes() -> None:
    log = Log("stream-changes", add("a"), delta__enableChangeDataFeed="true")
    log.commit(add("b"), add("c"))
    log.commit(remove("a"), add("d"), cdc("e"), operation="UPDATE")
    log.commit(add("f"))
    stream = log.stream(changes=True, starting_version=0, max_files=1)
    assert batches(stream) == [["a"], ["b"], ["c"], ["e"], ["f"]]
    assert stream.schema.names[-3:] == ("_change_type", "_commit_version", "_commit_timestamp")
    # delta-spark stops inside a version whose changes are recorded: all of them are read then.
    assert stream.latest(Offset("t", 2, 0)) == Offset("t", 4)
    assert stream.batch(Offset("t", 2, 0), Offset("t", 3)) == ()
    assert paths(stream.batch(Offset("t", 2), Offset("t", 2, 0))) == ["e"]


def test_changes_of_an_overwrite_are_parted_as_delta_spark_parts_them() -> None:
    """Its checkpoints end between them: 4.4 wrote (1, 0), (1, 1), (2, -1) for two files that took the place of one."""
    log = Log("stream-parted-overwrite", add("a"), delta__enableChangeDataFeed="true")
    log.commit(add("b"), add("c"), remove("a"), operation="WRITE")
    log.commit(remove("b"), add("d"), remove("c"), operation="RESTORE")
    stream = log.stream(changes=True, max_files=1)
    ends: list[Offset] = []
    found = []
    while (end := stream.latest(ends[-1] if ends else Offset("t", 1))) != (ends[-1] if ends else None):
        assert end is not None
        found.append(paths(stream.batch(ends[-1] if ends else Offset("t", 1), end)))
        ends.append(end)
    assert [(end.version, end.index) for end in ends] == [(1, 0), (1, 1), (2, -1), (2, 0), (2, 1), (3, -1)]
    assert found == [["b"], ["c"], ["a"], ["b"], ["d"], ["c"]]
    # Behind another engine's offset, too; what is still to be read are "c" and "d".
    stream = log.stream(changes=True)
    assert stream.latest(Offset("t", 1, 0)) == Offset("t", 3)
    assert stream.backlog(Offset("t", 1, 0)) == (2, 20)
    assert stream.backlog(Offset("t", 2, 1)) == (0, 0)
    # Rows are counted by what was added alone.
    rows = log.stream(ignore_changes=True)
    assert rows.latest(Offset("t", 2, 0)) == Offset("t", 3)
    assert rows.backlog(Offset("t", 2)) == (1, 10)
    assert rows.backlog(Offset("t", 2, 0)) == (0, 0)


@pytest.mark.parametrize(
    "actions",
    [
        (remove("a"), add("c"), masked(add("a"))),
        (add("c"), masked(remove("a")), remove("b")),
        (add("c"), masked(add("d"))),
    ],
)
def test_a_version_with_vectors_is_not_parted(actions: tuple[Action, ...]) -> None:
    """As in delta-spark 4.4, whether or not a file has one before and after: RESTORE of files with vectors is whole."""
    log = Log(f"stream-unparted-vectors-{len(str(actions))}", add("a"), add("b"), delta__enableChangeDataFeed="true")
    log.commit(*actions, operation="RESTORE")
    stream = log.stream(changes=True, max_files=1)
    assert stream.latest(Offset("t", 1)) == Offset("t", 2)
    with pytest.raises(UnsupportedFeature) as caught:
        stream.batch(Offset("t", 1, 0), Offset("t", 2))
    assert caught.value.code == "parted-changes"


def test_offsets_between_batches() -> None:
    """As delta-spark 4.4 has them: versions without rows are passed, and changes end at the last file of a version."""

    def offsets(stream: Stream, begin: Offset) -> list[tuple[int, int]]:
        found = []
        while (end := stream.latest(begin)) not in (None, begin):
            assert end is not None
            begin = end
            found.append((end.version, end.index))
        return found

    rows = Log("stream-offsets", add("a"), add("b"))
    rows.commit(add("c"), add("d"))
    rows.commit(remove("a"), operation="DELETE")
    rows.commit(add("e"))
    stream = rows.stream(ignore_deletes=True, max_files=1)
    assert offsets(stream, Offset("t", 0)) == [(0, 0), (1, -1), (1, 0), (3, -1), (4, -1)]
    changes = Log("stream-offsets-of-changes", add("a"), delta__enableChangeDataFeed="true")
    changes.commit(add("b"), add("c"), add("d"))
    changes.commit(add("e"), remove("a"), cdc("f"), cdc("g"), operation="UPDATE")
    changes.commit(add("h"), remove("e"), cdc("i"), operation="DELETE")
    changes.commit(add("j"))
    changes.commit(add("k"), remove("j"), cdc("l"), operation="UPDATE")
    stream = changes.stream(changes=True, max_files=1)
    wanted = [(1, -1), (1, 0), (1, 1), (2, -1), (2, 1), (3, 0), (5, -1), (5, 0)]
    assert offsets(stream, Offset("t", 0)) == wanted
    told = DeltaStream(stream).metrics(format_offset(Offset("t", 5, 0)))
    assert told == {"versionsBehind": "0", "numFilesOutstanding": "0", "numBytesOutstanding": "0"}


@pytest.mark.parametrize(("is_anew", "is_known"), [(False, True), (False, False), (True, True)])
def test_a_version_that_was_read_is_gone(is_anew: bool, is_known: bool) -> None:
    """What comes under its number must not be taken for read."""
    log = Log(f"stream-rolled-back-{is_anew}-{is_known}", add("a"), delta__enableChangeDataFeed="true")
    log.commit(add("b"), remove("a"), cdc("c"), operation="UPDATE")
    stream = log.stream(changes=True, starting_version=0)
    reached = stream.latest(None)
    assert reached == Offset("t", 1, 0)
    assert stream.latest(reached) == reached
    log.lose(1)
    log.version -= 1
    if is_anew:
        log.commit(add("other"), remove("a"), cdc("changes"), operation="UPDATE")
    with pytest.raises(InvalidRequest) as caught:
        (stream if is_known else log.stream(changes=True)).latest(reached)
    assert caught.value.code == "different-table"


def test_changes_begin_with_all_rows() -> None:
    log = Log("stream-changes-first", add("a"), add("b"), delta__enableChangeDataFeed="true")
    assert batches(log.stream(changes=True, max_files=1)) == [["a"], ["b"]]


def test_changes_that_were_not_recorded() -> None:
    log = Log("stream-unrecorded", add("a"))
    log.commit(metadata(delta__enableChangeDataFeed="true"))
    with pytest.raises(InvalidRequest) as caught:
        log.stream(changes=True, starting_version=0).latest(None)
    assert caught.value.code == "change-feed-disabled"


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
@pytest.mark.parametrize("order", ["rraa", "rara", "aarr", "arra"])
def test_what_was_removed_does_not_count_among_new_files(order: str, limit: int) -> None:
    """Other writers name what they remove first; a batch may end within a commit."""
    log = Log(f"removed-{order}-{limit}", add("1"), add("2"), add("3"), add("4"))
    names = {"r": iter(("1", "2")), "a": iter(("5", "6"))}
    log.commit(*({"r": remove, "a": add}[kind](next(names[kind])) for kind in order), operation="UPDATE")
    log.commit(remove("3"), add("7"), operation="UPDATE")
    stream = log.stream(starting_version=1, ignore_changes=True, max_files=limit)
    found = batches(stream)
    assert [path for batch in found for path in batch] == ["5", "6", "7"]
    assert all(len(batch) <= limit for batch in found)
