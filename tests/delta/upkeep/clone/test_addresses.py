"""Paths of one table as another names them: every form of path, beside where it leads."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.delta.terms.spec import DELETION_VECTOR, FILES
from alluvium.delta.upkeep.clone.addresses import (
    absolute_paths,
    absolute_vectors,
    directory_uri,
    moved_vectors,
    vector_file,
    vector_names,
)


@pytest.mark.parametrize(
    ("root", "seen_from", "path", "expected"),
    [
        ("/data/t", "/data/c", "a.parquet", "/data/t/a.parquet"), ("file:/data/t", "/data/c", "p=1/a", "file:/data/t/p=1/a"),
        ("s3://b/t", "s3://b/c", "a", "s3://b/t/a"), ("s3://b/t/", "s3://b/c", "a", "s3://b/t/a"),
        # From the top of the store, and elsewhere.
        ("s3://b/t", "s3://b/c", "/x/a", "s3://b/x/a"), ("s3://b/t", "s3://b/c", "s3://o/a", "s3://o/a"),
        ("s3://b/t", "s3://b/c", "file:/a", "file:/a"), ("/data/t", "/data/c", "/x/a", "/x/a"),
        # What lies in the other's own folder.
        ("s3://b/t", "s3://b/t/c", "c/a", "a"), ("s3://b/t", "s3://b/c", "s3://b/c/d/a", "d/a"), ("/t", "/c", "/c/a", "a"),
        ("s3://b/t", "s3://b/c", "s3://b/cc/a", "s3://b/cc/a"),
        # Escapes stay as they are, and a root has some of its own.
        ("/da ta/t", "/c", "a%20b", "/da%20ta/t/a%20b"), ("/t", "/c", "p=a%253A/x:y", "/t/p=a%253A/x:y"), ("/t", "/c d", "/c%20d/a", "a"),
        ("/t", "/c", "1x:/a", "/t/1x:/a"),
    ],
)  # fmt: skip
def test_paths_lead_to_the_same_file(root: str, seen_from: str, path: str, expected: str) -> None:
    found = absolute_paths(pa.chunked_array([[path, "last"]]), root, seen_from)
    assert found[0].as_py() == expected


def test_directories_end_with_one_slash() -> None:
    assert directory_uri("/a b/c//") == directory_uri("/a b/c") == "/a%20b/c/"


STORED = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
INLINE = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "offset": None,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ABSOLUTE = {"storageType": "p", "pathOrInlineDv": "s3://o/v%20w.bin", "offset": 1, "sizeInBytes": 34, "cardinality": 2}
PLACE = "s3://b/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def files(*vectors: object) -> pa.Table:
    rows = [{"path": str(n), "size": 1, "modificationTime": 0, "dataChange": True, "partitionValues": [], "deletionVector": v}
            for n, v in enumerate(vectors)]  # fmt: skip
    return pa.Table.from_pylist(rows, FILES)


def test_vectors_are_named_by_where_they_lie() -> None:
    """The example of the specification: `ab`, then a UUID in Base85."""
    found = absolute_vectors(files(None, STORED, INLINE, ABSOLUTE, STORED), "s3://b/t")
    placed = {**STORED, "storageType": "p", "pathOrInlineDv": PLACE}
    assert found.type == DELETION_VECTOR
    inner = [None if v is None else {k: v[k] for k in STORED} for v in found.to_pylist()]
    assert inner == [None, placed, INLINE, ABSOLUTE, placed]


@pytest.mark.parametrize("vectors", [(), (None, None)], ids=["no file", "no vector"])
def test_nothing_to_move(vectors: tuple[None, ...]) -> None:
    found = moved_vectors(files(*vectors), "s3://b/t", lambda address: ("u", address))
    assert found == pa.nulls(len(vectors), DELETION_VECTOR)


def test_files_of_vectors_are_asked_for_once() -> None:
    asked: list[str] = []

    def place(address: str) -> tuple[str, str]:
        asked.append(address)
        return "p", f"/new/{len(asked)}"

    found = moved_vectors(files(STORED, ABSOLUTE, {**STORED, "offset": 50}, INLINE), "s3://b/t", place).to_pylist()
    assert asked == [PLACE, "s3://o/v w.bin"]
    assert [v["pathOrInlineDv"] for v in found] == ["/new/1", "/new/2", "/new/1", INLINE["pathOrInlineDv"]]
    assert [v["offset"] for v in found] == [4, 1, 50, None]


def test_names_of_files_of_vectors() -> None:
    table = files(None, STORED, INLINE, ABSOLUTE, STORED)
    names = vector_names(table["deletionVector"].combine_chunks())
    assert names.to_pylist() == [None, "uab^-aqEH.-t@S}K{vb[*k^", None, "ps3://o/v%20w.bin", "uab^-aqEH.-t@S}K{vb[*k^"]
    assert vector_file("uab^-aqEH.-t@S}K{vb[*k^", "s3://b/t") == PLACE
