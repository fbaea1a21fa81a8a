"""Which commits callers have named (`txnAppId` and `txnVersion`, a stream's id and batch), longer than by snapshots.

A snapshot says who committed it, and Paimon's own engines know a repetition by that alone: only until it expires. Here
a file a caller stands beside the table's own, which only this project reads. It is written before a commit, so that
nobody takes one that is in the making for one that never was, and after it. Numbers of snapshots are given again after
a rollback, which takes such files back, too; those of others are found out by what they leave behind. Whoever lets
snapshots expire has read what they say, and writes down what became of commits that are still in the making.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from alluvium.errors import AlluviumError, CommitUnknown, CorruptTable, NotFound
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.names import directory, is_there
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots, list_tags, read_changelog, read_snapshot, read_tag
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

_FOLDER = "alluvium-callers"
#: Beside the files of a branch that knew from its beginning what stood before it.
_COMPLETE = "complete"


class _Caller(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a caller.

    Attributes:
        user: The caller.
        done: The last commit that is known to stand; None: none is.
        snapshot: Its snapshot.
        manifests: The manifest list that this snapshot alone names: it goes when the snapshot expires.
        begun: A commit of which nobody has said how it ended; None: none.
        after: No snapshot up to this one is of `begun`, or of the caller at all: it stands in another history.
        mark: Of this attempt at `begun`, for what others have seen of it (`_Seen`).
        doubted: Up to this commit nobody knows once snapshots have expired: a later one, which said that those before
            it stand, was taken back. None: no such one.
        is_inherited: `done` stood before `snapshot`, which a branch began at.
    """

    user: str
    done: int | None = None
    snapshot: int = 0
    manifests: str | None = None
    begun: int | None = None
    after: int = 0
    mark: str | None = None
    doubted: int | None = None
    is_inherited: bool = False


class Attempt(NamedTuple):
    """A commit with a name that was begun.

    Attributes:
        mark: Its own.
        earlier: What was known before.
    """

    mark: str
    earlier: _Caller


class _Seen(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What snapshots that expired told of a commit in the making. A file of its own: its caller may live, and writes.

    Attributes:
        through: No snapshot behind `after` up to this one is of the commit; 0: not all of them were seen.
        snapshot: The one that is, or that is of a later commit of the caller; None: none was.
        manifests: As of `_Caller`.
        identifier: What this snapshot's commit is called; None: as the one in the making.
    """

    through: int = 0
    snapshot: int | None = None
    manifests: str | None = None
    identifier: int | None = None


_Entry = TypeVar("_Entry", _Caller, _Seen)


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
    is_seen = not there or there[0] <= max(known.after, _seen(store, branch, known).through) + 1
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


def _unknown(branch: str, known: _Caller, identifier: int, reason: str) -> CommitUnknown:
    path = _path(branch, known.user)
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
        base.store.put(_path(base.branch, draft.user), msgspec.json.encode(entry))
        # What others let expire before they could read this is not of an attempt that has yet to be made.
        first = min(list_snapshots(base.store, base.branch), default=0)
        if first <= after + 1:
            return Attempt(mark, known)
        after = first - 1


def _ended(store: Store, branch: str, known: _Caller, last: int) -> _Caller:
    """What is known once nobody goes on with a commit in the making: what became of it, by snapshots up to the last."""
    if known.begun is None:
        return known
    numbers = [n for n in list_snapshots(store, branch) if known.after < n <= last]
    told = _told(known, _seen(store, branch, known), _documents(store, branch, numbers))
    if told.snapshot is not None:
        return _done(known, told)
    if told.through < last:
        # Some of them have expired, and nobody noted what they told.
        known = msgspec.structs.replace(known, doubted=max(known.begun, known.doubted or known.begun))
    return msgspec.structs.replace(known, begun=None, after=0, mark=None)


def stands(draft: Draft, base: Snapshot, document: SnapshotDocument) -> None:
    """Notes that a commit with a name stands, as a snapshot."""
    _note(base, _Caller(draft.user, draft.identifier, document.id, document.delta_manifest_list))


def gave_up(draft: Draft, base: Snapshot, attempt: Attempt) -> None:
    """Notes that nothing stands of an attempt at a commit with a name: of those before it as much is known as was."""
    known, earlier = _known(draft, base), attempt.earlier
    if known.mark == attempt.mark:
        _note(base, msgspec.structs.replace(known, begun=earlier.begun, after=earlier.after, mark=earlier.mark))


def note_expiring(store: Store, branch: str, numbers: Sequence[int]) -> None:
    """Notes what snapshots tell of commits in the making, before they expire.

    Nobody would know it afterwards: a writer that was killed beside its commit could not be started again.

    Args:
        store: The table's objects.
        branch: Whose snapshots.
        numbers: Theirs.

    Raises:
        StorageError: Not all is noted.
    """
    waiting = [(path, known) for path, known in _all(store, branch) if known.begun is not None and known.mark]
    documents = _documents(store, branch, numbers) if waiting else {}
    for path, known in waiting:
        before = _seen(store, branch, known)
        told = _told(known, before, documents)
        if told not in (before, _Seen(known.after)):
            store.put(_seen_path(path, str(known.mark)), msgspec.json.encode(told))


def _documents(store: Store, branch: str, numbers: Sequence[int]) -> dict[int, SnapshotDocument]:
    found = {}
    for number in numbers:
        with suppress(NotFound):  # somebody else lets them expire, too
            found[number] = read_snapshot(store, number, branch)
    return found


def _told(known: _Caller, before: _Seen, documents: Mapping[int, SnapshotDocument]) -> _Seen:
    """What snapshots add to what was seen of a commit in the making."""
    if before.snapshot is not None:
        return before
    for number, document in sorted(documents.items(), reverse=True):
        if number > known.after and _is_of(document, known.user, known.begun):
            return _Seen(0, number, document.delta_manifest_list, document.commit_identifier)
    # Another expiry may have taken some of them: what that has seen it says itself.
    through = max(before.through, known.after)
    while through + 1 in documents:
        through += 1
    return _Seen(through)


def _is_of(document: SnapshotDocument, user: str, least: int | None = None) -> bool:
    return document.commit_user == user and (least is None or document.commit_identifier >= least)


def take_back(store: Store, last: int, branch: str = MAIN_BRANCH) -> None:
    """Forgets what was committed behind a snapshot, as the table goes back to it.

    Called while the snapshots behind it are there, or some of them.

    Raises:
        StorageError: Not all is forgotten.
    """
    callers = _all(store, branch)
    documents = _documents(store, branch, list_snapshots(store, branch)) if callers else {}
    for path, noted in callers:
        known = _settled(store, branch, noted)
        if noted.mark is not None and _seen(store, branch, noted).through > last:
            # Of snapshots whose numbers are given again.
            store.delete(_seen_path(path, noted.mark))
        left = _up_to(known, last, documents)
        if not _says_anything(left):
            store.delete(path)
        elif left != known:
            store.put(path, msgspec.json.encode(left))


def _up_to(known: _Caller, last: int, documents: Mapping[int, SnapshotDocument]) -> _Caller:
    """What is known of a caller but for what came behind a snapshot."""
    left = _without(known, last, documents) if known.done is not None and known.snapshot > last else known
    return left if left.after <= last else msgspec.structs.replace(left, begun=None, after=0, mark=None)


def _says_anything(known: _Caller) -> bool:
    return known.done is not None or known.begun is not None or known.doubted is not None or known.after > 0


def _without(known: _Caller, last: int, documents: Mapping[int, SnapshotDocument]) -> _Caller:
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


def _doubted(known: _Caller, up_to: int) -> _Caller:
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
    callers = _all(store, MAIN_BRANCH)
    documents = _documents(store, MAIN_BRANCH, list_snapshots(store)) if callers else {}
    for _, noted in callers:
        valid = _valid(store, MAIN_BRANCH, _settled(store, MAIN_BRANCH, noted))
        known = _up_to(_ended(store, MAIN_BRANCH, valid, first), first, documents)
        if known.done is not None and known.snapshot < first:
            known = msgspec.structs.replace(known, snapshot=first, is_inherited=True)
        if _says_anything(known):
            # As long as the branch is there, so are the manifests.
            known = msgspec.structs.replace(known, manifests=None)
            store.put(_path(branch, known.user), msgspec.json.encode(known))
    store.put(f"{directory(branch, _FOLDER)}/{_COMPLETE}", b"")


class Callers(NamedTuple):
    """What a branch knows.

    Attributes:
        entries: Of its callers, without what is to be found on the branch alone.
        is_complete: Whether it was told when it was made what stood before it.
    """

    entries: list[_Caller]
    is_complete: bool


def callers_of(store: Store, branch: str) -> Callers:
    """What a branch knows, which the main one is to go on as."""
    is_complete = is_there(store, f"{directory(branch, _FOLDER)}/{_COMPLETE}")
    # As long as the branch is there, so are its manifests.
    found = [_settled(store, branch, noted) for _, noted in _all(store, branch)]
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
    for path, known in _all(store, MAIN_BRANCH):
        if known.snapshot == first and known.done is not None and _valid(store, MAIN_BRANCH, known).done is None:
            # The branch was not made of this one.
            store.delete(path)
    stay = {known.user: known for _, known in _all(store, MAIN_BRANCH)}
    for known in told.entries:
        before = stay.get(known.user)
        entry = _behind(before, known) if known.done is None and before is not None else known
        store.put(_path(MAIN_BRANCH, known.user), msgspec.json.encode(entry))


def _replace_by(store: Store, told: Callers, first: int) -> None:
    """What a branch knew in the place of all that is known of the main one, whose snapshots below may be of another
    history by now.
    """
    own = {known.user: known for known in told.entries}
    for known in own.values():
        store.put(_path(MAIN_BRANCH, known.user), msgspec.json.encode(_from(known, first)))
    for path, known in _all(store, MAIN_BRANCH):
        if known.mark is not None:
            store.delete(_seen_path(path, known.mark))
        if known.user not in own:
            store.put(path, msgspec.json.encode(_from(_Caller(known.user), first)))


def _from(known: _Caller, first: int) -> _Caller:
    return known if known.done is not None else msgspec.structs.replace(known, after=max(known.after, first))


def _behind(before: _Caller, told: _Caller) -> _Caller:
    """What is known of a caller on a branch where nothing of its stands, behind what stands before the branch."""
    doubts = [one.doubted for one in (before, told) if one.doubted is not None]
    return msgspec.structs.replace(
        told,
        done=before.done,
        snapshot=before.snapshot,
        manifests=before.manifests,
        doubted=max(doubts, default=None),
    )


def _all(store: Store, branch: str) -> list[tuple[str, _Caller]]:
    paths = [info.path for info in store.list_tree(directory(branch, _FOLDER)) if info.path.endswith(".json")]
    return list(zip(paths, map_parallel(lambda path: _parsed(path, store.get(path), _Caller), paths), strict=True))


def _known(draft: Draft, base: Snapshot) -> _Caller:
    return _valid(base.store, base.branch, _read(base.store, base.branch, draft.user))


def _note(base: Snapshot, entry: _Caller) -> None:
    try:
        base.store.put(_path(base.branch, entry.user), msgspec.json.encode(entry), durable=False)
    except AlluviumError as error:
        # As long as the snapshot is there, it tells the same.
        log.warning("what became of the commit %s of %s was not noted: %s", entry.done, entry.user, error)


def _valid(store: Store, branch: str, known: _Caller) -> _Caller:
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


def _has_expired(store: Store, branch: str, known: _Caller) -> bool:
    """Whether a snapshot that is gone was in the table's history until it expired. One that others took back leaves
    its manifest list; so does one of which a tag or a changelog is kept, but these tell whose it is.
    """
    if known.manifests is None or not is_there(store, f"manifest/{known.manifests}"):
        return True
    kept = list[SnapshotDocument]()
    with suppress(NotFound):
        kept.append(read_changelog(store, known.snapshot, branch))
    for name in list_tags(store, branch):
        with suppress(NotFound):
            kept.append(read_tag(store, name, branch))
    return any(document.delta_manifest_list == known.manifests for document in kept)


def _in_doubt(known: _Caller) -> _Caller:
    """As if nobody had said how the last commit ended."""
    return _Caller(known.user, begun=known.done, after=known.snapshot - 1)


def _read(store: Store, branch: str, user: str) -> _Caller:
    path = _path(branch, user)
    try:
        known = _parsed(path, store.get(path), _Caller)
    except NotFound:
        return _Caller(user)
    return _settled(store, branch, known)


def _settled(store: Store, branch: str, known: _Caller) -> _Caller:
    """With a commit in the making done where its snapshot was seen."""
    seen = _seen(store, branch, known)
    if seen.snapshot is None:
        return known
    return _done(known, seen)


def _done(known: _Caller, seen: _Seen) -> _Caller:
    """With the commit that was in the making as a snapshot, or a later one of the caller."""
    done = known.begun if seen.identifier is None else seen.identifier
    return _Caller(known.user, done, seen.snapshot or 0, seen.manifests, doubted=known.doubted)


def _seen(store: Store, branch: str, known: _Caller) -> _Seen:
    if known.begun is None or known.mark is None:
        return _Seen()
    path = _seen_path(_path(branch, known.user), known.mark)
    try:
        return _parsed(path, store.get(path), _Seen)
    except NotFound:
        return _Seen()


def _seen_path(path: str, mark: str) -> str:
    return f"{path.removesuffix('.json')}-{mark}.seen"


def _parsed(path: str, data: bytes, kind: type[_Entry]) -> _Entry:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise CorruptTable(
            f"what a caller has committed cannot be read: {error}",
            code="damaged-callers",
            path=path,
            hint="delete the file: the snapshots that are there tell what was committed",
        ) from None


def _path(branch: str, user: str) -> str:
    # A caller may be called anything.
    name = hashlib.sha256(user.encode()).hexdigest()[:40]
    return f"{directory(branch, _FOLDER)}/{name}.json"
