"""The newest state of an Iceberg table as a plan by which it could be read, by way of pyiceberg.

Iceberg finds columns in files by number, a Delta table that maps none of its columns by name. So a table is taken whose
columns have been the same under the same names since it was made, but for those that were added or dropped.
Specification: https://iceberg.apache.org/spec/, "Schema Evolution", "Partitioning".
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as i
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.scan import SCAN_FILES, FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Field, Struct
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import relative_to, resolve, split_url
from alluvium.storage.store import Store

_HINT = "write its rows into a Delta table instead"
_TYPES: dict[type[i.IcebergType], DataType] = {
    i.BooleanType: t.BOOLEAN,
    i.IntegerType: t.INTEGER,
    i.LongType: t.LONG,
    i.FloatType: t.FLOAT,
    i.DoubleType: t.DOUBLE,
    i.StringType: t.STRING,
    i.BinaryType: t.BINARY,
    i.FixedType: t.BINARY,
    i.DateType: t.DATE,
    i.TimestampType: t.TIMESTAMP_NTZ,
    i.TimestamptzType: t.TIMESTAMP,
}


def plan_of(store: Store, path: str) -> ScanPlan:
    """The state that a file of metadata says; errors as of `iceberg.iceberg_plan`."""
    files = _Files(store)
    location = f"{store.url.rstrip('/')}/{path}"
    try:
        metadata = FromInputFile.table_metadata(files.new_input(location))
        table = Table((path,), metadata, location, files, NoopCatalog(path))
        schema = _described(table, store.url)
        tasks = list(table.scan().plan_files()) if table.current_snapshot() else []
        _ensure_files_fit(store, table, tasks)
    except (ValueError, TypeError, KeyError, ValidationError, EOFError, OSError) as error:
        raise CorruptTable(
            f"pyiceberg cannot read the Iceberg table's state: {error}",
            code="damaged-iceberg",
            url=store.url,
            path=path,
        ) from error
    if not tasks:
        return ScanPlan(store.url, (), schema)
    partitions = _partition_columns(table, {task.file.spec_id for task in tasks}, store.url)
    return _plan(store, table, schema, partitions, tasks)


def _described(table: Table, url: str) -> Struct:
    """The columns, all of which are in the files under their own names."""
    current = table.schema()
    problem = next(_changes(current, table.schemas().values()), None)
    if problem is not None:
        _refuse(url, problem)
    return Struct(tuple(_field(f, url) for f in current.fields))


def _changes(current: Schema, schemas: Any) -> Iterator[str]:
    """What a reader that goes by names would read wrongly in files of older schemas."""
    now = _leaves(current)
    by_name = {name: number for number, (name, _) in now.items()}
    for old in schemas:
        for number, (name, kind) in _leaves(old).items():
            if number in now and now[number] != (name, kind):
                yield f"column {now[number][0]!r} was {name!r} of type {kind} once"
            elif number not in now and name in by_name:
                yield f"column {name!r} is another one in older files, which was dropped"
    for number in now:
        if (default := current.find_field(number).initial_default) is not None:
            yield f"column {now[number][0]!r} is {default!r} in files that were written before it was added"


def _ensure_files_fit(store: Store, table: Table, tasks: list[Any]) -> None:
    """Asks the files what their columns are called, where the table does not say all that they ever were.

    Whoever expires snapshots may remove schemas that no snapshot names, and files that were imported without numbers
    have any names that the table's mapping says.
    """
    known = {schema.schema_id for schema in table.schemas().values()}
    mapping = table.name_mapping()
    if mapping is None and known.issuperset(range(max(known) + 1)):
        return

    def problem_of(task: Any) -> str | None:
        if task.file.file_format is not FileFormat.PARQUET:
            return None
        with store.open_input(_below(store.url, task.file.file_path)) as data:
            stored = pyarrow_to_schema(pq.read_schema(data), mapping)
        return next(_changes(table.schema(), (stored,)), None)

    for task, problem in zip(tasks, map_parallel(problem_of, tasks), strict=True):
        if problem is not None:
            _refuse(store.url, problem, task.file.file_path)


def _leaves(schema: Schema) -> dict[int, tuple[str, str]]:
    """Of each field its name, dotted, and its type; what holds fields has no type of its own."""
    found = {}
    for name in schema.column_names:
        f = schema.find_field(name)
        kind = f.field_type
        found[f.field_id] = (name.lower(), str(kind) if kind.is_primitive else type(kind).__name__)
    return found


def _field(f: i.NestedField, url: str) -> Field:
    return Field(f.name, _type(f.field_type, f.name), metadata={"comment": f.doc} if f.doc else {})


def _type(kind: i.IcebergType, column: str) -> DataType:
    if isinstance(kind, i.StructType):
        return Struct(tuple(_field(f, column) for f in kind.fields))
    if isinstance(kind, i.ListType):
        return t.Array(_type(kind.element_type, column), True)
    if isinstance(kind, i.MapType):
        return t.Map(_type(kind.key_type, column), _type(kind.value_type, column), True)
    if isinstance(kind, i.DecimalType):
        return t.Decimal(kind.precision, kind.scale)
    if (found := _TYPES.get(type(kind))) is not None:
        return found
    raise UnsupportedFeature(
        f"no Delta table has columns of type {kind}",
        code="unsupported-type",
        features=(str(kind),),
        column=column,
        hint=_HINT,
    )


def _partition_columns(table: Table, specs: set[int], url: str) -> tuple[str, ...]:
    """Columns of which each file has one value. What other transforms make stands in no column."""
    found = {
        tuple(
            table.schema().find_column_name(f.source_id) or ""
            for f in table.specs()[spec].fields
            if isinstance(f.transform, IdentityTransform)
        )
        for spec in specs
    }
    if len(found) > 1:
        _refuse(url, "its files are partitioned by different columns, for the partitioning was changed")
    names = found.pop()
    nested = next((name for name in names if name not in {f.name for f in table.schema().fields}), None)
    if nested is not None:
        _refuse(url, f"they are partitioned by the nested field {nested!r}")
    return names


def _plan(store: Store, table: Table, schema: Struct, partitions: tuple[str, ...], tasks: list[Any]) -> ScanPlan:
    snapshot = table.current_snapshot()
    assert snapshot is not None, "there are files"
    columns = dict(zip(schema.names, schema.fields, strict=True))
    paths, values = [], []
    for task in tasks:
        if task.delete_files:
            _refuse(store.url, "rows of them are deleted by other files", task.file.file_path)
        if task.file.file_format is not FileFormat.PARQUET:
            _refuse(store.url, f"they are {task.file.file_format.value.lower()}", task.file.file_path)
        paths.append(_below(store.url, task.file.file_path))
        values.append(_values(table, task.file))
    if (again := next((path for path, n in Counter(paths).items() if n > 1), None)) is not None:
        # In a Delta table a path stands once.
        _refuse(store.url, "one of them is in the table more than once, and so are its rows", again)
    constants = pa.StructArray.from_arrays(
        [pa.array([one[name] for one in values], to_arrow(columns[name].type)) for name in partitions],
        names=list(partitions),
    ) if partitions else pa.array([{}] * len(paths), pa.struct([]))  # fmt: skip
    arrays = [
        pa.array(paths, pa.string()),
        pa.array([task.file.file_size_in_bytes for task in tasks], pa.int64()),
        pa.repeat(pa.scalar(snapshot.timestamp_ms, pa.int64()), len(paths)),
        pa.array([task.file.record_count for task in tasks], pa.int64()),
        constants,
        pa.nulls(len(paths), pa.binary()),
    ]
    files = pa.Table.from_arrays(arrays, names=SCAN_FILES.names)
    output = tuple(_output(f, partitions) for f in schema.fields)
    stored = Struct(tuple(f for f in schema.fields if f.name not in partitions))
    part = ScanPart("iceberg", files, "parquet", stored, output)
    return ScanPlan(store.url, (part,), schema, partitions)


def _output(f: Field, partitions: tuple[str, ...]) -> OutputColumn:
    value = FileConstant(f.name, f.type) if f.name in partitions else Physical((f.name,), f.type)
    return OutputColumn(f.name, f.type, True, value)


def _values(table: Table, file: Any) -> dict[str, object]:
    """What pyiceberg gives for identity partitions: Python's dates, numbers since 1970, texts."""
    spec = table.specs()[file.spec_id]
    return {
        table.schema().find_column_name(f.source_id) or "": value
        for f, value in zip(spec.fields, file.partition, strict=True)
        if isinstance(f.transform, IdentityTransform)
    }


def _below(root: str, location: str) -> str:
    """A file's path from the table's root."""
    found = relative_to(str(split_url(root)), resolve(root, location))
    if found is None:
        _refuse(root, "they lie outside of the table's folder", location)
    return found


def _refuse(url: str, problem: str, path: str | None = None) -> NoReturn:
    raise InvalidRequest(
        f"the table's files cannot be a Delta table's: {problem}",
        code="not-convertible",
        url=url,
        path=path,
        hint=_HINT,
    )


class _Files(FileIO):
    """The table's own objects, and no others: a state is not believed when it names files elsewhere."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def new_input(self, location: str) -> InputFile:
        return _File(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        raise PermissionError(f"nothing is written for a conversion: {location}")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise PermissionError(f"nothing is deleted for a conversion: {location}")


class _File(InputFile):
    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store, self._path = store, _below(store.url, location)

    def __len__(self) -> int:
        return self._store.head(self._path).size

    def exists(self) -> bool:
        try:
            self._store.head(self._path)
        except NotFound:
            return False
        return True

    def open(self, seekable: bool = True) -> Any:
        return io.BytesIO(self._store.get(self._path))
