"""The commit loop's five verbs for snapshots."""

from __future__ import annotations

import logging
from dataclasses import replace

from alluvium.commit.landed import landed
from alluvium.commit.loop import Entry
from alluvium.errors import AlluviumError, Conflict
from alluvium.paimon.assemble import assemble, in_scope
from alluvium.paimon.conflicts import Winner, conflicts
from alluvium.paimon.draft import Draft
from alluvium.paimon.manifest import read_entries
from alluvium.paimon.names import directory
from alluvium.paimon.snapshot import Snapshot, load_snapshot
from alluvium.paimon.travel import read_snapshot
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import PutOutcome, Store

log = logging.getLogger("alluvium")


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

    @property
    def url(self) -> str:
        return self._store.url

    def assemble(self, draft: Draft, base: Snapshot) -> Entry:
        with locating(self._store, base.version):
            return assemble(draft, base)

    def publish(self, entry: Entry) -> PutOutcome:
        if self._parts is not entry.parts:
            self._parts = entry.parts
            map_parallel(lambda part: self._store.put(*part), entry.parts)
        return self._store.put_if_absent(entry.path, entry.data)

    def landed(self, entry: Entry) -> bool | None:
        # The names of the manifest lists are this attempt's alone.
        return landed(self._store, entry.path, entry.data)

    def refresh(self, base: Snapshot) -> tuple[Snapshot, tuple[Winner, ...]]:
        # Only now it is certain that nobody will ever read these.
        self._discard()
        newer = load_snapshot(self._store, branch=self._branch, time_zone=base.time_zone)
        newer = replace(newer, open_store=base.open_store)
        first, last = (base.version or 0) + 1, newer.version or 0
        return newer, tuple(self._winner(n) for n in range(first, last + 1))

    def _winner(self, number: int) -> Winner:
        document = read_snapshot(self._store, number, self._branch)
        return Winner(document, read_entries(self._store, (document.delta_manifest_list,)))

    def conflicts(self, draft: Draft, base: Snapshot, winner: Winner) -> tuple[Conflict, ...]:
        touched = in_scope(base, winner.entries, draft.replaced)
        return conflicts(draft, replace(winner, entries=touched))

    def _discard(self) -> None:
        parts, self._parts = self._parts, ()
        for path, _ in parts:
            try:
                self._store.delete(path)
            except AlluviumError as error:
                log.warning("a manifest of a lost attempt could not be deleted: %s", error)


def point_to(store: Store, entry: Entry, branch: str) -> None:
    """Leaves the hints that spare readers a listing; they may be wrong or missing."""
    folder = directory(branch, "snapshot")
    names = ("EARLIEST", "LATEST") if entry.version == 1 else ("LATEST",)
    for name in names:
        try:
            store.put(f"{folder}/{name}", str(entry.version).encode(), durable=False)
        except AlluviumError as error:
            # The snapshot stands: a hint is not worth failing for.
            log.warning("the hint %s was not written: %s", name, error)
