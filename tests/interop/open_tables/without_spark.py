"""Tables that Alluvium writes without Spark, above all the forms of the log."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from pathlib import Path

import msgspec
import pyarrow as pa
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.api.delta.maintenance import compact_commits, write_checkpoint
from alluvium.delta.description.create import NewTable, new_config, table_config
from alluvium.delta.log import checkpoint
from alluvium.delta.log.checkpoint import CheckpointOptions
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Replace

from .maker import Maker, table

LEGACY = Protocol(min_reader_version=1, min_writer_version=3)
#: Checkpoints when they are asked for.
RARE = {"delta.checkpointInterval": "100"}
V2 = {"delta.checkpointPolicy": "v2"}
STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}


def _grow(m: Maker, properties: dict[str, str], partitioned: bool = False, versions: int = 6) -> None:
    """Versions that each add a file of two rows; the third replaces a file."""
    config = table_config(NewTable(SCHEMA, ["p"] if partitioned else [], {**RARE, **properties}))
    commit_rows(DeltaTarget(m.store, config, None), [0, 1], p="p0")
    for n in range(1, versions):
        commit_rows(open_target(m.store), [2 * n, 2 * n + 1], p=f"p{n % 3}")


def _checkpoint(m: Maker, **options: object) -> None:
    """With the commits that it covers gone: readers take it, or read nothing."""
    snapshot = load_snapshot(m.store)
    checkpoint.write_checkpoint(m.store, snapshot.state, CheckpointOptions(0, 0, **options))  # type: ignore[arg-type]
    _forget(m, snapshot.version)
    commit_rows(open_target(m.store), [100, 101], p="p1")


def _forget(m: Maker, version: int) -> None:
    for file in Path(m.path, "_delta_log").glob("*.json"):
        if file.stem.isdigit() and int(file.stem) < version:
            file.unlink()


@table(("id", ">=", 5))
def classic_checkpoint(m: Maker) -> None:
    _grow(m, {})
    _checkpoint(m)


@table(("id", ">=", 5))
def checkpoint_of_parts(m: Maker) -> None:
    _grow(m, {})
    _checkpoint(m, max_actions=2)


@table(("id", ">=", 5), ("p", "=", "p1"))
def checkpoint_with_parsed_statistics(m: Maker) -> None:
    _grow(m, STRUCT, partitioned=True)
    write_checkpoint(m.path)
    _forget(m, load_snapshot(m.store).version)
    commit_rows(open_target(m.store), [100, 101], p="p1")


@table(("id", ">=", 5))
def v2_checkpoint(m: Maker) -> None:
    _grow(m, V2)
    _checkpoint(m, v2=True)


@table(("id", ">=", 5))
def v2_checkpoint_with_a_classic_name(m: Maker) -> None:
    _grow(m, V2)
    _checkpoint(m, v2=True, classic_name=True)


@table(("id", ">=", 5))
def v2_checkpoint_of_several_sidecars(m: Maker) -> None:
    _grow(m, V2, partitioned=True)
    _checkpoint(m, v2=True, max_actions=2)


@table(("id", ">=", 5))
def compacted_log(m: Maker) -> None:
    _grow(m, {})
    compact_commits(m.path, 1, 4)


@table(("id", ">=", 5), app="stream")
def domains_and_transactions(m: Maker) -> None:
    """Another writer's domain and ours beside it, carried by our checkpoint; and a transaction."""
    _grow(m, {"delta.feature.domainMetadata": "supported"}, versions=3)
    said = {"domain": "some.app", "configuration": '{"answer":42}', "removed": False}
    Path(m.path, f"_delta_log/{3:020}.json").write_text(json.dumps({"domainMetadata": said}) + "\n")
    commit_rows(open_target(m.store), [8, 9], txn=("stream", 17))
    write_checkpoint(m.path)
    _forget(m, 4)


@table(("id", ">=", 5))
def legacy_protocol(m: Maker) -> None:
    plain = new_config(SCHEMA, ["p"], {})
    config = parse_config(LEGACY, msgspec.structs.replace(plain.metadata, configuration=RARE))
    commit_rows(DeltaTarget(m.store, config, None), [0, 1])
    commit_rows(open_target(m.store), [8, 9], p="a b/c")
    commit_rows(open_target(m.store), [10], p="a b/c", replace=Replace())


@table(("id", ">=", 5))
def altered_without_spark(m: Maker) -> None:
    _grow(m, {}, versions=3)
    m.alter.set_properties({"delta.columnMapping.mode": "name"})
    m.alter.rename_column("p", "q")
    m.alter.add_columns({"n": "decimal(10,2)", "s": "struct<a:int>"})
    m.alter.drop_columns("s")
    m.alter.alter_column("id", comment="the key")
    m.alter.add_feature("deletionVectors")
    commit_rows(open_target(m.store), [8, 9], p="more")


@table(("id", ">=", 5), feed=0)
def rows_of_arrow(m: Maker) -> None:
    """Written by pyarrow: values of many types, in partitions, appended and replaced."""
    options = {"delta.enableChangeDataFeed": "true"}
    for start in (0, 4):
        data = pa.table({
            "id": pa.array(range(start, start + 4), pa.int64()),
            "p": ["one", None, "two", "one"],
            "x": [1.5, None, -0.0, 1e300],
            "n": pa.array([decimal.Decimal("1.20"), None, decimal.Decimal("-3.00"), None], pa.decimal128(20, 2)),
            "day": [dt.date(2024, 2, 29), dt.date(1900, 1, 1), None, dt.date(9999, 12, 31)],
            "at": pa.array([0, -1, None, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
            "r": [{"k": 1, "v": ["x"]}, None, {"k": None, "v": []}, {"k": 2, "v": None}],
        })  # fmt: skip
        alluvium.write(data, m.path, mode="append", partition_by="p", **({} if start else options))
    alluvium.write(data.slice(2, 1), m.path, mode="overwrite", partitionOverwriteMode="dynamic")
