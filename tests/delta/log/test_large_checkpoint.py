"""Checkpoints that are written piece by piece hold what those hold that are written at once."""

from __future__ import annotations

import errno
from itertools import chain
from typing import Any

import pyarrow.parquet as pq
import pytest
from delta_values import make_config
from large_logs import in_small_pieces, listed

from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint, part_numbers, write_checkpoint
from alluvium.delta.log.large import checkpoint as large_checkpoint
from alluvium.delta.log.large.checkpoint import write_large_checkpoint
from alluvium.delta.log.large.pieces import Pieces
from alluvium.delta.log.names import LAST_CHECKPOINT_PATH
from alluvium.delta.log.segment import list_log, list_segment
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.log_upkeep.file_columns import checkpoint_files
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import Action, DomainMetadata, Protocol, RowIdHighWaterMark, Txn
from alluvium.errors import CorruptTable, StorageError

from .conftest import LogWriter

HOW: list[dict[str, Any]] = [
    {}, {"max_actions": 3}, {"v2": True}, {"v2": True, "max_actions": 3, "classic_name": True},
]  # fmt: skip
VECTORS = Protocol(
    min_reader_version=3, min_writer_version=7,
    reader_features=("deletionVectors", "v2Checkpoint"), writer_features=("deletionVectors", "v2Checkpoint"),
)  # fmt: skip


def unread(log: LogWriter) -> LogState:
    state = load_state(log.store, list_segment(log.store), lambda protocol: None, 0)
    assert state.deferred
    return state


def fill(log: LogWriter) -> None:
    """Files, vectors and removed files in a checkpoint of version 1, and commits that change their mind behind it."""
    described: list[Action] = [
        Txn(app_id="x", version=3), DomainMetadata(domain="d", configuration="c", removed=False),
        RowIdHighWaterMark(high_water_mark=4, preserved_row_ids=True),
    ]  # fmt: skip
    adds = [log.add(f"f{n}", size=n, stats=f'{{"numRecords":{n}}}', tags={"n": str(n)}) for n in range(8)]
    log.commit(0, [*log.head(a="b"), VECTORS, *described, *adds, log.add("masked", "v", 3, size=9)])
    log.commit(1, [log.remove("f7", at=5), log.remove("old", "w", at=None), log.remove("gone", at=900)])
    log.checkpoint(1)
    log.commit(2, [log.remove("f1", at=700), log.add("f2", size=22), log.add("new"), log.add("f7", size=77)])
    log.commit(3, [log.remove("masked", "v", 3, at=800), log.add("masked", "v2", 1), log.remove("new", at=100)])


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_nothing_is_lost(log: LogWriter, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], rows: int) -> None:
    """Removed files that have expired are forgotten, whether the checkpoint before listed them or a commit since."""
    fill(log)
    in_small_pieces(monkeypatch, rows)
    options = CheckpointOptions(1_000, 500, **how)
    before = log.load()
    last = write_large_checkpoint(Pieces(log.store, unread(log)), options, lambda files: files)
    after = log.load()
    assert after.segment.checkpoint_version == 3 and not after.segment.commits
    assert listed(after.files) == [{**row, "dataChange": False} for row in listed(before.files)]
    assert sorted(after.tombstones["path"].to_pylist()) == ["f1", "gone", "masked"]
    for name in ("protocol", "metadata", "txns", "domains", "row_id_high_water_mark"):
        assert getattr(after, name) == getattr(before, name)
    parts = list_log(log.store).checkpoints[3]
    assert (last.version, last.num_of_add_files, last.size) == (3, 8, 8 + 3 + 5)
    assert last.parts == (len(parts) if len(parts) > 1 else None)
    assert LAST_CHECKPOINT_PATH in {info.path for info in log.store.list_tree("_delta_log")}


@pytest.mark.parametrize("how", HOW, ids=str)
def test_generation_after_generation(log: LogWriter, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]) -> None:
    """Each is made out of the one before, and files come and go in between."""
    fill(log)
    in_small_pieces(monkeypatch)
    expected = log.paths()
    for version in range(4, 24):
        gone, came = f"f{(version * 3) % 8}", f"f{(version * 5) % 8}"
        log.commit(version, [log.remove(gone, at=999), *([log.add(came, size=version)] if gone != came else [])])
        expected = (expected - {gone}) | ({came} if gone != came else set())
        write_large_checkpoint(
            Pieces(log.store, unread(log)), CheckpointOptions(1_000, 500, **how), lambda files: files
        )
        assert log.paths() == expected
        assert log.load().segment.checkpoint_version == version


@pytest.mark.parametrize("how", HOW, ids=str)
def test_parts_are_those_of_a_checkpoint_that_is_written_at_once(
    log: LogWriter, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """ "multi-part checkpoints MUST be clustered by spark-style hash partitioning" """
    fill(log)
    in_small_pieces(monkeypatch)
    options = CheckpointOptions(1_000, 10_000, **how)

    def contents() -> list[list[tuple[str, str]]]:
        found = []
        for info in sorted(list_log(log.store).checkpoints[3], key=lambda info: info.path):
            table = pq.read_table(log.store.open_input(info.path))
            found.append(
                sorted((kind, row["path"]) for kind in ("add", "remove") for row in table[kind].to_pylist() if row)
            )
        return found

    write_large_checkpoint(Pieces(log.store, unread(log)), options, lambda files: files)
    by_pieces = contents()
    for info in list_log(log.store).checkpoints[3]:
        log.store.delete(info.path)
    write_checkpoint(log.store, log.load(), options)
    assert sorted(chain.from_iterable(by_pieces)) == sorted(chain.from_iterable(contents()))
    if "v2" in how:
        return
    # By the path and the vector, as the table supports vectors.
    tables = [
        log.load().files.select(["path", "deletionVector"]),
        log.load().tombstones.select(["path", "deletionVector"]),
    ]
    for kind, table in zip(("add", "remove"), tables, strict=True):
        numbers = part_numbers(table, len(by_pieces), True).to_pylist()
        for path, number in zip(table["path"].to_pylist(), numbers, strict=True):
            assert (kind, path) in by_pieces[number]


@pytest.mark.parametrize(("as_json", "as_struct"), [(True, True), (False, True), (True, False)])
def test_statistics_in_either_form(
    log: LogWriter, monkeypatch: pytest.MonkeyPatch, as_json: bool, as_struct: bool
) -> None:
    """Some files say that their bounds are exact, others nothing: each file of the checkpoint has the same columns."""
    config = make_config(
        properties={
            "delta.checkpoint.writeStatsAsJson": str(as_json).lower(),
            "delta.checkpoint.writeStatsAsStruct": str(as_struct).lower(),
        }
    )
    texts = [
        '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":0},"tightBounds":false}',
        '{"numRecords":5,"minValues":{"id":7},"maxValues":{"id":9},"nullCount":{"id":1}}', None,
    ]  # fmt: skip
    log.commit(0, [config.protocol, config.metadata, *(log.add(f"f{n}", stats=texts[n % 3]) for n in range(6))])
    in_small_pieces(monkeypatch)
    properties = parse_properties(config.metadata.configuration)

    def formed(files: Any) -> Any:
        return checkpoint_files(files, config, properties)

    options = CheckpointOptions(1_000, 500, max_actions=4)
    write_checkpoint(log.store, log.load(), options, formed(log.load().files))
    log.commit(1, [log.add("new", stats=texts[0])])
    for version in (1, 2):
        if version == 2:
            log.commit(2, [log.add("newer", stats=texts[1])])
        write_large_checkpoint(Pieces(log.store, unread(log)), options, formed)
        found = log.load()
        expected = {
            **{f"f{n}": texts[n % 3] for n in range(6)},
            "new": texts[0],
            **({"newer": texts[1]} if version == 2 else {}),
        }
        whole = formed(found.files)
        assert set(whole["path"].to_pylist()) == set(expected)
        for row in whole.to_pylist():
            text = expected[row["path"]]
            if as_json:
                assert (row["stats"] is None) == (text is None)
                assert text is None or ('"tightBounds":false' in row["stats"]) == ("tight" in text)
            if as_struct:
                parsed = row["stats_parsed"]
                if text is None:
                    assert parsed is None
                else:
                    assert parsed["numRecords"] == (1 if "tight" in text else 5)
                    assert parsed["minValues"]["id"] == (1 if "tight" in text else 7)
                    assert parsed.get("tightBounds") is (False if "tight" in text else None)


def test_damage_leaves_the_log_as_it_was(log: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log)
    in_small_pieces(monkeypatch)
    log.commit(4, [log.add("last")])
    options = CheckpointOptions(1_000, 500, max_actions=3)
    write_large_checkpoint(Pieces(log.store, unread(log)), options, lambda files: files)
    log.commit(5, [log.add("later")])
    state = unread(log)
    damaged = list_log(log.store).checkpoints[4][-1].path
    content = log.store.get(damaged)
    log.store.put(damaged, content[:4] + b"\0" * (len(content) - 8) + content[-4:])
    before = {info.path for info in log.store.list_tree("_delta_log")}
    with pytest.raises(CorruptTable) as raised:
        write_large_checkpoint(Pieces(log.store, state), options, lambda files: files)
    assert (raised.value.code, raised.value.path) == ("damaged-checkpoint", damaged)
    assert {info.path for info in log.store.list_tree("_delta_log")} == before


def test_a_state_that_lacks_files_makes_no_checkpoint_at_once(log: LogWriter) -> None:
    fill(log)
    state = unread(log)
    with pytest.raises(ValueError, match="version 3 was read without"):
        write_checkpoint(log.store, state, CheckpointOptions(1_000, 500))
    with pytest.raises(ValueError, match="version 3 was read without"):
        format_checkpoint(state, CheckpointOptions(1_000, 500))


def test_no_room_on_this_machine(log: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says where room is needed; the log stays as it was."""
    fill(log)

    def refuse(file: large_checkpoint.CheckpointFile, rows: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {info.path for info in log.store.list_tree("_delta_log")}
    monkeypatch.setattr(large_checkpoint.CheckpointFile, "write", refuse)
    with pytest.raises(StorageError, match="No space left") as raised:
        write_large_checkpoint(Pieces(log.store, unread(log)), CheckpointOptions(1_000, 500), lambda files: files)
    assert "TMPDIR" in str(raised.value)
    assert {info.path for info in log.store.list_tree("_delta_log")} == before
