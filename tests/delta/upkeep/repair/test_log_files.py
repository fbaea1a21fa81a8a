"""Files of the log that stand for others: which are made anew, which go, which stay, and what is said of each."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    checkpoint_paths,
    checksum_path,
    commit_path,
    compacted_path,
)
from alluvium.delta.log.segment import list_log
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.upkeep.repair.log_files import Mended, mend_checksum, mend_log
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

HOUR_S = 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A table of four commits, with a checkpoint of the third."""
    made = open_store(str(tmp_path))
    for n in range(4):
        commit_rows(open_target(made), [n])
    write_checkpoint_at(load_snapshot(made, 2))
    return made


def age(tmp_path: Path, seconds: float = 2 * HOUR_S) -> None:
    for path in (tmp_path / "_delta_log").rglob("*.checkpoint.*"):
        os.utime(path, (time.time() - seconds, time.time() - seconds))
    RECENT.clear()


def names(tmp_path: Path) -> set[str]:
    return {str(path.relative_to(tmp_path)) for path in (tmp_path / "_delta_log").rglob("*") if path.is_file()}


def test_of_a_sound_log_there_is_nothing_to_say(store: Store, tmp_path: Path) -> None:
    before = names(tmp_path)
    assert mend_log(store, dry_run=False) == Mended() and mend_checksum(load_snapshot(store), dry_run=False) == Mended()
    assert names(tmp_path) == before


def test_what_became_of_findings_adds_up() -> None:
    first, second, third = (Finding("error", "log", text) for text in "abc")
    both = Mended((first,), (second,)) + Mended((third,), ())
    assert both == Mended((first, third), (second,)) and both + Mended() == both


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_readers_need_not_have_is_taken_away(store: Store, tmp_path: Path, dry_run: bool) -> None:
    compact_log(store, 1, 2)
    (tmp_path / compacted_path(1, 2)).write_text("{")
    (tmp_path / LAST_CHECKPOINT_PATH).write_text("{")
    crc = f"_delta_log/.{1:020d}.json.crc"
    (tmp_path / crc).write_bytes(b"crc\0\0\0\2\0aaaa")
    before = names(tmp_path)
    found = mend_log(store, dry_run)
    doomed = {compacted_path(1, 2), LAST_CHECKPOINT_PATH, crc}
    assert found.left == () and {f.message.rpartition(": removed: ")[2] for f in found.done} == doomed
    # Of Hadoop's checksum the file is named that it is of.
    assert {f.path for f in found.done} == {compacted_path(1, 2), LAST_CHECKPOINT_PATH, commit_path(1)}
    assert names(tmp_path) == (before if dry_run else before - doomed)
    if not dry_run:
        assert mend_log(store, dry_run=False) == Mended()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_damaged_checkpoint_is_written_anew(store: Store, tmp_path: Path, dry_run: bool, parts: int) -> None:
    damaged = checkpoint_paths(2)[0]
    if parts == 2:
        (tmp_path / damaged).unlink()
        damaged = checkpoint_paths(2, 2)[0]
    (tmp_path / damaged).write_bytes(b"PAR1 no PAR1")
    age(tmp_path)
    before = names(tmp_path)
    found = mend_log(store, dry_run)
    assert [(f.check, f.path) for f in found.done if f.path != LAST_CHECKPOINT_PATH] == [("checkpoint", damaged)]
    assert found.left == () and any(f.message.endswith(": written anew") for f in found.done)
    if dry_run:
        assert names(tmp_path) == before
        return
    assert list(list_log(store).checkpoints) == [2] and (tmp_path / checkpoint_paths(2)[0]).stat().st_size > 100
    assert parts == 1 or not (tmp_path / damaged).exists()
    assert mend_log(store, dry_run=False) == Mended()
    assert load_snapshot(store).files.num_rows == 4


@pytest.mark.parametrize(("seconds", "is_young"), [(0, True), (HOUR_S - 60, True), (HOUR_S + 60, False)])
def test_somebody_may_be_writing_a_young_one(store: Store, tmp_path: Path, seconds: float, is_young: bool) -> None:
    (tmp_path / checkpoint_paths(2)[0]).write_bytes(b"PAR1 no PAR1")
    age(tmp_path, seconds)
    found = mend_log(store, dry_run=True)
    assert len(found.left) == is_young and len(found.done) == (not is_young)
    assert not is_young or found.left[0].message.endswith("it is younger than an hour: perhaps somebody is writing it")


def test_what_nothing_else_says_stays(store: Store, tmp_path: Path) -> None:
    damaged = checkpoint_paths(2)[0]
    (tmp_path / damaged).write_bytes(b"PAR1 no PAR1")
    (tmp_path / commit_path(1)).unlink()
    age(tmp_path)
    found = mend_log(store, dry_run=False)
    told = [f for f in found.left if f.path == damaged]
    assert len(told) == 1 and told[0].message.endswith(
        "; the log before it is gone, so that nothing else says what it said"
    )
    assert (tmp_path / damaged).read_bytes() == b"PAR1 no PAR1"
    # Of commits nobody knows better.
    assert [f.message for f in found.left if f.check == "log"] == ["commits are missing: 1"]


def test_sidecars_belong_to_the_checkpoints_that_name_them(store: Store, tmp_path: Path) -> None:
    apply_change(load_snapshot(store), lambda c: set_properties(c, {"delta.checkpointPolicy": "v2"}), "")
    for _ in range(2):
        write_checkpoint_at(load_snapshot(store))
        commit_rows(open_target(store), [9])
    folder = tmp_path / "_delta_log/_sidecars"
    damaged = max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    damaged.write_bytes(b"PAR1 no PAR1")
    age(tmp_path)
    found = mend_log(store, dry_run=False)
    assert [(f.check, f.path) for f in found.done] == [("checkpoint", f"_delta_log/_sidecars/{damaged.name}")]
    assert found.left == () and mend_log(store, dry_run=False) == Mended()
    assert load_snapshot(store).files.num_rows == 6


@pytest.mark.parametrize("text", [b"", b"{", b"{}\n", b'{"add":{"path":7}}'])
def test_hadoops_checksum_goes_where_its_commit_makes_sense(store: Store, tmp_path: Path, text: bytes) -> None:
    crc = tmp_path / f"_delta_log/.{3:020d}.json.crc"
    crc.write_bytes(b"crc\0\0\0\2\0aaaa")
    (tmp_path / commit_path(3)).write_bytes(text)
    found = mend_log(store, dry_run=False)
    assert crc.exists() and not found.done
    assert commit_path(3) in {f.path for f in found.left}


@pytest.mark.parametrize("damage", ["{", '{"tableSizeBytes":1,"numFiles":9,"numMetadata":1,"numProtocol":1}'])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_checksum_that_is_wrong_is_written_anew(store: Store, tmp_path: Path, damage: str, dry_run: bool) -> None:
    """ "Writers MUST NOT overwrite existing Version Checksum files": it goes first."""
    path = tmp_path / checksum_path(3)
    right = json.loads(path.read_text())
    path.write_text(damage)
    found = mend_checksum(load_snapshot(store), dry_run)
    assert found.left == () and {f.path for f in found.done} == {checksum_path(3)}
    assert all(f.message.endswith(": written anew") for f in found.done)
    assert (path.read_text() == damage) == dry_run
    if not dry_run:
        # With what the commit says of itself.
        assert json.loads(path.read_text()) == right and right["txnId"]
        assert mend_checksum(load_snapshot(store), dry_run=False) == Mended()


def test_of_a_version_whose_commit_is_gone_a_checksum_has_no_more_than_the_state(store: Store, tmp_path: Path) -> None:
    write_checkpoint_at(load_snapshot(store))
    (tmp_path / commit_path(3)).unlink()
    RECENT.clear()
    path = tmp_path / checksum_path(3)
    path.write_text("{")
    assert len(mend_checksum(load_snapshot(store), dry_run=False).done) == 1
    told = json.loads(path.read_text())
    assert (told["numFiles"], "txnId" in told) == (4, False)


def test_a_table_that_we_may_not_write_keeps_its_checkpoints(store: Store, tmp_path: Path) -> None:
    (tmp_path / checkpoint_paths(2)[0]).write_bytes(b"PAR1 no PAR1")
    first = tmp_path / commit_path(0)
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["someday"]}
    first.write_text("\n".join(map(json.dumps, lines)))
    age(tmp_path)
    with pytest.raises(UnsupportedFeature):
        mend_log(store, dry_run=False)
    assert (tmp_path / checkpoint_paths(2)[0]).read_bytes() == b"PAR1 no PAR1"


def test_parts_go_whatever_lies_beside_them(store: Store, tmp_path: Path) -> None:
    """Names of a version's compactions come before those of its checkpoints, those of commits behind."""
    compact_log(store, 2, 3)
    (tmp_path / checkpoint_paths(2)[0]).unlink()
    damaged = [tmp_path / path for path in checkpoint_paths(2, 3)[:2]]
    for path in damaged:
        path.write_bytes(b"a part")
    age(tmp_path)
    assert mend_log(store, dry_run=False).left == ()
    assert not any(path.exists() for path in damaged) and (tmp_path / checkpoint_paths(2)[0]).exists()
    assert (tmp_path / compacted_path(2, 3)).exists() and mend_log(store, dry_run=False) == Mended()
