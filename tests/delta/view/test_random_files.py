"""Random tables whose data files are lists of rows: what the log answers (files to read, counts, bounds), beside plain loops."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.view.answers import bounds_from_log, count_from_log
from alluvium.delta.view.scan import plan_scan, select_files, whole_files
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.expr.sql.parse import parse_predicate
from alluvium.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.long

FIELDS = {"i": "integer", "e": "decimal(5,2)", "big": "decimal(20,0)", "x": "double", "p": "integer", "q": "string"}
VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 44,
}
Row = dict[str, Any]


@dataclass
class File:
    """A data file as its writer knows it.

    Attributes:
        values: Of the partition.
        rows: All of them.
        deleted: Places of those that a vector removes.
        told: What the log says: `all`, `nothing`, `no counts`, `no nulls`, `wide` bounds.
    """

    values: Row
    rows: list[Row]
    deleted: set[int]
    told: str

    @property
    def live(self) -> list[Row]:
        return [{**row, **self.values} for place, row in enumerate(self.rows) if place not in self.deleted]

    def bounds(self, name: str) -> tuple[Any, Any] | None:
        there = [row[name] for row in self.rows if row[name] is not None]
        wider = 3 if self.told == "wide" else 0
        return (min(there) - wider, max(there) + wider) if there else None

    def stats(self) -> str | None:
        if self.told == "nothing":
            return None
        ends = {name: found for name in ("i", "e", "big", "x") if (found := self.bounds(name)) is not None}
        document: dict[str, Any] = {
            "numRecords": len(self.rows),
            "minValues": {name: float(low) if name in "ex" else int(low) for name, (low, _) in ends.items()},
            "maxValues": {name: float(high) if name in "ex" else int(high) for name, (_, high) in ends.items()},
            "nullCount": {name: sum(row[name] is None for row in self.rows) for name in ("i", "e", "big", "x")},
        }
        if self.told == "no counts":
            del document["numRecords"]
        if self.told == "no nulls":
            del document["nullCount"]
        if self.told == "wide" or (self.deleted and self.told == "loose"):
            document["tightBounds"] = False
        return json.dumps(document)

    def action(self, number: int) -> Row:
        texts = {name: None if value is None else str(value) for name, value in self.values.items()}
        add: Row = {
            "path": f"f{number}",
            "partitionValues": texts,
            "size": 10,
            "modificationTime": 0,
            "dataChange": True,
        }
        if (stats := self.stats()) is not None:
            add["stats"] = stats
        if self.deleted:
            add["deletionVector"] = {**VECTOR, "cardinality": len(self.deleted)}
        return {"add": add}


def random_file(lot: random.Random, told: tuple[str, ...]) -> File:
    middle = lot.randint(-20, 20)

    def row() -> Row:
        i = lot.choice([None, *range(middle, middle + 6)])
        e = None if i is None else Decimal(i) + Decimal(lot.choice(["0.25", "0.50"]))
        return {"i": i, "e": e, "big": None if i is None else Decimal(i), "x": None if i is None else i + 0.5}

    rows = [row() for _ in range(lot.choice([0, 1, 2, 5]))]
    if lot.random() < 0.2:
        rows = [dict.fromkeys(row) for row in rows]
    deleted = (
        {place for place in range(len(rows)) if lot.random() < lot.choice([0.3, 1])} if lot.random() < 0.3 else set()
    )
    return File({"p": lot.choice([None, 1, 2]), "q": lot.choice(["a", None])}, rows, deleted, lot.choice(told))


def snapshot_of(files: list[File]) -> Snapshot:
    fields = [{"name": k, "type": v, "nullable": True, "metadata": {}} for k, v in FIELDS.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    lines: list[object] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                      "partitionColumns": ["p", "q"], "configuration": {}}},
        *(file.action(number) for number, file in enumerate(files)),
    ]  # fmt: skip
    store = MemoryStore(uuid.uuid4().hex, "/t")
    store.put(commit_path(0), "\n".join(map(json.dumps, lines)).encode())
    return load_snapshot(store)


def numbers(files: pa.Table) -> list[int]:
    return sorted(int(path[1:]) for path in files["path"].to_pylist())


def less(x: Any, y: Any) -> bool | None:
    return None if x is None or y is None else x < y


def equal(x: Any, y: Any) -> bool | None:
    return None if x is None or y is None else x == y


def both(x: bool | None, y: bool | None) -> bool | None:
    return False if x is False or y is False else None if x is None or y is None else True


def negated(x: bool | None) -> bool | None:
    return None if x is None else not x


CONDITIONS: dict[str, Callable[[Row], bool | None]] = {
    "i < 3": lambda r: less(r["i"], 3),
    "i >= -2": lambda r: negated(less(r["i"], -2)),
    "i = 4": lambda r: equal(r["i"], 4),
    "not i = 4": lambda r: negated(equal(r["i"], 4)),
    "i is null": lambda r: r["i"] is None,
    "i is not null": lambda r: r["i"] is not None,
    "e <= 2.25": lambda r: None if r["e"] is None else r["e"] <= Decimal("2.25"),
    "e > -1.50": lambda r: less(Decimal("-1.50"), r["e"]),
    "p = 1": lambda r: equal(r["p"], 1),
    "p is null": lambda r: r["p"] is None,
    "q = 'a' or p = 2": lambda r: negated(both(negated(equal(r["q"], "a")), negated(equal(r["p"], 2)))),
    "p = 2 and i > 0": lambda r: both(equal(r["p"], 2), less(0, r["i"])),
    "p = 1 or i < 0": lambda r: negated(both(negated(equal(r["p"], 1)), negated(less(r["i"], 0)))),
    "i in (1, 8, null)": lambda r: True if r["i"] in (1, 8) else None,
    "true": lambda r: True,
    "p < 0": lambda r: less(r["p"], 0),
}
TOLD = ("all", "all", "all", "loose", "nothing", "no counts", "no nulls", "wide")


def tables(told: tuple[str, ...]) -> list[tuple[list[File], Snapshot]]:
    lot = random.Random(str(told))
    made = [[random_file(lot, told) for _ in range(lot.randint(0, 9))] for _ in range(8)]
    return [(files, snapshot_of(files)) for files in made]


ANY, FULL = tables(TOLD), tables(("all",))


@pytest.mark.parametrize("text", CONDITIONS)
def test_no_row_is_lost_and_none_is_counted_twice(text: str) -> None:
    holds = CONDITIONS[text]
    for files, snapshot in ANY + FULL:
        where = parse_predicate(text, snapshot.config.schema)
        selection = select_files(snapshot, where)
        kept = numbers(selection.files)
        assert {n for n, f in enumerate(files) if any(holds(r) for r in f.live)} <= set(kept)
        for number, certain in zip(selection.files["path"].to_pylist(), selection.certain.to_pylist(), strict=True):
            assert not certain or all(holds(r) for r in files[int(number[1:])].live)
        assert selection.by_partition + selection.by_statistics == len(files) - len(kept)
        assert selection.skipped == (("partition", selection.by_partition), ("statistics", selection.by_statistics))
        assert plan_scan(snapshot, where).skipped == selection.skipped
        counted = count_from_log(snapshot, where)
        rest = numbers(counted.undecided)
        assert counted.rows + sum(bool(holds(r)) for n in rest for r in files[n].live) == sum(
            bool(holds(r)) for f in files for r in f.live
        )
        assert counted.decided + len(rest) == len(kept)


@pytest.mark.parametrize("text", CONDITIONS)
def test_files_that_bounds_tell_apart_are_left_out(text: str) -> None:
    """Where the log tells all, a file stays only for values between its bounds, and one that is decided is not read."""
    holds = CONDITIONS[text]
    for files, snapshot in FULL:
        where = parse_predicate(text, snapshot.config.schema)
        selection = select_files(snapshot, where)
        expected, reasons = set(), [0, 0]
        for number, file in enumerate(files):
            ends = file.bounds("i")
            nulls = any(row["i"] is None for row in file.rows)
            possible: list[Row] = [{"i": None, "e": None}] if nulls else []
            if ends is not None:
                low, high = file.bounds("e") or (0, 0)
                steps = int((high - low) * 4) + 1
                possible += [
                    {"i": i, "e": low + Decimal(k) / 4} for i in range(ends[0], ends[1] + 1) for k in range(steps)
                ]
            by_values = [holds({"i": i, "e": i, **file.values}) for i in [None, *range(-30, 30)]]
            if not any(by_values):
                reasons[0] += 1
            elif not any(holds({**row, **file.values}) for row in possible) and (possible or not all(by_values)):
                reasons[1] += 1
            else:
                expected.add(number)
        assert set(numbers(selection.files)) == expected, [
            f for n, f in enumerate(files) if n in expected ^ set(numbers(selection.files))
        ]
        assert [selection.by_partition, selection.by_statistics] == reasons
        if text.startswith(("i <", "i >", "p", "q", "true")) and " and " not in text and " or i" not in text:
            # No row of a file that is left undecided makes all of them equal.
            for number in numbers(count_from_log(snapshot, where).undecided):
                file = files[number]
                assert len({bool(holds(r)) for r in (file.live + [{**r, **file.values} for r in file.rows])}) != 1


@pytest.mark.parametrize("text", CONDITIONS)
def test_only_values_of_partitions_decide_of_whole_files(text: str) -> None:
    holds = CONDITIONS[text]
    for files, snapshot in ANY:
        found = whole_files(snapshot, parse_predicate(text, snapshot.config.schema))
        verdicts = [[holds({"i": i, "e": i, **f.values}) for i in [None, *range(-30, 30)]] for f in files]
        if "null" not in text or "p" in text:
            assert numbers(found.every) == [n for n, v in enumerate(verdicts) if all(v)]
            assert numbers(found.undecided) == [n for n, v in enumerate(verdicts) if any(v) and not all(v)]
        assert {n for n, v in enumerate(verdicts) if any(v)} <= {*numbers(found.every), *numbers(found.undecided)}
        assert all(all(verdicts[n]) for n in numbers(found.every))


def test_all_files_without_a_condition() -> None:
    for files, snapshot in ANY:
        selection, whole = select_files(snapshot, None), whole_files(snapshot, None)
        assert numbers(selection.files) == numbers(whole.every) == list(range(len(files)))
        assert selection.certain.to_pylist() == [True] * len(files) and not whole.undecided.num_rows
        counted = count_from_log(snapshot, None)
        told = [f for f in files if f.told not in ("nothing", "no counts")]
        assert counted.rows == sum(len(f.live) for f in told) and counted.decided == len(told)


@pytest.mark.parametrize("name", ["i", "e", "big", "x", "p"])
def test_bounds_of_the_whole_table(name: str) -> None:
    answered = 0
    for files, snapshot in ANY + FULL:
        found = bounds_from_log(snapshot, name)
        rest = numbers(found.undecided)
        ends = [end.as_py() for end in (found.low, found.high) if end.is_valid]
        read = [r[name] for n in rest for r in files[n].live if r[name] is not None]
        every = [r[name] for f in files for r in f.live if r[name] is not None]
        assert (min([*ends, *read], default=None), max([*ends, *read], default=None)) == (
            min(every, default=None),
            max(every, default=None),
        )
        answered += len(files) - len(rest)
        if name in ("i", "e") and all(f.told == "all" and not f.deleted for f in files):
            assert not rest
        if name == "x":
            # NaN need not be told: all files with values are read.
            assert {n for n, f in enumerate(files) if any(r["x"] is not None for r in f.live)} <= set(rest)
        if name == "p":
            counts = {n for n, f in enumerate(files) if f.told in ("nothing", "no counts")}
            assert set(rest) <= counts
        for n in rest:
            # Only what may hold a lesser or a greater value is read.
            file, told = files[n], files[n].bounds(name) if name != "p" else None
            if told is not None and file.told == "all" and not file.deleted and name == "big":
                sure = [b for f in files if f.told == "all" and not f.deleted and (b := f.bounds(name)) is not None]
                least, most = min(high for _, high in sure), max(low for low, _ in sure)
                assert told[0] <= least or told[1] >= most
    assert answered > (0 if name == "x" else 20)
