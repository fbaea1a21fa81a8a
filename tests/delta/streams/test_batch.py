"""The files of a batch as scan plans."""

from __future__ import annotations

import json
from dataclasses import replace

from stream_log import Log, add, paths

from alluvium.delta.log.read_changes import parse_changes
from alluvium.delta.streams.batch import row_sources
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.expr.sql.parse import parse_predicate


def files_of(*actions: dict) -> object:
    return parse_changes("\n".join(map(json.dumps, actions)).encode(), "", 0).added


def in_partition(path: str, **values: str) -> dict:
    action = add(path)
    return {"add": {**action["add"], "partitionValues": values}}  # type: ignore[dict-item]


def test_filters_skip_files() -> None:
    log = Log("batch-filters", add("a"))
    snapshot = load_snapshot(log.store)
    low, high = (add(name) for name in ("low", "high"))
    low["add"]["stats"] = '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":2}}'  # type: ignore[index]
    (source,) = row_sources(snapshot, files_of(low, high), ("x",))
    plan = source.plan_scan(parse_predicate("id > 5", snapshot.config.schema))
    assert [part.files["path"].to_pylist() for part in plan.parts] == [["high"]]
    assert dict(plan.skipped)["statistics"] == 1


def test_files_from_before_a_new_partitioning() -> None:
    snapshot = load_snapshot(Log("batch-partitions", add("a")).store)
    partitioned = replace(snapshot, config=replace(snapshot.config, partition_columns=("id",)))
    files = files_of(in_partition("old"), in_partition("new", id="3"), in_partition("newer", id="4"))
    old, new = row_sources(partitioned, files, ("x",))
    assert (paths([old]), paths([new])) == (["old"], ["new", "newer"])
    assert (old.plan_scan(None).partition_columns, new.plan_scan(None).partition_columns) == ((), ("id",))
    assert old.identity != new.identity


def test_sources_without_files() -> None:
    snapshot = load_snapshot(Log("batch-none", add("a")).store)
    assert row_sources(snapshot, files_of(), ("x",)) == ()
