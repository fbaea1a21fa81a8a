"""Points of history at their edges: the instant of a snapshot and the one before it, watermarks, names that are numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten

from alluvium.errors import CorruptTable, NotFound
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, find_snapshot, kept_by, list_snapshots
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

#: Of the five snapshots; two of the same instant, and one without a watermark.
TIMES = [1000, 2000, 2000, 3000, 9000]
WATERMARKS = [5, 5, None, 7, 20]


@pytest.fixture
def table(tmp_path: Path) -> HandWritten:
    made = HandWritten(tmp_path / "t", pa.schema([("k", pa.int64())]))
    for number, (time, watermark) in enumerate(zip(TIMES, WATERMARKS, strict=True)):
        made.commit([{"k": number}], time_ms=time, watermark=watermark)
    return made


def store_of(table: HandWritten) -> Store:
    return open_store(str(table.path))


def found(table: HandWritten, at: At) -> int | None:
    document = find_snapshot(store_of(table), at)
    return None if document is None else document.id


@pytest.mark.parametrize(
    ("time_ms", "number"),
    [(1000, 1), (1999, 1), (2000, 3), (2001, 3), (2999, 3), (3000, 4), (8999, 4), (9000, 5), (10**15, 5)],
)
def test_times(table: HandWritten, time_ms: int, number: int) -> None:
    """The last of those that are not later."""
    assert found(table, At(timestamp_ms=time_ms)) == number


def test_before_the_first(table: HandWritten) -> None:
    with pytest.raises(NotFound) as caught:
        found(table, At(timestamp_ms=999))
    assert caught.value.code == "no-snapshot-before"
    assert "1000 ms" in (caught.value.hint or "")


@pytest.mark.parametrize(("watermark", "number"), [(0, 1), (5, 1), (6, 4), (7, 4), (8, 5), (20, 5)])
def test_watermarks(table: HandWritten, watermark: int, number: int) -> None:
    """The first that has come so far; those without one are passed over."""
    assert found(table, At(watermark=watermark)) == number
    assert found(table, At(version=f"watermark-{watermark}")) == number


def test_a_watermark_that_nobody_reached(table: HandWritten) -> None:
    with pytest.raises(NotFound):
        found(table, At(watermark=21))


def test_names_go_before_numbers(table: HandWritten) -> None:
    """ "a tag of this name first, then a snapshot id" """
    assert found(table, At(version="2")) == 2
    table.tag("2", 4)
    table.tag("watermark-5", 5)
    table.tag("noon", 3)
    assert found(table, At(version="2")) == 4
    assert found(table, At(version="3")) == 3
    assert found(table, At(version="watermark-5")) == 5
    assert found(table, At(version="watermark-7")) == 4
    assert found(table, At(tag="noon")) == found(table, At(version="noon")) == 3
    assert found(table, At(snapshot_id=2)) == 2
    assert found(table, At()) == 5
    for version in ("dawn", "watermark-", "watermark-x", "6"):
        with pytest.raises(NotFound):
            found(table, At(version=version))


def test_a_tag_outlives_its_snapshot(table: HandWritten) -> None:
    table.tag("noon", 2)
    store = store_of(table)
    assert kept_by(store, 3) is None
    table.expire(1)
    table.expire(2)
    assert list_snapshots(store) == [3, 4, 5]
    assert kept_by(store, 2) == "noon"
    assert found(table, At(tag="noon")) == 2
    assert load_snapshot(store, At(tag="noon")).entries.num_rows == 2
    assert load_snapshot(store).state(2).entries.num_rows == 2
    assert load_snapshot(store).state(0).entries.num_rows == 0
    with pytest.raises(NotFound) as caught:
        found(table, At(snapshot_id=1))
    assert caught.value.code == "snapshot-expired"
    with pytest.raises(NotFound) as caught:
        found(table, At(timestamp_ms=1500))
    assert "2000 ms" in (caught.value.hint or "")


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    made = HandWritten(tmp_path / "t", pa.schema([("k", pa.int64())]))
    assert found(made, At()) is None
    for at in (At(timestamp_ms=5), At(watermark=5), At(snapshot_id=1), At(tag="a"), At(version="1")):
        with pytest.raises(NotFound):
            found(made, at)


def test_errors_of_a_state_that_was_asked_for_name_it(table: HandWritten) -> None:
    (table.path / "snapshot" / "snapshot-3").write_text("{")
    with pytest.raises(CorruptTable) as caught:
        load_snapshot(store_of(table), At(snapshot_id=3))
    assert caught.value.version == 3
