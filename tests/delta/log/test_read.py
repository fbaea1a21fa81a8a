"""Commits as they are read: block by block, over any store, with every field of every action beside a plain loop."""

from __future__ import annotations

import json
import random
import uuid
import warnings
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.log import read
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import ORDER, CommitActions, commit_version, read_commits, read_each
from alluvium.delta.terms.spec import FILES, TOMBSTONES
from alluvium.errors import CorruptTable
from alluvium.storage.store import ObjectInfo, Store
from alluvium.storage.stores.memory import MemoryStore

Line = dict[str, Any]


class Far(MemoryStore):
    """A store whose objects come over a network, by its URL."""

    @property
    def url(self) -> str:
        return "s3://far/t"


@pytest.fixture(params=["near", "far"])
def store(request: pytest.FixtureRequest) -> Store:
    return (MemoryStore if request.param == "near" else Far)(uuid.uuid4().hex, "t")


def vector(lot: random.Random) -> Line:
    offset = {"offset": lot.randrange(9)} if lot.random() < 0.5 else {}
    return {"storageType": "u", "pathOrInlineDv": f"v{lot.randrange(9)}", **offset, "sizeInBytes": 8, "cardinality": 2}


def optional(lot: random.Random, line: Line, choices: Line) -> Line:
    """Each of the choices in half of the cases."""
    return {**line, **{name: value for name, value in choices.items() if lot.random() < 0.5}}


def add(lot: random.Random, n: int) -> Line:
    line = {"path": f"a{n}", "partitionValues": lot.choice([{}, {"p": "x"}, {"p": None, "q": "é"}]), "size": lot.randrange(99),
            "modificationTime": lot.randrange(10**12), "dataChange": lot.random() < 0.5}  # fmt: skip
    more = {"stats": '{"numRecords":1}', "tags": {"k": "v", "l": None}, "deletionVector": vector(lot), "baseRowId": 7,
            "defaultRowCommitVersion": 3, "clusteringProvider": "c"}  # fmt: skip
    return {"add": optional(lot, line, more)}


def remove(lot: random.Random, n: int) -> Line:
    line = {"path": f"r{n}", "dataChange": lot.random() < 0.5}
    more = {"deletionTimestamp": 5, "extendedFileMetadata": True, "partitionValues": {"p": "y"}, "size": 3, "tags": {},
            "deletionVector": vector(lot), "baseRowId": 8, "defaultRowCommitVersion": 4}  # fmt: skip
    return {"remove": optional(lot, line, more)}


def single(lot: random.Random, n: int) -> Line:
    return lot.choice([
        {"txn": {"appId": lot.choice("xyz"), "version": n}},
        {"domainMetadata": {"domain": lot.choice("de"), "configuration": str(n), "removed": lot.random() < 0.3}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": n + 1}},
        {"metaData": {"id": str(n), "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": [],
                      "configuration": {}}},
        {"rowIdHighWaterMark": {"highWaterMark": n}},
        {"commitInfo": {"any": [n]}},
        {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"metaData": None}, {"someday": {"add": 1}},
    ])  # fmt: skip


def lines(lot: random.Random, count: int) -> list[Line]:
    return [lot.choice([add, remove, single])(lot, n) for n in range(count)]


def put(store: Store, version: int, found: list[Line], end: str = "\n") -> ObjectInfo:
    text = end.join(json.dumps(line, ensure_ascii=False) for line in found)
    store.put(commit_path(version), (text + lines_end(version, end)).encode())
    return store.head(commit_path(version))


def lines_end(version: int, end: str) -> str:
    """Every other entry ends without a line break."""
    return end if version % 2 else ""


def plain(row: Line) -> Line:
    """A row as its JSON has it."""
    maps = ("partitionValues", "tags")
    found = {k: dict(v) if k in maps else v for k, v in row.items() if v is not None and k != ORDER.name}
    if "deletionVector" in found:
        found["deletionVector"] = {k: v for k, v in found["deletionVector"].items() if v is not None}
    return found


def ensure_as_loop(actions: CommitActions, found: list[Line], before: int = 0) -> None:
    for kind, batches, schema in (("add", actions.adds, FILES), ("remove", actions.removes, TOMBSTONES)):
        rows = pa.Table.from_batches(batches, schema.append(ORDER)).to_pylist()
        expected = [(before + n, line[kind]) for n, line in enumerate(found) if kind in line]
        assert [(row[ORDER.name], plain(row)) for row in rows] == expected
    assert (actions.lines, actions.damage, actions.metadata_damage) == (before + len(found), None, None)
    said = ("txn", "domainMetadata", "protocol", "metaData", "rowIdHighWaterMark")
    assert actions.singles == sum(line[kind] is not None for line in found for kind in said if kind in line)
    txns = {line["txn"]["appId"]: line["txn"]["version"] for line in found if "txn" in line}
    assert {name: txn.version for name, txn in actions.txns.items()} == txns
    domains = [line["domainMetadata"] for line in found if "domainMetadata" in line]
    newest = {d["domain"]: (d["configuration"], d["removed"]) for d in domains}
    assert {name: (d.configuration, d.removed) for name, d in actions.domains.items()} == newest
    last = {kind: line[kind] for line in found for kind in said[2:] if line.get(kind) is not None}
    assert (actions.protocol and actions.protocol.min_writer_version) == last.get("protocol", {}).get(
        "minWriterVersion"
    )
    assert (actions.metadata and actions.metadata.id) == last.get("metaData", {}).get("id")
    mark = actions.row_id_high_water_mark
    assert (mark and mark.high_water_mark) == last.get("rowIdHighWaterMark", {}).get("highWaterMark")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [60, 700, 1 << 19])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n\t"])
def test_all_that_commits_say(store: Store, monkeypatch: pytest.MonkeyPatch, seed: int, block: int, end: str) -> None:
    monkeypatch.setattr(read, "_BLOCK", block)
    lot = random.Random(seed)
    entries = [lines(lot, lot.choice([0, 1, 3, 12])) for _ in range(lot.choice([1, 2, 5]))]
    entries = [found or [{"commitInfo": {}}] for found in entries]
    infos = [put(store, version, found, end) for version, found in enumerate(entries)]
    flat = [line for found in entries for line in found]
    ensure_as_loop(read_commits(store, infos, 100), flat, 100)
    # Read in two goes they say the same together.
    cut = lot.randrange(len(infos) + 1)
    first = read_commits(store, infos[:cut])
    ensure_as_loop(first.followed_by(read_commits(store, infos[cut:], first.lines)), flat)


@pytest.mark.parametrize("block", [40, 1 << 19])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_damaged_line_is_found_in_its_commit(monkeypatch: pytest.MonkeyPatch, block: int, place: int) -> None:
    monkeypatch.setattr(read, "_BLOCK", block)
    store = MemoryStore(uuid.uuid4().hex, "t")
    lot = random.Random(place)
    infos = [put(store, version, [add(lot, n) for n in range(6)]) for version in range(4)]
    text = store.get(commit_path(2)).split(b"\n")
    text[place] = b'{"add":{"path":7}}'
    store.put(commit_path(2), b"\n".join(text))
    put(store, 3, [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}])
    infos = [store.head(info.path) for info in infos]
    actions = read_commits(store, infos)
    damage = actions.damage
    assert damage is not None and (damage.code, damage.path, damage.version) == ("damaged-line", commit_path(2), 2)
    assert f"line {place + 1}" in str(damage)
    # What follows is looked through for the protocol alone.
    assert actions.protocol is not None and actions.protocol.min_writer_version == 3
    assert actions.metadata is None and actions.lines <= 12 + place


@pytest.mark.parametrize(
    "text", ['{"txn":null}{"txn":null}\n\n', '{"add":\nnull}\n', "\n{}{}\n", "{}{}", "{}\n \n{} {}\n{}"]
)
def test_a_line_is_one_document(text: str) -> None:
    store = MemoryStore(uuid.uuid4().hex, "t")
    store.put(commit_path(0), text.encode())
    damage = read_commits(store, [store.head(commit_path(0))]).damage
    assert damage is not None and damage.code == "damaged-line" and damage.version == 0


def test_the_newest_protocol_is_found_in_damaged_lines() -> None:
    store = MemoryStore(uuid.uuid4().hex, "t")
    protocols = [{"protocol": {"minReaderVersion": n, "minWriterVersion": n}} for n in (4, 5)]
    text = "\n".join(
        ['{"add":1}', json.dumps(protocols[0]), json.dumps(protocols[1]), '{"protocol":7}', '{"protocol":null}']
    )
    store.put(commit_path(0), text.encode())
    actions = read_commits(store, [store.head(commit_path(0))])
    assert actions.damage is not None and actions.protocol is not None and actions.protocol.min_reader_version == 5


@pytest.mark.parametrize("block", [50, 1 << 19])
def test_only_the_newest_metadata_need_be_whole(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(read, "_BLOCK", block)
    store = MemoryStore(uuid.uuid4().hex, "t")
    whole = {"metaData": {"id": "w", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": [],
                          "configuration": {}}}  # fmt: skip
    filler = [{"commitInfo": {"n": n}} for n in range(5)]
    infos = [put(store, 1, [*filler, {"metaData": {"id": 7}}, *filler]), put(store, 2, filler)]
    damaged = read_commits(store, infos)
    damage = damaged.metadata_damage
    assert damage is not None and (damage.path, damage.version) == (commit_path(1), 1) and "line 6" in str(damage)
    assert damaged.metadata is None and damaged.damage is None
    mended = read_commits(store, [*infos, put(store, 3, [whole])])
    assert mended.metadata_damage is None and mended.metadata is not None and mended.metadata.id == "w"
    # Together the later ones count, be they whole or damaged.
    later = read_commits(store, [store.head(commit_path(3))])
    for first, second, is_damaged in (
        (damaged, later, False),
        (later, damaged, True),
        (damaged, CommitActions(), True),
    ):
        both = first.followed_by(second)
        assert (both.metadata_damage is not None) == is_damaged and both.damage is None


def test_of_two_damages_the_first_is_told() -> None:
    first, second = (CommitActions(damage=CorruptTable(text)) for text in ("one", "two"))
    assert first.followed_by(second).damage is first.damage
    assert CommitActions().followed_by(second).damage is second.damage and first.followed_by(CommitActions()).damage


@pytest.mark.parametrize("block", [20, 1 << 19])
def test_byte_order_marks_begin_commits_alone(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(read, "_BLOCK", block)
    store = MemoryStore(uuid.uuid4().hex, "t")
    mark, text = b"\xef\xbb\xbf", b'{"txn":{"appId":"a","version":1}}\n'
    for version in range(2):
        store.put(commit_path(version), mark + text * 3)
    infos = [store.head(commit_path(version)) for version in range(2)]
    assert read_commits(store, infos).lines == 6 and read_commits(store, infos).damage is None
    store.put(commit_path(0), text + mark + text)
    damage = read_commits(store, [store.head(commit_path(0))]).damage
    assert damage is not None and "line 2" in str(damage)


def test_an_empty_commit_is_warned_of_and_no_other(store: Store) -> None:
    infos = [put(store, 1, [{"commitInfo": {}}])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_commits(store, infos).lines == 1
    store.put(commit_path(2), b"")
    with pytest.warns(UserWarning, match=f"{commit_path(2)} is empty"):
        assert read_commits(store, [*infos, store.head(commit_path(2))]).lines == 1


@pytest.mark.parametrize("limit", [0, 5, 10**6])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_objects_come_in_their_order_however_many_are_fetched_ahead(store: Store, count: int, limit: int) -> None:
    for n in range(count):
        store.put(f"o/{n:03d}", bytes([n]) * n)
    infos = [store.head(f"o/{n:03d}") for n in reversed(range(count))]
    found = [(info.path, data) for info, data in read_each(store, infos, limit)]
    assert found == [(f"o/{n:03d}", bytes([n]) * n) for n in reversed(range(count))]


def test_versions_of_commits_by_their_names() -> None:
    assert commit_version(ObjectInfo(commit_path(12), 1, 1)) == 12
    for name in (f"{7:020d}.checkpoint.parquet", f"{7:020d}.crc", "x.json"):
        with pytest.raises(CorruptTable) as caught:
            commit_version(ObjectInfo(f"_delta_log/{name}", 1, 1))
        assert (caught.value.code, caught.value.path) == ("invalid-name", f"_delta_log/{name}")


def test_damage_of_a_compaction_is_of_its_last_version() -> None:
    store = MemoryStore(uuid.uuid4().hex, "t")
    for name, version in (
        (f"{3:020d}.{9:020d}.compacted.json", 9),
        (f"{4:020d}.checkpoint.{uuid.UUID(int=1)}.json", 4),
        ("x", None),
    ):
        store.put(f"_delta_log/{name}", b"nothing\n")
        damage = read_commits(store, [store.head(f"_delta_log/{name}")]).damage
        assert damage is not None and damage.version == version


@pytest.mark.parametrize(
    ("texts", "is_counted"),
    [(["{}\n{}\n"], False), (["{}\n{}"], False), (["{}", "{}\n", "{}"], False), (["{}\n\n{}"], True), (["{}\n {}"], True), ([" {}"], True)],
)  # fmt: skip
def test_plain_lines_are_not_counted_one_by_one(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], is_counted: bool
) -> None:
    """It takes longer than to decode them."""
    counted: list[bytes] = []
    count = read._count_documents
    monkeypatch.setattr(read, "_count_documents", lambda data: counted.append(data) or count(data))
    store = MemoryStore(uuid.uuid4().hex, "t")
    for version, text in enumerate(texts):
        store.put(commit_path(version), text.encode())
    found = read_commits(store, [store.head(commit_path(version)) for version in range(len(texts))])
    assert found.damage is None and found.lines == "".join(texts).count("{}") and bool(counted) == is_counted
