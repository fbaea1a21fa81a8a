"""Who can still read a table after its protocol changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.commit.who_reads import who_reads
from alluvium.delta.features.registry import FEATURES
from alluvium.delta.terms.spec import Protocol
from alluvium.plan.changes import Preview
from alluvium.storage.open import open_store

LEGACY = Protocol(min_reader_version=1, min_writer_version=2)


def listed(*names: str, readers: tuple[str, ...] = ()) -> Protocol:
    return Protocol(
        min_reader_version=3 if readers else 1,
        min_writer_version=7,
        reader_features=readers or None,
        writer_features=(*names, *readers),
    )


def test_lines() -> None:
    assert who_reads(LEGACY, LEGACY) == ()
    assert who_reads(LEGACY, Protocol(min_reader_version=2, min_writer_version=5)) == (
        "can be read by: delta-spark from 1.2 on, DuckDB 1.5.5, deltalake 1.6.6 by queries alone; "
        "before: delta-spark from 0.7 on, DuckDB 1.5.5, deltalake 1.6.6",
        "can be written by: delta-spark from 2.0 on; before: delta-spark from 0.7 on",
    )
    reads, writes = who_reads(LEGACY, listed("rowTracking", "domainMetadata"))
    assert reads.endswith("deltalake 1.6.6, as before")
    assert writes.startswith("can be written by: delta-spark from 3.2 on;")
    reads, _ = who_reads(LEGACY, listed(readers=("typeWidening", "someday")))
    assert reads.startswith("can be read by: delta-spark from 4.0 on that know someday, DuckDB 1.5.5; before")


def test_a_dry_run_tells_it(tmp_path: Path) -> None:
    commit_rows(open_target(open_store(str(tmp_path))), [1])
    told = alluvium.alter(str(tmp_path)).upgrade_protocol(2, 5, dry_run=True)
    assert isinstance(told, Preview)
    assert "can be read by: delta-spark from 1.2 on" in str(told)
    assert alluvium.alter(str(tmp_path)).upgrade_protocol(1, 1, dry_run=True).notes == ()
    assert alluvium.open(str(tmp_path)).version == 0


def test_features_of_ours_are_known() -> None:
    names = {f.name for f in FEATURES if f.writable and f.readable}
    lines = who_reads(LEGACY, listed(*names))
    assert "that know" not in lines[1].replace("that know materializePartitionColumns", ""), lines


#: The release of delta-spark that came with each feature, by its release notes.
SINCE = {
    "appendOnly": "0.7", "invariants": "0.7", "checkConstraints": "0.8", "generatedColumns": "1.0", "columnMapping": "1.2",
    "changeDataFeed": "2.0", "deletionVectors": "2.3", "timestampNtz": "2.4", "v2Checkpoint": "3.0", "domainMetadata": "3.0",
    "icebergCompatV1": "3.0", "icebergCompatV2": "3.1", "clustering": "3.1", "allowColumnDefaults": "3.1", "rowTracking": "3.2",
    "typeWidening-preview": "3.2", "identityColumns": "3.3", "inCommitTimestamp": "3.3", "vacuumProtocolCheck": "3.3",
    "typeWidening": "4.0", "variantType": "4.0", "variantType-preview": "4.0", "variantShredding-preview": "4.0",
    "checkpointProtection": "4.0",
}  # fmt: skip


@pytest.mark.parametrize("feature", SINCE)
def test_since_when_delta_spark_reads_a_feature(feature: str) -> None:
    """Lists of features themselves came with 2.3."""
    reads, writes = who_reads(LEGACY, listed(readers=(feature,)))
    least = max(SINCE[feature], "2.3")
    assert reads.startswith(f"can be read by: delta-spark from {least} on,")
    assert writes.startswith(f"can be written by: delta-spark from {least} on")
    assert who_reads(LEGACY, listed(feature))[1].startswith(f"can be written by: delta-spark from {least} on")
    # Of several the latest counts.
    newest = max(SINCE[feature], SINCE["identityColumns"])
    assert who_reads(LEGACY, listed(feature, "identityColumns"))[1].startswith(
        f"can be written by: delta-spark from {newest} on"
    )


@pytest.mark.parametrize(
    ("reader", "writer", "read", "written"),
    [
        (1, 1, "0.7", "0.7"),
        (1, 3, "0.7", "0.8"),
        (1, 4, "0.7", "2.0"),
        (2, 5, "1.2", "2.0"),
        (2, 6, "1.2", "3.3"),
        (3, 7, "2.3", "2.3"),
    ],
)
def test_versions_before_there_were_lists(reader: int, writer: int, read: str, written: str) -> None:
    protocol = Protocol(min_reader_version=reader, min_writer_version=writer)
    before = listed(readers=("someday",))
    reads, writes = who_reads(before, protocol)
    assert f"delta-spark from {read} on," in reads.partition(";")[0] and f"delta-spark from {written} on;" in writes


@pytest.mark.parametrize("feature", [*SINCE, "someday"])
def test_what_others_read(feature: str) -> None:
    """As tests/interop/test_open_readers.py measures it."""
    reads = who_reads(LEGACY, listed(readers=(feature,)))[0].partition(";")[0]
    by_query = feature in ("columnMapping", "deletionVectors", "v2Checkpoint")
    not_at_all = feature in ("typeWidening", "typeWidening-preview", "vacuumProtocolCheck")
    assert (
        "DuckDB 1.5.5" in reads
        and ("deltalake" in reads) == (not not_at_all)
        and ("by queries alone" in reads) == by_query
    )
