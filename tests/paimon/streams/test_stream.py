"""Which snapshots a stream of a Paimon table reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import FaultyStore
from paimon_tables import HandWritten

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.streams.begin import read_consumer
from alluvium.paimon.streams.offset import Offset, format_offset, parse_offset
from alluvium.paimon.streams.stream import Stream
from alluvium.paimon.view.changes import KINDS, plan_changes
from alluvium.paimon.view.merge import KIND
from alluvium.paimon.view.source import PaimonSource
from alluvium.portable.reader import read_batches
from alluvium.storage.open import open_store

KEYED = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])


def stream_of(table: HandWritten, said: Mapping[str, str] | None = None) -> Stream:
    return Stream(load_snapshot(open_store(str(table.path))), said or {})


def views(stream: Stream, start: Offset | None, end: Offset) -> list[tuple[str, int, int, str]]:
    return [(s.view.name, s.view.start, s.view.end, s.view.mode) for s in stream.batch(start, end)]


def test_rows_then_changes(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    table.commit([{"k": 1, "v": "a"}])
    table.commit([{"k": 1, "v": "b"}])
    stream = stream_of(table)
    begin = stream.latest(None)
    assert begin == Offset(2, is_whole=True)
    assert stream.batch(None, begin) == ()
    end = stream.latest(begin)
    assert end == Offset(3)
    (whole,) = stream.batch(begin, end)
    assert whole.snapshot.version == 2
    assert [part.merge is not None for part in whole.plan_scan().parts] == [True]
    assert stream.latest(end) == end
    table.commit([{"k": 1, "v": "c"}, {"k": 2, "v": "d"}], ["-D", "+I"])
    assert stream.latest(end) == Offset(4)
    assert views(stream, begin, Offset(4)) == [("rows", 0, 0, ""), ("changes", 2, 3, "streamed")]
    assert views(stream, end, Offset(4)) == [("changes", 2, 3, "streamed")]
    assert stream.batch(end, end) == ()


def test_a_changelog_is_read_where_the_table_makes_one(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **{"changelog-producer": "input"})
    table.commit([{"k": 1, "v": "a"}])
    assert views(stream_of(table), Offset(1), Offset(2)) == [("changes", 0, 1, "changelog")]


def rows_of(stream: Stream, start: Offset | None, end: Offset) -> list[list[tuple[str, object, object]]]:
    """The rows of each source, with their kinds, sorted."""
    found = []
    for source in stream.batch(start, end):
        plan = source.plan_scan()
        kind = next((name for name in plan.schema.names if name == KIND), None)
        batches = read_batches(plan, stream.snapshot.store, open_store, plan.schema.names)
        rows = [row for batch in batches for row in batch.to_pylist()]
        found.append(sorted((KINDS[row[kind]] if kind else "+I", row["k"], row["v"]) for row in rows))
    return found


@pytest.mark.parametrize(
    ("options", "begun"),
    [
        ({}, "abc"),
        ({"changelog-producer": "input"}, "abc"),
        ({"force-lookup": "true"}, "abc"),
        ({"deletion-vectors.enabled": "true"}, "abc"),
        ({"merge-engine": "first-row"}, "abc"),
        ({"changelog-producer": "lookup"}, "ab"),
        ({"changelog-producer": "lookup", "merge-engine": "first-row"}, "ab"),
        ({"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}, "ab"),
        ({"changelog-producer": "full-compaction"}, "a"),
        ({"changelog-producer": "full-compaction", "num-levels": "4"}, "b"),
        ({"changelog-producer": "full-compaction", "num-sorted-run.compaction-trigger": "3"}, "b"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value.values()) or "none",
)
def test_what_a_changelog_will_bring_is_not_read_at_the_start(tmp_path: Path, options: dict, begun: str) -> None:
    """`DataTableStreamScan.tryFirstPlan`: level 0 comes in a lookup's changelog, all but the highest in a full one's."""
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **options)
    highest = 3 if begun == "b" else 5
    levels = {"a": highest, "b": 2, "c": 0} if begun != "b" else {"a": 2, "b": highest, "c": 0}
    for key, (value, level) in enumerate(levels.items()):
        table.commit([{"k": key, "v": value}], level=level)
    found = rows_of(stream_of(table), Offset(3, is_whole=True), Offset(4))
    assert "".join(value for _, _, value in found[0]) == begun


def test_level_0_of_first_rows_is_merged_at_the_start_and_hidden_from_batches(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **{"merge-engine": "first-row"})
    table.commit([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], level=5)
    table.commit([{"k": 2, "v": "c"}, {"k": 3, "v": "d"}])
    table.commit([{"k": 3, "v": "e"}])
    stream = stream_of(table)
    assert rows_of(stream, Offset(3, is_whole=True), Offset(4)) == [[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "d")]]
    (whole,) = stream.batch(Offset(3, is_whole=True), Offset(4))
    as_batch = PaimonSource(stream.snapshot)
    assert sum(part.files.num_rows for part in as_batch.plan_scan().parts) == 1
    assert whole.identity != as_batch.identity
    shown = load_snapshot(open_store(str(table.path)), options={"deletion-vectors.merge-on-read": "true"})
    assert sum(part.files.num_rows for part in PaimonSource(shown).plan_scan().parts) == 1


def test_rows_that_wait_for_a_bucket_are_told_of_when_they_are_written(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], bucket="-2")
    table.commit([{"k": 1, "v": "a"}], level=5)
    table.commit([{"k": 1, "v": "b"}], bucket=-2)
    table.commit([{"k": 1, "v": "b"}], ["-D"], bucket=-2)
    stream = stream_of(table)
    waiting = [("+I", 1, "b"), ("-D", 1, "b")]
    assert rows_of(stream, Offset(3, is_whole=True), Offset(4)) == [[("+I", 1, "a")], waiting]
    assert rows_of(stream, Offset(2), Offset(4)) == [waiting]
    assert plan_changes(stream.snapshot, 1, 3, "delta").parts[0].files.num_rows == 0


def test_waiting_rows_come_in_the_changelog_where_there_is_one(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], bucket="-2", **{"changelog-producer": "lookup"})
    table.commit([{"k": 1, "v": "a"}], level=5)
    table.commit([{"k": 1, "v": "b"}], bucket=-2)
    stream = stream_of(table)
    assert rows_of(stream, Offset(2, is_whole=True), Offset(3)) == [[("+I", 1, "a")]]
    assert rows_of(stream, Offset(1), Offset(3)) == [[]]


def test_streams_know_nothing_of_a_fallback_branch(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("p", pa.string(), False), *KEYED])
    table = HandWritten(tmp_path / "t", schema, ["p", "k"], ["p"])
    table.commit([{"p": "x", "k": 1, "v": "a"}])
    table.commit([{"p": "y", "k": 2, "v": "b"}])
    for part in ("schema", "snapshot"):
        shutil.copytree(table.path / part, table.path / "branch" / "branch-b" / part)
    table.expire(2)
    snapshot = load_snapshot(open_store(str(table.path)), options={"scan.fallback-branch": "b"})
    assert sum(part.files.num_rows for part in PaimonSource(snapshot).plan_scan().parts) == 2
    assert rows_of(Stream(snapshot, {}), Offset(1, is_whole=True), Offset(2)) == [[("+I", 1, "a")]]


OVERWRITES = {"streaming-read-overwrite": "true"}


@pytest.mark.parametrize("options", [OVERWRITES, {**OVERWRITES, "merge-engine": "first-row"}], ids=["last", "first"])
def test_overwrites_take_back_what_they_removed(tmp_path: Path, options: dict[str, str]) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **options)
    table.commit([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], ["+I", "+U"])
    table.commit([{"k": 1, "v": "c"}, {"k": 3, "v": "d"}])
    table.commit([{"k": 9, "v": "o"}], overwrites=True)
    table.commit([{"k": 4, "v": "e"}])
    table.commit([{"k": 5, "v": "f"}], overwrites=True)
    left = "a" if "merge-engine" in options else "c"
    told = [
        [("+I", 1, "c"), ("+I", 3, "d")],
        [("-D", 1, left), ("-D", 2, "b"), ("-D", 3, "d")],
        [("+I", 9, "o")],
        [("+I", 4, "e")],
        [("-D", 4, "e"), ("-D", 9, "o")],
        [("+I", 5, "f")],
    ]
    stream = stream_of(table)
    assert rows_of(stream, Offset(2), Offset(6)) == told
    assert rows_of(stream, Offset(3), Offset(4)) == told[1:3]
    of_reader = load_snapshot(open_store(str(table.path)), options={"streaming-read-overwrite": "false"})
    assert [len(rows) for rows in rows_of(Stream(of_reader, {}), Offset(2), Offset(6))] == [3]


def test_keys_that_had_gone_before_an_overwrite_are_not_taken_back_again(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **OVERWRITES)
    table.commit([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    table.commit([{"k": 1, "v": None}], ["-D"])
    table.commit([{"k": 3, "v": "c"}, {"k": 4, "v": "d"}], ["+I", "-D"], overwrites=True)
    assert rows_of(stream_of(table), Offset(3), Offset(4)) == [[("-D", 2, "b")], [("+I", 3, "c")]]


def test_an_overwrite_of_what_has_expired_is_not_told_by_half(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **OVERWRITES)
    table.commit([{"k": 1, "v": "a"}])
    table.commit([{"k": 2, "v": "b"}], overwrites=True)
    stream = stream_of(table)
    table.expire(1)
    with pytest.raises(NotFound) as caught:
        stream.batch(Offset(2), Offset(3))
    assert (caught.value.code, caught.value.version) == ("stream-lost-data", 1)


def test_a_first_overwrite_removes_nothing(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **OVERWRITES)
    table.commit([{"k": 1, "v": "a"}], overwrites=True)
    assert rows_of(stream_of(table), Offset(1), Offset(2)) == [[], [("+I", 1, "a")]]


def test_appended_tables_tell_what_overwrites_added(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, **{"streaming-read-append-overwrite": "true"})
    table.commit([{"k": 1, "v": "a"}])
    table.commit([{"k": 2, "v": "b"}], overwrites=True)
    table.commit([{"k": 3, "v": "c"}])
    stream = stream_of(table)
    assert rows_of(stream, Offset(2), Offset(4)) == [[("+I", 2, "b"), ("+I", 3, "c")]]
    assert plan_changes(stream.snapshot, 1, 3, "delta").parts[0].files.num_rows == 1
    of_reader = load_snapshot(open_store(str(table.path)), options={"streaming-read-append-overwrite": "false"})
    assert rows_of(Stream(of_reader, {}), Offset(2), Offset(4)) == [[("+I", 3, "c")]]


def test_level_0_is_read_at_the_start_of_tables_with_vectors(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **{"deletion-vectors.enabled": "true"})
    table.commit([{"k": 1, "v": "a"}])
    stream = stream_of(table)
    (whole,) = stream.batch(Offset(1, is_whole=True), Offset(2))
    assert sum(part.files.num_rows for part in whole.plan_scan().parts) == 1


def test_what_has_expired_or_is_not_there(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    for n in range(3):
        table.commit([{"k": n, "v": "a"}])
    stream = stream_of(table)
    table.expire(1)
    for start in (Offset(1), Offset(1, is_whole=True), Offset(5)):
        with pytest.raises(NotFound) as caught:
            stream.latest(start)
        assert (caught.value.code, caught.value.version) == ("stream-lost-data", start.snapshot_id)
    for number in (2, 3):
        table.expire(number)
    with pytest.raises(NotFound) as caught:
        stream.latest(Offset(2))
    assert caught.value.code == "not-a-table"
    # Nothing was read of a table that had no snapshot yet.
    assert stream.latest(Offset(1)) == Offset(1)


def test_consumers_are_told(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    table.commit([{"k": 1, "v": "a"}])
    stream = stream_of(table, {"consumer-id": "mine"})
    stream.committed(Offset(2))
    assert read_consumer(stream.snapshot, "mine") == 2
    stream_of(table).committed(Offset(9))
    assert read_consumer(stream.snapshot, "mine") == 2


def test_a_consumer_is_not_told_of_a_snapshot_that_is_still_to_be_read_as_a_whole(tmp_path: Path) -> None:
    """A query that goes on by the consumer alone would read what the snapshot changed, and none of the rows before."""
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    for n in range(2):
        table.commit([{"k": n, "v": "a"}])
    said = {"consumer-id": "mine"}
    stream = stream_of(table, said)
    begin = stream.latest(None)
    # Spark calls the first batch done when it has planned the second one: no row has been read.
    stream.committed(begin)
    assert stream_of(table, said).latest(None) == begin == Offset(2, is_whole=True)
    stream.committed(stream.latest(begin))
    assert stream_of(table, said).latest(None) == Offset(3)


def test_a_table_that_was_rolled_back_or_made_anew_while_it_was_read(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    for n in range(3):
        table.commit([{"k": n, "v": "a"}])
    stream = stream_of(table)
    end = stream.latest(stream.latest(None))
    shutil.rmtree(table.path)
    again = HandWritten(table.path, KEYED, ["k"])
    for n in range(4):
        again.commit([{"k": n, "v": "b"}], time_ms=7)
    # Snapshot 4 is there; of the rows of the three before it none has been read.
    with pytest.raises(NotFound) as caught:
        stream.latest(end)
    assert (caught.value.code, caught.value.version) == ("stream-lost-data", 4)
    other = stream_of(again)
    end = other.latest(other.latest(None))
    again.commit([{"k": 9, "v": "b"}])
    again.expire(4)
    assert other.latest(end) == Offset(6), "what expired tells nothing"


def test_offsets() -> None:
    text = '{"snapshotId":3,"index":-1,"scanSnapshot":true}'
    assert format_offset(Offset(3, is_whole=True)) == text
    assert parse_offset(text) == Offset(3, is_whole=True)
    with pytest.raises(UnsupportedFeature) as parted:
        parse_offset(text.replace("-1", "4"))
    assert parted.value.code == "parted-changes"
    for wrong in ("{}", "3", "no"):
        with pytest.raises(InvalidRequest) as caught:
            parse_offset(wrong)
        assert caught.value.code == "invalid-offset"


class Asked(FaultyStore):
    """Takes note of what is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(open_store(str(path)))
        self.read: list[str] = []

    def get(self, path: str) -> bytes:
        self.read.append(path)
        return super().get(path)


def test_where_nothing_is_new_nothing_is_read(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    table.commit([{"k": 1, "v": "a"}])
    store = Asked(table.path)
    stream = Stream(load_snapshot(store), {})
    end = stream.latest(stream.latest(None))
    store.read.clear()
    assert stream.latest(end) == end and store.read == []
    table.commit([{"k": 2, "v": "a"}])
    assert stream.latest(end) == Offset(3) and store.read != []
