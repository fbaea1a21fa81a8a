"""The builder behind DeltaTable.create, createIfNotExists, replace and createOrReplace."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from alluvium.api.delta.delta_access import PROVIDER, TableAccess, path_access, path_in_name, table_access
from alluvium.api.delta.delta_columns import GENERATION, IDENTITY, DeltaColumnBuilder, IdentityGenerator, fields_of
from alluvium.api.delta.delta_errors import NotATable, TableExists, WrongType, WrongValue
from alluvium.api.delta.write_options import default_properties
from alluvium.commands.create import create_table
from alluvium.delta.description.create import NewTable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema import types as t
from alluvium.schema.types import Field, JsonValue, Struct
from alluvium.spark.sessions.catalog import default_location, ensure_nameable, register_table
from alluvium.spark.statements.conditions import expression_type
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Mode(enum.Enum):
    """What becomes of a table that exists, and how the history names it."""

    CREATE = "CREATE TABLE"
    CREATE_IF_NOT_EXISTS = "CREATE TABLE "
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"


class TableBuilder(Generic[T]):
    """Describes a table, and creates or replaces it with `execute()`, which gives it as a `T`."""

    def __init__(self, spark: SparkSession, mode: Mode, table: Callable[[SparkSession, TableAccess], T]) -> None:
        self._spark = spark
        self._mode = mode
        self._table = table
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._columns: list[Field] = []
        self._partitions: tuple[str, ...] = ()
        self._clusters: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:
        """The table's name, [database.]table, or delta.`/path`."""
        self._name = _text(identifier, "Identifier must be str.")
        return self

    def location(self, location: str) -> Self:
        """Where the table's files go."""
        self._location = _text(location, "Location must be str.")
        return self

    def comment(self, comment: str) -> Self:
        """A comment on the table."""
        self._comment = _text(comment, "Table comment must be str.")
        return self

    def addColumn(
        self,
        colName: str | Field | DeltaColumnBuilder,
        dataType: str | DataType | None = None,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """A column.

        Args:
            colName: Its name, or a column made by `DeltaTable.columnBuilder`.
            dataType: SQL text or a PySpark type.
            nullable: Whether values may be null.
            generatedAlwaysAs: An expression over other columns, or how an identity column counts.
            generatedByDefaultAs: How an identity column counts where rows bring no value.
            comment: A comment on the column.
        """
        if isinstance(colName, (Field, DeltaColumnBuilder)):
            self._columns.append(colName if isinstance(colName, Field) else colName.build())
            return self
        builder = DeltaColumnBuilder(_text(colName, "Column name must be str."))
        if type(dataType) is not str and not isinstance(dataType, DataType):
            raise _wrong_type("Column data type must be str or DataType.", dataType)
        if type(nullable) is not bool:
            raise _wrong_type("Column nullable must be bool.", nullable)
        builder.dataType(dataType).nullable(nullable)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise WrongValue(
                "generatedByDefaultAs and generatedAlwaysAs cannot both be set.", code="contradicting-options"
            )
        if isinstance(generatedAlwaysAs, IdentityGenerator):
            builder.generatedAlwaysAsIdentity(generatedAlwaysAs.start, generatedAlwaysAs.step)
        elif generatedAlwaysAs is not None:
            builder.generatedAlwaysAs(
                _text(generatedAlwaysAs, "Generated always as expression must be str or IdentityGenerator.")
            )
        if generatedByDefaultAs is not None:
            if not isinstance(generatedByDefaultAs, IdentityGenerator):
                raise _wrong_type("Generated by default expression must be IdentityGenerator.", generatedByDefaultAs)
            builder.generatedByDefaultAsIdentity(generatedByDefaultAs.start, generatedByDefaultAs.step)
        if comment is not None:
            builder.comment(_text(comment, "Column comment must be str."))
        self._columns.append(builder.build())
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> Self:
        """The columns of a schema."""
        self._columns.extend(fields_of(cols))
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        """The partition columns, in order."""
        self._partitions = _names(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        """The clustering columns, dotted when nested."""
        self._clusters = _names(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> Self:
        """A table property; the protocol is chosen as weak as the properties allow."""
        if type(key) is not str or type(value) is not str:
            raise _wrong_type("Key and value of property must be string.", (key, value))
        self._properties[key] = value
        return self

    def execute(self) -> T:
        """Creates or replaces the table.

        Raises:
            InvalidRequest: The table exists and must not, or columns and properties do not fit together.
            NotFound: The table to replace does not exist.
            UnsupportedFeature: A column or property needs what we do not write yet.
            CommitConflict: Another writer won.
        """
        access, is_registered = self._resolve()
        existing = access.newest()
        if existing is None and self._mode is Mode.REPLACE:
            raise NotATable("the table to replace cannot be found", code="not-a-table", url=access.url)
        if self._mode in (Mode.REPLACE, Mode.CREATE_OR_REPLACE) and not self._columns:
            raise InvalidRequest(
                "a table that takes the place of another needs columns", code="no-columns", hint="addColumn(name, type)"
            )
        if existing is not None and self._mode in (Mode.CREATE, Mode.CREATE_IF_NOT_EXISTS):
            self._ensure_left_alone(existing, is_registered)
        else:
            self._write(access, existing)
        if self._name is not None and access.entry is None and self._is_registrable():
            entry = register_table(self._spark, self._name, access.url, PROVIDER, self._makes_managed())
            access = TableAccess(self._spark, access.url, access.options, entry)
        return self._table(self._spark, access)

    def _is_registrable(self) -> bool:
        """Whether there is a name that the catalog can keep."""
        return self._name is not None and path_in_name(self._spark, self._name) is None

    def _makes_managed(self) -> bool:
        return self._location is None and self._is_registrable()

    def _resolve(self) -> tuple[TableAccess, bool]:
        """The table's place, and whether the catalog knows it."""
        if self._name is None:
            if self._location is None:
                raise WrongValue("either a table name or a location is needed", code="no-path")
            return path_access(self._spark, self._location), False
        known = table_access(self._spark, self._name)
        if known is not None:
            return known, known.name is not None
        if self._mode is Mode.REPLACE:
            raise NotATable(f"the table {self._name!r} to replace cannot be found", code="not-a-table")
        ensure_nameable(self._spark, self._name)
        location = self._location or default_location(self._spark, self._name)
        return path_access(self._spark, location), False

    def _ensure_left_alone(self, existing: Snapshot, is_registered: bool) -> None:
        if self._mode is Mode.CREATE_IF_NOT_EXISTS:
            return
        # A name may be given to a table that lies there already, if nothing else is said of it.
        names_it = not is_registered and self._is_registrable()
        if not names_it or (self._columns and Struct(tuple(self._columns)) != existing.config.schema):
            raise TableExists(
                f"the table {self._name!r} already exists" if self._name else "the table already exists",
                code="table-exists",
                url=existing.store.url,
                version=existing.version,
                hint="createIfNotExists leaves it, createOrReplace replaces it",
            )

    def _write(self, access: TableAccess, existing: Snapshot | None) -> None:
        schema = Struct(tuple(self._columns))
        self._ensure_generated(schema)
        store = access.store()
        if existing is None:
            _ensure_empty(store)
        properties = {**default_properties(self._spark), **self._properties}
        wanted = NewTable(schema, self._partitions, properties, self._comment, self._clusters)
        is_managed = self._makes_managed() if access.entry is None else access.entry.is_managed
        try:
            create_table(store, wanted, existing, lambda config: self._operation(config, is_managed, access.engine))
        except CommitConflict:
            if self._mode is not Mode.CREATE_IF_NOT_EXISTS:
                raise

    def _operation(self, config: TableConfig, is_managed: bool, engine: str) -> Operation:
        parameters: dict[str, JsonValue] = {
            "partitionBy": _json(config.partition_columns),
            "clusterBy": _json(self._clusters),
            "description": config.metadata.description,
            "isManaged": str(is_managed).lower(),
            "properties": _json(config.metadata.configuration),
        }
        return Operation(self._mode.value.strip(), parameters, {}, engine)

    def _ensure_generated(self, schema: Struct) -> None:
        """Generated columns give what they say, out of columns that are there; identity columns can count."""
        plain = Struct(tuple(f for f in schema.fields if GENERATION not in f.metadata))
        for f in schema.fields:
            if f"{IDENTITY}start" in f.metadata and f.type != t.LONG:
                raise InvalidRequest(
                    f"an identity column must be bigint, not {f.type}", code="invalid-identity", column=f.name
                )
            expression = f.metadata.get(GENERATION)
            if not isinstance(expression, str):
                continue
            found = expression_type(self._spark, plain, expression, f.name)
            if found != f.type:
                raise InvalidRequest(
                    f"the column is {f.type}, but what it is generated as ({expression}) is {found}",
                    code="invalid-expression",
                    column=f.name,
                    hint=f"cast({expression} as {f.type})",
                )


def _ensure_empty(store: Store) -> None:
    if next(iter(store.list_tree("")), None) is not None:
        raise InvalidRequest(
            "the location is not empty, and what lies there is not a Delta table",
            code="location-not-empty",
            url=store.url,
            hint="choose another location, or remove the files",
        )


def _names(cols: Sequence[str | list[str] | tuple[str, ...]], message: str) -> tuple[str, ...]:
    flat = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    return tuple(_text(name, message) for name in flat)


def _text(value: object, message: str) -> str:
    if type(value) is not str:
        raise _wrong_type(message, value)
    return value


def _wrong_type(message: str, value: object) -> WrongType:
    return WrongType(f"{message} Found {value!r} with type {type(value)}", code="wrong-type")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
