"""Manifests of symbolic links: lists of a table's files, a text a partition, by which engines read it that know no log.

They lie in `_symlink_format_manifest/<partition>/manifest`, as the reference writes them: a file's address a line.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.partition_path import format_partition_path
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.partition_values import partition_column
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import decode_uri_paths, is_absolute

DIRECTORY = "_symlink_format_manifest"
#: What GENERATE calls them.
MODE = "symlink_format_manifest"
_ENABLED = "delta.compatibility.symlinkFormatManifest.enabled"
_FILE = "manifest"
#: Paths that are more than names of folders and a file: absolute ones, and those with `.`, `..` or empty parts.
_ODD = r"^([A-Za-z][A-Za-z0-9+.\-]*:)?/|(^|/)\.|//|/$|\x00"


def ensure_mode(mode: str) -> None:
    """Refuses what GENERATE cannot make.

    Raises:
        InvalidRequest: `"unknown-mode"`.
    """
    if mode.lower() != MODE:
        raise InvalidRequest(
            f"{mode!r} is nothing that can be generated", code="unknown-mode", hint=f"there is one mode: {MODE}"
        )


def keeps_manifests(config: TableConfig) -> bool:
    """Whether a table wants its manifests brought up to date by each commit."""
    return config.metadata.configuration.get(_ENABLED, "false").strip().lower() == "true"


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
    paths = set().union(*(pc.unique(_manifests(snapshot, files)).to_pylist() for files in touched))
    of_files = _manifests(snapshot, snapshot.files)
    is_touched = pc.is_in(of_files, value_set=pa.array(sorted(paths), pa.string()))
    live = _texts(snapshot, snapshot.files.filter(is_touched))
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
    manifests = _manifests(snapshot, files).dictionary_encode()
    numbers = manifests.indices.to_numpy(zero_copy_only=False)
    addresses = _addresses(snapshot, files.column("path")).take(pa.array(np.argsort(numbers, kind="stable")))
    texts, start = {}, 0
    for path, count in zip(manifests.dictionary.to_pylist(), np.bincount(numbers).tolist(), strict=True):
        lines = sorted(addresses.slice(start, count).to_pylist())
        texts[path] = "".join(f"{line}\n" for line in lines).encode()
        start += count
    return texts


def _manifests(snapshot: Snapshot, files: pa.Table) -> pa.Array:
    """For each file the path of its manifest."""
    names = snapshot.config.partition_columns
    values = pa.table([partition_column(files, name) for name in names], names=list(names))
    # Partitions are few: what is formatted are their values, not those of each file.
    numbers = np.zeros(files.num_rows, np.int64)
    for column in values.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = numbers * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False)
        numbers = np.unique(numbers, return_inverse=True)[1]
    firsts = values.take(pa.array(np.unique(numbers, return_index=True)[1])).to_pylist()
    paths = [_path(format_partition_path(names, [row[name] for name in names])) for row in firsts]
    return pa.array(paths if names else [_path("")], pa.string()).take(pa.array(numbers))


def _path(partition: str) -> str:
    return f"{DIRECTORY}/{partition}/{_FILE}" if partition else f"{DIRECTORY}/{_FILE}"


def _addresses(snapshot: Snapshot, paths: pa.ChunkedArray) -> pa.Array:
    decoded = decode_uri_paths(paths.combine_chunks())
    made = pc.binary_join_element_wise(snapshot.store.url.rstrip("/"), decoded, "/")
    odd = pc.match_substring_regex(decoded, _ODD)
    if not pc.any(odd).as_py():
        return made
    others = [_address(snapshot, path) for path in decoded.filter(odd).to_pylist()]
    return pc.replace_with_mask(made, odd, pa.array(others, pa.string()))


def _address(snapshot: Snapshot, decoded: str) -> str:
    return decoded if is_absolute(decoded) else snapshot.store.uri(decoded)


def _put_all(snapshot: Snapshot, texts: dict[str, bytes]) -> None:
    map_parallel(lambda entry: snapshot.store.put(entry[0], entry[1], durable=False), list(texts.items()))
