"""Roots: every document by which files of a table are needed: snapshots, tags and changelogs of all branches."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from alluvium.errors import NotFound
from alluvium.paimon.log.names import directory, list_branches, list_names, list_numbers
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.terms.spec import SnapshotDocument, parse_snapshot
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store


class Kind(enum.Enum):
    """What a root is, by the folder and the beginning of the name of its file."""

    SNAPSHOT = "snapshot"
    TAG = "tag"
    CHANGELOG = "changelog"


@dataclass(frozen=True, slots=True)
class Root:
    """A document that names files.

    Attributes:
        kind: What it is.
        branch: Whose.
        path: Of the document.
        document: What it says.
    """

    kind: Kind
    branch: str
    path: str
    document: SnapshotDocument


def list_roots(store: Store) -> list[Root]:
    """All roots that are there.

    One that goes away while they are read has given its place to another, which may not have been listed: a snapshot
    expires behind newer ones, a tag gets another name. So all are listed again until nothing goes.

    Raises:
        CorruptTable: One cannot be read: nobody knows what it needs.
    """
    gone: set[str] = set()
    while True:
        # A listing may miss both of two names where one comes and the other goes while it is made; a second one that
        # begins afterwards has the new one.
        found = list(dict.fromkeys((*_listed(store), *_listed(store))))
        read = map_parallel(lambda one: _read(store, *one), found)
        missed = {path for (_, _, path), root in zip(found, read, strict=True) if root is None}
        # What is listed although it is not there was known before this listing began.
        if missed <= gone:
            return [root for root in read if root is not None]
        gone |= missed


def _listed(store: Store) -> Iterator[tuple[Kind, str, str]]:
    for branch in (MAIN_BRANCH, *list_branches(store)):
        for kind in Kind:
            folder, prefix = directory(branch, kind.value), f"{kind.value}-"
            if kind is Kind.TAG:
                names: Iterable[object] = list_names(store, folder, prefix)
            else:
                names = list_numbers(store, folder, prefix)
            yield from ((kind, branch, f"{folder}/{prefix}{name}") for name in names)


def _read(store: Store, kind: Kind, branch: str, path: str) -> Root | None:
    try:
        return Root(kind, branch, path, parse_snapshot(store.get(path), path))
    except NotFound:
        return None
