"""Paimon tables of ORC files, written by pyarrow, and what the lane without Spark says of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from paimon_rows import append, open_target
from pyspark.sql import DataFrame

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.storage.open import open_store

NESTED = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "x", "type": "INT"},
        {"id": 1, "name": "y", "type": {"type": "ARRAY", "element": "STRING"}},
        {"id": 2, "name": "z", "type": {"type": "ROW", "fields": [{"id": 3, "name": "d", "type": "DECIMAL(20, 3)"}]}},
    ],
}
KINDS: dict[str, Any] = {
    "b": "BOOLEAN", "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "f4": "FLOAT", "f8": "DOUBLE",
    "v": "VARCHAR(20)", "s": "STRING", "bytes": "BYTES", "d9": "DECIMAL(9, 2)", "d18": "DECIMAL(18, 4)",
    "d38": "DECIMAL(38, 10)", "day": "DATE", "list": {"type": "ARRAY", "element": "BIGINT"},
    "map": {"type": "MAP", "key": "STRING", "value": NESTED}, "row": NESTED,
    "lists": {"type": "ARRAY", "element": {"type": "ARRAY", "element": NESTED}},
}  # fmt: skip
ROW = {"x": 1, "y": ["a", None, ""], "z": {"d": Decimal("-12345678901234567.891")}}
HOLLOW = {"x": None, "y": None, "z": None}
VALUES: dict[str, Sequence[Any]] = {
    "b": [True, False, None, True], "i1": [-128, 127, None, 0], "i2": [-(2**15), 2**15 - 1, None, 0],
    "i4": [-(2**31), 2**31 - 1, None, 0], "i8": [-(2**63), 2**63 - 1, None, 0],
    "f4": [1.5, float("nan"), None, -0.0], "f8": [float("nan"), -0.0, None, float("-inf")],
    "v": ["", "x" * 20, None, " ä "], "s": ["\uffff", "\U0010ffff", None, "  "], "bytes": [b"", b"\xff\x00", None, b"a"],
    "d9": [Decimal("9999999.99"), Decimal("-0.01"), None, Decimal(0)],
    "d18": [Decimal("99999999999999.9999"), Decimal("-1"), None, Decimal("0.1000")],
    "d38": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"), None, Decimal(1)],
    "day": [dt.date(1582, 10, 15), dt.date(9999, 12, 31), None, dt.date(1969, 12, 31)],
    "list": [[], [1, None, -1], None, [2**63 - 1]],
    "map": [{}, {"a": ROW, "b": None}, None, {"": HOLLOW}], "row": [ROW, HOLLOW, None, {**ROW, "z": {"d": None}}],
    "lists": [[[ROW], [], None], [[None, HOLLOW]], None, []],
}  # fmt: skip
#: Conditions on the columns above, beside their being null.
CONDITIONS = (
    "b", "i1 < 0", "i2 >= 0", "i4 in (0, 2147483647)", "i8 < 5", "f4 = 0.0", "f4 > 1", "f8 > 0", "f8 = 0.0",
    "v = ''", "v like 'x%'", "s >= '\uffff'", "s > ' '", "d9 < 0", "d18 = 0.1", "d38 > 1", "day < date'1970-01-01'",
    "day = date'9999-12-31'", "row.x = 1", "row.z.d < 0",
)  # fmt: skip


def create(url: str, kinds: Mapping[str, Any], keys: Sequence[str] = (), **options: str) -> None:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, keys, options={"file.format": "orc", **options})


def add(url: str, *rows: Mapping[str, Any]) -> None:
    """One file."""
    append(open_target(open_store(url)), rows)


def write_everything(url: str) -> None:
    """Two files of all types."""
    create(url, {"k": "INT", **KINDS, "p": "STRING"}, ["p"])
    for p in ("a", None):
        add(url, *({"k": k, "p": p, **{name: values[k] for name, values in VALUES.items()}} for k in range(4)))


def lanes(df: DataFrame) -> set[str]:
    return {scan.lane for scan in alluvium.explain(df)}


def comparable(table: pa.Table) -> list[str]:
    """Rows as texts, in order; maps by their keys."""
    return sorted(
        repr([sorted(v) if isinstance(v, list) and v and isinstance(v[0], tuple) else v for v in row.values()])
        for row in table.to_pylist()
    )


def assert_same(df: DataFrame, url: str, where: str | None = None, columns: Sequence[str] | None = None) -> None:
    """The rows are those of the lane without Spark."""
    expected = alluvium.open(url).to_arrow(columns=columns, where=where)
    frame = df if where is None else df.where(where)
    frame = frame if columns is None else frame.select(*columns)
    assert comparable(frame.toArrow()) == comparable(expected), (where, columns)


def old_days(url: str) -> None:
    create(url, {"k": "INT", "c": "DATE"})
    add(url, {"k": 1, "c": dt.date(1582, 10, 14)}, {"k": 2, "c": dt.date(2024, 1, 1)}, {"k": 3, "c": dt.date(1, 1, 1)})


def days_without_bounds(url: str) -> None:
    create(url, {"k": "INT", "c": "DATE"}, **{"fields.c.stats-mode": "counts"})
    add(url, {"k": 1, "c": dt.date(1500, 3, 10)}, {"k": 2, "c": dt.date(1500, 3, 11)})


def days_within(url: str) -> None:
    create(url, {"k": "INT", "c": {"type": "ARRAY", "element": "DATE"}})
    add(url, {"k": 1, "c": [dt.date(1000, 1, 1), None]})


def times(url: str) -> None:
    create(url, {"k": "INT", "c": "TIMESTAMP(6)", "z": "TIMESTAMP(3) WITH LOCAL TIME ZONE"})
    moment = dt.datetime(2024, 3, 31, 2, 30)
    add(url, {"k": 1, "c": moment, "z": moment.replace(tzinfo=dt.timezone.utc)}, {"k": 2})


def zoned_times_dropped(url: str) -> None:
    create(url, {"k": "INT", "z": "TIMESTAMP(3) WITH LOCAL TIME ZONE"}, **{"orc.timestamp-ltz.legacy.type": "false"})
    add(url, {"k": 1, "z": dt.datetime(2024, 3, 31, tzinfo=dt.timezone.utc)}, {"k": 2})
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("z")])


#: Instants of all seasons.
YEAR = [dt.datetime(2024, month, 1, 12, 30, 0, 123456, dt.timezone.utc) for month in range(1, 13)]


def instants(url: str, **options: str) -> None:
    """`YEAR` in a column `z`."""
    create(url, {"k": "INT", "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}, **options)
    add(url, *({"k": n, "z": moment} for n, moment in enumerate(YEAR)))


def fine_zoned_times_dropped(url: str) -> None:
    create(url, {"k": "INT", "z": "TIMESTAMP(9) WITH LOCAL TIME ZONE"}, **{"orc.timestamp-ltz.legacy.type": "false"})
    add(url, {"k": 1, "z": dt.datetime(2024, 3, 31, tzinfo=dt.timezone.utc)}, {"k": 2})
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("z")])


def names_of_one_spelling(url: str) -> None:
    create(url, {"k": "INT", "c": "INT", "C": "INT"})
    add(url, {"k": 1, "c": 2, "C": 3})
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("c")])


def names_as_of_hive(url: str) -> None:
    create(url, {"_col0": "INT", "_col1": "INT"})
    add(url, {"_col0": 1, "_col1": 2})
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("_col0")])


def names_with_backticks(url: str) -> None:
    create(url, {"a": "INT", "a`b": "INT"})
    add(url, {"a": 1, "a`b": 2})


def names_as_of_transactions(url: str) -> None:
    names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
    create(url, {name: NESTED if name == "row" else "INT" for name in names})
    add(url, {**dict.fromkeys(names, 7), "row": ROW}, {"bucket": 1})


#: Tables that Spark's own reader of ORC would misread, with what is said of them.
MISREAD = {
    old_days: "before 1582", days_without_bounds: "before 1582", days_within: "before 1582", times: "timestamps",
    zoned_times_dropped: "time zone", fine_zoned_times_dropped: "time zone", names_of_one_spelling: "case alone", names_as_of_hive: "_col",
    names_with_backticks: "backtick", names_as_of_transactions: "transactions",
}  # fmt: skip
