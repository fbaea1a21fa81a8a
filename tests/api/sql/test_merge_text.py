"""Sources of a MERGE that Spark's grammar lacks, in words that it has."""

from __future__ import annotations

import pytest

from alluvium.api.sql.rows.merge_text import in_sparks_words

REST = "ON t.id = s.id WHEN MATCHED THEN DELETE"


@pytest.mark.parametrize(
    ("source", "spelled"),
    [
        ("(VALUES (1, 'on'), (2, ')')) AS s(id, v)", "(SELECT * FROM (VALUES (1, 'on'), (2, ')')) AS s(id, v)) AS s"),
        ("(select 1, 2) s (id, v)", "(SELECT * FROM (select 1, 2) s (id, v)) AS s"),
        ("u AS `s s`(a, b)", "(SELECT * FROM u AS `s s`(a, b)) AS `s s`"),
        ("u VERSION AS OF 3 AS s", "(SELECT * FROM u VERSION AS OF 3 AS s) AS s"),
        ("a.`b.c` VERSION AS OF 3 s", "(SELECT * FROM a.`b.c` VERSION AS OF 3 s) AS s"),
        ("u for timestamp as of '2024-01-01'", "(SELECT * FROM u for timestamp as of '2024-01-01' AS u) AS u"),
        ("d.u TIMESTAMP AS OF now() - 1", "(SELECT * FROM d.u TIMESTAMP AS OF now() - 1 AS u) AS u"),
        ("u VERSION AS OF 3 AS s(a)", "(SELECT * FROM u VERSION AS OF 3 AS s(a)) AS s"),
    ],
)
def test_they_become_queries(source, spelled):
    assert in_sparks_words(f"MERGE INTO t USING {source} {REST}") == f"MERGE INTO t USING {spelled} {REST}"


@pytest.mark.parametrize(
    "text",
    [
        f"MERGE INTO t USING s {REST}",
        f"MERGE INTO t USING d.s AS s {REST}",
        f"MERGE INTO t USING (SELECT * FROM u) AS s {REST}",
        f"MERGE INTO t USING (SELECT * FROM u) {REST}",
        "MERGE INTO t USING",
        "MERGE INTO t USING ON",
        "MERGE INTO t USING ( ON",
        "SELECT * FROM u AS s(a, b) JOIN t USING (id)",
        "MERGE INTO t USING 'unclosed",
        "",
    ],
)
def test_others_are_left_as_they_are(text):
    assert in_sparks_words(text) is None


def test_queries_behind_with_are_left_alone():
    """Their own USING and ON are none of the statement's."""
    queries = "WITH s(a) AS (SELECT 1 FROM x JOIN y USING (id)), r AS (SELECT 1 FROM x JOIN y ON x.id = y.id)"
    text = f"{queries} MERGE INTO t USING r AS s(id) {REST}"
    assert in_sparks_words(text) == f"{queries} MERGE INTO t USING (SELECT * FROM r AS s(id)) AS s {REST}"
