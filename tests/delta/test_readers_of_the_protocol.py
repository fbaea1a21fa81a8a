"""Sentences of the protocol for readers that belong to no feature. See `docs/spec-coverage.md`."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_tables import FuzzTable, add, classic, column, commits_only, metadata, protocol, v2_checkpoint

import alluvium
from alluvium.api.delta.maintenance import check_table
from alluvium.errors import UnsupportedFeature

#: Names for writers only: of the specification's list, and of delta-spark 4.4 (`TableFeature.allSupportedFeaturesMap`,
#: measured), and drafts that tables have.
FOR_WRITERS = (
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "changeDataFeed", "identityColumns",
    "rowTracking", "domainMetadata", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "clustering", "inCommitTimestamp",
    "coordinatedCommits-preview", "materializePartitionColumns", "checkpointProtection", "icebergWriterCompatV1", "icebergWriterCompatV3",
    "collations", "collations-preview", "liquid", "inCommitTimestamp-preview", "tomorrow",
)  # fmt: skip
#: Names for readers that nobody here implements, of delta-spark 4.4.
FOR_OTHER_READERS = ("geospatial", "geospatial-dev", "adaptiveMetadata-preview", "catalogManaged", "tomorrow")


def write(table: FuzzTable, root: Path) -> str:
    for path, data in table.files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return str(root)


def ids(root: str) -> list[int]:
    return sorted(alluvium.open(root).to_arrow()["id"].to_pylist())


def small(data: pa.Table | None = None, **parquet: object) -> FuzzTable:
    """A table of one file."""
    table = FuzzTable("small")
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}) if data is None else data, sink, **parquet)
    table.files["f.parquet"] = sink.getvalue()
    table.commit(0, protocol(), metadata([column("id", "long")]), add("f.parquet", len(sink.getvalue())))
    return table


def with_protocol(table: FuzzTable, content: dict[str, object]) -> FuzzTable:
    lines = [json.loads(line) for line in table.files[table.log(0)].splitlines()]
    lines[1] = {"protocol": content}
    table.files[table.log(0)] = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return table


@pytest.mark.parametrize("name", FOR_WRITERS)
@pytest.mark.parametrize("reader", [1, 3])
def test_features_for_writers_do_not_hinder_readers(tmp_path: Path, name: str, reader: int) -> None:
    """ "to write a table, writers must implement and respect all features listed in `writerFeatures`": to read, not."""
    lists = {"writerFeatures": [name], **({"readerFeatures": []} if reader == 3 else {})}
    table = with_protocol(small(), {"minReaderVersion": reader, "minWriterVersion": 7, **lists})
    assert ids(write(table, tmp_path)) == [1, 2]


@pytest.mark.parametrize("name", FOR_OTHER_READERS)
def test_features_for_readers_that_are_not_implemented_are_named(tmp_path: Path, name: str) -> None:
    """ "to read a table, readers must implement and respect all features listed in `readerFeatures`" """
    content = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [name], "writerFeatures": [name]}
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.open(write(with_protocol(small(), content), tmp_path))
    assert caught.value.features == (name,)
    assert caught.value.hint is not None


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_codecs_and_page_formats_of_data_files(tmp_path: Path, codec: str, page: str) -> None:
    """ "Readers SHOULD support all codecs listed above"; "both DataPageV1 and DataPageV2 pages" """
    assert ids(write(small(compression=codec, data_page_version=page), tmp_path)) == [1, 2]


def test_the_column_of_change_types_in_data_files_is_disregarded(tmp_path: Path) -> None:
    """ "readers should disregard this column and only process columns defined within the table's schema" """
    table = small(pa.table({"_change_type": ["insert", None], "id": [1, 2]}))
    assert alluvium.open(write(table, tmp_path)).to_arrow().column_names == ["id"]


@pytest.mark.parametrize("folder", ["_staged_commits", "_commits"])
def test_staged_commits_are_not_interpreted(tmp_path: Path, folder: str) -> None:
    """ "Delta clients should not attempt to directly interpret the contents of that directory" """
    table = commits_only()
    name = "00000000000000000006.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    table.files[f"_delta_log/{folder}/{name}"] = table.files[table.log(0)]
    table.files[f"_delta_log/{name}"] = table.files[table.log(0)]
    assert alluvium.open(write(table, tmp_path)).version == 5


def test_version_checksums_may_be_missing_or_wrong(tmp_path: Path) -> None:
    """ "Readers MUST continue functioning if Version Checksum files are missing", and one that differs is surfaced."""
    table = commits_only()
    root = write(table, tmp_path)
    assert set(ids(root)) == table.ids
    (tmp_path / "_delta_log/00000000000000000005.crc").write_bytes(
        b'{"tableSizeBytes":1,"numFiles":99,"numMetadata":1,"numProtocol":1}'
    )
    assert set(ids(root)) == table.ids
    assert any(f.check == "checksum" and "99" in f.message for f in check_table(root))


def test_the_hint_is_checked_by_what_lies_there_not_by_its_checksum(tmp_path: Path) -> None:
    """ "Last checkpoint file readers are encouraged to validate the checksum": nothing is believed of the hint that the
    listing does not confirm, so that a wrong one costs time only."""
    table = classic()
    for number, hint in enumerate((b'{"version":3,"size":7,"checksum":"nonsense"}', b'{"version":2,"size":7}', b'{"version":3,"version":99,"size":1}', b"")):  # fmt: skip
        table.files["_delta_log/_last_checkpoint"] = hint
        assert set(ids(write(table, tmp_path / str(number)))) == table.ids


def test_time_travel_takes_no_checkpoint_that_is_newer(tmp_path: Path) -> None:
    """ "For time travel, the checkpoint used must not be newer than the time travel version." """
    table = classic()
    table.files.update({path: data for path, data in commits_only().files.items() if path not in table.files})
    assert alluvium.open(write(table, tmp_path), version=2).files().num_rows == 3


def test_an_empty_string_is_a_null_partition_value(tmp_path: Path) -> None:
    """ "An empty string for any type translates to a `null` partition value." """
    table = small(pa.table({"id": [1]}))
    line = metadata([column("id", "long"), column("p", "string")], ["p"])
    table.commit(0, protocol(), line, add("f.parquet", 1, {"p": ""}))
    assert alluvium.open(write(table, tmp_path)).to_arrow()["p"].to_pylist() == [None]


def test_a_table_that_was_moved_is_the_same_table(tmp_path: Path) -> None:
    """ "allows static tables to be copied or moved using standard filesystem tools" """
    table = v2_checkpoint("json")
    write(table, tmp_path / "a")
    shutil.move(tmp_path / "a", tmp_path / "b c%20d")
    assert set(ids(str(tmp_path / "b c%20d"))) == table.ids
