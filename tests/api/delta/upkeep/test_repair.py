"""REPAIR from DeltaTable and from SQL. What is mended is tested in tests/delta/upkeep/repair."""

from __future__ import annotations

from pathlib import Path

import pytest

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


def test_files_that_are_gone(session, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    session.range(10).repartition(2).write.format("delta").save(path)
    session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    gone, masked = alluvium.open(path).files()["path"].to_pylist()
    kept = [row.id for row in session.read.parquet(f"{path}/{masked}").collect()]
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = {kept[0]}")
    Path(path, gone).unlink()
    told = session.sql(f"FSCK REPAIR TABLE delta.`{path}` DRY RUN")
    assert [tuple(row) for row in told.collect()] == [(gone, True, None, False)]
    assert told.columns == ["dataFilePath", "dataFileMissing", "deletionVectorPath", "deletionVectorFileMissing"]
    assert DeltaTable.forPath(session, path).history(1).collect()[0]["version"] == 2
    assert session.sql(f"FSCK REPAIR TABLE delta.`{path}`").count() == 1
    assert sorted(row.id for row in session.table(f"delta.`{path}`").collect()) == sorted(kept[1:])
    vector = next(Path(path).glob("deletion_vector_*.bin"))
    vector.unlink()
    done = DeltaTable.forPath(session, path).repair()
    assert done.missing.to_pylist() == [
        {
            "dataFilePath": masked,
            "dataFileMissing": False,
            "deletionVectorPath": vector.name,
            "deletionVectorFileMissing": True,
        }
    ]
    table = DeltaTable.forPath(session, path)
    assert table.toDF().count() == 0
    assert [row["operation"] for row in table.history(2).collect()] == ["FSCK", "FSCK"]
    assert table.repair(dry_run=True).is_sound
