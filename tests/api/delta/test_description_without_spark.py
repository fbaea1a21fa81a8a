"""The table without a session has every method of the other one: by the same arguments, or refused by its name."""

from __future__ import annotations

import datetime as dt
import inspect
import subprocess
import sys
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as s
from sessionless import TRACKED, VECTORS, refused, rows, table_of

import alluvium
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.commands.rows_here import constraint
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import RetryPolicy

MAPPED = {"delta.columnMapping.mode": "name"}
#: What only a session can take: expressions of PySpark are one argument with SQL text.
_SESSION = {"self", "sparkSession", "hadoopConf", "tableOrViewName", "inventory"}
_REFUSED = ("toDF", "forName", "create", "createIfNotExists", "replace", "createOrReplace", "columnBuilder")


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


@pytest.fixture
def table(url: str) -> PortableDeltaTable:
    data = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["x", None, "z"]})
    alluvium.write(data, url, **MAPPED, **{"delta.enableTypeWidening": "true"})
    return table_of(url)


def version(url: str) -> int:
    return alluvium.open(url).version  # type: ignore[return-value]


def names_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_method_is_there() -> None:
    assert names_of(DeltaTable) - names_of(PortableDeltaTable) == set()


@pytest.mark.parametrize("name", sorted(names_of(DeltaTable) - set(_REFUSED) - {"isDeltaTable", "forPath"}))
def test_methods_take_the_same_arguments(name: str) -> None:
    theirs, ours = (
        [p for p in inspect.signature(getattr(kind, name)).parameters.values() if p.name not in _SESSION]
        for kind in (DeltaTable, PortableDeltaTable)
    )
    there = {p.name: (p.kind, p.default) for p in theirs}
    here = {p.name: (p.kind, p.default) for p in ours}
    assert {n: here.get(n) for n in there} == there
    positional = [
        [p.name for p in some if p.kind is p.POSITIONAL_OR_KEYWORD and p.name in there] for some in (theirs, ours)
    ]
    assert positional[0] == positional[1]


@pytest.mark.parametrize("name", _REFUSED)
def test_what_needs_spark_is_refused_by_its_name(table: PortableDeltaTable, name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"DeltaTable.{name} needs a session") as caught:
        getattr(table, name)()
    assert caught.value.code == "needs-spark" and caught.value.hint


def test_detail(table: PortableDeltaTable, url: str) -> None:
    (row,) = table.detail().to_pylist(maps_as_pydicts="strict")
    view = alluvium.open(url)
    assert row["format"] == "delta" and row["id"] == view.metadata.id
    assert (row["numFiles"], row["sizeInBytes"]) == (1, view.files()["size"][0].as_py())
    assert row["properties"]["delta.columnMapping.mode"] == "name"
    assert (row["minReaderVersion"], row["minWriterVersion"]) == (3, 7)
    assert "columnMapping" in row["tableFeatures"] and row["partitionColumns"] == []
    assert isinstance(row["lastModified"], dt.datetime) and row["lastModified"].tzinfo is not None
    found = table.readable_versions().to_pylist()
    assert [(v["version"], v["readable"]) for v in found] == [(0, True)]


def test_columns(table: PortableDeltaTable, url: str) -> None:
    told = table.addColumns({"n": "int"}, dry_run=True)
    assert isinstance(told, Preview) and version(url) == 0
    table.addColumns({"n": "int", "w": "varchar(3)"}, position="after id")
    table.addColumns(pa.schema([("a", pa.list_(pa.int64()))]))
    table.addColumns(s.StructType([s.StructField("d", s.DateType())]))
    table.addColumns({"m": s.ShortType()}, "first")
    assert alluvium.open(url).schema.names == ("m", "id", "n", "w", "v", "a", "d")
    table.renameColumn("n", "number")
    table.dropColumns("a", "d")
    assert table.dropColumns("a", ifExists=True).attempts == 0  # type: ignore[union-attr]
    table.alterColumn("number", type="bigint", comment="how many")
    table.alterColumn("m", position="after v")
    view = alluvium.open(url)
    assert [(f.name, str(f.type)) for f in view.schema] == [
        ("id", "int"), ("number", "bigint"), ("w", "string"), ("v", "string"), ("m", "smallint"),
    ]  # fmt: skip
    assert view.schema.fields[1].metadata["comment"] == "how many"
    assert [row["id"] for row in rows(url)] == [1, 2, 3]
    for wrong in ("n int", 7, [], [3]):
        assert refused(lambda wrong=wrong: table.addColumns(wrong)).code == "wrong-type"


def test_properties(table: PortableDeltaTable, url: str) -> None:
    table.setProperties({"delta.appendOnly": "true", "owner": "me"})
    assert refused(lambda: table.delete("id = 1")).code == "append-only"
    table.unsetProperties("delta.appendOnly", "owner", "nothing")
    assert "owner" not in alluvium.open(url).properties
    assert refused(lambda: table.unsetProperties("owner", ifExists=False)).code == "unknown-property"
    assert refused(lambda: table.setProperties({"delta.columnMapping.mode": "none"})).code == "needs-spark"
    assert refused(lambda: table.unsetProperties("delta.columnMapping.mode")).code == "needs-spark"


def test_constraints(table: PortableDeltaTable, url: str) -> None:
    error = refused(lambda: table.addConstraint("c", "id < 3"))
    assert error.code == "constraint-violated" and "1 rows" in error.message and "'id': 3" in error.message
    assert "2 rows" in refused(lambda: table.addConstraint("c", "v > 'x' and v <> 'z' or id = 1")).message
    told = table.addConstraint("c", "id < 10", dry_run=True)
    assert isinstance(told, Preview) and version(url) == 0
    table.addConstraint("c", "id < 10 and (v is null or length(v) < 5)")
    assert alluvium.open(url).properties["delta.constraints.c"] == "id < 10 and (v is null or length(v) < 5)"
    assert refused(lambda: table.update("id = 1", {"v": "'too long'"})).code == "constraint-violated"
    assert refused(lambda: table.addConstraint("c", "id > 0")).code == "constraint-exists"
    table.dropConstraint("c")
    assert refused(lambda: table.dropConstraint("c")).code == "unknown-constraint"
    table.dropConstraint("c", ifExists=True)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("nothing > 1", "invalid-constraint"),
        ("id", "invalid-predicate"),
        ("id > 0 -- why", "invalid-constraint"),
        ("id > 0 /* why */", "invalid-constraint"),
        ("v rlike 'x'", "needs-spark"),
        ("id > (select 1)", "invalid-constraint"),
        ("", "invalid-constraint"),
    ],
)
def test_constraints_that_are_none(table: PortableDeltaTable, url: str, condition: str, code: str) -> None:
    assert refused(lambda: table.addConstraint("c", condition)).code == code
    assert version(url) == 0


def test_rows_that_come_while_a_constraint_is_added(table: PortableDeltaTable, url: str, monkeypatch: Any) -> None:
    apply = constraint.apply_change

    def late(*args: Any) -> Any:
        alluvium.write(pa.table({"id": pa.array([100], pa.int32()), "v": ["late"]}), url, mode="append")
        return apply(*args)

    monkeypatch.setattr(constraint, "apply_change", late)
    with pytest.raises(CommitConflict):
        table.addConstraint("c", "id < 10", retry=RetryPolicy(max_repeats=0))
    assert "delta.constraints.c" not in alluvium.open(url).properties


def test_upkeep(table: PortableDeltaTable, url: str, tmp_path: Any) -> None:
    place = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1, 2]}), place, **VECTORS)
    t = table_of(place)
    t.delete("id = 1")
    for act, left in (
        (lambda to: t.clone(to), [2]),
        (lambda to: t.cloneAtVersion(0, to), [1, 2]),
        (lambda to: t.cloneAtTimestamp(alluvium.open(place).timestamp, to), [2]),
    ):
        target = str(tmp_path / uuid.uuid4().hex)
        assert isinstance(act(target), Committed)
        assert [row["id"] for row in rows(target)] == left
    assert t.compute_statistics(every=True).version == version(place)
    newest = version(place)
    t.repair(dry_run=True)
    t.repair(log=False, statistics=False)
    assert version(place) == newest
    assert t.vacuum(168, True).files.num_rows == 0  # type: ignore[union-attr]
    assert t.vacuum(168, lite=True) is not None


def test_files_become_a_table(tmp_path: Any) -> None:
    folder = tmp_path / "plain" / "day=2024-01-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    told = PortableDeltaTable.convertToDelta(str(tmp_path / "plain"), "day date", dry_run=True)
    assert isinstance(told, Preview)
    made = PortableDeltaTable.convertToDelta(f"parquet.`{tmp_path / 'plain'}`", "day date")
    assert isinstance(made, PortableDeltaTable)
    assert made.toTable().to_arrow().to_pylist() == [{"id": n, "day": dt.date(2024, 1, 1)} for n in (1, 2)]
    made.delete("id = 1")
    assert made.toTable().count() == 1


@pytest.mark.long
def test_nothing_of_it_needs_pyspark() -> None:
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import importlib.util as u; found = u.find_spec; u.find_spec = lambda n, *a: None if n == 'pyspark' else found(n, *a)\n"
        "import pyarrow as pa, alluvium\n"
        "alluvium.write(pa.table({'n': [1, 2]}), 'memory://y/t'); alluvium.write(pa.table({'n': [3]}), 'memory://y/t', mode='append')\n"
        "from alluvium import DeltaTable\n"
        "t = DeltaTable.forPath('memory://y/t')\n"
        "t.addColumns({'w': 'int'}); t.addConstraint('c', 'n > 0'); t.setProperties({'a': 'b'}); t.detail(); t.readable_versions()\n"
        "assert t.optimize().executeCompaction()['metrics'][0]['numFilesRemoved'].as_py() == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_row_ids_and_their_feature(url: str) -> None:
    alluvium.write(pa.table({"id": [1, 2]}), url)
    table_of(url).setProperties(TRACKED)
    assert alluvium.open(url).to_arrow(["_row_id"])["_row_id"].null_count == 0
