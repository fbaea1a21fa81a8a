"""identityColumns: columns of numbers that the table makes up, none of them twice.

Specification: "Identity Columns". The job makes the numbers (`plan.write.Numbered`), starting behind the high-water
mark of the version that it was planned on; the commit moves the mark to the furthest number that was written. Two
writers that both make numbers would make the same: the second conflicts (`conflicts.metadata_changed`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.features.feature import CommitContext, Feature, ScanContext, is_supported_for_writers
from alluvium.delta.terms.actions import Actions, with_tags
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import Numbered, WritePlan
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import LONG, Field, JsonValue, Struct
from alluvium.schema.walk import drop_metadata, fields_within

PREFIX = "delta.identity."
START = "delta.identity.start"
STEP = "delta.identity.step"
HIGH_WATER_MARK = "delta.identity.highWaterMark"
ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"
#: By which the reference knows that a metaData action does not concern anybody else.
COMMIT_TAG = "delta.identity.schemaUpdate"

_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a column's metadata says of its numbers."""

    column: str
    start: int
    step: int
    high_water_mark: int | None
    allow_explicit_insert: bool

    @property
    def first(self) -> int:
        """The first number that may be made now; perhaps beyond 64 bits.

        "The new value should satisfy `value = start + k * step` where k is a non-negative integer." "When
        `delta.identity.step` is positive (negative), the new value should be the greater (smaller) than
        `delta.identity.highWaterMark`."
        """
        if self.high_water_mark is None:
            return self.start
        return self.start + max((self.high_water_mark - self.start) // self.step + 1, 0) * self.step


def identities(schema: Struct) -> tuple[Identity, ...]:
    """The schema's identity columns.

    Raises:
        CorruptTable: Their metadata is damaged (code `"invalid-identity"`).
    """
    for path, f in fields_within(schema):
        if len(path) > 1 and _is_identity(f):
            raise _invalid(".".join(path), "only columns at the top level can be identity columns")
    return tuple(_identity(f) for f in schema.fields if _is_identity(f))


def _is_identity(f: Field) -> bool:
    return any(key.startswith(PREFIX) for key in f.metadata)


def _identity(f: Field) -> Identity:
    if f.type != LONG:
        raise _invalid(f.name, f"its type is {f.type}, not bigint")
    start, step = _long(f, START), _long(f, STEP)
    mark = _long(f, HIGH_WATER_MARK) if f.metadata.get(HIGH_WATER_MARK) is not None else None
    # "Increment to the next Identity value. This is a long type value. It cannot be set to 0."
    if step == 0:
        raise _invalid(f.name, f"{STEP} is 0")
    allowed = f.metadata.get(ALLOW_EXPLICIT_INSERT)
    if not isinstance(allowed, bool):
        raise _invalid(f.name, f"{ALLOW_EXPLICIT_INSERT} is not true or false")
    return Identity(f.name, start, step, mark, allowed)


def _long(f: Field, key: str) -> int:
    value = f.metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT64:
        raise _invalid(f.name, f"{key} is {str(value)[:50]}, not a 64-bit integer")
    return value


def _invalid(column: str, problem: str) -> CorruptTable:
    return CorruptTable(f"the identity column {column!r} is damaged: {problem}", code="invalid-identity", column=column)


def is_used(config: TableConfig) -> bool:
    """ "the `metadata` for a column in the table schema MAY contain the following keys for Identity Column
    properties"
    """
    return any(_is_identity(f) for _, f in fields_within(config.schema))


def number(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "When `delta.identity.allowExplicitInsert` is false [...] Users should not be allowed to provide their own
    values for Identity columns."

    Raises:
        InvalidRequest: There is no number left: "Overflow when calculating generated Identity values should be detected
            and such writes should not be allowed."
    """
    if not is_supported_for_writers(FEATURE, config.protocol):
        return plan
    numbered = []
    for identity in identities(config.schema):
        if identity.column in config.partition_columns:
            raise _invalid(identity.column, "a table cannot be partitioned by it")
        if identity.first not in _INT64:
            raise InvalidRequest(
                f"the identity column {identity.column!r} has used up its 64 bits",
                code="numbers-exhausted",
                column=identity.column,
            )
        numbered.append(Numbered(identity.column, identity.first, identity.step, identity.allow_explicit_insert))
    return replace(plan, numbered=plan.numbered + tuple(numbered))


def with_moved_marks(config: TableConfig, reached: Mapping[str, int]) -> TableConfig:
    """The configuration after a commit whose job made numbers.

    "`delta.identity.highWaterMark` should be updated to the new highest value when the write operation commits."

    Args:
        config: The table.
        reached: The furthest number that the job wrote, by column.
    """
    moved = {i.column: reached[i.column] for i in identities(config.schema) if i.column in reached} if reached else {}
    if not moved:
        return config
    schema = Struct(tuple(_moved(f, moved[f.name]) if f.name in moved else f for f in config.schema.fields))
    metadata = msgspec.structs.replace(config.metadata, schema_string=format_schema(schema))
    return parse_config(config.protocol, metadata)


def _moved(f: Field, mark: int) -> Field:
    metadata: dict[str, JsonValue] = {**f.metadata, HIGH_WATER_MARK: mark}
    return replace(f, metadata=metadata)


def mark_behind(identity: Identity, furthest: int) -> int | None:
    """Where the mark of a column goes that holds a number which is furthest in the direction of its steps; None: it
    stays. It never goes back: a number that was made once may stand somewhere else.

    The mark is a number that the column could have made: a number between two of them moves it to the next.
    """
    forward = 1 if identity.step > 0 else -1
    rounded = identity.start - (identity.start - furthest) // identity.step * identity.step
    before = identity.high_water_mark
    if before is not None and (before - identity.start) * forward < 0:
        # A mark before the start is a mistake of whoever made it, which any other mends.
        return max(before * forward, rounded * forward) * forward
    if (furthest - identity.start) * forward < 0:
        return None
    if before is not None and (before - rounded) * forward >= 0:
        return None
    return rounded


def with_furthest_marks(restored: str, current: str) -> str:
    """A restored schema string whose identity columns go on from where they are: numbers are never made twice."""
    now = {i.column: i for i in identities(parse_schema(current))}
    then = parse_schema(restored)
    moved = {}
    for identity in identities(then):
        known = now.get(identity.column)
        marks = [i.high_water_mark for i in (identity, known) if i is not None and i.high_water_mark is not None]
        if marks:
            moved[identity.column] = max(marks) if identity.step > 0 else min(marks)
    if not moved:
        return restored
    return format_schema(Struct(tuple(_moved(f, moved[f.name]) if f.name in moved else f for f in then.fields)))


def differ_only_in_marks(before: Metadata, after: Metadata) -> bool:
    """Whether a metaData action does nothing but move high-water marks: it then concerns only those who move them."""
    same = msgspec.structs.replace(after, schema_string=before.schema_string) == before
    return same and _without_marks(before.schema_string) == _without_marks(after.schema_string)


def _without_marks(schema_string: str) -> Struct:
    return drop_metadata(parse_schema(schema_string), lambda key: key == HIGH_WATER_MARK)


def tag(actions: Actions, context: CommitContext) -> Actions:
    """Says of a commit that it moves marks and changes nothing else: the reference looks for that in a winner's
    commit, to know whether its own may follow.
    """
    if context.before is None or actions.metadata is None or actions.metadata == context.before.metadata:
        return actions
    moves = differ_only_in_marks(context.before.metadata, actions.metadata)
    return with_tags(actions, {COMMIT_TAG: "true"}) if moves else actions


def on_scan(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """Keeps the numbering from those who read: a copy of the column has none."""
    if not is_used(context.config):
        return plan
    return replace(plan, schema=drop_metadata(plan.schema, lambda key: key.startswith(PREFIX)))


def ensure_not_set(schema: Struct, columns: Collection[str], *, is_insert: bool = False) -> None:
    """Raises where an identity column would be set whose numbers only the table may make.

    "When `delta.identity.allowExplicitInsert` is false [...] Users should not be allowed to provide their own values
    for Identity columns." In rows that are there nobody may change them, as in the reference.

    Raises:
        InvalidRequest: `"numbers-given"`.
    """
    for identity in identities(schema):
        if identity.column in columns and not (is_insert and identity.allow_explicit_insert):
            verb = "given" if is_insert else "changed"
            raise InvalidRequest(
                f"the numbers of the identity column {identity.column!r} cannot be {verb}",
                code="numbers-given",
                column=identity.column,
            )


FEATURE = Feature(
    name="identityColumns",
    reader=False,
    spec="Identity Columns",
    legacy_writer=6,
    is_used=is_used,
    on_scan=on_scan,
    on_write=number,
    on_commit=tag,
)
