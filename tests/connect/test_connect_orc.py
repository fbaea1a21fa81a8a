"""ORC files of Paimon tables over Spark Connect: the server's own writer, and workers for what it has no form for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from pyarrow import orc

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = pytest.mark.connect


def writers(url: str) -> list[str]:
    return sorted(orc.ORCFile(f"{url}/{path}").writer for path in alluvium.open(url).files()["path"].to_pylist())


def test_orc(connect, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    days = [dt.date(2024, 1, 2), dt.date(1582, 10, 15), None]
    values = [(n, f"s{n}", Decimal(-n), day, [n, None]) for n, day in enumerate(days)]
    df = connect.createDataFrame(values, "k int, s string, d decimal(9,2), p date, a array<int>").coalesce(1)
    alluvium.write(df, url, format="paimon", partition_by="p", **{"file.format": "orc"})
    assert writers(url) == ["ORC_JAVA"] * 3
    table = alluvium.open(url)
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == values
    assert table.files(where="d < 0").num_rows == 2
    assert not list(Path(url).rglob("_SUCCESS"))
    old = connect.createDataFrame([(9, "old", None, dt.date(1004, 2, 29), None)], df.schema)
    alluvium.write(old, url, format="paimon", mode="append")
    assert writers(url) == ["ORC_CPP"] + ["ORC_JAVA"] * 3
    assert alluvium.open(url).to_arrow(where="k = 9")["p"].to_pylist() == [dt.date(1004, 2, 29)]


def test_workers_tell_what_they_cannot_write(connect, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, [DataField(0, "t", parse_type("TIMESTAMP(9)"))])
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(
            connect.sql("select timestamp_ntz'9999-12-31 00:00:00' as t"), url, mode="append", format="paimon"
        )
    assert (caught.value.code, caught.value.column) == ("invalid-data", "t")
    assert caught.value.url is not None and caught.value.hint
