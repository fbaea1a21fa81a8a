"""Tables of another format whose files are Parquet as a Delta table's are: what is live in them becomes a table.

It goes by the plan by which engines would read the other table: files whose rows come out of them as they stand can be
a Delta table's, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.description.create import as_nullable
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.delta.upkeep.convert.conversion import (
    Conversion,
    ConvertRequest,
    FoundFiles,
    columns_with_statistics,
    configured,
    conversion_of,
    ensure_same_partitions,
    with_mapping,
)
from alluvium.delta.upkeep.convert.footers import read_footers
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.scan import FileConstant, Literal, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema.types import Field, Struct
from alluvium.storage.paths import is_absolute
from alluvium.storage.store import Store


def plan_from(store: Store, plan: ScanPlan, request: ConvertRequest) -> Conversion:
    """The Delta table that the files of a plan are. Nothing is written.

    Args:
        store: The table's objects.
        plan: By which its newest state is read.
        request: What is asked for; the partition columns are the plan's.

    Raises:
        NotFound: There are no files (`no-parquet-files`).
        InvalidRequest: Rows do not come out of the files as they stand (`not-convertible`), or the table has other
            partition columns than are asked for (`partition-schema`).
    """
    parts = [part for part in plan.parts if part.files.num_rows]
    if not parts:
        raise NotFound("the table has no files", code="no-parquet-files", url=store.url, hint="write rows first")
    for part in parts:
        _ensure_plain(part, plan.schema.names)
    files = pa.concat_tables([_files_of(part, plan.partition_columns) for part in parts]).sort_by("path")
    by_name = {f.name: f for f in plan.schema.fields}
    ordered = tuple(by_name[name] for name in plan.partition_columns)
    ensure_same_partitions(request.partitions, ordered, "the table")
    # In the order of the other table, its partition columns where they stand.
    columns = Struct(plan.schema.fields)
    footers = read_footers(
        store,
        files,
        lambda stored: columns_with_statistics(configured(columns, ordered, request.properties)),
        request.tight_bounds,
    )
    _ensure_stored(footers.schema, plan)
    values = tuple(_texts(files.column(f.name).combine_chunks(), f) for f in ordered)
    # Fields within columns are alike, or the columns are refused.
    hidden = next((f.name for f in footers.schema.fields if columns.find(f.name) is None), None)
    properties = request.properties if hidden is None else with_mapping(request.properties, hidden)
    config = configured(columns, ordered, properties)
    return conversion_of(FoundFiles(files, values), config, footers, request)


def _ensure_plain(part: ScanPart, names: tuple[str, ...]) -> None:
    """Refuses files whose rows are not simply those of the table."""
    problem = next(_problems(part, names), None)
    if problem is not None:
        raise InvalidRequest(
            f"the table's files cannot be a Delta table's: {problem}",
            code="not-convertible",
            path=part.files.column("path")[0].as_py(),
            hint="write its rows into a Delta table: alluvium.write(alluvium.read(spark, url), other)",
        )


def _problems(part: ScanPart, names: tuple[str, ...]) -> Iterator[str]:
    if part.file_format != "parquet":
        yield f"they are {part.file_format}"
    if part.merge is not None:
        yield "their rows merge by key"
    if part.is_masked:
        yield "rows of them are deleted by vectors"
    if any(is_absolute(path) for path in part.files.column("path").to_pylist()):
        yield "they lie outside of the table's folder"
    held = {name.lower() for name in part.held.names} if part.held is not None else set()
    for column in part.output:
        if column.name in names and (problem := _problem_of(column, held)) is not None:
            yield f"column {column.name!r} {problem}"


def _problem_of(column: OutputColumn, held: set[str]) -> str | None:
    value = column.value
    if isinstance(value, FileConstant):
        return None
    if isinstance(value, Literal) and value.value is None:
        # By its name a Delta reader would find what was dropped.
        return "is another one in them, which was dropped" if column.name.lower() in held else None
    if not isinstance(value, Physical):
        return "had another type when they were written"
    return None if value.path == (column.name,) else f"is called {value.path[-1]!r} in them"


def _files_of(part: ScanPart, partitions: tuple[str, ...]) -> pa.Table:
    constants = part.files.column("constants").combine_chunks()
    columns = {
        "path": part.files.column("path"),
        "size": part.files.column("size"),
        "modified_ms": part.files.column("modification_time_ms"),
        **{name: pc.struct_field(constants, name) for name in partitions},
    }
    return pa.table(columns)


def _ensure_stored(stored: Struct, plan: ScanPlan) -> None:
    """Refuses files that hold a column under another type than the table says: Spark would read them by that."""
    for f in plan.schema.fields:
        found = stored.find(f.name)
        if found is None or f.name in plan.partition_columns or _alike(found, f):
            continue
        raise InvalidRequest(
            f"the table's files have {f.name!r} as {found.type}, the table as {f.type}",
            code="not-convertible",
            column=f.name,
            hint="write its rows into a Delta table: alluvium.write(alluvium.read(spark, url), other)",
        )


def _alike(one: Field, other: Field) -> bool:
    return str(as_nullable(one.type)) == str(as_nullable(other.type))


def _texts(values: pa.Array, f: Field) -> pa.Array:
    texts = format_partition_values(values, f.type)
    if texts.null_count > values.null_count:
        raise InvalidRequest(
            f"the empty text is a value of the partition column {f.name!r}: to Delta it is null",
            code="not-convertible",
            column=f.name,
            hint="write its rows into a Delta table, where the column is no partition column",
        )
    return texts
