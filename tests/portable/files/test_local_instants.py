"""Instants of ORC files that go by the clock of a Java in another zone: the right ones, or an error."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from orc_of_java import java_file, stored_by_clock

from alluvium.codecs.footers.orc_writer_clock import WriterClock
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.local_instants import KnownInstants, holds_instants, shown_as_utc
from alluvium.portable.files.orc_file import open_orc

UTC = dt.timezone.utc
YEAR = [dt.datetime(2024, month, 1, 12, 30, 0, 123456, UTC) for month in range(1, 13)]
WEEK = [dt.datetime(2024, 6, 1 + day, 12, 30, tzinfo=UTC) for day in range(6)]
KIND = pa.timestamp("us", "UTC")


def micros(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(microseconds=1)


def ends(values: Sequence[dt.datetime]) -> Mapping[str, tuple[int, int]]:
    return {"z": (micros(min(values)), micros(max(values)))}


def read(data: bytes, known: KnownInstants | None, column: str = "z") -> list:
    file = open_orc("f.orc", pa.BufferReader(data), known)
    return pa.chunked_array([batch[column] for _, batch in file.batches({column: column}, 5)]).to_pylist()


def written(values: Sequence[dt.datetime | None], zone: str, told: str | None = None) -> bytes:
    return java_file(pa.table({"z": stored_by_clock(pa.array(values, KIND), zone)}), told)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai", "Europe/London", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("values", [YEAR, WEEK, [None, *YEAR, None]], ids=["year", "week", "nulls"])
def test_the_writers_zone(zone: str, values: list) -> None:
    """As the file tells it, and as the reader's: with the bounds of the manifest and without."""
    true = ends([v for v in values if v is not None])
    assert read(written(values, zone, zone), KnownInstants("Australia/Sydney", {})) == values
    assert read(written(values, zone, zone), KnownInstants("Australia/Sydney", true)) == values
    assert read(written(values, zone), KnownInstants(zone, true)) == values
    assert read(written(values, zone), KnownInstants(zone, {})) == values


@pytest.mark.parametrize("reader", ["Asia/Shanghai", "America/New_York", "UTC", "GMT+08:00"])
def test_a_writer_in_utc(reader: str) -> None:
    """The bounds tell that the reader's zone is not the writer's."""
    assert read(written(YEAR, "UTC"), KnownInstants(reader, ends(YEAR))) == YEAR


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_few_days_tell_the_zone(zone: str) -> None:
    assert read(written(WEEK, zone), KnownInstants("UTC", ends(WEEK))) == WEEK
    assert read(written(WEEK, zone), KnownInstants("Europe/Berlin", ends(WEEK))) == WEEK


@pytest.mark.parametrize(
    ("values", "reader", "bounds"),
    [
        (YEAR, "UTC", ends(YEAR)),
        (YEAR, "Asia/Shanghai", ends(YEAR)),
        # What lies beside the bounds is of other days.
        (YEAR[:2], "UTC", ends(YEAR[:2])),
        # A zone that nobody knows.
        (WEEK, "Nowhere/Here", {}),
    ],
)
def test_zones_that_nobody_can_tell(values: list, reader: str, bounds: Mapping[str, tuple[int, int]]) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        read(written(values, "America/New_York"), KnownInstants(reader, bounds))
    assert (caught.value.code, caught.value.path) == ("unknown-writer-zone", "f.orc")
    assert "spark.sql.session.timeZone" in str(caught.value)


def test_columns_without_bounds_need_a_zone() -> None:
    """Within lists nobody keeps bounds: what is known of another column says nothing of their days."""
    stored = stored_by_clock(pa.array(WEEK, KIND), "America/New_York")
    lists = pa.array([[v] for v in YEAR[:6]], pa.list_(KIND))
    data = java_file(pa.table({"z": stored, "a": stored_by_clock(lists, "America/New_York")}), None)
    assert read(data, KnownInstants("UTC", ends(WEEK))) == WEEK
    with pytest.raises(UnsupportedFeature):
        read(data, KnownInstants("UTC", ends(WEEK)), "a")
    assert read(data, KnownInstants("America/New_York", ends(WEEK)), "a") == lists.to_pylist()


def test_columns_without_values_need_none() -> None:
    stored = stored_by_clock(pa.array(WEEK, KIND), "America/New_York")
    none = pa.nulls(6, pa.list_(KIND))
    file = open_orc("f.orc", pa.BufferReader(java_file(pa.table({"z": stored, "none": none}), None)),
                    KnownInstants("UTC", ends(WEEK)))  # fmt: skip
    ((_, batch),) = file.batches({"z": "z", "none": "none"}, 100)
    assert (batch["z"].to_pylist(), batch["none"].to_pylist()) == (WEEK, [None] * 6)


def test_instants_at_any_depth() -> None:
    kind = pa.list_(pa.struct([("m", pa.map_(pa.string(), KIND)), ("n", pa.int32())]))
    rows = [
        [{"m": [("a", YEAR[0]), ("b", None)], "n": 1}, None],
        None,
        [],
        [{"m": None, "n": None}, {"m": [("c", YEAR[6])], "n": 2}],
    ]
    shifted = [[{"m": [("a", YEAR[0] + dt.timedelta(hours=5)), ("b", None)], "n": 1}, None], None, [],
               [{"m": None, "n": None}, {"m": [("c", YEAR[6] + dt.timedelta(hours=4))], "n": 2}]]  # fmt: skip
    data = java_file(pa.table({"z": pa.array(shifted, kind)}), None)
    assert read(data, KnownInstants("America/New_York", {})) == rows


def test_what_others_write_is_what_it_is() -> None:
    """Only Java's library goes by its clock, and times without a zone have none."""
    sink = pa.BufferOutputStream()
    pa.orc.write_table(pa.table({"z": pa.array(YEAR, KIND)}), sink)
    assert read(sink.getvalue().to_pybytes(), KnownInstants("Asia/Shanghai", {})) == YEAR
    plain = [v.replace(tzinfo=None) for v in YEAR]
    data = java_file(pa.table({"z": pa.array(plain, pa.timestamp("us"))}), "UTC")
    assert read(data, KnownInstants("Asia/Shanghai", {})) == plain
    assert read(written(YEAR, "UTC"), None) == YEAR


@pytest.mark.parametrize(("zone", "hours"), [("America/New_York", -5), ("Asia/Shanghai", 8), ("Europe/London", 0)])
def test_before_1900_java_knows_no_local_mean_time(zone: str, hours: int) -> None:
    old = [dt.datetime(year, 7, 4, tzinfo=UTC) for year in (1750, 1800, 1850, 1880, 1899)]
    stored = [v - dt.timedelta(hours=hours) for v in old]
    data = java_file(pa.table({"z": pa.array(stored, KIND)}), None)
    assert read(data, KnownInstants(zone, ends(old))) == old


NEW_YORK, INDIA = zoneinfo.ZoneInfo("America/New_York"), dt.timezone(dt.timedelta(hours=5, minutes=30))


@pytest.mark.parametrize(("zone", "hours"), [(NEW_YORK, -5), (INDIA, 5.5), (dt.timezone(dt.timedelta()), 0)])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_instants_are_shown_as_a_clock_shows_them_and_nothing_else_is(zone: dt.tzinfo, hours: float, unit: str) -> None:
    """At any depth; times without a zone, and other values, stay."""
    moments = [dt.datetime(2024, 1, 1, 12, 30, tzinfo=UTC), None, dt.datetime(1969, 12, 31, 23, tzinfo=UTC)]
    bare = [None if one is None else one.replace(tzinfo=None) for one in moments]
    moved = [None if one is None else one + dt.timedelta(hours=hours) for one in moments]
    instants, clocks = pa.array(moments, pa.timestamp(unit, "UTC")), pa.array(bare, pa.timestamp(unit))
    assert shown_as_utc(instants, zone).equals(pa.array(moved, pa.timestamp(unit, "UTC")))
    assert shown_as_utc(instants.slice(2), zone).equals(pa.array(moved[2:], pa.timestamp(unit, "UTC")))
    assert shown_as_utc(clocks, zone).equals(clocks)
    assert shown_as_utc(instants.slice(3), zone).equals(instants.slice(3))
    rows = pa.array([{"i": m, "c": b, "n": 1, "l": [m]} for m, b in zip(moments, bare, strict=True)],
                    pa.struct([("i", instants.type), ("c", clocks.type), ("n", pa.int64()), ("l", pa.list_(instants.type))]))  # fmt: skip
    wanted = pa.array([{"i": m, "c": b, "n": 1, "l": [m]} for m, b in zip(moved, bare, strict=True)], rows.type)
    assert shown_as_utc(rows, zone).to_pylist() == wanted.to_pylist()


def test_a_zone_is_asked_of_each_instant_in_its_season() -> None:
    moments = pa.array([dt.datetime(2024, 7, 1, tzinfo=UTC), dt.datetime(2024, 12, 1, tzinfo=UTC)], KIND)
    hours = [dt.datetime(2024, 6, 30, 20, tzinfo=UTC), dt.datetime(2024, 11, 30, 19, tzinfo=UTC)]
    assert shown_as_utc(moments, NEW_YORK).to_pylist() == hours


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [(KIND, True), (pa.timestamp("us"), False), (pa.int64(), False), (pa.list_(KIND), True), (pa.map_(pa.string(), KIND), True),
     (pa.map_(KIND, pa.string()), True), (pa.struct([("a", pa.int64()), ("b", pa.list_(KIND))]), True), (pa.struct([("a", pa.timestamp("ns"))]), False)],
)  # fmt: skip
def test_types_that_hold_instants(kind: pa.DataType, wanted: bool) -> None:
    assert holds_instants(kind) == wanted


DAY_MS, HOUR_US = 86_400_000, 3_600_000_000
SOME_MS = 1_700_000_000_000


def told(
    zones: Sequence[str | None] = (None,),
    hours: float = -5,
    span_ms: int = 0,
    at_ms: int = SOME_MS,
    off_us: int = 0,
    columns: Sequence[str] = ("z",),
    **more: Mapping[str, tuple[int, int]],
) -> list[dt.timedelta | None]:
    """Of a file whose bounds lie so many hours from the manifest's, how far the zones of its stripes are from UTC."""
    stored = (at_ms, at_ms + span_ms)
    true = tuple(int(1000 * ms + hours * HOUR_US + off_us) for ms in stored)
    clock = WriterClock(tuple(zones), {"z": stored, **more.get("stored", {})}, frozenset({"empty"}))
    known = KnownInstants("Asia/Tokyo", {"z": (true[0], true[1]), **more.get("known", {})})
    found = known.zones(clock, columns, "f.orc")
    return [zone.utcoffset(dt.datetime(2023, 11, 14)) for zone in found]


def is_unknown(**given: Any) -> bool:
    try:
        told(**given)
    except UnsupportedFeature as error:
        assert (error.code, error.path) == ("unknown-writer-zone", "f.orc")
        return True
    return False


def test_bounds_of_few_days_tell_how_far_the_zone_is() -> None:
    """Six at most, and not before 1946-01-01; fractions of a second are those that somebody cut off."""
    five = dt.timedelta(hours=-5)
    assert told() == told(span_ms=6 * DAY_MS) == told(off_us=999_999 // 2) == told(off_us=-499_999) == [five]
    assert is_unknown(span_ms=6 * DAY_MS + 1)
    first = -757_382_400_000
    assert told(at_ms=first) == [five] and is_unknown(at_ms=first - 1)
    assert told(hours=5.75) == [dt.timedelta(hours=5, minutes=45)]
    # The reader's zone, and UTC, go by themselves.
    assert told(hours=9, span_ms=400 * DAY_MS) == [dt.timedelta(hours=9)]
    assert told(hours=0, span_ms=400 * DAY_MS) == [dt.timedelta()]
    assert told(hours=9, span_ms=400 * DAY_MS, off_us=999_999) == [dt.timedelta(hours=9)]
    assert is_unknown(hours=9, span_ms=400 * DAY_MS, off_us=1_000_000)


def test_bounds_that_contradict_each_other_tell_nothing() -> None:
    other = {"stored": {"y": (SOME_MS, SOME_MS)}, "known": {"y": (1000 * SOME_MS - 6 * HOUR_US,) * 2}}
    assert is_unknown(**other)
    same = {**other, "known": {"y": (1000 * SOME_MS - 5 * HOUR_US,) * 2}}
    assert told(**same) == told(columns=["z", "y"], **same) == [dt.timedelta(hours=-5)]
    # Columns without bounds are of other days, unless they have no value.
    assert is_unknown(columns=["z", "lists"])
    assert told(columns=["z", "empty"]) == told(columns=["empty"]) == [dt.timedelta(hours=-5)]
    # What one of the two does not know is no pair.
    assert told(stored={"x": (0, 1)}) == told(known={"x": (0, 1)}) == [dt.timedelta(hours=-5)]
    assert is_unknown(columns=["z", "x"], stored={"x": (0, 1)})


def test_each_stripe_may_name_a_zone_of_its_own() -> None:
    zones = ["America/New_York", None, "UTC"]
    assert told(zones, hours=-5) == [dt.timedelta(hours=-5)] * 3
    assert told([], hours=-5) == []
    # A zone that nobody knows is no zone.
    assert told(["Nowhere/Here"]) == [dt.timedelta(hours=-5)]
    nothing = KnownInstants("Asia/Tokyo", {}).zones(WriterClock(("America/New_York", None), {}), ["z"], "f")
    assert [zone.utcoffset(dt.datetime(2024, 1, 1)) for zone in nothing] == [
        dt.timedelta(hours=-5),
        dt.timedelta(hours=9),
    ]


@pytest.mark.parametrize(
    ("hours", "span_ms", "said"), [(-5, 400 * DAY_MS, "by -5 hours"), (5.5, 400 * DAY_MS, "by +5.5 hours")]
)
def test_how_far_they_differ_is_said(hours: float, span_ms: int, said: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        told(hours=hours, span_ms=span_ms)
    assert said in str(caught.value) and "Asia/Tokyo" in str(caught.value)
    assert caught.value.features == ("orc.timestamp-ltz.legacy.type",)
