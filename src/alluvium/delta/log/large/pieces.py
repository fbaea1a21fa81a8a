"""File actions of a state whose checkpoint is too large to be held at once, piece by piece.

Specification: "Action Reconciliation". A checkpoint is reconciled in itself, and the commits after it are with the
state; so a piece of the checkpoint is complete when what these have named anew is left out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.text_hashes import Numbers, text_hashes
from alluvium.delta.log.read_checkpoint import count_checkpoint_rows, stream_checkpoint, unified
from alluvium.delta.log.replay import logical_file_keys, without_repeats
from alluvium.delta.log.state import LogState
from alluvium.delta.terms.spec import FILES
from alluvium.errors import CorruptTable
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store

ResultT = TypeVar("ResultT")

#: Rows of a piece: some 30 MB.
PIECE_ROWS = 100_000
# Files read at once: each holds a piece, and what is made of it.
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Pieces:
    """The file actions of a state with `deferred` files.

    Attributes:
        store: The table's objects.
        state: The state.
    """

    store: Store
    state: LogState

    def map_files(self, see: Callable[[pa.Table], ResultT], each_once: bool = False) -> list[ResultT]:
        """What a function makes of each piece of the live files (`FILES`, perhaps `stats_parsed`), from two threads.

        Args:
            see: The function.
            each_once: Whether a file that a careless writer lists twice in the checkpoint matters; else it may come
                twice, see `joined`.

        Raises:
            CorruptTable: The checkpoint is damaged, or lists a file twice and that matters (`damaged-checkpoint`).
        """
        newer, seen = self._newer(), list[Numbers]()

        def of_one(info: ObjectInfo) -> list[ResultT]:
            pieces = self._older(info, "add", newer)
            return [see(piece) for piece in (_noted(pieces, seen) if each_once else pieces)]

        found = [*chain.from_iterable(map_parallel(of_one, self.state.deferred, _AT_ONCE)), see(self.state.files)]
        self._ensure_distinct(seen)
        return found

    def count_rows(self) -> int:
        """How many actions there may be at most: rows of the checkpoint's files, and those of the commits after it."""
        older = count_checkpoint_rows(self.store, self.state.deferred)
        return older + int(self.state.files.num_rows + self.state.tombstones.num_rows)

    def files(self) -> Iterator[pa.Table]:
        """Pieces of the live files, one after the other, each once; errors as of `map_files`, the last at the end."""
        yield from self._all("add", self.state.files)

    def tombstones(self) -> Iterator[pa.Table]:
        """Pieces of the removed files not yet forgotten (`TOMBSTONES`), as `files`."""
        yield from self._all("remove", self.state.tombstones)

    def _all(self, kind: str, later: pa.Table) -> Iterator[pa.Table]:
        newer, seen = self._newer(), list[Numbers]()
        for info in self.state.deferred:
            yield from _noted(self._older(info, kind, newer), seen)
        if later.num_rows:
            yield later
        self._ensure_distinct(seen)

    def _ensure_distinct(self, seen: list[Numbers]) -> None:
        """Eight bytes a file tell: two files of one number, which hardly ever are, count as one listed twice."""
        numbers = np.sort(np.concatenate([np.zeros(0, np.int64), *seen]))
        if (numbers[1:] == numbers[:-1]).any():
            raise CorruptTable(
                "the checkpoint lists a file twice", code="damaged-checkpoint", path=self.state.deferred[0].path
            )

    def _newer(self) -> pa.Array:
        """Keys of what the commits after the checkpoint have named."""
        named = [*self.state.files.to_batches(), *self.state.tombstones.to_batches()]
        keys = pa.chunked_array([logical_file_keys(batch) for batch in named], pa.string())
        return keys.combine_chunks()

    def _older(self, info: ObjectInfo, kind: str, newer: pa.Array) -> Iterator[pa.Table]:
        held: list[pa.RecordBatch] = []
        for batch in stream_checkpoint(self.store, info, kind):
            kept = batch.filter(pc.invert(pc.is_in(logical_file_keys(batch), value_set=newer))) if len(newer) else batch
            held.append(kept)
            if sum(len(one) for one in held) >= PIECE_ROWS:
                yield pa.Table.from_batches(held)
                held = []
        if held:
            yield pa.Table.from_batches(held)


def _noted(pieces: Iterator[pa.Table], seen: list[Numbers]) -> Iterator[pa.Table]:
    """The pieces; the numbers of their files are added to a list."""
    for piece in pieces:
        seen += [text_hashes(logical_file_keys(batch)) for batch in piece.to_batches()]
        yield piece


def joined(pieces: list[pa.Table]) -> pa.Table:
    """Pieces of live files as one table, each file once."""
    batches = [batch for piece in pieces for batch in piece.to_batches() if batch.num_rows]
    return pa.Table.from_batches(unified(without_repeats(batches)), None if batches else FILES)
