"""Aggregate functions of merges, a round at a time for many keys.

An aggregate holds one accumulator a key. `add`, `retract` and `put` get flags for the first so many keys.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.plan.aggregates import takes
from alluvium.plan.scan import MergeRule
from alluvium.portable.merging.collections_merged import COLLECTORS, Collected

#: Digits of decimals that Java keeps as whole numbers.
_COMPACT = 18
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_CHOSEN = ("last_value", "last_non_null_value", "first_value", "first_non_null_value", "min", "max", "primary-key")


class Aggregate(Protocol):
    """The accumulators of one column."""

    def begin(self, count: int) -> None:
        """So many keys, all of them empty."""

    def add(self, rows: Indices, flags: Flags) -> None:
        """Takes the rows in whose flag is set."""

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        """As `add`, for rows that are older than what is there."""

    def retract(self, rows: Indices, flags: Flags) -> None:
        """Takes rows back."""

    def put(self, rows: Indices, flags: Flags) -> None:
        """Sets accumulators to what the rows hold, past the function: whether it has seen a row stays as it was."""

    def result(self) -> pa.Array:
        """The accumulators."""


def aggregate_of(rule: MergeRule, values: pa.Array) -> Aggregate | None:
    """The aggregate of a column; None where the column keeps one of its values and no function sees it.

    Args:
        rule: Of the column.
        values: The column, all rows.

    Raises:
        UnsupportedFeature: There is no such function, or not for this type.
        CorruptTable: `"invalid-options"`: the options of the function make no sense.
    """
    if rule.function in ("last", "last_non_null"):
        return None
    kind = values.type
    if not takes(rule.function, kind):
        raise UnsupportedFeature(
            f"the aggregate function {rule.function!r} of values of type {kind}",
            code="unsupported-aggregate",
            column=rule.column,
            features=(rule.function,),
        )
    if rule.function in _CHOSEN:
        return Chosen(rule, values)
    if rule.function in COLLECTORS:
        return Collected(rule, values)
    return Decimals(rule, values) if pa.types.is_decimal(kind) else Numbers(rule, values)


def no_retract(rule: MergeRule) -> UnsupportedFeature:
    """What a function that takes nothing back raises."""
    return UnsupportedFeature(
        f"the aggregate function {rule.function!r} cannot take a row back",
        code="unsupported-retract",
        column=rule.column,
        features=(rule.function,),
        hint=f"set fields.{rule.column}.ignore-retract to leave such rows aside",
    )


class Chosen:
    """Functions whose value is always that of a row: accumulators are row numbers."""

    def __init__(self, rule: MergeRule, values: pa.Array) -> None:
        self._rule = rule
        self._values = values
        self._valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)
        self._ranks = self._ranked() if rule.function in ("min", "max") else np.zeros(0, np.int64)

    def _ranked(self) -> Indices:
        found = pc.rank(self._values, sort_keys="ascending", tiebreaker="dense")
        ranks = np.asarray(found.to_numpy(), np.int64)
        if not pa.types.is_floating(self._values.type):
            return ranks
        # As Java's `Double.compare`: -0.0 is less than 0.0.
        values = np.asarray(pc.fill_null(self._values, 1).to_numpy(zero_copy_only=False))
        is_negative_zero = (values == 0) & np.signbit(values)
        return np.asarray(2 * ranks - is_negative_zero, np.int64)

    def begin(self, count: int) -> None:
        self._row = np.full(count, -1, np.int64)
        self._seen = np.zeros(count, bool)

    def add(self, rows: Indices, flags: Flags) -> None:
        function = self._rule.function
        size = len(rows)
        row, seen, valid = self._row[:size], self._seen[:size], self._valid[rows]
        if function in ("last_value", "primary-key"):
            chosen = flags
        elif function == "last_non_null_value":
            chosen = flags & valid
        elif function == "first_value":
            chosen = flags & ~seen
            seen |= flags
        elif function == "first_non_null_value":
            chosen = flags & valid & ~seen
            seen |= flags & valid
        else:
            old = self._ranks[np.maximum(row, 0)]
            new = self._ranks[rows]
            # The accumulator stays where both are equal.
            better = new < old if function == "min" else new > old
            chosen = flags & valid & ((row < 0) | better)
        row[chosen] = rows[chosen]

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        function = self._rule.function
        if function in ("min", "max"):
            self.add(rows, flags)
            return
        row, valid = self._row[: len(rows)], self._valid[rows]
        if function == "last_non_null_value":
            have = (row >= 0) & self._valid[np.maximum(row, 0)]
            chosen = flags & valid & ~have
        elif function in ("first_value", "first_non_null_value"):
            # `aggReversed` calls `agg` with its arguments exchanged: the first time it returns what it takes for the
            # input, which is the accumulator; from then on what it takes for the accumulator, which is the row.
            seen = self._seen[: len(rows)]
            have = (row >= 0) & self._valid[np.maximum(row, 0)]
            begins = flags & ~seen & (have if function == "first_non_null_value" else True)
            seen |= begins
            chosen = flags & ~begins
        else:
            return
        row[chosen] = rows[chosen]

    def retract(self, rows: Indices, flags: Flags) -> None:
        if self._rule.ignores_retract or not flags.any():
            return
        function = self._rule.function
        row = self._row[: len(rows)]
        if function == "primary-key":
            row[flags] = rows[flags]
        elif function == "last_value":
            row[flags] = -1
        elif function == "last_non_null_value":
            row[flags & self._valid[rows]] = -1
        else:
            raise no_retract(self._rule)

    def put(self, rows: Indices, flags: Flags) -> None:
        self._row[: len(rows)][flags] = np.where(self._valid[rows], rows, -1)[flags]

    def result(self) -> pa.Array:
        return self._values.take(pa.array(self._row, mask=self._row < 0))


class Numbers:
    """Sums and products of integers, which wrap as Java's, and of floating point; conjunctions of booleans."""

    def __init__(self, rule: MergeRule, values: pa.Array) -> None:
        self._rule = rule
        self._kind = values.type
        self._valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)
        zero = pa.scalar(False if pa.types.is_boolean(values.type) else 0, values.type)
        self._values = np.asarray(pc.fill_null(values, zero).to_numpy(zero_copy_only=False))

    def begin(self, count: int) -> None:
        self._sum = np.zeros(count, self._values.dtype)
        self._have = np.zeros(count, bool)

    def add(self, rows: Indices, flags: Flags) -> None:
        size = len(rows)
        new, have, total = self._values[rows], self._have[:size], self._sum[:size]
        taken = flags & self._valid[rows]
        both = taken & have
        with np.errstate(over="ignore", invalid="ignore"):
            joined = {
                "sum": lambda: total + new,
                "product": lambda: total * new,
                "bool_and": lambda: total & new,
                "bool_or": lambda: total | new,
            }[self._rule.function]()
        total[both] = joined[both]
        only = taken & ~have
        total[only] = new[only]
        have |= taken

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        self.add(rows, flags)

    def retract(self, rows: Indices, flags: Flags) -> None:
        if self._rule.ignores_retract or not flags.any():
            return
        size = len(rows)
        new, have, total = self._values[rows], self._have[:size], self._sum[:size]
        taken = flags & self._valid[rows]
        both, only = taken & have, taken & ~have
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self._rule.function == "sum":
                total[both] = (total - new)[both]
                total[only] = (-new)[only]
            elif self._rule.function == "product":
                self._ensure_no_zero(new[both])
                total[both] = _quotient(total[both], new[both])
                taken = both
            else:
                raise no_retract(self._rule)
        have |= taken

    def _ensure_no_zero(self, divisors: npt.NDArray[Any]) -> None:
        if self._values.dtype.kind == "i" and (divisors == 0).any():
            raise UnsupportedFeature(
                "a product takes a zero back",
                code="unsupported-retract",
                column=self._rule.column,
                features=("product",),
            )

    def put(self, rows: Indices, flags: Flags) -> None:
        self._sum[: len(rows)][flags] = self._values[rows][flags]
        self._have[: len(rows)][flags] = self._valid[rows][flags]

    def result(self) -> pa.Array:
        return pa.array(self._sum, mask=~self._have).cast(self._kind)


def _quotient(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if left.dtype.kind != "i":
        return np.asarray(left / right)
    # Towards zero, as Java divides.
    magnitude = np.abs(left.astype(object)) // np.abs(right.astype(object))
    sign = np.sign(left.astype(object)) * np.sign(right.astype(object))
    return np.asarray((magnitude * sign).astype(left.dtype))


def _choose(condition: pa.BooleanArray, yes: pa.Array, no: pa.Array) -> pa.Array:
    """`if_else` that looks at no digit: sums may have more than their type."""
    places = np.asarray(condition.to_numpy(zero_copy_only=False), bool)
    rows = np.arange(len(places)) + np.where(places, 0, len(places))
    return pa.concat_arrays([yes, no]).take(pa.array(rows))


class Decimals:
    """Sums and products of decimals, in the column's precision and scale; what does not fit is null."""

    def __init__(self, rule: MergeRule, values: pa.Array) -> None:
        self._rule = rule
        self._kind = values.type
        self._values = values

    def begin(self, count: int) -> None:
        self._state = pa.nulls(count, self._kind)

    def add(self, rows: Indices, flags: Flags) -> None:
        function = pc.add if self._rule.function == "sum" else pc.multiply
        self._join(rows, flags, function, negated=False)

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        self.add(rows, flags)

    def retract(self, rows: Indices, flags: Flags) -> None:
        if self._rule.ignores_retract or not flags.any():
            return
        if self._rule.function != "sum":
            raise no_retract(self._rule)
        self._join(rows, flags, pc.subtract, negated=True)

    def _join(self, rows: Indices, flags: Flags, function: object, negated: bool) -> None:
        assert callable(function)
        size = len(rows)
        old, rest = self._state.slice(0, size), self._state.slice(size)
        new = self._values.take(pa.array(rows))
        product = self._rule.function == "product"
        # Arrow's results have a digit more than both operands together.
        half = pa.decimal256(min(self._kind.precision, 37) if product else 38, self._kind.scale)
        wide = pa.decimal256(76, self._kind.scale * (2 if product else 1))
        exact = function(old.cast(half), new.cast(half)).cast(wide)
        joined = self._compact(exact) if not product and self._kind.precision <= _COMPACT else self._fitting(exact)
        alone = pc.negate(new.cast(half)).cast(self._kind) if negated else new
        both = pc.and_(old.is_valid(), new.is_valid())
        made = _choose(both, joined, _choose(new.is_valid(), alone, old))
        self._state = pa.concat_arrays([_choose(pa.array(flags), made, old), rest])

    def _compact(self, wide: pa.Array) -> pa.Array:
        """Java adds decimals of at most 18 digits as whole numbers, and does not look whether the sum fits."""
        whole = pa.concat_arrays([wide, wide.slice(0, 0)])
        numbers = np.frombuffer(whole.buffers()[1], np.int64)[: 4 * len(whole) : 4]
        sixteen = np.stack([numbers, numbers >> 63], axis=1)
        valid = np.packbits(np.asarray(whole.is_valid().to_numpy(zero_copy_only=False), bool), bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(np.ascontiguousarray(sixteen))]
        return pa.Array.from_buffers(self._kind, len(whole), buffers)

    def _fitting(self, wide: pa.Array) -> pa.Array:
        scale, digits = self._kind.scale, self._kind.precision
        rounded = pc.round(wide, scale, "half_towards_infinity").cast(pa.decimal256(76, scale))
        whole = pc.abs(rounded).cast(pa.string())
        digits_of = pc.utf8_length(pc.utf8_ltrim(pc.replace_substring(whole, ".", ""), "0"))
        kept = pc.if_else(pc.less_equal(digits_of, digits), rounded, pa.scalar(None, rounded.type))
        return kept.cast(self._kind)

    def put(self, rows: Indices, flags: Flags) -> None:
        old, rest = self._state.slice(0, len(rows)), self._state.slice(len(rows))
        self._state = pa.concat_arrays([_choose(pa.array(flags), self._values.take(pa.array(rows)), old), rest])

    def result(self) -> pa.Array:
        return self._state
