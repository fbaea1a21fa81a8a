"""From rows that we read to a table as Spark's catalog interface knows it.

Spark's analyzer makes rows of a `V1Table` in two steps: it remembers the catalog's entry, and a rule looks in the
session catalog's cache for a plan under the entry's name. Our plan is put there first, under a name that is asked for
only once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.sessions.cached_tables import keep_cached
from alluvium.spark.sessions.catalog import FoundEntry, new_entry, stored_at
from alluvium.spark.sessions.session import java_schema, session_catalog

_SESSION_CATALOG = "spark_catalog"
#: Under what an entry that was found keeps its `_Described`.
_DESCRIBED = "described"
#: Plans hold the lists of files of their tables, and serve one statement while it is analysed: older ones are dropped.
_KEPT_SECONDS = 60.0
_KEPT_PATHS = 256
#: Spark's own cache keeps 1,000 by default.
_KEPT_PLANS = 900
_LETTERS = sum(letter.isalpha() for letter in _SESSION_CATALOG)

_numbers = itertools.count(1)
_changing = threading.Lock()


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What is shown of a table, beside its rows.

    Attributes:
        database: What stands before its name.
        name: Its name, or a path.
        provider: The format.
        schema: Its columns.
        partition_columns: Those of them by which it is partitioned.
        location: URL of the table.
        known: The catalog's own entry; None for a table by its path.
        is_newest: Whether no point in time was asked for.
        properties: Shown of a table without an entry.
    """

    database: str
    name: str
    provider: str
    schema: StructType
    partition_columns: Sequence[str]
    location: str
    known: FoundEntry | None = None
    is_newest: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


def spelling(number: int) -> str:
    """The session catalog's name in one of 4,096 spellings: letters of which some are upper case.

    Whoever asks the cache tells cases apart, and finds only the plan that was put for this very statement, whatever
    other threads put under the same table's name. Whoever resolves columns (`spark_catalog.default.t.id`) does not.
    """
    bits = iter(range(_LETTERS))
    return "".join(c.upper() if c.isalpha() and number >> next(bits) & 1 else c for c in _SESSION_CATALOG)


@dataclass(frozen=True, slots=True)
class PutTable:
    """A table of which Spark finds the rows.

    Attributes:
        table: A `V1Table`.
        number: Which of all that were put.
        name: Under which its plan stands in the session catalog's cache.
        plan: The plan.
        is_plain: Whether it is no more than a relation and its columns, into which no setting of the session went.
    """

    table: JavaObject
    number: int
    name: JavaObject
    plan: JavaObject
    is_plain: bool


def stands(spark: SparkSession, put: PutTable) -> bool:
    """Whether Spark still finds a table's rows, and will for the statement that asks now: the cache is anybody's to
    clear, and what nobody has asked for in a while we drop.
    """
    now = time.monotonic()
    with _changing:
        names = _put_names.get(java_of(spark).gateway, OrderedDict())
        known = names.get(place := _place_of(put.number))
        if known is None or known.number != put.number:
            return False
        is_old = now >= known.put_s + _KEPT_SECONDS / 2
        # Before Spark is asked: nobody drops it from now on.
        names[place] = replace(known, used_s=now, put_s=now if is_old else known.put_s)
        names.move_to_end(place)
    catalog = session_catalog(spark)
    if catalog.getCachedTable(put.name) is None:
        return False
    if is_old:
        # Spark's own cache may be set to let go what was put there some time ago.
        catalog.cacheTable(put.name, put.plan)
    return True


def table_of(spark: SparkSession, rows: DataFrame, entry: TableEntry) -> PutTable:
    """A `V1Table` that Spark will read as these rows."""
    java = java_of(spark)
    number = _free_number(java)
    catalog_name = spelling(_place_of(number))
    shown, once = _described(spark, entry, catalog_name)
    # Always a projection: an INSERT that is not seen by our front would write its files into a bare relation.
    analysed = rows._jdf.queryExecution().analyzed()
    is_plain = _name_leaves(spark, analysed, shown)
    known = _classes_of(java)
    plan = known.project(analysed.output(), analysed)
    if entry.is_newest:
        keep_cached(spark, entry.location, plan)
    name = known.cache_name(catalog_name, entry.database, entry.name)
    _put(spark, number, name, plan)
    return PutTable(known.table(once), number, name, plan, is_plain)


@dataclass(frozen=True, slots=True)
class _Described:
    """A catalog's entry with what only the table itself knows.

    Attributes:
        columns: Schema and partition columns that it tells.
        entry: The entry.
        values: Its fields, to make others of.
    """

    columns: tuple[str, tuple[str, ...]]
    entry: JavaObject
    values: JavaObject


def _described(spark: SparkSession, entry: TableEntry, catalog_name: str) -> tuple[JavaObject, JavaObject]:
    """The catalog's entry with what only the table itself knows, and the same under the name for the cache."""
    java = java_of(spark)
    kept = _kept_of_path(java, entry) if entry.known is None else entry.known.shown
    shown = kept.get(_DESCRIBED)
    if shown is None or shown.columns != _columns_of(entry):
        shown = kept[_DESCRIBED] = _describe(spark, entry)
    parts = _parts_of(java, shown.entry)
    identifier = java.table_identifier(entry.name, *map(java.option.apply, (entry.database, catalog_name)))
    with _changing:
        java.array_access.set(shown.values, parts.names["identifier"], identifier)
        return shown.entry, parts.copy.invoke(shown.entry, shown.values)


#: What is kept of tables without an entry, the latest last.
_paths: WeakKeyDictionary[JavaGateway, OrderedDict[tuple[object, ...], dict[str, Any]]] = WeakKeyDictionary()


def _kept_of_path(java: Java, entry: TableEntry) -> dict[str, Any]:
    properties = tuple(sorted(entry.properties.items()))
    key = (entry.database, entry.name, entry.provider, entry.location, properties)
    with _changing:
        known = _paths.setdefault(java.gateway, OrderedDict())
        kept = known.setdefault(key, {})
        known.move_to_end(key)
        while len(known) > _KEPT_PATHS:
            known.popitem(last=False)
    return kept


def _columns_of(entry: TableEntry) -> tuple[str, tuple[str, ...]]:
    return entry.schema.json(), tuple(entry.partition_columns)


def _describe(spark: SparkSession, entry: TableEntry) -> _Described:
    java = java_of(spark)
    known = _blank(spark, java) if entry.known is None else entry.known.java
    parts = _parts_of(java, known)
    values = known.productIterator().toArray(parts.any_class)
    if entry.known is None:
        identifier = java.table_identifier(entry.name, *map(java.option.apply, (entry.database, _SESSION_CATALOG)))
        values[parts.names["identifier"]] = identifier
        values[parts.names["storage"]] = stored_at(java, entry.location)
        values[parts.names["provider"]] = java.option.apply(entry.provider)
    values[parts.names["schema"]] = java_schema(spark, entry.schema)
    if entry.properties:
        properties = java.jvm.java.util.HashMap()
        for key, value in entry.properties.items():
            properties.put(key, value)
        values[parts.names["properties"]] = java.python_utils.toScalaMap(properties)
    values[parts.names["partitionColumnNames"]] = java.seq(list(entry.partition_columns))
    # Hive counts bytes when an entry is made, and never again: a join would send a table for small that has grown.
    values[parts.names["stats"]] = java.none
    return _Described(_columns_of(entry), parts.copy.invoke(known, values), values)


def _blank(spark: SparkSession, java: Java) -> JavaObject:
    """An entry to make those of paths from: put together of nothing, one costs a hundred round trips."""
    found = _blanks.get(java.gateway)
    if found is None:
        identifier = java.table_identifier("table", *map(java.option.apply, ("database", _SESSION_CATALOG)))
        found = _blanks[java.gateway] = new_entry(spark, identifier, "/", "none", False)
    return found


_blanks: WeakKeyDictionary[JavaGateway, JavaObject] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _Parts:
    """How an entry of the catalog, a Scala case class, is taken apart and put together."""

    copy: JavaObject
    names: dict[str, int]
    any_class: JavaObject
    catalog_table: JavaObject


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of one gateway, looked up once."""

    cache_name: JavaObject
    table: JavaObject
    project: JavaObject


_known_parts: WeakKeyDictionary[JavaGateway, _Parts] = WeakKeyDictionary()
_known_classes: WeakKeyDictionary[JavaGateway, _Classes] = WeakKeyDictionary()


def _classes_of(java: Java) -> _Classes:
    found = _known_classes.get(java.gateway)
    if found is None:
        sql = java.jvm.org.apache.spark.sql
        found = _known_classes[java.gateway] = _Classes(
            sql.catalyst.QualifiedTableName,
            sql.connector.catalog.V1Table,
            sql.catalyst.plans.logical.Project,
        )
    return found


def _parts_of(java: Java, known: JavaObject) -> _Parts:
    found = _known_parts.get(java.gateway)
    if found is None:
        load = java.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass
        entry = load("org.apache.spark.sql.catalyst.catalog.CatalogTable")
        relation = load("org.apache.spark.sql.execution.datasources.LogicalRelation")
        copy = next(m for m in entry.getMethods() if str(m.getName()) == "copy")
        fields = str(known.productElementNames().mkString(",")).split(",")
        catalog_table = relation.getDeclaredField("catalogTable")
        catalog_table.setAccessible(True)
        names = {name: at for at, name in enumerate(fields)}
        found = _Parts(copy, names, java.jvm.scala.reflect.ClassTag.AnyRef(), catalog_table)
        _known_parts[java.gateway] = found
    return found


def _name_leaves(spark: SparkSession, plan: JavaObject, shown: JavaObject) -> bool:
    """Tells the relations of a plan whose they are: `REFRESH TABLE` looks there. Answers whether it is one itself."""
    java, is_plain = java_of(spark), _is_relation(plan)
    leaves = None if is_plain else plan.collectLeaves()
    found = [plan] if leaves is None else [leaves.apply(n) for n in range(leaves.size())]
    for leaf in found if is_plain else filter(_is_relation, found):
        _parts_of(java, shown).catalog_table.set(leaf, java.option.apply(shown))
    return is_plain


def _is_relation(plan: JavaObject) -> bool:
    return str(plan.nodeName()) == "LogicalRelation"


@dataclass(frozen=True, slots=True)
class _Put:
    """A plan in the cache of a session's catalog.

    Attributes:
        number: Which of all that were put.
        catalog: The catalog.
        name: Under which it was put there.
        put_s: When that was last done.
        used_s: When a statement last asked for it.
    """

    number: int
    catalog: JavaObject
    name: JavaObject
    put_s: float
    used_s: float


#: What was put, by the spelling's number; what nobody has asked for the longest comes first.
_put_names: WeakKeyDictionary[JavaGateway, OrderedDict[int, _Put]] = WeakKeyDictionary()


def _place_of(number: int) -> int:
    """The number of the spelling: not the first one, which is the catalog's own name: REFRESH TABLE means it."""
    return number % ((1 << _LETTERS) - 1) + 1


def _free_number(java: Java) -> int:
    """The next number whose spelling nothing has that stands in the cache."""
    with _changing:
        names = _put_names.get(java.gateway, OrderedDict())
        return next(number for number in _numbers if _place_of(number) not in names)


def _put(spark: SparkSession, number: int, name: JavaObject, plan: JavaObject) -> None:
    catalog = session_catalog(spark)
    catalog.cacheTable(name, plan)
    now = time.monotonic()
    dropped: list[_Put] = []
    with _changing:
        names = _put_names.setdefault(java_of(spark).gateway, OrderedDict())
        names[_place_of(number)] = _Put(number, catalog, name, now, now)
        while next(iter(names.values())).used_s < now - _KEPT_SECONDS or len(names) > _KEPT_PLANS:
            dropped.append(names.popitem(last=False)[1])
    for put in dropped:
        put.catalog.invalidateCachedTable(put.name)
