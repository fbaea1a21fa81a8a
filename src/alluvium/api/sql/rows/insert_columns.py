"""Where the columns of an INSERT's query go: by position, by a list of names, by their own, by PARTITION (...)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as s

from alluvium.api.sql.call import Call
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.spark.naming.names import quote, quote_text, sql_type
from alluvium.spark.values.storing import StorePolicy, select_stored


@dataclass(frozen=True)
class InsertColumns:
    """What an INSERT says of columns.

    Attributes:
        listed: Behind the table's name, in brackets.
        by_name: Columns of the query go by their own names.
        static: Values, as text, of partition columns that the query does not give.
        evolves: Whether columns that the table lacks are added to it.
        dynamic: Partition columns that `PARTITION` names without a value.
        left_out: Places of columns of the query that are the word DEFAULT, of columns that the table computes.
    """

    listed: Sequence[str]
    by_name: bool
    static: Mapping[str, str | None]
    evolves: bool
    dynamic: Sequence[str] = ()
    left_out: frozenset[int] = field(default_factory=frozenset)

    def checked(
        self, schema: Struct, partition_columns: Sequence[str], url: str, *, is_exact: bool = False
    ) -> InsertColumns:
        """The same in the table's spelling.

        Args:
            schema: The table's.
            partition_columns: Of its columns.
            url: The table, for errors.
            is_exact: Whether columns that are listed are called as the table spells them (`spark.sql.caseSensitive`).

        Raises:
            InvalidRequest: A column is unknown, named twice, or no partition column.
        """
        static = {_partition(name, partition_columns, url): value for name, value in self.static.items()}
        dynamic = tuple(_partition(name, partition_columns, url) for name in self.dynamic)
        listed = tuple(_known(name, schema, url, is_exact) for name in self.listed)
        _ensure_once((*listed, *static), url)
        return replace(self, static=static, dynamic=dynamic, listed=listed)

    def wanted(self, schema: Struct) -> list[str]:
        """The columns of the table that columns of the query go to by their places."""
        if self.listed:
            return list(self.listed)
        return [name for name in schema.names if name not in self.static]


def named_rows(rows: DataFrame, columns: InsertColumns, schema: Struct, url: str) -> DataFrame:
    """The rows of a query under the names of the table's columns.

    Raises:
        InvalidRequest: Another number of columns, or a name that is there twice.
    """
    if not columns.by_name:
        rows = _by_place(rows, columns, schema, url)
    _ensure_once((*rows.columns, *columns.static), url)
    if not columns.static:
        return rows
    # Their texts become values as the writer's own casts make them, under any policy of the session.
    values = [f"{static_value(columns, name, schema)} as {quote(name)}" for name in columns.static]
    return select_stored(rows, [*map(quote, rows.columns), *values], StorePolicy.ANSI)


def ensure_known(given: s.StructType, schema: Struct, url: str) -> None:
    """What is inserted by name has names that the table knows, and its structs have all fields that the table's have.

    Raises:
        InvalidRequest: One has not.
    """
    for f in given.fields:
        target = schema.find(f.name)
        if target is None:
            raise InvalidRequest(
                f"BY NAME meets {f.name!r}, and the table has no such column",
                code="schema-mismatch",
                url=url,
                column=f.name,
                hint=suggest(f.name, schema.names) or "INSERT WITH SCHEMA EVOLUTION adds it",
            )
        _ensure_fields(f.dataType, target.type, target.name, url)


def _ensure_fields(given: s.DataType, target: DataType, column: str, url: str) -> None:
    """Columns may be left out, fields of structs may not. Fields that the table lacks are the writer's to refuse."""
    if isinstance(given, s.StructType) and isinstance(target, Struct):
        own = {f.name.lower(): f for f in given.fields}
        missing = [f.name for f in target.fields if f.name.lower() not in own]
        if missing and len(own) < len(target.fields):
            raise InvalidRequest(
                f"not enough fields in {column!r}: the query's struct lacks {', '.join(missing)}",
                code="schema-mismatch",
                url=url,
                column=column,
                hint="give all of them, null for those that are not known",
            )
        for f in target.fields:
            if f.name.lower() in own:
                _ensure_fields(own[f.name.lower()].dataType, f.type, f"{column}.{f.name}", url)
    elif isinstance(given, s.ArrayType) and isinstance(target, Array):
        _ensure_fields(given.elementType, target.element, f"{column}.element", url)
    elif isinstance(given, s.MapType) and isinstance(target, Map):
        _ensure_fields(given.keyType, target.key, f"{column}.key", url)
        _ensure_fields(given.valueType, target.value, f"{column}.value", url)


def _by_place(rows: DataFrame, columns: InsertColumns, schema: Struct, url: str) -> DataFrame:
    wanted, given = columns.wanted(schema), rows.columns
    if len(given) > len(wanted) and columns.evolves and not columns.listed:
        wanted += given[len(wanted) :]
    if len(given) != len(wanted):
        what = "the statement names" if columns.listed else "the table has"
        few = "not enough" if len(given) < len(wanted) else "too many"
        raise InvalidRequest(
            f"{few} columns: {what} {len(wanted)} ({', '.join(wanted)}), the query gives {len(given)}",
            code="schema-mismatch",
            url=url,
            hint="name the columns that are given: INSERT INTO t (a, b) ..., or INSERT INTO t BY NAME ...",
        )
    named = rows.toDF(*(f"__alluvium_{n}" for n in range(len(given))))
    selected = []
    for n, name in enumerate(wanted):
        target = schema.find(name)
        if n not in columns.left_out:
            column = sf.col(f"__alluvium_{n}")
            have = named.schema.fields[n].dataType
            renamed = have if target is None else _renamed(have, target.type, name, url)
            # A cast to fields of other names goes by their places; whether they may be null does not count.
            is_same = renamed.simpleString() == have.simpleString()
            selected.append((column if is_same else column.cast(renamed)).alias(name))
    return named.select(*selected)


def _renamed(given: s.DataType, target: DataType, column: str, url: str) -> s.DataType:
    """The type with the names of the table's fields: fields of structs, too, go by their places, at any depth.

    Raises:
        InvalidRequest: A struct has fewer fields than the table's.
    """
    if isinstance(given, s.StructType) and isinstance(target, Struct):
        if len(given.fields) < len(target.fields):
            raise InvalidRequest(
                f"not enough fields in {column!r}: the table's struct has {len(target.fields)} "
                f"({', '.join(target.names)}), that of the query {len(given.fields)}",
                code="schema-mismatch",
                url=url,
                column=column,
                hint="fields go by their places; INSERT INTO t BY NAME takes them by their names",
            )
        fields = [
            s.StructField(wanted.name, _renamed(f.dataType, wanted.type, f"{column}.{wanted.name}", url))
            for f, wanted in zip(given.fields, target.fields, strict=False)
        ]
        return s.StructType([*fields, *given.fields[len(fields) :]])
    if isinstance(given, s.ArrayType) and isinstance(target, Array):
        return s.ArrayType(_renamed(given.elementType, target.element, f"{column}.element", url))
    if isinstance(given, s.MapType) and isinstance(target, Map):
        key = _renamed(given.keyType, target.key, f"{column}.key", url)
        return s.MapType(key, _renamed(given.valueType, target.value, f"{column}.value", url))
    return given


def static_value(columns: InsertColumns, name: str, schema: Struct) -> str:
    """The value of a partition column, of the column's type, as SQL text."""
    text, found = columns.static[name], schema.find(name)
    assert found is not None, "columns have been checked"
    return f"cast({'null' if text is None else quote_text(text)} as {sql_type(found.type)})"


def static_condition(call: Call, columns: InsertColumns, schema: Struct) -> Column:
    """The rows that are in the partitions that `PARTITION` names."""
    texts = [f"{static_value(columns, name, schema)} as {quote(name)}" for name in columns.static]
    constants = call.constants(select_stored(call.run("select 1"), texts, StorePolicy.ANSI))
    conditions = []
    for (name, text), constant in zip(columns.static.items(), constants, strict=True):
        column = sf.col(quote(name))
        value = Column(call.java.expression_utils.column(constant))
        conditions.append(column.isNull() if text is None else column.eqNullSafe(value))
    return reduce(and_, conditions)


def _partition(name: str, partition_columns: Sequence[str], url: str) -> str:
    found = next((column for column in partition_columns if column.lower() == name.lower()), None)
    if found is None:
        raise InvalidRequest(
            f"PARTITION names {name!r}, which is no partition column",
            code="invalid-partition-column",
            url=url,
            column=name,
            hint=f"the table is partitioned by {', '.join(partition_columns) or 'nothing'}",
        )
    return found


def _known(name: str, schema: Struct, url: str, is_exact: bool) -> str:
    found = schema.find(name)
    if found is None or (is_exact and found.name != name):
        raise InvalidRequest(
            f"the table has no column {name!r}",
            code="unknown-column",
            url=url,
            column=name,
            hint=suggest(name, schema.names),
        )
    return found.name


def _ensure_once(names: Sequence[str], url: str) -> None:
    twice = [name for name, count in Counter(n.lower() for n in names).items() if count > 1]
    if twice:
        raise InvalidRequest(f"the column {twice[0]!r} is given twice", code="assigned-twice", url=url, column=twice[0])
