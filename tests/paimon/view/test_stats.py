"""What manifests know of files, for skipping: by the file's own schema, and by the columns that the statistics are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.paimon.view.stats import EntryStatistics, _stays_not_null
from alluvium.schema import types as t
from alluvium.storage.open import open_store

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("f", pa.float64()), ("n", pa.int64())])


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Three files: of the first schema, of one where `a` has another name and `n` another type, and of one column more."""
    url = str(tmp_path / "t")
    PaimonTable.create(url, SCHEMA)
    store = open_store(url)
    append(open_target(store), [{"a": 1, "b": "x", "f": 1.5, "n": 10}, {"a": 5, "b": None, "f": 2.5, "n": 20}])
    PaimonTable.forPath(url).alter([SchemaChange.rename_column("a", "c"), SchemaChange.update_column_type("n", "INT")])
    append(open_target(store), [{"c": 7, "b": None, "f": None, "n": 30}])
    PaimonTable.forPath(url).alter([SchemaChange.add_column("z", "INT", first=True)])
    append(
        open_target(store),
        [{"z": 3, "c": None, "b": "y", "f": -1.0, "n": None}, {"z": 4, "c": 9, "b": "w", "f": 0.0, "n": 40}],
    )
    return load_snapshot(store)


def statistics(snapshot: Snapshot, **changed: list[Any]) -> EntryStatistics:
    entries = snapshot.entries.sort_by("schema_id")
    for name, values in changed.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(
            place, entries.schema.field(place), pa.array(values, entries.schema.field(place).type)
        )
    return EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))


def listed(values: pa.Array | None) -> list[Any] | None:
    return None if values is None else values.to_pylist()


def test_columns_are_found_by_id(snapshot: Snapshot) -> None:
    known = statistics(snapshot)
    assert (known.num_files, listed(known.num_rows())) == (3, [2, 1, 2])
    assert (listed(known.lower(("c",))), listed(known.upper(("c",)))) == ([1, 7, 9], [5, 7, 9])
    assert listed(known.null_count(("c",))) == [0, 0, 1]
    assert (listed(known.lower(("b",))), listed(known.upper(("b",)))) == (["x", None, "w"], ["x", None, "y"])
    assert listed(known.null_count(("b",))) == [1, 1, 0]
    # A column that a file does not know has no statistics in it.
    assert (listed(known.lower(("z",))), listed(known.null_count(("z",)))) == ([None, None, 3], [None, None, 0])


def test_of_another_type_nothing_is_known(snapshot: Snapshot) -> None:
    known = statistics(snapshot)
    assert (listed(known.lower(("n",))), listed(known.upper(("n",)))) == ([None, 30, 40], [None, 30, 40])
    # Values of the wide type may not fit, and are null then.
    assert listed(known.null_count(("n",))) == [None, 0, 1]


def test_floating_point_has_no_upper_bound(snapshot: Snapshot) -> None:
    """NaN is the greatest number, and writers leave it out."""
    low, high = (encode_rows([pa.array([v], pa.float64())], [(t.DOUBLE, 0)])[0].as_py() for v in (1.5, 2.5))
    known = statistics(snapshot, stats_min=[low] * 3, stats_max=[high] * 3, value_stats_cols=[["f"]] * 3)
    assert (listed(known.lower(("f",))), listed(known.upper(("f",)))) == ([1.5] * 3, None)


@pytest.mark.parametrize(("suffix", "bounds"), [("orc", None), ("parquet", "ab   ")])
def test_orc_fills_up_char_in_its_bounds(tmp_path: Path, suffix: str, bounds: str | None) -> None:
    """Of values from `ab\x01` to `ab` the blanks make bounds from `ab\x01  ` to `ab   `."""
    url = str(tmp_path / "t")
    PaimonTable.create(url, [DataField(0, "c", parse_type("CHAR(5)"))])
    store = open_store(url)
    append(open_target(store), [{"c": "ab"}])
    snapshot = load_snapshot(store)
    known = statistics(snapshot, stats_min=[row("ab   ")], stats_max=[row("ab   ")], file_name=[f"data.{suffix}"])
    assert (listed(known.lower(("c",))), listed(known.upper(("c",)))) == ([bounds], [bounds])


def test_what_is_no_column(snapshot: Snapshot) -> None:
    known = statistics(snapshot)
    for path in (("a",), ("c", "x"), ()):
        if path:
            assert known.lower(path) is known.upper(path) is known.null_count(path) is None
    assert known.exact(("c",)) is None


def row(*values: Any) -> bytes:
    arrays = [pa.array([v], pa.int32() if isinstance(v, int) else pa.string()) for v in values]
    types = [(t.INTEGER if isinstance(v, int) else t.STRING, 0) for v in values]
    made: bytes = encode_rows(arrays, types)[0].as_py()
    return made


def test_statistics_of_some_columns(snapshot: Snapshot) -> None:
    """`_VALUE_STATS_COLS` says of which, in their order; one that the file's schema does not have makes them unreadable."""
    held = snapshot.entries.sort_by("schema_id").to_pylist()
    low, high = row("p", 3), row("q", 8)
    names = [["b", "a"], ["b", "gone"], ["b", "c"]]
    known = statistics(
        snapshot,
        stats_min=[low] * 3, stats_max=[high] * 3, stats_nulls=[[4, 5], [4, 5], [4]], value_stats_cols=names,
    )  # fmt: skip
    assert len(held) == 3
    assert (listed(known.lower(("c",))), listed(known.upper(("c",)))) == ([3, None, 3], [8, None, 8])
    assert (listed(known.lower(("b",))), listed(known.upper(("b",)))) == (["p", None, "p"], ["q", None, "q"])
    # A list of counts that is too short has none for the rest.
    assert listed(known.null_count(("c",))) == [5, None, None]
    assert listed(known.null_count(("b",))) == [4, None, 4]
    nothing = statistics(
        snapshot,
        stats_min=[bytes(12)] * 3,
        stats_max=[bytes(12)] * 3,
        stats_nulls=[[], None, []],
        value_stats_cols=[[], [], []],
    )
    assert (listed(nothing.lower(("c",))), listed(nothing.null_count(("c",)))) == ([None] * 3, [None] * 3)


def test_rows_that_are_too_short_tell_nothing(snapshot: Snapshot) -> None:
    """Writers that keep no statistics leave an empty row."""
    full = snapshot.entries.sort_by("schema_id")["stats_min"].to_pylist()
    known = statistics(snapshot, stats_min=[bytes(12), full[1], None])
    assert listed(known.lower(("c",))) == [None, 7, None]


def test_files_are_grouped_by_schema_and_columns(snapshot: Snapshot) -> None:
    """Files that are alike in turn with others: each gets its own bounds, in its own place."""
    entries = pa.concat_tables([snapshot.entries.sort_by("schema_id")] * 2)
    known = EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))
    assert listed(known.lower(("c",))) == [1, 7, 9, 1, 7, 9]
    assert listed(known.null_count(("z",))) == [None, None, 0, None, None, 0]


@pytest.mark.parametrize(
    ("written", "read", "stays"),
    [
        ("INT", "INT NOT NULL", True), ("TINYINT", "BIGINT", True), ("BIGINT", "INT", False), ("INT", "SMALLINT", False),
        ("INT", "STRING", True), ("DATE", "STRING", True), ("STRING", "INT", False), ("INT", "DOUBLE", True),
        ("FLOAT", "DOUBLE", True), ("DOUBLE", "FLOAT", False), ("INT", "FLOAT", False), ("INT", "DECIMAL(10, 0)", True),
        ("INT", "DECIMAL(9, 0)", False), ("INT", "DECIMAL(12, 2)", True), ("INT", "DECIMAL(11, 2)", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", True), ("DECIMAL(10, 2)", "DECIMAL(12, 4)", True),
        ("DECIMAL(10, 2)", "DECIMAL(11, 4)", False), ("DECIMAL(10, 2)", "DECIMAL(20, 1)", False),
        ("DOUBLE", "DECIMAL(38, 0)", False), ("STRING", "DECIMAL(38, 0)", False), ("CHAR(3)", "STRING", True),
        ("TIMESTAMP(3)", "DATE", False), ("BOOLEAN", "INT", False), ("VARCHAR(5)", "VARCHAR(9)", True),
    ],
)  # fmt: skip
def test_whether_nulls_can_come_of_a_cast(written: str, read: str, stays: bool) -> None:
    assert _stays_not_null(parse_type(written), parse_type(read)) is stays
