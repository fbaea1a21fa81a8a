"""Values that an expression of a table makes large on purpose: `repeat('a', 1900000000)` is 22 characters of text.

Spark computes constants in the driver, where nothing bounds their size. This finds the plain cases before anything is
computed; what gets past it ends as the job's own failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alluvium.expr.sql.sql_tokens import Token

#: How many times larger than its other arguments a call's value may become by constants in the text.
MAX_GROWTH = 10_000_000
#: Functions that repeat, and which argument says how often; None: all of them.
_REPEATS: dict[str, int | None] = {
    "repeat": 1,
    "space": 0,
    "lpad": 1,
    "rpad": 1,
    "array_repeat": 1,
    "sequence": None,
    "format_number": 1,
}


@dataclass(slots=True)
class _Bracket:
    """An open bracket: the function that is called, and by how much its value grows, as far as it was read."""

    function: str = ""
    argument: int = 0
    growth: int = 1
    #: Whether numbers in it say how often the function around it repeats.
    counts: bool = False

    @property
    def is_count(self) -> bool:
        if self.function in _REPEATS:
            return _REPEATS[self.function] in (None, self.argument)
        return self.counts


def oversized_call(tokens: Sequence[Token]) -> str | None:
    """What is wrong with a text whose constants make a value too large, if one of them does."""
    brackets = [_Bracket()]
    for position, token in enumerate(tokens):
        current = brackets[-1]
        if token.kind == "number":
            if current.is_count:
                # Infinite rather than exact, where somebody wrote thousands of digits.
                current.growth = min(current.growth * max(token.magnitude, 1), MAX_GROWTH**2)
        elif token.text in ("(", "["):
            called = tokens[position - 1].folded if position and token.text == "(" else ""
            brackets.append(_Bracket(called, counts=current.is_count))
        elif token.text in (")", "]") and len(brackets) > 1:
            closed = brackets.pop()
            if closed.function in _REPEATS and closed.growth > MAX_GROWTH:
                return f"{closed.function}() makes a value of more than {MAX_GROWTH:,} parts"
            brackets[-1].growth = min(brackets[-1].growth * closed.growth, MAX_GROWTH**2)
        elif token.text == ",":
            current.argument += 1
    return None
