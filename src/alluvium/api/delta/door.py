"""Delta's door, as `api.doors` asks for it: a view without Spark, and a source for workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.table import Table
from alluvium.api.doors import Asked
from alluvium.api.options import as_of
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def open_view(store: Store, asked: Asked, access: Mapping[str, str]) -> Table:
    """The view of one version."""
    snapshot = load_snapshot(store, asked.version, asked.timestamp_ms)
    return Table(replace(snapshot, open_store=partial(open_store, storage_options=access)), access)


def open_source(
    store: Store, given: Mapping[str, str], time_zone: str, open_any: Callable[[str], Store]
) -> tuple[DeltaSource, Struct]:
    """The version that options name: `versionAsOf`, `timestampAsOf`."""
    version, timestamp_ms = as_of(given.get("versionasof"), given.get("timestampasof"), time_zone)
    snapshot = open_snapshot(store, version, timestamp_ms, time_zone, open_any)
    return DeltaSource(snapshot), snapshot.config.schema


def pins(source: DeltaSource) -> dict[str, str]:
    """Options that name the version that was opened."""
    return {"versionAsOf": str(source.snapshot.version)}
