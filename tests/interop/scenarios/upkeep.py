"""Scenarios of upkeep: files put together, in order, in cubes, without what they hide; cleared away; taken over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .bench import Bench, Step, scenario
from .everyday import under

OPTIMIZE, AUTO = "spark.databricks.delta.optimize.", "spark.databricks.delta.autoCompact."


def rows(first: int, count: int) -> str:
    return f"select cast(id as int) id, if(id % 2 = 0, 'e v', 'odd') p, concat('v', id % 7) v from range({first}, {first + count})"


def sql(b: Bench, text: str) -> Callable[[], object]:
    return lambda: b.spark.sql(text.format(f"delta.`{b.path}`")).collect()


@scenario("select 900 id, 'odd' p, 'z' v", delete="id = 900")
def compactions(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(rows(0, 6), partition_by=("p",))
    yield "append", lambda: b.write(rows(6, 6))
    yield "append again", lambda: b.write(rows(12, 2))
    yield "one partition", lambda: b.table().optimize().where("p = 'odd'").executeCompaction()
    yield "a data column", lambda: b.table().optimize().where("id = 3").executeCompaction()
    yield "all", lambda: b.table().optimize().executeCompaction()
    yield "nothing to do", lambda: b.table().optimize().executeCompaction()
    yield "in order", lambda: b.table().optimize().where("p in ('odd')").executeZOrderBy("id", "v")
    yield "by a partition column", lambda: b.table().optimize().executeZOrderBy("p")
    yield "by no column", lambda: b.table().optimize().executeZOrderBy("nobody")
    yield "delete", lambda: b.table().delete("id = 3")
    yield "nothing to purge", sql(b, "REORG TABLE {} APPLY (PURGE)")
    yield "append more", lambda: b.write(rows(20, 4))
    yield "small ones alone", under(b, OPTIMIZE + "minFileSize", "10", sql(b, "OPTIMIZE {} WHERE p = 'odd'"))
    yield "too short", lambda: b.table().vacuum(0)
    yield "vacuum", lambda: _vacuum_litter(b)
    yield "nothing left", lambda: b.table().vacuum()
    yield "by the log", sql(b, "VACUUM {} LITE")
    yield "restore", lambda: b.table().restoreToVersion(2)


def _vacuum_litter(b: Bench) -> object:
    """Every version stays as it is: what goes are files that no version names, of a month ago."""
    for name in ("orphan.parquet", "a b%20ü.txt", "_hidden/x", ".hidden"):
        file = Path(b.path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"litter")
        os.utime(file, (time.time() - 30 * 86400,) * 2)
    return b.table().vacuum()


@scenario("select 900 id, 'odd' p", delete="id = 900")
def purges(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: b.write(
            rows(0, 10),
            delta__enableDeletionVectors="true",
            delta__enableRowTracking="true",
            delta__columnMapping__mode="name",
        ),
    )
    yield "append", lambda: b.write(rows(10, 4))
    yield "delete", lambda: b.table().delete("id in (1, 2)")
    yield "purge", sql(b, "REORG TABLE {} APPLY (PURGE)")
    yield "delete again", lambda: b.table().delete("id in (3, 12)")
    yield "compact", lambda: b.table().optimize().executeCompaction()
    yield "drop", lambda: b.drop("v")
    yield "purge what was dropped", sql(b, "REORG TABLE {} APPLY (PURGE)")
    yield "restore", lambda: b.table().restoreToVersion(5)


@scenario("select 900 a, 7 b, 'z' s", delete="a = 900")
def clusters(b: Bench) -> Iterator[Step]:
    more = "select cast(id as int) a, cast(id * 37 % 11 as int) b, concat('v', id) s from range({}, {})"
    made = b.create().addColumn("a", "int").addColumn("b", "int").addColumn("s", "string")
    yield "create", lambda: made.property("delta.enableDeletionVectors", "true").clusterBy("a", "b").execute()
    yield "insert", lambda: b.write(more.format(0, 20))
    yield "insert again", lambda: b.write(more.format(20, 30))
    yield "cluster", lambda: b.table().optimize().executeCompaction()
    yield "nothing new", lambda: b.table().optimize().executeCompaction()
    yield "in another order", lambda: b.table().optimize().executeZOrderBy("a")
    yield "some", lambda: b.table().optimize().where("a = 3").executeCompaction()
    yield "delete", lambda: b.table().delete("a = 4")
    yield "insert more", lambda: b.write(more.format(30, 33))
    yield "cluster on", lambda: b.table().optimize().executeCompaction()
    yield "other columns", sql(b, "ALTER TABLE {} CLUSTER BY (s)")
    yield "all anew", sql(b, "OPTIMIZE {} FULL")
    yield "none", sql(b, "ALTER TABLE {} CLUSTER BY NONE")
    yield "insert after", lambda: b.write(more.format(33, 35))
    yield "put together", lambda: b.table().optimize().executeCompaction()
    yield "all of none", sql(b, "OPTIMIZE {} FULL")


def _merge(b: Bench) -> object:
    source = b.rows("select 8 id, 'e v' p, 'n' v union all select 901, 'odd', 'm'")
    merge = b.table().alias("t").merge(source.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


@scenario("select 900 id, 'odd' p, 'z' v", delete="id = 900")
def automatic(b: Bench) -> Iterator[Step]:
    few = AUTO + "minNumFiles"
    yield "create", lambda: b.write(rows(0, 6), partition_by=("p",))
    yield "ask for it", lambda: b.set(delta__autoOptimize__autoCompact="true")
    for n in range(4):
        yield f"append {n}", under(b, few, "3", lambda n=n: b.write(rows(6 + 4 * n, 4)))
    yield "delete", under(b, few, "2", lambda: b.table().delete("id = 7"))
    yield "merge", under(b, few, "2", lambda: _merge(b))
    yield "never", under(b, AUTO + "enabled", "false", lambda: b.write(rows(40, 4)))
    # What the other engine does to it depends on what its process remembers.
    yield "leave it", lambda: b.unset("delta.autoOptimize.autoCompact")


@scenario("select 900 id, 'z' v, date'2024-01-02' d", delete="id = 900")
def converted(b: Bench) -> Iterator[Step]:
    made = (
        "select cast(id as int) id, concat('v', id) v, date_add(date'2024-01-01', cast(id % 2 as int)) d from range(6)"
    )

    def convert(partitions: str | None) -> Callable[[], object]:
        return lambda: b.delta.DeltaTable.convertToDelta(b.spark, f"parquet.`{b.path}`", partitions)

    yield "nothing there", convert("d date")
    yield "files", lambda: b.rows(made).write.partitionBy("d").parquet(b.path)
    yield "other columns", convert("e date")
    yield "values of no such type", convert("d boolean")
    yield "convert", convert("d date")
    yield "convert again", convert("d date")
    yield "compact", lambda: b.table().optimize().executeCompaction()
    yield "append", lambda: b.write(made)
    yield "compact again", lambda: b.table().optimize().executeCompaction()
