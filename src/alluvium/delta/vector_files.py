"""Deletion vectors as writers make them: a few in the log itself, the others of a commit together in one file.

Specification: "Deletion Vector Files", "Deletion Vector Format".
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from alluvium.codecs.z85 import format_z85
from alluvium.delta.spec import DELETION_VECTOR, DeletionVector
from alluvium.storage.store import Store

#: "magicNumber: 1681511377: Magic number for the portable 64-bit format"
_MAGIC = (1_681_511_377).to_bytes(4, "little")
#: "The format version of this file: `1` for the format described here."
_FILE_VERSION = b"\x01"
#: A vector of some ten rows is smaller than its address; checkpoints carry inline vectors for ever, so no more.
_INLINE_BYTES = 64


def write_vectors(
    store: Store, bitmaps: Sequence[tuple[bytes, int]], name: uuid.UUID | None = None
) -> tuple[list[DeletionVector], str | None]:
    """Stores vectors, and describes them.

    Args:
        store: The table's objects.
        bitmaps: For each its bytes in the portable 64-bit format, and how many rows it holds.
        name: Of the file; a new one by default.

    Returns:
        A descriptor a bitmap, and the path of the file that was written, if one was.
    """
    name = name or uuid.uuid4()
    vectors, content, offset = [], [_FILE_VERSION], len(_FILE_VERSION)
    for bitmap, cardinality in bitmaps:
        data = _MAGIC + bitmap
        if len(data) <= _INLINE_BYTES:
            vectors.append(_descriptor("i", format_z85(data), None, data, cardinality))
            continue
        # "`<random prefix - optional><base85 encoded uuid>`"
        vectors.append(_descriptor("u", format_z85(name.bytes), offset, data, cardinality))
        framed = frame(data)
        content.append(framed)
        offset += len(framed)
    if len(content) == 1:
        return vectors, None
    path = f"deletion_vector_{name}.bin"
    store.put(path, b"".join(content))
    return vectors, path


def frame(data: bytes) -> bytes:
    """A vector in its file: "dataSize", "bitmapData", "checksum: CRC-32 checksum of `bitmapData`"."""
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def _descriptor(kind: str, address: str, offset: int | None, data: bytes, cardinality: int) -> DeletionVector:
    return DeletionVector(
        storage_type=kind,
        path_or_inline_dv=address,
        offset=offset,
        # "Size of the serialized DV in bytes (raw data size, i.e. before base85 encoding, if inline)."
        size_in_bytes=len(data),
        cardinality=cardinality,
    )


def vector_column(vectors: Sequence[DeletionVector]) -> pa.Array:
    """Descriptors as the `deletionVector` of file actions."""
    return pa.array([msgspec.to_builtins(v) for v in vectors], DELETION_VECTOR)
