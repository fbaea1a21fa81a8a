"""Deleted rows as one constant a file, in whatever form a lane's filter looks them up; needs no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pyarrow as pa

from alluvium.codecs.bitmaps.roaring import bits_of, highest_of, size_of_bits
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import BINARY, Field
from alluvium.spark.naming.names import unused_name

#: What an Arrow array of bitmaps may hold in all: some 17 billion rows of files with deleted ones.
_MAX_BYTES = (1 << 31) - 1
FoundT = TypeVar("FoundT")
#: A bitmap of no rows.
_NO_ROWS = bytes(8)


def deleted_rows_field(taken: Iterable[str]) -> Field:
    """The column of a relation that holds the deleted rows of a file, under a name that no other column has."""
    return Field(unused_name("__deleted_rows", taken), BINARY, nullable=False)


def add_deleted_rows(files: pa.Table, name: str, write: Callable[[bytes], bytes] = bits_of) -> pa.Table:
    """Files whose masks are loaded, with the deleted rows of each as one constant more.

    Args:
        files: As a plan has them.
        name: Of the constant.
        write: From a 64-bit roaring bitmap to the constant's value.

    Raises:
        CorruptTable: A mask is damaged.
        UnsupportedFeature: The files have too many rows for one query.
    """
    constants = files["constants"]
    constants = constants.combine_chunks() if isinstance(constants, pa.ChunkedArray) else constants
    masks = [_NO_ROWS if mask is None else mask for mask in files["mask"].to_pylist()]
    paths = files["path"].to_pylist()
    # Before anything is built: a few bytes can stand for a quarter of a GiB.
    sizes = (_of_file(_size_of_bits, mask, path) for mask, path in zip(masks, paths, strict=True))
    if sum(sizes) > _MAX_BYTES:
        raise UnsupportedFeature(
            f"deleted rows of {len(masks)} files take more than 2 GiB",
            code="too-many-deleted-rows",
            features=("deletionVectors",),
            hint="read less at once: filter by partition, or by columns that files can be skipped by",
        )
    bitmaps = [_of_file(write, mask, path) for mask, path in zip(masks, paths, strict=True)]
    extended = pa.StructArray.from_arrays(
        [*constants.flatten(), pa.array(bitmaps, pa.binary())], names=[*(f.name for f in constants.type), name]
    )
    return files.set_column(files.schema.get_field_index("constants"), "constants", extended)


def _size_of_bits(mask: bytes) -> int:
    return size_of_bits(highest_of(mask))


def _of_file(find: Callable[[bytes], FoundT], mask: bytes, path: str) -> FoundT:
    try:
        return find(mask)
    except CorruptTable as error:
        error.path = error.path or path
        raise
