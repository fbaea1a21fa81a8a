"""Keys without their partition: what writers ask, and whom an overwrite may not hit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target, stage

from alluvium.errors import AlluviumError, CommitConflict, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.write.target import KEYS_MOVED
from alluvium.plan.changes import Replace
from alluvium.plan.crossing import DELETES, SKIPS, STAYS
from alluvium.plan.write import BUCKET_COLUMN, WritePlan
from alluvium.storage.open import open_store

SCHEMA = pa.schema([("k", pa.int32()), ("n", pa.int32()), ("p", pa.string())])
PARTIAL, SUMS = {"merge-engine": "partial-update"}, {"merge-engine": "aggregation"}


def planned(path: Path, replace: Replace | None = None, **options: str) -> WritePlan:
    PaimonTable.create(url := str(path / "t"), SCHEMA, ["p"], ["k"], options)
    return open_target(open_store(url)).plan_write(replace, ())


@pytest.mark.parametrize(
    ("options", "follows", "ends", "ignored"),
    [
        ({}, DELETES, (1, 3), ()),
        ({"ignore-delete": "true"}, "", (1, 3), (1, 3)),
        ({"merge-engine": "first-row"}, SKIPS, (), (1, 3)),
        (PARTIAL, STAYS, (), ()),
        ({**PARTIAL, "partial-update.remove-record-on-delete": "true"}, STAYS, (3,), ()),
        ({**SUMS, "ignore-delete": "true"}, STAYS, (), ()),
        ({**SUMS, "aggregation.remove-record-on-delete": "true"}, STAYS, (3,), ()),
    ],
)
def test_what_becomes_of_a_key_in_another_partition(
    tmp_path: Path, options: dict[str, str], follows: str, ends: tuple[int, ...], ignored: tuple[int, ...]
) -> None:
    plan = planned(tmp_path, **options)
    assert plan.crossing is not None and plan.assigned is None and plan.bucket is None
    found = plan.crossing
    assert (found.keys, found.follows, found.ends, found.ignored) == (("k",), follows, ends, ignored)
    assert (found.there, found.counts, found.rows_most) == (None, None, 2_000_000)
    brought = plan.brought("b")
    assert brought.keyed is not None and (brought.crossing, brought.keyed.bucket) == (None, "b")


def test_partitions_are_not_replaced_one_by_one(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        planned(tmp_path, Replace(dynamic=True))
    assert caught.value.code == "unsupported-overwrite"
    assert open_target(open_store(str(tmp_path / "t"))).plan_write(Replace(), ()).crossing is not None


def test_fixed_buckets_leave_a_key_in_each_partition(tmp_path: Path) -> None:
    with pytest.raises(AlluviumError) as caught:
        planned(tmp_path, bucket="2")
    assert (caught.value.code, getattr(caught.value, "features", ())) == ("unsupported-option", ("cross-partition",))


def test_rows_that_wait_leave_a_key_in_each_partition(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        planned(tmp_path, bucket="-2")
    assert (caught.value.code, caught.value.features) == ("unsupported-option", ("cross-partition",))


def test_zero_has_two_signs_in_partitions(tmp_path: Path) -> None:
    """To Spark they are one key of a group, to directories two partitions: a key would stay in the other one."""
    schema = pa.schema([("k", pa.int32()), ("p", pa.float64())])
    PaimonTable.create(url := str(tmp_path / "t"), schema, ["p"], ["k"])
    with pytest.raises(UnsupportedFeature) as caught:
        open_target(open_store(url)).plan_write(None, ())
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "p")


def test_an_overwrite_asks_for_no_keys(tmp_path: Path) -> None:
    """New rows that no compaction has shown go with all others; what was appended meanwhile does not."""
    planned(tmp_path, **{"deletion-vectors.enabled": "true"})
    store = open_store(str(tmp_path / "t"))
    append(open_target(store), [{"k": 1, "n": 1, "p": "a"}])
    late = open_target(store)
    append(open_target(store), [{"k": 2, "n": 1, "p": "b"}], Replace())
    with pytest.raises(CommitConflict) as caught:
        append(late, [{"k": 3, "n": 1, "p": "b"}], Replace())
    assert caught.value.code == "concurrent-append"


def test_who_loses_asks_again_where_keys_are(tmp_path: Path) -> None:
    planned(tmp_path)
    store = open_store(str(tmp_path / "t"))
    append(open_target(store), [{"k": 1, "n": 1, "p": "a"}])
    late, early = open_target(store), open_target(store)
    append(early, [{"k": 2, "n": 1, "p": "b"}])
    changes = stage(late, [{"k": 2, "n": 1, "p": "c"}])
    with pytest.raises(CommitConflict) as caught:
        late.commit(changes)
    assert caught.value.code == KEYS_MOVED
    found = open_target(store).plan_write(None, ()).crossing
    assert found is not None and found.there is not None and found.counts is not None
    assert sorted(tuple(row.values()) for row in found.counts.to_pylist()) == [("a", 0, 1), ("b", 0, 1)]
    (part,) = found.there.plan_scan().parts
    assert part.files["num_rows"].to_pylist() == [1, 1] and BUCKET_COLUMN in [c.name for c in part.output]
