"""Arrow data of any origin as columns of a table: by name, of the table's types, each value as it is or refused.

A column goes into one of another type where every value has a place there: into a wider number, or an integer of any
width if no value is beyond it. Texts, numbers and times never become each other, nor do times with and without a zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import from_arrow, to_arrow
from alluvium.schema.diff import schema_diff
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct
from alluvium.schema.walk import holds

#: From the values that come to those of the column.
Fit: TypeAlias = Callable[[pa.Array], pa.Array]
#: Digits of any integer of 64 bits, with a sign or without.
_ANY_INTEGER = pa.decimal128(20, 0)


@dataclass(frozen=True, slots=True)
class Fitted:
    """How a column comes to its values.

    Attributes:
        place: Of the data's column; None: there is none, so that all values are null.
        fit: From one to the other.
    """

    place: int | None
    fit: Fit

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        """The values."""
        return self.fit(pa.nulls(rows.num_rows) if self.place is None else rows.column(self.place))


class _Misfit(Exception):
    def __init__(self, column: str, problem: str) -> None:
        super().__init__(problem)
        self.column = column


def fit_columns(data: pa.Schema, table: Struct) -> Mapping[str, Fitted]:
    """How each column of a table comes from data; those that are missing become null.

    Args:
        data: Columns that come; names count without regard to case, as in Spark.
        table: Columns of the table.

    Raises:
        InvalidRequest: `"schema-mismatch"`: an unknown or doubled column, or a type that may not go into the table's.
        UnsupportedFeature: A type that no table has.
    """
    try:
        members = _members([(f.name, f.type) for f in data], table, ())
    except _Misfit as misfit:
        shown = Struct(tuple(Field(f.name, from_arrow(f.type, f.name), f.nullable) for f in data))
        raise InvalidRequest(
            f"the data does not fit the table: {misfit}\n{schema_diff(table, shown)}",
            code="schema-mismatch",
            column=misfit.column,
            hint="cast, rename or drop columns before",
        ) from None
    return {f.name: Fitted(place, fit) for f, (place, fit) in zip(table.fields, members, strict=True)}


def fit_values(values: pa.Array, target: Field) -> pa.Array:
    """Values as those of a column.

    Raises:
        InvalidRequest: They cannot go there (`"schema-mismatch"`), or one of them does not fit (`"invalid-data"`).
    """
    try:
        return _fit(values.type, target.type, (target.name,))(values)
    except _Misfit as misfit:
        raise InvalidRequest(
            f"the values do not fit the table: {misfit}",
            code="schema-mismatch",
            column=misfit.column,
            hint="cast, rename or drop columns before",
        ) from None


def _members(
    given: list[tuple[str, pa.DataType]], target: Struct, path: tuple[str, ...]
) -> list[tuple[int | None, Fit]]:
    """For each field of a struct where it comes from."""
    places: dict[str, int] = {}
    for place, (name, _) in enumerate(given):
        shown = ".".join((*path, name))
        found = target.find(name)
        if found is None:
            raise _Misfit(shown, f"it has no column {shown!r}")
        if found.name in places:
            raise _Misfit(shown, f"{shown!r} comes twice")
        places[found.name] = place
    members: list[tuple[int | None, Fit]] = []
    for f in target.fields:
        at = places.get(f.name)
        members.append((at, _fit(pa.null() if at is None else given[at][1], f.type, (*path, f.name))))
    return members


def _fit(source: pa.DataType, target: DataType, path: tuple[str, ...]) -> Fit:
    if pa.types.is_dictionary(source):
        inner = _fit(source.value_type, target, path)
        return lambda values: inner(values.dictionary_decode())
    if pa.types.is_null(source):
        wanted = to_arrow(target)
        return lambda values: pa.nulls(len(values), wanted)
    if holds(target, t.VARIANT):
        raise UnsupportedFeature(
            "variants cannot be written without Spark", code="unsupported-type", column=".".join(path)
        )
    if isinstance(target, Struct) and pa.types.is_struct(source):
        return _fit_struct(source, target, path)
    if isinstance(target, Array) and _is_list(source):
        return _fit_list(source, target, path)
    if isinstance(target, Map) and pa.types.is_map(source):
        return _fit_map(source, target, path)
    _ensure_goes(from_arrow(source, ".".join(path)), target, path)
    return lambda values: _cast(values, target, path)


def _is_list(source: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, _is_view)
    return any(test(source) for test in tests)


def _is_view(source: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(source) or pa.types.is_large_list_view(source))


def _fit_struct(source: pa.StructType, target: Struct, path: tuple[str, ...]) -> Fit:
    members = _members([(f.name, f.type) for f in source], target, path)
    fields = list(to_arrow(target))

    def fit(values: pa.Array) -> pa.Array:
        # flatten() carries the parent's nulls into the members, and honours slices.
        given = values.flatten()
        made = [each(pa.nulls(len(values)) if place is None else given[place]) for place, each in members]
        return pa.StructArray.from_arrays(made, fields=fields, mask=values.is_null())

    return fit


def _fit_list(source: pa.DataType, target: Array, path: tuple[str, ...]) -> Fit:
    plain, inner = pa.list_(source.value_type), _fit(source.value_type, target.element, (*path, "element"))
    wanted = to_arrow(target)

    def fit(values: pa.Array) -> pa.Array:
        # pyarrow (26.0) casts a view to a list whose last offset is 0: its rows are lost. It is not cast.
        is_kept = values.type == plain or _is_view(values.type)
        own = values if is_kept else pc.cast(values, plain)
        # Of these rows alone: what is beside a slice, or behind a null, need not have a place in the table.
        return pa.ListArray.from_arrays(_offsets(own), inner(own.flatten()), type=wanted, mask=own.is_null())

    return fit


def _fit_map(source: pa.MapType, target: Map, path: tuple[str, ...]) -> Fit:
    key = _fit(source.key_type, target.key, (*path, "key"))
    value = _fit(source.item_type, target.value, (*path, "value"))
    entries, wanted = pa.list_(pa.struct([source.key_field, source.item_field])), to_arrow(target)

    def fit(values: pa.Array) -> pa.Array:
        # A map is a list of its entries, which Arrow flattens of lists alone.
        own = pc.cast(values, entries)
        keys, items = own.flatten().flatten()
        return pa.MapArray.from_arrays(_offsets(own), key(keys), value(items), type=wanted, mask=own.is_null())

    return fit


def _offsets(values: pa.Array) -> pa.Array:
    """Where lists begin and end in what is flattened of them."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _ensure_goes(source: DataType, target: DataType, path: tuple[str, ...]) -> None:
    is_integer = source in t.INTEGRAL or source == Decimal(20, 0)
    if source == target or (source, target) == (t.FLOAT, t.DOUBLE):
        return
    if is_integer and (target in t.INTEGRAL or isinstance(target, Decimal)):
        return
    if isinstance(source, Decimal) and isinstance(target, Decimal):
        return
    hint = ""
    if {source, target} == {t.TIMESTAMP, t.TIMESTAMP_NTZ}:
        hint = ": give the times a zone, or take it away"
    elif source in t.FLOATING and target in t.INTEGRAL:
        hint = ": pandas makes such columns of integers with nulls; say astype('Int64')"
    raise _Misfit(".".join(path), f"column {'.'.join(path)!r} is {source}, the table's {target}{hint}")


def _cast(values: pa.Array, target: DataType, path: tuple[str, ...]) -> pa.Array:
    wanted = to_arrow(target)
    if values.type == wanted:
        return values
    try:
        if pa.types.is_integer(values.type) and pa.types.is_decimal(wanted):
            # Arrow asks for room for every integer of the type before it looks at the values.
            values = pc.cast(values, _ANY_INTEGER)
        return pc.cast(values, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            f"a value cannot be stored as {target}: {error}",
            code="invalid-data",
            column=".".join(path),
            hint="nothing was written; round, cut or correct the values before",
        ) from error
