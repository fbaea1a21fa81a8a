"""Tables of ours that a statement of a Connect session names, told from its text."""

from __future__ import annotations

import pytest

from alluvium.api.sql.connect.insert import parse_insert
from alluvium.api.sql.connect.reads import ChangesRead, TableRead, frame_names, reads_in, replaced
from alluvium.api.sql.connect.views import parse_view
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import AsOf, Parameter, Settings
from alluvium.errors import UnsupportedFeature

PLAIN = Settings()


def tables(text):
    return [(r.format, r.path, r.as_of, r.is_target) for r in reads_in(text, PLAIN) if isinstance(r, TableRead)]


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select 'delta.`/a`', \"from delta.`/a`\" from t -- delta.`/a`",
        "select delta.`a.b`, delta.x from t as delta",
        "select x.delta.`/a`.b from x",
        "select delta.`/a`.b from t delta",
        "select /* from delta.`/a` */ table_changes from t",
        "select delta.`a:b`, delta.`/c` from t delta",
        "with delta as (select 1 as `/a`) select delta.`/a` + 1 from delta where delta.`/a` = 1",
        "select * from t as delta where x is distinct from delta.`a`",
    ],
)
def test_nothing_of_ours(text):
    assert reads_in(text, PLAIN) == ()


@pytest.mark.parametrize(
    ("text", "path", "as_of"),
    [
        ("select * from delta.`/a b/ü.``x`", "/a b/ü.`x", None),
        ("SELECT * FROM DELTA.`/a` t", "/a", None),
        ("select * from `delta`.`s3://b/a` as t join u", "s3://b/a", None),
        ("select * from t, delta.`file:/a`", "file:/a", None),
        ("with c as (select * from delta.`relative/a`) select * from c", "relative/a", None),
        ("select * from delta.`/a@v3`", "/a@v3", None),
        ("select * from delta.`/a` version as of 3 where x", "/a", AsOf(version=3)),
        ("select * from delta.`/a` for system_version as of '4'", "/a", AsOf(version=4)),
        ("select * from delta.`/a` timestamp as of '2024-01-31' t", "/a", AsOf(timestamp="2024-01-31")),
        ("select * from delta.`/a` version as of :v", "/a", AsOf(version=Parameter(name="v"))),
    ],
)
def test_a_table_and_its_point_in_time(text, path, as_of):
    assert tables(text) == [("delta", path, as_of, False)]


def test_a_table_beside_something_that_is_called_like_its_format():
    text = "with delta as (select 1 a) select * from delta.`/a` join delta on delta.`/b` = 1 join delta.`/c` using (a)"
    assert [path for _, path, *_ in tables(text)] == ["/a", "/c"]


def test_one_version_of_a_table_in_one_statement():
    found = reads_in(
        "select * from delta.`/a` x join delta.`/a` y join delta.`/b` join delta.`/a` version as of 1 "
        "join delta.`/a` version as of 1 join table_changes_by_path('/a', 1) join table_changes_by_path('/a', 2)",
        PLAIN,
    )
    assert [int(name.rpartition("_")[2]) for name in frame_names(found)] == [0, 0, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("text", ["cache lazy table delta.`/a`", "uncache table delta.`/a`"])
def test_what_is_said_of_a_table_itself(text):
    assert tables(text) == [("delta", "/a", None, True)]


def test_another_text_stands_in_its_place():
    text = "select '{}', a.x from delta.`/a` version as of 1 a, paimon.`/b` b where exists (select 1 from delta.`/c`)"
    found = reads_in(text, PLAIN)
    assert [r.format for r in found] == ["delta", "paimon", "delta"]
    words = replaced(text, [(r, f"<{n}>") for n, r in enumerate(found)], lambda kept: kept.replace("{}", "{{}}"))
    assert words == "select '{{}}', a.x from <0> a, <1> b where exists (select 1 from <2>)"


def test_change_feeds():
    text = "select * from table_changes('delta.`/a`', 0, :end) join table_changes_by_path('/b', '2024-01-01')"
    one, two = reads_in(text, PLAIN)
    assert isinstance(one, ChangesRead) and isinstance(two, ChangesRead)
    assert one.arguments == ("delta.`/a`", 0, Parameter(name="end"))
    assert (two.function, two.arguments) == ("TABLE_CHANGES_BY_PATH", ("/b", "2024-01-01"))
    assert text[two.start : two.end] == "table_changes_by_path('/b', '2024-01-01')"
    with pytest.raises(SqlSyntaxError, match="a string, a number or a parameter"):
        reads_in("select * from table_changes('/a', current_date())", PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "insert into delta.`/a` values (1)",
        "insert overwrite table delta.`/a` select 1",
        "update delta.`/a` set x = 1",
        "delete from delta.`/a`",
        "with c as (select 1) merge into delta.`/a` using c on true when matched then delete",
        "alter table delta.`/a` set tblproperties ('a' = 'b')",
        "create table if not exists delta.`/a` (x int) using delta",
        "drop table delta.`/a`",
        "describe extended delta.`/a`",
        "show columns in delta.`/a`",
    ],
)
def test_what_a_statement_is_about(text):
    assert tables(text) == [("delta", "/a", None, True)]


def test_what_a_statement_only_reads():
    assert tables("insert into t select * from delta.`/a`") == [("delta", "/a", None, False)]


def insert(text):
    (target, *_) = reads_in(text, PLAIN)
    return parse_insert(text, target, PLAIN)


@pytest.mark.parametrize(
    ("text", "overwrites", "listed", "by_name", "where", "query"),
    [
        ("insert into delta.`/a` select 1;", False, (), False, None, "select 1"),
        ("insert overwrite delta.`/a` (`b c`, d) values (1, 2)", True, ("b c", "d"), False, None, "values (1, 2)"),
        ("insert into table delta.`/a` by name (select 1 x)", False, (), True, None, "(select 1 x)"),
        ("insert into delta.`/a` replace where x > (1) from t select 1", True, (), False, "x > (1)", "from t select 1"),
        ("insert into delta.`/a` (select 1)", False, (), False, None, "(select 1)"),
    ],
)
def test_an_insert(text, overwrites, listed, by_name, where, query):
    found = insert(text)
    assert found is not None
    assert (found.overwrites, found.columns.listed, found.columns.by_name) == (overwrites, listed, by_name)
    assert (found.where and found.where.text, found.query) == (where, query)


@pytest.mark.parametrize(
    "text",
    [
        "insert into delta.`/a` partition (p = 1) select 1",
        "insert into delta.`/a` replace using (x) select 1",
        "update delta.`/a` set x = 1",
        "explain insert into delta.`/a` select 1",
    ],
)
def test_no_insert_that_is_carried_out_here(text):
    assert insert(text) is None


def test_views():
    found = parse_view("create or replace temp view v (a, b) as select 1, 2", PLAIN)
    assert found is not None
    assert (found.name, found.columns, found.replaces, found.is_global) == ("v", ("a", "b"), True, False)
    assert found.query == "select 1, 2"
    assert parse_view("create table v as select 1", PLAIN) is None
    with pytest.raises(UnsupportedFeature, match="temporary"):
        parse_view("create view v as select 1", PLAIN)
