"""What a draft asks of the state that it lands on, question by question: the table, its layout, files, ranges of rows."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.paimon.commit.draft import Draft, Replaced, Restored, VectorChange
from alluvium.paimon.commit.standing import (
    ensure_all_there,
    ensure_avro,
    ensure_fits,
    ensure_masked_there,
    ensure_newest,
    ensure_ranges_whole,
    ensure_shown,
    ensure_unmoved,
)
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, SCANNED_ENTRIES, SnapshotDocument
from alluvium.storage.stores.memory import MemoryStore

FIELDS = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "v", parse_type("INT")))
TRACKED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def schema_of(keys: tuple[str, ...] = (), fields: tuple[DataField, ...] = FIELDS, **options: str) -> TableSchema:
    return replace(TableSchema.create(fields, (), keys, options), time_millis=5)


def entries(*rows: dict[str, Any], schema: pa.Schema = SCANNED_ENTRIES) -> pa.Table:
    usual = {"kind": 0, "partition": b"p", "bucket": 0, "level": 0, "row_count": 1}
    loose = pa.schema([f.with_nullable(True) for f in schema])
    made = [{**usual, "file_name": f"f{n}", **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist([{f.name: row.get(f.name) for f in loose} for row in made], loose)


def names(*given: str) -> pa.Array:
    return pa.array(given, pa.string())


def state(schema: TableSchema, *live: dict[str, Any], number: int = 7) -> Snapshot:
    document = SnapshotDocument(number, schema.id, "base", "delta", "user", 1, "APPEND", 0)
    store = MemoryStore(str(uuid.uuid4()), "t")
    return Snapshot(store, document, schema, _loaded={"entries": entries(*live)})


def draft(schema: TableSchema, *added: dict[str, Any], **more: Any) -> Draft:
    return Draft(schema, entries(*added, schema=ENTRIES), **more)


def refused(act: Any, *arguments: Any) -> CommitConflict:
    with pytest.raises(CommitConflict) as caught:
        act(*arguments)
    (conflict,) = caught.value.conflicts
    assert conflict.rule == caught.value.code and conflict.message == caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("there", "number", "is_newest"),
    [([], 1, True), ([1, 2], 3, True), ([1, 2, 3], 3, True), ([1, 3], 2, False), ([4], 2, False), ([2], 2, True)],
)
def test_no_free_place_below_another_snapshot_is_taken(there: list[int], number: int, is_newest: bool) -> None:
    base = state(schema_of())
    for one in there:
        base.store.put(f"snapshot/snapshot-{one}", b"{}")
    if is_newest:
        ensure_newest(base, number)
        return
    error = refused(ensure_newest, base, number)
    assert (error.code, error.conflicts[0].version) == ("history-lost", there[-1])
    assert f"snapshot {there[-1]}" in error.message and f"and {number} has" in error.message


OTHER_FIELD = (FIELDS[0], DataField(1, "w", parse_type("INT")))
BUCKETS = {"bucket": "2", "bucket-key": "k"}


@pytest.mark.parametrize(
    ("written", "now", "rescales", "code"),
    [
        (schema_of(), schema_of(), False, None),
        (schema_of(), schema_of(**{"write-only": "true"}), False, None),
        # The same number, and another table.
        (schema_of(), schema_of(fields=OTHER_FIELD), False, "table-replaced"),
        (schema_of(), replace(schema_of(), time_millis=6), False, "table-replaced"),
        (schema_of(("k",), bucket="1"), schema_of(bucket="-1"), False, "table-replaced"),
        (schema_of(), replace(schema_of(), id=1), False, "table-replaced"),
        # The same table, its rows divided otherwise.
        (schema_of(**BUCKETS), schema_of(**{**BUCKETS, "bucket": "3"}), False, "metadata-changed"),
        (schema_of(**BUCKETS), schema_of(**{**BUCKETS, "bucket": "3"}), True, None),
        (schema_of(("k",), bucket="2"), schema_of(("k",), bucket="-1"), True, "metadata-changed"),
        (schema_of(("k",), bucket="2"), schema_of(("k",), bucket="-2"), True, None),
        (schema_of(("k",), bucket="-1"), schema_of(("k",), bucket="-2"), True, "metadata-changed"),
        (schema_of(**BUCKETS), schema_of(**{**BUCKETS, "bucket-key": "v"}), False, "metadata-changed"),
        (schema_of(**BUCKETS), schema_of(**BUCKETS, **{"bucket-function.type": "mod"}), False, "metadata-changed"),
    ],
)
def test_what_may_be_altered_while_rows_are_written(
    written: TableSchema, now: TableSchema, rescales: bool, code: str | None
) -> None:
    base = state(now)
    if code is None:
        ensure_fits(draft(written, rescales=rescales), base)
        return
    error = refused(ensure_fits, draft(written, rescales=rescales), base)
    assert (error.code, error.conflicts[0].version) == (code, 7)
    assert error.conflicts[0].operation == ("ALTER" if code == "metadata-changed" else None)


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("new", [0, 1])
def test_vectors_are_told_where_readers_look_for_them(vectors: bool, new: int) -> None:
    index = pa.Table.from_pylist([{"file_name": "i"}] * new, schema=INDEX_ENTRIES)
    edits = VectorChange(frozenset(), names(), index, {})
    base = state(schema_of(**{"deletion-vectors.enabled": str(vectors).lower()}))
    if vectors or not new:
        ensure_fits(draft(schema_of(), edits=edits), base)
    else:
        assert "vectors were switched off" in refused(ensure_fits, draft(schema_of(), edits=edits), base).message


def test_a_difference_is_one_to_a_single_state() -> None:
    base = state(schema_of())
    nothing = INDEX_ENTRIES.empty_table()
    ensure_unmoved(draft(schema_of()), base)
    ensure_unmoved(draft(schema_of(), restored=Restored(7, nothing, 0)), base)
    for other in (6, 8, None):
        error = refused(ensure_unmoved, draft(schema_of(), restored=Restored(other, nothing, 0)), base)
        assert (error.code, error.conflicts[0].version) == ("concurrent-delete-delete", 7)


def test_all_files_that_go_are_there() -> None:
    base = state(schema_of())
    ensure_all_there(draft(schema_of()), base, entries())
    ensure_all_there(draft(schema_of(), replaced=Replaced()), base, entries({}))
    both = draft(schema_of(), replaced=Replaced(files=names("a", "b", "c")))
    ensure_all_there(both, base, entries({}, {}, {}))
    assert refused(ensure_all_there, both, base, entries({})).message.startswith("2 files")


@pytest.mark.parametrize(
    ("needed", "edited", "lost"),
    [
        (None, None, None),
        (("f0", "f1"), None, None),
        (("f0", "x", "y"), None, "2 files of which columns"),
        (None, ("f0", "f2"), None),
        (None, (), None),
        (None, ("f0", "x", "y", "z"), "3 files whose rows"),
        (("f0",), ("x",), "1 files whose rows"),
        (("x",), ("f0",), "1 files of which columns"),
    ],
)
def test_files_whose_rows_are_meant_are_there(
    needed: tuple[str, ...] | None, edited: tuple[str, ...] | None, lost: str | None
) -> None:
    base = state(schema_of(), {}, {}, {})
    edits = None if edited is None else VectorChange(frozenset(), names(*edited), INDEX_ENTRIES.empty_table(), {})
    asked = draft(schema_of(), needed=None if needed is None else names(*needed), edits=edits)
    if lost is None:
        ensure_masked_there(asked, base)
    else:
        assert refused(ensure_masked_there, asked, base).message.startswith(lost)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_that_readers_are_not_shown_are_not_replaced(level: int, vectors: str) -> None:
    keyed = schema_of(("k",), **{"bucket": "1", "deletion-vectors.enabled": vectors})
    base, removed = state(keyed), entries({"level": level})
    asked = draft(keyed, replaced=Replaced(), reads=True)
    nothing = INDEX_ENTRIES.empty_table()
    for other in (
        draft(keyed, reads=True), draft(keyed, replaced=Replaced()), replace(asked, schema=schema_of()),
        replace(asked, restored=Restored(7, nothing, 0)),
    ):  # fmt: skip
        ensure_shown(other, base, removed)
    if level or vectors == "false":
        ensure_shown(asked, base, removed)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_shown(asked, base, removed)
    assert (caught.value.code, caught.value.path, caught.value.features) == ("hidden-rows", "f0", ("level 0",))


@pytest.mark.parametrize(
    ("first", "count", "meets"),
    [(0, 10, False), (0, 11, True), (10, 5, True), (12, 1, True), (14, 3, True), (15, 5, False), (5, 30, True)],
)
def test_ranges_of_rows_are_compacted_with_all_of_their_columns(first: int, count: int, meets: bool) -> None:
    """The rows 10 to 14 come into a new file; another one is there that has columns of some rows."""
    tracked = schema_of(**TRACKED)
    other = {"first_row_id": first, "row_count": count}
    asked = draft(tracked, {"first_row_id": 10, "row_count": 5}, compacts=True)
    base = state(tracked, {**other, "file_name": "x"})
    if meets:
        assert refused(ensure_ranges_whole, asked, base, entries()).code == "concurrent-delete-delete"
    else:
        ensure_ranges_whole(asked, base, entries())
    # What goes with it, what is of another partition, and what compacts nothing.
    ensure_ranges_whole(asked, base, entries({"file_name": "x"}))
    ensure_ranges_whole(asked, state(tracked, {**other, "partition": b"q"}), entries())
    ensure_ranges_whole(replace(asked, compacts=False), base, entries())
    ensure_ranges_whole(draft(tracked, compacts=True), base, entries())
    ensure_ranges_whole(asked, replace(base, schema=schema_of()), entries())


@pytest.mark.parametrize("form", ["avro", "orc", "parquet"])
def test_manifests_stay_of_one_format(form: str) -> None:
    base = state(replace(schema_of(), options={"manifest.format": form}))
    if form == "avro":
        ensure_avro(base)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_avro(base)
    assert (caught.value.code, caught.value.features) == ("unsupported-option", ("manifest.format",))
    assert form in caught.value.message
