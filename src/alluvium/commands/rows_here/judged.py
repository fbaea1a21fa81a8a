"""What a verb decides of rows of the table: which change, and what they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.tree import Expression
from alluvium.plan.changes import ChangeKind


@dataclass(frozen=True, slots=True)
class Judged:
    """Of some rows.

    Attributes:
        kinds: What becomes of each, a `ChangeKind`.
        after: The rows that are updated, in their order, as they are afterwards: the table's columns as far as the verb
            says them; None: there are none.
        lonely: Those that change though no row of a source met them; None: there is no source.
    """

    kinds: pa.Array
    after: pa.Table | None = None
    lonely: pa.Array | None = None

    def of(self, *kinds: ChangeKind) -> pa.Array:
        """Which of the rows are of these kinds."""
        return pc.is_in(self.kinds, value_set=pa.array([int(kind) for kind in kinds], self.kinds.type))


class Judge(Protocol):
    """A verb."""

    @property
    def where(self) -> Expression | None:
        """What is true of every row that changes, and not null; None: any row may change."""

    @property
    def columns(self) -> Sequence[str]:
        """What it must see of rows to tell which change."""

    @property
    def makes_rows(self) -> bool:
        """Whether any row is something else afterwards, so that it must be seen whole."""

    def judge(self, rows: pa.Table) -> Judged:
        """Decides of rows that have all columns of the table, or those of `columns`; called with each row once a pass.

        Raises:
            InvalidRequest: A value cannot be computed, or a row has several matches.
        """

    def inserted(self) -> Iterable[pa.Table]:
        """The rows that come, once all rows of the table have been seen: of some columns each."""


def kinds_of(count: int, kind: ChangeKind) -> pa.Array:
    """The same for each of some rows."""
    return pa.repeat(pa.scalar(int(kind), pa.int8()), count)
