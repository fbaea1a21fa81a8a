"""Rows to files to actions: the write plan of a table, and the add actions of what a job wrote."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn
from alluvium.delta.features.registry import WRITE_PASSES
from alluvium.delta.statistics.stats import format_stats, stats_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.file_properties import NO_LAYOUT, FileLayout, file_properties
from alluvium.delta.terms.partition_values import log_partition_text
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.sort_order import sort_columns
from alluvium.delta.terms.spec import CHANGE_FILES, FILES
from alluvium.expr.sql.not_null import quote
from alluvium.plan.write import Check, WritePlan
from alluvium.schema.types import BINARY, STRING, Field, Struct
from alluvium.storage.paths import encode_uri_paths

#: "the `_change_data` directory within the top level directory of the table"
CHANGE_DIRECTORY = "_change_data"
CHANGE_TYPE = "_change_type"


def plan_write(
    config: TableConfig,
    root: str,
    checks: Sequence[Check] = (),
    options: Sequence[tuple[str, str]] = (),
    indexed: Sequence[tuple[str, ...]] = (),
    layout: FileLayout = NO_LAYOUT,
) -> WritePlan:
    """How rows become files of a table: each feature adds its obligations in turn.

    Args:
        config: The table.
        root: Its URL.
        checks: Conditions of the request itself, beside the table's own.
        options: For the engine's Parquet writer.
        indexed: Columns that have statistics wherever they stand ("Writers must write out per-file statistics for
            clustering columns"), by their logical paths.
        layout: What the session says, which counts more than what the table does.
    """
    wanted = file_properties(config.metadata.configuration)
    own = () if wanted.codec is None or any(name == "compression" for name, _ in options) else (
        ("compression", wanted.codec),)  # fmt: skip
    plan = WritePlan(
        root=root,
        # A directory of its own for each job: what the job wrote is one listing, and what a failed job
        # left can be removed without looking at anybody else's files.
        directory=f"{wanted.random_prefix()}{uuid.uuid4()}",
        schema=config.schema,
        partition_by=config.partition_columns,
        checks=(*checks, *_partition_checks(config)),
        stats_columns=_with_statistics(config, indexed),
        options=(*options, *own),
        rebalance=wanted.optimize_write if layout.optimize_write is None else layout.optimize_write,
        target_file_bytes=layout.bin_bytes or wanted.target_file_bytes,
        most_tasks=layout.most_tasks,
        sort=sort_columns(config.metadata.configuration, config.schema),
    )
    for edit in WRITE_PASSES:
        plan = edit(plan, config)
    return plan


def _partition_checks(config: TableConfig) -> Iterator[Check]:
    """The log has partition values as text. Of binary ones it can hold those that are text; no directory's name has the
    character zero.
    """
    for name in config.partition_columns:
        found = config.schema.find(name)
        if found is not None and found.type == BINARY:
            value = quote((name,))
            text = f"cast({value} as string)"
            is_text = f"is_valid_utf8({text}) and instr({text}, cast(X'00' as string)) = 0"
            condition = f"({value} is null or ({is_text}))"
            yield Check(f"partition {name}", condition, (name,), "unrepresentable-partition-value")


def _with_statistics(config: TableConfig, indexed: Sequence[tuple[str, ...]]) -> tuple[FooterColumn, ...]:
    properties = parse_properties(config.metadata.configuration)
    chosen = stats_columns(
        config.schema, config.partition_columns, properties.num_indexed_cols, properties.stats_columns
    )
    every = stats_columns(config.schema, config.partition_columns, -1) if indexed else ()
    return (*chosen, *(leaf for leaf in every if leaf.path in indexed and leaf not in chosen))


def added_files(
    config: TableConfig,
    written: pa.Table,
    footers: Sequence[FileFooter],
    data_change: bool = True,
    marks: pa.Table | None = None,
) -> pa.Table:
    """The add actions (`FILES`) of files that a job wrote (`WRITTEN_FILES`); `marks` has further columns of them.

    Specification: "Add File and Remove File", "Per-file Statistics", "Partition Value Serialization".
    """
    count = written.num_rows
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "path": encode_uri_paths(written.column("path")),
        "partitionValues": partition_maps(config, written.column("partition"), config.physical_names),
        "size": written.column("size"),
        "modificationTime": written.column("modification_time_ms"),
        "dataChange": pa.repeat(pa.scalar(data_change), count),
        # "When adding a logical file with a deletion vector, then that logical file must have correct `numRecords`
        # information": and bounds that later vectors may loosen say that they are tight now.
        "stats": format_stats(footers, tight_bounds=True if _may_have_vectors(config) else None),
    }
    if marks is not None:
        columns.update(zip(marks.column_names, marks.columns, strict=True))
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in FILES]
    return pa.Table.from_arrays([_one_chunk(a, f.type) for a, f in zip(arrays, FILES, strict=True)], schema=FILES)


def change_files(config: TableConfig, written: pa.Table) -> pa.Table:
    """The cdc actions (`CHANGE_FILES`) of files that a job wrote (`WRITTEN_FILES`).

    Specification: "Add CDC File".
    """
    count = written.num_rows
    arrays = [
        encode_uri_paths(written.column("path")),
        partition_maps(config, written.column("partition"), config.physical_names),
        written.column("size"),
        # "Should always be set to `false` for `cdc` actions because they _do not_ change the underlying data"
        pa.repeat(pa.scalar(False), count),
    ]
    typed = [_one_chunk(a, f.type) for a, f in zip(arrays, CHANGE_FILES, strict=True)]
    return pa.Table.from_arrays(typed, schema=CHANGE_FILES)


def plan_change_files(plan: WritePlan) -> WritePlan:
    """How change data of a table are written whose rows are written by `plan`.

    "Change data files [...] are stored in the `_change_data` directory"; they have the table's columns and
    `_change_type`. No reader skips by them, hence no statistics.
    """
    more = Field(CHANGE_TYPE, STRING)
    return replace(
        plan,
        directory=f"{CHANGE_DIRECTORY}/{uuid.uuid4()}",
        schema=Struct((*plan.schema.fields, more)),
        stored=None if plan.stored is None else Struct((*plan.stored.fields, more)),
        checks=(),
        derived=(),
        numbered=(),
        stats_columns=(),
        sort=(),
    )


def _may_have_vectors(config: TableConfig) -> bool:
    return "deletionVectors" in (config.protocol.writer_features or ())


def _one_chunk(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.cast(data_type)


def partition_maps(
    config: TableConfig, partitions: pa.ChunkedArray, names: Mapping[str, str] | None = None
) -> pa.Array:
    """The `partitionValues` of each file: column name to text; null where the value is null.

    Args:
        config: The table.
        partitions: The values as text, in the order of the partition columns.
        names: By what name each column goes in the result; None: its own.
    """
    rows = partitions.to_pylist()
    texts = []
    for position, name in enumerate(config.partition_columns):
        found = config.schema.find(name)
        assert found is not None, "a TableConfig's partition columns are columns of its schema"
        column = pa.array([row[position] for row in rows], pa.string())
        texts.append(log_partition_text(column, found.type).to_pylist())
    keys = [name if names is None else names[name] for name in config.partition_columns]
    maps = [list(zip(keys, values, strict=True)) for values in zip(*texts, strict=True)]
    return pa.array(maps if texts else [[] for _ in rows], FILES.field("partitionValues").type)
