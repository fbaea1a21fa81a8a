"""Random rows as files, beside a plain loop: which file a row comes into, how many rows it has, what its footer tells."""

from __future__ import annotations

import datetime as dt
import io
import math
import random
import uuid
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.codecs.partition_path import format_partition_path
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.scan import FIELD_ID, KeyMerge
from alluvium.plan.write import BucketColumn, Bucketing, KeyedRows, WritePlan
from alluvium.portable.writing import files as module
from alluvium.portable.writing.files import FilesInTheMaking, ensure_portable, stored_schema
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Array, Field, Map, Struct
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = Struct(tuple(parse_fields("row int, p string, q date, v double, s string")))
DAYS = [None, dt.date(2024, 1, 1), dt.date(1, 1, 1)]
Rows = list[dict[str, Any]]


def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}/table")


def plan(schema: Struct = SCHEMA, **given: Any) -> WritePlan:
    stats = tuple(FooterColumn((f.name,), f.type) for f in schema.fields if f.name in ("row", "v"))
    return WritePlan(**{"root": "memory://x/table", "directory": "", "schema": schema, "stats_columns": stats, **given})


def random_rows(lot: random.Random, count: int, first: int) -> Rows:
    values = [None, 0.0, -0.0, 1.5, -2.5, math.inf] + [math.nan] * (lot.random() < 0.2)
    return [{"row": first + place, "p": lot.choice([None, "a", "b/=", "é"]), "q": lot.choice(DAYS),
             "v": lot.choice(values), "s": lot.choice(["", "x" * 30, None])} for place in range(count)]  # fmt: skip


def as_table(rows: Rows, schema: Struct = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(rows, schema_to_arrow(schema))


def read(where: Store, path: str) -> pa.Table:
    # Not by a dataset: the values in the path are not to be taken for columns.
    return pq.ParquetFile(io.BytesIO(where.get(path))).read()


def ends(values: list[float]) -> tuple[float | None, float | None]:
    if not values or any(map(math.isnan, values)):
        return None, None
    return min(values), max(values)


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("names", [(), ("p",), ("q", "p")], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_each_partition_has_files_of_its_own(names: tuple[str, ...], most: int | None, seed: int) -> None:
    lot, where = random.Random(f"{names} {most} {seed}"), store()
    options = () if most is None else (("maxRecordsPerFile", str(most)),)
    made = plan(
        partition_by=names, options=options, directory=lot.choice(["", "job"]), materialize_partitions=seed == 3
    )
    files, expected, count = FilesInTheMaking(made, where, format_partition_values), defaultdict(list), 0
    for _ in range(lot.randint(0, 4)):
        batch = random_rows(lot, lot.randint(0, 9), count)
        count += len(batch)
        files.add(as_table(batch))
        for row in batch:
            texts = [None if row[n] is None else str(row[n]) for n in names]
            expected[format_partition_path(names, texts)].append(row)
    footers = files.finish()
    assert sorted(footers) == sorted(o.path for o in where.list_tree(""))
    found = defaultdict(list)
    for path, footer in footers.items():
        inner = path.removeprefix("job/") if made.directory else path
        assert path.startswith("job/") == bool(made.directory)
        folder, _, name = inner.rpartition("/")
        assert name.startswith("part-") and name.endswith("-c000.snappy.parquet")
        rows = read(where, path).to_pylist()
        assert 0 < len(rows) == footer.num_rows and (most is None or len(rows) <= most)
        numbers, floats = [r["row"] for r in rows], [r["v"] for r in rows if r["v"] is not None]
        assert (footer.columns[("row",)].min, footer.columns[("row",)].max) == (min(numbers), max(numbers))
        stats = footer.columns[("v",)]
        assert (stats.min, stats.max, stats.null_count) == (*ends(floats), len(rows) - len(floats))
        found[folder].append(rows)
    columns = [n for n in SCHEMA.names if n not in names] + list(names) * made.materialize_partitions
    assert found.keys() == expected.keys()
    for folder, parts in found.items():
        assert repr(sorted((row for rows in parts for row in rows), key=lambda r: r["row"])) == repr(
            [{name: row[name] for name in columns} for row in expected[folder]]
        )
        # Rows stay in their order, and all files but the last of a partition are full.
        sizes = sorted(map(len, parts))
        assert all(rows == sorted(rows, key=lambda r: r["row"]) for rows in parts if "nan" not in repr(rows))
        assert sizes[1:] == [most] * (len(sizes) - 1)
    numbers = sorted(int(path.rpartition("part-")[2][:5]) for path in footers)
    assert numbers == list(range(len(footers)))


def test_a_file_that_is_large_enough_is_whole() -> None:
    lot, where = random.Random(0), store()
    files = FilesInTheMaking(
        plan(target_file_bytes=4_000, options=(("compression", "none"),)), where, format_partition_values
    )
    sizes = []
    for number in range(200):
        files.add(as_table([{"row": number, "p": lot.randbytes(30).hex()}]))
        sizes.append(len(files.written))
    # A row group comes when an eighth is there, a file when its groups are as large as it shall be.
    assert sizes[10] == 0 and sizes[-1] > 4
    files.finish()
    lengths = [where.head(path).size for path in files.written]
    assert all(4_000 <= length < 8_000 for length in lengths[:-1])
    groups = [pq.ParquetFile(io.BytesIO(where.get(path))).num_row_groups for path in files.written]
    assert min(groups[:-1]) > 2
    assert sorted(n for path in files.written for n in read(where, path)["row"].to_pylist()) == list(range(200))


def test_rows_wait_until_they_make_a_row_group() -> None:
    where = store()
    files = FilesInTheMaking(plan(), where, format_partition_values)
    for number in range(30):
        files.add(as_table([{"row": number}]))
    (path,) = files.finish()
    assert pq.ParquetFile(io.BytesIO(where.get(path))).num_row_groups == 1


@pytest.mark.parametrize(("open_files", "held"), [(3, 1 << 40), (1000, 1500), (1000, 0)])
def test_the_largest_go_first_where_many_are_open(monkeypatch: pytest.MonkeyPatch, open_files: int, held: int) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", open_files)
    monkeypatch.setattr(module, "_HELD_BYTES", held)
    where = store()
    files = FilesInTheMaking(plan(partition_by=("p",)), where, format_partition_values)
    rows = [{"row": size, "p": f"p{size}", "s": "x" * size * 50} for size in (3, 9, 1, 7, 5, 2)]
    files.add(as_table(rows))
    early = sorted((path.partition("/")[0] for path in files.written), reverse=True)
    left = {row["p"]: as_table([row]).select(["row", "q", "v", "s"]).nbytes for row in rows}
    expected = []
    while len(left) > 1 and (len(left) > open_files or sum(left.values()) + len(left) * len(b"PAR1") > held):
        expected.append(max(left, key=lambda p: left[p]))
        del left[expected[-1]]
    assert early == [f"p={p}" for p in expected] and early
    assert len(files.finish()) == 6


def test_files_have_the_columns_as_the_plan_stores_them() -> None:
    schema = Struct(
        tuple(parse_fields("a int, r struct<x: int, l: array<struct<y: string>>>, m map<string, int>, p int"))
    )
    inner = Struct((Field("c5", t.STRING, metadata={FIELD_ID: 5}),))
    row = Struct((Field("c3", t.INTEGER, metadata={FIELD_ID: 3}), Field("c4", Array(inner), metadata={FIELD_ID: 4})))
    stored = Struct((
        Field("c1", t.INTEGER, False, {FIELD_ID: 1}), Field("c2", row, metadata={FIELD_ID: 2}),
        Field("c6", Map(t.STRING, t.INTEGER)), Field("c7", t.INTEGER, metadata={FIELD_ID: 7}),
    ))  # fmt: skip
    stats = (FooterColumn(("c1",), t.INTEGER), FooterColumn(("c2", "c3"), t.INTEGER))
    made = plan(schema, stored=stored, partition_by=("p",), stats_columns=stats)
    assert stored_schema(made).names == ["c1", "c2", "c6"] and all(f.nullable for f in stored_schema(made))
    where = store()
    files = FilesInTheMaking(made, where, format_partition_values)
    rows = [
        {"a": 1, "r": {"x": 2, "l": [{"y": "z"}, None]}, "m": [("k", 3)], "p": 8},
        {"a": None, "r": None, "m": None, "p": 8},
        {"a": 5, "r": {"x": None, "l": None}, "m": [], "p": 8},
    ]
    files.add(as_table(rows, schema))
    ((path, footer),) = files.finish().items()
    assert path.startswith("c7=8/") and footer.columns[("c2", "c3")].min == 2
    assert footer.columns[("c1",)].null_count == 1 and footer.columns[("c2", "c3")].null_count == 2
    assert read(where, path).to_pylist() == [
        {"c1": 1, "c2": {"c3": 2, "c4": [{"c5": "z"}, None]}, "c6": [("k", 3)]},
        {"c1": None, "c2": None, "c6": None},
        {"c1": 5, "c2": {"c3": None, "c4": None}, "c6": []},
    ]

    def numbers(f: pa.Field) -> Any:
        own = (f.metadata or {}).get(b"PARQUET:field_id")
        return (f.name, own and int(own), [numbers(f.type.field(i)) for i in range(f.type.num_fields)])

    found = pq.ParquetFile(io.BytesIO(where.get(path))).schema_arrow
    y = [("c5", 5, [])]
    assert [numbers(f) for f in found][:2] == [
        ("c1", 1, []),
        ("c2", 2, [("c3", 3, []), ("c4", 4, [("element", None, y)])]),
    ]
    assert all(number is None for number in [numbers(found.field("c6"))[1]])
    both = replace(made, materialize_partitions=True)
    assert stored_schema(both).names == ["c1", "c2", "c6", "c7"]


def test_columns_of_nothing_but_nulls_are_left_out() -> None:
    schema = Struct((Field("a", t.INTEGER), Field("n", t.VOID), Field("v", t.VARIANT), Field("l", Array(t.VARIANT))))
    assert stored_schema(plan(schema)).names == ["a"]


@pytest.mark.parametrize(
    ("text", "ending", "codec"),
    [
        ("none", "c000.parquet", "UNCOMPRESSED"), ("Uncompressed", "c000.parquet", "UNCOMPRESSED"),
        ("snappy", "c000.snappy.parquet", "SNAPPY"), ("GZIP", "c000.gzip.parquet", "GZIP"),
        ("brotli", "c000.brotli.parquet", "BROTLI"), ("lz4", "c000.lz4.parquet", "LZ4"),
        ("lz4_raw", "c000.lz4.parquet", "LZ4"), ("lz4raw", "c000.lz4.parquet", "LZ4"), ("zstd", "c000.zstd.parquet", "ZSTD"),
    ],
)  # fmt: skip
def test_codecs_by_their_names(text: str, ending: str, codec: str) -> None:
    where = store()
    files = FilesInTheMaking(plan(options=(("compression", text),)), where, format_partition_values)
    files.add(as_table([{"row": 1}]))
    (path,) = files.finish()
    assert path.endswith(ending)
    assert pq.ParquetFile(io.BytesIO(where.get(path))).metadata.row_group(0).column(0).compression == codec


def test_zstd_has_a_level() -> None:
    lot = random.Random(1)
    words = ["".join(lot.choices("abcdef", k=6)) for _ in range(40)]
    rows = as_table([{"row": n, "s": " ".join(lot.choices(words, k=30))} for n in range(800)])

    def size(*options: tuple[str, str]) -> int:
        where = store()
        files = FilesInTheMaking(plan(options=(("compression", "zstd"), *options)), where, format_partition_values)
        files.add(rows)
        return sum(where.head(path).size for path in files.finish())

    level = "parquet.compression.codec.zstd.level"
    sizes = {number: size((level, str(number))) for number in (1, 2, 3, 4, 19)}
    assert sizes[19] < sizes[3] != sizes[1] and size() == sizes[3] not in (sizes[2], sizes[4])


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzo"}, {"compression": "snapy"}, {"maxRecordsPerFile": "many"}, {"maxRecordsPerFile": "1.5"},
        {"parquet.compression.codec.zstd.level": "high"},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_are_none(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        FilesInTheMaking(plan(options=tuple(options.items())), store(), format_partition_values)
    assert caught.value.code == "invalid-option"


@pytest.mark.parametrize("most", ["0", "-1"])
def test_no_bound_of_rows(most: str) -> None:
    files = FilesInTheMaking(plan(options=(("maxRecordsPerFile", most),)), store(), format_partition_values)
    files.add(as_table([{"row": n} for n in range(5)]))
    assert len(files.finish()) == 1


def test_what_parquet_cannot_hold_is_refused() -> None:
    files = FilesInTheMaking(plan(Struct((Field("e", Struct(())),))), store(), format_partition_values)
    with pytest.raises(InvalidRequest) as caught:
        files.add(pa.table({"e": pa.array([{}], pa.struct([]))}))
    assert caught.value.code == "invalid-data"
    assert not files.written


KEYED = KeyedRows(KeyMerge("g", ("row",), (), "kind", "deduplicate"), Struct(()), ("row",), "n")


@pytest.mark.parametrize(
    "given",
    [
        {"keyed": KEYED}, {"bucket": Bucketing(2, (BucketColumn("row", t.INTEGER),))}, {"file_format": "orc"},
        {"files": pa.schema([("row", pa.int32())])}, {"is_staged": True},
    ],
    ids=lambda given: next(iter(given)),
)  # fmt: skip
def test_plans_of_other_lanes(given: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_portable(plan(**given))
    assert caught.value.code == "needs-spark"
    ensure_portable(plan())


def test_partitions_are_those_that_texts_tell() -> None:
    """Values that share a text share a directory, hence a file."""
    where = store()
    files = FilesInTheMaking(
        plan(partition_by=("p",)),
        where,
        lambda values, _: pc.utf8_lower(values) if values.type == pa.string() else values,
    )
    files.add(as_table([{"row": 0, "p": "A"}, {"row": 1, "p": "a"}, {"row": 2, "p": None}]))
    assert sorted((p.partition("/")[0], f.num_rows) for p, f in files.finish().items()) == [
        ("p=__HIVE_DEFAULT_PARTITION__", 1),
        ("p=a", 2),
    ]
