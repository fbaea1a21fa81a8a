"""Rows into and out of a Delta table by Alluvium's own plans and commits, with pyarrow: no Spark."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.rows.candidates import Candidates
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import NewFiles
from alluvium.plan.scan import FIELD_ID
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.portable.reader import read_batches
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.open import open_store

Rows = list[dict[str, Any]]


def with_ids(plan: WritePlan, snapshot: Snapshot) -> WritePlan:
    """The plan with the columns by which rows keep their identity."""
    configuration = snapshot.config.metadata.configuration
    more = (
        Field(configuration[MATERIALIZED_ROW_ID], LONG),
        Field(configuration[MATERIALIZED_ROW_COMMIT_VERSION], LONG),
    )
    stored = None if plan.stored is None else Struct((*plan.stored.fields, *more))
    return replace(plan, schema=Struct((*plan.schema.fields, *more)), stored=stored)


def stored_rows(candidates: Candidates, where: Any = None) -> Rows:
    """Rows with their places: as the plan says, and those for which a condition is true."""
    snapshot = candidates.snapshot
    plan = candidates.plan_scan(where)
    return list(read_batches(plan, snapshot.store, open_store, None, where).read_all().to_pylist())


def write_rows(target: DeltaTarget, plan: WritePlan, rows: Rows, files: int = 1) -> NewFiles:
    """A file, or some, for each partition."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for n, row in enumerate(rows):
        groups.setdefault((n % files, *(row.get(name) for name in plan.partition_by)), []).append(row)
    written, footers = [], []
    for (_, *values), members in groups.items():
        content = _parquet(plan, members)
        path = f"{plan.directory}/{uuid.uuid4()}.parquet"
        target.store.put(path, content)
        info = target.store.head(path)
        texts = [None if v is None else str(v) for v in values]
        written.append(
            {
                "path": path,
                "size": info.size,
                "modification_time_ms": info.modified_ms,
                "num_rows": len(members),
                "partition": texts,
            }
        )
        footers.append(read_footer(pa.BufferReader(content), plan.stats_columns))
    return NewFiles(pa.Table.from_pylist(written, schema=WRITTEN_FILES), tuple(footers))


def _parquet(plan: WritePlan, rows: Rows) -> bytes:
    arrays, fields = [], []
    stored = (plan.stored or plan.schema).fields
    for own, f in zip(plan.schema.fields, stored, strict=True):
        if own.name in plan.partition_by and not plan.materialize_partitions:
            continue
        logical, data_type = to_arrow(own.type), to_arrow(f.type)
        values = pa.array([arrow_value(row.get(own.name), logical) for row in rows], logical)
        arrays.append(_renamed(values, data_type))
        number = f.metadata.get(FIELD_ID)
        fields.append(
            pa.field(f.name, data_type, metadata=None if number is None else {"PARQUET:field_id": str(number)})
        )
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), sink)
    return sink.getvalue()


def _renamed(values: pa.Array, stored: pa.DataType) -> pa.Array:
    """Fields of a struct under the names that files have."""
    if not pa.types.is_struct(stored):
        return values
    return pa.StructArray.from_arrays(values.flatten(), fields=list(stored), mask=values.is_null())


def arrow_value(value: Any, data_type: pa.DataType) -> Any:
    if pa.types.is_map(data_type) and isinstance(value, dict):
        return list(value.items())
    if not isinstance(value, str):
        return value
    if pa.types.is_date(data_type):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(data_type):
        return dt.datetime.fromisoformat(value)
    return Decimal(value) if pa.types.is_decimal(data_type) else value


def table_of(call: dict[str, Any]) -> pa.Table:
    """The rows of a call, under the types of its columns."""
    types = [to_arrow(parse_fields(f"c {kind}")[0].type) for _, kind in call["columns"]]
    columns = {
        name: pa.array([arrow_value(row[n], data_type) for row in call["rows"]], data_type)
        for n, ((name, _), data_type) in enumerate(zip(call["columns"], types, strict=True))
    }
    return pa.table(columns)


def rows_of(call: dict[str, Any]) -> Rows:
    names = [name for name, _ in call["columns"]]
    return [dict(zip(names, row, strict=True)) for row in call["rows"]]


def places(rows: Rows, names: Sequence[str]) -> dict[int, list[int]]:
    """File number to places in it."""
    file, row = names
    found: dict[int, list[int]] = {}
    for r in rows:
        found.setdefault(r[file], []).append(r[row])
    return found
