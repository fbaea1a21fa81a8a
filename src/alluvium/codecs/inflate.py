"""Decompression of bytes that nobody vouches for, up to a bound."""

from __future__ import annotations

import pyarrow as pa

_PIECE_BYTES = 1 << 20


def inflated(data: bytes, codec: str, most: int) -> bytes | None:
    """The bytes of a stream; None: there are more than `most`.

    Args:
        data: The whole stream.
        codec: One of Arrow's.
        most: Bytes.

    Raises:
        OSError: It is damaged.
    """
    pieces, room = [], most
    stream = pa.CompressedInputStream(pa.BufferReader(data), codec)
    # Not `read`: pyarrow loses the memory of a piece whose reading fails.
    while piece := bytes(stream.read_buffer(_PIECE_BYTES)):
        room -= len(piece)
        if room < 0:
            return None
        pieces.append(piece)
    return b"".join(pieces)
