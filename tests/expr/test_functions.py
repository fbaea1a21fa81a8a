"""Each function beside plain Python, over values at the edges of its types; and which types it takes."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.bind import CAST_FUNCTIONS, type_of
from alluvium.expr.evaluate import evaluate
from alluvium.expr.functions import ALIASES, FUNCTIONS, branch_type, decimal_of, wider_number
from alluvium.expr.sql.parse import parse_predicate, parse_value
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Decimal, Field, Struct

D = decimal.Decimal
UTC = dt.timezone.utc
INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
VALUES: dict[str, tuple[DataType, list[Any]]] = {
    "y": (t.BYTE, [None, -128, -1, 0, 3, 127]),
    "i": (t.INTEGER, [None, INT_MIN, -7, -1, 0, 1, 2, 40, INT_MAX]),
    "j": (t.INTEGER, [None, INT_MIN, -2, -1, 0, 3, INT_MAX]),
    "n": (t.LONG, [None, LONG_MIN, -3, -1, 0, 2, LONG_MAX]),
    "d": (t.DOUBLE, [None, -math.inf, -2.5, -0.5, 0.0, 0.5, 1.005, 2.5, 1e18, 1e19, math.inf, math.nan]),
    "f": (t.FLOAT, [None, -1.5, 0.0, 2.5, math.nan]),
    "e": (Decimal(5, 2), [None, D("-999.99"), D("0.00"), D("1.50"), D("999.99")]),
    "g": (Decimal(3, 1), [None, D("-99.9"), D("0.5")]),
    "s": (t.STRING, [None, "", "abc", " pad ", "\tx", "héß", "a😀b", "2024-02-29"]),
    "u": (t.STRING, [None, "", "b", "XY"]),
    "x": (t.BINARY, [None, b"", b"\xff\x00a"]),
    "b": (t.BOOLEAN, [None, True, False]),
    "day": (t.DATE, [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    "day2": (t.DATE, [None, dt.date(1970, 1, 1), dt.date(2024, 12, 31)]),
    "tn": (t.TIMESTAMP_NTZ, [None, dt.datetime(1969, 12, 31, 23, 59, 58, 7), dt.datetime(2024, 5, 15, 13, 14, 15)]),
    "ts": (t.TIMESTAMP, [None, dt.datetime(1969, 12, 31, 23, 59, 58, 7, UTC), dt.datetime(2024, 5, 15, 13, 14, 15, 0, UTC)]),
}  # fmt: skip
Overflow = "arithmetic-overflow"
Zero = "division-by-zero"


class Refused(Exception):
    """A code of an error."""


def within(value: int, bits: int) -> int:
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Refused(Overflow)
    return value


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise Refused(Zero)
    if isinstance(a, float):
        return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def quotient(a: Any, b: Any) -> float:
    if b == 0:
        raise Refused(Zero)
    return float(a) / float(b)


def whole(a: int, b: int) -> int:
    if b == 0:
        raise Refused(Zero)
    return within(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), 64)


def bigint(function: Callable[[float], int]) -> Callable[[float], int]:
    def one(value: float) -> int:
        if math.isnan(value) or not -(2.0**63) <= value < 2.0**63:
            raise Refused(Overflow)
        return function(value)

    return one


def half_up(value: float, places: int) -> float:
    if not math.isfinite(value):
        return value
    return float(D(repr(value)).quantize(D(1).scaleb(-places), rounding=decimal.ROUND_HALF_UP))


def substring(text: str, start: int, length: int = INT_MAX) -> str:
    """Positions count from 1, and 0 is 1; from the end, a window that begins before the text is cut."""
    first = max(start - 1, 0) if start >= 0 else len(text) + start
    return text[max(first, 0) : max(first + length, 0)]


def moved(day: dt.date, days: int) -> dt.date:
    return day + dt.timedelta(days)


CASES: list[tuple[str, DataType, Callable[..., Any]]] = [
    ("i + j", t.INTEGER, lambda i, j: within(i + j, 32)),
    ("i - j", t.INTEGER, lambda i, j: within(i - j, 32)),
    ("i * j", t.INTEGER, lambda i, j: within(i * j, 32)),
    ("n + i", t.LONG, lambda n, i: within(n + i, 64)),
    ("y + y", t.BYTE, lambda y: within(2 * y, 8)),
    ("i / j", t.DOUBLE, quotient),
    ("n div i", t.LONG, whole),
    ("i % j", t.INTEGER, remainder),
    ("n % i", t.LONG, remainder),
    ("d % 2D", t.DOUBLE, lambda d: remainder(d, 2.0)),
    ("d % f", t.DOUBLE, remainder),
    ("d % CAST(NULL AS DOUBLE)", t.DOUBLE, lambda d: None),
    ("e + g", Decimal(6, 2), lambda e, g: e + g),
    ("e - g", Decimal(6, 2), lambda e, g: e - g),
    ("e * g", Decimal(9, 3), lambda e, g: e * g),
    ("e + i", Decimal(13, 2), lambda e, i: e + i),
    ("-i", t.INTEGER, lambda i: within(-i, 32)),
    ("-e", Decimal(5, 2), lambda e: -e),
    ("abs(n)", t.LONG, lambda n: within(abs(n), 64)),
    ("abs(e)", Decimal(5, 2), abs),
    ("floor(d)", t.LONG, bigint(math.floor)),
    ("ceil(d)", t.LONG, bigint(math.ceil)),
    ("floor(i)", t.LONG, lambda i: i),
    ("ceil(f)", t.LONG, bigint(math.ceil)),
    ("round(d)", t.DOUBLE, lambda d: half_up(d, 0)),
    ("round(d, 2)", t.DOUBLE, lambda d: half_up(d, 2)),
    ("round(f)", t.FLOAT, lambda f: half_up(f, 0)),
    ("upper(s)", t.STRING, str.upper),
    ("lower(s)", t.STRING, str.lower),
    ("length(s)", t.INTEGER, len),
    ("length(x)", t.INTEGER, len),
    ("trim(s)", t.STRING, lambda s: s.strip(" ")),
    ("ltrim(s)", t.STRING, lambda s: s.lstrip(" ")),
    ("rtrim(s)", t.STRING, lambda s: s.rstrip(" ")),
    *(
        (f"substring(s, {start}, {length})", t.STRING, lambda s, a=start, b=length: substring(s, a, b))
        for start, length in itertools.product((-4, -2, -1, 0, 1, 2, 3, 9), (-1, 0, 1, 2, 9))
    ),
    *((f"substring(s, {start})", t.STRING, lambda s, a=start: substring(s, a)) for start in (-2, 0, 2, 7)),
    ("substring(s, CAST(NULL AS INT), 1)", t.STRING, lambda s: None),
    ("repeat(s, 3)", t.STRING, lambda s: s * 3),
    ("repeat(s, -1)", t.STRING, lambda s: ""),
    ("repeat(s, NULL)", t.STRING, lambda s: None),
    ("concat(s, u)", t.STRING, lambda s, u: s + u),
    ("concat(i, b, day)", t.STRING, lambda i, b, day: f"{i}{str(b).lower()}{day.year:04d}{day.isoformat()[-6:]}"),
    ("contains(s, 'b')", t.BOOLEAN, lambda s: "b" in s),
    ("startswith(s, 'a')", t.BOOLEAN, lambda s: s.startswith("a")),
    ("endswith(s, 'b')", t.BOOLEAN, lambda s: s.endswith("b")),
    ("contains(s, NULL)", t.BOOLEAN, lambda s: None),
    ("year(day)", t.INTEGER, lambda day: day.year),
    ("quarter(day)", t.INTEGER, lambda day: (day.month + 2) // 3),
    ("month(day)", t.INTEGER, lambda day: day.month),
    ("day(tn)", t.INTEGER, lambda tn: tn.day),
    ("hour(ts)", t.INTEGER, lambda ts: ts.hour),
    ("minute(tn)", t.INTEGER, lambda tn: tn.minute),
    ("second(ts)", t.INTEGER, lambda ts: ts.second),
    ("datediff(day, day2)", t.INTEGER, lambda day, day2: (day - day2).days),
    ("date_add(day2, y)", t.DATE, moved),
    ("date_sub(day2, y)", t.DATE, lambda day2, y: moved(day2, -y)),
    ("date_trunc('YEAR', ts)", t.TIMESTAMP, lambda ts: dt.datetime(ts.year, 1, 1, tzinfo=UTC)),
    ("date_trunc('quarter', ts)", t.TIMESTAMP, lambda ts: dt.datetime(ts.year, (ts.month - 1) // 3 * 3 + 1, 1, tzinfo=UTC)),
    ("date_trunc('MONTH', ts)", t.TIMESTAMP, lambda ts: dt.datetime(ts.year, ts.month, 1, tzinfo=UTC)),
    ("date_trunc('WEEK', ts)", t.TIMESTAMP, lambda ts: midnight(ts) - dt.timedelta(ts.weekday())),
    ("date_trunc('DAY', ts)", t.TIMESTAMP, lambda ts: midnight(ts)),
    ("date_trunc('HOUR', ts)", t.TIMESTAMP, lambda ts: ts.replace(minute=0, second=0, microsecond=0)),
    ("date_trunc('MINUTE', ts)", t.TIMESTAMP, lambda ts: ts.replace(second=0, microsecond=0)),
    ("date_trunc('SECOND', ts)", t.TIMESTAMP, lambda ts: ts.replace(microsecond=0)),
    ("trunc(day2, 'YY')", t.DATE, lambda day2: dt.date(day2.year, 1, 1)),
    ("trunc(day2, 'mon')", t.DATE, lambda day2: dt.date(day2.year, day2.month, 1)),
    ("trunc(day2, 'WEEK')", t.DATE, lambda day2: moved(day2, -day2.weekday())),
    ("trunc(day2, 'quarter')", t.DATE, lambda day2: dt.date(day2.year, (day2.month - 1) // 3 * 3 + 1, 1)),
    ("date_format(ts, 'yyyy-MM-dd HH:mm:ss')", t.STRING, lambda ts: ts.strftime("%Y-%m-%d %H:%M:%S")),
    ("date_format(tn, 'dd.MM_yyyy/ss')", t.STRING, lambda tn: tn.strftime("%d.%m_%Y/%S")),
]  # fmt: skip
#: Which are told of null by themselves.
NULLABLE: list[tuple[str, DataType, Callable[..., Any]]] = [
    ("isnan(d)", t.BOOLEAN, lambda d: d is not None and math.isnan(d)),
    ("coalesce(i, j)", t.INTEGER, lambda i, j: j if i is None else i),
    ("coalesce(i, NULL, n)", t.LONG, lambda i, n: n if i is None else i),
    ("nvl(i, 1.5D)", t.DOUBLE, lambda i: 1.5 if i is None else float(i)),
    ("CASE WHEN i > 0 THEN i WHEN i = 0 THEN n END", t.LONG, lambda i, n: None if i is None or i < 0 else i or n),
    ("CASE WHEN b THEN 'yes' ELSE s END", t.STRING, lambda b, s: "yes" if b else s),
    ("CASE i WHEN 1 THEN 'one' WHEN NULL THEN 'none' ELSE 'other' END", t.STRING, lambda i: "one" if i == 1 else "other"),
    ("if(b, i, j)", t.INTEGER, lambda b, i, j: i if b else j),
    ("nullif(i, j)", t.INTEGER, lambda i, j: None if i is not None and i == j else i),
]  # fmt: skip


def midnight(time: dt.datetime) -> dt.datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


def columns_of(text: str, python: Callable[..., Any]) -> list[str]:
    """As the function's own parameters call them, or in the order in which they stand in the text."""
    code = getattr(python, "__code__", None)
    known = [] if code is None else list(code.co_varnames[: code.co_argcount - len(python.__defaults__ or ())])
    if known and set(known) <= set(VALUES):
        return known
    return sorted((n for n in VALUES if _place(n, text) >= 0), key=lambda n: _place(n, text))


def _place(name: str, text: str) -> int:
    found = re.search(rf"\b{name}\b(?!\()", text)
    return found.start() if found else -1


@pytest.mark.parametrize(
    ("text", "kind", "python", "skips_null"),
    [*((*one, True) for one in CASES), *((*one, False) for one in NULLABLE)],
    ids=[one[0] for one in (*CASES, *NULLABLE)],
)
def test_beside_plain_python(text: str, kind: DataType, python: Callable[..., Any], skips_null: bool) -> None:
    """All pairs of values: where Python gives a value it is ours, where it gives a code, ours has it."""
    names = columns_of(text, python)
    schema = Struct((*(Field(name, VALUES[name][0]) for name in names), Field("want", kind)))
    rows: list[tuple[Any, ...]] = list(itertools.product(*(VALUES[name][1] for name in names)))
    good: list[tuple[Any, ...]] = []
    refused: list[tuple[Any, str]] = []
    for row in rows:
        try:
            good.append((*row, None if skips_null and None in row else python(*row)))
        except Refused as error:
            refused.append((row, str(error)))
    predicate = parse_predicate(f"({text}) <=> want", schema)
    assert isinstance(predicate, tree.Compare) and type_of(predicate.left) == kind

    def table(chosen: list[tuple[Any, ...]]) -> pa.Table:
        arrays = [pa.array([row[n] for row in chosen], to_arrow(f.type)) for n, f in enumerate(schema.fields)]
        return pa.table(arrays, names=list(schema.names))

    found = evaluate(predicate, table(good)).to_pylist()
    assert [row for row, same in zip(good, found, strict=True) if not same] == []
    for row, code in refused:
        with pytest.raises(InvalidRequest) as caught:
            evaluate(predicate, table([(*row, None)]))
        assert caught.value.code == code, row


@pytest.mark.parametrize(
    "text",
    ["repeat(s, i) = 'a'", "repeat(s, 4097) = 'a'", "substring(s, i, 1) = 'a'", "contains(s, u)", "round(d, 31) = 1",
     "round(d, -1) = 1", "round(d, i) = 1", "date_trunc('DECADE', ts) = ts", "date_trunc(u, ts) = ts", "trunc(day, 'DAY') = day",
     "date_format(ts, 'EEE') = 'a'", "date_format(ts, u) = 'a'", "date_format(ts, '') = 'a'"],
)  # fmt: skip
def test_what_is_left_to_the_engine(text: str) -> None:
    schema = Struct(tuple(Field(name, kind) for name, (kind, _) in VALUES.items()))
    longest = max(len(values) for _, values in VALUES.values())
    padded = {n: pa.array((v + [None] * longest)[:longest], to_arrow(k)) for n, (k, v) in VALUES.items()}
    with pytest.raises(InvalidRequest) as caught:
        evaluate(parse_predicate(text, schema), pa.table(padded))
    assert caught.value.code == "unsupported-expression"


@pytest.mark.parametrize("text", ["date_add(day, 2147483647) = day", "date_sub(day, -2147483647) = day"])
def test_days_out_of_range(text: str) -> None:
    schema = Struct((Field("day", t.DATE),))
    with pytest.raises(InvalidRequest) as caught:
        evaluate(parse_predicate(text, schema), pa.table({"day": pa.array([dt.date(9999, 12, 31)])}))
    assert caught.value.code == Overflow


def test_years_that_have_no_four_digits() -> None:
    schema = Struct((Field("ts", t.TIMESTAMP),))
    for micros in (-62_135_596_800_000_001, 253_402_300_800_000_000):
        rows = pa.table({"ts": pa.array([0, micros], pa.timestamp("us", "UTC"))})
        with pytest.raises(InvalidRequest) as caught:
            evaluate(parse_predicate("date_format(ts, 'yyyy') = '1'", schema), rows)
        assert caught.value.code == "unsupported-expression"
    for micros in (-62_135_596_800_000_000, 253_402_300_799_999_999):
        rows = pa.table({"ts": pa.array([micros], pa.timestamp("us", "UTC"))})
        assert evaluate(parse_predicate("date_format(ts, 'MM') IN ('01', '12')", schema), rows).to_pylist() == [True]


# --- types --------------------------------------------------------------------------------------------------------

NUMBERS: list[DataType] = [t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE]
DECIMALS = [Decimal(5, 2), Decimal(38, 0), Decimal(38, 38), Decimal(10, 10)]
OTHERS: list[DataType] = [t.STRING, t.BINARY, t.BOOLEAN, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, Array(t.LONG)]
DIGITS = {t.BYTE: 3, t.SHORT: 5, t.INTEGER: 10, t.LONG: 20}


def wider(a: DataType, b: DataType) -> DataType | None:
    """Spark's table of what two numbers are computed in."""
    if a == b:
        return a if a in NUMBERS or isinstance(a, Decimal) else None
    for one in (a, b):
        if one not in NUMBERS and not isinstance(one, Decimal):
            return None
    floating = [x for x in (a, b) if x in (t.FLOAT, t.DOUBLE)]
    if floating:
        return t.DOUBLE
    if not isinstance(a, Decimal) and not isinstance(b, Decimal):
        return NUMBERS[max(NUMBERS.index(a), NUMBERS.index(b))]
    x, y = (one if isinstance(one, Decimal) else Decimal(DIGITS[one], 0) for one in (a, b))
    scale = max(x.scale, y.scale)
    digits = max(x.precision - x.scale, y.precision - y.scale) + scale
    return Decimal(digits, scale) if digits <= 38 else None


@pytest.mark.parametrize("left", [*NUMBERS, *DECIMALS, *OTHERS], ids=str)
@pytest.mark.parametrize("right", [*NUMBERS, *DECIMALS, *OTHERS], ids=str)
def test_the_wider_of_two_types(left: DataType, right: DataType) -> None:
    wanted = wider(left, right)
    # Of a decimal beside text or a day there is none, whatever the digits.
    assert wider_number(left, right) == wanted
    assert branch_type([left, right]) == (left if left == right else wanted)
    assert branch_type([t.VOID, left, t.VOID, right]) == (left if left == right else wanted)
    for op in "+-*":
        found = FUNCTIONS[op].bind([left, right])
        x, y = decimal_of(left), decimal_of(right)
        if wanted in NUMBERS:
            assert wanted is not None and found is not None
            assert (found.parameters, found.result) == ((wanted, wanted), wanted)
        elif x is None or y is None:
            assert found is None
        elif op == "*":
            digits = x.precision + y.precision + 1
            assert (found and found.result) == (Decimal(digits, x.scale + y.scale) if digits <= 38 else None)
            assert found is None or found.parameters == (x, y)
        else:
            scale = max(x.scale, y.scale)
            digits = max(x.precision - x.scale, y.precision - y.scale) + scale + 1
            assert (found and found.result) == (Decimal(digits, scale) if digits <= 38 else None)
    division = FUNCTIONS["/"].bind([left, right])
    of_decimals = isinstance(left, Decimal) or isinstance(right, Decimal)
    divisible = wanted is not None and (not of_decimals or left in t.FLOATING or right in t.FLOATING)
    assert (division is not None) == divisible
    assert division is None or (division.parameters, division.result) == ((t.DOUBLE, t.DOUBLE), t.DOUBLE)
    whole_division = FUNCTIONS["div"].bind([left, right])
    assert (whole_division is not None) == (left in t.INTEGRAL and right in t.INTEGRAL)
    rest = FUNCTIONS["%"].bind([left, right])
    assert (rest is not None) == (wanted in NUMBERS) and (rest is None or rest.result == wanted)


#: Of one argument: which types it takes, and what comes of it; None: the type itself.
ONE: dict[str, tuple[tuple[DataType, ...], DataType | None]] = {
    "negative": ((*NUMBERS, *DECIMALS), None),
    "abs": ((*NUMBERS, *DECIMALS), None),
    "floor": (tuple(NUMBERS), t.LONG),
    "ceil": (tuple(NUMBERS), t.LONG),
    "round": ((t.FLOAT, t.DOUBLE), None),
    "isnan": ((t.FLOAT, t.DOUBLE), t.BOOLEAN),
    "length": ((t.STRING, t.BINARY), t.INTEGER),
    "hour": ((t.TIMESTAMP, t.TIMESTAMP_NTZ), t.INTEGER),
    "minute": ((t.TIMESTAMP, t.TIMESTAMP_NTZ), t.INTEGER),
    "second": ((t.TIMESTAMP, t.TIMESTAMP_NTZ), t.INTEGER),
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim"), ((t.STRING, t.VOID), t.STRING)),
    **dict.fromkeys(
        ("year", "quarter", "month", "day"), ((t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.STRING, t.VOID), t.INTEGER)
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_what_functions_of_one_argument_take(name: str) -> None:
    taken, result = ONE[name]
    for kind in [*NUMBERS, *DECIMALS, *OTHERS, t.VOID]:
        found = FUNCTIONS[name].bind([kind])
        assert (found is not None) == (kind in taken), kind
        assert found is None or found.result == (result or kind)
    assert FUNCTIONS[name].bind([]) is None
    twice = FUNCTIONS[name].bind([taken[0], taken[0]])
    assert twice is None or name == "round"


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("round", [t.DOUBLE, t.INTEGER], t.DOUBLE),
        ("round", [t.DOUBLE, t.STRING], None),
        ("round", [t.INTEGER, t.INTEGER], None),
        ("round", [t.DOUBLE, t.INTEGER, t.INTEGER], None),
        ("+", [t.INTEGER], None),
        ("+", [t.VOID, t.INTEGER], t.INTEGER),
        ("+", [t.LONG, t.VOID], t.LONG),
        ("+", [t.VOID, t.VOID], None),
        ("/", [t.INTEGER], None),
        ("%", [t.INTEGER] * 3, None),
        ("div", [t.VOID, t.BYTE], t.LONG),
        ("substring", [t.STRING, t.INTEGER], t.STRING),
        ("substring", [t.STRING, t.BYTE, t.SHORT], t.STRING),
        ("substring", [t.STRING, t.LONG], None),
        ("substring", [t.BINARY, t.INTEGER], None),
        ("substring", [t.STRING], None),
        ("repeat", [t.STRING, t.BYTE], t.STRING),
        ("repeat", [t.STRING, t.LONG], None),
        ("concat", [], None),
        ("concat", [t.STRING, t.DATE, t.BOOLEAN, t.LONG, t.VOID], t.STRING),
        ("concat", [t.STRING, t.DOUBLE], None),
        ("concat", [t.TIMESTAMP], None),
        ("datediff", [t.TIMESTAMP, t.STRING], t.INTEGER),
        ("datediff", [t.INTEGER, t.DATE], None),
        ("date_trunc", [t.STRING, t.DATE], t.TIMESTAMP),
        ("date_trunc", [t.STRING, t.STRING], None),
        ("coalesce", [], None),
        ("coalesce", [t.STRING, t.LONG], None),
        ("case", [t.BOOLEAN], None),
        ("case", [t.BOOLEAN, t.BYTE, t.LONG], t.LONG),
        ("case", [t.VOID, t.BYTE, t.BOOLEAN, t.VOID], t.BYTE),
        ("case", [t.LONG, t.BYTE], None),
        ("case", [t.BOOLEAN, t.BYTE, t.LONG, t.BYTE], None),
        ("case", [t.BOOLEAN, t.BYTE, t.STRING], None),
    ],
)
def test_what_others_take(name: str, types: list[DataType], result: DataType | None) -> None:
    found = FUNCTIONS[name].bind(types)
    assert (None if found is None else found.result) == result
    assert found is None or len(found.parameters) == len(types)


@pytest.mark.parametrize("alias", ALIASES)
def test_other_names(alias: str) -> None:
    schema = Struct(tuple(Field(name, kind) for name, (kind, _) in VALUES.items()))
    args = {
        "substring": "s, 1",
        "date_add": "day, 1",
        "datediff": "day, day2",
        "coalesce": "i, 1",
        "ceil": "d",
        "day": "day",
    }
    ours = parse_predicate(f"{alias}({args.get(ALIASES[alias], 's')}) IS NULL", schema)
    theirs = parse_predicate(f"{ALIASES[alias]}({args.get(ALIASES[alias], 's')}) IS NULL", schema)
    assert ours == theirs


@pytest.mark.parametrize("name", CAST_FUNCTIONS)
def test_functions_that_are_casts(name: str) -> None:
    kinds = {"int": t.INTEGER, "bigint": t.LONG, "tinyint": t.BYTE, "smallint": t.SHORT, "to_date": t.DATE, "to_timestamp": t.TIMESTAMP,
             "decimal": Decimal(10, 0), "float": t.FLOAT, "double": t.DOUBLE, "string": t.STRING, "boolean": t.BOOLEAN,
             "binary": t.BINARY, "date": t.DATE, "timestamp": t.TIMESTAMP}  # fmt: skip
    assert CAST_FUNCTIONS[name] == kinds[name]
    node = parse_predicate(f"{name}(s) IS NULL", Struct((Field("s", t.STRING),)))
    assert isinstance(node, tree.IsNull) and type_of(node.child) == kinds[name]


def test_rounding_comes_to_no_zero_below_zero() -> None:
    """Spark rounds by way of Java's decimals, which have none; a partition of -0.0 is another than that of 0.0."""
    values = pa.table({"d": [-0.0, -0.004, 0.0]})
    value = parse_value("round(d, 2)", Struct((Field("d", t.DOUBLE),)), t.DOUBLE)
    assert [math.copysign(1, found) for found in evaluate(value, values).to_pylist()] == [1, 1, 1]
