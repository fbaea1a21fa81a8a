"""Which commits callers have named (`txnAppId` and `txnVersion`, a stream's id and batch), longer than by snapshots.

A snapshot says who committed it, and Paimon's own engines know a repetition by that alone: only until it expires. Here
a file a caller stands beside the table's own, which only this project reads. It is written before a commit, so that
nobody takes one that is in the making for one that never was, and after it. Numbers of snapshots are given again after
a rollback, which takes such files back, too; those of others are found out by what they leave behind. Whoever lets
snapshots expire has read what they say, and writes down what became of commits that are still in the making.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from alluvium.errors import AlluviumError, CommitUnknown, NotFound
from alluvium.paimon.commit.caller_files import (
    Caller,
    Seen,
    all_callers,
    caller_path,
    complete_path,
    gone_path,
    gone_paths,
    read_caller,
    seen_of,
    seen_path,
)
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.names import is_there
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots, list_tags, read_changelog, read_snapshot, read_tag
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")


class Attempt(NamedTuple):
    """A commit with a name that was begun.

    Attributes:
        mark: Its own.
        earlier: What was known before.
    """

    mark: str
    earlier: Caller


def is_committed(now: Snapshot, user: str, identifier: int) -> bool:
    """Whether a caller's commit, or a later one, is in the table's history.

    Args:
        now: A state of the table. What is committed behind it is the commit loop's to see.
        user: The caller.
        identifier: What it calls the commit.

    Raises:
        CommitUnknown: It was begun, and snapshots since have expired: nobody knows (`"transaction-unknown"`).
    """
    with locating(now.store, now.version):
        return _is_committed(now.store, now.branch, user, identifier)


def _is_committed(store: Store, branch: str, user: str, identifier: int) -> bool:
    there = list_snapshots(store, branch)
    known = _valid(store, branch, _read(store, branch, user))
    if known.done is not None and known.done >= identifier:
        return True
    is_seen = not there or there[0] <= max(known.after, seen_of(store, branch, known).through) + 1
    for number in reversed([n for n in there if n > max(known.snapshot, known.after)]):
        try:
            document = read_snapshot(store, number, branch)
        except NotFound:
            # It has expired, or was rolled back, since the listing.
            is_seen = False
            continue
        if document.commit_user == user:
            return document.commit_identifier >= identifier
    if known.begun is not None and known.begun >= identifier and not is_seen:
        raise _unknown(branch, known, identifier, f"it was begun behind snapshot {known.after}")
    if known.doubted is not None and known.doubted >= identifier and len(there) < max(there, default=0):
        raise _unknown(branch, known, identifier, "a later one of the caller was taken back")
    return False


def _unknown(branch: str, known: Caller, identifier: int, reason: str) -> CommitUnknown:
    path = caller_path(branch, known.user)
    return CommitUnknown(
        f"nobody knows whether commit {identifier} of {known.user!r} stands: {reason}, and snapshots have expired",
        code="transaction-unknown",
        version=known.after or None,
        path=path,
        hint=f'look for its rows: where they are there, write "done":{identifier} into {path}, else delete that file',
    )


def begin(draft: Draft, base: Snapshot) -> Attempt:
    """Notes that a commit with a name is in the making, which no snapshot up to the base is."""
    known = _ended(base.store, base.branch, _known(draft, base), base.version or 0)
    mark, after = uuid.uuid4().hex[:16], base.version or 0
    while True:
        entry = msgspec.structs.replace(known, begun=draft.identifier, after=after, mark=mark)
        base.store.put(caller_path(base.branch, draft.user), msgspec.json.encode(entry))
        # What others let expire before they could read this is not of an attempt that has yet to be made.
        first = min(list_snapshots(base.store, base.branch), default=0)
        if first <= after + 1:
            return Attempt(mark, known)
        after = first - 1


def _ended(store: Store, branch: str, known: Caller, last: int) -> Caller:
    """What is known once nobody goes on with a commit in the making: what became of it, by snapshots up to the last."""
    if known.begun is None:
        return known
    numbers = [n for n in list_snapshots(store, branch) if known.after < n <= last]
    told = _told(known, seen_of(store, branch, known), _documents(store, branch, numbers))
    if told.snapshot is not None:
        return _done(known, told)
    if told.through < last:
        # Some of them have expired, and nobody noted what they told.
        known = msgspec.structs.replace(known, doubted=max(known.begun, known.doubted or known.begun))
    return msgspec.structs.replace(known, begun=None, after=0, mark=None)


def stands(draft: Draft, base: Snapshot, document: SnapshotDocument) -> None:
    """Notes that a commit with a name stands, as a snapshot."""
    _note(base, Caller(draft.user, draft.identifier, document.id, document.delta_manifest_list))


def gave_up(draft: Draft, base: Snapshot, attempt: Attempt) -> None:
    """Notes that nothing stands of an attempt at a commit with a name: of those before it as much is known as was."""
    known, earlier = _known(draft, base), attempt.earlier
    if known.mark == attempt.mark:
        _note(base, msgspec.structs.replace(known, begun=earlier.begun, after=earlier.after, mark=earlier.mark))


def note_expiring(store: Store, branch: str, numbers: Sequence[int]) -> list[str]:
    """Notes what snapshots tell of commits in the making, and whose last commits they are, before they expire.

    Nobody would know it afterwards: a writer that was killed beside its commit could not be started again. And of a
    snapshot that is gone while its manifest list is still there, be it that whoever let it expire was killed, one
    could not tell whether others took it back.

    Args:
        store: The table's objects.
        branch: Whose snapshots.
        numbers: Theirs.

    Returns:
        The notes to delete where they stay after all.

    Raises:
        StorageError: Not all is noted.
    """
    callers = all_callers(store, branch)
    if not callers:
        return []
    expiring = frozenset(numbers)
    waiting = [(path, known) for path, known in callers if known.begun is not None and known.mark]
    ended = [(path, known) for path, known in callers if known.manifests is not None and known.snapshot in expiring]
    documents = _documents(store, branch, numbers if waiting else [known.snapshot for _, known in ended])
    going = {
        gone_path(path, known.manifests)
        for path, known in ended
        if known.manifests is not None and known.manifests == _list_of(documents.get(known.snapshot))
    }
    for path, known in waiting:
        before = seen_of(store, branch, known)
        told = _told(known, before, documents)
        if told not in (before, Seen(known.after)):
            store.put(seen_path(path, str(known.mark)), msgspec.json.encode(told))
        if told.manifests is not None:
            going.add(gone_path(path, told.manifests))
    there = set(gone_paths(store, branch))
    for path in sorted(going - there):
        store.put(path, b"")
    if ended:
        # Of commits that others stand behind by now.
        last = {gone_path(path, known.manifests) for path, known in callers if known.manifests is not None}
        for path in sorted(there - going - last):
            store.delete(path)
    return sorted(going - there)


def _list_of(document: SnapshotDocument | None) -> str | None:
    return None if document is None else document.delta_manifest_list


def _documents(store: Store, branch: str, numbers: Sequence[int]) -> dict[int, SnapshotDocument]:
    found = {}
    for number in numbers:
        with suppress(NotFound):  # somebody else lets them expire, too
            found[number] = read_snapshot(store, number, branch)
    return found


def _told(known: Caller, before: Seen, documents: Mapping[int, SnapshotDocument]) -> Seen:
    """What snapshots add to what was seen of a commit in the making."""
    if before.snapshot is not None:
        return before
    for number, document in sorted(documents.items(), reverse=True):
        if number > known.after and _is_of(document, known.user, known.begun):
            return Seen(0, number, document.delta_manifest_list, document.commit_identifier)
    # Another expiry may have taken some of them: what that has seen it says itself.
    through = max(before.through, known.after)
    while through + 1 in documents:
        through += 1
    return Seen(through)


def _is_of(document: SnapshotDocument, user: str, least: int | None = None) -> bool:
    return document.commit_user == user and (least is None or document.commit_identifier >= least)


def take_back(store: Store, last: int, branch: str = MAIN_BRANCH) -> None:
    """Forgets what was committed behind a snapshot, as the table goes back to it.

    Called while the snapshots behind it are there, or some of them.

    Raises:
        StorageError: Not all is forgotten.
    """
    callers = all_callers(store, branch)
    documents = _documents(store, branch, list_snapshots(store, branch)) if callers else {}
    for path, noted in callers:
        known = _settled(store, branch, noted)
        if noted.mark is not None and seen_of(store, branch, noted).through > last:
            # Of snapshots whose numbers are given again.
            store.delete(seen_path(path, noted.mark))
        left = _up_to(known, last, documents)
        if not _says_anything(left):
            store.delete(path)
        elif left != known:
            store.put(path, msgspec.json.encode(left))


def _up_to(known: Caller, last: int, documents: Mapping[int, SnapshotDocument]) -> Caller:
    """What is known of a caller but for what came behind a snapshot."""
    left = _without(known, last, documents) if known.done is not None and known.snapshot > last else known
    return left if left.after <= last else msgspec.structs.replace(left, begun=None, after=0, mark=None)


def _says_anything(known: Caller) -> bool:
    return known.done is not None or known.begun is not None or known.doubted is not None or known.after > 0


def _without(known: Caller, last: int, documents: Mapping[int, SnapshotDocument]) -> Caller:
    """What is known of a caller whose newest commit is taken back.

    The file names that one alone. Of those before it the snapshots tell that are there: the newest that stays speaks
    for all before it. Where none is, those below what is taken back may have expired.
    """
    assert known.done is not None
    own = {n: document for n, document in documents.items() if n <= known.snapshot and _is_of(document, known.user)}
    stays = own.get(max((n for n in own if n <= last), default=0))
    if stays is None:
        # What a branch inherited stood before it began: where, nobody has noted.
        taken_back = [known.done + known.is_inherited, *(document.commit_identifier for document in own.values())]
        return _doubted(known, min(taken_back) - 1)
    return msgspec.structs.replace(
        known,
        done=stays.commit_identifier,
        snapshot=stays.id,
        manifests=stays.delta_manifest_list,
        doubted=None,
        is_inherited=False,
    )


def _doubted(known: Caller, up_to: int) -> Caller:
    """Without a commit that was taken back."""
    doubted = up_to if known.doubted is None else max(up_to, known.doubted)
    return msgspec.structs.replace(known, done=None, snapshot=0, manifests=None, doubted=doubted, is_inherited=False)


def pass_on(store: Store, branch: str, first: int) -> None:
    """Tells a branch that is being made what is known of the main one, which may go back behind the branch's beginning.

    Args:
        store: The table's objects.
        branch: Its name.
        first: The snapshot that it begins at.

    Raises:
        StorageError: Not all is told.
    """
    callers = all_callers(store, MAIN_BRANCH)
    documents = _documents(store, MAIN_BRANCH, list_snapshots(store)) if callers else {}
    for _, noted in callers:
        valid = _valid(store, MAIN_BRANCH, _settled(store, MAIN_BRANCH, noted))
        known = _up_to(_ended(store, MAIN_BRANCH, valid, first), first, documents)
        if known.done is not None and known.snapshot < first:
            known = msgspec.structs.replace(known, snapshot=first, is_inherited=True)
        if _says_anything(known):
            # As long as the branch is there, so are the manifests.
            known = msgspec.structs.replace(known, manifests=None)
            store.put(caller_path(branch, known.user), msgspec.json.encode(known))
    store.put(complete_path(branch), b"")


class Callers(NamedTuple):
    """What a branch knows.

    Attributes:
        entries: Of its callers, without what is to be found on the branch alone.
        is_complete: Whether it was told when it was made what stood before it.
    """

    entries: list[Caller]
    is_complete: bool


def callers_of(store: Store, branch: str) -> Callers:
    """What a branch knows, which the main one is to go on as."""
    is_complete = is_there(store, complete_path(branch))
    # As long as the branch is there, so are its manifests.
    found = [_settled(store, branch, noted) for _, noted in all_callers(store, branch)]
    return Callers([msgspec.structs.replace(known, manifests=None, mark=None) for known in found], is_complete)


def take_over(store: Store, told: Callers, first: int) -> None:
    """Knows what a branch knew, which the main one goes on as.

    Args:
        store: The table's objects, the main branch's snapshots already those of the branch.
        told: What it knew.
        first: Its first snapshot, which the main branch may have had, too.

    Raises:
        StorageError: Not all is known.
    """
    if told.is_complete:
        _replace_by(store, told, first)
        return
    take_back(store, first)
    for path, known in all_callers(store, MAIN_BRANCH):
        if known.snapshot == first and known.done is not None and _valid(store, MAIN_BRANCH, known).done is None:
            # The branch was not made of this one.
            store.delete(path)
    stay = {known.user: known for _, known in all_callers(store, MAIN_BRANCH)}
    for known in told.entries:
        before = stay.get(known.user)
        entry = _behind(before, known) if known.done is None and before is not None else known
        store.put(caller_path(MAIN_BRANCH, known.user), msgspec.json.encode(entry))


def _replace_by(store: Store, told: Callers, first: int) -> None:
    """What a branch knew in the place of all that is known of the main one, whose snapshots below may be of another
    history by now.
    """
    own = {known.user: known for known in told.entries}
    for known in own.values():
        store.put(caller_path(MAIN_BRANCH, known.user), msgspec.json.encode(_from(known, first)))
    for path, known in all_callers(store, MAIN_BRANCH):
        if known.mark is not None:
            store.delete(seen_path(path, known.mark))
        if known.user not in own:
            store.put(path, msgspec.json.encode(_from(Caller(known.user), first)))


def _from(known: Caller, first: int) -> Caller:
    return known if known.done is not None else msgspec.structs.replace(known, after=max(known.after, first))


def _behind(before: Caller, told: Caller) -> Caller:
    """What is known of a caller on a branch where nothing of its stands, behind what stands before the branch."""
    doubts = [one.doubted for one in (before, told) if one.doubted is not None]
    return msgspec.structs.replace(
        told,
        done=before.done,
        snapshot=before.snapshot,
        manifests=before.manifests,
        doubted=max(doubts, default=None),
    )


def _known(draft: Draft, base: Snapshot) -> Caller:
    return _valid(base.store, base.branch, _read(base.store, base.branch, draft.user))


def _note(base: Snapshot, entry: Caller) -> None:
    try:
        base.store.put(caller_path(base.branch, entry.user), msgspec.json.encode(entry), durable=False)
    except AlluviumError as error:
        # As long as the snapshot is there, it tells the same.
        log.warning("what became of the commit %s of %s was not noted: %s", entry.done, entry.user, error)


def _valid(store: Store, branch: str, known: Caller) -> Caller:
    """What is known, but for a commit that a rollback took back, or that was another table's."""
    if known.done is None or known.is_inherited:
        return known
    try:
        document = read_snapshot(store, known.snapshot, branch)
        if (document.commit_user, document.commit_identifier) == (known.user, known.done):
            return known
    except NotFound as error:
        if error.code == "snapshot-expired":
            return known if _has_expired(store, branch, known) else _in_doubt(known)
    assert known.done is not None
    taken_back = _doubted(known, known.done - 1)
    return msgspec.structs.replace(taken_back, begun=None, after=0, mark=None)


def _has_expired(store: Store, branch: str, known: Caller) -> bool:
    """Whether a snapshot that is gone was in the table's history until it expired. One that others took back leaves
    its manifest list; so does one of which a tag or a changelog is kept, but these tell whose it is.
    """
    if known.manifests is None or not is_there(store, f"manifest/{known.manifests}"):
        return True
    if is_there(store, gone_path(caller_path(branch, known.user), known.manifests)):
        return True
    kept = list[SnapshotDocument]()
    with suppress(NotFound):
        kept.append(read_changelog(store, known.snapshot, branch))
    for name in list_tags(store, branch):
        with suppress(NotFound):
            kept.append(read_tag(store, name, branch))
    return any(document.delta_manifest_list == known.manifests for document in kept)


def _in_doubt(known: Caller) -> Caller:
    """As if nobody had said how the last commit ended."""
    return Caller(known.user, begun=known.done, after=known.snapshot - 1)


def _read(store: Store, branch: str, user: str) -> Caller:
    return _settled(store, branch, read_caller(store, branch, user))


def _settled(store: Store, branch: str, known: Caller) -> Caller:
    """With a commit in the making done where its snapshot was seen."""
    seen = seen_of(store, branch, known)
    if seen.snapshot is None:
        return known
    return _done(known, seen)


def _done(known: Caller, seen: Seen) -> Caller:
    """With the commit that was in the making as a snapshot, or a later one of the caller."""
    done = known.begun if seen.identifier is None else seen.identifier
    return Caller(known.user, done, seen.snapshot or 0, seen.manifests, doubted=known.doubted)
