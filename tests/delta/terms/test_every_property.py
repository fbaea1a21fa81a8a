"""Every property of a table: its name, texts that are its values, and texts that are none; and which exclude each other."""

from __future__ import annotations

import itertools

import pytest

from alluvium.delta.terms.properties import (
    RESERVED,
    TABLE_ATTRIBUTES,
    canonical_property,
    ensure_consistent,
    parse_boolean,
    parse_interval_ms,
    parse_properties,
    parse_settable,
    parse_size_bytes,
    settable_properties,
)
from alluvium.errors import InvalidRequest

FLAG = (["true", "FALSE", " True "], ["", "yes", "1", "truex"])
#: Python reads the last two as 10 and 3, and delta-spark could not open the table.
NO_NUMBERS = ["x", "1.5", "", "1_0", "\u0663"]
POSITIVE = (["1", str(2**31 - 1)], ["0", "-1", str(2**31), *NO_NUMBERS])
COUNT = (["0", str(2**63 - 1)], ["-1", str(2**63), *NO_NUMBERS])
INTERVAL = (
    ["interval 1 week", "7 days", "INTERVAL 2 HOURS 30 minutes", "0 seconds"],
    ["", "7", "interval", "1 month", "1 year", "-1 days", "1 day x"],
)
#: By name: the form, as good and bad texts.
EVERY = {
    **dict.fromkeys(
        ("delta.appendOnly", "delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct", "delta.enableExpiredLogCleanup",
         "delta.autoOptimize", "delta.autoOptimize.optimizeWrite", "delta.castIcebergTimeType",
         "delta.compatibility.symlinkFormatManifest.enabled", "delta.enableChangeDataFeed", "delta.enableDeletionVectors",
         "delta.enableFullRetentionRollback", "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3",
         "delta.enableInCommitTimestamps", "delta.enableMaterializePartitionColumnsFeature", "delta.enableRowTracking",
         "delta.enableTypeWidening", "delta.enableVariantShredding", "delta.randomizeFilePrefixes", "delta.rowTrackingSuspended"),
        FLAG,
    ),
    **dict.fromkeys(("delta.checkpointInterval", "delta.randomPrefixLength"), POSITIVE),
    **dict.fromkeys(
        ("delta.inCommitTimestampEnablementTimestamp", "delta.inCommitTimestampEnablementVersion",
         "delta.requireCheckpointProtectionBeforeVersion"), COUNT,
    ),
    **dict.fromkeys(
        ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration", "delta.setTransactionRetentionDuration",
         "delta.checkpointRetentionDuration", "delta.sampleRetentionDuration", "delta.dropFeatureTruncateHistory.retentionDuration"),
        INTERVAL,
    ),
    "delta.dataSkippingNumIndexedCols": (["-1", "0", "32"], ["-2", str(2**31), *NO_NUMBERS]),
    "delta.dataSkippingStatsColumns": (["a", "a,`b,c`", ""], []),
    "delta.checkpointPolicy": (["classic", " V2 "], ["v1", "", "v22"]),
    "delta.isolationLevel": (["Serializable", "writeserializable"], ["SnapshotIsolation", ""]),
    "delta.autoOptimize.autoCompact": (["true", "false", "Auto", "LEGACY"], ["", "on"]),
    "delta.columnMapping.mode": (["none", "NAME", "id"], ["", "names"]),
    "delta.parquet.compression.codec": (
        ["none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "ZSTD"], ["", "zip", "zstdx"]
    ),
    "delta.parquet.format.version": (["1.0.0", "2.12.0"], ["1.0", "2", ""]),
    "delta.targetFileSize": (["1", "128mb", "1 GB", "7k", "2tb", "5b"], ["0", "", "mb", "1.5mb", "1 pb", "-1"]),
    "delta.universalFormat.enabledFormats": (["hudi", "iceberg", "hudi,iceberg", ""], ["delta", "iceberg,x"]),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_values(name: str) -> None:
    good, bad = EVERY[name]
    for spelling in (name, name.lower(), name.upper().replace("DELTA.", "delta.")):
        assert canonical_property(spelling) == name
    for text in good:
        # Blanks are no part of what is stored: delta-spark could not open the table.
        assert settable_properties({name.upper(): text}) == {name: text.strip()}
    for text in bad:
        with pytest.raises(InvalidRequest) as caught:
            settable_properties({name: text})
        assert caught.value.code == "invalid-property"
        assert name in caught.value.message and repr(text) in caught.value.message
    with pytest.raises(InvalidRequest) as twice:
        settable_properties({name: good[0], name.upper(): good[0]})
    assert twice.value.code == "invalid-property"
    with pytest.raises(InvalidRequest) as unknown:
        canonical_property(f"{name}x")
    assert unknown.value.code == "unknown-property"


def test_names_that_are_not_for_users() -> None:
    assert sorted(RESERVED) == [
        "delta.columnMapping.maxColumnId",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    ]
    for name in RESERVED:
        with pytest.raises(InvalidRequest) as caught:
            settable_properties({name.lower(): "1"})
        assert caught.value.code == "reserved-property"
    assert sorted(TABLE_ATTRIBUTES) == ["comment", "external", "location", "owner", "provider"]


def test_other_names() -> None:
    assert (
        canonical_property("delta.constraints.MyRule")
        == canonical_property("DELTA.Constraints.myrule")
        == "delta.constraints.myrule"
    )
    assert settable_properties({"Own.Name": "x", "deltax": "y"}) == {"Own.Name": "x", "deltax": "y"}


def test_forms() -> None:
    assert parse_boolean(" TRUE ") is True and parse_boolean("false") is False
    sizes = {"1": 1, "1b": 1, "2 k": 2048, "3kb": 3072, "1m": 1 << 20, "1 GB": 1 << 30, "2TB": 2 << 40}
    assert {text: parse_size_bytes(text) for text in sizes} == sizes
    units = {
        "week": 604_800_000,
        "day": 86_400_000,
        "hour": 3_600_000,
        "minute": 60_000,
        "second": 1000,
        "millisecond": 1,
    }
    for (one, size), (other, more) in itertools.product(units.items(), repeat=2):
        assert parse_interval_ms(f"INTERVAL 3 {one}s  2 {other.upper()}") == 3 * size + 2 * more
    assert parse_interval_ms("1500 microseconds") == 1
    assert parse_interval_ms("2 days -1 hours") == 2 * 86_400_000 - 3_600_000
    assert parse_settable("delta.autoOptimize.autoCompact", "AUTO") == "auto"
    assert parse_settable("delta.universalFormat.enabledFormats", "hudi,iceberg") == ("hudi", "iceberg")
    found = parse_properties(
        {
            "DELTA.appendonly": "true",
            "delta.isolationLevel": "WRITESERIALIZABLE",
            "delta.checkpointPolicy": "V2",
            "x": "y",
        }
    )
    assert (found.append_only, found.isolation_level, found.checkpoint_policy) == (True, "WriteSerializable", "v2")


V1, V2, V3 = (f"delta.enableIcebergCompatV{n}" for n in (1, 2, 3))
FORMATS, VECTORS = "delta.universalFormat.enabledFormats", "delta.enableDeletionVectors"
MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
LOG, DELETED = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({LOG: "7 days"}, True),
        ({LOG: "6 days"}, False),
        ({DELETED: "30 days"}, True),
        ({DELETED: "31 days"}, False),
        ({LOG: "1 day", DELETED: "1 day"}, True),
        *(({one: "true"}, True) for one in (V1, V2, V3, VECTORS, MANIFESTS)),
        *(({one: "true", other: " TRUE "}, False) for one, other in itertools.combinations((V1, V2, V3), 2)),
        ({V1: "true", V2: "false"}, True),
        ({FORMATS: "iceberg"}, False),
        ({FORMATS: "hudi,iceberg", V1: "false"}, False),
        ({FORMATS: "hudi"}, True),
        *(({FORMATS: "iceberg", one: "true"}, True) for one in (V1, V2, V3)),
        *(({VECTORS: "true", one: "true"}, one == V3) for one in (V1, V2, V3)),
        *(({VECTORS: "false", one: "true"}, True) for one in (V1, V2, V3)),
        ({VECTORS: "true", MANIFESTS: "true"}, False),
        ({VECTORS: "true", MANIFESTS: "false"}, True),
        ({VECTORS: "false", MANIFESTS: "true"}, True),
    ],
)
def test_properties_that_exclude_each_other(given: dict[str, str], fits: bool) -> None:
    if fits:
        ensure_consistent(given)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_consistent(given)
    assert caught.value.code == "contradicting-properties"
