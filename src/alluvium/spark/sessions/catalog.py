"""Tables by name: the session's own catalog (`spark_catalog`), in memory or Hive's.

The catalog keeps name, location and provider; columns and properties are the format's own affair. Spark itself does
not look up the provider when an entry is made through the catalog's interface, so that none of its classes is needed.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.sessions.entries import changed
from alluvium.spark.sessions.session import ensure_native, session_catalog

_SESSION_CATALOG = "spark_catalog"
#: What `SessionCatalog` takes for a table's name; it is asked only when the table's files have been written.
_VALID_NAME = re.compile(r"\w+", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """An entry of the catalog.

    Attributes:
        parts: Its name: catalog, database, table.
        location: URL of the table.
        provider: Name of the format, lower case; "" for a view.
        is_managed: Whether dropping the entry removes the data.
    """

    parts: tuple[str, ...]
    location: str
    provider: str
    is_managed: bool

    @property
    def name(self) -> str:
        """The name as it is shown, without quotes."""
        return ".".join(self.parts)


def parse_name(spark: SparkSession, name: str) -> tuple[str, ...]:
    """The parts of a table's name.

    Raises:
        InvalidRequest: It does not parse (`invalid-table-name`).
    """
    ensure_native(spark)
    try:
        parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    except (PySparkException, Py4JJavaError):
        raise InvalidRequest(f"{name!r} is not the name of a table", code="invalid-table-name") from None
    return tuple(str(parts.apply(i)) for i in range(parts.size()))


def is_path(name: str) -> bool:
    """Whether a name is an absolute path, or a URL."""
    return name.startswith("/") or _SCHEME.match(name) is not None


def find_relation(spark: SparkSession, name: str) -> CatalogTable | None:
    """What a query, an INSERT or a DROP means by a name, where that is an entry of the catalog; None where there is
    none, or a temporary view takes the name.

    Raises:
        InvalidRequest: The name does not parse.
        UnsupportedFeature: It names another catalog than the session's.
    """
    java = java_of(spark)
    # As given: a view has no database, so that a name with one never means it.
    given = java.seq(list(parse_name(spark, name)))
    if session_catalog(spark).isTempView(given):
        return None
    return find_table(spark, name)


def find_table(spark: SparkSession, name: str) -> CatalogTable | None:
    """The entry that a table of that name has or would have, whatever temporary views are called; None where there is
    none.

    Raises:
        InvalidRequest: The name does not parse.
        UnsupportedFeature: It names another catalog than the session's.
    """
    found = find_entry(spark, parse_name(spark, name))
    return None if found is None else found.table


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry of the catalog, and the JVM's own object.

    Attributes:
        table: What it says.
        java: The object.
        asked: By which the catalog was asked for it.
        shown: What others have made of the object, for as long as the catalog has it.
    """

    table: CatalogTable
    java: JavaObject
    asked: JavaObject = field(compare=False)
    shown: dict[str, Any] = field(default_factory=dict, compare=False)


def find_entry(spark: SparkSession, parts: tuple[str, ...]) -> FoundEntry | None:
    """The entry that has a name of these parts, as `find_table` finds it.

    Raises:
        UnsupportedFeature: It names another catalog than the session's.
    """
    identifier = _identifier(spark, parts)
    return _found(spark, identifier, (str(identifier.database().get()), parts[-1]))


def entry_within(spark: SparkSession, database: str, name: str) -> FoundEntry | None:
    """The entry of a name in a database of the session's own catalog."""
    with _changing:
        kept = _entries.setdefault(spark, OrderedDict()).get((database, name))
    if kept is not None:
        # One round trip for what is mostly there; where it is not, the others say so.
        with suppress(PySparkException, Py4JJavaError):
            return _as_kept(spark, session_catalog(spark).getTableMetadata(kept.asked), kept.asked, (database, name))
    java = java_of(spark)
    return _found(spark, java.table_identifier(name, java.option.apply(database)), (database, name))


#: What was found of a session's names, the latest last. What it says holds as long as the catalog has an equal entry.
_entries: WeakKeyDictionary[SparkSession, OrderedDict[tuple[str, str], FoundEntry]] = WeakKeyDictionary()
_KEPT_ENTRIES = 256
_changing = threading.Lock()


def _found(spark: SparkSession, identifier: JavaObject, key: tuple[str, str]) -> FoundEntry | None:
    catalog = session_catalog(spark)
    if not catalog.tableExists(identifier):
        return None
    return _as_kept(spark, catalog.getTableMetadata(identifier), identifier, key)


def _as_kept(spark: SparkSession, entry: JavaObject, identifier: JavaObject, key: tuple[str, str]) -> FoundEntry:
    """What is known of an entry, if the catalog has an equal one still."""
    with _changing:
        known = _entries.setdefault(spark, OrderedDict())
        kept = known.get(key)
    if kept is not None and entry.equals(kept.java):
        return kept
    found = _taken_apart(spark, entry, identifier)
    with _changing:
        known[key] = found
        known.move_to_end(key)
        while len(known) > _KEPT_ENTRIES:
            known.popitem(last=False)
    return found


def _taken_apart(spark: SparkSession, entry: JavaObject, identifier: JavaObject) -> FoundEntry:
    provider = str(entry.provider().get()).lower() if entry.provider().isDefined() else ""
    is_managed = str(entry.tableType().name()) == "MANAGED"
    location = _path_text(spark, entry.location()) if entry.storage().locationUri().isDefined() else ""
    return FoundEntry(CatalogTable(_parts_of(entry.identifier()), location, provider, is_managed), entry, identifier)


def ensure_nameable(spark: SparkSession, name: str) -> None:
    """Refuses names for which the catalog has no place.

    Raises:
        InvalidRequest: There is no such database (`unknown-database`), or no table can have such a name
            (`invalid-table-name`).
        UnsupportedFeature: It names another catalog than the session's.
    """
    identifier = _identifier(spark, parse_name(spark, name))
    if _VALID_NAME.fullmatch(str(identifier.table())) is None:
        raise InvalidRequest(
            f"the catalog takes no table {name!r}", code="invalid-table-name", hint="letters, digits and _ only"
        )
    database = str(identifier.database().get())
    if not has_database(spark, database):
        raise InvalidRequest(
            f"there is no database {database!r} for a table {name!r}",
            code="unknown-database",
            hint=f"spark.sql('create database {database}')",
        )


def has_database(spark: SparkSession, database: str) -> bool:
    """Whether the session's catalog has a database."""
    ensure_native(spark)
    return bool(session_catalog(spark).databaseExists(database))


def default_location(spark: SparkSession, name: str) -> str:
    """Where a table of that name goes when nobody says where."""
    identifier = _identifier(spark, parse_name(spark, name))
    return _path_text(spark, session_catalog(spark).defaultTablePath(identifier))


def qualified_location(spark: SparkSession, name: str, location: str) -> str:
    """A location as the catalog keeps it: relative to the database of the table's name, with its file system."""
    java, session = java_of(spark), spark._jsparkSession.sessionState()
    path = java.hadoop_path(location)
    if not path.isAbsolute():
        database = _identifier(spark, parse_name(spark, name)).database().get()
        path = java.hadoop_path(java.hadoop_path(session.catalog().getDatabaseMetadata(database).locationUri()), path)
    return _qualified(spark, path)


def is_same_place(spark: SparkSession, one: str, other: str) -> bool:
    """Whether two addresses are the same, however they are written."""
    path = java_of(spark).hadoop_path
    return _qualified(spark, path(one)) == _qualified(spark, path(other))


def _qualified(spark: SparkSession, path: JavaObject) -> str:
    java = java_of(spark)
    # Of the settings alone: the file system itself may be one for which the JVM has no class.
    default = java.jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(
        spark._jsparkSession.sessionState().newHadoopConf()
    )
    return str(path.makeQualified(default, java.hadoop_path("/")).toString())


def register_table(
    spark: SparkSession, name: str, location: str, provider: str, is_managed: bool, comment: str | None = None
) -> CatalogTable:
    """Makes an entry; the table's files are not looked at.

    Raises:
        InvalidRequest: There is one of that name (`table-exists`), or no such database.
    """
    parts = parse_name(spark, name)
    identifier = _identifier(spark, parts)
    entry = new_entry(spark, identifier, location, provider, is_managed)
    if comment is not None:
        entry = changed(java_of(spark), entry, {"comment": java_of(spark).option.apply(comment)})
    catalog = session_catalog(spark)
    try:
        catalog.createTable(entry, False, False)
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidRequest(
            f"the catalog takes no table {name!r}: {str(error).split('SQLSTATE')[0].splitlines()[0]}",
            code="invalid-table-name",
        ) from None
    # The catalog keeps names in lower case, unless the session tells cases apart.
    kept = catalog.getTableMetadata(identifier).identifier()
    return CatalogTable(_parts_of(kept), location, provider, is_managed)


def drop_table(spark: SparkSession, table: CatalogTable) -> None:
    """Removes an entry that was found, with the files of a managed table."""
    identifier = _identifier(spark, table.parts)
    session_catalog(spark).dropTable(identifier, True, False)


def quoted_name(parts: Sequence[str]) -> str:
    """A name as Spark's parser takes it."""
    return ".".join(quote(part) for part in parts)


def new_entry(
    spark: SparkSession, identifier: JavaObject, location: str, provider: str, is_managed: bool
) -> JavaObject:
    """An entry as the catalog keeps it, which nobody has put there yet."""
    java = java_of(spark)
    packages = java.jvm.org.apache.spark.sql.catalyst.catalog
    storage = stored_at(java, location)
    table_type = packages.CatalogTableType.MANAGED() if is_managed else packages.CatalogTableType.EXTERNAL()
    schema = spark._jsparkSession.parseDataType('{"type":"struct","fields":[]}')
    return _with_defaults(spark, [identifier, table_type, storage, schema, java.option.apply(provider)])


_sources: WeakKeyDictionary[JavaGateway, JavaObject] = WeakKeyDictionary()


def stored_at(java: Java, location: str) -> JavaObject:
    """Where a table is, as an entry has it."""
    source = _sources.get(java.gateway)
    if source is None:
        found = java.jvm.org.apache.spark.sql.execution.datasources.DataSource
        source = _sources[java.gateway] = found.buildStorageFormatFromOptions
    options = java.hash_map()
    options.put("path", location)
    return source(java.python_utils.toScalaMap(options))


def _with_defaults(spark: SparkSession, given: Sequence[JavaObject]) -> JavaObject:
    """A catalog entry with the first arguments given, and Scala's own defaults for the others.

    How many there are differs from one version of Spark to the next.
    """
    jvm, gateway = java_of(spark).jvm, java_of(spark).gateway
    name = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    entry_class = loader.loadClass(name)
    constructor = max(entry_class.getConstructors(), key=lambda c: c.getParameterCount())
    count = constructor.getParameterCount()
    arguments = gateway.new_array(jvm.java.lang.Object, count)
    for index, value in enumerate(given):
        arguments[index] = value
    companion = loader.loadClass(f"{name}$")
    module = companion.getField("MODULE$").get(None)
    nothing = gateway.new_array(jvm.java.lang.Object, 0)
    no_classes = gateway.new_array(jvm.java.lang.Class, 0)
    for index in range(len(given), count):
        default = companion.getMethod(f"$lessinit$greater$default${index + 1}", no_classes)
        arguments[index] = default.invoke(module, nothing)
    return constructor.newInstance(arguments)


def _identifier(spark: SparkSession, parts: tuple[str, ...]) -> JavaObject:
    """As the catalog takes it: with the current database where the name has none."""
    if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:
        parts = parts[1:]
    elif _is_elsewhere(spark, parts):
        raise UnsupportedFeature(
            f"{'.'.join(parts)!r} names a table of another catalog than {_SESSION_CATALOG}",
            code="unsupported-catalog",
            hint="name the table's path",
        )
    java = java_of(spark)
    catalog = session_catalog(spark)
    database = parts[0] if len(parts) == 2 else str(catalog.getCurrentDatabase())
    return java.table_identifier(parts[-1], java.option.apply(database))


def _is_elsewhere(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Whether a name belongs to a catalog other than the session's: it says so, or that one is the current one."""
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    if len(parts) > 2:
        return True
    if len(parts) == 2 and parts[0].lower() != _SESSION_CATALOG and catalogs.isCatalogRegistered(parts[0]):
        return True
    if len(parts) == 2 and is_path(parts[1]):
        return False  # no catalog has such a name: it is the path that is meant, whatever catalog is the current one
    return str(catalogs.currentCatalog().name()).lower() != _SESSION_CATALOG


def _path_text(spark: SparkSession, uri: JavaObject) -> str:
    """The address as Hadoop writes it, without escapes."""
    return str(java_of(spark).hadoop_path(uri).toString())


def _parts_of(identifier: JavaObject) -> tuple[str, ...]:
    database = str(identifier.database().get()) if identifier.database().isDefined() else "default"
    return (_SESSION_CATALOG, database, str(identifier.table()))
