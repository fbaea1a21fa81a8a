"""What a verb has not seen it neither removes nor judges: files that a session would pass over, sizes and counts that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dml_tables import make, rows_of

import alluvium
from alluvium import DeltaTable
from alluvium.delta.view.snapshot import RECENT
from alluvium.errors import CorruptTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]

IGNORED = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")


@pytest.fixture
def lenient(spark):
    """A session that passes over what it cannot read."""
    for name in IGNORED:
        spark.conf.set(name, "true")
    yield spark
    for name in IGNORED:
        spark.conf.unset(name)


def two_files(spark, path: str) -> DeltaTable:
    table = make(spark, path, {}, rows=0)
    for n in (0, 1):
        df = spark.range(20).selectExpr(f"id + {20 * n} as id", "1 as p", "concat('v', id) as v")
        alluvium.write(df.coalesce(1), path, mode="append")
    return table


def first_file(path: str) -> Path:
    return Path(path, sorted(alluvium.open(path).files()["path"].to_pylist())[0])


VERBS = {
    "compaction": lambda table: table.optimize().executeCompaction(),
    "z-order": lambda table: table.optimize().executeZOrderBy("id"),
    # It finds rows in the first half of each file, and copies the others.
    "delete": lambda table: table.delete("id % 20 = 0"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_files_that_a_session_would_pass_over(lenient, tmp_path, verb, damage):
    path = str(tmp_path / "t")
    table = two_files(lenient, path)
    file = first_file(path)
    whole = file.read_bytes()
    file.unlink() if damage == "gone" else file.write_bytes(b"PAR1" + b"x" * (len(whole) - 4))
    with pytest.raises(Exception):  # noqa: B017 - of Spark, or of ours
        VERBS[verb](table)
    file.write_bytes(whole)
    assert [row[0] for row in rows_of(table)] == list(range(40))


def test_all_rows_are_judged_before_a_table_says_what_holds_of_them(lenient, tmp_path):
    path = str(tmp_path / "t")
    table = DeltaTable.create(lenient).location(path).addColumn("n", "int")
    table = table.addColumn("k", "bigint", generatedByDefaultAs=alluvium.IdentityGenerator()).execute()
    for n, k in ((-1, 700), (1, 5)):
        alluvium.write(lenient.sql(f"select {n} as n, {k}L as k").coalesce(1), path, mode="append")
    # The file that holds what matters.
    (violating,) = alluvium.open(path).files(where="n < 0")["path"].to_pylist()
    whole = Path(path, violating).read_bytes()
    Path(path, violating).unlink()
    alluvium.enable(lenient)
    try:
        for act in (
            lambda: table.addConstraint("positive", "n > 0"),
            lambda: lenient.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN k SYNC IDENTITY"),
        ):
            with pytest.raises(Exception, match=violating):
                act()
    finally:
        alluvium.disable(lenient)
    Path(path, violating).write_bytes(whole)
    assert alluvium.open(path).version == 2


def rewritten(path: str, **said: object) -> None:
    """The entries of the last file, changed."""
    newest = sorted(Path(path, "_delta_log").glob("*.json"))[-1]
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"] |= said
    newest.write_text("\n".join(map(json.dumps, lines)))
    RECENT.clear()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"size": 0}, "impossible-size"),
        ({"size": 10}, "num-records-differ"),
        ({"stats": json.dumps({"numRecords": 19})}, "num-records-differ"),
    ],
)
def test_a_log_that_says_less_than_there_is(spark, tmp_path, said, code):
    path = str(tmp_path / "t")
    two_files(spark, path)
    rewritten(path, **said)
    before = set(Path(path).rglob("*.parquet"))
    for act in (lambda o: o.executeCompaction(), lambda o: o.executeZOrderBy("v")):
        with pytest.raises(CorruptTable) as raised:
            act(DeltaTable.forPath(spark, path).optimize())
        assert raised.value.code == code
    assert set(Path(path).rglob("*.parquet")) == before, "what was written is gone again"
    assert alluvium.open(path).version == 2


def test_texts_need_not_be_utf_8_to_be_ordered_by(spark, tmp_path):
    path, name = str(tmp_path / "t"), "spark.databricks.delta.optimize.maxFileSize"
    text = "if(id % 7 = 0, cast(unhex('FF41') as string), sha2(cast(id as string), 256))"
    rows = spark.range(1200).selectExpr("id", "cast(id % 9 as int) as p", f"{text} as v")
    alluvium.write(rows.coalesce(1), path, partition_by=["p"])
    spark.conf.set(name, "4000")
    try:
        (row,) = DeltaTable.forPath(spark, path).optimize().executeZOrderBy("v").collect()
    finally:
        spark.conf.unset(name)
    assert row["metrics"]["numBins"] == 9 and row["metrics"]["numFilesAdded"] > 9
    found, sums = alluvium.read(spark, path), ("count(*)", "sum(id)", "sum(p)")
    assert found.selectExpr(*sums).first() == rows.selectExpr(*sums).first()
    assert found.where("hex(v) = 'FF41'").count() == 172
