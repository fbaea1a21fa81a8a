"""Which commits callers have named (`txnAppId` and `txnVersion`, a stream's id and batch), longer than by snapshots.

A snapshot says who committed it, and Paimon's own engines know a repetition by that alone: only until it expires. Here
a file a caller stands beside the table's own, which only this project reads. It is written before a commit, so that
nobody takes one that is in the making for one that never was, and after it.
"""

from __future__ import annotations

import hashlib
import logging

import msgspec

from alluvium.errors import AlluviumError, CommitUnknown, CorruptTable, NotFound
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.names import directory
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots, read_snapshot
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

_FOLDER = "alluvium-callers"


class _Caller(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a caller.

    Attributes:
        user: The caller.
        done: The last commit that is known to stand; None: none is.
        snapshot: Its snapshot.
        begun: A commit of which nobody has said how it ended; None: none.
        after: No snapshot up to this one is of `begun`.
    """

    user: str
    done: int | None = None
    snapshot: int = 0
    begun: int | None = None
    after: int = 0


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
    is_seen = not there or there[0] <= known.after + 1
    for number in reversed([n for n in there if n > max(known.snapshot, known.after)]):
        try:
            document = read_snapshot(store, number, branch)
        except NotFound:
            # It has expired, or was rolled back, since the listing.
            is_seen = False
            continue
        if document.commit_user == user:
            return document.commit_identifier >= identifier
    if known.begun is None or known.begun < identifier or is_seen:
        return False
    path = _path(branch, user)
    raise CommitUnknown(
        f"nobody knows whether commit {identifier} of {user!r} stands: it was begun behind snapshot {known.after}, and "
        "snapshots since have expired",
        code="transaction-unknown",
        version=known.after,
        path=path,
        hint=f'look for its rows: where they are there, write "done":{identifier} into {path}, else delete that file',
    )


def begin(draft: Draft, base: Snapshot) -> None:
    """Notes that a commit with a name is in the making, which no snapshot up to the base is."""
    known = _known(draft, base)
    entry = msgspec.structs.replace(known, begun=draft.identifier, after=base.version or 0)
    base.store.put(_path(base.branch, draft.user), msgspec.json.encode(entry))


def stands(draft: Draft, base: Snapshot, snapshot: int) -> None:
    """Notes that a commit with a name stands, as a snapshot."""
    _note(base, _Caller(draft.user, draft.identifier, snapshot))


def gave_up(draft: Draft, base: Snapshot) -> None:
    """Notes that nothing stands of a commit with a name."""
    _note(base, msgspec.structs.replace(_known(draft, base), begun=None, after=0))


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
    if known.done is None:
        return known
    try:
        document = read_snapshot(store, known.snapshot, branch)
        if (document.commit_user, document.commit_identifier) == (known.user, known.done):
            return known
    except NotFound as error:
        if error.code == "snapshot-expired":
            return known
    return _Caller(known.user)


def _read(store: Store, branch: str, user: str) -> _Caller:
    path = _path(branch, user)
    try:
        return msgspec.json.decode(store.get(path), type=_Caller)
    except NotFound:
        return _Caller(user)
    except msgspec.MsgspecError as error:
        raise CorruptTable(
            f"what {user!r} has committed cannot be read: {error}",
            code="damaged-callers",
            path=path,
            hint="delete the file: the snapshots that are there tell what was committed",
        ) from None


def _path(branch: str, user: str) -> str:
    # A caller may be called anything.
    name = hashlib.sha256(user.encode()).hexdigest()[:40]
    return f"{directory(branch, _FOLDER)}/{name}.json"
