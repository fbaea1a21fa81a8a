"""Values into the types of a table's columns: structs by the names of their fields, everything else by a cast."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.spark.scan.names import plain, sql_type


def fit(
    value: Column, source: DataType, target: DataType, column: str, by_name: bool = True, fills: bool = True
) -> Column:
    """The value as one of the target's type, with the session's rules for casts.

    Args:
        value: The value.
        source: Its type.
        target: The type wanted.
        column: For errors.
        by_name: Whether fields of structs go by their names; otherwise by their places, as in Spark's own casts.
        fills: Whether fields that a struct lacks are null; otherwise it is refused.

    Raises:
        InvalidRequest: `"schema-mismatch"`: a struct has a field that the column has not, or lacks one.
    """
    if plain(source) == plain(target):
        return value
    if not by_name:
        return value.cast(sql_type(target))
    if isinstance(source, Struct) and isinstance(target, Struct):
        return _fit_struct(value, source, target, column, fills)
    if isinstance(source, Array) and isinstance(target, Array):
        element, wanted = source.element, target.element
        return sf.transform(value, lambda item: fit(item, element, wanted, f"{column}.element", fills=fills))
    if isinstance(source, Map) and isinstance(target, Map) and plain(source.key) == plain(target.key):
        before, after = source.value, target.value
        return sf.transform_values(value, lambda _, item: fit(item, before, after, f"{column}.value", fills=fills))
    return value.cast(sql_type(target))


def _fit_struct(value: Column, source: Struct, target: Struct, column: str, fills: bool) -> Column:
    known = {f.name.casefold() for f in target.fields}
    for f in source.fields:
        if f.name.casefold() not in known:
            raise InvalidRequest(
                f"the column {column!r} has no field {f.name!r}",
                code="schema-mismatch",
                column=f"{column}.{f.name}",
                hint=suggest(f.name, target.names),
            )
    by_name = {f.name.casefold(): f for f in source.fields}
    members = []
    for f in target.fields:
        found = by_name.get(f.name.casefold())
        if found is None and not fills:
            raise InvalidRequest(
                f"the value for {column!r} lacks the field {f.name!r}",
                code="schema-mismatch",
                column=f"{column}.{f.name}",
                hint="give all fields, or let the schema evolve: then those that are not given keep their values",
            )
        member = sf.lit(None).cast(sql_type(f.type))
        if found is not None:
            member = fit(value.getField(found.name), found.type, f.type, f"{column}.{f.name}", fills=fills)
        members.append(member.alias(f.name))
    return sf.when(value.isNotNull(), sf.struct(*members))
