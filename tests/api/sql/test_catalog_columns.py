"""Columns by all four parts of their name, where the first is a catalog of ours."""

from __future__ import annotations

import pytest

from alluvium.api.sql.text.catalog_columns import with_session_columns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select lake.db.t.k from lake.db.t", "select spark_catalog.db.t.k from lake.db.t"),
        ("select `Lake`.db.`t`.k.x, 1.5 from LAKE.DB.T", "select spark_catalog.db.`t`.k.x, 1.5 from LAKE.DB.T"),
        ("select lake.db.t.* from db.t", "select spark_catalog.db.t.* from db.t"),
        ("update lake.db.t set n = lake.db.t.n + lake.db.t.m",
         "update lake.db.t set n = spark_catalog.db.t.n + spark_catalog.db.t.m"),
        # A string, a comment, another table, another catalog, a name that is not closed.
        ("select 'lake.db.t.k' /* lake.db.t.k */ from lake.db.t", None),
        ("select lake.db.t.k from lake.db.u", None),
        ("select sea.db.t.k from sea.db.t", None),
        ("select lake.db.t.k, ` from lake.db.t", None),
        ("select k from lake.db.t", None),
    ],
)  # fmt: skip
def test_a_column_goes_by_the_name_that_spark_has_for_the_rows(text: str, said: str | None) -> None:
    assert with_session_columns(text, lambda: ["lake"]) == (text if said is None else said)
