"""Settings of a session that somebody set, parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest

T = TypeVar("T")


def read_setting(spark: SparkSession, name: str, parse: Callable[[str], T], default: T) -> T:
    """The value of a setting; the default where nobody set it.

    Args:
        spark: The session.
        name: Of the setting.
        parse: Of its text; a `ValueError` says what is wrong with it.
        default: Where it is not set.

    Raises:
        InvalidRequest: It does not parse (`invalid-setting`).
    """
    text = spark.conf.get(name, None)
    if text is None:
        return default
    try:
        return parse(text.strip())
    except ValueError as error:
        raise InvalidRequest(
            f"the setting {name} is {text!r}: {error}", code="invalid-setting", hint="spark.conf.set or unset it"
        ) from None


def read_flag(spark: SparkSession, name: str, default: bool) -> bool:
    """A setting that is true or false; what is neither must turn nothing on or off.

    Raises:
        InvalidRequest: It is neither (`invalid-setting`).
    """
    return read_setting(spark, name, _parse_flag, default)


def _parse_flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def parse_count(text: str) -> int:
    """A whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise ValueError("a number that is not negative is expected")
    return number


def parse_positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number <= 0:
        raise ValueError("a number above 0 is expected")
    return number
