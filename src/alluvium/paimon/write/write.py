"""Rows to files to manifest entries: the write plan of a table, and the entries of what a job wrote."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.codecs.avro.avro_rows import avro_schema
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.not_null import quote, required_inside
from alluvium.paimon.files.file_forms import (
    FORMATS,
    field_id,
    spark_writes_where,
    types_within,
    writer_options,
    written_by_workers,
)
from alluvium.paimon.files.file_stats import stats_columns, value_stats
from alluvium.paimon.files.key_stats import key_entries
from alluvium.paimon.files.manifest_write import EMPTY_ROW
from alluvium.paimon.files.orc_times import times_of_orc
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.arrow import to_arrow as arrow_type
from alluvium.paimon.schema.logical import as_brought, declared_text, to_logical, written_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.paimon.terms.compaction_options import target_size
from alluvium.paimon.terms.options import (
    BUCKET,
    BUCKET_FUNCTION,
    DYNAMIC_BUCKET,
    EXTERNAL_PATHS,
    FILE_FORMAT,
    MANIFEST_FORMAT,
    NULLABLE_KEY,
    ORC_LOCAL_INSTANTS,
    POSTPONE_BUCKET,
    TARGET_FILE_SIZE,
)
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.merge import SEQUENCE
from alluvium.paimon.write.crossing import crossing_of, moves_keys
from alluvium.paimon.write.defaults import derived_defaults
from alluvium.paimon.write.dynamic import assigner
from alluvium.paimon.write.keyed import (
    RowKinds,
    ensure_keyed_writable,
    hidden_fields,
    keyed_rows,
    kind_checks,
)
from alluvium.paimon.write.postponed import as_waiting, data_prefix, is_postponed
from alluvium.plan.checks import length_checks
from alluvium.plan.scan import FIELD_ID
from alluvium.plan.write import AssignedBuckets, BucketColumn, Bucketing, Check, WritePlan
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Array, Field, JsonValue, Map, Struct

#: Where a job leaves its files before the commit moves them; no name of a partition begins so.
STAGING = "_staging"
#: "0 append, 1 compact"
_APPENDED = 0


def ensure_writable(schema: TableSchema) -> None:
    """Refuses tables whose rows are written in ways that we do not know.

    Raises:
        UnsupportedFeature: `"unsupported-file-format"`, `"unsupported-type"`, `"unsupported-option"`.
    """
    if schema.primary_keys:
        ensure_keyed_writable(schema)
    file_format = FILE_FORMAT.get(schema.options)
    if file_format not in FORMATS:
        raise UnsupportedFeature(
            f"data files of format {file_format} are not written",
            code="unsupported-file-format",
            features=(file_format,),
            hint='a table may have files of several formats: give the option "file.format" = "parquet"',
        )
    if MANIFEST_FORMAT.get(schema.options) != "avro":
        raise _no_option(MANIFEST_FORMAT.key)
    bucket = BUCKET.get(schema.options)
    is_known = bucket >= DYNAMIC_BUCKET or is_postponed(schema)
    if not is_known or bucket == 0 or (bucket > 0 and BUCKET_FUNCTION.get(schema.options) == "hive"):
        raise _no_option("bucket-function.type" if bucket > 0 else f"bucket = {bucket}")
    if schema.primary_keys and NULLABLE_KEY.get(schema.options):
        raise _no_option(NULLABLE_KEY.key)
    if EXTERNAL_PATHS.get(schema.options).strip():
        raise _no_option(EXTERNAL_PATHS.key)
    for column in schema.fields:
        _ensure_type(column.type, column.name, () if file_format == "parquet" else ("VARIANT",))
    if file_format == "avro":
        # Raises where Avro has no form for a type, or no such name.
        avro_schema(_file_columns(schema))


def _no_option(name: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"tables with {name} are read, but not written", code="unsupported-option", features=(name,)
    )


def _ensure_type(data_type: DataType, column: str, others: Sequence[str]) -> None:
    if data_type.root in ("BLOB", "VECTOR", "GEOMETRY", "GEOGRAPHY", *others):
        raise UnsupportedFeature(
            f"a column of type {data_type} is read, but not written",
            code="unsupported-type",
            column=column,
            features=(str(data_type),),
        )
    for inner in types_within(data_type):
        _ensure_type(inner, column, others)


def plan_write(
    schema: TableSchema,
    root: str,
    checks: Sequence[Check] = (),
    options: Sequence[tuple[str, str]] = (),
    base: Snapshot | None = None,
    kind: int | RowKinds | None = None,
) -> WritePlan:
    """How rows become files of a table.

    Args:
        schema: The table's, its options with those of the call on top.
        root: Its URL.
        checks: Conditions of the request itself, beside NOT NULL.
        options: For the engine's writer.
        base: After whose rows those of keys are numbered; None: they come in the place of all that are there.
        kind: As of `keyed_rows`.

    Raises:
        InvalidRequest: As of `writer_options`.
        UnsupportedFeature: As of `ensure_writable` and `writer_options`.
    """
    ensure_writable(schema)
    schema = as_waiting(schema)
    logical = written_schema(schema)
    file_format = FILE_FORMAT.get(schema.options)
    made = writer_options(schema, options)
    by_workers = written_by_workers(schema, made)
    bucketing = bucketing_of(schema)
    hidden = hidden_fields(schema) if schema.primary_keys else ()
    keyed = keyed_rows(schema, _with_ids(hidden), base, kind) if schema.primary_keys else None
    kinds = () if keyed is None else kind_checks(schema, keyed)
    finds_buckets = keyed is not None and bucketing is None and not keyed.waits
    if keyed is not None and keyed.kind_column is not None:
        logical = Struct((*logical.fields, Field(keyed.kind_column, t.INTEGER)))
    return WritePlan(
        root=root,
        directory=f"{STAGING}/{uuid.uuid4()}",
        schema=logical,
        partition_by=schema.partition_keys,
        checks=(*checks, *_not_null(logical), *_lengths(schema), *times_of_orc(schema), *kinds),
        derived=derived_defaults(schema),
        stored=_with_ids(schema.fields),
        files=_file_columns(schema, hidden) if by_workers or file_format != "parquet" else None,
        spark_writes_where=None if by_workers else spark_writes_where(schema),
        stats_columns=(*stats_columns(schema), *(FooterColumn((f.name,), to_logical(f.type)) for f in hidden)),
        file_format=file_format,
        options=tuple(made.items()),
        # "Partition columns: present in files normally"
        materialize_partitions=True,
        # A bucket's rows come together, or each task would leave a file in every bucket.
        rebalance=bucketing is not None and keyed is None,
        target_file_bytes=target_size(schema.options) if schema.primary_keys else TARGET_FILE_SIZE.get(schema.options),
        bucket=bucketing,
        assigned=_assigned(schema, base) if finds_buckets and not moves_keys(schema) else None,
        crossing=crossing_of(schema, base) if finds_buckets and moves_keys(schema) else None,
        keyed=keyed,
        is_staged=True,
    )


def _assigned(schema: TableSchema, base: Snapshot | None) -> AssignedBuckets:
    keys = [f for name in schema.trimmed_primary_keys if (f := schema.find(name)) is not None]
    columns = tuple(BucketColumn(f.name, as_brought(to_logical(f.type)), f.type.precision) for f in keys)
    return AssignedBuckets(columns, assigner(schema, base))


def bucketing_of(schema: TableSchema) -> Bucketing | None:
    """How rows are divided into buckets; None where they are not.

    Raises:
        InvalidRequest: Buckets without a key, or with one that their function does not take (`"invalid-bucket"`).
    """
    count = BUCKET.get(schema.options)
    if count <= 0:
        return None
    columns = tuple(
        BucketColumn(f.name, as_brought(to_logical(f.type)), f.type.precision)
        for name in schema.bucket_keys
        if (f := schema.find(name)) is not None
    )
    function = "hash" if BUCKET_FUNCTION.get(schema.options) == "default" else "mod"
    if not columns or (function == "mod" and [c.type for c in columns] not in ([t.INTEGER], [t.LONG])):
        raise InvalidRequest(
            f"rows cannot be divided into {count} buckets by {', '.join(schema.bucket_keys) or 'nothing'}",
            code="invalid-bucket",
            hint="the option bucket-key names the columns; the function mod takes one INT or BIGINT",
        )
    return Bucketing(count, columns, function)


def _not_null(schema: Struct) -> Iterator[Check]:
    for f in schema.fields:
        name, value = f"NOT NULL {f.name}", quote((f.name,))
        if not f.nullable:
            yield Check(name, f"{value} is not null", (f.name,), "not-null-violated")
        if (inside := required_inside(f.type, value)) is not None:
            yield Check(f"{name} (inside)", inside, (f.name,), "not-null-violated")


def _lengths(schema: TableSchema) -> tuple[Check, ...]:
    """Texts must not be longer than their columns say; whoever reads them may rely on that."""
    declared = ((f, declared_text(f.type)) for f in schema.fields)
    columns = (Field(f.name, to_logical(f.type), True, {CHAR_VARCHAR: text}) for f, text in declared if text)
    return length_checks(Struct(tuple(columns)))


def _with_ids(fields: Sequence[DataField]) -> Struct:
    """The columns with the numbers that files have beside names."""
    found = []
    for f in fields:
        number: dict[str, JsonValue] = {FIELD_ID: f.id}
        found.append(Field(f.name, _ids_inside(f.type), f.type.nullable, number))
    return Struct(tuple(found))


def _ids_inside(data_type: DataType) -> t.DataType:
    if data_type.root == "ROW":
        return _with_ids(data_type.fields)
    if data_type.root == "MULTISET" and data_type.element is not None:
        return Map(_ids_inside(data_type.element), t.INTEGER, False)
    if data_type.element is not None:
        return Array(_ids_inside(data_type.element), data_type.element.nullable)
    if data_type.key is not None and data_type.value is not None:
        return Map(_ids_inside(data_type.key), _ids_inside(data_type.value), data_type.value.nullable)
    return as_brought(to_logical(data_type))


def _file_columns(schema: TableSchema, hidden: Sequence[DataField] = ()) -> pa.Schema:
    """The columns as Arrow writes them, those of partitions last, as Spark's writer has them."""
    names = [f.name for f in schema.fields if f.name not in schema.partition_keys] + list(schema.partition_keys)
    form = _Form(FILE_FORMAT.get(schema.options), ORC_LOCAL_INSTANTS.get(schema.options))
    columns = {f.name: _file_column(f, form) for f in schema.fields}
    return pa.schema([*(_file_column(f, form) for f in hidden), *(columns[name] for name in names)])


@dataclass(frozen=True, slots=True)
class _Form:
    """What decides on the types of a file's columns.

    Attributes:
        format: The file's.
        local_instants: Whether Java, reading ORC, has instants go by the clock of its own zone.
    """

    format: str
    local_instants: bool


def _file_column(column: DataField, form: _Form) -> pa.Field:
    metadata = field_id(form.format, column.id)
    return pa.field(column.name, _file_type(column.type, form), column.type.nullable, metadata=metadata)


def _file_type(data_type: DataType, form: _Form) -> pa.DataType:
    if data_type.root == "ROW":
        return pa.struct([_file_column(f, form) for f in data_type.fields])
    if data_type.root == "MULTISET" and data_type.element is not None:
        return pa.map_(_file_type(data_type.element, form), pa.field("value", pa.int32(), False))
    if data_type.element is not None:
        return pa.list_(pa.field("element", _file_type(data_type.element, form), data_type.element.nullable))
    if data_type.key is not None and data_type.value is not None:
        value = pa.field("value", _file_type(data_type.value, form), data_type.value.nullable)
        return pa.map_(_file_type(data_type.key, form), value)
    if data_type.root == "TIME_WITHOUT_TIME_ZONE" and form.format == "orc":
        return pa.int32()
    kind = arrow_type(data_type)
    if form.format == "orc" and form.local_instants and pa.types.is_timestamp(kind):
        # Java shifts instants by its own zone when it reads them, but a wall clock it moves to its zone before: the
        # time that UTC's clock shows comes out the same in every zone.
        return pa.timestamp(kind.unit)
    return kind


def added_entries(
    schema: TableSchema, written: pa.Table, footers: Sequence[FileFooter], name_prefix: str | None = None
) -> pa.Table:
    """The entries (`ENTRIES`) of files that a job wrote (`WRITTEN_FILES`), under the names they will have, which begin
    as those of data do where nobody says another beginning.

    Without keys their sequence numbers count from 0 in each file: the commit moves them behind those of their bucket.
    """
    count, waits = written.num_rows, is_postponed(schema) and written["bucket"].null_count > 0
    stats = value_stats(as_waiting(schema) if waits else schema, footers)
    rows = written["num_rows"].combine_chunks()
    job = uuid.uuid4()
    prefix = data_prefix(schema) if name_prefix is None else name_prefix
    ending = FILE_FORMAT.get(schema.options)
    columns: dict[str, pa.Array] = {
        "partition": partition_rows(schema, written),
        # "Bucket dir is `bucket-0` also for unaware append tables"
        "bucket": written["bucket"].combine_chunks().fill_null(POSTPONE_BUCKET if waits else 0),
        "file_name": pa.array([f"{prefix}{job}-{number}.{ending}" for number in range(count)], pa.string()),
        "file_size": written["size"].combine_chunks(),
        "row_count": rows,
        "stats_min": stats.low,
        "stats_max": stats.high,
        "stats_nulls": stats.nulls,
        "max_sequence_number": pa.compute.subtract(rows, 1),
    }
    if schema.primary_keys and count:
        columns |= key_entries(schema, footers, SEQUENCE)
    now = dt.datetime.now()
    alike = {
        **_ALIKE,
        "schema_id": schema.id,
        "total_buckets": BUCKET.get(schema.options),
        # "timestamp-millis (local wall clock of the writer)"
        "creation_time": now.replace(microsecond=now.microsecond // 1000 * 1000),
        "value_stats_cols": stats.columns,
    }
    others = [f for f in ENTRIES if f.name not in columns]
    # As one value of a struct: an array a column takes several times as long.
    line = pa.RecordBatch.from_struct_array(pa.array([alike], pa.struct(others)))
    lines = line.take(pa.repeat(pa.scalar(0, pa.int64()), count))
    arrays = [columns[f.name].cast(f.type) if f.name in columns else lines.column(f.name) for f in ENTRIES]
    return pa.Table.from_arrays(arrays, schema=ENTRIES)


#: What the entries of all files that a job writes say, but for those with keys; nothing of the rest.
_ALIKE: Mapping[str, object] = {
    "kind": 0,
    # "Append writer: min/max key empty rows, key stats empty, level 0"
    **dict.fromkeys(("min_key", "max_key", "key_stats_min", "key_stats_max"), EMPTY_ROW),
    "key_stats_nulls": [],
    "min_sequence_number": 0,
    "level": 0,
    "extra_files": [],
    "delete_row_count": 0,
    "file_source": _APPENDED,
}


def partition_rows(schema: TableSchema, written: pa.Table) -> pa.Array:
    """The partition of each written file, as the row of bytes that manifests have."""
    texts = written["partition"].to_pylist()
    if not schema.partition_keys:
        return pa.repeat(pa.scalar(EMPTY_ROW, pa.binary()), len(texts))
    columns, types = [], []
    for place, name in enumerate(schema.partition_keys):
        column = schema.find(name)
        assert column is not None, "a table's partition keys are columns"
        kind = to_logical(column.type)
        columns.append(_values([row[place] for row in texts], kind))
        types.append((kind, column.type.precision))
    return encode_rows(columns, types)


def _values(texts: Sequence[str | None], kind: t.DataType) -> pa.Array:
    """Partition values out of their exact texts (see `WritePlan.is_staged`)."""
    array, target = pa.array(texts, pa.string()), to_arrow(kind)
    if kind in (t.DATE, t.TIME):
        return array.cast(pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return array.cast(pa.int64()).cast(pa.timestamp("us", target.tz)).cast(target)
    return array.cast(target)
