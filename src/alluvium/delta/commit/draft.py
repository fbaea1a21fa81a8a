"""Draft: what a commit wants, independent of the version that it will land on."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.plan.changes import Operation, ReadScope


def _new_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit in the making.

    Attributes:
        actions: What it does.
        read: What its outcome depends on.
        operation: Provenance.
        read_version: The version it was made on; -1 when it creates the table.
        config: The table's configuration after it, where it changes that.
        is_alone: Whether it may follow no other version than the one that it was made on, whatever winners did.
        txn_id: Unique to this draft: reading it back proves that a log entry is ours.
    """

    actions: Actions
    read: ReadScope
    operation: Operation
    read_version: int
    config: TableConfig | None = None
    is_alone: bool = False
    txn_id: str = field(default_factory=_new_id)

    @property
    def is_blind_append(self) -> bool:
        """Only adds, having read nothing; any number of such commits go together."""
        actions = self.actions
        return self.read.is_nothing and actions.removed.num_rows == 0
