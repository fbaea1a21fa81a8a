"""Scan plans on a Connect server: paths, constants, deleted rows, files chosen when the plan is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyroaring
import pytest
from pyspark import SparkContext
from pyspark.sql import functions as sf
from tracked_table import EXPECTED as TRACKED
from tracked_table import make_table as make_tracked

import alluvium
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.scan import FileConstant, OutputColumn, RowPosition
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.connect_lane import connect as lane
from alluvium.spark.scan.connect_lane import connect_constants
from alluvium.spark.scan.connect_lane.connect import read_plan
from alluvium.storage.open import open_store

pytestmark = pytest.mark.connect

#: Names that Hadoop, Spark's listing, its patterns and its URIs each take for something else.
NAMES = (
    "a b.parquet", "%41.parquet", "é😀.parquet", "q#+&='\".parquet", "x{1,2}*?[a].parquet", "back\\slash.parquet",
    "z^`|~.parquet", "nb\u00a0sp\u2003.parquet", "p=a%20b/_x=1.parquet", "k=%3A/ü.parquet", "semi;colon,.parquet",
)  # fmt: skip


def values(df) -> list[int]:
    return sorted(row[0] for row in df.select("x").collect())


def numbered(count: int, rows: int = 2) -> list[pa.Table]:
    return [pa.table({"x": pa.array(range(rows * i, rows * i + rows), pa.int64())}) for i in range(count)]


@pytest.fixture(params=[(0, 0), (0, 100), (100, 100)], ids=["joined", "looked up", "literal"])
def way(request, monkeypatch) -> None:
    """How constants are found."""
    relations, looked_up = request.param
    monkeypatch.setattr(connect_constants, "MAX_RELATIONS", relations)
    monkeypatch.setattr(connect_constants, "_MAX_LOOKED_UP", looked_up)
    monkeypatch.setattr(lane, "folders_above", lambda *_: None)


@pytest.mark.usefixtures("way")
def test_files_of_any_name_keep_their_constants(connect, write_table, tmp_path: Path):
    partitions = [{"p": name} for name in NAMES]
    url = write_table(NAMES, numbered(len(NAMES)), partitions, tmp_path / "t %20 é{x}*[q]?#+&=ü😀")
    found = {(row["x"], row["p"]) for row in alluvium.read(connect, url).collect()}
    assert found == {(2 * i + j, name) for i, name in enumerate(NAMES) for j in (0, 1)}


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet", "x._COPYING_"])
def test_files_that_spark_would_leave_out_are_refused(connect, write_table, name: str):
    url = write_table([name, "a.parquet"], numbered(2))
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.read(connect, url).count()
    assert caught.value.code == "unsupported-scan" and name in str(caught.value.path)
    assert values(alluvium.read(connect, url, lane="python")) == [0, 1, 2, 3]


def masked_source(url: str, masks: list[list[int] | None], *, keeps_masked: bool = False):
    """The plan of a table with deleted rows in its files, and each row's number and file."""
    plan = DeltaSource(open_snapshot(open_store(url))).plan_scan()
    (part,) = plan.parts
    bitmaps = [None if rows is None else pyroaring.BitMap64(rows).serialize() for rows in masks]
    files = part.files.set_column(part.files.schema.get_field_index("mask"), "mask", pa.array(bitmaps, pa.binary()))
    constants = pa.StructArray.from_arrays([pa.array(range(files.num_rows), pa.int64())], names=["n"])
    files = files.set_column(files.schema.get_field_index("constants"), "constants", constants)
    output = (
        *part.output,
        OutputColumn("n", t.LONG, True, FileConstant("n", t.LONG)),
        OutputColumn("row", t.LONG, True, RowPosition()),
    )
    schema = Struct((*plan.schema.fields, Field("n", t.LONG), Field("row", t.LONG)))
    part = replace(part, files=files, output=output, keeps_masked=keeps_masked)
    return replace(plan, parts=(part,), schema=schema)


@pytest.mark.parametrize("keeps", [False, True], ids=["without", "only"])
@pytest.mark.parametrize("most", [0, 100], ids=["joined", "literal"])
def test_deleted_rows_of_many_files(connect, write_table, monkeypatch, most: int, keeps: bool):
    """ "If a snapshot contains logical files with records that are invalidated by a DV, then these records *must not*
    be returned in the output."
    """
    monkeypatch.setattr(connect_constants, "MAX_RELATIONS", most)
    rows = 4000  # more than one piece of the joined table
    masks = [[0, 5, 6, 1535, 1536, 3071, 3072, 3999], None, list(range(rows)), [1537], []]
    url = write_table([f"{i}.parquet" for i in range(5)], numbered(5, rows))
    found = read_plan(connect, masked_source(url, masks, keeps_masked=keeps)).collect()
    deleted = {(file, row) for file, listed in enumerate(masks) for row in listed or ()}
    everything = {(file, row) for file in range(5) for row in range(rows)}
    assert {(r["n"], r["row"]) for r in found} == (deleted if keeps else everything - deleted)
    assert all(r["x"] == r["n"] * rows + r["row"] for r in found)
    assert len(found) == len(deleted if keeps else everything - deleted)


def test_a_file_that_is_listed_twice_gives_its_rows_twice(connect, write_table):
    plan = masked_source(write_table(["a.parquet"], numbered(1)), [[0]])
    part = plan.parts[0]
    twice = replace(part, files=pa.concat_tables([part.files, part.files]))
    assert values(read_plan(connect, replace(plan, parts=(twice,)))) == [1, 1]


@pytest.mark.parametrize(("files", "is_looked_up_by_jobs"), [(70, False), (300, True)])
def test_files_are_looked_up_without_a_job_where_relations_of_few_do(
    connect, write_table, files: int, is_looked_up_by_jobs: bool
):
    """The server looks up more than 32 paths of one relation by a job, a task a path."""
    partitions = [{"p": str(i % 2)} for i in range(files)]
    url = write_table([f"{i}.parquet" for i in range(files)], numbered(files), partitions)
    before = listing_jobs()
    found = alluvium.read(connect, url).groupBy("p").agg(sf.sum("x"), sf.count("x")).collect()
    sums = [sum(4 * i + 1 for i in range(side, files, 2)) for side in (0, 1)]
    assert sorted(tuple(row) for row in found) == [(str(p), sums[p], files) for p in (0, 1)]
    assert (listing_jobs() > before) == is_looked_up_by_jobs


def test_the_sessions_measure_of_few_files_counts(connect, write_table, monkeypatch):
    url = write_table([f"{n}.parquet" for n in range(100)], numbered(100))
    key = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    for said, relations in (("100", 1), ("32", 4), ("10", 1)):
        monkeypatch.delitem(lane._FEW, connect, raising=False)
        connect.conf.set(key, said)
        try:
            df = alluvium.read(connect, url)
            assert df._explain_string(extended=False).count("FileScan") == relations
            assert values(df) == list(range(200))
        finally:
            connect.conf.unset(key)
            lane._FEW.pop(connect, None)


def listing_jobs() -> int:
    """How many jobs of the server have listed files so far."""
    context = SparkContext._active_spark_context
    assert context is not None, "the server is a JVM of this process"
    jobs = context._jsc.sc().statusStore().jobsList(None)
    told = [jobs.apply(place).description() for place in range(jobs.size())]
    return sum(text.isDefined() and "Listing leaf files" in text.get() for text in told)


def test_filters_that_follow_choose_files(connect, write_table):
    url = write_table(["a.parquet", "b.parquet", "c.parquet"], numbered(3), [{"p": "1"}, {"p": "2"}, {"p": None}])
    df = alluvium.read(connect, url)
    cases = {
        "x > 3": (1, [4, 5]),
        "p = '1'": (1, [0, 1]),
        "p is null and x < 5": (1, [4]),
        "x > 100": (0, []),
        "pow(x, 2) > 20": (3, [5]),
    }
    for text, (files, expected) in cases.items():
        for found in (df.where(text), df.filter(sf.expr(text)), alluvium.read(connect, url, where=text)):
            (scan,) = alluvium.explain(found)
            assert (scan.lane, scan.files, values(found)) == ("connect", files, expected), text


def test_columns_of_the_frame_choose_files_and_stay_its_own(connect, write_table):
    df = alluvium.read(connect, write_table(["a.parquet", "b.parquet"], numbered(2)))
    first = df.where(df.x >= 2)
    second = first.where((first.x < 3) & df.x.isNotNull() & first["x"].isin(2, 3, 9))
    assert [scan.files for scan in alluvium.explain(second)] == [1]
    assert [scan.files for scan in alluvium.explain(df)] == [2]
    assert values(second) == [2] and values(df) == [0, 1, 2, 3]
    joined = first.alias("a").join(df.alias("b"), sf.col("a.x") == sf.col("b.x") + 2)
    assert sorted(s.files for s in alluvium.explain(joined)) == [1, 2] and joined.count() == 2


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        (lambda: sf.col("x") == 4, 1),
        (lambda: sf.col("x").between(0, 1), 1),
        (lambda: ~(sf.col("x") > 1), 1),
        (lambda: sf.col("p").startswith("b"), 1),
        (lambda: sf.col("p") == 'it\'s a \\ "b"', 0),
        (lambda: sf.col("x").cast("double") < 1.5, 1),
        (lambda: sf.col("x").eqNullSafe(None), 0),
        (lambda: (sf.col("x") == 0) | (sf.col("x") == 5), 2),
        (lambda: sf.col("x") + 1 > sf.rand() - 5, 3),
    ],
    ids=str,
)
def test_columns_as_text(connect, write_table, condition, files: int):
    url = write_table(["1", "2", "3"], numbered(3), [{"p": "a"}, {"p": "b"}, {"p": "c"}])
    df = alluvium.read(connect, url)
    found = df.where(condition())
    (scan,) = alluvium.explain(found)
    assert scan.files <= max(files, 0) or files == 3
    assert values(found) == sorted(r[0] for r in df.select("x", "p").where(condition()).collect())


def test_predicates_may_name_variables_of_the_session(connect, write_table):
    url = write_table(["a.parquet"], numbered(1))
    connect.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 1").collect()
    try:
        some = values(alluvium.read(connect, url, columns=["x"], where="x >= wanted"))
        assert some == sorted(r[0] for r in alluvium.read(connect, url, columns=["x"]).where("x >= 1").collect())
        assert some
        with pytest.raises(InvalidRequest) as caught:
            alluvium.read(connect, url, where="x >= wanted", lane="python")
        assert caught.value.code == "unknown-column"
    finally:
        connect.sql("DROP TEMPORARY VARIABLE wanted").collect()


def test_predicates_that_are_none(connect, write_table):
    url = write_table(["a.parquet"], numbered(1))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.read(connect, url, where="y = 1")
    assert caught.value.code == "unknown-column"
    with pytest.raises(InvalidRequest) as caught:
        alluvium.read(connect, url, columns=["y"])
    assert caught.value.code == "unknown-column"


def test_a_missing_file_is_our_error(connect, write_table):
    url = write_table(["a b.parquet", "c.parquet"], numbered(2))
    df = alluvium.read(connect, url)
    assert df.count() == 4
    Path(url, "a b.parquet").unlink()
    for frame in (df, alluvium.read(connect, url)):
        with pytest.raises(NotFound) as caught:
            frame.collect()
        assert caught.value.code == "missing-file" and str(caught.value.path).endswith("/a b.parquet")
    assert values(alluvium.read(connect, url).where("x > 1")) == [2, 3]


def test_a_damaged_file_is_our_error(connect, write_table):
    url = write_table(["a b.parquet"], numbered(1))
    Path(url, "a b.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(alluvium.errors.CorruptTable) as caught:
        alluvium.read(connect, url).collect()
    assert caught.value.code == "damaged-file" and str(caught.value.path).endswith("/a b.parquet")


def test_errors_of_others_pass(connect):
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN") as caught:
        connect.range(3).select("nope").collect()
    assert not isinstance(caught.value, alluvium.errors.AlluviumError)


@pytest.mark.parametrize("most", [0, 100], ids=["joined", "looked up"])
@pytest.mark.parametrize("wrong", ["larger", "of another file"])
def test_a_file_of_another_size_than_the_log_says(connect, write_table, monkeypatch, wrong: str, most: int):
    """Constants are found by size: what the log says of it is relied upon, and told when no file has it.

    Two files that have each other's size would get each other's constants: as sizes are known to nobody but the log,
    that cannot be seen. It takes a log that was forged, and the guide says so.
    """
    monkeypatch.setattr(connect_constants, "MAX_RELATIONS", 0)
    monkeypatch.setattr(connect_constants, "_MAX_LOOKED_UP", most)
    url = write_table(["a.parquet", "b.parquet"], [numbered(1)[0], numbered(1, 300)[0]], [{"p": "a"}, {"p": "b"}])
    sizes = [Path(url, name).stat().st_size for name in ("a.parquet", "b.parquet")]
    assert sizes[0] != sizes[1]
    assert {(r["p"], r["n"]) for r in counts(alluvium.read(connect, url))} == {("a", 2), ("b", 300)}
    log = Path(url, "_delta_log", f"{0:020}.json")
    if wrong == "larger":
        log.write_text(log.read_text().replace(f'"size": {sizes[0]}', f'"size": {sizes[0] + 1}'))
        with pytest.raises(alluvium.errors.CorruptTable, match="another size than the log says"):
            counts(alluvium.read(connect, url))
    else:
        log.write_text(log.read_text().replace(f'"size": {sizes[0]}', f'"size": {sizes[1]}'))
        # Two files that are said to be equally large are told apart by their addresses.
        assert {(r["p"], r["n"]) for r in counts(alluvium.read(connect, url))} == {("a", 2), ("b", 300)}


def test_constants_that_nobody_asks_for_cost_nothing(connect, write_table):
    names = [f"{n}.parquet" for n in range(12)]
    files = [pa.table({"x": pa.array(range(n + 1), pa.int64())}) for n in range(12)]
    df = alluvium.read(connect, write_table(names, files, [{"p": name} for name in names]))
    plan = df.agg(sf.sum("x"))._explain_string(extended=False)
    assert "file_size" in plan
    assert [word for word in ("row_index", "file_path", "element_at", "Join") if word in plan] == []
    assert df.agg(sf.sum("x")).collect()[0][0] == sum(sum(range(n + 1)) for n in range(12))
    shown = df.groupBy("p").agg(sf.sum("x"))
    assert "Join" not in shown._explain_string(extended=False)
    assert {r[0]: r[1] for r in shown.collect()} == {f"{n}.parquet": sum(range(n + 1)) for n in range(12)}


def counts(df):
    return df.groupBy("p").agg(sf.count("*").alias("n")).collect()


def test_constants_that_are_looked_up_are_a_literal_that_the_server_folds(connect, tmp_path: Path):
    """Else it would read the text anew for every row."""
    url = str(tmp_path / "t")
    rows = {"x": range(12), "p": [f"v{n}" for n in range(12)], "d": pa.array(range(12), pa.date32()), "b": [True] * 12}
    alluvium.write(pa.table(rows), url, partition_by=("p", "d", "b"))
    grouped = alluvium.read(connect, url).groupBy("p", "d", "b").count()
    plan = grouped._explain_string(mode="extended").partition("== Optimized Logical Plan ==")[2]
    assert "map(keys:" in plan and "from_json" not in plan.lower()
    assert sorted(row["p"] for row in grouped.collect()) == sorted(rows["p"])


@pytest.mark.usefixtures("way")
def test_row_ids(connect, tmp_path: Path):
    """ "readers must add the index of the row in the file to the `baseRowId`" """
    url = make_tracked(tmp_path)
    df = alluvium.read(connect, url, rowIds=True)
    assert df.columns == ["id", "p", "_row_id", "_row_commit_version"]
    assert sorted(map(tuple, df.collect())) == TRACKED
    assert [r.id for r in df.where("_row_id in (12, 22) and p = 'y'").collect()] == [6]
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.read(connect, url, lane="python", rowIds=True)
    assert caught.value.code == "unsupported-option"


def test_a_missing_file_outside_of_the_table_is_our_error(connect, write_table, tmp_path: Path):
    """As a shallow clone's, whose files lie in the table that it was made from."""
    url = write_table(["a.parquet", "b.parquet"], numbered(2))
    outside = Path(url, "b.parquet").rename(tmp_path / "b.parquet")
    log = Path(url, "_delta_log", f"{0:020}.json")
    log.write_text(log.read_text().replace('"b.parquet"', f'"{outside.as_uri()}"'))
    df = alluvium.read(connect, url)
    assert values(df) == [0, 1, 2, 3]
    outside.unlink()
    for frame in (df, alluvium.read(connect, url)):
        with pytest.raises(NotFound) as caught:
            frame.collect()
        assert caught.value.code == "missing-file" and str(caught.value.path).endswith("/b.parquet")


@pytest.mark.parametrize(
    ("relations", "looked_up"), [(0, 0), (0, 100), (100, 100)], ids=["joined", "looked up", "literals"]
)
def test_paths_that_are_not_tidy(connect, write_table, monkeypatch, relations: int, looked_up: int):
    """Hadoop drops doubled slashes and dots where it makes a path of a text: `_metadata.file_path` has them no more."""
    monkeypatch.setattr(connect_constants, "MAX_RELATIONS", relations)
    monkeypatch.setattr(connect_constants, "_MAX_LOOKED_UP", looked_up)
    names = ["./f 1.parquet", "a//b.parquet", "c/./d.parquet", "plain.parquet"]
    url = write_table(names, numbered(4), [{"p": str(n)} for n in range(4)])
    rows = alluvium.read(connect, url)
    assert sorted((r["x"], r["p"]) for r in rows.collect()) == [(n, str(n // 2)) for n in range(8)]
    assert rows.count() == 8


def test_filters_mean_what_the_session_makes_of_them_when_the_query_is_sent(connect, tmp_path: Path):
    path = str(tmp_path / "t")
    rows = connect.sql("select 1 id, timestamp'2024-01-01 20:00:00' at, 'p' p")
    alluvium.write(rows, path)
    frame = alluvium.read(connect, path).where("cast(at as date) = '2024-01-02'")
    quoted = alluvium.read(connect, path).where("\"p\" = 'p'")
    before = connect.conf.get("spark.sql.session.timeZone")
    try:
        for zone, found in (("UTC", 0), ("Asia/Tokyo", 1), ("UTC", 0)):
            connect.conf.set("spark.sql.session.timeZone", zone)
            assert frame.count() == found, zone
        connect.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
        assert quoted.count() == 1
        # A condition that is read otherwise than we would is not taken for understood: the server says which rows go.
        alluvium.write(connect.sql("select 2 id, timestamp'2024-01-01 20:00:00' at, 'q' p"), path, mode="append")
        fresh = connect.sql("select 3 id, timestamp'2024-01-01 20:00:00' at, 'q' p")
        alluvium.write(fresh, path, mode="overwrite", replaceWhere="\"p\" = 'q'")
        assert sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist()) == [1, 3]
        with pytest.raises(InvalidRequest):
            alluvium.write(rows, path, mode="overwrite", replaceWhere="\"p\" = 'q'")
        assert alluvium.open(path).version == 2
    finally:
        connect.conf.set("spark.sql.session.timeZone", before)
        connect.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


def test_a_timestamp_is_a_local_time_where_the_session_says_so(connect, tmp_path: Path):
    path, zone, kind = str(tmp_path / "t"), "spark.sql.session.timeZone", "spark.sql.timestampType"
    for number, at in enumerate(("03:10:00", "02:40:00")):
        alluvium.write(connect.sql(f"select {number} id, timestamp_ntz'2024-03-10 {at}' at"), path, mode="append")
    before = connect.conf.get(zone)
    connect.conf.set(zone, "America/New_York")
    connect.conf.set(kind, "TIMESTAMP_NTZ")
    try:
        # As an instant the constant lies in a gap of the clock, and is 03:45.
        found = alluvium.read(connect, path).where("at > timestamp'2024-03-10 02:45:00'").collect()
    finally:
        connect.conf.set(zone, before)
        connect.conf.unset(kind)
    assert [row["id"] for row in found] == [0]


def test_a_frame_that_is_to_follow_is_refused(connect, tmp_path):
    url = str(tmp_path / "t")
    alluvium.write(connect.range(3), url)
    with pytest.raises(UnsupportedFeature, match="cannot follow its table") as caught:
        alluvium.read(connect, url, follow=True)
    assert caught.value.features == ("follow",)
