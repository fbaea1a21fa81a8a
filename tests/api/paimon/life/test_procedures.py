"""Procedures: arguments by position and by name, and the command line, which takes them, too."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
from paimon_rows import append, make, open_target

import alluvium
from alluvium.api.paimon.life.procedure import Given, bind_arguments, chosen
from alluvium.api.paimon.life.procedures import PROCEDURES, REFUSED, find_procedure, run_procedure
from alluvium.api.paimon.life.whole_databases import compact_database, remove_orphan_files
from alluvium.cli.app import main
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_numbers
from alluvium.paimon.log.travel import list_snapshots


def test_arguments_are_bound_as_java_does() -> None:
    create = find_procedure("CREATE_TAG")
    assert bind_arguments("create_tag", create, ("t", "x"), {"Time_Retained": "1 d"}) == {
        "table": "t", "tag": "x", "snapshot": None, "time_retained": "1 d",
    }  # fmt: skip
    for positional, named, code in [
        (("t",), {}, "missing-argument"),
        (("t", "x", 1, "1 d", "more"), {}, "unknown-argument"),
        (("t", "x"), {"tag": "y"}, "unknown-argument"),
        (("t", "x"), {"snapshots": 1}, "unknown-argument"),
        (("t", "x", "one"), {}, "invalid-argument"),
    ]:
        with pytest.raises(InvalidRequest) as raised:
            bind_arguments("create_tag", create, positional, named)
        assert raised.value.code == code
    with pytest.raises(InvalidRequest):
        find_procedure("nope")


@pytest.mark.parametrize(
    "value",
    [1.5, 2.0, Decimal("2.7"), Decimal(2), "1_0", "2.5", "\u0663", b"5", [1], True, dt.datetime(2024, 1, 1), 1 << 31],
)
def test_a_number_is_a_whole_one_of_its_size(value: object) -> None:
    """Snapshots would expire by another number than was said."""
    with pytest.raises(InvalidRequest) as raised:
        bind_arguments("expire_snapshots", find_procedure("expire_snapshots"), ("t",), {"retain_max": value})  # type: ignore[dict-item]
    assert raised.value.code == "invalid-argument"


def test_numbers_and_texts_as_they_come() -> None:
    expire, fast = find_procedure("expire_snapshots"), find_procedure("fast_forward")
    for value, bound in ((3, 3), (" 4 ", 4), ("-1", -1), ((1 << 31) - 1, (1 << 31) - 1)):
        assert bind_arguments("expire_snapshots", expire, ("t",), {"retain_max": value})["retain_max"] == bound
    assert bind_arguments("fast_forward", fast, ("t", 12), {})["branch"] == "12"
    for wrong in ([1], b"x", {"a": 1}):
        with pytest.raises(InvalidRequest):
            bind_arguments("fast_forward", fast, ("t", wrong), {})  # type: ignore[arg-type]


def test_a_time_of_a_rollback_is_a_number(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"))
    append(open_target(store), [{"k": 1}])
    PaimonTable.forPath(store.url).create_tag("x")
    for given in ({"version": "yesterday"}, {"tag": "x"}):
        with pytest.raises(InvalidRequest) as raised:
            run_procedure("rollback", store.url, {**given, "is_timestamp": True}, {})
        assert raised.value.code == "invalid-timestamp"
    assert run_procedure("rollback", store.url, {"version": "99999999999999", "is_timestamp": True}, {})


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(["paimon", *arguments, "--format", "json"])
    assert not end.value.code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_procedures_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "t")
    store = make(url, "day")
    for day in ("2020-01-01", "2020-01-02", "9999-01-01"):
        append(open_target(store), [{"k": 1, "day": day}])
    assert printed(capsys, "create_tag", url, "tag=x", "snapshot=2") == [{"result": True}]
    assert printed(capsys, "expire_snapshots", url, "retain_max=1", "retain_min=1") == [{"deleted_snapshots_count": 2}]
    expired = [{"expired_partitions": "day=2020-01-01"}]
    assert printed(capsys, "expire_partitions", url, "expiration_time=1 d", "max_expires=1") == expired
    since = printed(capsys, "create_tag_from_timestamp", url, "tag=y", "timestamp=0", "time_retained=1 d")
    assert since == [{"tagName": "y", "snapshot": 3}]
    assert printed(capsys, "rollback", url, "version=x") == [{"result": True}]
    assert printed(capsys, "expire_tags", url) == [{"expired_tags": "No expired tags."}]
    assert printed(capsys, "remove_orphan_files", url) == [{"deletedFileCount": 0, "deletedFileTotalLenInBytes": 0}]
    assert {"compact", "fast_forward", "reset_consumer"} <= set(PROCEDURES)


def test_what_java_has_and_we_have_not_says_why(tmp_path: Path) -> None:
    assert not set(REFUSED) & set(PROCEDURES)
    for name in REFUSED:
        with pytest.raises(UnsupportedFeature) as raised:
            run_procedure(name, str(tmp_path), {}, {})
        assert raised.value.code == "unsupported-procedure" and raised.value.hint
    with pytest.raises(UnsupportedFeature):
        find_procedure("REPAIR")


def test_a_rollback_goes_to_one_place(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"))
    for k in range(4):
        append(open_target(store), [{"k": k}])
    PaimonTable.forPath(store.url).create_tag("3", 2)
    for given, code in [({}, "missing-argument"), ({"tag": "3", "snapshot": 3}, "contradicting-options")]:
        with pytest.raises(InvalidRequest) as raised:
            run_procedure("rollback", store.url, given, {})
        assert raised.value.code == code
    # A tag may be called as a snapshot is.
    for given, left in [({"snapshot": "3"}, 3), ({"version": "3"}, 3), ({"tag": "3"}, 2)]:
        assert run_procedure("rollback", store.url, given, {}) == [{"result": True}]
        assert list_snapshots(store)[-1] == left


def test_options_of_a_call_are_on_top_of_the_tables(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"), **{"snapshot.num-retained.max": "3", "snapshot.num-retained.min": "1"})
    for k in range(4):
        append(open_target(store), [{"k": k}])
    told = {"options": " snapshot.num-retained.max=2, snapshot.expire.limit = 1"}
    assert run_procedure("expire_snapshots", store.url, told, {}) == [{"deleted_snapshots_count": 1}]
    assert PaimonTable.forPath(store.url).schema.options["snapshot.num-retained.max"] == "3"
    for wrong in ("nothing", "=3", "a=b,c"):
        with pytest.raises(InvalidRequest) as raised:
            run_procedure("expire_snapshots", store.url, {"options": wrong}, {})
        assert raised.value.code == "invalid-option"


def test_a_branch_that_is_there_may_be_left_as_it_is(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"))
    for given in ({}, {"ignoreIfExists": "true"}):
        run_procedure("create_branch", store.url, {"branch": "b", **given}, {})
    with pytest.raises(InvalidRequest):
        run_procedure("create_branch", store.url, {"branch": "b", "ignoreIfExists": "false"}, {})


def test_a_tag_of_the_first_watermark(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"))
    for k in range(4):
        append(open_target(store), [{"k": k}])
    for number, watermark in ((1, 10), (2, 20), (3, 20)):
        path = tmp_path / f"t/snapshot/snapshot-{number}"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "watermark": watermark}))
    table = PaimonTable.forPath(store.url)
    table.create_tag("kept", 1)
    (row,) = run_procedure("create_tag_from_watermark", store.url, {"tag": "w", "watermark": 11}, {})
    assert (row["tagName"], row["snapshot"], row["watermark"]) == ("w", 2, "20")
    assert row["commit_time"] == table.tagged("w").time_millis
    # Of one that has expired the tag is found.
    table.delete_tag("w")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.create_tag_from_watermark("again", 5) == 1
    with pytest.raises(NotFound) as late:
        table.create_tag_from_watermark("late", 21)
    assert late.value.code == "snapshot-not-found" and "10" in (late.value.hint or "")


def test_the_hint_of_the_earliest_snapshot(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"))
    for k in range(3):
        append(open_target(store), [{"k": k}])
    store.put("snapshot/EARLIEST", b"77")
    done = run_procedure("repair_earliest_snapshot", store.url, {"snapshot_id": 2}, {})
    assert done == [{"previous_earliest_snapshot_id": 77, "current_earliest_snapshot_id": 2}]
    assert store.get("snapshot/EARLIEST") == b"2"
    store.delete("snapshot/EARLIEST")
    assert PaimonTable.forPath(store.url).repair_earliest_snapshot(1) == 1
    with pytest.raises(NotFound):
        PaimonTable.forPath(store.url).repair_earliest_snapshot(9)


def test_tables_of_a_warehouse_are_chosen_by_their_names(tmp_path: Path) -> None:
    """Without a session none is compacted; which were asked for is told all the same."""
    for name in ("one.db/a", "one.db/b", "two.db/a"):
        append(open_target(make(str(tmp_path / name), **{"bucket": "1", "bucket-key": "k"})), [{"k": 1}])
    for given, failed in [
        ({}, 3),
        ({"including_databases": "o.*"}, 2),
        ({"including_tables": ".*[.]a"}, 2),
        ({"including_tables": "a"}, 0),
        ({"excluding_tables": "one[.]a|two[.].*"}, 1),
    ]:
        (row,) = run_procedure("compact_database", str(tmp_path), given, {})
        assert row["result"] == f"Compact database finished. Success: 0, Failed: {failed}", given
    # Folders that no name leads to are of no database.
    for odd in (".trash.db", "a.b.db", "x$y.db"):
        (tmp_path / odd / "t").mkdir(parents=True)
    found = compact_database(str(tmp_path), excluding_tables="one.*")
    assert list(found.failed) == ["two.a"]
    with pytest.raises(InvalidRequest):
        compact_database(str(tmp_path), including_tables="(")


def test_partitions_of_a_call_are_those_that_are_meant(tmp_path: Path) -> None:
    days = ["x", "O'Brien", "a\\nb", 'say "x"', "a=b", ""]
    store = make(str(tmp_path / "t"), "day")
    for k, day in enumerate(days):
        append(open_target(store), [{"k": k, "day": day}])

    def meant(partitions: str) -> list[int]:
        where = chosen(Given(store.url, {"partitions": partitions, "where": None}, "UTC"))
        return sorted(row["k"] for row in alluvium.open(store.url).to_arrow(where=where).to_pylist())

    for k, day in enumerate(days):
        assert meant(f"day={day}") == [k], day
    assert meant("day='x'") == meant("day=x;") == meant(" day = x ; ") == [0]
    assert meant("day=x;day=a=b") == [0, 4]
    for wrong in ("day", "day=x;day", "x=day", ";", "day=x,"):
        with pytest.raises(InvalidRequest) as raised:
            meant(wrong)
        assert raised.value.code == "invalid-partition", wrong


def test_all_changelogs_go_or_those_that_options_say(tmp_path: Path) -> None:
    kept = {"changelog.num-retained.max": "9", "changelog.num-retained.min": "9"}
    store = make(str(tmp_path / "t"), **kept, **{"snapshot.num-retained.min": "1"})
    for k in range(4):
        append(open_target(store), [{"k": k}])
    table = PaimonTable.forPath(store.url)
    table.reset_consumer("reader", 4)
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.reset_consumer("reader", 2)
    for given in ({"retain_min": 2}, {"retain_max": 2}, {"older_than": "2020-01-01"}, {"max_deletes": 1}):
        with pytest.raises(InvalidRequest) as raised:
            run_procedure("expire_changelogs", store.url, {**given, "delete_all": True}, {})
        assert raised.value.code == "contradicting-options", given
    assert list_numbers(store, "changelog", "changelog-") == [1, 2, 3]
    done = run_procedure("expire_changelogs", store.url, {"delete_all": True}, {})
    assert done == [{"deleted_changelogs_count": 3}] and list_numbers(store, "changelog", "changelog-") == []


def test_orphans_of_a_whole_database(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    for name in ("db.db/a", "db.db/b", "other.db/c"):
        store = make(f"{warehouse}/{name}")
        append(open_target(store), [{"k": 1}])
        store.put("bucket-0/stray", b"12345")
        os.utime(tmp_path / name / "bucket-0/stray", (1, 1))
    (tmp_path / "db.db/no table").mkdir()

    def removed(**given: bool | int) -> list[tuple[int, int]]:
        found = remove_orphan_files(warehouse, "db", **given)  # type: ignore[arg-type]
        return [(one.count, one.size_bytes) for one in found]

    assert removed(dry_run=True) == [(1, 5), (1, 5)]
    assert removed(older_than=1) == [(0, 0), (0, 0)]
    (told,) = run_procedure("remove_orphan_files", warehouse, {"table": "db.*"}, {})
    assert told == {"deletedFileCount": 2, "deletedFileTotalLenInBytes": 10}
    assert removed() == [(0, 0), (0, 0)]
    assert (tmp_path / "other.db/c/bucket-0/stray").exists()
    with pytest.raises(InvalidRequest) as raised:
        remove_orphan_files(warehouse, "dbs")
    assert raised.value.code == "unknown-database"
