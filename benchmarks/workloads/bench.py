"""What a workload is, and the tables that workloads share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data

SPARK_ENGINES = ("raw", "alluvium", "delta-spark")
#: Each engine against itself: the first of a pair works on a table without what is measured.
PAIRED_ENGINES = ("alluvium-plain", "alluvium", "delta-spark-plain", "delta-spark")
#: Over a session of Spark Connect; the first reads plain Parquet.
CONNECT_ENGINES = ("raw-over-connect", "alluvium-over-connect")
OPEN_ENGINES = ("deltalake", "alluvium-open")


@dataclass(frozen=True)
class Bench:
    """Where the tables stand and how large they are: 1.0 is 8 million rows, 300,000 files in the log."""

    folder: Path
    scale: float

    def table(self, name: str, make: Callable[[Path], None]) -> Path:
        return data.ensure_table(self.folder / f"{name}-{self.scale:g}", make)

    def scaled(self, count: int) -> int:
        return max(1, int(count * self.scale))

    def scan_table(self) -> Path:
        return self.table("scan", lambda root: data.make_files(root, data.SCAN_FILES, self.scaled(1_000_000)))

    def indexed_table(self) -> Path:
        """The scanned table, in files with a page index, as Spark writes it."""
        count = self.scaled(1_000_000)
        return self.table("indexed", lambda root: data.make_files(root, data.SCAN_FILES, count, page_index=True))

    def point_table(self) -> Path:
        return self.table("point", lambda root: data.make_files(root, data.POINT_FILES, self.scaled(100_000)))

    def small_table(self) -> Path:
        return self.table("small", lambda root: data.make_files(root, data.SMALL_COMMITS, 100, data.SMALL_COMMITS))

    def many_table(self, files: int) -> Path:
        """Two million rows in so many files."""
        count = self.scaled(2_000_000) // files
        return self.table(f"many-{files}", lambda root: data.make_files(root, files, max(1, count)))

    def past_table(self, files: int) -> Path:
        """As many files that a later version has removed, long ago, and a few that are live."""
        live, past = self.small_table(), self.many_table(files)
        return self.table(f"past-{files}", lambda root: data.make_past(root, live, past))

    def log_table(self) -> Path:
        return self.table("log", lambda root: data.make_log(root, self.scaled(300_000)))

    def long_table(self) -> Path:
        """A log of as many files as clones are measured by."""
        return self.table("long", lambda root: data.make_log(root, self.scaled(100_000)))

    def masked_table(self, fraction: float) -> Path:
        source = self.scan_table()
        return self.table(f"masked-{fraction:g}", lambda root: data.make_masked(root, source, fraction))

    def vectors_table(self) -> Path:
        """The scanned table, which takes deletion vectors and has none."""
        source = self.scan_table()
        return self.table("vectors", lambda root: data.make_vectors_enabled(root, source))

    def mapped_table(self, mode: str) -> Path:
        source = self.scan_table()
        return self.table(f"mapped-{mode}", lambda root: data.make_mapped(root, source, mode))

    def partitioned_table(self, *, in_folders: bool) -> Path:
        source, name = self.point_table(), "partitioned" if in_folders else "partitioned-flat"
        return self.table(name, lambda root: data.make_partitioned(root, source, in_folders=in_folders))

    def changed_table(self) -> Path:
        return self.table("changed", lambda root: data.make_changes(root, 100, self.scaled(40_000)))

    def output(self, engine: str, name: str) -> Path:
        return self.folder / "out" / engine / name


Request = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    Attributes:
        name: What `--only` calls it.
        title: What people read.
        engines: Who takes part, in the order of a round; the first is the measure of the others.
        ours: The engine of this project.
        target: Seconds of ours over seconds of the measure: at most this.
        request: What to ask an engine in a round. Round -1 is not counted: it warms up.
        memory_target: The same of peak memory, where it is compared.
        rounds: How many counted rounds; `quick_rounds` with `--quick`.
        fresh: Whether each request gets a new process, so that nothing is warm and memory is its own.
        has_worst: Whether the slowest round is shown, too.
        has_drift: Whether the first and the last round are shown, too.
        checks: Whether all engines must give the same answer.
    """

    name: str
    title: str
    engines: tuple[str, ...]
    ours: str
    target: float
    request: Callable[[Bench, str, int], Request]
    memory_target: float | None = None
    rounds: int = 7
    quick_rounds: int = 3
    fresh: bool = False
    has_worst: bool = False
    has_drift: bool = False
    checks: bool = True
