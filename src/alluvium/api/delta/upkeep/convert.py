"""CONVERT TO DELTA of DeltaTable and of SQL: names, the settings of the session, the entry of the catalog."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, path_access
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.delta.delta_errors import UnknownType
from alluvium.api.delta.frames.session_options import default_properties
from alluvium.api.delta.upkeep.other_formats import other_source
from alluvium.api.doors import PAIMON
from alluvium.delta.log.segment import list_log
from alluvium.delta.upkeep.convert.conversion import ConvertRequest, ensure_same_partitions
from alluvium.delta.upkeep.convert.convert import convert
from alluvium.delta.upkeep.convert.found import found_table
from alluvium.delta.upkeep.convert.iceberg import NAME as ICEBERG
from alluvium.delta.upkeep.convert.iceberg import split_metadata
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, NotFound, WrongType
from alluvium.plan.changes import Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.scan import ScanPlan
from alluvium.schema.ddl import parse_fields
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import Field
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.catalog import CatalogTable, find_table, has_database, is_path, parse_name, quoted_name
from alluvium.spark.sessions.entry_changes import EntryDescription, describe_entry, set_provider
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.sessions.settings import read_flag

TableT = TypeVar("TableT", bound="ConvertVerbs")
_PARQUET = "parquet"
#: Whether the log of a streaming query that wrote a folder says which of its files count.
_BY_SINK_LOG = "spark.databricks.delta.convert.useMetadataLog"
#: What becomes a table where it lies.
_CONVERTIBLE = (_PARQUET, PAIMON.name, ICEBERG)
#: Formats of which SQL names a folder: ``parquet.`/x` ``.
_OF_FOLDERS = frozenset((_PARQUET, PROVIDER, "iceberg", "orc", "csv", "json", "text", "avro", "paimon"))


@dataclass(frozen=True, slots=True)
class ConvertSaid:
    """What a caller says.

    Attributes:
        partitions: The partition columns; None where nothing is said of them.
        statistics: Whether there are to be any.
        dry_run: Only tell what would be.
        retry: How often to try.
    """

    partitions: tuple[Field, ...] | None = None
    statistics: bool = True
    dry_run: bool = False
    retry: RetryPolicy = DEFAULT_RETRY


@dataclass(frozen=True, slots=True)
class _Source:
    """What lies in a folder.

    Attributes:
        format: What the caller calls it.
        metadata: Of an Iceberg table the file that says its newest state.
    """

    format: str
    metadata: str | None = None

    def found(self, access: TableAccess) -> tuple[str, ScanPlan] | None:
        """The format, and the plan by which it is read; None: files alone."""
        if self.format == _PARQUET:
            return None
        found = other_source(access.store(), time_zone(access.spark), access.store, self.metadata)
        if found is None or found[0] != self.format:
            there = f"there is no {self.format.capitalize()} table"
            raise NotFound(there, code="not-a-table", url=access.url, hint=_hint(access.url))
        return found


_PLAIN = _Source(_PARQUET)


@raises_counterparts()
class ConvertVerbs:
    """How what is no table yet becomes one."""

    def __init__(self, spark: SparkSession, access: TableAccess) -> None:
        self._spark = spark
        self._access = access

    @classmethod
    def convertToDelta(
        cls: type[TableT],
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        *,
        statistics: bool = True,
    ) -> TableT | Preview:
        """Makes a table of Parquet files, which stay where and as they are: their footers are read, no rows.

        Args:
            sparkSession: A classic session.
            identifier: ``"parquet.`/path`"``, ``"paimon.`/path`"`` (an append table), ``"iceberg.`/path`"`` (or the
                path of a file of its metadata; with `pip install alluvium[iceberg]`), or the name of a Parquet table
                in the catalog, which then is a Delta table. What is one already stays what it is.
            partitionSchema: The partition columns in the order of the folders; None: as the folders, or the catalog,
                name them, with types inferred as Spark infers them.
            dry_run: Only tell what the table would be.
            retry: How often a commit is tried.
            statistics: Whether statistics are taken from the footers.

        Raises:
            NotFound: There is no such table, or no file.
            InvalidRequest: Files or folders do not fit; nothing is written then.
            UnsupportedFeature: The files have a type that no table has.
        """
        said = ConvertSaid(_fields(partitionSchema), statistics, dry_run, retry)
        done = convert_in_session(sparkSession, parse_name(sparkSession, identifier), said)
        return done if isinstance(done, Preview) else cls(sparkSession, done)


def convert_in_session(spark: SparkSession, parts: tuple[str, ...], said: ConvertSaid) -> TableAccess | Preview:
    """CONVERT by a session's settings.

    Args:
        spark: A classic session.
        parts: Of the name.
        said: What the caller says.
    """
    if (folder := _folder(spark, parts)) is not None:
        root, metadata = split_metadata(folder)
        source = _Source(parts[0].lower(), metadata)
        return _convert(path_access(spark, root), said, said.partitions, None, None, source)
    entry = _entry(spark, parts)
    access = TableAccess(spark, entry.location, entry=entry)
    if entry.provider == PROVIDER:
        return access
    described = describe_entry(spark, entry.parts)
    _ensure_within(entry, described)
    partitions = parse_schema(described.partition_schema).fields
    ensure_same_partitions(said.partitions, partitions, "the catalog")
    shown = ".".join(f"`{part}`" for part in entry.parts)
    done = _convert(access, said, partitions, described, shown)
    if isinstance(done, Preview):
        return done
    set_provider(spark, entry.parts, PROVIDER)
    return TableAccess(spark, entry.location, entry=_entry(spark, parts))


def found_in_session(spark: SparkSession, parts: tuple[str, ...]) -> tuple[TableAccess, Snapshot, str] | None:
    """What CONVERT would make of a name, for CLONE: where it lies, the table, and its name; None: it is no such name.

    Args:
        spark: A classic session.
        parts: Of the name.
    """
    kind = parts[0].lower()
    is_folder = len(parts) == 2 and kind in _CONVERTIBLE
    if is_folder and (is_path(parts[1]) or not has_database(spark, parts[0])):
        root, metadata = split_metadata(parts[1])
        access = path_access(spark, root)
        return access, _found(access, None, None, _Source(kind, metadata)), f"{kind}.`{access.store().uri('')}`"
    entry = None if _is_temporary_view(spark, parts) else find_table(spark, quoted_name(parts))
    if entry is None or entry.provider != _PARQUET:
        return None
    described = describe_entry(spark, entry.parts)
    _ensure_within(entry, described)
    access = TableAccess(spark, entry.location, entry=entry)
    return access, _found(access, parse_schema(described.partition_schema).fields, described), entry.name


def _found(
    access: TableAccess,
    partitions: tuple[Field, ...] | None,
    described: EntryDescription | None,
    source: _Source = _PLAIN,
) -> Snapshot:
    spark, store = access.spark, access.store()
    if list_log(store).latest >= 0:
        raise InvalidRequest(
            "the folder holds a Delta table, whose files are not all of its rows",
            code="unsupported-clone-source",
            url=access.url,
            hint=f"clone {PROVIDER}.`{access.url}`",
        )
    asked = {**default_properties(spark), **(described.properties if described is not None else {})}
    by_log = read_flag(spark, _BY_SINK_LOG, True)
    request = ConvertRequest(partitions, True, asked, time_zone(spark), access.engine, by_sink_log=by_log)
    if described is not None:
        request = replace(request, folders=described.partitions, columns=parse_schema(described.schema))
    found = source.found(access)
    return found_table(store, request, None if found is None else found[1])


def _ensure_within(entry: CatalogTable, described: EntryDescription) -> None:
    if described.foreign_partition is not None:
        raise InvalidRequest(
            f"a partition of {entry.name!r} does not lie in the table's folder of its values: "
            f"{described.foreign_partition}",
            code="not-convertible",
            url=entry.location,
            hint="move it into the folder, or write the rows into a table of their own",
        )
    if described.partitions == ():
        raise NotFound(
            f"the catalog knows no partition of {entry.name!r}",
            code="no-partitions",
            url=entry.location,
            hint=f"MSCK REPAIR TABLE {entry.name}, where there are some",
        )


def _convert(
    access: TableAccess,
    said: ConvertSaid,
    partitions: tuple[Field, ...] | None,
    described: EntryDescription | None,
    name: str | None,
    source: _Source = _PLAIN,
) -> TableAccess | Preview:
    store = access.store()
    if list_log(store).latest >= 0:
        return access
    spark = access.spark
    # As the reference: the history has what was said, not what the catalog knows.
    told = None if name is None else tuple(f.name for f in said.partitions or ())
    request = ConvertRequest(
        partitions,
        said.statistics,
        {**default_properties(spark), **(described.properties if described is not None else {})},
        time_zone(spark),
        access.engine,
        name,
        told,
        described.partitions if described is not None else None,
        parse_schema(described.schema) if described is not None else None,
        read_flag(spark, _BY_SINK_LOG, True),
    )
    done = convert(store, request, said.dry_run, said.retry, source.found(access))
    return done if isinstance(done, Preview) else access


def _folder(spark: SparkSession, parts: tuple[str, ...]) -> str | None:
    """The folder in ``parquet.`/x` ``; None: the name is one of the catalog."""
    kind = parts[0].lower()
    if len(parts) != 2 or kind not in _OF_FOLDERS or not (is_path(parts[1]) or not has_database(spark, parts[0])):
        return None
    if kind in _CONVERTIBLE:
        return parts[1]
    if kind == PROVIDER:
        if path_access(spark, parts[1]).newest() is not None:
            return parts[1]
        raise NotFound(f"there is no Delta table at {parts[1]!r}", code="not-a-table", hint=_hint(parts[1]))
    raise InvalidRequest(
        f"only Parquet, Paimon and Iceberg can be converted, not a folder of {kind}",
        code="not-convertible",
        path=parts[1],
        hint=_hint(parts[1]),
    )


def _hint(path: str) -> str:
    return f"CONVERT TO DELTA parquet.`{path}`"


def _entry(spark: SparkSession, parts: tuple[str, ...]) -> CatalogTable:
    """The Parquet or Delta table of a name."""
    shown = ".".join(parts)
    name = quoted_name(parts)
    is_view = _is_temporary_view(spark, parts)
    found = None if is_view else find_table(spark, name)
    if is_view or (found is not None and not found.provider):
        raise InvalidRequest(f"{shown!r} is a view, which has no files", code="not-convertible", hint="name a table")
    if found is None:
        raise NotFound(
            f"the table {shown!r} cannot be found", code="not-a-table", hint="a folder is named parquet.`/path`"
        )
    if found.provider not in (_PARQUET, PROVIDER):
        raise InvalidRequest(
            f"only Parquet tables can be converted, {shown!r} is one of {found.provider}",
            code="not-convertible",
            url=found.location,
            hint=f"CREATE TABLE ... USING delta AS SELECT * FROM {shown}",
        )
    return found


def _is_temporary_view(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(java_of(spark).seq(list(parts))))


def _fields(schema: str | StructType | None) -> tuple[Field, ...] | None:
    if schema is None:
        return None
    if isinstance(schema, StructType):
        return fields_of(schema)
    if not isinstance(schema, str):
        raise WrongType(f"partitionSchema needs to be text or a StructType but got {schema!r}")
    try:
        return parse_fields(schema)
    except InvalidRequest as error:
        raise UnknownType(error.message, code=error.code, hint=error.hint) from None
