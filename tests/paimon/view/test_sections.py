"""Sections of files that merge, rows of equal sequence numbers, and ranges of row ids."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from paimon_rows import append, full, open_target
from paimon_tables import HandWritten

import alluvium
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.expr.tree import Column, Compare, Literal
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.view.merge import FILE_ORDER, GROUP, SEQUENCE
from alluvium.paimon.view.row_ranges import row_ranges
from alluvium.paimon.view.scan_parts import plan_selection
from alluvium.paimon.view.selection import in_sections, select_files
from alluvium.schema.types import LONG
from alluvium.storage.open import open_store

KV = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("w", pa.int64())])


def written(path: Path, *commits: list[int], sequences: list[int] | None = None, **options: str) -> Snapshot:
    """A table of commits of keys, each with values that tell the commit."""
    table = HandWritten(path, KV, ["k"], **options)
    for number, keys in enumerate(commits):
        if sequences is not None:
            table._sequence = sequences[number]
        table.commit([{"k": k, "v": number, "w": number * 10} for k in keys])
    return load_snapshot(open_store(str(path)))


def order_of(snapshot: Snapshot) -> list[str]:
    merges = {part.merge for part in plan_selection(snapshot, select_files(snapshot, None)).parts}
    (merge,) = merges - {None}
    assert merge is not None
    return [c.name for c in merge.order]


def test_sections_are_numbered_before_files_are_skipped(tmp_path: Path) -> None:
    snapshot = written(tmp_path / "t", [1, 5], [10, 15], [3, 4], [12], [20])
    sections = select_files(snapshot, None).sections
    assert sections is not None
    assert sections.numbers["section"].to_pylist() == [0, 1, 0, 1, -1]
    where = Compare("=", Column(("k",), LONG), Literal(12, LONG))
    narrow = select_files(snapshot, where).sections
    assert narrow is not None
    assert narrow.numbers.select(["section", "place"]).to_pylist() == [
        {"section": 1, "place": 1}, {"section": 1, "place": 3},
    ]  # fmt: skip
    about = Compare(">=", Column((GROUP,), LONG), Literal(1, LONG))
    asked = select_files(snapshot, about)
    assert asked.sections is not None
    assert asked.sections.numbers["section"].to_pylist() == [1, 1]
    # What an engine leaves to other tasks was not skipped.
    assert (asked.by_partition, asked.by_statistics) == (0, 0)
    behind = in_sections(snapshot, snapshot.entries, 7).sections
    assert behind is not None
    assert behind.numbers["section"].to_pylist() == [7, 8, 7, 8, -1]


@pytest.mark.parametrize("told", [True, False])
def test_rows_that_take_back_and_are_not_counted(told: bool, tmp_path: Path) -> None:
    """pypaimon says 0 of each file, whatever kinds `rowkind.field` gives its rows; a file alone is merged, too."""
    schema = pa.schema([*KV, ("op", pa.string())])
    table = HandWritten(tmp_path / "t", schema, ["k"], **{"rowkind.field": "op"} if told else {})
    table.commit([{"k": 1, "op": "+I"}, {"k": 3, "op": "+I"}], level=5)
    table.commit([{"k": 9, "op": "-D"}], ["-D"], counts_deletes=not told)
    table.commit([{"k": 3, "op": "-D"}], ["-D"], counts_deletes=not told)
    snapshot = load_snapshot(open_store(str(tmp_path / "t")))
    sections = select_files(snapshot, None).sections
    assert sections is not None
    assert (sections.numbers["section"].to_pylist(), sections.has_retracts) == ([0, 1, 0], True)
    opened = alluvium.open(str(tmp_path / "t"))
    assert opened.to_arrow()["k"].to_pylist() == [1]
    assert opened.to_arrow(where="k = 9").num_rows == 0


def test_a_count_is_believed_above_level_0_and_where_no_column_tells_kinds(tmp_path: Path) -> None:
    schema = pa.schema([*KV, ("op", pa.string())])
    table = HandWritten(tmp_path / "t", schema, ["k"], **{"rowkind.field": "op"})
    table.commit([{"k": 1, "op": "+I"}], level=5)
    table.commit([{"k": 2, "op": "+I"}])
    snapshot = load_snapshot(open_store(str(tmp_path / "t")))
    assert select_files(snapshot, None).sections.numbers["section"].to_pylist() == [-1, 1]
    plain = written(tmp_path / "p", [1], [2])
    assert select_files(plain, None).sections.numbers["section"].to_pylist() == [-1, -1]


def test_a_null_key_is_the_smallest(tmp_path: Path) -> None:
    """`primary-key.nullable` of Paimon 2: a file from null on reaches to the keys of others."""
    path = tmp_path / "t"
    table = HandWritten(path, pa.schema([("k", pa.int64()), ("v", pa.int64())]), ["k"])
    schema = path / "schema" / "schema-0"
    said = json.loads(schema.read_bytes())
    said["options"]["primary-key.nullable"] = "true"
    said["fields"][0]["type"] = "BIGINT"
    schema.write_text(json.dumps(said))
    for number, keys in enumerate(([1], [None, 1], [None], [2, 3], [None])):
        table.commit([{"k": k, "v": number} for k in keys])
    rows = alluvium.open(str(path)).to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: (row["k"] is not None, row["k"])) == [
        {"k": None, "v": 4}, {"k": 1, "v": 1}, {"k": 2, "v": 3}, {"k": 3, "v": 3},
    ]  # fmt: skip
    with pytest.raises(UnsupportedFeature, match=r"primary-key\.nullable") as caught:
        append(open_target(open_store(str(path))), [{"k": 5, "v": 5}])
    assert caught.value.code == "unsupported-option"


@pytest.mark.parametrize(
    ("sequences", "ties"),
    [([0, 2, 4], False), ([0, 1, 4], True), ([0, 0, 0], True), ([4, 2, 0], False), ([0, 2, 3], True)],
)
def test_ties_are_seen_by_the_ranges_of_sequence_numbers(tmp_path: Path, sequences: list[int], ties: bool) -> None:
    snapshot = written(tmp_path / "t", [1, 2], [1, 2], [1, 2], sequences=sequences)
    assert order_of(snapshot) == [SEQUENCE, FILE_ORDER] if ties else [SEQUENCE]
    # Files of other sections, and files that are alone, tie with nobody.
    apart = written(tmp_path / "apart", [1, 2], [10, 11], [1, 2], [10, 11], [20], sequences=[0, 0, 2, 2, 0])
    assert order_of(apart) == [SEQUENCE]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_of_equal_sequence_numbers_the_file_that_came_last_wins_with_all_columns(tmp_path: Path, engine: str) -> None:
    written(tmp_path / "t", [1, 2], [1, 2], [2, 3], sequences=[5, 5, 6], **{"merge-engine": engine})
    rows = alluvium.open(str(tmp_path / "t")).to_arrow().sort_by("k").to_pylist()
    assert rows == [{"k": 1, "v": 1, "w": 10}, {"k": 2, "v": 2, "w": 20}, {"k": 3, "v": 2, "w": 20}]


def test_what_was_compacted_is_older_than_what_came_meanwhile(tmp_path: Path) -> None:
    """Two writers at a time gave the same numbers; a compaction that had seen one of them alone was committed last."""
    table = HandWritten(tmp_path / "t", KV, ["k"])
    for value, level in ((1, 0), (0, 5)):
        table._sequence = 5
        table.commit([{"k": 1, "v": value, "w": value}], level=level)
    snapshot = load_snapshot(open_store(str(tmp_path / "t")))
    assert order_of(snapshot) == [SEQUENCE, FILE_ORDER]
    assert alluvium.open(str(tmp_path / "t")).to_arrow()["v"].to_pylist() == [1]
    (part,) = full(snapshot).rows.plan_scan().parts
    order = part.files["constants"].combine_chunks().field(FILE_ORDER).to_pylist()
    assert dict(zip(part.files["path"].to_pylist(), order, strict=True)) == {
        "bucket-0/data-1-0.parquet": 1,
        "bucket-0/data-2-0.parquet": 0,
    }


def test_files_whose_deletions_nobody_counted_may_hold_some(tmp_path: Path) -> None:
    snapshot = written(tmp_path / "t", [1, 2], [1, 2], [9])

    def retracts(counts: list[int | None]) -> tuple[bool, list[int]]:
        at = snapshot.entries.schema.get_field_index("delete_row_count")
        entries = snapshot.entries.set_column(at, "delete_row_count", pa.array(counts, pa.int64()))
        sections = in_sections(snapshot, entries).sections
        assert sections is not None
        return sections.has_retracts, sections.numbers["section"].to_pylist()

    assert retracts([0, 0, 0]) == (False, [0, 0, -1])
    assert retracts([0, None, 0]) == (True, [0, 0, -1])
    assert retracts([0, 0, 1]) == (True, [0, 0, 1])


def test_a_table_elsewhere_names_no_file_of_this_machine(tmp_path: Path) -> None:
    here = written(tmp_path / "t", [1], [2])
    there = replace(here, store=open_store("s3://bucket/t", {"aws_region": "x", "skip_signature": "true"}))

    def plan(snapshot: Snapshot, *external: str | None) -> set[str]:
        at = here.entries.schema.get_field_index("external_path")
        entries = here.entries.set_column(at, "external_path", pa.array(external, pa.string()))
        parts = plan_selection(snapshot, in_sections(snapshot, entries)).parts
        return {path for part in parts for path in part.files["path"].to_pylist()}

    assert "s3://other/x.parquet" in plan(here, "s3://other/x.parquet", None)
    assert "file:/elsewhere/x.parquet" in plan(here, "file:/elsewhere/x.parquet", None)
    assert "s3://other/a/x.parquet" in plan(there, None, "s3://other/a/x.parquet")
    for path in ("file:/etc/passwd", "file:///etc/passwd", "FILE:///etc/x.parquet"):
        with pytest.raises(CorruptTable) as caught:
            plan(there, None, path)
        assert caught.value.code == "path-escapes-root"


def ranges(*files: tuple[int, int], buckets: list[int] | None = None) -> list[int]:
    count = len(files)
    entries = pa.table(
        {
            "first_row_id": pa.array([first for first, _ in files], pa.int64()),
            "row_count": pa.array([rows for _, rows in files], pa.int64()),
            "bucket": pa.array(buckets or [0] * count, pa.int32()),
        }
    )

    class OnePartition:
        indices = pa.array(np.zeros(count, np.int32))

    return row_ranges(entries, OnePartition()).tolist()  # type: ignore[arg-type]


def test_ranges_of_row_ids_that_meet() -> None:
    assert ranges((0, 10), (10, 5)) == [-1, -1]
    # One row in common is enough.
    assert ranges((0, 10), (9, 5), (14, 1)) == [0, 0, -1]
    # Nested: the widest decides where the range ends.
    assert ranges((0, 100), (0, 10), (50, 10), (60, 40), (100, 1)) == [0, 0, 0, 0, -1]
    assert ranges((50, 10), (0, 100), (100, 1)) == [0, 0, -1]
    assert ranges((0, 1), (0, 1), (1, 1), (1, 1)) == [0, 0, 1, 1]
    # Equal ids of other buckets are other rows.
    assert ranges((0, 10), (0, 10), (5, 5), buckets=[0, 1, 1]) == [-1, 1, 1]


def test_data_evolution_needs_row_ids() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ranges((0, 10), (None, 5))  # type: ignore[arg-type]
    assert caught.value.features == ("row-ids",)


@pytest.mark.parametrize(("producer", "expected"), [("lookup", 115), ("none", 125)])
def test_of_the_levels_above_the_lowest_tells_what_all_came_to(tmp_path: Path, producer: str, expected: int) -> None:
    """A compaction that looks keys up has put the sum of all older rows into the level that it wrote."""
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "changelog-producer": producer}
    table = HandWritten(tmp_path / "t", KV, ["k"], **options)
    for value, level in ((10, 5), (15, 4), (100, 0)):
        table.commit([{"k": 1, "v": value, "w": value}, {"k": 2, "v": 1, "w": 1}], level=level)
    found = alluvium.open(str(tmp_path / "t")).to_arrow()
    assert dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))[1] == expected
