"""typeWidening: columns whose type became wider than it was when some of the files were written.

Specification: "Type Widening". Readers of data files convert (`portable.files.conform`, Spark's Parquet reader); texts
of partition values and statistics are parsed as the type of today.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta.features.feature import Feature, ScanContext
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import ScanPlan
from alluvium.schema import types as t
from alluvium.schema.spark_json import parse_type
from alluvium.schema.types import DataType, Decimal, Field
from alluvium.schema.walk import drop_metadata, fields_within

TYPE_CHANGES = "delta.typeChanges"

_INT_DIGITS, _LONG_DIGITS = 10, 20
_WIDER: dict[DataType, tuple[DataType, ...]] = {
    # "`Byte` -> `Short` -> `Int` -> `Long`", "`Byte`, `Short` or `Int` -> `Double`"
    t.BYTE: (t.SHORT, t.INTEGER, t.LONG, t.DOUBLE),
    t.SHORT: (t.INTEGER, t.LONG, t.DOUBLE),
    t.INTEGER: (t.LONG, t.DOUBLE),
    # "`Float` -> `Double`"
    t.FLOAT: (t.DOUBLE,),
    # "`Date` -> `Timestamp without timezone`"
    t.DATE: (t.TIMESTAMP_NTZ,),
}


def is_widening(source: DataType, target: DataType) -> bool:
    """Whether the specification lists the type change among "the supported type changes"."""
    if source == target:
        return True
    if isinstance(target, Decimal):
        if isinstance(source, Decimal):
            # "`Decimal(p, s)` -> `Decimal(p + k1, s + k2)` where `k1 >= k2 >= 0`"
            more_scale = target.scale - source.scale
            return target.precision - source.precision >= more_scale >= 0
        # "`Byte`, `Short` or `Int` -> `Decimal(10 + k1, k2)`", "`Long` -> `Decimal(20 + k1, k2)`, `k1 >= k2 >= 0`"
        digits = _LONG_DIGITS if source == t.LONG else _INT_DIGITS
        return source in t.INTEGRAL and target.precision - digits >= target.scale
    return target in _WIDER.get(source, ())


def is_used(config: TableConfig) -> bool:
    """ "The `metadata` for a column or field in the table schema may contain the key `delta.typeChanges`" """
    return any(TYPE_CHANGES in f.metadata for _, f in fields_within(config.schema))


def is_requested(config: TableConfig) -> bool:
    """Whether types may be widened (`delta.enableTypeWidening`), or were."""
    enabled = config.metadata.configuration.get("delta.enableTypeWidening", "false").strip().lower()
    return enabled == "true" or is_used(config)


def on_metadata(config: TableConfig) -> None:
    """ "Readers must validate that they support all type changes in the `delta.typeChanges` field in the table schema
    for the table version they are reading and fail when finding any unsupported type change."
    """
    for path, f in fields_within(config.schema):
        if TYPE_CHANGES in f.metadata:
            _ensure_supported(f, ".".join(path))


def _ensure_supported(f: Field, column: str) -> None:
    changes = f.metadata[TYPE_CHANGES]
    # "The value for the key `delta.typeChanges` must be a JSON list of objects"
    if not isinstance(changes, list):
        raise _corrupt("it is not a list", column)
    for change in changes:
        if not isinstance(change, dict) or {"fromType", "toType"} - change.keys():
            raise _corrupt("an entry has no fromType or toType", column)
        source, target = parse_type(change["fromType"], column), parse_type(change["toType"], column)
        if not is_widening(source, target):
            raise UnsupportedFeature(
                f"the column's type was changed from {source} to {target}, which is no widening that the "
                "specification knows",
                code="unsupported-type-change",
                features=("typeWidening",),
                column=column,
                hint="read a version from before the change, or rewrite the table with a writer that knows it",
            )


def _corrupt(problem: str, column: str) -> CorruptTable:
    return CorruptTable(f"the record of type changes is damaged: {problem}", code="invalid-type-changes", column=column)


def on_scan(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """Keeps the history of types from those who read: a copy of the column has none."""
    if not is_used(context.config):
        return plan
    return replace(plan, schema=drop_metadata(plan.schema, lambda key: key == TYPE_CHANGES))


FEATURE = Feature(
    name="typeWidening",
    reader=True,
    spec="Type Widening",
    aliases=("typeWidening-preview",),
    is_used=is_used,
    is_requested=is_requested,
    on_metadata=on_metadata,
    on_scan=on_scan,
)
