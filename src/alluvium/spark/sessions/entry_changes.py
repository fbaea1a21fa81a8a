"""What is changed of entries that the catalog has: comment, location, name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from alluvium.codecs.partition_path import DEFAULT_PARTITION, format_partition_path, unescape_path_name
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.catalog import find_entry
from alluvium.spark.sessions.entries import changed
from alluvium.spark.sessions.session import session_catalog


@dataclass(frozen=True, slots=True)
class EntryDescription:
    """What an entry says of the table itself.

    Attributes:
        schema: Its columns as Spark's JSON has them.
        partition_schema: Of these the partition columns.
        properties: Of the table.
        partitions: The folders of the partitions that the catalog knows, from the table's folder; None: it tells of
            none, and all that lies there is the table's.
        foreign_partition: Where the entry puts a partition other than in the table's folder of its values, if it does.
    """

    schema: str
    partition_schema: str
    properties: Mapping[str, str]
    partitions: tuple[str, ...] | None = None
    foreign_partition: str | None = None


def describe_entry(spark: SparkSession, parts: tuple[str, ...]) -> EntryDescription:
    """What the entry of that name says of its table."""
    java, entry = java_of(spark), _entry(spark, parts)
    as_java = java.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    properties = {str(key): str(value) for key, value in dict(as_java(entry.properties())).items()}
    schema, partition_schema = str(entry.schema().json()), str(entry.partitionSchema().json())
    return EntryDescription(schema, partition_schema, properties, *_partitions(spark, entry))


def _partitions(spark: SparkSession, entry: JavaObject) -> tuple[tuple[str, ...] | None, str | None]:
    """Folders of partitions, and the first place that is no folder of its values."""
    if not entry.tracksPartitionsInCatalog():
        return None, None
    java, catalog = java_of(spark), spark._jsparkSession.sessionState().catalog()
    as_java = java.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    root = str(java.hadoop_path(entry.location()).toString()).rstrip("/") + "/"
    folders = []
    for partition in as_java(catalog.listPartitions(entry.identifier(), java.none)):
        values = {str(name): None if v is None else str(v) for name, v in dict(as_java(partition.spec())).items()}
        uri = partition.storage().locationUri()
        if not uri.isDefined():
            folders.append(format_partition_path(tuple(values), tuple(values.values())))
            continue
        place = str(java.hadoop_path(uri.get()).toString()).rstrip("/")
        if not place.startswith(root) or _named_values(place[len(root) :]) != _lowered(values):
            return None, place
        folders.append(place[len(root) :])
    return tuple(folders), None


def _named_values(folder: str) -> dict[str, str]:
    """The values that a folder names, by lower-case names; null as folders have it."""
    parts = [part.partition("=") for part in folder.split("/")]
    return {unescape_path_name(name).lower(): unescape_path_name(value) for name, equals, value in parts if equals}


def _lowered(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name.lower(): value or DEFAULT_PARTITION for name, value in values.items()}


def set_provider(spark: SparkSession, parts: tuple[str, ...], provider: str) -> None:
    """Another format for a table, whose columns and partitions are its own affair from now on."""
    java, entry = java_of(spark), _entry(spark, parts)
    values = {
        "provider": java.option.apply(provider),
        "schema": spark._jsparkSession.parseDataType('{"type":"struct","fields":[]}'),
        "partitionColumnNames": java.seq([]),
        "tracksPartitionsInCatalog": False,
    }
    _put(spark, changed(java, entry, values))


def set_comment(spark: SparkSession, parts: tuple[str, ...], comment: str | None) -> None:
    """The comment that the catalog shows of a table; the table has its own."""
    entry = _entry(spark, parts)
    known = entry.comment().get() if entry.comment().isDefined() else None
    if known != comment:
        option = java_of(spark).option.apply(comment)
        _put(spark, changed(java_of(spark), entry, {"comment": option}))


def set_location(spark: SparkSession, parts: tuple[str, ...], location: str) -> None:
    """Another place for a table; whether dropping the entry removes the files stays as it is."""
    java, entry = java_of(spark), _entry(spark, parts)
    uri = java.option.apply(java.hadoop_path(location).toUri())
    _put(spark, changed(java, entry, {"storage": changed(java, entry.storage(), {"locationUri": uri})}))


def rename_table(spark: SparkSession, parts: tuple[str, ...], new_parts: tuple[str, ...]) -> None:
    """Another name within the database; Spark's own errors say what is wrong with it.

    Files of a managed table move with it, where they lie where the catalog puts tables of its name.
    """
    java = java_of(spark)
    entry = _entry(spark, parts)
    identifier = java.jvm.org.apache.spark.sql.catalyst.TableIdentifier
    database = java.option.apply(new_parts[-2] if len(new_parts) > 1 else None)
    catalog = session_catalog(spark)
    catalog.renameTable(entry.identifier(), identifier(new_parts[-1], database))


def _entry(spark: SparkSession, parts: tuple[str, ...]) -> JavaObject:
    found = find_entry(spark, parts)
    assert found is not None, "an entry that has just been found"
    return found.java


def _put(spark: SparkSession, entry: JavaObject) -> None:
    catalog = session_catalog(spark)
    catalog.alterTable(entry)
    catalog.refreshTable(entry.identifier())
