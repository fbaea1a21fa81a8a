"""CONVERT TO DELTA: what a folder of Parquet files is as a table, and its first version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa

from alluvium.commit.afterwards import afterwards
from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.terms.actions import Actions
from alluvium.delta.upkeep.convert.conversion import (
    Conversion,
    ConvertRequest,
    FoundFiles,
    columns_with_statistics,
    configured,
    conversion_of,
    with_mapping,
)
from alluvium.delta.upkeep.convert.folders import Folders, list_folders
from alluvium.delta.upkeep.convert.footers import read_footers
from alluvium.delta.upkeep.convert.known import SUPPORTS_DEFAULTS, ensure_shown, has_defaults, hidden_column
from alluvium.delta.upkeep.convert.partition_types import infer_type, log_texts
from alluvium.delta.upkeep.convert.planned import plan_from
from alluvium.delta.upkeep.convert.schemas import INT32, INTEGERS
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import publish
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.scan import ScanPlan
from alluvium.schema.types import Field, JsonValue
from alluvium.storage.locating import locating
from alluvium.storage.store import Store


def plan_conversion(store: Store, request: ConvertRequest) -> Conversion:
    """The table that the files of a folder are. Nothing is written.

    Raises:
        NotFound: There are no files (`no-parquet-files`).
        InvalidRequest: A file is no Parquet file (`not-parquet`), files do not go together or with the columns that
            are known (`schemas-differ`, `not-convertible`), folders
            do not fit the partition columns (`partition-folders`, `partition-value`), there is a table in the folder
            (`table-inside`), or columns or properties are such as no table may have.
        UnsupportedFeature: Types or properties that need what we do not write.
    """
    named = None if request.partitions is None else [f.name for f in request.partitions]
    folders = list_folders(store, named, request.folders, request.by_sink_log)
    partitions = _partitions(folders, request.partitions)
    values = tuple(
        log_texts(names, f.type, request.zone, f.name).take(folders.folder)
        for f, names in zip(partitions, folders.values, strict=True)
    )
    known, properties = request.columns, request.properties
    if known is not None and has_defaults(known):
        properties = {SUPPORTS_DEFAULTS: "supported", **properties}
    footers = read_footers(
        store,
        folders.files,
        lambda stored: columns_with_statistics(configured(known or stored, partitions, properties)),
        request.tight_bounds,
        INT32 if known is None else INTEGERS,
    )
    if known is not None:
        ensure_shown(known, folders.names, footers)
        hidden = hidden_column(footers.schema, known)
        properties = properties if hidden is None else with_mapping(properties, hidden)
    config = configured(known or footers.schema, partitions, properties)
    return conversion_of(FoundFiles(folders.files, values), config, footers, request)


def convert(
    store: Store,
    request: ConvertRequest,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    source: tuple[str, ScanPlan] | None = None,
) -> Committed | Preview:
    """Makes a table of the Parquet files in a folder, which stay as they are.

    Args:
        store: The folder; it holds no Delta table yet.
        request: What is asked for.
        dry_run: Only tell what the table would be.
        retry: How often to try.
        source: Where the folder is a table of another format: that format's name, and the plan by which it is read.

    Raises:
        CommitConflict: Somebody else made a table of it meanwhile.
        AlluviumError: As `plan_conversion`, and `plan_from`.
    """
    with locating(store, None):
        plan = plan_conversion(store, request) if source is None else plan_from(store, source[1], request)
    count = str(plan.files.num_rows)
    parameters = _parameters(plan, request, "parquet" if source is None else source[0])
    operation = Operation("CONVERT", parameters, {"numConvertedFiles": count}, request.engine)
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


def _parameters(plan: Conversion, request: ConvertRequest, source_format: str) -> dict[str, JsonValue]:
    said = plan.config.partition_columns if request.said is None else request.said
    parameters: dict[str, JsonValue] = {
        "numFiles": plan.files.num_rows,
        "partitionedBy": msgspec.json.encode(said).decode(),
        "collectStats": request.statistics,
        "sourceFormat": source_format,
    }
    return parameters if request.catalog_name is None else {"catalogTable": request.catalog_name, **parameters}
