"""The commit loop's five verbs for snapshots."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa

from alluvium.commit.loop import Entry
from alluvium.commit.standing import Standing
from alluvium.errors import AlluviumError, Conflict, NotFound
from alluvium.paimon.commit.assemble import assemble, in_scope
from alluvium.paimon.commit.conflicts import Unseen, Winner, conflicts, depends_on_masks, unseen_commit
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.commit.late import is_late
from alluvium.paimon.commit.masked import changed_masks
from alluvium.paimon.files.manifest import scan_entries
from alluvium.paimon.log.names import directory
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At, read_snapshot
from alluvium.storage.locating import locating
from alluvium.storage.store import PutOutcome, Store

log = logging.getLogger("alluvium")

#: Of a snapshot's number.
_MOST_DIGITS = 19


class PaimonPort:
    """Publishes `snapshot-N` by put-if-absent, after the manifests that it names.

    Args:
        store: The table's objects.
        branch: Whose snapshots.
    """

    def __init__(self, store: Store, branch: str) -> None:
        self._store = store
        self._branch = branch
        self._parts: tuple[tuple[str, bytes], ...] = ()
        self._standing = Standing(store, self._is_late)
        self._base: Snapshot | None = None

    @property
    def url(self) -> str:
        return self._store.url

    def assemble(self, draft: Draft, base: Snapshot) -> Entry:
        self._base = base
        with locating(self._store, base.version):
            return assemble(draft, base)

    def publish(self, entry: Entry) -> PutOutcome:
        # The names of the manifest lists are this attempt's alone.
        if self._parts is entry.parts:
            outcome = self._store.put_if_absent(entry.path, entry.data)
        else:
            self._parts = entry.parts
            outcome = self._store.put_behind(entry.parts, entry.path, entry.data)
        return self._standing.outcome(outcome, entry)

    def landed(self, entry: Entry) -> bool | None:
        return self._standing.landed(entry)

    def _is_late(self, entry: Entry) -> bool:
        # Nothing is put that was not assembled.
        return self._base is not None and is_late(self._store, self._branch, entry, self._base)

    def refresh(self, base: Snapshot) -> tuple[Snapshot, tuple[Winner | Unseen, ...]]:
        # Only now it is certain that nobody will ever read these.
        self._discard()
        newer = self._newest(base)
        while True:
            try:
                return self._winners(base, newer)
            except NotFound:
                # It may have expired while it was read, if there is a newer one.
                late, newer = newer, self._newest(base)
                if newer.version == late.version:
                    raise

    def _newest(self, base: Snapshot) -> Snapshot:
        newest = load_snapshot(self._store, At(), branch=self._branch, time_zone=base.time_zone)
        return replace(newest, open_store=base.open_store)

    def _winners(self, base: Snapshot, newer: Snapshot) -> tuple[Snapshot, tuple[Winner | Unseen, ...]]:
        first, last = (base.version or 0) + 1, newer.version or 0
        if not self._goes_on_from(base, newer):
            return newer, (Unseen(last, "the table was rolled back or made anew", newer.entries),)
        winners: list[Winner | Unseen] = []
        index = None if base.document is None else base.document.index_manifest
        for number in range(first, last + 1):
            winner = self._winner(number, index, newer)
            winners.append(winner)
            # Whoever comes after one that cannot be seen is told of with that.
            index = winner.document.index_manifest if isinstance(winner, Winner) else None
        return newer, tuple(winners)

    def _goes_on_from(self, base: Snapshot, newer: Snapshot) -> bool:
        """Whether the base is in the history of the newer state; what has expired is taken to be."""
        if base.document is None:
            return True
        if newer.document is None or newer.document.id < base.document.id:
            return False
        if newer.document.id == base.document.id:
            return newer.document == base.document
        try:
            return read_snapshot(self._store, base.document.id, self._branch) == base.document
        except NotFound as error:
            return error.code == "snapshot-expired"

    def _winner(self, number: int, index: str | None, newer: Snapshot) -> Winner | Unseen:
        try:
            document = read_snapshot(self._store, number, self._branch)
            return Winner(document, scan_entries(self._store, (document.delta_manifest_list,)), index)
        except NotFound:
            return _expired(number, newer.entries)

    def conflicts(self, draft: Draft, base: Snapshot, winner: Winner | Unseen) -> tuple[Conflict, ...]:
        if isinstance(winner, Unseen):
            return unseen_commit(draft, winner)
        try:
            masked = self._masked(draft, winner)
        except NotFound:
            return unseen_commit(draft, _expired(winner.document.id, winner.masked))
        entries = winner.entries
        if not draft.reads and draft.replaced is not None:
            entries, masked = (in_scope(base, touched, draft.replaced) for touched in (entries, masked))
        # Which rows were read is not told further than that they were.
        return conflicts(draft, replace(winner, entries=entries, masked=masked))

    def _masked(self, draft: Draft, winner: Winner) -> pa.Table:
        if not depends_on_masks(draft):
            return winner.masked
        return changed_masks(self._store, winner.index_before, winner.document.index_manifest)

    def _discard(self) -> None:
        parts, self._parts = self._parts, ()
        for path, _ in parts:
            try:
                self._store.delete(path)
            except AlluviumError as error:
                log.warning("a manifest of a lost attempt could not be deleted: %s", error)


def _expired(number: int, live: pa.Table) -> Unseen:
    """Snapshots expire from the oldest on, and the manifests that they alone name go with them."""
    return Unseen(number, f"snapshot {number} has expired already", live)


def point_to(store: Store, entry: Entry, branch: str) -> None:
    """Leaves the hints that spare readers a listing; they may be missing, but must not lead back.

    "LATEST" is believed where no snapshot of the next number is there: one of ours that another writer has overtaken
    would hide theirs as soon as snapshots expire.
    """
    folder = directory(branch, "snapshot")
    names = ("EARLIEST", "LATEST") if entry.version == 1 else ("LATEST",)
    for name in names:
        try:
            if name == "LATEST" and _is_overtaken(store, folder, entry.version):
                continue
            store.put(f"{folder}/{name}", str(entry.version).encode(), durable=False)
        except AlluviumError as error:
            # The snapshot stands: a hint is not worth failing for.
            log.warning("the hint %s was not written: %s", name, error)


def _is_overtaken(store: Store, folder: str, version: int) -> bool:
    """Whether the hint names a later snapshot that is there."""
    try:
        text = store.get(f"{folder}/LATEST").strip()
        if not text.isdigit() or len(text) > _MOST_DIGITS or int(text) <= version:
            return False
        store.head(f"{folder}/snapshot-{int(text)}")
    except NotFound:
        return False
    return True
