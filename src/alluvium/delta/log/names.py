"""Names of the files in `_delta_log`: parsed and made. Pure.

Specification: "Delta Log Entries", "Checkpoints", "Last Checkpoint File".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = f"{LOG_DIRECTORY}/_sidecars"
LAST_CHECKPOINT_PATH = f"{LOG_DIRECTORY}/_last_checkpoint"

# Versions are signed 64-bit numbers; 20 digits can hold more than that.
MAX_VERSION = 2**63 - 1

# "Delta files [...] are named using the next available version number, zero-padded to 20 digits."
_NAME = re.compile(
    r"([0-9]{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<checksum>crc)"
    r"|(?P<end>[0-9]{20})\.compacted\.json"
    r"|checkpoint\.(?:parquet"
    r"|(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"
    r"|(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.(?P<format>json|parquet)))"
)


@dataclass(frozen=True, slots=True)
class CommitName:
    """`n.json`: the actions of one version."""

    version: int


@dataclass(frozen=True, slots=True)
class CheckpointName:
    """A checkpoint, or a part of one.

    Attributes:
        version: The version whose whole state it holds.
        part: Number of the fragment, from 1.
        parts: How many fragments there are; 1 for a single file.
        uuid: Set for checkpoints of the second kind (feature `v2Checkpoint`).
        file_format: `"parquet"`, or `"json"` for some of the second kind.
    """

    version: int
    part: int = 1
    parts: int = 1
    uuid: str | None = None
    file_format: str = "parquet"


@dataclass(frozen=True, slots=True)
class CompactedName:
    """`x.y.compacted.json`: the reconciled actions of the versions x to y."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChecksumName:
    """`n.crc`: figures to check the state of a version against."""

    version: int


LogName: TypeAlias = "CommitName | CheckpointName | CompactedName | ChecksumName"


def parse_name(name: str) -> LogName | None:
    """What a file of the log directory is by its name; None for litter, which every reader ignores.

    Args:
        name: The file's name without directory.
    """
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) > MAX_VERSION:
        return None
    version = int(match[1])
    if match["commit"]:
        return CommitName(version)
    if match["checksum"]:
        return ChecksumName(version)
    if match["end"]:
        end = int(match["end"])
        return CompactedName(version, end) if version <= end <= MAX_VERSION else None
    if match["part"]:
        part, parts = int(match["part"]), int(match["parts"])
        return CheckpointName(version, part, parts) if 1 <= part <= parts else None
    if match["uuid"]:
        return CheckpointName(version, uuid=match["uuid"], file_format=match["format"])
    return CheckpointName(version)


def version_prefix(version: int) -> str:
    """With what the names of a version's files begin; a listing from it misses nothing of that version or later."""
    return f"{version:020d}"


def commit_path(version: int) -> str:
    """Path of a commit, relative to the table's root."""
    return f"{LOG_DIRECTORY}/{version:020d}.json"


def checksum_path(version: int) -> str:
    """Path of a version's checksum file, relative to the table's root."""
    return f"{LOG_DIRECTORY}/{version:020d}.crc"


#: How the names of log compactions end.
COMPACTED_END = ".compacted.json"


def compacted_path(start: int, end: int) -> str:
    """Path of a log compaction, relative to the table's root."""
    return f"{LOG_DIRECTORY}/{start:020d}.{end:020d}{COMPACTED_END}"


def checkpoint_paths(version: int, parts: int | None = None) -> tuple[str, ...]:
    """Paths of a classic checkpoint, relative to the table's root.

    Args:
        version: The version that it holds.
        parts: Number of fragments of a multi-part checkpoint; None for a single file.
    """
    if parts is None:
        return (f"{LOG_DIRECTORY}/{version:020d}.checkpoint.parquet",)
    return tuple(
        f"{LOG_DIRECTORY}/{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet" for part in range(1, parts + 1)
    )


def uuid_checkpoint_path(version: int, uuid: str, file_format: str = "parquet") -> str:
    """Path of a checkpoint of the second kind, relative to the table's root."""
    return f"{LOG_DIRECTORY}/{version:020d}.checkpoint.{uuid}.{file_format}"
