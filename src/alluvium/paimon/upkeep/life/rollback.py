"""Rollback: a table goes back to a snapshot, a tag or a time. What came after is gone from its history, tags of it too.

The files of what came after stay, as in Java: writers may be at work that began on them; `remove_orphan_files` takes
them. Specification: `org.apache.paimon.table.RollbackHelper`.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Sequence

from alluvium.errors import NotFound
from alluvium.paimon.commit.callers import take_back
from alluvium.paimon.log.names import directory, is_there, list_numbers, read_file
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.travel import At, find_snapshot, find_until_watermark, list_snapshots, read_snapshot, read_tag
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.paimon.upkeep.life.tags import create_tag, list_all_tags, names_as, still_names, tag_changed, tag_path
from alluvium.storage.store import PutOutcome, Store

#: Names of tags that stand while a rollback goes on.
_PREFIX = "rollback-"
_OWN = re.compile(_PREFIX + "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rollback_to_snapshot(store: Store, snapshot_id: int, branch: str = MAIN_BRANCH) -> int:
    """Goes back to a snapshot.

    Returns:
        Its id.

    Raises:
        NotFound: There is no such snapshot: nothing was changed.
        StorageError: Something could not be deleted; the table is at the snapshot, or at a later one of those there
            were. Repeating it does the rest.
    """
    read_snapshot(store, snapshot_id, branch)
    # Snapshots may be expiring at this moment, this one among them: its files stay as those of a tag.
    name = f"{_PREFIX}{uuid.uuid4()}"
    create_tag(store, name, snapshot_id, branch=branch)
    try:
        return rollback_to_tag(store, name, branch)
    finally:
        _forget_own_tags(store, snapshot_id, branch)


def _forget_own_tags(store: Store, snapshot_id: int, branch: str) -> None:
    """The tag of a rollback, and what a crash has left of an earlier one to the same snapshot."""
    for tag in list_all_tags(store, branch):
        if tag.document.id == snapshot_id and _OWN.fullmatch(tag.name):
            store.delete(tag_path(tag.name, branch))


def rollback_to_tag(store: Store, name: str, branch: str = MAIN_BRANCH) -> int:
    """Goes back to a tag, be its snapshot expired; returns and errors as for a snapshot."""
    document = read_tag(store, name, branch)
    number, path = document.id, f"{directory(branch, 'snapshot')}/snapshot-{document.id}"
    later = [one for one in list_snapshots(store, branch) if one > number]
    while True:
        _put_back(store, name, path, document, branch)
        _forget(store, number, later, branch)
        known = list_snapshots(store, branch)
        # Writers may have put snapshots behind those that were there; one behind this one began on it.
        following = itertools.takewhile(known.__contains__, itertools.count(number + 1))
        later = sorted({one for one in known if one > number}.difference(following))
        if not later and number in known:
            return number


def _put_back(store: Store, name: str, path: str, document: SnapshotDocument, branch: str) -> None:
    """The snapshot of a tag, where it has expired: "the earliest snapshot is later than the rollback tag"."""
    if is_there(store, path):
        return
    tag = tag_path(name, branch)
    changed = tag_changed(name, tag)
    content = read_file(store, tag, changed)
    if not names_as(content, tag, document):
        raise changed
    outcome = store.put_if_absent(path, content)
    if outcome is PutOutcome.UNKNOWN and not is_there(store, path):
        raise NotFound("the snapshot could not be put back", code="snapshot-not-found", path=path)
    if not still_names(store, tag, document):
        # Whoever deleted or replaced the tag may have looked for snapshots before this one was there.
        store.delete(path)
        raise changed
    folder, _, own = path.rpartition("/snapshot-")
    store.put(f"{folder}/EARLIEST", own.encode())


def rollback_to_time(store: Store, timestamp_ms: int, branch: str = MAIN_BRANCH) -> int:
    """Goes back to the newest snapshot at or before a time (milliseconds since 1970 UTC); as for a snapshot."""
    document = find_snapshot(store, At(timestamp_ms=timestamp_ms), branch)
    if document is None:
        raise NotFound("the table has no snapshot", code="no-snapshot-before")
    return rollback_to_snapshot(store, document.id, branch)


def rollback_to_watermark(store: Store, watermark: int, branch: str = MAIN_BRANCH) -> int:
    """Goes back to the newest snapshot whose watermark is not beyond one; as for a snapshot."""
    return rollback_to_snapshot(store, find_until_watermark(store, watermark, branch).id, branch)


def _forget(store: Store, snapshot_id: int, later: Sequence[int], branch: str) -> None:
    """Takes away later snapshots, and the changelogs and tags of later ones."""
    folder = directory(branch, "snapshot")
    if later:
        # A hint is believed where no snapshot of the next number is there, be its own snapshot gone: it leads back
        # before the snapshots go.
        store.put(f"{folder}/LATEST", str(snapshot_id).encode())
    # As long as the snapshots are there they tell; without them what is known must not.
    take_back(store, snapshot_id, branch)
    for number in reversed(later):
        store.delete(f"{folder}/snapshot-{number}")
    forget_changelogs(store, snapshot_id + 1, branch)
    for tag in list_all_tags(store, branch):
        if tag.document.id > snapshot_id:
            store.delete(tag_path(tag.name, branch))


def forget_changelogs(store: Store, first: int, branch: str = MAIN_BRANCH) -> None:
    """Takes away the changelogs of expired snapshots from a number on."""
    folder = directory(branch, "changelog")
    there = list_numbers(store, folder, "changelog-")
    if not there:
        return
    # As for snapshots: the hint never leads to what is gone. Java's for none is -1; it fails half-way through its next
    # rollback where the changelog of a hint is missing, as an earlier version of ours has left it.
    latest = max((number for number in there if number < first), default=-1)
    store.put(f"{folder}/LATEST", str(latest).encode())
    for number in reversed(there):
        if number >= first:
            store.delete(f"{folder}/changelog-{number}")
