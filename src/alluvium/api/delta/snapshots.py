"""Versions of Delta tables, opened for every call that means one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from alluvium.api.doors import DELTA, Asked, format_at
from alluvium.delta.log.state import MAX_CHECKPOINT_BYTES
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def open_snapshot(
    store: Store,
    version: int | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    open_elsewhere: Callable[[str], Store] = open_store,
    max_checkpoint_bytes: int = MAX_CHECKPOINT_BYTES,
) -> Snapshot:
    """The snapshot of the Delta table in a store.

    Args:
        store: The table's objects.
        version: The version; None: the newest, or the one at `timestamp_ms`.
        timestamp_ms: The newest version committed at or before this time, milliseconds since 1970 UTC.
        time_zone: In which partition values without a zone are read.
        open_elsewhere: From a URL to its store, for files that lie outside the table.
        max_checkpoint_bytes: Files of larger checkpoints are left for Spark to read, or for whoever needs all of them.

    Raises:
        NotFound: Nothing at the URL is a table; says what there is instead.
        UnsupportedFeature: It is a table of another format.
    """
    try:
        snapshot = load_snapshot(store, version, timestamp_ms, time_zone, max_checkpoint_bytes)
        return replace(snapshot, open_store=open_elsewhere)
    except NotFound as error:
        if error.code == "not-a-table" and (other := format_at(store)) is not DELTA:
            raise UnsupportedFeature(
                f"it is a {other.title} table, and this call is for Delta tables",
                features=(other.name,),
                url=store.url,
                hint=f'say format="{other.name}" where rows are read or written; else {other.title}Table.forPath(url)',
            ) from None
        raise


def has_delta_table(store: Store) -> bool:
    """Whether there is a Delta table in a store. One of another format is none.

    Raises:
        AlluviumError: There is one, which cannot be read.
    """
    try:
        load_snapshot(store)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        return False
    return True


def ensure_asks_of_delta(store: Store, asked: Asked) -> None:
    """What only Paimon's tables have means nothing here.

    Raises:
        InvalidRequest: `"not-a-paimon-table"`.
    """
    if not asked.suits_any_format:
        raise InvalidRequest(
            "tags, branches, options, system tables and modes are Paimon's: there is no Paimon table",
            code="not-a-paimon-table",
            url=store.url,
        )
