"""Every verb that takes a condition, in each lane and both formats, beside Spark's own filter over the plain rows.

Hundreds of conditions over tables whose statistics others wrote. `ALLUVIUM_CONDITIONS=all` plays all of them with every
verb; otherwise each takes its turn.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from condition_tables import PARTITION_BY, SPELLINGS, batches, respell, rows
from condition_texts import ALL, FAILING, OF_PARTITION, RANDOM, combined
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.delta.view.scan import select_files, whole_files
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.statements.conditions import text_condition
from alluvium.storage.paths import decode_uri_paths

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLAYS_ALL = os.environ.get("ALLUVIUM_CONDITIONS") == "all"
FAILURES = (AlluviumError, PySparkException, Py4JJavaError)
#: Conditions that one query of Spark answers together.
_TOGETHER = 40


def turn(texts: Sequence[str], of: int, name: str) -> list[str]:
    """Those whose turn it is; the same in each run."""
    return [t for t in texts if PLAYS_ALL or crc32(f"{name} {t}".encode()) % of == 0]


@dataclass
class Tables:
    """The table's rows as Spark has them, and where its spellings are."""

    spark: object
    folder: Path
    delta: dict[str, str]
    paimon: str
    ids: frozenset[int]

    def matching(self, texts: Sequence[str], ansi: str = "true") -> dict[str, frozenset[int]]:
        """Ids of the rows for which Spark finds each condition true."""
        found: dict[str, frozenset[int]] = {}
        self.spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            plain = self.spark.createDataFrame(rows())
            for start in range(0, len(texts), _TOGETHER):
                some = texts[start : start + _TOGETHER]
                answers = plain.selectExpr("id", *(f"({t}) c{n}" for n, t in enumerate(some))).collect()
                for n, t in enumerate(some):
                    found[t] = frozenset(row[0] for row in answers if row[n + 1] is True)
        finally:
            self.spark.conf.unset("spark.sql.ansi.enabled")
        return found

    def copy(self, path: str) -> str:
        """The table anew, to be changed."""
        copied = self.folder / "copy"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(path, copied)
        return str(copied)


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory) -> Tables:
    folder = tmp_path_factory.mktemp("conditions")
    ours, paimon = str(folder / "ours"), str(folder / "paimon")
    first, second = (batches()[:1] + batches()[2:]), batches()[1:2]
    for some in (first, second):
        df = spark.createDataFrame(pa.concat_tables(some)).coalesce(1)
        feed = {} if some is second else {"delta.enableChangeDataFeed": "true"}
        alluvium.write(df, ours, mode="append", partition_by=PARTITION_BY, **feed)
        alluvium.write(df, paimon, mode="append", format="paimon", partition_by=PARTITION_BY)
    spelled = {
        name: ours if stats is None else respell(Path(ours), folder / name, stats) for name, stats in SPELLINGS.items()
    }
    return Tables(spark, folder, spelled, paimon, frozenset(rows()["id"].to_pylist()))


def trees(tables: Tables, texts: Sequence[str]):
    """What Spark makes of the texts, as we understand it."""
    snapshot = alluvium.open(tables.delta["ours"])._snapshot
    frame = read_native(tables.spark, DeltaSource(snapshot))
    schema = snapshot.config.schema
    return {t: text_condition(tables.spark, t, schema, "the condition", lambda: frame) for t in texts}


def rows_of_files(url: str) -> dict[str, frozenset[int]]:
    snapshot = alluvium.open(url)._snapshot
    root = Path(url)
    raw = snapshot.files["path"].to_pylist()
    return {
        path: frozenset(pq.read_table(root / decoded, partitioning=None, columns=["id"])["id"].to_pylist())
        for path, decoded in zip(raw, decode_uri_paths(snapshot.files["path"]).to_pylist(), strict=True)
    }


def ensure_sound(tables: Tables, texts: Sequence[str]) -> None:
    """Files with matching rows are read, and those that go as a whole are those all of whose rows match."""
    expected, parsed = tables.matching(texts), trees(tables, texts)
    for name, url in tables.delta.items():
        snapshot, held = alluvium.open(url)._snapshot, rows_of_files(url)
        for t in texts:
            read = set(select_files(snapshot, parsed[t]).files["path"].to_pylist())
            assert {path for path, ids in held.items() if ids & expected[t]} <= read, (name, t)
            whole = whole_files(snapshot, parsed[t])
            for path in whole.every["path"].to_pylist():
                assert held[path] <= expected[t], (name, t, path)
            decided = held.keys() - set(whole.undecided["path"].to_pylist()) - set(whole.every["path"].to_pylist())
            for path in decided:
                assert not held[path] & expected[t], (name, t, path)


def test_files_are_left_out_and_removed_soundly(tables: Tables) -> None:
    ensure_sound(tables, turn(ALL, 2, "files"))


@settings(
    max_examples=20 if PLAYS_ALL else 1,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(texts=st.lists(combined(), min_size=30, max_size=30, unique=True))
def test_random_conditions(tables: Tables, texts: list[str]) -> None:
    ensure_sound(tables, texts)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_filters(tables: Tables, spelling: str) -> None:
    texts = turn(ALL, 10, spelling)
    expected = tables.matching(texts)
    df = alluvium.read(tables.spark, tables.delta[spelling])
    for t in texts:
        assert {r[0] for r in df.where(t).select("id").collect()} == expected[t], t


def test_filters_by_python_workers_and_without_spark(tables: Tables) -> None:
    texts = turn(ALL, 3, "portable")
    expected, read = tables.matching(texts), 0
    for spelling, url in tables.delta.items():
        for t in texts:
            try:
                found = alluvium.open(url).to_arrow(["id"], where=t)["id"].to_pylist()
                counted = alluvium.open(url).count(t)
            except InvalidRequest as error:
                assert error.code in ("unsupported-expression", "invalid-predicate"), t
                continue
            read += 1
            assert set(found) == expected[t] and counted == len(expected[t]), (spelling, t)
    assert read >= 2 * len(texts)
    for t in turn(ALL, 40, "workers"):
        df = alluvium.read(tables.spark, tables.delta["open"], lane="python")
        assert {r[0] for r in df.where(t).select("id").collect()} == tables.matching([t])[t], t


def test_filters_of_paimon_tables_and_of_feeds(tables: Tables) -> None:
    texts = turn(ALL, 8, "paimon")
    expected = tables.matching(texts)
    paimon = alluvium.read(tables.spark, tables.paimon)
    feed = alluvium.changes(tables.spark, tables.delta["ours"], 0)
    for t in texts:
        assert {r[0] for r in paimon.where(t).select("id").collect()} == expected[t], t
        assert {r[0] for r in feed.where(t).select("id").collect()} == expected[t], t


def delete(spark, path: str, text: str) -> None:
    DeltaTable.forPath(spark, path).delete(text)


def merge(spark, path: str, text: str) -> None:
    DeltaTable.forPath(spark, path).merge(spark.sql("select 1 one"), text).whenMatchedDelete().execute()


def replace_where(spark, path: str, text: str) -> None:
    """By no rows: what is left is what the condition leaves."""
    none = alluvium.read(spark, path).where("false")
    alluvium.write(none, path, mode="overwrite", replaceWhere=text)


def overwrite(spark, path: str, text: str) -> None:
    none = alluvium.read(spark, path).where("false")
    alluvium.enable(spark)
    none.writeTo(f"delta.`{path}`").overwrite(sf.expr(text))


REMOVING: dict[str, Callable[..., None]] = {
    "delete": delete, "merge": merge, "replaceWhere": replace_where, "overwrite": overwrite,
}  # fmt: skip


@pytest.mark.parametrize("verb", REMOVING)
def test_what_goes_is_what_spark_finds(tables: Tables, verb: str) -> None:
    texts = turn(OF_PARTITION, 8, verb) + turn(ALL, 60, verb)
    for t, expected in tables.matching(texts).items():
        spelling = list(SPELLINGS)[crc32(t.encode()) % len(SPELLINGS)]
        path = tables.copy(tables.delta[spelling])
        REMOVING[verb](tables.spark, path, t)
        left = alluvium.open(path).to_arrow(["id"])["id"].to_pylist()
        assert sorted(left) == sorted(tables.ids - expected), (spelling, t)


@pytest.mark.parametrize("verb", REMOVING)
def test_a_condition_that_fails_removes_nothing_that_it_is_not_true_for(tables: Tables, verb: str) -> None:
    texts = turn(FAILING, 5, verb)
    # Without ANSI a failure is null: such rows stay in any case.
    for t, expected in tables.matching([t for t in texts if "raise" not in t], ansi="false").items():
        path = tables.copy(tables.delta["open"])
        try:
            REMOVING[verb](tables.spark, path, t)
        except FAILURES:
            expected = frozenset()
        left = alluvium.open(path).to_arrow(["id"])["id"].to_pylist()
        assert sorted(left) == sorted(tables.ids - expected), t


@pytest.mark.parametrize("verb", REMOVING)
def test_a_condition_that_says_something_else_each_time_is_refused(tables: Tables, verb: str) -> None:
    for t in turn(RANDOM, 2, verb) or RANDOM[:1]:
        path = tables.copy(tables.delta["ours"])
        with pytest.raises(AlluviumError):
            REMOVING[verb](tables.spark, path, t)
        assert alluvium.open(path).version == alluvium.open(tables.delta["ours"]).version, t


def test_updates_and_constraints(tables: Tables) -> None:
    for t, expected in tables.matching(turn(ALL, 60, "update")).items():
        path = tables.copy(tables.delta["open"])
        DeltaTable.forPath(tables.spark, path).update(t, {"mark": "1"})
        marks = alluvium.open(path).to_arrow(["id", "mark"]).to_pylist()
        assert {m["id"] for m in marks if m["mark"]} == expected and {m["id"] for m in marks} == tables.ids, t
    for t, expected in tables.matching([*turn(ALL, 60, "constraint"), "i < 9 or i >= 9 or i is null"]).items():
        path = tables.copy(tables.delta["cut"])
        try:
            DeltaTable.forPath(tables.spark, path).addConstraint("c", t)
        except InvalidRequest as error:
            assert error.code == "constraint-violated" and expected < tables.ids, t
        else:
            assert expected == tables.ids, t


def test_paimon_partitions_are_replaced_exactly_or_not_at_all(tables: Tables) -> None:
    replaced = 0
    for t, expected in tables.matching(turn(OF_PARTITION, 4, "paimon")).items():
        path = tables.copy(tables.paimon)
        none = alluvium.read(tables.spark, path).where("false")
        try:
            alluvium.write(none, path, mode="overwrite", format="paimon", replaceWhere=t)
        except UnsupportedFeature as error:
            assert error.code in ("replace-where-undecided", "replace-where-data"), t
            expected = frozenset()
        else:
            replaced += 1
        left = [r[0] for r in alluvium.read(tables.spark, path).select("id").collect()]
        assert sorted(left) == sorted(tables.ids - expected), t
    assert replaced


@pytest.fixture
def setting(spark):
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"


def test_a_query_keeps_the_zone_that_it_was_written_in(tables: Tables, setting) -> None:
    """Read under one zone, asked under another, carried out under a third: as rows that are no table."""
    texts = [
        "cast(ts as date) = '2024-01-02'", "hour(ts) = 5", "date_format(ts, 'yyyy-MM-dd HH') = '2024-01-02 05'",
        "ts > '2024-01-02 05:00:00'", "date_trunc('day', ts) = timestamp'2024-01-02'", "ts = cast(tn as timestamp)",
    ]  # fmt: skip
    frames = {}
    plain, table = tables.spark.createDataFrame(rows()), alluvium.read(tables.spark, tables.delta["ours"])
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        setting(ZONE, zone)
        for t in texts:
            frames[zone, t] = plain.where(t), table.where(t)
    for zone in ("America/New_York", "UTC", "Asia/Tokyo"):
        setting(ZONE, zone)
        for asked, (expected, found) in frames.items():
            wanted, answer = ({r[0] for r in df.select("id").collect()} for df in (expected, found))
            assert answer == wanted, (zone, asked)


def test_answers_that_are_kept_are_those_of_the_same_settings(tables: Tables, setting) -> None:
    table = alluvium.read(tables.spark, tables.delta["ours"])
    setting(ANSI, "false")
    lenient = table.where("cast(p as int) = 1").select("id")
    assert len(lenient.collect()) == 1
    setting(ANSI, "true")
    with pytest.raises(FAILURES):
        table.where("cast(p as int) = 1").select("id").collect()
    assert len(lenient.collect()) == 1


@pytest.mark.parametrize(
    ("key", "value", "text", "replaced"),
    [
        (ANSI, "false", "p = 1", "p = '1'"),
        (ANSI, "false", "not (p = 1)", "false"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true", "\"p\" = 'a1'", "p = 'a1'"),
        ("spark.sql.parser.escapedStringLiterals", "true", "p = '\\x61'", "false"),
        ("spark.sql.caseSensitive", "true", "P = 'a1'", None),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", "date_format(q, 'yyyy') = '2023'", "year(q) = 2023"),
        (ZONE, "Asia/Tokyo", "cast(cast(q as timestamp) as string) like '2023-04-01 00%'", "year(q) = 2023"),
    ],
)
def test_what_is_replaced_is_what_the_settings_make_of_the_text(
    tables: Tables, setting, key: str, value: str, text: str, replaced: str | None
) -> None:
    expected = frozenset() if replaced is None else tables.matching([replaced])[replaced]
    path = tables.copy(tables.delta["ours"])
    setting(key, value)
    if replaced is None:
        with pytest.raises(InvalidRequest):
            replace_where(tables.spark, path, text)
    else:
        replace_where(tables.spark, path, text)
    assert sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist()) == sorted(tables.ids - expected)


def test_rows_that_are_new_must_lie_in_a_condition_that_only_spark_knows(tables: Tables) -> None:
    path = tables.copy(tables.delta["ours"])
    fresh = alluvium.read(tables.spark, path).where("p = 'b1'")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(fresh, path, mode="overwrite", replaceWhere="p rlike '^a'")
    assert caught.value.code == "constraint-violated"
    assert alluvium.open(path).version == alluvium.open(tables.delta["ours"]).version
