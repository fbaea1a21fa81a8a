"""Deletion vectors as writers make them: those of a commit together in one file.

None stands in the log itself, as the reference writes none there: its VACUUM knows no inline vectors, and ends with a
`scala.MatchError` at the first one.

Specification: "Deletion Vector Files", "Deletion Vector Format".
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from alluvium.codecs.z85 import format_z85
from alluvium.delta.terms.spec import DELETION_VECTOR, DeletionVector
from alluvium.storage.store import Store

#: "magicNumber: 1681511377: Magic number for the portable 64-bit format"
_MAGIC = (1_681_511_377).to_bytes(4, "little")
#: "The format version of this file: `1` for the format described here."
_FILE_VERSION = b"\x01"


def write_vectors(
    store: Store, bitmaps: Sequence[tuple[bytes, int]], name: uuid.UUID | None = None
) -> tuple[list[DeletionVector], str | None]:
    """Stores vectors, and describes them.

    Args:
        store: The table's objects.
        bitmaps: For each its bytes in the portable 64-bit format, and how many rows it holds.
        name: Of the file; a new one by default.

    Returns:
        A descriptor a bitmap, and the path of the file that was written; None where there was nothing to write.
    """
    if not bitmaps:
        return [], None
    name = name or uuid.uuid4()
    vectors, content, offset = [], [_FILE_VERSION], len(_FILE_VERSION)
    for bitmap, cardinality in bitmaps:
        data = _MAGIC + bitmap
        vectors.append(
            DeletionVector(
                storage_type="u",
                # "`<random prefix - optional><base85 encoded uuid>`"
                path_or_inline_dv=format_z85(name.bytes),
                offset=offset,
                size_in_bytes=len(data),
                cardinality=cardinality,
            )
        )
        framed = frame(data)
        content.append(framed)
        offset += len(framed)
    path = f"deletion_vector_{name}.bin"
    store.put(path, b"".join(content))
    return vectors, path


def frame(data: bytes) -> bytes:
    """A vector in its file: "dataSize", "bitmapData", "checksum: CRC-32 checksum of `bitmapData`"."""
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def vector_column(vectors: Sequence[DeletionVector]) -> pa.Array:
    """Descriptors as the `deletionVector` of file actions."""
    return pa.array([msgspec.to_builtins(v) for v in vectors], DELETION_VECTOR)
