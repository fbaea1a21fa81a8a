"""Tables with a primary key whose rows take others back: which engines take that, and what rows may say of their kind."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import pytest
from paimon_rows import FIELDS, append, open_target

from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.keyed import RowKinds, ensure_rows_change, first_numbers, hidden_fields, kind_checks
from alluvium.paimon.write.write import plan_write
from alluvium.plan.write import BUCKET_COLUMN, FIRST_COLUMN, KeyedRows
from alluvium.storage.open import open_store

BEFORE, AFTER, DELETE = 1, 2, 3


def schema_of(*partitions: str, **options: str) -> TableSchema:
    fields = [
        DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate([("k", "INT NOT NULL"), *FIELDS[1:]])
    ]
    return TableSchema.create(fields, partitions, ("k", *partitions), options={"bucket": "1", **options})


def keyed(schema: TableSchema, kind: RowKinds | int | None = None) -> KeyedRows:
    found = plan_write(schema, "memory://x/t", kind=kind).keyed
    assert found is not None
    return found


PARTIAL, SUMS, FIRST = (
    {"merge-engine": "partial-update"},
    {"merge-engine": "aggregation"},
    {"merge-engine": "first-row"},
)
PARTIAL_REMOVES = {**PARTIAL, "partial-update.remove-record-on-delete": "true"}
SUMS_REMOVE = {**SUMS, "aggregation.remove-record-on-delete": "true"}


@pytest.mark.parametrize(
    ("options", "deletes", "updates"),
    [
        ({}, True, True),
        ({"ignore-delete": "true"}, False, True),
        ({"rowkind.field": "s"}, False, False),
        (PARTIAL, False, True),
        (PARTIAL_REMOVES, True, True),
        (SUMS, False, False),
        (SUMS_REMOVE, True, False),
        (FIRST, False, False),
        ({**PARTIAL, "fields.day.sequence-group": "s", "fields.s.aggregate-function": "listagg"}, False, False),
        ({**PARTIAL, "fields.day.sequence-group": "s", "fields.s.aggregate-function": "max"}, False, True),
    ],
)
def test_which_rows_are_changed_one_by_one(options: dict[str, str], deletes: bool, updates: bool) -> None:
    schema = schema_of(**options)
    for asked_deletes, asked_updates in itertools.product((False, True), repeat=2):
        refused = (asked_deletes and not deletes) or (asked_updates and not updates) or "rowkind.field" in options
        if not refused:
            ensure_rows_change(schema, asked_deletes, asked_updates)
            continue
        with pytest.raises(UnsupportedFeature) as caught:
            ensure_rows_change(schema, asked_deletes, asked_updates)
        assert caught.value.code == "unsupported-row-change"
        assert ("deleted" if asked_deletes else "updated") in caught.value.message


@pytest.mark.parametrize(
    ("options", "skipped", "retracts"),
    [
        ({}, (), False),
        ({"ignore-delete": "true"}, (BEFORE, DELETE), False),
        ({"ignore-update-before": "true"}, (BEFORE,), False),
        ({"ignore-delete": "true", "ignore-update-before": "true"}, (BEFORE, DELETE), False),
        ({"rowkind.field": "s"}, (), True),
        ({"rowkind.field": "s", "ignore-update-before": "true"}, (BEFORE,), True),
        ({"rowkind.field": "s", "ignore-delete": "true"}, (BEFORE, DELETE), False),
    ],
)
def test_kinds_that_are_left_out(options: dict[str, str], skipped: tuple[int, ...], retracts: bool) -> None:
    found = keyed(schema_of(**options))
    assert (found.skipped_kinds, found.kind_text, found.kind_column) == (skipped, options.get("rowkind.field"), None)
    assert found.merge.has_retracts == retracts
    assert found.merge.keeps_deletes and not found.merge.ignores_delete and found.merge.level is None


@pytest.mark.parametrize("kind", [0, BEFORE, AFTER, DELETE, RowKinds(True), RowKinds(False)])
def test_rows_of_a_kind(kind: int | RowKinds) -> None:
    found = keyed(schema_of(), kind)
    takes_back = kind.takes_back if isinstance(kind, RowKinds) else kind in (BEFORE, DELETE)
    assert found.merge.has_retracts == takes_back
    if isinstance(kind, RowKinds):
        assert found.kind_column is not None
    else:
        assert found.kind_column is None and found.kind == kind
    assert found.skipped_kinds == () and found.kind_text is None


def test_rows_that_are_written_together_are_in_ascending_order() -> None:
    options = {"sequence.field": "day", "sequence.field.sort-order": "descending"}
    orders = [(column.name, column.descending) for column in keyed(schema_of(**options)).merge.order]
    assert orders[0] == ("day", False) and all(not descending for _, descending in orders)


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({}, None),
        (FIRST, "'+I', '+U'"),
        ({**FIRST, "ignore-update-before": "true"}, "'+I', '+U', '-U'"),
        (PARTIAL, "'+I', '+U'"),
        (PARTIAL_REMOVES, None),
        ({**SUMS, "fields.day.aggregate-function": "max"}, "'+I', '+U'"),
        ({**SUMS_REMOVE, "fields.day.aggregate-function": "max"}, "'+I', '+U', '-D'"),
        ({**SUMS, "fields.day.aggregate-function": "max", "fields.day.ignore-retract": "true"}, None),
        ({**SUMS, "fields.day.aggregate-function": "max", "ignore-delete": "true"}, None),
    ],
)
def test_what_rows_may_say_of_their_kind(options: dict[str, str], taken: str | None) -> None:
    schema = schema_of(**{"rowkind.field": "s", **options})
    found = list(kind_checks(schema, keyed(schema)))
    assert found[0].sql == "`s` in ('+I', '-U', '+U', '-D')" and found[0].code == "invalid-row-kind"
    assert [one.sql for one in found[1:]] == ([] if taken is None else [f"`s` in ({taken})"])
    assert all(one.code == "unsupported-retract" and one.columns == ("s",) for one in found[1:])
    assert list(kind_checks(schema_of(), keyed(schema_of()))) == []


ROWS = {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}]}}
#: Functions by the types that they take: whether they take values back, and whether a value counts each time it comes.
FUNCTIONS: list[tuple[str, Any, bool, bool]] = [
    ("sum", "INT", True, True), ("product", "INT", True, True), ("last_value", "INT", True, False),
    ("last_non_null_value", "INT", True, False),
    ("collect", {"type": "ARRAY", "element": "INT"}, True, True), ("nested_update", ROWS, True, True),
    ("merge_map", {"type": "MAP", "key": "STRING", "value": "INT"}, True, False), ("max", "INT", False, False),
    ("min", "INT", False, False), ("listagg", "STRING", False, True), ("first_value", "INT", False, False),
    ("bool_or", "BOOLEAN", False, False), ("bool_and", "BOOLEAN", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "takes_back", "adds"), FUNCTIONS, ids=lambda value: str(value)[:12])
def test_which_functions_take_values_back_and_which_add(function: str, kind: Any, takes_back: bool, adds: bool) -> None:
    fields = [DataField(n, name, parse_type(one)) for n, (name, one) in enumerate(
        (("k", "INT NOT NULL"), ("kind", "STRING"), ("g", "INT"), ("v", kind)))]  # fmt: skip
    sums = {"merge-engine": "aggregation", "fields.v.aggregate-function": function, "rowkind.field": "kind"}
    schema = TableSchema.create(fields, (), ("k",), options={"bucket": "1", **sums})
    codes = [check.code for check in kind_checks(schema, keyed(schema))]
    assert codes == ["invalid-row-kind"] + ["unsupported-retract"] * (not takes_back)
    grouped = {**PARTIAL, "fields.g.sequence-group": "v", "fields.v.aggregate-function": function}
    partial = TableSchema.create(fields, (), ("k",), options={"bucket": "1", **grouped})
    if not adds:
        ensure_rows_change(partial, deletes=False)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_rows_change(partial, deletes=False)
    assert function in caught.value.features[0] and "'v'" in caught.value.features[0]


@pytest.mark.parametrize(
    ("options", "asked", "hinted"),
    [
        ({"rowkind.field": "s"}, "rowkind.field", "overwrite partitions"),
        (SUMS, "merge-engine = aggregation", "overwrite partitions"),
        (FIRST, "merge-engine = first-row", "overwrite partitions"),
        ({"ignore-delete": "true"}, "ignore-delete = true", "overwrite partitions"),
        (PARTIAL, "merge-engine = partial-update", "partial-update.remove-record-on-delete = true"),
    ],
)
def test_what_stands_against_single_rows_is_named(options: dict[str, str], asked: str, hinted: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_rows_change(schema_of(**options))
    assert caught.value.features == (asked,) and hinted in (caught.value.hint or "")


def test_without_an_option_deletions_of_aggregates_are_not_taken() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_rows_change(schema_of(**SUMS), updates=False)
    assert "aggregation.remove-record-on-delete = true" in (caught.value.hint or "")
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_rows_change(schema_of(**FIRST), updates=False)
    assert "overwrite partitions" in (caught.value.hint or "")


@pytest.mark.parametrize("thin", ["false", "true"])
def test_columns_before_those_of_the_rows(thin: str) -> None:
    found = hidden_fields(schema_of("day", **{"data-file.thin-mode": thin}))
    names = [f.name for f in found]
    assert names == [*([] if thin == "true" else ["_KEY_k"]), "_SEQUENCE_NUMBER", "_VALUE_KIND"]
    assert [str(f.type) for f in found][-2:] == ["BIGINT NOT NULL", "TINYINT NOT NULL"]
    # "`_KEY_<f>` = 1073741823 + id(f)"
    keys = [] if thin == "true" else [1_073_741_823]
    assert [f.id for f in found] == [*keys, 2_147_483_646, 2_147_483_645]


def rows(store: Any) -> list[dict[str, Any]]:
    found = first_numbers(load_snapshot(store))
    assert found is not None
    return sorted(found.to_pylist(), key=lambda row: (row["day"] or "", row[BUCKET_COLUMN]))


def test_numbers_go_on_behind_the_newest_of_their_bucket() -> None:
    url = f"memory://{uuid.uuid4()}/t"
    fields = [DataField(0, name, parse_type(kind)) for name, kind in FIELDS]
    PaimonTable.create(url, fields, ["day"], ["k", "day"], options={"bucket": "1"})
    store = open_store(url)
    assert first_numbers(load_snapshot(store)) is None
    append(open_target(store), [{"k": n, "day": "a"} for n in range(3)])
    append(open_target(store), [{"k": 7, "day": "b"}])
    append(open_target(store), [{"k": n, "day": "a"} for n in range(2)])
    assert rows(store) == [
        {"day": "a", BUCKET_COLUMN: 0, FIRST_COLUMN: 5},
        {"day": "b", BUCKET_COLUMN: 0, FIRST_COLUMN: 1},
    ]
