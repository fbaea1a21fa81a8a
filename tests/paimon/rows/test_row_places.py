"""Files as verbs over rows have them: by numbers that stay, with what is in them, and columns that tell where rows are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from pyroaring import BitMap64

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.errors import UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression
from alluvium.paimon import PaimonTable
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.candidates import (
    Candidates,
    PaimonVersion,
    ensure_append_rows_change,
    ensure_columns_change,
)
from alluvium.paimon.rows.range_candidates import RangeCandidates
from alluvium.paimon.rows.row_ids import stored_ids, with_stored_ids
from alluvium.paimon.rows.vectors import edit_files
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.source import TRACKING, PaimonSource, View
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope, RowChangeMode
from alluvium.plan.scan import FIELD_ID, FileConstant, RowPosition
from alluvium.schema.types import LONG
from alluvium.storage.open import open_store

COLUMNS = pa.schema([("k", pa.int32()), ("day", pa.string())])
VECTORS = {"deletion-vectors.enabled": "true"}
TRACKED = {"row-tracking.enabled": "true"}
EVOLVES = {**TRACKED, "data-evolution.enabled": "true"}


def version(path: Path, *keys: str, **options: str) -> PaimonVersion:
    """Files of one, two and three rows, the last of another day."""
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, COLUMNS, ["day"], keys, options)
    for count, day in ((1, "a"), (2, "a"), (3, "b")):
        append(open_target(store), [{"k": 10 * count + k, "day": day} for k in range(count)])
    return PaimonVersion(load_snapshot(store))


def condition(table: PaimonVersion, text: str) -> Expression:
    return parse_predicate(text, table.schema, "UTC")


def files(table: PaimonVersion, where: str | None = None) -> Candidates:
    found = table.candidates(None if where is None else condition(table, where))
    assert isinstance(found, Candidates)
    return found


def masked(table: PaimonVersion, gone: dict[int, list[int] | None]) -> PaimonVersion:
    """The next version, in which rows of files are gone, told by how many each had; None: the whole file."""
    target = open_target(open_store(table.snapshot.store.url))
    found = files(table).files.to_pylist()
    named = {row["row_count"]: row["path"] for row in found}
    masks = [None if rows is None else BitMap64(rows).serialize() for rows in gone.values()]
    touched = pa.table([pa.array([named[n] for n in gone]), pa.array(masks, pa.binary())], schema=TOUCHED_FILES)
    target.commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))
    return PaimonVersion(load_snapshot(table.snapshot.store))


def test_files_with_what_is_in_them(tmp_path: Path) -> None:
    table = version(tmp_path)
    found = files(table)
    entries = table.snapshot.entries.to_pylist()
    assert found.files.to_pylist() == [
        {
            "path": f"day={day}/bucket-0/{entry['file_name']}",
            "size": entry["file_size"],
            "file_name": entry["file_name"],
            "row_count": count,
        }
        for entry, day, count in zip(entries, "aab", (1, 2, 3), strict=True)
    ]
    assert (found.url, found.version, found.total_files, found.merges) == (table.snapshot.store.url, 3, 3, False)
    assert found.size_bytes == sum(entry["file_size"] for entry in entries)
    assert found.numbers.to_pylist() == [0, 1, 2] and found.numbers.type == pa.int64()
    some = files(table, "day = 'a'")
    # Those of the whole table count, though the verb looks at some.
    assert (some.numbers.to_pylist(), some.total_files) == ([0, 1], 3)
    assert some.size_bytes == entries[0]["file_size"] + entries[1]["file_size"]
    nothing = files(table, "day = 'x'")
    assert (nothing.size_bytes, nothing.files.num_rows, nothing.version) == (0, 0, 3)
    PaimonTable.create(str(tmp_path / "e"), COLUMNS)
    empty = PaimonVersion(load_snapshot(open_store(str(tmp_path / "e"))))
    assert (files(empty).version, files(empty).total_files) == (0, 0)
    assert (table.partition_columns, table.schema.names) == (("day",), ("k", "day"))


def test_numbers_stay_with_their_files(tmp_path: Path) -> None:
    found = files(version(tmp_path)).renumbered(pa.array([70, 80, 90]))
    assert found.files["row_count"].to_pylist() == [1, 2, 3]
    some = found.only(pa.array([90, 70, 5]))
    assert (some.numbers.to_pylist(), some.files["row_count"].to_pylist()) == ([70, 90], [1, 3])
    assert some.places(pa.array([90, 80, 70])).to_pylist() == [1, None, 0]
    (part,) = some.plan_scan().parts
    told = zip(part.files["num_rows"].to_pylist(), part.files["constants"].to_pylist(), strict=True)
    assert {rows: constants["__alluvium_file"] for rows, constants in told} == {1: 70, 3: 90}


def test_what_is_chosen_tells_scans_apart(tmp_path: Path) -> None:
    """Engines take scans of one identity for one another."""
    found = files(version(tmp_path))
    same = files(PaimonVersion(found.snapshot))
    assert found.identity == same.identity and found.identity[-2] == "rows"
    others = [
        found.only(pa.array([0, 1])), found.only(pa.array([0])), found.renumbered(pa.array([0, 1, 3])),
        replace(found, entries=found.entries.take([1, 0, 2])),
    ]  # fmt: skip
    assert len({one.identity for one in (found, *others)}) == 5
    assert found.identity[:-2] == PaimonSource(found.snapshot).identity
    keyed = version(tmp_path / "k", "k", "day", bucket="1")
    by_key = [files(keyed), files(keyed, "k = 1"), files(keyed, "k = 2")]
    assert len({one.identity for one in by_key}) == 3
    # Of rows that merge it is the condition that tells, whatever files there are.
    assert by_key[1].identity == by_key[1].only(pa.array([0])).identity == files(keyed, "k = 1").identity


def test_rows_that_are_left_of_each_file(tmp_path: Path) -> None:
    table = masked(version(tmp_path, **VECTORS), {3: [0, 2]})
    found = files(table)
    assert found.live_counts(found.files).to_pylist() == [1, 2, 1]
    assert found.live_counts(found.files.slice(2)).to_pylist() == [1]
    (part,) = found.plan_scan().parts
    assert part.masks is not None and found.live_counts(found.files).type == pa.int64()


def test_columns_of_rows_that_tell_no_place(tmp_path: Path) -> None:
    found = replace(files(version(tmp_path, **TRACKED)), is_placed=False)
    plan = found.plan_scan()
    (part,) = plan.parts
    assert [c.name for c in part.output] == ["k", "day"] == list(plan.schema.names) and part.is_exact
    assert replace(found, entries=found.entries.slice(0, 0), numbers=found.numbers.slice(0, 0)).plan_scan().parts == ()


def test_columns_of_rows_that_tell_their_ids(tmp_path: Path) -> None:
    """Under their own names for conditions, and under ours for what is written."""
    found = files(version(tmp_path, **TRACKED))
    (part,) = found.plan_scan().parts
    by_name = {c.name: c for c in part.output}
    assert list(by_name) == [
        "k", "day", "_ROW_ID", "_SEQUENCE_NUMBER", "__alluvium_file", "__alluvium_row", "__alluvium_row_id",
        "__alluvium_row_version",
    ]  # fmt: skip
    for own, ours in (("_ROW_ID", "__alluvium_row_id"), ("_SEQUENCE_NUMBER", "__alluvium_row_version")):
        assert by_name[ours].value == by_name[own].value
    file, row = by_name["__alluvium_file"], by_name["__alluvium_row"]
    assert (file.value, file.nullable, file.type) == (FileConstant("__alluvium_file", LONG), False, LONG)
    assert (row.value, row.nullable, row.type) == (RowPosition(), False, LONG)
    assert by_name["_ROW_ID"].value != by_name["_SEQUENCE_NUMBER"].value


@pytest.mark.parametrize(
    ("keys", "options", "view", "mode"),
    [
        ((), {}, View(), RowChangeMode.REWRITE_FILES),
        ((), VECTORS, View(), RowChangeMode.MASK_ROWS),
        ((), TRACKED, View(TRACKING), RowChangeMode.REWRITE_FILES),
        ((), {**TRACKED, **VECTORS}, View(TRACKING), RowChangeMode.MASK_ROWS),
        ((), EVOLVES, View(TRACKING), RowChangeMode.PATCH_COLUMNS),
        (("k", "day"), {"bucket": "1"}, View(), RowChangeMode.UPSERT_KEYS),
        (("k", "day"), {"bucket": "1", **VECTORS}, View(), RowChangeMode.UPSERT_KEYS),
    ],
)
def test_what_is_read_and_how_it_changes(
    tmp_path: Path, keys: tuple[str, ...], options: dict[str, str], view: View, mode: RowChangeMode
) -> None:
    table = version(tmp_path, *keys, **options)
    assert table.source.view == view and table.mode(None) is mode
    ids = ["_ROW_ID", "_SEQUENCE_NUMBER"] if view.name == TRACKING else []
    assert list(table.schema.names) == ["k", "day", *ids] == list(table.source.schema.names)
    found = table.candidates(None)
    assert isinstance(found, RangeCandidates) is (mode is RowChangeMode.PATCH_COLUMNS)
    assert table.files(None).columns.row_id == ("__alluvium_row_id" if ids else None)
    assert found.table_schema.names == ("k", "day")


def test_rows_that_merge_are_read_for_what_may_change_and_what_is_asked(tmp_path: Path) -> None:
    table = version(tmp_path, "k", "day", bucket="1")
    found = files(table, "day = 'a'")
    assert found.merges
    for where, count in ((None, 2), ("k = 21", 1), ("day = 'b'", 0)):
        plan = found.plan_scan(None if where is None else condition(table, where))
        assert sum(part.files.num_rows for part in plan.parts) == count, where
        assert {part.is_exact for part in plan.parts} == {True}


REFUSED = "unsupported-row-change"


@pytest.mark.parametrize(
    ("options", "is_patch", "feature"),
    [
        (EVOLVES, True, None),
        (EVOLVES, False, "data-evolution.enabled"),
        ({**EVOLVES, **VECTORS}, True, "deletion-vectors.enabled"),
        ({**EVOLVES, **VECTORS}, False, "data-evolution.enabled"),
        ({**EVOLVES, "scan.fallback-branch": "b"}, True, "scan.fallback-branch"),
    ],
)
def test_what_a_merge_may_do_to_columns(
    tmp_path: Path, options: dict[str, str], is_patch: bool, feature: str | None
) -> None:
    snapshot = version(tmp_path, **EVOLVES).snapshot
    snapshot = replace(snapshot, schema=replace(snapshot.schema, options=options))
    if feature is None:
        ensure_columns_change(snapshot, is_patch=is_patch)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_columns_change(snapshot, is_patch=is_patch)
    assert (caught.value.code, caught.value.features) == (REFUSED, (feature,))
    assert caught.value.path == (snapshot.store.url if feature.startswith("data-") else None)


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({}, None), (VECTORS, None), (TRACKED, None), ({"bucket": "2", "bucket-key": "k"}, None),
        ({**TRACKED, "bucket": "1"}, "row-tracking.enabled"), ({**TRACKED, "bucket": "-1"}, None),
        (EVOLVES, "data-evolution.enabled"), ({"scan.fallback-branch": "b"}, "scan.fallback-branch"),
    ],
)  # fmt: skip
def test_append_tables_whose_rows_change(tmp_path: Path, options: dict[str, str], feature: str | None) -> None:
    snapshot = version(tmp_path).snapshot
    snapshot = replace(snapshot, schema=replace(snapshot.schema, options=options))
    if feature is None:
        ensure_append_rows_change(snapshot)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_append_rows_change(snapshot)
    assert (caught.value.code, caught.value.features) == (REFUSED, (feature,))


@pytest.mark.parametrize(
    ("file_format", "key"), [("parquet", b"PARQUET:field_id"), ("orc", b"paimon.id"), ("avro", None)]
)
def test_columns_that_store_ids(tmp_path: Path, file_format: str, key: bytes | None) -> None:
    """Java, `SpecialFields`: their numbers are the last but five, and the last but one."""
    schema = version(tmp_path, **TRACKED, **{"file.format": file_format}).snapshot.schema
    ids = stored_ids(schema)
    assert ids is not None and ids.is_apart
    assert [(f.name, f.type, f.nullable, f.metadata) for f in ids.fields] == [
        ("_ROW_ID", LONG, True, {FIELD_ID: 2147483642}), ("_SEQUENCE_NUMBER", LONG, True, {FIELD_ID: 2147483646}),
    ]  # fmt: skip
    numbers = [b"2147483642", b"2147483646"]
    assert [(f.name, f.type, f.metadata) for f in ids.files] == [
        (name, pa.int64(), None if key is None else {key: number})
        for name, number in zip(("_ROW_ID", "_SEQUENCE_NUMBER"), numbers, strict=True)
    ]
    assert ids.stats == (FooterColumn(("_SEQUENCE_NUMBER",), LONG),)


@pytest.mark.parametrize("options", [{}, EVOLVES, VECTORS])
def test_tables_whose_files_store_no_ids(tmp_path: Path, options: dict[str, str]) -> None:
    assert stored_ids(version(tmp_path, **options).snapshot.schema) is None


def footer(low: Any, high: Any, nulls: int | None) -> FileFooter:
    return FileFooter(3, {("_SEQUENCE_NUMBER",): ColumnStats(LONG, low, high, nulls)})


def test_what_manifests_say_of_files_that_store_ids(tmp_path: Path) -> None:
    """Java takes a first number of 0 for rows that are all new or changed, and a last one of 0 where some are."""
    schema = version(tmp_path, **TRACKED).snapshot.schema
    footers = [
        footer(2, 5, 0), footer(2, 5, 1), footer(2, 5, None), footer(None, None, 3), FileFooter(3), footer(4, 4, 0),
        # One end alone is no range.
        footer(2, None, 0), footer(None, 5, 0),
    ]  # fmt: skip
    count = len(footers)
    rows = [{"file_name": f"f{n}", "min_sequence_number": 9, "max_sequence_number": 9} for n in range(count)]
    plain = pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in ENTRIES},
        schema=pa.schema([f.with_nullable(True) for f in ENTRIES]),
    )
    place = plain.schema.get_field_index("value_stats_cols")
    told = pa.array([None, ["k"], *[[]] * (count - 2)], plain.schema.field(place).type)
    made = with_stored_ids(plain.set_column(place, plain.schema.field(place), told), schema, footers)
    assert made["min_sequence_number"].to_pylist() == [2, 2, 2, 0, 0, 4, 0, 0]
    assert made["max_sequence_number"].to_pylist() == [5, 0, 0, 0, 0, 4, 0, 0]
    whole = ["k", "day"]
    assert made["value_stats_cols"].to_pylist() == [whole, ["k"], *[[]] * (count - 2)]
    assert made["write_cols"].to_pylist() == [["k", "day", "_ROW_ID", "_SEQUENCE_NUMBER"]] * count
    assert made.schema == plain.schema and made["file_name"].to_pylist() == [f"f{n}" for n in range(count)]


class Edited:
    """What becomes of files some of whose rows go, told by how many each had."""

    def __init__(self, table: PaimonVersion, gone: dict[int, list[int] | None]) -> None:
        entries = table.snapshot.entries
        self._counts = dict(zip(entries["file_name"].to_pylist(), entries["row_count"].to_pylist(), strict=True))
        chosen = entries.take(pa.array([entries["row_count"].to_pylist().index(count) for count in gone], pa.int64()))
        masks = [None if rows is None else BitMap64(rows).serialize() for rows in gone.values()]
        touched = pa.table([chosen["file_name"], pa.array(masks, pa.binary())], schema=TOUCHED_FILES)
        self.found = edit_files(table.snapshot, chosen, touched)
        self.removed = [self._counts[name] for name in self.found.removed.to_pylist()]
        self.masked = [self._counts[name] for name in self.found.masked.to_pylist()]
        assert self.found.vectors.files.equals(chosen["file_name"].combine_chunks())

    @property
    def vectors(self) -> list[dict[int, int]]:
        """Of each new index file how many rows of which files it takes."""
        added = self.found.vectors.added.to_pylist()
        return [{self._counts[r["f0"]]: r["_CARDINALITY"] for r in e["ranges"]} for e in added]


def test_what_becomes_of_files_some_of_whose_rows_go(tmp_path: Path) -> None:
    """A vector for all that are gone, in the place of the one before; who is emptied goes; others keep their vectors."""
    table = version(tmp_path, **VECTORS)
    append(open_target(open_store(table.snapshot.store.url)), [{"k": k, "day": "a"} for k in range(4)])
    # An index file of the first day's two files, and one of the other's.
    table = masked(PaimonVersion(load_snapshot(table.snapshot.store)), {2: [0], 3: [1], 4: [1, 2]})
    had = vector_masks(table.snapshot)
    assert had is not None
    counts = dict(zip(*(table.snapshot.entries[n].to_pylist() for n in ("file_name", "row_count")), strict=True))
    indexes = {counts[row["name"]]: row["index"].rpartition("/")[2] for row in had.ranges.to_pylist()}
    assert indexes[2] == indexes[4] != indexes[3]
    some = Edited(table, {3: [0]})
    assert (some.removed, some.masked, some.found.updated, some.vectors) == ([], [3], 1, [{3: 2}])
    assert some.found.vectors.replaced == {indexes[3]} and list(some.found.vectors.contents) == [
        f"index/{name}" for name in some.found.vectors.added["file_name"].to_pylist()
    ]
    # To take once more what is gone already leaves as many.
    assert Edited(table, {3: [1]}).vectors == [{3: 1}]
    emptied = Edited(table, {3: [0, 2]})
    assert (emptied.removed, emptied.masked, emptied.found.updated, emptied.vectors) == ([3], [], 0, [])
    assert emptied.found.vectors.replaced == {indexes[3]}
    beside = Edited(table, {4: [0]})
    assert (beside.masked, beside.found.updated, beside.vectors) == ([4], 1, [{4: 3, 2: 1}])
    assert beside.found.vectors.replaced == {indexes[4]}
    # The vector of a file that goes is not kept, the one of the file that shared an index file with it is.
    whole = Edited(table, {4: None})
    assert (whole.removed, whole.found.updated, whole.vectors) == ([4], 0, [{2: 1}])
    both = Edited(table, {2: [1], 4: [3], 3: [2]})
    assert (both.removed, both.masked, both.found.updated, both.vectors) == ([2], [4, 3], 2, [{4: 3}, {3: 2}])
    assert both.found.vectors.replaced == {indexes[2], indexes[3]}
    plain = Edited(table, {1: None})
    assert (plain.removed, plain.found.vectors.replaced, plain.vectors) == ([1], frozenset(), [])
    assert table.snapshot.document is not None
    without = PaimonVersion(table.snapshot.state(4))
    first = Edited(without, {4: [2], 1: [0]})
    assert (first.removed, first.masked, first.found.updated, first.vectors) == ([1], [4], 0, [{4: 1}])
