"""Counts and bounds out of the log, beside the rows of files that are made up: what the log does not know is left to be read."""

from __future__ import annotations

import json
import math
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.view.answers import bounds_from_log, count_from_log
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.storage.stores.memory import MemoryStore

TYPES = {"i": "integer", "x": "double", "s": "string", "e": "decimal(5,2)", "wide": "decimal(38,2)"}
#: Whose bounds are exact where they are called tight.
EXACT = ("i", "e")


@dataclass
class File:
    """A file by its rows, each a number or None; the same one stands in every column."""

    name: str
    rows: list[int | None]
    deleted: set[int] = field(default_factory=set)
    day: str | None = "2024-01-01"
    tight: bool = True
    told: tuple[str, ...] = ("numRecords", "minValues", "maxValues", "nullCount")

    @property
    def live(self) -> list[int | None]:
        return [row for n, row in enumerate(self.rows) if n not in self.deleted]

    def action(self) -> dict[str, Any]:
        # Bounds that are wide hold for the rows that were deleted, too, and may be wider.
        values = [row for row in (self.live if self.tight else self.rows) if row is not None]
        slack = 0 if self.tight else 2
        ends = {
            "minValues": {name: shown(name, min(values) - slack) for name in TYPES} if values else {},
            "maxValues": {name: shown(name, max(values) + slack) for name in TYPES} if values else {},
        }
        said = {"numRecords": len(self.rows), **ends, "nullCount": dict.fromkeys(TYPES, self.rows.count(None))}
        stats = {name: said[name] for name in self.told} | ({} if self.tight else {"tightBounds": False})
        vector = {
            "storageType": "p",
            "pathOrInlineDv": "file:/v",
            "offset": 1,
            "sizeInBytes": 40,
            "cardinality": len(self.deleted),
        }
        return {"add": {
            "path": self.name, "partitionValues": {"day": self.day}, "size": 1, "modificationTime": 0, "dataChange": True,
            "stats": json.dumps(stats), **({"deletionVector": vector} if self.deleted else {}),
        }}  # fmt: skip


def shown(name: str, value: int) -> Any:
    return {"s": f"{value + 100:04}", "x": float(value), "e": float(value), "wide": float(value)}.get(name, value)


def snapshot_of(files: list[File]) -> Snapshot:
    columns = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in {**TYPES, "day": "date"}.items()]
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["day"], "configuration": {},
                "schemaString": json.dumps({"type": "struct", "fields": columns})}  # fmt: skip
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    store = MemoryStore(uuid.uuid4().hex, "/t")
    lines = [{"protocol": protocol}, {"metaData": metadata}, *(f.action() for f in files)]
    store.put(commit_path(0), "\n".join(map(json.dumps, lines)).encode())
    return load_snapshot(store)


def random_files(lot: random.Random, *, tells_all: bool = False) -> list[File]:
    found = []
    for number in range(lot.randint(0, 6)):
        rows = [lot.choice([None, *range(lot.choice([1, 9]))]) for _ in range(lot.randint(0, 4))]
        made = File(f"f{number}", rows, tight=lot.random() < 0.7)
        if not made.tight:
            made.deleted = {n for n in range(len(rows)) if lot.random() < 0.4}
        if not tells_all and lot.random() < 0.3:
            made.told = tuple(
                name for name in made.told if lot.random() < 0.6 or (name == "numRecords" and made.deleted)
            )
        made.day = lot.choice(["2024-01-01", "2024-01-02", None])
        found.append(made)
    return found


@pytest.mark.parametrize("column", TYPES)
@pytest.mark.parametrize("seed", range(10))
def test_no_value_lies_beyond_what_is_told_and_what_is_left_to_read(seed: int, column: str) -> None:
    files = random_files(random.Random(f"{seed} {column}"))
    found = bounds_from_log(snapshot_of(files), column)
    left = set(found.undecided["path"].to_pylist())
    values = [row for f in files for row in f.live if row is not None]
    to_read = [row for f in files if f.name in left for row in f.live if row is not None]
    for pick, told in ((min, found.low.as_py()), (max, found.high.as_py())):
        assert told is None or column in EXACT
        known = [] if told is None else [int(told)]
        assert pick([*known, *to_read], default=None) == pick(values, default=None)
    # What holds no value at all is never read, if that is known.
    assert not any(f.name in left for f in files if "numRecords" in f.told and not f.live)


def outside(told: list[int], low: float | None, high: float | None) -> bool:
    return low is None or high is None or low <= min(told, default=math.inf) or high >= max(told, default=-math.inf)


@pytest.mark.parametrize("seed", range(10))
def test_no_more_is_left_to_read_than_need_be(seed: int) -> None:
    """Of files that say everything: those whose bounds are wide, and reach as far as the exact ones of the others."""
    files = random_files(random.Random(seed), tells_all=True)
    exact = [row for f in files if f.tight for row in f.live if row is not None]
    expected = set()
    for f in files:
        values = [row for row in f.rows if row is not None]
        if not f.tight and f.live and values and outside(exact, min(values) - 2, max(values) + 2):
            expected.add(f.name)
    found = bounds_from_log(snapshot_of(files), "i")
    assert set(found.undecided["path"].to_pylist()) == expected
    assert (found.low.as_py(), found.high.as_py()) == (min(exact, default=None), max(exact, default=None))
    # A column whose bounds are cut is read where one of its ends may be, and not in between.
    text = bounds_from_log(snapshot_of([File("a", [1, 2]), File("b", [3, 4]), File("c", [5, 5])]), "s")
    assert text.undecided["path"].to_pylist() == ["a", "c"]


def test_bounds_of_partition_columns_are_their_values() -> None:
    days = ["2024-03-01", "2024-01-01", "2024-02-01", "2023-01-01", None, "2024-01-15"]
    files = [File(f"f{n}", [1], day=day) for n, day in enumerate(days)]
    files[3].rows = []
    found = bounds_from_log(snapshot_of(files), "DAY")
    assert (str(found.low.as_py()), str(found.high.as_py()), found.path) == ("2024-01-01", "2024-03-01", ("day",))
    assert found.undecided.num_rows == 0
    # Where it is not known how many rows a file has, it may have none, and only what lies within is of no matter.
    files[1].told = files[2].told = ()
    found = bounds_from_log(snapshot_of(files), "day")
    assert found.undecided["path"].to_pylist() == ["f1"]
    assert (str(found.low.as_py()), str(found.high.as_py())) == ("2024-01-15", "2024-03-01")


WHERE: dict[str, Callable[[int | None, str | None], bool]] = {
    "i >= 3": lambda row, _: row is not None and row >= 3,
    "i is null": lambda row, _: row is None,
    "day = '2024-01-01'": lambda _, day: day == "2024-01-01",
    "day = '2024-01-01' and i < 5": lambda row, day: day == "2024-01-01" and row is not None and row < 5,
    "day is null or i = 0": lambda row, day: day is None or row == 0,
}


@pytest.mark.parametrize("where", [None, *WHERE])
@pytest.mark.parametrize("seed", range(6))
def test_counts_of_files_and_what_is_left_to_count(seed: int, where: str | None) -> None:
    files = random_files(random.Random(f"{seed} {where}"))
    snapshot = snapshot_of(files)
    condition = None if where is None else parse_predicate(where, snapshot.config.schema)
    fits: Callable[[int | None, str | None], bool] = (lambda *_: True) if where is None else WHERE[where]
    found = count_from_log(snapshot, condition)
    left = set(found.undecided["path"].to_pylist())
    counts = {f.name: sum(fits(row, f.day) for row in f.live) for f in files}
    assert found.rows + sum(counts[name] for name in left) == sum(counts.values())
    assert found.decided + len(left) <= len(files)
    if where is None:
        assert left == {f.name for f in files if "numRecords" not in f.told}
        assert found.decided == len(files) - len(left)


@pytest.mark.parametrize(("name", "column"), [("nowhere", "nowhere"), ("i.x", "i.x"), ("day.x", "day.x"), ("", "")])
def test_columns_that_are_not_there(name: str, column: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        bounds_from_log(snapshot_of([File("a", [1])]), name)
    assert (caught.value.code, caught.value.column) == ("unknown-column", column)


def test_texts_of_a_fixed_length_are_padded_before_they_are_compared() -> None:
    """As they are read: "ab" of four letters stands behind "ab" and a tab."""
    said = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    columns = [{"name": name, "type": "string", "nullable": True, "metadata": said} for name in ("c", "p")]
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["p"], "configuration": {},
                "schemaString": json.dumps({"type": "struct", "fields": columns})}  # fmt: skip
    store = MemoryStore(uuid.uuid4().hex, "/t")
    lines: list[dict[str, Any]] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    for name, low, high, value in (
        ("a", "ab", "ab\t", "x"),
        ("b", "ab", "ab", "xy"),
        ("c", "aa", "aa", "w"),
        ("d", "aab", "ab\t", "x"),
    ):
        stats = {"numRecords": 1, "minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": 0}}
        lines.append(
            {
                "add": {
                    "path": name,
                    "partitionValues": {"p": value},
                    "size": 1,
                    "modificationTime": 0,
                    "dataChange": True,
                    "stats": json.dumps(stats),
                }
            }
        )
    store.put(commit_path(0), "\n".join(map(json.dumps, lines)).encode())
    snapshot = load_snapshot(store)
    found = bounds_from_log(snapshot, "p")
    assert (found.low.as_py(), found.high.as_py(), found.undecided.num_rows) == ("w   ", "xy  ", 0)
    texts = bounds_from_log(snapshot, "c")
    assert (texts.low.as_py(), texts.high.as_py()) == (None, None)
    # The least is in "c"; the greatest may be in "b", padded, as well as behind a tab.
    assert {"b", "c"} <= set(texts.undecided["path"].to_pylist())
