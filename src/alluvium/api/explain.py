"""explain: which lane reads a table, which files it touches, and why the others are left out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.doors import is_paimon
from alluvium.api.stores import storage_for
from alluvium.delta.terms.actions import total
from alluvium.delta.view.answers import count_from_log
from alluvium.delta.view.scan import select_files
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.view.source import PaimonSource
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a read will be carried out.

    Attributes:
        lane: `"native"` or `"connect"` (Spark's own readers, of this process or of a Connect server),
            `"python"` (our reader in Spark's Python workers), `"portable"` (without Spark).
        why: Why this lane.
        url: The table.
        version: The version read.
        files: Files that will be read.
        size_bytes: Their total size.
        skipped: Files left out, by reason: `"partition"`, `"statistics"`.
        filters: The predicates that did it, as the engine handed them over.
        counted: Of a URL: how many rows `Table.count` takes from the log alone, and how many files it would read.
    """

    lane: str
    why: str
    url: str
    version: str
    files: int
    size_bytes: int
    skipped: Mapping[str, int]
    filters: tuple[str, ...] = ()
    counted: tuple[int, int] | None = None

    def __str__(self) -> str:
        total = self.files + sum(self.skipped.values())
        lines = [
            f"{self.url} at version {self.version}",
            f"  lane     {self.lane}: {self.why}",
            f"  reads    {self.files} of {total} files, {self.size_bytes:,} bytes",
        ]
        lines += [f"  skips    {count} files by {reason}" for reason, count in self.skipped.items() if count]
        lines += [f"  filter   {text}" for text in self.filters]
        if self.counted is not None:
            lines.append(f"  count    {self.counted[0]:,} rows from the log, {self.counted[1]} files to read")
        return "\n".join(lines)


@overload
def explain(
    df_or_url: str, where: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Explanation: ...
@overload
def explain(df_or_url: DataFrame, where: None = None, storage_options: None = None) -> tuple[Explanation, ...]: ...
def explain(
    df_or_url: DataFrame | str, where: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Explanation | tuple[Explanation, ...]:
    """Explains how a table, or each table under a DataFrame, will be read. Nothing of it is read.

    Args:
        df_or_url: A DataFrame over tables read by Alluvium, or the URL of a table.
        where: With a URL: the predicate to read it with.
        storage_options: With a URL: credentials and settings of the object store.

    Returns:
        One explanation for a URL; for a DataFrame one a scan in its plan.

    Raises:
        InvalidRequest: The DataFrame reads no table of ours, or `where` was given with a DataFrame.

    Example:
        >>> print(alluvium.explain("/data/flights", "month = 1"))
    """
    if isinstance(df_or_url, str):
        return _explain_url(df_or_url, where, storage_options)
    if where is not None:
        raise InvalidRequest("where goes with a URL", code="explain-where", hint="explain(df.where(...))")
    # A DataFrame is here, so pyspark is loaded already; without one this module must not need it.
    is_connect = type(df_or_url).__module__.startswith(("pyspark.sql.connect.", "alluvium.spark.scan.connect_lane."))
    describe = importlib.import_module(
        f"alluvium.spark.scan.{'connect_lane.connect_describe' if is_connect else 'native_lane.describe'}"
    )
    scans = describe.describe_scans(df_or_url)
    if not scans:
        raise InvalidRequest("the DataFrame reads no table through alluvium", code="nothing-to-explain")
    return tuple(
        Explanation(
            lane=s.lane,
            why=s.why,
            url=s.identity[0],
            version=s.identity[1],
            files=s.files,
            size_bytes=s.size_bytes,
            skipped=dict(s.skipped),
            filters=s.filters,
        )
        for s in scans
    )


def _explain_url(url: str, where: str | None, storage_options: Mapping[str, str] | None) -> Explanation:
    store = storage_for(url, storage_options, None)
    if is_paimon(store):
        return _explain_paimon(store, where)
    snapshot = open_snapshot(store)
    predicate = None if where is None else parse_predicate(where, snapshot.config.schema)
    selection = select_files(snapshot, predicate)
    known = count_from_log(snapshot, predicate)
    sizes = selection.files.column("size")
    return Explanation(
        lane="portable",
        why=_why_portable(),
        url=snapshot.store.url,
        version=str(snapshot.version),
        files=selection.files.num_rows,
        size_bytes=total(sizes),
        skipped=dict(selection.skipped),
        filters=() if where is None else (where,),
        counted=(known.rows, known.undecided.num_rows),
    )


def _explain_paimon(store: Store, where: str | None) -> Explanation:
    source = PaimonSource(load_snapshot(store))
    predicate = None if where is None else parse_predicate(where, source.schema)
    plan = source.plan_scan(predicate)
    merging = sum(part.files.num_rows for part in plan.parts if part.merge is not None)
    return Explanation(
        lane="portable",
        why=_why_portable() + (f"; rows of {merging} files merge by key" if merging else ""),
        url=store.url,
        version=str(source.snapshot.version),
        files=sum(part.files.num_rows for part in plan.parts),
        size_bytes=sum(total(part.files.column("size")) for part in plan.parts),
        skipped=dict(plan.skipped),
        filters=() if where is None else (where,),
    )


def _why_portable() -> str:
    why = "a URL alone: pyarrow reads it in this process"
    return why if "pyspark" not in sys.modules else f"{why}; read(spark, url) takes a lane of Spark's"
