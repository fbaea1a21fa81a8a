"""Which settings of delta-spark are read, and that the list of them is the truth."""

from __future__ import annotations

import re
from pathlib import Path

from alluvium.api.as_delta.session_settings import READ, unread

ROOT = Path(__file__).resolve().parents[3]
PREFIX = "spark.databricks.delta."


def test_what_nothing_reads_is_named():
    names = [
        f"{PREFIX}schema.autoMerge.enabled",
        f"{PREFIX}snapshotPartitions",
        f"{PREFIX}merge.optimizeInsertOnlyMerge.enabled",
    ]
    names += [
        f"{PREFIX}properties.defaults.enableChangeDataFeed",
        f"{PREFIX}properties.defaults",
        "spark.sql.shuffle.partitions",
        "spark.databricks.io.skipping.mdc.addNoise",
    ]
    assert unread(names) == [
        f"{PREFIX}merge.optimizeInsertOnlyMerge.enabled",
        f"{PREFIX}properties.defaults",
        f"{PREFIX}snapshotPartitions",
        "spark.databricks.io.skipping.mdc.addNoise",
    ]


def test_the_list_is_what_the_source_reads():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    found = {name for text in texts for name in re.findall(rf'"{re.escape(PREFIX)}([\w.]+)"', text)}
    assert found == set(READ)


def test_the_guide_has_all_of_them():
    guide = (ROOT / "docs" / "guides" / "in-place-of-delta-spark.md").read_text(encoding="utf-8")
    assert [name for name in READ if name.rstrip(".") not in guide] == []
