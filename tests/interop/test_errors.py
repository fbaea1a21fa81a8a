"""The same bad calls in both engines: what delta-spark raises is raised, class and condition; where not, it is known why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from recorded import answers
from reference_engine import NEEDS_REFERENCE

import alluvium

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from run_errors import CALLS, make_calls  # noqa: E402

pytestmark = [*NEEDS_REFERENCE, pytest.mark.timeout(1800)]

#: Where we differ and mean to, or cannot help it: by call (one that ends with `*` stands for all that begin so).
KNOWN: dict[str, str] = {
    **dict.fromkeys(
        ("merge_unknown_condition", "merge_subquery", "merge_set_unknown_value", "merge_insert_unknown_value",
         "merge_insert_of_target", "merge_condition_of_clause"),
        "it breaks down over its own text: a JVM's error, no condition of Delta's",
    ),
    **dict.fromkeys(("reader_version", "writer_version"), "it raises EXPRESSION_DECODING_FAILED around the condition"),
    **dict.fromkeys(
        ("schema_given", "set_not_null", "partitioned_unknown", "clustered_by_nothing", "set_invalid", "update_table_null"),
        "what it raises says nothing of the case (_LEGACY_ERROR..., TASK_WRITE_FAILED): here it is the condition that does",
    ),
    "load_1_parquet": "whether anything lies there is not looked at: PATH_NOT_FOUND in both cases",
    "load_version_of_nothing": "it raises Hadoop's FileNotFoundException",
    "data_file_gone": "the query raises it, no door does: ours alone",
    "save_missing": "a column that is missing and one that is null are one code",
    "update_field": "a field of what has none is an unknown column",
    "update_generator": "a generator and an aggregate are one message",
    "add_column_after_nothing": "the place of a column is a column that is not known",
    "update_table_overflow": "a constant that it folds first where the table has constraints; elsewhere both say what ours does",
    "update_table_by_zero": "Spark says DIVIDE_BY_ZERO, which it makes an overflow of",
    "insert_into_overflow": "Spark's cast says it, without the column",
    "drop_feature_2_timestampNtz": "one that cannot be dropped is refused as that, whether it is there or not",
    "rename_to_taken": "that the table maps no columns is said first",
    "create_in_parquet": "it takes a path with files for a table that exists",
    **dict.fromkeys(("constraint_random", "constraint_subquery"), "it takes them, and cannot keep the second"),
    "unset_unknown_property": "it takes ALTER TABLE UNSET without IF EXISTS for one with it",
    **dict.fromkeys(
        ("save_schema_and_dynamic", "save_schema_and_where"), "it drops one of two options that contradict each other"
    ),
    "delete_3_id in (select 100)": "subqueries are answered here",
}  # fmt: skip


@pytest.fixture(scope="module")
def told(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    root = tmp_path_factory.mktemp("errors")
    alluvium.enable(spark)
    try:
        ours = make_calls(spark, alluvium, root / "ours", False)
    finally:
        alluvium.disable(spark)
    (theirs,) = answers(root, [{"root": str(root / "theirs")}], "run_errors", [HERE / "errors"])
    return ours, theirs


def differences(ours: dict[str, Any] | None, theirs: dict[str, Any] | None) -> str | None:
    """How what was raised differs; None: it does not, for `except` clauses and matching texts."""
    if ours is None or theirs is None:
        return None if ours is theirs else f"refused by {'us' if ours else 'delta-spark'} alone: {ours or theirs}"
    # An error of the JVM has no class in Python.
    kind = "SparkRuntimeException" if "Py4JJavaError" in theirs["classes"] else theirs["classes"][0]
    if kind not in ours["classes"]:
        return f"{theirs['classes'][0]} there, here {ours['classes']}: {ours['text']}"
    if theirs["condition"] != ours["condition"]:
        return f"{theirs['condition']} there, here {ours['condition']}: {ours['text']}"
    if theirs["condition"] is not None and f"[{theirs['condition']}]" not in ours["text"]:
        return f"its condition is not in the text: {ours['text']}"
    return None if theirs["state"] in (None, ours["state"]) else f"{theirs['state']} there, here {ours['state']}"


def is_known(name: str) -> bool:
    return any(name == known or (known.endswith("*") and name.startswith(known[:-1])) for known in KNOWN)


def test_both_raise_the_same(told: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, theirs = told
    assert len(ours) == len(CALLS) > 100
    found = {name: differences(ours[name], theirs[name]) for name in CALLS if not is_known(name)}
    assert {name: text for name, text in found.items() if text is not None} == {}


def test_what_is_known_to_differ_still_does(told: tuple[dict[str, Any], dict[str, Any]]) -> None:
    ours, theirs = told
    differing = {name for name in CALLS if differences(ours[name], theirs[name]) is not None}
    idle = [
        k for k in KNOWN if not any(name == k or (k.endswith("*") and name.startswith(k[:-1])) for name in differing)
    ]
    assert idle == []


def test_every_error_of_ours_is_one_of_ours(told: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """But for what PySpark itself refuses."""
    foreign = {name: said["text"] for name, said in told[0].items() if said and said["code"] is None}
    assert set(foreign) <= {"bad_save_mode", "write_to_nothing_0_append", "write_to_nothing_2_overwritePartitions"}
