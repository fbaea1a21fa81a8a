"""What a predicate leaves of a file decides how its other columns are read: a few rows by their pages, many at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import SCAN_FILES, FileConstant, OutputColumn, Physical, RowPosition, ScanPart
from alluvium.portable import late_rows
from alluvium.portable.files import page_rows
from alluvium.portable.files.data_file import DataFile, Files, open_data_file
from alluvium.portable.files.file_rows import FileRows
from alluvium.portable.files.row_bounds import Lessons
from alluvium.portable.late_rows import late_batches
from alluvium.portable.request import Request
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Field, Struct
from alluvium.storage.open import open_store

STORED = Struct((Field("i", t.LONG), Field("m", t.LONG), Field("s", t.STRING), Field("n", t.LONG)))
SCHEMA = Struct((*STORED.fields, Field("p", t.STRING), Field("pos", t.LONG)))
ROWS, GROUP = 4096, 1024


def value(name: str, row: int) -> Any:
    return {"i": row, "m": row % 64, "s": f"text {row}", "n": None if row % 3 else row, "p": "x", "pos": row}[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("late")
    table = pa.table(
        {
            f.name: pa.array([value(f.name, n) for n in range(ROWS)], k.type)
            for f, k in zip(STORED.fields, schema_to_arrow(STORED), strict=True)
        }
    )
    pq.write_table(
        table,
        place / "f",
        row_group_size=GROUP,
        data_page_size=256,
        write_batch_size=32,
        use_dictionary=False,
        write_page_index=True,
        compression="none",
    )
    return place


@pytest.fixture(autouse=True)
def _cheap_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """These files are small."""
    monkeypatch.setattr(page_rows, "_NEAR_BYTES", 1)
    monkeypatch.setattr(page_rows, "_WORTH", 1e9)


class Read:
    """How the columns of a file were read: of which row group, which columns, and how many rows (None: all)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[int, tuple[str, ...], int | None]] = []
        rows, batches = DataFile.rows, DataFile.row_group_batches

        def some(data: DataFile, group: int, columns: dict[str, str], positions: Any) -> Any:
            self.calls.append((group, tuple(columns), len(positions)))
            return rows(data, group, columns, positions)

        def whole(data: DataFile, group: int, columns: dict[str, str], batch_size: int) -> Iterator[Any]:
            self.calls.append((group, tuple(columns), None))
            return batches(data, group, columns, batch_size)

        monkeypatch.setattr(DataFile, "rows", some)
        monkeypatch.setattr(DataFile, "row_group_batches", whole)


def found(
    folder: Path, names: tuple[str, ...], text: str, lessons: Lessons, batch_size: int = 100_000
) -> list[pa.RecordBatch]:
    output = [OutputColumn(f.name, f.type, True, Physical((f.name,), f.type)) for f in STORED.fields]
    output += [
        OutputColumn("p", t.STRING, True, FileConstant("p", t.STRING)),
        OutputColumn("pos", t.LONG, True, RowPosition()),
    ]
    rows = FileRows(
        ScanPart("k", SCAN_FILES.empty_table(), "parquet", STORED, tuple(output)), "f", None, {"p": pa.scalar("x")}
    )
    arrow = schema_to_arrow(SCHEMA)
    where = parse_predicate(text, SCHEMA)
    needed = {f.name: f.type for f in arrow}
    request = Request(names, needed, (), pa.schema([arrow.field(name) for name in names]), where, "UTC", batch_size)
    data = open_data_file(Files(open_store(str(folder)), open_store), "f", "UTC")
    assert isinstance(data, DataFile)
    try:
        return list(late_batches(rows, data, request, where, "uri", lessons))
    finally:
        data.close()


def as_rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 1500", [1500]),
        ("m = 7", [n for n in range(ROWS) if n % 64 == 7]),
        ("m < 32", [n for n in range(ROWS) if n % 64 < 32]),
        ("i < 2000", list(range(2000))),
        ("i >= 0", list(range(ROWS))),
        ("pos = 3000 or pos = 5", [5, 3000]),
        ("p = 'x' and i > 4000", list(range(4001, ROWS))),
        ("p = 'y'", []),
        ("n = 999", [999]),
    ],
)
@pytest.mark.parametrize("names", [("s", "n"), ("n", "i", "pos"), ("i",), ("p", "s"), ("m",)], ids=str)
@pytest.mark.parametrize("batch_size", [50, 100_000])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_rows_are_those_that_the_predicate_leaves(
    folder: Path, text: str, kept: list[int], names: tuple[str, ...], batch_size: int, share: float
) -> None:
    """Whatever was learned of other row groups, and whatever is read of them how."""
    batches = found(folder, names, text, Lessons(share=share), batch_size)
    assert as_rows(batches) == [{name: value(name, row) for name in names} for row in kept]
    assert all(0 < batch.num_rows <= batch_size for batch in batches)


def test_row_groups_that_are_ruled_out_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, lessons = Read(monkeypatch), Lessons()
    assert as_rows(found(folder, ("s",), "i = 1500", lessons)) == [{"s": "text 1500"}]
    assert read.calls == [(1, ("i",), 32), (1, ("s",), 1)]
    read.calls.clear()
    assert found(folder, ("s",), "i = 9999", Lessons()) == [] and read.calls == []


def test_other_columns_are_not_read_where_no_row_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds do not tell: each page has all remainders."""
    read = Read(monkeypatch)
    assert found(folder, ("s",), "m + i = 5 and m = 63", Lessons()) == []
    assert {columns for _, columns, _ in read.calls} == {("i", "m")}


def test_few_rows_come_by_their_pages_and_more_with_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to one in so many."""
    for few, whole in ((64, False), (65, True)):
        monkeypatch.setattr(late_rows, "_FEW", few)
        read = Read(monkeypatch)
        assert len(as_rows(found(folder, ("s",), "m = 7", Lessons()))) == ROWS // 64
        of_s = {(group, count) for group, columns, count in read.calls if columns == ("s",)}
        assert of_s == {(group, None if whole else GROUP // 64) for group in range(4)}
        monkeypatch.undo()
        monkeypatch.setattr(page_rows, "_NEAR_BYTES", 1)
        monkeypatch.setattr(page_rows, "_WORTH", 1e9)


@pytest.mark.parametrize(("share", "together"), [(0.25, False), (0.2500001, True), (1.0, True)])
def test_columns_are_decoded_together_where_most_rows_were_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, share: float, together: bool
) -> None:
    """As the row group before it tells."""
    read, lessons = Read(monkeypatch), Lessons(share=share)
    rows = as_rows(found(folder, ("s", "m"), "m + n >= 0 or m + i < 0", lessons))
    assert rows == [{"s": f"text {n}", "m": n % 64} for n in range(0, ROWS, 3)]
    first = [columns for group, columns, _ in read.calls if group == 0]
    assert (len(first) == 1) == together and sorted({name for columns in first for name in columns}) == [
        "i",
        "m",
        "n",
        "s",
    ]
    # A third of the rows were left of each: more than a quarter.
    later = [[columns for group, columns, _ in read.calls if group == number] for number in (1, 2, 3)]
    assert all(len(calls) == 1 for calls in later) and abs(lessons.share - 1 / 3) < 0.001


def test_what_was_left_is_learned_of_each_row_group(folder: Path) -> None:
    for text, share in (
        ("i < 3072 + 512", 0.5),
        ("i < 1024", 0.0),
        ("m < 16", 0.25),
        ("i >= 0", 1.0),
        ("p = 'y'", 0.0),
    ):
        for before in (0.0, 1.0):
            lessons = Lessons(share=before)
            found(folder, ("s",), text, lessons)
            assert lessons.share == share, text


def test_a_column_of_which_only_the_predicate_knows_is_not_shown(folder: Path) -> None:
    for share in (0.0, 1.0):
        (batch, *_) = found(folder, ("p",), "m = 7", Lessons(share=share))
        assert batch.schema.names == ["p"] and set(batch["p"].to_pylist()) == {"x"}
        counted = found(folder, (), "m = 7", Lessons(share=share))
        assert sum(b.num_rows for b in counted) == ROWS // 64 and all(b.num_columns == 0 for b in counted)


def test_places_of_rows_within_row_groups() -> None:
    assert late_rows._moved(range(3, 7), 10) == range(13, 17)
    assert late_rows._moved(np.array([1, 5]), 10).tolist() == [11, 15]  # type: ignore[union-attr]
    keep = pa.array([True, False, True])
    assert late_rows._hits(range(4, 7), keep).tolist() == [4, 6]
    assert late_rows._hits(np.array([2, 9, 30]), keep).tolist() == [2, 30]


@pytest.mark.parametrize("by_places", [False, True])
def test_masks_of_parts_are_masks_of_other_parts(by_places: bool) -> None:
    """Rows 1, 3, 4 and 9 of ten."""
    flags = [n in (1, 3, 4, 9) for n in range(10)]
    parts: list[tuple[Any, pa.BooleanArray, int]] = [
        (range(4), pa.array(flags[:4]), 2),
        (range(4, 10), pa.array(flags[4:]), 2),
    ]
    if by_places:
        parts = [
            (np.array([0, 1, 3, 4]), pa.array([False, True, True, True]), 3),
            (range(8, 10), pa.array([False, True]), 1),
        ]
    kept = late_rows._Kept(parts)
    for start, size in ((0, 10), (0, 3), (3, 3), (5, 4), (9, 1), (1, 1), (0, 0)):
        assert kept.of(start, size).to_pylist() == flags[start : start + size]
