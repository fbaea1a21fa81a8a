"""ORC files that Spark itself writes for Paimon tables: Paimon's Java reads them, finds every value by the statistics,
says the same of its own files, and goes on from ours; pypaimon reads them too.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = NEEDS_PAIMON

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "y", "type": "STRING"}]}
#: Paimon's type, Spark's, and values at the ends.
COLUMNS: dict[str, tuple[Any, str, list[Any]]] = {
    "by": ("TINYINT", "tinyint", [-128, 127, 0, -1]),
    "sh": ("SMALLINT", "smallint", [-(2**15), 2**15 - 1, 0]),
    "i": ("INT", "int", [-(2**31), 2**31 - 1, 0, -1]),
    "l": ("BIGINT", "bigint", [-(2**63), 2**63 - 1, 0, -1]),
    "d9": ("DECIMAL(9, 2)", "decimal(9,2)", [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("-0.01")]),
    "d18": ("DECIMAL(18, 4)", "decimal(18,4)", [Decimal("-1.28"), Decimal("99999999999999.9999"), Decimal(0)]),
    "d38": ("DECIMAL(38, 10)", "decimal(38,10)", [Decimal("-" + "9" * 28 + ".5"), Decimal("1E-10"), Decimal(-1)]),
    "d3838": ("DECIMAL(38, 38)", "decimal(38,38)", [Decimal("-0." + "9" * 38), Decimal("0." + "9" * 38)]),
    "f": ("FLOAT", "float", [3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45, 0.5]),
    "d": ("DOUBLE", "double", [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -1.5]),
    "bo": ("BOOLEAN", "boolean", [True, False]),
    # Not those beside characters beyond U+FFFF, which Java loses in files of its own, too.
    "s": ("STRING", "string", ["", "a" * 40, "\U0010ffff" * 20, "ä€😀" * 10, " ", "\u07ff" * 17, "\u00a0", "é" * 16]),
    "long": ("STRING", "string", ["x" * 2000, "x" * 1024, "y" * 1025, "ü" * 700]),
    "v": ("VARCHAR(40)", "string", ["v" * 40, "", " v "]),
    # Java fills texts up in the file and in its statistics, and takes the blanks off when it reads.
    "ch": ("CHAR(5)", "string", ["abcde", "bcdef"]),
    "b": ("BYTES", "binary", [b"", b"\x00\xff", b"x" * 20]),
    "da": ("DATE", "date", [dt.date(1582, 10, 15), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31)]),
    "tm": ("TIME(3)", "int", [0, 86_399_999, 1001]),
    "arr": ({"type": "ARRAY", "element": ROW}, "array<struct<x: int, y: string>>", [[], [None], [{"x": 1, "y": None}, None]]),
    "m": ({"type": "MAP", "key": "STRING NOT NULL", "value": ROW}, "map<string, struct<x: int, y: string>>",
          [{}, {"b": None}, {"a": {"x": None, "y": "z"}}]),
    "r": (ROW, "struct<x: int, y: string>", [{"x": None, "y": None}, {"x": 7, "y": "ü"}]),
    "day": ("STRING", "string", ["a/b", "", "2024-01-01"]),
    "n": ("DATE", "date", [dt.date(2024, 1, 2), dt.date(1582, 10, 15)]),
}  # fmt: skip
#: Columns that the other side has in a form of its own, or asks for in none of ours.
NOT_ASKED = ("b", "arr", "m", "r", "tm")
ASKED = [(name, value) for name, (*_, values) in COLUMNS.items() if name not in NOT_ASKED for value in values]
ROWS = 8
TABLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "partitioned": ({}, ("day", "n")),
    "buckets": ({"bucket": "3", "bucket-key": "i,s,d38", "file.compression": "snappy"}, ("day",)),
    "counts": ({"metadata.stats-mode": "counts", "fields.s.stats-mode": "truncate(3)", "fields.i.stats-mode": "none",
                "fields.v.stats-mode": "full", "fields.d38.stats-mode": "full"}, ()),
    "full": ({"metadata.stats-mode": "full", "file.compression": "zlib"}, ()),
    "none": ({"metadata.stats-mode": "none", "file.compression": "none", "metadata.stats-dense-store": "false"}, ()),
    "first": ({"metadata.stats-keep-first-n-columns": "4", "orc.stripe.size": "65536"}, ()),
}  # fmt: skip


def made(number: int) -> dict[str, Any]:
    """A row; each third column of it is null."""
    row: dict[str, Any] = {"k": number}
    for place, (name, (_, _, values)) in enumerate(COLUMNS.items()):
        row[name] = None if number >= ROWS and (place + number) % 3 == 0 else values[number % len(values)]
    return row


BATCHES = [[made(n) for n in range(ROWS)], [made(n) for n in range(ROWS, 3 * ROWS)]]


def fields() -> list[DataField]:
    kinds = {"k": "INT NOT NULL", **{name: kind for name, (kind, *_) in COLUMNS.items()}}
    return [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(kinds.items())]


def frames(spark) -> list[Any]:
    schema = "k int, " + ", ".join(f"{name} {kind}" for name, (_, kind, _) in COLUMNS.items())
    return [spark.createDataFrame([tuple(row.values()) for row in rows], schema).coalesce(1) for rows in BATCHES]


def described(url: str) -> list[tuple[Any, ...]]:
    """What manifests say of each file, but for names, sizes and times."""
    columns = ("partition", "bucket", "level", "record_count", "min_key", "max_key", "null_value_counts",
               "min_value_stats", "max_value_stats", "min_sequence_number", "max_sequence_number")  # fmt: skip
    files = alluvium.open(url).system("files")
    return sorted((tuple(row.values()) for row in files.select(list(columns)).to_pylist()), key=repr)


def by_key(table: pa.Table, *dropped: str) -> list[dict[str, Any]]:
    return sorted(table.drop_columns(list(dropped)).to_pylist(), key=lambda row: row["k"])


def told(value: Any) -> Any:
    if isinstance(value, dt.date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


def writers(url: str) -> set[str]:
    return {orc.ORCFile(f"{url}/{path}").writer for path in alluvium.open(url).files()["path"].to_pylist()}


def test_java_agrees_with_what_spark_writes(spark, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    batches = frames(spark)
    for number, frame in enumerate(batches):
        alluvium.write(frame, str(tmp_path / "p.db" / f"batch{number}"), format="paimon")
    for name, (options, keys) in TABLES.items():
        ours, theirs = str(tmp_path / "ours.db" / name), str(tmp_path / "java.db" / name)
        for url in (ours, theirs):
            PaimonTable.create(url, fields(), keys, options={"file.format": "orc", **options})
        for frame in batches:
            alluvium.write(frame, ours, mode="append", format="paimon")
        assert writers(ours) == {"ORC_JAVA"}, name
        # Java writes what it has read of ours, once for each commit.
        reads = [{"read": {"out": str(tmp_path / f"{name}{n}"), "options": {"scan.mode": "incremental", "incremental-between": f"{n},{n + 1}"}}}
                 for n in range(2)]  # fmt: skip
        jobs.append(
            {"table": ours, "steps": [*reads, {"read": {"out": str(tmp_path / f"{name}.java"), "buckets": True}}]}
        )
        jobs.append({"table": theirs, "steps": [
            *({"write": {"parquet": str(tmp_path / f"{name}{n}")}} for n in range(2)),
            {"read": {"out": str(tmp_path / f"{name}.twin"), "buckets": True}},
        ]})  # fmt: skip
        jobs.append({"read": ours, "out": str(tmp_path / f"{name}.python")})
    finds = [{"table": str(tmp_path / whose / name), "find": [[column, told(value)] for column, value in ASKED], "key": "k"}
             for name in ("plain", "full") for whose in ("ours.db", "java.db")]  # fmt: skip
    *_, plain_in_ours, plain_in_its_own, full_in_ours, full_in_its_own = paimon(tmp_path, *jobs, *finds)
    for name in TABLES:
        ours, theirs = str(tmp_path / "ours.db" / name), str(tmp_path / "java.db" / name)
        found = pq.read_table(tmp_path / f"{name}.java")
        everything = alluvium.open(ours).to_arrow()
        assert [row["k"] for row in by_key(everything)] == list(range(3 * ROWS))
        rows = [row for batch in BATCHES for row in batch]
        plain = [name for name in COLUMNS if name not in ("arr", "m", "r", "tm", "day")]
        for row, one in zip(by_key(found, "_bucket"), rows, strict=True):
            assert {column: row[column] for column in plain} == {column: one[column] for column in plain}, name
        assert by_key(found, "_bucket") == by_key(everything), name
        assert by_key(found) == by_key(pq.read_table(tmp_path / f"{name}.twin")), name
        assert described(ours) == described(theirs), name
        python = pq.read_table(tmp_path / f"{name}.python")
        assert by_key(python.select(["k", "s", "d38", "da", "day"])) == by_key(
            everything.select(["k", "s", "d38", "da", "day"])
        ), name
    lost = 0
    for in_ours, in_its_own in ((plain_in_ours, plain_in_its_own), (full_in_ours, full_in_its_own)):
        for (column, value), found_in_ours, found_in_its_own in zip(ASKED, in_ours, in_its_own, strict=True):
            wanted = {row["k"] for batch in BATCHES for row in batch if row[column] == value}
            # ORC's reader in Java loses a few values, such as a text as long as the longest bound, in any file.
            assert wanted & set(found_in_its_own) <= set(found_in_ours), (column, value)
            lost += not wanted <= set(found_in_ours)
    assert lost < 2 * len(ASKED) / 20, lost


@pytest.mark.parametrize("kind", ["DATE", "INT"])
def test_java_goes_on_and_so_do_we(spark, tmp_path: Path, kind: str) -> None:
    """Days of the other calendar are written by workers, and mean the same to Java; files of both compact into one."""
    url = str(tmp_path / "t.db" / "t")
    PaimonTable.create(
        url, [DataField(0, "k", parse_type("INT")), DataField(1, "c", parse_type(kind))], options={"file.format": "orc"}
    )
    texts = ["0001-01-01", "1500-03-01", "1582-10-04", "1582-10-15", "2024-02-29"]
    values = [f"date'{text}'" if kind == "DATE" else f"{n}" for n, text in enumerate(texts)]
    for number, chosen in enumerate((values[3:], values, values[:3])):
        sql = ", ".join(f"({10 * number + n}, {value})" for n, value in enumerate(chosen))
        alluvium.write(
            spark.sql(f"select * from values {sql} as t(k, c)").coalesce(1), url, mode="append", format="paimon"
        )
    before = by_key(alluvium.open(url).to_arrow())
    assert writers(url) == ({"ORC_JAVA", "ORC_CPP"} if kind == "DATE" else {"ORC_JAVA"})
    out = tmp_path / "rows"
    paimon(tmp_path, {"table": url, "steps": [{"read": {"out": str(out)}}, {"compact": {}}]})
    assert by_key(pq.read_table(out)) == before
    assert by_key(alluvium.open(url).to_arrow()) == before
    assert alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()[-1] == "COMPACT"
    alluvium.write(spark.sql(f"select 99 as k, {values[-1]} as c"), url, mode="append", format="paimon")
    assert len(by_key(alluvium.open(url).to_arrow())) == len(before) + 1
