"""Keys without their partition: what writers ask, and whom an overwrite may not hit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import open_target

from alluvium.errors import AlluviumError, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.plan.changes import Replace
from alluvium.plan.crossing import DELETES, SKIPS, STAYS
from alluvium.plan.write import WritePlan
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
