"""Delta's values made from literals: configurations, file actions, drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from alluvium.delta.commit.draft import Draft
from alluvium.delta.terms.actions import Actions, tombstones_of
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import FILES, Format, Metadata, Protocol
from alluvium.plan.changes import Operation, ReadScope
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
LEGACY = Protocol(min_reader_version=1, min_writer_version=2)


def make_metadata(
    schema: Struct = SCHEMA, partition_by: Sequence[str] = (), properties: Mapping[str, str] | None = None
) -> Metadata:
    return Metadata(
        id="00000000-0000-0000-0000-000000000000",
        format=Format(provider="parquet"),
        schema_string=format_schema(schema),
        partition_columns=tuple(partition_by),
        configuration=dict(properties or {}),
    )


def make_config(
    schema: Struct = SCHEMA,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    protocol: Protocol = LEGACY,
) -> TableConfig:
    return parse_config(protocol, make_metadata(schema, partition_by, properties))


def make_files(*rows: Mapping[str, object], data_change: bool = True) -> pa.Table:
    """Live files; each row needs a path only, `partitionValues` is a mapping."""
    complete = []
    for row in rows:
        values = {"size": 1, "modificationTime": 0, "dataChange": data_change, "partitionValues": {}, **row}
        partition = values["partitionValues"]
        assert isinstance(partition, Mapping)
        complete.append({**values, "partitionValues": list(partition.items())})
    return pa.Table.from_pylist(complete, schema=FILES)


def make_stats(low: int, high: int) -> str:
    """Statistics of a file whose column `id` lies between two numbers."""
    return f'{{"numRecords":2,"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}}}'


def removal_of(files: pa.Table, data_change: bool = True) -> pa.Table:
    return tombstones_of(files, 1_700_000_000_000, data_change)


def make_draft(actions: Actions, read: ReadScope | None = None, read_version: int = 0) -> Draft:
    return Draft(
        actions, read or ReadScope.nothing(), Operation("WRITE", {"mode": "Append"}, engine="tests"), read_version
    )
