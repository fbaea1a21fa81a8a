"""SET lists: which columns, or fields within them, get which values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.errors import suggest
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import DataType, Struct
from alluvium.spark.failures import Unresolvable
from alluvium.spark.fit import fit
from alluvium.spark.resolve import ensure_fits, resolve, type_of
from alluvium.spark.scan.names import sql_type
from alluvium.spark.text_lengths import within_length

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
    aliases: Sequence[str],
    what: str,
    defaults: Mapping[str, Column] | None = None,
    by_name: bool = True,
    fills: bool = True,
) -> Assignments:
    """Resolves a SET list against the rows that its values may name.

    Args:
        given: Column, or dotted field, to its value.
        schema: The table's columns.
        rows: Whose columns values may name.
        aliases: Names of the table, which may stand before a column.
        what: For errors: `"UPDATE"`.
        defaults: What the word `default` stands for, by column; null for others.
        by_name: See `fit`. Where it is false, as in an UPDATE, values may have subqueries, and texts are trimmed and
            padded (`within_length`); a MERGE does neither.
        fills: See `fit`.

    Raises:
        InvalidRequest: `"unknown-column"`; `"assigned-twice"`; `"invalid-expression"`: a value does not resolve;
            `"schema-mismatch"`.
    """
    values: dict[Path, Column] = {}
    for name, value in given.items():
        path, wanted = _find(name, schema, aliases)
        clash = next((p for p in values if p[: len(path)] == path or path[: len(p)] == p), None)
        if clash is not None:
            raise Unresolvable(
                f"{what} sets {'.'.join(path)!r} twice" + ("" if clash == path else f", by {'.'.join(clash)!r}, too"),
                code="assigned-twice",
                column=".".join(path),
            )
        shown = f"the value of {name!r} in {what}"
        if isinstance(value, str) and value.strip().casefold() == "default" and schema.find("default") is None:
            value = (defaults or {}).get(path[0], sf.lit(None)) if len(path) == 1 else sf.lit(None)
        found = resolve(rows, value, shown, subqueries=not by_name)
        fitted = fit(found.column, type_of(found, shown), wanted, ".".join(path), by_name, fills)
        if fitted is not found.column:
            ensure_fits(rows, fitted, ".".join(path), wanted)
        column = schema.find(path[0]) if len(path) == 1 and not by_name else None
        values[path] = fitted if column is None else within_length(fitted, column)
    return Assignments(values)


def assigned_columns(names: Iterable[str], schema: Struct, aliases: Sequence[str]) -> frozenset[str]:
    """The columns that a SET list sets, wholly or in part.

    Raises:
        InvalidRequest: `"unknown-column"`.
    """
    return frozenset(_find(name, schema, aliases)[0][0] for name in names)


def _find(name: str, schema: Struct, aliases: Sequence[str]) -> tuple[Path, DataType]:
    path = parse_column_path(name)
    own = {f.name.casefold() for f in schema.fields}
    if len(path) > 1 and path[0].casefold() not in own and path[0].casefold() in {a.casefold() for a in aliases}:
        path = path[1:]
    here: DataType = schema
    exact: list[str] = []
    for part in path:
        fields = here.fields if isinstance(here, Struct) else ()
        found = next((f for f in fields if f.name.casefold() == part.casefold()), None)
        if found is None:
            raise Unresolvable(
                f"the table has no column {name!r}",
                code="unknown-column",
                column=name,
                hint=suggest(part, (f.name for f in fields)),
            )
        exact.append(found.name)
        here = found.type
    return tuple(exact), here


def null_of(data_type: DataType) -> Column:
    """Null, of a column's type."""
    return sf.lit(None).cast(sql_type(data_type))
