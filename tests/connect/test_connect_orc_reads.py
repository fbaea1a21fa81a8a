"""Over Spark Connect the server's own ORC reader gives the rows that the lane without Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from orc_of_java import write_as_java
from orc_tables import CONDITIONS, MISREAD, VALUES, YEAR, add, assert_same, create, instants, write_everything

import alluvium

pytestmark = pytest.mark.connect


@pytest.fixture
def everything(tmp_path: Path) -> str:
    write_everything(url := str(tmp_path / "t"))
    return url


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.orc.impl": "hive", "spark.sql.orc.enableVectorizedReader": "false"},
        {"spark.sql.sources.useV1SourceList": "", "orc.force.positional.evolution": "true"},
    ],
    ids=["defaults", "hive", "v2"],
)
def test_values_of_all_types(connect, everything: str, settings: Mapping[str, str]) -> None:
    before = {name: connect.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            connect.conf.set(name, value)
        df = alluvium.read(connect, everything)
        (scan,) = alluvium.explain(df)
        assert scan.lane == "connect" and "ORC reader" in scan.why
        assert_same(df, everything)
        asked = CONDITIONS[::6] if settings else (*CONDITIONS, *(f"{name} is null" for name in VALUES))
        for condition in (*asked, "p = 'a'", "p is null"):
            assert_same(df, everything, condition, ["k", "p"])
        assert df.count() == 8 and df.select("p").where("p is null").count() == 4
    finally:
        for name, value in before.items():
            connect.conf.unset(name) if value is None else connect.conf.set(name, value)


@pytest.mark.parametrize("files", [3, 12, 140], ids=["literals", "looked up", "joined"])
def test_constants_of_files(connect, tmp_path: Path, files: int) -> None:
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "s": "STRING", "p": "INT"}, ["p"])
    add(url, *({"k": n, "s": "x" * n, "p": n} for n in range(files)))
    df = alluvium.read(connect, url)
    assert alluvium.explain(df)[0].lane == "connect"
    assert_same(df, url)
    for condition in ("p = 2", "k = 2 and p = 2", "k = 1 and p = 2", "length(s) = p"):
        assert_same(df, url, condition)


def test_statistics_that_lie_lose_no_rows(connect, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "s": "STRING", "f": "DOUBLE"})
    texts = ("a", "\uffff" * 17, "\U0010ffff" * 20)
    add(url, *({"k": k, "s": text, "f": -0.0} for k, text in enumerate(texts)))
    df = alluvium.read(connect, url)
    for condition in (*(f"s = '{text}'" for text in texts), f"s >= '{texts[1]}'"):
        assert_same(df, url, condition)
    assert df.where("f = 0.0").count() == 3


@pytest.mark.parametrize(("make", "why"), MISREAD.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_what_workers_read(connect, tmp_path: Path, make: Callable[[str], None], why: str) -> None:
    url = str(tmp_path / "t")
    make(url)
    df = alluvium.read(connect, url)
    (scan,) = alluvium.explain(df)
    assert scan.lane == "python" and why in scan.why
    assert_same(df, url)


def test_instants_by_the_clock_of_java(connect, tmp_path: Path) -> None:
    """The session's zone is that of the writer where nothing else tells it, and where the bounds agree."""
    url = str(tmp_path / "t")
    instants(url)
    write_as_java(url, "America/New_York", False, "k")
    before = connect.conf.get("spark.sql.session.timeZone")
    try:
        connect.conf.set("spark.sql.session.timeZone", "America/New_York")
        df = alluvium.read(connect, url)
        assert [row["z"] for row in df.orderBy("k").toArrow().to_pylist()] == YEAR
        assert [row.k for row in df.where("z = timestamp'2024-06-01 12:30:00.123456Z'").collect()] == [5]
    finally:
        connect.conf.set("spark.sql.session.timeZone", before)
