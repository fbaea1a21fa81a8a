"""The result's columns over a relation: structs whose members only have other names stay transparent to Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col

from alluvium.plan.scan import FIELD_ID, LABEL, OutputColumn, Physical, ScanPart
from alluvium.schema.types import DataType, Struct
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import Selected, plain, quote, select_list
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark

#: Members of a struct that are renamed one by one; a larger struct is cast as a whole.
_MAX_MEMBERS = 50


def select_columns(frame: DataFrame, part: ScanPart, relation: Struct, schema: Struct) -> DataFrame:
    """The columns of `part.output` under their names and types.

    Args:
        frame: Rows of the relation.
        part: What to make of them.
        relation: The relation's columns.
        schema: The result's schema, for the columns' metadata.
    """
    selected = select_list(part, relation)
    labelled = any(LABEL in f.metadata for f in relation.fields)
    # Spark forgets the numbers of columns in a struct of which it reads a part: there the cast is welcome.
    structs = {c.name: made for c in part.output if not labelled and (made := _renamed_struct(c)) is not None}
    if selected is not None:
        frame = _selected(frame, selected, structs)
    if all(FIELD_ID not in f.metadata for f in relation.fields):
        return frame
    # A copy of a column must not inherit the number that it was found by.
    known = {f.name: f.metadata for f in schema.fields}
    return frame.select(*(col(quote(c.name)).alias(c.name, metadata=dict(known.get(c.name, {}))) for c in part.output))


def _selected(frame: DataFrame, selected: Sequence[Selected], structs: Mapping[str, Column]) -> DataFrame:
    texts = [f"{s.sql} as {quote(s.name)}" for s in selected]
    if structs or any(s.cast_to is not None for s in selected):
        return frame.select(*(structs[s.name] if s.name in structs else _column(s) for s in selected))
    return select_texts(frame, texts)


def _column(selected: Selected) -> Column:
    value = sql_column(selected.sql)
    if selected.cast_to is not None:
        value = value.cast(to_spark(plain(selected.cast_to)))
    return value.alias(selected.name)


def _renamed_struct(column: OutputColumn) -> Column | None:
    """The column member by member; None where SQL does as well.

    A cast of the whole would do, but Spark's optimizer does not look through casts of structs: it would read all
    members, and no filter on one would reach the files.
    """
    value = column.value
    if not isinstance(value, Physical) or len(value.path) != 1 or not isinstance(value.type, Struct):
        return None
    if plain(value.type) == plain(column.type):
        return None
    return _renamed(col(quote(value.path[0])), value.type, column.type).alias(column.name)


def _renamed(value: Column, physical: DataType, logical: DataType) -> Column:
    if plain(physical) == plain(logical):
        return value
    if not isinstance(physical, Struct) or not isinstance(logical, Struct) or not _are_apart(physical, logical):
        return value.cast(to_spark(plain(logical)))
    made = value
    for own, shown in zip(physical.fields, logical.fields, strict=True):
        made = made.withField(quote(shown.name), _renamed(value.getField(own.name), own.type, shown.type))
    return made.dropFields(*(quote(name) for name in physical.names))


def _are_apart(physical: Struct, logical: Struct) -> bool:
    """Whether members can be added under the new names before those under the old ones are dropped."""
    names = {name.lower() for name in logical.names}
    return len(names) <= _MAX_MEMBERS and names.isdisjoint(name.lower() for name in physical.names)
