"""From a table's options to how its rows merge."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.view.merge import keep_deletes, key_merge
from alluvium.plan.scan import KeyMerge, MergeRule, ScanPart, ScanPlan, SortColumn
from alluvium.schema.types import Struct

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


def test_all_that_is_told_of_a_merge() -> None:
    assert merge_of({}) == KeyMerge(
        group="_SECTION", keys=("k",), order=(SortColumn("_SEQUENCE_NUMBER"),), kind="_VALUE_KIND", engine="deduplicate"
    )
    fields = number_fields(DataField(0, name, parse_type("INT")) for name in ("p", "k", "j", "a"))
    schema = TableSchema.create(fields, ["p"], ["k", "p", "j"], {"bucket": "1"})
    # Rows of a partition are told apart by what is not the partition's, in the order of the key.
    assert key_merge(schema).keys == ("k", "j")
    assert (key_merge(schema).has_retracts, key_merge(schema, False).has_retracts) == (True, False)
    tied = key_merge(schema, has_ties=True)
    assert tied.order == (SortColumn("_SEQUENCE_NUMBER"), SortColumn("_FILE_ORDER"))


@pytest.mark.parametrize(
    ("options", "level"),
    [
        (PARTIAL, None),
        ({**PARTIAL, "changelog-producer": "lookup"}, "_LEVEL"),
        ({**AGGREGATION, "force-lookup": "true"}, "_LEVEL"),
        ({**AGGREGATION, "deletion-vectors.enabled": "true"}, "_LEVEL"),
        ({**AGGREGATION, "changelog-producer": "full-compaction"}, None),
        # Who keeps one row of a key asks no more.
        ({"changelog-producer": "lookup"}, None),
        ({"merge-engine": "first-row"}, None),
    ],
)
def test_where_a_level_holds_all_that_came_before(options: dict[str, str], level: str | None) -> None:
    assert merge_of(options).level == level


def test_rules_of_columns() -> None:
    """Of all columns but the keys, with what their functions are told."""
    options = {
        "fields.a.aggregate-function": "listagg", "fields.a.list-agg-delimiter": ";", "fields.a.distinct": "true",
        "fields.a.ignore-retract": "true", "fields.b.aggregate-function": "sum", "fields.b.ignore-retract": "false",
        "fields.ab.other": "x", "fields.default-aggregate-function": "max",
    }  # fmt: skip
    assert merge_of({**AGGREGATION, **options}).rules == (
        MergeRule("a", "listagg", (("distinct", "true"), ("list-agg-delimiter", ";")), True),
        MergeRule("b", "sum"),
        MergeRule("g", "max"),
    )
    grouped = {
        "fields.g.sequence-group": "a, b",
        "fields.a.aggregate-function": "sum",
        "fields.g.ignore-retract": "true",
    }
    assert merge_of({**PARTIAL, **grouped}).rules == (
        MergeRule("a", "sum", (), False, ("g",)),
        MergeRule("b", "last", (), False, ("g",)),
        MergeRule("g", "last", (), False, ("g",)),
    )
    # Engines that keep a row as it is have none.
    assert merge_of(options).rules == merge_of({"merge-engine": "first-row", **options}).rules == ()


def test_groups_of_several_leaders() -> None:
    rules = {r.column: r for r in merge_of({**PARTIAL, "fields.g, b.sequence-group": "a"}).rules}
    assert {name: rule.sequence for name, rule in rules.items()} == dict.fromkeys("abg", ("g", "b"))
    assert {rule.function for rule in rules.values()} == {"last"}
    # A default is for those that lead nobody.
    default = {**PARTIAL, "fields.g.sequence-group": "a", "fields.default-aggregate-function": "last_non_null_value"}
    assert {r.column: r.function for r in merge_of(default).rules} == {
        "a": "last_non_null_value", "b": "last_non_null_value", "g": "last",
    }  # fmt: skip
    # The sequence field of a partial update goes with the last row that has one.
    ordered = {**PARTIAL, "sequence.field": "g", "fields.g.aggregate-function": "sum"}
    assert {r.column: r.function for r in merge_of(ordered).rules}["g"] == "last_non_null"
    # What belongs to other engines leads nobody here.
    assert merge_of({**AGGREGATION, "fields.g.sequence-group": "a"}).rules[0] == MergeRule("a", "last_non_null_value")


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "deduplicate"])
def test_deletions_that_remove_by_a_group(engine: str) -> None:
    options = {"merge-engine": engine, "partial-update.remove-record-on-sequence-group": "g, b"}
    found = merge_of({**options, "fields.g,b.sequence-group": "a"})
    assert found.removing_groups == ("g", "b") and not found.removes_on_delete


@pytest.mark.parametrize(
    ("options", "column", "features"),
    [
        ({"merge-engine": "magic"}, None, ("magic",)),
        ({**AGGREGATION, "fields.b.aggregate-function": "magic"}, "b", ("magic",)),
        ({**PARTIAL, "fields.default-aggregate-function": "magic"}, "a", ("magic",)),
        ({**PARTIAL, "fields.g.sequence-group": "a,nothing"}, "nothing", ()),
        ({**PARTIAL, "fields.nothing.sequence-group": "a"}, "nothing", ()),
        ({"sequence.field": "a,nothing"}, "nothing", ()),
    ],
)
def test_whom_an_error_is_about(options: dict[str, str], column: str | None, features: tuple[str, ...]) -> None:
    with pytest.raises(AlluviumError) as caught:
        merge_of(options)
    assert (caught.value.column, tuple(getattr(caught.value, "features", ()))) == (column, features)


def test_deletions_stay_where_somebody_wants_them() -> None:
    merge = merge_of({})
    nothing = pa.table({})
    parts = [ScanPart(key, nothing, "parquet", Struct(()), (), one) for key, one in (("a", merge), ("b", None))]
    plan = keep_deletes(ScanPlan("root", tuple(parts), Struct(()), ("p",), (("partition", 1),)))
    assert [part.merge for part in plan.parts] == [replace(merge, keeps_deletes=True), None]
    assert replace(plan, parts=tuple(parts)) == ScanPlan("root", tuple(parts), Struct(()), ("p",), (("partition", 1),))
