"""Rows of Arrow into Delta tables, without Spark and without a JVM."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_store import Fault, FaultyStore, When

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.schema.ddl import CHAR_VARCHAR, parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store

UTC = dt.timezone.utc
FLIGHTS = pa.table({"carrier": ["UA", "DL", "UA"], "month": pa.array([1, 1, 2], pa.int32()), "delay": [11, None, -5]})


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


def made(
    url: str,
    ddl: str,
    names: tuple[str, ...] = (),
    says: Mapping[str, Mapping[str, Any]] | None = None,
    **properties: str,
) -> str:
    """A table without rows; `says`: metadata of columns."""
    fields = (replace(f, metadata={**f.metadata, **(says or {}).get(f.name, {})}) for f in parse_fields(ddl))
    config = table_config(NewTable(Struct(tuple(fields)), names, properties))
    DeltaTarget(open_store(url), config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    return url


def rows(url: str, *columns: str, **asked: Any) -> list[dict[str, Any]]:
    found = alluvium.open(url, **asked).to_arrow(columns=list(columns) or None).to_pylist()
    return sorted(found, key=lambda row: repr(list(row.values())))


def adds(url: str) -> list[dict[str, Any]]:
    files = load_snapshot(open_store(url)).files
    return [{**add, "stats": msgspec.json.decode(add["stats"])} for add in files.to_pylist()]


def refused(act: Any) -> AlluviumError:
    with pytest.raises(AlluviumError) as caught:
        act()
    return caught.value


class TestModes:
    def test_create_append_overwrite_ignore(self, url: str) -> None:
        assert alluvium.write(FLIGHTS, url, partition_by="month").version == 0
        done = alluvium.write(FLIGHTS.slice(0, 1), url, mode="append")
        assert (done.version, done.attempts, done.files.num_rows) == (1, 1, 1)
        assert done.metrics["numOutputRows"] == "1"
        assert len(rows(url)) == 4
        assert alluvium.write(FLIGHTS, url, mode="ignore").attempts == 0
        assert refused(lambda: alluvium.write(FLIGHTS, url)).code == "table-exists"
        assert alluvium.write(FLIGHTS.slice(2, 1), url, mode="overwrite").version == 2
        assert rows(url) == [{"carrier": "UA", "month": 2, "delay": -5}]
        assert len(rows(url, version=1)) == 4
        told = [(c["operation"], c["operationParameters"]) for c in alluvium.open(url).history()]
        assert told[-1] == ("WRITE", {"mode": "ErrorIfExists", "partitionBy": '["month"]'})
        assert alluvium.open(url).history()[0]["engineInfo"].startswith("Alluvium/")

    def test_parts_are_replaced(self, url: str) -> None:
        alluvium.write(FLIGHTS, url, partition_by="month")
        new = FLIGHTS.slice(0, 1)
        alluvium.write(new, url, mode="overwrite", replaceWhere="month = 1")
        assert [(r["month"], r["delay"]) for r in rows(url)] == [(1, 11), (2, -5)]
        alluvium.write(new, url, mode="overwrite", partitionOverwriteMode="dynamic")
        assert [(r["month"], r["delay"]) for r in rows(url)] == [(1, 11), (2, -5)]
        outside = refused(lambda: alluvium.write(new, url, mode="overwrite", replaceWhere="month = 2"))
        assert (outside.code, alluvium.open(url).version) == ("constraint-violated", 2)
        unknown = refused(lambda: alluvium.write(new, url, mode="overwrite", replaceWhere="some_function(month) = 1"))
        assert unknown.code == "needs-spark"
        assert refused(lambda: alluvium.write(new, url, mode="overwrite", replaceUsing="month")).code == "needs-spark"
        assert len(rows(url)) == 2

    @pytest.mark.parametrize(
        "properties", [{}, {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}]
    )
    def test_rows_are_replaced(self, url: str, properties: dict[str, str]) -> None:
        alluvium.write(FLIGHTS, url, **properties)
        new = pa.table({"carrier": ["B6", "B6"], "month": pa.array([7, 7], pa.int32()), "delay": [12, 50]})
        done = alluvium.write(new.to_reader(1), url, mode="overwrite", replaceWhere="delay > 10")
        assert (done.metrics["numDeletedRows"], done.metrics["numCopiedRows"], done.metrics["numOutputRows"]) == (
            "1",
            "2",
            "4",
        )
        assert [r["delay"] for r in rows(url)] == [12, 50, None, -5]
        outside = refused(
            lambda: alluvium.write(FLIGHTS, url, mode="overwrite", replaceWhere="delay > 10 or month = 2")
        )
        assert (outside.code, alluvium.open(url).version) == ("constraint-violated", 1)
        alluvium.write(new.slice(0, 0), url, mode="overwrite", replaceWhere="delay > 1000")
        assert (alluvium.open(url).version, len(rows(url))) == (1, 4)
        alluvium.write(new.slice(0, 0), url, mode="overwrite", replaceWhere="delay > 11")
        assert [r["delay"] for r in rows(url)] == [None, -5]
        if properties:
            told = alluvium.open(url).changes(1, 1).to_pylist()
            assert sorted((c["_change_type"], c["delay"]) for c in told) == [
                ("delete", 11),
                ("insert", 12),
                ("insert", 50),
            ]

    def test_columns_come_and_go(self, url: str) -> None:
        alluvium.write(FLIGHTS, url)
        more = FLIGHTS.append_column("late", pa.array([True, None, False]))
        assert refused(lambda: alluvium.write(more, url, mode="append")).code == "schema-mismatch"
        alluvium.write(more, url, mode="append", mergeSchema=True)
        assert sum(r["late"] is None for r in rows(url)) == 4
        alluvium.write(FLIGHTS.select(["delay"]), url, mode="overwrite", overwriteSchema=True)
        assert rows(url) == [{"delay": -5}, {"delay": 11}, {"delay": None}]

    def test_a_batch_of_an_application_counts_once(self, url: str) -> None:
        for _ in range(2):
            alluvium.write(FLIGHTS, url, mode="append", txnAppId="job", txnVersion=7)
        assert (len(rows(url)), alluvium.open(url).txns) == (3, {"job": 7})

    def test_no_rows(self, url: str) -> None:
        assert alluvium.write(FLIGHTS.slice(0, 0), url, partition_by="month").version == 0
        assert alluvium.write(FLIGHTS.slice(0, 0), url, mode="append").attempts == 0
        assert (rows(url), adds(url)) == ([], [])

    def test_paimon_tables_are_refused(self, url: str) -> None:
        assert refused(lambda: alluvium.write(FLIGHTS, url, format="paimon")).code == "needs-spark"


class TestData:
    def test_of_everybody(self, url: str) -> None:
        frame = pd.DataFrame({"carrier": ["UA"], "month": np.array([1], "int32"), "delay": [4]}, index=["x"])
        batch = FLIGHTS.to_batches()[0]
        reader = pa.RecordBatchReader.from_batches(batch.schema, iter([batch, batch]))
        stream = type("Frame", (), {"__arrow_c_stream__": FLIGHTS.__arrow_c_stream__})()
        for data, count in ((FLIGHTS, 3), (frame, 4), (batch, 7), (reader, 13), (stream, 16)):
            alluvium.write(data, url, mode="append")
            assert len(rows(url)) == count
        assert alluvium.open(url).schema.to_arrow().names == ["carrier", "month", "delay"]
        for data in ([{"carrier": "UA"}], "UA", 7, None):
            assert refused(lambda d=data: alluvium.write(d, url, mode="append")).code == "not-rows"
        mixed = pd.DataFrame({"delay": [1, "x"]})
        assert refused(lambda: alluvium.write(mixed, url, mode="append")).code == "invalid-data"
        twice = pd.DataFrame([["UA", "DL"]], columns=["carrier", "carrier"])
        assert refused(lambda: alluvium.write(twice, url, mode="append")).code == "duplicate-column"

    def test_of_another_table(self, url: str) -> None:
        alluvium.write(FLIGHTS, url, partition_by="month")
        alluvium.write(alluvium.open(url), f"{url}2")
        assert rows(f"{url}2") == rows(url)
        scanner = alluvium.open(url).scanner(["delay"], "month = 2")
        assert scanner.to_table().to_pylist() == [{"delay": -5}]
        assert alluvium.open(url).scanner(where="delay is null").count_rows() == 1

    def test_every_type(self, url: str) -> None:
        ddl = (
            "b tinyint, s smallint, i int, l bigint, f float, d double, n decimal(38,10), t string, x binary, o boolean, "
            "da date, ts timestamp, tn timestamp_ntz, a array<struct<k: string, v: array<int>>>, m map<string, double>, "
            "r struct<`a.b`: int, `ü`: struct<z: date>>"
        )
        made(url, ddl)
        values = {
            "b": -128, "s": 32767, "i": -(2**31), "l": 2**63 - 1, "f": 1.5, "d": math.inf, "t": "ü\0", "x": b"\xff\0",
            "n": decimal.Decimal("1234567890123456789012345678.0123456789"), "o": True, "da": dt.date(1, 1, 1),
            "ts": dt.datetime(1883, 11, 18, 12, 3, 57, 999999, UTC), "tn": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
            "a": [{"k": "x", "v": [1, None]}, None, {"k": None, "v": None}], "m": [("a", 1.0), ("b", None)],
            "r": {"a.b": 1, "ü": {"z": dt.date(9999, 12, 31)}},
        }  # fmt: skip
        schema = alluvium.open(url).schema.to_arrow()
        data = pa.Table.from_pylist([values, dict.fromkeys(values)], schema)
        alluvium.write(data.select(data.column_names[::-1]), url, mode="append")
        assert alluvium.open(url).to_arrow().to_pylist() == data.to_pylist()
        stats = adds(url)[0]["stats"]
        assert stats["numRecords"] == 2
        assert stats["nullCount"]["r"] == {"a.b": 1, "ü": {"z": 1}}
        assert (stats["minValues"]["l"], stats["maxValues"]["b"]) == (2**63 - 1, -128)

    def test_not_a_number_has_no_bounds(self, url: str) -> None:
        """Arrow's bounds pass NaN over, and it is the greatest number to all readers: they would skip the file."""
        data = pa.table({"x": [1.0, math.nan], "y": [1.0, 2.0], "r": [{"z": math.nan}, {"z": 0.0}]})
        alluvium.write(data, url)
        stats = adds(url)[0]["stats"]
        assert (stats["minValues"], stats["maxValues"]) == ({"y": 1.0}, {"y": 2.0})
        assert stats["nullCount"] == {"x": 0, "y": 0, "r": {"z": 0}}
        footer = pq.read_metadata(pa.BufferReader(open_store(url).get(adds(url)[0]["path"]))).row_group(0)
        assert [footer.column(n).statistics for n in range(3)] == [None] * 3
        alluvium.write(pa.table({"x": [None, -0.0], "y": [5.0, 3.0]}), url, mode="append", maxRecordsPerFile=0)
        assert sorted(repr(add["stats"]["maxValues"]) for add in adds(url)) == ["{'x': 0.0, 'y': 5.0}", "{'y': 2.0}"]
        assert alluvium.open(url).to_arrow(where="x > 5").num_rows == 1
        assert alluvium.open(url).to_arrow(where="r.z > 5").num_rows == 1

    def test_partitions_of_every_type(self, url: str) -> None:
        columns = {
            "i": pa.array([1, 1, None, -1]),
            "t": pa.array(["a=/%ü", "", None, " "]),
            "d": pa.array([dt.date(1, 1, 1), dt.date(1969, 12, 31), None, dt.date(9999, 12, 31)]),
            "ts": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None, None, dt.datetime(2024, 1, 1, tzinfo=UTC)]),
            "tn": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1), None, None, dt.datetime(1, 1, 1)]),
            "n": pa.array([decimal.Decimal("1.50"), None, None, decimal.Decimal("-0.01")]),
            "x": pa.array([1e30, math.nan, None, -0.0]),
            "o": pa.array([True, False, None, True]),
        }  # fmt: skip
        data = pa.table({"row": [0, 1, 2, 3], **columns})
        alluvium.write(data, url, partition_by=list(columns))
        expected = data.to_pylist()
        expected[1]["t"] = None  # "The empty string [...] translates to null"
        found = sorted(alluvium.open(url).to_arrow().to_pylist(), key=lambda row: row["row"])
        assert repr(found) == repr(expected)
        assert len(adds(url)) == 4
        assert alluvium.open(url).files("i = -1").num_rows == 1

    @pytest.mark.long
    def test_files_have_a_size(self, url: str) -> None:
        data = pa.table({"n": range(10), "p": [0, 1] * 5})
        alluvium.write(data, url, maxRecordsPerFile=2, partition_by="p")
        assert sorted(add["stats"]["numRecords"] for add in adds(url)) == [1, 1, 2, 2, 2, 2]
        alluvium.write(pa.table({"n": np.random.default_rng(1).permutation(500_000), "p": [7] * 500_000}).to_reader(10_000),
                       url, mode="append", **{"delta.targetFileSize": "1mb"})  # fmt: skip
        assert len(adds(url)) == 7  # a property of an existing table stays what it is
        small = f"{url}2"
        alluvium.write(
            pa.table({"n": np.random.default_rng(1).permutation(500_000)}).to_reader(10_000),
            small,
            **{"delta.targetFileSize": "1mb"},
        )
        assert len(adds(small)) == 4
        assert alluvium.open(small).to_arrow().num_rows == 500_000

    @pytest.mark.long
    def test_few_row_groups_of_many_batches(self, url: str) -> None:
        data = pa.table({"n": range(20_000), "p": [n % 50 for n in range(20_000)]})
        alluvium.write(data.to_reader(100), url, partition_by="p")
        store, paths = open_store(url), [add["path"] for add in adds(url)]
        groups = {pq.read_metadata(pa.BufferReader(store.get(path))).num_row_groups for path in paths}
        assert (len(paths), groups) == (50, {1})
        assert alluvium.open(url).to_arrow().num_rows == 20_000

    @pytest.mark.parametrize("codec", ["none", "uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"])
    def test_codecs(self, url: str, codec: str) -> None:
        alluvium.write(FLIGHTS, url, compression=codec)
        assert len(rows(url)) == 3
        (add,) = adds(url)
        found = pq.read_metadata(pa.BufferReader(open_store(url).get(add["path"]))).row_group(0).column(0).compression
        assert found == {"none": "UNCOMPRESSED", "uncompressed": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(
            codec, codec.upper()
        )

    def test_unknown_options(self, url: str) -> None:
        assert refused(lambda: alluvium.write(FLIGHTS, url, compression="zip")).code == "invalid-option"
        level = {"parquet.compression.codec.zstd.level": "high"}
        assert refused(lambda: alluvium.write(FLIGHTS, url, compression="zstd", **level)).code == "invalid-option"
        assert refused(lambda: alluvium.write(FLIGHTS, url, partitionby="month")).code == "unknown-option"
        assert refused(lambda: alluvium.write(FLIGHTS, url, mode="upsert")).code == "unknown-mode"
        assert refused(lambda: alluvium.write(FLIGHTS, url, format="hudi")).code == "unknown-format"
        assert refused(lambda: alluvium.open(url)).code == "not-a-table"

    def test_sorted_within_files(self, url: str) -> None:
        alluvium.write(pa.table({"n": [3, None, 1, 2]}).to_reader(2), url, sort_by="n")
        assert alluvium.open(url).to_arrow()["n"].to_pylist() == [None, 1, 2, 3]
        alluvium.write(pa.table({"n": [9, 8]}), url, mode="overwrite")
        assert alluvium.open(url).to_arrow()["n"].to_pylist() == [8, 9]


class TestTheTablesOwnRules:
    def test_constraints(self, url: str) -> None:
        made(
            url, "n int not null, r struct<k: int not null>", **{"delta.constraints.small": "n < 10 and n is not null"}
        )
        alluvium.write(pa.table({"n": [1], "r": [{"k": 1}]}), url, mode="append")
        broken = refused(lambda: alluvium.write(pa.table({"n": [1, 30, 20], "r": [{"k": 1}] * 3}), url, mode="append"))
        assert (broken.code, broken.column) == ("constraint-violated", "n")
        assert "n = 30" in str(broken) and "n = 20" in str(broken)
        for data in ({"n": [None], "r": [{"k": 1}]}, {"n": [1], "r": [{"k": None}]}, {"r": [{"k": 1}]}):
            bad = refused(lambda d=data: alluvium.write(pa.table(d), url, mode="append"))
            assert bad.code in ("not-null-violated", "constraint-violated"), data
        assert (alluvium.open(url).version, len(rows(url))) == (1, 1)
        assert [o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet")] == [adds(url)[0]["path"]]

    def test_what_only_spark_evaluates_is_refused(self, url: str) -> None:
        made(url, "t string", **{"delta.constraints.c": "soundex(t) <> ''"})
        error = refused(lambda: alluvium.write(pa.table({"t": ["x"]}), url, mode="append"))
        assert (error.code, alluvium.open(url).version) == ("needs-spark", 0)

    def test_generated_and_default_columns(self, url: str) -> None:
        says = {
            "day": {GENERATED: "cast(ts as date)"},
            "ym": {GENERATED: "year(ts) * 100 + month(ts)"},
            "w": {DEFAULT: "'it\\'s'"},
            "n": {DEFAULT: "7"},
        }
        ddl, defaults = "ts timestamp, day date, ym int, w string, n int", "delta.feature.allowColumnDefaults"
        made(url, ddl, ("day",), says, **{defaults: "supported"})
        at = dt.datetime(2024, 2, 29, 23, 59, tzinfo=UTC)
        alluvium.write(pa.table({"ts": [at, None]}), url, mode="append")
        assert rows(url) == [
            {"ts": None, "day": None, "ym": None, "w": "it's", "n": 7},
            {"ts": at, "day": dt.date(2024, 2, 29), "ym": 202402, "w": "it's", "n": 7},
        ]
        wrong = pa.table({"ts": [at], "day": [dt.date(2024, 3, 1)]})
        assert refused(lambda: alluvium.write(wrong, url, mode="append")).code == "generated-column-violated"
        right = pa.table({"ts": [at], "day": [dt.date(2024, 2, 29)], "w": [None], "n": pa.array([1], pa.int32())})
        alluvium.write(right, url, mode="append")
        assert len(rows(url)) == 3

    def test_numbers_of_identity_columns(self, url: str) -> None:
        made(url, "id bigint, n int", (), {"id": {START: 10, STEP: -3, ALLOW_EXPLICIT_INSERT: False}})
        for start in (0, 2):
            data = pa.table({"n": pa.array([start, start + 1], pa.int32())})
            alluvium.write(data.to_reader(1), url, mode="append")
        assert sorted(r["id"] for r in rows(url)) == [1, 4, 7, 10]
        given = pa.table({"id": [1], "n": pa.array([1], pa.int32())})
        assert refused(lambda: alluvium.write(given, url, mode="append")).code == "numbers-given"

    def test_lengths_of_texts(self, url: str) -> None:
        made(url, "c string, v string", (), {"c": {CHAR_VARCHAR: "char(3)"}, "v": {CHAR_VARCHAR: "varchar(2)"}})
        alluvium.write(pa.table({"c": ["a"], "v": ["äö"]}), url, mode="append")
        assert rows(url) == [{"c": "a  ", "v": "äö"}]
        assert refused(lambda: alluvium.write(pa.table({"v": ["abc"]}), url, mode="append")).code == "text-too-long"

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_mapped_columns(self, url: str, mode: str) -> None:
        made(url, "a int, r struct<b: array<struct<c: int>>>, p string", ("p",), **{"delta.columnMapping.mode": mode})
        data = pa.table({
            "a": pa.array([1], pa.int32()),
            "r": pa.array([{"b": [{"c": 2}]}], pa.struct([("b", pa.list_(pa.struct([("c", pa.int32())])))])),
            "p": ["x"],
        })  # fmt: skip
        alluvium.write(data, url, mode="append")
        assert rows(url) == data.to_pylist()
        (add,) = adds(url)
        assert "a" not in add["stats"]["minValues"] and next(iter(add["stats"]["minValues"].values())) == 1
        alluvium.alter(url).rename_column("a", "renamed")
        assert rows(url, "renamed") == [{"renamed": 1}]
        stored = pq.read_schema(pa.BufferReader(open_store(url).get(add["path"])))
        assert {f.metadata[b"PARQUET:field_id"] for f in stored} == {b"1", b"2"}

    def test_rows_keep_their_identities(self, url: str) -> None:
        made(url, "n bigint", **{"delta.enableRowTracking": "true"})
        for n in range(3):
            alluvium.write(pa.table({"n": [n, n + 10]}), url, mode="append")
        found = alluvium.open(url).to_arrow(columns=["*", "_row_id"]).to_pylist()
        assert sorted(row["_row_id"] for row in found) == list(range(6))

    def test_change_feed(self, url: str) -> None:
        made(url, "n bigint", **{"delta.enableChangeDataFeed": "true"})
        alluvium.write(pa.table({"n": [1]}), url, mode="append")
        alluvium.write(pa.table({"n": [2]}), url, mode="overwrite")
        told = alluvium.open(url).changes(1).to_pylist()
        kinds = [(c["_commit_version"], c["_change_type"], c["n"]) for c in told]
        assert sorted(kinds) == [(1, "insert", 1), (2, "delete", 1), (2, "insert", 2)]

    def test_variants_are_refused_or_left_out(self, url: str) -> None:
        made(url, "n bigint, v variant")
        alluvium.write(pa.table({"n": [1]}), url, mode="append")
        assert rows(url, "n") == [{"n": 1}]
        assert alluvium.open(url).to_arrow()["v"].to_pylist() == [None]

    def test_append_only(self, url: str) -> None:
        made(url, "n bigint", **{"delta.appendOnly": "true"})
        alluvium.write(pa.table({"n": [1]}), url, mode="append")
        assert refused(lambda: alluvium.write(pa.table({"n": [2]}), url, mode="overwrite")).code == "append-only"


class TestNothingIsLeft:
    def test_of_data_that_ends_in_an_error(self, url: str) -> None:
        alluvium.write(FLIGHTS, url)
        before = {o.path for o in open_store(url).list_tree("")}

        def batches() -> Iterator[pa.RecordBatch]:
            yield from FLIGHTS.to_batches()
            raise RuntimeError("the source is gone")

        reader = pa.RecordBatchReader.from_batches(FLIGHTS.schema, batches())
        with pytest.raises(Exception, match="the source is gone"):
            alluvium.write(reader, url, mode="append", maxRecordsPerFile=1)
        assert {o.path for o in open_store(url).list_tree("")} == before

    def test_of_a_commit_that_lost(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        alluvium.write(FLIGHTS, url, partition_by="month")
        commit = DeltaTarget.commit

        def late(self: DeltaTarget, changes: Any) -> Any:
            monkeypatch.undo()
            alluvium.write(FLIGHTS.slice(0, 1), url, mode="append")
            return commit(self, changes)

        monkeypatch.setattr(DeltaTarget, "commit", late)
        with pytest.raises(CommitConflict):
            alluvium.write(FLIGHTS.slice(1, 1), url, mode="overwrite", replaceWhere="month = 1")
        live = {add["path"] for add in adds(url)}
        assert {o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet")} == live
        assert len(rows(url)) == 4

    @pytest.mark.parametrize("when", When)
    def test_of_requests_that_fail(self, url: str, monkeypatch: pytest.MonkeyPatch, when: When) -> None:
        """Whatever request fails, the table has all rows of the write or none of them."""
        alluvium.write(FLIGHTS, url, partition_by="month")
        at = 0
        while True:
            at += 1
            faulty, before = FaultyStore(open_store(url), Fault(at, when)), len(rows(url))
            monkeypatch.setattr("alluvium.api.writer.open_store", lambda *_, faulty=faulty: faulty)
            try:
                alluvium.write(FLIGHTS, url, mode="append")
                expected = {before + 3}
            except CommitUnknown:
                expected = {before, before + 3}
            except AlluviumError:
                expected = {before}
            monkeypatch.undo()
            assert len(rows(url)) in expected
            if not faulty.failed:
                break
        assert at > 5


@pytest.mark.long
def test_no_jvm_and_no_pyspark() -> None:
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import pyarrow as pa, alluvium\n"
        "alluvium.write(pa.table({'n': [1]}), 'memory://x/t')\n"
        "assert alluvium.open('memory://x/t').to_arrow().num_rows == 1\n"
        "assert not any(name.startswith('py4j') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
