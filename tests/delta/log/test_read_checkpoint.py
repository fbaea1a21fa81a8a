"""What is read of checkpoints: which files list files, and what damage is told with which file."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.log import read_checkpoint
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import SIDECAR_DIRECTORY, checkpoint_paths, uuid_checkpoint_path
from alluvium.delta.log.read_checkpoint import (
    CheckpointHead,
    checkpoint_rows,
    file_sources,
    read_checkpoint_files,
    read_checkpoint_head,
)
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.spec import (
    FILES,
    TOMBSTONES,
    CheckpointMetadata,
    DomainMetadata,
    RowIdHighWaterMark,
    Sidecar,
    Txn,
    format_actions,
)
from alluvium.errors import CorruptTable
from alluvium.storage.store import ObjectInfo

from .conftest import LogWriter

UUID = str(uuid.UUID(int=5))


def info(log: LogWriter, path: str) -> ObjectInfo:
    return log.store.head(path)


def written(log: LogWriter, **how: Any) -> tuple[ObjectInfo, ...]:
    log.commit(
        0,
        [*log.head(a="b"), Txn(app_id="x", version=3), DomainMetadata(domain="d", configuration="c", removed=False),
         RowIdHighWaterMark(high_water_mark=4, preserved_row_ids=True), *(log.add(f"f{n}", size=n) for n in range(5)),
         log.add("masked", "v", 3, size=9), log.remove("gone", at=5), log.remove("old", "w", at=None)],
    )  # fmt: skip
    write_checkpoint(log.store, log.load(), CheckpointOptions(0, 10**15, **how))
    return list_log(log.store).checkpoints[0]


@pytest.mark.parametrize(
    "how", [{}, {"max_actions": 2}, {"v2": True}, {"v2": True, "max_actions": 2, "classic_name": True}]
)
@pytest.mark.parametrize("whole", [0, 1 << 22])
def test_all_that_checkpoints_say(
    log: LogWriter, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], whole: int
) -> None:
    monkeypatch.setattr(read_checkpoint, "_WHOLE", whole)
    monkeypatch.setattr(read_checkpoint, "_ROWS", 2)
    checkpoint = written(log, **how)
    state = log.load()
    head = read_checkpoint_head(log.store, checkpoint)
    assert (head.protocol, head.metadata) == (state.protocol, state.metadata)
    assert (head.txns, head.domains) == (dict(state.txns), dict(state.domains))
    assert head.row_id_high_water_mark == RowIdHighWaterMark(high_water_mark=4, preserved_row_ids=True)
    assert len(head.sidecars) == (0 if "v2" not in how else 1 if len(how) == 1 else 4)
    adds, removes = read_checkpoint_files(log.store, file_sources(checkpoint, head))
    files, gone = pa.Table.from_batches(adds, FILES), pa.Table.from_batches(removes, TOMBSTONES)
    expected = [{**row, "dataChange": False} for row in state.files.sort_by("path").to_pylist()]
    assert files.sort_by("path").to_pylist() == expected
    # "the `remove` struct does not contain the `stats` and `tags` fields"
    assert gone.sort_by("path").to_pylist() == state.tombstones.sort_by("path").to_pylist()


def test_without_a_checkpoint_nothing_is_said(log: LogWriter) -> None:
    head = read_checkpoint_head(log.store, ())
    assert head == CheckpointHead() and file_sources((), head) == []
    assert read_checkpoint_files(log.store, []) == ([], [])


def put_json(log: LogWriter, *actions: Any, version: int = 0) -> ObjectInfo:
    path = uuid_checkpoint_path(version, UUID, "json")
    log.store.put(path, format_actions(actions))
    return info(log, path)


def sidecar(name: str) -> Sidecar:
    return Sidecar(path=name, size_in_bytes=1, modification_time=2)


def test_which_files_list_files(log: LogWriter) -> None:
    """A JSON checkpoint says whether it does; a sidecar that is named twice is read once."""
    bare = put_json(log, *log.head(), sidecar("a"), sidecar("x/a"), sidecar("b"))
    head = read_checkpoint_head(log.store, [bare])
    assert not head.lists_files
    assert [one.path for one in file_sources([bare], head)] == [f"{SIDECAR_DIRECTORY}/{n}" for n in "ab"]
    for action in (log.add("f"), log.remove("r")):
        full = put_json(log, *log.head(), action, sidecar("a"))
        head = read_checkpoint_head(log.store, [full])
        assert head.lists_files
        assert [one.path for one in file_sources([full], head)] == [full.path, f"{SIDECAR_DIRECTORY}/a"]


def test_files_of_a_json_checkpoint(log: LogWriter) -> None:
    one = put_json(log, *log.head(), log.add("f", size=3), log.remove("r", at=7), log.add("f", size=4))
    adds, removes = read_checkpoint_files(log.store, [one])
    assert [batch.schema for batch in (*adds, *removes)] == [FILES, TOMBSTONES]
    # Of a file that is listed twice the last row counts.
    assert [row["size"] for batch in adds for row in batch.to_pylist()] == [4]
    assert [row["deletionTimestamp"] for batch in removes for row in batch.to_pylist()] == [7]


@pytest.mark.parametrize(("version", "fits"), [(4, True), (3, False), (5, False)])
def test_a_checkpoint_is_of_the_version_that_its_name_says(log: LogWriter, version: int, fits: bool) -> None:
    one = put_json(log, *log.head(), CheckpointMetadata(version=version), version=4)
    if fits:
        assert read_checkpoint_head(log.store, [one]).metadata is not None
        return
    with pytest.raises(CorruptTable) as caught:
        read_checkpoint_head(log.store, [one])
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", one.path)
    assert f"holds version {version}, its name says 4" in str(caught.value)


@pytest.mark.parametrize("kept", [0, 1])
def test_protocol_and_description_are_needed(log: LogWriter, kept: int) -> None:
    one = put_json(log, log.head()[kept])
    with pytest.raises(CorruptTable) as caught:
        read_checkpoint_head(log.store, [one])
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", one.path)
    assert f"no {'metaData' if kept == 0 else 'protocol'} action" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1 no PAR1", b"{", None])
@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_damage_is_told_with_its_file(log: LogWriter, data: bytes | None, suffix: str) -> None:
    path = uuid_checkpoint_path(0, UUID, suffix)
    log.store.put(path, data or b"x")
    one = info(log, path)
    if data is None:
        log.store.delete(path)
    with pytest.raises(CorruptTable) as caught:
        read_checkpoint_head(log.store, [one])
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", path)
    if data == b"" and suffix == "json":
        return
    with pytest.raises(CorruptTable) as caught:
        read_checkpoint_files(log.store, [one])
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", path)


def parquet(log: LogWriter, adds: pa.Array, version: int = 0) -> ObjectInfo:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"add": adds}), sink)
    path = checkpoint_paths(version)[0]
    log.store.put(path, sink.getvalue().to_pybytes())
    return info(log, path)


FILE = {"path": "a", "size": 1, "modificationTime": 2, "dataChange": True}


def test_a_file_without_a_path_is_damage(log: LogWriter) -> None:
    one = parquet(log, pa.array([FILE, {**FILE, "path": None}]))
    with pytest.raises(CorruptTable, match="a file has no path"):
        read_checkpoint_files(log.store, [one])
    with pytest.raises(CorruptTable) as caught:
        checkpoint_rows(pa.array([FILE, {**FILE, "path": None}]))
    assert caught.value.code == "damaged-checkpoint"
    with pytest.raises(CorruptTable):
        checkpoint_rows(pa.array([{"size": 1}]))


def test_rows_of_a_checkpoint_as_files() -> None:
    parsed = {"numRecords": 3}
    rows = pa.array([None, {**FILE, "stats_parsed": parsed}, {**FILE, "path": "b", "stats_parsed": None}])
    found = checkpoint_rows(rows)
    assert found.schema.names == [*FILES.names, "stats_parsed"] and found.num_rows == 2
    assert found.column("stats_parsed").to_pylist() == [parsed, None] and found.column("path").to_pylist() == ["a", "b"]
    assert checkpoint_rows(pa.array([FILE])).schema == FILES


def test_vectors_without_content_are_none() -> None:
    """As some writers leave them where another had written a null: they would count as vectors."""
    vector = {"storageType": "i", "pathOrInlineDv": "x", "offset": None, "sizeInBytes": 40, "cardinality": 2}
    empty = dict.fromkeys(vector)
    given = [vector, empty, None, empty, vector]
    rows = pa.array([{**FILE, "path": str(number), "deletionVector": one} for number, one in enumerate(given)])
    found = checkpoint_rows(rows).column("deletionVector")
    # By their nulls, not by what Python makes of members without values.
    assert found.is_valid().to_pylist() == [True, False, False, False, True]
    assert [one["cardinality"] for one in found.drop_null().to_pylist()] == [2, 2]
    assert checkpoint_rows(rows.slice(1, 3)).column("deletionVector").null_count == 3


@pytest.mark.parametrize(
    ("stats", "is_read"),
    [([None, None], True), (["x", None], True), (["x", "y"], False), ("absent", True)],
)
def test_statistics_in_columns_are_read_where_a_text_is_missing(log: LogWriter, stats: Any, is_read: bool) -> None:
    rows: list[dict[str, Any]] = [{**FILE, "path": name, "stats_parsed": {"numRecords": 1}} for name in "ab"]
    if stats != "absent":
        rows = [{**row, "stats": text} for row, text in zip(rows, stats, strict=True)]
    one = parquet(log, pa.array([None, *rows]))
    adds, removes = read_checkpoint_files(log.store, [one])
    assert removes == [] and [batch.num_rows for batch in adds] == [2]
    assert ("stats_parsed" in adds[0].schema.names) == is_read
    assert adds[0].column("stats").to_pylist() == ([None, None] if stats == "absent" else stats)


def test_parts_with_and_without_statistics_in_columns(log: LogWriter) -> None:
    first = parquet(log, pa.array([{**FILE, "stats_parsed": {"numRecords": 1}}]), 0)
    second = parquet(log, pa.array([{**FILE, "path": "b", "stats": "text"}]), 1)
    third = parquet(log, pa.array([{**FILE, "path": "c", "stats_parsed": {"numRecords": 2, "minValues": {"x": 1}}}]), 2)
    adds, _ = read_checkpoint_files(log.store, [first, second, third])
    assert len({batch.schema for batch in adds}) == 1
    found = pa.Table.from_batches(adds)
    assert found["stats_parsed"].to_pylist() == [
        {"numRecords": 1, "minValues": None}, None, {"numRecords": 2, "minValues": {"x": 1}}
    ]  # fmt: skip
    assert found["stats"].to_pylist() == [None, "text", None]


@pytest.mark.parametrize("sample", [1, 2, 256])
def test_files_that_repeat_within_a_batch(log: LogWriter, monkeypatch: pytest.MonkeyPatch, sample: int) -> None:
    monkeypatch.setattr(read_checkpoint, "_SAMPLE", sample)
    names = ["a", "a", "b", "c", "b"]
    one = parquet(log, pa.array([{**FILE, "path": name, "size": n} for n, name in enumerate(names)]))
    adds, _ = read_checkpoint_files(log.store, [one])
    assert [row["size"] for batch in adds for row in batch.to_pylist()] == [1, 3, 4]


@pytest.mark.parametrize(("more", "is_whole"), [(-1, False), (0, True), (1, True)])
def test_small_files_come_by_one_request(
    log: LogWriter, monkeypatch: pytest.MonkeyPatch, more: int, is_whole: bool
) -> None:
    one = parquet(log, pa.array([FILE]))
    monkeypatch.setattr(read_checkpoint, "_WHOLE", one.size + more)
    asked: list[str] = []
    for verb in ("get", "open_input"):
        own = getattr(log.store, verb)
        monkeypatch.setattr(log.store, verb, lambda path, verb=verb, own=own: asked.append(verb) or own(path))
    read_checkpoint_files(log.store, [one])
    # In memory the one goes by way of the other.
    assert asked[0] == ("get" if is_whole else "open_input")
