"""VACUUM from DeltaTable and from SQL: settings, answers, errors. What goes is tested in tests/delta/upkeep."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from vacuumed_tables import age, backdate_tombstones, files_of, litter, live, overwritten

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.upkeep.vacuum import CHECK, LOGGING
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview
from alluvium.errors import InvalidRequest, NotFound

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def settings(session):
    yield session.conf
    for name in (CHECK, LOGGING):
        session.conf.unset(name)


def test_from_python(session, settings, tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    table = DeltaTable.forPath(session, str(tmp_path))
    with pytest.raises(IllegalArgumentException, match="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT") as caught:
        table.vacuum(0)
    assert isinstance(caught.value, InvalidRequest)
    with pytest.raises(IllegalArgumentException, match="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"):
        table.vacuum(-1)
    for wrong in ("abc", [], float("nan")):
        with pytest.raises(ValueError, match="a number"):
            table.vacuum(wrong)
    with pytest.warns(UserWarning, match="for 168 hours, not 48"):
        assert table.vacuum(48, dry_run=True).files.num_rows == 0
    settings.set(CHECK, "false")
    preview = table.vacuum(0, dry_run=True)
    assert isinstance(preview, VacuumPreview)
    assert preview.lost_versions == (0, 1, 2)
    told = table.readable_versions()
    assert told.columns == ["version", "timestamp", "readable", "after_vacuum"]
    assert [row["readable"] for row in told.collect()] == [True] * 4
    done = table.vacuum(0)
    assert (done.columns, done.count()) == ([], 0)
    assert files_of(tmp_path) == live(store)
    history = table.history(2).collect()
    assert [row["operation"] for row in history] == ["VACUUM END", "VACUUM START"]
    assert history[1]["operationParameters"] == {
        "retentionCheckEnabled": "false",
        "specifiedRetentionMillis": "0",
        "defaultRetentionMillis": "604800000",
    }
    assert history[0]["operationMetrics"] == {"numDeletedFiles": "3", "numVacuumedDirectories": "5"}
    settings.set(LOGGING, "false")
    table.vacuum()
    assert table.history(1).collect()[0]["version"] == 5


def test_by_sql(session, settings, tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    backdate_tombstones(store)
    age(tmp_path, 30)
    litter(tmp_path, "a b%/x.parquet")
    past = files_of(tmp_path) - live(store)
    name = f"delta.`{tmp_path}`"
    told = session.sql(f"VACUUM {name} DRY RUN")
    assert told.columns == ["path"]
    assert {row.path for row in told.collect()} == {store.uri(path) for path in past}
    lite = session.sql("VACUUM :t LITE RETAIN :h HOURS DRY RUN", {"t": str(tmp_path), "h": 240})
    assert {row.path for row in lite.collect()} == {store.uri(path) for path in past if path != "a b%/x.parquet"}
    session.createDataFrame(
        pa.table(
            {"path": [store.uri("a b%/x.parquet")], "length": [5], "isDir": [False], "modificationTime": [1], "k": [1]}
        )
    ).createOrReplaceTempView("listed")
    for inventory in ("listed", "(select * from listed where k = 1)"):
        told = session.sql(f"VACUUM '{tmp_path}' USING INVENTORY {inventory} DRY RUN")
        assert [row.path for row in told.collect()] == [store.uri("a b%/x.parquet")]
    with pytest.raises(AnalysisException, match="DELTA_INVALID_INVENTORY_SCHEMA"):
        session.sql(f"VACUUM {name} USING INVENTORY (select path from listed)")
    with pytest.raises(IllegalArgumentException, match="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
        session.sql(f"VACUUM {name} RETAIN 0 HOURS")
    with pytest.raises(NotFound):
        session.sql(f"VACUUM delta.`{tmp_path}/none`")
    assert past <= files_of(tmp_path)
    assert [row.path for row in session.sql(f"VACUUM {name}").collect()] == [store.uri("")]
    assert files_of(tmp_path) == live(store)
