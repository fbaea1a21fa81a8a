"""Compaction without Spark: which buckets, what is committed, and who may commit beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, compacted, full, open_target

import alluvium
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.terms.compaction_options import num_levels
from alluvium.paimon.upkeep.keyed.compaction import Compaction
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.plan.changes import Committed, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    url = str(tmp_path / "t")
    PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], {"bucket": "1"})
    store = open_store(url)
    append(open_target(store), [{"k": k, "s": "old", "p": "ab"[k % 2]} for k in range(4)])
    append(open_target(store), [{"k": 0, "s": "new", "p": "a"}])
    return store


def rows(store: Store) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in alluvium.open(store.url).to_arrow().to_pylist())


def files(store: Store) -> list[tuple[Any, ...]]:
    found = alluvium.open(store.url).system("files").to_pylist()
    return sorted((f["partition"], f["level"], f["record_count"]) for f in found)


def compact(store: Store, where: str | None = None) -> Committed:
    """As the verb does it, the rows merged by our own reader; beside a store that fails the commit alone is of it."""
    snapshot = load_snapshot(store)
    schema = open_target(store).schema
    condition = None if where is None else parse_predicate(where, schema, "UTC")
    compaction = full(snapshot, condition)
    return compacted(open_target(store), compaction, remaining(store, compaction))


def remaining(store: Store, compaction: Compaction) -> list[dict[str, Any]]:
    """The rows of the partitions of which files are written anew."""
    paths = (path for part in compaction.rows.plan_scan().parts for path in part.files["path"].to_pylist())
    partitions = {path.split("=")[1].split("/")[0] for path in paths}
    return [row for row in alluvium.open(store.url).to_arrow().to_pylist() if row["p"] in partitions]


def test_no_file_is_passed_over(store: Store) -> None:
    """Whatever a session makes of files that are gone: rows that were not read would be lost for good."""
    assert all(part.is_exact for part in full(load_snapshot(store)).rows.plan_scan().parts)


def test_buckets_become_one_run_at_the_top_level(store: Store) -> None:
    before = rows(store)
    done = compact(store)
    assert (done.version, rows(store), files(store)) == (3, before, [("{a}", 5, 2), ("{b}", 5, 2)])
    document = alluvium.open(store.url).system("snapshots").to_pylist()[-1]
    assert (document["commit_kind"], document["total_record_count"], document["delta_record_count"]) == (
        "COMPACT",
        4,
        -1,
    )
    # The only file of a bucket is what it was, of another level.
    assert {f["file_source"] for f in alluvium.open(store.url).system("files").to_pylist()} == {"COMPACT", "APPEND"}
    assert full(load_snapshot(store)).before.num_rows == 0
    append(open_target(store), [{"k": 1, "s": "newer", "p": "b"}])
    # Those of one bucket alone, and all of them.
    assert sorted(full(load_snapshot(store)).before["level"].to_pylist()) == [0, 5]


def test_partitions_by_a_condition(store: Store) -> None:
    compact(store, "p = 'b'")
    assert files(store) == [("{a}", 0, 1), ("{a}", 0, 2), ("{b}", 5, 2)]
    with pytest.raises(UnsupportedFeature) as caught:
        compact(store, "k = 1")
    assert caught.value.code == "replace-where-data"


def test_writers_go_on_while_a_compaction_runs(store: Store) -> None:
    writer = open_target(store)
    late = Fault(1, verb="put_if_absent", meanwhile=lambda: append(writer, [{"k": 2, "s": "late", "p": "a"}]) and None)
    assert compact(FaultyStore(store, late)).attempts == 2
    assert (2, "late", "a") in rows(store) and len(rows(store)) == 4
    assert files(store) == [("{a}", 0, 1), ("{a}", 5, 2), ("{b}", 5, 2)]


@pytest.mark.parametrize("winner", ["compaction", "overwrite"])
def test_what_is_gone_is_not_brought_back(store: Store, winner: str) -> None:
    def win() -> None:
        if winner == "compaction":
            compact(store)
        else:
            append(open_target(store), [{"k": 9, "s": "only", "p": "a"}], Replace())

    with pytest.raises(CommitConflict) as caught:
        compact(FaultyStore(store, Fault(1, verb="put_if_absent", meanwhile=win)))
    assert [c.rule for c in caught.value.conflicts] == ["concurrent-delete-delete"]
    assert len(rows(store)) == (4 if winner == "compaction" else 1)


def test_levels_are_counted_from_the_trigger(tmp_path: Path) -> None:
    for options, level in (({}, 5), ({"num-sorted-run.compaction-trigger": "3"}, 3), ({"num-levels": "4"}, 3)):
        url = str(tmp_path / f"t{level}{len(options)}{len(str(options))}")
        PaimonTable.create(url, SCHEMA, [], ["k"], {"bucket": "1", **options})
        assert num_levels(PaimonTable.forPath(url).schema.options) == level + 1


def test_only_partitions_that_are_idle(store: Store) -> None:
    entries = load_snapshot(store).entries
    newest = int(entries["creation_time"].cast(pa.int64()).to_numpy().max())
    assert plan_compaction(load_snapshot(store), Asked(idle_since_ms=newest)).before.num_rows == 3
    # Of "a" a file came later than that of "b".
    oldest = int(entries["creation_time"].cast(pa.int64()).to_numpy().min())
    idle = plan_compaction(load_snapshot(store), Asked(idle_since_ms=oldest)).before
    assert idle.num_rows == (1 if oldest < newest else 3)


def test_a_writer_compacts_what_it_wrote_to_by_the_number_of_runs(store: Store) -> None:
    places = frozenset(
        zip(*(load_snapshot(store).entries[n].to_pylist() for n in ("partition", "bucket")), strict=True)
    )
    assert plan_compaction(load_snapshot(store), Asked(is_full=False, places=places)).before.num_rows == 0
    for number in range(3):
        append(open_target(store), [{"k": 0, "s": str(number), "p": "a"}])
    planned = plan_compaction(load_snapshot(store), Asked(is_full=False))
    assert planned.before.num_rows == 5 and set(planned.fates.filter(planned.is_rewritten)["level"].to_pylist()) == {5}
    assert plan_compaction(load_snapshot(store), Asked(is_full=False, places=frozenset())).before.num_rows == 0
