"""Numbers as Java prints them: `Double.toString`, `Float.toString`."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

#: From which magnitude on, and below which, Java writes an exponent.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def float_text(value: float, single: bool) -> str:
    """The shortest text that reads back as the same number, in Java's spelling.

    Args:
        value: Any number.
        single: It is a FLOAT: digits that a float32 does not hold are left out.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    magnitude = abs(value)
    if magnitude == 0:
        return f"{sign}0.0"
    shortest = str(np.float32(magnitude)) if single else repr(magnitude)
    digits = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits.digits)).rstrip("0") or "0"
    exponent = int(digits.exponent) + len(digits.digits)
    if len(text) == 1:
        # Java prints two digits at least, and of all such numbers the nearest: 4.9E-324, where 5E-324 would do.
        nearest, _, power = f"{float(np.float32(magnitude)) if single else magnitude:.1e}".partition("e")
        text, exponent = nearest.replace(".", "").rstrip("0"), int(power) + 1
    if _PLAIN_FROM <= magnitude < _PLAIN_BELOW:
        if exponent <= 0:
            return f"{sign}0.{'0' * -exponent}{text}"
        whole = text[:exponent].ljust(exponent, "0")
        return f"{sign}{whole}.{text[exponent:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{exponent - 1}"
