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


@pytest.mark.parametrize("thin", ["false", "true"])
def test_columns_before_those_of_the_rows(thin: str) -> None:
    found = hidden_fields(schema_of("day", **{"data-file.thin-mode": thin}))
    names = [f.name for f in found]
    assert names == [*([] if thin == "true" else ["_KEY_k"]), "_SEQUENCE_NUMBER", "_VALUE_KIND"]
    assert [str(f.type) for f in found][-2:] == ["BIGINT NOT NULL", "TINYINT NOT NULL"]
    assert len({f.id for f in found}) == len(found) and all(f.id > 1_000_000 for f in found)


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
