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


@pytest.mark.parametrize(
    ("feature", "since"),
    [
        ("columnMapping", "1.2"), ("deletionVectors", "2.3"), ("timestampNtz", "2.4"), ("v2Checkpoint", "3.0"),
        ("vacuumProtocolCheck", "3.3"), ("typeWidening", "4.0"), ("variantType", "4.0"),
    ],
)  # fmt: skip
def test_since_when_delta_spark_reads_a_feature(feature: str, since: str) -> None:
    """By its release notes; lists of features themselves came with 2.3."""
    reads, writes = who_reads(LEGACY, listed(readers=(feature,)))
    least = since if since > "2.3" else "2.3"
    assert reads.startswith(f"can be read by: delta-spark from {least} on")
    assert writes.startswith(f"can be written by: delta-spark from {least} on")
