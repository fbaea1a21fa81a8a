"""CREATE TABLE LIKE: a table of the columns, partitioning and properties of another, without its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from alluvium.api.delta.creation.create import create
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import TableAccess, known_access
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.tables.said import makes_ours, texts_of
from alluvium.delta.description.upgrade import FEATURE_PREFIX, supported_features
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.terms.properties import RESERVED
from alluvium.errors import UnsupportedFeature
from alluvium.schema.walk import drop_metadata
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import find_entry, find_table, parse_name, quoted_name

#: What a table has of its own, and no other table takes from it.
_OWN_METADATA = ("delta.columnMapping.", "delta.identity.highWaterMark")
_OWN_PROPERTIES = RESERVED | {
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
}
#: Comes with the clustering columns; not asked for by name.
_BY_COLUMNS = "clustering"


@dataclass(frozen=True, slots=True)
class _Like:
    """The statement, which Spark's versions parse differently."""

    target: tuple[str, ...]
    source: tuple[str, ...]
    location: str | None
    is_stored_as: bool


def run(call: Call) -> DataFrame | None:
    """Carries out `CREATE TABLE [IF NOT EXISTS] t LIKE s [USING delta] [LOCATION ...] [TBLPROPERTIES ...]`."""
    like = _parsed(call)
    if like is None:
        return None
    target, source = quoted_name(like.target), quoted_name(like.source)
    access = known_access(call.spark, source)
    provider = some(call.plan.provider())
    is_like_ours = provider is None and not like.is_stored_as and access is not None
    try:
        known = find_table(call.spark, target)
    except UnsupportedFeature:
        return None
    if not is_like_ours and (provider is None or not makes_ours(call, provider, None)):
        if access is not None and known is None:
            raise _other_format(target, source, provider)
        return None
    mode = Mode.CREATE_IF_NOT_EXISTS if call.plan.ifNotExists() else Mode.CREATE
    if known is not None and mode is Mode.CREATE_IF_NOT_EXISTS:
        return call.nothing()
    wanted = _of_foreign(call, source) if access is None else wanted_like(access)
    properties = {**wanted.properties, **texts_of(call, call.plan.properties())}
    create(
        call.spark,
        replace(wanted, mode=mode, name=target, location=like.location, properties=properties, compares=True),
    )
    return call.nothing()


def _parsed(call: Call) -> _Like | None:
    plan = call.plan
    if str(plan.nodeName()) == "CreateTableLikeCommand":  # before Spark 4.2
        storage = plan.fileFormat()
        uri = some(storage.locationUri())
        stored_as = storage.inputFormat().isDefined() or storage.serde().isDefined()
        place = None if uri is None else str(call.java.hadoop_path(uri).toString())
        return _Like(_identifier(plan.targetTable()), _identifier(plan.sourceTable()), place, stored_as)
    target, source, location = call.parts(plan.name()), call.parts(plan.source()), some(plan.location())
    if target is None or source is None:
        return None
    return _Like(target, source, None if location is None else str(location), plan.serdeInfo().isDefined())


def _identifier(table: JavaObject) -> tuple[str, ...]:
    options = (table.catalog(), table.database())
    return (*(str(o.get()) for o in options if o.isDefined()), str(table.table()))


def wanted_like(access: TableAccess) -> Wanted:
    """As the reference: with what the table's protocol supports, the comment, properties and constraints."""
    snapshot = access.snapshot()
    config = snapshot.config
    schema = drop_metadata(config.schema, lambda key: key.startswith(_OWN_METADATA))
    kept = {k: v for k, v in config.metadata.configuration.items() if k not in _OWN_PROPERTIES}
    features = supported_features(config.protocol) - {_BY_COLUMNS}
    return Wanted(
        Mode.CREATE,
        columns=schema.fields,
        partition_by=config.partition_columns,
        cluster_by=tuple(quoted_name(path) for path in clustering_columns(snapshot.state.domains, config)),
        properties={**{FEATURE_PREFIX + name: "supported" for name in sorted(features)}, **kept},
        comment=config.metadata.description,
    )


def _of_foreign(call: Call, source: str) -> Wanted:
    """Of a table of another format, or of a view, which has no properties for a table."""
    columns = fields_of(call.spark.table(source).schema)
    found = find_entry(call.spark, parse_name(call.spark, source))
    if found is None or not found.table.provider:
        return Wanted(Mode.CREATE, columns=columns)
    partitions = found.java.partitionColumnNames()
    comment = some(found.java.comment())
    return Wanted(
        Mode.CREATE,
        columns=columns,
        partition_by=tuple(str(partitions.apply(n)) for n in range(partitions.size())),
        properties=texts_of(call, found.java.properties()),
        comment=None if comment is None else str(comment),
    )


def _other_format(target: str, source: str, provider: JavaObject | None) -> UnsupportedFeature:
    using = "" if provider is None else f" USING {provider}"
    return UnsupportedFeature(
        f"a table of another format is not made like the Delta table {source}: the catalog does not know its columns",
        code="unsupported-statement",
        hint=f"CREATE TABLE {target}{using} AS SELECT * FROM {source} WHERE false",
    )
