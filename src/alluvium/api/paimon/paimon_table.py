"""`PaimonTable`: what is done with a Paimon table as a whole."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.api.paimon.life.retention import TableRetention
from alluvium.api.paimon.row_verbs import RowVerbs
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.schema_log import (
    MAIN_BRANCH,
    load_schema,
    publish_first_schema,
    publish_next_schema,
)
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots
from alluvium.paimon.schema.arrow import fields_from_arrow
from alluvium.paimon.schema.changes import SchemaChange
from alluvium.paimon.schema.logical import fields_from_logical
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import BUCKET, POSTPONE_BUCKET
from alluvium.paimon.view.system.system_tables import read_system_table
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Columns: PySpark's, Arrow's, or Paimon's.
SchemaLike: TypeAlias = "StructType | pa.Schema | Iterable[DataField]"


class PaimonTable(TableRetention, RowVerbs):
    """A Paimon table at a URL. Its schema is read anew at each call: others may alter it.

    Example:
        >>> table = PaimonTable.create("/data/orders", arrow_schema, primary_keys=["id"], options={"bucket": "4"})
        >>> table.alter([SchemaChange.add_column("note", "STRING")])
    """

    def __init__(
        self, store: Store, storage_options: Mapping[str, str] | None = None, branch: str = MAIN_BRANCH
    ) -> None:
        self._store = store
        self._storage_options = storage_options
        self._branch = branch

    @classmethod
    def create(
        cls,
        url: str,
        schema: SchemaLike,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> PaimonTable:
        """Creates a table: `schema-0` is published where no table is.

        Args:
            url: Where; the directory need not exist.
            schema: A PySpark `StructType`, a `pyarrow.Schema`, or Paimon's fields; ids are numbered anew.
            partition_keys: Columns that name a row's directory.
            primary_keys: Columns that tell rows apart, which become NOT NULL; none for an append table.
            options: Options of the table, under Paimon's names.
            comment: Comment of the table.
            storage_options: Credentials and settings of the object store.

        Raises:
            InvalidRequest: `"table-exists"`, or a rule of tables is broken; nothing was written.
            UnsupportedFeature: `"unsupported-type"`: a column of a type that Paimon does not have.
        """
        fields = number_fields(_fields_of(schema))
        created = TableSchema.create(fields, _names(partition_keys), _names(primary_keys), options, comment)
        store = open_store(url, storage_options)
        publish_first_schema(store, created)
        return cls(store, storage_options)

    @classmethod
    def forPath(
        cls, url: str, storage_options: Mapping[str, str] | None = None, branch: str | None = None
    ) -> PaimonTable:
        """The table at a URL.

        Args:
            url: Where.
            storage_options: Credentials and settings of the object store.
            branch: One of its branches; None: the main one.

        Raises:
            NotFound: `"not-a-table"`.
            CorruptTable: `"invalid-schema"`: its newest schema is damaged.
        """
        table = cls(open_store(url, storage_options), storage_options, branch or MAIN_BRANCH)
        table.schema  # noqa: B018 - a table that exists has a schema that can be read
        return table

    @property
    def url(self) -> str:
        """Where the table is, in canonical form."""
        return self._store.url

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        return self._own_schema()

    def schema_at(self, id: int) -> TableSchema:
        """A schema by its id.

        Raises:
            NotFound: `"missing-schema"`: the message says which there are.
        """
        return load_schema(self._store, id, self._branch)

    def alter(self, changes: Sequence[SchemaChange], retry: RetryPolicy = DEFAULT_RETRY) -> TableSchema:
        """Publishes the next schema: all changes in order, or none.

        Of two alterations at once one wins; the other is carried out on the winner's schema, or refused by it.

        Args:
            changes: What changes.
            retry: How often to try when others alter the table, too.

        Returns:
            The schema that was published.

        Raises:
            InvalidRequest: A change is refused; `.code` says which rule, `.column` where; nothing was written.
            CommitConflict: `"attempts-exhausted"`.
        """
        if isinstance(changes, SchemaChange):
            raise InvalidRequest("alter takes a list of changes", code="invalid-schema-change", hint="[change]")

        def altered(newest: TableSchema) -> TableSchema:
            following = newest.apply(changes, bool(list_snapshots(self._store, self._branch)))
            self._ensure_none_waits(newest, following)
            return following

        return publish_next_schema(self._store, altered, self._branch, retry)

    def _ensure_none_waits(self, before: TableSchema, following: TableSchema) -> None:
        """Rows that wait to be divided belong to no bucket: who gives the table buckets would never see them again."""
        if BUCKET.get(before.options) != POSTPONE_BUCKET or BUCKET.get(following.options) == POSTPONE_BUCKET:
            return
        waiting = pc.equal(load_snapshot(self._store, At(), self._branch).entries["bucket"], POSTPONE_BUCKET)
        if pc.any(waiting, min_count=0).as_py():
            raise InvalidRequest(
                "rows wait to be divided into buckets (bucket = -2)",
                code="bucket-change",
                url=self._store.url,
                hint="compact() first, which divides them",
            )

    def snapshots(self) -> pa.Table:
        """The snapshots there are, oldest first: the system table `snapshots`."""
        return read_system_table(load_snapshot(self._store, At(), self._branch), "snapshots")

    def tags(self) -> pa.Table:
        """The tags there are: the system table `tags`."""
        return read_system_table(load_snapshot(self._store, At(), self._branch), "tags")

    def branches(self) -> pa.Table:
        """The branches beside the main one: the system table `branches`."""
        return read_system_table(load_snapshot(self._store, At(), self._branch), "branches")

    def __repr__(self) -> str:
        return f"PaimonTable({self.url!r})"


def _names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidRequest("keys are a list of names", code="invalid-key", hint=f"[{names!r}]")
    return tuple(names)


def _fields_of(schema: SchemaLike) -> tuple[DataField, ...]:
    if isinstance(schema, pa.Schema):
        return fields_from_arrow(schema)
    if type(schema).__module__.startswith("pyspark."):
        # Loaded by name: tables are made where pyspark is not installed.
        return fields_from_logical(importlib.import_module("alluvium.spark.naming.types").from_spark_declared(schema))
    fields = tuple(schema) if isinstance(schema, Iterable) else (schema,)
    if not all(isinstance(f, DataField) for f in fields):
        raise InvalidRequest(
            f"a schema is a StructType, a pyarrow.Schema or a list of DataField, not {type(schema).__name__}",
            code="schema-given",
        )
    return fields
