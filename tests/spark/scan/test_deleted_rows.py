"""Deleted rows as constants of files: bounded before they are built."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.spark.scan.deleted_rows import add_deleted_rows


def files_of(*masks: bytes | None) -> pa.Table:
    constants = pa.array([{"p": n} for n in range(len(masks))], pa.struct([("p", pa.int64())]))
    paths = [f"f{n}" for n in range(len(masks))]
    return pa.table({"path": paths, "constants": constants, "mask": pa.array(masks, pa.binary())})


def test_each_file_has_its_bits() -> None:
    found = add_deleted_rows(files_of(BitMap64([0, 9]).serialize(), None), "gone")["constants"].to_pylist()
    assert found == [{"p": 0, "gone": b"\x01\x02" + bytes(6)}, {"p": 1, "gone": bytes(8)}]


def test_too_many_are_refused_before_any_is_built() -> None:
    far = BitMap64([(1 << 31) - 200]).serialize()
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedFeature) as caught:
            add_deleted_rows(files_of(*[far] * 9), "gone")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.code == "too-many-deleted-rows"


def test_damage_names_the_file() -> None:
    with pytest.raises(CorruptTable) as caught:
        add_deleted_rows(files_of(None, BitMap64([1 << 40]).serialize()), "gone")
    assert (caught.value.code, caught.value.path) == ("damaged-bitmap", "f1")
