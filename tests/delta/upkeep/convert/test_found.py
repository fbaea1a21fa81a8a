"""A folder of Parquet files as what CLONE takes; no JVM."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.found import found_table
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed
from alluvium.storage.open import open_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in (1, 2):
        put(tmp_path / "s" / f"p={n}" / f"a %{n}.parquet", [n, n + 10])
    return tmp_path / "s"


def put(path: Path, ids: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), path)


def cloned(folder: Path, target: Path, shallow: bool, **said: object) -> Committed:
    store = open_store(target)
    existing = load_snapshot(store) if target.exists() else None
    source = found_table(open_store(folder), ConvertRequest())
    request = CloneRequest("parquet.`s`", shallow, replace=existing is not None, **said)  # type: ignore[arg-type]
    done = clone(source, store, existing, request)
    assert isinstance(done, Committed)
    return done


def rows(root: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["p"]) for row in alluvium.open(str(root)).to_arrow().to_pylist())


@pytest.mark.parametrize("shallow", [True, False])
def test_files_become_a_table_elsewhere(folder: Path, tmp_path: Path, shallow: bool) -> None:
    target, before = tmp_path / "t", sorted(folder.rglob("*"))
    done = cloned(folder, target, shallow)
    assert rows(target) == [(1, 1), (2, 2), (11, 1), (12, 2)]
    assert sorted(folder.rglob("*")) == before
    info = json.loads((target / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[0])["commitInfo"]
    assert info["operationParameters"] == {"source": "parquet.`s`", "sourceVersion": -1}
    assert (done.metrics["sourceNumOfFiles"], done.metrics["numCopiedFiles"]) == ("2", "0" if shallow else "2")
    put(folder / "p=3" / "b.parquet", [3])
    (folder / "p=1" / "a %1.parquet").unlink()
    again = cloned(folder, target, shallow)
    assert rows(target) == [(2, 2), (3, 3), (12, 2)]
    assert (again.metrics["numRemovedFiles"], again.metrics["numCopiedFiles"]) == ("1", "0" if shallow else "1")
    if not shallow:
        shutil.rmtree(folder)
        assert len(rows(target)) == 3


@pytest.mark.parametrize("shallow", [True, False])
def test_a_file_that_is_written_over_another_is_another(folder: Path, tmp_path: Path, shallow: bool) -> None:
    """Statistics of the first would have its rows skipped."""
    target = tmp_path / "t"
    cloned(folder, target, shallow)
    put(folder / "p=1" / "a %1.parquet", [700, 800, 900])
    cloned(folder, target, shallow)
    assert rows(target) == [(2, 2), (12, 2), (700, 1), (800, 1), (900, 1)]
    assert alluvium.open(str(target)).to_arrow(where="id > 100").num_rows == 3


def test_a_clone_lies_elsewhere_and_files_must_fit(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as caught:
        cloned(folder, folder / "p=1" / "t", shallow=True)
    assert caught.value.code == "clone-of-itself"
    pq.write_table(pa.table({"id": ["x"]}), folder / "p=1" / "b.parquet")
    with pytest.raises(InvalidRequest) as caught:
        cloned(folder, tmp_path / "t", shallow=True)
    assert (caught.value.code, (tmp_path / "t").exists()) == ("schemas-differ", False)
