"""What each statement says, and what is said of one that is wrong."""

from __future__ import annotations

import pickle

import pytest
from pyspark.errors import AnalysisException, ParseException
from sql_statements import DELTA_STATEMENTS, EXTENSIONS, NARROWINGS, REFUSED

from alluvium.api.sql.grammar.alter import (
    AddConstraint,
    AddFeature,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
)
from alluvium.api.sql.grammar.clone import Clone
from alluvium.api.sql.grammar.convert import ConvertToDelta, PartitionColumn
from alluvium.api.sql.grammar.fsck import FsckRepair
from alluvium.api.sql.grammar.generate import Generate
from alluvium.api.sql.grammar.history import DescribeDetail, DescribeHistory, Restore
from alluvium.api.sql.grammar.optimize import Optimize, Reorg
from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.grammar.vacuum import Vacuum
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import AsOf, NamedBy, Parameter, PathLiteral, Settings, SqlText, TableName
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t

T, X = TableName(("t",)), TableName(("delta", "/x"))

MEANINGS = {
    "VACUUM t": Vacuum(T),
    "VACUUM '/a' '/b'": Vacuum(PathLiteral("/a/b")),
    "vacuum delta.`/x` DRY RUN retain 1.5 hours lite": Vacuum(X, True, None, 1.5, True),
    "VACUUM t RETAIN - 24D HOURS FULL": Vacuum(T, False, None, -24.0),
    "VACUUM t USING INVENTORY a.b": Vacuum(T, None, TableName(("a", "b"))),
    "VACUUM t USING INVENTORY ( select ')' , f(:x) /* ) */ from i ) FULL": Vacuum(
        T, False, SqlText("select ')' , f(:x) /* ) */ from i", (Parameter("x", None, 15, 17),))
    ),
    "VACUUM ? RETAIN ? HOURS": Vacuum(PathLiteral(Parameter(None, 0)), None, None, Parameter(None, 1)),
    "OPTIMIZE full FULL": Optimize(TableName(("full",)), True),
    "OPTIMIZE t WHERE  a  =  ';'  ZORDER BY a.b, `c d`;": Optimize(
        T, False, SqlText("a  =  ';'"), (("a", "b"), ("c d",))
    ),
    "OPTIMIZE t WHERE zorder IN (SELECT 1 ZORDER BY x) ZORDER BY (zorder)": Optimize(
        T, False, SqlText("zorder IN (SELECT 1 ZORDER BY x)"), (("zorder",),)
    ),
    "OPTIMIZE '/x' WHERE a > ? AND '?' = :b::int AND c = ?": Optimize(
        PathLiteral("/x"),
        False,
        SqlText(
            "a > ? AND '?' = :b::int AND c = ?",
            (Parameter(None, 0, 4, 5), Parameter("b", None, 16, 18), Parameter(None, 1, 32, 33)),
        ),
    ),
    "REORG TABLE t WHERE apply(x) APPLY (PURGE)": Reorg(T, SqlText("apply(x)")),
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": Reorg(T, None, 2),
    "DESC DETAIL '/x'": DescribeDetail(PathLiteral("/x")),
    "DESCRIBE HISTORY t LIMIT 007": DescribeHistory(T, 7),
    "RESTORE TABLE t TO VERSION AS OF 3": Restore(T, AsOf(3)),
    "RESTORE t FOR SYSTEM_TIME AS OF '2024-01-01'": Restore(T, AsOf(None, "2024-01-01")),
    "RESTORE TABLE VERSION AS OF '0'": Restore(TableName(("TABLE",)), AsOf(0)),
    "RESTORE TABLE TO VERSION AS OF 0": Restore(TableName(("TO",)), AsOf(0)),
    "RESTORE IDENTIFIER(:t) TO VERSION AS OF :v": Restore(NamedBy(Parameter("t")), AsOf(Parameter("v"))),
    "GENERATE symlink_format_manifest FOR TABLE delta.`/x`": Generate(X, "symlink_format_manifest"),
    "FSCK REPAIR TABLE t DRY RUN": FsckRepair(T, True),
    "CONVERT TO DELTA parquet.`/x` NO STATISTICS PARTITIONED BY (a INT NOT NULL, `b c` decimal(5) COMMENT 'd')": (
        ConvertToDelta(
            TableName(("parquet", "/x")),
            False,
            (PartitionColumn("a", "int", False), PartitionColumn("b c", "decimal(5)", True, "d")),
        )
    ),
    "CREATE TABLE t SHALLOW CLONE a.b.c.d": Clone(T, TableName(("a", "b", "c", "d")), True),
    "CREATE TABLE t CLONE t": Clone(T, T, False),
    "CREATE TABLE IF NOT EXISTS t DEEP CLONE t@V3": Clone(T, T, False, AsOf(3), if_not_exists=True),
    "CREATE OR REPLACE TABLE t SHALLOW CLONE t@20240131235958999": Clone(
        T, T, True, AsOf(None, "2024-01-31 23:59:58.999"), replace=True
    ),
    "REPLACE TABLE t SHALLOW CLONE delta.`/x@v3` TBLPROPERTIES (a.b = TRUE, 'c' 1.5, d = :e) LOCATION '/z'": Clone(
        T,
        TableName(("delta", "/x@v3")),
        True,
        None,
        False,
        True,
        False,
        (("a.b", "true"), ("c", "1.5"), ("d", Parameter("e"))),
        "/z",
    ),
    "ALTER TABLE t ADD CONSTRAINT c CHECK ( a  >  0 AND b[')'] )": AddConstraint(T, "c", SqlText("a  >  0 AND b[')']")),
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS `c d`": DropConstraint(T, "c d", True),
    "ALTER TABLE t ADD FEATURE 'f-preview'": AddFeature(T, "f-preview"),
    "ALTER TABLE t DROP FEATURE f TRUNCATE HISTORY": DropFeature(T, "f", True),
    "ALTER TABLE t CLUSTER BY (a.b, timestamp)": ClusterBy(T, (("a", "b"), ("timestamp",))),
    "ALTER TABLE t CLUSTER BY NONE": ClusterBy(T, ()),
    "ALTER TABLE t CHANGE column SYNC IDENTITY": SyncIdentity(T, ("column",)),
    "ALTER TABLE t ALTER column.a SYNC IDENTITY": SyncIdentity(T, ("column", "a")),
    "VACUUM IDENTIFIER('a.`b.c`')": Vacuum(TableName(("a", "b.c"))),
    "VACUUM `a``b`.2024_t.größe": Vacuum(TableName(("a`b", "2024_t", "größe"))),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_what_a_statement_says(text):
    assert parse_statement(text) == MEANINGS[text]


@pytest.mark.parametrize("text", [*DELTA_STATEMENTS, *EXTENSIONS])
def test_what_is_accepted(text):
    assert parse_statement(text) is not None


@pytest.mark.parametrize("text", [*REFUSED, *NARROWINGS])
def test_what_is_refused(text):
    with pytest.raises(SqlSyntaxError) as refused:
        parse_statement(text)
    assert refused.value.hint


def test_types_of_partition_columns():
    text = "CONVERT TO DELTA t PARTITIONED BY (a varchar(3), b DECIMAL(10, 2), c timestamp_ntz)"
    columns = parse_statement(text).partitioned_by
    assert [c.declared.type for c in columns] == [t.STRING, t.Decimal(10, 2), t.TIMESTAMP_NTZ]
    assert columns[0].declared.metadata == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}


# -- strings and names under the session's settings -------------------------------------------------------------------

ESCAPES = {
    r"'a\'b'": "a'b",
    "'it''s'": "it's",
    '"say ""it"""': 'say "it"',
    r"'\t\n\r\b\0\Z\\\x'": "\t\n\r\b\0\x1a\\x",
    r"'\%\_'": r"\%\_",
    r"'\u00e4\U0001F600\101\1'": "ä😀A1",
    r"'\ud83d\ude00'": "😀",
    r"R'C:\new'": r"C:\new",
    r"'\\''\''": "\\''",
    "''": "",
    r"'\Uffffffff'": "\ufffd",
}


@pytest.mark.parametrize("literal", ESCAPES)
def test_strings_are_read_as_spark_reads_them(literal):
    assert parse_statement(f"VACUUM {literal}") == Vacuum(PathLiteral(ESCAPES[literal]))


def test_escaped_string_literals():
    settings = Settings(escaped_string_literals=True)
    assert parse_statement(r"VACUUM 'a\tb\'c'", settings) == Vacuum(PathLiteral(r"a\tb\'c"))


def test_double_quoted_identifiers():
    settings = Settings(double_quoted_identifiers=True)
    assert parse_statement('VACUUM "a b"."c""d"', settings) == Vacuum(TableName(("a b", 'c"d')))
    assert parse_statement("VACUUM 'a b'", settings) == Vacuum(PathLiteral("a b"))
    assert parse_statement('OPTIMIZE t ZORDER BY ("a b")', settings) == Optimize(T, zorder_by=(("a b",),))


# -- errors -----------------------------------------------------------------------------------------------------------


def refused(text: str) -> SqlSyntaxError:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text)
    return caught.value


def test_an_error_shows_the_place_as_spark_does():
    error = refused("VACUUM\n  t RETAIN x HOURS\nDRY RUN")
    assert str(error).splitlines() == [
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x': expected a number of hours. SQLSTATE: 42601 (line 2, pos 11)",
        "",
        "== SQL ==",
        "VACUUM",
        "  t RETAIN x HOURS",
        "-----------^^^",
        "DRY RUN",
        "hint: the syntax is VACUUM t | 'path' [LITE | FULL] [USING INVENTORY t | (query)] [RETAIN n HOURS] [DRY RUN]",
    ]
    assert (error.line, error.position, error.code) == (2, 11, "sql-syntax")


def test_an_error_is_ours_and_sparks():
    error = refused("VACUUM")
    assert isinstance(error, InvalidRequest) and isinstance(error, ParseException)
    assert isinstance(error, AnalysisException)
    assert (error.getCondition(), error.getSqlState()) == ("PARSE_SYNTAX_ERROR", "42601")
    assert error.getMessage().startswith("[PARSE_SYNTAX_ERROR] Syntax error at or near end of input")
    assert error.getMessageParameters()["hint"] == error.hint


def test_an_error_crosses_processes():
    error = refused("VACUUM t x")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.position, copy.expected, copy.getCondition()) == (
        str(error),
        9,
        error.expected,
        "PARSE_SYNTAX_ERROR",
    )


HINTS = {
    "VACUUM t RETIAN 5 HOURS": "did you mean RETAIN?",
    "OPTIMIZE t ZORDRE BY a": "did you mean ZORDER?",
    "VACUUM t; VACUUM u": "one statement at a time",
    "RESTORE '/x' TO VERSION AS OF 1": "delta.`/path/of/table`",
    "VACUUM where": "backticks",
    "RESTORE t TO TIMESTAMP AS OF now()": "'2024-01-31 12:00:00'",
    "CREATE TABLE SHALLOW CLONE s": "backticks",
    "CONVERT TO DELTA t PARTITIONED BY (a strin)": "did you mean 'string'?",
    "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES (a)": "'a' = '...'",
    "VACUUM IDENTIFIER(concat('a', 'b'))": "no expression",
    "FSCK TABLE t": "FSCK REPAIR TABLE t",
    "VACUUM t /* x": "*/",
}


@pytest.mark.parametrize("text", HINTS)
def test_hints_say_how_to_mend_it(text):
    assert HINTS[text] in (refused(text).hint or "")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("VACUUM t x", 9),
        ("OPTIMIZE t WHERE f(a[1)", 22),
        ("OPTIMIZE t WHERE (a = 1", 17),
        ("VACUUM 'open", 7),
        ("VACUUM 😀 t", 7),
        ("VACUUM größe x", 13),
        ("OPTIMIZE t WHERE a; b", 18),
        ("VACUUM t RETAIN 1 DAYS", 18),
    ],
)
def test_the_place_of_an_error(text, position):
    error = refused(text)
    assert (error.line, error.position) == (1, position)
    assert f"\n{text}\n{'-' * position}^^^" in str(error)
