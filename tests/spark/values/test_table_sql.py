"""Expressions of a table against a session that means no harm, and holds secrets."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_table import make_table
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from sql_calls import CALLS, COLUMNS, NEWER, OPERATIONS

import alluvium
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.row_functions import CONSTRUCTS, JOB, ROW
from alluvium.expr.sql.row_sql import parse_row_expression
from alluvium.schema.types import INTEGER, STRING, Array, Field, JsonValue, Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.sessions.session import capabilities
from alluvium.spark.values.table_sql import classes_of, table_columns

SCHEMA = Struct(
    (
        Field("a", INTEGER),
        Field("b", STRING),
        Field("select", INTEGER),
        Field("ar", Array(INTEGER)),
        Field("s", Struct((Field("x", INTEGER),))),
    )
)
#: How a session may be set, so that Spark reads a text in another way.
HOSTILE = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.secret": "hunter2",
}
Set = Callable[[dict[str, str]], None]


@pytest.fixture
def set_all(spark: SparkSession) -> Iterator[Set]:
    before: dict[str, str | None] = {}

    def change(settings: dict[str, str]) -> None:
        for key, value in settings.items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql("select 1 as a, 'x' as b, 2 as `select`, array(1, 2) as ar, named_struct('x', 3) as s")


def canonical(text: str, schema: Struct = SCHEMA) -> str:
    return parse_row_expression(text, schema, ROW | JOB).canonical


def test_what_a_table_may_say_means_what_it_means_to_spark(spark: SparkSession) -> None:
    df = spark.sql(f"select {COLUMNS}")
    schema = from_spark(df.schema)
    missing = NEWER if capabilities(spark).version < (4, 1) else frozenset()
    texts = [text for name, text in CALLS.items() if name not in missing] + list(OPERATIONS)
    found = table_columns(df, [canonical(text, schema) for text in texts])
    got, wanted = df.select(*found), df.select(*map(sf.expr, texts))
    assert [f.dataType for f in got.schema] == [f.dataType for f in wanted.schema]
    # All that are known, but for a few that Spark itself does not know.
    assert {"charindex", "iff"} == (ROW | JOB) - CALLS.keys()


ATTACKS = [
    "(select max(word) from secrets) = b",
    "(from secrets) = b",
    "(from text.`/etc/hostname` limit 1) = b",
    "(from (select 1) select transform(1) using 'touch MARKER' as (b string)) = b",
    "a in (map a using 'touch MARKER' as (b int) from secrets)",
    "a in (from secrets map word using 'touch MARKER' as (x int))",
    "1. = 1. and exists(from secrets)",
    "(select) = (select max(word) from secrets)",
    "exists(select 1 from secrets)",
    "reflect('java.lang.System', 'getenv', 'HOME') = b",
    "java_method('java.lang.System', 'getenv', 'HOME') = b",
    "try_reflect('java.lang.System', 'getenv', 'HOME') = b",
    "\"reflect\"('java.lang.System', 'getenv', 'HOME') = b",
    "identifier('reflect')('java.lang.System', 'getenv', 'HOME') = b",
    "system.builtin.reflect('java.lang.System', 'getenv', 'HOME') = b",
    "secret_variable = b",
    "transform(ar, secret_variable -> 'x')[0] = secret_variable",
    "session.secret_variable = b",
    "secret_function(a) = b",
    "from_xml('<p><a>1</a></p>', 'a int', map('rowValidationXSDPath', '/etc/hostname')) is null",
    "input_file_name() = b",
    "current_catalog() = b",
    "current_database() = b",
    "version() = b",
    "getvariable('secret_variable') = b",
    "read_files('/etc') = b",
    "max(a) > 0",
    "sum(a) over () > 0",
    "explode(ar) > 0",
    "rand() > 2",
]


@pytest.fixture
def secrets(spark: SparkSession) -> Iterator[None]:
    """What a session has that is none of a table's business."""
    spark.sql("select 'hunter2' as word").createOrReplaceTempView("secrets")
    spark.sql("declare or replace variable secret_variable string default 'hunter2'")
    spark.udf.register("secret_function", lambda a: "hunter2")
    yield
    spark.catalog.dropTempView("secrets")
    for statement in ("drop temporary variable secret_variable", "drop temporary function secret_function"):
        spark.sql(statement)


@pytest.mark.parametrize("settings", [{}, HOSTILE], ids=["plain", "hostile"])
def test_no_attack_gets_past_the_tree(spark, rows, secrets, set_all: Set, settings, tmp_path: Path) -> None:
    """As if the gate were not there."""
    set_all(settings)
    marker = tmp_path / "ran"
    for attack in ATTACKS:
        with pytest.raises((InvalidRequest, AnalysisException)):
            table_columns(rows, [attack.replace("MARKER", str(marker))])
    assert not marker.exists()


def test_a_function_of_the_user_under_a_name_of_sparks_is_not_called(spark, rows) -> None:
    """Spark 4.0 takes the user's, later ones their own."""
    if spark.version < "4.2":
        pytest.skip("nobody can drop such a function again before Spark 4.2")
    spark.udf.register("sec", lambda a: 1.0, "double")
    try:
        (column,) = table_columns(rows, [canonical("sec(a)")])
        assert rows.select(column).first()[0] == pytest.approx(1.8508, abs=1e-3)
    finally:
        spark.sql("drop temporary function sec")


def test_no_attack_gets_past_the_gate() -> None:
    """As if nobody could look at the tree, as over Spark Connect."""
    for attack in ATTACKS:
        with pytest.raises(InvalidRequest):
            canonical(attack)


def test_no_attack_gets_past_an_append(spark, secrets, set_all: Set, tmp_path: Path) -> None:
    set_all(HOSTILE)
    marker, rows = tmp_path / "ran", spark.sql("select 1 as a, array(1) as ar")
    for number, attack in enumerate(text.replace("MARKER", str(marker)) for text in ATTACKS):
        made: dict[str, JsonValue] = {"delta.generationExpression": f"if({attack}, 'x', 'y')"}
        default: dict[str, JsonValue] = {"CURRENT_DEFAULT": f"if({attack}, 'x', 'y')"}
        plain = (Field("a", INTEGER), Field("ar", Array(INTEGER)))
        for kind, column, properties in (
            ("made", Field("b", STRING, True, made), {}),
            ("default", Field("b", STRING, True, default), {}),
            ("check", Field("b", STRING), {"delta.constraints.c": attack}),
        ):
            table = make_table(tmp_path / f"{kind}{number}", Struct((*plain, column)), properties)
            with pytest.raises((UnsupportedFeature, InvalidRequest)):
                alluvium.write(rows, table, mode="append")
            assert not list(Path(table).rglob("*.parquet")), attack
    assert not marker.exists()


def test_a_text_in_double_quotes_is_a_text(spark, set_all: Set, tmp_path: Path) -> None:
    set_all(HOSTILE)
    schema = Struct((Field("a", INTEGER), Field("b", STRING, True, {"CURRENT_DEFAULT": 'concat("a", "it\'s")'})))
    table = make_table(tmp_path / "t", schema, {"delta.constraints.c": "b <> \"a\" and b <> 'b'"})
    alluvium.write(spark.sql("select 1 as a"), table, mode="append")
    with pytest.raises(InvalidRequest, match="c"):
        alluvium.write(spark.sql("select 1 as a, 'a' as b"), table, mode="append")
    assert alluvium.open(table).to_arrow()["b"].to_pylist() == ["ait's"]


def test_the_environment_stays_out(spark, set_all: Set, tmp_path: Path) -> None:
    """`${...}` in names, values and properties of a table."""
    set_all(HOSTILE)
    name = "${env:HOME}"
    columns = (Field(name, INTEGER), Field("s", Struct((Field("${spark:spark.sql.secret}", STRING),)), False))
    table = make_table(tmp_path / "t", Struct(columns), partition_by=[name])
    rows = spark.range(1).select(
        sf.lit(1).alias(name), sf.struct(sf.lit("v").alias("${spark:spark.sql.secret}")).alias("s")
    )
    alluvium.write(rows, table, mode="append")
    got = alluvium.read(spark, table)
    assert got.columns == [name, "s"]
    assert [row.asDict(True) for row in got.collect()] == [{name: 1, "s": {"${spark:spark.sql.secret}": "v"}}]
    bad = spark.range(1).select(sf.lit(1).alias(name), sf.lit(None).cast(got.schema["s"].dataType).alias("s"))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(bad, table, mode="append")
    assert caught.value.code == "not-null-violated"
    # In an expression it is refused.
    default: dict[str, JsonValue] = {"CURRENT_DEFAULT": f"'{name}'"}
    other = make_table(tmp_path / "d", Struct((Field("b", STRING, True, default),)))
    with pytest.raises(UnsupportedFeature):
        alluvium.write(spark.range(1), other, mode="append")


def test_settings_that_decide_what_a_value_is_are_the_users(spark, rows, set_all: Set) -> None:
    set_all({"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"})
    texts = ["cast ( `b` as int )", "cast ( timestamp_seconds ( 0 ) as string )"]
    assert tuple(rows.select(*table_columns(rows, texts)).first()) == (None, "1970-01-01 09:00:00")
    set_all({"spark.sql.ansi.enabled": "true"})
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        rows.select(*table_columns(rows, texts)).collect()


# At the end of the suite, in a JVM that has run long, Spark 4.0 stops its context after an OutOfMemoryError of a task;
# what is slow is played by the newest alone.
@pytest.mark.slow
def test_a_value_that_is_too_large_is_an_error_of_ours(spark, tmp_path: Path) -> None:
    grows = "length(repeat('a', shiftleft(1, 30) + (shiftleft(1, 30) - 1))) > 0"
    table = make_table(tmp_path / "t", Struct((Field("a", INTEGER),)), {"delta.constraints.grows": grows})
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 1 as a"), table, mode="append")
    assert caught.value.code == "out-of-memory"
    assert "grows" in caught.value.message
    assert not list(Path(table).rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta.generationExpression", "CURRENT_DEFAULT"])
def test_so_is_one_of_a_column_that_the_table_computes(spark, tmp_path: Path, kind: str) -> None:
    text = "length(repeat('a', shiftleft(1, 30) + (shiftleft(1, 30) - 1)))"
    table = make_table(tmp_path / "t", Struct((Field("a", INTEGER), Field("grown", INTEGER, True, {kind: text}))))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 1 as a"), table, mode="append")
    assert caught.value.code == "out-of-memory"
    assert "grown" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "length(regexp_replace(b, '(', ''))",
        "length(cast(to_date(b, 'yyyy-MM-dd') as string))",
        "length(cast(parse_json(concat('{', b)) as string))",
        "length(decode(encode(b, 'nope'), 'nope'))",
        "length(url_decode('%zz'))",
        "to_number(b, '999')",
    ],
)
def test_what_fails_on_a_value_is_an_error_of_ours(spark, tmp_path: Path, text: str) -> None:
    """Parsers say so in the classes of SQL's data exceptions."""
    made: dict[str, JsonValue] = {"delta.generationExpression": text}
    table = make_table(tmp_path / "t", Struct((Field("b", STRING), Field("g", INTEGER, True, made))))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select concat('x', id) as b from range(1)"), table, mode="append")
    assert caught.value.code == "invalid-data"


_SOUP = [
    "a",
    "b",
    "ar",
    "s.x",
    "`select`",
    "select",
    "Select",
    "from",
    "with",
    "using",
    "table",
    "map",
    "reduce",
    "transform(",
    "values",
    "lateral",
    "over",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    ":",
    "::",
    "->",
    "=>",
    "+",
    "-",
    "*",
    "/",
    "=",
    "<",
    ">",
    "||",
    "and",
    "or",
    "not",
    "in",
    "exists(",
    "upper(",
    "cast(",
    "as",
    "int",
    "string",
    "date",
    "timestamp",
    "interval",
    "day",
    "1",
    "1.",
    ".5",
    "1e1",
    "1E+1",
    "2L",
    "'x'",
    '"x"',
    "''",
    '""',
    "r'x'",
    "x'00'",
    "date'2024-01-01'",
    "case",
    "when",
    "then",
    "else",
    "end",
    "null",
    "x",
    "->",
    "reflect(",
    '"reflect"(',
    "identifier(",
    "secrets",
    "extract(",
    "trim(",
    "both",
    "like",
    "between",
    "is",
    "distinct",
    "text.`/etc/hostname`",
    "'cat'",
    "year",
    "describe",
    "call",
    "1.select",
    "1E1from",
]
_SEEDS = [
    "a in (1, 2) and upper(b) = 'x'",
    "(a + 1.5) * 2 > s.x or exists(ar, x -> x > 1)",
    "case when a > 1 then 'x' else b end = \"y\"",
    "trim(both 'x' from b) like 'a%' and cast(a as string) <> ''",
    "a in (select select from secrets)",
    "(from secrets) = b",
    "transform(ar, x -> x + 1)[0] between 1 and 2",
    "extract(year from date'2024-01-01') > select",
]


def soups(seed: int, count: int) -> Iterator[str]:
    """Texts that begin as an expression and have pieces put in, left out or exchanged."""
    chance = random.Random(seed)
    for _ in range(count):
        parts = chance.choice(_SEEDS).split(" ")
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(parts) + 1)
            new = [] if chance.random() < 0.2 else chance.choices(_SOUP, k=chance.randint(1, 3))
            parts[place : place + chance.randint(0, 2)] = new
        yield "".join(part + chance.choice(["", " ", " ", " "]) for part in parts)


def functions_of(expression) -> set[str]:
    """Names of the functions that a tree calls which nobody has resolved yet."""
    found = json.loads(expression.toJSON())
    return {str(node.get("nameParts", "")) for node in found if node["class"].endswith(".UnresolvedFunction")}


def test_what_passes_the_gate_is_no_query_to_spark(spark, set_all: Set) -> None:
    """Two lexers, one opinion: whatever text passes, Spark's parser finds nothing in it that the gate did not."""
    set_all(HOSTILE)
    parser = spark._jsparkSession.sessionState().sqlParser()
    passed = list(itertools.islice(filter(None, map(_canonical_or_none, soups(20261122, 60_000))), 1500))
    assert len(passed) == 1500, len(passed)
    parsed = 0
    for text in passed:
        try:
            tree = parser.parseExpression(text)
        except Py4JJavaError:
            # No text of Spark's at all.
            continue
        except AnalysisException:
            continue
        parsed += 1
        classes = {name.rpartition(".")[2] for name in classes_of(tree)}
        odd = {name for name in classes if name.endswith(("Subquery", "Query", "Exists")) or name in _ODD}
        assert not odd, (text, odd)
        called = {name.strip("[]").casefold() for name in functions_of(tree)}
        assert called <= ROW | JOB | CONSTRUCTS, (text, called)
    assert parsed > 300


_ODD = {"ScalaUDF", "CallMethodViaReflection", "UnresolvedWindowExpression", "WindowExpression"}


def _canonical_or_none(text: str) -> str | None:
    try:
        return canonical(text)
    except InvalidRequest:
        return None
