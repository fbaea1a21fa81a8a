"""Which clauses of a MERGE may stand together: every list of up to three."""

from __future__ import annotations

import itertools

from alluvium.plan.merging import Action, When, clause_problem, merge_parameters


def test_every_list_of_clauses() -> None:
    """A clause without a condition takes all rows of its kind, so that it is the last of them."""
    kinds = [(when, has_condition) for when in When for has_condition in (False, True)]
    refused = 0
    for count in range(4):
        for clauses in itertools.product(kinds, repeat=count):
            found = clause_problem(clauses)
            if not clauses:
                assert found is not None and found.code == "merge-without-clauses"
                continue
            hidden = [when for n, (when, _) in enumerate(clauses) if (when, False) in clauses[:n]]
            assert (found is not None) == bool(hidden)
            if found is not None:
                refused += 1
                assert found.code == "unreachable-clause" and any(
                    f"WHEN {when.value.upper()} may" in str(found) for when in hidden
                )
    assert refused > 50


def test_how_a_merge_was_asked_for() -> None:
    """As the history's readers know it: lists as JSON, each kind of clause under its name, in order."""
    clauses = [
        (When.NOT_MATCHED, Action.INSERT, None), (When.MATCHED, Action.DELETE, "t.a > 1"),
        (When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, 'b = "x"'), (When.MATCHED, Action.UPDATE, None),
        (When.NOT_MATCHED_BY_SOURCE, Action.DELETE, ""),
    ]  # fmt: skip
    assert merge_parameters("t.a = s.a", clauses) == {
        "predicate": '["t.a = s.a"]',
        "matchedPredicates": '[{"predicate":"t.a > 1","actionType":"delete"},{"actionType":"update"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": '[{"predicate":"b = \\"x\\"","actionType":"update"},{"predicate":"","actionType":"delete"}]',
    }
    assert merge_parameters("", []) == {
        "predicate": '[""]', "matchedPredicates": "[]", "notMatchedPredicates": "[]", "notMatchedBySourcePredicates": "[]",
    }  # fmt: skip
