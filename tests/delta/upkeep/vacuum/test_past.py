from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_metadata
from plain_writer import commit_rows, open_target
from vacuumed_tables import age, newest, overwritten, with_properties

from alluvium.delta.features.log.in_commit_timestamp import enablement
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.log.timeline import read_commit_infos
from alluvium.delta.terms.spec import format_actions
from alluvium.delta.upkeep.vacuum.past import (
    LAST_VACUUM_PATH,
    Retention,
    from_inventory,
    list_past,
    read_last_vacuum,
    read_needed,
    read_retention,
    write_last_vacuum,
)
from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def nothing(name: str) -> bool:
    return name.startswith("_")


def test_the_newest_version_that_is_past(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    now_ms = int(time.time() * 1000)
    assert read_retention(newest(store), now_ms - 86_400_000).last_past == -1
    assert read_retention(newest(store), now_ms + 86_400_000).last_past == 3
    age(tmp_path, 30)
    assert read_retention(newest(store), now_ms - 86_400_000).last_past == 3


def test_one_commit_that_is_young_makes_all_after_it_young(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)
    path = tmp_path / "_delta_log" / f"{1:020}.json"
    path.touch()
    assert read_retention(newest(store), int(time.time() * 1000) - 86_400_000).last_past == 0


def test_times_that_commits_carry_count_too(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__enableInCommitTimestamps="true")
    for n in range(3):
        commit_rows(open_target(store), [n])
    infos = read_commit_infos(store, None, enablement(newest(store).config))
    carried = {version: carried_ms for version, _, carried_ms in infos}
    latest = max(carried)
    age(tmp_path, 30)
    assert read_retention(newest(store), carried[0]).last_past == -1
    assert read_retention(newest(store), carried[latest]).last_past == latest - 1
    assert read_retention(newest(store), carried[latest] + 1).last_past == latest


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"latestCommitVersionOutsideOfRetentionWindow":"x"}', b"{}", b"\xff"]
)
def test_a_note_that_makes_no_sense_is_none(tmp_path: Path, text: bytes) -> None:
    store = overwritten(tmp_path, 0)
    store.put(LAST_VACUUM_PATH, text)
    assert read_last_vacuum(store) is None


def test_the_note_never_goes_back(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 0)
    assert read_last_vacuum(store) is None
    write_last_vacuum(store, -1)
    assert read_last_vacuum(store) is None
    write_last_vacuum(store, 0)
    assert read_last_vacuum(store) == 0
    write_last_vacuum(store, 7)
    assert store.get(LAST_VACUUM_PATH) == b'{"latestCommitVersionOutsideOfRetentionWindow":7}\n'
    write_last_vacuum(store, 3)
    assert read_last_vacuum(store) == 7


@pytest.mark.parametrize(
    ("root", "spelled"),
    [
        ("file:/t/a b", ["file:/t/a b/x", "file:///t/a b/x", "/t/a b/x"]),
        ("s3a://b/t", ["s3a://b/t/x", "s3://b/t/x", "s3n://b/t/x"]),
        ("gs://b/t", ["gs://b/t/x"]),
    ],
)
def test_an_inventory_may_spell_the_root_in_several_ways(root: str, spelled: list[str]) -> None:
    strange = ["x", "file:/t/a bc/x", "gs://other/t/x", f"{root}/", f"{root}//x", f"{root}/./x", f"{root}/_h/x"]
    for paths in (spelled, strange):
        table = pa.table({"path": paths, "length": [2] * len(paths), "isDir": [False] * len(paths)})
        table = table.append_column("modificationTime", pa.array(range(len(paths)), pa.int64()))
        found = from_inventory(table, root, nothing).to_pylist()
        wanted = [{"path": "x", "size": 2, "modified_ms": len(paths) - 1, "is_directory": False}]
        assert found == (wanted if paths is spelled else []), paths


@pytest.mark.parametrize("column", ["path", "length", "isDir", "modificationTime"])
def test_an_inventory_needs_its_columns_of_their_types(column: str) -> None:
    whole = pa.table({"path": ["x"], "length": [1], "isDir": [False], "modificationTime": [1]})
    with pytest.raises(InvalidRequest) as caught:
        from_inventory(whole.drop_columns([column]), "file:/t", nothing)
    assert (caught.value.code, caught.value.column) == ("invalid-inventory", column)
    other = whole.set_column(whole.schema.get_field_index(column), column, pa.array([1.5]))
    with pytest.raises(InvalidRequest):
        from_inventory(other, "file:/t", nothing)


def test_the_first_version_alone_may_carry_a_younger_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__enableInCommitTimestamps="true")
    ((_, _, carried_ms),) = read_commit_infos(store, None, enablement(newest(store).config))
    age(tmp_path, 30)
    assert read_retention(newest(store), carried_ms).last_past == -1
    assert read_retention(newest(store), carried_ms + 1).last_past == 0


def test_a_version_that_was_opened_counts_as_the_newest(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    opened = newest(store)
    commit_rows(open_target(store), [9])
    age(tmp_path, 30)
    found = read_retention(opened, int(time.time() * 1000))
    assert (found.last_past, found.listing.latest) == (opened.version, opened.version + 1)


def past_table() -> MemoryStore:
    """Version 0 adds files; each later one removes one, at times around 1000, and records a change."""
    store = MemoryStore(uuid.uuid4().hex, "t")
    names = [f"f%20{n}" for n in range(6)]
    add = {"partitionValues": {}, "size": 5, "modificationTime": 7, "dataChange": True}
    head = format_actions([LEGACY, make_metadata()])
    store.put(
        commit_path(0), head + "".join(json.dumps({"add": {**add, "path": name}}) + "\n" for name in names).encode()
    )
    for version, at in enumerate([999, 1000, 1001, None], 1):
        gone = {
            "path": names[version],
            "dataChange": True,
            **({} if at is None else {"deletionTimestamp": at}),
            "size": 5,
        }
        cdc = {"path": f"_change_data/c{version}", "partitionValues": {}, "size": 3, "dataChange": False}
        store.put(
            commit_path(version), "".join(json.dumps(line) + "\n" for line in ({"remove": gone}, {"cdc": cdc})).encode()
        )
    return store


@pytest.mark.parametrize("last_past", [4, 3, 1, -1])
def test_files_of_the_newest_version_and_of_what_is_younger_stay(last_past: int) -> None:
    """By the tombstones' own times, and by the commits that are within the retention, whatever those say."""
    store = past_table()
    found = read_needed(newest(store), Retention(1000, list_log(store), last_past))
    stay = {"f 0", "f 5", "f 2", "f 3"} | {f"f {version}" for version in range(last_past + 1, 5)}
    stay |= {f"_change_data/c{version}" for version in range(max(last_past + 1, 1), 5)}
    if last_past < 0:
        stay |= {f"f {n}" for n in range(6)}
    names = {path for path in found.paths.to_pylist() if "%" not in path}
    assert names == stay
    # A writer that does not escape means the path as it stands there.
    assert {path.replace("%20", " ") for path in found.paths.to_pylist() if "%" in path} == {
        n for n in stay if n.startswith("f ")
    }


def test_what_commits_removed_and_recorded_before() -> None:
    """Since the last time, as if it had been listed."""
    store = past_table()
    snapshot = newest(store)

    def past(last_past: int) -> list[str]:
        return sorted(list_past(snapshot, Retention(1000, list_log(store), last_past))["path"].to_pylist())

    def told(*versions: int) -> list[str]:
        return sorted([*(f"f {v}" for v in versions), *(f"_change_data/c{v}" for v in versions)])

    assert past(-1) == past(0) == [] and past(2) == told(1, 2) and past(4) == told(1, 2, 3, 4)
    write_last_vacuum(store, 2)
    assert past(4) == told(3, 4) and past(2) == [] and past(3) == told(3)
    for version in (0, 1):
        store.delete(commit_path(version))
    assert past(4) == told(3, 4)
    # As in delta-spark, the commit of the last time must be there, too.
    store.delete(commit_path(2))
    with pytest.raises(InvalidRequest) as caught:
        past(4)
    assert caught.value.code == "cannot-vacuum-lite"
