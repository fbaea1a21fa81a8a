"""The check-up of data files, deletion vectors and files of change data."""

from __future__ import annotations

import pytest
from fuzz_tables import FuzzTable, vectors

from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.view.snapshot import load_snapshot

VECTORS = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.fixture
def table() -> FuzzTable:
    return vectors()


def findings(table: FuzzTable) -> list[Finding]:
    """But for the one vector that stands in the log itself by intent."""
    store = table.store()
    found = [*check_log(store), *check_snapshot(load_snapshot(store))]
    inline = [f for f in found if "stand in the log itself" in f.message]
    assert len(inline) == 1 and inline[0].path == "f2.parquet"
    return [f for f in found if f not in inline]


def test_nothing_to_find(table: FuzzTable) -> None:
    assert findings(table) == []


def test_a_file_of_vectors_that_is_gone(table: FuzzTable) -> None:
    del table.files[VECTORS]
    found = findings(table)
    assert [(f.level, f.check, f.path) for f in found] == [
        ("error", "deletion-vectors", f"f{n}.parquet") for n in (0, 1)
    ]
    assert "does not exist" in found[0].message


def test_a_checksum_that_does_not_fit(table: FuzzTable) -> None:
    data = bytearray(table.files[VECTORS])
    data[-6] ^= 1
    table.files[VECTORS] = bytes(data)
    (found,) = findings(table)
    assert (found.check, found.path) == ("deletion-vectors", "f1.parquet")
    assert "checksum" in found.message


def test_a_cardinality_that_does_not_fit(table: FuzzTable) -> None:
    log = table.log(3)
    table.files[log] = table.files[log].replace(b'"cardinality": 1', b'"cardinality": 9')
    found = findings(table)
    assert {f.check for f in found} == {"deletion-vectors"}
    assert any("has 1 rows, the log says 9" in f.message for f in found)
    assert any("9 rows are deleted of a file that has 5" in f.message for f in found)


def test_a_vector_without_a_number_of_rows(table: FuzzTable) -> None:
    """ "For any logical file where `deletionVector` is not `null`, the `numRecords` statistic *must* be present" """
    log = table.log(3)
    table.files[log] = table.files[log].replace(b'\\"numRecords\\": 5', b'\\"other\\": 5')
    (found,) = findings(table)
    assert (found.level, found.check, found.path) == ("warning", "deletion-vectors", "f2.parquet")


def test_change_data_that_is_gone_or_cut(table: FuzzTable) -> None:
    del table.files["_change_data/c1.parquet"]
    table.files["_change_data/c2.parquet"] = b"cut"
    found = findings(table)
    assert [(f.level, f.check, f.path) for f in found] == [
        ("warning", "change-data", "_change_data/c1.parquet"),
        ("warning", "change-data", "_change_data/c2.parquet"),
    ]
    assert "is gone" in found[0].message
    assert "has 3 bytes" in found[1].message


def test_a_commit_without_a_byte(table: FuzzTable) -> None:
    table.files[table.log(4)] = b""
    with pytest.warns(UserWarning, match="is empty"):
        (found,) = findings(table)
    assert (found.level, found.check, found.path) == ("warning", "log", table.log(4))
