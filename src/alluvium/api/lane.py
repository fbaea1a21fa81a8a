"""The lane without Spark, loaded when the first rows are read: who opens a table may only want to know its files.

It knows every format of files, and loading it takes as long as opening a table.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import pyarrow as pa

from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.storage.store import Store


class _Reader(Protocol):
    def read_batches(
        self,
        plan: ScanPlan,
        store: Store,
        open_store: Callable[[str], Store],
        columns: Sequence[str] | None,
        where: Expression | None,
        time_zone: str,
        batch_size: int,
    ) -> pa.RecordBatchReader: ...


@functools.cache
def _reader() -> _Reader:
    return cast(_Reader, importlib.import_module("alluvium.portable.reader"))


def read_batches(
    plan: ScanPlan,
    store: Store,
    open_store: Callable[[str], Store],
    columns: Sequence[str] | None = None,
    where: Expression | None = None,
    time_zone: str = "UTC",
    batch_size: int = 65_536,
) -> pa.RecordBatchReader:
    """The rows of a plan: `portable.reader.read_batches`, which says what the arguments and the errors are."""
    return _reader().read_batches(plan, store, open_store, columns, where, time_zone, batch_size)
