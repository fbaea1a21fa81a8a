"""What is changed of entries that the catalog has: comment, location, name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.catalog import find_entry
from alluvium.spark.sessions.entries import changed
from alluvium.spark.sessions.session import session_catalog


@dataclass(frozen=True, slots=True)
class EntryDescription:
    """What an entry says of the table itself.

    Attributes:
        partition_schema: Its partition columns as Spark's JSON has them.
        properties: Of the table.
        foreign_partition: Where the entry puts a partition outside of the table's folder, if it does.
    """

    partition_schema: str
    properties: Mapping[str, str]
    foreign_partition: str | None = None


def describe_entry(spark: SparkSession, parts: tuple[str, ...]) -> EntryDescription:
    """What the entry of that name says of its table."""
    java, entry = java_of(spark), _entry(spark, parts)
    as_java = java.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    properties = {str(key): str(value) for key, value in dict(as_java(entry.properties())).items()}
    return EntryDescription(str(entry.partitionSchema().json()), properties, _foreign_partition(spark, entry))


def _foreign_partition(spark: SparkSession, entry: JavaObject) -> str | None:
    if not entry.tracksPartitionsInCatalog():
        return None
    java, catalog = java_of(spark), spark._jsparkSession.sessionState().catalog()
    root = str(java.hadoop_path(entry.location()).toString()).rstrip("/") + "/"
    nothing = java.jvm.scala.Option.empty()
    for partition in java.jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        catalog.listPartitions(entry.identifier(), nothing)
    ):
        uri = partition.storage().locationUri()
        if uri.isDefined() and not (place := str(java.hadoop_path(uri.get()).toString())).startswith(root):
            return place
    return None


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
