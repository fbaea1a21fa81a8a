"""DELETE, UPDATE and MERGE of Paimon tables: of keys by upserts, of others by files anew or deletion vectors; and by SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from templates import copy_of

import alluvium
from alluvium.commands.paimon import compact
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type

pytestmark = pytest.mark.spark

VECTORS = {"deletion-vectors.enabled": "true"}
#: Keys, partition keys and options.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "anew": ((), ("p",), {}),
    "vectors": ((), ("p",), {**VECTORS, "deletion-vectors.bitmap64": "true"}),
    "keys": (("k",), (), {"bucket": "2"}),
    "dynamic": (("k", "p"), ("p",), {}),
    "partial": (("k",), (), {"bucket": "1", "merge-engine": "partial-update"}),
}  # fmt: skip


def make(spark: Any, url: str, keys: tuple[str, ...] = (), parted: tuple[str, ...] = (), **options: str) -> PaimonTable:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("s", "STRING"), ("p", "STRING"))]
    rows = spark.range(12).selectExpr("cast(id as int) k", "concat('s', id) s", "if(id % 2 = 0, 'x', 'y') p")

    def begin(new: str) -> None:
        PaimonTable.create(new, fields, parted, keys, options)
        alluvium.write(rows.coalesce(1), new, mode="append", format="paimon")

    copy_of((__name__, keys, parted, *options.items()), url, begin)
    return PaimonTable.forPath(url)


def news(spark: Any) -> DataFrame:
    rows = [(3, "new", "y"), (4, "gone", "x"), (50, "fifty", "x"), (51, "not this", "y")]
    return spark.createDataFrame(rows, "k int, s string, p string").alias("s")


def rows(url: str) -> dict[int, str]:
    return {row["k"]: row["s"] for row in alluvium.open(url).to_arrow().to_pylist()}


@pytest.mark.parametrize("name", TABLES)
def test_rows_change(spark, tmp_path: Path, name: str) -> None:
    keys, parted, options = TABLES[name]
    url = str(tmp_path / "a table, 100% ü")
    table = make(spark, url, keys, parted, **options).alias("t")
    want = rows(url)
    deletes = name != "partial"
    if not deletes:
        want |= {7: "s7", 8: "s8"}
    else:
        table.delete("t.k in (7, 8)")
        del want[7], want[8]
    done = table.update("t.k > 9", {"s": "concat(t.s, '!')"})
    merge = table.merge(news(spark), "t.k = s.k")
    merge = merge.whenMatchedDelete("s.s = 'gone'") if deletes else merge
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll("s.s <> 'not this'")
    merge = merge.whenNotMatchedBySourceUpdate("t.k = 0", {"s": "'low'"})
    version = alluvium.open(url).version
    told = merge.execute(dry_run=True)
    assert "upserts" in str(merge.explain()) if keys else "1 of" not in str(merge.explain())
    assert told.operation.metrics["numTargetRowsDeleted"] == str(int(deletes))
    assert alluvium.open(url).version == version
    assert merge.execute().collect()[0] == (4, 3 - deletes, int(deletes), 1)
    want[4] = "gone"
    if deletes:
        del want[4]
    want |= {10: "s10!", 11: "s11!", 3: "new", 50: "fifty", 0: "low"}
    assert (done.metrics["numUpdatedRows"], rows(url)) == ("2", want)
    assert {row["k"]: row["s"] for row in alluvium.read(spark, url).collect()} == want
    assert not list(Path(url).glob("_staging/*"))


def test_deletions_of_partial_updates(spark, tmp_path: Path) -> None:
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    table = make(spark, url := str(tmp_path / "t"), ("k",), bucket="1", **options).alias("t")
    done = table.merge(news(spark), "t.k = s.k").whenMatchedDelete("s.k = 3").whenNotMatchedInsertAll().execute()
    assert done.collect()[0] == (3, 0, 1, 2) and rows(url).keys() == {*range(12), 50, 51} - {3}


def test_a_row_has_one_match_and_keeps_its_key(spark, tmp_path: Path) -> None:
    twice = spark.createDataFrame([(3, "a"), (3, "b")], "k int, s string").alias("s")
    for name in ("keys", "vectors"):
        keys, parted, options = TABLES[name]
        url = str(tmp_path / name)
        merge = make(spark, url, keys, parted, **options).alias("t").merge(twice, "t.k = s.k")
        with pytest.raises(InvalidRequest) as several:
            merge.whenMatchedUpdate(set={"s": "s.s"}).execute()
        assert several.value.code == "multiple-matches" and alluvium.open(url).version == 1
        assert merge.whenMatchedDelete().execute().collect()[0].num_deleted_rows == 1
    table = PaimonTable.forPath(str(tmp_path / "keys")).alias("t")
    with pytest.raises(InvalidRequest) as moved:
        table.merge(news(spark), "t.k = s.k").whenMatchedUpdate(set={"k": "s.k + 1"}).execute()
    assert moved.value.code == "key-changed"
    moved_keys = table.merge(news(spark), "t.k = s.k").whenMatchedUpdate(set={"k": "s.k + 1"})
    with pytest.raises(InvalidRequest) as told:
        moved_keys.execute(dry_run=True)
    assert told.value.code == "key-changed"
    # The key that a row has already is no other.
    table.merge(news(spark), "t.k = s.k").whenMatchedUpdate(set={"k": "s.k", "s": "s.s"}).execute()
    assert rows(table.url)[4] == "gone"


@pytest.mark.parametrize("name", ["anew", "keys"])
def test_rows_of_an_older_state_take_nothing_away(spark, tmp_path: Path, name: str) -> None:
    """A frame shows the state that it was made on: what came since was gone without a word."""
    keys, parted, options = TABLES[name]
    table = make(spark, url := str(tmp_path / "t"), keys, parted, **options).alias("t")
    old = alluvium.read(spark, url)
    old.createOrReplaceTempView("older_rows")
    alluvium.write(news(spark).where("k > 49"), url, mode="append", format="paimon")
    now = rows(url)
    merge = table.merge(old.alias("s"), "t.k = s.k").whenNotMatchedBySourceDelete()
    highest = {"s": "(select max(s) from older_rows)"}
    by_value = table.merge(news(spark), "t.k = s.k").whenMatchedUpdate(set=highest)
    acts = [
        lambda: alluvium.write(old, url, mode="overwrite", format="paimon"),
        merge.execute,
        lambda: table.delete("t.k not in (select k from older_rows)"),
        lambda: table.update("t.k > 1", highest),
        by_value.execute,
    ]
    for act in acts:
        with pytest.raises(CommitConflict) as raised:
            act()
        assert raised.value.code == "concurrent-append" and "read the table again" in str(raised.value.hint)
    assert rows(url) == now
    alluvium.read(spark, url).createOrReplaceTempView("older_rows")
    by_value.execute()
    assert rows(url) == now | dict.fromkeys((3, 4, 50, 51), "s9")
    # One that was asked for is meant, and so is the newest.
    alluvium.write(alluvium.read(spark, url, version=1), url, mode="overwrite", format="paimon")
    alluvium.write(alluvium.read(spark, url).where("k < 5"), url, mode="overwrite", format="paimon")
    assert rows(url).keys() == set(range(5))


def test_a_commit_that_stands_is_not_told_as_failed(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told so adds one a second time."""

    def fails(*_: object, **__: object) -> None:
        raise PySparkException("an executor is lost")

    table = make(spark, url := str(tmp_path / "t"), ("k",), bucket="1", **VECTORS)
    monkeypatch.setattr(compact, "compact_rows", fails)
    assert table.update("k = 1", {"s": "s || '!'"}).attempts == 1
    monkeypatch.undo()
    table.compact()
    assert rows(url)[1] == "s1!"


@pytest.mark.parametrize("options", [
    {"merge-engine": "partial-update"}, {"merge-engine": "aggregation"}, {"merge-engine": "first-row"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
], ids=str)  # fmt: skip
def test_what_a_table_does_not_take_is_refused(spark, tmp_path: Path, options: dict[str, str]) -> None:
    keyed = "merge-engine" in options
    keys, more = (("k",), {"bucket": "1"}) if keyed else ((), {})
    table = make(spark, url := str(tmp_path / "t"), keys, **more, **options)
    version = alluvium.open(url).version
    verbs = [lambda: table.delete("k = 1"), lambda: table.merge(news(spark), "t.k = s.k").whenMatchedDelete().execute()]
    for verb in verbs if keyed else verbs[:1]:
        with pytest.raises(UnsupportedFeature) as refused:
            verb()
        assert refused.value.code == "unsupported-row-change" and alluvium.open(url).version == version


def test_arguments_of_a_merge(spark, tmp_path: Path) -> None:
    table = make(spark, str(tmp_path / "t"))
    refused: list[str] = []
    for wrong in (
        lambda: table.merge("rows", "true"),
        lambda: table.merge(news(spark), 3),
        lambda: table.merge(news(spark), "true").whenMatchedUpdate(set=None),
        lambda: table.merge(news(spark), "true").whenMatchedDelete(1),
        lambda: table.merge(news(spark), "true").execute(),
        lambda: table.merge(news(spark), "true").whenMatchedDelete().withSchemaEvolution().execute(),
    ):
        with pytest.raises(AlluviumError) as error:
            wrong()
        refused.append(error.value.code)
    assert refused == ["wrong-type"] * 4 + ["merge-without-clauses", "contradicting-options"]


def test_statements(spark, tmp_path: Path) -> None:
    alluvium.enable(spark)
    try:
        keys, parted, options = TABLES["keys"]
        make(spark, url := str(tmp_path / "t"), keys, parted, **options)
        news(spark).createOrReplaceTempView("news_of_rows")
        table = f"paimon.`{url}`"
        assert "DELETE" in spark.sql(f"explain delete from {table} where k = 1").collect()[0][0]
        assert spark.sql(f"delete from {table} where k = 1").collect()[0][0] == 1
        assert spark.sql(f"update {table} as t set s = upper(t.s) where t.k = 2").collect()[0][0] == 1
        done = spark.sql(
            f"merge into {table} t using news_of_rows s on t.k = s.k when matched and s.s = 'gone' then delete "
            "when matched then update set * when not matched then insert *"
        )
        assert done.collect()[0] == (4, 1, 1, 2)
        assert rows(url)[2] == "S2" and len(rows(url)) == 12
        spark.sql(f"insert overwrite {table} select 1, 'a', 'b'")
        assert rows(url) == {1: "a"}
    finally:
        alluvium.disable(spark)


def test_small_files_become_one(spark, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = make(spark, url, (), ("p",), **VECTORS, **{"compaction.min.file-num": "2"})
    alluvium.write(
        spark.createDataFrame([(100, "more", "x")], "k int, s string, p string"), url, mode="append", format="paimon"
    )
    table.delete("k = 2")
    before = rows(url)
    done = table.compact()
    files = alluvium.open(url).system("files").to_pylist()
    assert (rows(url), done.version, len(files)) == (before, 4, 2)
    assert alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()[-1] == "COMPACT"
    assert sorted(f["record_count"] for f in files) == [6, 6]
    assert table.compact().attempts == 0


@pytest.mark.parametrize("options", [{}, VECTORS, {"row-tracking.enabled": "true"}], ids=["anew", "vectors", "tracked"])
def test_nulls_of_rows_that_stay_become_no_defaults(spark, tmp_path: Path, options: dict[str, str]) -> None:
    """A DELETE gave a default to nulls in rows of the same files, which were there before it."""
    url, columns = str(tmp_path / "t"), "k int, s string, v int"
    fields = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("s", "STRING"), ("v", "INT"))]
    PaimonTable.create(url, fields, options=options)
    df = spark.createDataFrame([(k, "s", None) for k in range(6)], columns).coalesce(1)
    alluvium.write(df, url, mode="append", format="paimon")
    PaimonTable.forPath(url).alter([SchemaChange.update_column_default("v", "5")])
    table = PaimonTable.forPath(url)
    table.delete("k = 0")
    for k, values in enumerate(({"s": "'z'"}, {"v": "null"}, {"v": "default"}), start=1):
        table.update(f"k = {k}", values)
    source = spark.createDataFrame([(4, "m", None), (7, "m", None)], columns).alias("s")
    table.alias("t").merge(source, "t.k = s.k").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = {row["k"]: row["v"] for row in alluvium.open(url).to_arrow().to_pylist()}
    # What comes is filled; a null that is set is what was asked for.
    assert found == {1: None, 2: None, 3: 5, 4: None, 5: None, 7: 5}
