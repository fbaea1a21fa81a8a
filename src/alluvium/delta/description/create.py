"""The first protocol and metadata of a table: no more than its schema and properties need."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from alluvium.delta.description.upgrade import configure, split_protocol_request
from alluvium.delta.features.columns.column_defaults import FEATURE as DEFAULTS
from alluvium.delta.features.columns.column_defaults import without_defaults, without_past
from alluvium.delta.features.log.checkpoint_protection import PROPERTY as PROTECTED_BEFORE
from alluvium.delta.features.rows.clustering import clustering_domain
from alluvium.delta.statistics.stats import stats_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.terms.properties import TABLE_ATTRIBUTES, ensure_consistent, parse_properties, settable_properties
from alluvium.delta.terms.spec import DomainMetadata, Format, Metadata
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import BINARY, BOOLEAN, VARIANT, VOID, Array, DataType, Field, JsonValue, Map, Struct
from alluvium.schema.walk import holds

# Parquet and Hive give these characters a meaning of their own; only column mapping lifts the ban.
_FORBIDDEN_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")

# A DataFrame that was read from a table of these features carries them along; the new table does not have them.
_IDENTITY = "delta.identity."
_KEYS_OF_ANOTHER_TABLE = ("delta.generationExpression", _IDENTITY, "delta.columnMapping.")

#: As in the reference.
_MOST_CLUSTERING_COLUMNS = 4
_UNORDERED = (BINARY, BOOLEAN, VARIANT, VOID)

#: What a table keeps when it is replaced, unless told otherwise, as the reference does; and what protects its history,
#: which stays.
_KEPT_WHEN_REPLACED = ("delta.enableDeletionVectors", "delta.enableRowTracking", "delta.rowTracking.", PROTECTED_BEFORE)


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table as it is asked for.

    Attributes:
        schema: Its columns, with nullability and the metadata of fields as they are to be.
        partition_by: Partition columns, in any case.
        properties: `delta.*` and other table properties, and what they may say of the protocol.
        comment: Of the table.
        cluster_by: Clustering columns, dotted when nested.
    """

    schema: Struct
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    cluster_by: Sequence[str] = ()


def new_config(
    schema: Struct, partition_by: Sequence[str], properties: Mapping[str, str], cluster_by: Sequence[str] = ()
) -> TableConfig:
    """The configuration of a table to create for rows.

    Args:
        schema: Columns of the first rows. All become nullable, as the reference makes them. Their defaults stay behind
            unless the properties ask for the feature: they are those of the table that the rows come from.
        partition_by: Partition columns, in any case.
        properties: `delta.*` and other table properties.
        cluster_by: Clustering columns, dotted when nested.

    Raises:
        InvalidRequest: Names, partition columns or properties that no table may have.
        UnsupportedFeature: Types or properties that need features which we do not implement.
    """
    nullable = as_nullable(kept_by_new(schema, properties))
    assert isinstance(nullable, Struct)
    return table_config(NewTable(nullable, partition_by, properties, cluster_by=cluster_by))


def kept_by_new(schema: Struct, properties: Mapping[str, str]) -> Struct:
    """The columns of rows with what a table that is made of them may say: defaults only where it is to keep such."""
    request, _ = split_protocol_request(properties)
    return schema if DEFAULTS.name in request.features else without_defaults(schema)


def table_config(wanted: NewTable, replaces: TableConfig | None = None) -> TableConfig:
    """The configuration of a table to create, or to put in the place of another.

    Args:
        wanted: The table.
        replaces: The table that it replaces: features that were supported stay so.

    Raises:
        InvalidRequest: Names, partition columns or properties that no table may have.
        UnsupportedFeature: Types or properties that need features which we do not implement.
    """
    request, properties = split_protocol_request(wanted.properties)
    attributes = {name: properties.pop(name) for name in list(properties) if name in TABLE_ATTRIBUTES}
    configuration = {**_kept(replaces), **settable_properties(properties)}
    ensure_consistent(configuration)
    ensure_columns(wanted.schema, configuration, wanted.partition_by)
    if wanted.cluster_by:
        if wanted.partition_by:
            raise InvalidRequest("a table is partitioned or clustered, not both", code="contradicting-options")
        paths = resolve_clustering_columns(wanted.schema, wanted.cluster_by)
        ensure_statistics(wanted.schema, configuration, paths)
        request = replace(request, features=(*request.features, "clustering"))
    # What Spark says of a default for rows that are there already: "CURRENT_DEFAULT" alone belongs into a table.
    schema = without_past(wanted.schema)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        description=wanted.comment if wanted.comment is not None else attributes.get("comment"),
        format=Format(provider="parquet"),
        schema_string=format_schema(schema),
        partition_columns=resolve_partition_columns(wanted.schema, wanted.partition_by),
        configuration=configuration,
        created_time=int(time.time() * 1000),
    )
    return configure(metadata, replaces, request)


def _kept(replaces: TableConfig | None) -> dict[str, str]:
    if replaces is None:
        return {}
    return {k: v for k, v in replaces.metadata.configuration.items() if k.startswith(_KEPT_WHEN_REPLACED)}


def ensure_columns(schema: Struct, configuration: Mapping[str, str], partition_by: Iterable[str] = ()) -> None:
    """Refuses columns that no table may have, with these properties.

    Args:
        schema: The columns.
        configuration: The properties.
        partition_by: By which columns the table is to be partitioned, where that is said anew.

    Raises:
        InvalidRequest: Names, required values inside arrays or maps, statistics of columns that there are not.
        UnsupportedFeature: Types that we do not write.
    """
    mapped = configuration.get(MODE, "none").strip().lower() != "none"
    _ensure_names(schema, mapped, {name.lower() for name in partition_by})
    _ensure_types(schema)
    _ensure_no_inner_not_null(schema)
    for text in parse_properties(configuration).stats_columns or ():
        find_column(schema, text)


def find_column(schema: Struct, text: str, code: str = "unknown-column") -> tuple[str, ...]:
    """The path of a dotted name, as the schema spells it.

    Raises:
        InvalidRequest: There is no such column (`code`).
    """
    current: DataType = schema
    found: list[str] = []
    for part in parse_column_path(text):
        member = current.find(part) if isinstance(current, Struct) else None
        if member is None:
            known = current.names if isinstance(current, Struct) else ()
            raise InvalidRequest(f"unknown column {text!r}", code=code, column=text, hint=suggest(part, known))
        found.append(member.name)
        current = member.type
    return tuple(found)


def resolve_clustering_columns(schema: Struct, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The paths of clustering columns, as the schema spells them.

    Raises:
        InvalidRequest: Unknown columns (`unknown-clustering-column`), too many of them, one twice, or of types without
            statistics.
    """
    return ensure_clusterable(schema, [find_column(schema, name, "unknown-clustering-column") for name in names])


def clustered_by(config: TableConfig, names: Sequence[str]) -> DomainMetadata:
    """The domain that says by which columns a table that is made is clustered."""
    paths = resolve_clustering_columns(config.schema, names)
    return clustering_domain([config.physical_paths.get(path, path) for path in paths])


def ensure_clusterable(schema: Struct, paths: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The same, of paths that were found in the schema."""
    twice = next((path for n, path in enumerate(paths) if path in paths[:n]), None)
    if twice is not None or len(paths) > _MOST_CLUSTERING_COLUMNS:
        problem = f"{'.'.join(twice)!r} stands twice" if twice else f"it takes {_MOST_CLUSTERING_COLUMNS} at most"
        raise InvalidRequest(
            f"a table cannot be clustered by {len(paths)} columns: {problem}",
            code="invalid-clustering-column",
            column=None if twice is None else ".".join(twice),
        )
    for path in paths:
        found = schema.find_path(path)
        if found is None or isinstance(found.type, (Struct, Array, Map)) or found.type in _UNORDERED:
            raise InvalidRequest(
                f"a table cannot be clustered by {'.'.join(path)!r}: such columns have no statistics",
                code="invalid-clustering-column",
                column=".".join(path),
            )
    return tuple(paths)


def ensure_statistics(schema: Struct, configuration: Mapping[str, str], paths: Sequence[tuple[str, ...]]) -> None:
    """Refuses clustering columns of which a table of these columns and properties keeps no statistics.

    Raises:
        InvalidRequest: `"invalid-clustering-column"`.
    """
    known = parse_properties(configuration)
    leaves = {leaf.path for leaf in stats_columns(schema, (), known.num_indexed_cols, known.stats_columns)}
    missing = next((".".join(path) for path in paths if path not in leaves), None)
    if missing is not None:
        raise InvalidRequest(
            f"a table cannot be clustered by {missing!r}: its files have no statistics of it",
            code="invalid-clustering-column",
            column=missing,
            hint="raise delta.dataSkippingNumIndexedCols, or name it in delta.dataSkippingStatsColumns",
        )


def as_nullable(data_type: DataType) -> DataType:
    """The type with every field, element and value nullable, without what fields bring from the table they were of."""
    if isinstance(data_type, Struct):
        fields = (Field(f.name, as_nullable(f.type), True, _own_metadata(f)) for f in data_type.fields)
        return Struct(tuple(fields))
    if isinstance(data_type, Array):
        return Array(as_nullable(data_type.element), True)
    if isinstance(data_type, Map):
        return Map(as_nullable(data_type.key), as_nullable(data_type.value), True)
    return data_type


def _own_metadata(f: Field) -> dict[str, JsonValue]:
    return {key: value for key, value in f.metadata.items() if not key.startswith(_KEYS_OF_ANOTHER_TABLE)}


def resolve_partition_columns(schema: Struct, partition_by: Iterable[str]) -> tuple[str, ...]:
    """The names as the schema spells them.

    Raises:
        InvalidRequest: Unknown, repeated or unsuitable columns, or all of them.
    """
    resolved: list[str] = []
    for name in partition_by:
        found = schema.find(name)
        if found is None:
            raise InvalidRequest(
                f"partition column {name!r} is not in the data",
                code="unknown-column",
                column=name,
                hint=suggest(name, schema.names),
            )
        if isinstance(found.type, (Struct, Array, Map)) or found.type in (VOID, VARIANT):
            raise InvalidRequest(
                f"a table cannot be partitioned by {name!r}: its type is {found.type}",
                code="invalid-partition-column",
                column=name,
            )
        if any(key.startswith(_IDENTITY) for key in found.metadata):
            raise InvalidRequest(
                f"a table cannot be partitioned by the identity column {name!r}",
                code="invalid-partition-column",
                column=name,
                hint="each row would be a partition of its own",
            )
        if found.name in resolved:
            raise InvalidRequest(f"partition column {name!r} is named twice", code="invalid-partition-column")
        resolved.append(found.name)
    if resolved and len(resolved) == len(schema.fields):
        raise InvalidRequest(
            "a table cannot be partitioned by all of its columns",
            code="invalid-partition-column",
            hint="leave at least one column for the data files",
        )
    return tuple(resolved)


def _ensure_names(schema: Struct, mapped: bool, partitions: Collection[str] = ()) -> None:
    seen: set[str] = set()
    # As the reference: columns of the data files first.
    for f in sorted(schema.fields, key=lambda f: f.name.lower() in partitions):
        if not mapped and _FORBIDDEN_IN_NAMES.search(f.name):
            raise _invalid_name(f.name, "partition column" if f.name.lower() in partitions else "column")
        if f.name.lower() in seen:
            raise InvalidRequest(
                f"column {f.name!r} stands twice (case is ignored)", code="duplicate-column", column=f.name
            )
        seen.add(f.name.lower())
        for inner in _structs_in(f.type):
            _ensure_names(inner, mapped)


def _invalid_name(name: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"{what} {name!r} has a character that only column mapping allows: one of ' ,;{{}}()\\n\\t='",
        code="invalid-column-name",
        column=name,
        hint=f"rename it, e.g. df.withColumnRenamed({name!r}, {_FORBIDDEN_IN_NAMES.sub('_', name)!r})",
    )


def _ensure_no_inner_not_null(data_type: DataType, path: tuple[str, ...] = (), inside: bool = False) -> None:
    if isinstance(data_type, Struct):
        for f in data_type.fields:
            if inside and not f.nullable:
                raise InvalidRequest(
                    "NOT NULL inside an array or map cannot be enforced",
                    code="nested-not-null",
                    column=".".join((*path, f.name)),
                    hint="declare the column nullable",
                )
            _ensure_no_inner_not_null(f.type, (*path, f.name), inside)
    elif isinstance(data_type, Array):
        _ensure_no_inner_not_null(data_type.element, (*path, "element"), True)
    elif isinstance(data_type, Map):
        _ensure_no_inner_not_null(data_type.key, (*path, "key"), True)
        _ensure_no_inner_not_null(data_type.value, (*path, "value"), True)


def _structs_in(data_type: DataType) -> tuple[Struct, ...]:
    if isinstance(data_type, Struct):
        return (data_type,)
    if isinstance(data_type, Array):
        return _structs_in(data_type.element)
    if isinstance(data_type, Map):
        return (*_structs_in(data_type.key), *_structs_in(data_type.value))
    return ()


def _ensure_types(schema: Struct) -> None:
    """A column of nulls alone has no place in Parquet: it is left out of the files, which arrays and maps cannot do."""
    for f in schema.fields:
        if isinstance(f.type, Struct):
            _ensure_types(f.type)
        elif f.type != VOID and holds(f.type, VOID):
            raise InvalidRequest(
                "an array or map cannot hold values of type void",
                code="unsupported-type",
                column=f.name,
                hint="cast them to a type, e.g. string",
            )
