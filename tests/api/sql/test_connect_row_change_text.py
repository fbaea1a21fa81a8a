"""DELETE, UPDATE and MERGE as text, as a client of Spark Connect reads them."""

from __future__ import annotations

import pytest

from alluvium.api.sql.connect.reads import TableRead, reads_in
from alluvium.api.sql.connect.row_changes import Clause, RowChange, parse_change
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import Settings
from alluvium.errors import UnsupportedFeature
from alluvium.plan.merging import Action, When

CASE = "case when a > 1 then (case when b then 1 else 2 end) else 3 end"


def parsed(text: str) -> RowChange | None:
    text = text.replace("{t}", "delta.`/x`")
    target = next(r for r in reads_in(text, Settings()) if isinstance(r, TableRead) and r.is_target)
    return parse_change(text, target, Settings())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("delete from {t}", RowChange("DELETE")),
        ("DELETE FROM {t} WHERE a = 1;", RowChange("DELETE", condition="a = 1")),
        ("DELETE FROM {t} AS `x y` WHERE `x y`.a = 'where'", RowChange("DELETE", "x y", "`x y`.a = 'where'")),
        ("delete from {t} d /* all */ where d.a -- 1\n > 2", RowChange("DELETE", "d", "d.a -- 1\n > 2")),
        ("UPDATE {t} SET a = 1", RowChange("UPDATE", values={"a": "1"})),
        (
            f"update {{t}} u set u.a = {CASE}, `b.c`.d = f(1, 2), e = 'a, b = c' where {CASE} = 2",
            RowChange(
                "UPDATE", "u", f"{CASE} = 2", {"u.a": CASE, "`b.c`.d": "f(1, 2)", "e": "'a, b = c'"}
            ),
        ),
        ("UPDATE {t} SET a = DEFAULT, b = c = d", RowChange("UPDATE", values={"a": "DEFAULT", "b": "c = d"})),
    ],
)  # fmt: skip
def test_deletes_and_updates(text, wanted):
    assert parsed(text) == wanted


def test_a_merge_of_every_clause():
    found = parsed(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {{t}} AS t USING (select 1 a, 'on' b) s ON t.a = s.a and {CASE} = 1
        WHEN MATCHED AND s.b = 'then' THEN DELETE
        WHEN MATCHED AND {CASE} = 3 THEN UPDATE SET t.b = {CASE}, c = 2
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET AND s.a > 1 THEN INSERT (a, `b c`.d) VALUES (s.a, f(1, array(2, 3)))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.a = 4 THEN UPDATE SET a = 5
        WHEN NOT MATCHED BY SOURCE THEN DELETE;"""
    )
    assert found == RowChange(
        "MERGE", "t", f"t.a = s.a and {CASE} = 1", None, "(select 1 a, 'on' b)", "s",
        (
            Clause(When.MATCHED, Action.DELETE, "s.b = 'then'", None),
            Clause(When.MATCHED, Action.UPDATE, f"{CASE} = 3", {"t.b": CASE, "c": "2"}),
            Clause(When.MATCHED, Action.UPDATE, None, None),
            Clause(When.NOT_MATCHED, Action.INSERT, "s.a > 1", {"`a`": "s.a", "`b c`.`d`": "f(1, array(2, 3))"}),
            Clause(When.NOT_MATCHED, Action.INSERT, None, None),
            Clause(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, "t.a = 4", {"a": "5"}),
            Clause(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, None, None),
        ),
        True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("src", ("src", "src")),
        ("db.src", ("db.src", "src")),
        ("src as s", ("src", "s")),
        ("db.`my src` `s`", ("db.`my src`", "s")),
        ("delta.`/y` VERSION AS OF 1", ("delta.`/y` VERSION AS OF 1", None)),
        ("delta.`/y` VERSION AS OF 1 s", ("delta.`/y` VERSION AS OF 1", "s")),
        ("delta.`/y` TIMESTAMP AS OF '2024-01-01' AS s", ("delta.`/y` TIMESTAMP AS OF '2024-01-01'", "s")),
        ("(select * from a join b on a.x = b.x)", ("(select * from a join b on a.x = b.x)", None)),
        ("{df} AS s", ("{df}", "s")),
        ("range(10) r", ("range(10)", "r")),
    ],
)
def test_sources(source, wanted):
    found = parsed(f"MERGE INTO {{t}} USING {source} ON true WHEN MATCHED THEN DELETE")
    assert (found.source, found.source_alias) == wanted and found.condition == "true"


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM {t} WHERE",
        "DELETE FROM {t} a b WHERE true",
        "DELETE FROM {t} WHERE (a = 1",
        "DELETE FROM {t}; DELETE FROM {t}",
        "UPDATE {t} WHERE a = 1",
        "UPDATE {t} SET a",
        "UPDATE {t} SET a = 1,",
        "UPDATE {t} SET a = WHERE true",
        "UPDATE {t} SET a = 1, a = 2",
        "MERGE INTO {t} USING s",
        "MERGE INTO {t} USING s ON true WHEN MATCHED DELETE",
        "MERGE INTO {t} USING s ON true WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "MERGE INTO {t} USING s ON true WHEN NOT MATCHED BY SOURCE THEN INSERT *",
        "MERGE INTO {t} USING s ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
    ],
)
def test_what_is_no_statement(text):
    with pytest.raises(SqlSyntaxError):
        parsed(text)


def test_parameters_are_refused():
    with pytest.raises(UnsupportedFeature) as caught:
        parsed("DELETE FROM {t} WHERE a = :x")
    assert caught.value.code == "no-jvm-for-sql"


def test_other_statements_are_none():
    assert parsed("INSERT INTO {t} SELECT 1") is None
