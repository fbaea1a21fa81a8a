"""What a predicate is for whole files: the question of whoever removes files. Exact, or not answered.

`expr.skipping.prune` answers where a row may be, from bounds that others wrote, and takes whatever it does not
understand for "perhaps". Here only values count that all rows of a file have (partition values), and nothing that is
not understood counts as an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr import tree
from alluvium.expr.skipping.prune import decide


class FileValues(Protocol):
    """What is known for certain of the files; a part of `expr.prune.FileStatistics`, without its bounds."""

    @property
    def num_files(self) -> int: ...

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        """The value of all rows of the file (null: SQL null), typed; None if it is not a partition column."""


@dataclass(frozen=True, slots=True)
class WholeFiles:
    """What a predicate is for all rows of each file; without nulls, and never both.

    Attributes:
        every: Each row makes it true.
        no: No row makes it true.
    """

    every: pa.Array
    no: pa.Array

    @property
    def undecided(self) -> pa.Array:
        """Files of which only their rows can tell."""
        return pc.invert(pc.or_(self.every, self.no))

    @property
    def is_decided(self) -> bool:
        """Whether every file is."""
        return not pc.any(self.undecided, min_count=0).as_py()


def decide_whole(predicate: tree.Expression, files: FileValues, time_zone: str = "UTC") -> WholeFiles:
    """What the values of whole files say of a predicate, and nothing else.

    Args:
        predicate: A bound predicate.
        files: The values.
        time_zone: Session time zone, for casts that have none of their own.

    Raises:
        InvalidRequest: No such time zone.
    """
    found = decide(predicate, _ValuesAlone(files), time_zone)
    return WholeFiles(found.certain, pc.invert(found.keep))


class _ValuesAlone:
    """Implements `expr.prune.FileStatistics` without a bound or a count."""

    def __init__(self, files: FileValues) -> None:
        self._files = files

    @property
    def num_files(self) -> int:
        return self._files.num_files

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._files.exact(path)

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def num_rows(self) -> pa.Array | None:
        return None
