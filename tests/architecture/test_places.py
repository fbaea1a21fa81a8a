"""What else must know of an addition: places that nothing else would miss.

CONTRIBUTING.md ("One place each") names where a feature, a command and a metadata table stand. These are the lists and
pages that have each of them by name.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from alluvium.api.delta.table import Table
from alluvium.api.delta.told.metadata import AskedMetadata
from alluvium.cli import app
from alluvium.cli import inspect as looking
from alluvium.delta.features.registry import FEATURES
from alluvium.delta.upkeep.drop.removals import REMOVALS
from alluvium.delta.view.tables import METADATA_TABLES
from alluvium.paimon.view.system.system_tables import SYSTEM_TABLES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "guides"
#: Features that `dropFeatureSupport` does not take from a table.
STAYING = {
    "allowColumnDefaults", "appendOnly", "catalogManaged", "changeDataFeed", "clustering", "generatedColumns",
    "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "identityColumns", "invariants", "timestampNtz",
    "variantShredding", "variantType",
}  # fmt: skip


def test_each_feature_can_be_dropped_or_stays() -> None:
    assert sorted([*REMOVALS, *STAYING]) == sorted(feature.name for feature in FEATURES)


@pytest.mark.parametrize("feature", REMOVALS)
def test_the_guide_tells_what_dropping_a_feature_does(feature: str) -> None:
    section = (DOCS / "tables.md").read_text(encoding="utf-8").partition("## Drop a feature")[2].partition("\n## ")[0]
    assert f"`{feature}`" in section


@pytest.mark.parametrize("command", app._COMMANDS)
def test_the_guide_shows_each_command(command: str) -> None:
    assert f"alluvium {command} " in (DOCS / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_each_metadata_table_is_named_where_the_others_are(name: str) -> None:
    for told in (Table.metadata, AskedMetadata.__call__):
        assert f'"{name}"' in (inspect.getdoc(told) or "")
    assert name in (inspect.getdoc(looking.system) or "")
    assert f'`"{name}"`' in (DOCS / "reading.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_each_system_table_is_named_where_the_others_are(name: str) -> None:
    assert f"`{name}`" in (DOCS / "paimon.md").read_text(encoding="utf-8")
