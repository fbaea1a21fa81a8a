"""What Python workers are told of a view of a Paimon table, and what they read of it; they are played without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten, write_readings

import alluvium
from alluvium.api.paimon.paimon_pins import paimon_pins
from alluvium.api.server_scan import open_scan, read_group
from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.view.changes import PLACES, difference, kind_names
from alluvium.paimon.view.merge import KIND
from alluvium.paimon.view.source import (
    AUDIT,
    CHANGES,
    DIFF_AFTER,
    DIFF_BEFORE,
    OPTIMIZED,
    PLACED,
    TRACKING,
    PaimonSource,
    View,
)
from alluvium.storage.open import open_store


@pytest.fixture
def readings(tmp_path: Path) -> str:
    write_readings(tmp_path / "readings")
    return str(tmp_path / "readings")


def by_workers(url: str, view: View, version: int | None = None, **more: str) -> pa.Table:
    """As Spark's workers do it: from options alone."""
    opened = alluvium.open(url, version=version)
    source = PaimonSource(opened._snapshot, view)
    options = {"path": url, **paimon_pins(source), **more}
    scan = open_scan(options)
    assert scan.plan.schema == source.schema
    batches = list(read_group(options, scan))
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in scan.columns})


def shown(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def named(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(0, name, kind_names(table[KIND]))


def test_the_state_that_was_opened(readings: str) -> None:
    assert shown(by_workers(readings, View(), 1)) == shown(alluvium.open(readings, version=1).to_arrow())
    assert by_workers(readings, View(), where="sensor = 'c'", columns='["value"]').to_pylist() == [{"value": 4.0}]


def test_the_state_that_options_name(readings: str) -> None:
    expected = shown(alluvium.open(readings, tag="noon").to_arrow())
    for named_by in ({"versionAsOf": "2"}, {"scan.tag-name": "noon"}, {"scan.snapshot-id": "2"}, {"scan.version": "2"}):
        options = {"path": readings, **named_by}
        scan = open_scan(options)
        assert shown(pa.Table.from_batches(list(read_group(options, scan)))) == expected, named_by
    with pytest.raises(NotFound, match="before"):
        open_scan({"path": readings, "timestampAsOf": "1970-01-02"})


def test_system_tables_that_are_views(readings: str) -> None:
    opened = alluvium.open(readings)
    assert shown(named(by_workers(readings, View(AUDIT)), "rowkind")) == shown(opened.system("audit_log"))
    assert shown(by_workers(readings, View(OPTIMIZED))) == shown(opened.system("ro"))
    changes, placed = (by_workers(readings, View(name, 0, 3, "delta")) for name in (CHANGES, PLACED))
    assert shown(placed.drop_columns(list(PLACES))) == shown(changes)
    assert len({tuple(row.values()) for row in placed.select(PLACES).to_pylist()}) == changes.num_rows
    with pytest.raises(InvalidRequest) as caught:
        by_workers(readings, View(TRACKING))
    assert caught.value.code == "row-tracking-disabled"


@pytest.mark.parametrize("ends", [(0, 3), (1, 3), (2, 3), (1, 1)])
def test_changes(readings: str, ends: tuple[int, int]) -> None:
    opened = alluvium.open(readings)
    found = by_workers(readings, View(CHANGES, *ends, "delta"))
    assert shown(named(found, "_row_kind") if found.num_rows else found) == shown(opened.changes(*ends, mode="delta"))
    before, after = (by_workers(readings, View(name, *ends)) for name in (DIFF_BEFORE, DIFF_AFTER))
    kinds = opened.changes(*ends, mode="diff")
    if after.num_rows:
        before = before if before.num_rows else after.slice(0, 0)
        assert shown(named(difference(before, after), "_row_kind")) == shown(kinds)
    else:
        assert kinds.num_rows == 0


def test_rows_with_ids(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])
    table = HandWritten(tmp_path / "t", schema, **{"row-tracking.enabled": "true"})
    table.commit([{"n": 5}])
    source = PaimonSource(load_snapshot(open_store(str(tmp_path / "t"))), View(TRACKING))
    assert source.schema.names == ("n", "_ROW_ID", "_SEQUENCE_NUMBER")
    assert [c.name for c in source.plan_scan(None).parts[0].output] == ["n", "_ROW_ID", "_SEQUENCE_NUMBER"]


def test_views_are_told_apart(readings: str) -> None:
    """Spark reads a table once that a query names twice, by the sources' identities."""
    state = load_snapshot(open_store(readings))
    views = [View(), View(AUDIT), View(CHANGES, 0, 3, "delta"), View(CHANGES, 1, 3, "delta"), View(DIFF_AFTER, 1, 3)]
    identities = [PaimonSource(state, view).identity for view in views]
    assert len(set(identities)) == len(views)
    assert {identity[:2] for identity in identities} == {(state.store.url, "3")}
