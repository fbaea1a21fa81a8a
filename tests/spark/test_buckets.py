"""Buckets in Spark's expressions are those of the binary rows, for every type that a key may have."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.errors import UnsupportedFeature
from alluvium.plan.write import BucketColumn, Bucketing
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.spark.buckets import bucket_of

pytestmark = pytest.mark.spark

PICK = random.Random(7)
ROWS = 200


def moment() -> dt.datetime:
    return dt.datetime(1950, 1, 1) + dt.timedelta(microseconds=PICK.randint(0, 4 * 10**15))


def zoned() -> dt.datetime:
    return moment().replace(tzinfo=dt.timezone.utc)


def wide() -> Decimal:
    digits = str(PICK.randint(0, 10 ** PICK.randint(1, 37)))
    return Decimal((PICK.randint(0, 1), tuple(map(int, digits)), -10))


#: Of each column its type, precision, Spark's type, and a value.
COLUMNS: dict[str, tuple[t.DataType, int, str, Callable[[], Any]]] = {
    "bo": (t.BOOLEAN, 0, "boolean", lambda: PICK.random() < 0.5),
    "by": (t.BYTE, 0, "tinyint", lambda: PICK.randint(-128, 127)),
    "sh": (t.SHORT, 0, "smallint", lambda: PICK.randint(-(2**15), 2**15 - 1)),
    "i": (t.INTEGER, 0, "int", lambda: PICK.randint(-(2**31), 2**31 - 1)),
    "l": (t.LONG, 0, "bigint", lambda: PICK.randint(-(2**63), 2**63 - 1)),
    "f": (t.FLOAT, 0, "float", lambda: float(np.float32(PICK.gauss(0, 1e5)))),
    "d": (t.DOUBLE, 0, "double", lambda: PICK.gauss(0, 1e9)),
    "da": (t.DATE, 0, "date", lambda: dt.date(1900, 1, 1) + dt.timedelta(PICK.randint(0, 90_000))),
    "d9": (t.Decimal(9, 2), 0, "decimal(9,2)", lambda: Decimal(PICK.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-2)),
    "d38": (t.Decimal(38, 10), 0, "decimal(38,10)", wide),
    "s": (t.STRING, 0, "string", lambda: "".join(PICK.choices("abcäöü€😀 ", k=PICK.randint(0, 20)))),
    "b": (t.BINARY, 0, "binary", lambda: PICK.randbytes(PICK.randint(0, 20))),
    "t3": (t.TIMESTAMP, 3, "timestamp", zoned),
    "t6": (t.TIMESTAMP, 6, "timestamp", zoned),
    "n3": (t.TIMESTAMP_NTZ, 3, "timestamp_ntz", moment),
    "n6": (t.TIMESTAMP_NTZ, 6, "timestamp_ntz", moment),
}


def test_the_same_bucket_for_every_row(spark) -> None:
    data = {
        name: [None if PICK.random() < 0.1 else make() for _ in range(ROWS)] for name, (*_, make) in COLUMNS.items()
    }
    arrow = {name: pa.array(values, to_arrow(COLUMNS[name][0])) for name, values in data.items()}
    schema = ", ".join(f"{name} {sql}" for name, (_, _, sql, _) in COLUMNS.items())
    keys = [(name,) for name in COLUMNS] + [tuple(COLUMNS), ("s", "d38", "i"), ("b", "s", "n6", "d38", "t6", "s")]
    # So many buckets that equal ones mean equal hashes.
    asked = [Bucketing(1_000_003, tuple(BucketColumn(n, *COLUMNS[n][:2]) for n in key)) for key in keys]
    df = spark.createDataFrame(list(zip(*data.values(), strict=True)), schema).coalesce(1)
    found = df.select(*(bucket_of(spark, one).alias(f"b{i}") for i, one in enumerate(asked))).toArrow()
    for index, key in enumerate(keys):
        rows = encode_rows([arrow[name] for name in key], [COLUMNS[name][:2] for name in key])
        assert found[f"b{index}"].to_pylist() == buckets_of(hash_rows(rows), 1_000_003).to_pylist(), key


def test_more_columns_than_a_word_has_null_bits(spark) -> None:
    names = [f"c{n}" for n in range(70)]
    values = [[None if (row + n) % 3 else n * row for n in range(70)] for row in range(20)]
    df = spark.createDataFrame(values, ", ".join(f"{name} int" for name in names)).coalesce(1)
    bucketing = Bucketing(1_000_003, tuple(BucketColumn(name, t.INTEGER) for name in names))
    columns = [pa.array(column, pa.int32()) for column in zip(*values, strict=True)]
    expected = buckets_of(hash_rows(encode_rows(columns, [(t.INTEGER, 0)] * 70)), 1_000_003)
    assert [row[0] for row in df.select(bucket_of(spark, bucketing)).collect()] == expected.to_pylist()


def test_mod(spark) -> None:
    df = spark.createDataFrame([(v,) for v in (0, 5, -1, -7, 2**31 - 1, None)], "k int").coalesce(1)
    bucketing = Bucketing(3, (BucketColumn("k", t.INTEGER),), "mod")
    assert [row[0] for row in df.select(bucket_of(spark, bucketing)).collect()] == [0, 2, 2, 2, 1, 0]


def test_no_buckets_by_collections(spark) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        bucket_of(spark, Bucketing(3, (BucketColumn("l", t.Array(t.INTEGER)),)))
    assert caught.value.code == "unsupported-type"
