"""enable(spark): `format("delta")` on `spark.read` and `df.write`, for the sessions that asked for it.

PySpark's reader and writer classes are wrapped once, when the first session is enabled, and unwrapped when the
last is disabled. The wrappers only remember what was said to a reader or writer; all calls go through to
PySpark, except `load` and `save` of our formats in an enabled session, and `table`, `tableExists` and `DROP TABLE` of
tables of ours, for which Spark would ask for a class of the format. Spark Connect has classes of its own, which are
wrapped likewise; its SQL is the server's, which gets our Python data source under the formats' names.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Catalog, DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.catalog import Column
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.creation.request import Mode
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, known_access
from alluvium.api.names.answered import answer_names, forget_names
from alluvium.api.names.catalog_tables import create_in_catalog
from alluvium.api.names.catalog_writer import insert_into, save_as_table
from alluvium.api.names.frame_views import insertable_access
from alluvium.api.names.listed_columns import told_by_log
from alluvium.api.names.paimon_access import PROVIDER as PAIMON
from alluvium.api.names.paimon_access import PaimonAccess, known_paimon
from alluvium.api.names.table_writer import TableWriter
from alluvium.api.names.warehouse_rows import MadeOfRows
from alluvium.api.names.warehouses import open_warehouses
from alluvium.api.reader import WHERE_POSSIBLE, read
from alluvium.api.server_scan import register
from alluvium.api.session.delta_settings import tell_of_statement, tell_of_unread
from alluvium.api.session.paimon_names import (
    PaimonName,
    PaimonTableWriter,
    insert_into_paimon,
    paimon_name,
    save_as_paimon,
)
from alluvium.api.session.said import (
    ensure_inserts,
    ensure_unbucketed,
    remember_clusters,
    remember_mode,
    remember_partitions,
    said_of,
)
from alluvium.api.session.streams import load_stream, start_stream, stream_table, stream_to_table
from alluvium.api.session.table_paths import table_path
from alluvium.api.sql.connect.front import sql as sql_of_server
from alluvium.api.sql.front import sql
from alluvium.api.sql.kept.cached import note_table
from alluvium.api.writer import write
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.catalog import quoted_name
from alluvium.spark.sessions.session import ensure_native, is_connect
from alluvium.spark.statements.resolve import named_rows

log = logging.getLogger("alluvium")

FORMATS = ("delta", "paimon")


#: A setting of a classic session that is enabled. Copies of a session have its settings: the batches of a streaming
#: query run in such a copy, of which Python knows nothing before `foreachBatch` is called.
_MARK = "spark.alluvium.enabled"
#: Sessions that were enabled, to know when the last is not any more.
_ENABLED: list[SparkSession] = []
_ORIGINALS: dict[tuple[type, str], Callable[..., object]] = {}


def enable(spark: SparkSession, catalogs: Mapping[str, str] | None = None) -> None:
    """Makes `format("delta")` of this session's readers and writers Alluvium's. May be called again.

    It holds for the session, however many objects of Python stand for it, and for the copies that streaming queries
    make of it when they start: a batch of `foreachBatch` is written and read alike. `newSession()` is another session.

    Over Spark Connect this is `load` and `save`; SQL of the server (`CREATE TEMPORARY VIEW v USING delta
    OPTIONS (path '...')`) reads by Python workers, where Alluvium must be installed.

    Args:
        spark: The session.
        catalogs: Paimon warehouses by the names that they have in SQL: with `{"lake": "s3://warehouse"}` there are
            `SHOW TABLES IN lake.sales`, `lake.sales.orders`, ``lake.sales.`orders$snapshots` ``.

    Raises:
        InvalidRequest: The session has been stopped, or a catalog has no name (`"invalid-name"`).
        UnsupportedFeature: Catalogs of a session of Spark Connect (`"no-jvm"`).
    """
    classes = _classes(spark)
    if not is_enabled(spark):
        _ENABLED[:] = [*filter(_remains, _ENABLED), spark]
        if is_connect(spark):
            _register(spark)
        else:
            spark.conf.set(_MARK, "true")
            tell_of_unread(spark.conf.getAll)
    answer_names(spark)
    open_warehouses(spark, catalogs or {})
    if (classes[0], "load") not in _ORIGINALS:
        _wrap_all(*classes)


def _classes(spark: SparkSession) -> tuple[type, type]:
    if not is_connect(spark):
        ensure_native(spark)
        return DataFrameReader, DataFrameWriter
    # Loaded by name: it needs packages that a classic session does without.
    connect = importlib.import_module("pyspark.sql.connect.readwriter")
    return connect.DataFrameReader, connect.DataFrameWriter


def _register(spark: SparkSession) -> None:
    for name in FORMATS:
        try:
            register(spark, name)
        except InvalidRequest as error:
            # The server's own source keeps the name in SQL; readers and writers of this client are ours all the same.
            log.info("%s", error)


def disable(spark: SparkSession) -> None:
    """Undoes `enable`; a session that was not enabled is no error.

    A Connect server keeps the data sources that SQL may name until the session ends.
    """
    if not is_connect(spark) and _remains(spark):
        spark.conf.unset(_MARK)
        forget_names(spark)
    _ENABLED[:] = [s for s in _ENABLED if s is not spark and _remains(s)]
    if not _ENABLED:
        for (owner, name), original in _ORIGINALS.items():
            setattr(owner, name, original)
        _ORIGINALS.clear()


def is_enabled(spark: SparkSession) -> bool:
    """Whether `enable` holds for a session."""
    if is_connect(spark):
        return any(s is spark for s in _ENABLED)
    return spark.conf.get(_MARK, None) == "true"


def _remains(spark: SparkSession) -> bool:
    """Whether a session is enabled and still there: it may have been stopped, or its JVM has died."""
    if not is_connect(spark) and spark.sparkContext._jsc is None:
        return False
    try:
        return is_enabled(spark)
    except (Py4JError, ConnectionError):
        return False


def _wrap_all(reader: type, writer: type) -> None:
    for owner in (reader, writer):
        _wrap(owner, "format", lambda said, source: setattr(said, "format", source))
        _wrap(owner, "option", lambda said, key, value: said.options.__setitem__(key, value))
        _wrap(owner, "options", lambda said, **options: said.options.update(options))
    _wrap(reader, "schema", lambda said, schema: setattr(said, "schema", True))
    _wrap(writer, "mode", remember_mode)
    _wrap(writer, "partitionBy", remember_partitions)
    _wrap(writer, "clusterBy", remember_clusters)
    _wrap(writer, "bucketBy", lambda said, *buckets: setattr(said, "is_bucketed", True))
    _wrap(writer, "sortBy", lambda said, *columns: setattr(said, "is_sorted", True))
    _replace(reader, "load", _load)
    _replace(writer, "save", _save)
    _replace(writer, "saveAsTable", _save_as_table)
    if reader is not DataFrameReader:
        streams = importlib.import_module("pyspark.sql.connect.streaming.readwriter")
        connect_streams = importlib.import_module("alluvium.api.session.connect_streams")
        _replace(importlib.import_module("pyspark.sql.connect.session").SparkSession, "sql", _sql_of_server)
        _replace(streams.DataStreamReader, "load", _where_enabled(connect_streams.load_stream))
        _replace(streams.DataStreamReader, "table", _where_enabled(connect_streams.stream_table))
        _replace(streams.DataStreamWriter, "start", _where_enabled(connect_streams.start_stream))
        _replace(streams.DataStreamWriter, "toTable", _where_enabled(connect_streams.stream_to_table))
        _replace(streams.DataStreamWriter, "foreachBatch", _where_enabled(connect_streams.foreach_batch))
    else:
        _replace(writer, "insertInto", _insert_into)
        _replace(ClassicDataFrame, "writeTo", _write_to)
        _replace(reader, "table", _table)
        _replace(SparkSession, "table", _table)
        _replace(SparkSession, "sql", _sql)
        _replace(RuntimeConfig, "set", _set)
        _replace(Catalog, "cacheTable", _cache_table)
        _replace(Catalog, "tableExists", _table_exists)
        _replace(Catalog, "createTable", _create_table)
        _replace(Catalog, "listColumns", _list_columns)
        _replace(Catalog, "recoverPartitions", _recover_partitions)
        _replace(DataStreamReader, "load", _where_enabled(load_stream))
        _replace(DataStreamReader, "table", _where_enabled(stream_table))
        _replace(DataStreamWriter, "start", _where_enabled(start_stream))
        _replace(DataStreamWriter, "toTable", _where_enabled(stream_to_table))


def _wrap(owner: type, name: str, remember: Callable[..., object]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(self: object, *args: object, **kwargs: object) -> object:
        result = original(self, *args, **kwargs)
        remember(said_of(self), *args, **kwargs)
        return result

    _ORIGINALS[(owner, name)] = original
    setattr(owner, name, wrapper)


def _replace(owner: type, name: str, ours: Callable[..., object]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(self: object, *args: object, **kwargs: object) -> object:
        return ours(original, self, *args, **kwargs)

    _ORIGINALS[(owner, name)] = original
    setattr(owner, name, wrapper)


def _where_enabled(ours: Callable[..., object]) -> Callable[..., object]:
    """For classes of which each object has its session: PySpark's own method where that is not enabled."""

    def act(
        original: Callable[..., object], self: DataStreamReader | DataStreamWriter, *args: Any, **kwargs: Any
    ) -> object:
        spark = vars(self).get("_spark") or vars(self).get("_client") or vars(self)["_session"]
        return ours(original, self, *args, **kwargs) if is_enabled(spark) else original(self, *args, **kwargs)

    return act


def _sql(
    original: Callable[..., DataFrame],
    spark: SparkSession,
    sqlQuery: str,
    args: Mapping[str, object] | Sequence[object] | None = None,
    **kwargs: object,
) -> DataFrame:
    if not is_enabled(spark):
        return original(spark, sqlQuery, args, **kwargs)
    answer_names(spark)
    tell_of_statement(sqlQuery)
    with counterparts("sql"):
        return sql(original, spark, sqlQuery, args, kwargs)


def _set(original: Callable[..., None], self: RuntimeConfig, key: str, value: object) -> None:
    original(self, key, value)
    tell_of_unread([key])


def _sql_of_server(
    original: Callable[..., DataFrame],
    spark: SparkSession,
    sqlQuery: str,
    args: Mapping[str, object] | Sequence[object] | None = None,
    **kwargs: object,
) -> DataFrame:
    if not is_enabled(spark):
        return original(spark, sqlQuery, args, **kwargs)
    with counterparts("sql"):
        return sql_of_server(original, spark, sqlQuery, args, kwargs)


def _table(original: Callable[..., DataFrame], self: SparkSession | DataFrameReader, tableName: str) -> DataFrame:
    """`table` of a session, or of a reader with its options."""
    spark, options = (self, {}) if isinstance(self, SparkSession) else (_session(self), said_of(self).options)
    access: TableAccess | PaimonAccess | None = None
    if is_enabled(spark):
        # Without options Spark asks our catalog, which knows Paimon's tables, too.
        access = known_access(spark, tableName) or (known_paimon(spark, tableName) if options else None)
    if access is None:
        return original(self, tableName)
    with counterparts("table"):
        rows = read(spark, access.url, **{"follow": WHERE_POSSIBLE, **options})  # type: ignore[arg-type]
    return rows if access.entry is None else named_rows(rows, access.entry.parts)


def _table_exists(original: Callable[..., bool], self: Catalog, tableName: str, dbName: str | None = None) -> bool:
    name = tableName if dbName is None else quoted_name((dbName, tableName))
    spark = self._sparkSession
    access = known_access(spark, name) if is_enabled(spark) else None
    if access is not None and access.entry is not None:
        return True
    with counterparts("tableExists"):
        return original(self, tableName, dbName)


def _cache_table(original: Callable[..., None], self: Catalog, tableName: str, *args: object, **kwargs: object) -> None:
    original(self, tableName, *args, **kwargs)
    if is_enabled(self._sparkSession):
        note_table(self._sparkSession, tableName)


def _list_columns(
    original: Callable[..., list[Column]], self: Catalog, tableName: str, dbName: str | None = None
) -> list[Column]:
    name = tableName if dbName is None else quoted_name((dbName, tableName))
    spark = self._sparkSession
    listed = original(self, tableName, dbName)
    access = known_access(spark, name) if is_enabled(spark) else None
    return listed if access is None else told_by_log(access, listed)


def _recover_partitions(original: Callable[..., None], self: Catalog, tableName: str) -> None:
    spark = self._sparkSession
    if is_enabled(spark) and known_access(spark, tableName) is not None:
        spark.sql(f"ALTER TABLE {tableName} RECOVER PARTITIONS")  # refused, as the statement is
    else:
        original(self, tableName)


def _create_table(
    original: Callable[..., DataFrame],
    self: Catalog,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    schema: StructType | None = None,
    description: str | None = None,
    **options: str,
) -> DataFrame:
    spark = self._sparkSession
    kind = source or spark.conf.get("spark.sql.sources.default")
    if not is_enabled(spark) or str(kind).lower() != PROVIDER:
        return original(self, tableName, path, source, schema, description, **options)
    with counterparts("create"):
        return create_in_catalog(spark, tableName, path, schema, description, options)


def _format(owner: DataFrameReader | DataFrameWriter, name: str | None) -> str | None:
    """The format, if it is one of ours and the session is enabled; the session's default where nobody says one."""
    if not is_enabled(_session(owner)):
        return None
    source = name or said_of(owner).format or _session(owner).conf.get("spark.sql.sources.default")
    return source if str(source).lower() in FORMATS else None


def _session(owner: DataFrameReader | DataFrameWriter) -> SparkSession:
    # Connect's reader calls its session the client.
    found: SparkSession = getattr(owner, "_spark", None) or vars(owner)["_client"]
    return found


def _rows(writer: DataFrameWriter) -> DataFrame:
    if not is_connect(_session(writer)):
        return writer._df
    # Connect's writer has kept no more than the plan.
    connect = importlib.import_module("pyspark.sql.connect.dataframe")
    rows: DataFrame = connect.DataFrame(writer._df, _session(writer))
    return rows


def _load(
    original: Callable[..., object],
    self: DataFrameReader,
    path: str | list[str] | None = None,
    format: str | None = None,
    schema: object = None,
    **options: object,
) -> object:
    source = _format(self, format)
    if source is None:
        return original(self, path, format, schema, **options)
    said = said_of(self)
    merged = {**said.options, **options}
    with counterparts("load", source):
        if schema is not None or said.schema:
            raise InvalidRequest(
                "the schema of a table comes from its log", code="schema-given", hint="leave .schema(...) out"
            )
        spark = _session(self)
        url = table_path(spark, path, merged, "load")
        return read(spark, url, **{"follow": WHERE_POSSIBLE, **merged})  # type: ignore[arg-type]


def _save(
    original: Callable[..., object],
    self: DataFrameWriter,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | list[str] | None = None,
    **options: object,
) -> object:
    source = _format(self, format)
    if source is None:
        return original(self, path, format, mode, partitionBy, **options)
    said = said_of(self)
    merged = {**said.options, **options}
    with counterparts("save", source):
        ensure_unbucketed(said)
        write(
            _rows(self),
            table_path(_rows(self).sparkSession, path, merged, "save"),
            mode=mode or said.mode,
            format=source,
            partition_by=said.partition_by if partitionBy is None else partitionBy,
            **merged,  # type: ignore[arg-type]
        )
    return None


def _save_as_table(
    original: Callable[..., object],
    self: DataFrameWriter,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | list[str] | None = None,
    **options: object,
) -> object:
    said = said_of(self)
    partitions = said.partition_by if partitionBy is None else partitionBy
    names = (partitions,) if isinstance(partitions, str) else tuple(partitions)
    paimon = _paimon_name(self, name, format)
    if paimon is not None:
        ensure_unbucketed(said)
        source = format or said.format
        wanted = MadeOfRows(Mode.CREATE, names, {"provider": source} if source else {}, {**said.options, **options})
        save_as_paimon(self._df, paimon, mode or said.mode, wanted)
        return None
    if _format(self, format) is None and not _appends_to_ours(self, name, format, mode):
        _ensure_not_ours(self, name, str(mode or said.mode))
        return original(self, name, format, mode, partitionBy, **options)
    ensure_native(_session(self))
    with counterparts("saveAsTable"):
        ensure_unbucketed(said)
        save_as_table(self._df, name, mode or said.mode, names, {**said.options, **options})
    return None


def _paimon_name(writer: DataFrameWriter, name: str, format: str | None = None) -> PaimonName | None:
    """What a name means, if it is a Paimon table's, or is to be one's."""
    spark = _session(writer)
    found = paimon_name(spark, name) if is_enabled(spark) else None
    if found is not None or str(_format(writer, format)).lower() != PAIMON or is_connect(spark):
        return found
    return PaimonName(spark, name, None)


def _appends_to_ours(writer: DataFrameWriter, name: str, format: str | None, mode: str | None) -> bool:
    """Whether rows are appended to a table of ours by name: that needs no format."""
    said, spark = said_of(writer), _session(writer)
    if format or said.format or str(mode or said.mode).lower() != "append" or is_connect(spark):
        return False
    return is_enabled(spark) and known_access(spark, name) is not None


def _ensure_not_ours(writer: DataFrameWriter, name: str, mode: str) -> None:
    """Rows of another format are not appended to a table of ours; Spark would look for a class that reads it."""
    spark = _session(writer)
    if mode.lower() == "append" and not is_connect(spark) and is_enabled(spark) and known_access(spark, name):
        with counterparts("saveAsTable"):
            raise InvalidRequest(
                f"{name!r} is a Delta table",
                code="format-of-table",
                hint="leave the format out, or say format('delta')",
            )


def _insert_into(
    original: Callable[..., object], self: DataFrameWriter, tableName: str, overwrite: bool | None = None
) -> object:
    if not is_enabled(self._spark):
        return original(self, tableName, overwrite)
    said = said_of(self)
    overwrites = overwrite if overwrite is not None else str(said.mode).lower() == "overwrite"
    access = insertable_access(self._spark, tableName)
    if access is not None:
        with counterparts("insertInto"):
            ensure_inserts(said)
            insert_into(self._df, access, overwrites, said.options)
        return None
    named = paimon_name(self._spark, tableName)
    paimon = None if named is None else named.insertable()
    if paimon is None:
        return original(self, tableName, overwrite)
    ensure_inserts(said)
    insert_into_paimon(self._df, paimon, overwrites, said.options)
    return None


def _write_to(original: Callable[..., object], self: DataFrame, table: str) -> object:
    theirs = original(self, table)
    if not is_enabled(self.sparkSession):
        return theirs
    paimon = paimon_name(self.sparkSession, table)
    return TableWriter(self, table, theirs) if paimon is None else PaimonTableWriter(self, paimon, theirs)
