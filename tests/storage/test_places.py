"""Directories that have several addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from alluvium.storage.places import local_path, matches, same_place, without_links


def test_links_lead_to_the_same_place(tmp_path: Path):
    table, link, other = tmp_path / "a table", tmp_path / "link", tmp_path / "other"
    table.mkdir()
    other.mkdir()
    link.symlink_to(table)
    assert same_place(f"file:{table}", str(link)) is True
    assert same_place(f"file:{tmp_path}/other/../link/", f"file://{table}") is True
    assert same_place(str(other), str(table)) is False
    assert same_place(f"{table}/nothing", str(table)) is None
    assert str(without_links(f"file:{link}/p=0/none")) == f"file:{table}/p=0/none"
    assert str(without_links("s3a://b/t")) == "s3a://b/t"


def test_of_other_stores_nobody_can_tell():
    assert same_place("s3a://b/t", "s3a://b/t") is True
    assert same_place("s3a://b/t", "s3a://alias/t") is None
    assert same_place("/data/t", "file://host/data/t") is None


def test_patterns_of_names(tmp_path: Path):
    for name in ("a1", "a2", "b1"):
        (tmp_path / name).mkdir()
    for pattern in ("a*", "a?", "{a1,a2}", "[^b]?", "a\\1"):
        assert {f"{tmp_path}/a1"} <= set(matches(f"file:{tmp_path}/{pattern}")), pattern
    assert list(matches(f"{tmp_path}/c*")) == [] == list(matches("s3a://b/a*"))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/data/t", "/data/t"), ("/data//t/../u/", "/data/u"), ("file:/data/t", "/data/t"), ("file:///data/a%20b?", "/data/a%20b?"), ("", "/"), ("/", "/"),
        ("data/t", None), ("./data", None), ("file:data", None), ("file://host/data", None), ("memory:/t", None), ("s3a://b/t", None), ("hdfs:/t", None),
    ],
)  # fmt: skip
def test_addresses_of_this_disk(url: str, path: str | None) -> None:
    assert local_path(url) == path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a?", ["a1", "a2"]), ("a*", ["a1", "a2", "ab1"]), ("[ab]1", ["a1", "ab1", "b1"]), ("[^b]1", ["a1", "ab1", "b1"]), ("{a1,b1}", ["a1", "a2", "ab1", "b1", "d"]),
        ("d/{x,y}z", ["d/xz", "d/z"]), ("a\\1", ["a1", "a2", "ab1"]), ("a1", ["a1"]), ("none*", []), ("*/xz", ["d/xz"]),
    ],
)  # fmt: skip
def test_what_a_pattern_may_stand_for(tmp_path: Path, pattern: str, found: list[str]) -> None:
    """More rather than less: who asks looks at what he gets. No pattern goes over a slash."""
    for name in ("a1", "a2", "ab1", "b1", "d/xz", "d/z"):
        (tmp_path / name).mkdir(parents=True)
    assert sorted(matches(f"file:{tmp_path}/{pattern}")) == [f"{tmp_path}/{name}" for name in found]
