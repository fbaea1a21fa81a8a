"""What OPTIMIZE of a clustered table refuses."""

from __future__ import annotations

from collections.abc import Sequence

from alluvium.delta.features.feature import is_supported_for_writers
from alluvium.delta.features.rows.clustering import FEATURE, clustering_columns
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.schema.edit import Path


def clustered_by(
    snapshot: Snapshot, order_by: Sequence[Path], where: Sequence[str], full: bool, verb: str
) -> Sequence[Path]:
    """The columns by which a table is clustered, if it is.

    Args:
        snapshot: The version.
        order_by: Columns that the caller wants rows to be ordered by.
        where: The caller's conditions.
        full: Whether files that others clustered are to be clustered anew.
        verb: For errors: `"OPTIMIZE"`.

    Raises:
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
    return clustered


def _refused(asked: str, names: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{asked} a table that is clustered by {names or 'no columns'}",
        code="clustered-table",
        features=("clustering",),
        hint=hint,
    )
