"""Index files of dynamic buckets: the hashes of the keys that a bucket has, four bytes each, big endian.

Specification: `org.apache.paimon.index.HashIndexFile`, `PartitionIndex`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.terms.spec import INDEX_ENTRIES, SnapshotDocument
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

INDEX_TYPE = "HASH"
FOLDER = "index"
Hashes = npt.NDArray[np.int32]


def hash_entries(store: Store, document: SnapshotDocument | None) -> pa.Table:
    """The hash index files (`INDEX_ENTRIES`) of a snapshot."""
    if document is None or document.index_manifest is None:
        return INDEX_ENTRIES.empty_table()
    entries = read_index_manifest(store, document.index_manifest)
    return entries.filter(pc.equal(entries["index_type"], INDEX_TYPE))


def read_hashes(store: Store, entries: pa.Table) -> list[Hashes]:
    """The hashes that each of some index files has.

    Raises:
        CorruptTable: A file is no list of them, or not as long as its manifest says (`"damaged-index"`).
    """

    def read(entry: Mapping[str, object]) -> Hashes:
        path = str(entry["external_path"] or f"{FOLDER}/{entry['file_name']}")
        data = store.get(path)
        if len(data) % 4 or len(data) // 4 != entry["row_count"]:
            raise CorruptTable(
                f"a hash index has {len(data)} bytes, and is said to have {entry['row_count']} hashes",
                code="damaged-index",
                path=path,
            )
        return np.frombuffer(data, ">i4").astype(np.int32)

    return map_parallel(read, entries.select(["file_name", "row_count", "external_path"]).to_pylist())


def format_hashes(hashes: Hashes) -> bytes:
    """The content of an index file."""
    return hashes.astype(">i4").tobytes()


def new_entries(found: Mapping[tuple[bytes, int], Hashes]) -> tuple[pa.Table, dict[str, bytes]]:
    """The entries of new index files, and their contents by name.

    Args:
        found: The hashes of each partition's bucket.
    """
    job, rows, contents = uuid.uuid4(), [], {}
    for number, ((partition, bucket), hashes) in enumerate(found.items()):
        name = f"index-{job}-{number}"
        contents[name] = format_hashes(hashes)
        rows.append(
            {"kind": 0, "partition": partition, "bucket": bucket, "index_type": INDEX_TYPE, "file_name": name,
             "file_size": len(contents[name]), "row_count": len(hashes)}
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=INDEX_ENTRIES), contents
