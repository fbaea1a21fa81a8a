"""What a tracker writes down, and when, asked for its parts one by one: changes without files, other runs, the wrong place."""

from __future__ import annotations

import json
import uuid

import pytest
from stream_log import Action, Log, add, cdc, metadata, remove

from alluvium.delta.streams.agreement import Agreement
from alluvium.delta.streams.offset import CHANGED, PASSED, Offset
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.streams.stream import Stream
from alluvium.delta.streams.tracking import Tracker
from alluvium.delta.streams.tracking_log import load_tracking_log
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.storage.stores.memory import MemoryStore

PLACE = "file:/c/sources/0"
ONE, TWO, THREE = (("id", "long"),), (("id", "long"), ("n", "string")), (("id", "long"), ("n", "string"), ("o", "long"))


class Following:
    """A table, and a place where a stream keeps its columns."""

    def __init__(self, *first: Action) -> None:
        name = uuid.uuid4().hex
        self.log, self.kept = Log(name, *first), MemoryStore(f"{name}-kept", "/c")

    def tracker(self, version: int | None = None) -> Tracker:
        snapshot = load_snapshot(self.log.store, version)
        made = Tracker(snapshot.store, snapshot.config, load_tracking_log(self.kept, "t"), "/c", Agreement({}, {}.get))
        made.start(lambda: PLACE)
        return made

    def entries(self) -> list[tuple[int, int]]:
        """Version and number of columns of each entry."""
        texts = [self.kept.get(name).split(b"\n")[1] for name in sorted(info.path for info in self.kept.list_from(""))]
        told = [json.loads(text) for text in texts]
        return [(one["deltaCommitVersion"], len(json.loads(one["dataSchemaJson"])["fields"])) for one in told]


def ends(ask: object) -> int | None:
    assert callable(ask)
    with pytest.raises(InvalidRequest) as caught:
        ask()
    assert caught.value.code == "stream-metadata-changed"
    return caught.value.version


def test_what_a_stream_begins_with() -> None:
    """The columns of the first version that it reads, or of the newest where that is still to come."""
    for first, entry in ((0, (0, 1)), (1, (1, 1)), (2, (2, 2)), (3, (3, 2)), (4, (3, 2)), (9, (3, 2))):
        one = Following(add("a"))
        one.log.commit(add("b"))
        one.log.commit(metadata(TWO), add("c"))
        one.log.commit(add("d"))
        tracker = one.tracker()
        assert not tracker.is_begun and tracker.shown is tracker.now
        if first < 2:
            # The frame shows the columns of now, so that it is to be read anew.
            assert ends(lambda t=tracker, v=first: t.begin(v)) == first  # type: ignore[misc]
        else:
            tracker.begin(first)
            assert tracker.is_begun and len(tracker.shown.schema.fields) == 2
        assert one.entries() == [entry]
        if first >= 2:
            tracker.begin(0)
            assert one.entries() == [entry]


def test_the_last_batch_before_there_was_a_log() -> None:
    """It is shown by the columns of its end, if they show all of it."""
    one = Following(add("a"))
    one.log.commit(metadata(TWO), add("b"))
    one.log.commit(add("c"))
    one.log.commit(metadata(THREE), add("d"))
    assert ends(lambda: one.tracker().begin(0, 2)) == 2
    assert one.entries() == [(2, 2)]
    other = Following(add("a"))
    other.log.commit(metadata((("id", "string"),)), remove("a"), add("b"))
    with pytest.raises(InvalidRequest) as caught:
        other.tracker().begin(0, 1)
    assert (caught.value.code, caught.value.version) == ("tracking-log-too-late", 0)
    assert "from version 0 to 1 " in caught.value.message and other.entries() == []


def begun(*, at: int = 0) -> Following:
    one = Following(add("a"))
    one.tracker().begin(at)
    return one


@pytest.mark.parametrize(
    ("between", "last"),
    [
        ((), 2), (((add("x"),),), 1), (((remove("a"),),), 1), (((cdc("c"),),), 1), (((metadata(THREE),),), 2), (((metadata(THREE), add("y")),), 1),
        ((({"txn": {"appId": "a", "version": 1}},),), 1), (((metadata(THREE),), (metadata(TWO),), (add("x"),)), 3),
    ],
    ids=range(8),
)  # fmt: skip
def test_changes_without_files_are_taken_for_one(between: tuple[tuple[Action, ...], ...], last: int) -> None:
    """As far as nothing but the description changes; the entry's own version may have files, and then it stays."""
    one = begun()
    one.log.commit(metadata(TWO))
    tracker = one.tracker()
    assert ends(lambda: tracker.committed(Offset("t", 1, CHANGED))) == 1
    for actions in between:
        one.log.commit(*actions)
    if not between:
        one.log.commit(metadata(THREE))
    snapshot = load_snapshot(one.log.store)
    again = Tracker(snapshot.store, snapshot.config, load_tracking_log(one.kept, "t"), "/c", Agreement({}, {}.get))
    again.skim()
    assert one.entries()[-1][0] == last and len(one.entries()) == (2 if last == 1 else 3)
    again.skim()
    assert len(one.entries()) == (2 if last == 1 else 3)
    nothing = Following(add("a")).tracker()
    nothing.skim()
    assert not nothing.is_begun


def test_which_versions_need_other_columns() -> None:
    one = begun(at=0)
    one.log.commit(metadata(TWO))
    one.log.commit(metadata(ONE, my="own"))
    one.log.commit(metadata(ONE, delta__appendOnly="true"))
    one.log.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}})
    one.log.commit(add("b"))
    tracker = one.tracker(0)
    marks = {v: [tracker.is_to_be_written(Offset("t", v, index)) for index in (CHANGED, PASSED)] for v in range(1, 7)}
    assert marks == {1: [True] * 2, 2: [False] * 2, 3: [True] * 2, 4: [True] * 2, 5: [False] * 2, 6: [False] * 2}
    assert tracker.reached(Offset("t", 1)) is None and tracker.reached(Offset("t", 1, 0)) is None
    assert tracker.reached(Offset("t", 1, CHANGED)) == Offset("t", 1, PASSED)
    for offset in (Offset("t", 1), Offset("t", 5, CHANGED), Offset("t", 2, PASSED)):
        tracker.committed(offset)
    assert one.entries() == [(0, 1)]
    assert ends(lambda: tracker.reached(Offset("t", 1, PASSED))) == 1
    assert one.entries() == [(0, 1), (1, 2)]
    # It has ended, and says so whatever it is asked to begin.
    assert ends(lambda: tracker.begin(0)) == ends(lambda: tracker.start(lambda: PLACE)) == 1
    fresh = Following(add("a")).tracker()
    assert not fresh.is_to_be_written(Offset("t", 0, CHANGED))
    fresh.committed(Offset("t", 0, CHANGED))


@pytest.mark.parametrize(
    ("place", "code"),
    [("file:/d/sources/0", "tracking-location-outside"), ("file:/c/sources/1", "tracking-location-conflict")],
)
def test_a_log_that_is_another_query_s(place: str, code: str) -> None:
    one = begun()
    snapshot = load_snapshot(one.log.store)
    tracker = Tracker(snapshot.store, snapshot.config, load_tracking_log(one.kept, "t"), "/c", Agreement({}, {}.get))
    with pytest.raises(InvalidRequest) as caught:
        tracker.start(lambda: place)
    assert (caught.value.code, caught.value.path) == (code, "/c" if "outside" in code else one.kept.url)


def test_the_same_range_in_other_columns_is_another_batch() -> None:
    one = begun()
    tracker, snapshot = one.tracker(), load_snapshot(one.log.store)
    span = Offset("t", 0), Offset("t", 1)
    (shown,) = Stream(snapshot, StreamOptions(), tracker).batch(*span)
    (plain,) = Stream(snapshot, StreamOptions()).batch(*span)
    assert tracker.shown.metadata.schema_string in shown.identity and shown.identity != plain.identity
