"""Columns of Python values are those that `pa.array` makes, and nobody imports pandas for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs import columns
from alluvium.codecs.columns import boolean_column, double_column, long_column, repeated, scalar_of, string_column

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=20)
NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)
REALS = st.lists(st.none() | st.floats(allow_nan=False), max_size=20)
BOOLEANS = st.lists(st.none() | st.booleans(), max_size=20)


@pytest.mark.long
@settings(deadline=None)
@given(TEXTS, NUMBERS, REALS, BOOLEANS)
def test_columns_are_as_arrow_makes_them(texts, numbers, reals, booleans) -> None:
    for made, values, data_type in (
        (string_column(texts), texts, pa.string()),
        (long_column(numbers), numbers, pa.int64()),
        (double_column(reals), reals, pa.float64()),
        (boolean_column(booleans), booleans, pa.bool_()),
    ):
        made.validate(full=True)
        assert made.equals(pa.array(values, data_type))


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError):
        long_column([1, 2**63])
    with pytest.raises(OverflowError):
        double_column([10**400])
    assert double_column([2**53 + 1, 0.5]).to_pylist() == [float(2**53), 0.5]


def test_text_beyond_what_a_column_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MAX_BYTES", 3)
    assert string_column(["ab", "c"]).to_pylist() == ["ab", "c"]
    with pytest.raises(OverflowError):
        string_column(["ab", "cd"])


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (None, pa.date32()), (True, pa.bool_()), (7, pa.int8()), (7, pa.float64()), (2.5, pa.float64()),
        ("é", pa.string()), (b"x", pa.binary()), (2.5, pa.float32()), (None, pa.list_(pa.int32())),
    ],
)  # fmt: skip
def test_scalars_are_as_arrow_makes_them(value: object, data_type: pa.DataType) -> None:
    made = scalar_of(value, data_type)
    assert made.equals(pa.scalar(value, data_type))
    assert made.type == data_type


def test_a_value_that_does_not_fit_its_type_is_refused() -> None:
    for value, data_type in ((300, pa.int8()), (2**64, pa.int64()), ("x", pa.int64())):
        with pytest.raises((pa.ArrowException, OverflowError)):
            scalar_of(value, data_type)


def test_one_value_many_times() -> None:
    assert repeated(True, 2).to_pylist() == [True, True]
    assert repeated(False, 0).type == pa.bool_()


@pytest.mark.long
def test_a_plan_does_without_pandas(tmp_path: Path) -> None:
    """It takes a fifth of a second and 40 MB to import, and `pa.array` of a list, or `pa.scalar`, imports it."""
    program = """
import json, pathlib, sys
import alluvium
log = pathlib.Path(sys.argv[1]) / "_delta_log"
log.mkdir()
field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
            "schemaString": json.dumps({"type": "struct", "fields": [field]})}
lines = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
for n in range(3):
    stats = {"numRecords": 10, "minValues": {"id": n * 10}, "maxValues": {"id": n * 10 + 9}, "nullCount": {"id": 0}}
    lines.append({"add": {"path": f"f{n}", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True,
                          "stats": json.dumps(stats)}})
(log / f"{0:020}.json").write_text("\\n".join(map(json.dumps, lines)))
table = alluvium.open(sys.argv[1])
assert table.files().num_rows == 3
assert table.files("id > 15 and id < 18").column("path").to_pylist() == ["f1"]
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
