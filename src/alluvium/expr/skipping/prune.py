"""Data skipping: a predicate on what is known of each file, for all files at once.

Each node becomes three masks over the files: some row may make it true, some row false, some row null. NOT swaps the
first two, so it needs no rewriting of what is below it. Unknown is true in all three.

An operand of a comparison becomes the interval that its values lie in. For an expression over partition columns
alone the interval is one point, computed by `evaluate`.

Two questions, two types. `prune` and `decide` say where a row *may* be: enough to leave files out of a read, whose
rows are asked again. `expr.skipping.whole.decide_whole` says what *is*, from values alone: whoever removes files asks
that, and nothing else.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import ZERO, repeated
from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.bind import type_of
from alluvium.expr.columnar import Datum, cast_datum, literal_scalar
from alluvium.expr.evaluate import Rows, conform, evaluate_datum, zone_of
from alluvium.expr.functions import FUNCTIONS
from alluvium.expr.literals import UTC, NotUnderstood
from alluvium.expr.patterns import like_prefix
from alluvium.expr.skipping.intervals import (
    ANYTHING,
    Interval,
    Mask,
    Outcome,
    always,
    both,
    compared,
    either,
    mask_of,
    negated,
    open_where,
    point,
    unless_unknown,
)
from alluvium.expr.skipping.monotone import (
    after,
    before,
    disputed_by,
    is_disputed,
    is_fallible,
    is_fallible_cast,
    keeps_order,
    local_parts,
    monotone,
    rises_within,
)
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import pad_upper_bounds
from alluvium.schema.types import DataType

#: The ranges that a long IN list is gathered into.
MAX_IN_RANGES = 64
#: Floating columns of a predicate that are asked with NaN and without; of more the bounds tell nothing.
_MAX_FLOATING = 3


class FileStatistics(Protocol):
    """What is known of the files, one value a file; paths are logical names, in the spelling of the schema."""

    @property
    def num_files(self) -> int: ...

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        """The value of all rows of the file (null: SQL null), typed; None if it is not a partition column."""

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        """A typed bound: no value that is not null is less, in Spark's order. Null: unknown; None: no statistics."""

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        """As `lower`: no value is greater, but for NaN, which some writers leave out of their bounds. Where both bounds
        are NaN, every value is.
        """

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        """How many rows are null there (int64; null: unknown)."""

    def num_rows(self) -> pa.Array | None:
        """How many rows the file has (int64; null: unknown), those that are deleted by a mask included."""


def prune(predicate: tree.Expression, files: FileStatistics, time_zone: str = "UTC") -> pa.Array:
    """Which files to keep: false only where no row of the file can make the predicate true.

    Args:
        predicate: A bound predicate.
        files: What is known of the files.
        time_zone: Session time zone, for casts between dates and timestamps.

    Returns:
        A boolean array without nulls, one value a file.

    Raises:
        InvalidRequest: No such time zone.
    """
    return decide(predicate, files, time_zone).keep


@dataclass(frozen=True, slots=True)
class Decision:
    """What bounds say of a predicate, one value a file, without nulls; as far as they are right.

    Attributes:
        keep: False only where no row of the file can make it true.
        certain: True only where every row makes it true.
    """

    keep: pa.Array
    certain: pa.Array


def decide(predicate: tree.Expression, files: FileStatistics, time_zone: str = "UTC") -> Decision:
    """What a predicate is for all rows of each file; arguments and errors as of `prune`."""
    zone = parse_zone(time_zone)
    floating = sorted(
        {n.path for n in tree.walk(predicate) if isinstance(n, tree.Column) and n.type in t.FLOATING}
        - {n.path for n in tree.walk(predicate) if isinstance(n, tree.Column) and files.exact(n.path) is not None}
    )
    # Bounds tell of numbers. A row may have NaN beside them, in each of the columns: each case is asked by itself.
    without_bounds = frozenset(floating[_MAX_FLOATING:])
    cases = [
        frozenset(chosen)
        for size in range(min(len(floating), _MAX_FLOATING) + 1)
        for chosen in itertools.combinations(floating[:_MAX_FLOATING], size)
    ]
    found = [_Pruner(files, zone, nan, without_bounds).outcome(predicate) for nan in cases]
    keep: Mask = False
    not_certain: Mask = False
    for outcome in found:
        keep = either(keep, outcome.may_be_true)
        not_certain = either(not_certain, either(outcome.may_be_false, outcome.may_be_null))
    masks = (repeated(m, files.num_files) if isinstance(m, bool) else m for m in (keep, negated(not_certain)))
    return Decision(*masks)


@dataclass(frozen=True, slots=True)
class _Pruner:
    """One case: the floating columns of `nan` are NaN, those of `unbounded` anything, the others numbers or null."""

    files: FileStatistics
    zone: dt.tzinfo
    nan: frozenset[tuple[str, ...]]
    unbounded: frozenset[tuple[str, ...]]

    def outcome(self, node: tree.Expression) -> Outcome:
        if isinstance(node, tree.Unknown):
            return ANYTHING
        if isinstance(node, tree.And):
            a, b = self.outcome(node.left), self.outcome(node.right)
            either_null = either(a.may_be_null, b.may_be_null)
            return Outcome(both(a.may_be_true, b.may_be_true), either(a.may_be_false, b.may_be_false), either_null)
        if isinstance(node, tree.Or):
            a, b = self.outcome(node.left), self.outcome(node.right)
            # A true side makes it true whatever the other is.
            null = both(either(a.may_be_null, b.may_be_null), both(negated(always(a)), negated(always(b))))
            return Outcome(either(a.may_be_true, b.may_be_true), both(a.may_be_false, b.may_be_false), null)
        if isinstance(node, tree.Not):
            child = self.outcome(node.child)
            return Outcome(child.may_be_false, child.may_be_true, child.may_be_null)
        try:
            exact = self.exact(node)
            if exact is not None:
                open_to = self.disputed(node)
                each = (mask_of(exact, False), mask_of(pc.invert(exact), False), mask_of(pc.is_null(exact), False))
                return Outcome(*(either(mask, open_to) for mask in each))
            found = self.leaf(node)
            # Writers differ on NaN: bounds of floats keep files, but prove nothing of all their rows.
            doubtful = any(isinstance(n, tree.Column) and n.type in t.FLOATING for n in tree.walk(node))
            is_null_test = isinstance(node, tree.IsNull) and isinstance(node.child, tree.Column)
            return replace(found, may_be_null=True) if doubtful and not is_null_test else found
        except (InvalidRequest, NotUnderstood, pa.ArrowInvalid):
            # What fails here (an overflow at a bound, a function for Spark) is the engine's to judge, row by row.
            return ANYTHING

    def exact(self, node: tree.Expression) -> Datum | None:
        """The value for all rows of each file, where the node names partition columns only."""
        values: dict[tuple[str, ...], pa.Array] = {}
        for part in tree.walk(node):
            if isinstance(part, tree.Unknown):
                return None
            if isinstance(part, tree.Column):
                value = self.files.exact(part.path)
                if value is None:
                    return None
                values[part.path] = value
        return evaluate_datum(node, Rows(self.files.num_files, values.__getitem__, self.zone))

    def disputed(self, node: tree.Expression) -> Mask:
        """Whether the value that `exact` gives goes by local times of which an engine may say something else."""
        found: Mask = False
        for part in local_parts(node, self.zone):
            instants = self.exact(part)
            assert instants is not None, "a part of what names partition columns only"
            found = either(found, mask_of(is_disputed(instants), False))
        return found

    def leaf(self, node: tree.Expression) -> Outcome:
        """A predicate over data columns without AND, OR, NOT."""
        if isinstance(node, tree.Compare):
            left, right = self.interval(node.left), self.interval(node.right)
            if left is None or right is None:
                return ANYTHING
            found = compared(node.op, left, right, type_of(node.left))
            return replace(found, may_be_true=False) if _is_never_equal(node) else found
        if isinstance(node, tree.Column):
            return self.leaf(tree.Compare("=", node, tree.Literal(True, t.BOOLEAN)))
        if isinstance(node, tree.IsNull):
            return self.is_null(node.child)
        if isinstance(node, tree.In):
            return self.is_in(node)
        if isinstance(node, tree.StartsWith):
            return self.starts_with(node.child, node.prefix, whole=True)
        if isinstance(node, tree.Like):
            return self.like(node)
        if isinstance(node, tree.Call) and node.name == "isnan":
            inner = node.args[0]
            if isinstance(inner, tree.Column) and inner.path not in self.nan | self.unbounded:
                return Outcome(False, True, False)
            nan = tree.Literal(float("nan"), type_of(node.args[0]))
            return self.outcome(tree.Compare("<=>", node.args[0], nan))
        return ANYTHING

    def is_null(self, child: tree.Expression) -> Outcome:
        if isinstance(child, tree.Column):
            may_be_null, all_null = self.nulls(child.path)
            if child.path in self.nan:
                return Outcome(False, negated(all_null), False)
            return Outcome(may_be_null, negated(all_null), False)
        interval = self.interval(child)
        return Outcome(interval.may_be_null, negated(interval.all_null), False) if interval else ANYTHING

    def is_in(self, node: tree.In) -> Outcome:
        child = self.interval(node.child)
        if child is None:
            return ANYTHING
        data_type = type_of(node.child)
        known = [v.value for v in node.values if v.value is not None]
        ordered = pa.array(known, to_arrow(data_type))
        if data_type != t.BOOLEAN:
            ordered = ordered.take(pc.sort_indices(ordered))  # NaN goes last, where it belongs
        may_be_true: Mask = False
        may_be_false: Mask = len(known) == len(node.values)  # `x IN (1, NULL)` is never false
        step = -(-len(ordered) // MAX_IN_RANGES) or 1
        for start in range(0, len(ordered), step):
            low, high = ordered[start], ordered[min(start + step, len(ordered)) - 1]
            if data_type == t.BOOLEAN:
                high = low
            inside = compared(">=", child, point(low), data_type), compared("<=", child, point(high), data_type)
            may_be_true = either(may_be_true, both(inside[0].may_be_true, inside[1].may_be_true))
            if step == 1:
                may_be_false = both(may_be_false, compared("=", child, point(low), data_type).may_be_false)
        null = either(child.may_be_null, len(known) < len(node.values))
        return Outcome(may_be_true, both(may_be_false, negated(child.all_null)), null)

    def like(self, node: tree.Like) -> Outcome:
        prefix, rest = like_prefix(node.pattern)
        if not rest:
            return self.outcome(tree.Compare("=", node.child, tree.Literal(prefix, t.STRING)))
        return self.starts_with(node.child, prefix, whole=rest == "%")

    def starts_with(self, child: tree.Expression, prefix: str, *, whole: bool) -> Outcome:
        """`child` begins with `prefix`; unless `whole`, more is asked of it."""
        values = self.interval(child)
        if values is None:
            return ANYTHING
        start = literal_scalar(prefix, t.STRING)
        low_within = pc.starts_with(values.lower, pattern=prefix)
        # All text that starts with the prefix lies from the prefix itself up to the last text that starts with it.
        not_above = mask_of(pc.or_kleene(pc.less_equal(values.lower, start), low_within), True)
        not_below = mask_of(pc.greater_equal(values.upper, start), True)
        some = both(both(not_above, not_below), negated(values.all_null))
        if not whole:
            return Outcome(some, True, values.may_be_null)
        all_within = both(mask_of(low_within, False), mask_of(pc.starts_with(values.upper, pattern=prefix), False))
        return Outcome(some, both(negated(all_within), negated(values.all_null)), values.may_be_null)

    def nulls(self, path: tuple[str, ...]) -> tuple[Mask, Mask]:
        """(some row may be null, all rows are null)."""
        count, rows = self.files.null_count(path), self.files.num_rows()
        if count is None:
            return True, False
        may_be_null = mask_of(pc.greater(count, ZERO), True)
        return may_be_null, False if rows is None else mask_of(pc.greater_equal(count, rows), False)

    def interval(self, node: tree.Expression) -> Interval | None:
        """Where an operand's values lie; None where nothing is known."""
        exact = self.exact(node)
        if exact is not None:
            return open_where(self.disputed(node), point(exact))
        if isinstance(node, tree.Column):
            return self.column(node)
        if isinstance(node, tree.Cast):
            child, source = self.interval(node.child), type_of(node.child)
            return None if child is None else self.cast(child, source, node)
        return self.call(node) if isinstance(node, tree.Call) else None

    def call(self, node: tree.Call) -> Interval | None:
        """The interval of a function that keeps the order, or turns it round; None for others."""
        found = monotone(node) or rises_within(node)
        child = None if found is None else self.interval(node.args[found.argument])
        if found is None or child is None:
            return None
        zone = zone_of(node, self.zone)
        local = found.local and zone is not UTC
        bounds = [before(child.lower), after(child.upper)] if local else [child.lower, child.upper]
        args: list[Datum] = [
            literal_scalar(a.value, a.type) if isinstance(a, tree.Literal) else pa.scalar(None) for a in node.args
        ]
        function, result = FUNCTIONS[node.name], type_of(node)
        low, high = (
            function.apply([*args[: found.argument], x, *args[found.argument + 1 :]], zone, result) for x in bounds
        )
        if local and node.name == "date_trunc":
            low, high = before(low), after(high)
        if not found.rises:
            low, high = high, low
        if found.within is not None:
            # It rises from the beginning of each period; bounds of different periods say nothing.
            starts = [found.within(x, zone) for x in bounds]
            same = mask_of(pc.equal(*starts), False)
            if not isinstance(same, bool):
                unknown = literal_scalar(None, result)
                low, high = (pc.if_else(same, x, unknown) for x in (low, high))
            elif not same:
                return None
        return unless_unknown(Interval(low, high, child.may_be_null, child.all_null, False), is_fallible(node))

    def column(self, node: tree.Column) -> Interval | None:
        may_be_null, all_null = self.nulls(node.path)
        if isinstance(node.type, (t.Struct, t.Array, t.Map)) or node.type == t.VARIANT:
            return None
        unknown = literal_scalar(None, node.type)
        if node.path in self.nan:
            nan = literal_scalar(float("nan"), node.type)
            return Interval(nan, nan, False, all_null, True)
        if node.path in self.unbounded:
            return Interval(unknown, unknown, may_be_null, all_null, False)
        lower, upper = self.files.lower(node.path), self.files.upper(node.path)
        low = unknown if lower is None else conform(lower, node.type)
        high = unknown if upper is None else conform(upper, node.type)
        if node.type in t.FLOATING:
            # As a bound NaN is what its writer made of it; but where not even the greatest is a number, none is.
            all_null = either(all_null, mask_of(pc.and_(pc.is_nan(low), pc.is_nan(high)), False))
            low, high = (pc.if_else(pc.is_nan(bound), unknown, bound) for bound in (low, high))
        if node.char_length is not None and isinstance(high, pa.Array):
            high = pad_upper_bounds(high, node.char_length)
        tight = node.type not in (t.STRING, t.BINARY, t.TIMESTAMP, t.TIMESTAMP_NTZ)
        return Interval(low, high, may_be_null, all_null, tight)

    def cast(self, child: Interval, source: DataType, node: tree.Cast) -> Interval | None:
        """The interval of a cast that keeps the order; None for other casts."""
        target, zone = node.type, zone_of(node, self.zone)
        if source == target:
            return child
        if not keeps_order(source, target, zone):
            return None
        low, high = child.lower, child.upper
        if source == t.TIMESTAMP and target == t.DATE and zone is not UTC:
            low, high = before(low), after(high)
        low, high = (cast_datum(x, source, target, zone) for x in (low, high))
        if target == t.TIMESTAMP and zone is not UTC:
            low, high = pc.subtract_checked(low, disputed_by(low)), pc.add_checked(high, disputed_by(high))
        found = Interval(low, high, child.may_be_null, child.all_null, child.tight)
        return unless_unknown(found, is_fallible_cast(target))


def _is_never_equal(node: tree.Compare) -> bool:
    """Whole numbers beside a constant that is none."""
    if node.op not in ("=", "<=>"):
        return False
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(one, tree.Cast) and type_of(one.child) in t.INTEGRAL and isinstance(other, tree.Literal):
            value = other.value
            is_decimal = isinstance(value, decimal.Decimal) and value != value.to_integral_value()
            if is_decimal or (isinstance(value, float) and not value.is_integer()):
                return True
    return False
