"""Which files come together, of random ones beside plain loops: small files of partitions, and neighbouring ranges of ids."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import UnsupportedFeature
from alluvium.expr import tree
from alluvium.paimon.files.manifest_write import format_index_manifest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import INDEX_ENTRIES, SCANNED_ENTRIES, SnapshotDocument
from alluvium.paimon.upkeep.append_compact import choose_small_files, ensure_append_compactable
from alluvium.paimon.upkeep.evolved_compact import gather_ranges
from alluvium.schema import types as t
from alluvium.storage.stores.memory import MemoryStore

DAYS = {day: encode_rows([pa.array([day])], [(t.STRING, 0)])[0].as_py() for day in "abc"}
TRACKED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def state(files: list[dict[str, Any]], deleted: dict[str, int] | None = None, **options: str) -> Snapshot:
    """A state with these files; of some of them rows are deleted."""
    store = MemoryStore(str(uuid.uuid4()), "t")
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "day", parse_type("STRING"))]
    schema = TableSchema.create(fields, ("day",), options=options)
    rows = [{"kind": 0, "bucket": 0, "level": 0, "schema_id": 0, "extra_files": [], **file} for file in files]
    entries = pa.Table.from_pylist([{f.name: row.get(f.name) for f in SCANNED_ENTRIES} for row in rows], SCANNED_ENTRIES)  # fmt: skip
    index = None
    if deleted:
        ranges = [{"f0": name, "f1": 1, "f2": 9, "_CARDINALITY": count} for name, count in deleted.items()]
        held = {"kind": 0, "partition": DAYS["a"], "bucket": 0, "index_type": "DELETION_VECTORS", "file_name": "i",
                "file_size": 9, "row_count": len(ranges), "ranges": ranges}  # fmt: skip
        data = format_index_manifest(pa.Table.from_pylist([held], schema=INDEX_ENTRIES), "null")
        store.put(f"manifest/{(index := 'index-manifest-1')}", data)
    document = SnapshotDocument(1, 0, "base", "delta", "user", 1, "APPEND", 0, index_manifest=index)
    return Snapshot(store, document, schema, _loaded={"entries": entries})


# --- small files -----------------------------------------------------------------------------------------------------


def packed(files: list[dict[str, Any]], deleted: dict[str, int], rules: tuple[int, int, int, float]) -> set[str]:
    """`AppendCompactCoordinator`: "bin packing" of the small files of a partition, smallest first."""
    target, open_cost, least, most = rules
    chosen: set[str] = set()
    for day in DAYS.values():
        own = [file for file in files if file["partition"] == day]
        stale = {f["file_name"] for f in own if deleted.get(f["file_name"], 0) / max(f["row_count"], 1) > most}
        small = [f for f in own if f["file_size"] * 10 < target * 7 or f["file_name"] in stale]
        bin_: list[str] = []
        weight = 0
        for file in sorted(small, key=lambda one: one["file_size"]):
            bin_.append(file["file_name"])
            weight += file["file_size"] + open_cost
            if len(bin_) > 1 and weight >= 2 * target:
                chosen |= set(bin_)
                bin_, weight = [], 0
        chosen |= set(bin_) if len(bin_) >= least else set(bin_) & stale
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_small_files_beside_a_plain_loop(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(12):
        sizes = lot.sample(range(1, 160), lot.randint(0, 24))
        files = [
            {"partition": DAYS[lot.choice("abc")], "file_name": f"f{n}", "file_size": size, "row_count": lot.choice([0, 5, 10])}
            for n, size in enumerate(sizes)
        ]  # fmt: skip
        deleted = {f["file_name"]: lot.choice([1, 2, 3]) for f in files if lot.random() < 0.2}
        rules = (lot.choice([50, 100, 150]), lot.choice([1, 20, 60]), lot.choice([2, 5]), lot.choice([0.2, 0.5]))
        options = {"target-file-size": f"{rules[0]} b", "source.split.open-file-cost": f"{rules[1]} b",
                   "compaction.min.file-num": str(rules[2]), "compaction.delete-ratio-threshold": str(rules[3])}  # fmt: skip
        found = choose_small_files(state(files, deleted, **options))["file_name"].to_pylist()
        assert set(found) == packed(files, deleted, rules)
        # In the order in which they were.
        assert found == sorted(found, key=lambda name: int(name[1:]))


@pytest.mark.parametrize(("size", "count"), [(699, 5), (700, 0)])
def test_a_file_is_small_below_seven_tenths(size: int, count: int) -> None:
    files = [{"partition": DAYS["a"], "file_name": f"f{n}", "file_size": size, "row_count": 1} for n in range(5)]
    options = {"target-file-size": "1000 b", "source.split.open-file-cost": "0 b"}
    # Three of them are two targets' worth: the other two are fewer than five.
    assert choose_small_files(state(files, **options)).num_rows == (3 if count else 0)


def test_of_partitions_those_alone_that_are_meant() -> None:
    files = [{"partition": DAYS[day], "file_name": f"{day}{n}", "file_size": 1, "row_count": 1} for day in "ab" for n in range(5)]  # fmt: skip
    where = tree.Compare("=", tree.Column(("day",), t.STRING), tree.Literal("b", t.STRING))
    assert set(choose_small_files(state(files), where)["file_name"].to_pylist()) == {f"b{n}" for n in range(5)}
    with pytest.raises(UnsupportedFeature) as caught:
        choose_small_files(state(files), tree.Compare("=", tree.Column(("k",), t.INTEGER), tree.Literal(1, t.INTEGER)))
    assert caught.value.code == "replace-where-data" and "day" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"bucket": "2", "bucket-key": "k"}, "bucket = 2"),
        ({**TRACKED, "deletion-vectors.enabled": "true"}, "data-evolution.enabled"),
        (TRACKED, None),
        ({"deletion-vectors.enabled": "true"}, None),
        ({}, None),
    ],
)
def test_tables_whose_files_do_not_come_together(options: dict[str, str], asked: str | None) -> None:
    if asked is None:
        ensure_append_compactable(state([], None, **options))
        return
    schema = TableSchema.create([DataField(0, "k", parse_type("INT"))], options={})
    made = Snapshot(MemoryStore(str(uuid.uuid4()), "t"), None, TableSchema(0, schema.fields, 0, options=options))
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_append_compactable(made)
    assert caught.value.code == "unsupported-compaction" and asked in caught.value.features[0]


# --- ranges of ids ---------------------------------------------------------------------------------------------------


def neighbours(ranges: list[tuple[str, int, int, list[int]]], target: int, cost: int) -> Iterator[list[int]]:
    """Places of ranges (day, first id, rows, sizes of files), in their order, that come together."""
    task: list[int] = []
    for at, (day, first, _, sizes) in enumerate(ranges):
        if at and task and (ranges[at - 1][0] != day or ranges[at - 1][1] + ranges[at - 1][2] != first):
            yield task
            task = []
        weight = sum(max(size, cost) for size in sizes)
        if weight > target:
            yield from ([at], task)
            task = []
            continue
        task = [*task, at]
        if sum(max(size, cost) for place in task for size in ranges[place][3]) > target:
            yield task
            task = []
    yield task


@pytest.mark.parametrize("seed", range(4))
def test_ranges_beside_a_plain_loop(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(8):
        ranges: list[tuple[str, int, int, list[int]]] = []
        first = 0
        for _ in range(lot.randint(0, 12)):
            first += lot.choice([0, 0, 0, 3])
            rows = lot.randint(1, 4)
            ranges.append((lot.choice("aab"), first, rows, [lot.randint(1, 40) for _ in range(lot.choice([1, 1, 2, 3]))]))  # fmt: skip
            first += rows
        target, cost, least = lot.choice([40, 60, 100]), lot.choice([1, 15]), lot.choice([1, 2, 4])
        files = [
            {"partition": DAYS[day], "file_name": f"f{at}-{n}", "file_size": size, "row_count": rows, "first_row_id": begin,
             "min_sequence_number": at + n, "max_sequence_number": at + n + 1, "write_cols": None if not n else ["k"]}
            for at, (day, begin, rows, sizes) in enumerate(ranges) for n, size in enumerate(sizes)
        ]  # fmt: skip
        lot.shuffle(files)
        options = {**TRACKED, "target-file-size": f"{target} b", "source.split.open-file-cost": f"{cost} b",
                   "compaction.min.file-num": str(least)}  # fmt: skip
        found = gather_ranges(state(files, **options))
        ordered = sorted(ranges, key=lambda one: (DAYS[one[0]], one[1]))
        tasks = [task for task in neighbours(ordered, target, cost)
                 if sum(len(ordered[place][3]) for place in task) >= max(2, least)]  # fmt: skip
        if not tasks:
            assert found is None
            continue
        assert found is not None
        wanted = [(DAYS[ordered[task[0]][0]], ordered[task[0]][1], sum(ordered[place][2] for place in task)) for task in tasks]  # fmt: skip
        rows_ = [(row["partition"], row["first_row_id"], row["row_count"]) for row in found.files.to_pylist()]
        assert rows_ == wanted and found.files["number"].to_pylist() == list(range(len(tasks)))
        # Numbers of all their files, from the least to the greatest.
        ends = [(row["min_sequence_number"], row["max_sequence_number"]) for row in found.files.to_pylist()]
        for task, (low, high) in zip(tasks, ends, strict=True):
            begins = {ordered[place][1] for place in task}
            own = [f for f in files if f["first_row_id"] in begins and f["partition"] == DAYS[ordered[task[0]][0]]]
            assert (low, high) == (
                min(f["min_sequence_number"] for f in own),
                max(f["max_sequence_number"] for f in own),
            )
        kept = sum(len(ordered[place][3]) for task in tasks for place in task)
        assert found.candidates.entries.num_rows == kept
        assert found.renumbered(range(100, 100 + len(tasks))).numbers.to_pylist() == [
            100 + number for number in found.candidates.numbers.to_pylist()
        ]


def test_large_values_in_files_of_their_own_stay() -> None:
    files = [
        {"partition": DAYS["a"], "file_name": name, "file_size": 1, "row_count": 1, "first_row_id": n,
         "min_sequence_number": 0, "max_sequence_number": 0}
        for n, name in enumerate(("f.parquet", "f.blob"))
    ]  # fmt: skip
    with pytest.raises(UnsupportedFeature) as caught:
        gather_ranges(state(files, None, **TRACKED))
    assert (caught.value.code, caught.value.features) == ("unsupported-compaction", ("BLOB",))
