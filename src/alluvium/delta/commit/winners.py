"""The commits that were published while a draft was in the making, as the conflict rules want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import pyarrow as pa

from alluvium.delta.commit.conflicts import Winner
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log, not_a_table
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.spec import (
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
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CommitConflict, Conflict, NotFound
from alluvium.storage.store import Store

ActionT = TypeVar("ActionT")


def has_successors(store: Store, base: Snapshot) -> bool:
    """Whether anybody committed after a version, and all commits since are there to be looked at.

    Its own entry is looked at, too. Where that is another than the one which was read, the table was dropped and made
    anew, and the next place in the log is free in a table that our files do not belong to.

    Args:
        store: The table's objects.
        base: The version.

    Raises:
        NotFound: The table is gone (`not-a-table`).
        CommitConflict: Commits since have expired (`base-expired`), or it is another table (`table-replaced`).
    """
    version = base.version
    listing = list_log(store, version)
    if listing.latest < version:
        if list_log(store).latest < 0:
            raise not_a_table()
        raise _unknown(
            store, version, "table-replaced", "it is gone from the log: the table was put in another's place"
        )
    found, read = listing.commits.get(version), base.state.segment.last
    if read is not None and found is not None and found != read and not _is_copy(store, base, found.size == read.size):
        raise _unknown(store, version, "table-replaced", "the log has another entry of it by now")
    missing = next((n for n in range(version + 1, listing.latest + 1) if n not in listing.commits), None)
    if missing is not None:
        raise _unknown(store, version, "base-expired", f"version {missing} came after it and was cleaned from the log")
    return listing.latest > version


def _is_copy(store: Store, base: Snapshot, is_alike: bool) -> bool:
    """Whether another file under the last entry's name says the same: somebody touched it, or restored a backup."""
    return is_alike and load_snapshot(store).config.metadata.id == base.config.metadata.id


def ensure_same_table(store: Store, base: Snapshot, newer: Snapshot) -> None:
    """A draft made on one table must not land on another that took its place between two looks at the log.

    Raises:
        CommitConflict: It is another (`table-replaced`).
    """
    if newer.version < base.version or newer.config.metadata.id != base.config.metadata.id:
        raise _unknown(store, base.version, "table-replaced", "the table has another id by now, or fewer versions")


def _unknown(store: Store, version: int, code: str, problem: str) -> CommitConflict:
    base = "no table" if version < 0 else f"version {version}"
    message = f"{base}, on which this was made, is no longer a base to commit on: {problem}"
    return CommitConflict(
        message,
        conflicts=[Conflict(code, max(version, 0), None, problem)],
        attempts=1,
        code=code,
        url=store.url,
        version=max(version, 0),
        hint="read the table again and repeat the operation",
    )


def read_winners(store: Store, first: int, last: int) -> tuple[Winner, ...]:
    """The commits of versions `first` to `last`, both included, oldest first.

    Raises:
        CommitConflict: One was cleaned from the log before it could be looked at (`base-expired`).
    """
    return tuple(_read_winner(store, version, first - 1) for version in range(first, last + 1))


def _read_winner(store: Store, version: int, base: int) -> Winner:
    path = commit_path(version)
    try:
        data = store.get(path)
    except NotFound:
        problem = f"version {version} came after it and was cleaned from the log"
        raise _unknown(store, base, "base-expired", problem) from None
    found = parse_actions(data, path=path, version=version)
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
