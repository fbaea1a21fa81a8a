"""Values beside a statement: by name, in their order, and of the kind that their place takes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from alluvium.api.sql.grammar.parameters import bind_parameters
from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.errors import InvalidRequest

#: Statement, its values, and the statement that says the same without parameters.
BOUND = [
    ("VACUUM :p RETAIN :h HOURS", {"p": "/a'b", "h": 1.5}, "VACUUM '/a''b' RETAIN 1.5 HOURS"),
    ("VACUUM ? RETAIN ? HOURS", ["/a", 24], "VACUUM '/a' RETAIN 24 HOURS"),
    ("VACUUM t RETAIN ? HOURS", [Decimal("0.5")], "VACUUM t RETAIN 0.5 HOURS"),
    ("RESTORE IDENTIFIER(:t) TO VERSION AS OF :v", {"t": "a.`b.c`", "v": 3}, "RESTORE a.`b.c` TO VERSION AS OF 3"),
    ("RESTORE t TO VERSION AS OF ?", ["3"], "RESTORE t TO VERSION AS OF 3"),
    ("RESTORE t TO TIMESTAMP AS OF ?", ["2024-01-01"], "RESTORE t TO TIMESTAMP AS OF '2024-01-01'"),
    ("RESTORE t TO TIMESTAMP AS OF ?", [date(2024, 1, 2)], "RESTORE t TO TIMESTAMP AS OF '2024-01-02'"),
    (
        "RESTORE t TO TIMESTAMP AS OF :t",
        {"t": datetime(2024, 1, 2, 3, 4, 5, 678)},
        "RESTORE t TO TIMESTAMP AS OF '2024-01-02 03:04:05.000678'",
    ),
    ("DESCRIBE HISTORY t LIMIT :n", {"n": 2}, "DESCRIBE HISTORY t LIMIT 2"),
    (
        "CREATE TABLE t CLONE IDENTIFIER(?) VERSION AS OF ? TBLPROPERTIES ('a' = ?, b = ?, c = 'd') LOCATION ?",
        ["s", 1, True, 2, "/x"],
        "CREATE TABLE t CLONE s VERSION AS OF 1 TBLPROPERTIES ('a' = 'true', b = 2, c = 'd') LOCATION '/x'",
    ),
    ("VACUUM t", {"unused": 1}, "VACUUM t"),
]


@pytest.mark.parametrize(("text", "args", "same"), BOUND)
def test_values_stand_in_their_places(text, args, same):
    assert bind_parameters(parse_statement(text), args) == parse_statement(same)


def test_positions_count_over_the_whole_statement():
    statement = parse_statement("OPTIMIZE ? WHERE a = ? AND b = '?' AND c = ? ZORDER BY (d)")
    bound = bind_parameters(statement, ["/x", 1, 2])
    assert bound.target.path == "/x"
    text = bound.where.text
    assert [(p.position, text[p.start : p.end]) for p in bound.where.parameters] == [(1, "?"), (2, "?")]


def test_a_condition_keeps_its_parameters_for_spark():
    statement = parse_statement("OPTIMIZE t WHERE a > :low AND m['x:y'] = :key::int")
    text = statement.where.text
    assert [(p.name, text[p.start : p.end]) for p in statement.where.parameters] == [("low", ":low"), ("key", ":key")]


REFUSED = [
    ("VACUUM :path", {"pth": "/x"}, "unbound-parameter", "did you mean 'pth'?"),
    ("VACUUM :path", {}, "unbound-parameter", 'args={"path": ...}'),
    ("VACUUM :path", ["/x"], "unbound-parameter", "args="),
    ("VACUUM ? RETAIN ? HOURS", ["/x"], "unbound-parameter", "args=[...]"),
    ("VACUUM ?", {"a": "/x"}, "unbound-parameter", "args=[...]"),
    ("VACUUM ?", [1], "invalid-parameter", "a text"),
    ("VACUUM t RETAIN ? HOURS", ["24"], "invalid-parameter", "a number"),
    ("VACUUM t RETAIN ? HOURS", [float("nan")], "invalid-parameter", "a number"),
    ("VACUUM t RETAIN ? HOURS", [True], "invalid-parameter", "a number"),
    ("RESTORE t TO VERSION AS OF ?", [-1], "invalid-parameter", "a whole number"),
    ("RESTORE t TO VERSION AS OF ?", [True], "invalid-parameter", "a whole number"),
    ("RESTORE t TO VERSION AS OF ?", [1.0], "invalid-parameter", "a whole number"),
    ("RESTORE t TO TIMESTAMP AS OF ?", [None], "invalid-parameter", "a text"),
    ("CREATE TABLE t CLONE s TBLPROPERTIES (a = ?)", [None], "invalid-parameter", "a text"),
    ("VACUUM IDENTIFIER(?)", ["a b"], "sql-syntax", None),
    ("VACUUM IDENTIFIER(?)", ["t; DROP TABLE u"], "sql-syntax", None),
    ("VACUUM IDENTIFIER(?)", [""], "sql-syntax", None),
]


@pytest.mark.parametrize(("text", "args", "code", "hint"), REFUSED)
def test_values_that_do_not_fit(text, args, code, hint):
    with pytest.raises(InvalidRequest) as refused:
        bind_parameters(parse_statement(text), args)
    assert refused.value.code == code
    assert hint is None or hint in refused.value.hint
