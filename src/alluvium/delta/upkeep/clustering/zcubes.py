"""Z-cubes: files that were clustered together. Which files are clustered next, and what the log says of them then.

A cube is what its files' tags say, as in the reference, which goes on with these. It takes every cube that is smaller
than 100 GB together with each new file: a table below that is written anew as a whole, time and again. Here
a cube is taken up again only when as much has come since as is worth it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.description.shown_columns import shown_path
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.spec import STRING_MAP
from alluvium.delta.upkeep.optimize import Bins, bins_of
from alluvium.delta.upkeep.packing import one_bin, sizes_of
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS
from alluvium.schema.edit import Path

#: "clusteringProvider: The name of the clustering implementation"
PROVIDER = "liquid"
CUBE_ID, CUBE_COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"

#: Of the reference's settings, bytes: cubes from this size on are left as they are, and cubes are not made larger.
LARGE_CUBE_BYTES = 100 << 30
TARGET_CUBE_BYTES = 150 << 30
#: Smaller cubes are always taken: it takes no time.
_TINY_BYTES = 4 << 20
#: A cube is taken that is at most so many times what is taken already.
_WORTH = 4


@dataclass(frozen=True, slots=True)
class CubeSizes:
    """When a cube is large, bytes.

    Attributes:
        large_bytes: Cubes of this size are left as they are, and all smaller ones are taken together with new files;
            None: smaller ones only where it is worth it.
        target_bytes: What is put into one cube comes to this much at most.
    """

    large_bytes: int | None = None
    target_bytes: int = TARGET_CUBE_BYTES


DEFAULT_CUBES = CubeSizes()


@dataclass(frozen=True, slots=True)
class CubeFigures:
    """What the reference's answer tells of a clustering: numbers of files, and their bytes.

    Attributes:
        in_cubes: Files in cubes of the table's columns.
        others: Files in none, or in one of other columns.
        cubes: How many such cubes there were.
        merged: Files that are written anew.
    """

    in_cubes: tuple[int, int]
    others: tuple[int, int]
    cubes: int
    merged: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CubePlan:
    """Which files become which cubes: each bin one; and the figures."""

    bins: Bins
    figures: CubeFigures


def plan_cubes(
    snapshot: Snapshot, columns: Sequence[Path], sizes: CubeSizes, file_bytes: int, full: bool = False
) -> CubePlan:
    """The files that are clustered next: those in no cube, with cubes that are small beside them.

    Args:
        snapshot: The version.
        columns: Of the table, by which it is clustered.
        sizes: When a cube is large.
        file_bytes: What a file should come to.
        full: Also files that were clustered by other columns, or by somebody else.
    """
    files = with_stats_text(snapshot.files)
    cubes = _cube_ids(files)
    ours = _is_of(files, cubes, columns)
    large = _large_cubes(snapshot, files.filter(ours), cubes.filter(ours), sizes, full)
    chosen = pc.and_(ours, pc.invert(pc.and_(cubes.is_valid(), pc.is_in(cubes, value_set=large))))
    if full and not pc.all(ours, min_count=0).as_py():
        chosen = pc.or_(chosen, pc.invert(ours))
    elif _is_one_cube(cubes.filter(chosen)):
        chosen = pa.repeat(False, files.num_rows)
    taken = files.filter(chosen)
    figures = _figures(files, cubes, pc.or_(_columns_are(files, columns), full), taken)
    return CubePlan(_bins(taken, cubes.filter(chosen), sizes, file_bytes), figures)


def cube_marks(bins: pa.Array, columns: Sequence[Path]) -> pa.Table:
    """What the log says of files that were clustered (columns of `FILES`); those of a bin are a cube.

    Args:
        bins: The bin of each file; a file of which nobody knows it is a cube by itself.
        columns: By which they were clustered.
    """
    said = msgspec.json.encode([shown_path(path) for path in columns]).decode()
    ids: dict[int, str] = {}
    tags = []
    for number in bins.to_pylist():
        cube = str(uuid.uuid4()) if number is None else ids.setdefault(number, str(uuid.uuid4()))
        tags.append([(CUBE_ID, cube), (CUBE_COLUMNS, said)])
    providers = pa.repeat(pa.scalar(PROVIDER, pa.string()), len(bins))
    return pa.table({"tags": pa.array(tags, STRING_MAP), "clusteringProvider": providers})


def kept_marks(bins: Bins, written: pa.Array) -> pa.Table:
    """What the log says of files that hold the rows of one cube's files, as they were: what it said of those.

    Args:
        bins: Those, in bins of one cube each.
        written: The bin of each new file; one of which nobody knows it is of no cube.
    """
    places = pc.index_in(written, value_set=bins.numbers)
    places = pc.if_else(written.is_valid(), places, pa.scalar(None, places.type))
    return bins.files.select(["tags", "clusteringProvider"]).take(places)


def cube_groups(files: pa.Table) -> list[pa.Table]:
    """Some files (`FILES`), cube by cube; those of none side by side."""
    cubes = pc.fill_null(_cube_ids(files), "")
    return [files.filter(pc.equal(cubes, cube)) for cube in pc.unique(cubes)]


def _tag(files: pa.Table, name: str) -> pa.Array:
    return pc.map_lookup(files["tags"].combine_chunks(), name, "first")


def _cube_ids(files: pa.Table) -> pa.Array:
    """The cube of each file; null where it does not say by which columns, too."""
    said = _tag(files, CUBE_COLUMNS)
    return pc.if_else(said.is_valid(), _tag(files, CUBE_ID), pa.scalar(None, pa.string()))


def _columns_are(files: pa.Table, columns: Sequence[Path]) -> pa.Array:
    """Whether each file lies in a cube of these columns."""
    said = _tag(files, CUBE_COLUMNS)
    names = [shown_path(path) for path in columns]
    same = [text for text in pc.unique(said).to_pylist() if text is not None and _names(text) == names]
    return pc.and_(_tag(files, CUBE_ID).is_valid(), pc.is_in(said, value_set=pa.array(same, pa.string())))


def _names(text: str) -> list[str] | None:
    try:
        return msgspec.json.decode(text, type=list[str])
    except DECODE_ERRORS:
        # Nobody is kept from reading: the file is then one of other columns.
        return None


def _is_of(files: pa.Table, cubes: pa.Array, columns: Sequence[Path]) -> pa.Array:
    """Whether each file is for this clustering to take: of its cubes, or of none, and nobody else clustered it."""
    providers = files["clusteringProvider"].combine_chunks()
    free = pc.or_(providers.is_null(), pc.fill_null(pc.equal(providers, PROVIDER), False))
    return pc.and_(free, pc.or_(cubes.is_null(), _columns_are(files, columns)))


def _large_cubes(snapshot: Snapshot, files: pa.Table, cubes: pa.Array, sizes: CubeSizes, full: bool) -> pa.Array:
    """Of the cubes of some files those that are left as they are."""
    grouped = pa.table({"cube": cubes, "size": _live_bytes(snapshot, files)})
    rows = grouped.group_by("cube", use_threads=False).aggregate([("size", "sum")]).sort_by("size_sum").to_pylist()
    taken = sum(row["size_sum"] for row in rows if row["cube"] is None)
    bound = LARGE_CUBE_BYTES if full and sizes.large_bytes is None else sizes.large_bytes
    left = []
    for row in (row for row in rows if row["cube"] is not None):
        size = row["size_sum"]
        if bound is None:
            # The smallest first: each that is taken makes the next one worth it sooner.
            worth = size < LARGE_CUBE_BYTES and (not taken or size <= max(_TINY_BYTES, _WORTH * taken))
        else:
            worth = size < bound
        if worth:
            taken += size
        else:
            left.append(row["cube"])
    return pa.array(left, pa.string())


def _live_bytes(snapshot: Snapshot, files: pa.Table) -> pa.Array:
    """The bytes of each file that are of rows which no vector deletes, as far as it says."""
    live = live_counts(snapshot, files).cast(pa.float64())
    deleted = pc.fill_null(pc.struct_field(vectors_of(files), "cardinality"), 0).cast(pa.float64())
    share = pc.fill_null(pc.divide(live, pc.add(live, deleted)), 1.0)
    share = pc.if_else(pc.is_finite(share), share, 1.0)
    sizes = files["size"].combine_chunks().cast(pa.float64())
    return pc.floor(pc.multiply(sizes, share)).cast(pa.int64())


def _is_one_cube(cubes: pa.Array) -> bool:
    """Whether all files are of one cube already, so that there is nothing to put them together with."""
    return not cubes.null_count and len(pc.unique(cubes)) < 2


def _bins(files: pa.Table, cubes: pa.Array, said: CubeSizes, file_bytes: int) -> Bins:
    # As in the reference: files in no cube first, then cube by cube.
    files = files.take(pc.sort_indices(pc.fill_null(cubes, "")))
    sizes, large = sizes_of(files["size"]), said.large_bytes
    bins = one_bin(files.num_rows).packed(sizes, max(said.target_bytes, large or 0))
    # Unlike there, no small cube is left over where two large ones can be made: the next rows that come would have it
    # clustered again.
    bins = bins.evened(sizes, LARGE_CUBE_BYTES if large is None else large)
    return bins_of(files, bins, tuple(np.maximum(1, bins.sums(sizes) // file_bytes).tolist()))


def _figures(files: pa.Table, cubes: pa.Array, matches: pa.Array, taken: pa.Table) -> CubeFigures:
    inside = pc.and_(cubes.is_valid(), matches)
    return CubeFigures(
        _counted(files.filter(inside)),
        _counted(files.filter(pc.invert(inside))),
        len(pc.unique(cubes.filter(inside))),
        _counted(taken),
    )


def _counted(files: pa.Table) -> tuple[int, int]:
    return files.num_rows, total(files["size"])
