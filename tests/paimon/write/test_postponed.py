"""Rows that wait for a bucket: where and how they are written, and who sees them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    PaimonTable.create(url := str(tmp_path / "t"), SCHEMA, ["p"], ["k", "p"], {"bucket": "-2"})
    return open_store(url)


def some(*ks: int, p: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "s": "", "p": p} for k in ks]


def test_files_of_a_job_are_of_one_writer_and_have_no_statistics(store: Store) -> None:
    append(open_target(store), [*some(2, 1), *some(3, p="b")])
    entries = load_snapshot(store).entries
    assert (entries["bucket"].to_pylist(), entries["total_buckets"].to_pylist()) == ([-2, -2], [-2, -2])
    assert entries["value_stats_cols"].to_pylist() == [[], []]
    # `PostponeBucketFileStoreWrite.getWriteId`: what stands between the last "-s-" and "-w-".
    names = [re.fullmatch(r"(data--u-[0-9a-f-]{36}-s-\d+-w-).*\.parquet", n) for n in entries["file_name"].to_pylist()]
    assert all(names) and len({name[1] for name in names if name}) == 1
    paths = [info.path for info in store.list_tree("") if info.path.endswith(".parquet")]
    assert [path.rpartition("/")[0] for path in sorted(paths)] == ["p=a/bucket-postpone", "p=b/bucket-postpone"]


def test_nobody_sees_them_and_overwrites_take_them(store: Store) -> None:
    append(open_target(store), some(1, 2))
    assert alluvium.open(store.url).to_arrow().num_rows == 0
    assert alluvium.open(store.url).system("partitions").num_rows == 0
    append(open_target(store), some(3), Replace())
    assert load_snapshot(store).entries["row_count"].to_pylist() == [1]


def test_a_plan_neither_merges_nor_divides(store: Store) -> None:
    plan = open_target(store).plan_write(None, ())
    assert plan.keyed is not None and plan.keyed.waits and plan.keyed.first_numbers is None
    assert (plan.has_buckets, plan.bucket, plan.assigned) == (False, None, None)
