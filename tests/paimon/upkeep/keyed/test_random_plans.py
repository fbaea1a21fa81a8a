"""What is planned for random files of several buckets, beside one bucket after the other by the rules of runs and steps."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES, SnapshotDocument
from alluvium.paimon.upkeep.keyed.compaction import Compaction
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.paimon.upkeep.keyed.steps import Bucket, File, Rules, Step, plan_steps
from alluvium.paimon.upkeep.keyed.universal import Run, Strategy, pick, pick_full
from alluvium.plan.write import DROPS, GROUP_STEP, LOGS, LOOKS, REWRITES
from alluvium.schema import types as t
from alluvium.storage.stores.memory import MemoryStore

DAYS = {day: encode_rows([pa.array([day])], [(t.STRING, 0)])[0].as_py() for day in "ab"}
Rows = list[dict[str, Any]]


def key(number: int) -> bytes:
    row: bytes = encode_rows([pa.array([number], pa.int32())], [(t.INTEGER, 0)])[0].as_py()
    return row


def schema_of(**options: str) -> TableSchema:
    fields = [DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "day", parse_type("STRING NOT NULL"))]
    return TableSchema.create(fields, ["day"], ["k", "day"], {"bucket": "2", **options})


def state(files: Rows, **options: str) -> Snapshot:
    usual: dict[str, Any] = {
        "kind": 0, "total_buckets": 2, "row_count": 1, "schema_id": 0, "stats_min": b"", "stats_max": b"", "stats_nulls": [],
        "key_stats_min": b"", "key_stats_max": b"", "extra_files": [],
    }  # fmt: skip
    ends = ("low", "high", "day")
    rows = [
        {**dict.fromkeys(ENTRIES.names), **usual, **{name: value for name, value in file.items() if name not in ends},
         "partition": DAYS[file["day"]], "min_key": key(file["low"]), "max_key": key(file["high"])}
        for file in files
    ]  # fmt: skip
    entries = pa.Table.from_pylist(rows, schema=ENTRIES)
    document = SnapshotDocument(1, 0, "base", "delta", "user", 1, "APPEND", 0)
    known = {"entries": entries, "whole entries": entries}
    return Snapshot(MemoryStore(uuid.uuid4().hex, "t"), document, schema_of(**options), _loaded=dict(known))


def random_files(lot: random.Random) -> Rows:
    files: Rows = []
    for day in "ab":
        for bucket in (0, 1):
            places = {level: lot.randint(0, 3) for level in (1, 3, 5)} | {0: lot.randint(0, 4)}
            for level, count in places.items():
                low = 0
                for _ in range(count):
                    # Above level 0 files of a level do not overlap.
                    low = lot.randint(0, 20) if level == 0 else low + lot.randint(1, 5)
                    high = low + lot.randint(0, 6)
                    number = lot.randint(0, 30)
                    files.append(
                        {"day": day, "bucket": bucket, "level": level, "low": low, "high": high,
                         "file_size": lot.choice([1, 10, 69, 70, 500]), "delete_row_count": lot.choice([0, 0, 1]),
                         "min_sequence_number": number, "max_sequence_number": number + lot.randint(0, 3),
                         "creation_time": lot.randint(0, 2)}
                    )  # fmt: skip
                    low = high
    lot.shuffle(files)
    return [{**file, "file_name": f"f{n:02}.parquet"} for n, file in enumerate(files)]


def sections(files: Rows, names: list[str]) -> list[list[str]]:
    """Of files those together whose keys overlap, in the order of keys."""
    found: list[list[str]] = []
    end = -1
    chosen = [file for file in files if file["file_name"] in names]
    for file in sorted(chosen, key=lambda one: (one["low"], one["high"])):
        if not found or file["low"] > end:
            found.append([])
        found[-1].append(file["file_name"])
        end = max(end, file["high"])
    return found


def of_bucket(files: Rows, schema: TableSchema, is_full: bool) -> Iterator[tuple[set[str], Step]]:
    """The steps of a bucket: names of files, and what becomes of them."""
    newest = sorted(
        files,
        key=lambda f: (-f["max_sequence_number"], -f["min_sequence_number"], -f["creation_time"], f["file_name"]),
    )
    numbers = {file["file_name"]: n for n, file in enumerate(newest)}
    runs = [Run(0, file["file_size"], (numbers[file["file_name"]],)) for file in newest if file["level"] == 0]
    for level in sorted({file["level"] for file in files} - {0}):
        own = [file for file in newest if file["level"] == level]
        runs.append(Run(level, sum(f["file_size"] for f in own), tuple(numbers[f["file_name"]] for f in own)))
    strategy = Strategy.of(schema.options)
    unit = pick_full(strategy, runs) if is_full else pick(strategy, runs)
    if unit is None:
        return
    names = [newest[number]["file_name"] for number in unit.files]
    apart = tuple(tuple(sorted(numbers[name] for name in one)) for one in sections(files, names))
    known = [File(f["level"], f["file_size"], f["delete_row_count"] > 0, False) for f in newest]
    top = max(5, *(f["level"] for f in files))
    for step in plan_steps(Bucket(unit, apart, max(f["level"] for f in files), top), known, Rules.of(schema)):
        yield {newest[number]["file_name"] for number in step.files}, step


def groups(planned: Compaction) -> dict[frozenset[str], tuple[int, int]]:
    """The files of each group, its flags, and the level that it comes to."""
    found: dict[int, tuple[set[str], int]] = {}
    names = planned.entries["file_name"].to_pylist()
    for name, code, level in zip(names, *(planned.fates[n].to_pylist() for n in ("code", "level")), strict=True):
        if code >= 0:
            found.setdefault(code, (set(), level))[0].add(name)
    assert sorted(code // GROUP_STEP for code in found) == list(range(len(found)))
    return {frozenset(own): (code % GROUP_STEP, level) for code, (own, level) in found.items()}


OPTIONS: list[dict[str, str]] = [
    {}, {"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"}, {"deletion-vectors.enabled": "true"},
    {"compaction.force-rewrite-all-files": "true"},
]  # fmt: skip


@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: next(iter(given), "none"))
def test_bucket_by_bucket(options: dict[str, str], is_full: bool) -> None:
    lot = random.Random(f"{options} {is_full}")
    for _ in range(6):
        given = {"num-levels": "6", "target-file-size": "100 b", "num-sorted-run.compaction-trigger": "3", **options}
        files = random_files(lot)
        snapshot = state(files, **given)
        planned = plan_compaction(snapshot, Asked(is_full=is_full))
        wanted: dict[frozenset[str], tuple[int, int]] = {}
        looks: set[str] = set()
        asked: set[str] = set()
        for day in "ab":
            for bucket in (0, 1):
                own = [f for f in files if (f["day"], f["bucket"]) == (day, bucket)]
                steps = list(of_bucket(own, snapshot.schema, is_full)) if own else []
                in_unit: set[str] = set()
                for names, step in steps:
                    flags = REWRITES * step.rewrites + LOGS * step.logs + DROPS * step.drops + LOOKS * step.looks
                    wanted[frozenset(names)] = flags, step.level
                    new = {f["file_name"] for f in own if f["level"] == 0 and f["file_name"] in names}
                    looks |= new if step.looks else set()
                    in_unit |= names
                if looks & {f["file_name"] for f in own} and not is_full:
                    asked |= {f["file_name"] for f in own if f["level"]} - unit_of(own, snapshot.schema)
        assert groups(planned) == wanted
        by_name = dict(zip(planned.entries["file_name"].to_pylist(), planned.fates.to_pylist(), strict=True))
        if by_name:
            assert {name for name, fate in by_name.items() if fate["looks"]} == looks
            assert {name for name, fate in by_name.items() if fate["is_asked"]} == asked
            # Oldest first: what was compacted, the highest level first, and then as they were added.
            oldest = sorted(range(len(files)), key=lambda n: (-files[n]["level"], n))
            order = {files[n]["file_name"]: rank for rank, n in enumerate(oldest)}
            assert {name: fate["order"] for name, fate in by_name.items()} == order
            places = {(f["day"], f["bucket"], by_name[f["file_name"]]["place"]) for f in files}
            assert len(places) == len({(day, bucket) for day, bucket, _ in places}) == len({p for _, _, p in places})


def unit_of(files: Rows, schema: TableSchema) -> set[str]:
    """The files that a writer's own compaction of the bucket is about, be they written, moved or left."""
    newest = sorted(
        files,
        key=lambda f: (-f["max_sequence_number"], -f["min_sequence_number"], -f["creation_time"], f["file_name"]),
    )
    runs = [Run(0, f["file_size"], (n,)) for n, f in enumerate(newest) if f["level"] == 0]
    for level in sorted({f["level"] for f in files} - {0}):
        own = [n for n, f in enumerate(newest) if f["level"] == level]
        runs.append(Run(level, sum(newest[n]["file_size"] for n in own), tuple(own)))
    unit = pick(Strategy.of(schema.options), runs)
    return set() if unit is None else {newest[n]["file_name"] for n in unit.files}


FILE: dict[str, Any] = {
    "day": "a", "bucket": 0, "level": 0, "low": 0, "high": 1, "file_size": 1, "delete_row_count": 0,
    "min_sequence_number": 0, "max_sequence_number": 0, "creation_time": 0, "file_name": "f0.parquet",
}  # fmt: skip


@pytest.mark.parametrize(("since", "days"), [(0, set()), (9, set()), (10, {"a"}), (19, {"a"}), (20, {"a", "b"})])
def test_partitions_to_which_nothing_came_since(since: int, days: set[str]) -> None:
    """A file of that very moment is none of later."""
    files = [
        {**FILE, "file_name": "f0.parquet", "creation_time": 5}, {**FILE, "file_name": "f1.parquet", "creation_time": 10},
        {**FILE, "file_name": "f2.parquet", "day": "b", "creation_time": 20}, {**FILE, "file_name": "f3.parquet", "creation_time": None},
    ]  # fmt: skip
    planned = plan_compaction(state(files), Asked(idle_since_ms=since))
    assert set(planned.entries["partition"].to_pylist()) == {DAYS[day] for day in days}


def test_rows_that_wait_are_in_no_bucket_yet() -> None:
    files = [{**FILE, "bucket": -2}, {**FILE, "file_name": "f1.parquet", "bucket": 0}]
    assert plan_compaction(state(files), Asked()).entries["bucket"].to_pylist() == [0]
    assert plan_compaction(state(files[:1]), Asked()).entries.num_rows == 0


@pytest.mark.parametrize(
    ("levels", "trigger", "picks"),
    [([0, 0, 0], 3, True), ([0, 0, 0], 4, False), ([0, 1, 1], 3, False), ([0, 1, 2], 3, True), ([0, 0, 1, 1], 3, True)],
)
def test_a_writer_compacts_once_there_are_runs_enough(levels: list[int], trigger: int, picks: bool) -> None:
    """A file of level 0 is a run, and so is each level above."""
    files = [
        {**FILE, "file_name": f"f{n}.parquet", "level": level, "low": 10 * n, "high": 10 * n + 1}
        for n, level in enumerate(levels)
    ]
    others = [{**file, "file_name": f"x{file['file_name']}", "bucket": 1} for file in files[:1]]
    options = {"num-sorted-run.compaction-trigger": str(trigger), "num-levels": "6"}
    planned = plan_compaction(state(files + others, **options), Asked(is_full=False))
    assert (planned.entries.num_rows > 0) is picks
    assert plan_compaction(state(files + others, **options), Asked()).entries.num_rows == len(levels) + 1


@pytest.mark.parametrize(("name", "in_parquet"), [("f0.parquet", True), ("f0.orc", False)])
def test_rows_are_marked_in_parquet_alone(name: str, in_parquet: bool) -> None:
    """Of other files nobody can say where a row is: all of the bucket is written anew."""
    files = [{**FILE, "level": 5, "file_size": 10**6, "file_name": name}, {**FILE, "file_name": "f1.parquet"}]
    options = {"deletion-vectors.enabled": "true", "num-levels": "6"}
    planned = plan_compaction(state(files, **options), Asked(is_full=False))
    touched = {one for own in groups(planned) for one in own}
    assert touched == ({"f1.parquet"} if in_parquet else {name, "f1.parquet"})
