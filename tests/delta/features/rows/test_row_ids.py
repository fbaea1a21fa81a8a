"""Row ids of what a commit adds. Specification: "Writer Requirements for Row Tracking"."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from delta_values import make_config, make_files, make_metadata, make_stats, removal_of

from alluvium.delta.description.upgrade import ProtocolRequest, configure
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.rows.row_ids import (
    DOMAIN,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    assign,
    high_water_mark,
    is_enabled,
    name_columns,
)
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.terms.spec import DomainMetadata, Protocol
from alluvium.errors import CorruptTable, InvalidRequest

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking", "domainMetadata"))
ENABLED = {"delta.enableRowTracking": "true"}
#: `make_stats` says two rows.
STATS = make_stats(0, 1)


def config_of(**properties: str) -> TableConfig:
    return make_config(properties=properties, protocol=LISTED)


def mark_of(number: object) -> DomainMetadata:
    return DomainMetadata(
        domain=DOMAIN, configuration=f'{{"rowIdHighWaterMark":{number},"domainName":"{DOMAIN}"}}', removed=False
    )


def context(files: pa.Table | None = None, mark: int | None = None, **properties: str) -> CommitContext:
    config = config_of(**properties)
    domains = {} if mark is None else {DOMAIN: mark_of(mark)}
    live = make_files() if files is None else files
    return CommitContext(config, config, version=7, pick_files=picking_from(live), domains=domains)


def ids(actions: Actions) -> dict[str, tuple[int, int]]:
    rows = actions.added.select(["path", "baseRowId", "defaultRowCommitVersion"]).to_pylist()
    return {row["path"]: (row["baseRowId"], row["defaultRowCommitVersion"]) for row in rows}


def test_one_row_moves_the_mark_too() -> None:
    """The smallest number there is: an id that was given is never given again."""
    one = make_files({"path": "a", "stats": '{"numRecords":1}'})
    made = assign(Actions(added=one), context(mark=10))
    assert (ids(made), made.domains) == ({"a": (11, 7)}, (mark_of(11),))
    none = make_files({"path": "a", "stats": '{"numRecords":0}'})
    assert assign(Actions(added=none), context(mark=10)).domains == ()


def test_fresh_ids_lie_above_the_mark_and_move_it() -> None:
    """ "Writers must set the `baseRowId` field to a value that is higher than the row id high water mark."; "Writers
    must set the `defaultRowCommitVersion` field in new `add` actions to the version number of the log enty" """
    added = make_files({"path": "a", "stats": STATS}, {"path": "b", "stats": STATS})
    made = assign(Actions(added=added), context(mark=10))
    assert ids(made) == {"a": (11, 7), "b": (13, 7)}
    assert made.domains == (mark_of(14),)
    assert made.info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_the_first_row_has_the_id_zero() -> None:
    made = assign(Actions(added=make_files({"path": "a", "stats": STATS})), context())
    assert ids(made) == {"a": (0, 7)}
    assert high_water_mark({d.domain: d for d in made.domains}) == 1


def test_one_row_moves_the_mark_by_one() -> None:
    one = '{"numRecords":1}'
    made = assign(Actions(added=make_files({"path": "a", "stats": one})), context(mark=10))
    assert (ids(made), made.domains) == ({"a": (11, 7)}, (mark_of(11),))
    again = assign(Actions(added=make_files({"path": "b", "stats": one})), context(mark=11))
    assert (ids(again), again.domains) == ({"b": (12, 7)}, (mark_of(12),))


def test_a_file_that_is_committed_again_under_another_spelling_keeps_its_ids() -> None:
    live = make_files({"path": "p=%C3%A9/f", "stats": STATS, "baseRowId": 3, "defaultRowCommitVersion": 2})
    made = assign(Actions(added=make_files({"path": "p=é/f", "stats": STATS})), context(live, mark=10))
    assert (ids(made), made.domains) == ({"p=é/f": (3, 2)}, ())


def test_a_file_that_goes_is_not_numbered_under_another_spelling() -> None:
    live = make_files({"path": "p=%C3%A9/f", "stats": STATS})
    gone = removal_of(make_files({"path": "p=é/f"}))
    made = assign(Actions(removed=gone), context(live, mark=10, **ENABLED))
    assert made.added.num_rows == 0


def test_a_file_that_is_committed_again_keeps_its_ids() -> None:
    """ "Writers must set the `baseRowId` field in recommitted and checkpointed `add` actions [...] to the `baseRowId`
    value (if present) of the last committed `add` action with the same `path`." """
    live = make_files({"path": "a", "baseRowId": 3, "defaultRowCommitVersion": 2}, {"path": "z", "baseRowId": 9})
    added = make_files({"path": "a", "stats": STATS}, {"path": "b", "stats": STATS})
    made = assign(Actions(added=added), context(live, mark=20))
    assert ids(made) == {"a": (3, 2), "b": (21, 7)}
    assert made.domains == (mark_of(22),)


def test_given_ids_stay() -> None:
    """A restored file brings its own: "its stable Row ID is restored as well"."""
    added = make_files({"path": "a", "baseRowId": 3, "defaultRowCommitVersion": 2})
    made = assign(Actions(added=added), context(mark=20))
    assert (ids(made), made.domains) == ({"a": (3, 2)}, ())


@pytest.mark.parametrize("config", [make_config(), config_of(**{"delta.rowTrackingSuspended": "true"})])
def test_where_nothing_is_assigned(config: TableConfig) -> None:
    """ "when Row Tracking is supported but suspended [...], writers should not assign the `baseRowId`" """
    actions = Actions(added=make_files({"path": "a", "stats": STATS}))
    assert assign(actions, CommitContext(config)) is actions


def test_files_of_before_get_ids_when_it_is_enabled() -> None:
    """ "all files that are part of the table version that sets the table property `delta.enableRowTracking` to `true`
    must have `baseRowId` set." """
    live = make_files(
        {"path": "old", "stats": STATS}, {"path": "gone", "stats": STATS},
        {"path": "numbered", "stats": STATS, "baseRowId": 0, "defaultRowCommitVersion": 1},
    )  # fmt: skip
    removed = removal_of(live.filter(pa.array([False, True, False])))
    made = assign(Actions(removed=removed), context(live, mark=1, **ENABLED))
    assert ids(made) == {"old": (2, 7)}
    assert made.added.column("dataChange").to_pylist() == [False]
    assert assign(Actions(removed=removed), context(live, mark=1)).added.num_rows == 0


def test_a_file_that_does_not_say_how_many_rows_it_has() -> None:
    with pytest.raises(CorruptTable) as caught:
        assign(Actions(added=make_files({"path": "a"})), context())
    assert (caught.value.code, caught.value.path) == ("no-num-records", "a")


@pytest.mark.parametrize("configuration", ["", "{}", "[]", '{"rowIdHighWaterMark":"1"}', '{"rowIdHighWaterMark":1.5}'])
def test_a_damaged_mark(configuration: str) -> None:
    domain = DomainMetadata(domain=DOMAIN, configuration=configuration, removed=False)
    with pytest.raises(CorruptTable) as caught:
        high_water_mark({DOMAIN: domain})
    assert caught.value.code == "invalid-row-tracking"


def test_the_columns_for_materialised_values_are_named_once() -> None:
    """ "The assigned column names must be unique. [...] must remain unique in all future versions of the table." """
    first = name_columns(make_metadata(properties=ENABLED), None)
    names = {first.configuration[key] for key in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)}
    assert len(names) == 2
    before = config_of(**first.configuration)
    assert is_enabled(before)
    again = msgspec.structs.replace(first, configuration=dict(ENABLED))
    assert name_columns(again, before) == first
    other = name_columns(make_metadata(properties=ENABLED), None)
    assert other.configuration[MATERIALIZED_ROW_ID] not in names


def test_they_are_named_where_the_feature_is_supported_and_nowhere_else() -> None:
    supported = configure(make_metadata(), None, ProtocolRequest(features=("rowTracking",)))
    assert set(supported.metadata.configuration) == {MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION}
    assert configure(make_metadata(), None).metadata.configuration == {}


def test_enabled_and_suspended_exclude_each_other() -> None:
    """ "writers should also verify table property `delta.rowTrackingSuspended` is absent or set to false" """
    with pytest.raises(InvalidRequest) as caught:
        name_columns(make_metadata(properties={**ENABLED, "delta.rowTrackingSuspended": "true"}), None)
    assert caught.value.code == "contradicting-options"
