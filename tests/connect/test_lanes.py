"""Which lane a Connect session takes, the one in Python workers, and `enable`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from past_tables import WITH_PAST, with_past
from s3_server import S3Bucket, serve_s3

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.session import choose_lane
from alluvium.storage.open import open_store

pytestmark = pytest.mark.connect


def numbered(count: int) -> list[pa.Table]:
    return [pa.table({"x": pa.array([2 * i, 2 * i + 1], pa.int64())}) for i in range(count)]


@pytest.fixture
def url(write_table) -> str:
    return write_table(["a b.parquet", "c.parquet"], numbered(2), [{"p": "1"}, {"p": None}])


def rows(df) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


ALL = [(0, "1"), (1, "1"), (2, None), (3, None)]


def test_the_choice(connect):
    assert choose_lane(connect).lane == "connect"
    assert choose_lane(connect, None, lambda: "it cannot").lane == "python"
    assert choose_lane(connect, "connect", lambda: "it cannot").lane == "connect"
    assert choose_lane(connect, "python").lane == "python"
    for asked, code in (("native", "lane-impossible"), ("conect", "unknown-lane")):
        with pytest.raises(InvalidRequest) as caught:
            choose_lane(connect, asked)
        assert caught.value.code == code


def test_rows_by_python_workers(connect, url: str):
    assert rows(alluvium.read(connect, url, lane="python")) == ALL
    assert rows(alluvium.read(connect, url, lane="python", columns=["P"], where="x > 0")) == [("1",), (None,), (None,)]
    # What only Spark can evaluate, it does.
    assert rows(alluvium.read(connect, url, lane="python", columns=["x"], where="pow(x, 2) > 3")) == [(2,), (3,)]
    assert rows(alluvium.read(connect, url, lane="python").where("p is null")) == ALL[2:]
    (scan,) = alluvium.explain(alluvium.read(connect, url, lane="python", where="x > 1").where("x < 3"))
    assert (scan.lane, scan.files) == ("python", 1) and "asked for" in scan.why
    assert alluvium.read(connect, url, lane="python").schema == alluvium.read(connect, url).schema


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("lane", ["connect", "python"])
def test_rows_that_were_there_before_a_column(connect, lane: str, mapping: str, tmp_path: Path):
    """The server's reader knows what the schema says of them; so do the workers."""
    path = str(with_past(tmp_path / "t", mapping))
    assert rows(alluvium.read(connect, path, lane=lane)) == WITH_PAST
    assert rows(alluvium.read(connect, path, lane=lane).where("x = 7").select("id")) == [(0,), (1,), (2,)]


def test_enable_and_disable(connect, url: str):
    before = type(connect.read).load
    alluvium.enable(connect)
    alluvium.enable(connect)
    try:
        df = connect.read.format("delta").option("versionAsOf", 0).load(url)
        assert rows(df) == ALL
        assert [scan.lane for scan in alluvium.explain(df.where("x > 1"))] == ["connect"]
        assert rows(connect.read.format("delta").option("lane", "python").load(url)) == ALL
        connect.sql(f"create or replace temporary view v using delta options (path '{url}')")
        assert connect.sql("select sum(x) from v where p = '1'").collect()[0][0] == 1
        df.write.format("delta").partitionBy("p").save(url + "2")
        assert rows(connect.read.format("delta").load(url + "2")) == ALL
        with pytest.raises(InvalidRequest) as caught:
            df.write.format("delta").saveAsTable("t")
        assert caught.value.code == "no-jvm"
    finally:
        alluvium.disable(connect)
    assert type(connect.read).load is before


def test_storage_that_the_server_cannot_see(connect, url: str):
    """What lies in the memory of this process nobody else can read; the error says what can be done instead."""
    store = open_store("memory://here/table")
    for file in Path(url).rglob("*"):
        if file.is_file():
            store.put(file.relative_to(url).as_posix(), file.read_bytes())
    assert alluvium.open("memory://here/table").to_arrow().num_rows == 4
    with pytest.raises(InvalidRequest) as caught:
        alluvium.read(connect, "memory://here/table")
    assert caught.value.code == "unreachable-storage" and "createDataFrame" in str(caught.value.hint)


def test_a_server_is_asked_once_whether_it_reaches_a_table(connect, url: str, monkeypatch: pytest.MonkeyPatch):
    """The second read of a session sends nothing; one of a table that nobody has read does."""
    asked: list[str] = []
    send = connect.client._analyze

    def counting(method: str, **arguments: object) -> object:
        asked.append(method)
        return send(method, **arguments)

    monkeypatch.setattr(connect.client, "_analyze", counting)
    first = alluvium.read(connect, url)
    assert asked == ["input_files"]
    again = alluvium.read(connect, url, version=0)
    assert asked == ["input_files"]
    assert rows(again) == rows(first) == ALL
    shutil.copytree(url, url + "-other")
    assert rows(alluvium.read(connect, url + "-other")) == ALL
    assert asked == ["input_files"] * 2


def test_object_stores_without_a_file_system_on_the_server(connect, url: str):
    """The server has no S3 connector: its Python workers read, with the settings that were given."""
    bucket = S3Bucket()
    with serve_s3(bucket) as endpoint:
        options = {
            "endpoint": endpoint, "access_key_id": "me", "secret_access_key": "secret", "region": "us-east-1",
            "allow_http": "true", "virtual_hosted_style_request": "false",
        }  # fmt: skip
        store = open_store("s3://bucket/table", options)
        for file in Path(url).rglob("*"):
            if file.is_file():
                store.put(file.relative_to(url).as_posix(), file.read_bytes())
        found = alluvium.read(connect, "s3://bucket/table", storage_options=options, where="x >= 1")
        assert rows(found) == ALL[1:]


def test_explain_says_lane_and_reason(connect, url: str):
    (scan,) = alluvium.explain(alluvium.read(connect, url).where("x > 1 and x < 9").selectExpr("sum(x)"))
    assert (scan.lane, scan.files, dict(scan.skipped)["statistics"]) == ("connect", 1, 1)
    assert "Connect" in scan.why and scan.filters == ("x > 1 and x < 9",)
    (scan,) = alluvium.explain(alluvium.read(connect, url).where("pow(x, 2) > 3"))
    assert scan.files == 2 and "pow(x, 2) > 3" in scan.why
    with pytest.raises(InvalidRequest) as caught:
        alluvium.explain(connect.range(3))
    assert caught.value.code == "nothing-to-explain"
