"""Binding: operands get the types in which Spark (ANSI mode, the default since Spark 4) would compute with them.

After it both sides of a `Compare` are of one type. A constant is cast at once, and kept in the column's type where
it has a place there (`short_column = 2`): a comparison without casts is both faster and prunes better.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass

from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.char_padding import as_text, padded_in, padded_sides
from alluvium.expr.functions import ALIASES, FUNCTIONS, branch_type, wider_number
from alluvium.expr.literals import MIN_INTEGRAL, NotUnderstood, cast_value, format_sql, to_float32
from alluvium.expr.patterns import like_regex
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Map, Struct

#: Beyond it a text is left for the engine.
_MAX_BLANKS = 1 << 16
#: Of earlier times tables of time zones differ: Java's has Stockholm as Berlin, the one that Python reads may not; and
#: newer editions have learnt of summers of the seventies (Tehran's of 1978).
SETTLED = dt.datetime(1980, 1, 1, tzinfo=dt.timezone.utc)
_TIMES = (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP)  # in Spark's order of precedence

#: Functions that are casts, by their names.
CAST_FUNCTIONS: dict[str, DataType] = {
    "tinyint": t.BYTE, "smallint": t.SHORT, "int": t.INTEGER, "bigint": t.LONG, "float": t.FLOAT, "double": t.DOUBLE,
    "string": t.STRING, "boolean": t.BOOLEAN, "binary": t.BINARY, "date": t.DATE, "timestamp": t.TIMESTAMP,
    "to_date": t.DATE, "to_timestamp": t.TIMESTAMP, "decimal": Decimal(10, 0),
}  # fmt: skip


def type_of(node: tree.Expression) -> DataType:
    """The type of an expression's values.

    Raises:
        NotUnderstood: A function that is not known here.
    """
    if isinstance(node, (tree.Column, tree.Literal, tree.Cast)):
        return node.type
    if isinstance(node, tree.Call):
        if node.known_type is not None:
            return node.known_type
        function = FUNCTIONS.get(node.name)
        signature = function.bind([type_of(a) for a in node.args]) if function else None
        if signature is None:
            raise NotUnderstood(node.name)
        object.__setattr__(node, "known_type", signature.result)
        return signature.result
    return t.BOOLEAN


#: Types that Spark lacks and shows as others.
_SHOWN: dict[DataType, DataType] = {t.TIMESTAMP_NANOS: t.TIMESTAMP, t.TIMESTAMP_NTZ_NANOS: t.TIMESTAMP_NTZ}


def comparison_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which Spark compares values of two types; None where it refuses, or where we do not know."""
    if left == right:
        return left
    left, right = _SHOWN.get(left, left), _SHOWN.get(right, right)
    if left == right:
        return left
    if t.VOID in (left, right):
        return right if left == t.VOID else left
    if t.STRING in (left, right):
        other = right if left == t.STRING else left
        if other in t.INTEGRAL:
            return t.LONG
        if other in t.FLOATING or isinstance(other, Decimal):
            return t.DOUBLE
        return other if other in (*_TIMES, t.TIME, t.BOOLEAN, t.BINARY) else None
    if left in _TIMES and right in _TIMES:
        return max(left, right, key=_TIMES.index)
    return wider_number(left, right)


@dataclass(frozen=True, slots=True)
class Binder:
    """Makes typed nodes.

    Attributes:
        zone: Session time zone, for constants that name none.
        engine: The text is an engine's: a local time that occurs twice may stand for either instant.
        rows: Columns that stand for rows: their members are columns at the top level.
    """

    zone: dt.tzinfo
    engine: bool = False
    rows: frozenset[str] = frozenset()

    def ensure_no_row(self, found: tree.Column, schema: t.Struct) -> None:
        """Refuses the name of rows without a member: alone it is a column that is called so, and no row.

        Raises:
            InvalidRequest: No rows have such a column.
            NotUnderstood: Some have.
        """
        name = found.path[0]
        if found.path[1:] or name not in self.rows:
            return
        rows = [f.type for f in schema.fields if f.name in self.rows and isinstance(f.type, t.Struct)]
        if any(row.find(name) is not None for row in rows):
            raise NotUnderstood(f"the name {name}, which is also that of rows")
        raise InvalidRequest(
            f"unknown column {name!r}: rows are called so",
            code="unknown-column",
            column=name,
            hint=f"say which of their columns: {name}.column",
        )

    def compare(self, op: str, left: tree.Expression, right: tree.Expression) -> tree.Expression:
        """A comparison with both sides in one type.

        Raises:
            InvalidRequest: Types that cannot be compared, or a constant that is no value of the type.
        """
        left, right = padded_sides(left, right, self.rows)
        common = self._shared_type(left, right)
        return tree.Compare(op, self.coerce(left, common), self.coerce(right, common))

    def _shared_type(self, left: tree.Expression, right: tree.Expression) -> DataType:
        a, b = type_of(left), type_of(right)
        for x in (a, b):
            if isinstance(x, (t.Struct, t.Array, t.Map)) or x == t.VARIANT:
                raise NotUnderstood(f"comparison of {x}")
        if a == b == t.VOID:
            return t.BOOLEAN
        for constant, other in ((left, b), (right, a)):
            if isinstance(constant, tree.Literal) and _has_place(constant, other):
                return other
        common = comparison_type(a, b)
        if common is None:
            if wider_number_exists(a, b):
                raise NotUnderstood("decimals of more than 38 digits")
            raise InvalidRequest(
                f"cannot compare {format_sql(left)} ({a}) with {format_sql(right)} ({b})",
                code="invalid-predicate",
                hint=_cast_hint(a, b),
            )
        return common

    def coerce(self, node: tree.Expression, target: DataType) -> tree.Expression:
        """The expression in another type: a constant at once, anything else by a `Cast`."""
        source = type_of(node)
        if source == target:
            return node
        if isinstance(node, tree.Literal):
            value = cast_value(node.value, source, target, self.zone, engine=self.engine)
            if isinstance(self.zone, zoneinfo.ZoneInfo) and _is_disputed(node.value, value):
                raise NotUnderstood("a local time before 1980, of which tables of time zones say different things")
            return tree.Literal(value, target)
        return tree.Cast(node, target)

    def is_in(self, child: tree.Expression, values: Sequence[tree.Expression]) -> tree.Expression:
        """`child IN (values)`; values that are not constants become comparisons."""
        child, values = padded_in(child, values, self.rows)
        if not all(isinstance(v, tree.Literal) for v in values):
            result = self.compare("=", child, values[0])
            for value in values[1:]:
                result = tree.Or(result, self.compare("=", child, value))
            return result
        common = self._shared_type(child, values[0])
        for value in values[1:]:
            wider = self._shared_type(child, value)
            if wider != common:
                both = comparison_type(common, wider)
                if both is None:
                    raise NotUnderstood("IN over several types")
                common = both
        literals = [self.coerce(v, common) for v in values]
        return tree.In(self.coerce(child, common), tuple(v for v in literals if isinstance(v, tree.Literal)))

    def boolean(self, node: tree.Expression) -> tree.Expression:
        """An operand of AND, OR, NOT, or a whole predicate.

        Raises:
            InvalidRequest: It is not boolean.
        """
        kind = type_of(node)
        if kind == t.BOOLEAN:
            return node
        if isinstance(node, tree.Literal) and node.value is None:
            return tree.Literal(None, t.BOOLEAN)
        raise InvalidRequest(
            f"{format_sql(node)} is of type {kind}, a predicate must be boolean",
            code="invalid-predicate",
            hint="compare it with something",
        )

    def like(self, child: tree.Expression, pattern: tree.Expression) -> tree.Expression:
        """`child LIKE pattern` with a constant pattern."""
        if type_of(child) != t.STRING or not isinstance(pattern, tree.Literal):
            raise NotUnderstood("LIKE over something else than text and a constant")
        if pattern.value is None:
            return tree.Literal(None, t.BOOLEAN)
        if not isinstance(pattern.value, str):
            raise NotUnderstood("LIKE a number")
        like_regex(pattern.value)  # raises for a pattern that Spark refuses
        return tree.Like(child, pattern.value)

    def call(self, name: str, args: tuple[tree.Expression, ...]) -> tree.Expression:
        """A function or operator by its Spark name (any case).

        Raises:
            NotUnderstood: We do not know the function, or not with such arguments.
            InvalidRequest: A constant argument cannot be cast to the parameter's type.
        """
        name = ALIASES.get(name.lower(), name.lower())
        special = self._special(name, args)
        if special is not None:
            return special
        function = FUNCTIONS.get(name)
        signature = function.bind([type_of(a) for a in args]) if function else None
        if signature is None:
            raise NotUnderstood(f"{name}()")
        return tree.Call(name, tuple(self.coerce(a, p) for a, p in zip(args, signature.parameters, strict=False)))

    def _special(self, name: str, args: tuple[tree.Expression, ...]) -> tree.Expression | None:
        """Names that stand for other nodes."""
        if name in CAST_FUNCTIONS and len(args) == 1:
            return self.cast(args[0], CAST_FUNCTIONS[name])
        if name in ("isnull", "isnotnull") and len(args) == 1:
            return tree.IsNull(args[0]) if name == "isnull" else tree.Not(tree.IsNull(args[0]))
        if name == "equal_null" and len(args) == 2:
            return self.compare("<=>", *args)
        if name == "if" and len(args) == 3:
            return self.call("case", args)
        if name == "nullif" and len(args) == 2:
            same = self.compare("=", *(as_text(arg) for arg in args))
            return self.call("case", (same, tree.Literal(None, type_of(args[0])), args[0]))
        if name == "startswith" and len(args) == 2 and type_of(args[0]) == t.STRING:
            prefix = args[1]
            if isinstance(prefix, tree.Literal) and isinstance(prefix.value, str):
                return tree.StartsWith(args[0], prefix.value)
        if name == "rpad" and len(args) == 3 and all(isinstance(arg, tree.Literal) for arg in args):
            return _padded_constant(args)
        if name == "left" and len(args) == 2:
            return self.call("substring", (args[0], tree.Literal(1, t.INTEGER), args[1]))
        if name in ("+", "-") and len(args) == 2 and type_of(args[0]) == t.DATE and type_of(args[1]) in t.INTEGRAL[:3]:
            return self.call("date_add" if name == "+" else "date_sub", args)
        if name == "negative" and len(args) == 1:
            return _negated(args[0])
        return None

    def cast(self, node: tree.Expression, target: DataType) -> tree.Expression:
        """An explicit cast; of a constant it is carried out."""
        source = type_of(node)
        if source == target:
            return as_text(node)
        # Spark writes members out as text, `{1, null}`, each as its own type is written.
        if t.VARIANT in (source, target) or isinstance(source, Struct | Array | Map):
            raise NotUnderstood(f"cast of {source} to {target}")
        allowed = branch_type((source, target)) is not None or target == t.STRING or source == t.STRING
        if not allowed and not (source in _TIMES and target in _TIMES) and t.BOOLEAN not in (source, target):
            raise NotUnderstood(f"cast of {source} to {target}")
        return self.coerce(node, target)


def _is_disputed(before: object, after: object) -> bool:
    """Whether a constant has become an instant before 1980, or was one and is a local time now."""
    instants = [v for v in (before, after) if isinstance(v, dt.datetime) and v.tzinfo is not None]
    return len(instants) == 1 and instants[0] < SETTLED


def wider_number_exists(left: DataType, right: DataType) -> bool:
    """Both are numbers (but together have too many digits)."""
    numbers = (*t.INTEGRAL, *t.FLOATING)
    return all(x in numbers or isinstance(x, Decimal) for x in (left, right))


def _negated(node: tree.Expression) -> tree.Expression | None:
    if not isinstance(node, tree.Literal) or isinstance(node.value, bool):
        return None
    if isinstance(node.value, int):
        low = MIN_INTEGRAL[node.type]
        return None if node.value == low else tree.Literal(-node.value, node.type)
    if isinstance(node.value, (float, decimal.Decimal)):
        return tree.Literal(-node.value, node.type)
    return None


def _padded_constant(args: tuple[tree.Expression, ...]) -> tree.Expression | None:
    """A text with blanks, as Catalyst prints what it compares with a char(n) column."""
    text, length, blank = (arg.value for arg in args if isinstance(arg, tree.Literal))
    if not isinstance(text, str) or not isinstance(length, int) or not 0 <= length <= _MAX_BLANKS or blank != " ":
        return None
    return tree.Literal(text[:length].ljust(length), t.STRING)


def number_literal(text: str) -> tree.Literal:
    """A number without a suffix: integer, long, decimal; a double if it has an exponent.

    Raises:
        InvalidRequest: More than 38 digits, or an exponent without digits: a tokenizer may cut `4exyz` behind its e.
    """
    if text.lower().endswith("e"):
        raise InvalidRequest(
            f"{text} is no number", code="invalid-predicate", hint="write an exponent with digits: 1e3"
        )
    if "e" in text.lower():
        return tree.Literal(float(text), t.DOUBLE)
    value = decimal.Decimal(text)
    if "." not in text:
        for kind in (t.INTEGER, t.LONG):
            if MIN_INTEGRAL[kind] <= value < -MIN_INTEGRAL[kind]:
                return tree.Literal(int(value), kind)
    _, digits, exponent = value.as_tuple()
    scale = -exponent if isinstance(exponent, int) else 0
    precision = max(len(digits), scale)
    if precision > 38:
        raise InvalidRequest(
            f"{text} has more than 38 digits", code="invalid-predicate", hint="write it as a double: 1e40"
        )
    return tree.Literal(value, Decimal(precision, scale))


def _cast_hint(a: DataType, b: DataType) -> str:
    """What to cast to; there is no name for times of day, which compare with texts."""
    if t.TIME in (a, b):
        return "compare a time of day with a text: t > '12:30:00'"
    return f"cast one side: CAST(... AS {_SHOWN.get(a, a)})"


def _has_place(literal: tree.Literal, target: DataType) -> bool:
    """A numeric constant that the (numeric) type holds exactly, so that comparing in it changes nothing."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        return False
    if target in t.INTEGRAL:
        if isinstance(value, float):
            return False  # a long column is compared as double, which rounds
        low = MIN_INTEGRAL[target]
        return value == int(value) and low <= value < -low
    if isinstance(target, Decimal):
        if isinstance(value, float):
            return False
        exact = decimal.Decimal(value)
        _, digits, exponent = exact.normalize(decimal.Context(prec=60)).as_tuple()
        return (
            isinstance(exponent, int)
            and -exponent <= target.scale
            and (not exact or len(digits) + exponent <= target.precision - target.scale)
        )
    if target == t.FLOAT:
        number = float(value)
        return (math.isnan(number) or to_float32(number) == number) and (isinstance(value, float) or number == value)
    return False
