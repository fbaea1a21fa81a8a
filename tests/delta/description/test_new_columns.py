"""Columns of a table that is made: their names, types and promises, and what is said of those that it cannot have."""

from __future__ import annotations

import itertools
import time
import uuid
from dataclasses import replace

import pytest
from msgspec import structs

from alluvium.delta.description.create import (
    NewTable,
    as_nullable,
    clustered_by,
    ensure_columns,
    ensure_statistics,
    find_column,
    kept_by_new,
    new_config,
    resolve_clustering_columns,
    resolve_partition_columns,
    table_config,
)
from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.features.rows.clustering import clustering_domain
from alluvium.errors import InvalidRequest
from alluvium.schema.types import LONG, STRING, VOID, Array, DataType, Field, JsonValue, Map, Struct

MAPPED = {"delta.columnMapping.mode": "name"}
INNER = Struct((Field("X", LONG), Field("deep", Struct((Field("y z", LONG),)))))
SCHEMA = Struct((Field("a", LONG), Field("S", INNER), Field("l", Array(INNER)), Field("e.f", STRING)))


def one(data_type: DataType, *, nullable: bool = True) -> Struct:
    return Struct((Field("x", data_type, nullable),))


def refused(
    schema: Struct, code: str, configuration: dict[str, str] | None = None, partitions: tuple[str, ...] = ()
) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        ensure_columns(schema, configuration or {}, partitions)
    assert caught.value.code == code
    return caught.value


WRAPPED = (
    lambda inner: inner, lambda inner: Struct((Field("s", inner),)), lambda inner: Struct((Field("s", Array(Array(inner))),)),
    lambda inner: Struct((Field("s", Map(STRING, inner)),)), lambda inner: Struct((Field("s", Map(inner, STRING)),)),
    lambda inner: Struct((Field("ok", LONG), Field("s", Struct((Field("t", Array(inner)),))))),
)  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPPED)
def test_names_are_looked_at_everywhere(wrap: object) -> None:
    assert callable(wrap)
    odd, twice = (
        Struct((Field("ok", LONG), Field("a b", LONG))),
        Struct((Field("a", LONG), Field("B", LONG), Field("b", STRING))),
    )
    error = refused(wrap(odd), "invalid-column-name")
    assert (error.column, error.hint) == ("a b", "rename it, e.g. df.withColumnRenamed('a b', 'a_b')")
    assert refused(wrap(twice), "duplicate-column").column == "b"
    # With a mapping names may have any characters, but none stands twice.
    for mode in ("name", "ID", " Name "):
        ensure_columns(wrap(odd), {"delta.columnMapping.mode": mode})
        assert refused(wrap(twice), "duplicate-column", {"delta.columnMapping.mode": mode}).column == "b"
    for mode in ("none", " NONE "):
        refused(wrap(odd), "invalid-column-name", {"delta.columnMapping.mode": mode})
    # The same name in another struct is another column.
    ensure_columns(Struct((Field("a", wrap(one(LONG))), Field("x", LONG))), {})


def test_columns_of_the_files_come_before_those_of_partitions() -> None:
    """As the reference says it."""
    schema = Struct((Field("p q", LONG), Field("a b", LONG), Field("c d", LONG)))
    for partitions, name, what in (
        ((), "p q", "column"), (("p q",), "a b", "column"), (("P Q", "A b"), "c d", "column"), (("p q", "a b", "c d"), "p q", "partition column"),
    ):  # fmt: skip
        error = refused(schema, "invalid-column-name", partitions=partitions)
        assert (error.column, error.message.startswith(f"{what} {name!r} ")) == (name, True)


@pytest.mark.parametrize(
    ("data_type", "column"),
    [
        (Array(one(LONG, nullable=False)), "c.element.x"), (Map(STRING, one(LONG, nullable=False)), "c.value.x"),
        (Map(one(LONG, nullable=False), STRING), "c.key.x"), (Array(Array(one(LONG, nullable=False))), "c.element.element.x"),
        (Array(one(one(LONG, nullable=False))), "c.element.x.x"), (Struct((Field("s", Array(one(LONG, nullable=False))),)), "c.s.element.x"),
        (one(LONG, nullable=False), None), (one(one(LONG, nullable=False), nullable=False), None), (Array(LONG, False), None), (Map(STRING, LONG, False), None),
    ],
    ids=str,
)  # fmt: skip
def test_not_null_is_for_columns_and_their_members(data_type: DataType, column: str | None) -> None:
    schema = Struct((Field("c", data_type, False),))
    if column is None:
        ensure_columns(schema, {})
    else:
        assert refused(schema, "nested-not-null").column == column


@pytest.mark.parametrize(
    ("data_type", "column"),
    [
        (VOID, None), (one(VOID), None), (Array(VOID), "c"), (Map(STRING, VOID), "c"), (one(Array(VOID)), "x"), (one(one(Map(STRING, Array(VOID)))), "x"),
        (Array(one(VOID)), "c"), (Array(one(LONG)), None),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_and_maps_of_nothing(data_type: DataType, column: str | None) -> None:
    schema = Struct((Field("ok", LONG), Field("c", data_type)))
    if column is None:
        ensure_columns(schema, {})
    else:
        assert refused(schema, "unsupported-type").column == column


def test_columns_with_statistics_are_there() -> None:
    names = "delta.dataSkippingStatsColumns"
    ensure_columns(SCHEMA, {**MAPPED, names: "A, s.x,S.Deep.`y z`, `e.f`"})
    for text in ("b", "a,s.z", "e.f"):
        error = refused(SCHEMA, "unknown-column", {**MAPPED, names: text})
        assert error.column == text.split(",")[-1]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("A", ("a",)),
        ("s", ("S",)),
        ("s.x", ("S", "X")),
        ("S.DEEP.`Y z`", ("S", "deep", "y z")),
        ("`E.F`", ("e.f",)),
        ("l", ("l",)),
    ],
)
def test_paths_are_spelled_as_the_schema_has_them(text: str, path: tuple[str, ...]) -> None:
    assert find_column(SCHEMA, text) == path


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SS", "did you mean 'S'?"),
        ("s.dee", "did you mean 'deep'?"),
        ("a.x", None),
        ("l.x", None),
        ("l.element.X", None),
        ("s.x.y", None),
    ],
)
def test_columns_that_are_not_there(text: str, hint: str | None) -> None:
    for code in ("unknown-column", "another"):
        with pytest.raises(InvalidRequest) as caught:
            find_column(SCHEMA, text, code) if code == "another" else find_column(SCHEMA, text)
        assert (caught.value.code, caught.value.column) == (code, text)
        assert hint is None or hint in str(caught.value.hint)
        assert repr(text) in caught.value.message


def test_clustering_columns_of_a_table_that_is_made() -> None:
    schema = Struct(
        (Field("a", LONG), Field("S", Struct((Field("X", LONG), Field("y", LONG)))), Field("b", LONG), Field("c", LONG))
    )
    assert resolve_clustering_columns(schema, ["A", "s.x"]) == (("a",), ("S", "X"))
    with pytest.raises(InvalidRequest) as caught:
        resolve_clustering_columns(schema, ["s.z"])
    assert (caught.value.code, caught.value.column) == ("unknown-clustering-column", "s.z")
    with pytest.raises(InvalidRequest) as caught:
        resolve_clustering_columns(schema, ["a", "A"])
    assert "by 2 columns: 'a' stands twice" in caught.value.message
    with pytest.raises(InvalidRequest) as caught:
        resolve_clustering_columns(schema, ["a", "s.x", "s.y", "b", "c"])
    assert "by 5 columns: it takes 4 at most" in caught.value.message
    plain, mapped = new_config(schema, [], {}), new_config(schema, [], MAPPED)
    assert clustered_by(plain, ["s.X"]) == clustering_domain([("S", "X")])
    assert clustered_by(mapped, ["s.X"]) == clustering_domain([mapped.physical_paths["S", "X"]])
    made = table_config(NewTable(schema, properties={"delta.feature.domainMetadata": "supported"}, cluster_by=["a"]))
    assert {"clustering", "domainMetadata"} <= supported_features(made.protocol)
    assert "clustering" not in supported_features(table_config(NewTable(schema)).protocol)


@pytest.mark.parametrize(
    ("properties", "missing"),
    [
        ({}, None), ({"delta.dataSkippingNumIndexedCols": "-1"}, None), ({"delta.dataSkippingNumIndexedCols": "2"}, None),
        ({"delta.dataSkippingNumIndexedCols": "1"}, "S.X"), ({"delta.dataSkippingNumIndexedCols": "0"}, "a"),
        ({"delta.dataSkippingStatsColumns": "s,a"}, None), ({"delta.dataSkippingStatsColumns": "s"}, "a"), ({"delta.dataSkippingStatsColumns": "a"}, "S.X"),
    ],
)  # fmt: skip
def test_clustering_columns_have_statistics(properties: dict[str, str], missing: str | None) -> None:
    schema = Struct((Field("a", LONG), Field("S", Struct((Field("X", LONG),))), Field("b", LONG)))
    paths = [("a",), ("S", "X")]
    if missing is None:
        ensure_statistics(schema, properties, paths)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_statistics(schema, properties, paths)
    assert (caught.value.code, caught.value.column) == ("invalid-clustering-column", missing)


def test_partition_columns_that_do_not_fit_are_named() -> None:
    schema = Struct((Field("day", LONG), Field("Name", STRING), Field("s", one(LONG))))
    for names, column, said in (
        (["dya"], "dya", "did you mean 'day'?"), (["S"], "S", "its type is struct"), (["day", "DAY"], None, "'DAY' is named twice"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            resolve_partition_columns(schema, names)
        assert caught.value.column == column and said in f"{caught.value.message} {caught.value.hint}"
    two = Struct(schema.fields[:2])
    for names in itertools.permutations(["day", "NAME"]):
        with pytest.raises(InvalidRequest) as caught:
            resolve_partition_columns(two, names)
        assert "by all of its columns" in caught.value.message
    assert resolve_partition_columns(two, ["NAME"]) == ("Name",)
    assert resolve_partition_columns(Struct(()), []) == ()


def test_a_new_table_is_described() -> None:
    before_ms = int(time.time() * 1000)
    made = table_config(NewTable(one(LONG), comment="", properties={"comment": "from a property"})).metadata
    assert made.description == ""
    assert made.created_time is not None and before_ms <= made.created_time <= time.time() * 1000 + 1
    assert uuid.UUID(made.id).version == 4
    assert (made.name, made.format.provider, made.format.options) == (None, "parquet", {})
    plain = table_config(
        NewTable(one(LONG), properties={"location": "l", "provider": "p", "owner": "o", "external": "e", "k": "v"})
    ).metadata
    assert (plain.description, plain.configuration) == (None, {"k": "v"})


def test_what_a_replaced_table_leaves_to_the_next() -> None:
    kept = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "false", "delta.rowTracking.materializedRowIdColumnName": "_r",
            "delta.requireCheckpointProtectionBeforeVersion": "3"}  # fmt: skip
    others = {
        "delta.enableChangeDataFeed": "true",
        "delta.appendOnly": "true",
        "own": "x",
        "delta.rowTrackingSuspended": "false",
    }
    config = new_config(
        one(LONG), [], {"delta.feature.checkpointProtection": "supported", "delta.enableDeletionVectors": "true"}
    )
    metadata = structs.replace(config.metadata, configuration={**kept, **others})
    after = table_config(NewTable(one(LONG)), replace(config, metadata=metadata))
    assert after.metadata.configuration == kept
    # Unless it is told otherwise.
    told = table_config(
        NewTable(one(LONG), properties={"delta.enableDeletionVectors": "false"}), replace(config, metadata=metadata)
    )
    assert told.metadata.configuration == {**kept, "delta.enableDeletionVectors": "false"}


def test_defaults_stay_behind_unless_they_are_asked_for() -> None:
    said: dict[str, JsonValue] = {"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7", "comment": "c"}
    schema = Struct((Field("x", LONG, True, said),))
    asked = {"delta.feature.allowColumnDefaults": "supported"}
    assert dict(kept_by_new(schema, {}).fields[0].metadata) == {"comment": "c"}
    assert kept_by_new(schema, asked) is schema
    assert dict(new_config(schema, [], {}).schema.fields[0].metadata) == {"comment": "c"}
    # What stood in rows that were there before says nothing of a table without rows.
    assert dict(new_config(schema, [], asked).schema.fields[0].metadata) == {"CURRENT_DEFAULT": "7", "comment": "c"}


def test_everything_may_be_null_at_any_depth() -> None:
    strict = Struct((Field("x", LONG, False, {"delta.identity.start": 1, "k": "v"}),))
    loose = Struct((Field("x", LONG, True, {"k": "v"}),))
    for wrap in (
        lambda inner, n: Array(inner, n), lambda inner, n: Map(inner, inner, n), lambda inner, n: Array(Array(inner, n), n),
        lambda inner, n: Struct((Field("s", Map(STRING, inner, n), n),)),
    ):  # fmt: skip
        assert as_nullable(wrap(strict, False)) == wrap(loose, True)
    assert as_nullable(LONG) == LONG
