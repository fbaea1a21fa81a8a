"""Which live files are gone, and which of two files of a row it is: beside a plain look at the disk."""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_metadata

from alluvium.codecs.z85 import format_z85
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.spec import FILES, Protocol, format_actions
from alluvium.delta.upkeep.repair import missing
from alluvium.delta.upkeep.repair.missing import REPORT, find_missing
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import StorageError
from alluvium.storage.open import open_store
from alluvium.storage.store import ObjectInfo, Store

VECTORS = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)
COUNT = 12


def vector(n: int) -> dict[str, Any]:
    name = format_z85(uuid.UUID(int=n // 2).bytes)
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40, "cardinality": 2}


def vector_file(n: int) -> str:
    return f"deletion_vector_{uuid.UUID(int=n // 2)}.bin"


def table(root: Path) -> Snapshot:
    """Every second file has a vector, two of which share a file; each third one lies elsewhere."""
    store = open_store(str(root / "t"))
    lines = []
    for n in range(COUNT):
        path = f"file:{root}/far/f%20{n}" if n % 3 == 2 else f"p/f%20{n}"
        add = {
            "path": path,
            "partitionValues": {},
            "size": n,
            "modificationTime": 1,
            "dataChange": True,
            "stats": '{"numRecords":9}',
        }
        lines.append(json.dumps({"add": {**add, **({"deletionVector": vector(n)} if has_vector(n) else {})}}))
    store.put(commit_path(0), format_actions([VECTORS, make_metadata()]) + "\n".join(lines).encode())
    for n in range(COUNT):
        for path in filter(None, [place(root, n), vector_place(root, n)]):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
    return load_snapshot(store)


def has_vector(n: int) -> bool:
    return n % 4 in (0, 1)


def place(root: Path, n: int) -> Path:
    return root / ("far" if n % 3 == 2 else "t/p") / f"f {n}"


def vector_place(root: Path, n: int) -> Path | None:
    return root / "t" / vector_file(n) if has_vector(n) else None


def expected(root: Path, among: range = range(COUNT)) -> list[dict[str, Any]]:
    rows = []
    for n in among:
        named = vector_place(root, n)
        gone, vector_gone = not place(root, n).exists(), named is not None and not named.exists()
        if gone or vector_gone:
            path = f"file:{root}/far/f {n}" if n % 3 == 2 else f"p/f {n}"
            rows.append({
                "dataFilePath": path, "dataFileMissing": gone,
                "deletionVectorPath": None if named is None else vector_file(n), "deletionVectorFileMissing": vector_gone,
            })  # fmt: skip
    return rows


@pytest.mark.parametrize("few", [0, 4, 500])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_gone_is_told_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, seed: int) -> None:
    monkeypatch.setattr(missing, "_FEW", few)
    snapshot = table(tmp_path)
    assert find_missing(snapshot).report.num_rows == 0
    lot = random.Random(seed)
    for n in lot.sample(range(COUNT), 3):
        place(tmp_path, n).unlink(missing_ok=True)
    for n in lot.sample([n for n in range(COUNT) if has_vector(n)], 2):
        (tmp_path / "t" / vector_file(n)).unlink(missing_ok=True)
    found = find_missing(snapshot)
    assert found.report.schema == REPORT and found.report.to_pylist() == expected(tmp_path)
    assert found.files.schema == FILES and found.unknown == ()
    paths = [row["dataFilePath"].replace(" ", "%20") for row in expected(tmp_path)]
    assert found.files["path"].to_pylist() == paths
    # Of some files alone: they are meant as the log has them.
    some = pa.array([*paths[:2], "p/f%200"])
    wanted = [row for row in expected(tmp_path) if row["dataFilePath"].replace(" ", "%20") in some.to_pylist()]
    assert find_missing(snapshot, some).report.to_pylist() == wanted


def test_a_file_that_is_back_at_the_second_look_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table(tmp_path)
    for n in (0, 1, 3):
        place(tmp_path, n).unlink()
    asked: list[str] = []
    head = type(snapshot.store).head

    def look(self: Store, path: str) -> ObjectInfo:
        asked.append(path)
        if asked.count("p/f 1") == 2 and path == "p/f 1":
            place(tmp_path, 1).write_bytes(b"x")
        return head(self, path)

    monkeypatch.setattr(type(snapshot.store), "head", look)
    assert [row["dataFilePath"] for row in find_missing(snapshot).report.to_pylist()] == ["p/f 0", "p/f 3"]
    assert (asked.count("p/f 0"), asked.count("p/f 4")) == (2, 1)


def test_what_cannot_be_asked_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table(tmp_path)
    place(tmp_path, 0).unlink()
    head = type(snapshot.store).head

    def refuse(self: Store, path: str) -> ObjectInfo:
        if path == "p/f 1":
            raise StorageError("not for you")
        return head(self, path)

    monkeypatch.setattr(type(snapshot.store), "head", refuse)
    found = find_missing(snapshot)
    assert [row["dataFilePath"] for row in found.report.to_pylist()] == ["p/f 0"]
    assert [(f.level, f.check, f.path) for f in found.unknown] == [("warning", "files", "p/f 1")]
    assert "not for you" in found.unknown[0].message


def test_a_place_that_is_gone_as_a_whole_says_nothing(tmp_path: Path) -> None:
    snapshot = table(tmp_path)
    for n in range(2, COUNT, 3):
        place(tmp_path, n).unlink()
    (tmp_path / "far").rmdir()
    found = find_missing(snapshot)
    gone = {f"file:{tmp_path}/far/f {n}" for n in range(2, COUNT, 3)}
    unknown = {f.path for f in found.unknown}
    assert unknown | set(found.report["dataFilePath"].to_pylist()) == gone


@pytest.mark.parametrize(("more", "is_listed"), [(-1, True), (0, False), (1, False)])
def test_of_many_files_only_those_that_a_listing_lacks_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, is_listed: bool
) -> None:
    """Few are asked for one by one, be they there."""
    snapshot = table(tmp_path)
    wanted = COUNT + len({vector_file(n) for n in range(COUNT) if has_vector(n)})
    monkeypatch.setattr(missing, "_FEW", wanted + more)
    place(tmp_path, 1).unlink()
    asked: list[str] = []
    listed: list[str] = []
    head, columns = type(snapshot.store).head, type(snapshot.store).list_columns

    def look(self: Store, path: str) -> ObjectInfo:
        asked.append(path)
        return head(self, path)

    def seen(self: Store, path: str, hides: Any) -> Any:
        listed.append(path)
        for batch in columns(self, path, hides):
            assert not any(name.startswith("_delta_log/") for name in batch.column("path").to_pylist())
            yield batch

    monkeypatch.setattr(type(snapshot.store), "head", look)
    monkeypatch.setattr(type(snapshot.store), "list_columns", seen)
    assert [row["dataFilePath"] for row in find_missing(snapshot).report.to_pylist()] == ["p/f 1"]
    elsewhere = [n for n in range(COUNT) if n % 3 == 2]
    assert listed == ([""] if is_listed else [])
    assert len(asked) == (len(elsewhere) + 2 if is_listed else wanted + 1) and asked.count("p/f 1") == 2
