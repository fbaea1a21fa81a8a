"""Parts of a plan: which rows their masks leave, and who is asked for masks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from alluvium.plan.scan import SCAN_FILES, KeyMerge, MergeRule, OutputColumn, Physical, ScanPart, ScanPlan, SortColumn
from alluvium.schema.types import LONG, Field, Struct

READ = Struct((Field("a", LONG),))
OUTPUT = (OutputColumn("a", LONG, True, Physical(("a",), LONG)),)


@dataclass
class Masks:
    """Masks that lie elsewhere; counts who asks."""

    asked: list[int] = field(default_factory=list)

    def load_masks(self, files: pa.Table) -> pa.Table:
        self.asked.append(files.num_rows)
        place = files.schema.get_field_index("mask")
        return files.set_column(place, files.schema.field(place), pa.array([b"m"] * files.num_rows, pa.binary()))


def part(*masks: bytes | None) -> ScanPart:
    rows = [
        {"path": f"f{n}", "size": 1, "modification_time_ms": 0, "num_rows": 2, "constants": {}, "mask": mask}
        for n, mask in enumerate(masks)
    ]
    return ScanPart("k", pa.Table.from_pylist(rows, schema=SCAN_FILES), "parquet", READ, OUTPUT)


def test_what_is_masked() -> None:
    assert not part(None, None).is_masked
    assert not part().is_masked
    assert part(None, b"m").is_masked
    assert part(b"m", b"m").is_masked
    assert replace(part(None), masks=Masks()).is_masked
    assert replace(part(None), keeps_masked=True).is_masked


def test_masks_are_loaded_for_files_that_will_be_read() -> None:
    plain = part(None, b"m")
    assert plain.load_masks(plain.files) is plain.files
    masks = Masks()
    masked = replace(plain, masks=masks)
    assert masked.load_masks(masked.files)["mask"].to_pylist() == [b"m", b"m"]
    assert masked.load_masks(masked.files.slice(1))["mask"].to_pylist() == [b"m"]
    nothing = masked.files.slice(0, 0)
    assert masked.load_masks(nothing) is nothing
    assert masks.asked == [2, 1]


def test_parts_are_whole_and_rows_independent_unless_they_say_otherwise() -> None:
    one = part()
    assert (one.merge, one.masks, one.keeps_masked, one.is_complete) == (None, None, False, True)
    merge = KeyMerge("g", ("k",), (SortColumn("s"),), None, "deduplicate")
    assert (merge.ignores_delete, merge.removes_on_delete, merge.keeps_deletes, merge.has_retracts) == (
        False,
        False,
        False,
        True,
    )
    assert (merge.rules, merge.removing_groups, SortColumn("s").descending) == ((), (), False)
    rule = MergeRule("v", "sum")
    assert (rule.parameters, rule.ignores_retract, rule.sequence) == ((), False, ())
    plan = ScanPlan("memory:t", (one,), READ)
    assert (plan.partition_columns, plan.skipped) == ((), ())
