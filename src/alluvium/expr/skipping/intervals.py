"""Where the values of an operand lie in each file, and what comparisons of them may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import FALSE, TRUE
from alluvium.expr.columnar import Datum, compare
from alluvium.schema.types import DataType

_FLIPPED = {"=": "!=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
#: A mask over the files, or one answer for all of them.
Mask: TypeAlias = "pa.Array | bool"


@dataclass(frozen=True, slots=True)
class Outcome:
    may_be_true: Mask
    may_be_false: Mask
    may_be_null: Mask


ANYTHING = Outcome(True, True, True)


@dataclass(frozen=True, slots=True)
class Interval:
    """Where an operand's values lie.

    Attributes:
        lower: Bound of the values that are not null; a null bound is unknown.
        upper: As `lower`.
        may_be_null: Some row may be null.
        all_null: All rows are null (or there are none).
        tight: The bounds are values that occur, so equal bounds mean that all values are equal. Statistics of text
            and times may be cut off, and foreign writers cut without care.
    """

    lower: Datum
    upper: Datum
    may_be_null: Mask
    all_null: Mask
    tight: bool


def both(left: Mask, right: Mask) -> Mask:
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return pc.and_(left, right)


def either(left: Mask, right: Mask) -> Mask:
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return pc.or_(left, right)


def negated(mask: Mask) -> Mask:
    return not mask if isinstance(mask, bool) else pc.invert(mask)


def always(outcome: Outcome) -> Mask:
    return negated(either(outcome.may_be_false, outcome.may_be_null))


def mask_of(datum: Datum, unknown: bool) -> Mask:
    """A mask without nulls."""
    if isinstance(datum, pa.Scalar):
        return bool(datum.as_py()) if datum.is_valid else unknown
    return pc.fill_null(datum, TRUE if unknown else FALSE) if datum.null_count else datum


def point(datum: Datum) -> Interval:
    null = mask_of(pc.is_null(datum, nan_is_null=False), False)
    return Interval(datum, datum, null, null, True)


def open_where(mask: Mask, values: Interval) -> Interval:
    """The same, without bounds where a mask says so."""
    if mask is False:
        return values
    unknown = pa.scalar(None, values.lower.type)
    low, high = (unknown if mask is True else pc.if_else(mask, unknown, x) for x in (values.lower, values.upper))
    return replace(values, lower=low, upper=high, may_be_null=either(values.may_be_null, mask))


def unless_unknown(values: Interval, is_fallible: bool) -> Interval:
    """The interval of what may overflow, which shows at the bounds: without both of them a value may have become null,
    or have come round to the other end, where that is no error to Spark (`try_add`, and all of them without ANSI mode),
    or be the text of a year of five digits, which stands before all others.
    """
    if not is_fallible:
        return values
    known = both(*(mask_of(pc.is_valid(bound), True) for bound in (values.lower, values.upper)))
    if known is True:
        return values
    unknown = pa.scalar(None, values.lower.type)
    low, high = (unknown if known is False else pc.if_else(known, x, unknown) for x in (values.lower, values.upper))
    return replace(values, lower=low, upper=high, may_be_null=either(values.may_be_null, negated(known)))


def _possible(op: str, left: Interval, right: Interval, data_type: DataType) -> Mask:
    """Some value of `left` may stand in this relation to some value of `right`, neither being null."""
    if op in ("<", "<="):
        found = mask_of(compare(op, left.lower, right.upper, data_type), True)
    elif op in (">", ">="):
        found = mask_of(compare(op, left.upper, right.lower, data_type), True)
    elif op == "=":
        found = both(
            mask_of(compare("<=", left.lower, right.upper, data_type), True),
            mask_of(compare(">=", left.upper, right.lower, data_type), True),
        )
    elif not (left.tight and right.tight):
        found = True
    else:
        points = [mask_of(compare("=", x.lower, x.upper, data_type), False) for x in (left, right)]
        equal = mask_of(compare("=", left.lower, right.lower, data_type), False)
        found = negated(both(both(*points), equal))
    return both(found, negated(either(left.all_null, right.all_null)))


def compared(op: str, left: Interval, right: Interval, data_type: DataType) -> Outcome:
    if op == "!=":
        equal = compared("=", left, right, data_type)
        return Outcome(equal.may_be_false, equal.may_be_true, equal.may_be_null)
    if op != "<=>":
        null = either(left.may_be_null, right.may_be_null)
        return Outcome(_possible(op, left, right, data_type), _possible(_FLIPPED[op], left, right, data_type), null)
    both_null = both(left.may_be_null, right.may_be_null)
    one_null = either(both(left.may_be_null, negated(right.all_null)), both(right.may_be_null, negated(left.all_null)))
    return Outcome(
        either(_possible("=", left, right, data_type), both_null),
        either(_possible("!=", left, right, data_type), one_null),
        False,
    )
