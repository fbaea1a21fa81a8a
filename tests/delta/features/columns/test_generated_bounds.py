"""Bounds out of partition values: exactly which, and that no value ever lies outside of them, whatever the writer's zone."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_config
from mapped_table import features

from alluvium.codecs.temporal_text import parse_zone
from alluvium.delta.features.columns.generated_columns import KEY
from alluvium.delta.features.columns.generated_partitions import (
    DerivedStatistics,
    PartitionsOnly,
    generated_origins,
    origins_named,
)
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR, parse_fields
from alluvium.schema.types import Field, Struct

UTC = dt.timezone.utc
PROTOCOL = features("generatedColumns", "timestampNtz")
COLUMNS = Struct(tuple(parse_fields(
    "ts timestamp, tn timestamp_ntz, d date, s string, i int, l bigint, n decimal(5,2), x double, b boolean, r struct<d: date>"
)))  # fmt: skip
DAY, HOUR, MICRO = dt.timedelta(days=1), dt.timedelta(hours=1), dt.timedelta(microseconds=1)


@dataclass
class Files:
    """Implements `FileStatistics` for files of which some columns are told."""

    columns: dict[tuple[str, ...], pa.Array]
    lows: dict[tuple[str, ...], pa.Array] = field(default_factory=dict)
    highs: dict[tuple[str, ...], pa.Array] = field(default_factory=dict)
    nulls: dict[tuple[str, ...], pa.Array] = field(default_factory=dict)

    @property
    def num_files(self) -> int:
        return len(next(iter(self.columns.values())))

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return self.columns.get(path)

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return self.lows.get(path)

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return self.highs.get(path)

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return self.nulls.get(path)

    def num_rows(self) -> pa.Array | None:
        return pa.array([9] * self.num_files)


def derived(partitions: list[tuple[t.DataType, str, list[Any]]], statistics: Files | None = None) -> DerivedStatistics:
    """Files of these partition values: type, expression, values."""
    names = [f"p{n}" for n in range(len(partitions))]
    own = [Field(name, kind, True, {KEY: sql}) for name, (kind, sql, _) in zip(names, partitions, strict=True)]
    config = make_config(Struct((*COLUMNS.fields, *own)), names, {}, PROTOCOL)
    arrays = {
        (name,): pa.array(values, to_arrow(kind)) for name, (kind, _, values) in zip(names, partitions, strict=True)
    }
    return DerivedStatistics(PartitionsOnly(Files(arrays)), statistics, generated_origins(config))


def bounds(found: DerivedStatistics, *path: str) -> list[tuple[Any, Any]] | None:
    low, high = found.lower(path), found.upper(path)
    assert (low is None) == (high is None)
    return None if low is None or high is None else list(zip(low.to_pylist(), high.to_pylist(), strict=True))


def at(*parts: int, zone: Any = None) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=zone)  # type: ignore[misc,arg-type]


def spread(low: dt.datetime, end: dt.datetime, by: dt.timedelta = 18 * HOUR) -> tuple[dt.datetime, dt.datetime]:
    return (low - by).replace(tzinfo=UTC), (end - MICRO + by).replace(tzinfo=UTC)


def local(column: str, low: dt.datetime, end: dt.datetime) -> tuple[Any, Any]:
    last = end - MICRO
    if column == "d":
        return low.date(), last.date()
    return (low, last) if column == "tn" else spread(low, end)


D, FEB = dt.date(2024, 2, 29), dt.date(2024, 2, 1)
UNITS = {"year": 366, "YYYY": 366, "yy": 366, "quarter": 92, "month": 31, "MM": 31, "mon": 31, "week": 7}
CASES: list[tuple[str, str, t.DataType, Any, tuple[Any, Any]]] = [
    *((c, f"cast({c} as date)", t.DATE, D, local(c, at(2024, 2, 29), at(2024, 3, 1))) for c in ("ts", "tn")),
    ("ts", "to_date(ts)", t.DATE, D, local("ts", at(2024, 2, 29), at(2024, 3, 1))),
    *((c, f"trunc({c}, '{unit}')", t.DATE, FEB, local(c, at(2024, 2, 1), at(2024, 2, 1) + days * DAY))
      for c in ("ts", "tn", "d") for unit, days in UNITS.items()),
    *(("ts", f"date_trunc('{unit}', ts)", t.TIMESTAMP, at(2024, 2, 1, zone=UTC),
       (at(2024, 2, 1, zone=UTC), at(2024, 2, 1, zone=UTC) + days * DAY + 26 * HOUR)) for unit, days in (*UNITS.items(), ("day", 1), ("DD", 1))),
    *(("ts", f"date_trunc('{unit}', ts)", t.TIMESTAMP, at(2024, 2, 1, zone=UTC),
       (at(2024, 2, 1, zone=UTC), at(2024, 2, 1, zone=UTC) + length + HOUR))
      for unit, length in (("hour", HOUR), ("minute", dt.timedelta(minutes=1)), ("SECOND", dt.timedelta(seconds=1)))),
    ("ts", "date_trunc('hour', ts)", t.TIMESTAMP, at(1899, 12, 31, 23, zone=UTC), (at(1899, 12, 31, 23, zone=UTC), at(1900, 1, 2, 2, zone=UTC))),
    ("ts", "date_trunc('hour', ts)", t.TIMESTAMP, at(1900, 1, 1, zone=UTC), (at(1900, 1, 1, zone=UTC), at(1900, 1, 1, 2, zone=UTC))),
    ("tn", "date_trunc('day', tn)", t.TIMESTAMP, at(2024, 2, 1, zone=UTC), (at(2024, 2, 1) - 44 * HOUR, at(2024, 2, 2) + 70 * HOUR - MICRO)),
    ("d", "date_trunc('month', d)", t.TIMESTAMP, at(2024, 2, 1, zone=UTC), (dt.date(2024, 1, 30), dt.date(2024, 3, 5))),
    ("ts", "date_format(ts, 'yyyy-MM-dd')", t.STRING, "2024-02-29", spread(at(2024, 2, 29), at(2024, 3, 1))),
    ("ts", "date_format(ts, 'yyyyMMddHHmmss')", t.STRING, "20240229235958", spread(at(2024, 2, 29, 23, 59, 58), at(2024, 2, 29, 23, 59, 59))),
    ("tn", "date_format(tn, 'yyyy-MM')", t.STRING, "2024-02", (at(2024, 2, 1) - 44 * HOUR, at(2024, 3, 1) + 44 * HOUR - MICRO)),
    ("d", "date_format(d, 'yyyy')", t.STRING, "2024", (dt.date(2023, 12, 30), dt.date(2025, 1, 2))),
    ("s", "substring(s, 1, 3)", t.STRING, "ab", ("ab", "ab")), ("s", "substring(s, 0, 2)", t.STRING, "ab", ("ab", "ab" + "\U0010ffff" * 64)),
    ("s", "left(s, 1)", t.STRING, "a", ("a", "a" + "\U0010ffff" * 64)), ("s", "s", t.STRING, "a", ("a", "a")), ("i", "i", t.INTEGER, 7, (7, 7)),
    ("l", "l", t.LONG, 7, (7, 7)), ("n", "n", COLUMNS.fields[6].type, 7, (7, 7)), ("d", "d", t.DATE, D, (D, D)), ("tn", "tn", t.TIMESTAMP_NTZ, at(2024, 1, 1), (at(2024, 1, 1),) * 2),
    ("ts", "ts", t.TIMESTAMP, at(2024, 1, 1, zone=UTC), (at(2024, 1, 1, zone=UTC),) * 2),
    *((c, f"year({c})", t.INTEGER, 2024, local(c, at(2024, 1, 1), at(2025, 1, 1))) for c in ("ts", "tn", "d")),
]  # fmt: skip


@pytest.mark.parametrize(("column", "sql", "kind", "value", "expected"), CASES, ids=[case[1] for case in CASES])
def test_bounds_of_one_value(column: str, sql: str, kind: t.DataType, value: Any, expected: tuple[Any, Any]) -> None:
    found = derived([(kind, sql, [value, None, value])])
    assert bounds(found, column) == [expected, (None, None), expected]
    # The expressions are null where the column is.
    nulls = found.null_count((column,))
    assert nulls is not None and nulls.to_pylist() == [0, None, 0]
    assert found.exact((column,)) is None and found.exact(("p0",)) is not None and found.num_files == 3


@pytest.mark.parametrize(
    ("sql", "kind", "column"),
    [
        ("month(tn)", t.INTEGER, "tn"), ("day(tn)", t.INTEGER, "tn"), ("hour(tn)", t.INTEGER, "tn"), ("minute(tn)", t.INTEGER, "tn"),
        ("date_format(tn, 'MM-yyyy')", t.STRING, "tn"), ("date_format(tn, 'yyyy-dd')", t.STRING, "tn"),
        ("substring(s, 2, 3)", t.STRING, "s"), ("substring(s, 1, 0)", t.STRING, "s"), ("substring(s, 1)", t.STRING, "s"),
        ("substring(cast(i as string), 1, 2)", t.STRING, "i"), ("x", t.DOUBLE, "x"), ("b", t.BOOLEAN, "b"), ("cast(i as string)", t.STRING, "i"),
        ("i", t.LONG, "i"), ("cast(ts as date)", t.STRING, "ts"), ("date_trunc('day', ts)", t.DATE, "ts"), ("i + 1", t.INTEGER, "i"),
        ("date_format(ts, 'yyyy')", t.INTEGER, "ts"), ("substring(s, 1, 2)", t.BINARY, "s"), ("cast(s as date)", t.DATE, "s"), ("upper(s)", t.STRING, "s"),
    ],
)  # fmt: skip
def test_what_says_nothing(sql: str, kind: t.DataType, column: str) -> None:
    values = {t.STRING: "2024-01", t.BINARY: b"a", t.DATE: D, t.DOUBLE: 1.0, t.BOOLEAN: True}
    found = derived([(kind, sql, [values.get(kind, 3)])])
    assert bounds(found, column) is None and found.null_count((column,)) is None


@pytest.mark.parametrize(
    ("texts", "low", "end"),
    [
        (("2024",), (2024, 1, 1), (2025, 1, 1)), (("2024", "2"), (2024, 2, 1), (2024, 3, 1)), (("2024", "12"), (2024, 12, 1), (2025, 1, 1)),
        (("2024", "2", "29"), (2024, 2, 29), (2024, 3, 1)), (("2024", "2", "29", "23"), (2024, 2, 29, 23), (2024, 3, 1)), (("1",), (1, 1, 1), (2, 1, 1)),
        (("9998",), (9998, 1, 1), (9999, 1, 1)), (("9999",), None, None), (("0",), None, None), (("2024", "13"), None, None), (("2023", "2", "29"), None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("column", ["tn", "d"])
def test_years_months_days_and_hours(texts: tuple[str, ...], low: Any, end: Any, column: str) -> None:
    parts = [
        (t.INTEGER, f"{unit}({column})", [int(text)])
        for unit, text in zip(("year", "month", "day", "hour"), texts, strict=False)
    ]
    expected = (None, None) if low is None else local(column, at(*low), at(*end))
    assert bounds(derived(parts), column) == [expected]
    assert bounds(derived(parts[::-1]), column) == [expected]


def test_parts_that_are_missing() -> None:
    """What comes behind a gap says nothing, and what begins with a gap neither."""
    year, month, day, hour = (
        (t.INTEGER, f"{unit}(tn)", [value]) for unit, value in (("year", 2024), ("month", 2), ("day", 3), ("hour", 4))
    )
    whole = [(at(2024, 1, 1), at(2025, 1, 1) - MICRO)]
    for parts in ([year, day], [year, hour], [year, day, hour]):
        assert bounds(derived(parts), "tn") == whole
    assert bounds(derived([year, month, hour]), "tn") == [(at(2024, 2, 1), at(2024, 3, 1) - MICRO)]
    for parts in ([month, day], [day], [month, day, hour]):
        assert bounds(derived(parts), "tn") is None
    # A null among them leaves nothing.
    assert bounds(derived([year, (t.INTEGER, "month(tn)", [None])]), "tn") == [(None, None)]
    # A column of texts is none that Spark generates from a month.
    assert bounds(derived([year, (t.STRING, "month(tn)", ["2"]), day]), "tn") == [(None, None)]
    found = derived([year, (t.INTEGER, "month(tn)", [None])]).null_count(("tn",))
    assert found is not None and found.to_pylist() == [0]


@pytest.mark.parametrize(
    "text",
    ["", "x", "202", "2024-1", "2024-123", "20-24", "-2024", "2024-13", "2023-02-29", "+2024", "2024-01-01-01-01-61"],
)
def test_texts_of_no_time(text: str) -> None:
    assert bounds(derived([(t.STRING, "date_format(tn, 'yyyy-MM-dd')", [text])]), "tn") == [(None, None)]


def test_several_columns_of_one_origin_and_statistics_beside_them() -> None:
    parts = [(t.INTEGER, "year(tn)", [2024, 2024, None]), (t.DATE, "cast(tn as date)", [D, None, None])]
    day, year = local("tn", at(2024, 2, 29), at(2024, 3, 1)), local("tn", at(2024, 1, 1), at(2025, 1, 1))
    assert bounds(derived(parts), "tn") == [day, year, (None, None)]
    kind, path = to_arrow(t.TIMESTAMP_NTZ), ("tn",)
    noon, long_ago, late = at(2024, 2, 29, 12), at(1999, 1, 1), at(2099, 1, 1)
    known = Files({("p",): pa.nulls(3)}, {path: pa.array([noon, long_ago, long_ago], kind)}, {path: pa.array([late, noon, None], kind)},
                  {path: pa.array([5, None, 5])})  # fmt: skip
    found = derived(parts, known)
    assert bounds(found, "tn") == [(noon, day[1]), (year[0], noon), (long_ago, None)]
    nulls, rows = found.null_count(path), found.num_rows()
    assert nulls is not None and nulls.to_pylist() == [0, 0, 5] and rows is not None and len(rows) == 3
    # Of other columns, what the statistics say.
    assert found.lower(("s",)) is None and derived(parts).num_rows() is None
    other = Files(
        {("p",): pa.nulls(3)}, {("s",): pa.array(["a"] * 3)}, {("s",): pa.array(["b"] * 3)}, {("s",): pa.array([1] * 3)}
    )
    assert bounds(derived(parts, other), "s") == [("a", "b")] * 3
    again = derived(parts, other).null_count(("s",))
    assert again is not None and again.to_pylist() == [1] * 3


def test_origins_of_nobody() -> None:
    plain = [(t.INTEGER, "i", [1])]
    assert bounds(derived(plain), "i") == [(1, 1)]
    own = Field("p0", t.INTEGER, True, {KEY: "i"})
    schema = Struct((*COLUMNS.fields, own))
    assert generated_origins(make_config(schema, ["p0"], {}, features("timestampNtz"))) == ()
    assert generated_origins(make_config(schema, [], {}, PROTOCOL)) == ()
    padded = replace(own, type=t.STRING, metadata={KEY: "s", CHAR_VARCHAR: "char(3)"})
    assert generated_origins(make_config(Struct((*COLUMNS.fields, padded)), ["p0"], {}, PROTOCOL)) == ()
    for sql in (5, None, "nowhere", "i) IS NULL OR (i", "("):
        odd = replace(own, metadata={KEY: sql} if sql is not None else {})
        assert generated_origins(make_config(Struct((*COLUMNS.fields, odd)), ["p0"], {}, PROTOCOL)) == ()
    (origin,) = generated_origins(make_config(schema, ["p0"], {}, PROTOCOL))
    assert origins_named([origin], [("i",), ("s",)]) == (origin,) and origins_named([origin], [("p0",)]) == ()
    deep = make_config(
        Struct((*COLUMNS.fields, replace(own, type=t.DATE, metadata={KEY: "r.d"}))), ["p0"], {}, PROTOCOL
    )
    assert [one.path for one in generated_origins(deep)] == [("r", "d")]


def test_no_files() -> None:
    assert bounds(derived([(t.INTEGER, "year(tn)", []), (t.INTEGER, "month(tn)", [])]), "tn") == []


# -- beside values ----------------------------------------------------------------------------------------------------


def moments(lot: random.Random) -> list[dt.datetime]:
    edges = [
        at(2024, 3, 31, 1),
        at(2024, 10, 27, 1),
        at(2011, 12, 30, 10),
        at(1969, 12, 31, 23),
        at(2024, 2, 29),
        at(2024, 12, 31, 23),
    ]
    near = [edge + dt.timedelta(seconds=lot.randint(-90_000, 90_000)) for edge in edges for _ in range(4)]
    return near + [at(1901, 1, 1) + dt.timedelta(seconds=lot.randint(0, 5 * 10**9)) for _ in range(12)]


FLOORS = {
    "year": lambda v: v.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
    "quarter": lambda v: v.replace(month=(v.month - 1) // 3 * 3 + 1, day=1, hour=0, minute=0, second=0, microsecond=0),
    "month": lambda v: v.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
    "week": lambda v: v.replace(hour=0, minute=0, second=0, microsecond=0) - v.weekday() * DAY,
    "day": lambda v: v.replace(hour=0, minute=0, second=0, microsecond=0),
    "hour": lambda v: v.replace(minute=0, second=0, microsecond=0),
}


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Paris", "Pacific/Apia", "America/St_Johns", "+18:00", "-18:00", "Asia/Kathmandu"]
)
def test_no_value_lies_outside(name: str) -> None:
    zone = parse_zone(name)
    assert zone is not None
    values = [moment.replace(tzinfo=UTC) for moment in moments(random.Random(name))]
    clocks = [value.astimezone(zone).replace(tzinfo=None) for value in values]
    told: list[tuple[t.DataType, str, list[Any]]] = [
        (t.DATE, "cast(ts as date)", [clock.date() for clock in clocks]),
        *((t.DATE, f"trunc(ts, '{unit}')", [FLOORS[unit](clock).date() for clock in clocks]) for unit in ("year", "quarter", "month", "week")),
        *((t.TIMESTAMP, f"date_trunc('{unit}', ts)", [floored(clock, value, zone, unit) for clock, value in zip(clocks, values, strict=True)])
          for unit in FLOORS),
        *((t.STRING, f"date_format(ts, '{pattern}')", [clock.strftime(python) for clock in clocks])
          for pattern, python in (("yyyy", "%Y"), ("yyyy-MM", "%Y-%m"), ("yyyyMMdd", "%Y%m%d"), ("yyyy-MM-dd HH:mm", "%Y-%m-%d %H:%M"))),
    ]  # fmt: skip
    for one in told:
        found = bounds(derived([one]), "ts")
        assert found is not None
        for value, (low, high) in zip(values, found, strict=True):
            assert low <= value <= high, (one[1], value)
    parts = [
        (t.INTEGER, f"{unit}(ts)", [getattr(clock, unit) for clock in clocks])
        for unit in ("year", "month", "day", "hour")
    ]
    for count in range(1, 5):
        found = bounds(derived(parts[:count]), "ts")
        assert found is not None
        assert all(low <= value <= high for value, (low, high) in zip(values, found, strict=True))
    # Times without a zone are those of the clock.
    for kind, sql, some in told[:5]:
        found = bounds(derived([(kind, sql.replace("ts", "tn"), some)]), "tn")
        assert found is not None
        assert all(low <= clock <= high for clock, (low, high) in zip(clocks, found, strict=True))


def floored(clock: dt.datetime, value: dt.datetime, zone: dt.tzinfo, unit: str) -> dt.datetime:
    """As Spark: the beginning of the unit by the clock, with the value's own side of a repeated hour where it is there."""
    start = FLOORS[unit](clock)
    options = [start.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    return max((one for one in options if one <= value), default=min(options))
