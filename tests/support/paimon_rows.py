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
from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FileFooter, read_footer
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.arrow import fields_from_arrow
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed, NewFiles, Operation, Replace, WrittenRows
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from alluvium.spark.workers.worker_files import stored_as
from alluvium.spark.workers.worker_formats import FileForm
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def open_target(store: Store, **options: str) -> PaimonTarget:
    snapshot = load_snapshot(store, At())
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
    places = _places(table, plan)
    written, footers = [], []
    for place in sorted(set(places), key=repr):
        mask = pa.array([one == place for one in places])
        path = f"{plan.directory}/{uuid.uuid4()}.{plan.file_format}"
        target.store.put(path, data := _file(table.filter(mask), plan))
        info = target.store.head(path)
        footers.append(_footer(table.filter(mask), plan, data))
        written.append(
            {"path": path, "size": info.size, "modification_time_ms": info.modified_ms,
             "num_rows": pc.sum(mask).as_py(), "partition": list(place[:-1]), "bucket": place[-1]}
        )  # fmt: skip
    table = pa.Table.from_pylist(written, schema=WRITTEN_FILES)
    return changes_of(NewFiles(table, tuple(footers)), Operation("WRITE"), replace, txn)


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
        return read_footer(pa.BufferReader(data), plan.stats_columns)
    assert plan.files is not None
    bounds = ColumnBounds(plan.stats_columns)
    bounds.add(_stored(rows, plan.files))
    return bounds.footer()


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
