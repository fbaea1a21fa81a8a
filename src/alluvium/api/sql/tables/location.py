"""ALTER TABLE SET LOCATION."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_access import path_access
from alluvium.api.delta.delta_errors import NotATable
from alluvium.api.sql.call import Call
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct
from alluvium.schema.walk import drop_metadata
from alluvium.spark.sessions.catalog import qualified_location, quoted_name
from alluvium.spark.sessions.entry_changes import set_location
from alluvium.spark.sessions.settings import read_flag

_UNCHECKED = "spark.databricks.delta.alterLocation.bypassSchemaCheck"


def run(call: Call) -> DataFrame | None:
    """Carries out `ALTER TABLE t SET LOCATION 'path'`: the name means the table that lies there."""
    access, location = call.table(call.plan.table()), str(call.plan.location())
    if access is None:
        return None
    if access.entry is None:
        raise InvalidRequest(
            "a table by its path has no location to be changed", code="no-name", url=access.url, hint="name it first"
        )
    if call.plan.partitionSpec().isDefined():
        raise InvalidRequest(
            "a partition has no location of its own", code="invalid-location", url=access.url, hint="leave it out"
        )
    name = quoted_name(access.entry.parts)
    other = path_access(call.spark, qualified_location(call.spark, name, location))
    there, here = other.newest(), access.newest()
    if there is None:
        raise NotATable(f"there is no Delta table at {location!r}", code="not-a-table", url=other.url)
    if here is not None and not read_flag(call.spark, _UNCHECKED, False):
        _ensure_alike(here, there, location)
    set_location(call.spark, access.entry.parts, other.url)
    return call.nothing()


def _ensure_alike(here: Snapshot, there: Snapshot, location: str) -> None:
    ours, theirs = here.config, there.config
    for what, one, other in (
        ("columns", _plain(ours.schema), _plain(theirs.schema)),
        ("partition columns", list(ours.partition_columns), list(theirs.partition_columns)),
    ):
        if one != other:
            raise InvalidRequest(
                f"the table at {location!r} has other {what}: {other}, not {one}",
                code="schema-mismatch",
                url=there.store.url,
                version=there.version,
                hint=f"drop the name and create it with that LOCATION, or set {_UNCHECKED} to true",
            )


def _plain(schema: Struct) -> Struct:
    return drop_metadata(schema, lambda key: key.startswith(("delta.columnMapping.", "delta.identity.highWaterMark")))
