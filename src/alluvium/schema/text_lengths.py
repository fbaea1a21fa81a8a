"""Texts of a declared length: columns of type char(n) and varchar(n), and such members of them.

Spark stores them as strings, and keeps the type that was declared in the metadata of the column at the top level.
Readers pad the texts of char(n) with blanks to n characters, and what they are compared with (`expr.char_padding`).
Files, statistics and partition values hold what was written, padded or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR, parse_declared_type
from alluvium.schema.types import Array, DataType, Field, JsonValue, Map, Primitive, Struct

#: From the path of a text within a column to its n; `element`, `key` and `value` as in `schema.walk`.
CharLengths: TypeAlias = Mapping[tuple[str, ...], int]

_LIMITED = re.compile(r"(char|varchar)\((\d+)\)")
#: Characters that are surely held by one array of texts.
_PADDED_AT_ONCE = 1 << 28
#: Nobody declares longer texts, and blanks cost memory.
_MAX_LENGTH = 1 << 24
_HAS_CHAR = re.compile(r"\bchar(?:acter)?\s*\(", re.IGNORECASE)
#: Characters that sort before the blank: `a\t` is greater than `a`, but less than `a` and a blank.
_BEFORE_BLANK = r"[\x00-\x1f]"


def declared_type(f: Field) -> DataType | None:
    """The type of a column as it was declared, lengths as primitives such as `char(3)`; None: nothing has a length.

    Raises:
        CorruptTable: What is declared is no type (code `"invalid-text-type"`).
    """
    text = f.metadata.get(CHAR_VARCHAR)
    if text is None:
        return None
    try:
        return parse_declared_type(str(text))
    except InvalidRequest as error:
        raise CorruptTable(
            f"the declared type of the column is none: {str(text)[:200]!r}",
            code="invalid-text-type",
            column=f.name,
            hint=f"the field's metadata {CHAR_VARCHAR} must hold a type such as varchar(10)",
        ) from error


def text_limit(declared: DataType) -> tuple[str, int] | None:
    """`("char", n)` or `("varchar", n)` of a declared type; None of any other."""
    match = _LIMITED.fullmatch(declared.name) if isinstance(declared, Primitive) else None
    return None if match is None else (match[1], int(match[2]))


def char_lengths(f: Field) -> CharLengths:
    """The texts of type char(n) in a column.

    Raises:
        CorruptTable: As of `declared_type`.
        UnsupportedFeature: They are longer than anything (code `"unsupported-type"`).
    """
    if not _HAS_CHAR.search(str(f.metadata.get(CHAR_VARCHAR, ""))):
        return {}
    declared = declared_type(f)
    found = {} if declared is None else dict(_lengths_within(declared, f.type, ()))
    if max(found.values(), default=0) > _MAX_LENGTH:
        raise UnsupportedFeature(
            f"texts padded to {max(found.values())} characters", code="unsupported-type", column=f.name
        )
    return found


def char_paths(schema: Struct) -> CharLengths:
    """The texts of type char(n) in all columns; errors as of `char_lengths`."""
    return {(f.name, *path): length for f in schema.fields for path, length in char_lengths(f).items()}


def char_length(schema: Struct, path: tuple[str, ...]) -> int | None:
    """The n of a column of type char(n), by its path through structs; None of any other column.

    Raises:
        AlluviumError: As of `char_lengths`.
    """
    column = schema.find(path[0])
    return None if column is None else char_lengths(column).get(path[1:])


def _lengths_within(
    declared: DataType, data_type: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int]]:
    if data_type == t.STRING:
        limit = text_limit(declared)
        if limit is not None and limit[0] == "char":
            yield path, limit[1]
    elif isinstance(data_type, Struct) and isinstance(declared, Struct):
        for place, f in enumerate(data_type.fields):
            known = declared.find(f.name) or _renamed(declared, data_type, place)
            if known is not None:
                yield from _lengths_within(known.type, f.type, (*path, f.name))
    elif isinstance(data_type, Array) and isinstance(declared, Array):
        yield from _lengths_within(declared.element, data_type.element, (*path, "element"))
    elif isinstance(data_type, Map) and isinstance(declared, Map):
        yield from _lengths_within(declared.key, data_type.key, (*path, "key"))
        yield from _lengths_within(declared.value, data_type.value, (*path, "value"))


def _renamed(declared: Struct, data_type: Struct, place: int) -> Field | None:
    """What was declared for the member at a place under a name that no member has any more.

    Writers rename members without a word in what was declared.
    """
    known = declared.fields[place] if place < len(declared.fields) else None
    return known if known is not None and data_type.find(known.name) is None else None


def metadata_for(f: Field, data_type: DataType) -> Mapping[str, JsonValue]:
    """A column's metadata for the same column under other names, as those of the members of structs in files.

    An engine builds what it pads anew, member by member, by the names that are declared: they must be those of the
    type, all of them, or members are lost that were added or renamed since.

    Args:
        f: The column.
        data_type: Its type under the other names, members by their places.

    Raises:
        AlluviumError: As of `char_lengths`.
    """
    if not isinstance(data_type, (Struct, Array, Map)) or CHAR_VARCHAR not in f.metadata:
        return f.metadata
    others = {key: value for key, value in f.metadata.items() if key != CHAR_VARCHAR}
    lengths = char_lengths(f)
    return {**others, CHAR_VARCHAR: _declared_text(f.type, data_type, lengths, ())} if lengths else others


def _declared_text(known: DataType, data_type: DataType, lengths: CharLengths, path: tuple[str, ...]) -> str:
    if isinstance(known, Struct) and isinstance(data_type, Struct):
        members = (
            f"`{own.name.replace('`', '``')}`:{_declared_text(f.type, own.type, lengths, (*path, f.name))}"
            for f, own in zip(known.fields, data_type.fields, strict=True)
        )
        return f"struct<{','.join(members)}>"
    if isinstance(known, Array) and isinstance(data_type, Array):
        return f"array<{_declared_text(known.element, data_type.element, lengths, (*path, 'element'))}>"
    if isinstance(known, Map) and isinstance(data_type, Map):
        key = _declared_text(known.key, data_type.key, lengths, (*path, "key"))
        return f"map<{key},{_declared_text(known.value, data_type.value, lengths, (*path, 'value'))}>"
    return f"char({lengths[path]})" if path in lengths else str(data_type)


def declared_struct(schema: Struct) -> str | None:
    """What to declare (`schema.ddl.CHAR_VARCHAR`) of a column whose members are these columns; None: nothing.

    Raises:
        AlluviumError: As of `char_lengths`.
    """
    lengths = char_paths(schema)
    return _declared_text(schema, schema, lengths, ()) if lengths else None


def pad_texts(values: pa.Array, length: int) -> pa.Array:
    """Texts with blanks up to a length in characters (code points); longer ones stay.

    Raises:
        UnsupportedFeature: Together they would take more than 2 GiB (code `"unsupported-type"`).
    """
    step = max(1, _PADDED_AT_ONCE // length)
    try:
        parts = [pc.utf8_rpad(values.slice(i, step), width=length) for i in range(0, len(values), step)]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else values
    except pa.ArrowException:
        raise UnsupportedFeature(
            f"{len(values)} texts of {length} characters each are too many at once",
            code="unsupported-type",
            hint="read the table with Spark, or with a smaller batch_size",
        ) from None


def pad_upper_bounds(values: pa.Array, length: int) -> pa.Array:
    """Bounds that no text of a column is greater than, for the texts after padding; null where there is none.

    Padding makes a text greater, so that lower bounds stay as they are. A text below the bound is padded below the
    padded bound, unless the bound goes on with characters before the blank where the text has ended.
    """
    known = pc.invert(pc.match_substring_regex(values, _BEFORE_BLANK))
    return pc.if_else(known, pad_texts(values, length), pa.scalar(None, values.type))


def pad_column(values: pa.Array, data_type: DataType, lengths: CharLengths) -> pa.Array:
    """A column under the Arrow type of its logical type, its texts of type char(n) padded.

    Args:
        values: The column.
        data_type: Its type.
        lengths: Of `char_lengths`.
    """
    return _padded(values, data_type, lengths, ()) if lengths else values


def _padded(values: pa.Array, data_type: DataType, lengths: CharLengths, path: tuple[str, ...]) -> pa.Array:
    if not any(known[: len(path)] == path for known in lengths):
        return values
    if isinstance(data_type, Struct):
        # flatten() carries the parent's nulls into the members, and honours slices.
        members = [
            _padded(member, f.type, lengths, (*path, f.name))
            for member, f in zip(values.flatten(), data_type.fields, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=list(values.type), mask=values.is_null())
    if not isinstance(data_type, (Array, Map)):
        return pad_texts(values, lengths[path])
    # Arrow cannot rebuild a list with nulls from a slice.
    whole = values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])
    if isinstance(data_type, Array):
        elements = _padded(whole.values, data_type.element, lengths, (*path, "element"))
        return pa.ListArray.from_arrays(whole.offsets, elements, type=to_arrow(data_type), mask=whole.is_null())
    keys = _padded(whole.keys, data_type.key, lengths, (*path, "key"))
    items = _padded(whole.items, data_type.value, lengths, (*path, "value"))
    return pa.MapArray.from_arrays(whole.offsets, keys, items, type=to_arrow(data_type), mask=whole.is_null())
