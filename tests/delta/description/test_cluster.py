"""CLUSTER BY of a table that is there, and SYNC IDENTITY: what the log says afterwards."""

from __future__ import annotations

import json

import pytest

from alluvium.delta.description.cluster import cluster_by
from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import with_schema
from alluvium.delta.description.sync_identity import sync_identity
from alluvium.delta.features.columns.identity_columns import identities
from alluvium.delta.features.rows.clustering import DOMAIN
from alluvium.delta.terms.config import TableConfig
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
