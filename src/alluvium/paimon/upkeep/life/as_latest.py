"""A state of the past becomes the newest one by a commit: what came between stays in the history, with its tags.

Specification: `org.apache.paimon.operation.FileStoreCommitImpl.rollbackToAsLatest`.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, NotFound
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Draft, Replaced, Restored
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.paimon.upkeep.again import again
from alluvium.paimon.upkeep.life.tags import copy_tag, create_tag, delete_tag
from alluvium.paimon.write.target import publish
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

#: Begins the names of the tags that keep the files of such a state, and of who commits it.
_PREFIX = "rollback-to-as-latest-"
#: For how long such a tag stays beside another one, where a crash has left it.
_RETAINED_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback to the newest state has done.

    Attributes:
        previous: The snapshot that was the newest.
        restored: The one whose state is the newest again.
        current: The one that was committed.
    """

    previous: int
    restored: int
    current: int


def rollback_to_as_latest(
    store: Store,
    snapshot_id: int | None = None,
    tag: str | None = None,
    branch: str = MAIN_BRANCH,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> RolledBack:
    """Commits the state of a snapshot or a tag as the newest one.

    As in Java a tag keeps the snapshot from then on: other engines, which look at neighbours alone when snapshots
    expire, would delete files that are there again. Until the commit stands it is one of our own, which nobody deletes
    or replaces.

    Raises:
        InvalidRequest: Neither or both of snapshot and tag (`"contradicting-options"`).
        NotFound: There is no such snapshot or tag, or no snapshot at all.
        CommitConflict: Others committed every time.
    """
    if (snapshot_id is None) == (tag is None):
        raise InvalidRequest(
            "either a snapshot or a tag is to be gone back to", code="contradicting-options", hint="snapshot_id=3"
        )
    if load_snapshot(store, At(), branch).document is None:
        raise NotFound("the table has no snapshot", code="snapshot-not-found", url=store.url)
    name = f"{_PREFIX}{snapshot_id or tag}-{uuid.uuid4()}"
    if tag is None:
        create_tag(store, name, snapshot_id, branch=branch)
    else:
        copy_tag(store, tag, name, branch, _RETAINED_MS)
    try:
        done = _committed(store, load_snapshot(store, At(tag=name), branch), branch, retry)
    except (CommitConflict, NotFound):
        # Nothing was committed; after any other error nobody knows.
        _forget(store, name, branch)
        raise
    if tag is not None:
        # As Java has it the other one keeps the files.
        _forget(store, name, branch)
    return done


def _committed(store: Store, state: Snapshot, branch: str, retry: RetryPolicy) -> RolledBack:
    document = state.document
    assert document is not None, "tags are of snapshots"

    def attempt() -> RolledBack:
        base = load_snapshot(store, At(), branch)
        if base.document is None:
            raise NotFound("the table has no snapshot any more", code="snapshot-not-found", url=store.url)
        published = publish(store, _draft(base, state), base, retry)
        return RolledBack(base.document.id, document.id, published.entry.version)

    return again(attempt, retry, "rolled back")


def _draft(base: Snapshot, state: Snapshot) -> Draft:
    document = state.document
    assert document is not None, "tags are of snapshots"
    there, wanted = (removed_entries(one, Replaced()) for one in (base, state))
    added = wanted.filter(pc.invert(pc.is_in(identities(wanted), value_set=identities(there))))
    gone = there.filter(pc.invert(pc.is_in(identities(there), value_set=identities(wanted))))
    indexes = INDEX_ENTRIES.empty_table()
    if document.index_manifest is not None:
        indexes = read_index_manifest(state.store, document.index_manifest)
    return Draft(
        base.schema,
        added,
        Replaced(files=gone["file_name"].combine_chunks()),
        user=f"{_PREFIX}{uuid.uuid4()}",
        properties=document.properties or {},
        reads=True,
        # Java leaves out every file that any manifest deletes, be it added again afterwards.
        merges_manifests=True,
        restored=Restored(base.version, indexes, document.next_row_id or 0, document),
    )


def identities(entries: pa.Table) -> pa.Array:
    """What tells an entry from others: a file is on another level after a compaction that has not read it."""
    levels, extras = entries["level"].cast(pa.string()), pc.binary_join(entries["extra_files"], ",")
    names = pc.binary_join_element_wise(entries["file_name"], levels, extras, "/", null_handling="replace")
    return names.combine_chunks()


def _forget(store: Store, name: str, branch: str) -> None:
    try:
        delete_tag(store, name, branch)
    except AlluviumError as error:
        log.warning("the tag %s of a rollback stays: %s", name, error)
