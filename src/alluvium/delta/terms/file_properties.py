"""Table properties that say how data files are to be written: where they lie, how large and how compressed they are.

They are looked at by writers alone: a value that makes no sense hinders nobody from reading.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass

from alluvium.delta.terms.properties import parse_settable
from alluvium.plan.write import TARGET_FILE_BYTES

OPTIMIZE_WRITE = "delta.autoOptimize.optimizeWrite"
#: The second is a name of old for all of its kind.
AUTO_COMPACT, AUTO_OPTIMIZE = "delta.autoOptimize.autoCompact", "delta.autoOptimize"
TARGET_FILE_SIZE = "delta.targetFileSize"
COMPRESSION_CODEC = "delta.parquet.compression.codec"
RANDOMIZE_PREFIXES, PREFIX_LENGTH = "delta.randomizeFilePrefixes", "delta.randomPrefixLength"

_ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a session says of data files, whatever table they are of; None: nothing.

    Attributes:
        optimize_write: As of `FileProperties`.
        bin_bytes: What comes together in a file, as rows are moved.
        most_tasks: Into so many tasks rows are moved at most.
    """

    optimize_write: bool | None = None
    bin_bytes: int | None = None
    most_tasks: int | None = None


NO_LAYOUT = FileLayout()


@dataclass(frozen=True, slots=True)
class FileProperties:
    """How a table wants its data files.

    Attributes:
        optimize_write: `delta.autoOptimize.optimizeWrite`: rows are rearranged before they are written, so that few
            files of about the target size come of them.
        target_file_bytes: `delta.targetFileSize`.
        codec: `delta.parquet.compression.codec`; None: the engine's own.
        prefix_length: `delta.randomPrefixLength` where `delta.randomizeFilePrefixes` asks for random prefixes, else 0.
    """

    optimize_write: bool = False
    target_file_bytes: int = TARGET_FILE_BYTES
    codec: str | None = None
    prefix_length: int = 0

    def random_prefix(self) -> str:
        """The directory, with its slash, under which a job writes; object stores spread their load by such prefixes."""
        if not self.prefix_length:
            return ""
        return "".join(secrets.choice(_ALPHABET) for _ in range(self.prefix_length)) + "/"


def file_properties(configuration: Mapping[str, str]) -> FileProperties:
    """The typed record.

    Raises:
        InvalidRequest: A value does not parse (`invalid-property`).
    """

    def value(name: str, default: object) -> object:
        text = configuration.get(name)
        return default if text is None else parse_settable(name, text)

    codec = value(COMPRESSION_CODEC, None)
    length = value(PREFIX_LENGTH, 2) if value(RANDOMIZE_PREFIXES, False) else 0
    size = value(TARGET_FILE_SIZE, TARGET_FILE_BYTES)
    assert isinstance(length, int) and isinstance(size, int), "their parsers give numbers"
    return FileProperties(
        optimize_write=bool(value(OPTIMIZE_WRITE, False)),
        target_file_bytes=size,
        codec=None if codec is None else str(codec),
        prefix_length=length,
    )


def wants_auto_compaction(configuration: Mapping[str, str]) -> bool:
    """Whether small files are put together after each commit that adds some.

    Raises:
        InvalidRequest: A value does not parse (`invalid-property`).
    """
    if AUTO_OPTIMIZE in configuration and parse_settable(AUTO_OPTIMIZE, configuration[AUTO_OPTIMIZE]):
        return True
    # Databricks' own kinds, `auto` and `legacy`, are kinds of it.
    return parse_settable(AUTO_COMPACT, configuration.get(AUTO_COMPACT, "false")) != "false"
