"""What we write, Paimon Java reads, and pypaimon: rows, buckets, statistics, partitions. Java goes on from it by an
append and a compaction, which we read; and we go on from what Java wrote.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.schema.arrow import to_arrow

pytestmark = NEEDS_PAIMON

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "y", "type": "STRING"}]}
TYPES: dict[str, Any] = {
    "k": "INT NOT NULL", "by": "TINYINT", "sh": "SMALLINT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE",
    "d9": "DECIMAL(9, 2)", "d18": "DECIMAL(18, 4)", "d38": "DECIMAL(38, 10)", "bo": "BOOLEAN", "s": "STRING",
    "v": "VARCHAR(40)", "b": "BYTES", "da": "DATE", "ts": "TIMESTAMP(6)", "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "arr": {"type": "ARRAY", "element": "INT"}, "m": {"type": "MAP", "key": "STRING NOT NULL", "value": ROW}, "r": ROW,
    "day": "STRING", "n": "DATE",
}  # fmt: skip
#: Columns that Python workers write: of each its type, Spark's SQL, and the same in Arrow.
MORE: dict[str, tuple[str, str, Any]] = {
    "t3": ("TIMESTAMP(3)", "ts", lambda rows: floor_ms(rows["ts"])),
    "t9": ("TIMESTAMP(9)", "ts", lambda rows: rows["ts"].cast(pa.timestamp("ns"))),
    "z0": ("TIMESTAMP(0) WITH LOCAL TIME ZONE", "z", lambda rows: floor_ms(rows["z"])),
    "tm": (
        "TIME(3)",
        "cast(k * 1001 as int)",
        lambda rows: pc.multiply(rows["k"], 1001).cast(pa.int32()).cast(pa.time32("ms")),
    ),
}
PICK = random.Random(11)
UTC = dt.timezone.utc
BATCHES = 2
#: Else Java numbers rows twice that it wrote before it had so many writers.
UNSPILLED = {"write-max-writers-to-spill": "1000"}
#: Options and partition keys of the tables.
TABLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "partitioned": ({}, ("day", "n")),
    "modern-names": ({"partition.legacy-name": "false", "partition.default-name": "none"}, ("n", "bo", "l")),
    "buckets": ({"bucket": "3", "bucket-key": "k"}, ("day",)),
    "text-buckets": ({"bucket": "5", "bucket-key": "s,d38,ts"}, ()),
    "all-buckets": ({"bucket": "4", "bucket-key": "by,sh,l,f,d,d9,d18,bo,da,z,v,b"}, ()),
    "mod-buckets": ({"bucket": "4", "bucket-key": "k", "bucket-function.type": "mod"}, ()),
    "tracked": ({"row-tracking.enabled": "true"}, ()),
    "statistics": ({"metadata.stats-mode": "counts", "fields.s.stats-mode": "truncate(3)",
                    "fields.k.stats-mode": "none", "fields.v.stats-mode": "full"}, ()),
    "sparse": ({"metadata.stats-dense-store": "false"}, ()),
    "manifests": ({"manifest.compression": "snappy", "manifest.merge-min-count": "2"}, ("day",)),
    # Python workers write these two; what they write tells no bounds of floats, nor of nanoseconds.
    "workers": ({"bucket": "3", "bucket-key": "t3,tm,z0", "fields.f.stats-mode": "counts",
                 "fields.d.stats-mode": "counts"}, ("day",)),
    "orc": ({"file.format": "orc", "bucket": "3", "bucket-key": "k"}, ("day",)),
    "orc-counts": ({"file.format": "orc", "metadata.stats-mode": "counts", "file.compression": "snappy"}, ()),
    "avro": ({"file.format": "avro"}, ("day", "n")),
    "avro-statistics": ({"file.format": "avro", "metadata.stats-mode": "full", "fields.s.stats-mode": "none",
                         "file.compression": "snappy"}, ()),
    "nanoseconds": ({"bucket": "3", "bucket-key": "t9"}, ()),
}  # fmt: skip


def floor_ms(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.floor_temporal(values, unit="millisecond").cast(pa.timestamp("ms", values.type.tz))


def text(length: int) -> str:
    return "".join(PICK.choices("abc äöü€😀/=%", k=PICK.randint(0, length)))


def moment() -> dt.datetime:
    # Those before 1970 are refused in ORC where they are finer than milliseconds.
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=PICK.randint(0, 10**13))


def value(name: str) -> Any:
    made = {
        "by": PICK.randint(-128, 127), "sh": PICK.randint(-(2**15), 2**15 - 1), "l": PICK.randint(-3, 3),
        "f": PICK.randint(-100, 100) / 8, "d": PICK.gauss(0, 1e6), "d9": Decimal(PICK.randint(-10**8, 10**8)).scaleb(-2),
        "d18": Decimal(PICK.randint(-10**17, 10**17)).scaleb(-4), "d38": Decimal(PICK.randint(-10**30, 10**30)).scaleb(-10),
        "bo": PICK.random() < 0.5, "s": text(30), "v": text(39), "b": PICK.randbytes(PICK.randint(0, 12)),
        "da": dt.date(1960, 1, 1) + dt.timedelta(PICK.randint(0, 9000)), "ts": moment(), "z": moment().replace(tzinfo=UTC),
        "arr": [1, None, PICK.randint(0, 9)], "m": [("a", {"x": 1, "y": text(3)})], "r": {"x": None, "y": text(5)},
        "day": PICK.choice(["2024-01-01", "a/b", "", " ", None]), "n": PICK.choice([dt.date(2024, 1, 2), None]),
    }  # fmt: skip
    return None if PICK.random() < 0.1 and name not in ("day", "n") else made[name]


def arrow_schema() -> pa.Schema:
    return pa.schema([pa.field(name, to_arrow(to_logical(parse_type(kind)))) for name, kind in TYPES.items()])


def batch(start: int) -> pa.Table:
    rows = [{"k": start + n, **{name: value(name) for name in TYPES if name != "k"}} for n in range(60)]
    return pa.Table.from_pylist(rows, schema=arrow_schema())


def more_of(table: str) -> dict[str, tuple[str, str, Any]]:
    wanted = {"workers": ("t3", "z0", "tm"), "nanoseconds": ("t9",), "orc": ("t3", "z0", "tm"),
              "avro": ("t3", "z0", "tm")}.get(table, ())  # fmt: skip
    return {name: MORE[name] for name in wanted}


def with_more(rows: pa.Table, table: str) -> pa.Table:
    for name, (*_, made) in more_of(table).items():
        rows = rows.append_column(name, made(rows))
    return rows


def make(path: Path, options: dict[str, str], partition_keys: tuple[str, ...]) -> PaimonTable:
    types = {**TYPES, **{name: kind for name, (kind, *_) in more_of(path.name).items()}}
    fields = [DataField(0, name, parse_type(kind)) for name, kind in types.items()]
    return PaimonTable.create(str(path), fields, partition_keys, options={**UNSPILLED, **options})


def run_jobs(tmp_path: Path, java: list[dict[str, Any]], python: dict[str, str]) -> None:
    paimon(tmp_path, *java, *({"read": table, "out": out} for table, out in python.items()))


def described(url: str) -> list[tuple[Any, ...]]:
    """What manifests say of each file, but for names, sizes and times."""
    columns = ("partition", "bucket", "schema_id", "level", "record_count", "min_key", "max_key", "null_value_counts",
               "min_value_stats", "max_value_stats", "min_sequence_number", "max_sequence_number", "first_row_id")  # fmt: skip
    files = alluvium.open(url).system("files")
    kept = [name for name in columns if name in files.column_names]
    assert len(kept) >= 11
    return sorted((tuple(row.values()) for row in files.select(kept).to_pylist()), key=repr)


def by_key(table: pa.Table, *columns: str) -> list[dict[str, Any]]:
    return sorted(table.select(list(columns) or table.column_names).to_pylist(), key=lambda row: repr(row["k"]))


def test_java_and_python_agree_with_what_we_write(spark, tmp_path: Path) -> None:
    batches = [batch(1000 * n) for n in range(BATCHES)]
    for number, one in enumerate(batches):
        pq.write_table(one, tmp_path / f"batch{number}.parquet")
    frames = [spark.read.schema(_spark_schema(spark)).parquet(str(tmp_path / f"batch{n}.parquet")).coalesce(1)
              for n in range(BATCHES)]  # fmt: skip
    java, python = [], {}
    for name, (options, keys) in TABLES.items():
        ours, theirs = tmp_path / "ours.db" / name, tmp_path / "java.db" / name
        make(ours, options, keys)
        make(theirs, options, keys)
        more = more_of(name)
        for number, one in enumerate(batches):
            pq.write_table(with_more(one, name), tmp_path / f"{name}{number}.parquet")
        for df in frames:
            df = df.selectExpr("*", *(f"{sql} as {column}" for column, (_, sql, _) in more.items()))
            alluvium.write(df, str(ours), mode="append", format="paimon")
        java.append({"table": str(theirs), "steps": [
            {"write": {"parquet": str(tmp_path / f"{name}{n}.parquet")}} for n in range(BATCHES)
        ]})  # fmt: skip
        java.append({"table": str(ours), "steps": [
            {"read": {"out": str(tmp_path / f"{name}.java"), "buckets": True}},
            {"read": {"out": str(tmp_path / f"{name}.where"), "where": ["k", 1007]}},
            {"read": {"out": str(tmp_path / f"{name}.partitions"), "system": "partitions"}},
        ]})  # fmt: skip
        java.append({"table": str(theirs), "steps": [
            {"read": {"out": str(tmp_path / f"{name}.twin"), "buckets": True}},
            {"read": {"out": str(tmp_path / f"{name}.twin-partitions"), "system": "partitions"}},
        ]})  # fmt: skip
        python[str(ours)] = str(tmp_path / f"{name}.python")
    run_jobs(tmp_path, java, python)
    for name in TABLES:
        rows = pa.concat_tables([with_more(one, name) for one in batches])
        ours, theirs = str(tmp_path / "ours.db" / name), str(tmp_path / "java.db" / name)
        found = pq.read_table(tmp_path / f"{name}.java")
        assert by_key(found.drop_columns(["_bucket"])) == by_key(rows), name
        twin = pq.read_table(tmp_path / f"{name}.twin")
        assert by_key(found, "k", "_bucket") == by_key(twin, "k", "_bucket"), name
        if name != "nanoseconds":
            assert described(ours) == described(theirs), name
        assert 1007 in pq.read_table(tmp_path / f"{name}.where")["k"].to_pylist(), name
        counts = [sorted(pq.read_table(tmp_path / f"{name}.{kind}").select(["partition", "record_count"]).to_pylist(),
                         key=repr) for kind in ("partitions", "twin-partitions")]  # fmt: skip
        assert counts[0] == counts[1], name
        assert by_key(pq.read_table(python[ours]), "k", "s", "d38", "day") == by_key(rows, "k", "s", "d38", "day"), name
        # And everything in its directory: named alike but for the files.
        assert _directories(ours) == _directories(theirs), name


def _directories(url: str) -> set[str]:
    return {path.rpartition("/")[0] for path in alluvium.open(url).files()["path"].to_pylist()}


def _spark_schema(spark) -> Any:
    nothing = ", ".join(f"cast(null as {sql}) as {name}" for name, sql in {
        "k": "int", "by": "tinyint", "sh": "smallint", "l": "bigint", "f": "float", "d": "double", "d9": "decimal(9,2)",
        "d18": "decimal(18,4)", "d38": "decimal(38,10)", "bo": "boolean", "s": "string", "v": "string", "b": "binary",
        "da": "date", "ts": "timestamp_ntz", "z": "timestamp", "arr": "array<int>",
        "m": "map<string, struct<x: int, y: string>>", "r": "struct<x: int, y: string>", "day": "string", "n": "date",
    }.items())  # fmt: skip
    return spark.sql(f"select {nothing}").schema


@pytest.mark.parametrize(
    "options",
    [{}, {"bucket": "2", "bucket-key": "k"}, {"file.format": "orc"}, {"file.format": "avro"}],
    ids=["unaware", "buckets", "orc", "avro"],
)
def test_java_goes_on_and_so_do_we(spark, tmp_path: Path, options: dict[str, str]) -> None:
    url = str(tmp_path / "t.db" / "t")
    frame = spark.range(20).selectExpr("cast(id as int) as k", "concat('row ', id) as s", "id % 2 as p")
    # Small manifests are merged, those of Java and its compaction too.
    merged = {"manifest.merge-min-count": "2"}
    alluvium.write(frame.coalesce(1), url, format="paimon", partition_by="p", **options, **merged)
    more = [{"k": 100 + n, "s": "java", "p": n % 2} for n in range(4)]
    run_jobs(tmp_path, [{"table": url, "steps": [{"write": {"rows": more}}, {"compact": {}}]}], {})
    expected = [*((n, f"row {n}", n % 2) for n in range(20)), *((100 + n, "java", n % 2) for n in range(4))]
    assert _rows(url) == expected
    kinds = alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()
    assert kinds == ["APPEND", "APPEND", "COMPACT"]
    alluvium.write(
        spark.createDataFrame([(200, "we", 1)], "k int, s string, p long"), url, mode="append", format="paimon"
    )
    done = alluvium.write(
        spark.createDataFrame([(300, "we", 0)], "k int, s string, p long"), url, mode="overwrite", format="paimon",
        partitionOverwriteMode="dynamic",
    )  # fmt: skip
    expected = [row for row in expected if row[2] == 1] + [(200, "we", 1), (300, "we", 0)]
    assert _rows(url) == sorted(expected)
    assert alluvium.open(url).system("manifests").num_rows <= 3
    out = tmp_path / "rows.parquet"
    steps = [
        {"read": {"out": str(out)}},
        {"write": {"rows": [[400, "java", 0]], "overwrite": {"p": "0"}}},
        {"write": {"rows": [[500, "java", 1]]}},
        {"compact": {}},
    ]
    run_jobs(tmp_path, [{"table": url, "steps": steps}], {url: str(tmp_path / "python.parquet")})
    assert sorted(tuple(row.values()) for row in pq.read_table(out).to_pylist()) == sorted(expected)
    expected = [row for row in expected if row[2] == 1] + [(400, "java", 0), (500, "java", 1)]
    assert _rows(url) == sorted(expected)
    assert sorted(tuple(row.values()) for row in pq.read_table(tmp_path / "python.parquet").to_pylist()) == sorted(
        expected
    )
    total = alluvium.open(url).system("snapshots")["total_record_count"].to_pylist()[-1]
    assert (total, done.version) == (len(expected), 5)


def _rows(url: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in alluvium.open(url).to_arrow(columns=["k", "s", "p"]).to_pylist())
