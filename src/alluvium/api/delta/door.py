"""Delta's door, as `api.doors` asks for it: a view without Spark, a source for workers, and how it would be read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from alluvium.api.delta.snapshots import ensure_asks_of_delta, open_snapshot
from alluvium.api.delta.table import Table
from alluvium.api.doors import ArrowWriting, Asked
from alluvium.api.options import as_of
from alluvium.api.views.explanation import Explanation, why_portable
from alluvium.delta.terms.actions import total
from alluvium.delta.view.answers import count_from_log
from alluvium.delta.view.scan import select_files
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Committed
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def open_view(store: Store, asked: Asked, access: Mapping[str, str]) -> Table:
    """The view of one version."""
    ensure_asks_of_delta(store, asked)
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


def explain(store: Store, where: str | None) -> Explanation:
    """How the newest version would be read."""
    snapshot = open_snapshot(store)
    predicate = None if where is None else parse_predicate(where, snapshot.config.schema)
    selection = select_files(snapshot, predicate)
    known = count_from_log(snapshot, predicate)
    return Explanation(
        lane="portable",
        why=why_portable(),
        url=snapshot.store.url,
        version=str(snapshot.version),
        files=selection.files.num_rows,
        size_bytes=total(selection.files.column("size")),
        skipped=dict(selection.skipped),
        filters=() if where is None else (where,),
        counted=(known.rows, known.undecided.num_rows),
    )


def write(writing: ArrowWriting) -> Committed:
    """Rows into a table, which may have to be made."""
    # Loaded when the first rows are written: whoever reads needs none of it.
    return cast(Committed, importlib.import_module("alluvium.api.delta.portable.writer").write_arrow(writing))
