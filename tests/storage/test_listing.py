from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from alluvium.storage.listing import Rows, as_columns, list_folders, without_folders
from alluvium.storage.open import open_store
from alluvium.storage.store import LISTED, ObjectInfo


def test_rows_become_columns_and_are_gone() -> None:
    rows = Rows()
    rows.add("a/ü", 3, 5)
    rows.add("a", 0, 7, is_directory=True)
    assert not rows.is_full
    batch = rows.take()
    assert batch.schema == LISTED
    assert batch.to_pylist() == [
        {"path": "a/ü", "size": 3, "modified_ms": 5, "is_directory": False},
        {"path": "a", "size": 0, "modified_ms": 7, "is_directory": True},
    ]
    assert rows.take().num_rows == 0


def test_many_objects_come_in_several_batches() -> None:
    batches = list(as_columns(ObjectInfo(f"f{n}", n, n) for n in range(45_000)))
    assert [batch.num_rows for batch in batches] == [20_000, 20_000, 5_000]
    assert pa.Table.from_batches(batches)["path"][44_999].as_py() == "f44999"


def test_folders_are_left_out_by_name_at_any_depth() -> None:
    paths = ["_a", "x/_a", "x/_b/c", "_b/c/d", "x/_b", "x/_bb/c"]
    table = pa.table(
        {
            "path": paths,
            "size": [0] * 6,
            "modified_ms": [0] * 6,
            "is_directory": [False, False, False, False, True, False],
        }
    ).cast(LISTED)
    (batch,) = table.to_batches()
    kept = without_folders(batch, 0, lambda name: name == "_b")
    assert kept["path"].to_pylist() == ["_a", "x/_a", "x/_bb/c"]
    assert without_folders(batch.slice(0, 0), 0, lambda name: True).num_rows == 0


def test_folders_alone_are_asked_about() -> None:
    rows, asked = Rows(), set[str]()
    for path in ("a/b/file", "a/c/other", "top", "a/b"):
        rows.add(path, 1, 1, is_directory=path == "a/b")

    def skips(name: str) -> bool:
        asked.add(name)
        return False

    assert without_folders(rows.take(), 0, skips).num_rows == 4 and asked == {"a", "b", "c"}


def test_the_folder_that_was_listed_is_not_asked_about() -> None:
    rows = Rows()
    rows.add("_b/x/y", 1, 1)
    rows.add("_b/_b/y", 1, 1)
    assert without_folders(rows.take(), len("_b"), lambda name: name == "_b")["path"].to_pylist() == ["_b/x/y"]


def test_folders_of_a_directory_itself(tmp_path: Path) -> None:
    for path in ("t/b/x/deep", "t/a/f", "t/file", "t/c d/f", "other/f"):
        open_store(tmp_path).put(path, b"")
        open_store("memory://folders").put(path, b"")
    for store in (open_store(tmp_path), open_store("memory://folders")):
        assert list_folders(store, "t") == ["a", "b", "c d"]
        assert list_folders(store, "t/b") == ["x"]
        assert list_folders(store, "") == ["other", "t"]
        assert list_folders(store, "nowhere") == [] == list_folders(store, "t/a")
