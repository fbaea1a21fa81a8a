"""A file stops at 500 lines, a function at 70 (HOUSE section 7)."""

from __future__ import annotations

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70


def test_files_stop_at_500_lines(all_sources):
    long = {source.place: lines for source in all_sources if (lines := source.text.count("\n")) > MAX_FILE_LINES}
    assert not long


def test_functions_stop_at_70_lines(all_sources):
    long = {
        f"{source.place}:{function.lineno} {function.name}": lines
        for source in all_sources
        for function in source.functions()
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert not long
