"""What VACUUM asks of the log: which commits are within the retention, what their files are, and for VACUUM LITE where
the last one ended (`_last_vacuum_info`, a file of delta-spark's).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.log.in_commit_timestamp import Enablement, enablement
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.log.segment import Listing, list_log
from alluvium.delta.log.timeline import file_times, read_commit_infos, version_at
from alluvium.delta.upkeep.vacuum.files import (
    Needed,
    needed_files,
    newest_of_each,
    stored_paths,
    vector_paths,
    without_inner_tables,
)
from alluvium.delta.upkeep.vacuum.versions import ADDED, as_batch, read_events
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS, InvalidRequest, NotFound
from alluvium.storage.listing import without_folders
from alluvium.storage.store import LISTED, ObjectInfo, Store

LAST_VACUUM_PATH = f"{LOG_DIRECTORY}/_last_vacuum_info"


#: Paths that lead elsewhere, or that no listing has; and those into the log.
_NO_FILE_OF_THE_TABLE = rf"^([A-Za-z][A-Za-z0-9+.\-]*:)?/|(^|/)\.{{0,2}}(/|$)|\x00|(?i:(^|/){LOG_DIRECTORY}(/|$))"


class _LastVacuum(msgspec.Struct, frozen=True, omit_defaults=True):
    version: int | None = msgspec.field(default=None, name="latestCommitVersionOutsideOfRetentionWindow")


_LAST_VACUUM = msgspec.json.Decoder(_LastVacuum)


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


#: Columns of an inventory: what they are in a listing, and which types they may have.
_INVENTORY: Mapping[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "path": ("path", _is_text),
    "length": ("size", pa.types.is_integer),
    "isDir": ("is_directory", pa.types.is_boolean),
    "modificationTime": ("modified_ms", pa.types.is_integer),
}


@dataclass(frozen=True, slots=True)
class Retention:
    """What of a table's past is kept.

    Attributes:
        cutoff_ms: The time before which it is past.
        listing: The files of the log.
        last_past: The newest version that was followed by another before that time, or was the newest at it, by
            whichever clock says that it is older; -1: none.
    """

    cutoff_ms: int
    listing: Listing
    last_past: int


def read_retention(snapshot: Snapshot, cutoff_ms: int) -> Retention:
    """What of a table's past is kept, by the times of its commits: those of the files, which are the store's own, and
    those that commits carry. What only one of the two calls old is not past.
    """
    listing = list_log(snapshot.store)
    past = [time.version for time in file_times(listing.commits) if time.timestamp_ms < cutoff_ms]
    last_past = max(past, default=-1)
    in_commit = enablement(snapshot.config)
    if in_commit is not None and last_past >= 0:
        last_past = min(last_past, _past_in_commit(snapshot, cutoff_ms, in_commit))
    return Retention(cutoff_ms, listing, min(last_past, snapshot.version))


def _past_in_commit(snapshot: Snapshot, cutoff_ms: int, in_commit: Enablement) -> int:
    """The newest version that carries a time before the cut-off; -1: none, or nobody can tell."""
    newest = read_commit_infos(snapshot.store, [snapshot.version], in_commit)
    if any(carried_ms < cutoff_ms for _, _, carried_ms in newest):
        return snapshot.version
    try:
        return version_at(snapshot.store, cutoff_ms - 1, in_commit)
    except NotFound:
        return -1


def read_needed(snapshot: Snapshot, retention: Retention) -> Needed:
    """The files that have to stay: those of the newest version, and of each that is younger than the cut-off.

    Tombstones say when a file was removed by the clock of whoever removed it. So the commits within the retention are
    read, too: what they removed, and the change data that they recorded, is kept whatever a tombstone says.
    """
    events = read_events(snapshot.store, commits_within(snapshot, retention))
    actions = (snapshot.files, young_tombstones(snapshot.tombstones, retention), events)
    return needed_files((batch for table in actions for batch in table.to_batches()), snapshot.store.url)


def young_tombstones(tombstones: pa.Table, retention: Retention) -> pa.Table:
    """Those that are within the retention."""
    removed_ms = pc.fill_null(tombstones.column("deletionTimestamp"), 0)
    return tombstones.filter(pc.greater_equal(removed_ms, retention.cutoff_ms))


def commits_within(snapshot: Snapshot, retention: Retention) -> list[ObjectInfo]:
    """The commits within the retention, up to a version."""
    commits = retention.listing.commits.items()
    return [info for version, info in commits if retention.last_past < version <= snapshot.version]


def list_past(snapshot: Snapshot, retention: Retention) -> pa.Table:
    """The files that commits before the cut-off removed, and their change data, as if they had been listed.

    As in delta-spark, only the commits since the last VACUUM are looked at, and all of them must still be there.

    Raises:
        InvalidRequest: They are not (`cannot-vacuum-lite`).
    """
    store, commits = snapshot.store, retention.listing.commits
    last, earliest = read_last_vacuum(store), min(commits, default=0)
    if retention.last_past < 0:
        return LISTED.empty_table()
    if earliest != 0 and (last is None or last < earliest):
        raise InvalidRequest(
            "VACUUM LITE looks into the commits since the last VACUUM, and some of them are gone from the log: "
            f"it begins with version {earliest}",
            code="cannot-vacuum-lite",
            hint="run VACUUM (FULL) once",
        )
    first = earliest if last is None else last + 1
    events = read_events(store, [i for v, i in commits.items() if first <= v <= retention.last_past])
    batch = as_batch(events.filter(pc.not_equal(events.column("kind"), ADDED)))
    paths = stored_paths(batch.column("path"), store.url)
    vectors = vector_paths(batch.column("deletionVector"), store.url)
    sizes = pc.struct_field(batch.column("deletionVector"), "sizeInBytes").cast(pa.int64())
    named = pa.table({"path": pa.chunked_array([paths, vectors]), "size": pa.chunked_array([batch["size"], sizes])})
    return _as_listed(named.filter(pc.is_valid(named.column("path"))))


def _as_listed(named: pa.Table) -> pa.Table:
    """Files below the table's root, each once; sizes as far as they are known. Files of the log are none of them,
    whatever somebody who wants to do harm has written into it.
    """
    outside = pc.match_substring_regex(named.column("path"), _NO_FILE_OF_THE_TABLE)
    inside = named.filter(pc.invert(outside)).group_by("path").aggregate([("size", "max")])
    count = inside.num_rows
    columns = [
        inside.column("path"),
        pc.fill_null(inside.column("size_max"), 0),
        pa.repeat(pa.scalar(0, pa.int64()), count),
        pa.repeat(pa.scalar(False), count),
    ]
    return pa.Table.from_arrays(columns, schema=LISTED)


def read_last_vacuum(store: Store) -> int | None:
    """The newest version that was past at the last VACUUM; None where nobody says."""
    try:
        return _LAST_VACUUM.decode(store.get(LAST_VACUUM_PATH)).version
    except (NotFound, *DECODE_ERRORS):
        return None


def write_last_vacuum(store: Store, version: int) -> None:
    """Says how far VACUUM has come, unless that is known to be further."""
    known = read_last_vacuum(store)
    if version > (-1 if known is None else known):
        store.put(LAST_VACUUM_PATH, msgspec.json.encode(_LastVacuum(version)) + b"\n")


def from_inventory(inventory: pa.Table, root: str, is_hidden: Callable[[str], bool]) -> pa.Table:
    """Rows of an inventory as a listing has them; what lies elsewhere, or is not whole, is left out.

    Args:
        inventory: `path` (whole, not escaped), `length`, `isDir`, `modificationTime` (milliseconds since 1970 UTC).
        root: URL of the table.
        is_hidden: Of names.

    Raises:
        InvalidRequest: It has other columns (`invalid-inventory`).
    """
    types = {field.name: field.type for field in inventory.schema}
    wrong = [name for name, (_, fits) in _INVENTORY.items() if name not in types or not fits(types[name])]
    if wrong:
        raise InvalidRequest(
            f"an inventory needs a column {wrong[0]} of its type",
            code="invalid-inventory",
            column=wrong[0],
            hint="path STRING, length BIGINT, isDir BOOLEAN, modificationTime BIGINT (milliseconds)",
        )
    columns = {ours: inventory.column(theirs).cast(LISTED.field(ours).type) for theirs, (ours, _) in _INVENTORY.items()}
    whole = pa.table(columns).drop_null()
    paths = _below(whole.column("path"), root)
    inside = whole.set_column(0, "path", paths).filter(pc.is_valid(paths)).select(LISTED.names).cast(LISTED)
    seen = [without_folders(batch, 0, is_hidden) for batch in without_inner_tables(inside).to_batches()]
    return newest_of_each(pa.Table.from_batches(seen, LISTED))


def _below(paths: pa.ChunkedArray, root: str) -> pa.ChunkedArray:
    """Addresses relative to a root, by whichever of its spellings they begin with; null for those elsewhere."""
    found: pa.ChunkedArray = pa.chunked_array([pa.nulls(len(paths), pa.string())])
    for spelling in _spellings(root):
        below = pc.utf8_slice_codeunits(paths, len(spelling))
        found = pc.if_else(pc.starts_with(paths, spelling), below, found)
    senseless = pc.match_substring_regex(found, r"(^|/)\.{0,2}(/|$)")
    return pc.if_else(pc.fill_null(senseless, True), pa.scalar(None, pa.string()), found)


def _spellings(root: str) -> tuple[str, ...]:
    root = root.rstrip("/")
    scheme, colon, rest = root.partition(":")
    others = {"file": ("file://", ""), "s3a": ("s3:", "s3n:")}.get(scheme, ()) if colon else ()
    return (f"{root}/", *(f"{other}{rest}/" for other in others))
