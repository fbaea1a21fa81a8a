"""Types by the names of folders; that they are Spark's is tested in tests/api/delta/upkeep/test_convert.py."""

from __future__ import annotations

import pytest

from alluvium.delta.upkeep.convert.partition_types import infer_type, log_texts
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Decimal


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "__HIVE_DEFAULT_PARTITION__"], t.INTEGER),
        (["1", "2147483648"], t.LONG),
        (["1", "99999999999999999999"], Decimal(20, 0)),
        (["1.5", "1"], t.DOUBLE),
        (["1.5", "2147483648"], t.STRING),
        (["2024-01-01", "2024-01-01 00%3A00%3A00"], t.TIMESTAMP),
        (["2024-01-01"], t.DATE),
        (["2024-01-01", "1"], t.STRING),
        (["__HIVE_DEFAULT_PARTITION__"], t.STRING),
        (["true"], t.STRING),
    ],
)
def test_inferred(values: list[str], expected: t.DataType) -> None:
    assert infer_type(values) == expected
    assert infer_type(values[::-1]) == expected


def test_texts_for_the_log() -> None:
    assert log_texts(["a%2Fb", "__HIVE_DEFAULT_PARTITION__"], t.STRING, "UTC", "p").to_pylist() == ["a/b", None]
    assert log_texts(["2024-07-01 00%3A00%3A00"], t.TIMESTAMP, "+02:00", "p").to_pylist() == [
        "2024-06-30T22:00:00.000000Z"
    ]
    with pytest.raises(InvalidRequest, match="'x' is not of type int"):
        log_texts(["1", "x"], t.INTEGER, "UTC", "p")
    with pytest.raises(UnsupportedFeature):
        log_texts(["1"], t.VARIANT, "UTC", "p")
