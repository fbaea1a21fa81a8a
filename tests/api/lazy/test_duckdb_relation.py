"""Relations: the rows that DuckDB itself finds in `to_arrow()`, of which only what matters is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from lazy_table import Asked, asked_rows, write_delta
from paimon_tables import write_readings

import alluvium
from alluvium.api.lazy.arrow_terms import Node, pushed, read
from alluvium.api.lazy.duckdb_relation import RowsDataset, relation
from alluvium.errors import AlluviumError
from alluvium.expr.sql.parse import parse_predicate

#: Conditions, some of which our reader is surely told of.
CONDITIONS = (
    "id > 3", "id = 3", "3 < id", "small > 1", "small > 300", "small = 1.5", "f > 1", "f >= 'nan'", "f = 'nan'", "f != 'nan'",
    "f <= 'nan'", "f < 'nan'", "not (f > 1)", "f = 0.0", "isnan(f)", "not isnan(f)", "g > 0.1", "g = 0.1::float", "s = 'a'",
    "s != 'a'", "s > 'a'", "s in ('a', 'b')", "s not in ('a', 'b')", "s in ('a', null)", "s not in ('a', null)", "s like 'a%'",
    "starts_with(s, 'a')", "b = 'a'::blob", "b > 'a'::blob", "d > '2020-01-05'", "d > timestamp '2020-01-05 01:00'",
    "t > '2020-01-05'", "t > '2020-01-05 00:00:00+00'", "n < '2020-01-05'", "m > 1.25", "m = 1", "m = 1.255", "m < 1.3", "o",
    "not o", "o is null", "st.x > 3", "st.y = '7'", "st is null", "len(l) > 0", "p = 1", "p is null", "p is not null", "p != 1",
    "p in (1, 3)", "q in ('%', 'x=y')", "q = ''", "f in ('nan', 0.0)", "f not in ('nan', 0.0)", "s is distinct from 'a'",
    "s is not distinct from 'a'", "id between 2 and 5", "id > 2 and len(l) > 0", "id > 2 or len(l) > 0",
    "(id > 8 and len(l) > 0) or p = 1", "id = small", "upper(s) = 'A'", "id % 2 = 0", "f > f", "id in (select 3)",
    "not (id > 8 or s = 'a')", "f > 1 or s = 'a'", "not (f >= 1 and s != 'zz')", "s between 'a' and 'b'", "f between 1 and 'nan'",
)  # fmt: skip
TOLD = {
    "id > 3": "id > 3L", "st.x > 3": "st.x > 3L", "d > '2020-01-05'": "d > date'2020-01-05'", "s != 'a'": "s != 'a'",
    "t > '2020-01-05 00:00:00+00'": "t > timestamp'2020-01-05 00:00:00Z'", "b = 'a'::blob": "b = X'61'",
    "n < '2020-01-05'": "n < timestamp_ntz'2020-01-05 00:00:00'",
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> alluvium.Table:
    vectors = {"delta.enableDeletionVectors": "true"}
    return alluvium.open(write_delta(str(tmp_path_factory.mktemp("lazy") / "t"), **vectors))


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("set timezone = 'America/New_York'")
    return made


def answer(rows: duckdb.DuckDBPyRelation, condition: str) -> str:
    # As text: NaN is then equal to NaN.
    return repr(rows.query("v", f"select * from v where {condition} order by id").fetchall())


def asked_relation(
    table: alluvium.Table, connection: duckdb.DuckDBPyConnection | None
) -> tuple[duckdb.DuckDBPyRelation, Asked]:
    rows, asked = asked_rows(table._lazy_rows())
    return relation(rows, connection), asked


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_that_duckdb_finds_in_the_whole_table(
    table: alluvium.Table, connection: duckdb.DuckDBPyConnection, condition: str
) -> None:
    found, asked = asked_relation(table, connection)
    assert answer(found, condition) == answer(connection.from_arrow(table.to_arrow()), condition)
    if told := TOLD.get(condition):
        assert asked[-1][1] == parse_predicate(told, table.snapshot.config.schema)


def test_columns_are_read_that_a_query_needs(table: alluvium.Table, connection: duckdb.DuckDBPyConnection) -> None:
    found, asked = asked_relation(table, connection)
    assert found.filter("id > 9").project("s").fetchall() == [("a",), ("B",)]
    assert {name for names, _ in asked for name in names} == {"id", "s"}
    assert found.aggregate("count(*)").fetchall() == [(11,)]
    assert len(asked[-1][0]) == 1


def test_the_default_connection_sees_it(table: alluvium.Table) -> None:
    lazy = table.to_duckdb()
    assert lazy.columns == list(table.schema.names)
    assert duckdb.sql("select count(*) from lazy where p is null").fetchall() == [(2,)]
    assert duckdb.sql("select max(id) from lazy").fetchall() == [(11,)]


def test_files_without_such_rows_are_not_opened(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    url = str(tmp_path / "t")
    for start in (0, 10):
        alluvium.write(pa.table({"id": range(start, start + 10)}), url, mode="append")
    view = alluvium.open(url)
    (gone,) = view.files("id < 5")["path"].to_pylist()
    (tmp_path / "t" / gone).unlink()
    lazy = view.to_duckdb(connection)
    assert lazy.filter("id >= 10").aggregate("count(*)").fetchall() == [(10,)]
    with pytest.raises(duckdb.Error, match="part-"):
        lazy.filter("id >= 5").fetchall()


def test_names_that_read_as_something_else(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    url = str(tmp_path / "t")
    names = {"delta.columnMapping.mode": "name"}
    alluvium.write(
        pa.table({"^.*$": [1, 2], "*": [3, 4], "a.b": [5, 6], "q\"'`": [7, 8], "l\nm": [9, 0]}), url, **names
    )
    rows = alluvium.open(url).to_duckdb(connection)
    assert rows.fetchall() == [(1, 3, 5, 7, 9), (2, 4, 6, 8, 0)]
    for condition in ('"a.b" > 5', '"q""\'`" = 8', '"l\nm" = 0', '"*" = 4 and "^.*$" = 2'):
        assert rows.filter(condition).project('"a.b"').fetchall() == [(6,)]


def test_paimon(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    write_readings(tmp_path / "t")
    lazy = alluvium.open(str(tmp_path / "t")).to_duckdb(connection)
    assert lazy.order("sensor").fetchall() == [("a", "roof", 2.5), ("c", "roof", 4.0)]
    assert lazy.filter("value > 3").project("sensor").fetchall() == [("c",)]
    then = alluvium.open(str(tmp_path / "t"), tag="noon").to_duckdb(connection)
    assert sorted(then.filter("sensor != 'a'").project("sensor").fetchall()) == [("b",), ("c",)]


@pytest.mark.long
def test_without_duckdb(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1]}), url)
    program = f"""
import sys
sys.modules["duckdb"] = None
import alluvium
try:
    alluvium.open({url!r}).to_duckdb()
except alluvium.errors.InvalidRequest as error:
    print(error.code, error.hint)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "missing-dependency pip install alluvium[duckdb]\n"


def test_it_can_only_be_scanned(table: alluvium.Table) -> None:
    dataset = RowsDataset(table._lazy_rows())
    for act in (
        dataset.to_table,
        dataset.count_rows,
        lambda: dataset.head(1),
        lambda: dataset.filter(pc.field("id") > 1),
    ):
        with pytest.raises(AlluviumError, match="only be scanned"):
            act()
    inherited = {name for name in dir(ds.Dataset) if not name.startswith("_")} - {"schema", "scanner"}
    assert inherited <= set(vars(RowsDataset))


F, NAN = pc.field("f"), float("nan")
#: Conditions as Arrow means them, and as we do.
ARROW: dict[str, tuple[pc.Expression, str | None]] = {
    "greater": (F > 1.0, "f > 1D and f != double('NaN')"),
    "not greater": (~(F > 1.0), "not(f > 1D and f != double('NaN'))"),
    "less": (F < 1.0, "f < 1D"),
    "NaN": (F < NAN, None),
    "another type": (F > 1, None),
    "in": (pc.field("s").isin(["a", "b"]), "s is not null and s in ('a', 'b')"),
    "in with null": (pc.field("s").isin(["a", None]), "s is null or s in ('a')"),
    "quotes": (pc.field("s") == "it's '\n' \"", "s = 'it\\'s \\'\\n\\' \"'"),
    "null with NaN": (F.is_null(nan_is_null=True), None),
    "known": (pc.field("id").is_valid(), "id is not null"),
    "column of quotes": (pc.field("x'y") == 1, None),
    "column of lines": (pc.field("id'\nfield_ref: 's") == 1, None),
    "function": (pc.field("id") + 1 > 2, None),
    "and": ((pc.field("id") + 1 > 2) & (pc.field("id") > 2), None),
    "and null": (pc.field("o") & pa.scalar(None, pa.bool_()), "o"),
    "nested": (pc.field("st", "x") == pa.scalar(3, pa.int64()), "st.x = 3L"),
    "instant": (pc.field("t") > pa.scalar(0, pa.timestamp("us", "Asia/Tokyo")), "t > timestamp'1970-01-01 00:00:00Z'"),
    "local": (pc.field("t") > pa.scalar(0, pa.timestamp("us")), None),
    "far": (pc.field("n") > pa.scalar(2**62, pa.timestamp("us")), None),
}  # fmt: skip


@pytest.mark.parametrize("name", ARROW)
def test_conditions_of_arrow(table: alluvium.Table, name: str) -> None:
    condition, told = ARROW[name]
    schema = table.snapshot.config.schema
    node: Node | None = read(condition)
    found = None if node is None else pushed(node, schema)
    # As text: NaN is then equal to NaN.
    assert repr(found) == repr(None if told is None else parse_predicate(told, schema))


def test_a_condition_of_many_parts_is_not_told(table: alluvium.Table) -> None:
    condition = pc.field("id") > 0
    for number in range(300):
        condition = condition | (pc.field("id") == number)
    assert read(condition) is None
    scanned = RowsDataset(table._lazy_rows()).scanner(columns=["id"], filter=condition)
    assert scanned.to_table().num_rows == 11
