"""Data files that the newest state names and that are not there: taken out of it, so that what is left can be read.

The rows of such files are lost already, whoever deleted them. Only "not found" counts, and only where it is answered
twice. Specification:
`org.apache.paimon.operation.ListUnexistingFiles`; `sys.remove_unexisting_files`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import NotFound, StorageError, UnsupportedFeature
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.vectors import edit_files
from alluvium.paimon.terms.options import DATA_EVOLUTION
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import TOUCHED_FILES
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.elsewhere import Mounts, locate
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute, resolve


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not there.

    Attributes:
        paths: Of the files, as the table names them.
        rows: How many rows the table has said are in them.
        version: The snapshot that names none of them; None: nothing was committed.
    """

    paths: tuple[str, ...]
    rows: int
    version: int | None = None


def remove_missing_files(snapshot: Snapshot, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Missing:
    """Commits a state without the files that are gone.

    Args:
        snapshot: The newest state.
        dry_run: Only say which.
        retry: How often a lost commit is tried again.

    Raises:
        StorageError: It cannot be told of a file whether it is there, be it that its place is not mounted; nothing was
            committed.
        UnsupportedFeature: Rows have their columns in several files (`"unsupported-row-change"`).
        CommitConflict: Others wrote meanwhile.
    """
    if snapshot.document is None:
        return Missing((), 0)
    with locating(snapshot.store, snapshot.version):
        schema, entries = snapshot.schema, snapshot.entries
        paths = data_paths(entries, partitions_of(entries, schema), schema)
        lost = _gone(snapshot, _gone(snapshot, paths))
        gone = entries.filter(pc.is_in(paths, value_set=lost))
        found = Missing(tuple(lost.to_pylist()), int(pc.sum(gone["row_count"]).as_py() or 0))
        if dry_run or not found.paths:
            return found
        if DATA_EVOLUTION.get(schema.options):
            raise UnsupportedFeature(
                "of tables with data evolution a file that is gone leaves its rows without some of their columns",
                code="unsupported-row-change",
                path=found.paths[0],
                features=(DATA_EVOLUTION.key,),
                hint="go back to a snapshot or a tag all of whose files are there",
            )
        touched = pa.table([lost, pa.nulls(len(lost), pa.binary())], schema=TOUCHED_FILES)
        vectors = edit_files(snapshot, gone, touched).vectors
    replaced = Replaced(files=gone["file_name"].combine_chunks())
    published = publish(snapshot.store, Draft(schema, ENTRIES.empty_table(), replaced, edits=vectors), snapshot, retry)
    return Missing(found.paths, found.rows, published.entry.version)


def _gone(snapshot: Snapshot, paths: pa.Array) -> pa.Array:
    """Those of some files that are not there."""
    mounts = Mounts(snapshot.open_store)
    names = paths.to_pylist()
    return paths.filter(pa.array(map_parallel(lambda path: _is_gone(snapshot, path, mounts), names), pa.bool_()))


def _is_gone(snapshot: Snapshot, path: str, mounts: Mounts) -> bool:
    store, name = snapshot.store, path
    if is_absolute(path):
        path = resolve(store.url, path)
        store, name = locate(store, snapshot.open_store, path)
    try:
        store.head(name)
    except NotFound:
        if store is snapshot.store or mounts.has(path):
            return True
        raise StorageError(
            "it cannot be told whether a file elsewhere is there, as nothing near it is",
            code="store-unreachable",
            path=path,
            hint="perhaps the place is not mounted, or was moved",
        ) from None
    return False
