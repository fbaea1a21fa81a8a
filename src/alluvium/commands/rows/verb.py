"""How a verb over rows names itself in the history, and what it counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from alluvium.plan.changes import EditFigures, EditRows, Operation
from alluvium.storage.store import OpenStore


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by what became of them, and how long that took; `unmatched` ones had no match in a source."""

    copied: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    unmatched_updated: int = 0
    unmatched_deleted: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether no row changes."""
        return not (self.updated or self.deleted or self.inserted)


@dataclass(frozen=True, slots=True)
class Verb:
    """How a verb names itself in the history.

    Attributes:
        operation: Name, parameters, engine.
        metrics: Under the history's names, from the counts of rows and files.
        started: When the verb began (`time.monotonic`).
        txn: An application's id and version, which the commit records, be it of no row.
        open_store: The table's objects for Python workers, where Spark's own writer cannot write its files.
        complete: What the same commit does beside, given the changes and the counts of rows; None: nothing. With it,
            there is a commit even where no row changes.
    """

    operation: Operation
    metrics: Callable[[Counts, EditFigures], Mapping[str, int]]
    started: float = field(default_factory=time.monotonic)
    complete: Callable[[EditRows, Counts], EditRows] | None = None
    txn: tuple[str, int] | None = None
    open_store: OpenStore | None = None


def delete_metrics(counts: Counts, figures: EditFigures) -> Mapping[str, int]:
    """Of a DELETE."""
    return {
        "numRemovedFiles": figures.files_removed,
        "numRemovedBytes": figures.bytes_removed,
        "numCopiedRows": counts.copied,
        "numDeletionVectorsAdded": figures.masks_added,
        "numDeletionVectorsUpdated": figures.masks_updated,
        "numDeletionVectorsRemoved": figures.masks_removed,
        "numAddedFiles": figures.files_added,
        "numAddedBytes": figures.bytes_added,
        "numAddedChangeFiles": figures.change_files,
        "numDeletedRows": counts.deleted,
        "scanTimeMs": counts.scan_ms,
        "rewriteTimeMs": counts.rewrite_ms,
    }


def update_metrics(is_whole: bool, counts: Counts, figures: EditFigures) -> Mapping[str, int]:
    """Of an UPDATE; `is_whole`: its condition is about partitions alone, or there is none."""
    return {
        # To the reference's UPDATE a file that gets a mask is one removed and not added again.
        "numRemovedFiles": figures.files_removed + figures.masks_added,
        "numRemovedBytes": figures.bytes_removed + figures.bytes_masked,
        "numCopiedRows": counts.copied,
        "numUpdatedRows": counts.updated,
        "numDeletionVectorsAdded": figures.masks_added,
        "numDeletionVectorsUpdated": figures.masks_updated,
        # Nor does it count masks of files that go as a whole, where it knows that without looking at rows.
        "numDeletionVectorsRemoved": figures.masks_updated if is_whole else figures.masks_removed,
        "numAddedFiles": figures.files_added,
        "numAddedBytes": figures.bytes_added,
        "numAddedChangeFiles": figures.change_files,
        "scanTimeMs": counts.scan_ms,
        "rewriteTimeMs": counts.rewrite_ms,
    }


def merge_metrics(source: Mapping[str, int], counts: Counts, figures: EditFigures) -> Mapping[str, int]:
    """Of a MERGE; `source`: what is counted of its source."""
    return {
        **source,
        "numTargetRowsInserted": counts.inserted,
        "numTargetRowsUpdated": counts.updated,
        "numTargetRowsMatchedUpdated": counts.updated - counts.unmatched_updated,
        "numTargetRowsNotMatchedBySourceUpdated": counts.unmatched_updated,
        "numTargetRowsDeleted": counts.deleted,
        "numTargetRowsMatchedDeleted": counts.deleted - counts.unmatched_deleted,
        "numTargetRowsNotMatchedBySourceDeleted": counts.unmatched_deleted,
        "numTargetRowsCopied": counts.copied,
        "numOutputRows": counts.copied + counts.updated + counts.inserted,
        "numTargetFilesAdded": figures.files_added,
        "numTargetBytesAdded": figures.bytes_added,
        "numTargetFilesRemoved": figures.files_removed,
        "numTargetBytesRemoved": figures.bytes_removed,
        "numTargetDeletionVectorsAdded": figures.masks_added,
        "numTargetDeletionVectorsUpdated": figures.masks_updated,
        "numTargetDeletionVectorsRemoved": figures.masks_removed,
        "numTargetChangeFilesAdded": figures.change_files,
        "scanTimeMs": counts.scan_ms,
        "rewriteTimeMs": counts.rewrite_ms,
    }
