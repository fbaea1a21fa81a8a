"""Which versions of a table can be read, and which VACUUM would take with it."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.log.timeline import file_times
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.vacuum.files import ABSOLUTE, choose_files, hides, with_unseen, without_inner_tables
from alluvium.delta.upkeep.vacuum.past import read_needed, read_retention
from alluvium.delta.upkeep.vacuum.versions import RECORDED, named_by, read_file_history
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.storage.listing import without_folders
from alluvium.storage.locating import locating
from alluvium.storage.paths import is_near
from alluvium.storage.store import LISTED, Store

#: One row a version. `timestamp` is that of the commit's file, null where that is gone.
READABLE_VERSIONS = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("readable", pa.bool_(), nullable=False),
        pa.field("after_vacuum", pa.bool_(), nullable=False),
    ]
)


def readable_versions(snapshot: Snapshot, retention_ms: int | None = None) -> pa.Table:
    """Which versions up to the newest can be read: the log tells of them, and their files are there.

    Files outside of the table's folder, as a shallow clone has them, are not looked for.

    Args:
        snapshot: A version of the table.
        retention_ms: What VACUUM would be asked for; None: the table's own retention.

    Returns:
        Schema `READABLE_VERSIONS`: whether a version can be read now, and after VACUUM.

    Raises:
        CorruptTable: The log is damaged.
    """
    with locating(snapshot.store, snapshot.version):
        return _readable_versions(snapshot, retention_ms)


def _readable_versions(snapshot: Snapshot, retention_ms: int | None) -> pa.Table:
    store = snapshot.store
    listed = pa.Table.from_batches(store.list_columns("", lambda name: False), LISTED)
    newest = refresh(snapshot)
    if retention_ms is None:
        retention_ms = parse_properties(newest.config.metadata.configuration).deleted_file_retention_ms
    cutoff_ms = int(time.time() * 1000) - retention_ms
    retention = read_retention(newest, cutoff_ms)
    history = read_file_history(store, retention.listing, newest.version)
    named = named_by(history.events.filter(pc.not_equal(history.events.column("kind"), RECORDED)), store.url)
    outside = pc.match_substring_regex(named, ABSOLUTE)
    there = pc.is_in(named, value_set=listed.column("path").combine_chunks())
    missing = _not_behind_links(store, named.filter(pc.invert(pc.or_(there, outside))))
    readable = history.known & ~history.without(missing)
    is_hidden = hides(newest.config)
    inside = without_inner_tables(listed)
    seen = pa.Table.from_batches([without_folders(batch, 0, is_hidden) for batch in inside.to_batches()], LISTED)
    needed = with_unseen(read_needed(newest, retention), seen)
    gone = choose_files(seen, needed, cutoff_ms, is_hidden).column("path").combine_chunks()
    times = {time.version: time.timestamp_ms for time in file_times(retention.listing.commits)}
    versions = range(history.first, newest.version + 1)
    columns = [
        pa.array(versions, pa.int64()),
        pa.array([times.get(version) for version in versions], pa.timestamp("ms", tz="UTC")),
        pa.array(readable),
        pa.array(readable & ~history.without(gone)),
    ]
    return pa.Table.from_arrays(columns, schema=READABLE_VERSIONS)


def _not_behind_links(store: Store, missing: pa.Array) -> pa.Array:
    """Those of some files that a listing lacks which are not there: it follows no links, readers do."""
    if not is_near(store.url):
        return missing
    folders = pc.unique(pc.replace_substring_regex(missing, r"[^/]*$", "")).to_pylist()
    names = [folder + name for folder in folders if folder for name in store.list_names(folder.rstrip("/"))]
    return missing.filter(pc.invert(pc.is_in(missing, value_set=pa.array(names, pa.string()))))
