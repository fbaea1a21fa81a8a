"""The values that the clauses of a MERGE set: named ones, and those that a star means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.rows.new_values import default_values, generated, without_made
from alluvium.commands.rows.session_rules import change_policy
from alluvium.errors import suggest
from alluvium.plan.merging import Action
from alluvium.plan.ports import RowTarget
from alluvium.schema.types import DataType, Struct
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.statements.resolve import Qualifier, outputs
from alluvium.spark.values.assign import Assignments, Nulls, Path, assigned_columns, assignments, is_case_sensitive
from alluvium.spark.values.conversion import value_type
from alluvium.spark.values.fit import NewValue, fit
from alluvium.spark.values.storing import StorePolicy


@dataclass(frozen=True, slots=True)
class MergeValues:
    """What clauses set.

    Attributes:
        target: The table as it will be.
        source: The rows that come.
        name: Of the table in expressions.
        evolves: Whether the source may lack columns that a star means.
    """

    target: RowTarget
    source: DataFrame
    name: Qualifier
    evolves: bool

    def given(self, clause: Clause) -> frozenset[str]:
        """The table's columns for which a clause has values."""
        if clause.values is None:
            known = {name.lower() for name in self.source.columns}
            return frozenset(name for name in self.target.schema.names if name.lower() in known)
        return assigned_columns(self.named(clause), self.target.schema, self.name)

    def named(self, clause: Clause) -> Mapping[str, Column | str]:
        """The values that a clause names, without those that the table makes by itself."""
        is_insert = clause.action is Action.INSERT
        return without_made(clause.values or {}, self.target, self.name, is_insert=is_insert)

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
            values = self.starred(clause, [column for _, column in outputs(self.source)])
            fitted = fit(self.source, list(values.values()), self.policy, fills=self.evolves)
            found = Assignments(dict(zip(values, fitted, strict=True)))
        else:
            found = assignments(
                self.named(clause),
                schema,
                visible,
                self.name,
                clause.shown,
                self.policy,
                default_values(self.target, self.source),
                fills=self.evolves,
            )
        return found if clause.action is Action.UPDATE else self.inserted(found)

    def starred(self, clause: Clause, columns: Sequence[Column]) -> dict[Path, NewValue]:
        """What a star sets, before it is stored.

        Args:
            clause: With the star.
            columns: Of the source, in order.

        Raises:
            InvalidRequest: The source lacks a column (`unknown-column`), or has one twice (`invalid-expression`).
        """
        plan = self.target.plan_write(None, ())
        made = {d.column for d in plan.derived} | {n.column for n in plan.numbered}
        keeps_fields = self.evolves and clause.action is Action.UPDATE
        values: dict[Path, NewValue] = {}
        for f in self.target.schema.fields:
            place = self._place(f.name, clause)
            if place is not None:
                data_type = value_type(self.source.schema.fields[place].dataType, f.name)
                values.update(_parts((f.name,), columns[place], data_type, f.type, keeps_fields))
            elif not self.evolves and f.name not in made:
                raise Unresolvable(
                    f"{clause.shown} needs a column {f.name!r} of the source",
                    code="unknown-column",
                    column=f.name,
                    hint=f"{suggest(f.name, self.source.columns)}; or name the columns, or use withSchemaEvolution()",
                )
        return values

    def _place(self, name: str, clause: Clause) -> int | None:
        """Which column of the source a star means by one of the table; None: there is none.

        Raises:
            InvalidRequest: `"invalid-expression"`: there are several.
        """
        names = self.source.columns
        alike = [place for place, known in enumerate(names) if known.lower() == name.lower()]
        if is_case_sensitive(self.source.sparkSession):
            alike = [place for place in alike if names[place] == name] or alike
        if len(alike) > 1:
            raise Unresolvable(
                f"{clause.shown} cannot be used: the source has {len(alike)} columns {name!r}",
                code="invalid-expression",
                column=name,
                hint="drop or rename the others, or name the columns",
            )
        return alike[0] if alike else None

    @property
    def policy(self) -> StorePolicy:
        """What becomes of values that do not fit."""
        return change_policy(self.source.sparkSession)

    def inserted(self, given: Assignments) -> Assignments:
        """A row to insert: what is not given has its default, or is null."""
        plan = self.target.plan_write(None, ())
        constant = default_values(self.target, self.source)
        made = {d.column for d in generated(self.target)} | {n.column for n in plan.numbered}
        columns, nulls = given.columns, Nulls()
        values: dict[Path, Column] = {}
        for f in self.target.schema.fields:
            if f.name in columns:
                values[(f.name,)] = given.after(f.name, f.type, nulls.of(f.type))
            elif f.name in constant:
                values[(f.name,)] = constant[f.name]
            elif f.name not in made:
                values[(f.name,)] = nulls.of(f.type)
        return Assignments(values)


def _parts(
    path: Path, value: Column, source: DataType, target: DataType, keeps_fields: bool
) -> Iterator[tuple[Path, NewValue]]:
    """What a star sets: a column, or of a struct that lacks fields those that it has: the others keep their values
    where the schema evolves.
    """
    if keeps_fields and isinstance(source, Struct) and isinstance(target, Struct) and _lacks(source, target):
        own = {f.name.lower(): f for f in source.fields}
        for f in target.fields:
            known = own.get(f.name.lower())
            if known is not None:
                yield from _parts((*path, f.name), value.getField(known.name), known.type, f.type, keeps_fields)
        return
    yield path, NewValue(".".join(path), value, source, target)


def _lacks(source: DataType, target: DataType) -> bool:
    """Whether a struct has not all fields of another, at any depth."""
    if not isinstance(source, Struct) or not isinstance(target, Struct):
        return False
    own = {f.name.lower(): f for f in source.fields}
    return any(f.name.lower() not in own or _lacks(own[f.name.lower()].type, f.type) for f in target.fields)
