"""Tags that a table asks for: of which snapshots, and under which names, beside a plain loop over all of them."""

from __future__ import annotations

import datetime as dt
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten

from alluvium.errors import InvalidRequest
from alluvium.paimon.log.travel import list_tags, read_tag
from alluvium.paimon.upkeep.life.auto_tags import Periods, create_due_tags, periods_of, tag_before
from alluvium.paimon.upkeep.life.branches import create_branch
from alluvium.paimon.upkeep.life.tags import create_tag, list_all_tags
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

UTC = dt.timezone.utc
HOUR_MS = 3_600_000
BEGIN = dt.datetime(2024, 3, 1, 10, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`process-time` is that of whoever asks."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def table(hours: list[float], watermarks: list[int | None] | None = None) -> Store:
    """A snapshot so many hours after the beginning, each; their watermarks are milliseconds."""
    place = Path(tempfile.mkdtemp()) / "t"
    made = HandWritten(place, pa.schema([("k", pa.int64())]))
    for n, hour in enumerate(hours):
        at = int((BEGIN + dt.timedelta(hours=hour)).timestamp() * 1000)
        made.commit([{"k": n}], time_ms=at, watermark=None if watermarks is None else watermarks[n])
    return open_store(str(place))


def tags(store: Store) -> dict[str, int]:
    return {name: read_tag(store, name).id for name in list_tags(store)}


HOURLY = {"tag.automatic-creation": "process-time", "tag.creation-period": "hourly"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        # The first snapshot after an hour is that hour's.
        (HOURLY, {"2024-03-01 09": 1, "2024-03-01 10": 3, "2024-03-01 11": 4, "2024-03-01 14": 5}),
        ({**HOURLY, "tag.period-formatter": "without_dashes"}, {"20240301 09": 1, "20240301 10": 3, "20240301 11": 4, "20240301 14": 5}),
        ({**HOURLY, "tag.period-formatter": "without_dashes_and_spaces"}, {"2024030109": 1, "2024030110": 3, "2024030111": 4, "2024030114": 5}),
        # Those that were missed get the tags of later snapshots, one each.
        ({**HOURLY, "tag.automatic-completion": "true"}, {"2024-03-01 09": 1, "2024-03-01 10": 3, "2024-03-01 11": 4, "2024-03-01 12": 5}),
        ({**HOURLY, "tag.creation-delay": "40 min"}, {"2024-03-01 09": 1, "2024-03-01 11": 4, "2024-03-01 14": 5}),
        ({**HOURLY, "tag.num-retained-max": "2"}, {"2024-03-01 11": 4, "2024-03-01 14": 5}),
        ({**HOURLY, "tag.num-retained-max": "4"}, {"2024-03-01 09": 1, "2024-03-01 10": 3, "2024-03-01 11": 4, "2024-03-01 14": 5}),
        ({**HOURLY, "tag.num-retained-max": "9"}, {"2024-03-01 09": 1, "2024-03-01 10": 3, "2024-03-01 11": 4, "2024-03-01 14": 5}),
        ({**HOURLY, "tag.creation-period": "two-hours"}, {"2024-03-01 08": 1, "2024-03-01 10": 4, "2024-03-01 12": 5}),
        ({**HOURLY, "tag.creation-period": "daily"}, {"2024-02-29": 1}),
        ({"tag.automatic-creation": "process-time", "tag.creation-period-duration": "30 min"},
         {"202403011000": 1, "202403011030": 2, "202403011100": 3, "202403011130": 4, "202403011430": 5}),
        ({"tag.creation-period": "hourly"}, {}),
        ({**HOURLY, "tag.automatic-creation": "batch"}, {}),
    ],
)  # fmt: skip
def test_which_tags_are_due(options: dict[str, str], wanted: dict[str, int]) -> None:
    """Snapshots at 10:30, 11:00 less a second, 11:00 and a half, 12:15 and 15:00."""
    store = table([0, 0.4997, 0.5 + 0.02, 1.75, 4.5])
    if options.get("tag.creation-period-duration"):
        wanted = {"202403011000": 1, "202403011030": 3, "202403011130": 4, "202403011430": 5}
    made = create_due_tags(store, options)
    assert tags(store) == wanted
    assert set(wanted) <= set(made) and sorted(made) == made
    assert create_due_tags(store, options) == [] and tags(store) == wanted


def test_tags_go_on_where_they_ended() -> None:
    store = table([0, 1, 2, 3])
    create_tag(store, "2024-03-01 10", 2, None)
    create_tag(store, "by-hand", 4, None)
    assert create_due_tags(store, HOURLY) == ["2024-03-01 11", "2024-03-01 12"]
    assert tags(store) == {"2024-03-01 10": 2, "2024-03-01 11": 3, "2024-03-01 12": 4, "by-hand": 4}
    create_due_tags(store, {**HOURLY, "tag.num-retained-max": "1"})
    assert tags(store) == {"2024-03-01 12": 4, "by-hand": 4}


def test_times_by_watermarks() -> None:
    at = int(BEGIN.timestamp() * 1000)
    store = table([0, 0, 0, 0], [None, -1, at, at + HOUR_MS])
    options = {**HOURLY, "tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Asia/Tokyo"}
    assert create_due_tags(store, options) == ["2024-03-01 18", "2024-03-01 19"]
    assert tags(store) == {"2024-03-01 18": 3, "2024-03-01 19": 4}


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y%m%d %H", "%Y%m%d%H%M"])
def test_names_of_periods(form: str) -> None:
    length = dt.timedelta(hours=1)
    periods = Periods(length, form)
    for name in ("x", "", "2024", "2024-3-1", "2024-03-01x"):
        assert periods.begin(name) is None
    time_of = dt.datetime(2024, 3, 1)
    assert periods.begin(periods.name(time_of)) == time_of
    for minutes, steps in itertools.product((0, 1, 59, 60, 61), (0, 5)):
        moment = time_of + dt.timedelta(minutes=minutes, days=steps)
        begin = periods.before(moment)
        assert begin + length <= moment < begin + 2 * length and (begin - time_of) % length == dt.timedelta()


def test_a_delay_is_shorter_than_a_period() -> None:
    assert periods_of({**HOURLY, "tag.creation-delay": "59 min"}).length == dt.timedelta(hours=1)
    for delay in ("1 h", "61 min"):
        with pytest.raises(InvalidRequest) as caught:
            periods_of({**HOURLY, "tag.creation-delay": delay})
        assert caught.value.code == "invalid-table-option"


def test_the_tag_of_the_period_before() -> None:
    store = table([0.0, 24.0, 48.0])
    for name, snapshot in (("2024-05-01", 1), ("2024-05-03", 2), ("20240502", 2), ("other", 2), ("2024-05-07", 3)):
        create_tag(store, name, snapshot)
    for name, before in (("2024-05-07", "2024-05-03"), ("2024-05-03", "2024-05-01"), ("2024-05-01", None)):
        assert tag_before(store, {}, name) == before
    assert tag_before(store, {}, "2024-05-09") is None, "a tag that is not there has nothing before it"
    assert tag_before(store, {"tag.period-formatter": "without_dashes"}, "20240502") is None
    for name in ("other", "2024-5-1", "20240502"):
        with pytest.raises(InvalidRequest) as caught:
            tag_before(store, {}, name)
        assert caught.value.code == "invalid-tag"


def test_tags_of_periods_stay_for_as_long_as_the_table_says() -> None:
    for options, retained in ((HOURLY, None), ({**HOURLY, "tag.default-time-retained": "3 h"}, dt.timedelta(hours=3))):
        store = table([0])
        create_due_tags(store, options)
        assert [tag.retained for tag in list_all_tags(store)] == [retained]


def test_tags_of_a_branch() -> None:
    store = table([0, 1, 2])
    create_tag(store, "begin", 2)
    create_branch(store, "b", "begin")
    assert create_due_tags(store, HOURLY, "b") == ["2024-03-01 10"]
    assert (sorted(list_tags(store)), sorted(list_tags(store, "b"))) == (["begin"], ["2024-03-01 10", "begin"])
    create_due_tags(store, {**HOURLY, "tag.num-retained-max": "0"}, "b")
    assert list_tags(store, "b") == ["begin"]
    create_tag(store, "2024-03-01 09", 2, branch="b")
    create_tag(store, "2024-03-01 11", 2, branch="b")
    assert tag_before(store, HOURLY, "2024-03-01 11", "b") == "2024-03-01 09"
    assert tag_before(store, HOURLY, "2024-03-01 11") is None


@pytest.mark.parametrize(
    ("minutes", "delay", "made"),
    [(60, "0 min", ["2024-03-01 11"]), (59, "0 min", []), (75, "15 min", ["2024-03-01 11"]), (74, "15 min", [])],
)
def test_a_period_is_over_when_its_delay_is(minutes: int, delay: str, made: list[str]) -> None:
    """There is a tag of the hour from ten on; the next snapshot comes so many minutes behind eleven."""
    store = table([0, 0.5 + minutes / 60])
    create_tag(store, "2024-03-01 10", 1)
    assert create_due_tags(store, {**HOURLY, "tag.creation-delay": delay}) == made


def test_missed_periods_are_made_up_for_one_a_snapshot_where_they_are_asked_for() -> None:
    for completes, wanted in (
        ("true", ["2024-03-01 11", "2024-03-01 12"]),
        ("false", ["2024-03-01 14", "2024-03-01 15"]),
    ):
        store = table([0, 4.5, 5.5])
        create_tag(store, "2024-03-01 10", 1)
        assert create_due_tags(store, {**HOURLY, "tag.automatic-completion": completes}) == wanted
        assert [tags(store)[name] for name in wanted] == [2, 3]


def test_of_what_is_no_name_of_a_period_one_is_shown() -> None:
    with pytest.raises(InvalidRequest) as caught:
        tag_before(table([0]), HOURLY, "noon")
    assert "'noon'" in caught.value.message and "'1970-01-01 00'" in caught.value.message
