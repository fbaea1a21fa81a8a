"""Tables by name and by path in Spark's own statements: queries, views, cached tables, the catalog's methods."""

from __future__ import annotations

import threading

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException

import alluvium
from alluvium import DeltaTable
from alluvium.api.names import answered
from alluvium.api.sql.unseen import named_as_ours
from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.session import session_catalog

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    spark.sql("create database names")
    spark.sql("use names")
    yield spark
    spark.sql("use default")
    spark.sql("drop database names cascade")
    alluvium.disable(spark)


@pytest.fixture(scope="module")
def numbers(session):
    """`names.t`: version 0 has 0 to 4, version 1 also 10 to 14; by partition p = id % 2."""
    rows = session.range(5).selectExpr("id", "id % 2 as p")
    rows.write.format("delta").partitionBy("p").saveAsTable("t")
    session.range(10, 15).selectExpr("id", "id % 2 as p").write.format("delta").mode("append").saveAsTable("t")
    return DeltaTable.forName(session, "t").detail().head()["location"]


def ids(frame) -> list[int]:
    return sorted(row[0] for row in frame.collect())


ALL = [*range(5), *range(10, 15)]


@pytest.mark.parametrize(
    "query",
    [
        "select id from t",
        "SELECT t.id FROM names.t",
        "select names.t.id from spark_catalog.names.t",
        "select spark_catalog.names.t.id from t",
        "select `T`.`ID` from `names`.`T`",
        "select id from delta.`{path}`",
        "select id from Delta.`{path}`",
        "select x.id from delta.`{path}` as x",
        "with c as (select * from t) select id from c",
        "with t as (select 7 as id) select id from names.t",
        "select id from t where id in (select id from t)",
        "select a.id from t a join names.t b using (id)",
        "select id from t a where exists (select 1 from t b where a.id = b.id)",
        "select id from t union select id from t",
        "select id from (select id, max(id) over () from t)",
        "select /*+ broadcast(b) */ a.id from t a join t b on a.id = b.id",
        "from t select id",
        "table t",
        "select id from identifier('t')",
        "select l.id from t, lateral (select t.id) as l",
        "select id from t where id >= (select min(id) from t)",
    ],
)
def test_a_name_means_its_rows(session, numbers, query):
    assert ids(session.sql(query.format(path=numbers))) == ALL


@pytest.mark.parametrize(
    "query",
    [
        "select t.id from t version as of 0",
        "select id from names.t version as of '0'",
        "select id from delta.`{path}` version as of 0",
        "select id from delta.`{path}@v0`",
        "select id from t for system_version as of 0",
        "select id from t timestamp as of '{time}'",
    ],
)
def test_a_name_as_of_an_older_version(session, numbers, query):
    time = DeltaTable.forName(session, "t").history().where("version = 0").head()["timestamp"]
    assert ids(session.sql(query.format(path=numbers, time=time))) == list(range(5))


def test_two_versions_in_one_query(session, numbers):
    query = "select id from t except select id from t version as of 0"
    assert ids(session.sql(query)) == list(range(10, 15))


def test_a_query_skips_files_as_a_frame_does(session, numbers):
    by_name = session.sql("select id from t where p = 1 and id > 9")
    by_frame = alluvium.read(session, numbers).where("p = 1 and id > 9").select("id")
    assert ids(by_name) == [11, 13]
    tasks = [frame.rdd.getNumPartitions() for frame in (by_name, by_frame)]
    files = [len(frame.inputFiles()) for frame in (by_name, by_frame)]
    assert tasks[0] == tasks[1]
    assert files[0] == files[1]
    assert "PartitionFilters: [isnotnull" in by_name._jdf.queryExecution().toString()


def test_what_the_catalog_once_counted_is_not_believed(session, numbers):
    # Hive counts the bytes of a folder when its entry is made: a join would send all of what has grown since.
    java, catalog = java_of(session), session_catalog(session)
    small, large = (java.table_identifier(name, java.option.apply("names")) for name in ("small", "t"))
    session.range(1).write.format("parquet").saveAsTable("small")
    session.sql("analyze table small compute statistics")
    counted = catalog.getTableMetadata(small).stats()
    catalog.alterTableStats(large, counted)
    session.sql("drop table small")
    frames = (session.sql("select * from t"), session.read.format("delta").load(numbers))
    by_name, by_path = (int(f._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()) for f in frames)
    assert by_name == by_path != int(counted.get().sizeInBytes())


def test_what_is_no_table_of_ours_is_answered_by_spark_alone(session, numbers, monkeypatch):
    asked = []
    monkeypatch.setattr(answered, "read_again", lambda *_, **__: asked.append(1))
    session.range(3).write.format("parquet").saveAsTable("p")
    try:
        assert ids(session.sql("select id from p")) == [0, 1, 2]
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.sql("select * from no_such_table")
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.sql("select * from parquet_files.no_such_table")
    finally:
        session.sql("drop table p")
    assert asked == []


def test_a_temporary_view_hides_a_table(session, numbers):
    session.range(100, 102).createOrReplaceTempView("t")
    try:
        assert ids(session.sql("select id from t")) == [100, 101]
        assert ids(session.sql("select id from names.t")) == ALL
    finally:
        session.catalog.dropTempView("t")


def test_a_view_shows_the_newest_version(session):
    session.range(3).write.format("delta").saveAsTable("seen")
    session.sql("create view v as select id + 1 as n from seen")
    session.sql("create temporary view w as select id from seen")
    try:
        session.range(10, 11).write.format("delta").mode("append").saveAsTable("seen")
        assert ids(session.sql("select n from v")) == [1, 2, 3, 11]
        assert ids(session.table("w")) == [0, 1, 2, 10]
    finally:
        session.sql("drop view v")
        session.catalog.dropTempView("w")
        session.sql("drop table seen")


def test_a_cached_table_is_read_once_and_refreshed(session):
    session.range(3).write.format("delta").saveAsTable("held")
    try:
        session.sql("cache table held")
        query = session.sql("select id from held")
        assert "InMemoryRelation" in query._jdf.queryExecution().executedPlan().toString()
        session.range(10, 11).write.format("delta").mode("append").saveAsTable("held")
        # The version is another one now: nothing stale is shown.
        assert ids(session.sql("select id from held")) == [0, 1, 2, 10]
        session.sql("refresh table held")
        session.catalog.refreshTable("held")
        session.sql("uncache table held")
        assert ids(session.sql("select id from held")) == [0, 1, 2, 10]
    finally:
        session.sql("drop table held")


def test_the_methods_of_the_catalog(session, numbers):
    catalog = session.catalog
    assert catalog.tableExists("t")
    assert catalog.tableExists("names.t")
    found = catalog.getTable("t")
    assert (found.name, found.namespace, found.tableType) == ("t", ["names"], "MANAGED")
    assert [(c.name, c.dataType) for c in catalog.listColumns("t")] == [("id", "bigint"), ("p", "bigint")]
    assert "t" in {table.name for table in catalog.listTables()}
    catalog.cacheTable("t")
    assert catalog.isCached("t")
    catalog.uncacheTable("t")


def test_a_reader_with_a_version(session, numbers):
    assert ids(session.read.option("versionAsOf", 0).table("t").select("id")) == list(range(5))


def test_what_is_not_there_is_said_by_us(session, numbers, tmp_path):
    with pytest.raises(NotFound, match="no Delta table"):
        session.sql(f"select * from delta.`{tmp_path}/none`")
    with pytest.raises(NotFound):
        session.sql("select * from t version as of 7")
    with pytest.raises(InvalidRequest, match="not a version"):
        session.sql("select * from t version as of 'newest'")


def test_an_insert_that_no_front_has_seen_writes_nothing(session, numbers):
    """By the JVM's own `sql`, as a script or another language would."""
    before = ids(session.sql("select id from t"))
    for statement in ("insert into t values (99, 1)", "insert overwrite t values (99, 1)"):
        with pytest.raises(AnalysisException, match=r"UNSUPPORTED_INSERT|not allowed"):
            session._jsparkSession.sql(statement)
    assert ids(session.sql("select id from t")) == before


def test_names_as_they_may_be_spelt(session, tmp_path):
    path = f"{tmp_path}/a folder.with `dots` and ünïcode"
    alluvium.write(session.range(2), path)
    quoted = path.replace("`", "``")
    assert ids(session.sql(f"select id from delta.`{quoted}`")) == [0, 1]


def test_a_paimon_table_by_its_path(session, tmp_path):
    alluvium.write(session.range(3), str(tmp_path / "db.db" / "pai"), format="paimon")
    assert ids(session.sql(f"select id from paimon.`{tmp_path}/db.db/pai`")) == [0, 1, 2]


def test_a_join_of_a_table_with_itself_sees_one_version(session, tmp_path):
    """While another thread commits and asks for the same name, each query finds all of its rows in itself."""
    session.range(4).write.format("delta").saveAsTable("busy")
    stop, failures = threading.Event(), []

    def append() -> None:
        try:
            while not stop.is_set():
                session.range(1).write.format("delta").mode("append").saveAsTable("busy")
                session.sql("select * from busy")
        except Exception as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    writer = threading.Thread(target=append)
    writer.start()
    try:
        for _ in range(6):
            counts = session.sql("select (select count(*) from busy) a, (select count(*) from busy) b").head()
            assert counts["a"] == counts["b"]
    finally:
        stop.set()
        writer.join()
        session.sql("drop table busy")
    assert failures == []


@pytest.fixture(scope="module")
def fed(session):
    builder = DeltaTable.create(session).tableName("fed").addColumn("id", "long")
    builder.property("delta.enableChangeDataFeed", "true").execute()
    session.range(3).write.format("delta").mode("append").saveAsTable("fed")
    session.sql("delete from fed where id = 1")
    yield DeltaTable.forName(session, "fed").detail().head()["location"]
    session.sql("drop table fed")


class TestChanges:
    @pytest.mark.parametrize(
        "call",
        [
            "table_changes('fed', 1)",
            "table_changes('names.fed', 1, 2)",
            "table_changes('spark_catalog.names.fed', '{start}')",
            "table_changes('fed', timestamp'{start}', 2)",
            "TABLE_CHANGES_BY_PATH('{path}', 1)",
            "table_changes('delta.`{path}`', 1)",
        ],
    )
    def test_rows_of_changes(self, session, fed, call):
        start = DeltaTable.forName(session, "fed").history().where("version = 1").head()["timestamp"]
        rows = session.sql(f"select id, _change_type, _commit_version from {call.format(path=fed, start=start)}")
        assert sorted(map(tuple, rows.collect())) == [
            (0, "insert", 1),
            (1, "delete", 2),
            (1, "insert", 1),
            (2, "insert", 1),
        ]

    def test_a_persisted_view_of_changes(self, session, fed):
        """From Spark 4.2 on, where a session may have functions that are as good as Spark's own."""
        if session.version < "4.2":
            pytest.skip("Spark lets no persisted view name a function of the session")
        session.sql("create view names.seen as select id, _change_type from table_changes('fed', 2)")
        assert session.sql("select * from names.seen").collect() == [(1, "delete")]
        session.sql("drop view names.seen")

    def test_joined_to_the_table(self, session, fed):
        """delta-spark loses `_change_type` here."""
        rows = session.sql("select c._change_type, t.id from table_changes('fed', 2) c full join fed t using (id)")
        assert sorted(map(tuple, rows.collect()), key=str) == [("delete", None), (None, 0), (None, 2)]

    @pytest.mark.parametrize(
        ("call", "code"),
        [
            ("table_changes('fed')", "invalid-argument"),
            ("table_changes('fed', 1, 2, 3)", "invalid-argument"),
            ("table_changes('fed', rand())", "invalid-argument"),
            ("table_changes('fed', 1.5)", "invalid-argument"),
            ("table_changes('fed', null)", "invalid-argument"),
            ("table_changes('none', 1)", "not-a-table"),
            ("table_changes_by_path('/no/such/place', 1)", "not-a-table"),
            ("table_changes('fed', 2, 1)", "invalid-range"),
        ],
    )
    def test_arguments_that_say_nothing(self, session, fed, call, code):
        with pytest.raises(AlluviumError) as caught:
            session.sql(f"select * from {call}")
        assert caught.value.code == code


def test_a_session_without_room_for_plans_says_so(session, tmp_path):
    """Rows of names are found in Spark's cache of plans; a session that was started without one finds no class instead."""
    key, shared = "spark.sql.filesourceTableRelationCacheSize", session._jsparkSession.sharedState().conf()
    shared.set(key, "0")
    try:
        other = session.newSession()
        assert other.conf.get(key) == "0"
    finally:
        shared.remove(key)
    with (
        pytest.raises(InvalidRequest, match="filesourceTableRelationCacheSize") as caught,
        named_as_ours(other, "select 1"),
    ):
        other.read.format("delta").load(str(tmp_path))
    assert caught.value.code == "invalid-setting"


def test_a_disabled_session_has_sparks_catalog_again(session):
    assert answered.answers_names(session)
    alluvium.disable(session)
    assert not answered.answers_names(session)
    alluvium.enable(session)
    assert answered.answers_names(session)


#: How py4j tells the JVM that Python let an object go: whenever the collector of either comes by, whosesoever it was.
LET_GO = "m\nd\n"


def test_a_path_that_is_named_again_costs_few_round_trips(session, numbers, monkeypatch):
    """Each is a tenth of a millisecond and more, and a query may name many tables."""
    asked = []
    send = ClientServerConnection.send_command
    monkeypatch.setattr(
        ClientServerConnection, "send_command", lambda self, command: asked.append(command) or send(self, command)
    )
    for _ in range(2):
        asked.clear()
        session.sql(f"select * from delta.`{numbers}`")
    assert len([command for command in asked if not command.startswith(LET_GO)]) < 100
