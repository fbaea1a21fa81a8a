"""Files of Paimon tables without Spark: their statistics, forms, and what is not written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, ks, make, open_target, stage

import alluvium
from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.file_stats import value_stats
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, TableSchema, parse_type
from alluvium.plan.changes import Replace
from alluvium.schema import types as t
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

BUCKETS = {"bucket": "2", "bucket-key": "k"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(str(tmp_path / "t"), "day")


def schema_of(**options: str) -> TableSchema:
    fields = [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate([("a", "INT"), ("s", "STRING")])]
    return TableSchema.create(fields, options=options)


def texts(low: str, high: str) -> FileFooter:
    return FileFooter(3, {("a",): ColumnStats(t.INTEGER, 1, 2, 0), ("s",): ColumnStats(t.STRING, low, high, 1)})


@pytest.mark.parametrize(
    ("high", "cut"),
    [
        ("short", "short"),
        ("Two roads diverged", "Two roads diverh"),
        ("é" * 20, "é" * 15 + "ê"),
        ("a" * 15 + "\U0010ffff" * 2, "a" * 14 + "b"),
        ("\ud7ff" * 20, "\ud7ff" * 15 + "\ue000"),
        ("\U0010ffff" * 20, None),
    ],
)
def test_texts_are_cut(high: str, cut: str | None) -> None:
    """ "truncated to 16 chars by default, max value incremented in its last char" """
    stats = value_stats(schema_of(), [texts("a" * 20, high)])
    types = [(t.INTEGER, 0), (t.STRING, 0)]
    assert decode_rows(stats.high, types)[1].to_pylist() == [cut]
    # Without an upper bound there is no lower one either, as in Java.
    assert decode_rows(stats.low, types)[1].to_pylist() == [None if cut is None else "a" * 16]
    assert (stats.columns, stats.nulls.to_pylist()) == (None, [[0, 1]])


def test_modes_of_statistics() -> None:
    """ "modes none/counts/full/truncate(n), per column `fields.<c>.stats-mode`" """
    footer = texts("a" * 20, "b" * 20)
    full = value_stats(schema_of(**{"fields.s.stats-mode": "full"}), [footer])
    assert decode_rows(full.low, [(t.INTEGER, 0), (t.STRING, 0)])[1].to_pylist() == ["a" * 20]
    counts = value_stats(schema_of(**{"metadata.stats-mode": "counts"}), [footer])
    assert decode_rows(counts.low, [(t.INTEGER, 0)])[0].to_pylist() == [None]
    assert counts.nulls.to_pylist() == [[0, 1]]
    none = value_stats(schema_of(**{"metadata.stats-mode": "none", "fields.s.stats-mode": "truncate(3)"}), [footer])
    assert none.columns == ("s",)
    assert decode_rows(none.high, [(t.STRING, 0)])[0].to_pylist() == ["bbc"]
    first = value_stats(schema_of(**{"metadata.stats-keep-first-n-columns": "1"}), [footer])
    assert first.columns == ("a",)
    sparse = value_stats(schema_of(**{"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"}), [footer])
    assert (sparse.columns, sparse.nulls.to_pylist()) == (None, [[None, None]])
    nothing = value_stats(schema_of(**{"metadata.stats-mode": "none"}), [footer])
    assert (nothing.columns, nothing.low.to_pylist()) == ((), [bytes(12)])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"manifest.format": "orc"}, "unsupported-option"),
        ({"data-file.external-paths": "s3://x/y", "data-file.external-paths.strategy": "round-robin"}, "unsupported-option"),
    ],
)  # fmt: skip
def test_tables_that_are_not_written(tmp_path: Path, options: dict[str, str], code: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options=options)
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(url)), [{"k": 1}])
    assert caught.value.code == code


@pytest.mark.parametrize("kind", ["BLOB"])
def test_columns_that_are_not_written(tmp_path: Path, kind: str) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "x", parse_type(kind))]
    PaimonTable.create(str(tmp_path / "t"), fields, options=options)
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(str(tmp_path / "t"))), [{"k": 1}])
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "x")


@pytest.mark.parametrize("kind", ["TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(0)"])
def test_columns_that_spark_cannot_write_are_planned_in_arrow(tmp_path: Path, kind: str) -> None:
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "x", parse_type(kind))]
    PaimonTable.create(str(tmp_path / "t"), fields)
    plan = open_target(open_store(str(tmp_path / "t"))).plan_write(None, ())
    assert plan.files is not None
    assert [f.metadata[b"PARQUET:field_id"] for f in plan.files] == [b"0", b"1"]
    assert plan.schema.fields[1].type in (t.INTEGER, t.TIMESTAMP_NTZ, t.TIMESTAMP)


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_manifests_of_other_formats_are_not_mixed(tmp_path: Path, form: str) -> None:
    """Java reads every manifest of a table as `manifest.format` says, and fails over one in another format."""
    store = make(str(tmp_path / "t"), **{"manifest.format": form})
    known = sorted(info.path for info in store.list_tree(""))
    with pytest.raises(UnsupportedFeature) as caught:
        append(open_target(store), [{"k": 1}])
    assert caught.value.code == "unsupported-option"
    assert sorted(i.path for i in store.list_tree("") if not i.path.startswith("_staging")) == known


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_files_of_other_formats(tmp_path: Path, form: str) -> None:
    """Statistics are of the rows: they skip what they may, in every type, and what several parts make has counts."""
    url = str(tmp_path / "t")
    kinds = {"k": "INT", "t": "TIMESTAMP(3)", "c": "TIME(3)", "d": "DECIMAL(38, 10)", "s": "STRING", "f": "DOUBLE",
             "b": "BYTES", "a": {"type": "ARRAY", "element": "INT"}, "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}  # fmt: skip
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, options={"file.format": form})
    store = open_store(url)
    rows = [
        {"k": n, "t": dt.datetime(2024, 1, 1, 0, 0, n, 5000), "c": n, "d": Decimal(n) / 8, "s": f"text {n} " * 4,
         "f": n / 2, "b": bytes([n]), "a": [n, None], "z": dt.datetime(2024, 1, n + 1, tzinfo=dt.timezone.utc)}
        for n in range(4)
    ]  # fmt: skip
    for row in rows:
        append(open_target(store), [row, {"k": row["k"]}])
    entries = load_snapshot(store).entries
    assert {name.rpartition(".")[2] for name in entries["file_name"].to_pylist()} == {form}
    assert entries["stats_nulls"].to_pylist() == [[0, *[1] * 8]] * 4
    table = alluvium.open(url)
    found = table.to_arrow().sort_by("k").to_pylist()
    given = [{**row, "c": dt.time(0, 0, 0, 1000 * row["c"])} for row in rows]
    assert [row for row in found if row["a"]] == given
    assert len([row for row in found if row["d"] is None]) == 4
    for where in ("d = 0.25", "t > timestamp_ntz'2024-01-01 00:00:02'", "s = 'text 2 text 2 text 2 text 2 '", "f = 1.0",
                  "z = timestamp'2024-01-03 00:00:00Z'"):  # fmt: skip
        left = [row["k"] for row in table.to_arrow(where=where).to_pylist()]
        assert left[0] == 2, where
        # Of floats nobody believes an upper bound: others leave NaN out.
        assert table.files(where=where).num_rows == len(left) or where.startswith("f"), where
    append(open_target(store), [{"k": 9}], Replace())
    assert ks(store) == [9]


@pytest.mark.parametrize(
    ("form", "name", "kind", "code"),
    [("avro", "a b", "INT", "unsupported-name"), ("lance", "k", "INT", "unsupported-file-format")],
)
def test_what_a_format_has_no_form_for(tmp_path: Path, form: str, name: str, kind: str, code: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, [DataField(0, name, parse_type(kind))])
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(url), **{"file.format": form}), [])
    assert caught.value.code == code


def test_options_for_parquet_are_those_of_its_layout(tmp_path: Path) -> None:
    layout = {"parquet.block.size": "1048576", "parquet.enable.dictionary#s": "false"}
    odd = {"parquet.write.support.class": "a.b.C", "parquet.hadoop.vectored.io.enabled": "true"}
    plan = open_target(make(str(tmp_path / "t"), **layout, **odd)).plan_write(None, ())
    told = {name: value for name, value in plan.options if name.startswith("parquet.")}
    assert told == {**layout, "parquet.compression.codec.zstd.level": "1"}
    # Without it files would be written that everybody can read.
    for name in ("parquet.crypto.factory.class", "parquet.encryption.footer.key"):
        target = open_target(make(str(tmp_path / name), **{name: "a.b.C"}))
        with pytest.raises(UnsupportedFeature) as caught:
            target.plan_write(None, ())
        assert caught.value.code == "encrypted-files"


def row_of(kind: str) -> dict[str, Any]:
    """Deep within other types."""
    within = {"type": "MAP", "key": "INT", "value": {"type": "ARRAY", "element": kind}}
    return {"type": "ROW", "fields": [{"id": 7, "name": "a", "type": within}]}


@pytest.mark.parametrize(
    ("kind", "options", "who"),
    [
        ("INT", {}, "spark"), ("TIME(3)", {}, "spark"), ("CHAR(3)", {}, "spark"), ("BINARY(4)", {}, "spark"),
        ({"type": "MULTISET", "element": "STRING"}, {}, "spark"), (row_of("DECIMAL(38, 10)"), {}, "spark"),
        ("DATE", {}, "spark where"), (row_of("DATE"), {}, "spark where"),
        ({"type": "MULTISET", "element": "DATE"}, {}, "spark where"),
        ({"type": "MAP", "key": "DATE", "value": "INT"}, {}, "spark where"),
        ("TIMESTAMP(6)", {}, "workers"), ("TIMESTAMP(6) WITH LOCAL TIME ZONE", {}, "workers"),
        (row_of("TIMESTAMP(3)"), {}, "workers"), ({"type": "MAP", "key": "TIMESTAMP(6)", "value": "INT"}, {}, "workers"),
        ("INT", {"file.compression": "lz4"}, "workers"), ("INT", {"file.compression": "ZLIB"}, "spark"),
        ("INT", {"orc.compress": "SNAPPY"}, "spark"), ("INT", {"file.format": "avro"}, "workers"),
    ],
)  # fmt: skip
def test_who_writes_orc(tmp_path: Path, kind: Any, options: dict[str, str], who: str) -> None:
    url = str(tmp_path / "t")
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "x", parse_type(kind))]
    PaimonTable.create(url, fields, options={"file.format": "orc", **options})
    plan = open_target(open_store(url)).plan_write(None, ())
    assert plan.files is not None
    found = plan.spark_writes_where
    assert who == ("workers" if found is None else "spark where" if found else "spark")
    for check in found or ():
        assert "1582-10-15" in check.sql and check.columns == ("x",)


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ({}, (), {"compression": "zstd", "orc.compression.zstd.level": "1"}),
        ({"file.compression": "GZIP", "file.compression.zstd-level": "7"}, (),
         {"compression": "zlib", "orc.compression.zstd.level": "7"}),
        ({"orc.compress": "ZLIB", "file.compression": "snappy"}, (), {"compression": "zlib"}),
        ({"orc.compress": "ZLIB"}, (("compression", "none"),), {"compression": "none"}),
        ({"file.block-size": "2 mb"}, (), {"orc.stripe.size": str(2 << 20)}),
        ({"file.block-size": "2 mb", "orc.stripe.size": "77"}, (), {"orc.stripe.size": "77"}),
        ({"orc.bloom.filter.columns": "k", "orc.compression.zstd.level": "3"}, (),
         {"orc.bloom.filter.columns": "k", "orc.compression.zstd.level": "3"}),
        # Classes that the writer would load, and days of another calendar than Paimon's.
        ({"orc.memory.pool": "x.Y", "orc.proleptic.gregorian": "true", "parquet.block.size": "1"}, (),
         {"orc.proleptic.gregorian": "false", "orc.memory.pool": None, "parquet.block.size": None}),
    ],
)  # fmt: skip
def test_what_the_writer_of_orc_is_told(
    tmp_path: Path, options: dict[str, str], given: tuple[tuple[str, str], ...], expected: dict[str, str | None]
) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options={"file.format": "orc", **options})
    told = dict(open_target(open_store(url)).plan_write(None, given).options)
    assert {name: told.get(name) for name in expected} == expected


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_codecs_that_nobody_here_writes(tmp_path: Path, form: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options={"file.format": form, "file.compression": "lzo"})
    with pytest.raises(InvalidRequest) as caught:
        open_target(open_store(url)).plan_write(None, ())
    assert caught.value.code == "invalid-table-option" and "zstd" in str(caught.value)


@pytest.mark.parametrize("name", ["orc.encrypt", "orc.mask", "orc.key.provider"])
def test_files_are_not_left_unencrypted(tmp_path: Path, name: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options={"file.format": "orc", name: "pii:k"})
    with pytest.raises(UnsupportedFeature) as caught:
        open_target(open_store(url)).plan_write(None, ())
    assert caught.value.code == "encrypted-files"
