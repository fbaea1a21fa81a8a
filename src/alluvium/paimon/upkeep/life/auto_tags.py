"""Tags that a table's options ask for: one a period, of the first snapshot after it.

Specification: `org.apache.paimon.tag.TagAutoCreation`, `TagPeriodHandler`, `TagTimeExtractor`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.travel import list_snapshots, read_snapshot
from alluvium.paimon.terms import life_options as life
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.paimon.upkeep.life.tags import Tag, create_tag, delete_tag, list_all_tags
from alluvium.storage.store import Store

_DAY = dt.timedelta(days=1)
#: How names are written, by period and form; `%Y` has four digits of every year that a snapshot can be of.
_FORMS = {
    ("daily", "with_dashes"): "%Y-%m-%d",
    ("daily", "without_dashes"): "%Y%m%d",
    ("daily", "without_dashes_and_spaces"): "%Y%m%d",
    ("hourly", "with_dashes"): "%Y-%m-%d %H",
    ("hourly", "without_dashes"): "%Y%m%d %H",
    ("hourly", "without_dashes_and_spaces"): "%Y%m%d%H",
}
_PERIODS = {"daily": _DAY, "hourly": dt.timedelta(hours=1), "two-hours": dt.timedelta(hours=2)}
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Periods:
    """How time is cut, and what the pieces are called.

    Attributes:
        length: Of a period.
        form: Of names, as `strftime` has it.
    """

    length: dt.timedelta
    form: str

    def name(self, time: dt.datetime) -> str:
        """The tag of the period that begins at a time."""
        return time.strftime(self.form)

    def begin(self, name: str) -> dt.datetime | None:
        """When the period of a tag begins; None: the name is none of these."""
        try:
            time = dt.datetime.strptime(name, self.form)
        except ValueError:
            return None
        return time if self.name(time) == name else None

    def before(self, time: dt.datetime) -> dt.datetime:
        """The beginning of the last period that is over at a time."""
        return _EPOCH + (time - _EPOCH) // self.length * self.length - self.length


def periods_of(options: Mapping[str, str]) -> Periods:
    """As a table's options say.

    Raises:
        InvalidRequest: The delay is no shorter than a period (`"invalid-table-option"`).
    """
    own_ms, period = life.TAG_PERIOD_MS.get(options), life.TAG_PERIOD.get(options)
    if own_ms is not None:
        periods = Periods(dt.timedelta(milliseconds=own_ms), "%Y%m%d%H%M")
    elif period == "two-hours":
        periods = Periods(_PERIODS[period], _FORMS["hourly", "with_dashes"])
    else:
        periods = Periods(_PERIODS[period], _FORMS[period, life.TAG_FORMATTER.get(options)])
    if dt.timedelta(milliseconds=life.TAG_DELAY_MS.get(options)) >= periods.length:
        raise InvalidRequest(f"{life.TAG_DELAY_MS.key} is no shorter than a period", code="invalid-table-option")
    return periods


def create_due_tags(store: Store, options: Mapping[str, str], branch: str = MAIN_BRANCH) -> list[str]:
    """Makes the tags that are due, and deletes the oldest of those beyond `tag.num-retained-max`.

    Returns:
        The names of new tags.
    """
    mode = life.TAG_AUTOMATIC_CREATION.get(options)
    if mode not in ("process-time", "watermark"):
        return []
    periods = periods_of(options)
    known = [tag for tag in list_all_tags(store, branch) if periods.begin(tag.name) is not None]
    newest = known[-1] if known else None
    following = None if newest is None else _next(periods, newest)
    made = []
    for number in list_snapshots(store, branch):
        if newest is not None and number <= newest.document.id:
            continue
        try:
            time = _time_of(read_snapshot(store, number, branch), mode, options)
        except NotFound:
            continue  # it has just expired
        delay = dt.timedelta(milliseconds=life.TAG_DELAY_MS.get(options))
        if time is None or (following is not None and time - delay < following + periods.length):
            continue
        begin = periods.before(time)
        if following is not None and life.TAG_AUTOMATIC_COMPLETION.get(options):
            begin = following
        name = periods.name(begin)
        if all(tag.name != name for tag in known):
            create_tag(store, name, number, life.TAG_TIME_RETAINED_MS.get(options), branch)
            made.append(name)
        following = begin + periods.length
    _drop_oldest(store, periods, life.TAG_NUM_RETAINED_MAX.get(options), branch)
    return made


def tag_before(store: Store, options: Mapping[str, str], name: str, branch: str = MAIN_BRANCH) -> str | None:
    """The tag of the last period before that of another tag, of those that there are.

    Specification: `IncrementalDiffStartingScanner.toEndAutoTag`.

    Returns:
        Its name; None: there is none, or that other tag is not there (yet).

    Raises:
        InvalidRequest: That is no name of a tag that is made for a period (`"invalid-tag"`).
    """
    periods = periods_of(options)
    end = periods.begin(name)
    if end is None:
        raise InvalidRequest(f"{name!r} is no tag of a period, as {periods.name(_EPOCH)!r} is", code="invalid-tag")
    known = {tag.name for tag in list_all_tags(store, branch)}
    begins = {begin: other for other in known if (begin := periods.begin(other)) is not None and begin < end}
    return begins[max(begins)] if begins and name in known else None


def _next(periods: Periods, tag: Tag) -> dt.datetime | None:
    begin = periods.begin(tag.name)
    return None if begin is None else begin + periods.length


def _time_of(document: SnapshotDocument, mode: str, options: Mapping[str, str]) -> dt.datetime | None:
    if mode == "process-time":
        return dt.datetime.fromtimestamp(document.time_millis / 1000)
    if document.watermark is None or document.watermark < 0:
        return None
    zone = ZoneInfo(life.WATERMARK_TIME_ZONE.get(options))
    return dt.datetime.fromtimestamp(document.watermark / 1000, zone).replace(tzinfo=None)


def _drop_oldest(store: Store, periods: Periods, most: int | None, branch: str) -> None:
    if most is None:
        return
    automatic = [tag.name for tag in list_all_tags(store, branch) if periods.begin(tag.name) is not None]
    for name in automatic[: max(0, len(automatic) - most)]:
        delete_tag(store, name, branch)
