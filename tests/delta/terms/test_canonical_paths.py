"""Spellings of one file are one path, and those of two are two."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from alluvium.delta.terms.canonical_paths import canonical_paths

#: Each line: spellings of one file.
SAME = [
    ["a b.parquet", "a%20b.parquet"], ["p=1/x", "p=1/x"], ["p=%2F/x", "p=//x"], ["p=a%253A/x", "p=a%253A/x"],
    ["/data/a", "file:/data/a", "file:///data/a", "file://localhost/data/a", "//data/a", "file:////data/a", "file:/data/%61"],
    ["file:/d%20e/f", "/d e/f"], ["s3://b/a%2Bb", "s3://b/a+b"], ["é", "%C3%A9"], ["d%C3%A9/x", "dé/x"], ["a\nb", "a%0Ab"],
    ["x%", "x%"], ["%FF"], ["%FE"], ["fileA"], ["data/a"], ["p=a%3A/x", "p=a:/x"],
    ["c.parquet", "./c.parquet", ".//c.parquet", "././c.parquet", "./././c.parquet"], [".c/d", "./.c/d"], ["c./d", "c././d"],
    ["g//h.parquet", "g/h.parquet", "g/./h.parquet", "g/.//./h.parquet", "./g/h.parquet"], ["..g/h", "./..g/h"],
    ["/k/l", "/./k/l", "file:/k//l", "file:///k/./l"], ["s3://c/d/e", "s3://c//d/e", "s3://c/./d//e"],
    ["m.parquet", "n/../m.parquet", "n/o/../../m.parquet", "./n/%2E%2E/m.parquet"], ["n/m.parquet", "n/o/../m.parquet"],
    ["../m.parquet", "n/../../m.parquet"], ["/q/r", "/q/s/../r", "FILE:/q/r", "File:///q/./s/../r"], ["s3://d/e", "s3://d/f/../e"],
    ["s3://f/../e", "s3://f/g/../../e"], ["s3://h"], ["...//t", ".../t"], ["n../t", "o/../n../t"],
]  # fmt: skip


@pytest.mark.parametrize("spellings", SAME, ids=lambda s: s[0])
def test_spellings_of_one_file(spellings: list[str]) -> None:
    assert len(set(canonical_paths(pa.array(spellings)).to_pylist())) == 1
    # Alone, too: what others look like is nothing to a path.
    assert len({canonical_paths(pa.array([one]))[0].as_py() for one in spellings}) == 1


def test_two_files_stay_two() -> None:
    found = canonical_paths(pa.array([line[0] for line in SAME])).to_pylist()
    assert [a for a, b in itertools.combinations(found, 2) if a == b] == []
    every = canonical_paths(pa.array([one for line in SAME for one in line])).to_pylist()
    assert len(set(every)) == len(SAME)


def test_plain_paths_are_themselves() -> None:
    plain = pa.array(["a", "p=1/b", "/c/d"])
    assert canonical_paths(plain) is plain
    assert canonical_paths(pa.array([], pa.string())).to_pylist() == []


def test_a_path_of_any_length_takes_one_pass() -> None:
    """What a log names is a stranger's: a pass for each part would take hours."""
    deep, flat = "a/" * 200_000, "a/../" * 200_000
    assert canonical_paths(pa.array([f"{deep}{'../' * 200_000}b", f"{flat}b"])).to_pylist() == ["b", "b"]
