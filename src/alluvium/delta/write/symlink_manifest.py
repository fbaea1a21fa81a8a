"""Manifests of symbolic links: lists of a table's files, a text a partition, by which engines read it that know no log.

They lie in `_symlink_format_manifest/<partition>/manifest`, as the reference writes them: a file's address a line.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from alluvium.codecs.partition_path import format_partition_path
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.partition_values import partition_column
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import decode_uri_path, is_absolute

DIRECTORY = "_symlink_format_manifest"
#: What GENERATE calls them.
MODE = "symlink_format_manifest"
_ENABLED = "delta.compatibility.symlinkFormatManifest.enabled"
_FILE = "manifest"


def ensure_mode(mode: str) -> None:
    """Refuses what GENERATE cannot make.

    Raises:
        InvalidRequest: `"unknown-mode"`.
    """
    if mode.casefold() != MODE:
        raise InvalidRequest(
            f"{mode!r} is nothing that can be generated", code="unknown-mode", hint=f"there is one mode: {MODE}"
        )


def keeps_manifests(config: TableConfig) -> bool:
    """Whether a table wants its manifests brought up to date by each commit."""
    return config.metadata.configuration.get(_ENABLED, "false").strip().casefold() == "true"


def write_manifests(snapshot: Snapshot) -> None:
    """Writes the manifests of a version, and removes those of partitions that are no more. The log does not change.

    Raises:
        UnsupportedFeature: Other engines would read other rows: rows are deleted by vectors
            (`manifest-with-vectors`), or columns are mapped (`manifest-with-mapping`).
    """
    _ensure_listable(snapshot)
    texts = _texts(snapshot, snapshot.files)
    if not snapshot.config.partition_columns:
        # A table without rows has a manifest without lines.
        texts.setdefault(_path(""), b"")
    _put_all(snapshot, texts)
    for stale in [info.path for info in snapshot.store.list_tree(DIRECTORY)]:
        if stale not in texts and stale.rpartition("/")[2] == _FILE:
            snapshot.store.delete(stale)


def update_manifests(snapshot: Snapshot, touched: Iterable[pa.Table]) -> None:
    """Brings the manifests of those partitions up to date that files came to or went from.

    Args:
        snapshot: The version.
        touched: Tables with `partitionValues` of such files.

    Raises:
        UnsupportedFeature: As `write_manifests`.
    """
    if not snapshot.config.partition_columns:
        write_manifests(snapshot)
        return
    _ensure_listable(snapshot)
    paths = {path for files in touched for path in _directories(snapshot, files)}
    live = {path: text for path, text in _texts(snapshot, snapshot.files).items() if path in paths}
    _put_all(snapshot, live)
    for path in paths - live.keys():
        snapshot.store.delete(path)


def _ensure_listable(snapshot: Snapshot) -> None:
    files = snapshot.files
    masked = files.num_rows - files.column("deletionVector").null_count
    if masked:
        raise UnsupportedFeature(
            f"{masked} files have rows that are deleted by vectors, which readers of manifests would bring back",
            code="manifest-with-vectors",
            features=("deletionVectors",),
            url=snapshot.store.url,
            version=snapshot.version,
            hint="set delta.enableDeletionVectors to false, and REORG TABLE ... APPLY (PURGE)",
        )
    if snapshot.config.mapping_mode != "none":
        raise UnsupportedFeature(
            "the columns are mapped: readers of manifests would look for other names",
            code="manifest-with-mapping",
            features=("columnMapping",),
            url=snapshot.store.url,
            version=snapshot.version,
            hint="set delta.columnMapping.mode to none first",
        )


def _texts(snapshot: Snapshot, files: pa.Table) -> dict[str, bytes]:
    """The manifests by their paths."""
    lines: dict[str, list[str]] = {}
    for directory, path in zip(_directories(snapshot, files), files.column("path").to_pylist(), strict=True):
        lines.setdefault(directory, []).append(_address(snapshot, path))
    return {path: "".join(f"{line}\n" for line in sorted(found)).encode() for path, found in lines.items()}


def _directories(snapshot: Snapshot, files: pa.Table) -> list[str]:
    """For each file the path of its manifest."""
    names = snapshot.config.partition_columns
    if not names:
        return [_path("")] * files.num_rows
    values = zip(*(partition_column(files, name).to_pylist() for name in names), strict=True)
    return [_path(format_partition_path(names, row)) for row in values]


def _path(partition: str) -> str:
    return f"{DIRECTORY}/{partition}/{_FILE}" if partition else f"{DIRECTORY}/{_FILE}"


def _address(snapshot: Snapshot, path: str) -> str:
    decoded = decode_uri_path(path)
    return decoded if is_absolute(decoded) else snapshot.store.uri(decoded)


def _put_all(snapshot: Snapshot, texts: dict[str, bytes]) -> None:
    map_parallel(lambda entry: snapshot.store.put(entry[0], entry[1], durable=False), list(texts.items()))
