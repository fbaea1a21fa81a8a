"""Draft: what a commit wants, independent of the snapshot that it will land on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.expr.tree import Expression
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import SnapshotDocument

#: What a batch calls its only commit: `BatchWriteBuilder.COMMIT_IDENTIFIER`.
BATCH_IDENTIFIER = (1 << 63) - 1
#: Property of snapshots of ours that add rows of keys: whether these depend on what the table held ("true", "false").
READS = "alluvium.reads"


def _new_user() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Replaced:
    """Which live files an overwrite takes out.

    Attributes:
        where: Those of partitions for which it is true; None: see `partitions`.
        partitions: Those of these partitions, as rows of bytes; None, too: see `files`.
        files: Those of these names, and all of them have to be there; None, too: all files.
    """

    where: Expression | None = None
    partitions: pa.Array | None = None
    files: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class IndexChange:
    """What a commit does to the index of hashes.

    Attributes:
        partitions: Whose index was read: it must be the same still.
        seen: Names of their index files.
        added: New index files (`INDEX_ENTRIES`), each in the place of that of its bucket.
        contents: Of the new files, by their names.
    """

    partitions: pa.Array
    seen: frozenset[str]
    added: pa.Table
    contents: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class VectorChange:
    """What a commit does to deletion vectors.

    Attributes:
        replaced: Names of the index files whose vectors are in new ones: they must be there still, and go.
        files: Names of the data files whose rows are gone, some or all: they must be there still, with the vectors that
            they had.
        added: New index files (`INDEX_ENTRIES`).
        contents: Of the new files, by their paths.
        places: Columns `partition` and `bucket` of buckets whose index files must be those
        seen: still; None: those of others do not matter.
    """

    replaced: frozenset[str]
    files: pa.Array
    added: pa.Table
    contents: dict[str, bytes] = field(repr=False)
    places: pa.Table | None = None
    seen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Restored:
    """A state that is taken over as it was: files keep the ids and the numbers that their rows have.

    Attributes:
        base: The snapshot that the commit goes onto, and no other: what is added and taken out is the difference to it.
        indexes: All index files that there are afterwards (`INDEX_ENTRIES`).
        next_row_id: The id that the next row had.
        document: The snapshot that is there again; None: one of another table.
    """

    base: int | None
    indexes: pa.Table
    next_row_id: int
    document: SnapshotDocument | None = None


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
        reads: Whether the rows depend on what the table held when they were made.
        compacts: Whether its rows are those of the files that it replaces.
        index: Of dynamic buckets: what becomes of their hashes.
        edits: What becomes of the deletion vectors of files whose rows go one by one.
        told: Entries (`ENTRIES`) of files that tell how rows changed.
        merges_manifests: Whether all manifests are written anew, with what is live alone.
        rescales: Whether what it replaces gets another number of buckets than the table's options say.
        statistics: Of the whole state, as a document; None: those that the base has stay.
        needed: Names of live files, columns of whose rows are among what is added: they must be there still.
        restored: What it has taken over; None: all of it is new.
    """

    schema: TableSchema
    added: pa.Table
    replaced: Replaced | None = None
    user: str = field(default_factory=_new_user)
    identifier: int = BATCH_IDENTIFIER
    is_named: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    reads: bool = False
    compacts: bool = False
    index: IndexChange | None = None
    edits: VectorChange | None = None
    told: pa.Table | None = None
    merges_manifests: bool = False
    rescales: bool = False
    statistics: bytes | None = field(default=None, repr=False)
    needed: pa.Array | None = None
    restored: Restored | None = None
