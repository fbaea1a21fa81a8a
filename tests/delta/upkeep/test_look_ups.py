"""How many files a look-up opens, by statistics alone."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from made_table import make_table

from alluvium.delta.upkeep.look_ups import LookUps, look_ups, sampled
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.schema.types import BINARY, BOOLEAN, DATE, DOUBLE, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, Struct
from alluvium.storage.open import open_store

COLUMNS = {
    "n": LONG, "d": DOUBLE, "s": STRING, "day": DATE, "at": TIMESTAMP, "clock": TIMESTAMP_NTZ, "b": BINARY, "yes": BOOLEAN,
}  # fmt: skip
SCHEMA = Struct(tuple(Field(name, kind) for name, kind in COLUMNS.items()))


def snapshot_of(root: Path, *bounds: tuple | None, column: str = "n") -> Snapshot:
    url = make_table(root, SCHEMA)
    lines = []
    for number, one in enumerate(bounds):
        stats = {"numRecords": 10}
        if one is not None:
            stats |= {"minValues": {column: one[0]}, "maxValues": {column: one[1]}, "nullCount": {column: 0}}
        if one == ():
            stats |= {"minValues": {}, "maxValues": {}, "nullCount": {column: 10}}
        add = {"path": f"f{number}", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
        lines.append(json.dumps({"add": add | {"stats": json.dumps(stats)}}))
    (root / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))
    return load_snapshot(open_store(url))


def test_files_between_whose_bounds_a_value_lies_are_opened(tmp_path):
    before = snapshot_of(tmp_path / "1", (0, 9), (0, 9), (5, 9))
    after = snapshot_of(tmp_path / "2", (0, 2), (3, 5), (6, 9))
    found = look_ups(before, after, [sampled("n", ("n",), [0, 5, 9, None, 4])])
    assert found == (LookUps("n", 2.5, 1.0),)


def test_a_file_that_tells_nothing_is_opened_and_one_of_nulls_is_not(tmp_path):
    snapshot = snapshot_of(tmp_path / "1", (0, 9), None)
    assert look_ups(snapshot, snapshot, [sampled("n", ("n",), [1, 20])]) == (LookUps("n", 1.5, 1.5),)


@pytest.mark.parametrize(
    ("column", "bounds", "key", "opened"),
    [
        ("d", (0.5, 1.5), 1.0, 1.0),
        ("s", ("a", "b"), "ab", 1.0),
        ("s", ("a", "b"), "c", 0.0),
        ("day", ("1970-01-02", "1970-01-04"), 2, 1.0),
        ("at", ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z"), 500_000, 1.0),
        ("yes", (False, False), 1, 0.0),
    ],
)
def test_bounds_are_compared_as_samples_are(tmp_path, column, bounds, key, opened):
    table = {"yes": None}.get(column, bounds)
    snapshot = snapshot_of(tmp_path / "1", table, column=column)
    found = look_ups(snapshot, snapshot, [sampled(column, (column,), [key])])
    # Of booleans there are no bounds.
    assert [one.before for one in found] == ([1.0] if column == "yes" else [opened])


@pytest.mark.parametrize("column", ["b", "clock", "n"])
def test_of_some_columns_nothing_is_told(tmp_path, column):
    bounds = {"clock": ("1970-01-01T00:00:00.000", "1970-01-02T00:00:00.000")}.get(column)
    snapshot = snapshot_of(tmp_path / "1", bounds, column=column)
    assert look_ups(snapshot, snapshot, [sampled(column, (column,), ["00"] if column == "b" else [])]) == ()


def test_samples_are_thinned_evenly():
    keys = sampled("n", ("n",), [None, *range(5000), float("nan")]).keys
    assert (len(keys), keys[:2], keys[-1]) == (1000, (0, 5), 4995)
    assert sampled("s", ("s",), [b"a\xc3\xa9", "b"]).keys == ("aé", "b")


@pytest.mark.parametrize("seed", range(6))
def test_files_are_counted_as_by_a_loop(tmp_path, seed):
    """Of each value those between whose bounds it lies, and those that tell nothing; not those of nulls alone."""
    lot = random.Random(seed)
    lines, opened_by = [], []
    for number in range(lot.choice([1, 5, 12])):
        kind = lot.choice(["bounds", "bounds", "untold", "half", "nulls"])
        low, high = sorted(lot.choices(range(10), k=2))
        stats = {"numRecords": 5}
        if kind == "bounds":
            stats |= {"minValues": {"n": low}, "maxValues": {"n": high}, "nullCount": {"n": lot.randrange(5)}}
        elif kind == "half":
            stats |= {"minValues": {"n": low}, "nullCount": {"n": 1}}
        elif kind == "nulls":
            stats |= {"nullCount": {"n": 5}}
        told = None if kind == "untold" and lot.random() < 0.5 else json.dumps(stats)
        add = {"path": f"f{number}", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
        lines.append(json.dumps({"add": add | ({} if told is None else {"stats": told})}))
        opened_by.append(
            {"bounds": lambda key, a=low, b=high: a <= key <= b, "nulls": lambda key: False}.get(kind, lambda key: True)
        )
    url = make_table(tmp_path / "t", SCHEMA)
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))
    snapshot = load_snapshot(open_store(url))
    keys = lot.choices(range(-1, 11), k=7)
    average = sum(sum(opens(key) for opens in opened_by) for key in keys) / len(keys)
    assert look_ups(snapshot, snapshot, [sampled("n", ("n",), keys)]) == (
        LookUps("n", round(average, 2), round(average, 2)),
    )


@pytest.mark.parametrize(
    ("count", "taken"),
    [(0, 0), (1, 1), (999, 999), (1000, 1000), (1001, 1001), (1999, 1999), (2000, 1000), (2001, 1001), (3500, 1167)],
)
def test_how_many_values_are_looked_up(count, taken):
    assert len(sampled("n", ("n",), range(count)).keys) == taken


def test_a_column_without_samples_or_of_one_version_alone_is_left_out(tmp_path):
    told, other = snapshot_of(tmp_path / "1", (0, 9)), snapshot_of(tmp_path / "2", ("a", "b"), column="s")
    assert look_ups(told, told, [sampled("n", ("n",), []), sampled("s", ("s",), ["x"])]) == (LookUps("s", 1.0, 1.0),)
    assert [
        one.column for one in look_ups(told, other, [sampled("n", ("n",), [1]), sampled("gone", ("gone",), [1])])
    ] == ["n"]
