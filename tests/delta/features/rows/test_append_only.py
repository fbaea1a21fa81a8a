"""appendOnly. Specification: "Append-only Tables"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config, make_files, removal_of

from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.registry import COMMIT_PASSES
from alluvium.delta.features.rows.append_only import FEATURE, ensure_appends, ensure_removable, is_used
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest

APPEND_ONLY = CommitContext(make_config(properties={"delta.appendOnly": "true"}))
LIVE = make_files({"path": "a"}, {"path": "b"})


def test_rows_cannot_be_removed():
    """ "New log entries MUST NOT change or remove data from the table." """
    with pytest.raises(InvalidRequest) as caught:
        ensure_appends(Actions(added=make_files({"path": "c"}), removed=removal_of(LIVE)), APPEND_ONLY)
    assert caught.value.code == "append-only"
    assert "delta.appendOnly" in (caught.value.hint or "")


def test_one_removal_among_rearrangements_is_enough():
    """ "New log entries MUST NOT change or remove data from the table." """
    removed = removal_of(make_files({"path": "a"}), data_change=False).to_pylist()
    removed += removal_of(make_files({"path": "b"})).to_pylist()
    mixed = removal_of(LIVE).schema.empty_table().from_pylist(removed, schema=removal_of(LIVE).schema)
    with pytest.raises(InvalidRequest):
        ensure_appends(Actions(removed=mixed), APPEND_ONLY)


def test_rows_can_be_added():
    ensure_appends(Actions(added=LIVE), APPEND_ONLY)


def test_data_may_be_rearranged():
    """ "New log entries may rearrange data (i.e. `add` and `remove` actions where `dataChange=false`)." """
    actions = Actions(added=make_files({"path": "c"}, data_change=False), removed=removal_of(LIVE, data_change=False))
    ensure_appends(actions, APPEND_ONLY)


@pytest.mark.parametrize("properties", [{}, {"delta.appendOnly": "false"}])
def test_the_restriction_can_be_lifted(properties: dict[str, str]):
    """ "To remove the append-only restriction, the table property `delta.appendOnly` must be set to `false`, or it must
    be removed."
    """
    config = make_config(properties=properties)
    assert not is_used(config)
    ensure_appends(Actions(removed=removal_of(LIVE)), CommitContext(config))


def test_every_commit_is_looked_at():
    assert ensure_appends in COMMIT_PASSES
    assert (FEATURE.reader, FEATURE.legacy_writer) == (False, 2)


PLAIN, STRICT = make_config(), make_config(properties={"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [(PLAIN, STRICT, False), (STRICT, PLAIN, True), (None, STRICT, True), (None, PLAIN, False), (STRICT, STRICT, True)],
)
def test_what_counts_is_the_table_that_has_the_rows(
    before: TableConfig | None, after: TableConfig, refused: bool
) -> None:
    actions, context = Actions(removed=removal_of(LIVE)), CommitContext(after, before)
    if not refused:
        assert ensure_appends(actions, context) is actions
        return
    with pytest.raises(InvalidRequest):
        ensure_appends(actions, context)
    # An older version comes back with its rows as they were.
    restored = replace(actions, restores=True)
    assert ensure_appends(restored, context) is restored
    nothing = Actions(removed=removal_of(LIVE.slice(0, 0)))
    assert ensure_appends(nothing, context) is nothing


def test_verbs_that_remove_are_refused_before_they_look() -> None:
    ensure_removable(PLAIN)
    with pytest.raises(InvalidRequest) as caught:
        ensure_removable(STRICT)
    assert caught.value.code == "append-only"
