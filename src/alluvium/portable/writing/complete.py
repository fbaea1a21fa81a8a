"""Complete rows: the data's columns under a plan's types, and those that the plan derives or numbers; then its checks.

Expressions of the table are evaluated here where they are understood. Others need Spark, and are refused before a row
is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.partition_path import DEFAULT_PARTITION
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.evaluate import conform, evaluate
from alluvium.expr.sql.parse import parse_predicate, parse_value
from alluvium.expr.tree import Expression, is_understood
from alluvium.plan.checks import SHOWN_ROWS, Row, violation
from alluvium.plan.completion import lacking, numbers_exhausted
from alluvium.plan.write import Check, Derived, Numbered, WritePlan
from alluvium.portable.shown import shown
from alluvium.portable.writing.fit import Fitted, fit_columns, fit_values
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Struct

_MAX, _MIN = (1 << 63) - 1, -(1 << 63)


@dataclass
class Completion:
    """From batches of data to rows of a plan, in order.

    Attributes:
        plan: How rows are written.
        columns: Where the table's columns come from.
        constants: Columns of one value, which all others see.
        filled: Columns of the data whose nulls become one value.
        computed: Columns that are computed of the others.
        numbered: Columns of numbers.
        checks: What must hold, and as what it was understood.
        time_zone: In which expressions are evaluated.
        rows: How many rows there were.
    """

    plan: WritePlan
    columns: Mapping[str, Fitted]
    constants: Sequence[tuple[str, Expression]]
    filled: Sequence[tuple[str, Expression]]
    computed: Sequence[tuple[str, Expression]]
    numbered: Sequence[Numbered]
    checks: Sequence[tuple[Check, Expression]]
    time_zone: str
    rows: int = field(default=0, init=False)

    @property
    def reached(self) -> dict[str, int]:
        """The last number of each column; none where there was no row."""
        return {n.column: n.first + (self.rows - 1) * n.step for n in self.numbered} if self.rows else {}

    def complete(self, data: pa.RecordBatch) -> pa.Table:
        """The rows of a batch.

        Raises:
            InvalidRequest: A value does not fit, or a row fails a check (the check's code).
        """
        names = self.plan.schema.names
        arrays = {name: self.columns[name].of(data) for name in names}
        for name, expression in self.constants:
            arrays[name] = self._value(name, expression, arrays)
        for name, expression in self.filled:
            arrays[name] = pc.coalesce(arrays[name], self._value(name, expression, arrays))
        for n in self.numbered:
            arrays[n.column] = _numbers(n, self.rows, data.num_rows, self.plan.root)
        for name, expression in self.computed:
            arrays[name] = self._value(name, expression, arrays)
        self.rows += data.num_rows
        arrays |= {name: _with_one_null(arrays[name]) for name in self._texts}
        # Whether a column may be null is a check's, which has more to say than Arrow.
        schema = pa.schema([f.with_nullable(True) for f in schema_to_arrow(self.plan.schema)])
        table = pa.table([arrays[name] for name in names], schema=schema)
        for check, expression in self.checks:
            self._ensure_holds(check, expression, table)
        return table

    @property
    def _texts(self) -> list[str]:
        """Partition columns whose values may be texts."""
        fields = self.plan.schema.fields
        return [f.name for f in fields if f.name in self.plan.partition_by and f.type in (t.STRING, t.BINARY)]

    def _value(self, name: str, expression: Expression, arrays: Mapping[str, pa.Array]) -> pa.Array:
        found = self.plan.schema.find(name)
        assert found is not None, "a plan derives columns of its table"
        rows = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        with _without_spark(f"column {name!r} is computed", name):
            values = evaluate(expression, rows, self.time_zone)
            return fit_values(values, found) if pa.types.is_nested(values.type) else conform(values, found.type)

    def _ensure_holds(self, check: Check, expression: Expression, rows: pa.Table) -> None:
        with _without_spark(f"{check.name!r} ({check.sql}) must hold of every row", None):
            holds = pc.fill_null(evaluate(expression, rows, self.time_zone), False)
        if pc.all(holds).as_py() is not False:
            return
        broken = rows.filter(pc.invert(holds))
        raise violation(check, [_shown(check, broken, place) for place in range(min(SHOWN_ROWS, len(broken)))],
                        self.plan.root)  # fmt: skip


def completion(
    data: pa.Schema, table: Struct, plan: WritePlan, time_zone: str, *, may_lack_partitions: bool = False
) -> Completion:
    """How data becomes rows of a plan.

    Args:
        data: Its columns.
        table: Columns of the table.
        plan: How rows are written.
        time_zone: In which expressions are evaluated.
        may_lack_partitions: As of `lacking`.

    Raises:
        InvalidRequest: As of `fit_columns` and `lacking`.
        UnsupportedFeature: An expression of the table that only Spark evaluates (`"needs-spark"`).
    """
    needed = lacking(plan, table, data.names, may_lack_partitions=may_lack_partitions)
    columns = fit_columns(data, plan.schema)
    constants, filled, computed = (
        [(d.column, _derivation(d, plan.schema, time_zone)) for d in some]
        for some in (needed.constants, needed.filled, needed.computed)
    )
    checks = [(c, _condition(c, plan.schema, time_zone)) for c in needed.checks]
    return Completion(plan, columns, constants, filled, computed, needed.numbered, checks, time_zone)


def _derivation(derived: Derived, schema: Struct, time_zone: str) -> Expression:
    found = schema.find(derived.column)
    assert found is not None, "a plan derives columns of its table"
    value = parse_value(derived.sql, schema, found.type, time_zone)
    if not is_understood(value):
        raise _needs_spark(f"column {derived.column!r} is {derived.sql}", derived.column)
    return value


def _condition(check: Check, schema: Struct, time_zone: str) -> Expression:
    understood = parse_predicate(check.sql, schema, time_zone)
    if not is_understood(understood):
        column = check.columns[0] if len(check.columns) == 1 else None
        raise _needs_spark(f"{check.name!r} ({check.sql}) must hold of every row", column)
    return understood


@contextmanager
def _without_spark(what: str, column: str | None) -> Iterator[None]:
    """Some casts and functions depend on the values: of these it shows late that only Spark knows them."""
    try:
        yield
    except InvalidRequest as error:
        if error.code != "unsupported-expression":
            raise
        raise _needs_spark(what, column) from error


def _needs_spark(what: str, column: str | None) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what}, which only Spark can evaluate",
        code="needs-spark",
        column=column,
        hint="write by a session: alluvium.write(spark.createDataFrame(...), url, ...)",
    )


def _with_one_null(values: pa.Array) -> pa.Array:
    """Texts that share a directory with null become null, to constraints, too: "The empty string [...] translates to
    null".
    """
    alike = pa.array(["", DEFAULT_PARTITION]).cast(values.type)
    return pc.if_else(pc.is_in(values, value_set=alike), pa.scalar(None, values.type), values)


def _numbers(column: Numbered, start: int, count: int, url: str) -> pa.Array:
    last = column.first + (start + count - 1) * column.step
    if count and not _MIN <= last <= _MAX:
        raise numbers_exhausted(column.column, url)
    first = column.first + start * column.step
    return pa.array(first + np.arange(count, dtype=np.int64) * column.step)


def _shown(check: Check, rows: pa.Table, place: int) -> Row:
    return {name: _text(rows, name, place) for name in check.columns}


def _text(rows: pa.Table, name: str, place: int) -> str | None:
    names = (name,) if name in rows.column_names else tuple(name.split("."))
    value = rows[names[0]][place]
    for member in names[1:]:
        value = value[member]
    return shown(value)
