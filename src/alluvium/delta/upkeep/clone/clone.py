"""The verb CLONE: what the clone consists of, and its commit. Files are named or copied; no row is read."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import repeated
from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.log.replay import logical_file_keys
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions, tombstones_of, total
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.clone.addresses import absolute_paths, absolute_vectors
from alluvium.delta.upkeep.clone.copies import Copies, plan_copies
from alluvium.delta.upkeep.clone.copying import copied
from alluvium.delta.upkeep.clone.description import cloned_config, cloned_domains
from alluvium.delta.upkeep.missing_files import ensure_still_there, missing_of, refuse_missing
from alluvium.delta.upkeep.vacuum.files import ABSOLUTE
from alluvium.delta.upkeep.vacuum.versions import named_by
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import publish
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue
from alluvium.storage.elsewhere import ensure_all_same_side
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import decode_uri_paths, is_near, join, relative_to
from alluvium.storage.places import same_place, without_links
from alluvium.storage.store import Store

#: What an earlier deep clone left that was killed.
_LEFT = re.compile(r"copy-[0-9a-f]{32}/")


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """What is to be done.

    Attributes:
        name: Of the source, for the history.
        shallow: Whether files stay where they are, and are named there.
        replace: Whether the clone may take the place of a table.
        properties: In place of the source's, or beside them.
        engine: For the history.
        user_metadata: What the caller says of the commit.
    """

    name: str
    shallow: bool
    replace: bool = False
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    engine: str = ""
    user_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a clone changes.

    Attributes:
        config: Of the clone.
        added: Files that come (`FILES`).
        removed: Files of the table in whose place it is put, which go (`FILES`).
        copies: What is copied; None: nothing is.
        metrics: Under the names of the history.
    """

    config: TableConfig
    added: pa.Table
    removed: pa.Table
    copies: Copies | None
    metrics: Mapping[str, str]


def clone(
    source: Snapshot,
    store: Store,
    existing: Snapshot | None,
    request: CloneRequest,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Makes a table that begins as another one at a version, or puts it in the place of a table.

    Args:
        source: The version to clone, or what was found in a folder (`convert.found`).
        store: Where the clone goes.
        existing: The table that is there; None: there is none.
        request: How.
        dry_run: Only tell what would come of it.
        retry: How often to try.

    Raises:
        InvalidRequest: There is a table and it is not to be replaced (`table-exists`), or something else
            (`location-not-empty`); the clone would lie in its source, or be it (`clone-of-itself`); properties that no
            table may have; another mapping of columns (`mapping-mode-change`); files that the clone cannot name
            (`unreachable-file`).
        NotFound: Files of the version are gone (`missing-file`); where VACUUM has removed them while a shallow clone
            was committed, it stands.
        UnsupportedFeature: Source or target need a writer that we are not.
        CorruptTable: The source's log names files in a way that nobody understands, or a file has another size.
        CommitConflict: Another writer was there first; the target is as that one left it.
    """
    _ensure_place(source, store, existing, request)
    with locating(source.store, None if _has_no_log(source) else source.version):
        ensure_writable(source.config)
        data_paths(source.files)
    with locating(store, None if existing is None else existing.version):
        plan = _plan(source, store, existing, request)
    needed = source.files if plan.copies is None else source.files.filter(plan.copies.is_new)
    doubtful = _doubtful(source, needed)
    missing = missing_of(source, doubtful)
    parameters: dict[str, JsonValue] = {"source": request.name, "sourceVersion": source.version}
    operation = Operation("CLONE", parameters, plan.metrics, request.engine, request.user_metadata)
    version = -1 if existing is None else existing.version
    if dry_run:
        before = None if existing is None else existing.config
        added, removed = (tuple(files.column("path").to_pylist()) for files in (plan.added, plan.removed))
        changes = differences(before, plan.config)
        return Preview(version, operation, changes, added, removed, missing=missing)
    refuse_missing(source, missing)
    # Files that stay were chosen among those that are there: whatever another commit does to these, be it to compact
    # them under the old description, belongs before the clone or after it.
    draft = Draft(
        _actions(plan, source, existing), ReadScope.table(), operation, version, config=plan.config, is_alone=True
    )
    with _ready(source, plan.copies, store):
        published = publish(store, draft, existing, retry)
    if plan.copies is None:
        hint = "clone a newer version of the source into its place, which VACUUM keeps"
        ensure_still_there(source, doubtful, f"version {published.entry.version} of {store.url}", hint)
    return Committed(published.entry.version, plan.added.select(["path", "size"]), plan.metrics, published.attempts)


def _ensure_place(source: Snapshot, store: Store, existing: Snapshot | None, request: CloneRequest) -> None:
    root, place = source.store.url, store.url
    here, there = str(without_links(root)), str(without_links(place))
    if same_place(root, place) or relative_to(here, there) or relative_to(there, here):
        raise _of_itself(root, place)
    if existing is not None and not request.replace:
        raise InvalidRequest(
            "where the clone is to be there is a table",
            code="table-exists",
            url=place,
            version=existing.version,
            hint="replace=True, or CREATE OR REPLACE TABLE, puts the clone in its place; its history stays",
        )
    if request.shallow and is_near(root) and not is_near(place):
        raise InvalidRequest(
            f"a shallow clone in {place} cannot name files of this machine",
            code="unreachable-file",
            url=root,
            hint="a deep clone copies them",
        )
    if existing is None:
        _ensure_free(store)


def _of_itself(root: str, place: str) -> InvalidRequest:
    # VACUUM of the outer table would take the files of the inner one for its own.
    return InvalidRequest(
        f"a clone cannot lie where its source is, nor one inside of the other: {place}",
        code="clone-of-itself",
        url=root,
        hint="RESTORE brings back an older version of a table; for a clone choose another place",
    )


def _ensure_own(files: pa.Table, store: Store) -> None:
    """Refuses files in the folder of the clone that are another table's there, which came by way of a third one."""
    named = named_by(files, store.url)
    inside = named.filter(pc.invert(pc.match_substring_regex(named, ABSOLUTE)))
    folders: set[str] = set()
    for above in pc.unique(pc.replace_substring_regex(inside, "/?[^/]*$", "")).to_pylist():
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    asked = sorted(folders)
    held = map_parallel(lambda folder: bool(store.list_names(f"{folder}/{LOG_DIRECTORY}")), asked)
    for folder, has_log in zip(asked, held, strict=True):
        if has_log:
            raise _of_itself(join(store.url, folder), store.url)


def _ensure_free(store: Store) -> None:
    """Refuses a place where something lies; what a clone left that was killed is nobody's."""
    found = next((info.path for info in store.list_tree("") if _LEFT.match(info.path) is None), None)
    if found is not None:
        raise InvalidRequest(
            f"where the clone is to be is something else: {found}",
            code="location-not-empty",
            url=store.url,
            path=found,
            hint="choose another place, or remove the files",
        )


def _plan(source: Snapshot, store: Store, existing: Snapshot | None, request: CloneRequest) -> _Plan:
    config = cloned_config(source.config, None if existing is None else existing.config, request.properties)
    files = _as_new(with_stats_text(source.files))
    copies = None if request.shallow else plan_copies(source, files, existing)
    if copies is None:
        files = _named(files, source, store)
        # Of a file that its source names, and that lies where no table's files are looked for.
        ensure_all_same_side(store.url, decode_uri_paths(files.column("path")))
    else:
        files = copies.files
    removed = FILES.empty_table()
    if existing is not None:
        ensure_writable(existing.config)
        if copies is None and not _has_no_log(source):
            _ensure_own(files, store)
        ours, theirs = _keys(files), _keys(existing.files)
        known = pc.is_in(ours, value_set=theirs)
        if _has_no_log(source):
            # There a file may be written over another of its name: it is said anew then, in the place of that one.
            known = pc.and_(known, pc.is_in(_contents(files, ours), value_set=_contents(existing.files, theirs)))
        files = files.filter(pc.invert(known))
        removed = existing.files.filter(pc.invert(pc.is_in(theirs, value_set=ours)))
        if removed.num_rows:
            ensure_removable(existing.config)
    return _Plan(config, files, removed, copies, _metrics(source, copies, removed))


def _as_new(files: pa.Table) -> pa.Table:
    """Files as they come into another table: "CLONE" gives their rows ids of that table, as in delta-spark."""
    count = files.num_rows
    for name, values in {
        "dataChange": repeated(True, count),
        "baseRowId": pa.nulls(count, pa.int64()),
        "defaultRowCommitVersion": pa.nulls(count, pa.int64()),
    }.items():
        place = FILES.get_field_index(name)
        files = files.set_column(place, FILES.field(place), values)
    return files


def _named(files: pa.Table, source: Snapshot, store: Store) -> pa.Table:
    root = source.store.url
    changed = {
        "path": absolute_paths(files.column("path"), root, store.url),
        "deletionVector": absolute_vectors(files, root),
    }
    for name, values in changed.items():
        place = FILES.get_field_index(name)
        files = files.set_column(place, FILES.field(place), values)
    return files


def _keys(files: pa.Table) -> pa.ChunkedArray:
    return pa.chunked_array([logical_file_keys(batch) for batch in files.to_batches()], pa.string())


def _contents(files: pa.Table, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = [files.column(name).cast(pa.string()) for name in ("size", "modificationTime")]
    return pc.binary_join_element_wise(keys, *texts, "\0")


def _doubtful(source: Snapshot, files: pa.Table) -> pa.Table:
    """Those of some files of a version that may be gone: what has left the table since, and what lies elsewhere, where
    another table's VACUUM may take it.
    """
    if _has_no_log(source):
        # They have just been listed.
        return files.slice(0, 0)
    elsewhere = pc.match_substring_regex(files.column("path"), ABSOLUTE)
    newest = refresh(source)
    if newest.version == source.version:
        return files.filter(elsewhere)
    left = pc.invert(pc.is_in(_keys(files), value_set=_keys(newest.files)))
    return files.filter(pc.or_(elsewhere, left))


def _has_no_log(source: Snapshot) -> bool:
    """Whether it is no version of a table."""
    return source.version < 0


def _metrics(source: Snapshot, copies: Copies | None, removed: pa.Table) -> dict[str, str]:
    data = None if copies is None else copies.data
    return {
        "sourceTableSize": str(total(source.files.column("size"))),
        "sourceNumOfFiles": str(source.files.num_rows),
        "numRemovedFiles": str(removed.num_rows),
        "numCopiedFiles": "0" if data is None else str(data.num_rows),
        "removedFilesSize": str(total(removed.column("size"))),
        "copiedFilesSize": "0" if data is None else str(total(data.column("size"))),
    }


def _actions(plan: _Plan, source: Snapshot, existing: Snapshot | None) -> Actions:
    return Actions(
        protocol=plan.config.protocol,
        metadata=plan.config.metadata,
        added=plan.added,
        removed=tombstones_of(plan.removed, int(time.time() * 1000)),
        domains=cloned_domains(source, existing),
        # As delta-spark has it where there was no table.
        info={} if existing is not None else {"readVersion": -1},
    )


@contextmanager
def _ready(source: Snapshot, copies: Copies | None, store: Store) -> Iterator[None]:
    """With all files that the clone names in their place."""
    if copies is None:
        yield
        return
    with copied(source, copies, store):
        yield
