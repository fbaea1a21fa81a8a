"""The record of one protocol feature: what it is called, when it applies, what it does to plans and commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from alluvium.delta.actions import Actions
from alluvium.delta.config import TableConfig
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import WritePlan
from alluvium.storage.store import Store


def _never(config: TableConfig) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What a scan pass may look at beside the plan.

    Attributes:
        config: The table.
        files: The add actions behind the plan's files (`FILES`), before any pass split them.
        store: The table's objects.
        time_zone: In which values without a zone are read.
    """

    config: TableConfig
    files: pa.Table
    store: Store
    time_zone: str


@dataclass(frozen=True, slots=True)
class Feature:
    """A table feature, all its hooks pure. A hook that is None has nothing to do.

    Attributes:
        name: As in the specification's list of valid feature names.
        reader: Whether readers, too, must implement it.
        spec: Heading of the specification that defines it.
        legacy_reader: The reader version that implies it, if any.
        legacy_writer: The writer version that implies it, if any.
        aliases: Other spellings found in tables (drafts, previews).
        implemented: Whether Alluvium honours it; if not, a table that uses it is refused.
        is_used: Whether the table's metadata makes use of it (a feature may be listed and lie idle).
        on_scan: Edits a scan plan so that what is read obeys the feature.
        on_write: Edits a write plan so that what is written obeys the feature.
        on_commit: Looks at the actions about to be committed; raises InvalidRequest where they break the feature.
    """

    name: str
    reader: bool
    spec: str
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    aliases: tuple[str, ...] = ()
    implemented: bool = True
    is_used: Callable[[TableConfig], bool] = _never
    on_scan: Callable[[ScanPlan, ScanContext], ScanPlan] | None = None
    on_write: Callable[[WritePlan, TableConfig], WritePlan] | None = None
    on_commit: Callable[[Actions, TableConfig], None] | None = None
