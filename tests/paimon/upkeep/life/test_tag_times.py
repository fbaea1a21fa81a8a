"""When a tag was made and for how long it stays: as its file has it, and which tags go at a time."""

from __future__ import annotations

import datetime as dt
import json
import uuid

import pytest
from paimon_rows import append, ks, make, open_target

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.travel import list_tags
from alluvium.paimon.upkeep.life.tags import (
    copy_tag,
    create_tag,
    created_at,
    expire_tags,
    list_all_tags,
    tag_path,
)
from alluvium.paimon.upkeep.removal.expire import expire_snapshots
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.storage.store import Store

MADE = dt.datetime(2024, 2, 29, 13, 4, 5, 250_000)
MICRO = dt.timedelta(microseconds=1)


@pytest.fixture
def store() -> Store:
    made = make(f"memory://{uuid.uuid4().hex}/t")
    for k in range(3):
        append(open_target(made), [{"k": k}])
    return made


def say(store: Store, tag: str, **said: object) -> None:
    """Has the file of a tag say something."""
    store.put(tag_path(tag), json.dumps({**json.loads(store.get(tag_path(tag))), **said}).encode())


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ([2024, 2, 29, 13, 4], dt.datetime(2024, 2, 29, 13, 4)),
        ([2024, 2, 29, 13, 4, 5], dt.datetime(2024, 2, 29, 13, 4, 5)),
        ([2024, 2, 29, 13, 4, 5, 250_000_000], MADE),
        ([2024, 2, 29, 13, 4, 5, 999], dt.datetime(2024, 2, 29, 13, 4, 5)),
        ([2024, 2, 29, 13, 4, 5, 999_999_999], dt.datetime(2024, 2, 29, 13, 4, 5, 999_999)),
        ("2024-02-29T13:04:05", dt.datetime(2024, 2, 29, 13, 4, 5)),
        # Java writes as many digits as there are, up to nine.
        ("2024-02-29T13:04:05.250", MADE),
        ("2024-02-29T13:04:05.123456", dt.datetime(2024, 2, 29, 13, 4, 5, 123_456)),
        ("2024-02-29T13:04:05.123456789", dt.datetime(2024, 2, 29, 13, 4, 5, 123_456)),
        ([2024, 2, 29, 13], None),
        ([], None),
        (None, None),
    ],
)
def test_a_local_time_as_jackson_has_it(value: object, wanted: dt.datetime | None) -> None:
    assert created_at(value) == wanted


def test_a_tag_with_a_time_says_when_it_was_made_and_for_how_long(store: Store) -> None:
    before = dt.datetime.now()
    create_tag(store, "a", 2, 1500)
    after = dt.datetime.now()
    said = json.loads(store.get(tag_path("a")))
    assert said["tagTimeRetained"] == 1.5
    *_, nanos = said["tagCreateTime"]
    assert nanos % 1000 == 0 and 0 <= nanos < 10**9
    (tag,) = list_all_tags(store)
    assert before <= tag.created <= after and tag.retained == dt.timedelta(seconds=1.5)
    copy_tag(store, "a", "b", retained_ms=250)
    assert [tag.retained for tag in list_all_tags(store)] == [dt.timedelta(seconds=1.5), dt.timedelta(seconds=0.25)]
    copy_tag(store, "a", "c")
    assert store.get(tag_path("c")) == store.get(tag_path("a"))


def test_an_older_tag_was_made_when_its_file_was_written(store: Store) -> None:
    create_tag(store, "a", 1)
    (tag,) = list_all_tags(store)
    written = store.head(tag_path("a")).modified_ms
    assert (tag.created, tag.retained) == (dt.datetime.fromtimestamp(written / 1000), None)
    # Some say for how long, and not since when; a word that is no number is for ever.
    for value, wanted in ((60, dt.timedelta(minutes=1)), (0.5, dt.timedelta(seconds=0.5)), ("60", None)):
        say(store, "a", tagTimeRetained=value)
        assert [tag.retained for tag in list_all_tags(store)] == [wanted]


def test_tags_stand_by_snapshot_and_then_by_name(store: Store) -> None:
    for name, number in (("z", 1), ("a", 3), ("m", 2), ("b", 1), ("y", 3)):
        create_tag(store, name, number)
    found = [(tag.document.id, tag.name) for tag in list_all_tags(store)]
    assert found == [(1, "b"), (1, "z"), (2, "m"), (3, "a"), (3, "y")]


@pytest.mark.parametrize(
    ("now", "gone"),
    [(MADE, ["none"]), (MADE + dt.timedelta(hours=1), ["none"]), (MADE + dt.timedelta(hours=1) + MICRO, ["hour", "none"])],
)  # fmt: skip
def test_a_tag_goes_once_its_time_is_over_not_when_it_ends(store: Store, now: dt.datetime, gone: list[str]) -> None:
    create_tag(store, "ever", 1)
    for name, retained in (("hour", 3600), ("none", -1)):
        create_tag(store, name, 2)
        say(store, name, tagTimeRetained=retained)
    for name in ("ever", "hour", "none"):
        say(store, name, tagCreateTime=MADE.isoformat())
    assert expire_tags(store, now) == gone
    assert list_tags(store) == sorted({"ever", "hour", "none"} - set(gone))


def test_tags_older_than_a_time_go_be_they_for_ever(store: Store) -> None:
    for name, made in (("before", MADE - MICRO), ("then", MADE), ("after", MADE + MICRO)):
        create_tag(store, name, 1)
        say(store, name, tagCreateTime=made.isoformat())
    assert expire_tags(store, MADE + dt.timedelta(days=9999)) == []
    assert expire_tags(store, MADE, older_than=MADE) == ["before"]
    assert list_tags(store) == ["after", "then"]
    assert sorted(expire_tags(store, MADE, older_than=MADE + 2 * MICRO)) == ["after", "then"]


def test_a_tag_of_an_expired_snapshot_is_a_plain_one_without_the_times_of_the_other(store: Store) -> None:
    plain = json.loads(store.get("snapshot/snapshot-1"))
    create_tag(store, "other", 3)
    create_tag(store, "kept", 1, 3_600_000)
    expire_snapshots(store, Retention(1, 1, 1 << 62, 1 << 62))
    assert create_tag(store, "again", 1) == 1
    assert json.loads(store.get(tag_path("again"))) == plain
    assert ks(store, tag="again") == [0]
    assert create_tag(store, "for a while", 1, 7000) == 1
    said = json.loads(store.get(tag_path("for a while")))
    assert said["tagTimeRetained"] == 7 and {key: said[key] for key in plain} == plain
    with pytest.raises(NotFound) as caught:
        create_tag(store, "none", 2)
    assert caught.value.code == "snapshot-expired"


def test_a_tag_that_is_replaced_takes_the_files_with_it_that_it_alone_kept(store: Store) -> None:
    create_tag(store, "a", 1)
    create_tag(store, "b", 2)
    expire_snapshots(store, Retention(1, 1, 1 << 62, 1 << 62))
    own = f"manifest/{json.loads(store.get(tag_path('a')))['deltaManifestList']}"
    before = {info.path for info in store.list_tree("manifest")}
    assert create_tag(store, "a", 2, replace=True) == 2
    assert own in before and own not in {info.path for info in store.list_tree("manifest")}
    # The same snapshot again, for another time: it still has what it needs.
    assert create_tag(store, "b", 2, 1000, replace=True) == 2
    create_tag(store, "a", 3, replace=True)
    assert ks(store, tag="b") == [0, 1] and ks(store, tag="a") == [0, 1, 2]
    assert json.loads(store.get(tag_path("b")))["tagTimeRetained"] == 1


@pytest.mark.parametrize("name", ["", " ", "\t", "a/b", ".."])
def test_what_is_no_name_of_a_tag(store: Store, name: str) -> None:
    create_tag(store, "a")
    for act in (
        lambda: create_tag(store, name),
        lambda: copy_tag(store, name, "x"),
        lambda: copy_tag(store, "a", name),
    ):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert caught.value.code == "invalid-name"
    assert list_tags(store) == ["a"]
