"""What both versions of Iceberg compatibility ask of a table, so that somebody may describe it as an Iceberg table.

Specification: "Iceberg Compatibility V1", "Iceberg Compatibility V2". Readers have nothing to obey; writers refuse what
the other format could not express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.feature import CommitContext, Feature, is_supported_for_writers
from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest
from alluvium.plan.write import WritePlan
from alluvium.schema import types as t
from alluvium.schema.spark_json import parse_type
from alluvium.schema.types import DataType, Decimal, Struct
from alluvium.schema.walk import fields_within

#: The error's code for whatever a compatible table may not be.
CODE = "iceberg-compat"


def is_enabled(metadata: Metadata, version: int) -> bool:
    """ "This table feature is enabled when the table property `delta.enableIcebergCompatV1` is set to `true`." """
    return metadata.configuration.get(enabling_property(version), "").strip().lower() == "true"


def enabling_property(version: int) -> str:
    return f"delta.enableIcebergCompatV{version}"


def make_feature(
    version: int,
    ensure_compatible: Callable[[TableConfig], None],
    ensure_files: Callable[[CommitContext], None] | None = None,
) -> Feature:
    """The feature of one version.

    Args:
        version: 1 or 2.
        ensure_compatible: Refuses tables that the version cannot have.
        ensure_files: Refuses a new description that the files of the table, as they are, do not fit.
    """
    name, spec = f"icebergCompatV{version}", f"Iceberg Compatibility V{version}"

    def is_used(config: TableConfig) -> bool:
        return is_enabled(config.metadata, version)

    def is_obeyed(config: TableConfig) -> bool:
        return is_supported_for_writers(feature, config.protocol) and is_used(config)

    def on_change(metadata: Metadata, before: TableConfig | None) -> Metadata:
        """A new table gets column mapping, as the reference does."""
        if not is_enabled(metadata, version):
            return metadata
        _ensure_partitioned_alike(metadata, before, version)
        is_new = before is None or before.metadata.id != metadata.id
        if is_new and MODE not in metadata.configuration:
            configuration = {**metadata.configuration, MODE: "name"}
            return msgspec.structs.replace(metadata, configuration=configuration)
        return metadata

    def on_write(plan: WritePlan, config: TableConfig) -> WritePlan:
        """ "Require that partition column values are materialized into any Parquet data file that is present in the
        table, placed *after* the data columns in the parquet schema"
        """
        if not is_obeyed(config):
            return plan
        ensure_compatible(config)
        return replace(plan, materialize_partitions=True)

    def on_commit(actions: Actions, context: CommitContext) -> Actions:
        """Looks at what is committed, and at the table when its description changes."""
        if not is_obeyed(context.config):
            return actions
        if actions.metadata is not None or actions.protocol is not None:
            ensure_compatible(context.config)
            if ensure_files is not None:
                ensure_files(context)
        ensure_counted(actions, version)
        return actions

    feature = Feature(
        name=name,
        reader=False,
        spec=spec,
        requires=("columnMapping",),
        is_used=is_used,
        on_change=on_change,
        on_write=on_write,
        on_commit=on_commit,
    )
    return feature


def _ensure_partitioned_alike(metadata: Metadata, before: TableConfig | None, version: int) -> None:
    """ "Block replacing partitioned tables with a differently-named partition spec" """
    if before is None or not before.partition_columns:
        return
    if tuple(metadata.partition_columns) != before.partition_columns:
        names = ", ".join(metadata.partition_columns) or "nothing"
        raise refused(
            version,
            f"a table that is partitioned by {', '.join(before.partition_columns)} cannot become one that is "
            f"partitioned by {names}",
            "keep the names of the partition columns, or write another table",
        )


def ensure_mapped(config: TableConfig, version: int) -> None:
    """ "Require that Column Mapping be enabled and set to either `name` or `id` mode" """
    if config.mapping_mode == "none":
        raise refused(version, "its columns are not mapped", f"set {MODE} to name first")


def ensure_types(config: TableConfig, version: int, is_allowed: Callable[[DataType], bool]) -> None:
    """Refuses columns, at any depth, of types that the other format does not have."""
    for path, data_type in types_within(config.schema):
        if not is_allowed(data_type):
            raise refused(
                version, f"the type of {'.'.join(path)!r} is {data_type}", "leave the column out", ".".join(path)
            )


def types_within(data_type: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Every type at any depth with its path, parents first."""
    if path:
        yield path, data_type
    if isinstance(data_type, Struct):
        for f in data_type.fields:
            yield from types_within(f.type, (*path, f.name))
    elif isinstance(data_type, t.Array):
        yield from types_within(data_type.element, (*path, "element"))
    elif isinstance(data_type, t.Map):
        yield from types_within(data_type.key, (*path, "key"))
        yield from types_within(data_type.value, (*path, "value"))


def ensure_type_changes(config: TableConfig, version: int) -> None:
    """ "require that all type changes applied on the table are supported by Iceberg V2" """
    for path, f in fields_within(config.schema):
        changes = f.metadata.get(TYPE_CHANGES)
        for change in changes if isinstance(changes, list) else ():
            if not isinstance(change, dict):
                continue
            source, target = (parse_type(change.get(key), ".".join(path)) for key in ("fromType", "toType"))
            if not _is_iceberg_widening(source, target):
                raise refused(
                    version,
                    f"the type of {'.'.join(path)!r} was changed from {source} to {target}, which Iceberg does not do",
                    "rewrite the table without the history of the type",
                    ".".join(path),
                )


def _is_iceberg_widening(source: DataType, target: DataType) -> bool:
    """All but "`Byte`, `Short` or `Int` -> `Double`", "`Date`  -> `Timestamp without timezone`", "Decimal scale
    increase", "`Byte`, `Short`, `Int` or `Long` -> `Decimal`".
    """
    if isinstance(target, Decimal):
        return isinstance(source, Decimal) and source.scale == target.scale
    return not (source in t.INTEGRAL and target == t.DOUBLE) and source != t.DATE


def ensure_counted(actions: Actions, version: int) -> None:
    """ "Require that all new `AddFile`s committed to the table have the `numRecords` statistic populated" """
    added = actions.added
    if added.num_rows == 0:
        return
    counts = AddStatistics(added, Struct(()), ()).num_rows()
    counts = counts.combine_chunks() if isinstance(counts, pa.ChunkedArray) else counts
    if counts.null_count:
        path = added.column("path").filter(pc.is_null(counts))[0].as_py()
        raise refused(version, f"the file {path} does not say how many rows it has", "write its statistics")


def refused(version: int, problem: str, hint: str, column: str | None = None) -> InvalidRequest:
    """What the caller is told."""
    return InvalidRequest(
        f"the table is to be compatible with Iceberg (V{version}), but {problem}",
        code=CODE,
        column=column,
        hint=f"{hint}; or set {enabling_property(version)} to false",
    )
