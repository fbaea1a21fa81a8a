"""The files of callers (see `callers`): what each says, and where it lies."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable, NotFound
from alluvium.paimon.log.names import directory
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

_FOLDER = "alluvium-callers"
#: Beside the files of a branch that knew from its beginning what stood before it.
_COMPLETE = "complete"


class Caller(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a caller.

    Attributes:
        user: The caller.
        done: The last commit that is known to stand; None: none is.
        snapshot: Its snapshot.
        manifests: The manifest list that this snapshot alone names: it goes when the snapshot expires.
        begun: A commit of which nobody has said how it ended; None: none.
        after: No snapshot up to this one is of `begun`, or of the caller at all: it stands in another history.
        mark: Of this attempt at `begun`, for what others have seen of it (`Seen`).
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


class Seen(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What snapshots that expired told of a commit in the making. A file of its own: its caller may live, and writes.

    Attributes:
        through: No snapshot behind `after` up to this one is of the commit; 0: not all of them were seen.
        snapshot: The one that is, or that is of a later commit of the caller; None: none was.
        manifests: As of `Caller`.
        identifier: What this snapshot's commit is called; None: as the one in the making.
    """

    through: int = 0
    snapshot: int | None = None
    manifests: str | None = None
    identifier: int | None = None


_Entry = TypeVar("_Entry", Caller, Seen)


def all_callers(store: Store, branch: str) -> list[tuple[str, Caller]]:
    paths = [info.path for info in store.list_tree(directory(branch, _FOLDER)) if info.path.endswith(".json")]
    return list(zip(paths, map_parallel(lambda path: _parsed(path, store.get(path), Caller), paths), strict=True))


def read_caller(store: Store, branch: str, user: str) -> Caller:
    """What a caller's file says; that nothing is known where there is none."""
    path = caller_path(branch, user)
    try:
        return _parsed(path, store.get(path), Caller)
    except NotFound:
        return Caller(user)


def seen_of(store: Store, branch: str, known: Caller) -> Seen:
    if known.begun is None or known.mark is None:
        return Seen()
    path = seen_path(caller_path(branch, known.user), known.mark)
    try:
        return _parsed(path, store.get(path), Seen)
    except NotFound:
        return Seen()


def seen_path(path: str, mark: str) -> str:
    return f"{path.removesuffix('.json')}-{mark}.seen"


def _parsed(path: str, data: bytes, kind: type[_Entry]) -> _Entry:
    try:
        return msgspec.json.decode(data, type=kind)
    except DECODE_ERRORS as error:
        raise CorruptTable(
            f"what a caller has committed cannot be read: {error}",
            code="damaged-callers",
            path=path,
            hint="delete the file: the snapshots that are there tell what was committed",
        ) from None


def caller_path(branch: str, user: str) -> str:
    # A caller may be called anything.
    name = hashlib.sha256(user.encode()).hexdigest()[:40]
    return f"{directory(branch, _FOLDER)}/{name}.json"


def gone_path(path: str, manifests: str) -> str:
    """Says that the snapshot of a caller's last commit expired: its manifest list may be there for some time yet."""
    return f"{path.removesuffix('.json')}-{manifests}.gone"


def gone_paths(store: Store, branch: str) -> list[str]:
    """Those that are there, of all callers."""
    return [info.path for info in store.list_tree(directory(branch, _FOLDER)) if info.path.endswith(".gone")]


def complete_path(branch: str) -> str:
    """Is there where a branch was told when it was made what stood before it."""
    return f"{directory(branch, _FOLDER)}/{_COMPLETE}"
