"""Casts of random values beside Java's arithmetic in plain Python; and which casts there are, pair by pair."""

from __future__ import annotations

import decimal
import itertools
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from paimon_values import parse_column_type

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.casts.cast import cast, cast_between
from alluvium.paimon.schema.logical import to_logical
from alluvium.schema.arrow import to_arrow

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
FAILS = object()


def wrapped(number: int, bits: int) -> int:
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def saturated(number: float, bits: int) -> int:
    """Java's narrowing of floating point: by way of int for types that are narrower."""
    wide = max(bits, 32)
    if math.isnan(number):
        return 0
    whole = math.inf if number == math.inf else -math.inf if number == -math.inf else math.trunc(number)
    low, high = -(1 << wide - 1), (1 << wide - 1) - 1
    return wrapped(int(min(max(whole, low), high)), bits)


def rounded(exact: Decimal, precision: int, scale: int) -> Decimal | None:
    with decimal.localcontext(decimal.Context(prec=500)):
        made = exact.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP)
        return made if abs(made) < Decimal(10) ** (precision - scale) else None


def cast_all(source: str, target: str, values: list[Any]) -> list[Any]:
    """Each by itself (one that fails fails all), and those that do not fail once more together."""
    kinds = parse_column_type(source), parse_column_type(target)
    arrow = to_arrow(to_logical(kinds[0]))
    found: list[Any] = []
    for value in values:
        try:
            (made,) = cast(pa.array([value], arrow), *kinds, "UTC").to_pylist()
        except InvalidRequest as error:
            assert error.code == "invalid-cast"
            made = FAILS
        found.append(made)
    fine = [(value, made) for value, made in zip(values, found, strict=True) if made is not FAILS]
    whole = pa.array([None, *(v for v, _ in fine), None], arrow).slice(1)
    together = cast(whole, *kinds, "UTC")
    assert together.type == to_arrow(to_logical(kinds[1])) and repr(together.to_pylist()) == repr(
        [*(m for _, m in fine), None]
    )
    return found


def integers(lot: random.Random, bits: int) -> list[int]:
    edges = [0, 1, -1, (1 << bits - 1) - 1, -(1 << bits - 1)]
    return edges + [lot.randint(-(1 << bits - 1), (1 << bits - 1) - 1) for _ in range(10)]


@pytest.mark.parametrize(("source", "target"), [*itertools.permutations(BITS, 2)])
def test_integers_wrap(source: str, target: str) -> None:
    values = integers(random.Random(source), BITS[source])
    assert cast_all(source, target, values) == [wrapped(v, BITS[target]) for v in values]


FLOATS = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, -129.0, 2.0**31 - 1, 2.0**31, -(2.0**31) - 1, 2.0**40 + 0.5, 2.0**63, -(2.0**63), 1e300, -1e300,
          math.inf, -math.inf, math.nan, 65536.0, 2.0**62]  # fmt: skip


@pytest.mark.parametrize("target", BITS)
def test_floating_point_saturates(target: str) -> None:
    assert cast_all("DOUBLE", target, FLOATS) == [saturated(v, BITS[target]) for v in FLOATS]
    single = [v for v in FLOATS if abs(v) < 1e30 or not math.isfinite(v)]
    exact = pa.array(single, pa.float32()).to_pylist()
    assert cast_all("FLOAT", target, single) == [saturated(v, BITS[target]) for v in exact]


@pytest.mark.parametrize("target", BITS)
def test_decimals_lose_their_fractions_and_high_bits(target: str) -> None:
    values = [
        Decimal(text)
        for text in (
            "0.00",
            "1.99",
            "-1.99",
            "127.50",
            "128.00",
            "99999999999999999999.99",
            "-99999999999999999999.99",
            "18446744073709551616.00",
            "9223372036854775807.99",
        )
    ]
    assert cast_all("DECIMAL(22, 2)", target, values) == [
        wrapped(wrapped(math.trunc(v), 64), BITS[target]) for v in values
    ]


@pytest.mark.parametrize("target", BITS)
def test_texts_as_integers(target: str) -> None:
    low, high = -(1 << BITS[target] - 1), (1 << BITS[target] - 1) - 1
    fine = {
        "0": 0,
        "+7": 7,
        "-7": -7,
        "007": 7,
        "1.": 1,
        "1.99": 1,
        "-1.99": -1,
        ".5": 0,
        str(low): low,
        str(high): high,
        f"{high}.9": high,
    }
    wrong = [str(low - 1), str(high + 1), "", " 1", "1 ", "1e1", "x", "--1", "+", ".", "٣", "1_0"]
    assert cast_all("STRING", target, [*fine, *wrong]) == [*fine.values(), *[FAILS] * len(wrong)]


DECIMALS = [(5, 2), (5, 0), (38, 0), (38, 37), (10, 4), (3, 3)]


@pytest.mark.parametrize(("precision", "scale"), DECIMALS)
def test_decimals_round_half_up_or_are_null(precision: int, scale: int) -> None:
    lot = random.Random(f"{precision} {scale}")
    target = f"DECIMAL({precision}, {scale})"
    for own_precision, own_scale in ((5, 2), (12, 6), (38, 10), (38, 0)):
        unscaled = [
            0,
            5,
            -5,
            50,
            15,
            25,
            -15,
            10**own_precision - 1,
            *(lot.randint(-(10**own_precision) + 1, 10**own_precision - 1) for _ in range(12)),
        ]
        values = [Decimal(n).scaleb(-own_scale, decimal.Context(prec=60)) for n in unscaled]
        if (own_precision, own_scale) == (precision, scale):
            continue
        assert cast_all(f"DECIMAL({own_precision}, {own_scale})", target, values) == [
            rounded(v, precision, scale) for v in values
        ]
    whole = integers(lot, 64)
    assert cast_all("BIGINT", target, whole) == [rounded(Decimal(v), precision, scale) for v in whole]
    assert cast_all("BOOLEAN", target, [True, False]) == [
        rounded(Decimal(1), precision, scale),
        rounded(Decimal(0), precision, scale),
    ]
    floats = [0.0, 0.5, 1.005, 2.675, -2.675, 1e10, 1e-10, 99.995, 1e300, 0.1]
    assert cast_all("DOUBLE", target, [*floats, math.nan, math.inf, -math.inf]) == [
        *(rounded(Decimal(repr(v)), precision, scale) for v in floats),
        FAILS,
        FAILS,
        FAILS,
    ]
    texts = ["0", "1.005", "-1.005", "+.5", "5.", "1e2", "1E-2", "999.995", "9" * 60]
    wrong = ["", " 1", "x", "NaN", "1f", "1_0", "e5"]
    assert cast_all("STRING", target, [*texts, *wrong]) == [
        *(rounded(Decimal(v), precision, scale) for v in texts),
        *[FAILS] * len(wrong),
    ]


def test_floating_point_of_others() -> None:
    assert cast_all("BIGINT", "DOUBLE", [2**53 + 1, -1]) == [float(2**53), -1.0]
    assert cast_all("BOOLEAN", "DOUBLE", [True, False]) == [1.0, 0.0]
    assert cast_all("DECIMAL(20, 2)", "DOUBLE", [Decimal("0.10"), Decimal("-123456789012345678.91")]) == [
        0.1,
        -123456789012345678.91,
    ]
    assert cast_all("DOUBLE", "FLOAT", [0.1, 1e300, -1e300]) == [0.10000000149011612, math.inf, -math.inf]
    fine = {
        "1": 1.0,
        " 1.5 ": 1.5,
        "1e3": 1000.0,
        "1d": 1.0,
        "1F": 1.0,
        "Infinity": math.inf,
        "-Infinity": -math.inf,
        "+Infinity": math.inf,
        ".5": 0.5,
    }
    wrong = ["", "x", "infinity", "inf", "1dd", "1_0", "d", "0x1", "nan"]
    assert cast_all("STRING", "DOUBLE", [*fine, *wrong]) == [*fine.values(), *[FAILS] * len(wrong)]
    (nan,) = cast_all("STRING", "DOUBLE", ["NaN"])
    assert math.isnan(nan)


def test_booleans() -> None:
    for kind in BITS:
        assert cast_all(kind, "BOOLEAN", [0, 1, -1, 100]) == [False, True, True, True]
    fine = {
        **dict.fromkeys(("t", "TRUE", "y", "Yes", "1"), True),
        **dict.fromkeys(("f", "False", "N", "no", "0"), False),
    }
    wrong = ["", "on", "2", " t"]
    assert cast_all("STRING", "BOOLEAN", [*fine, *wrong]) == [*fine.values(), *[FAILS] * len(wrong)]
    assert cast_all("BOOLEAN", "BIGINT", [True, False]) == [1, 0] and cast_all("BOOLEAN", "STRING", [True, False]) == [
        "true",
        "false",
    ]


# -- times ------------------------------------------------------------------------------------------------------------

US = 1_000_000


def stamps(source: str, target: str, micros: list[int], zone: str = "UTC") -> list[int]:
    """Of timestamps in microseconds since 1970 the numbers that the other type keeps."""
    kinds = parse_column_type(source), parse_column_type(target)
    arrow = to_arrow(to_logical(kinds[0]))
    values = pa.array(micros, pa.int64()).cast(pa.timestamp("us", arrow.tz)).cast(arrow, safe=False)
    found = cast(values, *kinds, zone)
    assert found.type == to_arrow(to_logical(kinds[1]))
    raw: list[int] = found.cast(
        pa.int32() if pa.types.is_date(found.type) or pa.types.is_time32(found.type) else pa.int64()
    ).to_pylist()
    return raw


MOMENTS = [
    0,
    1,
    999,
    1_000,
    999_999,
    US,
    123_456_789,
    -1,
    -999,
    -1_000,
    -1_001,
    -US,
    -US - 1,
    -123_456_789,
    253_402_300_799_999_999,
    -62_135_596_800_000_000,
]


@pytest.mark.parametrize("target", [0, 1, 2, 3, 4, 5])
def test_digits_of_seconds_are_cut(target: int) -> None:
    """Below the millisecond downwards, above it towards 1970."""
    found = stamps("TIMESTAMP(6)", f"TIMESTAMP({target})", MOMENTS)
    expected = []
    for micros in MOMENTS:
        step = 10 ** min(6 - target, 3)
        cut = micros // step * step
        coarse = 10 ** (6 - target)
        expected.append(cut if target >= 3 else (abs(cut) // coarse * coarse) * (1 if cut >= 0 else -1))
    assert found == expected


def test_seconds_since_1970() -> None:
    found = stamps("TIMESTAMP(6)", "BIGINT", MOMENTS)
    assert found == [int(Decimal(micros // 1000) / 1000) for micros in MOMENTS]
    assert stamps("TIMESTAMP(6)", "INT", [5 * US, -5 * US]) == [5, -5]
    assert cast_all("BIGINT", "TIMESTAMP(3)", [0]) is not None
    numbers = cast(pa.array([0, 5, -5]), parse_column_type("BIGINT"), parse_column_type("TIMESTAMP(3)"), "UTC")
    assert numbers.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() == [0, 5 * US, -5 * US]


def test_days_and_times_of_day() -> None:
    day = 86_400 * US
    assert stamps("TIMESTAMP(6)", "DATE", [0, day - 1, day, -1, -day, -day - 1]) == [0, 0, 1, -1, -1, -2]
    assert stamps("TIMESTAMP(6)", "TIME(3)", [0, 1_500, day - 1, -1, -day]) == [0, 1, 86_399_999, 86_399_999, 0]
    ltz = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
    assert stamps(ltz, "DATE", [0, 15 * 3600 * US], "Asia/Tokyo") == [0, 1]
    assert stamps(ltz, "TIME(3)", [0], "Asia/Tokyo") == [9 * 3_600_000]
    assert stamps(ltz, "TIMESTAMP(6)", [0], "Asia/Tokyo") == [9 * 3600 * US] and stamps(
        "TIMESTAMP(6)", ltz, [9 * 3600 * US], "Asia/Tokyo"
    ) == [0]


TEXTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("DATE", {"1970-01-02": 1, "1970-1-2": 1, "1969-12-31": -1, "2024-02-29": 19782, "5": 5, "-5": -5, "1970-01-02 anything": 1, "0001-01-01": -719162},
     ["2023-02-29", "1970-13-01", "1970-01-32", "x", "", "1970-01", "1970-01-02T00:00"]),
    ("TIME(3)", {"00:00": 0, "1:2": 3_720_000, "23:59:59": 86_399_000, "00:00:00.1": 100, "00:00:00.1239": 123, "5": 5}, ["24:00", "00:60", "00:00:60", "x", "", "1:", "00:00:00."]),
    ("TIMESTAMP(6)", {"1970-01-01": 0, "1970-01-01 00:00:01": US, "1970-01-01T00:00:01.5": 1_500_000, "1970-01-01 0:0:0.123456789": 123_456, "1970-02-31": 58 * 86_400 * US, "5": 5, "-5": -5},
     ["1970-01-01 00:00", "1970-13-01", "1970-01-32", "1970-01-01 24:00:00", "1970-01-01 00:60:00", "1970-01-01 00:00:60", "x", "", "70-01-01"]),
    ("TIMESTAMP(3)", {"1970-01-01 00:00:00.1239": 123_000, "5": 5_000}, ["x"]), ("TIMESTAMP(6) WITH LOCAL TIME ZONE", {"1970-01-01 00:00:01": US}, ["5", "-5", "x"]),
]  # fmt: skip


@pytest.mark.parametrize(("target", "fine", "wrong"), TEXTS, ids=[target for target, _, _ in TEXTS])
def test_texts_as_times(target: str, fine: dict[str, Any], wrong: list[str]) -> None:
    kinds = parse_column_type("STRING"), parse_column_type(target)
    found = cast(pa.array([*fine, None]), *kinds, "UTC")
    number = pa.int32() if target in ("DATE", "TIME(3)") else pa.int64()
    values = found if number == pa.int32() else found.cast(pa.timestamp("us", found.type.tz))
    assert values.cast(number).to_pylist() == [*fine.values(), None]
    assert cast_all("STRING", target, wrong) == [FAILS] * len(wrong)


def test_times_as_texts() -> None:
    for target, micros, text in (
        ("TIMESTAMP(6)", 1, "1970-01-01 00:00:00.000001"), ("TIMESTAMP(3)", -1_000, "1969-12-31 23:59:59.999"), ("TIMESTAMP(0)", US, "1970-01-01 00:00:01"),
        ("TIMESTAMP(1)", 100_000, "1970-01-01 00:00:00.1"),
    ):  # fmt: skip
        kind = parse_column_type(target)
        values = (
            pa.array([micros, None], pa.int64()).cast(pa.timestamp("us")).cast(to_arrow(to_logical(kind)), safe=False)
        )
        assert cast(values, kind, parse_column_type("STRING"), "UTC").to_pylist() == [text, None]
    millis = pa.array([0, 1, 100, 120, 3_723_000, None], pa.int32()).cast(pa.time32("ms"))
    for precision, texts in ((3, ["00:00:00.0", "00:00:00.001", "00:00:00.1", "00:00:00.12", "01:02:03.0"]), (1, ["00:00:00.0", "00:00:00.0", "00:00:00.1", "00:00:00.1", "01:02:03.0"]),
                             (0, ["00:00:00", "00:00:00", "00:00:00", "00:00:00", "01:02:03"])):  # fmt: skip
        assert cast(
            millis, parse_column_type(f"TIME({precision})"), parse_column_type("STRING"), "UTC"
        ).to_pylist() == [*texts, None]
    assert cast(
        pa.array([0, -1], pa.int32()).cast(pa.date32()), parse_column_type("DATE"), parse_column_type("STRING"), "UTC"
    ).to_pylist() == ["1970-01-01", "1969-12-31"]


# -- texts and bytes --------------------------------------------------------------------------------------------------


def test_texts_are_cut_and_filled() -> None:
    assert cast_all("STRING", "VARCHAR(2)", ["abc", "a", "äöü"]) == ["ab", "a", "äö"] and cast_all(
        "STRING", "CHAR(3)", ["abcd", "a"]
    ) == ["abc", "a  "]
    assert cast_all("INT", "VARCHAR(2)", [12345, -1]) == ["12", "-1"] and cast_all(
        "DECIMAL(5, 2)", "STRING", [Decimal("1.50")]
    ) == ["1.50"]
    assert cast_all("BYTES", "STRING", [b"ab", b"\xff"]) == ["ab", "\ufffd"] and cast_all(
        "BYTES", "VARCHAR(1)", [b"ab"]
    ) == ["a"]
    assert (
        cast_all("STRING", "BYTES", ["ä"]) == [b"\xc3\xa4"]
        and cast_all("STRING", "VARBINARY(1)", ["ab"]) == [b"a"]
        and cast_all("BYTES", "BINARY(3)", [b"a", b"abcd"]) == [b"a\0\0", b"abc"]
    )
    assert cast_all("DOUBLE", "STRING", [1.0, 1e10, 1.5e-7]) == ["1.0", "1.0E10", "1.5E-7"]


NUMERIC = {*BITS, "FLOAT", "DOUBLE", "DECIMAL(9, 2)"}
STAMPS, TEXT, DATA = {"TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"}, {"CHAR(3)", "STRING"}, {"BINARY(3)", "BYTES", "BLOB"}
ALL = [*NUMERIC, *STAMPS, *TEXT, *DATA, "BOOLEAN", "DATE", "TIME(3)", "VARIANT"]
RULES: list[tuple[set[str], Callable[[str], bool]]] = [
    (TEXT, lambda s: s != "VARIANT"), (DATA, lambda s: s in TEXT | DATA), ({"BOOLEAN"}, lambda s: s in {*BITS, *TEXT}), ({"INT", "BIGINT"}, lambda s: s in {*NUMERIC, "BOOLEAN", *TEXT, *STAMPS}),
    (NUMERIC - {"INT", "BIGINT"}, lambda s: s in {*NUMERIC, "BOOLEAN", *TEXT}), ({"DATE", "TIME(3)"}, lambda s: s in TEXT | STAMPS),
    (STAMPS, lambda s: s in {*TEXT, "DATE", "TIME(3)", "INT", "BIGINT", *STAMPS}), ({"VARIANT"}, lambda s: False),
]  # fmt: skip


@pytest.mark.parametrize("target", sorted(ALL))
def test_which_casts_there_are(target: str) -> None:
    rule = next(rule for targets, rule in RULES if target in targets)
    for source in ALL:
        kinds = parse_column_type(source), parse_column_type(target)
        if source == target or rule(source):
            conversion = cast_between(*kinds)
            assert (conversion is None) == (source == target), source
            continue
        with pytest.raises(UnsupportedFeature) as caught:
            cast_between(*kinds)
        assert caught.value.code == "unsupported-cast", source
