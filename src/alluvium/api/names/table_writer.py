"""`df.writeTo(name)` in an enabled session: the verbs of PySpark's DataFrameWriterV2 for tables of ours."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import PROVIDER, known_access
from alluvium.api.delta.frames.writer import write_parsed
from alluvium.api.doors import PAIMON
from alluvium.api.names.catalog_writer import create_of_rows, existing_access
from alluvium.api.names.warehouse_rows import of_no_warehouse
from alluvium.api.options import WRITE, WRITE_LATER, parse_options
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct
from alluvium.spark.statements.conditions import condition_text
from alluvium.spark.values.columns import Assignment


@raises_counterparts("writeTo")
class TableWriter:
    """Says how rows go into a table, then does it; what is no table of ours goes to PySpark's own writer."""

    def __init__(self, df: DataFrame, name: str, theirs: Any) -> None:
        self._df = df
        self._name = name
        self._theirs = theirs
        self._provider: str | None = None
        self._partitions: tuple[Column | str, ...] = ()
        self._clusters: tuple[str, ...] = ()
        self._options: dict[str, object] = {}
        self._properties: dict[str, str] = {}

    def using(self, provider: str) -> TableWriter:
        """The format of a table to create."""
        self._provider = provider
        self._theirs = self._theirs.using(provider)
        return self

    def option(self, key: str, value: object) -> TableWriter:
        """An option of the writer."""
        self._options[key] = value
        self._theirs = self._theirs.option(key, value)
        return self

    def options(self, **options: object) -> TableWriter:
        """Options of the writer."""
        self._options.update(options)
        self._theirs = self._theirs.options(**options)
        return self

    def tableProperty(self, property: str, value: str) -> TableWriter:
        """A property of a table to create."""
        self._properties[property] = value
        self._theirs = self._theirs.tableProperty(property, value)
        return self

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> TableWriter:
        """The partition columns of a table to create."""
        self._partitions = (col, *cols)
        self._theirs = self._theirs.partitionedBy(col, *cols)
        return self

    def clusterBy(self, col: str, *cols: str) -> TableWriter:
        """The clustering columns of a table to create."""
        self._clusters = (col, *cols)
        self._theirs = self._theirs.clusterBy(col, *cols)
        return self

    def create(self) -> None:
        """A new table."""
        if not self._is_ours(creates=True):
            return self._theirs.create()  # type: ignore[no-any-return]
        self._create(Mode.CREATE)
        return None

    def replace(self) -> None:
        """Another table, with these rows, in the place of one."""
        if not self._is_ours(creates=True):
            return self._theirs.replace()  # type: ignore[no-any-return]
        self._create(Mode.REPLACE)
        return None

    def createOrReplace(self) -> None:
        """A new table, in the place of one if it exists."""
        if not self._is_ours(creates=True):
            return self._theirs.createOrReplace()  # type: ignore[no-any-return]
        self._create(Mode.CREATE_OR_REPLACE)
        return None

    def append(self) -> None:
        """Rows to those that are there, columns by name."""
        if not self._is_ours():
            return self._theirs.append()  # type: ignore[no-any-return]
        self._write("Append", {})
        return None

    def overwrite(self, condition: Column) -> None:
        """Rows in the place of those for which a condition over the table's columns is true."""
        if not self._is_ours():
            return self._theirs.overwrite(condition)  # type: ignore[no-any-return]
        text = condition_text(self._df.sparkSession, self._schema(), condition)
        self._write("Overwrite", {} if text is None else {"replaceWhere": text})
        return None

    def overwritePartitions(self) -> None:
        """Rows in the place of the partitions that they are in."""
        if not self._is_ours():
            return self._theirs.overwritePartitions()  # type: ignore[no-any-return]
        self._write("Overwrite", {"partitionOverwriteMode": "dynamic"})
        return None

    def _create(self, mode: Mode) -> None:
        wanted = Wanted(
            mode,
            self._name,
            partition_by=self._partition_names(),
            cluster_by=self._clusters,
            properties=self._properties,
        )
        create_of_rows(self._df, wanted, parse_options(self._options, WRITE, WRITE_LATER))

    def _schema(self) -> Struct:
        """The columns of the table that is there."""
        return existing_access(self._df, self._name).snapshot().config.schema

    def _write(self, mode: str, more: dict[str, object]) -> None:
        access = existing_access(self._df, self._name)
        parsed = parse_options({**self._options, **more}, WRITE, WRITE_LATER)
        write_parsed(
            self._df, access.store(), mode, (), parsed, assignment=Assignment.CAST, open_elsewhere=access.store
        )

    def _is_ours(self, creates: bool = False) -> bool:
        spark = self._df.sparkSession
        if creates and self._provider is not None:
            if self._provider.lower() == PAIMON.name:
                raise of_no_warehouse(self._name)
            return self._provider.lower() == PROVIDER
        if known_access(spark, self._name) is not None:
            return True
        return creates and str(spark.conf.get("spark.sql.sources.default")).lower() == PROVIDER

    def _partition_names(self) -> tuple[str, ...]:
        names = []
        for column in self._partitions:
            name = self._df.select(sf.col(column) if isinstance(column, str) else column).columns[0]
            if name not in self._df.columns:
                raise InvalidRequest(
                    f"a table is partitioned by columns, not by {name}", code="invalid-partition-column", column=name
                )
            names.append(name)
        return tuple(names)
