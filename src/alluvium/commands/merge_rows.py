"""The rows of a MERGE: one join of table and source, and for each of its rows the clause that it falls under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.merge_clauses import Action, Clause, When
from alluvium.commands.new_values import generated, with_generated
from alluvium.commands.row_changes import BEFORE, is_recorded
from alluvium.delta.candidates import Candidates
from alluvium.delta.features.identity_columns import identities
from alluvium.delta.target import DeltaTarget
from alluvium.errors import InvalidRequest, suggest
from alluvium.expr import tree
from alluvium.plan.changes import ChangeKind
from alluvium.plan.write import Derived, Numbered
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.assign import Assignments, assigned_columns, assignments, null_of
from alluvium.spark.derive import with_numbers
from alluvium.spark.fit import fit
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.resolve import Resolved, attributes, equal_keys, resolve, resolve_condition
from alluvium.spark.scan.names import quote, sql_type
from alluvium.spark.scan.native import read_native
from alluvium.spark.types import from_spark

#: By which the source's rows are known behind a join, and the clause that a row falls under.
_THERE, _CLAUSE = "__alluvium_there", "__alluvium_clause"
_KINDS = {Action.UPDATE: ChangeKind.UPDATE, Action.DELETE: ChangeKind.DELETE, Action.INSERT: ChangeKind.INSERT}
#: Keys shown in an error.
_SHOWN = 5
#: Types whose smallest and greatest value skip files, and mean the same to Python.
_ORDERED = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING, t.DATE)


@dataclass(frozen=True, slots=True)
class MergeRows:
    """What the rows of a table, and of a source, come to.

    Attributes:
        spark: The session.
        target: The table as it will be.
        source: The rows that come.
        condition: Which of them meet which rows of the table.
        clauses: In order.
        alias: Of the table in expressions.
        evolves: Whether the source may lack columns that a star means.
    """

    spark: SparkSession
    target: DeltaTarget
    source: DataFrame
    condition: Column | str
    clauses: tuple[Clause, ...]
    alias: str
    evolves: bool = False

    def rows(self, candidates: Candidates, copies: bool) -> DataFrame:
        """The rows of some candidates, and those to insert, as they are afterwards.

        Args:
            candidates: The files.
            copies: Whether rows that stay as they are must be among them.
        """
        schema, names = self.target.schema, candidates.columns
        table = read_native(self.spark, candidates).alias(self.alias)
        there = self.source.withColumn(_THERE, sf.lit(True))
        resolution = table.join(self.source)
        condition = resolve_condition(resolution, self.condition, "the condition of MERGE").column
        if all(c.when is When.NOT_MATCHED for c in self.clauses):
            # No row of the table comes into it: of its columns only the keys need be read.
            joined, is_row = there.join(table, condition, "left_anti"), sf.lit(False)
            places = {name: null_of(t.LONG) for name in names.names}
        else:
            joined, places = table.join(there, condition, self._join_type(copies)), attributes(table)
            is_row = places[names.file].isNotNull()
        is_pair = is_row & sf.col(_THERE)
        chosen = self._chosen(table, resolution, is_row, is_pair)
        marked = joined.select("*", chosen.alias(_CLAUSE)).where(is_row | sf.col(_CLAUSE).isNotNull())
        values = [self._values(clause, table, resolution) for clause in self.clauses]
        before = {f.name: places.get(f.name, null_of(f.type)) for f in schema.fields}
        columns = [_column(f, before[f.name], self.clauses, values).alias(f.name) for f in schema.fields]
        recorded = [sf.struct(*(before[n].alias(n) for n in schema.names)).alias(BEFORE)]
        rows = marked.select(
            *columns,
            *(places[name].alias(name) for name in names.names),
            self._kind().alias(KIND),
            sf.coalesce(is_pair, sf.lit(False)).alias(MATCHED),
            sf.col(_CLAUSE),
            *(recorded if is_recorded(self.target) else []),
        )
        # Numbers first: generated columns see them.
        rows = with_numbers(rows, self.numbered, self._among(values)) if self.numbered else rows
        return with_generated(rows, schema, self._anew(values)).drop(_CLAUSE)

    @property
    def numbered(self) -> tuple[Numbered, ...]:
        """The identity columns for which some inserted row brings no value."""
        lacking = [c for c in self.clauses if c.action is Action.INSERT]
        if not lacking or not identities(self.target.schema):
            return ()
        given = [self._given(clause) for clause in lacking]
        return tuple(
            n for n in self.target.plan_write(None, ()).numbered if any(n.column not in names for names in given)
        )

    def _given(self, clause: Clause) -> frozenset[str]:
        """The table's columns for which a clause has values."""
        if clause.values is None:
            known = {name.casefold() for name in self.source.columns}
            return frozenset(name for name in self.target.schema.names if name.casefold() in known)
        return assigned_columns(clause.values, self.target.schema, (self.alias,))

    def _among(self, values: list[Assignments]) -> Mapping[str, Column]:
        """Which rows are numbered, by column: those of clauses that insert no value of their own."""
        lacking = {
            n.column: [
                number
                for number, (clause, found) in enumerate(zip(self.clauses, values, strict=True))
                if clause.action is Action.INSERT and n.column not in found.columns
            ]
            for n in self.numbered
        }
        return {column: sf.col(_CLAUSE).isin(*numbers) for column, numbers in lacking.items()}

    def ensure_resolvable(self, table: DataFrame) -> None:
        """Raises where an expression does not resolve, before anything is read; see `assignments`."""
        joined = table.join(self.source)
        for clause in self.clauses:
            self.condition_text(clause, table)
            self._values(clause, table, joined)

    def condition_text(self, clause: Clause, table: DataFrame) -> str | None:
        """The clause's condition as SQL; None: it has none."""
        if clause.condition is None:
            return None
        rows = self._visible(clause, table, table.join(self.source))
        return resolve_condition(rows, clause.condition, f"the condition of {clause.shown}").sql

    def examples(self, candidates: Candidates) -> str:
        """Some rows of the table that have several matches, for an error."""
        names = candidates.columns
        rows = self.rows(candidates, copies=False).where(sf.col(MATCHED))
        shown = sf.to_json(sf.struct(*(sf.col(quote(n)) for n in self.target.schema.names[:_SHOWN])))
        several = rows.groupBy(names.file, names.row).agg(sf.count("*").alias("n"), sf.first(shown).alias("shown"))
        found = several.where("n > 1").limit(_SHOWN).collect()
        return "".join(f"\n  {row['n']} matches of {row['shown']}" for row in found)

    def _join_type(self, copies: bool) -> str:
        kinds = {c.when for c in self.clauses}
        keeps_rows = copies or When.NOT_MATCHED_BY_SOURCE in kinds
        if When.NOT_MATCHED in kinds:
            return "full" if keeps_rows else "right"
        return "left" if keeps_rows else "inner"

    def _visible(self, clause: Clause, table: DataFrame, joined: DataFrame) -> DataFrame:
        """The rows whose columns a clause may name."""
        if clause.when is When.MATCHED:
            return joined
        return self.source if clause.when is When.NOT_MATCHED else table

    def _chosen(self, table: DataFrame, joined: DataFrame, is_row: Column, is_pair: Column) -> Column:
        """The number of the first clause that a row falls under; null: none."""
        about = {
            When.MATCHED: is_pair,
            When.NOT_MATCHED: ~is_row,
            When.NOT_MATCHED_BY_SOURCE: is_row & sf.col(_THERE).isNull(),
        }
        chosen = null_of(t.INTEGER)
        for number in reversed(range(len(self.clauses))):
            clause = self.clauses[number]
            applies = about[clause.when]
            if clause.condition is not None:
                rows = self._visible(clause, table, joined)
                what = f"the condition of {clause.shown}"
                applies = applies & resolve_condition(rows, clause.condition, what).column
            chosen = sf.when(applies, sf.lit(number)).otherwise(chosen)
        return chosen

    def _kind(self) -> Column:
        kind = sf.lit(int(ChangeKind.COPY))
        for number, clause in enumerate(self.clauses):
            kind = sf.when(sf.col(_CLAUSE) == number, int(_KINDS[clause.action])).otherwise(kind)
        return kind

    def _values(self, clause: Clause, table: DataFrame, joined: DataFrame) -> Assignments:
        """New values by column; for an insert of every column, except those that the table generates."""
        if clause.action is Action.DELETE:
            return Assignments({})
        schema = self.target.schema
        if clause.values is None:
            found = Assignments(dict(self._starred(clause)))
        else:
            rows = self._visible(clause, table, joined)
            found = assignments(clause.values, schema, rows, (self.alias,), clause.shown)
        return found if clause.action is Action.UPDATE else self._inserted(found)

    def _starred(self, clause: Clause) -> Iterator[tuple[tuple[str, ...], Column]]:
        columns = {name.casefold(): column for name, column in attributes(self.source).items()}
        types = {f.name.casefold(): from_spark(f.dataType, f.name) for f in self.source.schema.fields}
        plan = self.target.plan_write(None, ())
        made = {d.column for d in plan.derived} | {n.column for n in plan.numbered}
        for f in self.target.schema.fields:
            found = columns.get(f.name.casefold())
            if found is not None:
                yield (f.name,), fit(found, types[f.name.casefold()], f.type, f.name)
            elif not self.evolves and f.name not in made:
                raise InvalidRequest(
                    f"{clause.shown} needs a column {f.name!r} of the source",
                    code="unknown-column",
                    column=f.name,
                    hint=f"{suggest(f.name, self.source.columns)}; or name the columns, or use withSchemaEvolution()",
                )

    def _inserted(self, given: Assignments) -> Assignments:
        """A row to insert: what is not given has its default, or is null."""
        plan = self.target.plan_write(None, ())
        constant = {d.column: d for d in plan.derived if d.is_constant}
        made = {d.column for d in generated(self.target)} | {n.column for n in plan.numbered}
        values = dict(given.values)
        for f in self.target.schema.fields:
            if f.name in given.columns:
                values = {path: v for path, v in values.items() if path[0] != f.name}
                values[(f.name,)] = given.after(f.name, f.type, null_of(f.type))
            elif f.name in constant:
                values[(f.name,)] = sf.expr(f"cast(({constant[f.name].sql}) as {sql_type(f.type)})")
            elif f.name not in made:
                values[(f.name,)] = null_of(f.type)
        return Assignments(values)

    def _anew(self, values: list[Assignments]) -> Mapping[str, tuple[Derived, str]]:
        """Generated columns, and in rows of which clauses they are computed: where they are not given."""
        anew = {}
        for derived in generated(self.target):
            numbers = [
                str(n)
                for n, (clause, found) in enumerate(zip(self.clauses, values, strict=True))
                if clause.action is not Action.DELETE and derived.column not in found.columns
            ]
            if numbers:
                anew[derived.column] = (derived, f"{_CLAUSE} in ({', '.join(numbers)})")
        return anew


def _column(f: Field, before: Column, clauses: tuple[Clause, ...], values: list[Assignments]) -> Column:
    column = before
    for number, (clause, found) in enumerate(zip(clauses, values, strict=True)):
        if f.name in found.columns:
            old = before if clause.action is Action.UPDATE else null_of(f.type)
            column = sf.when(sf.col(_CLAUSE) == number, found.after(f.name, f.type, old)).otherwise(column)
    return column


def source_bounds(
    source: DataFrame, table: DataFrame, condition: Resolved, schema: Struct
) -> tuple[list[tree.Expression], int]:
    """What the source's keys say of the rows that they can meet, and how many rows the source has: one aggregate."""
    keys = []
    for name, value in equal_keys(condition, table):
        f = schema.find(name)
        if f is not None and (f.type in _ORDERED or isinstance(f.type, t.Decimal)):
            found = resolve(source, value, "a key of MERGE")
            if from_spark(found.type, name) == f.type:
                keys.append((f, value))
    ends = [column for _, value in keys for column in (sf.min(value), sf.max(value))]
    count, *found_ends = source.agg(sf.count(sf.lit(1)), *ends).collect()[0]
    bounds: list[tree.Expression] = []
    for (f, _), low, high in zip(keys, found_ends[::2], found_ends[1::2], strict=True):
        if low is None:
            # No row of the source has a key.
            bounds.append(tree.Literal(False, t.BOOLEAN))
        elif isinstance(low, (int, str, Decimal)) or f.type == t.DATE:
            column = tree.Column((f.name,), f.type)
            bounds += [
                tree.Compare(">=", column, tree.Literal(low, f.type)),
                tree.Compare("<=", column, tree.Literal(high, f.type)),
            ]
    return bounds, int(count)
