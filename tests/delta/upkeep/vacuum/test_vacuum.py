"""VACUUM as a whole, without Spark: what goes, what stays, what the history says; and clocks that lie."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore, When
from plain_writer import commit_rows, open_target
from vacuumed_tables import (
    NOW,
    age,
    backdate_tombstones,
    commits,
    files_of,
    goes,
    litter,
    live,
    mask_first_file,
    newest,
    overwritten,
    preview,
    run,
    with_properties,
)

from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.upkeep.vacuum.readable_versions import readable_versions
from alluvium.delta.upkeep.vacuum.vacuum import (
    HOUR_MS,
    Vacuumed,
    VacuumRequest,
    in_ms,
    read_clock,
    vacuum,
)
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict, InvalidRequest, NotFound, StorageError, UnsupportedFeature
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store


def info_of(store: Store, version: int) -> dict[str, object]:
    found: dict[str, object] = json.loads(store.get(commit_path(version)).splitlines()[0])["commitInfo"]
    return found


def test_old_versions_go_and_the_newest_stays(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    sizes = {path: (tmp_path / path).stat().st_size for path in files_of(tmp_path)}
    gone = files_of(tmp_path) - live(store)
    found = preview(store, NOW)
    assert set(found.files["path"].to_pylist()) == gone
    assert found.size_bytes == sum(sizes[path] for path in gone)
    assert found.lost_versions == (0, 1, 2)
    assert "3 files" in str(found) and "3 versions become unreadable" in str(found)
    assert files_of(tmp_path) == set(sizes), "a dry run deletes nothing"
    assert commits(store) == 4, "and says nothing"
    done = run(store, NOW)
    assert (done.files, done.size_bytes, done.version) == (3, found.size_bytes, 5)
    assert files_of(tmp_path) == live(store)
    assert run(store, NOW).files == 0


def test_the_history_tells_of_the_start_and_the_end(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    # The clock of a file system goes by ticks of some milliseconds.
    time.sleep(0.05)
    run(store, VacuumRequest(retention_ms=0, checks=False, engine="us"))
    start, end = info_of(store, 4), info_of(store, 5)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": False,
        "specifiedRetentionMillis": 0,
        "defaultRetentionMillis": 604_800_000,
    }
    assert start["operationMetrics"]["numFilesToDelete"] == "3"  # type: ignore[index]
    assert int(start["operationMetrics"]["sizeOfDataToDelete"]) > 0  # type: ignore[index]
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "3", "numVacuumedDirectories": "5"}
    for info in (start, end):
        assert (info["engineInfo"], info["isolationLevel"], info["isBlindAppend"]) == ("us", "SnapshotIsolation", True)


@pytest.mark.parametrize(("logs", "told"), [(None, 2), (True, 2), (False, 0)])
def test_a_setting_keeps_it_out_of_the_history(tmp_path: Path, logs: bool | None, told: int) -> None:
    store = overwritten(tmp_path)
    run(store, VacuumRequest(logs=logs))
    assert commits(store) == 4 + told


def test_within_the_retention_nothing_goes(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    everything = files_of(tmp_path)
    assert preview(store).files.num_rows == 0
    run(store)
    assert files_of(tmp_path) == everything


def test_tombstones_within_the_retention_keep_old_files(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)
    assert goes(store) == set(), "their tombstones are of today"


def test_a_tombstone_of_a_clock_that_is_behind_keeps_files_all_the_same(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    backdate_tombstones(store)
    age(tmp_path, 30, log=False)
    assert goes(store) == set(), "the commits that removed them are of today"
    age(tmp_path, 30)
    assert goes(store) == files_of(tmp_path) - live(store)


def test_in_commit_timestamps_count_beside_the_times_of_files(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__enableInCommitTimestamps="true")
    for n in range(3):
        commit_rows(open_target(store), [n], replace=Replace())
    backdate_tombstones(store)
    age(tmp_path, 30)
    assert goes(store) == set(), "the times that commits carry are of today"


def test_files_of_the_future_stay(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    backdate_tombstones(store)
    age(tmp_path, 30)
    age(tmp_path, -30, log=False)
    assert goes(store) == set()
    assert goes(store, NOW) == set()


def test_the_store_says_what_time_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is a year ahead: all that is there looks old, what a writer has just put there, too."""
    store = overwritten(tmp_path)
    litter(tmp_path, "of-a-writer.parquet", days=0)
    everything = files_of(tmp_path)
    monkeypatch.setattr("alluvium.delta.upkeep.vacuum.vacuum.time.time", lambda: time.time_ns() / 1e9 + 366 * 86_400)
    assert run(store).files == 0
    assert files_of(tmp_path) == everything
    assert abs(read_clock(store) - time.time_ns() // 1_000_000) < 60_000


def test_a_machine_whose_clock_is_behind_deletes_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = overwritten(tmp_path)
    litter(tmp_path, "old.parquet", days=30)
    monkeypatch.setattr("alluvium.delta.upkeep.vacuum.vacuum.time.time", lambda: time.time_ns() / 1e9 - 366 * 86_400)
    assert run(store).files == 0


def test_litter_goes_when_it_is_old_and_not_hidden(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    old = ("x.parquet", "d/e/f", "_change_data/c.parquet", "metadata/v1.json", "p=a%20b/é ü.parquet")
    hidden = (
        "_x/y",
        ".x/y",
        "_y",
        ".y",
        "d/_x/y",
        "_symlink_format_manifest/manifest",
        "_delta_log/x.parquet",
        "_q=1/x",
    )
    litter(tmp_path, *old, *hidden)
    litter(tmp_path, "young.parquet", days=1)
    kept = files_of(tmp_path) - set(old)
    assert goes(store) == set(old)
    assert run(store).files == len(old)
    assert files_of(tmp_path) == kept
    assert (tmp_path / "_delta_log/x.parquet").exists()


def test_vectors_of_live_files_and_of_young_tombstones_stay(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__enableDeletionVectors="true")
    commit_rows(open_target(store), [1, 2])
    first = mask_first_file(store)
    second = mask_first_file(store)
    age(tmp_path, 30)
    assert goes(store) == set()
    assert goes(store, NOW) == {first}
    run(store, NOW)
    assert second in files_of(tmp_path)
    assert live(store) <= files_of(tmp_path)


def test_empty_directories_are_removed_with_the_next_vacuum(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "looks-empty/_x").mkdir(parents=True)
    assert set(preview(store).directories) == {"a", "a/b", "looks-empty"}
    assert run(store).directories == 2
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "_hidden").exists() and (tmp_path / "looks-empty/_x").exists()


def test_nothing_outside_of_the_table_is_touched(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "t"
    litter(outside, "a.parquet", "d/b.parquet")
    store = overwritten(root, 1)
    (root / "linked").symlink_to(outside / "d")
    (root / "alias.parquet").symlink_to(outside / "a.parquet")
    os.utime(root / "alias.parquet", (1, 1), follow_symlinks=False)
    add = {
        "path": f"file:{outside}/a.parquet",
        "partitionValues": {},
        "size": 5,
        "modificationTime": 1,
        "dataChange": True,
    }
    remove = {"path": f"{outside}/d/b.parquet", "deletionTimestamp": 1, "dataChange": True}
    store.put(commit_path(2), json.dumps({"add": add}).encode() + b"\n" + json.dumps({"remove": remove}).encode())
    age(root, 30)
    os.utime(root / "alias.parquet", (1, 1), follow_symlinks=False)
    run(store, NOW)
    assert (outside / "a.parquet").exists() and (outside / "d/b.parquet").exists()
    assert not (root / "alias.parquet").is_symlink()


def test_a_table_behind_a_link_that_names_its_files_absolutely_keeps_them(tmp_path: Path) -> None:
    store = overwritten(tmp_path / "t", 1)
    (path,) = live(store)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    text = store.get(commit_path(1)).decode().replace(path, f"file:{tmp_path}/link/{path}")
    store.put(commit_path(1), text.encode())
    age(tmp_path / "t", 30)
    run(store, NOW)
    assert (tmp_path / "t" / path).exists()


def test_a_folder_that_is_a_link_within_the_table_keeps_its_files(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    (needed,) = live(store)
    folder = needed.rpartition("/")[0]
    (tmp_path / folder).rename(tmp_path / "real")
    (tmp_path / folder).symlink_to("real", target_is_directory=True)
    litter(tmp_path, "real/other")
    age(tmp_path, 30)
    # The clock of a file system goes by ticks.
    time.sleep(0.05)
    gone = files_of(tmp_path) - {"real/" + needed.rpartition("/")[2], folder}
    assert goes(store, NOW) == gone
    run(store, NOW)
    assert live(store) == {needed} and (tmp_path / needed).exists()


def test_a_table_within_the_table_keeps_its_files(tmp_path: Path) -> None:
    outer, inner = overwritten(tmp_path), overwritten(tmp_path / "a" / "b")
    before = {"a/b/" + path for path in files_of(tmp_path / "a" / "b")}
    litter(tmp_path, "a/orphan")
    age(tmp_path, 30)
    # The clock of a file system goes by ticks.
    time.sleep(0.05)
    found = preview(outer, NOW)
    assert "a/orphan" in found.files["path"].to_pylist()
    assert not {d for d in found.directories if d.startswith("a")}
    run(outer, NOW)
    # Of this test's files those of the inner log are none.
    assert {path for path in files_of(tmp_path) if "/_delta_log/" not in path} == live(outer) | before
    assert run(inner, NOW).files == 3


def test_names_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    odd = os.fsencode(tmp_path) + b"/\xff.parquet"
    os.mkdir(os.fsencode(tmp_path) + b"/\xfe")
    os.close(os.open(odd, os.O_CREAT | os.O_WRONLY))
    age(tmp_path, 30)
    # The clock of a file system goes by ticks.
    time.sleep(0.05)
    assert run(store, NOW).files == 3
    assert os.path.exists(odd)
    assert len(readable_versions(newest(store))) == 6


def test_a_longer_retention_is_obeyed_where_tombstones_are_forgotten(tmp_path: Path) -> None:
    """A checkpoint forgets tombstones after a week; the commits still tell of them."""
    store = overwritten(tmp_path)
    backdate_tombstones(store)
    age(tmp_path, 30)
    a_year = VacuumRequest(retention_ms=in_ms(24 * 365))
    litter(tmp_path, "very-old.parquet", days=400)
    assert goes(store, a_year) == {"very-old.parquet"}
    age(tmp_path, 400, log=False)
    assert goes(store, a_year) == {"very-old.parquet"}, "the versions are of the last year, their files were copied"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (VacuumRequest(retention_ms=-1), "negative-retention"),
        (VacuumRequest(retention_ms=-1, checks=False), "negative-retention"),
        (VacuumRequest(retention_ms=0), "retention-too-short"),
        (VacuumRequest(retention_ms=167 * HOUR_MS, lite=True), "retention-too-short"),
        (VacuumRequest(inventory=pa.table({"path": ["x"]})), "invalid-inventory"),
    ],
)
def test_what_is_refused_deletes_nothing(tmp_path: Path, request_: VacuumRequest, code: str) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)
    everything = files_of(tmp_path)
    for dry_run in (True, False):
        with pytest.raises(InvalidRequest) as caught:
            vacuum(newest(store), request_, dry_run)
        assert caught.value.code == code
        assert caught.value.hint
    assert (files_of(tmp_path), commits(store)) == (everything, 4)


def test_the_property_says_how_long_and_what_is_too_short(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    with pytest.raises(InvalidRequest, match="168 hours"):
        preview(store, VacuumRequest(retention_ms=HOUR_MS))
    apply_change(
        newest(store), lambda c: set_properties(c, {"delta.deletedFileRetentionDuration": "interval 30 minutes"}), ""
    )
    assert goes(store, VacuumRequest(retention_ms=HOUR_MS)) == set()
    with pytest.raises(InvalidRequest, match="that of the table, 1 hours"):
        preview(store, VacuumRequest(retention_ms=HOUR_MS // 4))


@pytest.mark.parametrize(
    "features",
    [
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["vacuumProtocolCheck"], "writerFeatures": ["vacuumProtocolCheck", "newFeature"]},
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["newFeature"]},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"], "writerFeatures": ["catalogManaged"]},
        {"minReaderVersion": 1, "minWriterVersion": 8},
    ],
)  # fmt: skip
def test_a_protocol_that_asks_for_more_is_refused(tmp_path: Path, features: dict[str, object]) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)
    store.put(commit_path(4), json.dumps({"protocol": features}).encode())
    everything = files_of(tmp_path)
    with pytest.raises(UnsupportedFeature):
        run(store, NOW)
    assert files_of(tmp_path) == everything


def test_a_commit_that_lands_while_files_are_listed_is_seen(tmp_path: Path) -> None:
    """What is listed as an orphan is restored before the log is read."""
    store = overwritten(tmp_path, 1)
    age(tmp_path, 30)
    stale = newest(store)

    def bring_back() -> None:
        restore(newest(store), load_snapshot(store, 0), {"version": 0, "timestamp": None}, "")

    watched = Watched(store, "list_columns", bring_back)
    done = vacuum(load_snapshot(watched), NOW)
    assert isinstance(done, Vacuumed)
    assert stale.version == 1
    assert live(store) == live(store, 0) <= files_of(tmp_path)


@pytest.mark.parametrize("logs", [True, False])
def test_a_commit_that_lands_before_the_deletion_is_seen(tmp_path: Path, logs: bool) -> None:
    store = overwritten(tmp_path, 1)
    age(tmp_path, 30)

    def bring_back() -> None:
        restore(newest(store), load_snapshot(store, 0), {"version": 0, "timestamp": None}, "")

    # Just when the plan has been made: the log of the newest version is listed once more before files go.
    watched = Watched(store, "list_from", bring_back, at=5 if logs else 4)
    vacuum(load_snapshot(watched), VacuumRequest(retention_ms=0, checks=False, logs=logs))
    assert watched.done
    assert live(store) <= files_of(tmp_path)
    assert load_snapshot(store).files.num_rows == 1


def test_a_commit_that_lands_between_two_deletions_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = overwritten(tmp_path, 2)
    backdate_tombstones(store)
    age(tmp_path, 30)
    monkeypatch.setattr("alluvium.delta.upkeep.vacuum.vacuum._PATHS_A_REQUEST", 1)
    taken: list[str] = []

    class Deleting(FaultyStore):
        def delete_all(self, paths: Sequence[str]) -> None:
            store.delete_all(paths)
            taken.extend(paths)
            if len(taken) == 1:
                kept = next(v for v in (0, 1) if not live(store, v) & set(taken))
                restore(newest(store), load_snapshot(store, kept), {"version": kept, "timestamp": None}, "")

    done = vacuum(load_snapshot(Deleting(store)), NOW)
    assert isinstance(done, Vacuumed)
    assert (len(taken), done.files) == (1, 1)
    assert live(store) <= files_of(tmp_path)


def test_who_restores_what_is_just_being_deleted_is_told(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    backdate_tombstones(store)
    age(tmp_path, 30)
    told: list[NotFound] = []

    class Deleting(FaultyStore):
        def delete_all(self, paths: Sequence[str]) -> None:
            """The request is on its way when the other commits."""
            old = load_snapshot(store, 0)

            class Late(FaultyStore):
                def put_if_absent(self, path: str, data: bytes, **said: bool) -> PutOutcome:
                    done = store.put_if_absent(path, data, **said)
                    store.delete_all(paths)
                    return done

            try:
                restore(newest(Late(store)), old, {"version": 0, "timestamp": None}, "")
            except NotFound as error:
                told.append(error)

    with pytest.raises(NotFound) as caught:
        vacuum(load_snapshot(Deleting(store)), NOW)
    assert [e.code for e in (caught.value, *told)] == ["missing-file", "missing-file"]
    assert caught.value.version == 3 and "version 3" in told[0].message
    # What they say helps.
    restore(newest(store), load_snapshot(store, 2), {"version": 2, "timestamp": None}, "")
    assert live(store) == live(store, 1) <= files_of(tmp_path)


class Watched(FaultyStore):
    """Lets somebody do something before a request of a kind is carried out."""

    def __init__(self, inner: Store, verb: str, act: object, at: int = 1) -> None:
        super().__init__(inner)
        self._verb, self._act, self._at, self.done = verb, act, at, False

    def _request(self, verb: str, path: str, act, lost=None):  # type: ignore[no-untyped-def]
        if verb == self._verb and not self.done and self.count(verb) + 1 >= self._at:
            self.done = True
            found = act() if verb == "list_columns" else None
            self._act()  # type: ignore[operator]
            self.requests.append((verb, path))
            return act() if found is None else found
        return super()._request(verb, path, act, lost)


def test_a_table_that_takes_its_place_stops_it(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)

    def replace_table() -> None:
        store.delete_tree("_delta_log")
        commit_rows(open_target(store), [7])

    with pytest.raises(CommitConflict) as caught:
        vacuum(load_snapshot(Watched(store, "list_columns", replace_table)), NOW)
    assert caught.value.code == "table-replaced"
    assert live(store) <= files_of(tmp_path)


def test_what_cannot_be_deleted_is_told_and_can_be_done_again(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    with pytest.raises(StorageError):
        run(FaultyStore(store, Fault(1, When.BEFORE, verb="delete_all")), NOW)
    assert info_of(store, 5)["operationParameters"] == {"status": "FAILED"}
    assert run(store, NOW).files == 3
    assert files_of(tmp_path) == live(store)


# --- its cost


def test_four_hundred_files_are_well_under_two_seconds(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    litter(tmp_path, *(f"p={n % 10}/part-{n}.parquet" for n in range(400)))
    begun = time.process_time()
    assert run(store).files == 400
    assert time.process_time() - begun < 1


def test_hours_become_milliseconds() -> None:
    assert (in_ms(168), in_ms(0.5), in_ms(0), in_ms(1e300)) == (604_800_000, 1_800_000, 0, 10**15)
    assert in_ms(-1e-12) < 0
