"""Every verb that stores values, over every pair of types, under every setting that changes what values mean: what Spark's
own casts make of them by the rules of store assignment, or one error.

The judge is `Column.cast` to a type that no text names, in a session that is ANSI (or not, where the policy is LEGACY).
`ALLUVIUM_STORED_VALUES=all` plays all pairs, and none of the settings, and each by itself, too; otherwise some pairs under
all settings at once.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jvm
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as s

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.schema.types import Field, Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.statements.resolve import attributes
from alluvium.spark.values.columns import Assignment, align
from alluvium.spark.values.conversion import value_type
from alluvium.spark.values.fit import NewValue, fit
from alluvium.spark.values.storing import policy_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Literals that no setting reads otherwise.
VALUES = (
    "null", "true", "cast(7 as tinyint)", "cast(-300 as smallint)", "70000", "3000000000L", "cast(1.5 as float)",
    "cast('NaN' as float)", "1e300D", "-7.9D", "cast(1.25 as decimal(5,2))", "12345678901234567890BD", "'12'",
    "'nonsense'", "'2024-03-10 02:30:00'", "'true'", "X'3132'", "X'FF'", "date'2024-01-02'", "date'1500-01-01'",
    "timestamp_ltz'2024-07-02 10:30:00.123456'", "timestamp_ntz'2024-03-10 02:30:00'", "interval '1' day",
    "interval '3' month", "array(1, 200)", "array('1', null)", "struct(5L as a, '6' as b)", "map(1, '7', 2, null)",
)  # fmt: skip
TYPES: tuple[s.DataType, ...] = (
    s.BooleanType(), s.ByteType(), s.ShortType(), s.IntegerType(), s.LongType(), s.FloatType(), s.DoubleType(),
    s.DecimalType(5, 1), s.DecimalType(30, 5), s.StringType(), s.BinaryType(), s.DateType(), s.TimestampType(),
    s.TimestampNTZType(), s.ArrayType(s.ByteType()), s.ArrayType(s.TimestampType()),
    s.StructType([s.StructField("a", s.IntegerType()), s.StructField("b", s.ShortType())]),
    s.MapType(s.LongType(), s.IntegerType()),
)  # fmt: skip

#: What Spark says of a value that does not fit.
FAILS = "CAST|NUMERIC|DATETIME"

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "ansi": {"spark.sql.ansi.enabled": "false"},
    "ntz": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "zone": {"spark.sql.session.timeZone": "America/New_York"},
    "case": {"spark.sql.caseSensitive": "true"},
    "parser": {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "quotes": {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    "escapes": {"spark.sql.parser.escapedStringLiterals": "true"},
}
ALONE: Mapping[str, Mapping[str, str]] = {
    "none": {},
    **SETTINGS,
    "kathmandu": {**SETTINGS["ntz"], "spark.sql.session.timeZone": "Asia/Kathmandu"},
    "strict": {"spark.sql.storeAssignmentPolicy": "STRICT", **SETTINGS["ansi"]},
    "legacy": {"spark.sql.storeAssignmentPolicy": "LEGACY"},
}
AT_ONCE = {key: value for setting in SETTINGS.values() for key, value in setting.items()}
#: Every which column clauses name one by one: each name is resolved by itself, which takes its time.
NAMED = 5
#: Every which pair is played; no divisor of how many types there are, so that each type has its turn.
STRIDE = 1 if os.environ.get("ALLUVIUM_STORED_VALUES") == "all" else 5
PLAYED = {"at-once": AT_ONCE, **(ALONE if os.environ.get("ALLUVIUM_STORED_VALUES") == "all" else {})}


@dataclass(frozen=True)
class Pair:
    """A value of the frame, and the type of the column that it goes into."""

    value: int
    type: s.DataType

    @property
    def text(self) -> str:
        return VALUES[self.value]

    @property
    def is_nested(self) -> bool:
        return self.text.startswith(("array", "struct", "map"))

    def __str__(self) -> str:
        return f"{self.text} -> {self.type.simpleString()}"


@dataclass(frozen=True)
class Judged:
    """What becomes of pairs: those that are stored with the rows they make, and those that fail, of types or of values."""

    stored: dict[Pair, str | None]
    impossible: list[Pair]
    failing: list[Pair]


def frame(spark: SparkSession) -> DataFrame:
    return spark.sql("select " + ", ".join(f"{text} as v{n}" for n, text in enumerate(VALUES)))


def texts(rows: DataFrame) -> list[list[str | None]]:
    """All values as text, a list a row: the whole of a struct or array, however large."""
    return [list(r) for r in rows.select(*(sf.col(f"`{c}`").cast("string") for c in rows.columns)).collect()]


def judge(spark: SparkSession, policy: str) -> Judged:
    """Spark's casts by a policy."""
    values, parse = frame(spark), spark._jsparkSession.parseDataType
    cast = spark._jvm.org.apache.spark.sql.catalyst.expressions.Cast
    has_cast = {"ANSI": cast.canAnsiCast, "STRICT": cast.canUpCast, "LEGACY": cast.canCast}[policy]
    of_values = [parse(f.dataType.json()) for f in values.schema.fields]
    of_columns = {wanted: parse(wanted.json()) for wanted in TYPES}
    possible, impossible, failing = [], [], []
    for pair in [Pair(n, wanted) for n in range(len(VALUES)) for wanted in TYPES][::STRIDE]:
        (possible if has_cast(of_values[pair.value], of_columns[pair.type]) else impossible).append(pair)
    stored: dict[Pair, str | None] = {}
    with jvm.having(spark, {"spark.sql.ansi.enabled": str(policy != "LEGACY").lower()}):
        tried = [values[f"v{p.value}"].try_cast(p.type).alias(f"x{n}") for n, p in enumerate(possible)]
        casts = [values[f"v{p.value}"].cast(p.type).alias("x") for p in possible]
        found = texts(
            values.select(*(tried if policy != "LEGACY" else casts)).toDF(*(f"x{n}" for n in range(len(casts))))
        )
        for pair, column, text in zip(possible, casts, found[0], strict=True):
            # A value that fails alone is null when it is tried; of nested ones single members are.
            if (text is None and pair.text != "null") or pair.is_nested:
                try:
                    text = texts(values.select(column))[0][0]
                except PySparkException as error:
                    assert re.search(FAILS, str(error)), (str(pair), error)
                    failing.append(pair)
                    continue
            stored[pair] = text
    # What is impossible is so for all values of a type.
    kinds = {(values.schema.fields[p.value].dataType.simpleString(), p.type.simpleString()): p for p in impossible}
    return Judged(stored, list(kinds.values()), failing)


@pytest.fixture(scope="module")
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.mark.parametrize("setting", PLAYED)
def test_every_verb_stores_what_spark_casts(enabled: SparkSession, tmp_path: Path, setting: str) -> None:
    spark = enabled
    with jvm.having(spark, PLAYED[setting]):
        policy = str(spark.conf.get("spark.sql.storeAssignmentPolicy"))
        judged = judge(spark, policy)
        # UPDATE does as with ANSI whatever the policy is, as in the reference.
        updated = judged.stored if policy == "ANSI" else judge(spark, "ANSI").stored
    # Made in another session: what its expressions mean was settled there.
    name = f"stored_{uuid.uuid4().hex[:8]}"
    table = _made(spark, name, str(tmp_path / "t"), list(judged.stored))
    with jvm.having(spark, PLAYED[setting]):
        assert len(judged.stored) > 80 // STRIDE
        try:
            _store(spark, name, table, list(judged.stored), updated)
            _compare(table, judged.stored, updated)
        finally:
            spark.sql(f"drop table {name}")
        for pair in judged.impossible:
            _refuses(spark, pair, when_made=True)
        for pair in judged.failing:
            _refuses(spark, pair, when_made=False)


def _made(spark: SparkSession, name: str, path: str, pairs: list[Pair]) -> DeltaTable:
    builder = DeltaTable.create(spark).tableName(name).location(path).addColumn("id", "int")
    builder = builder.addColumn("day", s.DateType())
    builder = builder.addColumn("midnight", s.TimestampType(), generatedAlwaysAs="cast(day as timestamp)")
    default = {"CURRENT_DEFAULT": "timestamp'2024-01-02 10:30:00'"}
    builder = builder.addColumns(s.StructType([s.StructField("since", s.TimestampType(), True, default)]))
    builder = builder.property("delta.feature.allowColumnDefaults", "supported")
    for n, pair in enumerate(pairs):
        builder = builder.addColumn(f"c{n}", pair.type)
    return builder.execute().alias("t")


def _store(
    spark: SparkSession, name: str, table: DeltaTable, pairs: list[Pair], updated: Mapping[Pair, str | None]
) -> None:
    """Rows 0 to 5, by the verbs' ways to give values."""
    columns = [f"v{pair.value} as c{n}" for n, pair in enumerate(pairs)]
    values = frame(spark).selectExpr("1 as id", "date'2024-01-02' as day", *columns)
    values.writeTo(name).append()
    empty = spark.sql("select explode(array(0, 2, 3)) as id, date'1999-09-09' as day")
    alluvium.write(empty, str(table.detail().collect()[0]["location"]), mode="append")
    fitting = {f"c{n}": pair.text for n, pair in enumerate(pairs) if pair in updated}
    table.update("id = 0", {"day": "date'2024-01-02'", "since": "default", **fitting})
    source = values.drop("id").crossJoin(spark.sql("select explode(array(2, 3, 4, 5)) as id")).alias("s")
    given = {"day": "s.day", **{f"c{n}": f"s.c{n}" for n in range(0, len(pairs), NAMED)}}
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate("s.id = 3", given).whenMatchedUpdateAll()
    merge = merge.whenNotMatchedInsert("s.id = 5", {"id": "s.id", **given}).whenNotMatchedInsertAll()
    merge.execute()


def _compare(table: DeltaTable, stored: Mapping[Pair, str | None], updated: Mapping[Pair, str | None]) -> None:
    rows = {row[0]: row for row in texts(table.toDF())}
    assert sorted(rows) == ["0", "1", "2", "3", "4", "5"]
    for number, (_, day, midnight, since, *found) in rows.items():
        assert (day, midnight, since) == ("2024-01-02", "2024-01-02 00:00:00", "2024-01-02 10:30:00"), number
        wanted = [updated.get(pair) for pair in stored] if number == "0" else list(stored.values())
        if number in ("3", "5"):
            wanted = [text if n % NAMED == 0 else None for n, text in enumerate(wanted)]
        wrong = {str(pair): both for pair, *both in zip(stored, found, wanted, strict=True) if both[0] != both[1]}
        assert not wrong, number


def _refuses(spark: SparkSession, pair: Pair, *, when_made: bool) -> None:
    """Both conversions, the writer's and the verbs', say it when they are made, or in the job."""
    values = frame(spark).select(sf.col(f"v{pair.value}").alias("c"))
    wanted, column = from_spark(pair.type), attributes(values)["c"]
    new = NewValue("c", column, value_type(values.schema.fields[0].dataType, "c"), wanted)
    ways = {
        "writer": lambda: align(values, Struct((Field("c", wanted),)), Assignment.CAST),
        "verbs": lambda: values.select(*fit(values, [new], policy_of(spark))),
    }
    for way, made in ways.items():
        if when_made:
            with pytest.raises(InvalidRequest) as caught:
                made()
            # Or the part of it that does not fit, `c.element`.
            named = (caught.value.column or "").partition(".")[0]
            assert (caught.value.code, named) == ("schema-mismatch", "c"), (way, str(pair))
        else:
            rows = made()
            with pytest.raises(PySparkException, match=FAILS):
                rows.collect()


@pytest.mark.parametrize("verb", ["update", "merge", "insert", "append"])
@pytest.mark.parametrize(("value", "wanted"), [("3000000000L", "int"), ("'nonsense'", "date")])
def test_a_value_that_does_not_fit_fails_the_statement(
    enabled: SparkSession, tmp_path: Path, verb: str, value: str, wanted: str
) -> None:
    spark, path = enabled, str(tmp_path / "t")
    table = DeltaTable.create(spark).location(path).addColumn("id", "int").addColumn("v", wanted).execute().alias("t")
    alluvium.write(spark.sql(f"select 1 id, cast(null as {wanted}) v"), path, mode="append")
    source = spark.sql(f"select 1 id, {value} v").alias("s")
    verbs = {
        "update": lambda: table.update("id = 1", {"v": value}),
        "merge": lambda: table.merge(source, "t.id = s.id").whenMatchedUpdateAll().execute(),
        "insert": lambda: table.merge(source, "t.id = s.id + 1").whenNotMatchedInsertAll().execute(),
        "append": lambda: source.writeTo(f"delta.`{path}`").append(),
    }
    with jvm.having(spark, SETTINGS["ansi"]), pytest.raises(AlluviumError) as caught:
        verbs[verb]()
    assert caught.value.code == "invalid-data"
    assert alluvium.open(path).version == 1
