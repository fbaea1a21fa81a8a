"""Which clauses a merge may have, and which of the source's columns they bring into a table."""

from __future__ import annotations

import pytest

from alluvium.commands.merge.merge_clauses import Clause, ensure_clauses, taken_columns, taken_names
from alluvium.errors import InvalidRequest
from alluvium.plan.merging import Action, When
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct

SOURCE = Struct(
    (Field("id", t.INTEGER), Field("New", t.STRING), Field("s", Struct((Field("a", t.LONG), Field("b", t.LONG)))))
)


def update(*names: str, when: When = When.MATCHED, condition: str | None = None) -> Clause:
    return Clause(when, Action.UPDATE, condition, dict.fromkeys(names, "1"))


STAR = Clause(When.NOT_MATCHED, Action.INSERT)


@pytest.mark.parametrize(
    ("clauses", "taken"),
    [
        ([STAR], "id New s.a s.b"),
        ([update("other"), STAR], "id New s.a s.b"),
        ([update("new")], "New"),
        ([update("T.NEW", "id")], "id New"),
        ([update("s.b")], "s.b"),
        ([update("t.s.a"), update("s")], "s.a s.b"),
        ([update("new", when=When.NOT_MATCHED_BY_SOURCE)], ""),
        ([Clause(When.MATCHED, Action.DELETE)], ""),
        ([update("nothing of it")], ""),
    ],
)
def test_columns_that_clauses_set_come_into_the_table(clauses, taken):
    found = taken_columns(clauses, SOURCE, "t")
    assert " ".join(".".join(path) for path, _ in found.leaves()) == taken


def test_names_of_columns_that_are_taken_are_known_without_the_source():
    assert taken_names([STAR], "t") is None
    assert taken_names([update("t.New", "s.a"), Clause(When.MATCHED, Action.DELETE)], "t") == {"t", "new", "s"}


@pytest.mark.parametrize("when", When)
def test_only_the_last_clause_of_a_kind_may_go_without_a_condition(when):
    first, last = update("v", when=when), update("v", when=when, condition="true")
    ensure_clauses([last, first])
    with pytest.raises(InvalidRequest) as caught:
        ensure_clauses([first, last])
    assert (caught.value.code, when.value.upper() in caught.value.message) == ("unreachable-clause", True)


def test_a_merge_needs_a_clause():
    with pytest.raises(InvalidRequest) as caught:
        ensure_clauses([])
    assert caught.value.code == "merge-without-clauses"
