"""The table of conditions: what it says of our messages is so, and it names what there is."""

from __future__ import annotations

import ast
import re
import zipfile
from pathlib import Path

import msgspec
import pytest
from pyspark import errors as of_spark

from alluvium.api.counterparts import exceptions as of_delta
from alluvium.api.counterparts.conditions import ROWS, Counterpart, find_counterpart
from alluvium.api.delta.delta_merge import DeltaMergeBuilder
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.errors import CommitConflict, Conflict, InvalidRequest, NotFound, UnsupportedFeature

ROOT = Path(__file__).resolve().parents[3]
JARS = Path.home() / ".cache/alluvium-reference/jars"
#: Words that Spark says, and our message tells on.
SPARKS = {
    "GROUP BY",
    "is not a boolean",
    "cannot be resolved",
    "Cannot resolve",
    "you can use the functions",
    "[CAST_OVERFLOW]",
    "[NUMERIC_VALUE_OUT_OF_RANGE",
}
#: Doors beside the methods of DeltaTable.
DOORS = {
    "clusterBy",
    "replaceColumns",
    "path",
    "reorg",
    "restore",
    "merge",
    "create",
    "load",
    "table",
    "save",
    "saveAsTable",
    "insertInto",
    "writeTo",
    "readStream",
    "writeStream",
    "stream",
    "sql",
    "query",
    "changes",
}


def literals(tree: ast.AST) -> str:
    """All texts of a module, with a line for each; what is put into them is left out."""
    return "\n".join(n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))


@pytest.fixture(scope="module")
def said() -> str:
    """What the sources say, but for the table itself. Seconds, which no process shall spend to collect the tests."""
    paths = [path for path in (ROOT / "src").rglob("*.py") if path.parent.name != "counterparts"]
    return "\n".join(literals(ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def test_every_code_is_one_of_ours(said: str):
    assert [row.code for row in ROWS if not re.search(rf"^{row.code}$", said, re.MULTILINE)] == []


def test_words_of_the_table_are_words_of_our_messages(said: str):
    words = {row.says for row in ROWS} - SPARKS
    # What stands in a message for a value is not in the source: words are looked for one by one then.
    lost = [text for text in words if text not in said and not all(word.strip("'") in said for word in text.split())]
    assert lost == []


def test_classes_are_those_of_pyspark_and_delta():
    assert [
        row.counterpart.kind
        for row in ROWS
        if not hasattr(of_spark, row.counterpart.kind) and not hasattr(of_delta, row.counterpart.kind)
    ] == []


def test_doors_are_doors():
    methods = {name for name in dir(DeltaTable) if not name.startswith("_")}
    assert {door for row in ROWS for door in row.doors} <= methods | DOORS
    assert not hasattr(DeltaMergeBuilder, "merge")


def test_every_row_can_be_met():
    """A general row before a special one would hide it."""
    hidden = [
        (later.code, later.counterpart.condition)
        for n, later in enumerate(ROWS)
        for row in ROWS[:n]
        if row.code == later.code
        and row.says in later.says
        and (not row.doors or set(later.doors or DOORS) <= set(row.doors))
    ]
    assert hidden == []


@pytest.mark.parametrize(
    ("error", "door", "condition"),
    [
        (NotFound("no table", code="not-a-table"), "forPath", "DELTA_MISSING_DELTA_TABLE"),
        (NotFound("no table", code="not-a-table"), "load", "PATH_NOT_FOUND"),
        (NotFound("2001 lies before the first version", code="missing-version"), "load", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        (NotFound("2001 lies before the first version", code="missing-version"), "restoreToTimestamp", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        (NotFound("no such version", code="missing-version", version=7), "restoreToVersion", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (NotFound("the commit of version 1 is no longer in the log", code="missing-version", version=1), "stream", "DELTA_VERSION_NOT_FOUND"),
        (NotFound("2999 lies after the newest version", code="missing-version"), "stream", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        (InvalidRequest("UPDATE sets 'v' twice", code="assigned-twice"), "update", "DELTA_CONFLICT_SET_COLUMN"),
        (InvalidRequest("WHEN NOT MATCHED THEN INSERT sets 'v' twice", code="assigned-twice"), "merge", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
        (CommitConflict("lost", code="metadata-changed", conflicts=[Conflict("metadata-changed", 1, None, "")]), "delete", "DELTA_METADATA_CHANGED"),
        (InvalidRequest("no lane", code="unknown-lane"), "load", None),
        (InvalidRequest("no such field in 's'", code="unknown-column"), "update", "FIELD_NOT_FOUND"),
        (InvalidRequest("'p': its type is struct<x:int>", code="invalid-partition-column"), "sql", "INVALID_PARTITION_COLUMN_DATA_TYPE"),
        (InvalidRequest("'p': its type is struct<x:int>", code="invalid-partition-column"), "save", "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (InvalidRequest("a clustered table cannot be replaced by", code="contradicting-options"), "sql", "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"),
        (InvalidRequest("is neither a table of a database delta nor", code="invalid-table-name"), "sql", "SCHEMA_NOT_FOUND"),
        (NotFound("there is no table to replace", code="not-a-table"), "sql", "TABLE_OR_VIEW_NOT_FOUND"),
        (NotFound("there is no table to replace", code="not-a-table"), "create", "TABLE_OR_VIEW_NOT_FOUND"),
        (InvalidRequest("'v' is a view, which no Delta table replaces", code="table-exists"), "sql", "DELTA_CANNOT_WRITE_INTO_VIEW"),
        (InvalidRequest("'p' is a table of format parquet, which no Delta table replaces", code="table-exists"), "sql", "DELTA_NOT_A_DELTA_TABLE"),
        (InvalidRequest("'p' is a table of format parquet, not a Delta table", code="table-exists"), "sql", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (InvalidRequest("delta.`/a` names another place than '/b'", code="location-mismatch"), "sql", "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE"),
        (InvalidRequest("no path", code="invalid-path"), "query", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"),
        (InvalidRequest("is a Delta table", code="format-of-table"), "saveAsTable", "_LEGACY_ERROR_TEMP_1159"),
        (InvalidRequest("unknown", code="unknown-clustering-column"), "sql", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"),
        (InvalidRequest("unknown", code="unknown-clustering-column"), "create", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NotFound("there is no Delta table here: /x", code="not-a-table"), "query", "PATH_NOT_FOUND"),
        (NotFound("there is no Delta table here: /x", code="not-a-table"), "sql", "DELTA_MISSING_DELTA_TABLE"),
        (NotFound("there is no table called 't'", code="not-a-table"), "sql", "TABLE_OR_VIEW_NOT_FOUND"),
        (InvalidRequest("not enough columns: the table has 2", code="schema-mismatch"), "query", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (InvalidRequest("too many columns: the table has 2", code="schema-mismatch"), "query", "DELTA_METADATA_MISMATCH"),
        (InvalidRequest("too many columns: the statement names 2", code="schema-mismatch"), "query", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"),
        (InvalidRequest("PARTITION names 'a'", code="invalid-partition-column"), "query", "NON_PARTITION_COLUMN"),
        (UnsupportedFeature("TRUNCATE TABLE ... PARTITION is not for", code="unsupported-statement"), "sql", "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"),
        (UnsupportedFeature("LOAD DATA is not for Delta tables", code="unsupported-statement"), "sql", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
    ],
)  # fmt: skip
def test_conditions_by_code_door_and_words(error, door, condition):
    found = find_counterpart(error, door)
    assert (found and found.condition) == condition


@pytest.mark.interop
@pytest.mark.skipif(not list(JARS.glob("delta-spark*.jar")), reason="delta-spark is not installed")
def test_conditions_and_states_are_those_of_its_jar():
    (jar,) = JARS.glob("delta-spark*.jar")
    with zipfile.ZipFile(jar) as archive:
        known = msgspec.json.decode(archive.read("error/delta-error-classes.json"))

    def wrong(found: Counterpart) -> bool:
        name, _, inner = str(found.condition).partition(".")
        spoken = name.startswith("DELTA_") or name in known
        return spoken and (
            known[name]["sqlState"] != found.state or inner not in {"", *known[name].get("subClass", {})}
        )

    assert [row.counterpart for row in ROWS if wrong(row.counterpart)] == []
