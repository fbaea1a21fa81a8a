"""Rollback: a table goes back to a snapshot, a tag or a time. What came after is gone from its history, tags of it too.

The files of what came after stay, as in Java: writers may be at work that began on them; `remove_orphan_files` takes
them. Specification: `org.apache.paimon.table.RollbackHelper`.
"""

from __future__ import annotations

from alluvium.errors import NotFound
from alluvium.paimon.log.names import directory, list_numbers
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.travel import At, find_snapshot, list_snapshots, read_snapshot
from alluvium.paimon.upkeep.life.tags import list_all_tags, tag_path
from alluvium.paimon.upkeep.removal.roots import is_there
from alluvium.storage.store import PutOutcome, Store


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
    _forget_later(store, snapshot_id, branch)
    return snapshot_id


def rollback_to_tag(store: Store, name: str, branch: str = MAIN_BRANCH) -> int:
    """Goes back to a tag, be its snapshot expired; returns and errors as for a snapshot."""
    tag = next((one for one in list_all_tags(store, branch) if one.name == name), None)
    if tag is None:
        find_snapshot(store, At(tag=name), branch)  # tells which there are
        raise NotFound(f"there is no tag {name!r}", code="tag-not-found")
    number, folder = tag.document.id, directory(branch, "snapshot")
    path = f"{folder}/snapshot-{number}"
    if not is_there(store, path):
        # "the earliest snapshot is later than the rollback tag because of snapshot expiration"
        outcome = store.put_if_absent(path, store.get(tag_path(name, branch)))
        if outcome is PutOutcome.UNKNOWN and not is_there(store, path):
            raise NotFound(f"snapshot {number} could not be put back", code="snapshot-not-found", path=path)
        if not is_there(store, tag_path(name, branch)):
            # Whoever deleted the tag may have looked for snapshots before this one was there.
            store.delete(path)
            raise NotFound(f"the tag {name!r} was deleted during the rollback", code="tag-not-found", path=path)
        store.put(f"{folder}/EARLIEST", str(number).encode())
    _forget_later(store, number, branch)
    return number


def rollback_to_time(store: Store, timestamp_ms: int, branch: str = MAIN_BRANCH) -> int:
    """Goes back to the newest snapshot at or before a time (milliseconds since 1970 UTC); as for a snapshot."""
    document = find_snapshot(store, At(timestamp_ms=timestamp_ms), branch)
    if document is None:
        raise NotFound("the table has no snapshot", code="no-snapshot-before")
    return rollback_to_snapshot(store, document.id, branch)


def _forget_later(store: Store, snapshot_id: int, branch: str) -> None:
    folder = directory(branch, "snapshot")
    later = [number for number in list_snapshots(store, branch) if number > snapshot_id]
    if later:
        # A hint is believed where no snapshot of the next number is there, be its own snapshot gone: it leads back
        # before the snapshots go.
        store.put(f"{folder}/LATEST", str(snapshot_id).encode())
    for number in reversed(later):
        store.delete(f"{folder}/snapshot-{number}")
    kept = directory(branch, "changelog")
    for number in reversed(list_numbers(store, kept, "changelog-")):
        if number > snapshot_id:
            store.delete(f"{kept}/changelog-{number}")
    for tag in list_all_tags(store, branch):
        if tag.document.id > snapshot_id:
            store.delete(tag_path(tag.name, branch))
