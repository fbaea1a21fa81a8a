"""A feature stands in one place: a module with its record, a line of the registry, a test file, a docs page."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from alluvium.delta.features.feature import Feature
from alluvium.delta.features.registry import FEATURES

ROOT = Path(__file__).resolve().parents[2]
FEATURES_ROOM = ROOT / "src/alluvium/delta/features"
#: Every module with a record, as `room.module`; rules that features share have none.
MODULES = sorted(
    f"{path.parent.name}.{path.stem}"
    for path in FEATURES_ROOM.glob("*/*.py")
    if re.search(r"^FEATURE\b", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def record_of(module: str) -> Feature:
    return importlib.import_module(f"alluvium.delta.features.{module}").FEATURE


def test_there_are_features():
    assert MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_feature_is_registered(module):
    assert any(record_of(module) is feature for feature in FEATURES)


@pytest.mark.parametrize("module", MODULES)
def test_a_feature_has_a_test_file(module):
    room, _, name = module.partition(".")
    path = ROOT / "tests/delta/features" / room / f"test_{name}.py"
    assert path.exists()
    assert "def test_" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("module", MODULES)
def test_a_feature_has_a_docs_page(module):
    page = ROOT / "docs/features" / f"{record_of(module).name}.md"
    assert page.exists()
    assert page.read_text(encoding="utf-8").startswith("# ")


def test_every_docs_page_has_a_feature():
    pages = {path.stem for path in (ROOT / "docs/features").glob("*.md")} - {"README"}
    assert pages <= {record_of(module).name for module in MODULES}


def test_names_of_features_are_unique():
    names = [name for feature in FEATURES for name in (feature.name, *feature.aliases)]
    assert len(names) == len(set(names))
