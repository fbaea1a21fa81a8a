"""Which bucket a condition names, and which files are of it."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.schema import DataField, TableSchema, parse_type
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.view.buckets import _divide_alike, in_bucket, wanted_hash
from alluvium.schema import types as t

KINDS = (
    "k INT", "l BIGINT", "i TINYINT", "s STRING", "b BOOLEAN", "d DATE", "c CHAR(3)", "f DOUBLE", "n DECIMAL(9, 2)",
    "y VARBINARY(3)", "v VARCHAR(3)",
)  # fmt: skip
FIELDS = [
    DataField(number, text.split(" ", 1)[0], parse_type(text.split(" ", 1)[1])) for number, text in enumerate(KINDS)
]


def schema_of(key: str, **options: str) -> TableSchema:
    return TableSchema.create(FIELDS, (), (), {"bucket": "4", "bucket-key": key, **options})


def hash_of(key: str, where: str, **options: str) -> int | None:
    schema = schema_of(key, **options)
    return wanted_hash(schema, parse_predicate(where, logical_schema(schema), "UTC"))


def hashed(*values: tuple[Any, pa.DataType, t.DataType]) -> int:
    arrays, types = [pa.array([v], kind) for v, kind, _ in values], [(kind, 0) for _, _, kind in values]
    return int(hash_rows(encode_rows(arrays, types))[0].as_py())


K7, SX = (7, pa.int32(), t.INTEGER), ("x", pa.string(), t.STRING)


@pytest.mark.parametrize(
    ("key", "where", "values"),
    [
        ("k", "k = 7", [K7]),
        ("k", "7 = k", [K7]),
        ("k", "k <=> 7", [K7]),
        ("k", "s = 'x' AND k = 7 AND l > 3", [K7]),
        ("k,s", "k = 7 AND s = 'x'", [K7, SX]),
        # In the order of the key, not of the condition, nor of the table.
        ("s,k", "k = 7 AND s = 'x'", [SX, K7]),
        ("l", "l = 7", [(7, pa.int64(), t.LONG)]),
        ("i", "i = 7", [(7, pa.int8(), t.BYTE)]),
        ("s", "s = ''", [("", pa.string(), t.STRING)]),
        ("v", "v = 'x'", [SX]),
        ("b", "b = true", [(True, pa.bool_(), t.BOOLEAN)]),
        ("d", "d = DATE '2024-05-09'", [(19852, pa.int32(), t.INTEGER)]),
    ],
)
def test_the_hash_of_the_only_key(key: str, where: str, values: list[tuple[Any, pa.DataType, t.DataType]]) -> None:
    assert hash_of(key, where) == hashed(*values)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("k", "l = 7"),
        ("k,s", "k = 7"),
        ("k,s", "s = 'x'"),
        ("k", "k > 7"),
        ("k", "k >= 7 AND k <= 7"),
        ("k", "k <> 7"),
        ("k", "k = 7 OR s = 'x'"),
        ("k", "NOT k = 7"),
        ("k", "k = i"),
        ("k", "k <=> NULL"),
        ("k", "k IS NULL"),
        # One byte other, and another hash: blanks of CHAR, zeros of numbers that are equal.
        ("c", "c = 'abc'"),
        ("f", "f = 7.0"),
        ("n", "n = 7.00"),
    ],
)
def test_conditions_that_leave_several_keys(key: str, where: str) -> None:
    assert hash_of(key, where) is None


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({}, True),
        ({"bucket": "1"}, True),
        ({"bucket-function.type": "default"}, True),
        ({"bucket-function.type": "mod"}, False),
        ({"bucket-function.type": "hive"}, False),
    ],
)
def test_buckets_that_are_told_by_this_hash(options: dict[str, str], known: bool) -> None:
    assert (hash_of("k", "k = 7", **options) is not None) is known


def test_without_a_number_of_buckets_nobody_asks_for_a_hash() -> None:
    """Keys have a bucket key all the same, but rows go where there is room, or wait."""
    for keys, options, known in (
        ((), {"bucket": "-1"}, False),
        ((), {}, False),
        (("k",), {"bucket": "-1"}, False),
        (("k",), {"bucket": "-2"}, False),
        (("k",), {"bucket": "1"}, True),
    ):
        schema = TableSchema.create(FIELDS, (), keys, options)
        found = wanted_hash(schema, parse_predicate("k = 7", logical_schema(schema), "UTC"))
        assert (found is not None) is known, (keys, options)


def entries(buckets: list[int], totals: list[int | None]) -> pa.Table:
    return pa.table({"bucket": pa.array(buckets, pa.int32()), "total_buckets": pa.array(totals, pa.int32())})


def test_files_of_the_bucket_of_a_hash() -> None:
    """Each by the number of buckets that its partition had; the remainder goes by the sign of the hash, as in Java."""
    lot = random.Random(5)
    for _ in range(50):
        hashed = lot.choice([lot.randint(-(1 << 31), (1 << 31) - 1), -(1 << 31), (1 << 31) - 1, 0, -1])
        totals = [lot.randint(1, 5) for _ in range(8)]
        buckets = [lot.randrange(total) for total in totals]
        found = in_bucket(entries(buckets, [*totals]), hashed)
        assert found is not None
        wanted = [buckets_of(pa.array([hashed], pa.int32()), total)[0].as_py() for total in totals]
        assert found.to_pylist() == [b == w for b, w in zip(buckets, wanted, strict=True)]


@pytest.mark.parametrize("total", [None, 0, -1])
def test_a_file_that_does_not_say_of_how_many_buckets_it_is(total: int | None) -> None:
    assert in_bucket(entries([0, 0], [2, total]), 4) is None
    found = in_bucket(entries([0, 1], [2, 1]), 4)
    assert found is not None and found.to_pylist() == [True, False]


def one_key(kind: str, number: int = 0, name: str = "k") -> TableSchema:
    return TableSchema.create([DataField(number, name, parse_type(kind))], (), (), {"bucket": "4", "bucket-key": name})


@pytest.mark.parametrize(
    ("earlier", "later", "alike"),
    [
        (one_key("INT"), one_key("INT"), True),
        (one_key("INT"), one_key("INT NOT NULL"), True),
        (one_key("INT"), one_key("INT", name="renamed"), True),
        (one_key("INT"), one_key("INT", number=1), False),
        (one_key("INT"), one_key("BIGINT"), False),
        (one_key("VARCHAR(5)"), one_key("VARCHAR(6)"), True),
        (one_key("VARCHAR(5)"), one_key("VARCHAR(5)"), True),
        (one_key("VARCHAR(5)"), one_key("VARCHAR(4)"), False),
        (one_key("CHAR(5)"), one_key("VARCHAR(5)"), False),
        (one_key("VARCHAR(5)"), one_key("STRING"), True),
        (one_key("TIMESTAMP(3)"), one_key("TIMESTAMP(6)"), False),
        (one_key("DECIMAL(9, 2)"), one_key("DECIMAL(10, 2)"), False),
        (schema_of("k,s"), schema_of("k,s"), True),
        (schema_of("k,s"), schema_of("s,k"), False),
    ],
)
def test_schemas_that_divide_alike(earlier: TableSchema, later: TableSchema, alike: bool) -> None:
    assert _divide_alike(earlier, later) is alike
