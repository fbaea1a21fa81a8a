"""The values that the clauses of a MERGE set: named ones, and those that a star means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from alluvium.commands.merge_clauses import Action, Clause
from alluvium.commands.new_values import default_values, generated
from alluvium.delta.target import DeltaTarget
from alluvium.errors import suggest
from alluvium.schema.types import DataType, Struct
from alluvium.spark.assign import Assignments, Path, assigned_columns, assignments, null_of
from alluvium.spark.failures import Unresolvable
from alluvium.spark.fit import fit
from alluvium.spark.resolve import attributes, ensure_fits
from alluvium.spark.types import from_spark


@dataclass(frozen=True, slots=True)
class MergeValues:
    """What clauses set.

    Attributes:
        target: The table as it will be.
        source: The rows that come.
        alias: Of the table in expressions.
        evolves: Whether the source may lack columns that a star means.
    """

    target: DeltaTarget
    source: DataFrame
    alias: str
    evolves: bool

    def given(self, clause: Clause) -> frozenset[str]:
        """The table's columns for which a clause has values."""
        if clause.values is None:
            known = {name.casefold() for name in self.source.columns}
            return frozenset(name for name in self.target.schema.names if name.casefold() in known)
        return assigned_columns(clause.values, self.target.schema, (self.alias,))

    def of(self, clause: Clause, visible: DataFrame) -> Assignments:
        """New values by column; for an insert of every column, except those that the table generates.

        Args:
            clause: Whose values.
            visible: The rows whose columns it may name.

        Raises:
            InvalidRequest: An expression does not resolve, or a column is unknown or does not fit.
        """
        if clause.action is Action.DELETE:
            return Assignments({})
        schema = self.target.schema
        if clause.values is None:
            found = Assignments(dict(self._starred(clause)))
        else:
            defaults = default_values(self.target, self.source)
            alias = (self.alias,)
            found = assignments(clause.values, schema, visible, alias, clause.shown, defaults, fills=self.evolves)
        return found if clause.action is Action.UPDATE else self._inserted(found)

    def _starred(self, clause: Clause) -> Iterator[tuple[tuple[str, ...], Column]]:
        source = self.source
        columns = {name.casefold(): column for name, column in attributes(source).items()}
        types = {f.name.casefold(): from_spark(f.dataType, f.name) for f in source.schema.fields}
        plan = self.target.plan_write(None, ())
        made = {d.column for d in plan.derived} | {n.column for n in plan.numbered}
        for f in self.target.schema.fields:
            found = columns.get(f.name.casefold())
            if found is not None:
                data_type = types[f.name.casefold()]
                keeps_fields = self.evolves and clause.action is Action.UPDATE
                for path, value, wanted in _parts((f.name,), found, data_type, f.type, keeps_fields, self.evolves):
                    if value is not found:
                        ensure_fits(source, value, ".".join(path), wanted)
                    yield path, value
            elif not self.evolves and f.name not in made:
                raise Unresolvable(
                    f"{clause.shown} needs a column {f.name!r} of the source",
                    code="unknown-column",
                    column=f.name,
                    hint=f"{suggest(f.name, source.columns)}; or name the columns, or use withSchemaEvolution()",
                )

    def _inserted(self, given: Assignments) -> Assignments:
        """A row to insert: what is not given has its default, or is null."""
        plan = self.target.plan_write(None, ())
        constant = default_values(self.target, self.source)
        made = {d.column for d in generated(self.target)} | {n.column for n in plan.numbered}
        values = dict(given.values)
        for f in self.target.schema.fields:
            if f.name in given.columns:
                values = {path: v for path, v in values.items() if path[0] != f.name}
                values[(f.name,)] = given.after(f.name, f.type, null_of(f.type))
            elif f.name in constant:
                values[(f.name,)] = constant[f.name]
            elif f.name not in made:
                values[(f.name,)] = null_of(f.type)
        return Assignments(values)


def _parts(
    path: Path, value: Column, source: DataType, target: DataType, keeps_fields: bool, fills: bool
) -> Iterator[tuple[Path, Column, DataType]]:
    """What a star sets: a column, or of a struct that lacks fields those that it has: the others keep their values
    where the schema evolves.
    """
    if keeps_fields and isinstance(source, Struct) and isinstance(target, Struct) and _lacks(source, target):
        own = {f.name.casefold(): f for f in source.fields}
        for f in target.fields:
            known = own.get(f.name.casefold())
            if known is not None:
                yield from _parts((*path, f.name), value.getField(known.name), known.type, f.type, keeps_fields, fills)
        return
    yield path, fit(value, source, target, ".".join(path), fills=fills), target


def _lacks(source: DataType, target: DataType) -> bool:
    """Whether a struct has not all fields of another, at any depth."""
    if not isinstance(source, Struct) or not isinstance(target, Struct):
        return False
    own = {f.name.casefold(): f for f in source.fields}
    return any(f.name.casefold() not in own or _lacks(own[f.name.casefold()].type, f.type) for f in target.fields)
