"""Writing over Spark Connect: the server's own Parquet writer, the client's log."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import alluvium
from alluvium.commands.write import ensure_seen
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.write import WritePlan
from alluvium.schema.types import LONG, Field, Struct
from alluvium.spark.sessions import clone
from alluvium.storage.open import open_store

pytestmark = pytest.mark.connect

SETTING = "spark.sql.parquet.outputTimestampType"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "written")


def ids(url: str, where: str | None = None) -> list[int]:
    return sorted(alluvium.open(url).to_arrow(where=where)["id"].to_pylist())


def create(
    url: str, schema: list[dict[str, object]], configuration: dict[str, str], writer: int = 7, reader: int = 1
) -> None:
    log = Path(url) / "_delta_log"
    log.mkdir(parents=True)
    actions = [
        {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}},
        {
            "metaData": {
                "id": "made",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": schema}),
                "partitionColumns": [],
                "configuration": configuration,
            }
        },
    ]
    (log / f"{0:020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))


def field(name: str, kind: str = "long", nullable: bool = True, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def test_create_append_overwrite(connect, url: str):
    rows = connect.range(6).withColumn("p", sf.expr("if(id < 2, null, concat('a b/', id % 2))"))
    made = alluvium.write(rows, url, partition_by="p")
    assert made.version == 0 and made.files.num_rows >= 3
    assert alluvium.write(connect.range(6, 8).selectExpr("id", "'x' as P"), url, mode="append").version == 1
    assert ids(url) == list(range(8)) and ids(url, where="p is null") == [0, 1]
    alluvium.write(connect.range(20, 21).selectExpr("id", "'x' as p"), url, mode="overwrite", replaceWhere="p = 'x'")
    assert ids(url) == [0, 1, 2, 3, 4, 5, 20]
    assert sorted(r.id for r in alluvium.read(connect, url).collect()) == [0, 1, 2, 3, 4, 5, 20]
    # Statistics come from the footers that the server wrote; its marker is not left behind.
    assert alluvium.open(url).count() == 7
    assert not list(Path(url).rglob("_SUCCESS"))


def test_the_session_keeps_its_settings(connect, url: str):
    connect.conf.set(SETTING, "INT96")
    try:
        moment = dt.datetime(2024, 2, 29, 12, 0, 0, 123456)
        rows = connect.createDataFrame([(moment,)], "at timestamp")
        alluvium.write(rows, url)
        assert connect.conf.get(SETTING) == "INT96"
    finally:
        connect.conf.unset(SETTING)
    found = alluvium.open(url)
    assert found.to_arrow()["at"].to_pylist() == [moment.replace(tzinfo=dt.timezone.utc)]
    # INT96 would have no bounds.
    assert found.bounds(["at"])["at"].min is not None


def test_a_server_that_cannot_copy_sessions(connect, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clone, "_CLONES_SINCE", (99, 0))
    before = connect.conf.get(SETTING)
    alluvium.write(connect.range(3), url)
    assert ids(url) == [0, 1, 2] and connect.conf.get(SETTING) == before


def test_views_and_local_rows_go_along(connect, url: str):
    connect.createDataFrame([(n, "x" * 100) for n in range(3000)], ["id", "text"]).createOrReplaceTempView("local_rows")
    alluvium.write(connect.sql("select id from local_rows where id < 10"), url)
    many = connect.createDataFrame([(n,) for n in range(50_000)], "id long")
    alluvium.write(many, url, mode="overwrite")
    assert alluvium.open(url).count() == 50_000


def test_a_broken_constraint_shows_rows(connect, url: str):
    create(url, [field("id"), field("n", "string", False)], {"delta.constraints.small": "id < 3"}, writer=3)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(6).selectExpr("id", "'a' as n"), url, mode="append")
    assert caught.value.code == "constraint-violated" and "small" in caught.value.message
    assert "id = 3" in caught.value.message and "id = 5" in caught.value.message
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(2).selectExpr("id", "cast(null as string) as n"), url, mode="append")
    assert caught.value.code == "not-null-violated" and caught.value.column == "n"
    assert not list(Path(url).rglob("*.parquet"))
    assert alluvium.write(connect.range(2).selectExpr("id", "'a' as n"), url, mode="append").version == 1


def test_a_constraint_that_nobody_understands(connect, url: str):
    create(url, [field("id")], {"delta.constraints.odd": "id.inner > 1"}, writer=3)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(6), url, mode="append")
    assert caught.value.code == "invalid-constraint"


def test_made_columns(connect, url: str):
    identity = {"delta.identity.start": 10, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": False}
    generated = {"delta.generationExpression": "id * 2"}
    create(url, [field("id"), field("twice", **generated), field("number", **identity)], {}, writer=6)
    for first in (0, 3):
        alluvium.write(connect.range(first, first + 3), url, mode="append")
    rows = alluvium.open(url).to_arrow()
    assert [2 * n for n in rows["id"].to_pylist()] == rows["twice"].to_pylist()
    numbers = rows["number"].to_pylist()
    assert len(set(numbers)) == 6 and all(n >= 10 and n % 5 == 0 for n in numbers)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(connect, url: str, mode: str):
    rows = connect.range(3).selectExpr(
        "id", "named_struct('a b', id, 'l', array(named_struct('x', id))) as s", "1 as p"
    )
    alluvium.write(rows, url, partition_by="p", **{"delta.columnMapping.mode": mode})
    alluvium.write(rows, url, mode="append")
    assert ids(url) == [0, 0, 1, 1, 2, 2]
    found = alluvium.read(connect, url).where("id = 2").select("s.l").first()
    assert [e.x for e in found[0]] == [2]


def test_through_enable(connect, url: str):
    alluvium.enable(connect)
    try:
        connect.range(3).write.format("delta").save(url)
        connect.range(3, 5).write.format("delta").mode("append").option("userMetadata", "by hand").save(url)
        assert connect.read.format("delta").load(url).count() == 5
        with pytest.raises(InvalidRequest) as caught:
            connect.range(1).write.format("delta").save(url)
        assert caught.value.code == "table-exists"
    finally:
        alluvium.disable(connect)


def test_data_that_fails(connect, url: str):
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(3).selectExpr("cast(concat('x', id) as int) as id"), url)
    assert caught.value.code == "invalid-data" and not Path(url, "_delta_log").exists()


def test_a_server_with_other_disks(tmp_path: Path):
    """The job has ended and there is nothing here: rows must not be taken for none."""
    store = open_store(str(tmp_path))
    plan = WritePlan(root=store.url, directory="part-1", schema=Struct((Field("id", LONG),)))
    with pytest.raises(InvalidRequest) as caught:
        ensure_seen(store, plan)
    assert caught.value.code == "unreachable-storage"
    (tmp_path / "part-1").mkdir()
    (tmp_path / "part-1" / "_SUCCESS").touch()
    ensure_seen(store, plan)
    assert not (tmp_path / "part-1" / "_SUCCESS").exists()


def test_rows_that_lie_in_the_session(connect, url: str):
    """Rows of `createDataFrame` above some size, and checkpoints, are kept by the server for one session alone."""
    many = pd.DataFrame({"id": range(200_000), "text": ["some text"] * 200_000})
    assert alluvium.write(connect.createDataFrame(many), url).version == 0
    checkpointed = connect.range(3).selectExpr("id - 3 as id", "'x' as text").localCheckpoint()
    alluvium.write(checkpointed.union(checkpointed), url, mode="append")
    rows = alluvium.open(url).to_arrow()
    assert rows.num_rows == 200_006
    assert sorted(rows["id"].to_pylist())[:6] == [-3, -3, -2, -2, -1, -1]
    assert connect.conf.get(SETTING) == "INT96"


def test_a_batch_of_a_stream(connect, tmp_path: Path):
    """`foreachBatch` hands a frame that only the stream's session has."""
    target = str(tmp_path / "target")
    connect.range(5).write.parquet(str(tmp_path / "source"))

    def store(batch: DataFrame, number: int) -> None:
        alluvium.write(batch, target, mode="append", txnAppId="stream", txnVersion=number)

    stream = connect.readStream.schema("id long").parquet(str(tmp_path / "source")).writeStream.foreachBatch(store)
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert ids(target) == [0, 1, 2, 3, 4]


def test_a_table_mapped_by_id_is_copied_in_a_session_that_never_read_one(connect, url: str, tmp_path: Path):
    """The columns of its files are found by number alone, in the session that sends the plan."""
    mapping = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "2"}
    marked = [
        field(name, **{"delta.columnMapping.id": n, "delta.columnMapping.physicalName": f"col-{n}"})
        for n, name in enumerate(("id", "b"), 1)
    ]
    create(url, marked, mapping, writer=5, reader=2)
    schema = pa.schema([pa.field(f"other{n}", pa.int64(), metadata={"PARQUET:field_id": str(n)}) for n in (1, 2)])
    pq.write_table(pa.table([[1, 2], [10, 20]], schema=schema), f"{url}/f.parquet")
    added = {"path": "f.parquet", "partitionValues": {}, "size": Path(url, "f.parquet").stat().st_size}
    entry = json.dumps({"add": {**added, "modificationTime": 0, "dataChange": True}})
    Path(url, "_delta_log", f"{1:020}.json").write_text(entry)
    fresh = connect.newSession()
    try:
        assert fresh.conf.get("spark.sql.parquet.fieldId.read.enabled") == "false"
        alluvium.write(alluvium.read(fresh, url), str(tmp_path / "copy"))
    finally:
        fresh.client.release_session()
        fresh.client.close()
    assert alluvium.open(str(tmp_path / "copy")).to_arrow().to_pydict() == {"id": [1, 2], "b": [10, 20]}


def test_the_environment_stays_out(connect, url: str):
    """Spark puts values in place of `${env:X}` in whatever it parses, names and texts as well."""
    name, other = "${env:HOME}", "${env:PATH}"
    rows = connect.range(2).select(sf.col("id").alias(name), sf.struct(sf.lit("v").alias(other)).alias("s"))
    alluvium.write(rows, url, **{"delta.columnMapping.mode": "name"})
    assert alluvium.open(url).to_arrow().column_names == [name, "s"]
    got = alluvium.read(connect, url)
    assert got.columns == [name, "s"]
    assert sorted((row[0], row[1].asDict()) for row in got.collect()) == [(0, {other: "v"}), (1, {other: "v"})]


def test_constraints_of_strangers_are_read_in_one_way(connect, url: str, tmp_path: Path):
    before = {key: connect.conf.get(key) for key in _DOUBLE_QUOTES}
    for key in before:
        connect.conf.set(key, "true")
    try:
        create(
            url, [field("id"), field("n", "string", False)], {"delta.constraints.c": 'n <> "id" and n > ""'}, writer=3
        )
        rows = connect.range(2).select("id", sf.lit("a").alias("n"))
        assert alluvium.write(rows, url, mode="append").version == 1
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(rows.withColumn("n", sf.lit("id")), url, mode="append")
        assert caught.value.code == "constraint-violated"
        other = str(tmp_path / "other")
        create(other, [field("id")], {"delta.constraints.c": "exists(from range(1)) or id > 0"}, writer=3)
        with pytest.raises(UnsupportedFeature):
            alluvium.write(connect.range(2), other, mode="append")
    finally:
        for key, value in before.items():
            connect.conf.set(key, value)


_DOUBLE_QUOTES = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
