"""Tags, rollback and branches, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import FaultyStore, When
from paimon_rows import append, ks, make, open_target

import alluvium
from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_branches, list_numbers
from alluvium.paimon.log.travel import list_snapshots, list_tags
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.terms.durations import parse_duration
from alluvium.paimon.upkeep.life.auto_tags import create_due_tags, periods_of
from alluvium.paimon.upkeep.life.java_time_patterns import parse_time
from alluvium.storage.open import open_store


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    url = str(tmp_path / "t")
    store = make(url)
    for n in range(3):
        append(open_target(store), [{"k": n}])
    return PaimonTable.forPath(url)


def test_a_tag_says_what_java_reads(table: PaimonTable, tmp_path: Path) -> None:
    assert table.create_tag("a", 2) == 2
    assert (tmp_path / "t/tag/tag-a").read_bytes() == (tmp_path / "t/snapshot/snapshot-2").read_bytes()
    table.create_tag("b", time_retained="36 h")
    said = json.loads((tmp_path / "t/tag/tag-b").read_bytes())
    assert (said["id"], said["tagTimeRetained"], len(said["tagCreateTime"])) == (3, 129600, 7)
    assert ks(table._store, tag="a") == [0, 1]
    assert table.expire_tags() == []
    assert table.expire_tags(dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)) == ["a", "b"]


def test_a_tag_whose_time_is_over_expires(table: PaimonTable, tmp_path: Path) -> None:
    for name, retained in (("long", "3 d"), ("over", "36 h"), ("always", None)):
        table.create_tag(name, time_retained=retained)
        path = tmp_path / f"t/tag/tag-{name}"
        said = json.loads(path.read_bytes())
        if retained is not None:
            made = dt.datetime.now() - dt.timedelta(days=2)
            said["tagCreateTime"] = [made.year, made.month, made.day, made.hour, made.minute, made.second, 0]
            path.write_text(json.dumps(said))
    assert table.expire_tags() == ["over"]
    assert sorted(path.name for path in (tmp_path / "t/tag").iterdir()) == ["tag-always", "tag-long"]


def test_a_tag_of_the_first_snapshot_since_a_time(table: PaimonTable, tmp_path: Path) -> None:
    times = {}
    for number in (1, 2, 3):
        path = tmp_path / f"t/snapshot/snapshot-{number}"
        said = json.loads(path.read_bytes())
        times[number] = said["timeMillis"] = 1_700_000_000_000 + 1000 * number
        path.write_text(json.dumps(said))
    assert table.create_tag_from_timestamp("exact", times[2]) == 2
    assert table.create_tag_from_timestamp("next", times[2] + 1, "1 d") == 3
    assert table.create_tag_from_timestamp("first", 0) == 1
    assert ks(table._store, tag="exact") == [0, 1]
    with pytest.raises(NotFound) as late:
        table.create_tag_from_timestamp("late", times[3] + 1)
    assert late.value.code == "snapshot-not-found" and str(times[3]) in (late.value.hint or "")
    with pytest.raises(InvalidRequest, match="first"):
        table.create_tag_from_timestamp("first", 0)


def test_a_rollback_to_a_watermark(table: PaimonTable, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="watermark"):
        table.rollback_to_watermark(5)
    for number, watermark in ((1, 10), (2, 20), (3, 30)):
        path = tmp_path / f"t/snapshot/snapshot-{number}"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "watermark": watermark}))
    with pytest.raises(NotFound) as early:
        table.rollback_to_watermark(9)
    assert early.value.code == "snapshot-not-found" and "10" in (early.value.hint or "")
    assert table.rollback_to_watermark(29) == 2
    assert list_snapshots(table._store) == [1, 2]
    assert table.rollback_to_watermark(20) == 2


def test_what_is_refused(table: PaimonTable) -> None:
    table.create_tag("a")
    table.create_branch("b", "a")
    table.create_branch("empty")
    refused = {
        "tag-exists": [lambda: table.create_tag("a"), lambda: table.rename_tag("a", "a")],
        "invalid-name": [
            lambda: table.create_tag(" "), lambda: table.create_tag("../x"), lambda: table.create_branch("main"),
            lambda: table.create_branch("12"), lambda: table.delete_branch("main"), lambda: table.fast_forward("main"),
        ],
        "branch-exists": [lambda: table.create_branch("b")],
        "empty-branch": [lambda: table.fast_forward("empty")],
        "snapshot-not-found": [lambda: table.create_tag("c", 9), lambda: table.rollback_to(9)],
        "tag-not-found": [
            lambda: table.rename_tag("x", "y"), lambda: table.rollback_to("x"), lambda: table.create_branch("c", "x"),
            lambda: table.replace_tag("x"),
        ],
        "branch-not-found": [lambda: table.delete_branch("x"), lambda: table.fast_forward("x")],
        "no-snapshot-before": [lambda: table.rollback_to_timestamp("1999-01-01")],
        "invalid-duration": [lambda: table.create_tag("c", time_retained="soon")],
    }  # fmt: skip
    for code, acts in refused.items():
        for act in acts:
            with pytest.raises((InvalidRequest, NotFound)) as raised:
                act()
            assert raised.value.code == code
    assert list_snapshots(table._store) == [1, 2, 3]
    assert (sorted(list_tags(table._store)), list_branches(table._store)) == (["a"], ["b", "empty"])


@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_a_branch_whose_rows_the_table_shows_stays(table: PaimonTable, option: str) -> None:
    for name in ("a", "b"):
        table.create_branch(name)
    table.alter([SchemaChange.set_option(option, "b")])
    for act in (lambda: table.delete_branch("b"), lambda: table.delete_branch("a", "b"), table.purge_files):
        with pytest.raises(InvalidRequest) as raised:
            act()
        assert raised.value.code == "branch-in-use" and option in (raised.value.hint or "")
    assert list_branches(table._store) == ["a", "b"] and list_snapshots(table._store) == [1, 2, 3]
    table.alter([SchemaChange.remove_option(option)])
    table.delete_branch("b", "a")
    assert list_branches(table._store) == []


@pytest.mark.parametrize("left", ["snapshot/snapshot-1", "schema/schema-7", "tag/tag-x"])
def test_a_branch_is_not_made_over_what_is_left_of_one(table: PaimonTable, left: str) -> None:
    """Its files would be those of another history."""
    table._store.put(f"branch/branch-z/{left}", b"{}")
    with pytest.raises(InvalidRequest) as raised:
        table.create_branch("z")
    assert raised.value.code == "branch-exists"
    assert [found.path for found in table._store.list_tree("branch")] == [f"branch/branch-z/{left}"]


@pytest.mark.parametrize("verb", ["get", "put_if_absent"])
@pytest.mark.parametrize("when", list(When))
def test_a_snapshot_that_expires_while_it_is_tagged(table: PaimonTable, verb: str, when: When) -> None:
    """Just before or after the snapshot is read, or the tag written: there is a tag that reads, or none."""

    class Expiring(FaultyStore):
        def _request(self, name, path, act, lost=None):  # type: ignore[no-untyped-def]
            if name == verb and path in ("snapshot/snapshot-1", "tag/tag-a"):
                if when is When.AFTER:
                    answer = super()._request(name, path, act, lost)
                    PaimonTable.forPath(table.url).expire_snapshots(retain_max=1, retain_min=1)
                    return answer
                PaimonTable.forPath(table.url).expire_snapshots(retain_max=1, retain_min=1)
            return super()._request(name, path, act, lost)

    try:
        PaimonTable(Expiring(open_store(table.url))).create_tag("a", 1)
    except NotFound as error:
        assert error.code == "snapshot-expired"
        assert list_tags(table._store) == []
    else:
        assert ks(table._store, tag="a") == [0]
    assert ks(table._store) == [0, 1, 2]


def test_rollback_takes_later_tags_with_it(table: PaimonTable, tmp_path: Path) -> None:
    for n in (1, 2, 3):
        table.create_tag(f"t{n}", n)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.rollback_to("t2") == 2
    assert list_snapshots(table._store) == [2]
    assert sorted(list_tags(table._store)) == ["t1", "t2"]
    assert [(tmp_path / "t/snapshot" / hint).read_text() for hint in ("EARLIEST", "LATEST")] == ["2", "2"]
    append(open_target(table._store), [{"k": 9}])
    assert ks(table._store) == [0, 1, 9]


def test_tags_that_options_ask_for(table: PaimonTable, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"tag.automatic-creation": "process-time", "tag.creation-period": "hourly"}
    made = create_due_tags(table._store, options)
    assert len(made) == 1
    assert periods_of(options).begin(made[0]) is not None
    assert create_due_tags(table._store, options) == []
    with pytest.raises(InvalidRequest):
        periods_of({**options, "tag.creation-delay": "1 h"})


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "2024-01-01"),
        ({"tag.creation-period": "hourly"}, "2024-01-02 02"),
        ({"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes_and_spaces"}, "2024010202"),
        ({"tag.creation-period": "two-hours"}, "2024-01-02 00"),
        ({"tag.creation-period-duration": "10 min"}, "202401020310"),
    ],
)
def test_names_of_periods(options: dict[str, str], name: str) -> None:
    periods = periods_of(options)
    begin = periods.before(dt.datetime(2024, 1, 2, 3, 25))
    assert periods.name(begin) == name
    assert periods.begin(name) == begin
    assert periods.begin("monday") is None


@pytest.mark.parametrize(("text", "ms"), [("1 d", 86_400_000), ("12h", 43_200_000), ("500", 500), ("3 min", 180_000)])
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    ("text", "pattern", "time"),
    [
        ("2024-1-2", None, dt.datetime(2024, 1, 2)),
        ("2024-01-02 03:04:05", None, dt.datetime(2024, 1, 2, 3, 4, 5)),
        ("20240102", "yyyyMMdd", dt.datetime(2024, 1, 2)),
        ("2024-01-02T03", "yyyy-MM-dd'T'HH", dt.datetime(2024, 1, 2, 3)),
        ("20240199", "yyyyMMdd", None),
        ("monday", None, None),
    ],
)
def test_times_of_partitions(text: str, pattern: str | None, time: dt.datetime | None) -> None:
    assert parse_time(text, pattern) == time


def test_of_two_makers_of_a_branch_one_goes_on(tmp_path: Path) -> None:
    """The other neither mixes its rows with those of the first, nor takes the branch away when it fails."""
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int64())]))
    store = table._store

    class Slow(type(store)):  # type: ignore[misc] # the table's own kind of store
        """Another maker comes between the look and the first file."""

        def put_if_absent(self, path, data, makes_directory=True):
            table.create_branch("b")
            return super().put_if_absent(path, data, makes_directory)

    with pytest.raises(InvalidRequest) as caught:
        PaimonTable(Slow(str(tmp_path / "t"))).create_branch("b")
    assert caught.value.code == "branch-exists"
    assert PaimonTable.forPath(table.url, branch="b").schema == table.schema


def test_going_on_as_a_branch_leaves_nothing_of_the_history_that_was(tmp_path: Path) -> None:
    """Java believes the hint of the earliest snapshot as soon as that is there again; a stream would read changelogs of
    snapshots that are none of the table's any more.
    """
    kept = {"changelog.num-retained.max": "9", "changelog.num-retained.min": "9"}
    store = make(str(tmp_path / "long"), **{**kept, "snapshot.num-retained.min": "1"})
    table = PaimonTable.forPath(store.url)
    for n in range(2):
        append(open_target(store), [{"k": n}])
    table.create_tag("two", 2)
    table.create_branch("b", "two")
    for n in range(2, 6):
        append(open_target(store), [{"k": n}])
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert store.get("snapshot/EARLIEST") == b"6" and list_numbers(store, "changelog", "changelog-") == [1, 2, 3, 4, 5]
    table.fast_forward("b")
    assert store.get("snapshot/EARLIEST") == store.get("snapshot/LATEST") == b"2"
    assert list_snapshots(store) == [2] and list_numbers(store, "changelog", "changelog-") == [1]
    assert store.get("changelog/LATEST") == b"1"


@pytest.mark.parametrize(("tag", "left"), [(1, []), (2, [2]), (4, [2, 3, 4]), (5, [2, 3, 4, 5])])
def test_the_hint_of_changelogs_follows_a_rollback(tmp_path: Path, tag: int, left: list[int]) -> None:
    """Java's next rollback ended where the hint led to a changelog that was gone: without a snapshot in the table."""
    kept = {"changelog.num-retained.max": "9", "changelog.num-retained.min": "9", "snapshot.num-retained.min": "1"}
    store = make(str(tmp_path / "long"), **kept)
    table = PaimonTable.forPath(store.url)
    for n in range(6):
        append(open_target(store), [{"k": n}])
        table.create_tag(f"t{n + 1}", n + 1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert store.get("changelog/LATEST") == b"5"
    store.delete("changelog/changelog-1")
    store.put("changelog/LATEST", b"6")  # as somebody has left it
    table.rollback_to(f"t{tag}")
    assert list_numbers(store, "changelog", "changelog-") == left
    assert store.get("changelog/LATEST") == str(max(left, default=-1)).encode()


@pytest.mark.parametrize("by", ["rollback", "fast_forward"])
def test_a_refreshed_view_is_not_misled_by_a_number_that_came_again(table: PaimonTable, by: str) -> None:
    """Three snapshots as before, and the third is another."""
    view, store = alluvium.open(table.url), table._store
    assert view.version == 3
    if by == "rollback":
        table.rollback_to(2)
        append(open_target(store), [{"k": 7}])
    else:
        table.create_tag("two", 2)
        table.create_branch("b", "two")
        append(open_target(store, "b"), [{"k": 7}])
        table.fast_forward("b")
    newer = view.refresh()
    assert (newer.version, sorted(newer.to_arrow()["k"].to_pylist())) == (3, [0, 1, 7])
    assert newer.refresh() is newer
    assert sorted(view.to_arrow()["k"].to_pylist()) == [0, 1, 2]
