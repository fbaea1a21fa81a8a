"""The rows of a MERGE over Spark Connect: the same join, its expressions evaluated where their names are visible.

The server resolves a name in the rows of the projection that it stands in. So what clauses about matches say is
computed behind the join, where rows of both are; then the source's columns go, and what clauses about the table's
lonely rows say is computed. Each value only where its clause applies: elsewhere it might fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_rows import CLAUSE, MergeRows, Scope
from alluvium.commands.rows_connect.expressions import ServerCondition, no_rows, server_condition
from alluvium.commands.rows_connect.merge_source import ServerSource, named
from alluvium.commands.rows_connect.update import asked_values
from alluvium.commands.rows_connect.values import Asked, Stored, stored
from alluvium.delta.features.columns.identity_columns import ensure_not_set
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.merging import Action, When
from alluvium.plan.ports import RowPlaces
from alluvium.schema import types as t
from alluvium.schema.types import Struct
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.values.assign import Assignments, Nulls, Path
from alluvium.spark.values.conversion import Rules, conversion

_OWN, _VALUE = "__alluvium_own", "__alluvium_value"


@dataclass(frozen=True, slots=True)
class CheckedClause:
    """A clause that the server understands.

    Attributes:
        condition: None: it applies to all rows that it is about.
        values: What it computes, by the column or field.
        assigned: The same as one of their types, over rows that have what it computes; for an insert every column.
    """

    condition: ServerCondition | None
    values: Mapping[Path, Stored]
    assigned: Assignments


@dataclass(frozen=True, slots=True)
class ServerMergeRows(MergeRows):
    """What the rows of a table, and of a source, come to.

    Attributes:
        on: Which of the source's rows meet which of the table's, once it is checked.
        checked: The clauses, in order.
    """

    on: ServerCondition | None = None
    checked: tuple[CheckedClause, ...] = ()

    @property
    def _coming(self) -> ServerSource:
        assert isinstance(self.source, ServerSource)
        return self.source

    def _tables(self, schema: Struct, when: When) -> dict[str, Struct]:
        """The columns that clauses of a kind may name, by the names of rows; the table's are those of `schema`."""
        own, coming = {self.name[-1]: schema}, {self._coming.name: self._coming.known}
        return {When.MATCHED: {**own, **coming}, When.NOT_MATCHED: coming, When.NOT_MATCHED_BY_SOURCE: own}[when]

    def checked_over(self, schema: Struct) -> ServerMergeRows:
        """The same, all of whose expressions have been checked over the columns that the table has.

        Raises:
            InvalidRequest: An expression does not resolve, or a column is unknown or does not fit.
        """
        if self.name[-1].lower() == self._coming.name.lower():
            raise Unresolvable(
                f"the table and the source are both called {self._coming.name!r}",
                code="ambiguous-name",
                hint="give one of them another name by alias()",
            )
        own, coming = no_rows(self.spark, schema, self.name[-1]), self._coming.no_rows
        visible = {When.MATCHED: own.join(coming), When.NOT_MATCHED: coming, When.NOT_MATCHED_BY_SOURCE: own}
        condition = self.condition if isinstance(self.condition, str) else self._coming.own_names(self.condition)
        on = server_condition(
            visible[When.MATCHED], self._tables(schema, When.MATCHED), condition, "the condition of MERGE"
        )
        checked = tuple(
            self._checked(number, clause, visible[clause.when], self._tables(schema, clause.when))
            for number, clause in enumerate(self.clauses)
        )
        return replace(self, on=on, checked=checked)

    def _checked(self, number: int, clause: Clause, visible: DataFrame, tables: Mapping[str, Struct]) -> CheckedClause:
        clause, condition = self._by_our_names(clause), None
        if clause.condition is not None:
            condition = server_condition(visible, tables, clause.condition, f"the condition of {clause.shown}")
        if clause.action is Action.DELETE:
            return CheckedClause(condition, {}, Assignments({}))
        is_insert = clause.action is Action.INSERT
        ensure_not_set(self.target.schema, self._values.given(clause), is_insert=is_insert)
        policy, fills = self._values.policy, self.evolves
        values = stored(visible, self._asked(clause, visible, tables), policy, f"{_VALUE}{number}_", fills=fills)
        assigned = Assignments({path: value.value for path, value in values.items()})
        return CheckedClause(condition, values, self._values.inserted(assigned) if is_insert else assigned)

    def _asked(self, clause: Clause, visible: DataFrame, tables: Mapping[str, Struct]) -> dict[Path, Asked]:
        if clause.values is None:
            starred = self._values.starred(clause, self._coming.outputs)
            return {path: Asked(v.value, v.target, f"the value of {v.column!r}") for path, v in starred.items()}
        assert isinstance(self.target, DeltaTarget)
        names = frozenset(f.name.lower() for columns in tables.values() for f in columns.fields)
        return asked_values(visible, self._values.named(clause), self.target, self.name, clause.shown, names)

    def _by_our_names(self, clause: Clause) -> Clause:
        def ours(given: Column | str) -> Column | str:
            return given if isinstance(given, str) else self._coming.own_names(given)

        values = None if clause.values is None else {name: ours(value) for name, value in clause.values.items()}
        return replace(clause, condition=None if clause.condition is None else ours(clause.condition), values=values)

    def condition_text(self, clause: Clause, table: DataFrame | None = None) -> str | None:
        """The clause's condition for the history; None: it has none."""
        # Columns are not asked whether they are equal: what they answer is a column.
        (condition,) = (c.condition for own, c in zip(self.clauses, self.checked, strict=True) if own is clause)
        return None if condition is None else condition.shown

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _scope(self, candidates: RowPlaces, *, reads_whole: bool, has_values: bool) -> Scope:
        schema, names = candidates.table_schema, candidates.columns
        read = read_own_lane(self.spark, candidates)
        copies = [sf.col(quote(f.name)).alias(f"{_OWN}{number}") for number, f in enumerate(schema.fields)]
        columns = [sf.col(quote(name)) for name in (*schema.names, *names.names)]
        table = read.select(*columns, *copies).alias(self.name[-1])
        return Scope(schema, table, table, names, [c.assigned for c in self.checked] if has_values else None)

    def _pairs(self, scope: Scope, how: str) -> DataFrame:
        there = self.source.numbered
        assert self.on is not None, "expressions are checked before rows are read"
        return scope.table.join(there.hint("broadcast") if self.broadcasts else there, self.on.column, how)

    def _own(self, scope: Scope, copies: bool, keeps: bool) -> DataFrame:
        matched, lonely = self._about(When.MATCHED), self._about(When.NOT_MATCHED_BY_SOURCE)
        keeps_lonely = copies or bool(lonely)
        is_pair = sf.col(self.source.number).isNotNull() if keeps_lonely else sf.lit(True)
        pairs = self._pairs(scope, "left" if keeps_lonely else "inner")
        rows = self._computed(pairs.select("*", self._first(matched, is_pair).alias(CLAUSE)), matched, scope)
        if lonely:
            rows = self._table_alone(rows, scope, matched)
            chosen = sf.when(is_pair, sf.col(CLAUSE)).otherwise(self._first(lonely, ~is_pair))
            kept = [sf.col(quote(name)) for name in rows.columns if name != CLAUSE]
            rows = self._computed(rows.select(*kept, chosen.alias(CLAUSE)).alias(self.name[-1]), lonely, scope)
        had = {f.name: sf.col(f"{_OWN}{number}") for number, f in enumerate(scope.schema.fields)}
        before = {**had, **{name: sf.col(quote(name)) for name in scope.columns.names}}
        return self._after(scope, rows, [*matched, *lonely], before, is_pair, keeps, [self.source.number])

    def _table_alone(self, rows: DataFrame, scope: Scope, about: list[int]) -> DataFrame:
        """The same rows without the source's columns."""
        copies = [f"{_OWN}{number}" for number in range(len(scope.schema.fields))]
        own = [sf.col(copy).alias(f.name) for copy, f in zip(copies, scope.schema.fields, strict=True)]
        more = [*copies, *scope.columns.names, self.source.number, CLAUSE, *self._made(about, scope)]
        return rows.select(*own, *(sf.col(quote(name)) for name in more)).alias(self.name[-1])

    def _inserts(self, scope: Scope, met: DataFrame | None) -> DataFrame:
        about = self._about(When.NOT_MATCHED)
        alone = self._alone(scope, met)
        chosen = alone.select("*", self._first(about, sf.lit(True)).alias(CLAUSE)).where(f"{CLAUSE} is not null")
        rows = self._computed(named(chosen, self._coming.alias), about, scope)
        before = dict.fromkeys(scope.columns.names, Nulls().of(t.LONG))
        return self._after(scope, rows, about, before, sf.lit(False), True, [])

    def _first(self, about: list[int], applicable: Column) -> Column:
        """The number of the first clause that a row falls under, of those about rows of a kind; null: none."""
        chosen = Nulls().of(t.INTEGER)
        for number in reversed(about):
            condition = self.checked[number].condition
            applies = applicable if condition is None else applicable & condition.column
            chosen = sf.when(applies, sf.lit(number)).otherwise(chosen)
        return chosen

    def _computed(self, rows: DataFrame, about: list[int], scope: Scope) -> DataFrame:
        """The rows with what their clause sets, each in its own type."""
        if scope.values is None:
            return rows
        made = [
            sf.when(sf.col(CLAUSE) == number, value.raw).alias(value.name)
            for number in about
            for value in self.checked[number].values.values()
        ]
        return rows.select("*", *made) if made else rows

    def _made(self, about: list[int], scope: Scope) -> Iterator[str]:
        """The names under which that stands."""
        if scope.values is not None:
            yield from (value.name for number in about for value in self.checked[number].values.values())

    def _evolved(self, scope: Scope, before: Mapping[str, Column], nulls: Nulls) -> dict[str, Column]:
        known = {f.name: (f"{_OWN}{number}", f.type) for number, f in enumerate(scope.schema.fields)}
        # Types only grow wider: every value fits.
        fits, found = Rules(lambda source, target: True), {}
        for f in self.target.schema.fields:
            if f.name not in before or f.name not in known:
                found[f.name] = nulls.of(f.type)
            else:
                name, source = known[f.name]
                found[f.name] = sql_column(conversion(name, source, f.type, f.name, fits))
        return found
