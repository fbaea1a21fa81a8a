"""ANALYZE: one look at all rows of a state for what query planners ask of it.

The figures are those of Spark's own ANALYZE TABLE, which Paimon's connector computes, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.temporal_text import parse_timestamp_ntz
from alluvium.commands.any_rows import read_any
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.paimon.files.partitions import iso_text
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import as_brought, to_logical
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.java_text import float_text
from alluvium.paimon.upkeep.statistics import ColumnStatistics, commit_statistics, format_statistics
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import Committed
from alluvium.plan.retry import RetryPolicy
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal
from alluvium.spark.naming.names import quote
from alluvium.storage.store import OpenStore

#: Bytes of a value where all take as many.
_WIDTHS: dict[DataType, int] = {
    t.BYTE: 1, t.SHORT: 2, t.INTEGER: 4, t.LONG: 8, t.FLOAT: 4, t.DOUBLE: 8, t.BOOLEAN: 1, t.DATE: 4, t.TIMESTAMP: 8,
    t.TIMESTAMP_NTZ: 8,
}  # fmt: skip
#: Bytes of a value of a column that has none.
_LENGTHS: dict[DataType, int] = {t.STRING: 20, t.BINARY: 100}
#: Digits that fit into 8 bytes.
_SHORT_DECIMAL = 18
#: Of the number of distinct values, as a part of it (`spark.sql.statistics.ndv.maxError`).
_ERROR = 0.05


def analyze_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    open_store: OpenStore,
    retry: RetryPolicy,
) -> Committed:
    """Computes statistics and commits them.

    Args:
        spark: The session.
        snapshot: The newest state.
        columns: Of which; None: of all that can have some; (): of the table alone.
        open_store: The table's objects for Python workers.
        retry: How often a lost commit is tried again.

    Raises:
        InvalidRequest: There is no such column (`"column-missing"`).
        UnsupportedFeature: Values of a named column have no order and no length (`"unsupported-type"`).
    """
    chosen = _chosen(snapshot, columns)
    if snapshot.document is None:
        return Committed.nothing(0)
    rows = read_any(spark, PaimonSource(snapshot), open_store)
    figures = [sf.count(sf.lit(1)).alias("rows")]
    for place, f in enumerate(chosen):
        figures += [figure.alias(f"c{place}_{name}") for name, figure in _figures(f).items()]
    found = rows.agg(*figures).collect()[0]
    statistics = [_statistics(found, place, f) for place, f in enumerate(chosen)]
    total = snapshot.document.total_record_count or 0
    size = int(pc.sum(snapshot.entries["file_size"]).as_py() or 0)
    merged = size * found["rows"] // total if total else 0
    return commit_statistics(snapshot, format_statistics(snapshot, found["rows"], merged, statistics), retry)


def _chosen(snapshot: Snapshot, columns: Sequence[str] | None) -> list[DataField]:
    fields = snapshot.schema.fields
    if columns is None:
        return [f for f in fields if _is_analyzed(f)]
    by_name = {f.name.lower(): f for f in fields}
    chosen = []
    for name in columns:
        own = by_name.get(name.lower())
        if own is None:
            raise InvalidRequest(
                f"the table has no column {name!r}",
                code="column-missing",
                url=snapshot.store.url,
                column=name,
                hint=suggest(name, snapshot.schema.names),
            )
        if not _is_analyzed(own):
            raise UnsupportedFeature(
                f"a column of type {own.type} has no statistics",
                code="unsupported-type",
                column=own.name,
                features=(str(own.type),),
            )
        chosen.append(own)
    return list({f.name: f for f in chosen}.values())


def _kind(column: DataField) -> DataType:
    return as_brought(to_logical(column.type))


def _is_analyzed(column: DataField) -> bool:
    if column.type.root == "TIME_WITHOUT_TIME_ZONE":
        return False
    kind = _kind(column)
    return kind in _WIDTHS or kind in _LENGTHS or isinstance(kind, Decimal)


def _figures(column: DataField) -> dict[str, Column]:
    value, kind = sf.col(quote(column.name)), _kind(column)
    figures = {
        "nulls": sf.count_if(value.isNull()),
        "known": sf.count(value),
        "distinct": sf.approx_count_distinct(value, _ERROR),
    }
    if kind in _LENGTHS:
        length = sf.length(value)
        return {**figures, "average": sf.ceil(sf.avg(length)), "longest": sf.max(length)}
    return {**figures, "low": _told(sf.min(value), kind), "high": _told(sf.max(value), kind)}


def _told(value: Column, kind: DataType) -> Column:
    """A bound as a value that Python has as it is."""
    if kind == t.DATE:
        return sf.unix_date(value)
    if kind == t.TIMESTAMP:
        return sf.unix_micros(value)
    return value.cast("string") if kind == t.TIMESTAMP_NTZ else value


def _statistics(found: Row, place: int, column: DataField) -> ColumnStatistics:
    kind = _kind(column)
    said = {name: found[f"c{place}_{name}"] for name in _figures(column)}
    distinct = min(said["distinct"], said["known"])
    if kind in _LENGTHS:
        average, longest = said["average"], said["longest"]
        ends = (_LENGTHS[kind] if average is None else int(average), _LENGTHS[kind] if longest is None else longest)
        return ColumnStatistics(column.name, distinct, None, None, said["nulls"], *ends)
    width = (8 if kind.precision <= _SHORT_DECIMAL else 16) if isinstance(kind, Decimal) else _WIDTHS[kind]
    low, high = (_text(said[end], kind) for end in ("low", "high"))
    return ColumnStatistics(column.name, distinct, low, high, said["nulls"], width, width)


def _text(value: object, kind: DataType) -> str | None:
    """A bound as Java's serializers write it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float_text(value, single=kind == t.FLOAT)
    if isinstance(kind, Decimal):
        return format(value, "f")
    if kind == t.TIMESTAMP:
        assert isinstance(value, int), "microseconds"
        return iso_text(value * 1000)
    if kind == t.TIMESTAMP_NTZ:
        micros = parse_timestamp_ntz(str(value))
        return None if micros is None else iso_text(micros * 1000)
    return str(value)
