"""Evaluation of expressions on rows, with Spark's three-valued logic."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.bind import type_of
from alluvium.expr.columnar import Datum, broadcast, cast_datum, compare, literal_scalar, unsupported
from alluvium.expr.functions import FUNCTIONS
from alluvium.expr.literals import format_sql
from alluvium.expr.patterns import like_regex
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import pad_texts
from alluvium.schema.types import DataType


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to evaluate on.

    Attributes:
        num_rows: How many.
        column: The values at a path through structs.
        zone: Session time zone.
    """

    num_rows: int
    column: Callable[[tuple[str, ...]], pa.Array]
    zone: dt.tzinfo

    def where(self, mask: pa.Array) -> Rows:
        """The rows for which `mask` is true."""
        return Rows(pc.sum(mask).as_py() or 0, lambda path: self.column(path).filter(mask), self.zone)


def evaluate(expr: tree.Expression, batch: pa.RecordBatch | pa.Table, time_zone: str = "UTC") -> pa.Array:
    """The value of an expression for each row; of a predicate true, false or null.

    Args:
        expr: An expression over the batch's columns, by their logical names.
        batch: The rows.
        time_zone: Session time zone: dates and parts of timestamps are those of this zone.

    Raises:
        InvalidRequest: `"unsupported-expression"` for what only Spark can evaluate; other codes where Spark would
            raise, too (overflow, division by zero, a cast that fails).
    """

    def column(path: tuple[str, ...]) -> pa.Array:
        return _at_path(batch, path)

    rows = Rows(batch.num_rows, column, parse_zone(time_zone))
    return broadcast(evaluate_datum(expr, rows), batch.num_rows)


def _at_path(batch: pa.RecordBatch | pa.Table, path: tuple[str, ...]) -> pa.Array:
    index = batch.schema.get_field_index(path[0])
    if index < 0:
        raise InvalidRequest(f"no column {path[0]!r} in the rows", code="unknown-column", column=".".join(path))
    values = batch.column(index)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # combine_chunks gives no single array for no chunks, or for too many bytes
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    for name in path[1:]:
        place = values.type.get_field_index(name) if pa.types.is_struct(values.type) else -1
        if place < 0:
            raise InvalidRequest(f"no field {name!r} in the rows", code="unknown-column", column=".".join(path))
        values = pc.struct_field(values, [place])  # null where the parent is
    return values


def evaluate_datum(node: tree.Expression, rows: Rows) -> Datum:
    """As `evaluate`; a constant stays a scalar."""
    if isinstance(node, tree.Column):
        return _column(node, rows)
    if isinstance(node, tree.Literal):
        return literal_scalar(node.value, node.type)
    if isinstance(node, tree.Compare):
        left, right = evaluate_datum(node.left, rows), evaluate_datum(node.right, rows)
        return compare(node.op, left, right, type_of(node.left))
    if isinstance(node, (tree.And, tree.Or)):
        return _connective(node, rows)
    if isinstance(node, tree.Call):
        return _call(node, rows)
    if isinstance(node, tree.Unknown):
        raise unsupported(node.sql)
    child = evaluate_datum(node.child, rows)
    if isinstance(node, tree.Not):
        return pc.invert(child)
    if isinstance(node, tree.IsNull):
        return pc.is_null(child, nan_is_null=False)
    if isinstance(node, tree.In):
        return _is_in(child, node)
    if isinstance(node, tree.StartsWith):
        return pc.starts_with(child, pattern=node.prefix)
    if isinstance(node, tree.Like):
        return pc.match_substring_regex(child, pattern=like_regex(node.pattern))
    return cast_datum(child, type_of(node.child), node.type, zone_of(node, rows.zone))


def zone_of(node: tree.Cast | tree.Call, around: dt.tzinfo) -> dt.tzinfo:
    """The zone of a node's local times: its own, or that of the expression around it."""
    return around if node.zone is None else parse_zone(node.zone)


def _column(node: tree.Column, rows: Rows) -> pa.Array:
    values = rows.column(node.path)
    if isinstance(node.type, (t.Struct, t.Array, t.Map)) or node.type == t.VARIANT:
        return values  # only `IS NULL` looks at these
    values = conform(values, node.type)
    return values if node.char_length is None else pad_texts(values, node.char_length)


def conform(values: pa.Array, data_type: DataType) -> pa.Array:
    """Values in the Arrow type that stands for a logical type (from dictionaries, other units, views, ...)."""
    wanted = to_arrow(data_type)
    if values.type == wanted:
        return values
    try:
        return pc.cast(values, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidRequest(f"a column of {values.type} cannot be read as {data_type}", code="invalid-cast") from None


def _connective(node: tree.And | tree.Or, rows: Rows) -> Datum:
    left = evaluate_datum(node.left, rows)
    undecided = pc.fill_null(left if isinstance(node, tree.And) else pc.invert(left), True)
    right = _only_where(undecided, node.right, rows)
    join = pc.and_kleene if isinstance(node, tree.And) else pc.or_kleene
    return join(left, right)


def _only_where(mask: Datum, node: tree.Expression, rows: Rows) -> Datum:
    """The value where `mask` is true, anything elsewhere.

    Spark does not evaluate `10 / x` for a row that `x <> 0 AND` has decided: an error counts only where the value
    is needed. The detour is taken only after an error.
    """
    try:
        return evaluate_datum(node, rows)
    except InvalidRequest as error:
        if error.code in ("unsupported-expression", "unknown-column"):
            raise
        needed = pc.fill_null(broadcast(mask, rows.num_rows), False)
        if pc.all(needed, min_count=0).as_py():
            raise
        some = rows.where(needed)
        values = broadcast(evaluate_datum(node, some), some.num_rows)
        return pc.replace_with_mask(pa.nulls(rows.num_rows, values.type), needed, values)


def _is_in(child: Datum, node: tree.In) -> Datum:
    known = [v.value for v in node.values if v.value is not None]
    data_type = type_of(node.child)
    value_set = pa.array(known, to_arrow(data_type))
    if data_type in t.FLOATING:
        # Equality here is by bits: NaN finds NaN, but -0.0 must be made 0.0 (which adding 0.0 does)
        zero = pa.scalar(0.0, to_arrow(data_type))
        child, value_set = pc.add(child, zero), pc.add(value_set, zero)
    found = pc.is_in(child, value_set=value_set)
    null = pa.scalar(None, pa.bool_())
    if len(known) < len(node.values):  # `x IN (1, NULL)` is true or null
        found = pc.if_else(found, found, null)
    return pc.if_else(pc.is_null(child, nan_is_null=False), null, found)


def _call(node: tree.Call, rows: Rows) -> Datum:
    function = FUNCTIONS.get(node.name)
    signature = function.bind([type_of(a) for a in node.args]) if function else None
    if function is None or signature is None:
        raise unsupported(f"the function {node.name}() in {format_sql(node)}")
    if node.name == "case":
        return _case(node, rows, signature.result)
    if node.name == "coalesce":
        return _coalesce(node, rows)
    args = [evaluate_datum(a, rows) for a in node.args]
    return function.apply(args, zone_of(node, rows.zone), signature.result)


def _case(node: tree.Call, rows: Rows, result: DataType) -> Datum:
    pairs = list(zip(node.args[0::2], node.args[1::2], strict=False))
    last = node.args[-1] if len(node.args) % 2 else tree.Literal(None, result)
    return _case_from(pairs, last, rows, pa.scalar(True))


def _case_from(
    pairs: list[tuple[tree.Expression, tree.Expression]], last: tree.Expression, rows: Rows, open_rows: Datum
) -> Datum:
    if not pairs:
        return _only_where(open_rows, last, rows)
    when, then = pairs[0]
    condition = pc.fill_null(_only_where(open_rows, when, rows), False)
    value = _only_where(pc.and_(open_rows, condition), then, rows)
    rest = _case_from(pairs[1:], last, rows, pc.and_(open_rows, pc.invert(condition)))
    return pc.if_else(condition, value, rest)


def _coalesce(node: tree.Call, rows: Rows) -> Datum:
    result = evaluate_datum(node.args[0], rows)
    for arg in node.args[1:]:
        missing = pc.is_null(result, nan_is_null=False)
        result = pc.if_else(missing, _only_where(missing, arg, rows), result)
    return result
