"""What a commit may do to a table that is streamed: each kind of commit with each option, and schemas of other versions."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_config
from mapped_table import features, mapped

from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges
from alluvium.delta.streams.checks import ensure_allowed, ensure_fits, is_left_out
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import CommitInfo, Protocol
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct


def commit(added: int, removed: int, info: CommitInfo | None = None) -> CommitChanges:
    def files(kind: str, count: int) -> pa.Table:
        return pa.Table.from_pylist([{"path": f"{kind}{n}", "version": 4} for n in range(count)], CHANGED_FILES)

    return CommitChanges(4, files("a", added), files("r", removed), files("c", 0), None, None, info)


FLAGS = ("ignore_deletes", "ignore_changes", "skip_changes", "changes")


@pytest.mark.parametrize("flags", [*itertools.product([False, True], repeat=4)], ids=str)
@pytest.mark.parametrize(("added", "removed"), [(0, 0), (2, 0), (0, 2), (1, 2)])
def test_commits_that_remove(added: int, removed: int, flags: tuple[bool, ...]) -> None:
    options = StreamOptions(**dict(zip(FLAGS, flags, strict=True)))  # type: ignore[arg-type]
    ignore_deletes, ignore_changes, skip_changes, changes = flags
    one = commit(added, removed)
    assert is_left_out(one, options) == (skip_changes and not changes and removed > 0)
    code = None
    if removed and not (changes or skip_changes or ignore_changes):
        code = "stream-source-changed" if added else None if ignore_deletes else "stream-source-deleted"
    if code is None:
        ensure_allowed(one, options)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_allowed(one, options)
    assert (caught.value.code, caught.value.version, caught.value.path) == (code, 4, "r0")
    assert ("and 1 more" in str(caught.value)) == (code == "stream-source-changed") and "a commit" in str(caught.value)


def test_the_operation_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        ensure_allowed(commit(0, 1, CommitInfo({"operation": "DELETE"})), StreamOptions())
    assert "DELETE" in str(caught.value)


def test_versions_by_number_are_left_out() -> None:
    for ranges, left_out in ((((4, 4),), True), (((1, 3), (5, 9)), False), (((0, 9),), True)):
        assert is_left_out(commit(1, 0), StreamOptions(skip_versions=ranges)) == left_out


# -- columns of other versions ----------------------------------------------------------------------------------------

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
BOTH = features("columnMapping", "typeWidening")
A, B = Field("a", t.INTEGER), Field("b", t.STRING)


def plain(*fields: Field, protocol: Protocol = LEGACY, partition_by: tuple[str, ...] = (), **given: Any) -> TableConfig:
    return make_config(Struct(fields), partition_by, given.get("properties"), protocol)


def named(*columns: tuple[str, str, t.DataType]) -> TableConfig:
    fields = tuple(mapped(name, kind, physical, n + 1) for n, (name, physical, kind) in enumerate(columns))
    return make_config(Struct(fields), (), MAPPED, BOTH)


WIDENS = features("typeWidening")
X, Y, Y2 = ("x", "p1", t.INTEGER), ("y", "p2", t.STRING), ("yy", "p2", t.STRING)


@pytest.mark.parametrize(
    ("config", "shown", "code", "column"),
    [
        (plain(A), plain(A, B), None, None), (plain(A, B), plain(A), "stream-schema-changed", "b"),
        (plain(Field("a", t.INTEGER, False)), plain(A), None, None),
        # A stream's columns may always be null.
        (plain(A), plain(Field("a", t.INTEGER, False)), None, None),
        (plain(Field("a", t.SHORT)), plain(A), "stream-schema-changed", "a"),
        (plain(Field("a", t.SHORT)), plain(A, protocol=WIDENS), None, None),
        (plain(Field("a", t.SHORT), protocol=WIDENS), plain(A), "stream-schema-changed", "a"),
        (plain(Field("a", t.LONG)), plain(A, protocol=WIDENS), "stream-schema-changed", "a"),
        (plain(A, B, partition_by=("a",)), plain(A, B), "stream-schema-changed", None),
        (named(X), named(X, Y), "dropped or added", "y"), (named(X, Y), named(X, Y2), "stream-columns-remapped", "y"),
        (named(X, Y), named(X), "remapped or changed", "y"), (named(X, ("y", "p3", t.STRING)), named(X, Y), "stream-columns-remapped", "y"),
        (named(X, ("y", "p2", t.LONG)), named(X, Y), "stream-schema-changed", "y"),
        # From no mapping to one: columns keep their names.
        (plain(Field("y", t.STRING)), named(("y", "y", t.STRING)), None, None),
        (plain(Field("y", t.STRING)), named(("z", "y", t.STRING)), "stream-columns-remapped", "y"),
        (named(("z", "y", t.STRING)), plain(Field("y", t.STRING)), "stream-columns-remapped", "z"),
        # And a column that is new is no other one.
        (named(X, ("y", "y", t.STRING)), plain(Field("y", t.STRING)), "remapped or changed", "x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [2, 9])
def test_columns_that_the_stream_cannot_show(
    config: TableConfig, shown: TableConfig, code: str | None, column: str | None, version: int
) -> None:
    if code == "remapped or changed":
        # A column that only the version has was dropped since, if that is older, else it is new.
        code = "stream-columns-remapped" if version == 2 else "stream-schema-changed"
    if code == "dropped or added":
        # And one that only the stream has was added, or is dropped: as in delta-spark, no nulls stand for it then.
        code = None if version == 2 else "stream-columns-remapped"

    def check(**options: Any) -> None:
        ensure_fits(config.protocol, config.metadata, version, shown, 5, StreamOptions(**options))

    if code is None:
        check()
        return
    with pytest.raises(InvalidRequest) as caught:
        check(starting_version=1)
    error = caught.value
    assert (error.code, error.version, error.column) == (code, version, column)
    if code == "stream-schema-changed":
        assert "told where to start" in str(error)
    if code == "stream-schema-changed" and column is not None:
        assert ("not one of the stream's" in str(error)) == (version > 5)
        assert ("goes on with the new columns" in (error.hint or "")) == (version > 5)
        assert ("at a later startingVersion" in (error.hint or "")) == (version < 5)
    with pytest.raises(InvalidRequest) as caught:
        check()
    assert "told where to start" not in str(caught.value) and "later startingVersion" not in (
        (caught.value.hint or "") if code == "stream-schema-changed" else ""
    )


def test_the_version_that_is_shown_needs_no_look() -> None:
    shown = plain(A)
    # What would be refused is not, for nothing has changed.
    ensure_fits(shown.protocol, shown.metadata, 3, shown, 5, StreamOptions(changes=True))


def test_other_partitions_may_be_agreed_to() -> None:
    config, shown = plain(A, B, partition_by=("a",)), plain(A, B, partition_by=("b",))
    ensure_fits(config.protocol, config.metadata, 3, shown, 5, StreamOptions(allows_new_partitions=True))
    with pytest.raises(InvalidRequest) as caught:
        ensure_fits(config.protocol, config.metadata, 3, shown, 5, StreamOptions())
    assert "by a, when the stream was made by b" in str(caught.value)
    config = plain(A, B)
    with pytest.raises(InvalidRequest) as caught:
        ensure_fits(config.protocol, config.metadata, 3, shown, 5, StreamOptions())
    assert "by nothing, when" in str(caught.value)
    # The setting by which a session agrees to it, as the reference's users know it.
    assert "spark.databricks.delta.streaming.unsafeReadOnPartitionColumnChanges.enabled to true" in str(
        caught.value.hint
    )


def test_changes_must_be_recorded() -> None:
    on, off = plain(A, properties=FEED), plain(A)
    ensure_fits(on.protocol, on.metadata, 3, off, 5, StreamOptions(changes=True))
    ensure_fits(off.protocol, off.metadata, 3, on, 5, StreamOptions())
    with pytest.raises(InvalidRequest) as caught:
        ensure_fits(off.protocol, off.metadata, 3, on, 5, StreamOptions(changes=True))
    assert (caught.value.code, caught.value.version) == ("change-feed-disabled", 3)


def test_features_of_the_future() -> None:
    config = plain(A)
    protocol = features("from the future")
    with pytest.raises(AlluviumError) as caught:
        ensure_fits(protocol, config.metadata, 3, config, 5, StreamOptions())
    assert caught.value.code == "unsupported-feature"
