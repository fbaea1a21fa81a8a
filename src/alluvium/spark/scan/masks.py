"""Deleted rows on the native lane: a string of bits that rides along as one constant a file, and a filter that looks
its own row up in it.

A row costs a substring and a bit test, however many rows are deleted, and Spark's vectorised reader stays on. A join
would cost five times as much, a Python function would cost the vectorised reader.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.codecs.roaring import positions_of
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import BINARY, Field

#: Rows that a byte stands for; with its other bits it stays printable ASCII, which `ascii` of the byte as a string
#: gives back.
_BITS = 6
_ASCII_LETTERS = b"\x40"
#: No file has as many rows, and no text may be as long as this would make it.
_MAX_POSITION = 1 << 31
#: What an Arrow array of texts may hold in all: some 12 billion rows of files with deleted ones.
_MAX_TEXT = (1 << 31) - 1


def deleted_rows_field(taken: Iterable[str]) -> Field:
    """The column of a relation that holds the deleted rows of a file, under a name that no other column has."""
    folded = {name.casefold() for name in taken}
    name = "__deleted_rows"
    while name in folded:
        name += "_"
    return Field(name, BINARY, nullable=False)


def add_deleted_rows(files: pa.Table, name: str) -> pa.Table:
    """Files whose masks are loaded, with the deleted rows of each as one constant more.

    Raises:
        CorruptTable: A mask is damaged.
        UnsupportedFeature: The files have too many rows for one query.
    """
    constants = files["constants"]
    constants = constants.combine_chunks() if isinstance(constants, pa.ChunkedArray) else constants
    texts = [
        b"" if mask is None else _format(mask, path)
        for mask, path in zip(files["mask"].to_pylist(), files["path"].to_pylist(), strict=True)
    ]
    if sum(map(len, texts)) > _MAX_TEXT:
        raise UnsupportedFeature(
            f"deleted rows of {len(texts)} files take more than 2 GiB",
            code="too-many-deleted-rows",
            features=("deletionVectors",),
            hint="read less at once: filter by partition, or by columns that files can be skipped by",
        )
    extended = pa.StructArray.from_arrays(
        [*constants.flatten(), pa.array(texts, pa.binary())], names=[*(f.name for f in constants.type), name]
    )
    return files.set_column(files.schema.get_field_index("constants"), "constants", extended)


def without_deleted_rows(frame: DataFrame, name: str) -> DataFrame:
    """The rows of a relation that are not deleted.

    Args:
        frame: The relation itself: rows know their position in the file.
        name: Its column of deleted rows.
    """
    return frame.where(~is_deleted(sf.col(f"`{name}`"), frame.metadataColumn("_metadata")["row_index"]))


def is_deleted(deleted: Column, row_index: Column) -> Column:
    """Whether a row is among the deleted ones: never null, hence Spark infers no filter on its operands.

    Args:
        deleted: What `format_deleted_rows` gives. Behind its end nothing is deleted: `ascii('')` is 0.
        row_index: The row's position.
    """
    letter = sf.call_function("div", row_index, sf.lit(_BITS)).cast("int")
    # A substring of a string would walk from its start, row after row; of bytes it does not.
    bits = sf.ascii(sf.substring(deleted, letter + sf.lit(1), sf.lit(1)).cast("string"))
    return sf.coalesce(sf.bit_get(bits, (row_index % sf.lit(_BITS)).cast("int")).cast("boolean"), sf.lit(False))


def format_deleted_rows(mask: bytes) -> bytes:
    """The rows of a 64-bit roaring bitmap as bytes: bit `n % 6` of byte `n // 6` is set where row n is deleted.

    It ends with the last deleted row.

    Raises:
        CorruptTable: The bitmap is damaged, or names rows that no file has.
    """
    positions = positions_of(mask)
    if not positions:
        return b""
    last = positions[-1]
    if last >= _MAX_POSITION:
        raise CorruptTable(f"row {last} of a data file is deleted: no file has as many rows", code="damaged-bitmap")
    length = last // _BITS + 1
    flags = bytearray(length * _BITS)
    for position in positions:
        flags[position] = 1
    # As one number of so many bytes, all characters take a bit more in one step.
    letters = int.from_bytes(_ASCII_LETTERS * length, "little")
    for bit in range(_BITS):
        letters |= int.from_bytes(flags[bit::_BITS], "little") << bit
    return letters.to_bytes(length, "little")


def _format(mask: bytes, path: str) -> bytes:
    try:
        return format_deleted_rows(mask)
    except CorruptTable as error:
        error.path = error.path or path
        raise
