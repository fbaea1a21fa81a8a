"""CLUSTER BY of a table that is there, and SYNC IDENTITY: what the log says afterwards."""

from __future__ import annotations

import json

import pytest

from alluvium.delta.description.cluster import changes_clustering, cluster_by, ensure_clustering_stays
from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import with_schema
from alluvium.delta.description.evolve_columns import drop_columns, rename_column
from alluvium.delta.description.sync_identity import identity_at, sync_identity
from alluvium.delta.features.columns.identity_columns import identities
from alluvium.delta.features.rows.clustering import DOMAIN
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.errors import InvalidRequest
from alluvium.schema.types import BOOLEAN, INTEGER, LONG, STRING, Array, Field, Struct

INNER = Struct((Field("x", INTEGER), Field("y", INTEGER)))
SCHEMA = Struct(
    (Field("a", INTEGER), Field("b", STRING), Field("s", INNER), Field("arr", Array(LONG)), Field("ok", BOOLEAN))
)
PLAIN = new_config(SCHEMA, [], {})


def test_the_domain_names_physical_columns_and_the_history_logical_ones():
    config = new_config(SCHEMA, [], {"delta.columnMapping.mode": "name"})
    change = cluster_by(config, {}, [("B",), ("s", "X")])
    (domain,) = change.domains
    said = json.loads(domain.configuration)
    assert (domain.domain, said["domainName"]) == (DOMAIN, DOMAIN)
    assert said["clusteringColumns"] == [list(config.physical_paths[path]) for path in (("b",), ("s", "x"))]
    assert {"clustering", "domainMetadata"} <= set(change.config.protocol.writer_features)
    assert change.operation.name == "CLUSTER BY"
    assert change.operation.parameters == {"oldClusteringColumns": "", "newClusteringColumns": "b,s.x"}
    after = cluster_by(change.config, {DOMAIN: domain}, [])
    assert after.operation.parameters == {"oldClusteringColumns": "b,s.x", "newClusteringColumns": ""}
    assert after.config == change.config
    assert json.loads(after.domains[0].configuration)["clusteringColumns"] == []


@pytest.mark.parametrize(
    ("config", "columns", "code"),
    [
        (PLAIN, [("nope",)], "unknown-column"),
        (PLAIN, [("a",), ("A",)], "invalid-clustering-column"),
        (PLAIN, [("s",)], "invalid-clustering-column"),
        (PLAIN, [("arr",)], "invalid-clustering-column"),
        (PLAIN, [("ok",)], "invalid-clustering-column"),
        (PLAIN, [("a",), ("b",), ("s", "x"), ("s", "y"), ("a",)], "invalid-clustering-column"),
        (new_config(SCHEMA, [], {"delta.dataSkippingNumIndexedCols": "1"}), [("b",)], "invalid-clustering-column"),
        (new_config(SCHEMA, ["a"], {}), [("b",)], "contradicting-options"),
        (new_config(SCHEMA, ["a"], {}), [], "contradicting-options"),
    ],
)
def test_columns_that_nothing_is_clustered_by(config: TableConfig, columns: list[tuple[str, ...]], code: str):
    with pytest.raises(InvalidRequest) as caught:
        cluster_by(config, {}, columns)
    assert caught.value.code == code


def numbered(start: int, step: int, mark: int | None = None) -> TableConfig:
    metadata = {"delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": True}
    if mark is not None:
        metadata["delta.identity.highWaterMark"] = mark
    config = new_config(Struct((Field("a", LONG), Field("b", LONG))), [], {})
    schema = Struct((Field("a", LONG, metadata=metadata), Field("b", LONG)))
    return with_schema(config, schema)


@pytest.mark.parametrize(
    ("start", "step", "mark", "furthest", "after"),
    [
        (1, 2, None, 20, 21),
        (1, 2, None, 21, 21),
        (1, 2, 31, 20, 31),
        (1, 2, 5, None, 5),
        (100, 10, None, -10, None),
        (100, 10, None, 100, 100),
        (-1, -10, None, -15, -21),
        (-1, -10, None, 50, None),
        (-1, -10, -11, -31, -31),
        (10, 5, 0, 12, 15),
    ],
)
def test_the_mark_goes_to_the_furthest_number(
    start: int, step: int, mark: int | None, furthest: int | None, after: int | None
):
    change = sync_identity(numbered(start, step, mark), ("A",), furthest)
    assert identities(change.config.schema)[0].high_water_mark == after
    assert change.operation.name == "CHANGE COLUMN"
    assert json.loads(str(change.operation.parameters["column"]))["name"] == "a"
    assert change.reads


@pytest.mark.parametrize(
    ("path", "furthest", "code"),
    [
        (("b",), 1, "not-an-identity-column"),
        (("nope",), 1, "unknown-column"),
        (("a",), 2**63 - 1, "numbers-exhausted"),
    ],
)
def test_what_is_not_synchronised(path: tuple[str, ...], furthest: int, code: str):
    with pytest.raises(InvalidRequest) as caught:
        sync_identity(numbered(2, 3), path, furthest)
    assert caught.value.code == code


def clustered(*columns: tuple[str, ...]) -> tuple[TableConfig, dict[str, DomainMetadata]]:
    config = new_config(SCHEMA, [], {"delta.columnMapping.mode": "name"})
    change = cluster_by(config, {}, columns)
    return change.config, {DOMAIN: change.domains[0]}


@pytest.mark.parametrize(
    ("columns", "gone", "refused"),
    [
        ([("b",)], [("b",)], "b"), ([("b",)], [("a",)], None), ([("s", "x")], [("s",)], "s.x"), ([("s", "x")], [("s", "x")], "s.x"), ([("s", "x")], [("s", "y")], None),
        ([("a",), ("s", "y")], [("b",), ("s", "y")], "s.y"), ([], [("a",), ("b",)], None),
    ],
)  # fmt: skip
def test_columns_that_a_table_is_clustered_by_stay(
    columns: list[tuple[str, ...]], gone: list[tuple[str, ...]], refused: str | None
) -> None:
    config, domains = clustered(*columns)
    after = drop_columns(config, gone).config
    if refused is None:
        ensure_clustering_stays(domains, config, after)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_clustering_stays(domains, config, after)
    assert (caught.value.code, caught.value.column) == ("clustering-column", refused)
    # Who changes no column is not asked.
    ensure_clustering_stays(domains, config, config)
    ensure_clustering_stays({}, config, after)


def test_columns_that_are_renamed_are_those_that_they_were() -> None:
    config, domains = clustered(("b",), ("s", "x"))
    for path, name in ((("b",), "c"), (("s",), "t"), (("s", "x"), "z")):
        ensure_clustering_stays(domains, config, rename_column(config, path, name).config)
    renamed = rename_column(config, ("b",), "c").config
    change = cluster_by(renamed, domains, [("A",)])
    assert change.operation.parameters == {"oldClusteringColumns": "c,s.x", "newClusteringColumns": "a"}
    assert change.config is renamed


def test_whether_there_is_something_to_say() -> None:
    config, _ = clustered(("a",))
    assert changes_clustering(PLAIN, [("a",)]) and not changes_clustering(PLAIN, [])
    assert changes_clustering(config, []) and changes_clustering(config, [("a",)])
    with pytest.raises(InvalidRequest) as caught:
        cluster_by(new_config(SCHEMA, ["b", "a"], {}), {}, [("s", "x")])
    assert "it is partitioned by b, a" in caught.value.message


def test_what_is_said_of_a_column_without_numbers() -> None:
    for config, hint in ((numbered(1, 1), "identity columns: a"), (PLAIN, "the table has none")):
        with pytest.raises(InvalidRequest) as caught:
            identity_at(config, ("B",))
        assert (caught.value.code, caught.value.column, caught.value.hint) == ("not-an-identity-column", "b", hint)
    found = identity_at(numbered(3, 2, 7), ("A",))
    assert (found.column, found.start, found.step, found.high_water_mark, found.allow_explicit_insert) == (
        "a",
        3,
        2,
        7,
        True,
    )


def test_a_synchronised_column_is_shown_as_it_was() -> None:
    change = sync_identity(numbered(1, 2, 5), ("a",), 9)
    said = json.loads(str(change.operation.parameters["column"]))
    assert said["metadata"]["delta.identity.highWaterMark"] == 5 and said["type"] == "long"
    same = numbered(1, 2, 5)
    assert sync_identity(same, ("a",), None).config is same and sync_identity(same, ("a",), 3).config is same
    for start, step, furthest, fits in (
        (0, 1, 2**63 - 1, True),
        (0, 2, 2**63 - 1, False),
        (0, -1, -(2**63), True),
        (0, -3, -(2**63), False),
    ):
        if fits:
            sync_identity(numbered(start, step), ("a",), furthest)
            continue
        with pytest.raises(InvalidRequest) as caught:
            sync_identity(numbered(start, step), ("a",), furthest)
        assert (caught.value.code, caught.value.column) == ("numbers-exhausted", "a")
