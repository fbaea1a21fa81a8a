"""A verb that loses its race is carried out anew where that is sound, and says who won where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from dml_tables import MODES, make, rows_of
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable, RetryPolicy
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict
from alluvium.storage.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NEVER = RetryPolicy(max_repeats=0)


def insert(spark, path: str, *ids: int) -> None:
    df = spark.createDataFrame([(i, i % 2, f"n{i}") for i in ids], "id long, p int, v string")
    alluvium.write(df.coalesce(1), path, mode="append")


def compact(spark, path: str) -> None:
    """The rows as they are, in one file a partition, as OPTIMIZE would say it."""
    df = alluvium.read(spark, path)
    alluvium.write(df.coalesce(1), path, mode="overwrite", dataChange="false")


def data_files(path: str) -> set[str]:
    return {p.relative_to(path).as_posix() for p in Path(path).rglob("*.parquet")}


def known_files(path: str) -> set[str]:
    """Every data file that some version has."""
    found: set[str] = set()
    for version in range(1, load_snapshot(open_store(path)).version + 1):
        found |= set(load_snapshot(open_store(path), version).files["path"].to_pylist())
    return found


def ensure_no_strays(path: str) -> None:
    """Files of lost attempts are gone."""
    assert {p for p in data_files(path) if not p.startswith("_")} == known_files(path)


@pytest.mark.parametrize("mode", MODES)
def test_a_winner_elsewhere_costs_no_second_execution(spark, tmp_path, meanwhile, mode, monkeypatch):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode])
    runs = []
    for module in ("delete", "update", "merge.merging"):
        monkeypatch.setattr(
            f"alluvium.commands.{module}.apply_changes", lambda *a, **k: (runs.append(1), apply_changes(*a, **k))[1]
        )
    meanwhile(lambda: insert(spark, path, 101))
    done = table.delete("p = 0 and id < 4")
    assert (done.attempts, len(runs)) == (1, 1), "an append to another partition"
    meanwhile(lambda: insert(spark, path, 200))
    done = table.update("id between 4 and 9 and p = 0", {"v": "'u'"})
    assert (done.attempts, len(runs)) == (1, 2), "statistics tell that no row is among those read"
    meanwhile(lambda: DeltaTable.forPath(spark, path).delete("p = 1 and id = 5"))
    source = spark.createDataFrame([(4, 0, "m"), (300, 0, "m")], "id long, p int, v string").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id and t.p = s.p and t.p = 0")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert len(runs) == 4, "one of them the winner's"
    expected = (
        {i: f"v{i}" for i in range(20)} | dict.fromkeys((6, 8), "u") | {101: "n101", 200: "n200", 4: "m", 300: "m"}
    )
    assert {r.id: r.v for r in rows_of(table)} == {i: v for i, v in expected.items() if i not in (0, 2, 5)}
    ensure_no_strays(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("winner", ["append", "update", "delete", "compact", "column"])
def test_a_winner_on_the_same_rows_has_the_verb_carried_out_anew(spark, tmp_path, meanwhile, mode, winner):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode])
    other = DeltaTable.forPath(spark, path)
    acts = {
        "append": lambda: insert(spark, path, 1, 40),
        "update": lambda: other.update("id = 1", {"v": "'theirs'"}),
        "delete": lambda: other.delete("id = 1"),
        "compact": lambda: compact(spark, path),
        "column": lambda: other.addColumns({"more": "int"}),
    }
    model = [(i, f"v{i}") for i in range(20)]
    theirs = {
        "append": [*model, (1, "n1"), (40, "n40")],
        "update": [(i, "theirs" if i == 1 else v) for i, v in model],
        "delete": [(i, v) for i, v in model if i != 1],
    }
    model = theirs.get(winner, model)
    meanwhile(acts[winner])
    done = table.update("id < 3", {"v": "concat(v, '!')"})
    assert done.attempts >= 2
    model = [(i, f"{v}!" if i < 3 else v) for i, v in model]
    assert int(done.metrics["numUpdatedRows"]) == len([i for i, _ in model if i < 3])
    assert sorted((r.id, r.v) for r in rows_of(table)) == sorted(model)
    if winner in ("update", "delete", "compact"):
        # The same winner again, over other rows of the files.
        meanwhile(lambda: other.update("id = 7", {"v": "'seven'"}) if winner == "update" else acts["compact"]())
        assert int(table.delete("id in (7, 8)").metrics["numDeletedRows"]) == 2
        model = [(i, v) for i, v in model if i not in (7, 8)]
        assert sorted((r.id, r.v) for r in rows_of(table)) == sorted(model)
    ensure_no_strays(path)


@pytest.mark.parametrize("mode", MODES)
def test_a_merge_is_repeated_with_the_source_that_it_had(spark, tmp_path, meanwhile, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | {"delta.enableChangeDataFeed": "true"})
    # Each computation says something else.
    source = (
        spark.range(3, 22, 1, 1)
        .selectExpr("id", "cast(id % 2 as int) p", "uuid() v")
        .where("id in (3, 4, 21)")
        .alias("s")
    )
    seen = []

    def winner() -> None:
        DeltaTable.forPath(spark, path).delete("id = 3")
        insert(spark, path, 21)
        seen.append({r.id: r.v for r in rows_of(table)})

    meanwhile(winner)
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert tuple(merge.execute().first()) == (3, 2, 0, 1), "the row that was there is gone, the new one has come"
    found = {r.id: r.v for r in rows_of(table)}
    assert {i: v for i, v in found.items() if i not in (3, 4, 21)} == {
        i: v for i, v in seen[0].items() if i not in (3, 4, 21)
    }
    assert all(len(found[i]) == 36 for i in (3, 4, 21)) and len(rows_of(table)) == 21
    ensure_no_strays(path)


def test_where_it_is_not_repeated_the_error_tells_all(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES["mask"])
    other = DeltaTable.forPath(spark, path)
    meanwhile(lambda: other.update("id = 1", {"v": "'theirs'"}))
    with pytest.raises(CommitConflict) as caught:
        table.delete("id < 3", retry=NEVER)
    found = caught.value.conflicts[0]
    assert (found.version, found.operation, found.rule) == (2, "UPDATE", "concurrent-append")
    assert "Alluvium" in found.engine and found.timestamp_ms > 0 and len(found.paths) >= 1
    text = str(caught.value)
    for part in (
        "version 2 by UPDATE of Apache-Spark/",
        " at 20",
        "id",
        "< 3",
        found.paths[0],
        "carried out 1 times",
        "hint:",
    ):
        assert part in text, part
    meanwhile(lambda: other.update("id = 1", {"v": "'theirs'"}))
    with pytest.raises(CommitConflict, match="not deterministic"):
        table.update("id < 3", {"v": "uuid()"})
    meanwhile(lambda: alluvium.write(spark.range(3), path, mode="overwrite", overwriteSchema="true"))
    with pytest.raises(CommitConflict, match="no longer what they were") as caught:
        table.update("id < 3", {"v": "'x'"})
    assert caught.value.code == "metadata-changed"
    assert {r.id for r in rows_of(table)} == {0, 1, 2}
    ensure_no_strays(path)


def test_a_verb_that_always_loses_ends(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES["mask"])
    commit, others, lost = DeltaTarget.commit, DeltaTable.forPath(spark, path), []

    def interrupted(self: DeltaTarget, changes: object) -> object:
        if "DELETE" in str(changes.operation.name):  # type: ignore[attr-defined]
            lost.append(others.update("id = 1", {"v": "concat(v, '+')"}))
        return commit(self, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit", interrupted)
    with pytest.raises(CommitConflict, match="carried out 3 times"):
        table.delete("id < 3", retry=RetryPolicy(max_repeats=2, first_delay_ms=1))
    assert len(lost) == 3
    with pytest.raises(CommitConflict, match="carried out 2 times"):
        table.delete("id < 3", retry=RetryPolicy(max_attempts=2, first_delay_ms=1))
    assert {r.id: r.v for r in rows_of(table)}[1] == "v1+++++"
    ensure_no_strays(path)


@pytest.mark.parametrize("mode", MODES)
def test_the_time_stands_still_within_a_verb(spark, tmp_path, meanwhile, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode])
    meanwhile(lambda: insert(spark, path, 1))
    values = {"v": "concat_ws('|', current_timestamp(), now(), current_date(), localtimestamp(), unix_timestamp())"}
    done = table.update(sf.expr("id < 3 and now() > timestamp'2020-01-01'"), values)
    assert done.attempts >= 2
    found = {r.v for r in rows_of(table) if r.id < 3}
    assert len(found) == 1
    # The jobs of a verb take seconds; whoever asks twice within one gets the same answer.
    due = table.delete("v like '20%' and to_timestamp(split(v, '[|]')[0]) < current_timestamp()")
    assert int(due.metrics["numDeletedRows"]) == 4


def test_a_source_read_from_the_table_itself_is_not_merged_into_another_version(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES["mask"])

    def merge_own():
        own = alluvium.read(spark, path).where("id < 3").selectExpr("id", "p", "concat(v, '2') as v").alias("s")
        return table.alias("t").merge(own, "t.id = s.id").whenMatchedUpdateAll()

    merge = merge_own()
    # Not among the keys that the source has, but among the rows that it asks for.
    meanwhile(lambda: insert(spark, path, -1))
    with pytest.raises(CommitConflict, match="its source was read from the table itself"):
        merge.execute()
    with pytest.raises(CommitConflict, match="read the table again"):
        merge.execute()
    meanwhile(lambda: insert(spark, path, 500))
    assert tuple(merge_own().execute().first()) == (4, 4, 0, 0)
    # The same rows of another table may go anywhere.
    other = str(tmp_path / "other")
    make(spark, other, {})
    meanwhile(lambda: insert(spark, path, 1))
    foreign = DeltaTable.forPath(spark, other).toDF().where("id < 3").alias("s")
    again = table.alias("t").merge(foreign, "t.id = s.id").whenMatchedUpdateAll().execute()
    assert tuple(again.first()) == (4, 4, 0, 0)
    assert [r.v for r in rows_of(table) if r.id < 3] == ["n-12", "v0", "v1", "v1", "v2"]
    ensure_no_strays(path)
