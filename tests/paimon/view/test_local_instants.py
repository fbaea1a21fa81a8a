"""Tables with instants in ORC files that Java wrote outside UTC: rows, filters and merges are those of the true ones."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from orc_of_java import write_as_java
from orc_tables import YEAR, add, create
from paimon_tables import HandWritten
from pyarrow import orc

import alluvium
from alluvium.errors import UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.view.source import PaimonSource
from alluvium.portable.reader import read_batches
from alluvium.storage.open import open_store

LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
NEW_YORK = "America/New_York"
#: The option of Java, by which it shifts nothing.
NEW = {"orc.timestamp-ltz.legacy.type": "false"}


def made(url: str, days: list[dt.datetime], kinds: Any = LTZ, **options: str) -> None:
    create(url, {"k": "INT", "z": kinds}, **options)
    add(url, *({"k": n, "z": day} for n, day in enumerate(days)))


def rows(url: str, zone: str, where: str | None = None, **asked: str) -> list[Any]:
    """What a reader in a zone finds in `z`, by `k`."""
    store = open_store(url)
    source = PaimonSource(load_snapshot(store, options=asked, time_zone=zone))
    predicate = None if where is None else parse_predicate(where, source.schema, zone)
    plan = source.plan_scan(predicate)
    found = read_batches(plan, store, open_store, where=predicate, time_zone=zone).read_all()
    return [row["z"] for row in sorted(found.to_pylist(), key=lambda row: row["k"])]


@pytest.mark.long
@pytest.mark.parametrize("zone", [NEW_YORK, "Asia/Shanghai", "UTC"])
def test_rows_and_filters(tmp_path: Path, zone: str) -> None:
    url = str(tmp_path / "t")
    made(url, YEAR)
    write_as_java(url, zone, False, "k")
    assert rows(url, zone) == YEAR
    for day in YEAR:
        assert rows(url, zone, f"z = timestamp'{day:%Y-%m-%d %H:%M:%S.%f}Z'") == [day]
    assert rows(url, zone, "z >= timestamp'2024-12-01 12:30:00Z'") == YEAR[-1:]


def test_a_file_that_tells_its_zone(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(url, YEAR)
    write_as_java(url, NEW_YORK, True, "k")
    for zone in (NEW_YORK, "Asia/Shanghai", "UTC"):
        assert rows(url, zone) == YEAR
    assert alluvium.open(url).to_arrow(columns=["z"])["z"].to_pylist() == YEAR


def test_nobody_knows_the_zone(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(url, YEAR)
    write_as_java(url, NEW_YORK, False, "k")
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.open(url).to_arrow()
    assert caught.value.code == "unknown-writer-zone"
    assert caught.value.path is not None and caught.value.path.endswith(".orc")
    # What asks for none of them is not concerned.
    assert alluvium.open(url).to_arrow(columns=["k"])["k"].to_pylist() == list(range(12))
    # Of few days the bounds tell the zone, whoever reads.
    made(other := str(tmp_path / "o"), YEAR[:1])
    write_as_java(other, NEW_YORK, False, "k")
    assert alluvium.open(other).to_arrow()["z"].to_pylist() == YEAR[:1]


def test_the_option(tmp_path: Path) -> None:
    """Files count by what the table said when they were written; what the call says comes first, as in Java."""
    url = str(tmp_path / "t")
    made(url, YEAR)
    write_as_java(url, NEW_YORK, False, "k")
    stored = orc.read_table(f"{url}/{alluvium.open(url).files()['path'][0]}")["z"].to_pylist()
    PaimonTable.forPath(url).alter([SchemaChange.set_option(*pair) for pair in NEW.items()])
    assert rows(url, NEW_YORK) == YEAR
    assert [v.to_pydatetime() for v in stored] == rows(url, NEW_YORK, **NEW) != YEAR
    made(new := str(tmp_path / "new"), YEAR, **NEW)
    write_as_java(new, "UTC", False, "k")
    assert rows(new, NEW_YORK) == YEAR == rows(new, "UTC")


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"metadata.stats-mode": "none"}, {"fields.z.stats-mode": "counts"}])
def test_what_we_write_is_what_it_is(tmp_path: Path, options: dict[str, str]) -> None:
    """Java reads a wall clock the same in every zone; instants it shifts, but for tables that say otherwise."""
    for legacy in (True, False):
        url = str(tmp_path / f"{legacy}")
        made(url, YEAR, **options, **({} if legacy else NEW))
        (field,) = [f for f in orc.ORCFile(f"{url}/{alluvium.open(url).files()['path'][0]}").schema if f.name == "z"]
        assert field.type.tz == (None if legacy else "UTC")
        for zone in (NEW_YORK, "UTC", "Asia/Shanghai"):
            assert rows(url, zone) == YEAR
            assert rows(url, zone, "z = timestamp'2024-06-01 12:30:00.123456Z'") == YEAR[5:6]


def test_without_bounds_the_readers_zone_counts(tmp_path: Path) -> None:
    """As it does in Java."""
    for n, kinds in enumerate((LTZ, {"type": "ARRAY", "element": LTZ})):
        url = str(tmp_path / f"{n}")
        days = YEAR if n == 0 else [[day, None] for day in YEAR]
        made(url, days, kinds, **{"metadata.stats-mode": "none"})
        write_as_java(url, NEW_YORK, False, "k")
        assert rows(url, NEW_YORK) == days


@pytest.mark.parametrize("kind", ["TIMESTAMP(6)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "STRING", "DATE"])
def test_columns_that_changed_their_type(tmp_path: Path, kind: str) -> None:
    """The cast is of the true instant, as it is where a file says what it means."""
    answers = []
    for local in (True, False):
        url = str(tmp_path / f"{local}")
        made(url, YEAR)
        if local:
            write_as_java(url, NEW_YORK, True, "k")
        PaimonTable.forPath(url).alter([SchemaChange.update_column_type("z", kind)])
        answers.append(rows(url, NEW_YORK))
    assert answers[0] == answers[1]


def test_rows_merge_by_an_instant(tmp_path: Path) -> None:
    """Files of Java in two zones, and of others: a key is one wherever it was written."""
    schema = pa.schema([pa.field("z", pa.timestamp("us", "UTC"), False), ("k", pa.int32())])
    table = HandWritten(str(tmp_path / "t"), schema, ["z"], **{"file.format": "orc"})
    for n, zone in enumerate((None, NEW_YORK, "Asia/Shanghai")):
        table.commit([{"z": day, "k": 100 * n + m} for m, day in enumerate(YEAR[n:])])
        if zone is not None:
            one = str(tmp_path / "t")
            path = next(p for p in alluvium.open(one).files()["path"].to_pylist() if f"data-{n + 1}-" in p)
            write_as_java(one, zone, True, "k", "_SEQUENCE_NUMBER", "_VALUE_KIND", only=path)
    found = alluvium.open(str(tmp_path / "t")).to_arrow().to_pylist()
    assert sorted((row["z"], row["k"]) for row in found) == [
        (day, 0 if n == 0 else 100 if n == 1 else 200 + n - 2) for n, day in enumerate(YEAR)
    ]
