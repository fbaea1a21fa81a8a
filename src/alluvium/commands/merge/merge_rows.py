"""The rows of a MERGE: one join of table and source, and for each of its rows the clause that it falls under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.delete import TABLE
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_source import MergeSource
from alluvium.commands.merge.merge_values import MergeValues
from alluvium.commands.rows.new_values import generated, with_generated
from alluvium.commands.rows.row_changes import BEFORE, FirstPass, Purpose, is_recorded, kept_pass, read_places
from alluvium.delta.features.columns.identity_columns import ensure_not_set, identities
from alluvium.plan.changes import ChangeKind, RowColumns
from alluvium.plan.merging import Action, When
from alluvium.plan.ports import RowPlaces, RowTarget
from alluvium.plan.write import Derived, Numbered
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.frames import choose, select_named
from alluvium.spark.kept import keep_rows
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, MATCHED, changed_rows
from alluvium.spark.statements.resolve import Qualifier, attributes, named_rows, resolve_condition, shown_text
from alluvium.spark.values.assign import Assignments, Nulls
from alluvium.spark.values.derive import with_numbers
from alluvium.spark.values.fit import NewValue, fit
from alluvium.spark.values.storing import StorePolicy
from alluvium.storage.store import OpenStore

#: The clause that a row falls under, and numbers of rows of the source that met one of the table's.
CLAUSE, _MET = "__alluvium_clause", "__alluvium_met"
_KINDS = {Action.UPDATE: ChangeKind.UPDATE, Action.DELETE: ChangeKind.DELETE, Action.INSERT: ChangeKind.INSERT}
#: Keys shown in an error.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows that expressions are resolved over, the columns that the table has now, and the values that the clauses set
    (none where nobody asks).
    """

    schema: Struct
    table: DataFrame
    both: DataFrame
    columns: RowColumns
    values: list[Assignments] | None


@dataclass(frozen=True, slots=True)
class _Branch:
    """What a clause does: whether a row falls under it, and the values that it sets."""

    condition: Column
    action: Action
    values: Assignments


@dataclass(frozen=True, slots=True)
class MergeRows:
    """What the rows of a table, and of a source, come to.

    The table's rows are joined to the source's by one join that keeps rows of the table alone; rows to insert are found
    by the numbers of those that met one. A join that keeps both sides would have to move the whole table.

    Attributes:
        spark: The session.
        target: The table as it will be.
        source: The rows that come.
        condition: Which of them meet which rows of the table.
        clauses: In order.
        name: Of the table in expressions.
        evolves: Whether the source may lack columns that a star means.
        broadcasts: Whether the source is sent to the table's rows.
        skips: Whether Spark's reader may leave out parts of the table's files by the condition.
        open_store: The table's objects for Python workers, where Spark does not read its files.
    """

    spark: SparkSession
    target: RowTarget
    source: MergeSource
    condition: Column | str
    clauses: tuple[Clause, ...]
    name: Qualifier
    evolves: bool = False
    broadcasts: bool = False
    skips: bool = True
    open_store: OpenStore | None = None

    @property
    def _values(self) -> MergeValues:
        return MergeValues(self.target, self.source.rows, self.name, self.evolves)

    def first_pass(self, candidates: RowPlaces, purpose: Purpose) -> FirstPass:
        """Joins the candidates' rows to the source's: rows that change or have a match, and those to insert."""
        scope = self._scope(candidates, reads_whole=not self.skips, has_values=purpose is Purpose.ROWS)
        parts, kept_frames, matched_rows = [], [], None
        if not self.only_inserts:
            own = keep_rows(changed_rows(self._own(scope, False, bool(self.target.before_columns))))
            matched_rows = own.where(sf.col(MATCHED))
            parts.append(own.drop(self.source.number))
            kept_frames.append(own)
        # Rows that met are kept already; those to insert are where they are counted and written, or numbered.
        keeps_all = purpose is Purpose.ROWS and (self.only_inserts or bool(self.numbered))
        if self._about(When.NOT_MATCHED):
            inserts = self._inserts(scope, matched_rows)
            # Of a recorded merge they go into the table and into its feed, which must tell the same values.
            if purpose is Purpose.ROWS and is_recorded(self.target) and not keeps_all:
                inserts = keep_rows(inserts)
                kept_frames.append(inserts)
            parts.append(inserts)
        rows = reduce(DataFrame.union, parts)
        if keeps_all:
            rows = kept_pass(rows, candidates, numbered=bool(self.numbered))
            kept_frames.append(rows)
        return FirstPass(rows, partial(self._whole_files, matched_rows), tuple(kept_frames))

    def _whole_files(self, met: DataFrame | None, candidates: RowPlaces) -> DataFrame:
        """The second pass, which knows from the first what has a match (`met`): all rows of some of the files."""
        scope = self._scope(candidates, reads_whole=False, has_values=True)
        own = self._own(scope, True, True).drop(self.source.number)
        return own.union(self._inserts(scope, met)) if self._about(When.NOT_MATCHED) else own

    @property
    def only_inserts(self) -> bool:
        """Whether no row of the table changes."""
        return all(c.when is When.NOT_MATCHED for c in self.clauses)

    def _scope(self, candidates: RowPlaces, *, reads_whole: bool, has_values: bool) -> Scope:
        table = named_rows(
            read_places(self.spark, candidates, reads_whole=reads_whole, open_store=self.open_store), self.name
        )
        both = table.join(self.source.rows)
        values = (
            [self._values.of(clause, self._visible(clause, table, both)) for clause in self.clauses]
            if has_values
            else None
        )
        return Scope(candidates.table_schema, table, both, candidates.columns, values)

    def _about(self, *whens: When) -> list[int]:
        """The numbers of the clauses about some rows."""
        return [number for number, clause in enumerate(self.clauses) if clause.when in whens]

    def _pairs(self, scope: Scope, how: str) -> DataFrame:
        condition = resolve_condition(scope.both, self.condition, "the condition of MERGE").column
        there = self.source.numbered
        return scope.table.join(there.hint("broadcast") if self.broadcasts else there, condition, how)

    def _own(self, scope: Scope, copies: bool, keeps: bool) -> DataFrame:
        """The table's rows. Where nobody asks for rows that stay, or go, columns that are set need not be read."""
        about = self._about(When.MATCHED, When.NOT_MATCHED_BY_SOURCE)
        lonely = copies or bool(self._about(When.NOT_MATCHED_BY_SOURCE))
        is_pair = sf.col(self.source.number).isNotNull() if lonely else sf.lit(True)
        chosen = self._chosen(scope, about, is_pair).alias(CLAUSE)
        marked = self._pairs(scope, "left" if lonely else "inner").select("*", chosen)
        return self._after(scope, marked, about, attributes(scope.table), is_pair, keeps, [self.source.number])

    def _inserts(self, scope: Scope, met: DataFrame | None) -> DataFrame:
        """The source's rows that met none of the table's, and fall under a clause.

        Args:
            scope: For expressions.
            met: Rows of the join, with the numbers of those that met one; None: nobody knows them yet.
        """
        about = self._about(When.NOT_MATCHED)
        alone = self._alone(scope, met)
        chosen = self._chosen(scope, about, sf.lit(False)).alias(CLAUSE)
        marked = alone.select("*", chosen).where(sf.col(CLAUSE).isNotNull())
        before = dict.fromkeys(scope.columns.names, Nulls().of(t.LONG))
        return self._after(scope, marked, about, before, sf.lit(False), True, [])

    def _alone(self, scope: Scope, met: DataFrame | None) -> DataFrame:
        """The source's rows that met none of the table's, and their numbers; `met` as of `_inserts`."""
        pairs = self._pairs(scope, "inner") if met is None else met
        numbers = pairs.select(sf.col(self.source.number).alias(_MET))
        return self.source.numbered.join(numbers, sf.col(self.source.number) == sf.col(_MET), "left_anti")

    def _after(
        self,
        scope: Scope,
        marked: DataFrame,
        about: list[int],
        before: dict[str, Column],
        is_pair: Column,
        keeps: bool,
        more_names: Sequence[str],
    ) -> DataFrame:
        """Rows that know their clause as they are afterwards, with what `RowChanges` wants to know of them."""
        schema, names, values = self.target.schema, scope.columns, scope.values
        told = [(KIND, self._kind(about)), (MATCHED, is_pair)]
        more = [(name, sf.col(name)) for name in more_names]
        if values is None:
            return select_named(marked, [*((name, before[name]) for name in (names.file, names.row)), *told, *more])
        nulls = Nulls()
        before = {**before, **self._evolved(scope, before, nulls)}
        clauses = [_Branch(sf.col(CLAUSE) == number, self.clauses[number].action, values[number]) for number in about]
        columns = [(f.name, self._column(f, before[f.name], clauses, keeps, nulls)) for f in schema.fields]
        places = [(name, before[name]) for name in names.names]
        wanted = [before[n].alias(n) for n in self.target.before_columns]
        recorded = [(BEFORE, sf.struct(*wanted))] if wanted else []
        rows = select_named(marked, [*columns, *places, *told, *recorded, *more, (CLAUSE, sf.col(CLAUSE))])
        # Numbers first: generated columns see them.
        if self.numbered and any(clause.action is Action.INSERT for clause in clauses):
            rows = with_numbers(rows, self.numbered, self._among(values))
        return with_generated(rows, schema, self._anew(values, about)).drop(CLAUSE)

    def _evolved(self, scope: Scope, before: Mapping[str, Column], nulls: Nulls) -> dict[str, Column]:
        """The table's columns as rows had them, in the types that they have now."""
        known = {f.name: f for f in scope.schema.fields if f.name in before}
        had = [
            NewValue(f.name, before[f.name], known[f.name].type, f.type)
            for f in self.target.schema.fields
            if f.name in known
        ]
        # Types only grow wider: every value fits.
        fitted = dict(zip((new.column for new in had), fit(scope.table, had, StorePolicy.ANSI), strict=True))
        fields = self.target.schema.fields
        return {f.name: fitted[f.name] if f.name in fitted else nulls.of(f.type) for f in fields}

    @property
    def assigned(self) -> tuple[str, ...]:
        """Columns that rows which stay may get new values of, in the table's order."""
        given = [self._values.given(clause) for clause in self.clauses if clause.action is Action.UPDATE]
        return tuple(name for name in self.target.schema.names if any(name in names for names in given))

    @property
    def numbered(self) -> tuple[Numbered, ...]:
        """The identity columns for which some inserted row brings no value."""
        lacking = [c for c in self.clauses if c.action is Action.INSERT]
        if not lacking or not identities(self.target.schema):
            return ()
        given = [self._values.given(clause) for clause in lacking]
        return tuple(
            n for n in self.target.plan_write(None, ()).numbered if any(n.column not in names for names in given)
        )

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
        return {column: sf.col(CLAUSE).isin(*numbers) for column, numbers in lacking.items()}

    def ensure_resolvable(self, table: DataFrame) -> None:
        """Raises where an expression does not resolve, before anything is read; see `assignments`."""
        joined = table.join(self.source.rows)
        for clause in self.clauses:
            self.condition_text(clause, table)
            self._values.of(clause, self._visible(clause, table, joined))
            if clause.action is not Action.DELETE:
                ensure_not_set(self.target.schema, self._values.given(clause), is_insert=clause.action is Action.INSERT)

    def condition_text(self, clause: Clause, table: DataFrame) -> str | None:
        """The clause's condition for the history; None: it has none."""
        if clause.condition is None:
            return None
        rows = self._visible(clause, table, table.join(self.source.rows))
        found = resolve_condition(rows, clause.condition, f"the condition of {clause.shown}")
        return shown_text(table, found, hidden_name(self.name))

    def examples(self, candidates: RowPlaces) -> str:
        """Some rows of the table that have several matches, for an error."""
        names = candidates.columns
        scope = self._scope(candidates, reads_whole=False, has_values=True)
        rows = self._own(scope, False, True).where(sf.col(MATCHED))
        shown = sf.to_json(sf.struct(*(sf.col(quote(n)) for n in self.target.schema.names[:_SHOWN])))
        several = rows.groupBy(names.file, names.row).agg(sf.count("*").alias("n"), sf.first(shown).alias("shown"))
        found = several.where("n > 1").limit(_SHOWN).collect()
        return "".join(f"\n  {row['n']} matches of {row['shown']}" for row in found)

    def _visible(self, clause: Clause, table: DataFrame, joined: DataFrame) -> DataFrame:
        """The rows whose columns a clause may name."""
        if clause.when is When.MATCHED:
            return joined
        return self.source.rows if clause.when is When.NOT_MATCHED else table

    def _chosen(self, scope: Scope, about: list[int], is_pair: Column) -> Column:
        """The number of the first clause that a row falls under; null: none."""
        applicable = {When.MATCHED: is_pair, When.NOT_MATCHED_BY_SOURCE: ~is_pair, When.NOT_MATCHED: ~is_pair}
        chosen = Nulls().of(t.INTEGER)
        for number in reversed(about):
            clause = self.clauses[number]
            applies = applicable[clause.when]
            if clause.condition is not None:
                rows = self._visible(clause, scope.table, scope.both)
                what = f"the condition of {clause.shown}"
                applies = applies & resolve_condition(rows, clause.condition, what).column
            chosen = sf.when(applies, sf.lit(number)).otherwise(chosen)
        return chosen

    def _column(self, f: Field, before: Column, clauses: Sequence[_Branch], keeps: bool, nulls: Nulls) -> Column:
        """What a column is afterwards."""
        column = before if keeps else nulls.of(f.type)
        for clause in clauses:
            is_update = clause.action is Action.UPDATE
            if f.name in clause.values.columns:
                after = clause.values.after(f.name, f.type, before if is_update else nulls.of(f.type))
            elif is_update and not keeps:
                after = before
            else:
                continue
            column = choose(self.spark, clause.condition, after, column)
        return column

    def _kind(self, about: list[int]) -> Column:
        kind = sf.lit(int(ChangeKind.COPY))
        for number in about:
            kind = sf.when(sf.col(CLAUSE) == number, int(_KINDS[self.clauses[number].action])).otherwise(kind)
        return kind

    def _anew(self, values: list[Assignments], about: list[int]) -> Mapping[str, tuple[Derived, str]]:
        """Generated columns, and in rows of which clauses they are computed: where they are not given."""
        anew = {}
        for derived in generated(self.target):
            numbers = [
                str(n)
                for n in about
                if self.clauses[n].action is not Action.DELETE and derived.column not in values[n].columns
            ]
            if numbers:
                anew[derived.column] = (derived, f"{CLAUSE} in ({', '.join(numbers)})")
        return anew


def hidden_name(name: Qualifier) -> str:
    """What a history leaves out before columns: all but an alias that was given."""
    return name[-1] if len(name) > 1 else TABLE
