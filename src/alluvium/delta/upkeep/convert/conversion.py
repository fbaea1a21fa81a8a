"""A table in the making: its description and its files, out of what was found in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.delta.description.create import NewTable, as_nullable, table_config
from alluvium.delta.description.upgrade import configure
from alluvium.delta.statistics.stats import stats_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.convert.footers import Footers
from alluvium.delta.upkeep.convert.schemas import with_partitions
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Field, Struct
from alluvium.storage.paths import encode_uri_paths

_VECTORS = ("delta.enabledeletionvectors", "delta.feature.deletionvectors")


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
        folders: The only ones whose files count, from the table's folder; None: all files count. A catalog knows some
            partitions, and others not, or not any more.
        columns: Of the table, partition columns among them, where a catalog knows them; None: those of the files.
        by_sink_log: Whether only those files count that the log of a streaming query of Spark names, where one wrote
            the folder.
    """

    partitions: tuple[Field, ...] | None = None
    statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"
    engine: str = ""
    catalog_name: str | None = None
    said: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None
    columns: Struct | None = None
    by_sink_log: bool = True

    @property
    def tight_bounds(self) -> bool | None:
        """Whether bounds say that they are tight, as where vectors may loosen them later."""
        asked = {name.lower(): value.strip().lower() for name, value in self.properties.items()}
        return True if any(asked.get(name, "false") != "false" for name in _VECTORS) else None


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files that are to be the table's.

    Attributes:
        files: `path` (decoded), `size`, `modified_ms`.
        values: Of each partition column the text for the log, one a file.
    """

    files: pa.Table
    values: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A table in the making.

    Attributes:
        config: What it says of itself.
        files: Schema `FILES`.
    """

    config: TableConfig
    files: pa.Table


def conversion_of(found: FoundFiles, config: TableConfig, footers: Footers, request: ConvertRequest) -> Conversion:
    """The table of some files.

    Raises:
        InvalidRequest: It numbers rows, and statistics are not wanted (`row-ids-without-statistics`).
    """
    if not request.statistics and "rowTracking" in (config.protocol.writer_features or ()):
        raise InvalidRequest(
            "row tracking gives each row a number, and needs the statistics to know how many a file has",
            code="row-ids-without-statistics",
            hint="convert without NO STATISTICS, or without row tracking",
        )
    count = found.files.num_rows
    columns = {
        "path": encode_uri_paths(found.files.column("path")),
        "partitionValues": _partition_maps(found.values, config, count),
        "size": found.files.column("size"),
        "modificationTime": found.files.column("modified_ms"),
        "dataChange": pa.repeat(pa.scalar(True), count),
        **({"stats": footers.stats} if request.statistics else {}),
    }
    arrays = [_whole(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in FILES]
    return Conversion(config, pa.Table.from_arrays(arrays, schema=FILES))


def configured(stored: Struct, partitions: Sequence[Field], properties: Mapping[str, str]) -> TableConfig:
    """What the table says of itself.

    Args:
        stored: The columns of the files.
        partitions: The partition columns.
        properties: Of the table.

    Raises:
        InvalidRequest: Columns or properties are such as no table may have.
        UnsupportedFeature: They need what we do not write.
    """
    columns = as_nullable(with_partitions(stored, partitions))
    assert isinstance(columns, Struct)
    mapping = {name: value for name, value in properties.items() if name.lower() == MODE.lower()}
    others = {name: value for name, value in properties.items() if name not in mapping}
    config = table_config(NewTable(columns, [f.name for f in partitions], others))
    mode = next(iter(mapping.values()), "none").strip().lower()
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


def with_mapping(properties: Mapping[str, str], hidden: str) -> dict[str, str]:
    """Properties of a table whose files hold what it does not show: who adds a column of that name gets a new one.

    Raises:
        InvalidRequest: Column mapping is not wanted (`not-convertible`).
    """
    asked = {name: value for name, value in properties.items() if name.lower() == MODE.lower()}
    if any(value.strip().lower() == "none" for value in asked.values()):
        raise InvalidRequest(
            f"files hold {hidden!r}, which was dropped: without column mapping a column that is added under that name "
            "would show its old values",
            code="not-convertible",
            column=hidden,
            hint=f"leave {MODE} = 'none' away",
        )
    return {MODE: "name", **properties}


def ensure_same_partitions(said: Sequence[Field] | None, known: Sequence[Field], who: str) -> None:
    """Refuses partition columns that are not those which are known.

    Raises:
        InvalidRequest: `"partition-schema"`.
    """
    if said is None or [(f.name.lower(), f.type) for f in said] == [(f.name.lower(), f.type) for f in known]:
        return
    texts = (", ".join(f"{f.name} {f.type}" for f in fields) or "none" for fields in (known, said))
    raise InvalidRequest(
        f"{who} has other partition columns ({next(texts)}) than these: {next(texts)}",
        code="partition-schema",
        hint="leave them out: they are known",
    )


def columns_with_statistics(config: TableConfig) -> tuple[FooterColumn, ...]:
    """The columns of which the table wants statistics."""
    wanted = parse_properties(config.metadata.configuration)
    return stats_columns(config.schema, config.partition_columns, wanted.num_indexed_cols, wanted.stats_columns)


def _partition_maps(values: Sequence[pa.Array], config: TableConfig, count: int) -> pa.Array:
    """The `partitionValues` of each file."""
    width, kind = len(values), FILES.field("partitionValues").type
    names = pa.array([config.physical_names[name] for name in config.partition_columns], pa.string())
    # Column by column to file by file.
    order = (np.arange(count)[:, None] + np.arange(width) * count).ravel()
    texts = pa.concat_arrays([pa.array([], pa.string()), *values]).take(pa.array(order))
    keys = names.take(pa.array(np.tile(np.arange(width), count)))
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, texts).cast(kind)


def _whole(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.cast(data_type)
