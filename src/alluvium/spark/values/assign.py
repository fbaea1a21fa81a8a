"""SET lists: which columns, or fields within them, get which values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import suggest
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import DataType, Struct
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.naming.names import sql_type
from alluvium.spark.naming.text_lengths import within_length
from alluvium.spark.statements.resolve import Qualifier, resolve
from alluvium.spark.values.conversion import value_type
from alluvium.spark.values.fit import NewValue, fit
from alluvium.spark.values.storing import StorePolicy

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignments:
    """New values by the path of the column or field, in the schema's spelling; each of its column's type."""

    values: Mapping[Path, Column]

    @property
    def columns(self) -> frozenset[str]:
        """Columns that are changed, wholly or in part."""
        return frozenset(path[0] for path in self.values)

    def after(self, name: str, data_type: DataType, before: Column) -> Column:
        """The column's value after the assignments."""
        return self._after((name,), data_type, before)

    def _after(self, path: Path, data_type: DataType, before: Column) -> Column:
        if path in self.values:
            return self.values[path]
        if not isinstance(data_type, Struct) or not any(p[: len(path)] == path for p in self.values):
            return before
        # A struct that was null comes to be where one of its fields is set.
        return sf.struct(
            *(self._after((*path, f.name), f.type, before.getField(f.name)).alias(f.name) for f in data_type.fields)
        )


def assignments(
    given: Mapping[str, Column | str],
    schema: Struct,
    rows: DataFrame,
    name: Qualifier,
    what: str,
    policy: StorePolicy,
    defaults: Mapping[str, Column] | None = None,
    fills: bool = True,
    is_update: bool = False,
) -> Assignments:
    """Resolves a SET list against the rows that its values may name.

    Args:
        given: Column, or dotted field, to its value.
        schema: The table's columns.
        rows: Whose columns values may name.
        name: Of the table, which may stand before a column.
        what: For errors: `"UPDATE"`.
        policy: What becomes of values that do not fit their column.
        defaults: What the word `default` stands for, by column; null for others.
        fills: See `fit`.
        is_update: Whether texts are trimmed and padded (`within_length`), as in an UPDATE; a MERGE does neither.

    Raises:
        InvalidRequest: `"unknown-column"`; `"assigned-twice"`; `"invalid-expression"`: a value does not resolve;
            `"schema-mismatch"`.
    """
    found: dict[Path, NewValue] = {}
    for each in targets(given, schema, name, what, is_exact=bool(given) and is_case_sensitive(rows.sparkSession)):
        value, shown = each.value, f"the value of {each.said!r} in {what}"
        if is_default(value, schema):
            value = default_of(each.path, defaults or {})
        resolved = resolve(rows, value, shown, subqueries=True)
        source = value_type(resolved.type, shown)
        found[each.path] = NewValue(".".join(each.path), resolved.column, source, each.type)
    fitted = fit(rows, list(found.values()), policy, fills=fills)
    values = dict(zip(found, fitted, strict=True))
    return Assignments({path: fitted_text(v, path, schema) for path, v in values.items()} if is_update else values)


@dataclass(frozen=True, slots=True)
class Target:
    """What a SET list sets.

    Attributes:
        path: The column or field, in the schema's spelling.
        type: Its type.
        said: As the list calls it.
        value: What it gets.
    """

    path: Path
    type: DataType
    said: str
    value: Column | str


def targets(
    given: Mapping[str, Column | str], schema: Struct, name: Qualifier, what: str, *, is_exact: bool = False
) -> Iterator[Target]:
    """The columns and fields that a SET list sets, each once.

    Args:
        given: Column, or dotted field, to its value.
        schema: The table's columns.
        name: Of the table, which may stand before a column.
        what: For errors: `"UPDATE"`.
        is_exact: Whether names go by case.

    Raises:
        InvalidRequest: `"unknown-column"`; `"assigned-twice"`.
    """
    found: list[Path] = []
    for said, value in given.items():
        path, wanted = _find(said, schema, name, is_exact=is_exact)
        clash = next((p for p in found if p[: len(path)] == path or path[: len(p)] == p), None)
        if clash is not None:
            raise Unresolvable(
                f"{what} sets {'.'.join(path)!r} twice" + ("" if clash == path else f", by {'.'.join(clash)!r}, too"),
                code="assigned-twice",
                column=".".join(path),
            )
        found.append(path)
        yield Target(path, wanted, said, value)


def default_of(path: Path, defaults: Mapping[str, Column]) -> Column:
    """What the word `default` stands for."""
    return defaults.get(path[0], sf.lit(None)) if len(path) == 1 else sf.lit(None)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether names of columns go by case in a session."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def is_default(value: Column | str, schema: Struct) -> bool:
    """Whether a value is the word `default`, and no column's name."""
    return isinstance(value, str) and value.strip().lower() == "default" and schema.find("default") is None


def fitted_text(value: Column, path: Path, schema: Struct) -> Column:
    """A new value of a column, as an UPDATE makes it (`within_length`)."""
    column = schema.find(path[0]) if len(path) == 1 else None
    return value if column is None else within_length(value, column)


def assigned_columns(names: Iterable[str], schema: Struct, table: Qualifier) -> frozenset[str]:
    """The columns that a SET list sets, wholly or in part.

    Raises:
        InvalidRequest: `"unknown-column"`.
    """
    return frozenset(_find(name, schema, table)[0][0] for name in names)


def without_table(path: Path, table: Qualifier) -> Path:
    """The path of a column behind as much of its table's name as stands before it."""
    folded = tuple(part.lower() for part in path)
    for start in range(len(table)):
        given = tuple(part.lower() for part in table[start:])
        if len(path) > len(given) and folded[: len(given)] == given:
            return path[len(given) :]
    return path


def _find(name: str, schema: Struct, table: Qualifier, *, is_exact: bool = False) -> tuple[Path, DataType]:
    path = parse_column_path(name)
    bare = without_table(path, table)
    # A table may be called like one of its columns: as Spark does, the table's name is looked for first.
    if schema.find_path(bare) is not None or schema.find(path[0]) is None:
        path = bare
    here: DataType = schema
    exact: list[str] = []
    for part in path:
        fields = here.fields if isinstance(here, Struct) else ()
        found = next((f for f in fields if f.name.lower() == part.lower()), None)
        if found is None or (is_exact and found.name != part):
            where = f"no such field in {'.'.join(exact)!r}:" if exact else "the table has no column"
            raise Unresolvable(
                f"{where} {name!r}",
                code="unknown-column",
                column=name,
                hint=suggest(part, (f.name for f in fields)),
            )
        exact.append(found.name)
        here = found.type
    return tuple(exact), here


class Nulls:
    """Null, of columns' types: each made once, for PySpark asks the JVM a dozen times for a column that it makes."""

    def __init__(self) -> None:
        self._made: dict[str, Column] = {}

    def of(self, data_type: DataType) -> Column:
        """Null, of a type."""
        text = sql_type(data_type)
        if text not in self._made:
            self._made[text] = sf.lit(None).cast(text)
        return self._made[text]
