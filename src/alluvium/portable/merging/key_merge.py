"""Merging rows by key with Arrow and numpy: rows are sorted by key and age once, then all keys go at the same time.

`deduplicate`, `first-row` and `patch` choose a row of each key (or of each column of a key) and are done in one step.
The others go in rounds: the first round takes the oldest row of every key, the second the next, and so on. A key has a
row a sorted run at most, so there are few rounds, and each is a handful of kernels over all keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.plan.scan import KeyMerge
from alluvium.portable.merging.merge_rounds import Rounds, sort_nulls_first

#: Column of the tables to merge: the number of the part that the row is of.
PART = "\x00part"
_RETRACTS = (1, 3)
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Keys:
    """Sorted rows by key: where each key's rows begin, and how many there are."""

    starts: Indices
    lengths: Indices

    @property
    def last(self) -> Indices:
        return self.starts + self.lengths - 1


def merge_rows(
    table: pa.Table, merge: KeyMerge, needed: Collection[str], supplied: Mapping[str, Sequence[bool]]
) -> pa.Table:
    """One row a key.

    Args:
        table: Rows of whole groups, with `PART`.
        merge: How.
        needed: Columns of the result.
        supplied: Of each column, which of the parts have it.

    Raises:
        UnsupportedFeature: A row is taken back in a column that cannot take it back.
    """
    if merge.ignores_delete and merge.kind is not None and merge.engine in ("deduplicate", "first-row"):
        table = table.filter(pc.invert(pc.is_in(table[merge.kind], pa.array(_RETRACTS, pa.int8()))))
    table = _sorted(table, merge)
    names = [name for name in table.column_names if name in needed]
    if not table.num_rows:
        return table.select(names)
    keys = _keys(table, (merge.group, *merge.keys))
    lone = _lone(table, keys, merge)
    if merge.level is not None:
        table = _of_newest_level(table, keys, merge.level)
        keys = _keys(table, (merge.group, *merge.keys))
    if merge.engine == "patch":
        return _patched(table, keys, names, supplied)
    if merge.engine == "deduplicate":
        return _chosen(table, keys.last, merge, names)
    if merge.engine == "first-row":
        return _first_inserts(table, keys, merge, names)
    return _in_rounds(table, keys, lone, merge, names)


def _sorted(table: pa.Table, merge: KeyMerge) -> pa.Table:
    """By group and key, then by age: null is the oldest in either direction, and files come in order."""
    order = [(name, "ascending") for name in (merge.group, *merge.keys)]
    ages = [(c.name, "descending" if c.descending else "ascending") for c in merge.order]
    return table.take(sort_nulls_first(table, order + ages)).combine_chunks()


def _lone(table: pa.Table, keys: Keys, merge: KeyMerge) -> Flags:
    """Of each key whether its row stays as it is: the only one of all levels, as `ReducerMergeFunctionWrapper` has it;
    compactions that look keys up say so of each row, `LookupChangelogMergeFunctionWrapper` merging all of them.
    """
    if merge.lone is None:
        return np.asarray(keys.lengths == 1, bool)
    return np.asarray(table[merge.lone].to_numpy()[keys.starts], bool)


def _of_newest_level(table: pa.Table, keys: Keys, level: str) -> pa.Table:
    """Of each key the rows of level 0, and that of the lowest level above: it was merged with those above it."""
    levels = np.asarray(table[level].to_numpy(), np.int64)
    above = np.where(levels > 0, levels, np.iinfo(np.int64).max)
    lowest = np.repeat(np.minimum.reduceat(above, keys.starts), keys.lengths)
    return table.filter(pa.array((levels <= 0) | (levels == lowest))).combine_chunks()


def _keys(table: pa.Table, names: Sequence[str]) -> Keys:
    begins = np.ones(table.num_rows, bool)
    begins[1:] = False
    for name in names:
        begins[1:] |= differs(one_array(table[name]))
    starts = np.flatnonzero(begins)
    return Keys(starts, np.diff(np.append(starts, table.num_rows)))


def one_array(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.array([], values.type)])


def differs(values: pa.Array) -> Flags:
    """Of each value but the first, whether it is another than the one before it; null is equal to null, NaN to NaN."""
    here, before = values.slice(1), values.slice(0, max(len(values) - 1, 0))
    unequal = pc.not_equal(here, before)
    if pa.types.is_floating(values.type):
        unequal = pc.and_not(unequal, pc.and_(pc.is_nan(here), pc.is_nan(before)))
    nulls = pc.xor(here.is_null(), before.is_null())
    both = pc.or_(pc.fill_null(unequal, False), nulls)
    return np.asarray(both.to_numpy(zero_copy_only=False), bool)


def _kinds(table: pa.Table, merge: KeyMerge) -> npt.NDArray[np.int8]:
    if merge.kind is None:
        return np.zeros(table.num_rows, np.int8)
    return np.asarray(pc.fill_null(table[merge.kind], 0).to_numpy(), np.int8)


def _chosen(table: pa.Table, rows: Indices, merge: KeyMerge, names: Sequence[str]) -> pa.Table:
    """These rows, without those that take a row back."""
    if merge.keeps_deletes:
        return table.select(list(names)).take(pa.array(rows))
    kinds = _kinds(table, merge)[rows]
    return table.select(list(names)).take(pa.array(rows[~np.isin(kinds, _RETRACTS)]))


def _first_inserts(table: pa.Table, keys: Keys, merge: KeyMerge, names: Sequence[str]) -> pa.Table:
    inserts = np.flatnonzero(~np.isin(_kinds(table, merge), _RETRACTS))
    key_of = np.repeat(np.arange(len(keys.starts)), keys.lengths)[inserts]
    _, first = np.unique(key_of, return_index=True)
    return table.select(list(names)).take(pa.array(inserts[first]))


def _patched(table: pa.Table, keys: Keys, names: Sequence[str], supplied: Mapping[str, Sequence[bool]]) -> pa.Table:
    """Each column from the last row of a part that has it."""
    parts = table[PART].to_numpy()
    arrays = {}
    for name in names:
        has = np.asarray(supplied[name], bool)[parts]
        rows = last_where(has, keys.starts, keys.last)
        arrays[name] = one_array(table[name]).take(pa.array(rows, mask=rows < 0))
    return pa.table(arrays, schema=pa.schema([table.schema.field(name) for name in names]))


def last_where(flags: Flags, starts: Indices, last: Indices) -> Indices:
    """Of each key the last row whose flag is set; -1: none is."""
    found = np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1))[last]
    return np.where(found >= starts, found, -1)


def _in_rounds(table: pa.Table, keys: Keys, lone: Flags, merge: KeyMerge, names: Sequence[str]) -> pa.Table:
    """Keys whose rows functions merge, and those whose row none of them sees."""
    pieces = [_chosen(table, keys.starts[lone], merge, names)]
    several = ~lone
    if several.any():
        rounds = Rounds(table, _kinds(table, merge), merge, names)
        # The keys with the most rows first: those of a round are the first so many.
        order = np.argsort(-keys.lengths[several], kind="stable")
        pieces.append(rounds.run(keys.starts[several][order], keys.lengths[several][order]))
    return pa.concat_tables(pieces)
