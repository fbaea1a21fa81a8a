"""Which parts of a plan one relation of Spark reads; no JVM."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import SCAN_FILES, FileConstant, Literal, OutputColumn, Physical, ScanPart
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.readable import ensure_readable, read_alike

OUTPUT = (
    OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),
    OutputColumn("p", t.STRING, True, FileConstant("p", t.STRING)),
)


class NoMasks:
    """Masks of a part that has none."""

    def load_masks(self, files: pa.Table) -> pa.Table:
        return files


def part(key: str) -> ScanPart:
    return ScanPart(key, SCAN_FILES.empty_table(), "parquet", Struct((Field("id", t.LONG),)), OUTPUT)


def test_what_differs_in_files_and_deleted_rows_alone() -> None:
    plain, masked = part("a"), replace(part("a/masked"), masks=NoMasks())
    assert read_alike([plain, masked]) == [(plain, masked)]
    assert read_alike([]) == []


def test_what_is_read_in_another_way_stays_apart() -> None:
    plain = part("a")
    others = [
        replace(part("b"), read_schema=Struct((Field("id", t.INTEGER),))),
        replace(part("c"), output=(OUTPUT[0], OutputColumn("p", t.STRING, True, Literal("x", t.STRING)))),
        replace(part("d"), keeps_masked=True, masks=NoMasks()),
        replace(part("e"), is_complete=False),
    ]
    again = part("f")
    assert read_alike([plain, *others, again]) == [(plain, again), *((other,) for other in others)]


def test_constants_of_other_types_stay_apart() -> None:
    """They are columns of the relation, which has one type for each."""
    constants = pa.array([], pa.struct([("p", pa.string())]))
    index = SCAN_FILES.get_field_index("constants")
    typed = replace(part("b"), files=SCAN_FILES.empty_table().set_column(index, "constants", constants))
    assert len(read_alike([part("a"), typed])) == 2


def test_a_column_that_spark_would_fill_with_numbers() -> None:
    named = replace(part("a"), read_schema=Struct((Field("_tmp_metadata_row_index", t.LONG),)))
    with pytest.raises(UnsupportedFeature) as raised:
        ensure_readable(named)
    assert (raised.value.code, raised.value.column) == ("unsupported-scan", "_tmp_metadata_row_index")
