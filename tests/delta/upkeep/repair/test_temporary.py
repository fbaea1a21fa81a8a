"""Which files are taken for what a writer that died has left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.upkeep.repair.temporary import find_temporary
from alluvium.errors import StorageError
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000


def put(root: Path, path: str, age_ms: int = DAY_MS + 1) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(b"123")
    time_ns = (NOW_MS - age_ms) * 10**6
    os.utime(root / path, ns=(time_ns, time_ns))


@pytest.mark.parametrize(
    ("path", "is_temporary"),
    [
        ("x.tmp", True), (".x.tmp", True), ("p=1/x.tmp", True), ("_delta_log/.00.json.7.tmp", True), ("_temporary/0/x", True),
        ("p=1/_temporary/0/a/b.parquet", True), (".spark-staging-7/p=1/x.parquet", True), ("a/.spark-staging-/x", True),
        ("x.tmp2", False), (".tmp", False), ("tmp", False), ("x.parquet", False), ("x_temporary/a", False), ("_temporary2/a", False),
        ("x.tmp/a", False), (".spark-staging-7", False), ("_temporary", False), ("spark-staging-7/x", False),
    ],
)  # fmt: skip
def test_names_of_such_files(tmp_path: Path, path: str, is_temporary: bool) -> None:
    put(tmp_path, path)
    told = (Finding("warning", "temporary", "3 bytes that a writer has left, which nobody reads", path),)
    assert find_temporary(open_store(str(tmp_path)), NOW_MS) == (told if is_temporary else ())


@pytest.mark.parametrize(("age_ms", "is_old"), [(0, False), (DAY_MS, False), (DAY_MS + 1, True), (-5, False)])
def test_a_younger_one_may_be_somebodys_work(tmp_path: Path, age_ms: int, is_old: bool) -> None:
    put(tmp_path, "x.tmp", age_ms)
    assert len(find_temporary(open_store(str(tmp_path)), NOW_MS)) == is_old
    # By the clock it is old, whatever it was then.
    assert len(find_temporary(open_store(str(tmp_path)))) == 1


def test_folders_are_none_and_many_are_summed_up(tmp_path: Path) -> None:
    (tmp_path / "folder.tmp").mkdir()
    os.utime(tmp_path / "folder.tmp", (1, 1))
    for n in range(23):
        put(tmp_path, f"{n:02}.tmp")
    found = find_temporary(open_store(str(tmp_path)), NOW_MS)
    assert len(found) == 21 and {f.path for f in found[:20]} < {f"{n:02}.tmp" for n in range(23)}
    assert found[20] == Finding("warning", "temporary", "and 3 more files like these")


def test_a_folder_that_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path))

    def refuse(self: Store, *arguments: object) -> None:
        raise StorageError("not for you")

    monkeypatch.setattr(type(store), "list_columns", refuse)
    (found,) = find_temporary(store)
    assert (found.level, found.check, found.path) == ("warning", "temporary", None) and "not for you" in found.message
