"""What rows have of a column that their file lacks."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import pyarrow as pa
import pytest
from past_tables import WITH_PAST, with_past

import alluvium
from alluvium import DeltaTable
from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import Physical
from alluvium.portable.files.lacking import lacking_column
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal, Field, Struct


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (t.INTEGER, "7", 7),
        (t.LONG, "-7", -7),
        (t.STRING, r"'a\'b'", "a'b"),
        (t.DOUBLE, "CAST('NaN' AS DOUBLE)", "nan"),
        (Decimal(5, 2), "1.5", decimal.Decimal("1.50")),
        (t.DATE, "DATE '2024-02-29'", dt.date(2024, 2, 29)),
        (t.TIMESTAMP, "TIMESTAMP '2024-01-01 00:00:00'", dt.datetime(2023, 12, 31, 15, tzinfo=dt.timezone.utc)),
        (t.BOOLEAN, "true", True),
        (t.STRING, "NULL", None),
        (t.STRING, None, None),
    ],
)
def test_rows_have_what_the_schema_says(kind: DataType, text: str | None, value: object) -> None:
    field = Field("x", kind, metadata={} if text is None else {"EXISTS_DEFAULT": text})
    made = lacking_column(Physical(("x",), kind), Struct((field,)), 3, "x", "Asia/Tokyo")
    assert len(made) == 3
    assert [str(v) if value == "nan" else v for v in made.to_pylist()] == [value] * 3


def test_each_column_has_its_own() -> None:
    """By its name in the file, not by what the table calls it; what is within another has none."""
    fields = [Field(name, t.LONG, metadata={"EXISTS_DEFAULT": text}) for name, text in (("a", "1"), ("b", "2"))]
    read = Struct((*fields, Field("s", Struct((Field("a", t.LONG),))), Field("n", t.LONG, metadata={"EXISTS_DEFAULT": 7})))  # fmt: skip
    for path, value in ((("a",), 1), (("b",), 2), (("n",), None), (("gone",), None), (("s", "a"), None), (("a", "b"), None)):  # fmt: skip
        made = lacking_column(Physical(path, t.LONG), read, 2, "a", "UTC")
        assert made.to_pylist() == [value] * 2 and made.type == pa.int64()
    none = lacking_column(Physical(("a",), t.LONG), read, 0, "a", "UTC")
    assert len(none) == 0 and none.type == pa.int64()
    assert lacking_column(Physical(("b",), Decimal(5, 2)), read, 1, "b", "UTC").type == pa.decimal128(5, 2)


@pytest.mark.parametrize("text", ["rand()", "(select 1)", "years(2", "a"])
def test_what_spark_alone_knows_is_refused(text: str) -> None:
    read = Struct((Field("x", t.INTEGER, metadata={"EXISTS_DEFAULT": text}),))
    with pytest.raises(UnsupportedFeature) as caught:
        lacking_column(Physical(("x",), t.INTEGER), read, 3, "x", "UTC")
    assert (caught.value.code, caught.value.column) == ("needs-spark", "x")
    assert "'x'" in str(caught.value) and repr(text) in str(caught.value)


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_a_table_whose_older_rows_have_a_value(tmp_path: Path, mapping: str) -> None:
    path = with_past(tmp_path / "t", mapping)
    table = alluvium.open(path)
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == WITH_PAST
    assert sorted(table.to_arrow(where="x = 7")["id"].to_pylist()) == [0, 1, 2]
    assert table.count("x is null") == 1
    DeltaTable.forPath(path).delete("x is null")
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == [0, 1, 2]
