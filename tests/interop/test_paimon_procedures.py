"""Branches renamed, states that are the newest again, tables that are emptied or copied: Java reads them, and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from reference_engine import NEEDS_PAIMON
from test_paimon_life import Java, add, filled, ks

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_branches
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON


def test_a_renamed_branch(tmp_path: Path) -> None:
    table, java = filled(tmp_path / "t", 3), Java(tmp_path, tmp_path / "t")
    table.create_tag("two", 2)
    table.create_branch("side", "two")
    table.rename_branch("side", "other")
    java.reads([1, 2], branch="other")
    java.does(write={"rows": [[9, "a"]], "branch": "other"})
    java.reads([1, 2, 9], branch="other")
    java.does(call=["renameBranch", "other", "last"])
    java.run()
    assert list_branches(open_store(table.url)) == ["last"] and ks(table, branch="last") == [1, 2, 9]
    table.rename_branch("last", "side")
    table.fast_forward("side")
    java.reads([1, 2, 9])
    java.run()


def test_java_goes_on_from_a_state_that_is_the_newest_again(tmp_path: Path) -> None:
    table, java = filled(tmp_path / "t", 3), Java(tmp_path, tmp_path / "t")
    java.does(compact={"full": True})
    java.does(write={"rows": [[50, "a"]], "overwrite": {}})
    java.run()
    table.rollback_to_as_latest(snapshot_id=2)
    java.reads([1, 2])
    # Its expiry looks at neighbours alone: files that came back are a tag's.
    java.does(expire=1)
    java.reads([1, 2])
    java.does(write={"rows": [[60, "b"]]})
    java.reads([1, 2, 60])
    java.run()
    assert ks(table) == [1, 2, 60]


def test_keys_of_a_state_that_is_the_newest_again(tmp_path: Path) -> None:
    java = Java(tmp_path, tmp_path / "t")
    columns = [{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    java.does(create={"fields": columns, "primaryKeys": ["k"], "options": options})
    for rows in ([[1, "a"], [2, "a"], [3, "a"]], [[2, "b"]], [[3, "c"], [4, "c"]]):
        java.does(write={"rows": rows})
    java.run()
    table = PaimonTable.forPath(str(tmp_path / "t"))

    def held(**at: int) -> list[tuple[int, str]]:
        return sorted((row["k"], row["v"]) for row in alluvium.open(table.url, **at).to_arrow().to_pylist())

    versions = alluvium.open(table.url).system("snapshots")["snapshot_id"].to_pylist()
    states = {version: held(version=version) for version in versions}
    for version in (*versions, *reversed(versions)):
        table.rollback_to_as_latest(snapshot_id=version)
        assert held() == states[version]
        java.reads(sorted(v for _, v in states[version]), "v")
        java.run()
    java.does(write={"rows": [[1, "z"]]})
    java.run()
    # Rows of level 0 are shown when they are compacted.
    assert held() == [(1, "z"), (2, "a"), (3, "a")]


def test_both_empty_a_table_alike(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", 3)
    table.create_tag("two", 2)
    table.create_branch("side", "two")
    add(table, 4)
    shutil.copytree(tmp_path / "t", tmp_path / "java")
    table.purge_files()
    java, own = Java(tmp_path, tmp_path / "java"), Java(tmp_path, tmp_path / "t")
    java.does(call=["purgeFiles"])
    java.run()

    def left(name: str) -> list[str]:
        places = [path.relative_to(tmp_path / name) for path in sorted((tmp_path / name).rglob("*")) if path.is_file()]
        return sorted(str(path.parent) if "manifest" in path.parts else str(path) for path in places)

    ours, theirs = ({path for path in left(name) if "alluvium" not in path} for name in ("t", "java"))
    assert ours == theirs
    own.reads([])
    own.does(write={"rows": [[7, "a"]]})
    own.reads([7])
    own.run()
    assert ks(table) == [7]


def test_a_file_that_comes_again_into_a_copy(tmp_path: Path) -> None:
    table, copied = filled(tmp_path / "t", 3), PaimonTable(open_store(str(tmp_path / "copy")))
    for version in (3, 1, 2, 3):
        table.rollback_to_as_latest(snapshot_id=version)
        table.copy(copied.url)
        java = Java(tmp_path, tmp_path / "copy")
        java.reads(list(range(1, version + 1)))
        java.run()
    assert ks(copied) == [1, 2, 3]


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_java_goes_on_in_a_copy(tmp_path: Path, bucket: str) -> None:
    schema = pa.schema([("k", pa.int32()), ("v", pa.string())])
    table = PaimonTable.create(str(tmp_path / "t"), schema, primary_keys=["k"], options={"bucket": bucket})
    append(open_target(open_store(table.url)), [{"k": k, "v": "old"} for k in range(6)])
    append(open_target(open_store(table.url)), [{"k": 3, "v": "new"}])
    table.copy(str(tmp_path / "copy"))
    shutil.rmtree(tmp_path / "t")
    java = Java(tmp_path, tmp_path / "copy")
    java.reads([0, 1, 2, 3, 4, 5])
    java.does(write={"rows": [[4, "newer"], [8, "x"]]})
    java.does(compact={"full": True})
    java.reads(["new", "newer", "old", "old", "old", "old", "x"], "v")
    java.run()
    rows = {row["k"]: row["v"] for row in alluvium.open(str(tmp_path / "copy")).to_arrow().to_pylist()}
    assert rows == {0: "old", 1: "old", 2: "old", 3: "new", 4: "newer", 5: "old", 8: "x"}
