"""Tables of other formats that are to become Delta tables: how their own doors would read them."""

from __future__ import annotations

from collections.abc import Callable

from alluvium.api.doors import DELTA, format_at
from alluvium.plan.scan import ScanPlan
from alluvium.storage.store import Store


def other_source(store: Store, time_zone: str, open_any: Callable[[str], Store]) -> tuple[str, ScanPlan] | None:
    """The format of the table at the store's root, and the plan of its newest state; None: there is no such table.

    Args:
        store: The table's objects.
        time_zone: Of the session.
        open_any: From a URL to its store.
    """
    found = format_at(store)
    if found is DELTA:
        return None
    source, _ = found.door.open_source(store, {}, time_zone, open_any)
    return found.name, source.plan_scan()
