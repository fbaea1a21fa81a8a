"""clustering. Specification: "Clustered Table"."""

from __future__ import annotations

import pytest
from delta_values import make_config
from mapped_table import features, mapped

from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.rows.clustering import DOMAIN, FEATURE, clustering_columns, clustering_domain
from alluvium.delta.terms.spec import DomainMetadata, Protocol
from alluvium.errors import CorruptTable
from alluvium.schema.types import LONG, Field, Struct


def test_such_tables_are_read_and_written() -> None:
    """ "The feature `domainMetadata` is required in the table `protocol`'s `writerFeatures`." """
    listed = (FEATURE.name, "domainMetadata")
    config = make_config(protocol=Protocol(min_reader_version=1, min_writer_version=7, writer_features=listed))
    ensure_readable(config)
    ensure_writable(config)


def domain(configuration: str, name: str = DOMAIN) -> dict[str, DomainMetadata]:
    return {name: DomainMetadata(domain=name, configuration=configuration, removed=False)}


def test_columns_come_back_by_their_logical_paths() -> None:
    inner = Struct((mapped("x", LONG, "p2", 2), mapped("y", LONG, "p3", 3)))
    schema = Struct((mapped("s", inner, "p1", 1), mapped("a", LONG, "p4", 4)))
    config = make_config(schema, (), {"delta.columnMapping.mode": "name"}, features("columnMapping"))
    made = clustering_domain([("p4",), ("p1", "p3")])
    assert (made.domain, made.removed) == ("delta.clustering", False)
    assert made.configuration == '{"clusteringColumns":[["p4"],["p1","p3"]],"domainName":"delta.clustering"}'
    assert clustering_columns({DOMAIN: made}, config) == (("a",), ("s", "y"))
    # One that is no column any more is told as the domain has it.
    assert clustering_columns({DOMAIN: clustering_domain([("gone",), ("p4",)])}, config) == (("gone",), ("a",))
    plain = make_config(Struct((Field("s", Struct((Field("x", LONG),))),)))
    assert clustering_columns({DOMAIN: clustering_domain([("s", "x")])}, plain) == (("s", "x"),)


def test_tables_that_are_clustered_by_nothing() -> None:
    config = make_config()
    for domains in (
        {},
        domain("{}"),
        domain('{"clusteringColumns":[]}'),
        domain('{"clusteringColumns":[["id"]]}', "other"),
    ):
        assert clustering_columns(domains, config) == ()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"clusteringColumns":["id"]}', '{"clusteringColumns":[[1]]}', '{"clusteringColumns":null}']
)
def test_a_domain_that_is_damaged(text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        clustering_columns(domain(text), make_config())
    assert caught.value.code == "invalid-clustering" and DOMAIN in caught.value.message
