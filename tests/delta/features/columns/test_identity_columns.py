"""identityColumns. Specification: "Identity Columns"."""

from __future__ import annotations

import pytest
from delta_values import make_config, make_draft, make_files
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.commit.assemble import assemble
from alluvium.delta.commit.conflicts import Contest, Winner, conflicts
from alluvium.delta.features.columns.identity_columns import (
    FEATURE,
    Identity,
    differ_only_in_marks,
    identities,
    is_used,
    with_furthest_marks,
    with_moved_marks,
)
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.registry import WRITE_PASSES, ensure_writable
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.write import Numbered
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import INTEGER, LONG, Array, DataType, Field, JsonValue, Struct

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("identityColumns",))
LEGACY = Protocol(min_reader_version=1, min_writer_version=6)


def identity(start: int = 1, step: int = 1, explicit: bool = False, **more: JsonValue) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    }
    return found | {f"delta.identity.{key}": value for key, value in more.items()}


def schema(metadata: dict[str, JsonValue], data_type: DataType = LONG) -> Struct:
    return Struct((Field("n", data_type, True, metadata), Field("x", LONG)))


@pytest.mark.parametrize("protocol", [LEGACY, LISTED])
@pytest.mark.parametrize("explicit", [False, True])
def test_the_job_numbers_the_column(protocol: Protocol, explicit: bool):
    """ "To support Identity Columns: The table must be on Writer Version 6, or the table must be on Writer Version 7, and
    a feature name `identityColumns` must exist in the table `protocol`'s `writerFeatures`."

    "When `delta.identity.allowExplicitInsert` is true [...] Users should be allowed to provide their own values for
    Identity columns. When `delta.identity.allowExplicitInsert` is false [...] Users should not be allowed".
    """
    config = make_config(schema(identity(10, 3, explicit)), protocol=protocol)
    ensure_writable(config)
    assert is_used(config)
    assert FEATURE.on_write in WRITE_PASSES
    assert plan_write(config, "memory://t").numbered == (Numbered("n", 10, 3, accepts_data=explicit),)


def test_without_the_feature_the_keys_mean_nothing():
    for protocol in (
        Protocol(min_reader_version=1, min_writer_version=5),
        Protocol(min_reader_version=1, min_writer_version=7, writer_features=()),
    ):
        assert plan_write(make_config(schema(identity()), protocol=protocol), "memory://t").numbered == ()


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [
        (1, 1, None, 1), (1, 1, 1, 2), (10, 3, 43, 46), (10, 3, 44, 46), (10, 3, 45, 46), (-5, -2, -5, -7),
        (-5, -2, -6, -7), (5, 10, 0, 5), (5, 10, -100, 5), (-5, -2, 100, -5), (0, -1, 0, -1), (1, 1, 2**63 - 1, 2**63),
    ],
)  # fmt: skip
def test_the_first_number_lies_behind_the_mark(start: int, step: int, mark: int | None, first: int):
    assert Identity("n", start, step, mark, False).first == first


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-1000, 1000).filter(bool), st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_of_the_sequence_and_beyond_the_mark(start: int, step: int, mark: int):
    """ "The new value should satisfy `value = start + k * step` where k is a non-negative integer." "When
    `delta.identity.step` is positive (negative), the new value should be the greater (smaller) than
    `delta.identity.highWaterMark`."
    """
    first = Identity("n", start, step, mark, False).first
    k, rest = divmod(first - start, step)
    assert rest == 0
    assert k >= 0
    assert first > mark if step > 0 else first < mark
    # The nearest such number.
    assert k == 0 or (first - step <= mark if step > 0 else first - step >= mark)


def test_overflow_is_detected():
    """ "Overflow when calculating generated Identity values should be detected and such writes should not be
    allowed."
    """
    config = make_config(schema(identity(1, 1, highWaterMark=2**63 - 1)), protocol=LISTED)
    with pytest.raises(InvalidRequest) as caught:
        plan_write(config, "memory://t")
    assert (caught.value.code, caught.value.column) == ("numbers-exhausted", "n")


@pytest.mark.parametrize(
    "metadata",
    [
        identity(step=0),
        identity(highWaterMark="7"),
        identity(highWaterMark=2**63),
        identity(highWaterMark=True),
        {"delta.identity.start": 1},
        {"delta.identity.start": 1, "delta.identity.step": 1},
        {"delta.identity.step": 1, "delta.identity.allowExplicitInsert": True},
        identity() | {"delta.identity.start": 1.5},
        identity() | {"delta.identity.allowExplicitInsert": "true"},
    ],
)
def test_damaged_metadata_is_reported(metadata: dict[str, JsonValue]):
    """ "Increment to the next Identity value. This is a long type value. It cannot be set to 0." """
    with pytest.raises(CorruptTable) as caught:
        identities(schema(metadata))
    assert (caught.value.code, caught.value.column) == ("invalid-identity", "n")


def test_only_long_columns_at_the_top_that_do_not_partition():
    with pytest.raises(CorruptTable, match="int"):
        identities(schema(identity(), INTEGER))
    with pytest.raises(CorruptTable, match="top level"):
        identities(Struct((Field("a", Array(schema(identity()))),)))
    with pytest.raises(CorruptTable, match="partitioned"):
        plan_write(make_config(schema(identity()), ["n"], protocol=LISTED), "memory://t")


def test_the_mark_moves_with_the_commit():
    """ "`delta.identity.highWaterMark` should be updated to the new highest value when the write operation commits." """
    config = make_config(schema(identity(10, 3)), protocol=LISTED, properties={"k": "v"})
    moved = with_moved_marks(config, {"n": 43})
    assert moved.schema.fields[0].metadata == identity(10, 3, highWaterMark=43)
    assert moved.schema.fields[1] == config.schema.fields[1]
    assert moved.metadata.configuration == {"k": "v"}
    assert with_moved_marks(config, {}) is config
    assert with_moved_marks(config, {"x": 3}) is config
    assert differ_only_in_marks(config.metadata, moved.metadata)
    renamed = make_config(schema(identity(10, 3, highWaterMark=43)), protocol=LISTED)
    assert not differ_only_in_marks(config.metadata, renamed.metadata)


def contest(ours: Actions, theirs: Actions) -> tuple[str, ...]:
    config = make_config(schema(identity()), protocol=LISTED)
    found = conflicts(Contest(make_draft(ours), config, picking_from(make_files()), Winner(1, theirs)))
    return tuple(conflict.rule for conflict in found)


def test_two_writers_that_make_numbers_conflict_and_others_do_not():
    """ "The new value does not already exist in the column.": both made the same."""
    config = make_config(schema(identity()), protocol=LISTED)
    moved = Actions(metadata=with_moved_marks(config, {"n": 5}).metadata, added=make_files({"path": "a"}))
    plain = Actions(added=make_files({"path": "b"}))
    other = Actions(metadata=make_config(schema(identity()), properties={"k": "v"}, protocol=LISTED).metadata)
    assert contest(moved, moved) == ("metadata-changed",)
    assert contest(plain, moved) == ()
    assert contest(moved, plain) == ()
    assert contest(plain, other) == ("metadata-changed",)


def test_the_commit_is_tagged_for_the_reference():
    config = make_config(schema(identity()), protocol=LISTED)
    after = with_moved_marks(config, {"n": 5})
    moved, on_table = make_draft(Actions(metadata=after.metadata)), CommitContext(after, config, version=4)
    assert b'"tags":{"delta.identity.schemaUpdate":"true"}' in assemble(moved, on_table).data
    assert b"tags" not in assemble(make_draft(Actions()), on_table).data
    # The commit that makes the table does more.
    assert b"tags" not in assemble(moved, CommitContext(after)).data


@pytest.mark.parametrize(
    ("step", "then", "now", "mark"), [(1, 5, 9, 9), (1, 9, 5, 9), (-1, -5, -9, -9), (1, None, 4, 4)]
)
def test_a_restored_column_goes_on_where_it_is(step: int, then: int | None, now: int, mark: int) -> None:
    """Numbers are never made twice, whichever version comes back."""
    marks = [{} if m is None else {"highWaterMark": m} for m in (then, now)]
    restored, current = (format_schema(schema(identity(step=step, **m))) for m in marks)
    (found,) = identities(parse_schema(with_furthest_marks(restored, current)))
    assert found.high_water_mark == mark
