"""Which rows wait, in which order they came, and how many buckets their partitions get."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.keyed.plan import Asked
from alluvium.paimon.upkeep.postponed import Moving, plan_moving, totals_of
from alluvium.plan.write import BUCKET_COLUMN
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
    store = make(tmp_path, **{option: "0"})
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


def test_files_that_came_later_are_read_later(tmp_path: Path) -> None:
    store = make(tmp_path)
    for ks in ((1,), (2, 3), (4, 5, 6)):
        append(open_target(store), some(*ks))
    found = moving(store)
    assert found.before["row_count"].to_pylist() == [1, 2, 3]
    times = found.before["creation_time"].to_pylist()
    assert times == sorted(times) and isinstance(times[0], dt.datetime)
