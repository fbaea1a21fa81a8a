"""Partial updates and aggregation, a round for the n-th row of every key.

A column that keeps one of its values is a row number, not a value: -1 is null. Only aggregates hold values between
rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import KeyMerge
from alluvium.portable.merging.aggregates import Aggregate, aggregate_of

_UPDATE_BEFORE, _DELETE = 1, 3
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Rounds:
    """A merge of sorted rows.

    Args:
        table: Sorted by key and age, in one chunk.
        kinds: Of each row.
        merge: How.
        names: Columns of the result.
    """

    def __init__(self, table: pa.Table, kinds: npt.NDArray[np.int8], merge: KeyMerge, names: Sequence[str]) -> None:
        self._table = table
        self._kinds = kinds
        self._merge = merge
        self._names = list(names)
        rules = {rule.column: rule for rule in merge.rules}
        self._rules = [rules[name] for name in table.column_names if name in rules]
        self._valid = {r.column: _flags(table[r.column].is_valid()) for r in self._rules}
        self._groups = sorted({rule.sequence for rule in self._rules if rule.sequence})
        self._ranks = {group: _ranks(table, group) for group in self._groups}
        self._aggregates: dict[str, Aggregate] = {}
        for rule in self._rules:
            made = aggregate_of(rule, table[rule.column].combine_chunks())
            if made is not None:
                self._aggregates[rule.column] = made

    def run(self, starts: Indices, lengths: Indices) -> pa.Table:
        """One row a key, those that end deleted left out; the keys with the most rows come first."""
        count = len(starts)
        self._row = {rule.column: np.full(count, -1, np.int64) for rule in self._rules}
        self._rank = {group: np.full(count, -1, np.int64) for group in self._groups}
        self._deleted = np.zeros(count, bool)
        self._inserted = np.zeros(count, bool)
        self._filled = np.zeros(count, bool)
        for aggregate in self._aggregates.values():
            aggregate.begin(count)
        for number in range(int(lengths[0])):
            active = int(np.searchsorted(-lengths, -number, side="left"))
            self._round(starts[:active] + number, active)
        return self._result(starts, lengths)

    def _round(self, rows: Indices, active: int) -> None:
        kinds = self._kinds[rows]
        retracts = (kinds == _UPDATE_BEFORE) | (kinds == _DELETE)
        self._deleted[:active] = False
        if self._merge.engine == "aggregation":
            self._aggregate(rows, retracts, kinds == _DELETE)
            return
        first = retracts & ~self._filled[:active]
        if first.any():
            # A key that begins with a row taken back begins with its values, be deletions ignored or not:
            # `PartialUpdateMergeFunction.initRow`.
            self._fill(rows, first)
        self._filled[:active] = True
        if retracts.any() and not self._merge.ignores_delete:
            self._retract(rows, retracts, kinds == _DELETE)
        self._update(rows, ~retracts)

    def _aggregate(self, rows: Indices, retracts: Flags, deletes: Flags) -> None:
        removed = deletes if self._merge.removes_on_delete else np.zeros(len(rows), bool)
        if removed.any():
            self._restart(rows, removed)
        for aggregate in self._aggregates.values():
            aggregate.add(rows, ~retracts)
            if (retracts & ~removed).any():
                aggregate.retract(rows, retracts & ~removed)
        self._inserted[: len(rows)] = True

    def _update(self, rows: Indices, inserts: Flags) -> None:
        newer = {group: self._is_newer(group, rows) & inserts for group in self._groups}
        for rule in self._rules:
            aggregate = self._aggregates.get(rule.column)
            if not rule.sequence:
                if aggregate is not None:
                    aggregate.add(rows, inserts)
                else:
                    self._set(rule.column, rows, inserts & self._valid[rule.column][rows])
            elif aggregate is not None:
                older = inserts & (self._ranks[rule.sequence][rows] >= 0) & ~newer[rule.sequence]
                aggregate.add(rows, newer[rule.sequence])
                if older.any():
                    # "group columns may have an aggregate (older input is merged reversed)"
                    aggregate.add_reversed(rows, older)
            else:
                self._set(rule.column, rows, newer[rule.sequence])
        for group, flags in newer.items():
            self._raise_rank(group, rows, flags)
        self._inserted[: len(rows)] |= inserts

    def _retract(self, rows: Indices, retracts: Flags, deletes: Flags) -> None:
        if self._groups:
            self._retract_groups(rows, retracts, deletes)
        elif self._merge.removes_on_delete:
            self._restart(rows, deletes)
        else:
            raise UnsupportedFeature(
                "rows are taken back in a table of partial updates that does not say what that means",
                code="unsupported-retract",
                features=("partial-update",),
                hint="set ignore-delete, partial-update.remove-record-on-delete or sequence groups",
            )

    def _retract_groups(self, rows: Indices, retracts: Flags, deletes: Flags) -> None:
        newer = {group: self._is_newer(group, rows) & retracts for group in self._groups}
        removed = np.zeros(len(rows), bool)
        for group in self._groups:
            if not set(group).isdisjoint(self._merge.removing_groups):
                removed |= newer[group] & deletes
        if removed.any():
            self._restart(rows, removed)
        for rule in self._rules:
            if not rule.sequence:
                continue
            flags = newer[rule.sequence] & ~removed
            aggregate = self._aggregates.get(rule.column)
            if rule.column in rule.sequence:
                self._set(rule.column, rows, flags)
            elif aggregate is None:
                self._set(rule.column, np.full(len(rows), -1, np.int64), flags)
            else:
                aggregate.retract(rows, retracts & (self._ranks[rule.sequence][rows] >= 0) & ~removed)
        for group, flags in newer.items():
            self._raise_rank(group, rows, flags & ~removed)

    def _is_newer(self, group: tuple[str, ...], rows: Indices) -> Flags:
        """Rows whose group is at least as new as what the key has; a group that is null as a whole is skipped."""
        ranks = self._ranks[group][rows]
        return (ranks >= 0) & (ranks >= self._rank[group][: len(rows)])

    def _raise_rank(self, group: tuple[str, ...], rows: Indices, flags: Flags) -> None:
        self._rank[group][: len(rows)][flags] = self._ranks[group][rows][flags]

    def _set(self, column: str, rows: Indices, flags: Flags) -> None:
        self._row[column][: len(rows)][flags] = rows[flags]

    def _restart(self, rows: Indices, flags: Flags) -> None:
        """Keys whose row is removed begin anew, with what the deletion says: Java's merge functions do so."""
        self._deleted[: len(rows)] |= flags
        self._fill(rows, flags)

    def _fill(self, rows: Indices, flags: Flags) -> None:
        for column, state in self._row.items():
            state[: len(rows)][flags] = np.where(self._valid[column][rows], rows, -1)[flags]
        for group in self._groups:
            self._raise_rank(group, rows, flags)
        for aggregate in self._aggregates.values():
            aggregate.put(rows, flags)

    def _result(self, starts: Indices, lengths: Indices) -> pa.Table:
        is_deleted = self._deleted | ~self._inserted
        is_shown = np.ones(len(is_deleted), bool) if self._merge.keeps_deletes else ~is_deleted
        places = pa.array(np.flatnonzero(is_shown))
        last = (starts + lengths - 1)[is_shown]
        arrays = []
        for name in self._names:
            values = self._table[name].combine_chunks()
            if name in self._aggregates:
                arrays.append(self._aggregates[name].result().take(places))
            elif name in self._row:
                rows = self._row[name][is_shown]
                arrays.append(values.take(pa.array(rows, mask=rows < 0)))
            elif name == self._merge.kind:
                arrays.append(pa.array(np.where(is_deleted[is_shown], _DELETE, 0), pa.int8()))
            else:
                # Keys and hidden columns: the newest row's.
                arrays.append(values.take(pa.array(last)))
        return pa.Table.from_arrays(arrays, schema=pa.schema([self._table.schema.field(n) for n in self._names]))


def _flags(values: pa.ChunkedArray) -> Flags:
    return np.asarray(values.to_numpy(), bool)


def _ranks(table: pa.Table, group: tuple[str, ...]) -> Indices:
    """Ranks of the values of some columns together, null the smallest; -1 where all of them are null."""
    picked = table.select(list(group))
    order = sort_nulls_first(picked, [(name, "ascending") for name in group])
    placed = picked.take(order)
    begins = np.zeros(table.num_rows, bool)
    all_null = np.ones(table.num_rows, bool)
    for name in group:
        values = placed[name].combine_chunks()
        here, before = values.slice(1), values.slice(0, max(len(values) - 1, 0))
        unequal = pc.or_(pc.fill_null(pc.not_equal(here, before), False), pc.xor(here.is_null(), before.is_null()))
        begins[1:] |= np.asarray(unequal.to_numpy(zero_copy_only=False), bool)
        all_null &= ~_flags(table[name].is_valid())
    ranks = np.empty(table.num_rows, np.int64)
    ranks[order.to_numpy()] = np.cumsum(begins)
    return np.where(all_null, -1, ranks)


def sort_nulls_first(table: pa.Table, order: Sequence[tuple[str, str]]) -> pa.Array:
    """The order of rows by some columns, null before all values of a column in either direction; stable."""
    keys: list[tuple[str, str]] = []
    columns: dict[str, pa.ChunkedArray] = {}
    for number, (name, direction) in enumerate(order):
        values = table[name]
        if values.null_count:
            columns[f"v{number}"] = values.is_valid()
            keys.append((f"v{number}", "ascending"))
        columns[f"c{number}"] = values
        keys.append((f"c{number}", direction))
    return pc.sort_indices(pa.table(columns), sort_keys=keys)
