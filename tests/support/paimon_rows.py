"""Rows into a Paimon table without Spark: data files by pyarrow, the commit by `PaimonTarget`."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from changes import changes_of

import alluvium
from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.codecs.file_forms import FileForm, stored_as
from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FileFooter, read_footer
from alluvium.expr.tree import Expression
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.arrow import fields_from_arrow
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.upkeep.keyed.compaction import Compaction
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.paimon.upkeep.keyed.vectors import changed_vectors
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import Committed, NewFiles, Operation, Replace, WrittenRows
from alluvium.plan.write import (
    BUCKET_COLUMN,
    FIRST_COLUMN,
    HASH_COLUMN,
    WRITTEN_FILES,
    AssignedBuckets,
    KeyedRows,
    WritePlan,
)
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from alluvium.spark.workers.run_bounds import RunBounds
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def open_target(store: Store, branch: str = MAIN_BRANCH, **options: str) -> PaimonTarget:
    snapshot = load_snapshot(store, At(), branch)
    schema = snapshot.schema
    return PaimonTarget(store, replaced(schema, options={**schema.options, **options}), snapshot)


def new_target(store: Store, schema: pa.Schema, partition_keys: Sequence[str] = ()) -> PaimonTarget:
    """A table that the first commit creates."""
    fields = number_fields(fields_from_arrow(schema))
    return PaimonTarget(store, TableSchema.create(fields, tuple(partition_keys)), None)


def append(
    target: PaimonTarget,
    rows: Sequence[Mapping[str, Any]],
    replace: Replace | None = None,
    txn: tuple[str, int] | None = None,
) -> Committed:
    """One data file a partition and bucket, then the commit."""
    changes = stage(target, rows, replace, txn)
    return target.commit(changes)


def stage(
    target: PaimonTarget,
    rows: Sequence[Mapping[str, Any]],
    replace: Replace | None = None,
    txn: tuple[str, int] | None = None,
) -> WrittenRows:
    plan = target.plan_write(replace, ())
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in plan.schema.fields])
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    assigned = None
    if plan.assigned is not None:
        table, assigned = _assigned(table, plan, plan.assigned)
    if plan.crossing is not None:
        # Nobody asks where keys are.
        plan = plan.brought(BUCKET_COLUMN)
        table = table.append_column(BUCKET_COLUMN, pa.array([0] * table.num_rows, pa.int32()))
    places = _places(table, plan)
    table = table.drop_columns([name for name in (BUCKET_COLUMN,) if name in table.column_names])
    groups = {}
    for place in sorted(set(places), key=repr):
        kept = table.filter(pa.array([one == place for one in places]))
        groups[place] = kept if plan.keyed is None else _merged(kept, plan, plan.keyed, place)
    new = replaced(write_files(target.store, plan, groups), assigned=assigned)
    return changes_of(new, Operation("WRITE"), replace, txn)


def write_files(store: Store, plan: WritePlan, groups: Mapping[tuple[Any, ...], pa.Table]) -> NewFiles:
    """A staged file of each group's rows, as they are; a group is the texts of a partition, and a bucket."""
    written, footers = [], []
    for place, rows in groups.items():
        path = f"{plan.directory}/{uuid.uuid4()}.{plan.file_format}"
        store.put(path, data := _file(rows, plan))
        info = store.head(path)
        footers.append(_footer(rows, plan, data))
        written.append(
            {"path": path, "size": info.size, "modification_time_ms": info.modified_ms,
             "num_rows": rows.num_rows, "partition": list(place[:-1]), "bucket": place[-1]}
        )  # fmt: skip
    return NewFiles(pa.Table.from_pylist(written, schema=WRITTEN_FILES), tuple(footers))


def full(snapshot: Snapshot, where: Expression | None = None) -> Compaction:
    """A full compaction, planned."""
    return plan_compaction(snapshot, Asked(where=where))


def compacted(
    target: PaimonTarget,
    compaction: Compaction,
    rows: Sequence[Mapping[str, Any]],
    gone: Mapping[int, tuple[bytes, int]] | None = None,
) -> Committed:
    """As the verb does it, with the rows that are left of those that are written anew, and those that newer ones of
    their keys delete in files above.
    """
    new = stage(target, rows, Replace()).new if rows else NewFiles.none()
    anew = compaction.fates.filter(compaction.is_rewritten)
    entries = compaction.entries.filter(compaction.is_rewritten)
    known = zip(*(entries[name].to_pylist() for name in ("partition", "bucket")), anew["code"].to_pylist(), strict=True)
    by_place = {(partition, bucket): code for partition, bucket, code in known}
    own = added_entries(compaction.schema, new.table, new.footers)
    places = zip(own["partition"].to_pylist(), new.table["bucket"].to_pylist(), strict=True)
    coded = pa.array([by_place[place] for place in places], pa.int32())
    table = new.table.set_column(new.table.schema.get_field_index("bucket"), "bucket", coded)
    edits = changed_vectors(compaction, gone or {})
    return target.compact(new, compaction.added(table, new.footers), compaction.before, edits, compaction.moved)


def _assigned(rows: pa.Table, plan: WritePlan, assigned: AssignedBuckets) -> tuple[pa.Table, pa.Table]:
    """The rows with their buckets, and which hash is in which."""
    keys = [rows[c.name].combine_chunks() for c in assigned.columns]
    hashes = hash_rows(encode_rows(keys, [(c.type, c.precision) for c in assigned.columns])) if rows.num_rows else []
    hashed = rows.select(list(plan.partition_by)).append_column(HASH_COLUMN, pa.array(hashes, pa.int32()))
    told = assigned.assign(hashed.group_by(hashed.column_names, use_threads=False).aggregate([]))
    buckets = {tuple(row.values())[:-1]: row[BUCKET_COLUMN] for row in told.to_pylist()}
    found = [buckets[tuple(row.values())] for row in hashed.to_pylist()]
    return rows.append_column(BUCKET_COLUMN, pa.array(found, pa.int32())), told


def _merged(rows: pa.Table, plan: WritePlan, keyed: KeyedRows, place: tuple[Any, ...]) -> pa.Table:
    """The last row of each key, in the order of keys, with its key, number and kind."""
    newest = {tuple(row[name] for name in keyed.merge.keys): row for row in rows.to_pylist()}
    first = 0
    if keyed.first_numbers is not None:
        known = keyed.first_numbers.filter(pc.equal(keyed.first_numbers[BUCKET_COLUMN], place[-1]))
        for n, name in enumerate(plan.partition_by):
            known = known.filter(pc.equal(known[name].cast(pa.string()), place[n]))
        first = known[FIRST_COLUMN][0].as_py() if known.num_rows else 0
    made = []
    for number, key in enumerate(sorted(newest)):
        hidden = {"_SEQUENCE_NUMBER": first + number, "_VALUE_KIND": _kind(keyed, newest[key])}
        names = (name for name in keyed.stored_keys if name.startswith("_KEY_"))
        made.append({**dict(zip(names, key, strict=False)), **hidden, **newest[key]})
    own = [f for f in rows.schema if f.name != keyed.kind_column]
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in keyed.stored.fields] + own)
    return pa.Table.from_pylist(made, schema=schema)


def _kind(keyed: KeyedRows, row: Mapping[str, Any]) -> int:
    if keyed.kind_column is not None:
        return int(row[keyed.kind_column])
    if keyed.kind_text is not None:
        return ["+I", "-U", "+U", "-D"].index(row[keyed.kind_text])
    return keyed.kind or 0


def _file(rows: pa.Table, plan: WritePlan) -> bytes:
    """As Spark's own writer has it, or as Python workers do."""
    if plan.files is None:
        sink = io.BytesIO()
        pq.write_table(rows, sink)
        return sink.getvalue()
    writer = FileForm(plan.file_format, plan.files, "zstd", 1).open()
    writer.add(_stored(rows, plan.files))
    return writer.finish()


def _stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table([stored_as(rows[f.name].combine_chunks(), f.type) for f in schema], schema=schema)


def _footer(rows: pa.Table, plan: WritePlan, data: bytes) -> FileFooter:
    if plan.file_format == "parquet":
        found = read_footer(pa.BufferReader(data), plan.stats_columns)
    else:
        assert plan.files is not None
        bounds = ColumnBounds(plan.stats_columns)
        bounds.add(_stored(rows, plan.files))
        found = bounds.footer()
    if (ends := RunBounds.of(plan.keyed)) is None:
        return found
    ends.add(rows)
    return replaced(found, ends=ends.ends())


def _places(table: pa.Table, plan: WritePlan) -> list[tuple[Any, ...]]:
    """Of each row the exact texts of its partition, and its bucket."""
    texts = []
    for name in plan.partition_by:
        kind = plan.schema.find(name).type  # type: ignore[union-attr]
        values = table[name].combine_chunks()
        if kind == DATE:
            values = values.cast(pa.int32())
        elif kind in (TIMESTAMP, TIMESTAMP_NTZ):
            values = values.cast(pa.int64())
        texts.append(values.cast(pa.string()).to_pylist())
    buckets: list[int | None] = [None] * table.num_rows
    if BUCKET_COLUMN in table.column_names:
        buckets = table[BUCKET_COLUMN].to_pylist()
    if plan.bucket is not None:
        keys = [table[c.name].combine_chunks() for c in plan.bucket.columns]
        if plan.bucket.function == "mod":
            buckets = np.mod(keys[0].fill_null(0).to_numpy(), plan.bucket.count).tolist()
        else:
            hashes = hash_rows(encode_rows(keys, [(c.type, c.precision) for c in plan.bucket.columns]))
            buckets = buckets_of(hashes, plan.bucket.count).to_pylist()
    return list(zip(*texts, buckets, strict=True))


#: Columns of the tables that `make` makes.
FIELDS = [("k", "INT"), ("s", "STRING"), ("day", "STRING")]


def make(url: str, *keys: str, **options: str) -> Store:
    """A new table with these keys and options; its store."""
    fields = [DataField(0, name, parse_type(kind)) for name, kind in FIELDS]
    PaimonTable.create(url, fields, keys, options=options)
    return open_store(url)


def ks(store: Store, **at: Any) -> list[int]:
    """The values of `k`, in order."""
    return sorted(alluvium.open(store.url, **at).to_arrow(columns=["k"])["k"].to_pylist())
