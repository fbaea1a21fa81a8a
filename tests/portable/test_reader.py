"""The lane without Spark over real Parquet files, in the shapes that Spark and others write."""

from __future__ import annotations

import io
import time
import tracemalloc
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_store import FaultyStore
from pyroaring import BitMap64

from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.tree import Column, Compare, Expression
from alluvium.expr.tree import Literal as ExpressionLiteral
from alluvium.plan.scan import (
    Coalesce,
    ColumnValue,
    FileConstant,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
    Sum,
)
from alluvium.portable.reader import read_batches
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow, to_arrow
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.storage.open import open_store

UTC = timezone.utc


def plan_of(
    root: Path,
    paths: list[str],
    schema: Struct,
    values: dict[str, ColumnValue] | None = None,
    constants: pa.Array | None = None,
    masks: list[bytes | None] | None = None,
) -> ScanPlan:
    """A plan that reads the columns of `schema` by name, but for those in `values`."""
    count = len(paths)
    files = pa.table(
        {
            "path": pa.array(paths, pa.string()),
            "size": pa.array([0] * count, pa.int64()),
            "modification_time_ms": pa.array([0] * count, pa.int64()),
            "num_rows": pa.nulls(count, pa.int64()),
            "constants": pa.array([{}] * count, pa.struct([])) if constants is None else constants,
            "mask": pa.array(masks or [None] * count, pa.binary()),
        }
    )
    output = tuple(
        OutputColumn(f.name, f.type, f.nullable, (values or {}).get(f.name, Physical((f.name,), f.type)))
        for f in schema.fields
    )
    return ScanPlan(str(root), (ScanPart("files", files, "parquet", schema, output),), schema)


def read(
    plan: ScanPlan, columns: list[str] | None = None, where: Expression | None = None, **options: object
) -> pa.Table:
    reader = read_batches(plan, open_store(plan.root), open_store, columns, where, **options)  # type: ignore[arg-type]
    table = reader.read_all()
    table.validate(full=True)
    return table


def column(tmp_path: Path, stored: pa.Array, data_type: DataType, **options: object) -> list[object]:
    """What a file's column `c` is as a column of another type."""
    pq.write_table(pa.table({"c": stored}), tmp_path / "f.parquet", **options)
    schema = Struct((Field("c", data_type),))
    table = read(plan_of(tmp_path, ["f.parquet"], schema))
    assert table.schema == schema_to_arrow(schema)
    values: list[object] = table["c"].to_pylist()
    return values


def test_many_files_and_row_groups_come_back_in_order(tmp_path: Path) -> None:
    paths = []
    for i in range(9):
        paths.append(f"d={i}/part {i}%.parquet")
        (tmp_path / f"d={i}").mkdir()
        rows = pa.table({"a": range(i * 10, i * 10 + 10), "b": [str(i)] * 10})
        pq.write_table(rows, tmp_path / paths[-1], row_group_size=3)
    schema = Struct((Field("a", t.LONG), Field("b", t.STRING)))
    table = read(plan_of(tmp_path, paths, schema), batch_size=2)
    assert table["a"].to_pylist() == list(range(90))
    assert table["b"].to_pylist() == [str(i // 10) for i in range(90)]


def test_columns_are_chosen_in_the_order_asked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"], "c": [2.0]}), tmp_path / "f.parquet")
    schema = Struct((Field("a", t.LONG), Field("b", t.STRING), Field("c", t.DOUBLE)))
    plan = plan_of(tmp_path, ["f.parquet"], schema)
    assert read(plan, ["c", "A"]).to_pydict() == {"c": [2.0], "a": [1]}
    assert read(plan, ["_file", "*"]).column_names == ["_file", "a", "b", "c"]
    assert read(plan, ["_file"])["_file"].to_pylist() == [f"file:{tmp_path}/f.parquet"]
    with pytest.raises(InvalidRequest, match="did you mean 'a'"):
        read(plan, ["aa"])


def test_no_columns_but_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5)}), tmp_path / "f.parquet")
    plan = plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.LONG),)))
    reader = read_batches(plan, open_store(str(tmp_path)), open_store, [], batch_size=2)
    assert sum(batch.num_rows for batch in reader) == 5


def test_rows_are_filtered_by_columns_that_are_not_asked_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, None, 3, 4], "b": ["w", "x", "y", "z"]}), tmp_path / "f.parquet")
    plan = plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.LONG), Field("b", t.STRING))))
    where = Compare(">", Column(("a",), t.LONG), ExpressionLiteral(1, t.LONG))
    assert read(plan, ["b"], where).to_pydict() == {"b": ["y", "z"]}
    nothing = Compare(">", Column(("a",), t.LONG), ExpressionLiteral(9, t.LONG))
    assert read(plan, None, nothing).num_rows == 0


def test_values_that_no_file_holds(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"a": [1, None, 3]}), tmp_path / f"{i}.parquet", row_group_size=2)
    schema = Struct(
        (
            Field("a", t.LONG),
            Field("p", t.DATE),
            Field("l", t.STRING, False),
            Field("pos", t.LONG),
            Field("id", t.LONG),
            Field("or", t.LONG),
            Field("gone", t.STRING),
        )
    )
    values: dict[str, ColumnValue] = {
        "p": FileConstant("p", t.DATE),
        "l": Literal("x", t.STRING),
        "pos": RowPosition(),
        "id": Sum((FileConstant("first", t.LONG), RowPosition())),
        "or": Coalesce((Physical(("a",), t.LONG), Literal(-1, t.LONG))),
    }
    constants = pa.array(
        [{"p": date(2024, 1, 1), "first": 100}, {"p": None, "first": 200}],
        pa.struct([("p", pa.date32()), ("first", pa.int64())]),
    )
    table = read(plan_of(tmp_path, ["0.parquet", "1.parquet"], schema, values, constants))
    assert table.schema == schema_to_arrow(schema)
    assert table.to_pydict() == {
        "a": [1, None, 3] * 2,
        "p": [date(2024, 1, 1)] * 3 + [None] * 3,
        "l": ["x"] * 6,
        "pos": [0, 1, 2] * 2,
        "id": [100, 101, 102, 200, 201, 202],
        "or": [1, -1, 3] * 2,
        "gone": [None] * 6,
    }
    # Constants alone need no data, yet their rows are counted.
    assert read(plan_of(tmp_path, ["0.parquet"], schema, values, constants[:1]), ["p"]).num_rows == 3


def test_masked_rows_are_dropped(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "f.parquet", row_group_size=4)
    plan = plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.LONG),)), masks=[BitMap64([0, 3, 4, 9]).serialize()])
    assert read(plan, batch_size=3)["a"].to_pylist() == [1, 2, 5, 6, 7, 8]
    where = Compare("<=", Column(("a",), t.LONG), ExpressionLiteral(5, t.LONG))
    assert read(plan, None, where, batch_size=3)["a"].to_pylist() == [1, 2, 5]
    all_rows = BitMap64(range(10)).serialize()
    assert read(plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.LONG),)), masks=[all_rows])).num_rows == 0


@pytest.mark.parametrize(
    ("stored", "data_type", "expected"),
    [
        (pa.array([1, None], pa.int32()), t.LONG, [1, None]),
        (pa.array([-128], pa.int32()), t.BYTE, [-128]),
        (pa.array([7], pa.int32()), t.DOUBLE, [7.0]),
        (pa.array([7], pa.int32()), t.Decimal(12, 2), [Decimal("7.00")]),
        (pa.array([0.5], pa.float32()), t.DOUBLE, [0.5]),
        (pa.array([Decimal("1.5")], pa.decimal128(4, 2)), t.Decimal(12, 4), [Decimal("1.5000")]),
        (pa.array([date(2024, 1, 1)]), t.TIMESTAMP_NTZ, [datetime(2024, 1, 1)]),
        (pa.array([1], pa.timestamp("ms", "UTC")), t.TIMESTAMP, [datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)]),
        (pa.array([1999], pa.timestamp("ns")), t.TIMESTAMP_NTZ, [datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array(["a", None], pa.large_string()), t.STRING, ["a", None]),
        (pa.array(["a", "a", None]).dictionary_encode(), t.STRING, ["a", "a", None]),
        (pa.array([b"a"]), t.STRING, ["a"]),
        (pa.nulls(2), t.Decimal(5, 2), [None, None]),
        (pa.array([[1, None], None, []], pa.list_(pa.int32())), Array(t.LONG), [[1, None], None, []]),
        (
            pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            Map(t.STRING, t.LONG),
            [[("k", 1)], None, []],
        ),
    ],
    ids=str,
)
def test_types_that_columns_are_read_as(
    tmp_path: Path, stored: pa.Array, data_type: DataType, expected: list[object]
) -> None:
    assert column(tmp_path, stored, data_type) == expected


def test_int96_reaches_beyond_nanoseconds(tmp_path: Path) -> None:
    instants = [datetime(1677, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), None]
    values = pa.array(instants, pa.timestamp("us", "UTC"))
    # pyarrow writes INT96 only from nanoseconds that fit; the oldest and newest years come from Spark's tables.
    recent = pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert column(tmp_path, recent, t.TIMESTAMP, use_deprecated_int96_timestamps=True) == recent.to_pylist()
    assert column(tmp_path, values, t.TIMESTAMP) == instants


def test_decimals_stored_as_integers_and_legacy_lists(tmp_path: Path) -> None:
    short = pa.array([Decimal("-1.50"), None], pa.decimal128(9, 2))
    assert column(tmp_path, short, t.Decimal(9, 2), store_decimal_as_integer=True) == short.to_pylist()
    lists = pa.array([[1], None, [2, 3]])
    assert column(tmp_path, lists, Array(t.LONG), use_compliant_nested_type=False) == lists.to_pylist()


def test_structs_gain_and_lose_members(tmp_path: Path) -> None:
    stored = pa.array([{"b": 1, "gone": "x", "in": {"y": 1}}, None, {"b": None, "gone": "y", "in": None}])
    wanted = Struct(
        (Field("new", t.STRING), Field("B", t.LONG), Field("in", Struct((Field("y", t.DOUBLE), Field("z", t.DATE)))))
    )
    assert column(tmp_path, stored, wanted) == [
        {"new": None, "B": 1, "in": {"y": 1.0, "z": None}},
        None,
        {"new": None, "B": None, "in": None},
    ]
    grown = Array(Struct((Field("a", t.LONG), Field("b", t.LONG))))
    assert column(tmp_path, pa.array([[{"a": 1}], None, []]), grown) == [
        [{"a": 1, "b": None}],
        None,
        [],
    ]


def test_members_of_structs_as_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"a": {"b": 5}}, None]}), tmp_path / "f.parquet")
    schema = Struct((Field("x", t.LONG), Field("y", t.LONG)))
    values: dict[str, ColumnValue] = {"x": Physical(("s", "a", "b"), t.LONG), "y": Physical(("s", "no"), t.LONG)}
    assert read(plan_of(tmp_path, ["f.parquet"], schema, values)).to_pydict() == {"x": [5, None], "y": [None, None]}


def test_names_match_exactly_first_then_without_case(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "A": [2], "Bc": [3], "d.e": [4]}), tmp_path / "f.parquet")
    schema = Struct((Field("A", t.LONG), Field("bC", t.LONG), Field("d.e", t.LONG)))
    assert read(plan_of(tmp_path, ["f.parquet"], schema)).to_pydict() == {"A": [2], "bC": [3], "d.e": [4]}


@pytest.mark.parametrize(
    ("stored", "data_type"),
    [
        (pa.array(["1"]), t.LONG),
        (pa.array([1]), t.STRING),
        (pa.array([1.5]), t.LONG),
        (pa.array([2**40]), t.INTEGER),
        (pa.array([b"\xff"]), t.STRING),
        (pa.array([1]), Struct((Field("a", t.LONG),))),
        (pa.array([[1]]), Map(t.LONG, t.LONG)),
        (pa.array([{"a": 1}]), Array(t.LONG)),
    ],
    ids=str,
)
def test_types_that_no_writer_of_the_column_uses_are_refused(
    tmp_path: Path, stored: pa.Array, data_type: DataType
) -> None:
    with pytest.raises(CorruptTable) as caught:
        column(tmp_path, stored, data_type)
    assert (caught.value.code, caught.value.column, caught.value.path) == ("incompatible-type", "c", "f.parquet")


def test_variants_plain_and_shredded(tmp_path: Path) -> None:
    """readers "must recognize and correctly process a parquet schema that is either unshredded (only `metadata` and
    `value` struct fields) or shredded (`metadata`, optional `value`, and optional `typed_value` struct fields)"
    """
    metadata = b"\x01\x00\x00"
    plain = pa.array([{"value": b"\x00", "metadata": metadata}, None])
    assert column(tmp_path, plain, t.VARIANT) == [{"metadata": metadata, "value": b"\x00"}, None]
    shredded = pa.array([{"metadata": metadata, "typed_value": 5}, None])
    assert column(tmp_path, shredded, t.VARIANT) == [{"metadata": metadata, "value": b"\x0c\x05"}, None]


MALFORMED = {"metadata": b"\x02\x00\x00", "value": b"\x00"}


@pytest.mark.parametrize(
    ("data_type", "cell"),
    [(t.VARIANT, MALFORMED), (Array(t.VARIANT), [MALFORMED]), (Struct((Field("x", t.VARIANT),)), {"x": MALFORMED})],
    ids=str,
)
def test_damaged_variants_are_named(tmp_path: Path, data_type: DataType, cell: object) -> None:
    # Of the very type that the column has: nothing is to be converted, and it is looked at all the same.
    stored = pa.array([cell], to_arrow(data_type))
    with pytest.raises(CorruptTable) as caught:
        column(tmp_path, stored, data_type)
    assert (caught.value.code, caught.value.path) == ("malformed-variant", "f.parquet")
    assert (caught.value.column or "").startswith("c")


def test_a_column_that_is_no_variant(tmp_path: Path) -> None:
    with pytest.raises(CorruptTable) as caught:
        column(tmp_path, pa.array([{"value": b"\x00"}]), t.VARIANT)
    assert caught.value.code == "incompatible-type"


def test_missing_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["gone.parquet"], Struct((Field("a", t.LONG),)))
    with pytest.raises(NotFound) as caught:
        read(plan)
    assert (caught.value.code, caught.value.path) == ("missing-file", "gone.parquet")


@pytest.mark.parametrize("keep", [0, 3, 100, -20])
def test_damaged_file(tmp_path: Path, keep: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000)}), sink)
    (tmp_path / "f.parquet").write_bytes(sink.getvalue()[:keep])
    with pytest.raises(CorruptTable) as caught:
        read(plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.LONG),))))
    assert caught.value.path == "f.parquet"


def test_damaged_page(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [str(i) for i in range(5000)]}), tmp_path / "f.parquet", compression="snappy")
    content = bytearray((tmp_path / "f.parquet").read_bytes())
    content[4:2000] = b"\xff" * 1996
    (tmp_path / "f.parquet").write_bytes(content)
    with pytest.raises(CorruptTable):
        read(plan_of(tmp_path, ["f.parquet"], Struct((Field("a", t.STRING),))))


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_files_elsewhere(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "table").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other" / "f.parquet")
    plan = plan_of(tmp_path / "table", [f"{scheme}{tmp_path}/other/f.parquet"], Struct((Field("a", t.LONG),)))
    assert read(plan)["a"].to_pylist() == [1]


def test_what_this_lane_cannot_do_is_said_at_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [], Struct((Field("a", t.LONG),)))
    (part,) = plan.parts
    for other in (replace(part, file_format="lance"), replace(part, file_format="csv")):
        with pytest.raises(UnsupportedFeature):
            read_batches(replace(plan, parts=(other,)), open_store(str(tmp_path)), open_store)
    assert read(plan).num_rows == 0


def test_a_reader_that_is_dropped_midway_closes_its_files(tmp_path: Path) -> None:
    for i in range(6):
        pq.write_table(pa.table({"a": range(10)}), tmp_path / f"{i}.parquet")
    plan = plan_of(tmp_path, [f"{i}.parquet" for i in range(6)], Struct((Field("a", t.LONG),)))
    reader = read_batches(plan, open_store(str(tmp_path)), open_store, batch_size=4)
    assert reader.read_next_batch().num_rows == 4
    reader.close()


def test_a_reader_that_is_dropped_does_not_tell_of_files_that_nobody_asked_for(tmp_path: Path) -> None:
    """Of those that were opened ahead one is missing."""
    for i in (0, 1, 3):
        pq.write_table(pa.table({"a": range(10)}), tmp_path / f"{i}.parquet")
    plan = plan_of(tmp_path, [f"{i}.parquet" for i in range(4)], Struct((Field("a", t.LONG),)))
    store = Opened(tmp_path)
    reader = read_batches(plan, store, open_store, batch_size=4)
    assert reader.read_next_batch().num_rows == 4
    until = time.monotonic() + 20
    while len(store.paths) < 4 and time.monotonic() < until:
        time.sleep(0.005)
    assert len(store.paths) == 4
    reader.close()


def test_few_files_are_opened_ahead(tmp_path: Path) -> None:
    for i in range(12):
        pq.write_table(pa.table({"a": [i]}), tmp_path / f"{i}.parquet")
    plan = plan_of(tmp_path, [f"{i}.parquet" for i in range(12)], Struct((Field("a", t.LONG),)))
    rows = read_batches(plan, open_store(plan.root), open_store)
    assert next(rows).to_pydict() == {"a": [0]}
    # By now all could have been opened.
    time.sleep(0.05)
    (tmp_path / "11.parquet").unlink()
    with pytest.raises(NotFound, match=r"11\.parquet"):
        list(rows)


class Opened(FaultyStore):
    """Takes note of the files that are opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(open_store(str(root)))
        self.paths: list[str] = []

    def open_input(self, path: str) -> pa.NativeFile:
        self.paths.append(path)
        return super().open_input(path)


def test_the_next_files_are_opened_while_one_is_read(tmp_path: Path) -> None:
    for i in range(12):
        pq.write_table(pa.table({"a": [i]}), tmp_path / f"{i}.parquet")
    plan = plan_of(tmp_path, [f"{i}.parquet" for i in range(12)], Struct((Field("a", t.LONG),)))
    store = Opened(tmp_path)
    rows = read_batches(plan, store, open_store)
    assert next(rows).to_pydict() == {"a": [0]}
    until = time.monotonic() + 20
    while len(store.paths) < 4 and time.monotonic() < until:
        time.sleep(0.005)
    assert sorted(store.paths) == [f"{i}.parquet" for i in range(4)]
    assert sum(batch.num_rows for batch in rows) == 11


def test_memory_stays_that_of_a_row_group(tmp_path: Path) -> None:
    rows = pa.table({"a": range(200_000)})
    for i in range(8):
        pq.write_table(rows, tmp_path / f"{i}.parquet", row_group_size=20_000)
    plan = plan_of(tmp_path, [f"{i}.parquet" for i in range(8)], Struct((Field("a", t.LONG),)))
    before, most, total = pa.total_allocated_bytes(), 0, 0
    tracemalloc.start()
    for batch in read_batches(plan, open_store(str(tmp_path)), open_store, batch_size=5_000):
        most = max(most, pa.total_allocated_bytes() - before)
        total += batch.num_rows * 8
    _, python_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 8 * rows.nbytes
    assert most < total / 5
    assert python_peak < 5_000_000


def test_files_of_an_old_spark_are_rebased(tmp_path: Path) -> None:
    # Day numbers of the hybrid calendar: 1582-10-04 is the day before 1582-10-15, 0001-01-01 two days early.
    table = pa.table(
        {
            "d": pa.array([-141428, -141427, -719164, None], pa.int32()).cast(pa.date32()),
            "ts": pa.array([-141428 * 86_400_000_000 + 1, 0, -719164 * 86_400_000_000, None]).cast(
                pa.timestamp("us", "UTC")
            ),
            "l": pa.array([[-141428], None, [], [0]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
        }
    )
    schema = Struct((Field("d", t.DATE), Field("ts", t.TIMESTAMP), Field("l", Array(t.DATE))))
    keys = {"org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
    pq.write_table(table.replace_schema_metadata(keys), tmp_path / "old.parquet")
    plan = plan_of(tmp_path, ["old.parquet"], schema)
    assert read(plan).to_pydict() == {
        "d": [date(1582, 10, 4), date(1582, 10, 15), date(1, 1, 1), None],
        "ts": [
            datetime(1582, 10, 4, 0, 0, 0, 1, UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(1, 1, 1, tzinfo=UTC),
            None,
        ],
        "l": [[date(1582, 10, 4)], None, [], [date(1970, 1, 1)]],
    }
    keys["org.apache.spark.timeZone"] = "Europe/Berlin"
    pq.write_table(table.replace_schema_metadata(keys), tmp_path / "old.parquet")
    assert read(plan, ["d"])["d"].to_pylist()[0] == date(1582, 10, 4)
    with pytest.raises(UnsupportedFeature):
        read(plan, ["ts"])


def test_masks_turned_round_keep_the_rows_that_they_list(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pq.write_table(pa.table({"x": pa.array(range(10), pa.int64())}), tmp_path / name, row_group_size=4)
    masks = [BitMap64([1, 5, 9]).serialize(), None, BitMap64().serialize()]
    plan = plan_of(tmp_path, ["a", "b", "c"], Struct((Field("x", t.LONG),)), masks=masks)
    turned = replace(plan, parts=(replace(plan.parts[0], keeps_masked=True),))
    store = open_store(str(tmp_path))
    for batch_size in (2, 100):
        kept = read_batches(turned, store, open_store, batch_size=batch_size).read_all()
        assert kept["x"].to_pylist() == [1, 5, 9]
    assert read_batches(plan, store, open_store).read_all().num_rows == 27
    where = ExpressionLiteral(True, t.BOOLEAN)
    assert read_batches(turned, store, open_store, [], where).read_all().num_rows == 3


def test_a_file_of_which_no_row_is_listed_is_not_opened(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["missing"], Struct((Field("x", t.LONG),)))
    turned = replace(plan, parts=(replace(plan.parts[0], keeps_masked=True),))
    assert read_batches(turned, open_store(str(tmp_path)), open_store).read_all().num_rows == 0
