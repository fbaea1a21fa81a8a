"""Tables of other formats that are to become Delta tables: how their own doors would read them."""

from __future__ import annotations

from collections.abc import Callable

from alluvium.api.doors import DELTA, format_at
from alluvium.delta.upkeep.convert.iceberg import NAME as ICEBERG
from alluvium.delta.upkeep.convert.iceberg import iceberg_plan
from alluvium.plan.scan import ScanPlan
from alluvium.storage.store import Store


def other_source(
    store: Store, time_zone: str, open_any: Callable[[str], Store], metadata: str | None = None
) -> tuple[str, ScanPlan] | None:
    """The format of the table at the store's root, and the plan of its newest state; None: there is no such table.

    Args:
        store: The table's objects.
        time_zone: Of the session.
        open_any: From a URL to its store.
        metadata: Of an Iceberg table the file that says its newest state; None: its folder says it.

    Raises:
        AlluviumError: As `delta.upkeep.convert.iceberg.iceberg_plan`.
    """
    found = format_at(store)
    if found is DELTA:
        plan = iceberg_plan(store, metadata)
        return None if plan is None else (ICEBERG, plan)
    source, _ = found.door.open_source(store, {}, time_zone, open_any)
    return found.name, source.plan_scan()
