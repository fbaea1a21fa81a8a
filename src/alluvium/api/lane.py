"""The lane without Spark, loaded when the first rows are read: who opens a table may only want to know its files.

It knows every format of files, and loading it takes as long as opening a table.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import pyarrow as pa

from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from alluvium.portable.plain_file import PlainFile


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

    def read_mixed(
        self,
        plan: ScanPlan,
        store: Store,
        open_store: Callable[[str], Store],
        columns: Sequence[str] | None,
        where: Expression | None,
        time_zone: str,
        batch_size: int,
    ) -> Iterator[pa.RecordBatch | PlainFile]: ...


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


def read_mixed(
    plan: ScanPlan,
    store: Store,
    open_store: Callable[[str], Store],
    columns: Sequence[str] | None,
    where: Expression | None,
    time_zone: str,
    batch_size: int,
) -> Iterator[pa.RecordBatch | PlainFile]:
    """The rows of a plan, or files of it that an engine may read itself: `portable.reader.read_mixed`."""
    return _reader().read_mixed(plan, store, open_store, columns, where, time_zone, batch_size)
