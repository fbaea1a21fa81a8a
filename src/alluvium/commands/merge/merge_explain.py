"""How a MERGE would be carried out, told before it is."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_source import SourceFigures
from alluvium.plan.changes import RowChangeMode
from alluvium.plan.merging import When
from alluvium.plan.ports import RowPlaces

_MODES = {
    RowChangeMode.MASK_ROWS: "deletion vectors: files stay, rows that go are masked, new ones are new files",
    RowChangeMode.UPSERT_KEYS: "upserts: files stay, rows of the same keys are written",
    RowChangeMode.REWRITE_FILES: "copy on write: files that change are written anew",
    RowChangeMode.PATCH_COLUMNS: "patches: files stay, columns that change are written beside them",
}
_APPENDS = "append: no row of the table changes"


@dataclass(frozen=True, slots=True)
class MergeExplanation:
    """How a merge would be carried out. The source was counted, the table was not read.

    Attributes:
        url: The table.
        version: The version that the merge would be carried out on.
        mode: How the table takes the change.
        source_rows: Rows of the source.
        source_bytes: What they take in memory, roughly.
        join: How the table's rows meet them.
        ranges: What the source's keys say of the rows that they can meet, a text a column.
        files: Files that may hold such rows: the first pass reads them.
        size_bytes: Their size.
        total_files: Files of the table.
        passes: What each pass over files does.
        clauses: As in SQL.
    """

    url: str
    version: int
    mode: str
    source_rows: int
    source_bytes: int
    join: str
    ranges: tuple[str, ...]
    files: tuple[str, ...]
    size_bytes: int
    total_files: int
    passes: tuple[str, ...]
    clauses: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"MERGE into {self.url} at version {self.version}",
            f"  mode     {self.mode}",
            f"  source   {self.source_rows:,} rows, about {self.source_bytes:,} bytes; {self.join}",
            *(f"  key      {text}" for text in self.ranges),
            f"  files    {len(self.files)} of {self.total_files} may hold matches, {self.size_bytes:,} bytes",
            *(f"  pass {n}   {text}" for n, text in enumerate(self.passes, 1)),
            *(f"  clause   {text}" for text in self.clauses),
        ]
        return "\n".join(lines)


def explain_merge(
    candidates: RowPlaces,
    mode: RowChangeMode,
    figures: SourceFigures,
    clauses: tuple[Clause, ...],
    *,
    broadcasts: bool,
) -> MergeExplanation:
    """The explanation of a merge that is planned."""
    only_inserts = all(c.when is When.NOT_MATCHED for c in clauses)
    # The size of files that lie elsewhere, or are many, is known from the log alone.
    size = int(pc.sum(candidates.files["size"]).as_py() or 0)
    return MergeExplanation(
        url=candidates.url,
        version=candidates.version,
        mode=_APPENDS if only_inserts else _MODES[mode],
        source_rows=figures.rows,
        source_bytes=figures.size_bytes,
        join="sent to where the table's rows are" if broadcasts else "joined by moving both sides",
        ranges=tuple(
            f"{f.name}: no value, nothing matches" if low is None else f"{f.name} between {low} and {high}"
            for f, low, high in figures.ranges
        ),
        files=tuple(candidates.files["path"].to_pylist()),
        size_bytes=size,
        total_files=candidates.total_files,
        passes=_passes(mode, only_inserts),
        clauses=tuple(c.shown + (" (under a condition)" if c.condition is not None else "") for c in clauses),
    )


def _passes(mode: RowChangeMode, only_inserts: bool) -> tuple[str, ...]:
    if only_inserts:
        return ("reads columns of the condition: which rows of the source have a match",)
    if mode is RowChangeMode.UPSERT_KEYS:
        return ("reads the table's rows, merged by key: deletions, new values, and new rows",)
    if mode is RowChangeMode.MASK_ROWS:
        return ("reads columns of conditions, and those that changed rows keep: masks, and the new rows",)
    second = "reads all columns of these files, and writes them anew"
    if mode is RowChangeMode.PATCH_COLUMNS:
        second = "reads the rows of these files, and writes the columns that are set beside them"
    return ("reads columns of conditions: which files change", second)
