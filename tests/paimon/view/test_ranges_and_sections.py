"""Ranges of row ids and of keys that meet, beside plain loops; and whose vectors and columns count within a range."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.errors import CorruptTable
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.view.row_ranges import RangeMasks, anchors_of, patched_columns, row_ranges
from alluvium.paimon.view.sections import Sections, key_sections, may_take_back, number_sections
from alluvium.schema import types as t

EMPTY_ROW = bytes(12)


def columns(**types: Any) -> tuple[DataField, ...]:
    return number_fields(DataField(0, name, parse_type(kind)) for name, kind in types.items())


PARTED = TableSchema(0, columns(p="STRING", k="BIGINT"), 1, ("p",))
KEYED = TableSchema(0, columns(p="STRING NOT NULL", k="BIGINT NOT NULL"), 1, ("p",), ("p", "k"))


def row(*values: Any) -> bytes:
    arrays = [pa.array([v], pa.int64() if isinstance(v, int) else pa.string()) for v in values]
    made: bytes = encode_rows(arrays, [(t.LONG if isinstance(v, int) else t.STRING, 0) for v in values])[0].as_py()
    return made


def by_loop(files: Sequence[tuple[Any, int, int]]) -> list[set[int]]:
    """Files whose ranges meet, one step after the other: of each file those it is with."""
    together = [{n} for n in range(len(files))]
    for a, (place, low, high) in enumerate(files):
        for b, (other, first, last) in enumerate(files):
            if place == other and low <= last and first <= high:
                union = together[a] | together[b]
                for n in union:
                    together[n] = union
    return together


def evolved(files: Sequence[tuple[str, int, int, int]]) -> pa.Table:
    return pa.table(
        {
            "partition": pa.array([row(p) for p, _, _, _ in files], pa.binary()),
            "bucket": pa.array([b for _, b, _, _ in files], pa.int32()),
            "first_row_id": pa.array([first for _, _, first, _ in files], pa.int64()),
            "row_count": pa.array([count for _, _, _, count in files], pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(12))
def test_ranges_of_ids_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    files = [
        (lot.choice("ab"), lot.randint(0, 1), lot.randint(0, 30), lot.randint(1, 6)) for _ in range(lot.randint(1, 14))
    ]
    batches = np.array([lot.randint(0, 1) for _ in files]) if seed % 2 else None
    entries = evolved(files)
    number = lot.randint(0, 9)
    found = row_ranges(entries, partitions_of(entries, PARTED), number, batches).tolist()
    places = [(p, b, 0 if batches is None else int(batches[n])) for n, (p, b, _, _) in enumerate(files)]
    told = [(place, first, first + count - 1) for place, (_, _, first, count) in zip(places, files, strict=True)]
    together = by_loop(told)
    for n, others in enumerate(together):
        assert (
            {m for m, other in enumerate(found) if other == found[n] and m != n} == (others - {n})
            if found[n] >= 0
            else others == {n}
        )
        assert found[n] == -1 or found[n] >= number


def keyed(files: Sequence[tuple[str, int, int, int]]) -> pa.Table:
    count = len(files)
    return pa.table(
        {
            "partition": pa.array([row(p) for p, _, _, _ in files], pa.binary()),
            "bucket": pa.array([b for _, b, _, _ in files], pa.int32()),
            "min_key": pa.array([row(low) for _, _, low, _ in files], pa.binary()),
            "max_key": pa.array([row(high) for _, _, _, high in files], pa.binary()),
            "min_sequence_number": pa.array([10 * n for n in range(count)], pa.int64()),
            "max_sequence_number": pa.array([10 * n + 9 for n in range(count)], pa.int64()),
            "level": pa.array([0] * count, pa.int32()),
            "delete_row_count": pa.array([0] * count, pa.int64()),
        }
    )


def changed(entries: pa.Table, **values: list[Any]) -> pa.Table:
    for name, column in values.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, name, pa.array(column, entries.schema.field(place).type))
    return entries


@pytest.mark.parametrize("seed", range(12))
def test_sections_of_keys_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    files = []
    for _ in range(lot.randint(1, 14)):
        low = lot.randint(-20, 20)
        files.append((lot.choice("ab"), lot.randint(0, 1), low, low + lot.choice([0, 1, 5])))
    entries = keyed(files)
    partitions = partitions_of(entries, KEYED)
    sections = key_sections(entries, partitions, KEYED).tolist()
    together = by_loop([((p, b), low, high) for p, b, low, high in files])
    for n, others in enumerate(together):
        assert {m for m, other in enumerate(sections) if other == sections[n]} == others
    # Numbered without a gap; within a bucket in the order of keys.
    assert set(sections) == set(range(max(sections) + 1))
    for p, b in {(p, b) for p, b, _, _ in files}:
        own = sorted(
            (low, section) for (q, c, low, _), section in zip(files, sections, strict=True) if (q, c) == (p, b)
        )
        assert [section for _, section in own] == sorted(section for _, section in own)
    first = lot.randint(0, 5)
    numbered = number_sections(entries, partitions, KEYED, first)
    assert numbered.numbers["section"].to_pylist() == [
        -1 if len(together[n]) == 1 else section + first for n, section in enumerate(sections)
    ]
    assert numbered.merges.tolist() == [len(others) > 1 for others in together]
    assert (numbered.num_files, numbered.has_retracts, numbered.has_ties) == (len(files), False, False)


def test_a_file_that_takes_rows_back_is_never_alone() -> None:
    entries = keyed([("a", 0, 1, 2), ("a", 0, 5, 6), ("a", 0, 6, 9)])
    partitions = partitions_of(entries, KEYED)
    plain = number_sections(entries, partitions, KEYED)
    assert (plain.numbers["section"].to_pylist(), plain.has_retracts) == ([-1, 1, 1], False)
    taking = number_sections(changed(entries, delete_row_count=[1, 0, 0]), partitions, KEYED)
    assert (taking.numbers["section"].to_pylist(), taking.has_retracts) == ([0, 1, 1], True)
    # What was true of all files stays so when some are skipped.
    kept = taking.kept(pa.array([False, True, True]))
    assert (kept.numbers["section"].to_pylist(), kept.has_retracts, kept.num_files) == ([1, 1], True, 2)
    nothing = taking.kept(pa.array([False] * 3))
    assert (nothing.has_retracts, nothing.has_ties, nothing.num_files, nothing.merges.tolist()) == (False, False, 0, [])
    empty = number_sections(entries.slice(0, 0), partitions_of(entries.slice(0, 0), KEYED), KEYED)
    assert (empty.num_files, empty.has_retracts) == (0, False)


@pytest.mark.parametrize("field", [None, "op"])
def test_files_that_may_take_rows_back(field: str | None) -> None:
    """ "Older writers do not tell"; where a column says a row's kind, files of level 0 may, whatever they count."""
    schema = TableSchema(0, KEYED.fields, 1, ("p",), ("p", "k"), {} if field is None else {"rowkind.field": field})
    entries = pa.table({"level": [0, 1, 0, 1, 5], "delete_row_count": pa.array([0, 0, 2, None, 1], pa.int64())})
    assert may_take_back(entries, schema).to_pylist() == [field is not None, False, True, True, True]


@pytest.mark.parametrize(
    ("ends", "ties"),
    [
        ([(0, 4), (5, 9), (0, 0)], False), ([(0, 5), (5, 9), (0, 0)], True), ([(5, 9), (0, 4), (0, 0)], False),
        ([(0, 9), (3, 4), (0, 0)], True), ([(7, 7), (7, 7), (0, 0)], True), ([(1 << 62, (1 << 62) + 1), (0, 1), (5, 5)], False),
    ],
)  # fmt: skip
def test_numbers_that_two_files_may_share(ends: list[tuple[int, int]], ties: bool) -> None:
    entries = keyed([("a", 0, 1, 5), ("a", 0, 5, 6), ("b", 0, 1, 5)])
    entries = changed(
        entries, min_sequence_number=[low for low, _ in ends], max_sequence_number=[high for _, high in ends]
    )
    found = number_sections(entries, partitions_of(entries, KEYED), KEYED)
    assert (found.numbers["section"].to_pylist(), found.has_ties) == ([0, 0, -1], ties)


def test_what_was_compacted_is_older() -> None:
    """By levels from the highest down; within a level in the order of the manifests."""
    sections = Sections.of(np.zeros(5, np.int64), levels=pa.chunked_array([pa.array([0, 5, 3, 0, 5], pa.int32())]))
    assert sections.numbers["place"].to_pylist() == [3, 0, 2, 4, 1]
    assert Sections.of(np.zeros(3, np.int64)).numbers["place"].to_pylist() == [0, 1, 2]
    plain = Sections.of(np.zeros(1, np.int64))
    assert (plain.has_retracts, plain.has_ties) == (False, False)
    flagged = Sections.of(np.array([0, -1]), has_retracts=True, has_ties=True)
    assert (flagged.has_retracts, flagged.has_ties, flagged.merges.tolist()) == (True, True, [True, False])
    for path in (("_SECTION",), ("k",), ("_SECTION", "x")):
        exact = flagged.exact(path)
        assert (None if exact is None else exact.to_pylist()) == ([0, -1] if path == ("_SECTION",) else None)
        assert flagged.lower(path) is flagged.upper(path) is flagged.null_count(path) is flagged.num_rows() is None


def test_keys_of_several_columns_and_not_a_number() -> None:
    schema = TableSchema(0, columns(a="STRING NOT NULL", f="DOUBLE NOT NULL"), 1, (), ("a", "f"))

    def key(a: str, f: float) -> bytes:
        arrays = [pa.array([a]), pa.array([f], pa.float64())]
        made: bytes = encode_rows(arrays, [(t.STRING, 0), (t.DOUBLE, 0)])[0].as_py()
        return made

    def sections(*bounds: tuple[tuple[str, float], tuple[str, float]]) -> list[int]:
        entries = keyed([("a", 0, 0, 0)] * len(bounds))
        entries = changed(entries, min_key=[key(*low) for low, _ in bounds], max_key=[key(*high) for _, high in bounds])
        flat = changed(entries, partition=[EMPTY_ROW] * len(bounds))
        found: list[int] = key_sections(flat, partitions_of(flat, schema), schema).tolist()
        return found

    # The first column decides, then the second.
    assert sections((("a", 9.0), ("b", 1.0)), (("b", 2.0), ("b", 3.0)), (("b", 3.0), ("c", 0.0))) == [0, 1, 1]
    assert sections((("b", 0.0), ("b", 1.0)), (("a", 5.0), ("a", 6.0))) == [1, 0]
    # Where NaN bounds a range it may be any.
    nan = float("nan")
    assert sections((("a", 0.0), ("a", nan)), (("b", 0.0), ("b", 1.0)), (("z", 0.0), ("z", 1.0))) == [0, 0, 0]
    assert sections((("m", nan), ("m", 1.0)), (("b", 0.0), ("b", 1.0))) == [0, 0]


def test_a_key_that_names_no_column() -> None:
    entries = keyed([("a", 0, 1, 2)])
    schema = TableSchema(0, KEYED.fields, 1, ("p",), ("p", "gone"))
    with pytest.raises(CorruptTable) as caught:
        key_sections(entries, partitions_of(entries, schema), schema)
    assert caught.value.code == "invalid-schema"


FILES = {
    # Of the first range the oldest file that holds rows of its own; equal ages go by name.
    "data-b.parquet": (0, 3, 10, 4), "data-a.parquet": (0, 3, 10, 4), "x.blob": (0, 1, 12, 2),
    "v.vector.parquet": (0, 1, 10, 4), "x.video": (0, 1, 10, 4), "data-c.parquet": (0, 9, 12, 1),
    # Alone.
    "data-d.parquet": (-1, 5, 50, 7),
    # Of large values alone: no vector is theirs.
    "y.blob": (1, 2, 90, 1), "z.blob": (1, 3, 90, 1),
}  # fmt: skip


def anchors() -> tuple[pa.Table, dict[str, tuple[str | None, int | None, int | None]]]:
    ranges = np.array([r for r, _, _, _ in FILES.values()])
    entries = pa.table(
        {
            "file_name": list(FILES),
            "max_sequence_number": [age for _, age, _, _ in FILES.values()],
            "first_row_id": [first for _, _, first, _ in FILES.values()],
            "row_count": [count for _, _, _, count in FILES.values()],
        }
    )
    found = anchors_of(entries, ranges)
    return found, {r["name"]: (r["anchor"], r["anchor_rows"], r["shift"]) for r in found.to_pylist()}


def test_whose_vector_says_which_rows_of_a_range_are_gone() -> None:
    """Java, `DataEvolutionUtils.retrieveAnchorFile`: the oldest, files of single columns left aside."""
    _, found = anchors()
    oldest = "data-a.parquet"
    assert found == {
        "data-b.parquet": (oldest, 4, 0), "data-a.parquet": (oldest, 4, 0), "x.blob": (oldest, 4, 2),
        "v.vector.parquet": (oldest, 4, 0), "x.video": (oldest, 4, 0), "data-c.parquet": (oldest, 4, 2),
        "data-d.parquet": ("data-d.parquet", 7, 0), "y.blob": (None, None, None), "z.blob": (None, None, None),
    }  # fmt: skip


class Masks:
    """Rows 0 and 3 of one file are gone, and of no other."""

    asked: pa.Table

    def load_masks(self, files: pa.Table) -> pa.Table:
        self.asked = files
        masks = [
            BitMap64([0, 3]).serialize() if name == "data-a.parquet" else None for name in files["path"].to_pylist()
        ]
        place = files.schema.get_field_index("mask")
        return files.set_column(place, "mask", pa.array(masks, pa.binary()))


def test_rows_are_gone_from_all_files_of_a_range() -> None:
    names = ["x.blob", "data-d.parquet", "data-c.parquet", "data-b.parquet", "y.blob"]
    counts = [FILES[name][3] for name in names]
    files = pa.table(
        {
            "path": [f"p=1/bucket-0/{n}" for n in names],
            "size": [1] * 5,
            "num_rows": counts,
            "mask": pa.nulls(5, pa.binary()),
        }
    )
    masks = Masks()
    found = RangeMasks(masks, anchors()[0]).load_masks(files)
    gone = [None if mask is None else list(positions_of(mask)) for mask in found["mask"].to_pylist()]
    # By the place in the file itself: its rows begin behind some of the range's.
    assert gone == [[1], None, None, [0, 3], None]
    assert found.drop_columns(["mask"]).equals(files.drop_columns(["mask"]))
    asked = [(row["path"], row["num_rows"]) for row in masks.asked.to_pylist()]
    assert asked == [
        ("data-a.parquet", 4),
        ("data-d.parquet", 7),
        ("data-a.parquet", 4),
        ("data-a.parquet", 4),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("options", "file_format", "held", "wanted"),
    [
        ({}, "parquet", "pab", "pa"),
        ({}, "parquet", "b", "p"),
        ({}, "parquet", "", "p"),
        ({}, "blob", "b", "pb"),
        ({}, "orc", "cb", "pc"),
        ({"blob-descriptor-field": "b"}, "parquet", "ab", "pab"),
        ({"blob-external-storage-field": "b"}, "parquet", "ab", "pab"),
        ({"blob-view-field": "b"}, "parquet", "ab", "pab"),
        ({"blob-view-field": "other"}, "parquet", "ab", "pa"),
    ],
)
def test_columns_that_a_file_of_a_range_supplies(
    options: dict[str, str], file_format: str, held: str, wanted: str
) -> None:
    """Large values come from files of their own, but for those that are named where they are."""
    fields = columns(p="STRING", a="INT", b="BLOB", c="INT")
    schema = TableSchema(0, fields, 3, ("p",), (), options)
    known = {f.id: f for f in fields if f.name in held}
    assert "".join(f.name for f in patched_columns(schema, known, file_format)) == wanted
