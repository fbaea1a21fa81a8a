"""Checkpoints of the second kind. Specification: "V2 Spec", "Sidecar Files"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.log.names import SIDECAR_DIRECTORY, checkpoint_paths, commit_path, uuid_checkpoint_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.sidecar import sidecar_file
from alluvium.delta.log.state import load_state
from alluvium.delta.terms.spec import (
    STRING_MAP,
    Action,
    Add,
    CheckpointMetadata,
    DomainMetadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    format_actions,
)
from alluvium.errors import CorruptTable, UnsupportedFeature

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
OTHER_UUID = "90a083e8-7026-4e79-81be-64bd76c43a11"

_STATS = pa.struct([pa.field("numRecords", pa.int64())])
_ADD = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("partitionValues", STRING_MAP),
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("dataChange", pa.bool_()),
        pa.field("stats_parsed", _STATS),
    ]
)
_REMOVE = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("deletionTimestamp", pa.int64()),
        pa.field("dataChange", pa.bool_()),
    ]
)


def parquet(actions: Sequence[Action], *, stats: bool = False) -> bytes:
    """File actions, and what else a checkpoint has, as its columns."""
    columns: dict[str, list[object]] = {}
    for row, action in enumerate(actions):
        kind = next(iter(msgspec.json.decode(format_actions([action]))))
        values = columns.setdefault(kind, [None] * len(actions))
        content = msgspec.to_builtins(action)
        for name, value in content.items():
            if isinstance(value, dict) and name in ("partitionValues", "configuration", "tags", "options"):
                content[name] = list(value.items())
        if isinstance(action, Add) and stats:
            content["stats_parsed"] = {"numRecords": 7}
        if kind == "checkpointMetadata":
            del content["tags"]
        if kind == "metaData":
            content["format"] = {"provider": "parquet"}
        values[row] = content
    types = {"add": _ADD, "remove": _REMOVE}
    table = {}
    for kind, values in columns.items():
        if kind == "metaData":
            table[kind] = _metadata(values)
        else:
            table[kind] = pa.array(values, types.get(kind))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _metadata(values: list[object]) -> pa.Array:
    strings = pa.list_(pa.string())
    kind = pa.struct(
        [
            pa.field("id", pa.string()),
            pa.field("format", pa.struct([pa.field("provider", pa.string())])),
            pa.field("schemaString", pa.string()),
            pa.field("partitionColumns", strings),
            pa.field("configuration", STRING_MAP),
        ]
    )
    rows = [None if v is None else {**v, "configuration": []} for v in values]  # type: ignore[dict-item]
    return pa.array(rows, kind)


@dataclass
class V2:
    """Writes checkpoints of the second kind of version 1 for the table of three commits that the fixture made."""

    log: object

    def head(self, version: int = 1) -> list[Action]:
        return [
            CheckpointMetadata(version=version, tags={}),
            *self.log.head(),  # type: ignore[attr-defined]
            Txn(app_id="a", version=4),
            DomainMetadata(domain="d", configuration="x", removed=False),
        ]

    def files(self) -> list[Action]:
        return [self.log.add("f0"), self.log.add("f1"), Remove(path="gone", deletion_timestamp=5, data_change=False)]

    def sidecar(self, name: str, actions: Sequence[Action], **how: bool) -> Sidecar:
        data = parquet(actions, **how)
        self.log.store.put(f"{SIDECAR_DIRECTORY}/{name}", data)
        return Sidecar(path=name, size_in_bytes=len(data), modification_time=1)

    def put(self, form: str, actions: Sequence[Action], uuid: str = UUID, version: int = 1) -> str:
        path = checkpoint_paths(version)[0] if form == "classic" else uuid_checkpoint_path(version, uuid, form)
        self.log.store.put(path, format_actions(actions) if form == "json" else parquet(actions))
        return path

    def forget_commits(self) -> None:
        """Only the checkpoint leads to version 1 now."""
        for version in (0, 1):
            self.log.store.delete(commit_path(version))


@pytest.fixture
def v2(log) -> V2:
    log.commits(3)
    return V2(log)


@pytest.mark.parametrize("form", ["json", "parquet", "classic"])
@pytest.mark.parametrize("sidecars", [0, 1, 3])
def test_every_form(log, v2: V2, form: str, sidecars: int) -> None:
    """ "The UUID-named V2 Checkpoint may be in json or parquet format, and references zero or more checkpoint sidecars";
    "A classic checkpoint [...] could follow either V1 spec or V2 spec."
    """
    files = v2.files()
    if sidecars == 0:
        v2.put(form, [*v2.head(), *files])
    else:
        parts = [files] if sidecars == 1 else [[action] for action in files]
        v2.put(form, [*v2.head(), *(v2.sidecar(f"s{n}.parquet", part) for n, part in enumerate(parts))])
    v2.forget_commits()
    state = log.load()
    assert state.segment.checkpoint_version == 1
    assert set(state.files.column("path").to_pylist()) == {"f0", "f1", "f2"}
    assert state.tombstones.column("path").to_pylist() == ["gone"]
    assert {name: txn.version for name, txn in state.txns.items()} == {"a": 4}
    assert set(state.domains) == {"d"}
    assert state.files.schema.names[:11] == log.load(2).files.schema.names[:11]


def test_statistics_in_columns_only_stay_so(log, v2: V2) -> None:
    v2.put("json", [*v2.head(), v2.sidecar("s.parquet", v2.files(), stats=True)])
    v2.forget_commits()
    files = log.load().files
    by_path = dict(zip(files["path"].to_pylist(), files["stats_parsed"].to_pylist(), strict=True))
    assert by_path == {"f0": {"numRecords": 7}, "f1": {"numRecords": 7}, "f2": None}


def test_files_in_both_places_are_all_read(log, v2: V2) -> None:
    first, *others = v2.files()
    for form in ("json", "parquet"):
        v2.put(form, [*v2.head(), first, v2.sidecar("s.parquet", others)], uuid=UUID if form == "json" else OTHER_UUID)
    v2.forget_commits()
    assert log.paths() == {"f0", "f1", "f2"}


@pytest.mark.parametrize(
    "written", ["s%20x.parquet", "file:/elsewhere/_delta_log/_sidecars/s%20x.parquet", "../s x.parquet"]
)
def test_only_the_name_of_a_sidecar_counts(log, v2: V2, written: str) -> None:
    """ "sidecar files must always reside in the table's own _delta_log/_sidecars directory"; "URI-encoded path" """
    sidecar = v2.sidecar("s x.parquet", v2.files())
    v2.put("json", [*v2.head(), msgspec.structs.replace(sidecar, path=written)])
    v2.forget_commits()
    assert log.paths() == {"f0", "f1", "f2"}


@pytest.mark.parametrize("path", ["", "a/", "..", "x/.."])
def test_a_sidecar_without_a_name(path: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        sidecar_file(Sidecar(path=path, size_in_bytes=1, modification_time=1), "c.json")
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", "c.json")


def test_a_missing_sidecar_makes_the_checkpoint_damaged(log, v2: V2) -> None:
    v2.put("json", [*v2.head(), Sidecar(path="gone.parquet", size_in_bytes=9, modification_time=1)])
    with pytest.warns(UserWarning, match=r"read without _delta_log/_sidecars/gone\.parquet"):
        state = log.load()
    assert state.segment.checkpoint_version is None
    assert set(state.files.column("path").to_pylist()) == {"f0", "f1", "f2"}
    v2.forget_commits()
    with pytest.raises(CorruptTable) as caught:
        log.load()
    assert (caught.value.code, caught.value.path) == ("damaged-checkpoint", f"{SIDECAR_DIRECTORY}/gone.parquet")


def test_another_checkpoint_of_the_version_is_tried(log, v2: V2) -> None:
    v2.put("json", [*v2.head(), Sidecar(path="gone.parquet", size_in_bytes=9, modification_time=1)], uuid=UUID)
    good = v2.put("parquet", [*v2.head(), *v2.files()], uuid=OTHER_UUID)
    v2.forget_commits()
    with pytest.warns(UserWarning, match="gone"):
        state = log.load()
    assert [info.path for info in state.segment.checkpoint] == [good]


@pytest.mark.parametrize("cut", [10, 200, -5])
def test_a_json_checkpoint_that_was_cut_off(log, v2: V2, cut: int) -> None:
    path = v2.put("json", [*v2.head(), *v2.files()])
    log.store.put(path, log.store.get(path)[:cut])
    with pytest.warns(UserWarning, match="damaged"):
        assert log.paths() == {"f0", "f1", "f2"}


def test_a_checkpoint_of_another_version_is_damaged(log, v2: V2) -> None:
    """ "`n` is the snapshot version that this checkpoint represents" """
    v2.put("json", [*v2.head(version=0), log.add("f0")])
    with pytest.warns(UserWarning, match="holds version 0"):
        assert log.paths() == {"f0", "f1", "f2"}


def test_the_protocol_is_judged_before_sidecars_are_read(log, v2: V2) -> None:
    head = [a for a in v2.head() if not isinstance(a, Protocol)]
    future = Protocol(min_reader_version=3, min_writer_version=7, reader_features=("x",), writer_features=("x",))
    v2.put("json", [future, *head, Sidecar(path="gone.parquet", size_in_bytes=9, modification_time=1)])

    def shut(protocol: Protocol) -> None:
        raise UnsupportedFeature("newer", features=protocol.reader_features or ())

    with pytest.raises(UnsupportedFeature):
        load_state(log.store, list_segment(log.store), shut)


def test_actions_of_checkpoints_mean_nothing_in_commits(log) -> None:
    """ "v2 checkpoint spec actions are not allowed in normal commit files, and do not participate in log replay" """
    log.commit(0, [*log.head(), log.add("f0"), Sidecar(path="s", size_in_bytes=1, modification_time=1)])
    assert log.paths() == {"f0"}
