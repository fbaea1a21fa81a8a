"""Text that means harm: an answer in time that grows with its length, and no error but ours."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_statements import DELTA_STATEMENTS

from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.kinds import kind_of
from alluvium.api.sql.text.cursor import MAX_CHARACTERS
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.errors import InvalidRequest

_N = 100_000
HOSTILE = {
    "brackets": "OPTIMIZE t WHERE " + "(" * _N,
    "matched brackets": "OPTIMIZE t WHERE " + "(" * _N + ")" * _N,
    "closing brackets": "OPTIMIZE t WHERE " + ")" * _N,
    "mixed brackets": "OPTIMIZE t WHERE " + "([{" * (_N // 3),
    "quotes": "VACUUM '" + "''" * _N,
    "backslashes": "VACUUM '" + "\\" * _N,
    "strings": "VACUUM " + "'a' " * _N + "x",
    "backticks": "VACUUM `" + "``" * _N,
    "open comments": "VACUUM t " + "/*" * _N,
    "comments": "/* */" * _N + "VACUUM t x",
    "nested comments": "/*" * _N + "*/" * _N + "VACUUM t x",
    "line comments": "--\n" * _N + "VACUUM t x",
    "blanks": "VACUUM" + " " * (_N * 4) + "1",
    "dots": "VACUUM t" + ".a" * _N,
    "long name": "VACUUM " + "a" * (_N * 4) + ".1",
    "digits": "RESTORE t TO VERSION AS OF " + "9" * _N,
    "hours": "VACUUM t RETAIN " + "9" * _N + " HOURS",
    "limit": "DESCRIBE HISTORY t LIMIT " + "9" * _N,
    "numbers": "VACUUM t RETAIN " + "1.5e" * _N,
    "columns": "OPTIMIZE t ZORDER BY (" + "a," * _N,
    "semicolons": "VACUUM t" + ";" * _N + "x",
    "parameters": "OPTIMIZE t WHERE " + "? " * _N + ")",
    "properties": "CREATE TABLE t CLONE s TBLPROPERTIES ("
    + ", ".join(f"k{i} = ?" for i in range(_N // 4))
    + ", k1 = 2)",
    "types": "CONVERT TO DELTA t PARTITIONED BY (a decimal(" + "1," * _N,
    "clauses": "VACUUM t " + "RETAIN 1 HOURS " * _N,
    "long type": "CONVERT TO DELTA t PARTITIONED BY (a " + "x" * _N + ")",
    "identifier": "VACUUM IDENTIFIER('" + "a." * _N + "')",
    "zorder": "OPTIMIZE t WHERE " + "ZORDER BY (" * (_N // 4),
    "too long": "VACUUM t " + "x" * MAX_CHARACTERS,
    "lines": "VACUUM t" + "\n" * _N + "x" + "\n" * _N,
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_hangs(name):
    begun = time.process_time()
    try:
        parse_statement(HOSTILE[name])
    except SqlSyntaxError as error:
        # The message shows the place, not the whole of it.
        assert len(str(error)) < 20_000
    else:
        assert name in ("matched brackets",)
    assert time.process_time() - begun < 5


def test_brackets_are_bounded():
    with pytest.raises(SqlSyntaxError, match="nested too deeply"):
        parse_statement(HOSTILE["matched brackets"])
    assert parse_statement("OPTIMIZE t WHERE " + "(" * 400 + "a" + ")" * 400) is not None


_WORDS = sorted({word for text in DELTA_STATEMENTS for word in text.replace("(", " ( ").split()})
_ANY = st.one_of(st.sampled_from(_WORDS), st.sampled_from(list("()[]{}.,;:?@=-'\"`\\/*\n\0")), st.text(max_size=5))
_FIRST = st.sampled_from(["VACUUM", "OPTIMIZE", "RESTORE", "CONVERT TO DELTA", "REORG TABLE", "GENERATE", "FSCK", "DESC HISTORY",
                          "CREATE TABLE t SHALLOW CLONE", "ALTER TABLE t", "ALTER TABLE t ADD CONSTRAINT c CHECK"])  # fmt: skip


@pytest.mark.long
@settings(max_examples=200)
@given(_FIRST, st.lists(_ANY, max_size=12), st.sampled_from(["", " "]))
def test_any_words_are_answered_or_refused(first, words, between):
    text = f"{first} {between.join(words)}"
    kind_of(text)
    try:
        parse_statement(text)
    except SqlSyntaxError as error:
        assert error.line >= 1 and str(error)


@pytest.mark.long
@settings(max_examples=200)
@given(st.sampled_from(DELTA_STATEMENTS), st.data())
def test_statements_cut_short_are_answered_or_refused(text, data):
    cut = data.draw(st.integers(0, len(text)))
    piece = data.draw(st.text(max_size=3))
    changed = text[:cut] + piece + text[data.draw(st.integers(cut, len(text))) :]
    try:
        parse_statement(changed)
    except InvalidRequest as error:
        assert isinstance(error, SqlSyntaxError)
