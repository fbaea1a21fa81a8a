"""clustering. Specification: "Clustered Table"."""

from __future__ import annotations

from delta_values import make_config

from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.rows.clustering import FEATURE
from alluvium.delta.terms.spec import Protocol


def test_such_tables_are_read_and_written() -> None:
    """ "The feature `domainMetadata` is required in the table `protocol`'s `writerFeatures`." """
    listed = (FEATURE.name, "domainMetadata")
    config = make_config(protocol=Protocol(min_reader_version=1, min_writer_version=7, writer_features=listed))
    ensure_readable(config)
    ensure_writable(config)
