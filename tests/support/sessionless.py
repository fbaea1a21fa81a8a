"""Tables without a session: kinds of them, and how their rows are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Committed, Preview

Rows = list[dict[str, Any]]

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
KINDS = {
    "plain": {}, "vectors": VECTORS, "feed": FEED, "feed and vectors": {**FEED, **VECTORS},
    "tracked": TRACKED, "all": {**FEED, **VECTORS, **TRACKED, "delta.columnMapping.mode": "name"},
}  # fmt: skip


def table_of(url: str, storage_options: Any = None) -> PortableDeltaTable:
    return PortableDeltaTable.forPath(url, storage_options)


def rows(url: str, **asked: Any) -> Rows:
    found = alluvium.open(url, **asked).to_arrow().to_pylist()
    return sorted(found, key=lambda row: repr(list(row.values())))


def by_text(found: Rows) -> Counter[str]:
    return Counter(repr(sorted(row.items(), key=lambda item: item[0])) for row in found)


def refused(act: Callable[[], object]) -> AlluviumError:
    with pytest.raises(AlluviumError) as caught:
        act()
    return caught.value


def committed(done: Committed | Preview) -> Mapping[str, str]:
    assert isinstance(done, Committed)
    return done.metrics
