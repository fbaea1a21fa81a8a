"""Tables created and changed by both engines: the same protocol, schema, properties and history; each continues the other's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from protocol_matrix import CHANGES, MATRIX
from reference_engine import NEEDS_REFERENCE
from reference_engine import judge as ask

import alluvium
from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.schema.ddl import parse_ddl_type
from alluvium.schema.types import Field, Struct
from alluvium.storage.open import open_store

pytestmark = NEEDS_REFERENCE

COLUMNS = [["a", "int"], ["b", "string"], ["s", "struct<x:int,y:struct<z:int>>"], ["arr", "array<struct<e:int>>"]]

#: The same change in SQL and as a method of `alluvium.alter`.
SAME = [
    ("ALTER TABLE {t} ADD COLUMN c int", lambda t: t.add_columns({"c": "int"})),
    ("ALTER TABLE {t} ADD COLUMNS (c int, d string)", lambda t: t.add_columns({"c": "int", "d": "string"})),
    ("ALTER TABLE {t} ADD COLUMN c decimal(5,2) FIRST", lambda t: t.add_columns({"c": "decimal(5,2)"}, position="first")),
    ("ALTER TABLE {t} ADD COLUMN s.y.q bigint FIRST", lambda t: t.add_columns({"s.y.q": "bigint"}, position="first")),
    ("ALTER TABLE {t} ADD COLUMN s.q int AFTER x", lambda t: t.add_columns({"s.q": "int"}, position="after x")),
    ("ALTER TABLE {t} ADD COLUMN arr.element.q int", lambda t: t.add_columns({"arr.element.q": "int"})),
    ("ALTER TABLE {t} ADD COLUMN v varchar(3)", lambda t: t.add_columns({"v": "varchar(3)"})),
    ("ALTER TABLE {t} ALTER COLUMN s.x COMMENT 'cc'", lambda t: t.alter_column("s.x", comment="cc")),
    ("ALTER TABLE {t} ALTER COLUMN a AFTER b", lambda t: t.alter_column("a", position="after b")),
    ("ALTER TABLE {t} ALTER COLUMN s.y FIRST", lambda t: t.alter_column("s.y", position="first")),
    ("ALTER TABLE {t} ALTER COLUMN a DROP NOT NULL", lambda t: t.alter_column("a", nullable=True)),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly'='true','x'='y')", lambda t: t.set_properties({"delta.appendOnly": "true", "x": "y"})),
    ("ALTER TABLE {t} UNSET TBLPROPERTIES ('k')", lambda t: t.unset_properties("k")),
    ("ALTER TABLE {t} DROP CONSTRAINT IF EXISTS nope", lambda t: t.drop_constraint("nope", if_exists=True)),
]  # fmt: skip


def judge(folder: Path, jobs: list[dict]) -> list[dict]:
    """delta-spark's commits for the jobs, in one session of their own: `actions`, `error`."""
    return [{"actions": told["result"], "error": told["error"]} for told in ask(folder, jobs, "reference_tables")]


def create(path: str, columns: list, properties: dict[str, str], nullable: bool = True, generated: dict | None = None):
    fields = []
    for name, text in columns:
        declared = parse_ddl_type(text)
        expression = (generated or {}).get(name)
        more = {} if expression is None else {"delta.generationExpression": expression}
        fields.append(Field(name, declared.type, nullable, {**declared.metadata, **more}))
    config = table_config(NewTable(Struct(tuple(fields)), properties=properties))
    DeltaTarget(open_store(path), config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))


def last_commit(path: str) -> list[dict]:
    newest = max(Path(path, "_delta_log").glob("*.json"))
    return [json.loads(line) for line in newest.read_text().splitlines()]


def action(actions: list[dict], kind: str) -> dict | None:
    return next((a[kind] for a in actions if kind in a), None)


def protocol_of(actions: list[dict]) -> tuple | None:
    found = action(actions, "protocol")
    if found is None:
        return None

    def names(key: str) -> frozenset[str] | None:
        return frozenset(found[key]) if key in found else None

    return (found["minReaderVersion"], found["minWriterVersion"], names("readerFeatures"), names("writerFeatures"))


def plain_schema(actions: list[dict]) -> object:
    """The schema without what every writer makes up anew."""
    found = action(actions, "metaData")

    def strip(node: object) -> object:
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if not k.startswith("delta.columnMapping.physical")}
        return [strip(v) for v in node] if isinstance(node, list) else node

    return None if found is None else strip(json.loads(found["schemaString"]))


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    root = tmp_path_factory.mktemp("created")
    jobs = [
        {"path": f"{root}/t{i}", "columns": c.columns, "properties": c.properties, "nullable": c.nullable, "generated": c.generated}
        for i, c in enumerate(MATRIX)
    ]  # fmt: skip
    jobs += [
        {
            "path": f"{root}/c{i}",
            "columns": [["a", "int"], ["b", "string"]],
            "properties": before,
            "sql": ["ALTER TABLE {t} SET TBLPROPERTIES (" + ",".join(f"'{k}'='{v}'" for k, v in then.items()) + ")"],
        }
        for i, (before, then, _) in enumerate(CHANGES)
    ]
    return judge(root, jobs)


def test_the_matrix_is_what_delta_spark_does(created: list[dict]):
    wrong = {
        str(case): (protocol_of(found["actions"]) if found["actions"] else found["error"], case.protocol)
        for case, found in zip(MATRIX, created, strict=False)
        if not found["actions"] or protocol_of(found["actions"]) != case.protocol
    }
    assert not wrong
    for (before, then, after), found in zip(CHANGES, created[len(MATRIX) :], strict=True):
        assert found["actions"], found["error"]
        # None: the protocol stays what it was.
        assert protocol_of(found["actions"]) in (after.protocol, None), (before, then)


def test_what_we_create_is_what_delta_spark_creates(created: list[dict], tmp_path: Path):
    compared = 0
    for i, (case, found) in enumerate(zip(MATRIX, created, strict=False)):
        path = str(tmp_path / f"t{i}")
        try:
            create(path, list(case.columns), case.properties, case.nullable, case.generated)
        except UnsupportedFeature:
            continue  # its writer is not there yet; the flag of the feature's record says so
        ours = last_commit(path)
        assert protocol_of(ours) == protocol_of(found["actions"]), str(case)
        assert plain_schema(ours) == plain_schema(found["actions"]), str(case)
        mine, theirs = action(ours, "metaData"), action(found["actions"], "metaData")
        assert mine is not None and theirs is not None
        assert set(mine["configuration"]) == set(theirs["configuration"]), str(case)
        compared += 1
    assert compared >= 12


@pytest.fixture(scope="module")
def altered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """The same changes by both, then rows and a further change by delta-spark on our tables."""
    root = tmp_path_factory.mktemp("altered")
    for i, (_, change) in enumerate(SAME):
        path = str(root / f"ours{i}")
        create(path, COLUMNS, {"k": "v"})
        change(alluvium.alter(path))
    jobs = [
        {"path": f"{root}/theirs{i}", "columns": COLUMNS, "properties": {"k": "v"}, "sql": [sql]}
        for i, (sql, _) in enumerate(SAME)
    ]
    insert = "INSERT INTO {t} (a, b) VALUES (1, 'x')"
    change = "ALTER TABLE {t} ADD COLUMN further int"
    jobs += [{"path": f"{root}/ours{i}", "sql": [insert, change]} for i in range(len(SAME))]
    jobs += [{"path": f"{root}/ours0", "builder": "replace", "columns": [["z", "int"]], "properties": {"r": "1"}}]
    ours = [last_commit(f"{root}/ours{i}") for i in range(len(SAME))]
    results = judge(root, jobs)
    for one, found in zip(ours, results, strict=False):
        found["ours"] = one
    return root, results


def test_the_same_change_by_both_engines(altered: tuple[Path, list[dict]]):
    for (sql, _), found in zip(SAME, altered[1], strict=False):
        assert found["actions"], (sql, found["error"])
        ours, theirs = found["ours"], found["actions"]
        mine, other = action(ours, "commitInfo"), action(theirs, "commitInfo")
        assert mine is not None and other is not None
        assert mine["operation"] == other["operation"], sql
        assert mine["operationParameters"] == other["operationParameters"], sql
        assert mine["isBlindAppend"] == other["isBlindAppend"], sql
        if action(ours, "metaData") is not None:
            assert plain_schema(ours) == plain_schema(theirs), sql
            assert action(ours, "metaData")["configuration"] == action(theirs, "metaData")["configuration"], sql  # type: ignore[index]
        assert protocol_of(ours) is None or protocol_of(ours) == protocol_of(theirs), sql


def test_delta_spark_continues_what_we_changed_and_we_what_it_did(altered: tuple[Path, list[dict]]):
    root, results = altered
    for i, found in enumerate(results[len(SAME) : 2 * len(SAME)]):
        assert found["actions"], found["error"]
        if i == 0:
            continue  # replaced afterwards
        t = alluvium.open(f"{root}/ours{i}")
        assert t.to_arrow(columns=["a", "b"]).to_pylist() == [{"a": 1, "b": "x"}]
        assert t.schema.names[-1] == "further"
        alluvium.alter(t.url).set_properties({"delta.checkpointInterval": "3"})


def test_a_table_that_delta_spark_replaced_can_be_restored_by_us(altered: tuple[Path, list[dict]]):
    root, results = altered
    assert results[-1]["actions"], results[-1]["error"]
    path = f"{root}/ours0"
    assert tuple(alluvium.open(path).schema.names) == ("z",)
    version = alluvium.open(path).version - 1
    alluvium.alter(path).restore(version=version)
    assert alluvium.open(path).to_arrow(columns=["a"]).to_pylist() == [{"a": 1}]
    (again,) = judge(root, [{"path": path, "sql": ["INSERT INTO {t} (a) VALUES (5)"]}])
    assert again["error"] is None
    assert sorted(row["a"] for row in alluvium.open(path).to_arrow(columns=["a"]).to_pylist()) == [1, 5]


def test_changes_of_the_protocol_by_us_are_taken_on(tmp_path: Path):
    jobs = []
    for i, (before, then, after) in enumerate(CHANGES):
        path = str(tmp_path / f"p{i}")
        try:
            create(path, [["a", "int"], ["b", "string"]], before)
            change = apply_change(alluvium.open(path)._snapshot, lambda c, then=then: set_properties(c, then), "tests")
        except UnsupportedFeature:
            continue  # a feature whose writer is not there yet
        assert change.version == 1
        found = alluvium.open(path).protocol
        assert (found.min_reader_version, found.min_writer_version) == (after.reader, after.writer)
        jobs.append({"path": path, "sql": ["INSERT INTO {t} VALUES (1, 'x')"]})
    assert len(jobs) >= 4
    assert [r["error"] for r in judge(tmp_path, jobs)] == [None] * len(jobs)
