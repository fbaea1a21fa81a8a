"""The marks of identity columns: where they go, beside the numbers that a column makes one by one; and who may set numbers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from delta_values import make_config, make_files, make_metadata
from msgspec import structs

from alluvium.delta.features.columns.identity_columns import (
    Identity,
    differ_only_in_marks,
    ensure_not_set,
    identities,
    mark_behind,
    number,
    tag,
    with_furthest_marks,
    with_moved_marks,
)
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.write import Numbered
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import INTEGER, LONG, Array, Field, Struct

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("identityColumns",))


def column(
    name: str = "n", start: int = 1, step: int = 1, mark: int | None = None, *, explicit: bool = False, **more: Any
) -> Field:
    said = {"delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": explicit}
    if mark is not None:
        said["delta.identity.highWaterMark"] = mark
    return Field(name, LONG, True, {**said, **more})


def text_of(*fields: Field) -> str:
    return format_schema(Struct(fields))


def marks(schema_string: str) -> dict[str, int | None]:
    return {one.column: one.high_water_mark for one in identities(parse_schema(schema_string))}


def moved_by_hand(start: int, step: int, mark: int | None, furthest: int) -> int | None:
    """The first number of the sequence that no number of the rows lies behind; None: the mark stays."""
    sequence = [start + k * step for k in range(-60, 61)]
    covers = [made for made in sequence if (made - furthest) * step >= 0]
    wanted = min(covers, key=lambda made: abs(made - furthest))
    if mark is not None and (mark - start) * step < 0:
        # A mark that the column could never have made is mended by any other that is further.
        return max(mark, wanted) if step > 0 else min(mark, wanted)
    if (furthest - start) * step < 0:
        return None
    return wanted if mark is None or (wanted - mark) * step > 0 else None


@pytest.mark.parametrize("seed", range(12))
def test_where_marks_go_beside_the_sequence(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(150):
        start, step = lot.randint(-20, 20), lot.choice([-7, -3, -1, 1, 2, 5])
        mark = lot.choice([None, start + step * lot.randint(-3, 8), lot.randint(-40, 40)])
        furthest = lot.choice([start, start + step * lot.randint(-3, 9), lot.randint(-45, 45)])
        found = mark_behind(Identity("n", start, step, mark, False), furthest)
        assert found == moved_by_hand(start, step, mark, furthest), (start, step, mark, furthest)


@pytest.mark.parametrize("step", [1, -1, 3])
@pytest.mark.parametrize(("then", "now"), [*itertools.product([None, -9, 0, 9], repeat=2)])
def test_a_version_that_comes_back_goes_on_from_the_furthest_mark(step: int, then: int | None, now: int | None) -> None:
    restored, current = (text_of(column(step=step, mark=mark), Field("x", LONG)) for mark in (then, now))
    known = [mark for mark in (then, now) if mark is not None]
    found = with_furthest_marks(restored, current)
    assert marks(found) == {"n": (max if step > 0 else min)(known) if known else None}
    if not known:
        assert found is restored
    # A column that the table has no more, or not yet, keeps what it has.
    assert marks(with_furthest_marks(restored, text_of(Field("x", LONG)))) == {"n": then}
    assert with_furthest_marks(text_of(Field("x", LONG)), current) == text_of(Field("x", LONG))
    both = with_furthest_marks(text_of(column("m", step=step), column(step=step, mark=then)), current)
    assert marks(both) == {"m": None, "n": marks(found)["n"]}


def test_only_columns_that_made_numbers_move() -> None:
    schema = Struct((column("a", mark=3), column("b", mark=5, comment="c"), Field("x", LONG)))
    config = make_config(schema, properties={"k": "v"}, protocol=LISTED)
    moved = with_moved_marks(config, {"b": 9, "x": 4, "gone": 1})
    assert marks(moved.metadata.schema_string) == {"a": 3, "b": 9}
    assert moved.schema.fields[1].metadata["comment"] == "c" and moved.schema.fields[2] == schema.fields[2]
    assert (moved.protocol, moved.metadata.configuration) == (LISTED, {"k": "v"})
    assert with_moved_marks(config, {"x": 4}) is config


def test_numbers_of_several_columns() -> None:
    schema = Struct((column("a", 5, 10, explicit=True), Field("x", LONG), column("b", 0, -2, -4)))
    plan = plan_write(make_config(schema, protocol=LISTED), "memory://t")
    assert plan.numbered == (Numbered("a", 5, 10, accepts_data=True), Numbered("b", -6, -2, accepts_data=False))
    again = number(plan, make_config(schema, protocol=LISTED))
    assert again.numbered == plan.numbered * 2


@pytest.mark.parametrize(
    ("step", "mark", "left"),
    [
        (1, 2**63 - 2, True),
        (1, 2**63 - 1, False),
        (-1, -(2**63) + 1, True),
        (-1, -(2**63), False),
        (2, 2**63 - 2, False),
    ],
)
def test_the_last_number(step: int, mark: int, left: bool) -> None:
    config = make_config(Struct((column(start=0, step=step, mark=mark), Field("x", LONG))), protocol=LISTED)
    if left:
        assert plan_write(config, "memory://t").numbered == (Numbered("n", mark + step, step, accepts_data=False),)
        return
    with pytest.raises(InvalidRequest) as caught:
        plan_write(config, "memory://t")
    assert caught.value.code == "numbers-exhausted"


@pytest.mark.parametrize("is_insert", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
def test_who_may_set_numbers(is_insert: bool, explicit: bool) -> None:
    """In rows that are there nobody may, in new ones who is allowed to."""
    schema = Struct((column("a", explicit=explicit), Field("x", LONG), column("b", explicit=explicit)))
    ensure_not_set(schema, ["x"], is_insert=is_insert)
    ensure_not_set(schema, [], is_insert=is_insert)
    if is_insert and explicit:
        ensure_not_set(schema, ["x", "b", "a"], is_insert=is_insert)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_not_set(schema, ["x", "b"], is_insert=is_insert)
    assert (caught.value.code, caught.value.column) == ("numbers-given", "b")
    assert ("cannot be given" if is_insert else "cannot be changed") in caught.value.message
    if not is_insert:
        with pytest.raises(InvalidRequest):
            ensure_not_set(schema, ["a"])


def test_changes_of_marks_alone() -> None:
    before = make_metadata(Struct((column(mark=3), Field("x", LONG))))
    others = (
        Struct((column(mark=3), Field("x", INTEGER))), Struct((column(step=2, mark=9), Field("x", LONG))), Struct((column(mark=9),)),
        Struct((column(mark=9), Field("x", LONG, True, {"comment": "c"}))),
    )  # fmt: skip
    for mark in (None, 3, 9):
        after = structs.replace(before, schema_string=text_of(column(mark=mark), Field("x", LONG)))
        assert differ_only_in_marks(before, after)
        assert not differ_only_in_marks(before, structs.replace(after, name="other"))
        assert not differ_only_in_marks(before, structs.replace(after, configuration={"k": "v"}))
    for schema in others:
        assert not differ_only_in_marks(before, structs.replace(before, schema_string=format_schema(schema)))


def test_commits_that_move_marks_say_so() -> None:
    config = make_config(Struct((column(mark=3), Field("x", LONG))), protocol=LISTED)
    moved, other = with_moved_marks(config, {"n": 9}), make_config(Struct((column(mark=9),)), protocol=LISTED)
    tags = {"tags": {"delta.identity.schemaUpdate": "true"}}
    for actions, before, expected in (
        (Actions(metadata=moved.metadata), config, tags), (Actions(metadata=moved.metadata), None, {}), (Actions(metadata=config.metadata), config, {}),
        (Actions(metadata=other.metadata), config, {}), (Actions(added=make_files({"path": "a"})), config, {}),
        (Actions(metadata=moved.metadata, info={"tags": {"k": "v"}}), config, {"tags": {"k": "v", "delta.identity.schemaUpdate": "true"}}),
    ):  # fmt: skip
        found = tag(actions, CommitContext(moved, before, version=4))
        assert dict(found.info) == expected
        assert found is actions or expected != {}


def test_what_is_damaged_is_said() -> None:
    whole = column()
    for metadata, words in (
        ({"delta.identity.start": 2**63}, "delta.identity.start is 9223372036854775808, not a 64-bit integer"), ({"delta.identity.step": 0}, "delta.identity.step is 0"),
        ({"delta.identity.step": "x" * 99}, f"is {'x' * 50}, not"), ({"delta.identity.allowExplicitInsert": None}, "is not true or false"),
        ({"delta.identity.start": False}, "delta.identity.start is False"), ({"delta.identity.highWaterMark": 1.0}, "delta.identity.highWaterMark is 1.0"),
    ):  # fmt: skip
        with pytest.raises(CorruptTable) as caught:
            identities(Struct((Field("n", LONG, True, {**whole.metadata, **metadata}),)))
        assert (caught.value.code, caught.value.column) == ("invalid-identity", "n") and words in caught.value.message
    for least_and_most in (-(2**63), 2**63 - 1):
        (found,) = identities(Struct((column(start=least_and_most, mark=least_and_most),)))
        assert (found.start, found.high_water_mark) == (least_and_most, least_and_most)
    with pytest.raises(CorruptTable) as caught:
        identities(Struct((Field("l", Array(Struct((column(),)))),)))
    assert caught.value.column == "l.element.n"
