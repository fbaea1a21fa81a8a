"""Instants in ORC files, written by Paimon's Java in one zone and read in others: the judge is the Java that wrote them;
and files of ours, which it reads the same in every zone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = NEEDS_PAIMON

NEW_YORK, SHANGHAI = "America/New_York", "Asia/Shanghai"
LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
COLUMNS: dict[str, Any] = {
    "k": "INT",
    "z": LTZ,
    "z3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "a": {"type": "ARRAY", "element": LTZ},
    "r": {"type": "ROW", "fields": [{"id": 90, "name": "x", "type": LTZ}]},
}
#: Summer and winter, hours that clocks show twice (01:30 in November) or that they skip in other zones, and old ones.
TIMES = [
    "2024-06-01T12:00:00.123456", "2024-01-15T03:00:00", "2024-11-03T01:30:00", "2024-03-31T03:30:00",
    "1970-01-01T12:00:00.500000", "1969-07-01T00:00:00", "1945-08-10T00:00:00", "1905-06-01T12:00:00",
]  # fmt: skip
SPAN = [dt.datetime.fromisoformat(text).replace(tzinfo=dt.timezone.utc) for text in TIMES]


def made(number: int, moment: dt.datetime | None) -> dict[str, Any]:
    short = moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return {"k": number, "z": moment, "z3": short, "a": [moment], "r": {"x": moment}}


ROWS = [made(number, moment) for number, moment in enumerate((*SPAN, None))]


def texts(row: dict[str, Any]) -> dict[str, Any]:
    def text(value: Any) -> Any:
        if isinstance(value, dt.datetime):
            spec = "microseconds" if value.microsecond % 1000 else "milliseconds"
            return value.isoformat(timespec=spec).replace("+00:00", "Z")
        if isinstance(value, list):
            return [text(v) for v in value]
        return {name: text(v) for name, v in value.items()} if isinstance(value, dict) else value

    return {name: text(value) for name, value in row.items()}


def java(folder: Path, zone: str, table: str, *steps: dict[str, Any]) -> None:
    """Has Paimon do steps in a zone."""
    paimon(folder, {"table": table, "zone": zone, "steps": steps})


def ordered(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["k"])


def written(folder: Path, name: str, zone: str, rows: list[dict[str, Any]], extra: str | None = None) -> str:
    """A table that Java wrote in a zone, and reads there as it should."""
    url, out = str(folder / name), str(folder / f"{name}.parquet")
    fields = [{"name": column, "type": kind} for column, kind in COLUMNS.items()]
    fields += [{"name": "n", "type": "TIMESTAMP(6)"}] if extra else []
    brought = [texts({**row, "n": row["z"] and row["z"].replace(tzinfo=None)} if extra else row) for row in rows]
    options = {"file.format": "orc", "bucket": "1", "bucket-key": "k"}
    java(folder, zone, url, {"create": {"fields": fields, "options": options}}, {"write": {"rows": brought}},
         {"read": {"out": out}})  # fmt: skip
    assert [{c: row[c] for c in COLUMNS} for row in ordered(pq.read_table(out))] == rows
    return url


@pytest.fixture
def set_zone(spark) -> Iterator[Callable[[str], None]]:
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    yield lambda zone: spark.conf.set(key, zone)
    spark.conf.set(key, before)


@pytest.mark.parametrize("zone", [NEW_YORK, SHANGHAI, "Europe/London", "UTC"])
def test_what_java_writes_elsewhere(spark, tmp_path: Path, zone: str, set_zone: Callable[[str], None]) -> None:
    url, told = written(tmp_path, "t", zone, ROWS), written(tmp_path, "told", zone, ROWS, "n")
    set_zone(zone)
    for one in (url, told):
        df = alluvium.read(spark, one).select(*COLUMNS)
        assert ordered(df.toArrow()) == ROWS
        asked = " or ".join(f"z = timestamp'{moment:%Y-%m-%d %H:%M:%S.%f}Z'" for moment in SPAN)
        assert sorted(row.k for row in df.where(asked).collect()) == list(range(len(SPAN)))
        assert [row.k for row in df.where(f"z < timestamp'{SPAN[-1]:%Y-%m-%d %H:%M:%S.001}Z'").collect()] == [7]
    assert ordered(alluvium.open(told).to_arrow(columns=list(COLUMNS))) == ROWS
    days = written(tmp_path, "days", zone, ROWS[:1])
    assert ordered(alluvium.open(days).to_arrow(columns=["k", "z", "z3"])) == [
        {name: ROWS[0][name] for name in ("k", "z", "z3")}
    ]
    if zone in ("UTC", "Europe/London"):
        return
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.open(url).to_arrow()
    assert caught.value.code == "unknown-writer-zone"


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_what_we_write_java_reads_in_every_zone(
    spark, tmp_path: Path, legacy: str, set_zone: Callable[[str], None]
) -> None:
    url = str(tmp_path / "t.db" / "t")
    fields = [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(COLUMNS.items())]
    options = {"file.format": "orc", "orc.timestamp-ltz.legacy.type": legacy}
    PaimonTable.create(url, fields, options=options)
    schema = "k int, z timestamp, z3 timestamp, a array<timestamp>, r struct<x: timestamp>"
    rows = [tuple(row.values()) for row in ROWS]
    alluvium.write(spark.createDataFrame(rows, schema).coalesce(1), url, mode="append", format="paimon")
    for zone in (NEW_YORK, SHANGHAI, "UTC"):
        out = str(tmp_path / zone.replace("/", "-"))
        java(tmp_path, zone, url, {"read": {"out": out}})
        assert ordered(pq.read_table(out)) == ROWS, zone
    # Java goes on, in a zone of its own.
    later = [{**row, "k": row["k"] + 100} for row in ROWS]
    java(tmp_path, NEW_YORK, url, {"write": {"rows": [texts(row) for row in later]}}, {"compact": {}})
    set_zone(NEW_YORK)
    assert ordered(alluvium.read(spark, url).toArrow()) == [*ROWS, *later]


#: Times without a zone on both sides of both midnights, UTC's and the zone's own.
AROUND_1970 = [
    (dt.datetime(1970, 1, 1) + dt.timedelta(minutes=90 * n, milliseconds=ms))
    for n in range(-10, 10)
    for ms in (0, 1, 500)
]


#: Before and after Java's clocks begin, and those of the zones.
OLD = [dt.datetime(year, month, 15, 10, 11, 12, 500_000) for year in (1701, 1860, 1890, 1905, 1915) for month in (1, 7)]


#: Last seconds before clocks are put forward (Juneau, Kolkata, Sao Paulo, Stockholm), and first ones shown twice.
AT_CHANGES = [
    dt.datetime.fromisoformat(text) - dt.timedelta(milliseconds=ms)
    for text in ("1900-08-20T12:00", "1906-01-01", "1951-12-01", "1916-05-15", "1950-09-24T01:00", "1940-05-16T00:00")
    for ms in (1001, 1000, 999, 500, 1, 0, -1)
]
LATE = [dt.datetime(year, month, 1, 0, 0, 0, 1_000) for year in (2036, 2037, 2040, 2200) for month in (1, 7)]


@pytest.mark.parametrize(
    "zone",
    ["Asia/Kolkata", NEW_YORK, "Europe/London", "Africa/Casablanca", "Australia/Lord_Howe", "America/Sao_Paulo",
     "America/Juneau", "Europe/Stockholm", "Europe/Amsterdam", "Africa/Windhoek", "HST"],
)  # fmt: skip
def test_times_around_1970_and_old_and_late_ones(tmp_path: Path, zone: str) -> None:
    """Arrow takes a second off where the clock of the zone is before 1970, Java where UTC's is; and Java knows other old
    and late clocks than the system does.
    """
    times = [*AROUND_1970, *OLD, *AT_CHANGES, *(LATE if zone != "Africa/Casablanca" else [])]
    url, out = str(tmp_path / "t"), str(tmp_path / "read.parquet")
    fields = [{"name": "k", "type": "INT"}, {"name": "t", "type": "TIMESTAMP(3)"}]
    rows = [{"k": k, "t": time.isoformat(timespec="milliseconds")} for k, time in enumerate(times)]
    java(tmp_path, zone, url, {"create": {"fields": fields, "options": {"file.format": "orc"}}}, {"write": {"rows": rows}},
         {"read": {"out": out}})  # fmt: skip
    found = [row["t"] for row in ordered(alluvium.open(url).to_arrow())]
    assert found == [row["t"] for row in ordered(pq.read_table(out))]
    # What Java makes others of are times that the clock skips, and with a fraction the second before UTC's midnight.
    assert sum(a != b for a, b in zip(found, times, strict=True)) < 20


def test_a_zone_without_a_region(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    fields = [{"name": "k", "type": "INT"}, {"name": "t", "type": "TIMESTAMP(3)"}]
    java(tmp_path, "GMT+5:30", url, {"create": {"fields": fields, "options": {"file.format": "orc"}}},
         {"write": {"rows": [{"k": 1, "t": "2024-01-01T00:00:00.000"}]}})  # fmt: skip
    assert alluvium.open(url).to_arrow(columns=["k"]).to_pylist() == [{"k": 1}]
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.open(url).to_arrow()
    assert caught.value.code == "unknown-writer-zone" and "GMT+05:30" in str(caught.value)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Africa/Casablanca", "Europe/Stockholm", "Africa/Windhoek"])
def test_old_instants(tmp_path: Path, zone: str) -> None:
    moments = [time.replace(tzinfo=dt.timezone.utc) for time in OLD]
    url = written(tmp_path, "t", zone, [made(k, moment) for k, moment in enumerate(moments)], "n")
    assert [row["z"] for row in ordered(alluvium.open(url).to_arrow())] == moments


@pytest.mark.parametrize("zone", [NEW_YORK, "Africa/Windhoek"])
def test_instants_after_2037(tmp_path: Path, zone: str) -> None:
    """In summer, which Arrow does not know of; and where Java knows no later clocks."""
    moments = [dt.datetime(year, month, 1, tzinfo=dt.timezone.utc) for year in (2030, 2040, 2200) for month in (1, 7)]
    url = written(tmp_path, "t", zone, [made(k, moment) for k, moment in enumerate(moments)], "n")
    assert [row["z"] for row in ordered(alluvium.open(url).to_arrow())] == moments
