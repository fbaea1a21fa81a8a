"""Random logs, streamed in batches of any size: which files a batch has and where it ends, beside a plain loop."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from stream_log import Log, add, cdc, paths, remove

from alluvium.delta.streams.offset import BEFORE, Offset
from alluvium.delta.streams.stream import Stream

File = tuple[str, int]


@dataclass
class Told:
    """What one version did: files in the order of the log, with their sizes."""

    changed: list[tuple[str, File]] = field(default_factory=list)
    recorded: list[File] = field(default_factory=list)

    def counted(self, changes: bool) -> list[File]:
        if not changes:
            return [file for kind, file in self.changed if kind == "add"]
        return self.recorded or [file for _, file in self.changed]


@dataclass
class Made:
    """A log and what it is about."""

    log: Log
    versions: list[Told]
    live: list[dict[str, tuple[int, int]]]

    def first_rows(self, version: int) -> list[File]:
        """All that was live, by time and path."""
        found = self.live[version]
        return [(name, found[name][1]) for name in sorted(found, key=lambda name: (found[name][0], name))]


def made(lot: random.Random, name: str, *, removes: bool) -> Made:
    log = Log(name, delta__enableChangeDataFeed="true")
    result = Made(log, [Told()], [{}])
    for version in range(1, lot.randint(2, 7)):
        live, told, actions = dict(result.live[-1]), Told(), []
        is_recorded = removes and lot.random() < 0.3
        for n in range(lot.randint(0, 4)):
            if removes and live and lot.random() < 0.4:
                gone = lot.choice(sorted(set(result.live[-1]) & set(live)) or [""])
                if gone:
                    del live[gone]
                    told.changed.append(("remove", (gone, 10)))
                    actions.append(remove(gone))
                    continue
            path, size, moment = f"{lot.choice('abc')}{version}.{n}", lot.choice([0, 3, 10, 25]), lot.randint(0, 2)
            live[path] = moment, size
            told.changed.append(("add", (path, size)))
            actions.append(add(path, size, moment))
        if is_recorded:
            told.recorded = [(f"c{version}.{n}", 10) for n in range(lot.randint(1, 3))]
            actions += [cdc(path) for path, _ in told.recorded]
        if lot.random() < 0.2:
            # What is rearranged is none of a stream's business.
            moved = f"m{version}"
            live[moved] = 1, 7
            actions.append(add(moved, 7, 1, data_change=False))
        log.commit(*actions)
        result.versions.append(told)
        result.live.append(live)
    return result


@dataclass
class Room:
    files: int | None
    size_bytes: int | None
    is_begun: bool = False

    @property
    def is_left(self) -> bool:
        return (self.files is None or self.files > 0) and (self.size_bytes is None or self.size_bytes > 0)

    def take(self, size: int) -> None:
        self.is_begun = True
        self.files = None if self.files is None else self.files - 1
        self.size_bytes = None if self.size_bytes is None else self.size_bytes - size


def batch(table: Made, start: Offset, room: Room, changes: bool, *, passes: bool) -> tuple[Offset, list[str]]:
    """Where the next batch ends, and its files."""
    end, found = start, list[str]()
    steps = [(start.version, True)] if start.in_snapshot else []
    steps += [(version, False) for version in range(start.version + start.in_snapshot, len(table.versions))]
    for version, in_snapshot in steps:
        told = table.versions[version]
        files = table.first_rows(version) if in_snapshot else told.counted(changes)
        is_whole = changes and not in_snapshot and bool(told.recorded)
        first = start.first if version == start.version else 0
        if not room.is_left and (changes or files):
            return end, found
        rest = files[first:]
        fits = (room.files is None or len(rest) <= room.files) and (
            room.size_bytes is None or sum(size for _, size in rest) <= room.size_bytes
        )
        if is_whole and rest and room.is_begun and not fits:
            return end, found
        taken = 0
        for path, size in rest:
            if not is_whole and not room.is_left:
                break
            room.take(size)
            found.append(path)
            taken += 1
        if taken < len(rest):
            return Offset("t", version, first + taken - 1, in_snapshot) if taken else end, found
        end = Offset("t", version, len(files) - 1) if is_whole else Offset("t", version + 1)
        if in_snapshot and not passes:
            return end, found
    return end, found


def behind(table: Made, reached: Offset, changes: bool) -> list[File]:
    """What comes behind an offset."""
    found = table.first_rows(reached.version)[reached.first :] if reached.in_snapshot else []
    for version in range(reached.version + reached.in_snapshot, len(table.versions)):
        files = table.versions[version].counted(changes)
        found += files[reached.first :] if version == reached.version else files
    return found


def told_as_left(table: Made, reached: Offset, changes: bool) -> tuple[int, int]:
    """How many files and bytes there are behind it, as that is told: of changes those alone that were added, or recorded."""
    found = table.first_rows(reached.version)[reached.first :] if reached.in_snapshot else []
    for version in range(reached.version + reached.in_snapshot, len(table.versions)):
        told = table.versions[version]
        passed = reached.first if version == reached.version else 0
        if changes and not told.recorded:
            found += [file for kind, file in told.changed[passed:] if kind == "add"]
        else:
            found += told.counted(changes)[passed:]
    return len(found), sum(size for _, size in found)


LIMITS: list[dict[str, Any]] = [
    {"max_files": 1}, {"max_files": 2}, {"max_files": 3}, {"max_files": None}, {"max_files": None, "max_bytes": 1},
    {"max_files": None, "max_bytes": 20}, {"max_files": 2, "max_bytes": 11}, {"max_files": 1000},
]  # fmt: skip


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_batches_of_random_logs(seed: int, changes: bool) -> None:
    lot = random.Random(f"{seed} {changes}")
    table = made(lot, f"random-{seed}-{changes}", removes=changes or lot.random() < 0.5)
    newest = len(table.versions) - 1
    for limits in lot.sample(LIMITS, 3):
        begins = lot.choice([None, *range(newest + 1)])
        stream = table.log.stream(starting_version=begins, changes=changes, ignore_changes=not changes, **limits)
        limit = Room(limits["max_files"], limits.get("max_bytes"))
        begin = Offset("t", newest, BEFORE, in_snapshot=True) if begins is None else Offset("t", begins)
        assert stream.begin() == begin
        reached: Offset | None = None
        seen = list[str]()
        for _ in range(60):
            start = begin if reached is None else reached
            end, files = batch(table, start, replace(limit), changes, passes=reached is not None)
            assert stream.latest(reached) == (None if reached is None and end == begin else end), (
                limits,
                begins,
                reached,
            )
            if end == start:
                break
            assert sorted(read(stream, reached, end)) == sorted(files)
            assert stream.batch(end, end) == ()
            stream.end_of_run(end)
            assert stream.backlog(end) == told_as_left(table, end, changes)
            seen += files
            reached = end
        else:
            pytest.fail("there is an end")
        everything = behind(table, begin, changes)
        assert sorted(seen) == sorted(path for path, _ in everything)
        whole, _ = batch(table, begin, Room(None, None), changes, passes=True)
        assert stream.end_of_run(None) == stream.end_of_run(begin) == whole
        assert stream.latest(begin, limited=False) == whole


def read(stream: Stream, start: Offset | None, end: Offset) -> list[str]:
    return paths(stream.batch(start, end))


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_run_ends_where_it_was_to_end(seed: int, changes: bool) -> None:
    """Whatever comes meanwhile, and in batches of any size."""
    lot = random.Random(f"run {seed} {changes}")
    table = made(lot, f"run-{seed}-{changes}", removes=changes)
    stream = table.log.stream(starting_version=0, changes=changes, max_files=2)
    until = stream.end_of_run(None)
    table.log.commit(add("later"), add("later too"))
    reached: Offset | None = None
    seen = list[str]()
    while reached != until:
        end = stream.latest(reached, until=until)
        assert end is not None and end != reached and end.place <= until.place
        seen += read(stream, reached, end)
        reached = end
    assert stream.latest(until, until=until) == until
    assert sorted(seen) == sorted(path for path, _ in behind(table, Offset("t", 0), changes))
