"""What `detail()` tells of a table: one row, in delta-spark's columns, whoever shows it."""

from __future__ import annotations

import datetime as dt

from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.terms.actions import total
from alluvium.delta.view.history import commit_time_ms
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct

_TEXTS, _TEXT_MAP = Array(t.STRING), Map(t.STRING, t.STRING)
_COLUMNS: dict[str, DataType] = {
    "format": t.STRING,
    "id": t.STRING,
    "name": t.STRING,
    "description": t.STRING,
    "location": t.STRING,
    "createdAt": t.TIMESTAMP,
    "lastModified": t.TIMESTAMP,
    "partitionColumns": _TEXTS,
    "clusteringColumns": _TEXTS,
    "numFiles": t.LONG,
    "sizeInBytes": t.LONG,
    "properties": _TEXT_MAP,
    "minReaderVersion": t.INTEGER,
    "minWriterVersion": t.INTEGER,
    "tableFeatures": _TEXTS,
}
DETAIL = Struct(tuple(Field(name, kind) for name, kind in _COLUMNS.items()))


def detail_row(snapshot: Snapshot, name: str | None) -> dict[str, object]:
    """A version of a table (`DETAIL`); `name` is that of a catalog, where it has one."""
    config = snapshot.config
    metadata, protocol = config.metadata, config.protocol
    row = (
        "delta",
        metadata.id,
        name if name is not None else metadata.name,
        metadata.description,
        snapshot.store.uri(""),
        None if metadata.created_time is None else _moment(metadata.created_time),
        _moment(commit_time_ms(snapshot)),
        list(config.partition_columns),
        [".".join(path) for path in clustering_columns(snapshot.state.domains, config)],
        snapshot.files.num_rows,
        total(snapshot.files.column("size")),
        list(metadata.configuration.items()),
        protocol.min_reader_version,
        protocol.min_writer_version,
        sorted(supported_features(protocol)),
    )
    return dict(zip(DETAIL.names, row, strict=True))


def _moment(ms: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(milliseconds=ms)
