"""Protocol and metadata of an older version."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from change_table import ChangeTable, metadata, protocol

from alluvium.delta.changes.head import load_head
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store


@pytest.fixture
def table(tmp_path: Path) -> ChangeTable:
    """Version 0 makes the table, 1 appends, 2 sets a property, 3 another protocol, 4 appends."""
    made = ChangeTable(tmp_path)
    made.commit(protocol(1, 2), metadata(properties={"n": "0"}))
    made.commit(made.add("a.parquet", [1]))
    made.commit(metadata(properties={"n": "2"}))
    made.commit(protocol(1, 4))
    made.commit(made.add("b.parquet", [2]))
    return made


def head(table: ChangeTable, version: int) -> tuple[int, str]:
    found = load_head(open_store(table.url), version)
    return found[0].min_writer_version, found[1].configuration["n"]


def test_the_newest_of_each_holds(table: ChangeTable) -> None:
    """ "The latest `protocol` action seen wins", "The latest `metaData` action seen wins" """
    assert [head(table, version) for version in range(5)] == [(2, "0"), (2, "0"), (2, "2"), (4, "2"), (4, "2")]


def test_what_is_older_comes_from_a_checkpoint(table: ChangeTable) -> None:
    write_checkpoint_at(load_snapshot(open_store(table.url), 2))
    for version in range(3):
        (table.root / "_delta_log" / f"{version:020d}.json").unlink()
    assert head(table, 4) == (4, "2")
    assert head(table, 2) == (2, "2")
    with pytest.raises(NotFound):
        head(table, 1)


def test_a_damaged_checkpoint_is_passed_over(table: ChangeTable) -> None:
    (table.root / "_delta_log" / f"{3:020d}.checkpoint.parquet").write_bytes(b"PAR1xxxxPAR1")
    with warnings.catch_warnings(record=True):
        assert head(table, 4) == (4, "2")


def test_a_log_without_a_protocol(tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(metadata())
    with pytest.raises(CorruptTable) as caught:
        load_head(open_store(table.url), 0)
    assert caught.value.code == "no-protocol"
