"""The files of a batch as scan plans."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from stream_log import Log, add, metadata, paths, remove

from alluvium.delta.log.read_changes import parse_changes
from alluvium.delta.streams.batch import BatchFiles, LostBatch, change_sources, row_sources
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import Literal
from alluvium.schema.types import LONG, STRING, Field


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


FEED = {"delta__enableChangeDataFeed": "true"}


def lost_batch(name: str, *, extra: tuple[Field, ...] = (), span: tuple[str, ...] = ("x",)) -> LostBatch:
    return LostBatch(load_snapshot(Log(name, add("a")).store), NotFound("gone", code="stream-lost-data"), span, extra)


def test_identities_tell_batches_apart() -> None:
    """Engines read what is equal once: the table, how it is shown, what kind of batch it is and its range."""
    first, other = Log("batch-identity", add("a"), **FEED), Log("batch-identity-other", add("a"), **FEED)
    snapshots = [
        load_snapshot(first.store),
        load_snapshot(first.store, time_zone="Asia/Tokyo"),
        load_snapshot(other.store),
    ]
    first.commit(metadata(table_id="u", **FEED))
    snapshots.append(load_snapshot(first.store))
    changed = parse_changes(json.dumps(add("b")).encode(), "", 0)
    found = []
    for snapshot in snapshots:
        for span in (("x",), ("y",), ("x", "y")):
            found += row_sources(snapshot, changed.added, span)
            found += change_sources(snapshot, [changed], {0: 5}, span)
            found.append(LostBatch(snapshot, NotFound("gone", code="stream-lost-data"), span))
    identities = [source.identity for source in found]
    assert len(set(identities)) == len(identities) == 4 * 3 * 3
    for identity, snapshot in zip(identities[::9], snapshots, strict=True):
        told = (snapshot.store.url, str(snapshot.version), snapshot.config.metadata.id, "stream", snapshot.time_zone)
        assert identity == (*told, "x", "", "0")
    again = row_sources(snapshots[0], changed.added, ("x",))
    assert [source.identity for source in again] == identities[:1]


def test_how_large_a_batch_is() -> None:
    snapshot = load_snapshot(Log("batch-sizes", add("a"), **FEED).store)
    changes = parse_changes(
        "\n".join(map(json.dumps, (add("b", size=7), add("c", size=5), remove("d")))).encode(), "", 0
    )
    assert [source.size_bytes for source in row_sources(snapshot, changes.added, ("x",))] == [12]
    assert [source.size_bytes for source in change_sources(snapshot, [changes], {0: 5}, ("x",))] == [22]
    assert lost_batch("batch-sizes-lost").size_bytes == 0


def test_changes_of_commits_that_did_nothing() -> None:
    snapshot = load_snapshot(Log("batch-no-changes", add("a"), **FEED).store)
    nothing = parse_changes(b"", "", 0)
    assert change_sources(snapshot, [], {}, ("x",)) == change_sources(snapshot, [nothing], {0: 5}, ("x",)) == ()


def test_a_path_stands_once_in_a_source() -> None:
    """Beside a plain loop: the first of each path, then the second, and so on, in their order."""
    snapshot = load_snapshot(Log("batch-turns", add("a")).store)
    for seed in range(9):
        lot = random.Random(seed)
        names = [lot.choice("abcde") for _ in range(seed)]
        turns: list[list[str]] = []
        for place, name in enumerate(names):
            turn = names[:place].count(name)
            turns += [[]] * (turn == len(turns))
            turns[turn] = [*turns[turn], name]
        sources = row_sources(snapshot, files_of(*map(add, names)), ("x",))
        assert [paths([source]) for source in sources] == turns
        assert [source.identity[-1] for source in sources] == [str(n) for n in range(len(turns))]


def test_files_of_a_batch_as_live_ones() -> None:
    snapshot = load_snapshot(Log("batch-live", add("a")).store)
    told = add("b", size=7, modified=3)
    (source,) = row_sources(snapshot, files_of(told, add("c", data_change=True)), ("x",))
    assert isinstance(source, BatchFiles)
    assert source.files.schema.equals(FILES)
    rows = source.files.to_pylist()
    assert [row["path"] for row in rows] == ["b", "c"]
    assert (rows[0]["size"], rows[0]["modificationTime"], rows[0]["stats"]) == (7, 3, '{"numRecords":1}')
    assert [row["dataChange"] for row in rows] == [True, True]
    assert {row["clusteringProvider"] for row in rows} == {None}


def test_files_that_have_values_of_some_partition_columns() -> None:
    """As the log tells each file: what has no value there stands in the file, and other keys are no columns."""
    columns = (("id", "long"), ("p", "long"), ("q", "long"))
    log = Log("batch-kinds", add("a"))
    log.commit(metadata(columns, partition_by=("p", "q")))
    snapshot = load_snapshot(log.store)
    files = files_of(
        in_partition("both", p="1", q="2"), in_partition("neither"), in_partition("one", q="3"),
        in_partition("again", q="5", p="4"), in_partition("strange", q="6", z="7"),
    )  # fmt: skip
    found = [
        (source.plan_scan(None).partition_columns, paths([source])) for source in row_sources(snapshot, files, ("x",))
    ]
    assert found == [(("p", "q"), ["both", "again"]), ((), ["neither"]), (("q",), ["one", "strange"])]
    whole = files_of(in_partition("both", p="1", q="2"), in_partition("null", p="1", q=None))  # type: ignore[arg-type]
    (source,) = row_sources(snapshot, whole, ("x",))
    assert (source.plan_scan(None).partition_columns, paths([source])) == (("p", "q"), ["both", "null"])
    some = files_of(in_partition("both", p="1", q="2"), in_partition("one", q="3"))
    assert [paths([source]) for source in row_sources(snapshot, some, ("x",))] == [["both"], ["one"]]


def test_partition_columns_keep_the_table_s_order() -> None:
    log = Log("batch-order", add("a"))
    log.commit(metadata((("id", "long"), ("p", "long"), ("q", "long")), partition_by=("q", "p")))
    (source,) = row_sources(load_snapshot(log.store), files_of(in_partition("a", p="1", q="2")), ("x",))
    assert (source.plan_scan(None).partition_columns, source.identity[-2]) == (("q", "p"), "q,p")


def test_a_lost_batch_fails_where_it_is_read() -> None:
    """Before that it has the columns of one that is there, and no file."""
    extra = (Field("_change_type", STRING), Field("_commit_version", LONG, False))
    lost = lost_batch("batch-lost", extra=extra)
    plan = lost.plan_scan()
    assert plan.schema.names == ("id", "_change_type", "_commit_version")
    assert [(part.is_complete, part.files.num_rows) for part in plan.parts] == [(False, 0)]
    (part,) = plan.parts
    assert [(column.name, column.nullable) for column in part.output] == [
        ("id", True), ("_change_type", True), ("_commit_version", True),
    ]  # fmt: skip
    assert [column.value for column in part.output[1:]] == [Literal(None, STRING), Literal(None, LONG)]
    with pytest.raises(NotFound) as caught:
        lost.plan_scan(parse_predicate("id > 5", lost.snapshot.config.schema))
    assert caught.value is lost.error
