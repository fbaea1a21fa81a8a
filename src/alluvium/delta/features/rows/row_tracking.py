"""rowTracking: each row's identity and last change, across versions.

Specification: "Row Tracking". The two values are metadata columns: outside of the table's schema, made only where they
are asked for by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.feature import Feature, ScanContext
from alluvium.delta.features.rows.row_ids import (
    ENABLED,
    FEATURE_NAME,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    assign,
    is_enabled,
    is_true,
    name_columns,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.scan import (
    Coalesce,
    ColumnValue,
    FileConstant,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
    Sum,
)
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.paths import decode_uri_paths

#: "Row IDs, which uniquely identify a row across multiple versions of a table"
ROW_ID = "_row_id"
#: "the last commit version in which the row (with the same ID) was either inserted or updated"
ROW_COMMIT_VERSION = "_row_commit_version"
METADATA_COLUMNS = (ROW_ID, ROW_COMMIT_VERSION)

_DEFAULTS = {ROW_ID: "baseRowId", ROW_COMMIT_VERSION: "defaultRowCommitVersion"}


def is_requested(config: TableConfig) -> bool:
    """Whether the property asks for the feature."""
    return is_true(config.metadata.configuration, ENABLED)


def asked_columns(names: Sequence[str], schema: Struct) -> tuple[str, ...]:
    """Which of some names mean a metadata column of row tracking: not those of columns of the table."""
    own = {f.name.lower() for f in schema.fields}
    folded = {name.lower() for name in names} - own
    return tuple(name for name in METADATA_COLUMNS if name in folded)


def ensure_enabled(config: TableConfig, column: str = ROW_ID) -> None:
    """Refuses tables whose rows have no lasting identity.

    Raises:
        InvalidRequest: `"row-tracking-disabled"`.
    """
    if not is_enabled(config):
        raise InvalidRequest(
            f"the table has no row tracking, so there is no {column!r}",
            code="row-tracking-disabled",
            column=column,
            hint="delta.enableRowTracking must be true in the version that is read",
        )


def with_metadata_columns(config: TableConfig) -> Struct:
    """The table's columns and the metadata columns that may be named beside them."""
    if not is_enabled(config):
        return config.schema
    names = asked_columns(METADATA_COLUMNS, config.schema)
    return Struct((*config.schema.fields, *(Field(name, LONG, False) for name in names)))


def on_scan(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """Adds the metadata columns that are asked for to the parts' output.

    Raises:
        InvalidRequest: Row tracking is not enabled, so that rows have no lasting identity.
        CorruptTable: A file lacks what its rows' identity is computed from.
    """
    if not context.metadata_columns:
        return plan
    ensure_enabled(context.config, context.metadata_columns[0])
    return replace(plan, parts=tuple(_extended(part, context) for part in plan.parts))


def _extended(part: ScanPart, context: ScanContext) -> ScanPart:
    files, read_schema = part.files, part.read_schema
    output = list(part.output)
    # A pass before this one may have split or sorted the files: they are found again by their path.
    rows = pc.index_in(files.column("path"), value_set=decode_uri_paths(context.files.column("path")).combine_chunks())
    for name in context.metadata_columns:
        default, physical = _DEFAULTS[name], _materialized(name, context.config)
        files = _with_constant(files, default, context.files.column(default).take(rows))
        output.append(OutputColumn(name, LONG, False, _value(name, physical, context.config)))
        if physical is not None and read_schema.find(physical) is None:
            read_schema = Struct((*read_schema.fields, Field(physical, LONG)))
    return replace(part, files=files, read_schema=read_schema, output=tuple(output))


def _materialized(name: str, config: TableConfig) -> str | None:
    key = MATERIALIZED_ROW_ID if name == ROW_ID else MATERIALIZED_ROW_COMMIT_VERSION
    return config.metadata.configuration.get(key)


def _value(name: str, physical: str | None, config: TableConfig) -> ColumnValue:
    default: ColumnValue = FileConstant(_DEFAULTS[name], LONG)
    if name == ROW_ID:
        # "readers must add the index of the row in the file to the `baseRowId` of the `add` or `remove` action"
        default = Sum((default, RowPosition()))
    # "Readers must use the materialized Row ID if the column [...] is present in the data file and the column contains
    # a non `null` value for a row. Otherwise, readers must use the default generated Row ID"
    return default if physical is None else Coalesce((Physical((physical,), LONG), default))


def _with_constant(files: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    """ "all files that are part of the table version that sets the table property `delta.enableRowTracking` to `true`
    must have `baseRowId` set."
    """
    if values.null_count:
        path = files.column("path").filter(values.is_null())[0].as_py()
        raise CorruptTable(f"a file of a table with row tracking has no {name}", code="no-row-ids", path=path)
    index = files.schema.get_field_index("constants")
    constants = pa.concat_arrays(files.column(index).chunks) if files.num_rows else files.column(index).combine_chunks()
    members = [*constants.flatten(), pa.array(values.combine_chunks(), pa.int64())]
    fields = [*constants.type, pa.field(name, pa.int64())]
    return files.set_column(index, "constants", pa.StructArray.from_arrays(members, fields=fields))


FEATURE = Feature(
    name=FEATURE_NAME,
    reader=False,
    spec="Row Tracking",
    is_used=is_enabled,
    is_requested=is_requested,
    requires=("domainMetadata",),
    on_support=name_columns,
    on_scan=on_scan,
    on_commit=assign,
)
