"""Numbers that stand for texts, to tell in little memory that two are not the same. Pure.

Equal texts have the same number; others hardly ever, and nobody can choose them so: who may not err compares them.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = "npt.NDArray[np.signedinteger[Any]]"

#: Of longer texts only the end counts.
MAX_BYTES = 1024
# Odd multipliers drawn once per process, so that nobody can write a log whose keys all collide.
_WEIGHTS = np.frombuffer(os.urandom(MAX_BYTES), np.uint64) | np.uint64(1)


def text_hashes(texts: pa.Array) -> Numbers:
    """A number for each of some texts of any length, none of which is null: int64, another in each process."""
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    hashes = np.zeros(len(texts), np.int64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        same = texts if len(places) == len(texts) else texts.take(pa.array(places))
        if length > MAX_BYTES:
            same = pc.binary_slice(same.cast(pa.binary()), -MAX_BYTES)
        hashes[places] = hashes_of_length(same, min(length, MAX_BYTES)) + length
    return hashes


def hashes_of_length(texts: pa.Array, length: int) -> Numbers:
    """A number for each of some texts (or binary values), all of which have so many bytes, at most `MAX_BYTES`."""
    data = texts.buffers()[2]
    if not len(texts) or not length or data is None:
        return np.zeros(len(texts), np.int64)
    start = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset]
    text = np.frombuffer(data, np.uint8, len(texts) * length, start).reshape(len(texts), length)
    # Eight bytes at a time; what is left over at the end is padded.
    words = np.zeros((len(texts), -(-length // 8) * 8), np.uint8)
    words[:, :length] = text
    found: Numbers = (words.view(np.uint64) @ _WEIGHTS[: words.shape[1] // 8]).view(np.int64)
    return found
