"""Rows that are kept between the jobs of a statement."""

from __future__ import annotations

import logging

import pytest

from alluvium.spark.kept import keep_rows, release_rows


@pytest.mark.spark
def test_what_cannot_be_freed_is_told_and_no_error(spark, caplog):
    """The commit may stand by then."""
    kept = keep_rows(spark.range(3))
    assert kept.count() == 3
    with caplog.at_level(logging.WARNING, "alluvium"):
        release_rows(kept)
        assert not caplog.records
        release_rows(spark.range(1))  # never kept
    assert "could not be freed" in caplog.text
