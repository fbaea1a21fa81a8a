"""The rules that a schema must keep, as a table: for each what breaks it, and what stands right beside that."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.checks import check_schema, ensure_valid

FIELDS: dict[str, Any] = {
    "k": "INT NOT NULL", "v": "INT", "w": "BIGINT", "day": "STRING", "ts": "TIMESTAMP(3)", "arr": {"type": "ARRAY", "element": "INT"},
    "m": {"type": "MAP", "key": "STRING", "value": "INT"}, "r": "DATE",
}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """A `CheckedSchema` that nobody has checked."""

    options: Mapping[str, str] = field(default_factory=dict)
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    types: Mapping[str, Any] = field(default_factory=lambda: FIELDS)
    version: int = 3

    @property
    def fields(self) -> tuple[DataField, ...]:
        return tuple(DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(self.types.items()))

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        named = self.options.get("bucket-key")
        return tuple(named.split(",")) if named else tuple(k for k in self.primary_keys if k not in self.partition_keys)

    @property
    def crosses_partitions(self) -> bool:
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    def find(self, name: str) -> DataField | None:
        return next((f for f in self.fields if f.name == name), None)


def appended(**options: str) -> Given:
    return Given(options)


def keyed(
    options: Mapping[str, str] | None = None, partitions: tuple[str, ...] = (), keys: tuple[str, ...] = ("k",)
) -> Given:
    return Given({"bucket": "1", **(options or {})}, keys, partitions)


OPTION, KEY, BUCKET, NAME, FORMAT = (
    "invalid-table-option", "invalid-key", "invalid-bucket", "invalid-column-name", "unsupported-by-format",
)  # fmt: skip
PARTIAL = {"merge-engine": "partial-update"}
SUMS = {"merge-engine": "aggregation"}
LOOKUP, FULL = {"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"}
VECTORS = {"deletion-vectors.enabled": "true"}
TRACKED = {"row-tracking.enabled": "true"}
EVOLVING = {**TRACKED, "data-evolution.enabled": "true"}
INCREMENTAL = {"clustering.incremental": "true", "clustering.columns": "v"}
CLUSTERED = {"pk-clustering-override": "true", "clustering.columns": "v", **VECTORS}
CHAIN = {
    "chain-table.enabled": "true", "sequence.field": "v", "partition.timestamp-pattern": "$day",
    "partition.timestamp-formatter": "yyyy",
}  # fmt: skip
BLOBS = {"k": "INT", "x": "BLOB"}


def without(options: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != name}


#: Schemas with the code and the column of each rule that they break.
CASES: list[tuple[Given, list[tuple[str, str | None]]]] = [
    (appended(), []),
    (keyed(), []),
    # keys
    (keyed(keys=("x",)), [(KEY, "x")]),
    (keyed(keys=("arr",)), [(KEY, "arr"), (BUCKET, "arr")]),
    (keyed(keys=("k", "m"), partitions=("k",)), [(KEY, "m"), (BUCKET, "m")]),
    (Given({}, (), ("x",)), [(KEY, "x")]),
    (Given({}, (), ("arr",)), [(KEY, "arr")]),
    (appended(**{"upsert-key": "k"}), []),
    (appended(**{"upsert-key": "x"}), [(KEY, "x")]),
    (keyed({"upsert-key": "k"}), [(KEY, None)]),
    # buckets
    (appended(bucket="0"), [(BUCKET, None)]),
    (appended(bucket="-2"), [(BUCKET, None)]),
    (keyed({"bucket": "-2"}), []),
    (keyed({"bucket": "-3"}), [(BUCKET, None)]),
    (keyed({"bucket": "0"}), [(BUCKET, None)]),
    (keyed({"bucket": "-1"}), []),
    (keyed({"bucket": "-1", "bucket-key": "k"}), [(BUCKET, None)]),
    (appended(**{"bucket-key": "k"}), [(BUCKET, None)]),
    (appended(bucket="1"), [(BUCKET, None)]),
    (appended(bucket="2", **{"bucket-key": "k"}), []),
    (appended(bucket="2", **{"bucket-key": "arr"}), [(BUCKET, "arr")]),
    (Given({"bucket": "1"}, version=1), []),
    (Given({"bucket": "2"}, version=1), [(BUCKET, None)]),
    (Given({"bucket": "1"}, version=2), [(BUCKET, None)]),
    (appended(**{"full-compaction.delta-commits": "1"}), [(OPTION, None)]),
    (keyed({"bucket": "-1", "full-compaction.delta-commits": "1"}), []),
    (appended(bucket="1", **{"bucket-key": "k", "full-compaction.delta-commits": "1"}), []),
    # reads
    (appended(**{"scan.snapshot-id": "1"}), []),
    (appended(**{"scan.mode": "from-snapshot", "scan.tag-name": "t"}), []),
    (appended(**{"scan.mode": "from-snapshot"}), [(OPTION, None)]),
    (appended(**{"scan.mode": "from-snapshot", "scan.snapshot-id": "1", "scan.tag-name": "t"}), [(OPTION, None)]),
    (appended(**{"scan.mode": "from-snapshot-full", "scan.tag-name": "t"}), [(OPTION, None), (OPTION, None)]),
    (appended(**{"scan.mode": "latest", "scan.snapshot-id": "1"}), [(OPTION, None)]),
    (appended(**{"scan.mode": "latest", "scan.watermark": "1"}), []),
    (appended(**{"scan.mode": "from-timestamp", "scan.timestamp-millis": "1"}), []),
    (appended(**{"scan.timestamp-millis": "1", "scan.snapshot-id": "1"}), [(OPTION, None)]),
    (appended(**{"incremental-between": "1,2"}), []),
    (appended(**{"scan.file-creation-time-millis": "7"}), []),
    # fields.*
    (keyed({**SUMS, "fields.v.aggregate-function": "sum"}), []),
    (keyed({**SUMS, "fields.x.aggregate-function": "sum"}), [(OPTION, "x")]),
    (keyed({**PARTIAL, "fields.v,x.sequence-group": "w"}), [(OPTION, "x"), (OPTION, "x")]),
    (keyed({**SUMS, "fields.default-aggregate-function": "sum"}), []),
    (keyed({"field.x.y": "1", "fields": "1"}), []),
    # sequence fields
    (keyed({"sequence.field": "v"}), []),
    (keyed({"sequence.field": "v,x"}), [(OPTION, "x")]),
    (keyed({"sequence.field": "v,w,v"}), [(OPTION, "v")]),
    (keyed({**SUMS, "sequence.field": "v", "fields.v.aggregate-function": "max"}), [(OPTION, "v")]),
    (keyed({"sequence.field": "v", "merge-engine": "first-row"}), [(OPTION, None)]),
    (keyed({"sequence.field": "v", "bucket": "-1"}, ("day",)), [(OPTION, None)]),
    (keyed({"sequence.field": "v"}, ("day",), ("k", "day")), []),
    # sequence groups
    (keyed({**PARTIAL, "fields.v.sequence-group": "w,r"}), []),
    (keyed({**PARTIAL, "fields.v.sequence-group": "w,x"}), [(OPTION, "x")]),
    (keyed({**PARTIAL, "fields.v.sequence-group": "w", "fields.ts.sequence-group": "w"}), [(OPTION, "w")]),
    (keyed({"fields.v.sequence-group": "w,x"}), []),
    (keyed({**PARTIAL, "ignore-delete": "true", "partial-update.remove-record-on-delete": "true"}), [(OPTION, None)]),
    (keyed({**PARTIAL, "ignore-delete": "true"}), []),
    (
        keyed({**PARTIAL, "fields.v.sequence-group": "w", "ignore-delete": "true",
               "partial-update.remove-record-on-sequence-group": "v"}),
        [(OPTION, None)],
    ),
    (keyed({**PARTIAL, "fields.v.sequence-group": "w", "partial-update.remove-record-on-sequence-group": "v"}), []),
    (keyed({**PARTIAL, "fields.v.sequence-group": "w", "partial-update.remove-record-on-sequence-group": "w"}), [(OPTION, "w")]),
    (keyed({**PARTIAL, "fields.v.sequence-group": "w", "partial-update.remove-record-on-delete": "true"}), [(OPTION, None)]),
    (keyed({**PARTIAL, "partial-update.remove-record-on-delete": "true"}), []),
    # aggregators
    (keyed({**SUMS, "fields.v.aggregate-function": "summ"}), [(OPTION, "v")]),
    (keyed({"fields.v.aggregate-function": "summ"}), []),
    (keyed({**PARTIAL, "fields.v.aggregate-function": "sum"}), [(OPTION, "v")]),
    (keyed({**PARTIAL, "fields.v.aggregate-function": "last_non_null_value"}), []),
    (keyed({**PARTIAL, "fields.v.aggregate-function": "sum", "fields.w.sequence-group": "v"}), []),
    (keyed({**SUMS, "fields.k.aggregate-function": "summ"}), []),
    (keyed({**PARTIAL, "fields.w.sequence-group": "v", "fields.w.aggregate-function": "summ"}), []),
    (keyed({**SUMS, "fields.default-aggregate-function": "summ"}), [(OPTION, n) for n in FIELDS if n != "k"]),
    # changelogs
    (appended(**LOOKUP), [(OPTION, None)]),
    (keyed(LOOKUP), []),
    (keyed({**LOOKUP, "streaming-read-overwrite": "true"}), [(OPTION, None)]),
    (keyed({**FULL, "streaming-read-overwrite": "true"}), [(OPTION, None)]),
    (keyed({"changelog-producer": "input", "streaming-read-overwrite": "true"}), []),
    (appended(**{"streaming-read-overwrite": "true"}), [(OPTION, None)]),
    (keyed({"merge-engine": "first-row", **LOOKUP}), []),
    (keyed({"merge-engine": "first-row"}), []),
    (keyed({"merge-engine": "first-row", "changelog-producer": "input"}), [(OPTION, None)]),
    (keyed({"table-read.sequence-number.enabled": "true"}), []),
    (appended(**{"table-read.sequence-number.enabled": "true"}), [(OPTION, None)]),
    # retention
    (appended(**{"snapshot.num-retained.min": "0"}), [(OPTION, None), (OPTION, None)]),
    (appended(**{"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "5"}), []),
    (appended(**{"snapshot.num-retained.min": "6", "snapshot.num-retained.max": "5"}), [(OPTION, None), (OPTION, None)]),
    (appended(**{"changelog.num-retained.min": "6", "changelog.num-retained.max": "5"}), [(OPTION, None)]),
    (appended(**{"changelog.num-retained.min": "0", "changelog.num-retained.max": "5"}), [(OPTION, None)]),
    (appended(**{"changelog.num-retained.min": "1", "changelog.num-retained.max": "1"}), []),
    (appended(**{"snapshot.num-retained.max": "20", "changelog.num-retained.min": "21"}), [(OPTION, None)]),
    (appended(**{"snapshot.num-retained.max": "20", "changelog.num-retained.min": "20"}), []),
    (appended(**{"partition.expiration-time": "1 d"}), [(OPTION, None)]),
    (Given({"partition.expiration-time": "1 d"}, (), ("day",)), []),
    # names and types
    (appended(**{"file.format": "xml"}), [(OPTION, None)]),
    (Given(types={"_LEVEL": "INT"}), [(NAME, "_LEVEL")]),
    (Given(types={"_KEY_a": "INT"}), [(NAME, "_KEY_a")]),
    (Given(types={"KEY_a": "INT", "level": "INT"}), []),
    (Given(types={"  ": "INT"}), [(NAME, "  ")]),
    (Given({"file.format": "avro"}, types={"t": "TIMESTAMP(6)", "u": "TIME(3)"}), []),
    (Given({"file.format": "avro"}, types={"t": "TIMESTAMP(7)"}), [(FORMAT, "t")]),
    (Given({"file.format": "avro"}, types={"t": {"type": "ARRAY", "element": "TIMESTAMP(9) WITH LOCAL TIME ZONE"}}), [(FORMAT, "t")]),
    (Given({"file.format": "avro"}, types={"t": "TIME(4)"}), [(FORMAT, "t")]),
    (Given({"file.format": "orc"}, types={"t": "TIMESTAMP(9)", "u": "TIME(9)"}), []),
    (Given({"file.format": "orc"}, types={"t": "VARIANT"}), [(FORMAT, "t")]),
    (Given({"file.format": "avro"}, types={"t": {"type": "ROW", "fields": [{"id": 9, "name": "a", "type": "VARIANT"}]}}), [(FORMAT, "t")]),
    (Given(types={"t": "VARIANT"}), []),
    # rows that expire
    (keyed({"record-level.time-field": "v"}), []),
    (keyed({"record-level.time-field": "w"}), []),
    (keyed({"record-level.time-field": "ts"}), []),
    (keyed({"record-level.time-field": "r"}), [(OPTION, "r")]),
    (keyed({"record-level.time-field": "x"}), [(OPTION, "x")]),
    (keyed({"rowkind.field": "day"}), []),
    (keyed({"rowkind.field": "x"}), [(OPTION, "x")]),
    # vectors
    (keyed({**VECTORS, **LOOKUP}), []),
    (keyed({**VECTORS, **FULL}), [(OPTION, None)]),
    (keyed({**VECTORS, "merge-engine": "first-row"}), [(OPTION, None)]),
    (keyed({**CLUSTERED, "merge-engine": "first-row"}), []),
    (appended(**{"vector-field": "v"}), [(OPTION, "v")]),
    (appended(**{"vector-field": "x"}), [(OPTION, "x")]),
    # row ids
    (appended(**TRACKED), []),
    (appended(bucket="2", **{"bucket-key": "k"}, **TRACKED), [(OPTION, None)]),
    (keyed({**TRACKED, "bucket": "-1"}), [(OPTION, None)]),
    (appended(**EVOLVING), []),
    (appended(**{"data-evolution.enabled": "true"}), [(OPTION, None)]),
    (appended(**EVOLVING, **VECTORS), [(OPTION, None)]),
    (appended(**EVOLVING, **INCREMENTAL), [(OPTION, None)]),
    (Given(EVOLVING, types=BLOBS), []),
    (Given(TRACKED, types=BLOBS), [(OPTION, "x")]),
    (Given(EVOLVING, types={"x": "BLOB"}), [(OPTION, "x")]),
    (Given(EVOLVING, (), ("x",), BLOBS), [(KEY, "x")]),
    (Given({**EVOLVING, "blob-descriptor-field": "x"}, types=BLOBS), []),
    (Given({**EVOLVING, "blob-descriptor-field": "k"}, types=BLOBS), [(OPTION, "k")]),
    # clustering
    (appended(**INCREMENTAL), []),
    (keyed({**INCREMENTAL, "bucket": "-1"}), [(OPTION, None)]),
    (appended(bucket="2", **{"bucket-key": "k"}, **INCREMENTAL), [(OPTION, None)]),
    (appended(bucket="2", **{"bucket-key": "k", "bucket-append-ordered": "false"}, **INCREMENTAL), []),
    (appended(bucket="2", **{"bucket-key": "k", "bucket-append-ordered": "false"}, **INCREMENTAL, **VECTORS), [(OPTION, None)]),
    (appended(**INCREMENTAL, **VECTORS), []),
    (keyed(CLUSTERED), []),
    (keyed(without(CLUSTERED, "clustering.columns")), [(OPTION, None)]),
    (keyed(without(CLUSTERED, "deletion-vectors.enabled")), [(OPTION, None)]),
    (keyed({**CLUSTERED, **PARTIAL}), [(OPTION, None)]),
    (keyed({**CLUSTERED, "changelog-producer": "input"}), []),
    (keyed({**CLUSTERED, **LOOKUP}), [(OPTION, None)]),
    (keyed({**CLUSTERED, "sequence.field": "v"}), [(OPTION, None)]),
    (keyed({**CLUSTERED, "record-level.expire-time": "1 d"}), [(OPTION, None)]),
    # chains
    (keyed(CHAIN, ("day",), ("k", "day")), []),
    *((keyed(without(CHAIN, name), ("day",), ("k", "day")), [(OPTION, None)]) for name in list(CHAIN)[1:]),
    (keyed(CHAIN), [(OPTION, None)]),
    (keyed({**CHAIN, "bucket": "-1"}, ("day",), ("k", "day")), [(OPTION, None)]),
    (keyed({**CHAIN, **LOOKUP}, ("day",), ("k", "day")), [(OPTION, None)]),
    (keyed({**CHAIN, "changelog-producer": "input"}, ("day",), ("k", "day")), []),
    (keyed({**CHAIN, **VECTORS}, ("day",), ("k", "day")), [(OPTION, None)]),
    # indexes
    (appended(**{"file-index.bloom-filter.columns": "v, m[a]"}), []),
    (appended(**{"file-index.bloom-filter.columns": "v,x"}), [(OPTION, "x")]),
    (appended(**{"file-index.bitmap.columns": "x[a]"}), [(OPTION, "x[a]")]),
    (appended(**{"file-index.bitmap.v.x": "y", "other.columns": "x"}), []),
]  # fmt: skip


def named(case: object) -> str:
    if isinstance(case, Given):
        return (
            ",".join([*case.primary_keys, *case.partition_keys, *(f"{k}={v}" for k, v in case.options.items())]) or "-"
        )
    return ""


@pytest.mark.parametrize(("schema", "broken"), CASES, ids=named)
def test_rules(schema: Given, broken: list[tuple[str, str | None]]) -> None:
    assert [(one.code, one.column) for one in check_schema(schema)] == broken
    if not broken:
        ensure_valid(schema)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_valid(schema)
    assert (caught.value.code, caught.value.column) == broken[0]
    # What it broke before is nobody's fault now, and what else it breaks is told.
    ensure_valid(schema, schema)
    with pytest.raises(InvalidRequest):
        ensure_valid(schema, Given())


def test_the_first_rule_that_is_newly_broken_is_told() -> None:
    before = keyed({"sequence.field": "x"})
    after = keyed({"sequence.field": "x", "rowkind.field": "y"})
    with pytest.raises(InvalidRequest) as caught:
        ensure_valid(after, before)
    assert caught.value.column == "y"
    unreadable = keyed({"bucket": "many"})
    with pytest.raises(InvalidRequest) as caught:
        ensure_valid(after, unreadable)
    assert caught.value.column == "x"


def test_values_that_are_none_of_their_options() -> None:
    with pytest.raises(InvalidRequest) as caught:
        ensure_valid(appended(**{"file.compression.zstd-level": "high"}))
    assert (caught.value.code, caught.value.column) == (OPTION, "file.compression.zstd-level")


MODES = {
    "from-timestamp": ("scan.timestamp-millis", "scan.timestamp"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "incremental": ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
}
POINTS = sorted({key for keys in MODES.values() for key in keys})


@pytest.mark.parametrize("mode", [None, "default", "latest", "latest-full", "full", *MODES])
def test_every_point_in_every_mode(mode: str | None) -> None:
    """A mode that needs a point takes one of its own and no other; watermarks stand beside any."""
    named = {} if mode is None else {"scan.mode": mode}
    wanted = MODES.get(mode or "")
    assert (list(check_schema(Given(named))) == []) == (wanted is None)
    for key in POINTS:
        found = list(check_schema(Given({**named, key: "1"})))
        if mode in (None, "default"):
            assert found == []
        elif wanted is None:
            assert (found == []) == (key == "scan.watermark")
        else:
            assert (found == []) == (key in wanted)
    for one, other in itertools.combinations(POINTS, 2):
        found = list(check_schema(Given({**named, one: "1", other: "2"})))
        if wanted is not None and "scan.watermark" not in (one, other):
            assert found != []
