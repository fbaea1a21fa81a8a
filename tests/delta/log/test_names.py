from __future__ import annotations

import pytest

from alluvium.delta.log.names import (
    CheckpointName,
    ChecksumName,
    CommitName,
    CompactedName,
    checkpoint_paths,
    checksum_path,
    commit_path,
    compacted_path,
    parse_name,
    uuid_checkpoint_path,
)

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (commit_path(0), CommitName(0)),
        (commit_path(2**63 - 1), CommitName(2**63 - 1)),
        (checksum_path(7), ChecksumName(7)),
        (compacted_path(4, 6), CompactedName(4, 6)),
        (checkpoint_paths(10)[0], CheckpointName(10)),
        (checkpoint_paths(10, 3)[1], CheckpointName(10, 2, 3)),
        (uuid_checkpoint_path(10, UUID), CheckpointName(10, uuid=UUID)),
        (uuid_checkpoint_path(10, UUID, "json"), CheckpointName(10, uuid=UUID, file_format="json")),
    ],
)
def test_what_is_made_is_parsed(path: str, name: object) -> None:
    directory, _, file_name = path.partition("/")
    assert directory == "_delta_log"
    assert parse_name(file_name) == name


def test_names_of_the_specification() -> None:
    assert commit_path(0) == "_delta_log/00000000000000000000.json"
    assert checkpoint_paths(10) == ("_delta_log/00000000000000000010.checkpoint.parquet",)
    assert checkpoint_paths(10, 3)[0] == "_delta_log/00000000000000000010.checkpoint.0000000001.0000000003.parquet"


@pytest.mark.parametrize(
    "litter",
    [
        "0.json",
        "0000000000000000001.json",
        "000000000000000000001.json",
        "00000000000000000001.JSON",
        "00000000000000000001.json.tmp",
        ".00000000000000000001.json.crc",
        "0x000000000000000000.checkpoint.parquet",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١.json",
        "99999999999999999999.json",
        f"00000000000000000001.{UUID}.json",
        "00000000000000000006.checkpoint",
        "00000000000000000006.checkpoint.parquet.tmp",
        "00000000000000000010.checkpoint.0000000004.0000000003.parquet",
        "00000000000000000010.checkpoint.0000000000.0000000003.parquet",
        "00000000000000000005.00000000000000000004.compacted.json",
        "00000000000000000001.json\n",
        "_last_checkpoint",
        "",
    ],
)
def test_litter(litter: str) -> None:
    assert parse_name(litter) is None
