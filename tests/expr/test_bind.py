"""Comparisons of every column type with constants, beside exact arithmetic; and what operands become."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import operator
from dataclasses import replace
from decimal import Decimal as Number
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.bind import Binder, comparison_type, number_literal, type_of
from alluvium.expr.evaluate import evaluate
from alluvium.expr.functions import FUNCTIONS
from alluvium.expr.literals import NotUnderstood, to_float32
from alluvium.expr.tree import Call, Cast, Column, Compare, In, IsNull, Literal, Not, Or, StartsWith
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

UTC = dt.timezone.utc
BINDER = Binder(UTC)
OPS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COLUMNS: dict[DataType, list[Any]] = {
    t.BYTE: [-128, 0, 1, 127], t.SHORT: [-(2**15), 1, 2**15 - 1], t.INTEGER: [-(2**31), 1, 2**31 - 1], t.LONG: [-(2**63), 1, 2**53 + 1, 2**63 - 1],
    Decimal(5, 2): [Number("-999.99"), Number("1.00"), Number("1.50"), Number("999.99")], Decimal(20, 0): [Number(1), Number(2**63)],
    t.FLOAT: [1.0, 1.5, to_float32(0.1), math.inf], t.DOUBLE: [1.0, 0.1, 2.0**53, math.inf],
}  # fmt: skip
CONSTANTS = [
    *(Literal(v, t.INTEGER) for v in (-129, -128, 0, 1, 127, 128, 2**31 - 1)), *(Literal(v, t.LONG) for v in (2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1)),
    *(number_literal(text) for text in ("1.0", "1.5", "0.1", "999.99", "999.995", "1000.00", "1.005", "127.5", "9223372036854775808", "0.00")),
    *(Literal(v, t.DOUBLE) for v in (1.0, 1.5, 0.1, 2.0**53)), Literal(to_float32(0.1), t.FLOAT), Literal(None, t.INTEGER),
]  # fmt: skip


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", COLUMNS, ids=str)
def test_comparisons_beside_exact_arithmetic(kind: DataType, op: str) -> None:
    values = COLUMNS[kind]
    rows = pa.RecordBatch.from_pydict({"c": pa.array([*values, None], to_arrow(kind))})
    for constant in CONSTANTS:
        # Where one side is floating Spark compares in floating point, and else exactly.
        floats = {kind, constant.type} & set(t.FLOATING)

        def exact(value: Any, floats: set[DataType] = floats) -> Any:
            return float(value) if floats else Fraction(value)

        if (
            t.FLOAT in floats
            and t.DOUBLE not in floats
            and not isinstance(constant.value, float)
            and constant.value is not None
        ):
            continue  # which of float and double Spark takes depends on the other's type: see test_evaluate_spark
        for left, right in ((Column(("c",), kind), constant), (constant, Column(("c",), kind))):
            node = BINDER.compare(op, left, right)
            found = evaluate(node, rows).to_pylist()
            expected: list[bool | None] = [
                None
                if constant.value is None
                else OPS[op](
                    *((exact(v), exact(constant.value)) if left is not constant else (exact(constant.value), exact(v)))
                )
                for v in values
            ]
            assert found == [*expected, None], (constant, node)


@pytest.mark.parametrize(
    ("column", "constant", "kind"),
    [
        # A constant that has a place in the column's type is kept there, and the column is compared as it is.
        (t.BYTE, Literal(127, t.INTEGER), t.BYTE), (t.BYTE, Literal(128, t.INTEGER), t.INTEGER), (t.BYTE, Literal(-128, t.INTEGER), t.BYTE),
        (t.SHORT, number_literal("2.00"), t.SHORT), (t.LONG, Literal(1.0, t.DOUBLE), t.DOUBLE), (t.INTEGER, number_literal("2.5"), Decimal(11, 1)),
        (Decimal(5, 2), Literal(999, t.INTEGER), Decimal(5, 2)), (Decimal(5, 2), Literal(1000, t.INTEGER), Decimal(12, 2)),
        (Decimal(5, 2), number_literal("1.500"), Decimal(5, 2)), (Decimal(5, 2), number_literal("1.005"), Decimal(6, 3)), (Decimal(5, 2), number_literal("0"), Decimal(5, 2)),
        (t.FLOAT, Literal(1.5, t.DOUBLE), t.FLOAT), (t.FLOAT, Literal(0.1, t.DOUBLE), t.DOUBLE), (t.FLOAT, Literal(math.nan, t.DOUBLE), t.FLOAT),
        (t.FLOAT, Literal(2**24, t.INTEGER), t.FLOAT), (t.STRING, Literal("x", t.STRING), t.STRING), (t.STRING, Literal(1, t.INTEGER), t.LONG),
        (t.DATE, Literal("2024-01-01", t.STRING), t.DATE), (t.BOOLEAN, Literal("true", t.STRING), t.BOOLEAN), (t.DATE, Literal(None, t.VOID), t.DATE),
    ],
    ids=str,
)  # fmt: skip
def test_in_which_type_is_compared(column: DataType, constant: Literal, kind: DataType) -> None:
    node = BINDER.compare("=", Column(("c",), column), constant)
    assert isinstance(node, Compare) and type_of(node.left) == type_of(node.right) == kind
    assert isinstance(node.left, Column) == (kind == column)


TIMES = (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP)
KINDS = (
    *t.INTEGRAL,
    *t.FLOATING,
    Decimal(5, 2),
    t.STRING,
    t.BINARY,
    t.BOOLEAN,
    t.TIME,
    *TIMES,
    t.VOID,
    t.TIMESTAMP_NANOS,
    t.TIMESTAMP_NTZ_NANOS,
)


@pytest.mark.parametrize(("left", "right"), [*itertools.product(KINDS, repeat=2)], ids=str)
def test_types_of_two_columns(left: DataType, right: DataType) -> None:
    found = comparison_type(left, right)
    assert found == comparison_type(right, left)
    if left == right:
        assert found == left
        return
    shown = {t.TIMESTAMP_NANOS: t.TIMESTAMP, t.TIMESTAMP_NTZ_NANOS: t.TIMESTAMP_NTZ}
    pair = {shown.get(left, left), shown.get(right, right)}
    if len(pair) == 1:
        expected: DataType | None = next(iter(pair))
    elif t.VOID in pair:
        (expected,) = pair - {t.VOID}
    elif t.STRING in pair:
        (other,) = pair - {t.STRING}
        expected = (
            t.LONG if other in t.INTEGRAL else t.DOUBLE if other in t.FLOATING or isinstance(other, Decimal) else other
        )
    elif pair <= set(TIMES):
        expected = max(pair, key=TIMES.index)
    elif pair <= set(t.INTEGRAL):
        expected = max(pair, key=t.INTEGRAL.index)
    elif pair <= {*t.INTEGRAL, *t.FLOATING, Decimal(5, 2)}:
        return  # `test_functions.py` has the table of numbers
    else:
        expected = None
    assert found == expected


def test_what_cannot_be_compared() -> None:
    for left, right in ((t.BOOLEAN, t.DATE), (t.INTEGER, t.DATE), (t.BINARY, t.LONG), (t.TIME, t.DATE)):
        with pytest.raises(InvalidRequest) as caught:
            BINDER.compare("=", Column(("a",), left), Column(("b",), right))
        assert caught.value.code == "invalid-predicate"
    for kind in (t.Array(t.LONG), t.Map(t.LONG, t.LONG), t.Struct(), t.VARIANT):
        with pytest.raises(NotUnderstood):
            BINDER.compare("=", Column(("a",), kind), Column(("b",), kind))
    with pytest.raises(NotUnderstood):
        BINDER.compare("=", Column(("a",), Decimal(38, 0)), Column(("b",), Decimal(38, 38)))
    node = BINDER.compare("=", Literal(None, t.VOID), Literal(None, t.VOID))
    assert isinstance(node, Compare) and type_of(node.left) == t.BOOLEAN


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("0", 0, t.INTEGER), ("2147483647", 2**31 - 1, t.INTEGER), ("2147483648", 2**31, t.LONG), ("9223372036854775807", 2**63 - 1, t.LONG),
        ("9223372036854775808", Number(2**63), Decimal(19, 0)), ("1.0", Number("1.0"), Decimal(2, 1)), (".5", Number("0.5"), Decimal(1, 1)),
        ("0.001", Number("0.001"), Decimal(3, 3)), ("1.", Number("1"), Decimal(1, 0)), ("1e3", 1000.0, t.DOUBLE), ("1E-3", 0.001, t.DOUBLE),
        ("9" * 38, Number("9" * 38), Decimal(38, 0)), ("0." + "0" * 37 + "1", Number("1e-38"), Decimal(38, 38)),
    ],
)  # fmt: skip
def test_numbers_without_a_suffix(text: str, value: Any, kind: DataType) -> None:
    assert number_literal(text) == Literal(value, kind)


@pytest.mark.parametrize("text", ["9" * 39, "0." + "0" * 38 + "1", "4e", "4E"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        number_literal(text)
    assert caught.value.code == "invalid-predicate"


A, S, D, F = Column(("a",), t.INTEGER), Column(("s",), t.STRING), Column(("d",), t.DATE), Column(("f",), t.BOOLEAN)
ONE, TEXT, TRUE = Literal(1, t.INTEGER), Literal("x", t.STRING), Literal(True, t.BOOLEAN)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("ISNULL", (A,), IsNull(A)), ("isnotnull", (A,), Not(IsNull(A))), ("equal_null", (A, ONE), Compare("<=>", A, ONE)),
        ("if", (F, A, ONE), Call("case", (F, A, ONE))), ("nullif", (A, ONE), Call("case", (Compare("=", A, ONE), Literal(None, t.INTEGER), A))),
        ("startswith", (S, TEXT), StartsWith(S, "x")), ("left", (S, ONE), Call("substring", (S, ONE, ONE))), ("+", (D, ONE), Call("date_add", (D, ONE))),
        ("-", (D, ONE), Call("date_sub", (D, ONE))), ("negative", (ONE,), Literal(-1, t.INTEGER)), ("negative", (Literal(1.5, t.DOUBLE),), Literal(-1.5, t.DOUBLE)),
        ("negative", (number_literal("1.5"),), Literal(Number("-1.5"), Decimal(2, 1))), ("string", (A,), Cast(A, t.STRING)), ("int", (A,), A), ("date", (S,), Cast(S, t.DATE)),
        ("rpad", (TEXT, Literal(3, t.INTEGER), Literal(" ", t.STRING)), Literal("x  ", t.STRING)),
        ("rpad", (Literal("xyz", t.STRING), ONE, Literal(" ", t.STRING)), Literal("x", t.STRING)), ("rpad", (TEXT, Literal(0, t.INTEGER), Literal(" ", t.STRING)), Literal("", t.STRING)),
    ],
    ids=str,
)  # fmt: skip
def test_names_that_stand_for_others(name: str, args: tuple[tree.Expression, ...], expected: tree.Expression) -> None:
    assert BINDER.call(name, args) == expected


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("rpad", (TEXT, Literal(-1, t.INTEGER), Literal(" ", t.STRING))), ("rpad", (TEXT, Literal((1 << 16) + 1, t.INTEGER), Literal(" ", t.STRING))),
        ("rpad", (TEXT, ONE, TEXT)), ("rpad", (S, ONE, Literal(" ", t.STRING))), ("unheard", (A,)), ("year", (A,)), ("date", (A,)),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_left_to_the_engine(name: str, args: tuple[tree.Expression, ...]) -> None:
    with pytest.raises(NotUnderstood):
        BINDER.call(name, args)


def test_the_least_number_has_no_negative() -> None:
    for kind, low in ((t.BYTE, -128), (t.SHORT, -(2**15)), (t.INTEGER, -(2**31)), (t.LONG, -(2**63))):
        assert isinstance(BINDER.call("negative", (Literal(low, kind),)), Call)
        assert BINDER.call("negative", (Literal(low + 1, kind),)) == Literal(-low - 1, kind)


def test_in() -> None:
    assert BINDER.is_in(A, [ONE, Literal(2, t.INTEGER)]) == In(A, (ONE, Literal(2, t.INTEGER)))
    wide = BINDER.is_in(A, [ONE, Literal(2**40, t.LONG), Literal(None, t.VOID)])
    assert wide == In(Cast(A, t.LONG), (Literal(1, t.LONG), Literal(2**40, t.LONG), Literal(None, t.LONG)))
    assert BINDER.is_in(A, [ONE, A]) == Or(Compare("=", A, ONE), Compare("=", A, A))
    assert BINDER.is_in(A, [A, ONE, A]) == Or(Or(Compare("=", A, A), Compare("=", A, ONE)), Compare("=", A, A))


def test_like_and_booleans() -> None:
    assert BINDER.like(S, Literal("a%", t.STRING)) == tree.Like(S, "a%") and BINDER.like(
        S, Literal(None, t.STRING)
    ) == Literal(None, t.BOOLEAN)
    for child, pattern in ((A, TEXT), (S, S), (S, ONE)):
        with pytest.raises(NotUnderstood):
            BINDER.like(child, pattern)
    assert BINDER.boolean(F) is F and BINDER.boolean(Literal(None, t.VOID)) == Literal(None, t.BOOLEAN)
    for node in (A, ONE, TEXT):
        with pytest.raises(InvalidRequest):
            BINDER.boolean(node)


@pytest.mark.parametrize(
    ("source", "target"),
    [*itertools.permutations((t.VARIANT, t.STRING, t.BINARY, t.DATE, t.INTEGER, t.BOOLEAN, t.TIMESTAMP, t.DOUBLE), 2)],
    ids=str,
)
def test_casts_between_columns(source: DataType, target: DataType) -> None:
    """As Spark's ANSI casts, as far as they are computed here."""
    numbers, times = {t.INTEGER, t.DOUBLE}, {t.DATE, t.TIMESTAMP}
    pair = {source, target}
    known = t.VARIANT not in pair and (t.STRING in pair or pair <= numbers or pair <= times or t.BOOLEAN in pair)
    node = Column(("c",), source)
    if known:
        assert BINDER.cast(node, target) == Cast(node, target)
        return
    with pytest.raises(NotUnderstood):
        BINDER.cast(node, target)


@pytest.mark.parametrize("target", [t.STRING, t.BOOLEAN, t.VARIANT], ids=str)
@pytest.mark.parametrize(
    "source", [t.Struct((t.Field("a", t.LONG),)), t.Array(t.LONG), t.Map(t.STRING, t.LONG)], ids=str
)
def test_casts_of_values_with_members_are_left_to_spark(source: DataType, target: DataType) -> None:
    with pytest.raises(NotUnderstood):
        BINDER.cast(Column(("c",), source), target)


def test_types_of_long_expressions_are_asked_once_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would be asked for by all around it: a sum of 250 took a second and a half to bind."""
    asked = []

    def bind(types: Any) -> Any:
        asked.append(types)
        return plus.bind(types)

    plus = FUNCTIONS["+"]
    monkeypatch.setitem(FUNCTIONS, "+", replace(plus, bind=bind))
    column = Column(("a",), t.SHORT)
    made: Any = column
    for _ in range(100):
        made = BINDER.call("+", (made, Literal(1, t.INTEGER)))
    assert type_of(made) == t.INTEGER
    assert len(asked) == 200
    # What is known of the type is no part of what is equal.
    assert made == replace(made) and hash(made) == hash(replace(made)) and replace(made).known_type is None
    assert type_of(replace(made, args=(Literal(1, t.LONG), Literal(1, t.LONG)))) == t.LONG
