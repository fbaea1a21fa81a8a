"""Numbers as Java prints them, by the table of `Double.toString` and what must hold of every text; and patterns."""

from __future__ import annotations

import math
import random
import re
import struct

import numpy as np
import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms.durations import parse_duration
from alluvium.paimon.terms.java_text import float_text
from alluvium.paimon.terms.patterns import parse_pattern

#: "At least one digit, the point, at least one digit"; an exponent behind exactly one digit that is not zero.
_PLAIN, _SCIENTIFIC = re.compile(r"-?(0|[1-9]\d*)\.(\d*[1-9]|0)"), re.compile(r"-?[1-9]\.(\d*[1-9]|0)E(-?[1-9]\d*)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.0, "-1.0"), (0.1, "0.1"), (100.0, "100.0"), (1234567.0, "1234567.0"),
        (0.001, "0.001"), (0.00123, "0.00123"), (0.0123, "0.0123"), (9.99e-4, "9.99E-4"), (-0.001, "-0.001"), (-9e-4, "-9.0E-4"),
        (9999999.0, "9999999.0"), (9999999.5, "9999999.5"), (1e7, "1.0E7"), (-1e7, "-1.0E7"), (12345678.9, "1.23456789E7"),
        (1e21, "1.0E21"), (2e23, "2.0E23"), (1.5e300, "1.5E300"), (1e-5, "1.0E-5"), (4.9e-324, "4.9E-324"), (1e-323, "9.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (math.pi, "3.141592653589793"), (1 / 3, "0.3333333333333333"), (float(1 << 53), "9.007199254740992E15"),
        (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"),
    ],
)  # fmt: skip
def test_doubles(value: float, text: str) -> None:
    assert float_text(value, single=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (1 / 3, "0.33333334"), (16777216.0, "1.6777216E7"), (3.4028234663852886e38, "3.4028235E38"),
        (1.401298464324817e-45, "1.4E-45"), (1e10, "1.0E10"), (0.001, "0.001"), (9999999.0, "9999999.0"), (-0.0, "-0.0"),
        (-2.5, "-2.5"), (math.nan, "NaN"), (-math.inf, "-Infinity"), (123456.7, "123456.7"), (2.8e-45, "2.8E-45"),
    ],
)  # fmt: skip
def test_floats(value: float, text: str) -> None:
    assert float_text(float(np.float32(value)), single=True) == text


def any_double(lot: random.Random) -> float:
    while True:
        value: float = struct.unpack("<d", lot.randbytes(8))[0]
        if math.isfinite(value):
            return value


@pytest.mark.parametrize("seed", range(6))
def test_every_text_reads_back(seed: int) -> None:
    lot = random.Random(seed)
    values = [any_double(lot) for _ in range(60)]
    values += [lot.uniform(-1, 1) * 10.0 ** lot.randint(-6, 10) for _ in range(120)]
    values += [lot.choice([1, 2, 5, 9]) * 10.0 ** lot.randint(-8, 12) for _ in range(40)]
    for value in values:
        text = float_text(value, single=False)
        assert float(text) == value, text
        is_plain = 1e-3 <= abs(value) < 1e7 or value == 0
        assert (_PLAIN if is_plain else _SCIENTIFIC).fullmatch(text), text
        # None that is shorter reads back: two digits at least.
        digits = text.lstrip("-").partition("E")[0].replace(".", "").strip("0")
        assert len(digits) <= max(len(repr(value).partition("e")[0].replace(".", "").strip("-0")), 2), text
        single = float(np.float32(value)) if abs(value) < 3e38 else 1.0
        text = float_text(single, single=True)
        assert np.float32(text) == np.float32(single), text
        assert len(text.lstrip("-").partition("E")[0].replace(".", "").strip("0")) <= 9


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        *((f"5000 {unit}", 5) for unit in ("µs", "micro", "micros", "microsecond", "microseconds")),
        *((f"5000000 {unit}", 5) for unit in ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
        ("999 micro", 0), ("1 nano", 0), ("0", 0), ("00012", 12),
    ],
)  # fmt: skip
def test_parts_of_milliseconds(text: str, milliseconds: int) -> None:
    found = parse_duration(text)
    assert found == milliseconds and isinstance(found, int)


def test_patterns_of_names() -> None:
    assert parse_pattern(None) is parse_pattern("") is parse_pattern("  ") is None
    found = parse_pattern("a|b.")
    assert found is not None
    assert [bool(found.fullmatch(name)) for name in ("a", "bx", "ab", "b")] == [True, True, False, False]
    for text in ("(", "[a", "*", "a{2,1}"):
        with pytest.raises(InvalidRequest) as caught:
            parse_pattern(text)
        assert caught.value.code == "invalid-expression" and repr(text) in caught.value.message
