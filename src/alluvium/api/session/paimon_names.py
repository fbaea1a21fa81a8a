"""Writing to Paimon tables by name: `saveAsTable`, `insertInto` and `writeTo`, as the statements of SQL do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.creation.request import Mode
from alluvium.api.engine import session_opener
from alluvium.api.names.paimon_access import PROVIDER, PaimonAccess, known_paimon
from alluvium.api.names.table_writer import TableWriter
from alluvium.api.names.warehouse_rows import MadeOfRows, make_of_rows, of_no_warehouse
from alluvium.api.names.warehouses import NamedTable, find_named, has_named, url_of
from alluvium.api.paimon.merged_schema import parse_merging
from alluvium.api.sql.rows.insert import is_dynamic
from alluvium.api.sql.rows.insert_columns import InsertColumns, named_rows
from alluvium.api.writer import parse_mode
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.schema_log import list_schema_ids
from alluvium.plan.changes import Committed
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.catalog import parse_name
from alluvium.spark.sessions.session import is_connect, session_catalog


@dataclass(frozen=True, slots=True)
class PaimonName:
    """A name that means a Paimon table, be it there or not.

    Attributes:
        spark: The session.
        text: The name.
        named: The table of a warehouse that it means; None: it is a path, or an entry of the session's own catalog.
    """

    spark: SparkSession
    text: str
    named: NamedTable | None

    def table(self) -> PaimonAccess | None:
        """The table, where there is one.

        Raises:
            InvalidRequest: The name is that of a system table (`"invalid-name"`).
        """
        if self.named is None:
            access = known_paimon(self.spark, self.text)
            is_there = access is not None and list_schema_ids(session_opener(self.spark, None)(access.url))
            return access if is_there else None
        if self.named.system is not None:
            raise InvalidRequest(
                f"{self.named.text} shows what a table has, and no rows go into it",
                code="invalid-name",
                hint=f"leave ${self.named.system} out",
            )
        if not has_named(self.spark, self.named):
            return None
        return PaimonAccess(self.spark, url_of(self.spark, self.named), branch=self.named.branch)

    def insertable(self) -> PaimonAccess | None:
        """The table that rows go into; None where there is none, or a temporary view hides it: Spark says so."""
        parts = java_of(self.spark).seq(list(parse_name(self.spark, self.text)))
        return None if session_catalog(self.spark).isTempView(parts) else self.table()


def paimon_name(spark: SparkSession, text: str) -> PaimonName | None:
    """What a name means, if it is a Paimon table's; None where it is none, or Spark is to say what is wrong."""
    if is_connect(spark):
        return None
    try:
        named = find_named(spark, parse_name(spark, text))
    except (InvalidRequest, UnsupportedFeature):
        return None
    return None if named is None and known_paimon(spark, text) is None else PaimonName(spark, text, named)


def save_as_paimon(df: DataFrame, name: PaimonName, mode: str, wanted: MadeOfRows) -> Committed:
    """`saveAsTable`: rows into a table, columns by name; one that is not there is made.

    Args:
        df: The rows.
        name: The table's.
        mode: A save mode.
        wanted: The table to make; its partition keys must be those of one that is there.

    Raises:
        InvalidRequest: The rows do not fit, or the table is there already.
        UnsupportedFeature: The table would be replaced by another one, or would lie in no warehouse.
    """
    save_mode = parse_mode(mode)
    _ensure_format(name, wanted.properties.get("provider"))
    access = name.table()
    if access is not None and save_mode == "Ignore":
        return Committed.nothing(access.target().version)
    if access is not None and save_mode == "Append":
        return access.insert(df, False, wanted.options, wanted.partitions)
    made = Mode.CREATE_OR_REPLACE if save_mode == "Overwrite" else Mode.CREATE
    return _made(df, name, MadeOfRows(made, wanted.partitions, wanted.properties, wanted.options))


def insert_into_paimon(
    df: DataFrame, access: PaimonAccess, overwrites: bool, options: Mapping[str, object]
) -> Committed:
    """`insertInto`: rows into a table that is there, columns by their place.

    Raises:
        InvalidRequest: Another number of columns, or types that cannot be cast.
    """
    spark = df.sparkSession
    columns = InsertColumns((), False, {}, parse_merging(options, spark).is_asked)
    rows = named_rows(df, columns, access.schema(), access.url)
    if overwrites and is_dynamic(spark, options, access.url):
        options = {**options, "partitionOverwriteMode": "dynamic"}
    return access.insert(rows, overwrites, options)


class PaimonTableWriter(TableWriter):
    """`writeTo` for a Paimon table's name; what Spark says of names that are not there is left to it."""

    def __init__(self, df: DataFrame, name: PaimonName, theirs: Any) -> None:
        super().__init__(df, name.text, theirs)
        self._paimon = name

    def _is_ours(self, creates: bool = False) -> bool:
        # A table to make is ours or refused; into one that is not there, or is hidden by a view, Spark writes nothing.
        return creates or self._paimon.insertable() is not None

    def _create(self, mode: Mode) -> None:
        _ensure_format(self._paimon, self._provider)
        clusters = {"clusterBy": ", ".join(self._clusters)} if self._clusters else {}
        options = {**self._options, **clusters}
        _made(self._df, self._paimon, MadeOfRows(mode, self._partition_names(), self._properties, options))

    def _schema(self) -> Struct:
        return self._access().schema()

    def _write(self, mode: str, more: dict[str, object]) -> None:
        self._access().insert(self._df, mode == "Overwrite", {**self._options, **more})

    def _access(self) -> PaimonAccess:
        access = self._paimon.table()
        if access is None:
            raise NotFound(
                f"there is no table {self._paimon.text}", code="not-a-table", hint="it was dropped meanwhile"
            )
        return access


def _made(df: DataFrame, name: PaimonName, wanted: MadeOfRows) -> Committed:
    if "clusterBy" in wanted.options:
        raise UnsupportedFeature(
            "a Paimon table is not clustered by columns as it is made",
            code="unsupported-partitioning",
            features=("CLUSTER BY",),
            hint="compact(order_strategy=..., order_by=...) sorts its rows",
        )
    if name.named is None:
        raise of_no_warehouse(name.text)
    return make_of_rows(df, name.named, wanted)


def _ensure_format(name: PaimonName, provider: str | None) -> None:
    if provider is not None and provider.lower() != PROVIDER:
        raise InvalidRequest(
            f"{name.text!r} is the name of a Paimon table, not of the format {provider}",
            code="format-of-table",
            hint="leave the format out, or say format('paimon')",
        )
