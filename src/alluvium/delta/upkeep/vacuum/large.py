"""VACUUM of tables with more files than memory should hold: of a listing only what may go is kept, and of the log only
what is about that.

Live files that are listed are told by their hashes. Where two files have the same, one too many stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.text_hashes import Numbers, text_hashes
from alluvium.delta.upkeep.vacuum.files import NAME, Needed, folders_of, needed_files, with_unseen
from alluvium.delta.upkeep.vacuum.past import Retention, commits_within, young_tombstones
from alluvium.delta.upkeep.vacuum.versions import read_events_by_runs
from alluvium.delta.view.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The live files of a version by their hashes, and which of them a listing has had.

    Attributes:
        hashes: In ascending order.
        were_listed: One value a hash.
    """

    hashes: Numbers
    were_listed: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, snapshot: Snapshot) -> LiveFiles:
        """Those of a snapshot.

        Raises:
            CorruptTable: A path is malformed.
        """
        root = snapshot.store.url
        parts = snapshot.map_files(lambda files: text_hashes(needed_files(files.to_batches(), root).paths))
        hashes = np.concatenate(parts)
        hashes.sort()
        return cls(hashes, np.zeros(len(hashes), np.bool_))

    def left_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of a listing (`LISTED`) without live files, but for one of each folder: it is not empty."""
        paths = batch.column("path")
        places, are_live = self._find(text_hashes(paths))
        self.were_listed[places[are_live]] = True
        live = np.flatnonzero(are_live)
        is_kept = ~are_live
        is_kept[live[_firsts_of_folders(paths.take(pa.array(live)))]] = True
        return batch.filter(pa.array(is_kept))

    def have_listed(self, paths: pa.Array) -> pa.Array:
        """Which of some files a listing has had."""
        places, are_live = self._find(text_hashes(paths))
        return pa.array(are_live & self.were_listed[places]) if len(self.hashes) else pa.array(are_live)

    def _find(self, hashes: Numbers) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        if not len(self.hashes):
            return np.zeros(len(hashes), np.intp), np.zeros(len(hashes), np.bool_)
        places = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
        return places, self.hashes[places] == hashes


def read_needed_of(
    snapshot: Snapshot, retention: Retention, found: pa.Table, is_listing: bool, live: LiveFiles | None
) -> Needed:
    """As `past.read_needed` and `files.with_unseen`: of the files that have to stay those that are found, and those
    that matter for what is.

    Args:
        snapshot: The newest version.
        retention: What of the past is kept.
        found: What may go (`LISTED`).
        is_listing: Whether it was listed, so that files which are not in it go by their names.
        live: Live files that were left out of it.

    Raises:
        CorruptTable: A path or a vector is malformed.
    """
    root = snapshot.store.url
    listed = _whole(found.column("path"))
    names = pc.replace_substring_regex(listed, NAME, "")
    has_directories = pc.any(found.column("is_directory"), min_count=0).as_py()

    def concerned(table: pa.Table) -> Needed:
        needed = needed_files(table.to_batches(), root)
        if is_listing:
            unlisted = needed.paths if live is None else needed.paths.filter(pc.invert(live.have_listed(needed.paths)))
            needed = Needed(needed.paths, with_unseen(Needed(unlisted, needed.names), found).names)
        kept = pc.is_in(needed.paths, value_set=listed).to_numpy(zero_copy_only=False)
        if has_directories:
            # One file tells as well as all of them that a folder is not empty.
            kept = kept.copy()
            kept[_firsts_of_folders(needed.paths)] = True
        return Needed(needed.paths.filter(pa.array(kept)), needed.names.filter(pc.is_in(needed.names, value_set=names)))

    events = read_events_by_runs(snapshot.store, commits_within(snapshot, retention))
    parts = [
        *snapshot.map_files(concerned),
        *snapshot.map_tombstones(lambda table: concerned(young_tombstones(table, retention))),
        *(concerned(table) for table in events),
    ]
    return Needed(_all(part.paths for part in parts), _all(part.names for part in parts))


def named_among(snapshot: Snapshot, paths: pa.Array) -> list[str]:
    """Those of some files, as a listing has them, that a version names."""
    root = snapshot.store.url
    found = snapshot.map_files(
        lambda files: paths.filter(pc.is_in(paths, value_set=needed_files(files.to_batches(), root).paths))
    )
    return [path for part in found for path in part.to_pylist()]


def _firsts_of_folders(paths: pa.Array) -> npt.NDArray[np.intp]:
    """The place of one file of each folder."""
    folders = folders_of(paths).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.unique(folders, return_index=True)[1]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _all(parts: Iterable[pa.Array]) -> pa.Array:
    return pc.unique(pa.chunked_array(list(parts), pa.string()))


def left_out_of(batches: Iterator[pa.RecordBatch], live: LiveFiles | None) -> Iterator[pa.RecordBatch]:
    """A listing, without live files where they are told."""
    return batches if live is None else map(live.left_out, batches)
