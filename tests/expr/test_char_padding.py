"""What is compared with char(n), in a user's words and in Catalyst's."""

from __future__ import annotations

import pytest

from alluvium.commands.rows_here.names import Names
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate
from alluvium.expr.tree import Cast, Column, Compare, Expression, In, Literal, Unknown
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Field, Struct

SCHEMA = Struct(
    (
        Field("c", t.STRING, True, {CHAR_VARCHAR: "char(3)"}),
        Field("s", Struct((Field("c", t.STRING),)), True, {CHAR_VARCHAR: "struct<c:char(2)>"}),
    )
)
C = Column(("c",), t.STRING, 3)
RAW = Column(("c",), t.STRING)


def text(value: str | None) -> Literal:
    return Literal(value, t.STRING)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("c = 'a'", Compare("=", C, text("a  "))),
        ("'abcde' < c", Compare("<", text("abcde"), Column(("c",), t.STRING, 5))),
        ("c in ('a', 'abcd')", In(Column(("c",), t.STRING, 4), (text("a   "), text("abcd")))),
        ("c in ('a', null)", In(Cast(C, t.STRING), (text("a"), text(None)))),
        ("c = null", Compare("=", C, text(None))),
        ("cast(c as string) = 'a'", Compare("=", Cast(C, t.STRING), text("a"))),
        ("s.c = 'a'", Compare("=", Column(("s", "c"), t.STRING, 2), text("a"))),
        ("c > 1", Compare(">", Cast(C, t.LONG), Literal(1, t.LONG))),
        ("c = rpad('a', 2, ' ')", Compare("=", C, text("a  "))),
        ("c = concat('a', '')", Unknown("c = concat('a', '')")),
    ],
)
def test_user_text(predicate: str, expected: Expression) -> None:
    assert parse_predicate(predicate, SCHEMA) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("T.C = 'a'", Compare("=", Column(("t", "c"), t.STRING, 3), text("a  "))),
        ("t.c in ('a', 'abcd')", In(Column(("t", "c"), t.STRING, 4), (text("a   "), text("abcd")))),
        ("t.c <=> u.c", Compare("<=>", Column(("t", "c"), t.STRING, 4), Column(("u", "c"), t.STRING, 4))),
        ("t.c = concat('a', '')", Unknown("t.c = concat('a', '')")),
        ("t.s.c = 'a'", Compare("=", Column(("t", "s", "c"), t.STRING, 2), text("a"))),
    ],
)
def test_columns_behind_the_name_of_their_rows(predicate: str, expected: Expression) -> None:
    other = Struct((Field("c", t.STRING, True, {CHAR_VARCHAR: "char(4)"}),))
    both = Names({"t": SCHEMA, "u": other}).schema
    assert parse_predicate(predicate, both, rows=("t", "u")) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        # Columns as files have them: Spark says where it pads.
        ("(c = 'a')", Compare("=", RAW, text("a"))),
        (
            "(static_invoke(CharVarcharCodegenUtils.readSidePadding(c, 3)) = 'a  ')",
            Compare("=", Cast(C, t.STRING), text("a  ")),
        ),
        # Spark compares with what it has printed, blanks or none.
        (
            "(static_invoke(CharVarcharCodegenUtils.readSidePadding(c, 3)) >= 'a')",
            Compare(">=", Cast(C, t.STRING), text("a")),
        ),
        ("(c = rpad('a', 3, ' '))", Compare("=", RAW, text("a  "))),
        ("(c = rpad('abcd', 3, ' '))", Compare("=", RAW, text("abc"))),
    ],
)
def test_engine_text(printed: str, expected: Expression) -> None:
    assert parse_engine_filter(printed, SCHEMA) == expected


@pytest.mark.parametrize(
    "printed",
    [
        "(static_invoke(CharVarcharCodegenUtils.charTypeWriteSideCheck(c, 3)) = 'a')",
        "(static_invoke(Other.of(c)) = 'a')",
        "(static_invoke(CharVarcharCodegenUtils.readSidePadding(upper(c), 3)) = 'a')",
        "(static_invoke(CharVarcharCodegenUtils.readSidePadding(c, c)) = 'a')",
        "(static_invoke() = 'a')",
        "(c = rpad('a', 100000000, ' '))",
        "(c = rpad('a', 3, 'x'))",
    ],
)
def test_other_calls_are_unknown(printed: str) -> None:
    assert isinstance(parse_engine_filter(printed, SCHEMA), Unknown)
