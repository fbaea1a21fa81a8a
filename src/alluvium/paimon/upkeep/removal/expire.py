"""Snapshots and long-lived changelogs expire: the oldest first, never what a consumer still reads.

The order is what makes it safe: the documents go first, so that a reader of an old snapshot gets a clear error and
never a state of which half is gone; what is needed by the documents that are there after that, tags and branches
among them, stays. A crash leaves files that nothing names, which `remove_orphan_files` takes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from alluvium.errors import AlluviumError, NotFound
from alluvium.paimon.commit.callers import note_expiring
from alluvium.paimon.log.consumers import least_next_snapshot
from alluvium.paimon.log.names import directory, list_numbers
from alluvium.paimon.log.schema_log import MAIN_BRANCH, list_schema_ids
from alluvium.paimon.log.travel import list_snapshots, read_snapshot
from alluvium.paimon.terms.spec import parse_snapshot
from alluvium.paimon.upkeep.removal.remove import remove_dead
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.paimon.upkeep.removal.roots import Kind, Root
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")


@dataclass(frozen=True, slots=True)
class Expired:
    """What expired, or would.

    Attributes:
        ids: Of snapshots or changelogs, ascending.
        paths: Files that went with them, from the table's root.
    """

    ids: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()


def expire_snapshots(
    store: Store, retention: Retention, branch: str = MAIN_BRANCH, keeps_changelog: bool = False, dry_run: bool = False
) -> Expired:
    """Lets snapshots expire.

    Args:
        store: The table's objects.
        retention: What stays.
        branch: Whose snapshots.
        keeps_changelog: Whether their changelogs stay, as documents of their own.
        dry_run: Only say which.

    Raises:
        StorageError: A document could not be deleted; what had been deleted before is whole.
    """
    ids = list_snapshots(store, branch)
    if not ids or ids[-1] - retention.least < ids[0]:
        # Most often: nothing is asked for that is not needed.
        return Expired()
    consumed = least_next_snapshot(store, branch)
    first = retention.first_kept(ids, ids[-1], lambda n: read_snapshot(store, n, branch).time_millis, consumed)
    going = [number for number in ids if number < first]
    if not going or dry_run:
        return Expired(tuple(going))
    notes = note_expiring(store, branch, going)
    folder = directory(branch, Kind.SNAPSHOT.value)
    dying, said = list[Root](), dict[str, bytes]()
    for number in going:
        path = f"{folder}/snapshot-{number}"
        try:
            data = store.get(path)
        except NotFound:
            continue  # somebody else lets them expire, too, and takes what it needed
        if keeps_changelog:
            _keep_changelog(store, branch, number, data)
        dying.append(Root(Kind.SNAPSHOT, branch, path, parse_snapshot(data, path)))
        said[path] = data
        store.delete(path)
    if not any(number >= first for number in list_snapshots(store, branch)):
        # A rollback went on meanwhile: what was old is the newest again; or the table was dropped.
        if list_schema_ids(store, branch):
            for path, data in said.items():
                store.put_if_absent(path, data)
            for path in notes:
                store.delete(path)
        return Expired()
    point_to(store, f"{folder}/EARLIEST", first)
    return Expired(tuple(going), remove_dead(store, dying).paths)


def expire_changelogs(
    store: Store, retention: Retention | None, branch: str = MAIN_BRANCH, dry_run: bool = False
) -> Expired:
    """Lets long-lived changelogs expire; arguments and errors as for snapshots. Without a retention all of them go, be
    they read by consumers or not.
    """
    folder = directory(branch, Kind.CHANGELOG.value)
    ids, snapshots = list_numbers(store, folder, "changelog-"), list_snapshots(store, branch)
    if not ids or not snapshots:
        return Expired()

    def time_of(number: int) -> int:
        path = f"{folder}/changelog-{number}"
        return parse_snapshot(store.get(path), path).time_millis

    first = snapshots[0]
    if retention is not None:
        first = retention.first_kept(ids, snapshots[-1], time_of, least_next_snapshot(store, branch))
    going = [number for number in ids if number < first]
    if not going or dry_run:
        return Expired(tuple(going))
    dying = _delete_all(store, branch, [f"{folder}/changelog-{number}" for number in going])
    point_to(store, f"{folder}/EARLIEST", first)
    return Expired(tuple(going), remove_dead(store, dying).paths)


def _delete_all(store: Store, branch: str, paths: Sequence[str]) -> list[Root]:
    dying = []
    for path in paths:
        with suppress(NotFound):  # somebody else lets them expire, too, and takes what it needed
            dying.append(Root(Kind.CHANGELOG, branch, path, parse_snapshot(store.get(path), path)))
            store.delete(path)
    return dying


def _keep_changelog(store: Store, branch: str, number: int, data: bytes) -> None:
    """The snapshot's document under the name of a changelog, before the snapshot goes."""
    folder = directory(branch, Kind.CHANGELOG.value)
    is_first = not list_numbers(store, folder, "changelog-")
    store.put(f"{folder}/changelog-{number}", data)
    for hint in ("EARLIEST", "LATEST") if is_first else ("LATEST",):
        point_to(store, f"{folder}/{hint}", number)


def repair_earliest(store: Store, snapshot_id: int, branch: str = MAIN_BRANCH) -> int:
    """Has the hint name a snapshot that is there; what it named before, or else the oldest.

    Raises:
        NotFound: There is no such snapshot.
    """
    read_snapshot(store, snapshot_id, branch)
    path = f"{directory(branch, Kind.SNAPSHOT.value)}/EARLIEST"
    try:
        said = store.get(path).strip()
    except NotFound:
        said = b""
    store.put(path, str(snapshot_id).encode())
    return int(said) if said.isdigit() else list_snapshots(store, branch)[0]


def point_to(store: Store, path: str, number: int) -> None:
    """Leaves a hint, which spares readers a listing."""
    try:
        store.put(path, str(number).encode(), durable=False)
    except AlluviumError as error:
        # Readers list where it leads nowhere.
        log.warning("the hint %s was not written: %s", path, error)
