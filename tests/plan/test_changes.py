"""The words in which a verb says what it did, and what of them is shown."""

from __future__ import annotations

import pytest

from alluvium.expr.tree import Column, Compare, Literal, Or
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Author,
    ChangeKind,
    Committed,
    Describe,
    EditFigures,
    EditRows,
    NewFiles,
    Operation,
    Preview,
    ReadScope,
    Replace,
    RewriteFiles,
    RowColumns,
)
from alluvium.plan.write import TARGET_FILE_BYTES, WRITTEN_FILES, Check, Derived, WritePlan
from alluvium.schema.types import INTEGER, LONG, Field, Struct

ONE = Compare("=", Column(("a",), LONG), Literal(1, LONG))
TWO = Compare("=", Column(("a",), LONG), Literal(2, LONG))


def test_who_says_something_of_a_commit() -> None:
    """The caller's own word goes before the session's, be it empty; an engine without a session says nothing."""
    author = Author("Spark", "nightly")
    assert (str(author), author.note, Author("Spark").note) == ("Spark", "nightly", None)
    assert Operation("WRITE", engine=author).note == "nightly"
    assert Operation("WRITE", engine=author, user_metadata="mine").note == "mine"
    assert Operation("WRITE", engine=author, user_metadata="").note == ""
    assert Operation("WRITE", engine="Spark", user_metadata="mine").note == "mine"
    assert Operation("WRITE", engine="Spark").note is None
    assert (Operation("WRITE").engine, Operation("WRITE").note) == ("", None)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (ReadScope.nothing(), ReadScope.nothing(), ReadScope.nothing()),
        (ReadScope.nothing(), ReadScope.rows(ONE), ReadScope.rows(ONE)),
        (ReadScope.nothing(), ReadScope.table(), ReadScope.table()),
        (ReadScope.rows(ONE), ReadScope.table(), ReadScope.table()),
        (ReadScope.rows(ONE), ReadScope.rows(TWO), ReadScope.rows(Or(ONE, TWO))),
    ],
)
def test_what_depends_on_both(one: ReadScope, other: ReadScope, both: ReadScope) -> None:
    assert one.beside(other) == both
    if both != ReadScope.rows(Or(ONE, TWO)):
        assert other.beside(one) == both
    else:
        assert other.beside(one) == ReadScope.rows(Or(TWO, ONE))


def test_scopes_say_what_they_are() -> None:
    assert (ReadScope.nothing().is_nothing, ReadScope.table().is_nothing, ReadScope.rows(ONE).is_nothing) == (
        True,
        False,
        False,
    )
    assert (ReadScope.nothing().where, ReadScope.table().where, ReadScope.rows(ONE).where) == (None, None, ONE)
    assert ReadScope.rows(None) == ReadScope.table() != ReadScope.nothing()


def test_names_of_own_columns() -> None:
    """They are part of what a session's plans look like, and never met by a table's column."""
    assert RowColumns().names == ("__alluvium_file", "__alluvium_row")
    assert RowColumns.with_ids().names == (
        "__alluvium_file", "__alluvium_row", "__alluvium_row_id", "__alluvium_row_version",
    )  # fmt: skip
    assert RowColumns(row_version="v").names == ("__alluvium_file", "__alluvium_row", "v")


def test_kinds_are_numbers_that_workers_and_driver_agree_on() -> None:
    assert [(kind.name, int(kind)) for kind in ChangeKind] == [("COPY", 0), ("UPDATE", 1), ("DELETE", 2), ("INSERT", 3)]


def test_a_preview_counts_what_is_not_nought() -> None:
    operation = Operation("UPDATE", metrics={"numUpdatedRows": "3", "numCopiedRows": "0", "numFiles": "9"})
    shown = str(Preview(4, operation, {"p": (None, "1")}, ("x", "m"), ("a", "b", "c"), ("r1", "r2"), ("m",), ("b",)))
    assert shown.splitlines() == [
        "UPDATE at version 4; nothing was written",
        "  reads               2 files",
        "  masks               1 files",
        "  rewrites            1 files",
        "  removes as a whole  2 files",
        "  p                   None -> 1",
        "  numUpdatedRows                          3",
    ]
    gone = Preview(4, Operation("OPTIMIZE"), {}, missing=("x", "y", "z"), notes=("nobody reads it",))
    assert str(gone).splitlines()[1:] == ["  misses              3 files", "  nobody reads it"]
    assert str(Preview(-1, Operation("WRITE"), {})) == "WRITE at version -1; nothing was written"


def test_what_is_said_where_nothing_is_said() -> None:
    """Defaults that decide about files: an overwrite replaces rows of all files, and checks the new ones."""
    replace = Replace()
    assert (replace.where, replace.sql, replace.dynamic, replace.rows, replace.unchecked) == (
        None,
        None,
        False,
        True,
        False,
    )
    none = NewFiles.none()
    assert (none.table.num_rows, none.table.schema, none.footers, dict(none.reached), none.numbers) == (
        0,
        WRITTEN_FILES,
        (),
        {},
        False,
    )
    assert (none.rebalanced, none.assigned) == (False, None)
    edit = EditRows(none, TOUCHED_FILES.empty_table(), Operation("DELETE"), ReadScope.table())
    rewrite = RewriteFiles(none, TOUCHED_FILES.empty_table(), Operation("OPTIMIZE"), ReadScope.table())
    assert (dict(edit.describe(EditFigures())), dict(rewrite.describe(EditFigures(1)))) == ({}, {})
    assert (edit.change_files, edit.txn) == (None, None)
    assert EditFigures() == EditFigures(0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert not Describe(Operation("SET"), ReadScope.nothing()).empties
    nothing = Committed.nothing(7)
    assert (nothing.version, nothing.files.num_rows, nothing.files.column_names, nothing.attempts) == (
        7,
        0,
        ["path"],
        0,
    )


def test_columns_have_the_names_of_the_files() -> None:
    schema = Struct((Field("a", INTEGER), Field("b", LONG)))
    stored = Struct((Field("col-1", INTEGER), Field("col-2", LONG)))
    plan = WritePlan("memory:t", "_staging/1", schema)
    assert [plan.stored_name(name) for name in ("a", "b")] == ["a", "b"]
    mapped = WritePlan("memory:t", "_staging/1", schema, stored=stored)
    assert [mapped.stored_name(name) for name in ("a", "b")] == ["col-1", "col-2"]
    with pytest.raises(ValueError, match="shorter"):
        WritePlan("memory:t", "d", schema, stored=Struct((Field("x", INTEGER),))).stored_name("a")


def test_plans_ask_for_nothing_by_themselves() -> None:
    plan = WritePlan("memory:t", "d", Struct(()))
    assert (plan.file_format, plan.target_file_bytes, TARGET_FILE_BYTES) == ("parquet", 128 << 20, 134_217_728)
    assert not (plan.materialize_partitions or plan.rebalance or plan.is_staged)
    assert (plan.partition_by, plan.checks, plan.derived, plan.numbered, plan.stats_columns, plan.options) == ((),) * 6
    assert (plan.bucket, plan.stored, plan.files) == (None, None, None)
    assert Check("c", "a > 0").code == "constraint-violated"
    assert not Derived("a", "1").is_constant
    assert {f.name for f in WRITTEN_FILES if f.nullable} == {"bucket"}
    assert [f.name for f in TOUCHED_FILES if f.nullable] == ["mask"]
