"""The commits that were published while a draft was in the making, as the conflict rules want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import pyarrow as pa

from alluvium.delta.actions import Actions
from alluvium.delta.conflicts import Winner
from alluvium.delta.log.names import commit_path
from alluvium.delta.spec import (
    FILES,
    TOMBSTONES,
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    parse_actions,
)
from alluvium.storage.store import Store

ActionT = TypeVar("ActionT")


def read_winners(store: Store, first: int, last: int) -> tuple[Winner, ...]:
    """The commits of versions `first` to `last`, both included, oldest first."""
    return tuple(_read_winner(store, version) for version in range(first, last + 1))


def _read_winner(store: Store, version: int) -> Winner:
    path = commit_path(version)
    found = parse_actions(store.get(path), path=path, version=version)
    infos = _of(found, CommitInfo)
    info = infos[0] if infos else CommitInfo({})
    protocols, metadata = _of(found, Protocol), _of(found, Metadata)
    actions = Actions(
        protocol=protocols[0] if protocols else None,
        metadata=metadata[0] if metadata else None,
        added=_table(_of(found, Add), FILES),
        removed=_table(_of(found, Remove), TOMBSTONES),
        txns=tuple(_of(found, Txn)),
        domains=tuple(_of(found, DomainMetadata)),
    )
    return Winner(version, actions, info.timestamp, info.operation, info.engine_info, info.is_blind_append is True)


def _of(actions: Sequence[Action], kind: type[ActionT]) -> list[ActionT]:
    return [a for a in actions if isinstance(a, kind)]


def _table(documents: Sequence[msgspec.Struct], schema: pa.Schema) -> pa.Table:
    """Rows of a few file actions; a winner's commit is small beside the log."""
    rows = [msgspec.to_builtins(d) for d in documents]
    for row in rows:
        for f in schema:
            if pa.types.is_map(f.type) and row.get(f.name) is not None:
                row[f.name] = list(row[f.name].items())
    return pa.Table.from_pylist(rows, schema=schema)
