"""Columns of type char(n) over Spark Connect: as in the lanes without Spark, and in the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from char_table import EXPECTED, PADDED, SCHEMA, make_table
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.spark.scan.connect_lane import connect as lane
from alluvium.spark.scan.connect_lane import connect_constants

pytestmark = pytest.mark.connect


def by_id(df) -> list[dict[str, object]]:
    return sorted(df.toArrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("way", ["folders", "looked up", "literal"])
def test_rows_and_predicates(connect, tmp_path: Path, monkeypatch, way: str):
    monkeypatch.setattr(connect_constants, "MAX_RELATIONS", 100 if way == "literal" else 0)
    if way == "looked up":
        monkeypatch.setattr(lane, "folders_above", lambda *_: None)
    url = make_table(tmp_path / "t")
    frame = alluvium.read(connect, url)
    assert by_id(frame) == PADDED
    asked = ("c = 'a'", "c in ('a', null)", "c like 'a    '", "s.c = 'a  '", "p = 'x'", "p in ('x', 'z')", "p like 'x'")
    found = {text: sorted(row["id"] for row in frame.where(text).collect()) for text in asked}
    assert found == {text: EXPECTED[text] for text in asked}
    assert alluvium.explain(frame.where("p = 'y'"))[0].files == 1


def test_the_lane_in_workers(connect, tmp_path: Path):
    url = make_table(tmp_path / "t")
    assert by_id(alluvium.read(connect, url, lane="python")) == PADDED
    assert by_id(alluvium.changes(connect, url, 0).select(*SCHEMA.names)) == PADDED
    found = alluvium.read(connect, url, lane="python", where="p = 'x'")
    assert [row["id"] for row in by_id(found)] == EXPECTED["p = 'x'"]


CHAR_SETTINGS: dict[str, dict[str, str]] = {
    "as strings": {"spark.sql.legacy.charVarcharAsString": "true"},
    "not padded": {"spark.sql.readSideCharPadding": "false"},
    "not in predicates": {"spark.sql.legacy.noCharPaddingInPredicate": "true"},
    "neither": {"spark.sql.readSideCharPadding": "false", "spark.sql.legacy.noCharPaddingInPredicate": "true"},
}


@pytest.mark.parametrize("said", CHAR_SETTINGS)
@pytest.mark.parametrize(
    "text", ["length(c) < 3", "c <> 'a'", "c = 'a'", "p <> 'x'", "p = 'x'", "length(p) < 3", "p like 'x'"]
)
def test_conditions_find_what_the_server_finds_in_its_own_rows(connect, tmp_path: Path, said: str, text: str):
    """Whatever the session makes of such columns: what a condition leaves out, and DELETE takes, is as its rows are."""
    url = make_table(tmp_path / "t")
    every = {row["id"] for row in PADDED}
    for key, value in CHAR_SETTINGS[said].items():
        connect.conf.set(key, value)
    try:
        rows = alluvium.read(connect, url).select("id", sf.expr(text).alias("found")).collect()
        found = sorted(row["id"] for row in rows if row["found"])
        assert sorted(row["id"] for row in alluvium.read(connect, url).where(text).collect()) == found
        assert sorted(row["id"] for row in alluvium.read(connect, url).where(sf.expr(text)).collect()) == found
        DeltaTable.forPath(connect, url).delete(text)
        assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == sorted(every - {*found})
    finally:
        for key in CHAR_SETTINGS[said]:
            connect.conf.unset(key)
