"""Draft: what a commit wants, independent of the snapshot that it will land on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.expr.tree import Expression
from alluvium.paimon.schema.table_schema import TableSchema

#: What a batch calls its only commit: `BatchWriteBuilder.COMMIT_IDENTIFIER`.
BATCH_IDENTIFIER = (1 << 63) - 1


def _new_user() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Replaced:
    """Which live files an overwrite takes out.

    Attributes:
        where: Those of partitions for which it is true; None: see `partitions`.
        partitions: Those of these partitions, as rows of bytes; None, too: all files.
    """

    where: Expression | None = None
    partitions: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit in the making.

    Attributes:
        schema: By which the files were written, its options with those of the call on top.
        added: Entries (`ENTRIES`).
        replaced: None for an append.
        user: Who commits, and
        identifier: what: both together tell one commit from another, and from its repetition.
        is_named: Whether the caller has named user and identifier.
        properties: Of the snapshot.
    """

    schema: TableSchema
    added: pa.Table
    replaced: Replaced | None = None
    user: str = field(default_factory=_new_user)
    identifier: int = BATCH_IDENTIFIER
    is_named: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
