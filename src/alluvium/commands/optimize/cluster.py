"""OPTIMIZE of clustered tables: what it refuses, and by which columns and along which curve rows are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alluvium.commands.optimize.curves import Z_CURVE, Curve, clustering_curve
from alluvium.commands.optimize.z_order import OrderColumn, order_columns
from alluvium.delta.features.feature import is_supported_for_writers
from alluvium.delta.features.rows.clustering import FEATURE, clustering_columns
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.schema.edit import Path


@dataclass(frozen=True, slots=True)
class Ordering:
    """How rows are put in order.

    Attributes:
        columns: By which; none: they stay in the order that they are in.
        curve: Along which curve through their ranks.
        clusters: Whether they are the table's clustering columns, so that new files are marked as cubes.
        sorts: Whether rows stand in the order of the columns, not along a curve.
    """

    columns: tuple[OrderColumn, ...] = ()
    curve: Curve = Z_CURVE
    clusters: bool = False
    sorts: bool = False

    @property
    def paths(self) -> list[Path]:
        """The columns' paths, in the schema's spelling."""
        return [c.path for c in self.columns]


def ordering_of(
    snapshot: Snapshot, order_by: Sequence[Path], where: Sequence[str], needs_statistics: bool, full: bool, verb: str
) -> Ordering:
    """The order of rows that the caller asks for, or that the table has.

    Args:
        snapshot: The version.
        order_by: Columns that the caller names.
        where: The caller's conditions.
        needs_statistics: Whether such columns must have statistics.
        full: Whether files that others clustered are to be clustered anew.
        verb: For errors: `"OPTIMIZE"`.

    Raises:
        InvalidRequest: `invalid-zorder-column`.
        UnsupportedFeature: `clustered-table`: a clustered table knows neither partitions nor another order, and one
            that is not clustered cannot be clustered in full.
    """
    clustered = clustering_columns(snapshot.state.domains, snapshot.config)
    names = ", ".join(".".join(path) for path in clustered)
    if is_supported_for_writers(FEATURE, snapshot.config.protocol):
        if where:
            raise _refused(f"{verb} WHERE of", names, "leave out the condition: a clustered table has no partitions")
        if order_by:
            raise _refused(f"{verb} ZORDER BY of", names, "ALTER TABLE ... CLUSTER BY (...) says by which columns")
    if full and not clustered:
        raise UnsupportedFeature(
            "OPTIMIZE FULL is for tables with clustering columns, and this table has none",
            code="clustered-table",
            features=("clustering",),
            hint="leave out FULL, or ALTER TABLE ... CLUSTER BY (...) first",
        )
    if clustered:
        columns = order_columns(snapshot.config, clustered, needs_statistics=False)
        return Ordering(tuple(columns), clustering_curve(len(columns)), clusters=True)
    return Ordering(tuple(order_columns(snapshot.config, order_by, needs_statistics)))


def _refused(asked: str, names: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{asked} a table that is clustered by {names or 'no columns'}",
        code="clustered-table",
        features=("clustering",),
        hint=hint,
    )
