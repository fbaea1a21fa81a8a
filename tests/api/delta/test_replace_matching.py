"""Overwrites of the rows that new ones meet: the options replaceUsing and replaceOn."""

import pytest
from templates import copy_of

import alluvium
from alluvium.errors import InvalidRequest, NotFound

pytestmark = pytest.mark.spark
OLD = [(1, "x", 10), (2, "y", 20), (2, "z", 21), (3, "w", 30), (None, "n", 0)]
NEW = [(2, "new", 1), (2, "new2", 2), (9, "nine", 9), (None, "null", 5)]
SCHEMA = "a int, b string, c int"


@pytest.fixture(params=["rewritten", "masked"])
def table(spark, tmp_path, request):
    path = str(tmp_path / "t")
    options = {"delta.enableDeletionVectors": str(request.param == "masked").lower()}

    def make(new: str) -> None:
        alluvium.write(spark.createDataFrame(OLD, SCHEMA).repartitionByRange(2, "a"), new, **options)

    copy_of((__name__, request.param), path, make)
    return path


def new_rows(spark, rows=NEW):
    return spark.createDataFrame(rows, SCHEMA)


def rows_of(spark, path):
    return sorted(map(tuple, alluvium.read(spark, path).collect()), key=str)


def expected(*rows):
    return sorted(rows, key=str)


def test_using_replaces_equal_rows_and_writes_all(spark, table):
    alluvium.write(new_rows(spark), table, mode="overwrite", replaceUsing="a")
    # A null equals nothing: the old one stays beside the new one.
    assert rows_of(spark, table) == expected(OLD[0], OLD[3], OLD[4], *NEW)
    detail = alluvium.open(table).history(1).to_pylist()[0]
    assert detail["operation"] == "WRITE"
    assert dict(detail["operationParameters"])["replaceUsingCols"] == "(a)"
    metrics = dict(detail["operationMetrics"])
    assert (metrics["numDeletedRows"], metrics["numOutputRows"]) == ("2", str(4 + int(metrics["numCopiedRows"])))


def test_using_several_columns_of_other_case(spark, table):
    alluvium.write(new_rows(spark, [(2, "q", 20), (3, "w", 31)]), table, mode="overwrite", replaceUsing="A, `C`")
    assert rows_of(spark, table) == expected(OLD[0], *OLD[2:], (2, "q", 20), (3, "w", 31))


def test_on_a_condition_under_names(spark, table):
    rows = new_rows(spark).alias("s")
    alluvium.write(rows, table, mode="overwrite", replaceOn="t.a <=> s.a and t.c > 0 or s.c = t.c - 1", targetAlias="t")
    met = [old for old in OLD if any((old[0] == n[0] and old[2] > 0) or n[2] == old[2] - 1 for n in NEW)]
    assert met == [(1, "x", 10), (2, "y", 20), (2, "z", 21)]
    assert rows_of(spark, table) == expected(OLD[3], OLD[4], *NEW)


def test_nothing_new_replaces_nothing(spark, table):
    before = alluvium.open(table).version
    assert alluvium.write(new_rows(spark, []), table, mode="overwrite", replaceOn="true").version == before
    assert alluvium.open(table).version == before
    assert rows_of(spark, table) == expected(*OLD)


def test_everything_and_nothing_is_met(spark, table):
    alluvium.write(new_rows(spark, [(7, "s", 7)]), table, mode="overwrite", replaceOn="false")
    assert rows_of(spark, table) == expected(*OLD, (7, "s", 7))
    alluvium.write(new_rows(spark, [(8, "e", 8)]), table, mode="overwrite", replaceOn="true")
    assert rows_of(spark, table) == [(8, "e", 8)]


def test_an_append_replaces_nothing(spark, table):
    alluvium.write(new_rows(spark), table, mode="append", replaceUsing="a")
    assert rows_of(spark, table) == expected(*OLD, *NEW)


def test_rows_read_from_the_table_itself(spark, table):
    twice = alluvium.read(spark, table).where("a = 2").selectExpr("a", "b", "c * 2 as c")
    alluvium.write(twice, table, mode="overwrite", replaceUsing="a")
    assert rows_of(spark, table) == expected(OLD[0], OLD[3], OLD[4], (2, "y", 40), (2, "z", 42))


def test_change_feed_and_new_columns(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.createDataFrame(OLD, SCHEMA), path, **{"delta.enableChangeDataFeed": "true"})
    rows = new_rows(spark).selectExpr("*", "c + 1 as d")
    alluvium.write(rows, path, mode="overwrite", replaceUsing="a", mergeSchema=True)
    assert rows_of(spark, path) == expected(
        *((*old, None) for old in (OLD[0], OLD[3], OLD[4])), *((*new, new[2] + 1) for new in NEW)
    )
    found = alluvium.changes(spark, path, 1).select("a", "b", "_change_type").collect()
    told = sorted((a, b, kind) for a, b, kind in found if a is not None)
    assert told == [(2, "new", "insert"), (2, "new2", "insert"), (2, "y", "delete"), (2, "z", "delete"),
                    (9, "nine", "insert")]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"replaceUsing": "a", "replaceOn": "true"}, "contradicting-options"),
        ({"replaceUsing": "a", "replaceWhere": "a = 2"}, "contradicting-options"),
        ({"replaceOn": "true", "overwriteSchema": "true"}, "contradicting-options"),
        ({"replaceOn": "true", "partitionOverwriteMode": "dynamic"}, "contradicting-options"),
        ({"replaceUsing": "a", "dataChange": "false"}, "contradicting-options"),
        ({"replaceUsing": "a, zz"}, "unknown-column"),
        ({"replaceUsing": " "}, "invalid-option"),
        ({"replaceOn": "a = 2"}, "invalid-expression"),
        ({"replaceOn": "t.q = 2", "targetAlias": "t"}, "invalid-expression"),
        ({"replaceOn": "t.a", "targetAlias": "t"}, "invalid-expression"),
        ({"replaceOn": "rand() < 2"}, "invalid-expression"),
    ],
)
def test_refused_before_anything_is_written(spark, kept, options, code):
    before = sorted(p.name for p in kept.rglob("*"))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(new_rows(spark), str(kept), mode="overwrite", **options)
    assert caught.value.code == code
    assert sorted(p.name for p in kept.rglob("*")) == before


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "t"
    alluvium.write(spark.createDataFrame(OLD, SCHEMA), str(path))
    return path


def test_there_must_be_a_table(spark, tmp_path):
    with pytest.raises(NotFound):
        alluvium.write(new_rows(spark), str(tmp_path / "t"), mode="overwrite", replaceUsing="a")
    assert not (tmp_path / "t").exists()


def test_an_append_only_table_is_left(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.createDataFrame(OLD, SCHEMA), path, **{"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(new_rows(spark), path, mode="overwrite", replaceUsing="a")
    assert caught.value.code == "append-only"
    assert rows_of(spark, path) == expected(*OLD)


def test_by_name_and_by_sql(spark, table):
    alluvium.enable(spark)
    try:
        new_rows(spark).createOrReplaceTempView("new_rows")
        if spark.version >= "4.2":
            spark.sql(f"insert into delta.`{table}` replace using (a) select * from new_rows")
        else:
            new_rows(spark).write.mode("overwrite").option("replaceUsing", "a").insertInto(f"delta.`{table}`")
        assert rows_of(spark, table) == expected(OLD[0], OLD[3], OLD[4], *NEW)
    finally:
        spark.catalog.dropTempView("new_rows")
        alluvium.disable(spark)


def test_using_compares_rows_as_they_are_kept(spark, tmp_path):
    """Two rows that the table holds alike are one key, whatever they were before."""
    alluvium.enable(spark)
    try:
        path = tmp_path / "t"
        spark.sql(f"create table delta.`{path}` (k char(5), d decimal(4, 2), v int) using delta")
        spark.sql(f"insert into delta.`{path}` values ('a', 1.01, 1), ('b', 1.02, 2)")
        for v in (8, 9):
            new = spark.sql(f"select 'a' k, 1.014 d, {v} v")
            new.write.mode("overwrite").option("replaceUsing", "k, d").insertInto(f"delta.`{path}`")
        shown = spark.sql(f"select trim(k), cast(d as string), v from delta.`{path}`").collect()
        assert sorted(map(tuple, shown)) == [("a", "1.01", 9), ("b", "1.02", 2)]
    finally:
        alluvium.disable(spark)
