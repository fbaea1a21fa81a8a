"""Manifests compacted: all that is live in as few files as need be, by a commit that changes no row.

Specification: `FileStoreCommitImpl.compactManifest`.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.options import MANIFEST_MERGE_MIN_COUNT
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import publish
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy


def compact_manifests(snapshot: Snapshot, retry: RetryPolicy = DEFAULT_RETRY) -> int | None:
    """Writes the manifests of the newest state anew; the new snapshot's id, None where the table has no snapshot."""
    if snapshot.document is None:
        return None
    schema = snapshot.schema
    merging = replace(schema, options={**schema.options, MANIFEST_MERGE_MIN_COUNT.key: "2"})
    draft = Draft(schema, ENTRIES.empty_table(), compacts=True)
    return publish(snapshot.store, draft, replace(snapshot, schema=merging), retry).entry.version
