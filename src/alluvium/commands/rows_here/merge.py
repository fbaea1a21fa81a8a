"""MERGE without Spark: the source is in memory, the table comes batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows_here.judged import Judged
from alluvium.commands.rows_here.names import Names
from alluvium.commands.rows_here.new_rows import Values, all_columns, assigned
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.bind import type_of
from alluvium.expr.evaluate import evaluate
from alluvium.expr.tree import Column, Compare, Expression, Literal, column_paths, conjunction, conjuncts, within
from alluvium.plan.changes import ChangeKind
from alluvium.plan.merging import Action, When
from alluvium.portable.shown import shown
from alluvium.schema import types as t
from alluvium.schema.types import Struct

_Places = npt.NDArray[np.int64]
_KINDS = {Action.UPDATE: ChangeKind.UPDATE, Action.DELETE: ChangeKind.DELETE}
#: Types whose smallest and greatest values files are chosen by.
_BOUNDED = (*t.INTEGRAL, t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


@dataclass(frozen=True, slots=True)
class ClauseText:
    """A WHEN clause as it was asked for.

    Attributes:
        when: Which rows.
        action: What becomes of them.
        condition: Which of them, as SQL; None: all.
        values: Column to value, as SQL; None: all columns from the source's columns of the same names.
    """

    when: When
    action: Action
    condition: str | None = None
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Clause:
    """The same, understood."""

    action: Action
    condition: Expression | None
    values: Values | None

    def holds(self, named: pa.Table, time_zone: str) -> npt.NDArray[np.bool_]:
        """For which rows."""
        if self.condition is None:
            return np.ones(named.num_rows, np.bool_)
        found = pc.fill_null(evaluate(self.condition, named, time_zone), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


@dataclass
class Merging:
    """Implements `Judge` for a merge.

    Attributes:
        schema: Of the table.
        source: The rows that come, under the types of a table.
        columns_of_source: Their columns.
        table_name: Of the table in expressions.
        source_name: Of the source.
        condition: Which of them meet which rows of the table, as SQL.
        clauses: In order.
        time_zone: In which expressions are evaluated.
    """

    schema: Struct
    source: pa.Table
    columns_of_source: Struct
    table_name: str
    source_name: str
    condition: str
    clauses: Sequence[ClauseText]
    time_zone: str
    _met: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        table, source = {self.table_name: self.schema}, {self.source_name: self.columns_of_source}
        self._both = Names({**table, **source}, self.time_zone)
        names = {When.MATCHED: self._both, When.NOT_MATCHED: Names(source, self.time_zone),
                 When.NOT_MATCHED_BY_SOURCE: Names(table, self.time_zone)}  # fmt: skip
        self._on = self._both.condition(self.condition, "the condition of MERGE")
        self._clauses = {
            when: [self._understood(c, names[when]) for c in self.clauses if c.when is when] for when in When
        }
        self._keys = self._find_keys()
        self._met = np.zeros(self.source.num_rows, np.bool_)
        named = self._both.rows(**{self.source_name: self.source})
        columns = {f"k{n}": evaluate(own, named, self.time_zone) for n, (_, own) in enumerate(self._keys)}
        self._lookup = pa.table({**columns, "source": pa.array(np.arange(self.source.num_rows))})

    # -- what is asked ------------------------------------------------------------------------------------------------

    def _understood(self, clause: ClauseText, names: Names) -> _Clause:
        condition = None
        if clause.condition is not None:
            condition = names.condition(clause.condition, f"the condition of WHEN {clause.when.value.upper()}")
        if clause.action is Action.DELETE:
            return _Clause(clause.action, condition, None)
        is_insert = clause.action is Action.INSERT
        given = clause.values
        if given is None:
            given = all_columns(self.schema, self.columns_of_source, self.source_name)
        values = assigned(given, self.schema, names, self.table_name, is_insert=is_insert)
        return _Clause(clause.action, condition, Values(self.schema, values, self.time_zone))

    def _find_keys(self) -> list[tuple[Expression, Expression]]:
        """Equalities between something of the table and something of the source.

        Raises:
            UnsupportedFeature: There are none: each row would have to be compared with each (`"needs-spark"`).
        """
        found = []
        for term in conjuncts(self._on):
            if not isinstance(term, Compare) or term.op != "=" or type_of(term.left) in t.FLOATING:
                continue
            for own, other in ((term.left, term.right), (term.right, term.left)):
                if self._is_of(own, self.table_name) and self._is_of(other, self.source_name):
                    found.append((own, other))
                    break
        if not found:
            raise UnsupportedFeature(
                f"the condition of MERGE compares no column of the table with one of the source by =: {self.condition}",
                code="needs-spark",
                hint="use DeltaTable.forPath(spark, path)",
            )
        return found

    def _is_of(self, expression: Expression, name: str) -> bool:
        paths = column_paths(expression)
        return bool(paths) and all(path[0] == name for path in paths)

    # -- Judge --------------------------------------------------------------------------------------------------------

    @property
    def where(self) -> Expression | None:
        """The condition's own terms over the table, and the bounds of the source's keys."""
        if self._clauses[When.NOT_MATCHED_BY_SOURCE]:
            return None
        own = [term for term in conjuncts(self._on) if self._is_of(term, self.table_name)]
        bounds = [b for n, (key, _) in enumerate(self._keys) for b in self._bounds(key, self._lookup[f"k{n}"])]
        found = conjunction((*own, *bounds))
        return None if found is None else within(found, self.table_name)

    def _bounds(self, key: Expression, values: pa.ChunkedArray) -> list[Expression]:
        kind = type_of(key)
        if not isinstance(key, Column) or key.char_length is not None or kind not in _BOUNDED:
            return []
        ends = pc.min_max(values)
        try:
            low, high = ends["min"].as_py(), ends["max"].as_py()
        except (ValueError, OverflowError):  # years that Python has no times of
            return []
        # Without a value nothing can match: no row is null and equal to something.
        return [Compare(">=", key, Literal(low, kind)), Compare("<=", key, Literal(high, kind))]

    @property
    def columns(self) -> Sequence[str]:
        own = [c.condition for when in (When.MATCHED, When.NOT_MATCHED_BY_SOURCE) for c in self._clauses[when]]
        paths = [path for e in (self._on, *own) if e is not None for path in column_paths(e)]
        return sorted({path[1] for path in paths if path[0] == self.table_name})

    @property
    def makes_rows(self) -> bool:
        return any(c.action is Action.UPDATE for c in self.clauses)

    def judge(self, rows: pa.Table) -> Judged:
        kinds = np.full(rows.num_rows, int(ChangeKind.COPY), np.int8)
        changed: list[tuple[_Places, pa.Table]] = []
        at, by = self._pairs(rows)
        self._met[by] = True
        own, other = rows.take(pa.array(at)), self.source.take(pa.array(by))
        self._ensure_single(at, own)
        self._apply(self._clauses[When.MATCHED], at, own, {self.source_name: other}, kinds, changed)
        lonely = np.ones(rows.num_rows, np.bool_)
        lonely[at] = False
        rest = np.flatnonzero(lonely)
        self._apply(self._clauses[When.NOT_MATCHED_BY_SOURCE], rest, rows.take(pa.array(rest)), {}, kinds, changed)
        return Judged(pa.array(kinds), _in_order(changed), pa.array(lonely))

    def inserted(self) -> Sequence[pa.Table]:
        rows = self.source.filter(pa.array(~self._met))
        names = Names({self.source_name: self.columns_of_source}, self.time_zone)
        found, named = [], names.rows(**{self.source_name: rows})
        open_ = np.ones(rows.num_rows, np.bool_)
        for clause in self._clauses[When.NOT_MATCHED]:
            chosen = np.zeros(rows.num_rows, np.bool_)
            chosen[open_] = clause.holds(named.filter(pa.array(open_)), self.time_zone)
            open_ &= ~chosen
            assert clause.values is not None, "an insert has values"
            if chosen.any():
                found.append(clause.values.insert(named.filter(pa.array(chosen))))
        return found

    def _pairs(self, rows: pa.Table) -> tuple[_Places, _Places]:
        """Rows of the table and of the source that meet: their places."""
        named = self._both.rows(**{self.table_name: rows})
        columns = {f"k{n}": evaluate(own, named, self.time_zone) for n, (own, _) in enumerate(self._keys)}
        left = pa.table({**columns, "table": pa.array(np.arange(rows.num_rows))})
        joined = left.join(self._lookup, list(columns), join_type="inner", use_threads=False)
        at, by = joined["table"].to_numpy(), joined["source"].to_numpy()
        both = self._both.rows(
            **{self.table_name: rows.take(pa.array(at)), self.source_name: self.source.take(pa.array(by))}
        )
        holds = np.asarray(pc.fill_null(evaluate(self._on, both, self.time_zone), False).to_numpy(zero_copy_only=False))
        order = np.argsort(at[holds], kind="stable")
        return at[holds][order], by[holds][order]

    def _apply(
        self,
        clauses: Sequence[_Clause],
        places: _Places,
        rows: pa.Table,
        others: Mapping[str, pa.Table],
        kinds: npt.NDArray[np.int8],
        changed: list[tuple[_Places, pa.Table]],
    ) -> None:
        """Has each row taken by the first clause that holds."""
        named = self._both.rows(**{self.table_name: rows, **others})
        taken = np.zeros(len(places), np.bool_)
        for clause in clauses:
            # No row is asked that another clause has taken: its values may be none that this one can compute.
            chosen = np.zeros(len(places), np.bool_)
            chosen[~taken] = clause.holds(named.filter(pa.array(~taken)), self.time_zone)
            taken |= chosen
            kinds[places[chosen]] = int(_KINDS[clause.action])
            if clause.values is not None and set(self.schema.names) <= set(rows.column_names) and chosen.any():
                mask = pa.array(chosen)
                before = rows.select(self.schema.names).filter(mask)
                changed.append((places[chosen], clause.values.update(before, named.filter(mask))))

    def _ensure_single(self, at: _Places, rows: pa.Table) -> None:
        """A row may have several matches only where all of them come to the same: it goes.

        Whether a clause takes them is not asked, as delta-spark does not ask it.
        """
        matched = self._clauses[When.MATCHED]
        is_plain = len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].condition is None
        if not matched or is_plain:
            return
        several = np.flatnonzero(np.bincount(at) > 1) if len(at) else np.array([], np.int64)
        if len(several):
            place = int(np.flatnonzero(at == several[0])[0])
            row = {name: shown(rows[name][place]) for name in self.columns}
            raise InvalidRequest(
                f"several rows of the source match one row of the table, with {_text(row)}",
                code="multiple-matches",
                hint="make the source's keys unique first",
            )


def _text(row: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} = {'null' if value is None else value}" for name, value in row.items())[:300]


def _in_order(changed: Sequence[tuple[_Places, pa.Table]]) -> pa.Table | None:
    """Changed rows in the order of the places that they were in.

    Clauses may leave different columns to the table: what one of them has computed anew, the other has set.
    """
    if not changed:
        return None
    names = {tuple(rows.column_names) for _, rows in changed}
    if len(names) > 1:
        raise UnsupportedFeature(
            "clauses that set a generated column beside others that do not need Spark",
            code="needs-spark",
            hint="use DeltaTable.forPath(spark, path)",
        )
    order = np.argsort(np.concatenate([places for places, _ in changed]), kind="stable")
    return pa.concat_tables([rows for _, rows in changed]).take(pa.array(order))
