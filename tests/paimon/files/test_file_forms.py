"""Who writes a table's files, and what the writer is told: the options and codecs of Paimon's formats, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.files.file_forms import (
    FORMATS,
    field_id,
    spark_writes_where,
    types_within,
    writer_options,
    written_by_workers,
)
from alluvium.paimon.schema import DataField, TableSchema, parse_type

#: Options that say how a file is laid out, by the documentation of each format's writer.
PARQUET = [
    "block.size",
    "block.row.count.limit",
    "bloom.filter.adaptive.enabled",
    "bloom.filter.candidates.number",
    "bloom.filter.enabled",
    "bloom.filter.expected.ndv",
    "bloom.filter.fpp",
    "bloom.filter.max.bytes",
    "column.index.truncate.length",
    "compression.codec.zstd.workers",
    "dictionary.page.size",
    "enable.dictionary",
    "page.row.count.limit",
    "page.size",
    "page.size.check.estimate",
    "page.size.row.check.max",
    "page.size.row.check.min",
    "page.write-checksum.enabled",
    "statistics.truncate.length",
    "writer.version",
]
ORC = [
    "base.delta.ratio",
    "block.padding",
    "block.padding.tolerance",
    "block.size",
    "bloom.filter.columns",
    "bloom.filter.fpp",
    "buffer.size.enforce",
    "column.encoding.direct",
    "compress.size",
    "compression.strategy",
    "compression.zstd.level",
    "compression.zstd.windowlog",
    "dictionary.early.check",
    "dictionary.implementation",
    "dictionary.key.threshold",
    "encoding.strategy",
    "row.index.stride",
    "rows.between.memory.checks",
    "stripe.row.count",
    "stripe.size",
]


def table(options: Mapping[str, str], *types: Any) -> TableSchema:
    fields = tuple(DataField(n, f"c{n}", parse_type(kind)) for n, kind in enumerate(types or ("INT",)))
    return TableSchema(0, fields, 9, options=dict(options))


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_every_writer_is_told(file_format: str) -> None:
    told = writer_options(table({"file.format": file_format}), ())
    assert (
        told
        == {
            "parquet": {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"},
            "orc": {"compression": "zstd", "orc.compression.zstd.level": "1", "orc.proleptic.gregorian": "false"},
            "avro": {"compression": "zstd"},
        }[file_format]
    )


def test_parquet_is_what_a_table_has_that_says_nothing() -> None:
    assert writer_options(table({}), ()) == writer_options(table({"file.format": "parquet"}), ())


@pytest.mark.parametrize("name", PARQUET)
def test_layout_of_parquet(name: str) -> None:
    """A name may have a column behind it; other formats do not know it."""
    options = {f"parquet.{name}": "7", f"parquet.{name}#c0": "8", f"parquet.{name}x": "9"}
    told = writer_options(table(options), ())
    assert {key for key in told if key in options} == set(options) - {f"parquet.{name}x"}
    assert (told[f"parquet.{name}"], told[f"parquet.{name}#c0"]) == ("7", "8")
    for other in ("orc", "avro"):
        assert not options.keys() & writer_options(table({**options, "file.format": other}), ()).keys()


@pytest.mark.parametrize("name", ORC)
def test_layout_of_orc(name: str) -> None:
    options = {f"orc.{name}": "7", f"orc.{name}x": "9"}
    told = writer_options(table({**options, "file.format": "orc"}), ())
    assert told[f"orc.{name}"] == "7" and f"orc.{name}x" not in told
    for other in ("parquet", "avro"):
        assert not options.keys() & writer_options(table({**options, "file.format": other}), ()).keys()


def test_options_of_all_formats_and_of_one() -> None:
    told = writer_options(table({"file.compression": "SNAPPY", "file.compression.zstd-level": "5"}), ())
    assert told == {"compression": "snappy", "parquet.compression.codec.zstd.level": "5"}
    # The level is the table's, whatever the format's own option says.
    own = {"parquet.compression.codec.zstd.level": "9", "file.compression.zstd-level": "5"}
    assert writer_options(table(own), ())["parquet.compression.codec.zstd.level"] == "5"
    orc = {"file.format": "orc", "file.block-size": "2 kb", "file.compression": "zlib"}
    assert writer_options(table(orc), ()) == {
        "compression": "zlib", "orc.compression.zstd.level": "1", "orc.stripe.size": "2048", "orc.proleptic.gregorian": "false",
    }  # fmt: skip
    # The format's own options come before those of all.
    own = {**orc, "orc.compress": "LZ4", "orc.stripe.size": "77", "orc.proleptic.gregorian": "true"}
    told = writer_options(table(own), ())
    assert (told["compression"], told["orc.stripe.size"], told["orc.proleptic.gregorian"]) == ("lz4", "77", "false")
    assert writer_options(table({"a": "b", "orc.compress": "LZ4"}), ())["compression"] == "zstd"


def test_options_of_the_call_come_last() -> None:
    told = writer_options(
        table({"parquet.page.size": "1"}), [("parquet.page.size", "2"), ("compression", "gzip"), ("x", "y")]
    )
    assert (told["parquet.page.size"], told["compression"], told["x"]) == ("2", "gzip", "y")


CODECS = {
    "orc": {"zstd": "zstd", "snappy": "snappy", "zlib": "zlib", "lz4": "lz4", "none": "none", "gzip": "zlib",
            "deflate": "zlib", "uncompressed": "none", "null": "none", "ZSTD": "zstd"},
    "avro": {"zstd": "zstd", "snappy": "snappy", "deflate": "deflate", "null": "null", "zstandard": "zstd",
             "gzip": "deflate", "zlib": "deflate", "uncompressed": "null", "none": "null", "Gzip": "deflate"},
    "parquet": {name: name for name in ("zstd", "snappy", "gzip", "lz4", "brotli", "none", "lz4_raw")},
}  # fmt: skip


@pytest.mark.parametrize("file_format", CODECS)
def test_codecs_by_all_their_names(file_format: str) -> None:
    for name, codec in CODECS[file_format].items():
        assert writer_options(table({"file.format": file_format}), [("compression", name)])["compression"] == codec
    if file_format == "parquet":
        return  # its writer says itself what it does not know
    for name in ("brotli", "zstdx", ""):
        with pytest.raises(InvalidRequest) as caught:
            writer_options(table({"file.format": file_format}), [("compression", name)])
        assert caught.value.code == "invalid-table-option" and "zstd" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("file_format", "name", "asks"),
    [
        ("parquet", "parquet.crypto.factory.class", True), ("parquet", "parquet.encryption.footer.key", True),
        ("parquet", "parquet.encrypt", False), ("parquet", "orc.encrypt", False), ("parquet", "crypto", False),
        ("orc", "orc.encrypt", True), ("orc", "orc.mask", True), ("orc", "orc.key.provider", True),
        ("orc", "orc.masked", True), ("orc", "orc.key", False), ("orc", "parquet.crypto.x", False),
        ("avro", "orc.encrypt", False), ("avro", "parquet.encryption.x", False),
    ],
)  # fmt: skip
def test_encryption_cannot_be_left_out(file_format: str, name: str, asks: bool) -> None:
    schema = table({"file.format": file_format, name: "x"})
    if not asks:
        assert name not in writer_options(schema, ())
        return
    with pytest.raises(UnsupportedFeature) as caught:
        writer_options(schema, ())
    assert (caught.value.code, tuple(caught.value.features)) == ("encrypted-files", ("encryption",))


ARRAY = {"type": "ARRAY", "element": "TIMESTAMP(3)"}
MAP = {"type": "MAP", "key": "INT", "value": "TIME(0)"}
KEYS = {"type": "MAP", "key": "TIMESTAMP(9)", "value": "INT"}
ROW = {
    "type": "ROW",
    "fields": [{"id": 5, "name": "x", "type": "INT"}, {"id": 6, "name": "y", "type": "TIMESTAMP_LTZ(7)"}],
}


@pytest.mark.parametrize(
    ("kind", "in_parquet", "in_orc"),
    [
        ("INT", True, True), ("STRING", True, True), ("DATE", True, True), ("DECIMAL(38, 9)", True, True),
        ("TIME(0)", False, True), ("TIME(3)", False, True),
        *((f"TIMESTAMP({digits})", digits in (4, 5, 6), False) for digits in range(10)),
        *((f"TIMESTAMP_LTZ({digits})", digits in (4, 5, 6), False) for digits in range(10)),
        (ARRAY, False, False), (MAP, False, True), (KEYS, False, False), (ROW, False, False),
        ({"type": "ARRAY", "element": "INT"}, True, True), ({"type": "ARRAY", "element": MAP}, False, True),
        ({"type": "ARRAY", "element": "TIMESTAMP(6)"}, True, False),
    ],
    ids=str,
)  # fmt: skip
def test_who_writes_a_type(kind: Any, in_parquet: bool, in_orc: bool) -> None:
    """Spark's own writer, where it writes a type as Paimon's readers expect it."""
    for file_format, by_spark in (("parquet", in_parquet), ("orc", in_orc), ("avro", False)):
        schema = table({"file.format": file_format}, "INT", kind, "STRING")
        assert written_by_workers(schema, {"compression": "zstd"}) is not by_spark


@pytest.mark.parametrize(
    ("codec", "read_back"), [("zstd", True), ("snappy", True), ("zlib", True), ("none", True), ("lz4", False)]
)
def test_who_writes_a_codec(codec: str, read_back: bool) -> None:
    """The statistics of what Spark has written in ORC are read from the footers."""
    assert written_by_workers(table({"file.format": "orc"}), {"compression": codec}) is not read_back
    assert not written_by_workers(table({}), {"compression": codec})


def test_days_are_checked_where_spark_writes_orc() -> None:
    assert spark_writes_where(table({"file.format": "orc"}, "DATE", "INT"))
    assert spark_writes_where(table({"file.format": "orc"}, "INT")) == ()
    assert spark_writes_where(table({}, "DATE")) == ()


def test_numbers_of_columns() -> None:
    assert field_id("parquet", 7) == {"PARQUET:field_id": "7"}
    assert field_id("orc", 0) == {"paimon.id": "0"}
    assert field_id("avro", 7) is None


def test_what_a_type_is_made_of() -> None:
    assert types_within(parse_type("INT")) == ()
    assert [str(t.root) for t in types_within(parse_type(MAP))] == ["INTEGER", "TIME_WITHOUT_TIME_ZONE"]
    assert [t.root for t in types_within(parse_type(ARRAY))] == ["TIMESTAMP_WITHOUT_TIME_ZONE"]
    assert [t.root for t in types_within(parse_type(ROW))] == ["INTEGER", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"]
