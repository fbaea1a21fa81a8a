"""Tables with data evolution: rows that are gone, and ranges of several branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_tables import Evolved

import alluvium
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type

COLUMNS = pa.schema([("id", pa.int32()), ("a", pa.string()), ("b", pa.string())])
VECTORS = {"deletion-vectors.enabled": "true"}


def rows_of(path: Path, *columns: str, **options: str) -> list[dict[str, Any]]:
    found = alluvium.open(str(path), options=options).to_arrow(columns=list(columns) or None)
    return sorted(found.to_pylist(), key=str)


def test_rows_are_gone_from_all_files_of_their_range(tmp_path: Path) -> None:
    """Java, `DataEvolutionSplitRead`: a range's vector is kept for its oldest file, and every reader drops its rows."""
    table = Evolved(tmp_path / "t", COLUMNS, **VECTORS)
    table.add({"id": [9], "a": ["alone"], "b": ["z"]}, 0)
    first = table.add({"id": [0, 1, 2, 3], "a": list("abcd"), "b": list("wxyz")}, 1)
    table.add({"a": list("ABCD")}, 1)
    table.delete(first, [1, 3])
    table.add({"b": list("WXYZ")}, 1)
    rest = [{"id": 0, "a": "A", "b": "W"}, {"id": 2, "a": "C", "b": "Y"}, {"id": 9, "a": "alone", "b": "z"}]
    assert rows_of(tmp_path / "t") == rest
    # Whether the file that the vector is kept for is read, or not.
    assert rows_of(tmp_path / "t", "b") == [{"b": "W"}, {"b": "Y"}, {"b": "z"}]
    assert rows_of(tmp_path / "t", "_ROW_ID") == [{"_ROW_ID": 0}, {"_ROW_ID": 1}, {"_ROW_ID": 3}]


def test_rows_are_gone_from_files_of_large_values_that_begin_elsewhere(tmp_path: Path) -> None:
    fields = [DataField(0, "id", parse_type("INT")), DataField(1, "image", parse_type("BLOB"))]
    table = Evolved(tmp_path / "t", fields, **VECTORS)
    first = table.add({"id": [0, 1, 2, 3, 4]}, 10)
    table.add_blobs("image", [b"0", b"1"], 10)
    table.add_blobs("image", [b"2", None, b"4"], 12)
    table.delete(first, [0, 2])
    rest = [{"id": 1, "image": b"1"}, {"id": 3, "image": None}, {"id": 4, "image": b"4"}]
    assert rows_of(tmp_path / "t") == rest


def test_ranges_of_a_fallback_branch_are_others(tmp_path: Path) -> None:
    fields = pa.schema([("p", pa.string()), ("id", pa.int32()), ("a", pa.string())])
    table = Evolved(tmp_path / "t", fields, ("p",))
    table.add({"id": [0, 1], "a": ["a", "b"]}, 0, p="x")
    table.add({"a": ["A", "B"]}, 0, p="x")
    branch = Evolved(tmp_path / "t", fields, branch="b")
    branch.add({"id": [10, 11], "a": ["c", "d"]}, 0, p="y")
    branch.add({"a": ["C", "D"]}, 0, p="y")
    assert rows_of(tmp_path / "t", **{"scan.fallback-branch": "b"}) == [
        {"p": "x", "id": 0, "a": "A"},
        {"p": "x", "id": 1, "a": "B"},
        {"p": "y", "id": 10, "a": "C"},
        {"p": "y", "id": 11, "a": "D"},
    ]


@pytest.mark.parametrize(
    "change",
    [
        SchemaChange.add_column("x", "INT"),
        SchemaChange.drop_column("a"),
        SchemaChange.rename_column("a", "x"),
        SchemaChange.update_column_type("id", "BIGINT"),
    ],
)
def test_a_fallback_branch_of_other_columns_is_refused(tmp_path: Path, change: SchemaChange) -> None:
    """Java, `FallbackReadFileStoreTable.validateSchema`."""
    fields = pa.schema([("p", pa.string()), ("id", pa.int32()), ("a", pa.string())])
    Evolved(tmp_path / "t", fields, ("p",)).add({"id": [1], "a": ["a"]}, 0, p="x")
    Evolved(tmp_path / "t", fields, branch="b").add({"id": [2], "a": ["b"]}, 0, p="y")
    table = PaimonTable.forPath(str(tmp_path / "t"))
    table.alter([change])
    with pytest.raises(InvalidRequest) as caught:
        rows_of(tmp_path / "t", **{"scan.fallback-branch": "b"})
    assert (caught.value.code, caught.value.column in ("x", "a", "id")) == ("fallback-schema", True)


def test_large_values_of_a_column_whose_name_begins_with_an_underscore(tmp_path: Path) -> None:
    fields = [DataField(0, "id", parse_type("INT")), DataField(1, "_image", parse_type("BLOB"))]
    table = Evolved(tmp_path / "t", fields)
    table.add({"id": [0, 1]}, 0)
    table.add_blobs("_image", [b"0", None], 0)
    assert rows_of(tmp_path / "t") == [{"id": 0, "_image": b"0"}, {"id": 1, "_image": None}]
    assert rows_of(tmp_path / "t", "_ROW_ID", "_image") == [
        {"_ROW_ID": 0, "_image": b"0"},
        {"_ROW_ID": 1, "_image": None},
    ]


def test_a_vector_that_begins_before_its_file(tmp_path: Path) -> None:
    table = Evolved(tmp_path / "t", COLUMNS, **VECTORS)
    name = table.add({"id": [0], "a": ["a"], "b": ["b"]}, 0)
    table.delete(name, [0], offset=-5)
    with pytest.raises(CorruptTable) as caught:
        rows_of(tmp_path / "t")
    assert caught.value.code == "damaged-deletion-vector"
