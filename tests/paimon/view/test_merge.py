"""From a table's options to how its rows merge."""

from __future__ import annotations

import pytest

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.view.merge import key_merge
from alluvium.plan.scan import KeyMerge, SortColumn

PARTIAL, AGGREGATION = {"merge-engine": "partial-update"}, {"merge-engine": "aggregation"}


def merge_of(options: dict[str, str]) -> KeyMerge:
    """Of options as they stand in a schema file, which nobody checked."""
    fields = number_fields(DataField(0, name, parse_type("INT")) for name in ("k", "a", "b", "g"))
    plain = TableSchema.create(fields, [], ["k"], {"bucket": "1"})
    object.__setattr__(plain, "options", {**plain.options, **options})
    return key_merge(plain)


def test_deletions_are_ignored_by_any_of_the_options_names() -> None:
    names = ["ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete", "first-row.ignore-delete"]
    for engine in ("deduplicate", "partial-update", "first-row"):
        for name in names:
            assert merge_of({"merge-engine": engine, name: "TRUE"}).ignores_delete
        # The name of today goes before the older ones.
        assert not merge_of({"merge-engine": engine, "ignore-delete": "false", names[1]: "true"}).ignores_delete
    assert not any(merge_of({**AGGREGATION, name: "true"}).ignores_delete for name in names)


def test_each_engine_has_its_own_option_of_removing() -> None:
    removing = {f"{engine}.remove-record-on-delete": "true" for engine in ("partial-update", "aggregation")}
    assert merge_of({**PARTIAL, **removing}).removes_on_delete
    assert merge_of({**AGGREGATION, **removing}).removes_on_delete
    assert not merge_of(removing).removes_on_delete
    assert not merge_of({**PARTIAL, "aggregation.remove-record-on-delete": "true"}).removes_on_delete


def test_words_of_options_are_read_as_java_reads_them() -> None:
    assert merge_of({"merge-engine": " PARTIAL_UPDATE "}).engine == "partial-update"
    descending = {"sequence.field": "g, a", "sequence.field.sort-order": "DESCENDING"}
    assert merge_of(descending).order == (SortColumn("g", True), SortColumn("a", True), SortColumn("_SEQUENCE_NUMBER"))
    (rule,) = [r for r in merge_of({**AGGREGATION, "fields.a.aggregate-function": "first_not_null_value"}).rules
               if r.column == "a"]  # fmt: skip
    assert rule.function == "first_non_null_value"


def test_a_function_of_a_partial_update_needs_a_group() -> None:
    with pytest.raises(CorruptTable) as caught:
        merge_of({**PARTIAL, "fields.a.aggregate-function": "sum"})
    assert (caught.value.code, caught.value.column) == ("invalid-options", "a")
    # What partial updates do anyway needs none; with a group any may be.
    for options in (
        {"fields.a.aggregate-function": "last_non_null_value"},
        {"fields.a.aggregate-function": "sum", "fields.g.sequence-group": "a"},
    ):
        assert merge_of({**PARTIAL, **options}).engine == "partial-update"


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"merge-engine": "magic"}, UnsupportedFeature, "unsupported-merge-engine"),
        ({**AGGREGATION, "fields.a.aggregate-function": "magic"}, UnsupportedFeature, "unsupported-aggregate"),
        ({"sequence.field": "nothing"}, CorruptTable, "invalid-options"),
        ({**PARTIAL, "fields.nothing.sequence-group": "a"}, CorruptTable, "invalid-options"),
        ({"ignore-delete": "yes"}, InvalidRequest, "invalid-table-option"),
        ({"sequence.field": "g", "sequence.field.sort-order": "up"}, InvalidRequest, "invalid-table-option"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], kind: type[AlluviumError], code: str) -> None:
    with pytest.raises(kind) as caught:
        merge_of(options)
    assert caught.value.code == code


def test_functions_of_columns_that_nobody_gave_one() -> None:
    """ "If the field is a sequence field, do not use aggregation": it goes with the last row, null or not."""
    given = {
        **AGGREGATION,
        "sequence.field": "g",
        "fields.g.aggregate-function": "sum",
        "fields.b.aggregate-function": "max",
    }
    assert {r.column: r.function for r in merge_of(given).rules} == {
        "a": "last_non_null_value",
        "b": "max",
        "g": "last_value",
    }
    default = {**AGGREGATION, "fields.default-aggregate-function": "min"}
    assert {r.column: r.function for r in merge_of(default).rules} == {"a": "min", "b": "min", "g": "min"}
    groups = {**PARTIAL, "fields.g.sequence-group": "a"}
    assert {r.column: (r.function, r.sequence) for r in merge_of(groups).rules} == {
        "a": ("last", ("g",)), "b": ("last_non_null", ()), "g": ("last", ("g",)),
    }  # fmt: skip
