"""Which rows wait, in which order they came, and how many buckets their partitions get."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, ks, open_target, stage, write_files

from alluvium.errors import CommitConflict, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.keyed.plan import Asked
from alluvium.paimon.upkeep.postponed import Moving, plan_moving, totals_of
from alluvium.paimon.write.target import publish
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import Overwrite, ReadScope, Replace
from alluvium.plan.write import BUCKET_COLUMN
from alluvium.schema.arrow import to_arrow
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string())])


def make(path: Path, **options: str) -> Store:
    PaimonTable.create(url := str(path / "t"), SCHEMA, ["p"], ["k", "p"], {"bucket": "-2", **options})
    return open_store(url)


def some(*ks: int, p: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "s": "", "p": p} for k in ks]


def moving(store: Store, where: str | None = None) -> Moving:
    condition = None if where is None else parse_predicate(where, open_target(store).schema, "UTC")
    return plan_moving(load_snapshot(store), Asked(where=condition))


@pytest.mark.parametrize(
    ("options", "totals"),
    [
        ({}, [1, 1, 1]),
        ({"postpone.default-bucket-num": "4"}, [4, 4, 4]),
        ({"postpone.target-row-num-per-bucket": "2", "postpone.default-bucket-num": "4"}, [3, 1, 3]),
    ],
)
def test_partitions_get_as_many_buckets_as_options_say(
    tmp_path: Path, options: dict[str, str], totals: list[int]
) -> None:
    store = make(tmp_path, **options)
    append(open_target(store), [*some(1, 2, 3), *some(1, p="b")])
    append(open_target(store), some(4, 5))
    found = moving(store)
    assert (found.totals.to_pylist(), found.before["row_count"].to_pylist()) == (totals, [3, 1, 2])
    assert moving(store, "p = 'b'").before.num_rows == 1
    plan = found.plan_write()
    assert plan.keyed is not None and plan.keyed.is_numbered and plan.keyed.bucket == BUCKET_COLUMN
    assert (plan.keyed.waits, plan.has_buckets, plan.schema.names) == (False, True, ("k", "s", "p"))


@pytest.mark.parametrize("option", ["postpone.default-bucket-num", "postpone.target-row-num-per-bucket"])
def test_no_number_of_buckets(tmp_path: Path, option: str) -> None:
    store = make(tmp_path, **{option: "7"})
    # Whoever else made the table let it through.
    store.put("schema/schema-0", store.get("schema/schema-0").replace(b'"7"', b'"0"'))
    append(open_target(store), some(1))
    with pytest.raises(InvalidRequest) as caught:
        moving(store)
    assert caught.value.code == "invalid-bucket" and option in caught.value.message


def entries(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(ENTRIES.names) | row for row in rows], ENTRIES)


def test_partitions_keep_the_number_that_they_have(tmp_path: Path) -> None:
    snapshot = load_snapshot(make(tmp_path))
    waiting = entries({"partition": b"a", "row_count": 9}, {"partition": b"b", "row_count": 9})
    placed = {"partition": b"a", "total_buckets": 7}
    assert totals_of(snapshot, waiting, entries(placed, placed)).to_pylist() == [7, 1]
    with pytest.raises(CorruptTable) as caught:
        totals_of(snapshot, waiting, entries(placed, {**placed, "total_buckets": 8}))
    assert caught.value.code == "bucket-conflict"


def test_who_commits_later_is_later_though_clocks_went_back(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1))
    for count in (2, 3):
        target = open_target(store)
        new = stage(target, some(*range(count))).new
        entries = added_entries(target.table, new.table, new.footers)
        times = [time - dt.timedelta(hours=1) for time in entries["creation_time"].to_pylist()]
        place = entries.schema.get_field_index("creation_time")
        entries = entries.set_column(place, ENTRIES.field(place), pa.array(times, ENTRIES.field(place).type))
        assert target.snapshot is not None
        publish(store, Draft(target.table, entries), target.snapshot, target.retry)
    found = moving(store)
    assert found.before["row_count"].to_pylist() == [1, 2, 3]
    assert len(set(found.before["creation_time"].to_pylist())) == 3


def divide(store: Store, moving: Moving, rows: list[dict[str, Any]]) -> None:
    """As the verb does it, with all rows in the first bucket."""
    target, plan = open_target(store), moving.plan_write()
    assert plan.keyed is not None
    stored = [{"_KEY_k": row["k"], "_SEQUENCE_NUMBER": n, "_VALUE_KIND": 0, **row} for n, row in enumerate(rows)]
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in (*plan.keyed.stored.fields, *plan.schema.fields)])
    new = write_files(store, plan, {("a", 0): pa.Table.from_pylist(stored, schema)})
    target = replace(target, snapshot=moving.snapshot)
    target.compact(new, moving.added(new.table, new.footers), moving.before)


def read_by(store: Store, replaced: Replace) -> Overwrite:
    """Rows in the place of others that were made of them."""
    staged = stage(open_target(store), some(9), replaced)
    assert isinstance(staged, Overwrite)
    return replace(staged, read=ReadScope.table())


def test_rows_of_the_table_do_not_take_the_place_of_others_that_wait(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1))
    with pytest.raises(UnsupportedFeature) as caught:
        open_target(store).commit(read_by(store, Replace()))
    assert (caught.value.code, load_snapshot(store).version) == ("hidden-rows", 1)
    # Of nothing that was read it is an overwrite like any other.
    append(open_target(store), some(2), Replace())
    assert load_snapshot(store).version == 2


def test_rows_of_the_table_do_not_take_the_place_of_others_that_a_compaction_has_shown_since(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1))
    late = open_target(store)
    divide(store, moving(store), some(1))
    with pytest.raises(CommitConflict) as caught:
        late.commit(read_by(store, Replace()))
    assert (caught.value.code, ks(store)) == ("concurrent-append", [1])
    open_target(store).commit(read_by(store, Replace()))


def test_a_partition_is_divided_once(tmp_path: Path) -> None:
    """Who divides other rows of it at the same time has another number of buckets."""
    store = make(tmp_path)
    for k in (1, 2):
        append(open_target(store), some(k))
    both = moving(store)
    first, last = (replace(both, before=both.before.slice(n, 1), totals=both.totals.slice(n, 1)) for n in (0, 1))
    divide(store, first, some(1))
    with pytest.raises(CommitConflict) as caught:
        divide(store, replace(last, totals=pa.array([4], pa.int32())), some(2))
    assert (caught.value.code, ks(store)) == ("concurrent-delete-delete", [1])
    divide(store, last, some(2))
    assert ks(store) == [1, 2]


def test_what_is_asked_of_those_who_have_read(tmp_path: Path) -> None:
    """Rows that wait are hidden from all, new ones of vectors not from verbs."""
    store = make(tmp_path)
    append(open_target(store), some(1))
    target = open_target(store)
    for known, wanted in (
        (target, None), (replace(target, has_read=True), 1), (replace(target, kind=3), 1),
    ):  # fmt: skip
        unseen = known.plan_write(None, ()).unseen
        assert (None if unseen is None else unseen.there.plan_scan().parts[0].files.num_rows) == wanted
        assert known.plan_write(Replace(), ()).unseen is None
    url = str(tmp_path / "vectors")
    PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], {"bucket": "1", "deletion-vectors.enabled": "true"})
    append(open_target(open_store(url)), some(1))
    target = open_target(open_store(url))
    assert replace(target, has_read=True).plan_write(None, ()).unseen is not None
    assert replace(target, kind=3).plan_write(None, ()).unseen is None


def test_files_that_came_later_are_read_later(tmp_path: Path) -> None:
    store = make(tmp_path)
    for batch in ((1,), (2, 3), (4, 5, 6)):
        append(open_target(store), some(*batch))
    found = moving(store)
    assert found.before["row_count"].to_pylist() == [1, 2, 3]
    times = found.before["creation_time"].to_pylist()
    assert times == sorted(times) and isinstance(times[0], dt.datetime)


def test_a_table_gets_no_buckets_while_rows_wait_for_them(tmp_path: Path) -> None:
    store = make(tmp_path)
    table, buckets = PaimonTable.forPath(store.url), [SchemaChange.set_option("bucket", "2")]
    append(open_target(store), some(1))
    with pytest.raises(InvalidRequest) as caught:
        table.alter(buckets)
    assert caught.value.code == "bucket-change" and table.schema.options["bucket"] == "-2"
    table.alter([SchemaChange.set_option("target-file-size", "1 mb")])
    append(open_target(store), [], replace=Replace())
    assert table.alter(buckets).options["bucket"] == "2"


@pytest.mark.parametrize(
    ("rows", "options", "total"),
    [
        (0, {"postpone.target-row-num-per-bucket": "2"}, 1), (1, {"postpone.target-row-num-per-bucket": "2"}, 1),
        (2, {"postpone.target-row-num-per-bucket": "2"}, 1), (3, {"postpone.target-row-num-per-bucket": "2"}, 2),
        (4, {"postpone.target-row-num-per-bucket": "1"}, 4), (9, {"postpone.default-bucket-num": "3"}, 3),
        (9, {}, 1),
        # The table has buckets by now, and went back to a state of before.
        (9, {"bucket": "5", "postpone.default-bucket-num": "3"}, 5),
    ],
)  # fmt: skip
def test_a_partition_gets_a_bucket_for_so_many_rows(
    tmp_path: Path, rows: int, options: dict[str, str], total: int
) -> None:
    snapshot = load_snapshot(make(tmp_path))
    schema = replace(snapshot.schema, options={**snapshot.schema.options, **options})
    waiting = entries({"partition": b"a", "row_count": rows}, {"partition": b"a", "row_count": 0})
    assert totals_of(replace(snapshot, schema=schema), waiting, entries()).to_pylist() == [total, total]


def test_files_of_rows_that_came_into_buckets(tmp_path: Path) -> None:
    """They are called as data, or as what tells of changes, and say how many buckets their partition has."""
    store = make(tmp_path, **{"data-file.prefix": "rows-", "changelog-file.prefix": "log-"})
    append(open_target(store), [*some(1), *some(2, p="b")])
    found = replace(moving(store), totals=pa.array([7, 8], pa.int32()))
    plan = found.plan_write()
    assert (found.bucketing.count, [c.name for c in found.bucketing.columns]) == (1, ["k"])
    assert (plan.checks, plan.derived) == ((), ()) and plan.keyed is not None
    assert plan.keyed.kind_column is None and not plan.keyed.merge.has_retracts
    stored = [{"_KEY_k": 1, "_SEQUENCE_NUMBER": 0, "_VALUE_KIND": 0, "k": 1, "s": "", "p": p} for p in "ba"]
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in (*plan.keyed.stored.fields, *plan.schema.fields)])
    places = {(row["p"], 3): pa.Table.from_pylist([row], schema) for row in stored}
    new = write_files(store, plan, places)
    for made, prefix in ((found.added(new.table, new.footers), "rows-"), (found.told(new.table, new.footers), "log-")):
        assert made["total_buckets"].to_pylist() == [8, 7] and made["bucket"].to_pylist() == [3, 3]
        assert all(
            re.fullmatch(rf"{prefix}[0-9a-f-]{{36}}-\d\.parquet", name) for name in made["file_name"].to_pylist()
        )
