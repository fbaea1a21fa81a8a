"""CONVERT TO DELTA: what a folder of Parquet files is as a table, and its first version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.commit.afterwards import afterwards
from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.create import NewTable, as_nullable, table_config
from alluvium.delta.description.upgrade import configure
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.statistics.stats import stats_columns
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.convert.folders import Folders, list_folders
from alluvium.delta.upkeep.convert.footers import Footers, read_footers
from alluvium.delta.upkeep.convert.partition_types import infer_type, log_texts
from alluvium.delta.upkeep.convert.schemas import with_partitions
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import publish
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import Field, JsonValue, Struct
from alluvium.storage.locating import locating
from alluvium.storage.paths import encode_uri_paths
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """What is asked for.

    Attributes:
        partitions: The partition columns in the order of the folders; None: as the folders name them, their types
            inferred as Spark infers them.
        statistics: Whether statistics are taken from the footers.
        properties: Of the table.
        zone: In which timestamps in names of folders are meant.
        engine: For the history.
        catalog_name: How the history names a table of a catalog.
        said: Names of partition columns that the caller has said, for the history.
    """

    partitions: tuple[Field, ...] | None = None
    statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"
    engine: str = ""
    catalog_name: str | None = None
    said: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """A table in the making.

    Attributes:
        config: What it says of itself.
        files: Schema `FILES`.
    """

    config: TableConfig
    files: pa.Table


def plan_conversion(store: Store, request: ConvertRequest) -> Conversion:
    """The table that the files of a folder are. Nothing is written.

    Raises:
        NotFound: There are no files (`no-parquet-files`).
        InvalidRequest: A file is no Parquet file (`not-parquet`), files do not go together (`schemas-differ`), folders
            do not fit the partition columns (`partition-folders`, `partition-value`), there is a table in the folder
            (`table-inside`), or columns or properties are such as no table may have.
        UnsupportedFeature: Types or properties that need what we do not write.
    """
    named = None if request.partitions is None else [f.name for f in request.partitions]
    folders = list_folders(store, named)
    partitions = _partitions(folders, request.partitions)
    columns = tuple(
        log_texts(values, f.type, request.zone, f.name) for f, values in zip(partitions, folders.values, strict=True)
    )
    footers = read_footers(
        store,
        folders.files.column("path"),
        lambda stored: _stats_columns(_config(stored, partitions, request.properties)),
        _tight_bounds(request.properties),
    )
    config = _config(footers.schema, partitions, request.properties)
    if not request.statistics and "rowTracking" in (config.protocol.writer_features or ()):
        raise InvalidRequest(
            "row tracking gives each row a number, and needs the statistics to know how many a file has",
            code="row-ids-without-statistics",
            hint="convert without NO STATISTICS, or without row tracking",
        )
    return Conversion(config, _files(folders, columns, config, footers, request.statistics))


def convert(
    store: Store, request: ConvertRequest, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> Committed | Preview:
    """Makes a table of the Parquet files in a folder, which stay as they are.

    Args:
        store: The folder; it holds no table yet.
        request: What is asked for.
        dry_run: Only tell what the table would be.
        retry: How often to try.

    Raises:
        CommitConflict: Somebody else made a table of it meanwhile.
        AlluviumError: As `plan_conversion`.
    """
    with locating(store, None):
        plan = plan_conversion(store, request)
    count = str(plan.files.num_rows)
    operation = Operation("CONVERT", _parameters(plan, request), {"numConvertedFiles": count}, request.engine)
    if dry_run:
        added = tuple(plan.files.column("path").to_pylist())
        return Preview(-1, operation, differences(None, plan.config), added)
    actions = Actions(protocol=plan.config.protocol, metadata=plan.config.metadata, added=plan.files)
    # It depends on the files that lie there: it is no blind append.
    draft = Draft(actions, ReadScope.table(), operation, -1, config=plan.config, is_alone=True)
    published = publish(store, draft, None, retry)
    afterwards(f"version 0 of {store.url}", "checkpoint", lambda: write_checkpoint_at(load_snapshot(store, 0)))
    told = pa.table({"path": plan.files.column("path"), "size": plan.files.column("size")})
    return Committed(published.entry.version, told, operation.metrics, published.attempts)


def _partitions(folders: Folders, given: Sequence[Field] | None) -> tuple[Field, ...]:
    if given is not None:
        return tuple(replace(f, nullable=True) for f in given)
    return tuple(Field(name, infer_type(values)) for name, values in zip(folders.names, folders.values, strict=True))


def _config(stored: Struct, partitions: Sequence[Field], properties: Mapping[str, str]) -> TableConfig:
    columns = as_nullable(with_partitions(stored, partitions))
    assert isinstance(columns, Struct)
    mapping = {name: value for name, value in properties.items() if name.casefold() == MODE.casefold()}
    others = {name: value for name, value in properties.items() if name not in mapping}
    config = table_config(NewTable(columns, [f.name for f in partitions], others))
    mode = next(iter(mapping.values()), "none").strip().casefold()
    if mode == "none":
        return config
    if mode != "name":
        raise InvalidRequest(
            f"files that were written for no table have no ids by which columns could be found: {MODE} = {mode!r}",
            code="invalid-property",
            hint=f"{MODE} = 'name' can be set",
        )
    # As of a table whose columns get other names later: files have the names of today.
    configuration = {**config.metadata.configuration, MODE: "name"}
    return configure(msgspec.structs.replace(config.metadata, configuration=configuration), config)


def _stats_columns(config: TableConfig) -> tuple[FooterColumn, ...]:
    wanted = parse_properties(config.metadata.configuration)
    return stats_columns(config.schema, config.partition_columns, wanted.num_indexed_cols, wanted.stats_columns)


def _tight_bounds(properties: Mapping[str, str]) -> bool | None:
    """Whether bounds say that they are tight, as where vectors may loosen them later."""
    asked = {name.casefold(): value.strip().casefold() for name, value in properties.items()}
    names = ("delta.enableDeletionVectors", "delta.feature.deletionVectors")
    return True if any(asked.get(name.casefold(), "false") != "false" for name in names) else None


def _files(
    folders: Folders, columns: Sequence[pa.Array], config: TableConfig, footers: Footers, statistics: bool
) -> pa.Table:
    count = folders.files.num_rows
    values = {
        "path": encode_uri_paths(folders.files.column("path")),
        "partitionValues": _partition_maps(folders, columns, config),
        "size": folders.files.column("size"),
        "modificationTime": folders.files.column("modified_ms"),
        "dataChange": pa.repeat(pa.scalar(True), count),
        "stats": footers.stats if statistics else None,
    }
    arrays = [pa.nulls(count, f.type) if values.get(f.name) is None else _whole(values[f.name], f.type) for f in FILES]
    return pa.Table.from_arrays(arrays, schema=FILES)


def _partition_maps(folders: Folders, columns: Sequence[pa.Array], config: TableConfig) -> pa.Array:
    """The `partitionValues` of each file, made once a folder."""
    keys = [config.physical_names[name] for name in config.partition_columns]
    rows = zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * _folder_count(folders)
    maps = [list(zip(keys, row, strict=True)) for row in rows]
    return pa.array(maps, FILES.field("partitionValues").type).take(folders.folder)


def _folder_count(folders: Folders) -> int:
    return int(pc.max(folders.folder).as_py()) + 1


def _whole(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.cast(data_type)


def _parameters(plan: Conversion, request: ConvertRequest) -> dict[str, JsonValue]:
    said = plan.config.partition_columns if request.said is None else request.said
    parameters: dict[str, JsonValue] = {
        "numFiles": plan.files.num_rows,
        "partitionedBy": msgspec.json.encode(said).decode(),
        "collectStats": request.statistics,
        "sourceFormat": "parquet",
    }
    return parameters if request.catalog_name is None else {"catalogTable": request.catalog_name, **parameters}
