"""Deleted rows looked up by public functions of Spark SQL alone: a string of bits that is one constant a file.

For sessions without a JVM at hand. A row costs a substring and a bit test, however many rows are deleted; where there
is a gateway, `masks` does the same for a tenth of that.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from alluvium.codecs.roaring import positions_of
from alluvium.errors import CorruptTable

#: Rows that a byte stands for; with its other bits it stays printable ASCII, which `ascii` of the byte as a string
#: gives back.
_BITS = 6
_ASCII_LETTERS = b"\x40"
#: No file has as many rows, and no text may be as long as this would make it.
_MAX_POSITION = 1 << 31


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
