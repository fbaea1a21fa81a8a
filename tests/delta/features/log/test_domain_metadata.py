"""domainMetadata. Specification: "Domain Metadata"."""

from __future__ import annotations

from pathlib import Path

from delta_values import make_config, make_metadata

import alluvium
from alluvium.delta.features.log.domain_metadata import FEATURE
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.terms.spec import DomainMetadata, Protocol, format_actions

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=(FEATURE.name,))


def test_such_tables_are_read_and_written() -> None:
    ensure_readable(make_config(protocol=PROTOCOL))
    ensure_writable(make_config(protocol=PROTOCOL))


def test_the_latest_of_each_domain_is_shown(tmp_path: Path) -> None:
    """ "Readers who choose to support domain metadata must apply Action Reconciliation to all metadata domains and
    snapshots must include them -- even if the reader does not understand them."
    """
    log = tmp_path / "_delta_log"
    log.mkdir()

    def domain(name: str, configuration: str, removed: bool = False) -> DomainMetadata:
        return DomainMetadata(domain=name, configuration=configuration, removed=removed)

    commits = [
        [PROTOCOL, make_metadata(), domain("a", "1"), domain("b", "1"), domain("delta.x", "{}")],
        [domain("a", "2"), domain("b", "1", removed=True)],
    ]
    for version, actions in enumerate(commits):
        (log / f"{version:020d}.json").write_bytes(format_actions(actions))
    assert alluvium.open(str(tmp_path)).domains == {"a": "2", "delta.x": "{}"}
    assert alluvium.open(str(tmp_path), version=0).domains == {"a": "1", "b": "1", "delta.x": "{}"}
