"""Which parts of a plan one relation of Spark reads; no JVM."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import SCAN_FILES, FileConstant, Literal, OutputColumn, Physical, RowPosition, ScanPart
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Struct
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
    known = replace(part("b"), held=plain.read_schema, earliest_date=dt.date(2000, 1, 1))
    assert read_alike([plain, known]) == [(plain, known)]
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


def test_what_the_reader_of_orc_reads() -> None:
    held = Struct((Field("id", t.LONG), Field("other", t.TIMESTAMP_NTZ), Field("p", t.STRING)))
    ensure_readable(replace(part("a"), file_format="orc", held=held))
    days = Struct((Field("id", t.DATE),))
    for earliest in (dt.date(1582, 10, 15), dt.date.max):
        ensure_readable(replace(part("a"), file_format="orc", held=days, read_schema=days, earliest_date=earliest))


def named(*names: str) -> Struct:
    return Struct(tuple(Field(name, t.LONG) for name in names))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"held": None}, "not known"),
        ({"held": Struct((Field("a", Array(t.TIMESTAMP)),))}, "time zone"),
        ({"held": named("_col0", "_col1")}, "_col"),
        ({"held": named("id", "Id")}, "case alone"),
        ({"held": Struct((Field("id", Array(named("a`b"))),))}, "backtick"),
        ({"held": Struct((Field("a", Array(Array(named("x", "X")))),))}, "case alone"),
        ({"read_schema": Struct((Field("id", Array(t.TIMESTAMP_NTZ)),))}, "timestamps"),
        ({"read_schema": Struct((Field("id", t.DATE),))}, "may be before"),
        ({"read_schema": Struct((Field("id", t.DATE),)), "earliest_date": dt.date(1582, 10, 14)}, "are before"),
        ({"masks": NoMasks()}, "positions"),
        ({"output": (OutputColumn("n", t.LONG, False, RowPosition()),)}, "positions"),
    ],
)
def test_what_the_reader_of_orc_would_misread(changed: dict[str, Any], problem: str) -> None:
    odd = replace(part("a"), **{"file_format": "orc", "held": named("id", "p"), **changed})
    with pytest.raises(UnsupportedFeature) as raised:
        ensure_readable(odd)
    assert raised.value.code == "unsupported-scan" and problem in raised.value.message
    if changed.keys() != {"masks"} and problem != "positions":
        # Files of Parquet say themselves what is in them.
        ensure_readable(replace(odd, file_format="parquet"))
