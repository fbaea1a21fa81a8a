"""Which rows a compaction leaves out for their time, and which files hold such."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, full, open_target

from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.upkeep.keyed.expiry import row_expiry
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

OPTIONS = {"bucket": "1", "record-level.expire-time": "1 h", "record-level.time-field": "t"}
UTC = dt.timezone.utc


def times(kind: pa.DataType, *seconds: int) -> list[Any]:
    if not pa.types.is_timestamp(kind):
        return list(seconds)
    zone = UTC if kind.tz else None
    return [dt.datetime.fromtimestamp(s, UTC).replace(tzinfo=zone) for s in seconds]


@pytest.mark.parametrize(
    ("kind", "stays"),
    [
        (pa.int32(), "(`t` is null or `t` >= {since}L)"),
        (pa.int64(), "(`t` is null or if(`t` >= 1000000000000L, `t` div 1000, `t`) >= {since}L)"),
        (pa.timestamp("us"), "(`t` is null or `t` >= timestamp_ntz'{moment}')"),
        (pa.timestamp("us", "UTC"), "(`t` is null or `t` >= timestamp_seconds({since}))"),
    ],
)
def test_rows_of_each_type_of_time(tmp_path: Path, kind: pa.DataType, stays: str) -> None:
    url, now = str(tmp_path / "t"), int(time.time())
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("t", kind)]), (), ["k"], OPTIONS)
    store = open_store(url)
    for place, batch in enumerate(((now, now - 7200), (now, now), (None, now))):
        made = [None if s is None else times(kind, s)[0] for s in batch]
        append(open_target(store), [{"k": 10 * place + n, "t": value} for n, value in enumerate(made)])
    snapshot = load_snapshot(store)
    expiry = row_expiry(snapshot.schema)
    assert expiry is not None and now - 3602 <= expiry.since <= now - 3590
    moment = dt.datetime.fromtimestamp(expiry.since, UTC).replace(tzinfo=None)
    assert expiry.stays == stays.format(since=expiry.since, moment=moment)
    assert expiry.among(snapshot, snapshot.entries).tolist() == [True, False, False]
    assert full(snapshot).reads_rows


def test_a_time_that_is_longer_than_all_calendars(tmp_path: Path) -> None:
    """It stands behind each write, which has been committed by then."""
    options = {**OPTIONS, "record-level.expire-time": "999999999 d"}
    schema = pa.schema([("k", pa.int32()), ("t", pa.timestamp("us"))])
    PaimonTable.create(url := str(tmp_path / "t"), schema, (), ["k"], options)
    expiry = row_expiry(load_snapshot(open_store(url)).schema)
    assert expiry is not None
    assert expiry.stays == "(`t` is null or `t` >= timestamp_ntz'0001-01-01 00:00:00')"


@pytest.mark.parametrize("options", [{}, {"record-level.time-field": "t"}])
def test_a_table_without_them_keeps_all(tmp_path: Path, options: dict[str, str]) -> None:
    assert row_expiry(load_snapshot(made(tmp_path, options)).schema) is None


def test_a_time_of_no_column(tmp_path: Path) -> None:
    store = made(tmp_path, {"record-level.expire-time": "1 h"})
    with pytest.raises(InvalidRequest) as caught:
        row_expiry(load_snapshot(store).schema)
    assert caught.value.code == "invalid-table-option"
    with pytest.raises(InvalidRequest) as caught:
        append(open_target(store), [{"k": 1}])
    assert caught.value.code == "invalid-table-option" and load_snapshot(store).version is None


def made(path: Path, options: dict[str, str]) -> Store:
    schema = pa.schema([("k", pa.int32()), ("t", pa.int32())])
    PaimonTable.create(url := str(path / "t"), schema, (), ["k"], {"bucket": "1", **options})
    return open_store(url)
