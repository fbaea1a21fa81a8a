"""Small manifests become one, so that a table of many small commits does not get slower with each.

Specification: "Manifests: merged when >= `manifest.merge-min-count` 30 small (<8 MB)"; `ManifestFileMerger`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.files.manifest import decode_manifests, load_manifests, read_manifests
from alluvium.paimon.files.manifest_write import (
    codec_of,
    describe_joined,
    describe_manifest,
    format_manifest,
    joined_manifests,
)
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import MANIFEST_MERGE_MIN_COUNT, MANIFEST_TARGET_SIZE
from alluvium.paimon.terms.spec import MANIFESTS
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

#: Entries by whose bytes those of the others are estimated.
_SAMPLE = 100


@dataclass(slots=True)
class ManifestWriter:
    """Names and collects the new manifest files of one attempt to commit.

    Attributes:
        schema: The table's schema.
        parts: Paths and bytes of the files.
    """

    schema: TableSchema
    parts: list[tuple[str, bytes]] = field(default_factory=list)
    _id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def next_name(self, kind: str) -> str:
        """What the file that is added next will be called: `<kind>-<uuid>-<n>`."""
        return f"{kind}-{self._id}-{len(self.parts)}"

    def add(self, kind: str, data: bytes) -> str:
        """A file below `manifest/`; its name."""
        name = self.next_name(kind)
        self.parts.append((f"manifest/{name}", data))
        return name

    def add_entries(self, entries: pa.Table) -> pa.Table:
        """Manifests of entries (`ENTRIES`), none of them much larger than they should be; their lines."""
        if not entries.num_rows:
            return MANIFESTS.empty_table()
        codec, target = codec_of(self.schema.options), MANIFEST_TARGET_SIZE.get(self.schema.options)
        sample = entries.slice(0, _SAMPLE)
        sampled = format_manifest(sample, codec)
        if sample.num_rows == entries.num_rows and len(sampled) <= target:
            return describe_manifest(self.add("manifest", sampled), len(sampled), entries, self.schema)
        each = max(1, target * sample.num_rows // len(sampled))
        # As many of them as need be, and all of about the same size.
        each = -(-entries.num_rows // -(-entries.num_rows // each))
        lines = []
        for start in range(0, entries.num_rows, each):
            piece = entries.slice(start, each)
            data = format_manifest(piece, codec)
            lines.append(describe_manifest(self.add("manifest", data), len(data), piece, self.schema))
        return pa.concat_tables(lines)


def merge_manifests(store: Store, manifests: pa.Table, writer: ManifestWriter) -> pa.Table:
    """The manifests (`MANIFESTS`) of a table, with small ones that stand beside each other merged.

    Args:
        store: The table's objects.
        manifests: In order: what a later one deletes, an earlier one has added.
        writer: Takes the new ones.

    Returns:
        The manifests; the same table where there is nothing to merge.
    """
    options = writer.schema.options
    target, least = MANIFEST_TARGET_SIZE.get(options), MANIFEST_MERGE_MIN_COUNT.get(options)
    merged: list[pa.Table] = []
    begin, size = 0, 0
    for index, manifest_size in enumerate(manifests["file_size"].to_pylist()):
        # What is merged may be cut into halves again: those are not taken up anew by every commit.
        if 2 * manifest_size >= target:
            merged += [_merge(store, manifests.slice(begin, index - begin), writer), manifests.slice(index, 1)]
            begin, size = index + 1, 0
            continue
        size += manifest_size
        if size >= target:
            merged.append(_merge(store, manifests.slice(begin, index + 1 - begin), writer))
            begin, size = index + 1, 0
    rest = manifests.slice(begin)
    if not merged and rest.num_rows < least:
        return manifests
    merged.append(_merge(store, rest, writer) if rest.num_rows >= least else rest)
    return pa.concat_tables(merged)


def merge_all_manifests(store: Store, manifests: pa.Table, writer: ManifestWriter) -> pa.Table:
    """The manifests (`MANIFESTS`) of a table, all of them written anew: what is deleted is said no longer.

    Raises:
        UnsupportedFeature: A later version of the format says more than can be carried on (`"unknown-manifest-field"`).
    """
    return writer.add_entries(remaining_entries(read_manifests(store, manifests["file_name"].to_pylist())))


def _merge(store: Store, manifests: pa.Table, writer: ManifestWriter) -> pa.Table:
    if manifests.num_rows < 2:
        return manifests
    before = len(writer.parts)
    files = load_manifests(store, manifests["file_name"].to_pylist())
    try:
        joined = _joined(files, manifests, writer)
        return writer.add_entries(remaining_entries(decode_manifests(files))) if joined is None else joined
    except UnsupportedFeature as error:
        if error.code != "unknown-manifest-field":
            raise
        # Nobody needs them merged: a table of many small manifests is slower, and as right.
        log.debug("manifests are left as they are: %s", error)
        del writer.parts[before:]
        return manifests


def _joined(files: Sequence[tuple[str, bytes]], manifests: pa.Table, writer: ManifestWriter) -> pa.Table | None:
    """The line of one manifest with the entries of those that only add files, none of which is decoded; None: that is
    not enough to know.

    Args:
        files: Path and bytes of each.
        manifests: Their lines (`MANIFESTS`).
        writer: Takes the new one.
    """
    options = writer.schema.options
    codec, target = codec_of(options), MANIFEST_TARGET_SIZE.get(options)
    if pc.any(pc.greater(manifests["num_deleted_files"], 0)).as_py():
        return None
    data = joined_manifests(files, codec)
    if data is None or len(data) > target:
        return None
    line = describe_joined(writer.next_name("manifest"), len(data), manifests, writer.schema)
    if line is not None:
        writer.add("manifest", data)
    return line


def remaining_entries(entries: pa.Table) -> pa.Table:
    """What is left to say of some entries in the middle of a table's history: additions that nothing deletes
    afterwards, and deletions of what was added before them.
    """
    deletes = np.asarray(pc.equal(entries["kind"], 1).combine_chunks().to_numpy(zero_copy_only=False), bool)
    if not deletes.any():
        return entries
    numbers = _identities(entries)
    count = int(numbers.max()) + 1
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    places = np.arange(len(numbers))
    first[numbers[::-1]] = places[::-1]
    last[numbers] = places
    # A file that was first deleted came from before; one that was last added is there in the end.
    keep = np.zeros(len(numbers), bool)
    keep[first[deletes[first]]] = True
    keep[last[~deletes[last]]] = True
    return entries.filter(pa.array(keep))


def _identities(entries: pa.Table) -> np.ndarray:
    """A number for each file: equal for entries of the same one."""
    partition = entries["partition"].combine_chunks().dictionary_encode().indices.cast(pa.string())
    key = pc.binary_join_element_wise(
        partition,
        pc.cast(entries["bucket"].combine_chunks(), pa.string()),
        pc.cast(entries["level"].combine_chunks(), pa.string()),
        entries["file_name"].combine_chunks(),
        pc.fill_null(entries["external_path"].combine_chunks(), ""),
        "\x00",
    )
    return np.asarray(key.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)
