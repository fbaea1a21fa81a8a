"""The schema of a table after rows of another schema: merged (`mergeSchema`) or taken over (`overwriteSchema`).

Rules are those that the reference implementation was seen to follow, see docs/guides/tables.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from alluvium.delta.description.change_columns import widen
from alluvium.delta.description.create import as_nullable, ensure_columns, resolve_partition_columns
from alluvium.delta.description.implicit_casts import is_cast_implicitly
from alluvium.delta.description.upgrade import configure
from alluvium.delta.features.columns.column_defaults import FEATURE as DEFAULTS
from alluvium.delta.features.columns.column_defaults import without_defaults, without_past
from alluvium.delta.features.feature import is_supported_for_writers
from alluvium.delta.features.types.type_widening import is_widening
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.edit import Path
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import Array, DataType, Field, Map, Struct

#: Integers that files hold alike: the column may become the wider one without a record of the change.
_INT32 = (t.BYTE, t.SHORT, t.INTEGER)


def merged_config(config: TableConfig, data: Struct, *, casts: bool = False) -> TableConfig:
    """The configuration with the data's new columns behind those of the table, at any depth, all of them nullable.

    A column takes a wider type where the table allows type widening. What does not go together is left as the table has
    it, and the rows are refused later; where values are cast, that is refused here, for more can be cast than goes
    together.

    Args:
        config: The table.
        data: Columns of the rows.
        casts: Whether the rows' values are cast to the types of the table's columns, as by MERGE; otherwise small
            integers become wider ones without type widening, too, for files hold them alike.

    Raises:
        InvalidRequest: A new column that no table may have, or a type that needs a feature to be added first; or with
            `casts`: a type that is not cast without a word into that of the table's column (`schema-mismatch`).
        UnsupportedFeature: A type that we do not write.
    """
    schema = _widened(config, _merged_struct(config.schema, _kept_by(config, data)), data, casts)
    if schema == config.schema:
        return config
    ensure_columns(schema, config.metadata.configuration)
    return configure(msgspec.structs.replace(config.metadata, schema_string=format_schema(schema)), config)


def overwritten_config(config: TableConfig, data: Struct, partition_by: Sequence[str]) -> TableConfig:
    """The configuration with the data's columns and partitioning, and the table's properties.

    Raises:
        InvalidRequest: Columns that no table may have, or a type that needs a feature to be added first.
        UnsupportedFeature: A type that we do not write.
    """
    taken = as_nullable(_kept_by(config, data))
    assert isinstance(taken, Struct)
    schema = Struct(tuple(_as_before(config, f) for f in taken.fields))
    ensure_columns(schema, config.metadata.configuration, partition_by)
    partition_columns = resolve_partition_columns(schema, partition_by)
    if schema == config.schema and partition_columns == config.partition_columns:
        return config
    metadata = msgspec.structs.replace(
        config.metadata, schema_string=format_schema(schema), partition_columns=partition_columns
    )
    return configure(metadata, config)


def _kept_by(config: TableConfig, data: Struct) -> Struct:
    """The data's columns with what the table may say of them: rows of a table show what that says."""
    return (without_past if is_supported_for_writers(DEFAULTS, config.protocol) else without_defaults)(data)


def _as_before(config: TableConfig, f: Field) -> Field:
    """A column that stays what it was keeps its identity: files and statistics go by that under column mapping."""
    known = next((k for k in config.schema.fields if k.name == f.name), None)
    if config.mapping_mode == "none" or known is None or _plain(known.type) != _plain(f.type):
        return f
    return replace(known, nullable=True)


def _plain(data_type: DataType) -> DataType:
    """Without metadata and nullability."""
    if isinstance(data_type, Struct):
        return Struct(tuple(Field(f.name, _plain(f.type)) for f in data_type.fields))
    if isinstance(data_type, Array):
        return Array(_plain(data_type.element))
    return Map(_plain(data_type.key), _plain(data_type.value)) if isinstance(data_type, Map) else data_type


def _merged_struct(table: Struct, data: Struct) -> Struct:
    by_name = {f.name.lower(): f for f in data.fields}
    own = {f.name.lower() for f in table.fields}
    merged = []
    for f in table.fields:
        other = by_name.get(f.name.lower())
        merged.append(f if other is None else replace(f, type=_merged(f.type, other.type)))
    fresh = as_nullable(Struct(tuple(f for f in data.fields if f.name.lower() not in own)))
    assert isinstance(fresh, Struct)
    return Struct((*merged, *fresh.fields))


def _merged(table: DataType, data: DataType) -> DataType:
    if isinstance(table, Struct) and isinstance(data, Struct):
        return _merged_struct(table, data)
    if isinstance(table, Array) and isinstance(data, Array):
        return replace(table, element=_merged(table.element, data.element))
    if isinstance(table, Map) and isinstance(data, Map):
        return replace(table, key=_merged(table.key, data.key), value=_merged(table.value, data.value))
    # A column of nulls alone takes the first type that rows bring.
    return as_nullable(data) if table == t.VOID else table


def _widened(config: TableConfig, schema: Struct, data: DataType, casts: bool) -> Struct:
    """The schema with the types widened that the data has wider."""
    allowed = config.metadata.configuration.get("delta.enableTypeWidening", "false").strip().lower() == "true"
    for here, table_type, data_type in _pairs(schema, data, ()):
        if casts:
            _ensure_goes_into(table_type, data_type, ".".join(here))
        if allowed and data_type != table_type and is_widening(table_type, data_type):
            schema = widen(config, schema, here, data_type)
        elif not casts and _is_wider_alike(table_type, data_type):
            schema = _retyped(schema, here, data_type)
    return schema


def _ensure_goes_into(table: DataType, data: DataType, column: str) -> None:
    if _plain(table) != _plain(data) and not is_cast_implicitly(data, table):
        raise InvalidRequest(
            f"column {column!r} is {table} in the table and {data} in the data",
            code="schema-mismatch",
            column=column,
            hint="cast it in the source to the type of the table's column",
        )


def _is_wider_alike(table: DataType, data: DataType) -> bool:
    return table in _INT32 and data in _INT32 and _INT32.index(data) > _INT32.index(table)


def _pairs(table: DataType, data: DataType, path: Path) -> list[tuple[Path, DataType, DataType]]:
    """Leaves that both have: path, the table's type, the data's."""
    if isinstance(table, Struct) and isinstance(data, Struct):
        by_name = {f.name.lower(): f for f in data.fields}
        return [
            pair
            for f in table.fields
            if f.name.lower() in by_name
            for pair in _pairs(f.type, by_name[f.name.lower()].type, (*path, f.name))
        ]
    if isinstance(table, Array) and isinstance(data, Array):
        return _pairs(table.element, data.element, (*path, "element"))
    if isinstance(table, Map) and isinstance(data, Map):
        keys = _pairs(table.key, data.key, (*path, "key"))
        return [*keys, *_pairs(table.value, data.value, (*path, "value"))]
    return [(path, table, data)]


def _retyped(data_type: DataType, path: Path, new: DataType) -> Struct:
    edited = _edit(data_type, path, new)
    assert isinstance(edited, Struct)
    return edited


def _edit(data_type: DataType, path: Path, new: DataType) -> DataType:
    if not path:
        return new
    if isinstance(data_type, Struct):
        return Struct(
            tuple(replace(f, type=_edit(f.type, path[1:], new)) if f.name == path[0] else f for f in data_type.fields)
        )
    if isinstance(data_type, Array):
        return replace(data_type, element=_edit(data_type.element, path[1:], new))
    assert isinstance(data_type, Map)
    if path[0] == "key":
        return replace(data_type, key=_edit(data_type.key, path[1:], new))
    return replace(data_type, value=_edit(data_type.value, path[1:], new))
