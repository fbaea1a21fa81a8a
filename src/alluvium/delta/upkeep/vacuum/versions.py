"""What each version of a table needs of files, as the log tells: which versions can be read, and which no longer could
be once some files were gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import long_column, string_column
from alluvium.delta.log.columns import deletion_vector_column
from alluvium.delta.log.read import commit_version
from alluvium.delta.log.read_changes import load_commit
from alluvium.delta.log.replay import logical_file_keys
from alluvium.delta.log.segment import Listing
from alluvium.delta.terms.lines import decode_lines
from alluvium.delta.terms.spec import DELETION_VECTOR, DeletionVector, Long, Wire
from alluvium.delta.upkeep.vacuum.files import ABSOLUTE, stored_paths, vector_paths
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_near
from alluvium.storage.store import ObjectInfo, Store

REMOVED, ADDED, RECORDED = 0, 1, 2
#: What versions did with files: `kind` is one of the three above, `path` as in the log (a URI).
EVENTS = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("kind", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("deletionVector", DELETION_VECTOR),
    ]
)

#: Commits that are read together.
_RUN = 2_000

Flags = npt.NDArray[np.bool_]


class _File(Wire, frozen=True, kw_only=True):
    path: str
    size: Long | None = None
    deletion_vector: DeletionVector | None = None


class _Line(Wire, frozen=True, kw_only=True):
    remove: _File | None = None
    add: _File | None = None
    cdc: _File | None = None


_LINES = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True)
class FileHistory:
    """What versions did with files.

    Attributes:
        root: URL of the table.
        first: The oldest version that the log tells of.
        known: For each version from there on, whether the log still tells what was in it.
        starts: The versions that are read from a checkpoint, all of whose files are events of that version.
        events: Schema `EVENTS`.
    """

    root: str
    first: int
    known: Flags
    starts: tuple[int, ...]
    events: pa.Table

    def without(self, gone: pa.Array | pa.ChunkedArray) -> Flags:
        """For each version from `first` on, whether it needs one of some files.

        Args:
            gone: Paths as a listing has them.
        """
        return self._covered(as_batch(_naming(self.events, gone, self.root)))

    def _covered(self, touched: pa.RecordBatch) -> Flags:
        """The versions in which one of some files was live: from when it was added until it was removed."""
        count = len(self.known)
        if not touched.num_rows:
            return np.zeros(count, np.bool_)
        keys = logical_file_keys(touched).dictionary_encode().indices.to_numpy(zero_copy_only=False)
        versions = touched.column("version").to_numpy() - self.first
        kinds = touched.column("kind").to_numpy()
        order = np.lexsort((kinds, versions, keys))
        keys, versions, is_remove = keys[order], versions[order], kinds[order] == REMOVED
        places = np.where(is_remove, np.arange(len(keys)), len(keys))
        next_remove = np.minimum.accumulate(places[::-1])[::-1]
        inside = np.minimum(next_remove, len(keys) - 1)
        ends = np.where((next_remove < len(keys)) & (keys[inside] == keys), versions[inside], count)
        # Behind a gap of the log a checkpoint says anew what is live.
        anew = np.array([*(start - self.first for start in self.starts), count])
        ends = np.minimum(ends, anew[np.searchsorted(anew, versions, side="right").clip(max=len(anew) - 1)])
        steps = np.zeros(count + 1, np.int64)
        np.add.at(steps, versions[~is_remove], 1)
        np.add.at(steps, ends[~is_remove], -1)
        return np.cumsum(steps[:-1]) > 0


def read_events(store: Store, commits: Sequence[ObjectInfo]) -> pa.Table:
    """What some commits did with files.

    Raises:
        CorruptTable: A commit is damaged.
        NotFound: It went away since it was listed (`missing-version`).
    """

    def read_one(commit: ObjectInfo) -> pa.RecordBatch:
        return _parse(load_commit(store, commit), commit.path, commit_version(commit))

    found = map_parallel(read_one, commits, 1) if is_near(store.url) else map_parallel(read_one, commits)
    return pa.Table.from_batches(found, EVENTS)


def read_events_by_runs(store: Store, commits: Sequence[ObjectInfo]) -> Iterator[pa.Table]:
    """As `read_events`, of some commits after the others: a week may have more than should be held."""
    for start in range(0, len(commits), _RUN):
        yield read_events(store, commits[start : start + _RUN])


def _parse(data: bytes, path: str, version: int) -> pa.RecordBatch:
    kinds: list[int] = []
    files: list[_File] = []
    for line in decode_lines(data, _LINES, path, version):
        for kind, file in ((REMOVED, line.remove), (ADDED, line.add), (RECORDED, line.cdc)):
            if file is not None:
                kinds.append(kind)
                files.append(file)
    columns = [
        long_column([version] * len(files)),
        long_column(kinds),
        string_column([f.path for f in files]),
        long_column([f.size for f in files]),
        deletion_vector_column([f.deletion_vector for f in files]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def _naming(events: pa.Table, files: pa.Array | pa.ChunkedArray, root: str) -> pa.Table:
    """Which of some events are about some files, or their vectors."""
    batch = as_batch(events.filter(pc.not_equal(events.column("kind"), RECORDED)))
    data = pc.is_in(stored_paths(batch.column("path"), root), value_set=files)
    vectors = pc.is_in(vector_paths(batch.column("deletionVector"), root), value_set=files)
    return pa.Table.from_batches([batch.filter(pc.fill_null(pc.or_kleene(data, vectors), False))])


def read_file_history(store: Store, listing: Listing, newest: int, of: pa.Array | None = None) -> FileHistory:
    """All that the log still tells of files, up to a version.

    Args:
        store: The table's objects.
        listing: Of its log.
        newest: The version.
        of: Only of these files, as a listing has them.

    Raises:
        CorruptTable: A commit or a checkpoint is damaged.
    """
    first = newest if listing.earliest is None else listing.earliest
    known, starts = _known(listing, first, newest)
    commits = [
        info
        for version, info in listing.commits.items()
        if first <= version <= newest and known[version - first] and version not in starts
    ]

    def kept(events: pa.Table) -> pa.Table:
        return events if of is None else _naming(events, of, store.url)

    parts = [events for version in starts for events in _live_at(store, version, kept)]
    parts += map(kept, read_events_by_runs(store, commits))
    return FileHistory(store.url, first, known, starts, pa.concat_tables([EVENTS.empty_table(), *parts]))


def _known(listing: Listing, first: int, newest: int) -> tuple[Flags, tuple[int, ...]]:
    """Which versions the log tells of, and those that only a checkpoint tells of."""
    known = np.zeros(newest - first + 1, np.bool_)
    starts: list[int] = []
    goes_on = True
    for version in range(first, newest + 1):
        goes_on = version in listing.commits and (version == 0 or (goes_on and version > first))
        if not goes_on and version in listing.checkpoints:
            starts.append(version)
            goes_on = True
        known[version - first] = goes_on
    return known, tuple(starts)


def _live_at(store: Store, version: int, kept: Callable[[pa.Table], pa.Table]) -> list[pa.Table]:
    """Some of the live files of a version, as if it had added them."""

    def as_events(files: pa.Table) -> pa.Table:
        columns = [
            pa.repeat(pa.scalar(version, pa.int64()), files.num_rows),
            pa.repeat(pa.scalar(ADDED, pa.int64()), files.num_rows),
            files.column("path"),
            files.column("size"),
            files.column("deletionVector"),
        ]
        return kept(pa.Table.from_arrays(columns, schema=EVENTS))

    return load_snapshot(store, version).map_files(as_events)


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """A table in one piece."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def named_by(events: pa.Table, root: str) -> pa.Array:
    """The files, those of deletion vectors too, that events name, each once, as a listing has them."""
    found: list[pa.Array] = []
    for batch in events.to_batches():
        found.append(stored_paths(batch.column("path"), root))
        found.append(vector_paths(batch.column("deletionVector"), root).drop_null())
    return pc.unique(pa.chunked_array(found, pa.string()))


def needs_any(clone: Snapshot, root: str, paths: pa.Array) -> bool:
    """Whether a version of a table names one of some files of another.

    Args:
        clone: The version.
        root: URL of the other table.
        paths: Its files, as a listing of it has them.
    """
    where = _one_spelling(pa.array([root.rstrip("/") + "/"]))[0].as_py()
    named = named_by(clone.files, clone.store.url)
    elsewhere = _one_spelling(named.filter(pc.match_substring_regex(named, ABSOLUTE)))
    inside = elsewhere.filter(pc.starts_with(elsewhere, where))
    return bool(pc.any(pc.is_in(pc.utf8_slice_codeunits(inside, len(where)), value_set=paths), min_count=0).as_py())


def _one_spelling(urls: pa.Array) -> pa.Array:
    """Addresses of a file system that has several names."""
    local = pc.replace_substring_regex(urls, "^(file://localhost/+|file:/+|/+)", "file:/")
    return pc.replace_substring_regex(local, "^s3[an]:", "s3:")


def versions_where(history: FileHistory, flags: Flags) -> tuple[int, ...]:
    """The versions for which a flag is set."""
    return tuple(int(n) + history.first for n in np.flatnonzero(flags))
