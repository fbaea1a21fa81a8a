"""The commit loop's five verbs for the Delta log."""

from __future__ import annotations

import time

from alluvium.commit.loop import Entry
from alluvium.commit.standing import Standing
from alluvium.delta.commit.assemble import assemble
from alluvium.delta.commit.conflicts import Contest, Winner, conflicts
from alluvium.delta.commit.draft import Draft
from alluvium.delta.commit.late import Moment, is_late
from alluvium.delta.commit.winners import ensure_same_table, has_successors, read_winners
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.log import in_commit_timestamp
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.log.segment import not_a_table
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.history import commit_time_ms
from alluvium.delta.view.snapshot import Snapshot, load_snapshot, refresh
from alluvium.errors import Conflict, NotFound
from alluvium.storage.locating import locating
from alluvium.storage.store import PutOutcome, Store


class DeltaPort:
    """Publishes `N.json` by put-if-absent. The base is a snapshot, or None while the table does not exist.

    Args:
        store: The table's objects.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._standing = Standing(store, self._is_late)
        self._looked = Moment.now()

    @property
    def url(self) -> str:
        return self._store.url

    def assemble(self, draft: Draft, base: Snapshot | None) -> Entry:
        with locating(self._store, None):
            return assemble(draft, _context(draft, base))

    def publish(self, entry: Entry) -> PutOutcome:
        """ "Writers MUST never overwrite an existing log entry." """
        # A log whose folder is missing belongs to a table that was dropped: it does not come back by a later version.
        try:
            put = self._store.put_if_absent(entry.path, entry.data, makes_directory=entry.version == 0)
        except NotFound:
            raise not_a_table() from None
        return self._standing.outcome(put, entry)

    def landed(self, entry: Entry) -> bool | None:
        return self._standing.landed(entry)

    def _is_late(self, entry: Entry) -> bool:
        return self._looked.is_long_ago() and is_late(self._store, entry)

    def refresh(self, base: Snapshot | None) -> tuple[Snapshot | None, tuple[Winner, ...]]:
        self._looked = Moment.now()
        if base is None:
            try:
                newer = load_snapshot(self._store)
            except NotFound as error:
                if error.code != "not-a-table":
                    raise
                return None, ()
            first = 0
        else:
            if not has_successors(self._store, base):
                return base, ()
            newer, first = refresh(base), base.version + 1
            ensure_same_table(self._store, base, newer)
        ensure_writable(newer.config)
        return newer, read_winners(self._store, first, newer.version)

    def conflicts(self, draft: Draft, base: Snapshot | None, winner: Winner) -> tuple[Conflict, ...]:
        config = _config(draft, base)
        if base is None:
            return conflicts(Contest(draft, config, picking_from(FILES.empty_table()), winner))
        return conflicts(Contest(draft, config, base.pick_files, winner, base.time_zone))


def _context(draft: Draft, base: Snapshot | None) -> CommitContext:
    now_ms = int(time.time() * 1000)
    if base is None:
        return CommitContext(config=_config(draft, None), now_ms=now_ms)
    config = draft.config or base.config
    return CommitContext(
        config=config,
        before=base.config,
        version=base.version + 1,
        now_ms=now_ms,
        # Looked up only where a commit has to be later: it takes a request.
        previous_ms=commit_time_ms(base) if in_commit_timestamp.is_used(config) else None,
        pick_files=base.pick_files,
        domains=base.state.domains,
    )


def _config(draft: Draft, base: Snapshot | None) -> TableConfig:
    config = base.config if base is not None else draft.config
    assert config is not None, "a draft without a base creates its table"
    return config
