"""Lazy frames: the rows that Polars itself finds in `to_arrow()`, of which only what matters is read."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lazy_table import VALUES, Asked, asked_rows, write_delta
from made_table import make_table
from paimon_tables import write_readings
from polars.testing import assert_frame_equal

import alluvium
from alluvium.api.lazy.polars_frame import lazy_frame
from alluvium.errors import CorruptTable, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.portable import plain_file
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Field, Struct

c = pl.col
NAN = math.nan
UTC = dt.timezone.utc

#: Conditions, and what our reader is told of them; None: nothing.
CONDITIONS: dict[str, tuple[pl.Expr, str | None]] = {
    "greater": (c.id > 3, "id > 3L"),
    "constant first": (pl.lit(3) < c.id, "id > 3L"),
    "tinyint": (c.small > 1, "small > 1Y"),
    "out of range": (c.small > 300, None),
    "other type": (c.small == 1.5, None),
    "columns": (c.f > c.f, "f > f"),
    "columns of two types": (c.id == c.small, None),
    "float": (c.f > 1, "f > 1D"),
    "not a float": (~(c.f > 1), "f <= 1D"),
    "zero": (c.f == 0.0, "f = 0D"),
    "NaN constant": (c.f >= NAN, None),
    "less than NaN": (c.f < NAN, None),
    "is NaN": (c.f.is_nan(), "f = double('NaN')"),
    "is not NaN": (c.f.is_not_nan(), "not(f = double('NaN'))"),
    "not is NaN": (~c.f.is_nan(), "not(f = double('NaN'))"),
    "NaN in": (c.f.is_in([NAN, 0.0]), None),
    "single precision": (c.g == pl.lit(0.1, pl.Float32), "g = cast(0.1 as float)"),
    "text": (c.s == "a", "s = 'a'"),
    "other text": (c.s != "a", "s != 'a'"),
    "greater text": (c.s > "a", "s > 'a'"),
    "in": (c.s.is_in(["a", "b"]), "s in ('a', 'b')"),
    "not in": (~c.s.is_in(["a", "b"]), "not(s in ('a', 'b'))"),
    "in series": (c.id.is_in(pl.Series([1, 2]).implode()), "id in (1L, 2L)"),
    "in with null": (c.s.is_in(["a", None]), None),
    "not in with null": (~c.s.is_in(["a", None]), None),
    "in, nulls equal": (~c.s.is_in(["a"], nulls_equal=True), None),
    "in nothing": (c.s.is_in([]), None),
    "prefix": (c.s.str.starts_with("a"), "startswith(s, 'a')"),
    "binary": (c.b > b"a", "b > X'61'"),
    "date": (c.d > dt.date(2020, 1, 5), "d > date'2020-01-05'"),
    "date and time": (c.d > dt.datetime(2020, 1, 5, 1), None),
    "instant": (c.t > dt.datetime(2020, 1, 5, tzinfo=UTC), "t > timestamp'2020-01-05 00:00:00Z'"),
    "local time": (c.n < dt.datetime(2020, 1, 5), "n < timestamp_ntz'2020-01-05 00:00:00'"),
    "decimal": (c.m == Decimal("1.5"), "m = 1.50BD"),
    "longer decimal": (c.m == Decimal("1.255"), None),
    "boolean": (c.o, "o"),
    "not boolean": (~c.o, "not o"),
    "null": (c.o.is_null(), "o is null"),
    "not null": (c.p.is_not_null(), "p is not null"),
    "member": (c.st.struct.field("x") > 3, "st.x > 3L"),
    "struct": (c.st.is_null(), None),
    "partition": (c.p == 1, "p = 1"),
    "partition null": (c.p.is_null(), "p is null"),
    "partition text": (c.q.is_in(["%", "x=y"]), "q in ('%', 'x=y')"),
    "empty partition": (c.q == "", "q = ''"),
    "missing equals": (c.s.eq_missing("a"), "s <=> 'a'"),
    "between": (c.id.is_between(2, 5), "id >= 2L and id <= 5L"),
    "within": (c.id.is_between(2, 5, closed="none"), "id > 2L and id < 5L"),
    "and what is not known": ((c.id > 2) & (c.l.list.len() > 0), "id > 2L"),
    "or what is not known": ((c.id > 2) | (c.l.list.len() > 0), None),
    "both": (((c.id > 8) & (c.l.list.len() > 0)) | (c.p == 1), "id > 8L or p = 1"),
    "not of what is not known": (~((c.id > 2) & (c.l.list.len() > 0)), None),
    "function": (c.s.str.to_uppercase() == "A", None),
    "remainder": ((c.id % 2) == 0, None),
    "all rows": (c.id == c.id.max(), None),
    "xor": ((c.id > 3).xor(c.o), None),
}  # fmt: skip

NAMES = VALUES.column_names
#: Columns of simple types alone: files of these Polars reads itself, but for those with deleted rows.
FLAT = [name for name in NAMES if name not in ("st", "l", "mp")]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> alluvium.Table:
    url = write_delta(str(tmp_path_factory.mktemp("lazy") / "t"), **{"delta.columnMapping.mode": "name"})
    return alluvium.open(url)


def frame_of(table: alluvium.Table) -> tuple[pl.LazyFrame, Asked]:
    rows, asked = asked_rows(table._lazy_rows())
    return lazy_frame(rows), asked


@pytest.mark.parametrize("names", [NAMES, FLAT], ids=["all", "flat"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_are_those_that_polars_finds_in_the_whole_table(
    table: alluvium.Table, name: str, names: list[str]
) -> None:
    condition, told = CONDITIONS[name]
    frame, asked = frame_of(table)
    found = frame.filter(condition).select(names).sort("id").collect()
    whole = pl.from_arrow(table.to_arrow())
    assert isinstance(whole, pl.DataFrame)
    assert_frame_equal(found, whole.lazy().filter(condition).select(names).sort("id").collect())
    # As text: NaN is then equal to NaN.
    wheres = [repr(where) for _, where in asked]
    assert wheres == [repr(None if told is None else parse_predicate(told, table.snapshot.config.schema))]


def test_conditions_are_asked_with_all_that_they_name(table: alluvium.Table) -> None:
    frame, asked = frame_of(table)
    assert frame.filter(c.id > 9).select("s").collect()["s"].to_list() == ["a", "B"]
    assert [set(names) for names, _ in asked] == [{"id", "s"}]


def test_a_list_of_sql_is_told(table: alluvium.Table) -> None:
    frame, asked = frame_of(table)
    found = pl.SQLContext(t=frame).execute("select id from t where id in (1, 2, 3)").collect()
    assert found["id"].to_list() == [1, 3]
    assert asked[0][1] == parse_predicate("id in (1L, 2L, 3L)", table.snapshot.config.schema)


def test_counting_reads_one_column(table: alluvium.Table) -> None:
    frame, asked = frame_of(table)
    assert frame.select(pl.len()).collect().item() == 11
    assert [len(names) for names, _ in asked] == [1]
    assert frame.head(3).collect().height == 3
    assert frame.filter(c.id > 100).collect().schema == frame.collect_schema()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda rows: rows.head(5).filter(c.id % 2 == 0),
        lambda rows: rows.filter(c.id % 2 == 0).head(3),
        lambda rows: rows.slice(4, 5).filter(c.id > 6),
        lambda rows: rows.head(7).select("s", "id").filter(c.id != 3),
        lambda rows: rows.head(6).filter(c.id > 3).head(1),
        lambda rows: rows.tail(3).filter(c.id > 9),
        lambda rows: rows.head(0).filter(c.id > 9),
        lambda rows: rows.with_row_index().filter(c.id > 3),
    ],
)
def test_the_first_rows_are_taken_before_a_condition_that_comes_later(
    table: alluvium.Table, ask: Any, engine: Any
) -> None:
    whole = pl.from_arrow(table.to_arrow())
    assert isinstance(whole, pl.DataFrame)
    assert_frame_equal(ask(table.to_polars()).collect(engine=engine), ask(whole.lazy()).collect())


def test_files_without_such_rows_are_not_opened(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    for start in (0, 10):
        alluvium.write(pa.table({"id": range(start, start + 10)}), url, mode="append")
    view = alluvium.open(url)
    (gone,) = view.files("id < 5")["path"].to_pylist()
    (tmp_path / "t" / gone).unlink()
    assert view.to_polars().filter(c.id >= 10).collect().height == 10
    # Older versions of Polars tell of it in an error of their own.
    with pytest.raises((NotFound, pl.exceptions.ComputeError), match="part-"):
        view.to_polars().filter(c.id >= 5).collect()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_many_files_stay_in_their_order(tmp_path: Path, engine: Any) -> None:
    url = str(tmp_path / "t")
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 150) for i in range(300)]
    alluvium.write(pa.table({"id": range(300), "day": days}), url, partition_by=["day"])
    whole = pl.from_arrow(alluvium.open(url).to_arrow())
    assert isinstance(whole, pl.DataFrame)
    rows = alluvium.open(url).to_polars()
    assert_frame_equal(rows.collect(engine=engine), whole)
    assert_frame_equal(rows.with_row_index().collect(engine=engine), whole.with_row_index())
    assert rows.select(pl.col("id").sum()).collect(engine=engine).item() == 300 * 299 // 2
    assert rows.filter(c.day == days[7]).collect(engine=engine)["id"].to_list() == [7, 157]


def test_zeros_of_both_signs_stay_apart(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    for id, zero in enumerate((1.0, 0.0, -0.0, 0.0)):
        alluvium.write(pa.table({"id": [id], "zero": [zero]}), url, mode="append", partition_by=["zero"])
    found = alluvium.open(url).to_polars().sort("id").collect()
    assert repr(found["zero"].to_list()) == "[1.0, 0.0, -0.0, 0.0]"


def test_what_polars_holds_for_the_greatest_number_is_found_whatever_files_tell_of_it(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    rows = pa.table({"x": [1.0, NAN, None, -1.0]})
    alluvium.write(rows, url)
    (file,) = Path(url).rglob("*.parquet")
    pq.write_table(rows, file)
    assert pq.read_metadata(file).row_group(0).column(0).statistics.max == 1.0
    assert alluvium.open(url).to_polars().filter(c.x > 5).collect().height == 1


def test_a_damaged_page_is_told_with_its_file(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    for start in (0, 1000):
        rows = pa.table({"id": range(start, start + 1000), "s": [str(i) * 9 for i in range(1000)]})
        alluvium.write(rows, url, mode="append")
    view = alluvium.open(url)
    second = tmp_path / "t" / view.files("id >= 1000")["path"][0].as_py()
    content = bytearray(second.read_bytes())
    content[8:2000] = bytes(1992)
    second.write_bytes(content)
    with pytest.raises((CorruptTable, pl.exceptions.ComputeError), match=second.name):
        view.to_polars().collect()
    # What is wrong with a condition is not the files' fault.
    with pytest.raises(pl.exceptions.PolarsError, match="conversion"):
        view.to_polars().filter(c.id < 1000, c.s.cast(pl.Int8, strict=True) > 1).collect()


def write_encoded(url: str, encoding: str, at: int) -> None:
    """Six files; the decimals of one are encoded so."""
    for number in range(6):
        ids = range(number * 10, number * 10 + 10)
        rows = pa.table({"id": ids, "d": pa.array([Decimal(n) / 100 for n in ids], pa.decimal128(5, 2))})
        alluvium.write(rows, url, mode="append")
        if number == at:
            path = Path(url, alluvium.open(url).files(f"id = {ids[0]}")["path"][0].as_py())
            pq.write_table(rows, path, use_dictionary=False, column_encoding={"d": encoding})


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"])
@pytest.mark.parametrize("at", [0, 3])
def test_decimals_that_polars_has_no_decoder_for(tmp_path: Path, encoding: str, at: int) -> None:
    """The first is what the second version of Parquet's Java writer has for them."""
    url = str(tmp_path / "t")
    write_encoded(url, encoding, at)
    rows = alluvium.open(url).to_polars()
    assert rows.collect()["id"].sum() == sum(range(60))
    assert rows.filter(c.d >= Decimal("0.05")).collect().height == 55
    assert rows.select(c.d.sum()).collect().item() == Decimal("17.70")


@pytest.mark.parametrize("at", [0, 3])
def test_what_polars_cannot_decode_is_read_by_us_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Whatever it is: no row is lost without a word."""
    monkeypatch.setattr(plain_file, "_COMMON_ENCODINGS", {*plain_file._COMMON_ENCODINGS, "DELTA_BYTE_ARRAY"})
    url = str(tmp_path / "t")
    write_encoded(url, "DELTA_BYTE_ARRAY", at)
    rows = alluvium.open(url).to_polars()
    for asked, wanted in ((rows, 60), (rows.filter(c.id % 2 == 0), 30), (rows.select("d"), 60)):
        try:
            assert asked.collect().height == wanted
        except pl.exceptions.ComputeError as error:
            assert at > 0 and "ecod" in str(error)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "Z"), pa.timestamp("us", "Mars/Olympus"), pa.list_view(pa.int64())], ids=str
)
def test_columns_of_types_that_polars_does_not_know_are_not_its_to_meet(tmp_path: Path, kind: pa.DataType) -> None:
    """Be they asked for or not: it panics."""
    url = str(tmp_path / "t")
    element = "array<bigint>" if pa.types.is_list_view(kind) else "timestamp"
    values = (
        pa.array([[1]], pa.list_(pa.int64())) if element != "timestamp" else pa.array([1], pa.timestamp("us", "UTC"))
    )
    alluvium.write(pa.table({"id": [1], "beside": values}), url)
    (path,) = Path(url).rglob("*.parquet")
    beside = pa.array([[1]], kind) if element != "timestamp" else pa.array([1], kind)
    pq.write_table(pa.table({"id": [1], "beside": beside}), path)
    assert pq.read_schema(path).field("beside").type == kind
    assert alluvium.open(url).to_polars().select("id").collect()["id"].to_list() == [1]
    assert alluvium.open(url).to_polars().filter(c.id == 1).select("id").collect().height == 1


def test_a_column_without_a_name(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"": [1, 2], "a": [3, 4]}), url)
    rows = alluvium.open(url).to_polars()
    assert rows.collect().to_dict(as_series=False) == {"": [1, 2], "a": [3, 4]}
    assert rows.filter(c.a > 3).collect().rows() == [(2, 4)]


def test_text_that_is_none_is_no_text_of_polars(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"s": ["ab"]}), url)
    (path,) = Path(url).rglob("*.parquet")
    broken = pa.Array.from_buffers(pa.string(), 1, [*pa.array(["ab"]).buffers()[:2], pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"s": broken}), path)
    for asked in (alluvium.open(url).to_polars(), alluvium.open(url).to_polars().filter(c.s != "a")):
        with pytest.raises((pl.exceptions.PolarsError, CorruptTable), match=r"(?i)utf-?8"):
            asked.collect()


def test_a_view_stays_at_its_version(table: alluvium.Table) -> None:
    before = alluvium.open(table.url, version=1)
    assert before.to_polars().select("id").collect()["id"].sort().to_list() == list(range(8))


def test_names_that_read_as_patterns(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    names = {"delta.columnMapping.mode": "name"}
    alluvium.write(pa.table({"^.*$": [1, 2], "*": [3, 4], "a.b": [5, 6], "q\"'`": [7, 8]}), url, **names)
    frame = alluvium.open(url).to_polars()
    assert frame.collect().rows() == [(1, 3, 5, 7), (2, 4, 6, 8)]
    assert frame.filter(c("a.b") > 5, c("q\"'`") == 8).select("a.b").collect().rows() == [(6,)]


def test_paimon(tmp_path: Path) -> None:
    write_readings(tmp_path / "t")
    view = alluvium.open(str(tmp_path / "t"))
    rows, asked = asked_rows(view._lazy_rows())
    frame = lazy_frame(rows)
    assert sorted(frame.collect().rows()) == [("a", "roof", 2.5), ("c", "roof", 4.0)]
    assert frame.filter(c.value > 3).select("sensor").collect().rows() == [("c",)]
    assert [set(names) for names, _ in asked[1:]] == [{"sensor", "value"}]
    assert asked[1][1] == parse_predicate("value > 3D", rows.columns)
    then = alluvium.open(str(tmp_path / "t"), tag="noon").to_polars()
    assert sorted(then.filter(c.sensor != "a").select("sensor").collect().rows()) == [("b",), ("c",)]


def test_texts_of_char_are_compared_as_they_are_shown(tmp_path: Path) -> None:
    texts = replace(Field("k", t.STRING), metadata={CHAR_VARCHAR: "char(3)"})
    url = make_table(tmp_path / "t", Struct((texts,)))
    alluvium.write(pa.table({"k": ["a", "bc"]}), url, mode="append")
    frame = alluvium.open(url).to_polars()
    assert frame.filter(c.k != "a").collect()["k"].to_list() == ["a  ", "bc "]
    assert frame.filter(c.k == "a").collect().height == 0


@pytest.mark.long
def test_without_polars(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1]}), url)
    program = f"""
import sys
sys.modules["polars"] = None
import alluvium
try:
    alluvium.open({url!r}).to_polars()
except alluvium.errors.InvalidRequest as error:
    print(error.code, error.hint)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "missing-dependency pip install alluvium[polars]\n"
