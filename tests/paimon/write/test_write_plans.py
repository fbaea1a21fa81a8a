"""How rows become files of a table, as plans say it to engines; and what manifests say of the files that a job has left."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.write import (
    STAGING,
    added_entries,
    bucketing_of,
    ensure_writable,
    partition_rows,
    plan_write,
)
from alluvium.plan.scan import FIELD_ID
from alluvium.plan.write import WRITTEN_FILES, BucketColumn, Bucketing, Check, WritePlan
from alluvium.schema import types as t

ROOT = "memory://x/t"
ROW = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "x", "type": "INT NOT NULL"},
        {"id": 0, "name": "l", "type": {"type": "ARRAY", "element": "INT NOT NULL"}},
    ],
}
NESTED: list[tuple[str, Any]] = [
    ("day", "STRING"), ("k", "INT NOT NULL"), ("r", ROW), ("m", {"type": "MAP", "key": "STRING", "value": "INT NOT NULL"}),
    ("s", {"type": "MULTISET", "element": "STRING"}), ("c", "VARCHAR(3)"),
]  # fmt: skip


def schema_of(
    columns: list[tuple[str, Any]] | None = None, parted: tuple[str, ...] = (), keys: tuple[str, ...] = (), **options: str
) -> TableSchema:  # fmt: skip
    given = [("k", "INT NOT NULL"), ("v", "STRING"), ("day", "STRING NOT NULL")] if columns is None else columns
    fields = number_fields(DataField(0, name, parse_type(kind)) for name, kind in given)
    return TableSchema.create(fields, parted, keys, options)


def planned(schema: TableSchema, **more: Any) -> WritePlan:
    return plan_write(schema, ROOT, **more)


def test_a_plan_of_a_table_without_keys() -> None:
    schema = schema_of(NESTED, ("day",), **{"target-file-size": "7 mb"})
    asked = Check("mine", "k > 0")
    plan = planned(schema, checks=[asked], options=[("parquet.page.size", "9")])
    assert (plan.root, plan.partition_by, plan.file_format) == (ROOT, ("day",), "parquet")
    folder, _, job = plan.directory.partition("/")
    assert folder == STAGING and len(job) == 36 and planned(schema).directory != plan.directory
    assert plan.schema.names == ("day", "k", "r", "m", "s", "c")
    assert plan.target_file_bytes == 7 << 20
    assert (plan.is_staged, plan.materialize_partitions, plan.rebalance) == (True, True, False)
    assert (plan.bucket, plan.assigned, plan.crossing, plan.keyed, plan.files, plan.unseen) == (None,) * 6
    assert plan.spark_writes_where == () and plan.derived == ()
    options = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1", "parquet.page.size": "9"}
    assert dict(plan.options) == options
    first, *others = plan.checks
    assert first is asked
    found = {check.name: (check.sql, check.columns, check.code) for check in others}
    assert found["NOT NULL k"] == ("`k` is not null", ("k",), "not-null-violated")
    assert {name for name in found if name.startswith("NOT NULL")} == {"NOT NULL k", "NOT NULL r (inside)"}
    sql, *rest = found["NOT NULL r (inside)"]
    assert "`r`.`x` is not null" in sql and rest == [("r",), "not-null-violated"]
    (length,) = [check for check in others if not check.name.startswith("NOT NULL")]
    assert length.columns == ("c",) and "3" in length.sql


def numbers(kind: t.DataType) -> Any:
    """The ids within a type as files have them, by the names of members."""
    if isinstance(kind, t.Struct):
        return {f.name: (f.metadata[FIELD_ID], f.nullable, numbers(f.type)) for f in kind.fields}
    if isinstance(kind, t.Array):
        return [kind.contains_null, numbers(kind.element)]
    if isinstance(kind, t.Map):
        return (numbers(kind.key), numbers(kind.value), kind.value_contains_null)
    return kind


def test_files_have_numbers_beside_names_at_any_depth() -> None:
    schema = schema_of(NESTED, ("day",))
    ids = {f.name: f.id for f in schema.fields}
    inside = {f.name: f.id for f in schema.fields[2].type.fields}
    stored = planned(schema).stored
    assert stored is not None
    assert numbers(stored) == {
        "day": (ids["day"], True, t.STRING),
        "k": (ids["k"], False, t.INTEGER),
        "r": (ids["r"], True, {"x": (inside["x"], False, t.INTEGER), "l": (inside["l"], True, [False, t.INTEGER])}),
        "m": (ids["m"], True, (t.STRING, t.INTEGER, False)),
        "s": (ids["s"], True, (t.STRING, t.INTEGER, False)),
        "c": (ids["c"], True, t.STRING),
    }


@pytest.mark.parametrize(("file_format", "key"), [("orc", b"paimon.id"), ("avro", None)])
def test_columns_as_workers_write_them_those_of_partitions_last(file_format: str, key: bytes | None) -> None:
    schema = schema_of(NESTED, ("day",), **{"file.format": file_format})
    files = planned(schema).files
    assert files is not None and files.names == ["k", "r", "m", "s", "c", "day"]
    ids = {f.name: str(f.id).encode() for f in schema.fields}
    for field in files:
        assert (field.metadata or {}).get(key) == (ids[field.name] if key else None)
    assert (files.field("k").nullable, files.field("day").nullable) == (False, True)
    assert files.field("k").type == pa.int32()
    members = {member.name: member for member in files.field("r").type}
    assert list(members) == ["x", "l"] and members["l"].type.value_field.nullable is False
    assert members["l"].type.value_field.name == "element"
    for name in ("m", "s"):
        kind = files.field(name).type
        assert (kind.key_type, kind.item_type, kind.item_field.nullable) == (pa.string(), pa.int32(), False)
    assert (key is not None) is (planned(schema).spark_writes_where is not None)


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("TIME(0)", {"file.format": "orc"}, pa.int32()),
        ("TIMESTAMP(3)", {"file.format": "orc"}, pa.timestamp("ms")),
        # Java shifts instants by its own zone when it reads them, where nobody says otherwise.
        ("TIMESTAMP_LTZ(6)", {"file.format": "orc"}, pa.timestamp("us")),
        (
            "TIMESTAMP_LTZ(6)",
            {"file.format": "orc", "orc.timestamp-ltz.legacy.type": "false"},
            pa.timestamp("us", "UTC"),
        ),
        ("TIMESTAMP_LTZ(3)", {}, pa.timestamp("ms", "UTC")),
        ("TIME(3)", {}, pa.time32("ms")),
    ],
)
def test_times_as_workers_write_them(kind: str, options: dict[str, str], wanted: pa.DataType) -> None:
    files = planned(schema_of([("k", "INT"), ("v", kind)], **options)).files
    assert files is not None
    assert files.field("v").type == wanted


@pytest.mark.parametrize(
    ("keys", "options", "wanted"),
    [
        ((), {"bucket": "2", "bucket-key": "k"}, ("bucket", True)),
        ((), {"bucket": "-1"}, (None, False)),
        (("k",), {"bucket": "2"}, ("bucket", False)),
        (("k",), {"bucket": "-1"}, ("assigned", False)),
        (("k",), {"bucket": "-2"}, (None, False)),
        (("v", "k"), {"bucket": "-1"}, ("assigned", False)),
    ],
)
def test_how_rows_find_their_buckets(keys: tuple[str, ...], options: dict[str, str], wanted: tuple[str | None, bool]) -> None:  # fmt: skip
    plan = planned(schema_of(None, (), keys, **options))
    given = {
        name: getattr(plan, name) for name in ("bucket", "assigned", "crossing") if getattr(plan, name) is not None
    }
    assert (next(iter(given), None), plan.rebalance) == wanted and len(given) <= 1
    if plan.assigned is not None:
        assert [column.name for column in plan.assigned.columns] == list(keys)
    moving = planned(schema_of(None, ("day",), ("k",), bucket="-1"))
    assert moving.crossing is not None and moving.assigned is None and not moving.rebalance


@pytest.mark.parametrize(
    ("columns", "options", "wanted"),
    [
        ([("k", "INT")], {"bucket": "-1"}, None),
        ([("k", "INT")], {"bucket": "3", "bucket-key": "k"}, Bucketing(3, (BucketColumn("k", t.INTEGER),))),
        ([("k", "TIMESTAMP(9)"), ("l", "STRING")], {"bucket": "1", "bucket-key": "l,k"},
         Bucketing(1, (BucketColumn("l", t.STRING, (1 << 31) - 1), BucketColumn("k", t.TIMESTAMP_NTZ, 9)))),
        ([("k", "BIGINT")], {"bucket": "3", "bucket-key": "k", "bucket-function.type": "mod"},
         Bucketing(3, (BucketColumn("k", t.LONG),), "mod")),
        ([("k", "INT")], {"bucket": "3", "bucket-key": "k", "bucket-function.type": "mod"},
         Bucketing(3, (BucketColumn("k", t.INTEGER),), "mod")),
    ],
)  # fmt: skip
def test_buckets_by_their_columns(
    columns: list[tuple[str, Any]], options: dict[str, str], wanted: Bucketing | None
) -> None:
    found = bucketing_of(schema_of(columns, **options))
    if found is None or wanted is None:
        assert found is wanted
        return
    assert (found.count, found.function) == (wanted.count, wanted.function)
    assert [(c.name, c.type) for c in found.columns] == [(c.name, c.type) for c in wanted.columns]
    assert [c.precision for c in found.columns if c.type != t.STRING] == [
        c.precision for c in wanted.columns if c.type != t.STRING
    ]


@pytest.mark.parametrize(
    ("columns", "key", "function"),
    [
        ([("k", "STRING")], "k", "mod"),
        ([("k", "SMALLINT")], "k", "mod"),
        ([("k", "INT"), ("l", "INT")], "k,l", "mod"),
        ([("k", "INT")], "", "default"),
        ([("k", "INT")], "", "mod"),
    ],
)
def test_rows_that_no_function_divides(columns: list[tuple[str, Any]], key: str, function: str) -> None:
    options = {"bucket": "3", "bucket-function.type": function, **({"bucket-key": key} if key else {})}
    schema = TableSchema(0, number_fields(DataField(0, name, parse_type(kind)) for name, kind in columns), 9, options=options)  # fmt: skip
    with pytest.raises(InvalidRequest) as caught:
        bucketing_of(schema)
    assert caught.value.code == "invalid-bucket"
    assert (key.replace(",", ", ") or "nothing") in caught.value.message


@pytest.mark.parametrize(
    ("options", "keys", "feature"),
    [
        ({"manifest.format": "orc"}, (), "manifest.format"),
        ({"bucket": "0"}, (), "bucket = 0"),
        ({"bucket": "-2"}, (), "bucket = -2"),
        ({"bucket": "-3"}, ("k",), "bucket = -3"),
        ({"bucket": "2", "bucket-key": "k", "bucket-function.type": "hive"}, (), "bucket-function.type"),
        ({"data-file.external-paths": "s3://far"}, (), "data-file.external-paths"),
        ({"bucket": "-2"}, ("k",), None),
        ({"bucket": "-1", "bucket-function.type": "hive"}, (), None),
        ({"data-file.external-paths": " "}, (), None),
        ({"ignored": "x"}, ("k",), None),
    ],
)
def test_tables_that_ask_for_more_are_refused_by_name(
    options: dict[str, str], keys: tuple[str, ...], feature: str | None
) -> None:
    schema = TableSchema(0, schema_of().fields, 9, primary_keys=keys, options=options)
    if feature is None:
        ensure_writable(schema)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(schema)
    assert (caught.value.code, caught.value.features) == ("unsupported-option", (feature,))


# --- what manifests say ----------------------------------------------------------------------------------------------


def written(*rows: dict[str, Any]) -> pa.Table:
    made = [{"path": f"p{n}", "size": 10 + n, "modification_time_ms": 5, "num_rows": 3 + n, "partition": [], **row}
            for n, row in enumerate(rows)]  # fmt: skip
    return pa.Table.from_pylist(made, schema=WRITTEN_FILES)


def footer(rows: int = 3) -> FileFooter:
    return FileFooter(rows, {("k",): ColumnStats(t.INTEGER, 1, 2, 0), ("v",): ColumnStats(t.STRING, "a", "b", 1)})


def test_entries_of_files_without_keys() -> None:
    schema = schema_of(
        [("k", "INT"), ("v", "STRING")], **{"bucket": "4", "bucket-key": "k", "data-file.prefix": "mine-"}
    )
    before = dt.datetime.now().replace(microsecond=0)
    found = added_entries(schema, written({"bucket": 2}, {"bucket": None}), [footer(), footer(4)])
    assert found.schema == ENTRIES
    first, second = found.to_pylist()
    names = [row["file_name"] for row in (first, second)]
    assert all(name.startswith("mine-") and name.endswith(f"-{n}.parquet") for n, name in enumerate(names))
    assert names[0].removesuffix("-0.parquet") == names[1].removesuffix("-1.parquet")
    again = added_entries(schema, written({"bucket": 2}), [footer()])["file_name"][0].as_py()
    assert again.removesuffix("-0.parquet") != names[0].removesuffix("-0.parquet")
    assert [(row["bucket"], row["file_size"], row["row_count"]) for row in (first, second)] == [(2, 10, 3), (0, 11, 4)]
    assert [(row["min_sequence_number"], row["max_sequence_number"]) for row in (first, second)] == [(0, 2), (0, 3)]
    alike = {"kind": 0, "partition": bytes(12), "total_buckets": 4, "schema_id": 0, "level": 0, "extra_files": [],
             "delete_row_count": 0, "file_source": 0, "min_key": bytes(12), "max_key": bytes(12), "key_stats_nulls": [],
             "key_stats_min": bytes(12), "key_stats_max": bytes(12), "stats_nulls": [0, 1], "value_stats_cols": None,
             "embedded_file_index": None, "external_path": None, "first_row_id": None, "write_cols": None,
             "others": None, "others_type": None}  # fmt: skip
    for row in (first, second):
        assert {name: row[name] for name in alike} == alike
        # "timestamp-millis (local wall clock of the writer)"
        assert before <= row["creation_time"] <= dt.datetime.now()
    low, high = (decode_rows(found[end].combine_chunks(), [(t.INTEGER, 0), (t.STRING, 0)]) for end in ("stats_min", "stats_max"))  # fmt: skip
    assert ([c[0].as_py() for c in low], [c[0].as_py() for c in high]) == ([1, "a"], [2, "b"])


def test_names_of_files_that_are_no_data() -> None:
    for file_format in ("parquet", "orc", "avro"):
        schema = schema_of([("k", "INT"), ("v", "STRING")], **{"file.format": file_format})
        (name,) = added_entries(schema, written({}), [footer()], "changelog-")["file_name"].to_pylist()
        assert name.startswith("changelog-") and name.endswith(f"-0.{file_format}")
    assert added_entries(schema_of(), written(), []).num_rows == 0


@pytest.mark.parametrize(("bucket", "wanted"), [("-1", 0), ("1", 0)])
def test_rows_without_a_bucket_are_in_the_first(bucket: str, wanted: int) -> None:
    options = {"bucket": bucket, **({"bucket-key": "k"} if bucket == "1" else {})}
    schema = schema_of([("k", "INT"), ("v", "STRING")], **options)
    found = added_entries(schema, written({"bucket": None}), [footer()])
    assert (found["bucket"].to_pylist(), found["total_buckets"].to_pylist()) == ([wanted], [int(bucket)])


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        ("STRING", ["", "a", None], ["", "a", None]),
        ("INT", ["-7", None], [-7, None]),
        ("BIGINT", [str(-(2**63))], [-(2**63)]),
        ("BOOLEAN", ["true", "false"], [True, False]),
        ("DOUBLE", ["0.1", "-1.0E10"], [0.1, -1e10]),
        ("DECIMAL(20, 2)", ["-12.50"], [Decimal("-12.50")]),
        ("DATE", ["-1", "19782", None], [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]),
        ("TIMESTAMP(6)", ["-1", "1000000"], [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1, 0, 0, 1)]),
        ("TIMESTAMP(3)", ["1500000"], [dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)]),
        ("TIME(3)", ["1500"], [dt.time(0, 0, 1, 500_000)]),
    ],
)  # fmt: skip
def test_partitions_out_of_their_exact_texts(kind: str, texts: list[str | None], values: list[Any]) -> None:
    schema = schema_of([("k", "INT"), ("p", kind), ("q", "INT")], ("q", "p"))
    rows = partition_rows(schema, written(*({"partition": [str(n), text]} for n, text in enumerate(texts))))
    field = schema.fields[1]
    second, first = decode_rows(rows, [(t.INTEGER, 0), (to_logical(field.type), field.type.precision)])
    assert (second.to_pylist(), first.to_pylist()) == (list(range(len(texts))), values)


@pytest.mark.parametrize(("keys", "options", "size"), [
    ((), {}, 256 << 20), (("k",), {}, 128 << 20),
    ((), {"target-file-size": "9 mb"}, 9 << 20), (("k",), {"target-file-size": "9 mb"}, 9 << 20),
])  # fmt: skip
def test_how_large_files_become(keys: tuple[str, ...], options: dict[str, str], size: int) -> None:
    """As Java's `CoreOptions.targetFileSize(hasPrimaryKey)`."""
    options = {**options, "bucket": "1" if keys else "-1"}
    assert planned(schema_of(None, (), keys, **options)).target_file_bytes == size
