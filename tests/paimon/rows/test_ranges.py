"""Ranges of row ids as verbs have them: each counts as one file, and goes by its oldest."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_tables import Evolved

from alluvium.errors import UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.rows.candidates import PaimonVersion
from alluvium.paimon.rows.range_candidates import RangeCandidates, range_candidates
from alluvium.paimon.view.source import PaimonSource, named_columns
from alluvium.plan.changes import RowColumns
from alluvium.plan.scan import FileConstant, RowPosition
from alluvium.schema.types import LONG
from alluvium.storage.open import open_store

FIELDS = pa.schema([("p", pa.string()), ("id", pa.int32()), ("a", pa.string())])


def opened(path: Path) -> Snapshot:
    return load_snapshot(open_store(str(path)))


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Of partition `x` ids 0 to 1, in three files, and 2 to 4; of `y` ids 0 to 1 once more, in two files."""
    table = Evolved(tmp_path / "t", FIELDS, ("p",))
    table.add({"id": [1, 2], "a": ["a", "b"]}, 0, p="x")
    table.add({"id": [3, 4, 5], "a": ["c", "d", "e"]}, 2, p="x")
    table.add({"a": ["A", "B"]}, 0, p="x")
    table.add({"id": [6, 7], "a": ["f", "g"]}, 0, p="y")
    table.add({"id": [8, 9]}, 0, p="x")
    table.add({"a": ["F", "G"]}, 0, p="y")
    return opened(tmp_path / "t")


def found(snapshot: Snapshot) -> RangeCandidates:
    return range_candidates(snapshot, snapshot.entries)


def sizes(snapshot: Snapshot, *files: int) -> int:
    every = snapshot.entries["file_size"].to_pylist()
    return sum(every[n] for n in files)


def changed(snapshot: Snapshot, **columns: list[Any]) -> pa.Table:
    entries = snapshot.entries
    for name, values in columns.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), pa.array(values, entries.field(place).type))
    return entries


def test_each_range_is_one_file(snapshot: Snapshot) -> None:
    ranges = found(snapshot)
    assert (ranges.ranges.to_pylist(), ranges.numbers.to_pylist()) == ([0, 1, 0, 2, 0, 2], [0, 1, 2])
    assert ranges.files.to_pylist() == [
        {"path": f"p={p}/bucket-0/data-main-{n}.parquet", "size": sizes(snapshot, *files),
         "file_name": f"data-main-{n}.parquet", "row_count": count}
        for p, n, count, files in (("x", 0, 2, (0, 2, 4)), ("x", 1, 3, (1,)), ("y", 3, 2, (3, 5)))
    ]  # fmt: skip
    assert ranges.paths.to_pylist() == ranges.files["path"].to_pylist()
    assert ranges.live_counts(ranges.files).to_pylist() == [2, 3, 2]
    assert (ranges.size_bytes, ranges.total_files) == (sizes(snapshot, *range(6)), 6)
    assert (ranges.url, ranges.version, ranges.stored_ids) == (snapshot.store.url, 6, None)
    assert ranges.table_schema.names == ("p", "id", "a") and ranges.columns == RowColumns()


def test_the_oldest_goes_by_its_number_then_by_its_name(snapshot: Snapshot) -> None:
    entries = changed(snapshot, max_sequence_number=[5, 9, 3, 7, 3, 6])
    names = range_candidates(snapshot, entries).files["file_name"].to_pylist()
    assert names == ["data-main-2.parquet", "data-main-1.parquet", "data-main-5.parquet"]


def test_some_of_the_ranges(snapshot: Snapshot) -> None:
    ranges = found(snapshot).renumbered(pa.array([70, 80, 90]))
    some = ranges.only(pa.array([90, 70, 1]))
    assert (some.numbers.to_pylist(), some.ranges.to_pylist()) == ([70, 90], [0, 0, 1, 0, 1])
    assert some.files["row_count"].to_pylist() == [2, 2] and some.size_bytes == sizes(snapshot, 0, 2, 3, 4, 5)
    assert some.places(pa.array([90, 80, 70])).to_pylist() == [1, None, 0]
    assert some.only(pa.array([90])).files["file_name"].to_pylist() == ["data-main-3.parquet"]
    nothing = some.only(pa.array([], pa.int64()))
    assert (nothing.files.num_rows, nothing.size_bytes, nothing.total_files) == (0, 0, 6)


def test_what_is_chosen_tells_scans_apart(snapshot: Snapshot) -> None:
    ranges = found(snapshot)
    assert ranges.identity == found(opened_again(snapshot)).identity
    assert ranges.identity[:-2] == PaimonSource(snapshot).identity and ranges.identity[-2] == "ranges"
    assert len(ranges.identity[-1]) == len(hashlib.sha256().hexdigest())
    others = [ranges.only(pa.array([0, 1])), ranges.only(pa.array([0])), ranges.renumbered(pa.array([0, 1, 3]))]
    assert len({one.identity for one in (ranges, *others)}) == 4


def opened_again(snapshot: Snapshot) -> Snapshot:
    return load_snapshot(snapshot.store)


def test_rows_tell_their_range_and_their_place_in_it(snapshot: Snapshot) -> None:
    ranges = found(snapshot).renumbered(pa.array([70, 80, 90]))
    plan = ranges.plan_scan()
    assert plan.schema.names == ("p", "id", "a", "_ROW_ID", "_SEQUENCE_NUMBER", "__alluvium_file", "__alluvium_row")
    told = {}
    for part in plan.parts:
        assert part.is_exact
        (file, row) = part.output[-2:]
        assert (file.name, file.type, file.nullable, file.value) == (
            "__alluvium_file", LONG, False, FileConstant("__alluvium_file", LONG),
        )  # fmt: skip
        assert (row.name, row.type, row.nullable, row.value) == ("__alluvium_row", LONG, False, RowPosition())
        names = [c.name for c in part.output]
        if part.merge is None:
            assert names == list(plan.schema.names)
        else:
            assert names[-2:] == ["__alluvium_file", "__alluvium_row"] and "_SECTION" in names
        for path, constants in zip(part.files["path"].to_pylist(), part.files["constants"].to_pylist(), strict=True):
            told[path.rpartition("-")[2]] = constants["__alluvium_file"]
    assert told == {
        "0.parquet": 70, "1.parquet": 80, "2.parquet": 70, "3.parquet": 90, "4.parquet": 70, "5.parquet": 90,
    }  # fmt: skip
    where = parse_predicate("p = 'y'", named_columns(snapshot.schema), "UTC")
    assert sum(part.files.num_rows for part in ranges.plan_scan(where).parts) == 2
    by_id = parse_predicate("_ROW_ID >= 2", named_columns(snapshot.schema), "UTC")
    assert sum(part.files.num_rows for part in ranges.plan_scan(by_id).parts) == 1


def test_which_ranges_a_condition_leaves(snapshot: Snapshot) -> None:
    version = PaimonVersion(snapshot)
    for text, wanted in (
        ("_ROW_ID = 3", ["data-main-1.parquet"]),
        ("p = 'y'", ["data-main-3.parquet"]),
        ("p = 'z'", []),
    ):
        left = version.candidates(parse_predicate(text, named_columns(snapshot.schema), "UTC"))
        assert isinstance(left, RangeCandidates)
        assert left.files["file_name"].to_pylist() == wanted
        assert (left.numbers.to_pylist(), left.total_files) == (list(range(len(wanted))), 6)


@pytest.mark.parametrize(
    ("columns", "refused"),
    [
        ({}, False),
        # One row in common with the range that follows, or nothing.
        ({"row_count": [2, 3, 2, 2, 2, 2], "first_row_id": [0, 1, 0, 0, 0, 0]}, True),
        ({"row_count": [2, 3, 2, 2, 2, 2], "first_row_id": [0, 2, 0, 0, 0, 0]}, False),
        ({"first_row_id": [0, 2, 1, 0, 0, 0]}, True),
        # The same rows of other partitions and buckets are others.
        ({"first_row_id": [0, 2, 0, 1, 0, 1]}, False),
        ({"bucket": [0, 1, 0, 0, 0, 0], "first_row_id": [0, 1, 0, 0, 0, 0]}, False),
        # Files of a range have the same rows.
        ({"row_count": [2, 3, 1, 2, 2, 2]}, True),
        ({"row_count": [2, 3, 2, 2, 2, 3]}, True),
        ({"first_row_id": [0, 2, 0, None, 0, 0]}, True),
        ({"file_name": ["a.parquet", "b.parquet", "c.parquet", "d.parquet", "e.parquet", "f.blob"]}, True),
        ({"file_name": ["a.vector.parquet", "b.parquet", "c.parquet", "d.parquet", "e.parquet", "f.parquet"]}, True),
        ({"file_name": ["vector.parquet", "blob.parquet", "c.parquet", "d.parquet", "e.parquet", "f.parquet"]}, False),
    ],
)
def test_ranges_beside_which_no_columns_are_written(
    snapshot: Snapshot, columns: dict[str, list[Any]], refused: bool
) -> None:
    entries = changed(snapshot, **columns)
    if not refused:
        assert len(range_candidates(snapshot, entries).numbers) >= 3
        return
    with pytest.raises(UnsupportedFeature) as caught:
        range_candidates(snapshot, entries)
    assert (caught.value.code, caught.value.features) == ("unsupported-row-change", ("data-evolution.enabled",))
    assert caught.value.path == entries["file_name"][0].as_py() and "Paimon's own engine" in (caught.value.hint or "")


def test_no_files_no_ranges(snapshot: Snapshot) -> None:
    nothing = range_candidates(snapshot, snapshot.entries.slice(0, 0))
    assert (nothing.numbers.to_pylist(), nothing.ranges.to_pylist(), nothing.size_bytes) == ([], [], 0)
    assert nothing.plan_scan().parts == () and nothing.numbers.type == nothing.ranges.type == pa.int64()
    assert replace(nothing, snapshot=replace(snapshot, document=None)).version == 0
