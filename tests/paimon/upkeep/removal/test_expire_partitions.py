"""Which partitions expire, beside a plain loop over all of them, and what a commit of it leaves."""

from __future__ import annotations

import datetime as dt
import uuid

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paimon_rows import append, ks, make, open_target

from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.upkeep.life.java_time_patterns import parse_time
from alluvium.paimon.upkeep.removal import expire_partitions as expiring
from alluvium.paimon.upkeep.removal.expire_partitions import PartitionExpiry, expire_partitions, partition_expiry
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import Store

DAYS = [None, "", "2024-01-01", "2024-01-02", "2024-1-3", "2024-02-30", "no day", "2024-01-05 10:00:00"]
TIMES = {
    "2024-01-01": dt.datetime(2024, 1, 1),
    "2024-01-02": dt.datetime(2024, 1, 2),
    "2024-1-3": dt.datetime(2024, 1, 3),
    "2024-01-05 10:00:00": dt.datetime(2024, 1, 5, 10),
}


def table_of(days: list[str | None], *keys: str, **options: str) -> Store:
    """A table with a row a day, numbered in their order."""
    store = make(f"memory://{uuid.uuid4()}/t", *(keys or ("day",)), **options)
    append(open_target(store), [{"k": n, "s": f"s{n}", "day": day} for n, day in enumerate(days)])
    return store


def state(store: Store) -> Snapshot:
    return load_snapshot(store, At())


@settings(max_examples=12, derandomize=True)
@given(
    st.lists(st.sampled_from(DAYS), min_size=1, max_size=8, unique=True),
    st.sampled_from([*TIMES.values(), dt.datetime(2024, 1, 5, 10, 0, 1)]),
    st.integers(1, 4),
)
def test_those_before_a_time_go_first_ones_first(days: list[str | None], before: dt.datetime, most: int) -> None:
    """A day that is no time never expires; of more than may go, those whose texts come first do."""
    store = table_of(days)
    past = sorted(day for day in days if day in TIMES and TIMES[day] < before)[:most]
    found = expire_partitions(state(store), PartitionExpiry(before, most=most), dry_run=True)
    assert [dict(one) for one in found.partitions] == [{"day": day} for day in past]
    assert found.committed is None
    assert state(store).version == 1
    done = expire_partitions(state(store), PartitionExpiry(before, most=most))
    assert done.partitions == found.partitions
    assert (done.committed is None) == (not past)
    assert done.committed is None or done.committed.version == 2
    assert ks(store) == [n for n, day in enumerate(days) if day not in past]
    assert ks(store, version=1) == list(range(len(days)))


def test_a_time_is_put_together_of_several_keys() -> None:
    store = make(f"memory://{uuid.uuid4()}/t", "day", "s")
    rows = [("20240101", "05"), ("20240101", "07"), ("20240102", "00"), (None, "00"), ("20240101", None), ("x", "05")]
    append(open_target(store), [{"k": n, "day": day, "s": hour} for n, (day, hour) in enumerate(rows)])
    asked = PartitionExpiry(dt.datetime(2024, 1, 1, 7), "values-time", "$day $s", "yyyyMMdd HH")
    done = expire_partitions(state(store), asked)
    assert [dict(one) for one in done.partitions] == [{"day": "20240101", "s": "05"}]
    assert ks(store) == [1, 2, 3, 4, 5]
    first_key_alone = PartitionExpiry(dt.datetime(2024, 1, 2), "values-time", None, "yyyyMMdd")
    assert len(expire_partitions(state(store), first_key_alone).partitions) == 2
    assert ks(store) == [2, 3, 5]


def test_a_partition_is_as_new_as_its_newest_file(monkeypatch: pytest.MonkeyPatch) -> None:
    store = table_of(["a", "b"])
    old = state(store)
    append(open_target(store), [{"k": 5, "day": "a"}])
    now = state(store)
    stamps = {name: dt.datetime(2024, 1, 1) for name in old.entries["file_name"].to_pylist()}
    given_times = [stamps.get(name, dt.datetime(2024, 6, 1)) for name in now.entries["file_name"].to_pylist()]
    place = now.entries.schema.get_field_index("creation_time")
    field = now.entries.schema.field(place)
    aged = now.entries.set_column(place, field, pa.array(given_times, field.type))
    monkeypatch.setattr(type(now), "entries", property(lambda _: aged))
    for before, gone in (
        (dt.datetime(2024, 1, 1), []),
        (dt.datetime(2024, 1, 1, 0, 0, 1), ["b"]),
        (dt.datetime(2024, 6, 1, 0, 0, 1), ["a", "b"]),
    ):
        found = expire_partitions(now, PartitionExpiry(before, "update-time"), dry_run=True)
        assert [one["day"] for one in found.partitions] == gone


def test_what_the_options_say_and_what_is_given() -> None:
    now = dt.datetime(2024, 3, 1)
    options = {
        "partition.expiration-time": "2 d", "partition.expiration-max-num": "7",
        "partition.timestamp-pattern": "$day", "partition.timestamp-formatter": "yyyy",
        "partition.expiration-strategy": "update-time",
    }  # fmt: skip
    assert partition_expiry(options, now) == PartitionExpiry(dt.datetime(2024, 2, 28), "update-time", "$day", "yyyy", 7)
    given_all = partition_expiry(
        options, now, expiration_time_ms=1000, strategy="values-time", pattern="$s", formatter="MM", most=1
    )
    assert given_all == PartitionExpiry(now - dt.timedelta(seconds=1), "values-time", "$s", "MM", 1)
    assert partition_expiry({}, now, expiration_time_ms=0, strategy=None) == PartitionExpiry(now)
    for given_strategy in ({}, {"expiration_time_ms": 1, "strategy": "by-moon"}):
        with pytest.raises(InvalidRequest) as raised:
            partition_expiry({}, now, **given_strategy)  # type: ignore[arg-type]
        assert raised.value.code == ("invalid-table-option" if given_strategy else "no-expiration-time")


def test_a_table_without_partitions() -> None:
    store = make(f"memory://{uuid.uuid4()}/t")
    append(open_target(store), [{"k": 1, "day": "2024-01-01"}])
    with pytest.raises(InvalidRequest) as raised:
        expire_partitions(state(store), PartitionExpiry(dt.datetime(2030, 1, 1)))
    assert raised.value.code == "no-partitions"


def test_rows_that_come_meanwhile_go_with_their_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition expires as a whole, however often somebody writes to it in between; not after the last try."""
    store, real, left = table_of(["2024-01-01", "2025-01-01"]), expiring.publish, [2]

    def raced(*args: object) -> object:
        if left[0]:
            left[0] -= 1
            append(open_target(store), [{"k": 90 + left[0], "day": "2024-01-01"}])
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(expiring, "publish", raced)
    asked = PartitionExpiry(dt.datetime(2024, 6, 1))
    done = expire_partitions(state(store), asked, retry=RetryPolicy(max_repeats=2))
    assert done.committed is not None and done.committed.version == 4
    assert ks(store) == [1]
    append(open_target(store), [{"k": 5, "day": "2024-01-01"}])
    left[0] = 2
    with pytest.raises(CommitConflict):
        expire_partitions(state(store), asked, retry=RetryPolicy(max_repeats=1))
    assert ks(store) == [1, 5, 90, 91]


LETTERS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}


@settings(max_examples=60, derandomize=True)
@given(
    st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)).map(lambda t: t.replace(microsecond=0)),
    st.permutations(list(LETTERS)),
    st.sampled_from(["", "-", " ", "'T'", "''", "/", ".", "+"]),
    st.integers(1, 6),
)
def test_times_by_patterns(time: dt.datetime, order: list[str], between: str, count: int) -> None:
    used = order[:count]
    pattern = between.join(used)
    plain = {"'T'": "T", "''": "'"}.get(between, between)
    text = plain.join(f"{getattr(time, LETTERS[one]):0{len(one)}d}" for one in used)
    parts = {"year": 1970, "month": 1, "day": 1} | {LETTERS[one]: getattr(time, LETTERS[one]) for one in used}
    try:
        wanted = dt.datetime(**parts)  # type: ignore[arg-type]
    except ValueError:
        wanted = None  # the 29th of a February of 1970
    assert parse_time(text, pattern) == wanted
    assert parse_time(text + "0", pattern) is None
    assert parse_time("0" + text, pattern) is None


@pytest.mark.parametrize(
    ("text", "pattern", "wanted"),
    [
        ("2024-1-2", None, dt.datetime(2024, 1, 2)),
        ("2024-01-02 3:4:5.5", None, dt.datetime(2024, 1, 2, 3, 4, 5, 500_000)),
        ("2024-01-02 03:04:05.123456789", None, dt.datetime(2024, 1, 2, 3, 4, 5, 123_456)),
        ("2024-01-02 03:04", None, None),
        ("2024-01-02T03:04:05", None, None),
        ("-1-01-02", None, None),
        ("7", "M", dt.datetime(1970, 7, 1)),
        ("12", "M", dt.datetime(1970, 12, 1)),
        ("13", "M", None),
        ("123", "M", None),
        ("2024.250", "uuuu.SSS", dt.datetime(2024, 1, 1, 0, 0, 0, 250_000)),
        ("o'clock 7", "'o''clock' H", dt.datetime(1970, 1, 1, 7)),
        ("2024|5", "yyyy|d", dt.datetime(2024, 1, 5)),
    ],
)
def test_times(text: str, pattern: str | None, wanted: dt.datetime | None) -> None:
    assert parse_time(text, pattern) == wanted


@pytest.mark.parametrize("pattern", ["yyyy-ww", "'open", "yyyy'", "EEE", "yyyy'a"])
def test_patterns_that_are_not_understood(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_time("2024", pattern)
    assert raised.value.code == "invalid-table-option"
