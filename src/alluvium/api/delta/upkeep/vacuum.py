"""VACUUM of DeltaTable and of SQL: settings of the session, inventories, answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.delta_access import TableAccess, path_access
from alluvium.api.delta.delta_errors import WrongValue
from alluvium.delta.terms.properties import parse_boolean, parse_properties
from alluvium.delta.upkeep.vacuum.readable_versions import readable_versions
from alluvium.delta.upkeep.vacuum.vacuum import HOUR_MS, Vacuumed, VacuumPreview, VacuumRequest, in_ms, vacuum
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.settings import read_flag, read_setting

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
LOGGING = "spark.databricks.delta.vacuum.logging.enabled"
_INVENTORY = ("path", "length", "isDir", "modificationTime")


@raises_counterparts()
class VacuumVerbs:
    """What VACUUM does to a DeltaTable, and what it would take."""

    _spark: SparkSession
    _access: TableAccess

    def vacuum(
        self,
        retentionHours: float | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        *,
        lite: bool = False,
        inventory: DataFrame | None = None,
        clones: Sequence[str] = (),
    ) -> DataFrame | VacuumPreview:
        """Deletes files that neither the table nor any version within the retention needs.

        Args:
            retentionHours: For how long files stay that have left the table; by default, and where that is longer, as
                `delta.deletedFileRetentionDuration` says, a week.
            dry_run: Only tell which files would go, and which versions could not be read afterwards.
            retry: How often entries of the history are tried.
            lite: Only look for files that the log says were removed; the folder is not listed.
            inventory: Files and folders, in place of a listing: `path`, `length`, `isDir`, `modificationTime`.
            clones: Paths of tables, shallow clones of this one, of which a dry run tells which need what would go.

        Returns:
            A DataFrame without columns, as delta-spark's.

        Raises:
            InvalidRequest: The retention is negative, or nothing while
                `spark.databricks.delta.retentionDurationCheck.enabled` is on; clones are named without a dry run.
            NotFound: A clone is no table.
            UnsupportedFeature: The table needs a writer that we are not, or its catalog manages it.
        """
        hours = _number(retentionHours)
        named = tuple(path_access(self._spark, path).snapshot() for path in clones)
        done = vacuum_in_session(self._spark, self._access, hours, lite, inventory, dry_run, retry, named)
        return done if isinstance(done, VacuumPreview) else self._spark.createDataFrame([], StructType())

    def readable_versions(self) -> DataFrame:
        """A row a version: whether it can still be read, and whether it could after VACUUM."""
        found = readable_versions(self._access.snapshot())
        return self._spark.createDataFrame(found)


def vacuum_in_session(
    spark: SparkSession,
    access: TableAccess,
    hours: float | None = None,
    lite: bool = False,
    inventory: DataFrame | None = None,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    clones: tuple[Snapshot, ...] = (),
) -> Vacuumed | VacuumPreview:
    """VACUUM by a session's settings."""
    snapshot = access.snapshot()
    checks = read_flag(spark, CHECK, True)
    retention_ms, logs = _retention_ms(snapshot, hours, checks), read_setting(spark, LOGGING, parse_boolean, None)
    request = VacuumRequest(retention_ms, lite, _rows(inventory), checks, logs, access.engine, clones)
    return vacuum(snapshot, request, dry_run, retry)


def _retention_ms(snapshot: Snapshot, hours: float | None, checks: bool) -> int | None:
    """A retention in milliseconds; None for the table's own.

    delta-spark goes by the table's property, and obeys no other hours than 0. Here longer ones are obeyed, too, and
    shorter ones where the check is off; with the check on, the table's own hold, as there.
    """
    if hours is None:
        return None
    asked = in_ms(hours)
    default_ms = parse_properties(snapshot.config.metadata.configuration).deleted_file_retention_ms
    if asked >= default_ms or asked <= 0 or not checks:
        return asked
    warnings.warn(
        f"VACUUM keeps files for {default_ms / HOUR_MS:g} hours, not {hours:g}: delta.deletedFileRetentionDuration of "
        f"{snapshot.store.url} says so, and {CHECK} is on",
        stacklevel=2,
    )
    return None


def _number(hours: float | None) -> float | None:
    """Whatever Python takes for a number, as in delta-spark."""
    try:
        found = None if hours is None else float(hours)
    except (TypeError, ValueError):
        found = math.nan
    if found is None or math.isfinite(found):
        return found
    raise WrongValue(f"retentionHours needs to be a number but got {hours!r}", code="wrong-type")


def _rows(inventory: DataFrame | None) -> pa.Table | None:
    if inventory is None:
        return None
    named = [sf.col(f"`{name}`") for name in _INVENTORY if name in inventory.columns]
    return inventory.select(*named).toArrow()
