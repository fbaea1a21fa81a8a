"""Which settings of delta-spark are read, and that the list of them is the truth."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import alluvium
from alluvium.api.session.delta_settings import READ, unread

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


@pytest.mark.spark
def test_enabled_sessions_tell_of_them_once(spark, caplog):
    """Those that are set before, by `conf.set` and by SET; not of other sessions, and not what is read."""
    session, other = spark.newSession(), spark.newSession()
    before, later, said = (f"{PREFIX}{name}.of.a.test" for name in ("before", "later", "said"))
    session.conf.set(before, "1")
    with caplog.at_level(logging.WARNING, "alluvium"):
        other.sql(f"set {said} = 1")
        assert caplog.messages == []
        alluvium.enable(session)
        try:
            for value in ("1", "2"):
                session.conf.set(later, value)
                session.sql(f"set `{said}` = {value}")
                session.conf.set(f"{PREFIX}schema.autoMerge.enabled", "false")
        finally:
            alluvium.disable(session)
    told = "settings of delta-spark that Alluvium does not read: "
    assert caplog.messages == [f"{told}{name}" for name in (before, later, said)]
    assert session.conf.get(said) == "2"
