"""What a listing of the log is sorted into, and which versions that leaves."""

from __future__ import annotations

import random
import uuid

import pytest

from alluvium.delta.log import segment
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    MAX_VERSION,
    CheckpointName,
    CommitName,
    CompactedName,
    checkpoint_paths,
    checksum_path,
    commit_path,
    compacted_path,
    parse_name,
    uuid_checkpoint_path,
)
from alluvium.delta.log.segment import list_log, list_segment, parse_listing
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.memory import MemoryStore

ONE, OTHER = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))


def info(path: str, size: int = 1) -> ObjectInfo:
    return ObjectInfo(path, size, 7)


def test_each_kind_of_file_has_its_place() -> None:
    paths = [
        commit_path(11), commit_path(9), checksum_path(9), compacted_path(3, 9), compacted_path(3, 5),
        *checkpoint_paths(9), uuid_checkpoint_path(11, ONE, "json"), "_delta_log/_last_checkpoint", "_delta_log/x",
    ]  # fmt: skip
    lot = random.Random(3)
    for _ in range(5):
        lot.shuffle(paths)
        found = parse_listing(map(info, paths))
        assert list(found.commits) == [9, 11] and found.commits[9].path == commit_path(9)
        assert {key: one.path for key, one in found.compactions.items()} == {
            (3, 9): compacted_path(3, 9), (3, 5): compacted_path(3, 5)
        }  # fmt: skip
        assert list(found.checksums) == [9] and list(found.checkpoints) == [9, 11]
        assert (found.latest, found.earliest) == (11, 9)


def test_files_without_a_byte_are_what_a_dead_writer_left() -> None:
    """Of a commit they are the version all the same."""
    empty = [info(path, 0) for path in (commit_path(1), *checkpoint_paths(1), compacted_path(0, 1), checksum_path(1))]
    found = parse_listing(empty)
    assert (list(found.commits), found.checkpoints, found.compactions, list(found.checksums)) == ([1], {}, {}, [1])


def test_the_best_checkpoint_of_a_version() -> None:
    """A classic one before one of the second kind, one of fewer parts before others, and whole ones alone."""
    classic, two, three = checkpoint_paths(5), checkpoint_paths(5, 2), checkpoint_paths(5, 3)
    first, second = uuid_checkpoint_path(5, ONE), uuid_checkpoint_path(5, OTHER)
    every = [*classic, *two, *three, first, second]
    lot = random.Random(1)

    def best(*without: str, gone: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        lot.shuffle(every)
        listing = parse_listing([info(path) for path in every if path not in gone], without)
        files = listing.checkpoints.get(5)
        return None if files is None else tuple(one.path for one in files)

    assert best() == classic and best(*classic) == two and best(gone=classic) == two
    assert best(*classic, two[0]) == best(*classic, gone=(two[1],)) == three
    assert best(*classic, *two, three[2]) == (first,) and best(*classic, *two, *three, first) == (second,)
    assert best(*every) is None and parse_listing([]).latest == -1 and parse_listing([]).earliest is None


@pytest.mark.parametrize(
    ("commits", "checkpoints", "latest", "earliest"),
    [
        ([], [], -1, None), ([0], [], 0, 0), ([3, 4], [], 4, None), ([3, 4], [3], 4, 3), ([0, 1, 5], [5], 5, 0),
        ([], [7, 2], 7, 2), ([1], [7], 7, 7),
    ],
)  # fmt: skip
def test_versions_of_a_listing(commits: list[int], checkpoints: list[int], latest: int, earliest: int | None) -> None:
    paths = [*map(commit_path, commits), *(checkpoint_paths(v)[0] for v in checkpoints)]
    found = parse_listing(map(info, paths))
    assert (found.latest, found.earliest) == (latest, earliest)


class Overlooking(MemoryStore):
    """A store whose listing lacks some files."""

    overlooked: tuple[str, ...] = ()
    asked: list[str]

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        return [found for found in super().list_from(directory, start) if found.path not in self.overlooked]

    def head(self, path: str) -> ObjectInfo:
        self.asked.append(path)
        return super().head(path)


def overlooking(commits: int, *overlooked: int) -> Overlooking:
    store = Overlooking(uuid.uuid4().hex, "t")
    store.asked = []
    for version in range(commits):
        store.put(commit_path(version), b"{}")
    store.overlooked = tuple(map(commit_path, overlooked))
    return store


def test_commits_that_a_listing_overlooked_are_asked_for() -> None:
    store = overlooking(6, 1, 3)
    assert list(list_log(store).commits) == [0, 1, 2, 3, 4, 5]
    assert store.asked == [commit_path(1), commit_path(3)]
    # The newest one may not be there yet, and what lies before the first is not missing.
    store = overlooking(6, 0, 5)
    assert list(list_log(store).commits) == [1, 2, 3, 4] and store.asked == []
    assert list(list_log(overlooking(6), 3).commits) == [3, 4, 5]


def test_behind_a_checkpoint_alone() -> None:
    store = overlooking(6, 1, 2, 4)
    store.put(checkpoint_paths(2)[0], b"x")
    assert list(list_log(store).commits) == [0, 3, 4, 5] and store.asked == [commit_path(4)]
    store.put(checkpoint_paths(9)[0], b"x")
    store.asked.clear()
    assert list(list_log(store).commits) == [0, 3, 5] and store.asked == []


def test_of_a_log_of_holes_few_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "_MOST_OVERLOOKED", 2)
    store = overlooking(7, 1, 2, 3, 5)
    assert list(list_log(store).commits) == [0, 1, 2, 4, 6]
    assert store.asked == [commit_path(1), commit_path(2)]


@pytest.mark.parametrize("version", [-1, MAX_VERSION + 1])
def test_versions_that_no_log_can_have(version: int) -> None:
    with pytest.raises(NotFound) as caught:
        list_segment(overlooking(3), version)
    assert (caught.value.code, caught.value.version) == ("missing-version", version)
    assert "versions 0 to 2" in str(caught.value)


def test_a_gap_names_what_is_missing() -> None:
    store = overlooking(6)
    for gone in (2, 3):
        store.delete(commit_path(gone))
    assert list_segment(store, 1).version == 1
    for version in (4, None):
        with pytest.raises(CorruptTable) as caught:
            list_segment(store, version)
        error = caught.value
        assert (error.code, error.version, error.path) == ("gap-in-log", 2, commit_path(2))
        assert f"needed for version {4 if version else 5}" in str(error) and "first commit" not in str(error)
    store.delete(commit_path(0))
    store.put(checkpoint_paths(1)[0], b"x")
    store.delete(commit_path(1))
    with pytest.raises(CorruptTable, match="the first commit there is 4"):
        list_segment(store)


def test_names_at_their_ends() -> None:
    assert parse_name(f"{MAX_VERSION:020d}.json") == CommitName(MAX_VERSION)
    assert parse_name(f"{MAX_VERSION + 1:020d}.json") is None
    assert parse_name(f"{4:020d}.{4:020d}.compacted.json") == CompactedName(4, 4)
    assert parse_name(f"{4:020d}.{3:020d}.compacted.json") is None
    assert parse_name(f"{4:020d}.{MAX_VERSION + 1:020d}.compacted.json") is None
    assert parse_name(f"{4:020d}.{MAX_VERSION:020d}.compacted.json") == CompactedName(4, MAX_VERSION)
    for part, parts, is_one in ((1, 1, True), (2, 2, True), (0, 2, False), (3, 2, False), (1, 2, True)):
        name = parse_name(f"{4:020d}.checkpoint.{part:010d}.{parts:010d}.parquet")
        assert name == (CheckpointName(4, part, parts) if is_one else None)
    assert parse_name(f"{4:020d}.checkpoint.{ONE}.json") == CheckpointName(4, uuid=ONE, file_format="json")
    assert parse_name(f"{4:020d}.checkpoint.parquet") == CheckpointName(4)


@pytest.mark.parametrize(
    ("hint", "version", "starts"),
    [
        (None, None, [0]), (4, None, [4]), (4, 5, [4]), (4, 4, [4]), (4, 3, [0]), (0, None, [0]),
        # No such checkpoint is there, or what the hint leads to ends before the version.
        (3, None, [3, 0]), (4, 9, [4, 0]),
    ],
)  # fmt: skip
def test_the_log_is_listed_from_the_hint_on_where_that_is_enough(
    monkeypatch: pytest.MonkeyPatch, hint: int | None, version: int | None, starts: list[int]
) -> None:
    """A long log takes a request for each thousand of its files."""
    store = overlooking(6)
    store.put(checkpoint_paths(4)[0], b"x")
    if hint is not None:
        store.put(LAST_CHECKPOINT_PATH, f'{{"version":{hint},"size":1}}'.encode())
    listed: list[str] = []
    own = store.list_from
    monkeypatch.setattr(store, "list_from", lambda directory, start="": listed.append(start) or own(directory, start))
    if version == 9:
        with pytest.raises(NotFound, match="versions 0 to 5"):
            list_segment(store, version)
    else:
        found = list_segment(store, version)
        assert (found.version, found.checkpoint_version) == (
            5 if version is None else version,
            None if version == 3 else 4,
        )
        assert [one.path for one in found.commits] == [
            commit_path(n) for n in range(5 if version != 3 else 0, found.version + 1)
        ]
    assert listed == [f"{start:020d}" for start in starts]
