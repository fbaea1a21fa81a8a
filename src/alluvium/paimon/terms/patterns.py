"""Regular expressions as arguments of procedures."""

from __future__ import annotations

import re

from alluvium.errors import InvalidRequest


def parse_pattern(text: str | None) -> re.Pattern[str] | None:
    """A regular expression, which whole names have to match; None where none was said.

    Raises:
        InvalidRequest: It is none (`"invalid-expression"`).
    """
    if text is None or not text.strip():
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidRequest(f"{text!r} is no regular expression: {error}", code="invalid-expression") from None
