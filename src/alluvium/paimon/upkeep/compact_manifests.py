"""Compaction of manifests: what readers must read before they know the files, in as few objects as it fits into.

Specification: `org.apache.paimon.operation.FileStoreCommitImpl.compactManifest`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.files.manifest import read_manifest_list
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.options import MANIFEST_TARGET_SIZE
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating


def compact_manifests(snapshot: Snapshot, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
    """Writes all manifests anew, without entries of files that are gone; the rows stay as they are.

    Args:
        snapshot: The newest state.
        retry: How often a lost commit is tried again.

    Returns:
        The snapshot; `attempts` is 0 where there is nothing to merge.

    Raises:
        UnsupportedFeature: A later version of the format says more than can be carried on (`"unknown-manifest-field"`).
        CommitConflict: Others were faster every time.
    """
    document = snapshot.document
    if document is None:
        return Committed.nothing(0)
    with locating(snapshot.store, snapshot.version):
        lists = (document.base_manifest_list, document.delta_manifest_list)
        manifests = pa.concat_tables([read_manifest_list(snapshot.store, name) for name in lists])
        size = int(pc.sum(manifests["file_size"]).as_py() or 0)
        least = max(1, -(-size // MANIFEST_TARGET_SIZE.get(snapshot.schema.options)))
        deleted = int(pc.sum(manifests["num_deleted_files"]).as_py() or 0)
    if manifests.num_rows <= least and not deleted:
        return Committed.nothing(document.id)
    draft = Draft(snapshot.schema, ENTRIES.empty_table(), compacts=True, merges_manifests=True)
    published = publish(snapshot.store, draft, snapshot, retry)
    done = Committed.nothing(published.entry.version)
    return Committed(done.version, done.files, {"numRemovedManifests": str(manifests.num_rows)}, published.attempts)
