"""OPTIMIZE of clustered tables: by which columns and along which curve rows are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alluvium.commands.optimize.clustered import clustered_by
from alluvium.commands.optimize.curves import Z_CURVE, Curve, clustering_curve
from alluvium.commands.optimize.z_order import OrderColumn, order_columns
from alluvium.delta.view.snapshot import Snapshot
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
        UnsupportedFeature: As of `clustered_by`.
    """
    clustered = clustered_by(snapshot, order_by, where, full, verb)
    if clustered:
        columns = order_columns(snapshot.config, clustered, needs_statistics=False)
        return Ordering(tuple(columns), clustering_curve(len(columns)), clusters=True)
    return Ordering(tuple(order_columns(snapshot.config, order_by, needs_statistics)))
