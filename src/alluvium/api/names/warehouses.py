"""Paimon warehouses as catalogs of a session: their databases and tables by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from py4j.java_collections import JavaArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.engine import session_opener
from alluvium.api.names.warehouse_changes import changes_of
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.api.reader import read
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log import warehouse
from alluvium.paimon.log.schema_log import list_schema_ids, publish_first_schema
from alluvium.paimon.schema.logical import declared_text, fields_from_logical
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.types import from_spark_declared
from alluvium.spark.sessions.catalog_relations import TableEntry, table_of
from alluvium.spark.sessions.named_catalog import Method, has_catalog, put_catalog, remove_catalog
from alluvium.spark.sessions.session import is_connect
from alluvium.storage.paths import join
from alluvium.storage.store import Store

#: A setting of a session: copies of it (the batches of a stream) have it, too.
_SETTING = "spark.alluvium.catalogs"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PROVIDER = "paimon"
#: Formats of which a path is a name, whatever catalog is the current one.
_OF_PATHS = (_PROVIDER, "delta")
_SESSION_CATALOG = "spark_catalog"
#: Properties that Spark says of every table, and that are none of it.
_SPARKS = frozenset(("provider", "owner", "external", "is_managed_location", "option.serialization.format"))


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A name within a warehouse, taken apart.

    Attributes:
        catalog: The warehouse's name.
        database: The database.
        table: The table itself.
        branch: Of `t$branch_x`.
        system: Of `t$snapshots`.
    """

    catalog: str
    database: str
    table: str
    branch: str | None = None
    system: str | None = None

    @property
    def text(self) -> str:
        """As it is said, without the catalog's quotes."""
        marks = [
            self.table,
            *([f"branch_{self.branch}"] if self.branch else ()),
            *([self.system] if self.system else ()),
        ]
        return f"{self.catalog}.{self.database}.{'$'.join(marks)}"


def open_warehouses(spark: SparkSession, catalogs: Mapping[str, str]) -> None:
    """Makes warehouses readable by names of a classic session.

    Raises:
        InvalidRequest: A name that no catalog has (`"invalid-name"`).
        UnsupportedFeature: The session is one of Spark Connect (`"no-jvm"`).
    """
    if catalogs and is_connect(spark):
        raise UnsupportedFeature(
            "a catalog needs the session's own JVM", code="no-jvm", hint="read tables by their paths over Spark Connect"
        )
    known = {} if not catalogs else warehouses_of(spark)
    for name, url in catalogs.items():
        if _NAME.fullmatch(name) is None or name.lower() in (_SESSION_CATALOG, "sys", *_OF_PATHS):
            raise InvalidRequest(f"a catalog cannot be called {name!r}", code="invalid-name", hint="letters and digits")
        known[name] = session_opener(spark, None)(url).url
    if catalogs:
        spark.conf.set(_SETTING, json.dumps(known))
        answer_warehouses(spark)


def answer_warehouses(spark: SparkSession) -> None:
    """Puts the catalogs of a session's settings in their places, where they are not there yet."""
    for name, url in warehouses_of(spark).items():
        if not has_catalog(spark, name):
            put_catalog(spark, name, _methods(spark, name, url))


def close_warehouses(spark: SparkSession) -> None:
    """Undoes `open_warehouses`."""
    for name in warehouses_of(spark):
        remove_catalog(spark, name)
    spark.conf.unset(_SETTING)


def warehouses_of(spark: SparkSession) -> dict[str, str]:
    """The warehouses of a session: name to URL."""
    found: dict[str, str] = json.loads(spark.conf.get(_SETTING, None) or "{}")
    return found


def find_named(spark: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    """The table of a warehouse that a name means, be it there or not; None: the name is none of a warehouse."""
    known = warehouses_of(spark)
    if not known:
        return None
    if len(parts) == 3 and parts[0] in known:
        return _named(parts[0], parts[1], parts[2])
    manager = spark._jsparkSession.sessionState().catalogManager()
    current = str(manager.currentCatalog().name())
    if current not in known or len(parts) > 2:
        return None
    database = parts[0] if len(parts) == 2 else str(list(manager.currentNamespace())[-1])
    found = _named(current, database, parts[-1])
    # In ``delta.`/path` `` the catalog is nobody's, whatever catalog is the current one.
    return found if warehouse.may_be_table(found.database, found.table) else None


def url_of(spark: SparkSession, named: NamedTable) -> str:
    """Where a table of a warehouse is, or would be."""
    return join(warehouses_of(spark)[named.catalog], warehouse.table_folder(named.database, named.table))


def has_named(spark: SparkSession, named: NamedTable) -> bool:
    """Whether there is such a table."""
    return bool(list_schema_ids(session_opener(spark, None)(url_of(spark, named))))


def ensure_makeable(named: NamedTable) -> None:
    """Refuses to make a table under a name that is not one of its own (`invalid-name`)."""
    if named.system or named.branch:
        what = "branches are made by CALL sys.create_branch" if named.branch else "system tables show what is there"
        raise InvalidRequest(
            f"{named.text} is no name of a table to make", code="invalid-name", hint=f"leave out what follows $: {what}"
        )


def described_table(schema: Struct, partitions: Sequence[str], properties: Mapping[str, str]) -> TableSchema:
    """A table as CREATE TABLE says of it; properties are its options, keys among them.

    Raises:
        InvalidRequest: A rule of tables is broken.
        UnsupportedFeature: It is to be of another format, or to lie elsewhere (`"unsupported-option"`).
    """
    options = {k: v for k, v in properties.items() if k not in _SPARKS and not k.startswith("option.")}
    comment, location = options.pop("comment", None), options.pop("location", None)
    provider = properties.get("provider", _PROVIDER)
    if provider.lower() != _PROVIDER:
        raise UnsupportedFeature(
            f"a warehouse has Paimon tables, and none of the format {provider}",
            code="unsupported-option",
            features=("USING",),
            hint="leave the format out, or say paimon",
        )
    if location is not None:
        raise UnsupportedFeature(
            "a table of a warehouse lies in its database's folder, and nowhere else",
            code="unsupported-option",
            features=("LOCATION",),
            hint="leave LOCATION out",
        )
    keys = [key.strip() for key in options.pop("primary-key", "").split(",") if key.strip()]
    return TableSchema.create(
        number_fields(fields_from_logical(schema)), tuple(partitions), tuple(keys), options, comment
    )


def create_named(
    spark: SparkSession,
    named: NamedTable,
    schema: StructType,
    partitions: Sequence[str],
    properties: Mapping[str, str],
) -> None:
    """Makes a table in a warehouse, without rows."""
    columns = from_spark_declared(schema)
    table = described_table(columns, partitions, properties)
    publish_first_schema(session_opener(spark, None)(url_of(spark, named)), table)


def _named(catalog: str, database: str, name: str) -> NamedTable:
    table, *marks = name.split("$")
    branch = next((m.removeprefix("branch_") for m in marks if m.startswith("branch_")), None)
    system = next((m for m in marks if not m.startswith("branch_")), None)
    return NamedTable(catalog, database, table, branch, system)


def _rows(spark: SparkSession, named: NamedTable, point: Mapping[str, object]) -> DataFrame:
    url, elsewhere = url_of(spark, named), {} if named.branch is None else {"branch": named.branch}
    if named.system is not None:
        return read(spark, url, system=named.system, **elsewhere, **point)  # type: ignore[arg-type]
    return read(spark, url, **elsewhere, **point)  # type: ignore[arg-type]


def _commented(schema: StructType, table: TableSchema) -> StructType:
    """The columns of rows with what the table says of them."""
    shown = StructType()
    for f in schema.fields:
        own = table.find(f.name)
        said = {} if own is None or own.description is None else {"comment": own.description}
        if own is not None and (text := declared_text(own.type)) is not None:
            # By it ALTER knows what it changes.
            said[CHAR_VARCHAR] = text
        shown.add(f.name, f.dataType, f.nullable, {**f.metadata, **said})
    return shown


def _properties(table: TableSchema) -> dict[str, str]:
    """What is shown of a table: its options, and its keys as the option that names them."""
    keys = {"primary-key": ",".join(table.primary_keys)} if table.primary_keys else {}
    return {**table.options, **keys}


def _point(arguments: Sequence[JavaObject]) -> dict[str, object]:
    """The point in time that one of the overloads of `loadTable` has with it."""
    if not arguments:
        return {}
    first = arguments[0]
    if isinstance(first, str):
        return {"table_options": {"scan.version": first}}
    if isinstance(first, int):
        return {"table_options": {"scan.timestamp-millis": str(first // 1000)}}
    if len(arguments) == 2:  # from 4.2 on: a context, and options
        travel = first.timeTravel()
        if not travel.isPresent():
            return {}
        point = travel.get()
        if str(point.getClass().getSimpleName()) == "AsOfVersion":
            return _point([str(point.version())])
        return _point([int(point.micros())])
    return {}


def _methods(spark: SparkSession, name: str, url: str) -> dict[str, Method]:
    java = java_of(spark)
    of = _Warehouse(spark, name, url)
    return {
        "name": lambda _: name,
        "initialize": lambda _: None,
        "defaultNamespace": lambda _: of.texts([warehouse.DEFAULT_DATABASE]),
        "capabilities": lambda _: java.jvm.java.util.HashSet(),
        "listNamespaces": of.list_namespaces,
        "namespaceExists": lambda a: of.has_database(_parts(a[0])),
        "loadNamespaceMetadata": of.load_namespace,
        "createNamespace": of.create_namespace,
        "alterNamespace": of.alter_namespace,
        "dropNamespace": of.drop_namespace,
        "listTables": of.list_tables,
        "loadTable": of.load_table,
        "tableExists": lambda a: of.has_table(a[0]),
        "createTable": of.create_table,
        "alterTable": of.alter_table,
        "dropTable": of.drop_table,
        "purgeTable": of.drop_table,
        "renameTable": of.rename_table,
        "invalidateTable": lambda _: None,
    }


def _parts(namespace: JavaObject) -> tuple[str, ...]:
    return tuple(str(part) for part in namespace)


class _Warehouse:
    """The catalog's methods; what they give back are the JVM's objects."""

    def __init__(self, spark: SparkSession, name: str, url: str) -> None:
        self._spark = spark
        self._name = name
        self._url = url
        self._java = java_of(spark)

    def texts(self, items: Sequence[str]) -> JavaObject:
        """A Java `String[]`."""
        array = self._java.gateway.new_array(self._java.jvm.java.lang.String, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

    def has_database(self, parts: Sequence[str]) -> bool:
        return len(parts) == 1 and parts[0] in warehouse.list_databases(self._store())

    def list_namespaces(self, arguments: Sequence[JavaObject]) -> JavaObject:
        above = _parts(arguments[0]) if arguments else ()
        databases = [] if above else warehouse.list_databases(self._store())
        if above and not self.has_database(above):
            return self._no_namespace(above)
        kind = self._java.jvm.java.lang.Class.forName("[Ljava.lang.String;")
        array = self._java.jvm.java.lang.reflect.Array.newInstance(kind, len(databases))
        for index, database in enumerate(databases):
            self._java.jvm.java.lang.reflect.Array.set(array, index, self.texts([database]))
        return array

    def load_namespace(self, arguments: Sequence[JavaObject]) -> JavaObject:
        parts = _parts(arguments[0])
        if not self.has_database(parts):
            return self._no_namespace(parts)
        found = self._java.jvm.java.util.HashMap()
        found.put("location", join(self._url, f"{parts[0]}.db"))
        return found

    def create_namespace(self, arguments: Sequence[JavaObject]) -> JavaObject | None:
        parts = _parts(arguments[0])
        if self.has_database(parts):
            return self._error("NamespaceAlreadyExistsException", arguments[0])
        if len(parts) != 1:
            raise InvalidRequest("databases do not lie within databases", code="invalid-name")
        warehouse.create_database(self._store(), parts[0])
        return None

    def alter_namespace(self, arguments: Sequence[JavaObject]) -> JavaObject | None:
        raise UnsupportedFeature(
            "databases of a warehouse have no properties", code="unsupported-statement", features=("ALTER DATABASE",)
        )

    def drop_namespace(self, arguments: Sequence[JavaObject]) -> object:
        parts, cascade = _parts(arguments[0]), bool(arguments[1])
        if not self.has_database(parts):
            return self._no_namespace(parts)
        # Whatever lies there would go, tables of other formats among it.
        if not cascade and not warehouse.is_empty(self._store(), parts[0]):
            return self._error("NonEmptyNamespaceException", arguments[0])
        warehouse.drop_database(self._store(), parts[0])
        return True

    def list_tables(self, arguments: Sequence[JavaObject]) -> JavaObject:
        parts = _parts(arguments[0])
        if not self.has_database(parts):
            return self._no_namespace(parts)
        tables = warehouse.list_tables(self._store(), parts[0])
        identifier = self._java.jvm.org.apache.spark.sql.connector.catalog.Identifier
        kind = self._java.jvm.org.apache.spark.sql.connector.catalog.Identifier
        array = self._java.gateway.new_array(kind, len(tables))
        for index, table in enumerate(tables):
            array[index] = identifier.of(arguments[0], table)
        return array

    def has_table(self, identifier: JavaObject) -> bool:
        named = self._asked(identifier)
        return named is not None and has_named(self._spark, named)

    def load_table(self, arguments: Sequence[JavaObject]) -> JavaObject:
        named = self._asked(arguments[0])
        if named is None:
            return self._of_path(arguments)
        try:
            rows = _rows(self._spark, named, _point(arguments[1:]))
        except NotFound as error:
            if error.code in ("not-a-table", "branch-not-found"):
                return self._no_table(arguments[0])
            raise
        url = url_of(self._spark, named)
        name, schema = str(arguments[0].name()), rows.schema
        partitions: tuple[str, ...] = ()
        properties: dict[str, str] = {}
        if named.system is None:
            table = PaimonTable.forPath(url, branch=named.branch).schema
            keys = table.partition_keys
            partitions = keys if keys and tuple(rows.columns[-len(keys) :]) == keys else ()
            schema, properties = _commented(schema, table), _properties(table)
        entry = TableEntry(named.database, name, "paimon", schema, partitions, url, properties=properties)
        return table_of(self._spark, rows, entry).table

    def create_table(self, arguments: Sequence[JavaObject]) -> JavaObject:
        identifier, rest = arguments[0], arguments[1:]
        named = self._named(identifier)
        if named is None:
            raise InvalidRequest(f"{identifier.name()!s} is no name of a table", code="invalid-name")
        ensure_makeable(named)
        if not self.has_database((named.database,)):
            return self._no_namespace((named.database,))
        if self.has_table(identifier):
            return self._error("TableAlreadyExistsException", identifier)
        if len(rest) == 1:  # from 4.1 on
            columns, transforms, given = rest[0].columns(), rest[0].partitions(), rest[0].properties()
        else:
            columns, transforms, given = rest
        create_named(
            self._spark,
            named,
            struct_of(self._spark, columns),
            [partition_key(transform) for transform in transforms],
            {str(key): str(value) for key, value in dict(given).items()},
        )
        return self.load_table([identifier])

    def alter_table(self, arguments: Sequence[JavaObject]) -> JavaObject:
        identifier, changes = arguments[0], list(arguments[1])
        named = self._asked(identifier)
        if named is None or not has_named(self._spark, named):
            return self._no_table(identifier)
        PaimonTable.forPath(url_of(self._spark, named), branch=named.branch).alter(
            [one for change in changes for one in changes_of(change, partial(spark_type, self._spark))]
        )
        return self.load_table([identifier])

    def drop_table(self, arguments: Sequence[JavaObject]) -> bool:
        named = self._asked(arguments[0])
        if named is None or named.system or named.branch or not has_named(self._spark, named):
            return False
        warehouse.drop_table(self._store(), named.database, named.table)
        return True

    def rename_table(self, arguments: Sequence[JavaObject]) -> JavaObject | None:
        raise UnsupportedFeature(
            "tables of a warehouse are not renamed: all their files would move",
            code="unsupported-statement",
            features=("RENAME TABLE",),
            hint="CREATE TABLE new AS SELECT * FROM old",
        )

    def _named(self, identifier: JavaObject) -> NamedTable | None:
        namespace = _parts(identifier.namespace())
        return _named(self._name, namespace[0], str(identifier.name())) if len(namespace) == 1 else None

    def _of_path(self, arguments: Sequence[JavaObject]) -> JavaObject:
        """What ``delta.`/path` `` is to the session's own catalog; other formats Spark knows itself."""
        namespace = _parts(arguments[0].namespace())
        if len(namespace) != 1 or namespace[0].lower() not in _OF_PATHS:
            return self._no_table(arguments[0])
        manager = self._spark._jsparkSession.sessionState().catalogManager()
        return manager.catalog(_SESSION_CATALOG).loadTable(*arguments)

    def _asked(self, identifier: JavaObject) -> NamedTable | None:
        """What may be there; Spark asks of names that no table can have, too, as of paths."""
        named = self._named(identifier)
        return named if named is not None and warehouse.may_be_table(named.database, named.table) else None

    def _store(self) -> Store:
        return session_opener(self._spark, None)(self._url)

    def _no_table(self, identifier: JavaObject) -> JavaObject:
        return self._error("NoSuchTableException", identifier)

    def _no_namespace(self, parts: Sequence[str]) -> JavaObject:
        return self._error("NoSuchNamespaceException", self.texts(parts))

    def _error(self, kind: str, about: JavaObject) -> JavaObject:
        return getattr(self._java.jvm.org.apache.spark.sql.catalyst.analysis, kind)(about)


def struct_of(spark: SparkSession, columns: JavaObject) -> StructType:
    """Columns of the catalog's interface, or the struct that they are, as PySpark's."""
    given = columns
    if isinstance(columns, JavaArray):
        given = java_of(spark).jvm.org.apache.spark.sql.connector.catalog.CatalogV2Util.v2ColumnsToStructType(columns)
    return StructType.fromJson(json.loads(str(given.json())))


def spark_type(spark: SparkSession, data_type: JavaObject) -> object:
    """A type of the JVM as PySpark's."""
    text = str(data_type.json())
    return StructType.fromJson({"type": "struct", "fields": [
        {"name": "x", "type": json.loads(text), "nullable": True, "metadata": {}}
    ]})["x"].dataType  # fmt: skip


def partition_key(transform: JavaObject) -> str:
    """The column by which a transform partitions.

    Raises:
        UnsupportedFeature: It partitions by something else (`"unsupported-partitioning"`).
    """
    references = list(transform.references())
    if str(transform.name()) != "identity" or len(references) != 1:
        raise UnsupportedFeature(
            f"partitions by {transform.name()!s}", code="unsupported-partitioning", features=(str(transform.name()),)
        )
    return ".".join(str(part) for part in references[0].fieldNames())
