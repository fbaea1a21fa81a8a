"""Rows as a verb makes them: the values that are set, and which columns the table computes itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows_here.names import Names
from alluvium.delta.features.columns.generated_columns import generation_expressions
from alluvium.delta.features.columns.identity_columns import ensure_not_set, identities
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.not_null import quote
from alluvium.expr.tree import Expression
from alluvium.portable.writing.fit import fit_values
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.text_lengths import char_lengths, declared_type, pad_texts, text_limit
from alluvium.schema.types import Field, Struct

#: What a SET list calls the table's own default.
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Values:
    """What columns become.

    Attributes:
        schema: Of the table.
        set: New values by column.
        time_zone: In which they are computed.
    """

    schema: Struct
    set: Mapping[str, Expression]
    time_zone: str

    def update(self, rows: pa.Table, named: pa.Table) -> pa.Table:
        """The rows afterwards, without the generated columns that are not set: these are computed anew.

        Args:
            rows: As they are; all columns of the table.
            named: The same, as expressions name them.
        """
        made = self._made(named)
        anew = generation_expressions(self.schema).keys() - made.keys()
        names = [name for name in self.schema.names if name not in anew]
        return pa.table({name: made[name] if name in made else rows[name] for name in names})

    def insert(self, named: pa.Table) -> pa.Table:
        """The rows that come: of the columns that are set."""
        made = self._made(named)
        # Of no column Arrow would not know how many rows there are.
        return pa.table(made) if made else named.select([])

    def _made(self, named: pa.Table) -> dict[str, pa.Array]:
        made = {}
        for name, expression in self.set.items():
            found = self.schema.find(name)
            assert found is not None, "only the table's columns are set"
            made[name] = _fitted(evaluate(expression, named, self.time_zone), found)
        return made


def _fitted(values: pa.Array, f: Field) -> pa.Array:
    """As Spark's own UPDATE makes texts of limited length: blanks that are too many go, char(n) is padded."""
    declared = declared_type(f)
    limit = None if declared is None else text_limit(declared)
    if limit is None:
        return fit_values(values, f)
    length = limit[1]
    surplus = pc.utf8_slice_codeunits(values, start=length)
    is_blank = pc.equal(pc.utf8_trim(surplus, characters=" "), "")
    cut = pc.if_else(is_blank, pc.utf8_slice_codeunits(values, start=0, stop=length), values)
    return pad_texts(cut, length) if char_lengths(f) else cut


def assigned(
    given: Mapping[str, str], schema: Struct, names: Names, table: str, *, is_insert: bool = False
) -> dict[str, Expression]:
    """A SET list, understood.

    Args:
        given: Column, perhaps behind the table's name, to its value as SQL.
        schema: Of the table.
        names: What values may name.
        table: The table's name.
        is_insert: Whether rows come: then numbers of identity columns may be given where the table allows it.

    Raises:
        InvalidRequest: Unknown columns, columns that are set twice, or that only the table makes.
        UnsupportedFeature: Values that only Spark computes, or single fields of structs.
    """
    found: dict[str, Expression] = {}
    for text, value in given.items():
        f = _column(text, schema, table)
        if f.name in found:
            raise InvalidRequest(f"{f.name!r} is set twice", code="duplicate-column", column=f.name)
        if value.strip().lower() == _DEFAULT and schema.find(_DEFAULT) is None:
            raise UnsupportedFeature(
                "a column is set to its default by Spark alone", code="needs-spark", column=f.name,
                hint="write the value, or leave the column out of an INSERT",
            )  # fmt: skip
        found[f.name] = names.value(value, f.type, f.name)
    ensure_not_set(schema, found, is_insert=is_insert)
    return found


def _column(text: str, schema: Struct, table: str) -> Field:
    path = parse_column_path(text)
    if len(path) > 1 and path[0].lower() == table.lower():
        path = path[1:]
    found = schema.find(path[0])
    if found is None:
        raise InvalidRequest(
            f"unknown column {text!r}", code="unknown-column", column=text, hint=suggest(path[0], schema.names)
        )
    if len(path) > 1:
        raise UnsupportedFeature(
            f"a single field, {text!r}, is set by Spark alone",
            code="needs-spark",
            column=text,
            hint="set the column as a whole, or use DeltaTable.forPath(spark, path)",
        )
    return found


def all_columns(schema: Struct, source: Struct, name: str) -> dict[str, str]:
    """What a star sets: every column of the table, from the source's column of the same name.

    Raises:
        InvalidRequest: The source lacks one (`"unknown-column"`).
    """
    made: Sequence[str] = [*generation_expressions(schema), *(i.column for i in identities(schema))]
    found = {}
    for f in schema.fields:
        own = source.find(f.name)
        if own is None and f.name in made:
            continue
        if own is None:
            raise InvalidRequest(
                f"the source lacks the column {f.name!r}, which the star takes",
                code="unknown-column",
                column=f.name,
                hint="name the columns to set",
            )
        found[quote((f.name,))] = quote((name, own.name))
    return found
