"""What OPTIMIZE and REORG came to."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from alluvium.delta.upkeep.clustering.zcubes import CubeFigures
from alluvium.delta.upkeep.look_ups import LookUps, Sampled


@dataclass(frozen=True, slots=True)
class Optimized:
    """What was done, in one commit or, where others took files away meanwhile, in several.

    Attributes:
        version: The newest version that was made; the one that was found, where there was nothing to do.
        added: Sizes of the new files, bytes.
        removed: Sizes of the files in whose place they are.
        partitions: How many partitions these are in.
        bins: How many groups of files were written together.
        considered: How many files there were to look at.
        masks: Deletion vectors that are gone, and the rows that they deleted.
        attempts: Commits tried.
        started_ms: When it began, since 1970 UTC.
        ended_ms: When it ended.
        order_by: Columns that rows were ordered by.
        columns: The table's columns, and how many leading ones have statistics.
        parallelism: How many tasks run at once.
        cubes: Of a clustered table, what its files were.
        look_ups: Of rows that were put in order, how many files are opened for a value of each column.
    """

    version: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    partitions: int
    bins: int
    considered: int
    masks: tuple[int, int]
    attempts: int
    started_ms: int
    ended_ms: int
    order_by: tuple[str, ...]
    columns: tuple[int, int]
    parallelism: int
    cubes: CubeFigures | None = None
    look_ups: tuple[LookUps, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One commit: its version, attempts, sizes of the new files, and the files that went (`FILES`).

    Attributes:
        version: What it made.
        attempts: Commits tried.
        added: Sizes of the new files, bytes.
        removed: The files that went (`FILES`).
        bins: How many groups of files these were.
        samples: Some values of the columns that rows were ordered by.
    """

    version: int
    attempts: int
    added: tuple[int, ...]
    removed: pa.Table
    bins: int
    samples: tuple[Sampled, ...] = ()
