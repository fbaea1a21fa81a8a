"""Whether the text of a default value is a value of its column, by Paimon's casts from strings."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.types import BINARY, CHARACTER, INTEGRAL, DataType

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_INTEGER = re.compile(r"([+-]?\d+)(?:\.\d*)?", re.ASCII)
# Java's doubles: a type suffix may follow, words are spelled exactly.
_FLOATING = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_YMD = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_DATE = re.compile(r"(?P<days>-?\d{1,9})|(?P<date>\d{4}-\d{1,2}-\d{1,2})(?: .*)?", re.ASCII)
_TIME = re.compile(r"\s*-?\d+\s*|\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?", re.ASCII)
_CLOCK = r"(?: \d{1,2}:\d{1,2}:\d{1,2}(?:\.\d{1,9})?)?"
_TIMESTAMP = re.compile(rf"(?P<date>\d{{4}}-\d{{1,2}}-\d{{1,2}}){_CLOCK}", re.ASCII)
_COUNT = re.compile(r"-?\d{1,18}", re.ASCII)
_BRACKETED = {"ARRAY": ("[", "]"), "MAP": ("{", "}"), "ROW": ("{", "}")}


def ensure_default(data_type: DataType, text: str | None, column: str) -> None:
    """Refuses a default value that no row could have.

    Raises:
        InvalidRequest: `"bad-default-value"`.
    """
    if text is None:
        return
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    if not _is_value(data_type, text[1:-1] if quoted else text):
        raise InvalidRequest(
            f"{text!r} cannot be the default of a column of type {data_type}", code="bad-default-value", column=column
        )


def _is_value(t: DataType, text: str) -> bool:
    if t.root in CHARACTER or t.root in BINARY:
        return True
    if t.root == "BOOLEAN":
        return text.lower() in _BOOLEANS
    if t.root in INTEGRAL:
        match = _INTEGER.fullmatch(text)
        return match is not None and -(2 ** _BITS[t.root]) <= int(match[1]) < 2 ** _BITS[t.root]
    if t.root in ("FLOAT", "DOUBLE"):
        return _FLOATING.fullmatch(text.strip()) is not None
    if t.root == "DECIMAL":
        return _is_decimal(text)
    if t.root == "DATE":
        match = _DATE.fullmatch(text)
        return match is not None and (match["date"] is None or _is_date(match["date"]))
    if t.root == "TIME_WITHOUT_TIME_ZONE":
        return _TIME.fullmatch(text) is not None
    if t.root.startswith("TIMESTAMP"):
        match = _TIMESTAMP.fullmatch(text)
        counts = t.root == "TIMESTAMP_WITHOUT_TIME_ZONE" and _COUNT.fullmatch(text) is not None
        return counts or (match is not None and _is_near_date(match["date"]))
    if t.root in _BRACKETED:
        return _is_constructed(t, text.strip())
    return False


def _is_decimal(text: str) -> bool:
    if text != text.strip() or "_" in text:
        return False
    try:
        value = Decimal(text)
    except InvalidOperation:
        return False
    return value.is_finite()


def _month_and_day(text: str) -> tuple[int, int, int]:
    match = _YMD.fullmatch(text)
    assert match is not None, "both patterns hold this one"
    return int(match[1]), int(match[2]), int(match[3])


def _is_date(text: str) -> bool:
    year, month, day = _month_and_day(text)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def _is_near_date(text: str) -> bool:
    # Timestamps are resolved leniently: 30 February is the last day of February.
    _, month, day = _month_and_day(text)
    return 1 <= month <= 12 and 1 <= day <= 31


def _is_constructed(t: DataType, text: str) -> bool:
    opening, closing = _BRACKETED[t.root]
    if not (text.startswith(opening) and text.endswith(closing) and len(text) > 1):
        return False
    inner = text[1:-1].strip()
    # The parts of nested values are checked where commas cannot mislead.
    if t.root != "ARRAY" or not inner or t.element is None or t.element.root in _BRACKETED:
        return True
    return all(part.strip() == "null" or _is_value(t.element, part.strip()) for part in inner.split(","))
