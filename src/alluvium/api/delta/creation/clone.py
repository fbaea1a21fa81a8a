"""Clones in a session: first their log, then the catalog's entry, as for tables that are created."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.api.delta.creation.create import ensure_replaceable, is_registrable, named, owned, place_of
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_errors import TableExists
from alluvium.api.delta.optimize.auto import renewed
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy


def source_name(access: TableAccess) -> str:
    """A source as the history of its clones names it: as delta-spark does."""
    return access.name if access.name is not None else f"delta.`{access.store().uri('')}`"


def clone_in_session(
    access: TableAccess,
    source: Snapshot,
    wanted: Wanted,
    shallow: bool,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    name: str | None = None,
) -> tuple[TableAccess, Committed | Preview | None]:
    """Clones a version of a table, and gives the clone its name.

    Args:
        access: The table that is cloned.
        source: The version of it.
        wanted: The clone: what becomes of a table that exists, its name, its location, its properties.
        shallow: Whether it names the files where they are.
        dry_run: Only tell what would come of it.
        retry: How often to try.
        name: Of what is cloned, for the history; None: the table's.

    Returns:
        The clone, and what came of it; None where the table that is there was left alone.

    Raises:
        InvalidRequest: There is a table, and it is not to be replaced; and as of `clone`.
        NotFound: The table to replace does not exist, or files of the source do not.
        UnsupportedFeature: Source or clone need a writer that we are not.
        CommitConflict: Another writer won.
    """
    spark = access.spark
    place = place_of(spark, wanted)
    existing = place.newest()
    ensure_replaceable(wanted, place, existing)
    if existing is not None:
        place = owned(existing, wanted, place)
        if not wanted.mode.replaces and _is_left_alone(spark, wanted, place, existing):
            return place, None
    told = source_name(access) if name is None else name
    request = CloneRequest(told, shallow, wanted.mode.replaces, wanted.properties, place.engine, wanted.user_metadata)
    try:
        done = renewed(spark, place.url, clone(source, place.store(), existing, request, dry_run, retry))
    except CommitConflict:
        if wanted.mode is not Mode.CREATE_IF_NOT_EXISTS:
            raise
        return place, None
    has_name = wanted.name is not None and is_registrable(spark, wanted.name)
    if has_name and place.entry is None and isinstance(done, Committed):
        place = named(spark, place, wanted, done)
    return place, done


def _is_left_alone(spark: SparkSession, wanted: Wanted, place: TableAccess, existing: Snapshot) -> bool:
    """Whether the table that is there stays, as IF NOT EXISTS has it.

    Raises:
        InvalidRequest: It must not be there. A name is never given to a table that is no clone.
    """
    names_it = place.entry is not None or wanted.name is None or not is_registrable(spark, wanted.name)
    if wanted.mode is Mode.CREATE_IF_NOT_EXISTS and names_it:
        return True
    raise TableExists(
        f"the table {wanted.name!r} already exists" if place.entry else "where the clone is to be there is a table",
        code="table-exists",
        url=existing.store.url,
        version=existing.version,
        hint="replace=True, or CREATE OR REPLACE TABLE, puts the clone in its place; its history stays",
    )
