"""Directories that have several addresses."""

from __future__ import annotations

from pathlib import Path

from alluvium.storage.places import matches, same_place, without_links


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
