"""Plans made of plans: of some columns, with rows' identities, of rows that bring their buckets."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.plan.scan import KeyMerge
from alluvium.plan.write import BucketColumn, Bucketing, Check, Derived, KeyedRows, Numbered, StoredIds, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct

SCHEMA = Struct((Field("a", t.INTEGER), Field("b", t.STRING), Field("p", t.LONG)))
STORED = Struct((Field("c1", t.INTEGER), Field("c2", t.STRING), Field("c3", t.LONG)))
FILES = pa.schema([("a", pa.int32()), ("b", pa.string()), ("p", pa.int64())])
CHECKS = (Check("one", "a > 0", ("a",)), Check("two", "a > length(b)", ("a", "b")), Check("none", "true"))
STATS = (FooterColumn(("a",), t.INTEGER), FooterColumn(("b", "x"), t.STRING))
FULL = WritePlan(
    "memory://x/t", "d", SCHEMA, ("p",), CHECKS, (Derived("a", "1"),), (), (Numbered("p", 1, 1, False),), STORED, FILES, CHECKS,
    STATS, options=(("compression", "zstd"), ("maxRecordsPerFile", "5")), materialize_partitions=True, rebalance=True,
    target_file_bytes=7, most_tasks=3, sort=("a",), bucket=Bucketing(4, (BucketColumn("a", t.INTEGER),)),
)  # fmt: skip


@pytest.mark.parametrize("columns", [("a",), ("a", "b"), ("b", "p"), ("a", "b", "p"), ()], ids=str)
def test_of_some_columns(columns: tuple[str, ...]) -> None:
    found = FULL.only(columns)
    assert found.schema.names == columns and found.stored is not None and found.files is not None
    assert found.stored.names == tuple({"a": "c1", "b": "c2", "p": "c3"}[name] for name in columns)
    assert found.files.names == list(columns)
    names = {"one": {"a"}, "two": {"a", "b"}}
    kept = [c for c in CHECKS if c.name in names and names[c.name] <= set(columns)]
    assert list(found.checks) == list(found.spark_writes_where or ()) == kept
    assert found.stats_columns == tuple(s for s in STATS if s.path[0] in columns)
    assert (found.partition_by, found.derived, found.numbered, found.sort) == ((), (), (), ())
    assert (found.materialize_partitions, found.rebalance, found.is_arranged) == (False, False, True)
    # Rows stay in one file however many they are, and the last option counts.
    assert found.target_file_bytes > 1 << 60 and dict(found.options) == {
        "compression": "zstd",
        "maxRecordsPerFile": "0",
    }
    assert (found.root, found.directory, found.most_tasks) == ("memory://x/t", "d", 3)


def test_of_some_columns_of_a_plain_plan() -> None:
    found = WritePlan("memory://x/t", "d", SCHEMA).only(("b",))
    assert (found.stored, found.files, found.spark_writes_where, found.checks) == (None, None, None, ())
    assert found.stored_name("b") == "b" and FULL.stored_name("b") == "c2"


IDS = StoredIds(
    (Field("_id", t.LONG, True, {"n": 7}), Field("_version", t.LONG)),
    (pa.field("_id", pa.int64()), pa.field("_version", pa.int64())),
    (FooterColumn(("_id",), t.LONG),),
)


def test_with_identities_of_rows() -> None:
    assert FULL.with_ids(None).numbered == () and FULL.with_ids(None).schema == SCHEMA
    found = FULL.with_ids(IDS)
    assert found.schema.names == ("a", "b", "p", "_id", "_version") and found.numbered == ()
    assert found.stored is not None and found.stored.fields[3:] == IDS.fields and found.stored.names[:3] == STORED.names
    assert found.schema.fields[3].metadata == {}, "what files say of a column is no part of the table"
    assert found.files is not None and found.files.names == ["a", "b", "p", "_id", "_version"]
    assert found.stats_columns == (*STATS, *IDS.stats)
    plain = WritePlan("memory://x/t", "d", SCHEMA).with_ids(IDS)
    assert (plain.stored, plain.files) == (None, None) and plain.schema.names[3:] == ("_id", "_version")


KEYED = KeyedRows(KeyMerge("g", ("a",), (), "kind", "deduplicate"), Struct(()), ("a",), "n", kind_column="b")


def test_rows_that_bring_their_buckets() -> None:
    plan = WritePlan("memory://x/t", "d", SCHEMA, keyed=KEYED, bucket=FULL.bucket)
    found = plan.brought("bucket")
    assert found.schema.names == ("a", "p") and (found.bucket, found.assigned, found.crossing) == (None, None, None)
    assert found.keyed is not None
    assert (found.keyed.bucket, found.keyed.kind_column, found.keyed.is_numbered) == ("bucket", None, True)
    assert (found.keyed.number, found.keyed.stored_keys) == ("n", ("a",))


@pytest.mark.parametrize(
    ("plan", "has"),
    [
        (WritePlan("u", "d", SCHEMA), False), (FULL, True), (WritePlan("u", "d", SCHEMA, keyed=KEYED), True),
        (WritePlan("u", "d", SCHEMA, keyed=KeyedRows(KEYED.merge, Struct(()), ("a",), "n", waits=True)), False),
    ],
    ids=["plain", "hashed", "keyed", "waiting"],
)  # fmt: skip
def test_who_has_folders_of_buckets(plan: WritePlan, has: bool) -> None:
    assert plan.has_buckets == has
