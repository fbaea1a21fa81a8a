"""Constants that make a value large: each function that repeats, around the bound, and what counts for nothing."""

from __future__ import annotations

import pytest

from alluvium.expr.sql.row_growth import MAX_GROWTH, oversized_call
from alluvium.expr.sql.sql_tokens import read_tokens

CALLS = {
    "repeat": "repeat('ab', {})", "space": "space({})", "lpad": "lpad(a, {}, 'x')", "rpad": "rpad(a, {}, 'x')",
    "array_repeat": "array_repeat(7, {})", "sequence": "sequence(1, {})", "format_number": "format_number(a, {})",
}  # fmt: skip


def found(text: str) -> str | None:
    return oversized_call(list(read_tokens(text)))


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_repeat(name: str) -> None:
    for text in (CALLS[name], CALLS[name].upper(), f"concat(a, {CALLS[name]})", f"a = {CALLS[name]} and b"):
        assert found(text.format(MAX_GROWTH)) is None
        told = found(text.format(MAX_GROWTH + 1))
        assert told is not None and told.startswith(f"{name}() makes") and "10,000,000" in told
        assert found(text.format("9" * 5000)) is not None
        assert found(text.format("n")) is None and found(text.format(0)) is None


@pytest.mark.parametrize(
    ("text", "is_large"),
    [
        # Of nested calls the product counts, whichever argument they stand in.
        ("repeat(repeat(a, 10000), 1000)", False), ("repeat(repeat(a, 10000), 1001)", True), ("repeat(repeat(repeat(a, 300), 300), 300)", True),
        ("space(1000 * 10001)", True), ("space((1000) * (10001))", True), ("space(abs(10000001))", True), ("space(length(space(10000001)))", True),
        ("repeat(a, b[10000001])", True), ("array_repeat(array_repeat(1, 4000), 4000)", True),
        # Arguments that do not say how often.
        ("repeat(10000001, 2)", False), ("lpad(10000001, 2, 10000001)", False), ("array_repeat(10000001, 2)", False), ("a + 10000001", False),
        ("hash(10000001)", False), ("(10000001)", False), ("array_repeat(array(10000001), 1)", False), ("format_number(99999999, 2)", False),
        # All of a sequence's do.
        ("sequence(10000001, 10000002)", True), ("sequence(1, 10, 1)", False), ("sequence(4000, 4000)", True),
        ("repeat", False), ("", False), ("repeat(a, 10000001", False), (")repeat(a, 10000001)", True), ("concat(repeat(a, 9999), repeat(b, 9999))", False),
        ("repeat(concat(repeat(a, 9999), repeat(b, 9999)), 1)", True),
    ],
)  # fmt: skip
def test_what_counts(text: str, is_large: bool) -> None:
    assert (found(text) is not None) == is_large
