"""Rows of a predicate by statistics and pages are the rows that reading everything finds.

Random tables in files of every make: pages of some rows, with an index, with bounds in their headers, or with neither;
nulls, NaN, texts that statistics cut, deleted rows, columns that a file lacks or has as a narrower type.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from alluvium.errors import AlluviumError, CorruptTable
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import FileConstant, OutputColumn, Physical, RowPosition, ScanPart, ScanPlan
from alluvium.portable import late_rows
from alluvium.portable.files import data_file, page_rows, row_bounds
from alluvium.portable.reader import read_batches
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Array, Field, Map, Struct
from alluvium.storage.open import open_store

UTC = dt.timezone.utc
NESTED = Struct((Field("i", t.INTEGER), Field("l", Array(t.STRING, True))))
STORED = Struct(
    (
        Field("i", t.LONG),
        Field("b", t.BYTE),
        Field("d", t.DOUBLE),
        Field("f", t.FLOAT),
        Field("s", t.STRING),
        Field("m", t.Decimal(20, 3)),
        Field("day", t.DATE),
        Field("ts", t.TIMESTAMP),
        Field("tn", t.TIMESTAMP_NTZ),
        Field("y", t.BOOLEAN),
        Field("raw", t.BINARY),
        Field("n", NESTED),
        Field("l", Array(t.LONG, True)),
        Field("k", Map(t.STRING, t.INTEGER, True)),
    )
)
AT = [
    dt.datetime(2024, 3, 10, 6, 59, 59, 999999),
    dt.datetime(2023, 12, 31, 22),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1600, 2, 3, 4, 5, 6, 7),
    dt.datetime(2262, 4, 12),
]
VALUES: dict[str, list[object]] = {
    "i": [-(1 << 31), -3, 0, 1, 7, (1 << 31) - 1],
    "b": [-128, -1, 0, 127],
    "d": [math.nan, -0.0, 0.0, 1.5, 2.0, -math.inf, math.inf],
    "f": [math.nan, -0.0, 0.0, 1.5, -2.5],
    "s": ["", "a", "ab", "b", "é", "x" * 80, "x" * 79 + "\U0010ffff", "\U0010ffff" * 20],
    "m": [Decimal("0.000"), Decimal("-12345678901234567.891"), Decimal("1.500"), Decimal("99999999999999999.999")],
    "day": [dt.date(2024, 3, 10), dt.date(1969, 12, 31), dt.date(1500, 1, 1)],
    "ts": [at.replace(tzinfo=UTC) for at in AT],
    "tn": list(AT),
    "y": [True, False],
    "raw": [b"", b"\x00", b"\xff" * 70, b"a"],
    "n": [{"i": 1, "l": ["a", None]}, {"i": None, "l": None}, {"i": 5, "l": []}],
    "l": [[], [1], [None, 2, 3]],
    "k": [[], [("a", 1)], [("a", None), ("b", 2)]],
}
PREDICATES = [
    "i = 7", "i > 1", "i is null", "not (i > 0)", "i in (0, 7, 12)", "i <=> null", "b = -1", "b + 1 > 0", "d > 1.5",
    "d <= 0.0", "d = 0.0", "isnan(d)", "not (d < 2)", "f >= 1.5", "f = 'NaN'", "s like 'x%'", "s = 'ab'", "s >= 'x'",
    "s < 'b' and i >= 0", "s is not null", "m = 1.5", "m < 0", "m > 99999999999999999.9", "day < '1970-01-01'",
    "day = '2024-03-10'", "ts < '1970-01-01'", "ts >= '2024-01-01'", "cast(ts as date) = '2023-12-31'",
    "tn = '2262-04-12'", "tn <= '1700-01-01'", "y", "not y", "y is null", "n.i = 5", "n is null", "l is null",
    "p = 'a'", "p = 'a' or i = 1", "p is null and d > 1", "gone is null", "gone = 1", "pos = 3", "pos < 5 and i = 1",
    "i = 1 or s = 'b' or isnan(f)", "coalesce(i, 0) = 0", "true", "false", "raw is not null", "i + 1 = 2",
]  # fmt: skip
SCHEMA = Struct((*STORED.fields, Field("p", t.STRING), Field("gone", t.INTEGER), Field("pos", t.LONG)))
NAMES = [*SCHEMA.names, "_file"]


@pytest.fixture(autouse=True, scope="module")
def _pages_at_any_price() -> Iterator[None]:
    """Files of some hundred rows are never worth it otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_rows, "_NEAR_BYTES", 0)
        patch.setattr(page_rows, "_FAR_BYTES", 0)
        patch.setattr(page_rows, "_WORTH", 1e9)
        patch.setattr(late_rows, "_FEW", 1)
        patch.setattr(row_bounds, "_MISSES", 1 << 30)
        yield


runs = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 60)), min_size=1, max_size=6)
files = st.fixed_dictionaries(
    {
        "rows": st.fixed_dictionaries(dict.fromkeys(VALUES, runs)),
        "count": st.integers(1, 150),
        "narrow": st.booleans(),
        "lacks": st.sampled_from([None, "s", "n", "m", "i"]),
        "deleted": st.frozensets(st.integers(0, 149), max_size=20),
        "p": st.sampled_from([None, "a", "b"]),
        "row_group_size": st.sampled_from([7, 50, 1000]),
        "data_page_size": st.sampled_from([16, 60, 1 << 20]),
        "use_dictionary": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "compression": st.sampled_from(["none", "snappy", "zstd"]),
        "write_page_index": st.booleans(),
        "write_statistics": st.sampled_from([True, True, False, ["i", "s"]]),
        "store_decimal_as_integer": st.booleans(),
    }
)
_WRITE = ("row_group_size", "data_page_size", "use_dictionary", "data_page_version", "compression", "write_page_index",
          "write_statistics", "store_decimal_as_integer")  # fmt: skip


def _values(name: str, chosen: list[tuple[int, int]], count: int) -> list[object]:
    """Runs of equal values, and of nulls, again and again."""
    one = [VALUES[name][k] if k < len(VALUES[name]) else None for k, length in chosen for _ in range(length)]
    return (one * count)[:count]


def _plan(root: Path, made: list[dict[str, object]], *, keeps: bool) -> ScanPlan:
    paths, masks, constants = [], [], []
    for number, one in enumerate(made):
        count = int(str(one["count"]))
        table = pa.table(
            {n: pa.array(_values(n, one["rows"][n], count), f.type)  # type: ignore[index]
             for n, f in zip(STORED.names, schema_to_arrow(STORED), strict=True)}
        )  # fmt: skip
        if one["narrow"]:
            table = table.set_column(0, "I", table["i"].cast(pa.int32()))
        if one["lacks"] in table.column_names:
            table = table.drop_columns([one["lacks"]])
        paths.append(f"f{number}.parquet")
        options = {name: one[name] for name in _WRITE}
        pq.write_table(table, root / paths[-1], write_batch_size=5, **options)
        deleted = sorted(k for k in one["deleted"] if k < count)  # type: ignore[attr-defined]
        masks.append(BitMap64(deleted).serialize() if deleted else None)
        constants.append({"p": one["p"]})
    listed = pa.table(
        {
            "path": pa.array(paths),
            "size": pa.array([0] * len(paths), pa.int64()),
            "modification_time_ms": pa.array([0] * len(paths), pa.int64()),
            "num_rows": pa.nulls(len(paths), pa.int64()),
            "constants": pa.array(constants, pa.struct([("p", pa.string())])),
            "mask": pa.array(masks, pa.binary()),
        }
    )
    columns = [OutputColumn(f.name, f.type, True, Physical((f.name,), f.type)) for f in SCHEMA.fields[:-3]]
    columns.append(OutputColumn("p", t.STRING, True, FileConstant("p", t.STRING)))
    columns.append(OutputColumn("gone", t.INTEGER, True, Physical(("gone",), t.INTEGER)))
    columns.append(OutputColumn("pos", t.LONG, True, RowPosition()))
    part = ScanPart("files", listed, "parquet", STORED, tuple(columns), keeps_masked=keeps)
    return ScanPlan(str(root), (part,), SCHEMA)


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    made=st.lists(files, min_size=1, max_size=2),
    keeps=st.booleans(),
    is_far=st.booleans(),
    dense=st.sampled_from([-1.0, 0.25, 2.0]),
    texts=st.lists(st.sampled_from(PREDICATES), min_size=3, max_size=6, unique=True),
    names=st.lists(st.sampled_from(NAMES), max_size=5),
    batch_size=st.sampled_from([3, 64, 65_536]),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_no_row_is_lost_and_none_is_made(
    made: list[dict[str, object]],
    keeps: bool,
    is_far: bool,
    dense: float,
    texts: list[str],
    names: list[str],
    batch_size: int,
    zone: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        plan = _plan(Path(folder), made, keeps=keeps)
        store = open_store(folder)
        # Without a predicate all rows are read, by Arrow alone.
        everything = read_batches(plan, store, open_store, NAMES, time_zone=zone).read_all()
        patch.setattr(late_rows, "_DENSE", dense)
        if is_far:
            patch.setattr(data_file.Files, "open", _open_far)
        for text in texts:
            where = parse_predicate(text, SCHEMA)
            reader = read_batches(plan, store, open_store, names, where, zone, batch_size)
            batches = list(reader)
            assert all(0 < batch.num_rows <= batch_size for batch in batches)
            wanted = everything.filter(evaluate(where, everything, zone))
            assert sum(batch.num_rows for batch in batches) == wanted.num_rows, text
            found = pa.Table.from_batches(batches, reader.schema)
            found.validate(full=True)
            assert not names or str(found.to_pylist()) == str(wanted.select(names).to_pylist()), text


def _open_far(files: data_file.Files, path: str) -> pa.NativeFile:
    """As object stores open a file: a stranger to Arrow."""
    return pa.PythonFile(io.BytesIO(files.store.get(path)), mode="r")


def _one(root: Path, table: pa.Table, schema: Struct, **options: object) -> ScanPlan:
    pq.write_table(table, root / "f.parquet", **options)
    listed = pa.table(
        {
            "path": ["f.parquet"],
            "size": [0],
            "modification_time_ms": [0],
            "num_rows": pa.nulls(1, pa.int64()),
            "constants": pa.array([{}], pa.struct([])),
            "mask": pa.nulls(1, pa.binary()),
        }
    )
    columns = tuple(OutputColumn(f.name, f.type, True, Physical((f.name,), f.type)) for f in schema.fields)
    return ScanPlan(str(root), (ScanPart("files", listed, "parquet", schema, columns),), schema)


def _read(plan: ScanPlan, names: list[str], text: str) -> pa.Table:
    return read_batches(plan, open_store(plan.root), open_store, names, parse_predicate(text, plan.schema)).read_all()


def test_nanoseconds_are_cut_towards_1970_and_their_bounds_are_not(tmp_path: Path) -> None:
    schema = Struct((Field("t", t.TIMESTAMP_NTZ), Field("n", t.LONG)))
    table = pa.table({"t": pa.array([-1001, -5_000_000], pa.timestamp("ns")), "n": [1, 2]})
    plan = _one(tmp_path, table, schema, write_page_index=True)
    assert _read(plan, ["n"], "t = '1969-12-31 23:59:59.999999'")["n"].to_pylist() == [1]


@pytest.mark.parametrize("has_index", [False, True])
def test_columns_are_decoded_where_the_predicate_is_true(tmp_path: Path, has_index: bool) -> None:
    """A column that cannot be decoded is missed by nobody but the rows that need it."""
    count = 100_000
    schema = Struct((Field("id", t.LONG), Field("s", t.STRING)))
    table = pa.table({"id": np.arange(count), "s": [f"text {k}" for k in range(count)]})
    options = {"write_page_index": has_index, "use_dictionary": False, "compression": "none"}
    plan = _one(tmp_path, table, schema, **options)
    path = tmp_path / "f.parquet"
    data = path.read_bytes()
    # The length of a text within its page.
    place = data.index(b"text 60007") - 4
    path.write_bytes(data[:place] + b"\xff\xff\xff\x7f" + data[place + 4 :])
    assert _read(plan, ["s"], "id = 77").to_pylist() == [{"s": "text 77"}]
    assert _read(plan, ["s", "id"], "id = 1000000").num_rows == 0
    with pytest.raises(CorruptTable, match="the data file cannot be read"):
        _read(plan, ["s"], "id = 60007")
    with pytest.raises(CorruptTable, match="the data file cannot be read"):
        _read(plan, ["s"], "id >= 0")


def test_row_groups_without_a_row_are_not_read(tmp_path: Path) -> None:
    schema = Struct((Field("id", t.LONG), Field("s", t.STRING)))
    table = pa.table({"id": range(100), "s": [f"text {k}" for k in range(100)]})
    plan = _one(tmp_path, table, schema, row_group_size=50, use_dictionary=False, compression="none")
    path = tmp_path / "f.parquet"
    start = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    data = path.read_bytes()
    path.write_bytes(data[:start] + bytes(8) + data[start + 8 :])
    assert _read(plan, ["id", "s"], "id = 7").to_pylist() == [{"id": 7, "s": "text 7"}]
    with pytest.raises(CorruptTable, match="the data file cannot be read"):
        _read(plan, ["id", "s"], "id = 77")


@pytest.mark.long
def test_a_damaged_footer_is_told_or_does_no_harm(tmp_path: Path) -> None:
    """Arrow ends the process where it is asked for the statistics of some of these."""
    schema = Struct((Field("id", t.LONG), Field("s", t.STRING)))
    table = pa.table({"id": range(100), "s": [f"text {k % 7}" for k in range(100)]})
    plan = _one(tmp_path, table, schema, write_page_index=True, row_group_size=50)
    path = tmp_path / "f.parquet"
    data = path.read_bytes()
    size = pq.read_metadata(path).serialized_size
    refused = 0
    for place in range(len(data) - 8 - size, len(data) - 8):
        for flipped in (0x10, 0x40):
            path.write_bytes(data[:place] + bytes((data[place] ^ flipped,)) + data[place + 1 :])
            try:
                _read(plan, ["s", "id"], "id = 77")
            except AlluviumError:
                refused += 1
    assert refused
