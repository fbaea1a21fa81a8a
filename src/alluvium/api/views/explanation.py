"""What `explain` says of a read, whichever format it is of."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a read will be carried out.

    Attributes:
        lane: `"native"` or `"connect"` (Spark's own readers, of this process or of a Connect server),
            `"python"` (our reader in Spark's Python workers), `"portable"` (without Spark).
        why: Why this lane.
        url: The table.
        version: The version read.
        files: Files that will be read.
        size_bytes: Their total size.
        skipped: Files left out, by reason: `"partition"`, `"statistics"`.
        filters: The predicates that did it, as the engine handed them over.
        counted: Of a URL: how many rows `Table.count` takes from the log alone, and how many files it would read.
    """

    lane: str
    why: str
    url: str
    version: str
    files: int
    size_bytes: int
    skipped: Mapping[str, int]
    filters: tuple[str, ...] = ()
    counted: tuple[int, int] | None = None

    def __str__(self) -> str:
        total = self.files + sum(self.skipped.values())
        lines = [
            f"{self.url} at version {self.version}",
            f"  lane     {self.lane}: {self.why}",
            f"  reads    {self.files} of {total} files, {self.size_bytes:,} bytes",
        ]
        lines += [f"  skips    {count} files by {reason}" for reason, count in self.skipped.items() if count]
        lines += [f"  filter   {text}" for text in self.filters]
        if self.counted is not None:
            lines.append(f"  count    {self.counted[0]:,} rows from the log, {self.counted[1]} files to read")
        return "\n".join(lines)


def why_portable() -> str:
    """Why no lane of Spark's carries out a read of a URL."""
    why = "a URL alone: pyarrow reads it in this process"
    return why if "pyspark" not in sys.modules else f"{why}; read(spark, url) takes a lane of Spark's"
