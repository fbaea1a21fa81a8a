"""A file's schema as Spark reads it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.spark_schema import stored_schema
from alluvium.errors import UnsupportedFeature
from alluvium.schema.types import Struct


def schema_of(rows: pa.Table, **options: object) -> Struct:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return stored_schema(pq.read_metadata(pa.BufferReader(sink.getvalue())), "f")


def test_by_the_types_of_the_file() -> None:
    rows = pa.table(
        {
            "a": pa.array([1], pa.uint32()),
            "d": pa.array(["x"]).dictionary_encode(),
            "t": pa.array([1], pa.timestamp("us", "Europe/Berlin")),
            "n": pa.array([1], pa.timestamp("ms")),
            "u": pa.array([1], pa.duration("us")),
            "s": pa.array([{"l": [1.5], "m": [("k", b"v")]}], pa.struct(
                [("l", pa.list_(pa.float32())), ("m", pa.map_(pa.string(), pa.binary()))])),
        }
    )  # fmt: skip
    assert str(schema_of(rows)) == (
        "struct<a:bigint,d:string,t:timestamp,n:timestamp_ntz,u:bigint,s:struct<l:array<float>,m:map<string,binary>>>"
    )
    old = pa.table(
        {
            "x": [1],
            # Of each leaf one is counted off, wherever it lies.
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "t": pa.array([1], pa.timestamp("us")),
            "s": pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("us"))])),
        }
    )
    assert str(schema_of(old, use_deprecated_int96_timestamps=True)) == (
        "struct<x:bigint,m:map<string,bigint>,t:timestamp,s:struct<t:timestamp>>"
    )


def test_by_what_spark_says() -> None:
    said = '{"type":"struct","fields":[{"name":"c","type":"string","nullable":true,"metadata":{"comment":"x"}}]}'
    rows = pa.table({"c": ["x"]}).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": said})
    assert schema_of(rows).fields[0].metadata == {"comment": "x"}
    broken = rows.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": "{"})
    assert str(schema_of(broken)) == "struct<c:string>"


@pytest.mark.parametrize("data_type", [pa.timestamp("ns"), pa.time64("us"), pa.binary(4), pa.float16()])
def test_what_spark_does_not_read(data_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        schema_of(pa.table({"s": pa.array([{"x": None}], pa.struct([("x", data_type)]))}))
    assert (caught.value.code, caught.value.column, caught.value.path) == ("unsupported-type", "s.x", "f")
