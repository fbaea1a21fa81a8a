"""columnMapping: columns are found in files, partition values and statistics by a name or number of their own.

Specification: "Column Mapping". What the schema says of it is parsed in `delta.terms.mapping`; partition values and
statistics are looked up by physical name where they are decoded.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa

from alluvium.delta.features.feature import Feature, ScanContext
from alluvium.delta.terms.column_ids import map_columns, stored_schema
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import FEATURE_NAME, MODE
from alluvium.plan.scan import FIELD_ID, LABEL, FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.plan.write import WritePlan
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import drop_metadata, fields_within

#: Of no meaning to anybody but the table: a column that is written elsewhere is another column.
_PREFIX = "delta.columnMapping."
#: What writers make up for new columns, "a globally unique identifier".
_GENERATED = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_used(config: TableConfig) -> bool:
    """ "The column mapping is governed by the table property `delta.columnMapping.mode`" """
    return config.metadata.configuration.get(MODE, "none").lower() != "none"


def on_scan(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """Makes a plan over logical names one over the names that the files have.

    "In `name` mode, readers must resolve columns in the data files by their physical names [...]. For columns that are
    not found in the files, `null`s need to be returned." "In `id ` mode, readers must resolve columns by using the
    `field_id` in the parquet metadata for each file": the physical schema carries the ids.
    """
    config = context.config
    if config.mapping_mode == "none":
        return plan
    scanned = _as_scanned(config.physical_schema, by_id=config.mapping_mode == "id")
    physical = dict(zip(config.schema.names, scanned.fields, strict=True))
    return replace(
        plan,
        parts=tuple(_map_part(part, physical) for part in plan.parts),
        schema=drop_metadata(plan.schema, lambda key: key.startswith(_PREFIX)),
    )


def on_write(plan: WritePlan, config: TableConfig) -> WritePlan:
    """Files get the columns under their own names and numbers, and so do their statistics.

    "Track partition values, column level statistics, and clustering column names with the physical name of the column
    in the transaction log."
    """
    if config.mapping_mode == "none":
        return plan
    paths = config.physical_paths
    leaves = tuple(replace(leaf, path=paths.get(leaf.path, leaf.path)) for leaf in plan.stats_columns)
    return replace(plan, stored=stored_schema(config.schema), stats_columns=leaves)


def _as_scanned(physical: Struct, by_id: bool) -> Struct:
    """The fields under names that no other column of any file has, where they are found by id.

    In tables that were converted, or whose columns swapped names, a physical name may be that of another column in
    older files: an engine that goes by name somewhere, as in filters that it pushes down, would lose rows to it.
    """
    if not by_id or all(_GENERATED.fullmatch(f.name) for _, f in fields_within(physical)):
        return physical
    return Struct(tuple(_labelled(f) for f in physical.fields))


def _labelled(f: Field) -> Field:
    name = f"{f.name}#{f.metadata[FIELD_ID]}"
    return replace(f, name=name, type=_labelled_type(f.type), metadata={**f.metadata, LABEL: True})


def _labelled_type(data_type: DataType) -> DataType:
    if isinstance(data_type, Struct):
        return Struct(tuple(_labelled(f) for f in data_type.fields))
    if isinstance(data_type, Array):
        return replace(data_type, element=_labelled_type(data_type.element))
    if isinstance(data_type, Map):
        return replace(data_type, key=_labelled_type(data_type.key), value=_labelled_type(data_type.value))
    return data_type


def _map_part(part: ScanPart, physical: dict[str, Field]) -> ScanPart:
    names = {name: f.name for name, f in physical.items()}
    return replace(
        part,
        files=_rename_constants(part.files, names),
        read_schema=Struct(tuple(physical.get(f.name, f) for f in part.read_schema.fields)),
        output=tuple(_map_column(column, physical) for column in part.output),
    )


def _map_column(column: OutputColumn, physical: dict[str, Field]) -> OutputColumn:
    value, found = column.value, physical.get(column.name)
    if found is None:
        return column
    if isinstance(value, FileConstant):
        value = FileConstant(found.name, value.type)
    elif isinstance(value, Physical):
        value = Physical((found.name,), found.type)
    return replace(column, value=value)


def _rename_constants(files: pa.Table, names: dict[str, str]) -> pa.Table:
    # Under physical names, for a logical one may be the physical name of another column.
    index = files.schema.get_field_index("constants")
    members = list(files.schema.field(index).type)
    renamed = pa.struct([f.with_name(names.get(f.name, f.name)) for f in members])
    constants = files.column(index).combine_chunks()
    if not members:
        return files
    array = pa.StructArray.from_arrays(constants.flatten(), fields=list(renamed))
    return files.set_column(index, pa.field("constants", renamed), array)


FEATURE = Feature(
    name=FEATURE_NAME,
    reader=True,
    spec="Column Mapping",
    legacy_reader=2,
    legacy_writer=5,
    is_used=is_used,
    on_change=map_columns,
    on_scan=on_scan,
    on_write=on_write,
)
