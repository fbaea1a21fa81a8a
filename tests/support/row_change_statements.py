"""UPDATE, DELETE and MERGE as users write them: played by delta-spark and by us, with the same outcome."""

from __future__ import annotations

from typing import Any

_PEOPLE = (
    "SELECT * FROM VALUES (1, 'ann', 10, named_struct('f', 1, 'g', 'x')), (2, 'bob', 20, named_struct('f', 2, 'g', "
    "'y')), (3, NULL, 30, NULL), (4, 'dan', NULL, named_struct('f', 4, 'g', NULL)) AS t(id, name, v, s)"
)
_SOURCE = "SELECT * FROM VALUES (1, 'ann2', 11), (3, 'cid', 33), (9, 'zoe', 99) AS s(id, name, v)"
_MASKS = {"delta.enableDeletionVectors": "true"}
_FEED = {"delta.enableChangeDataFeed": "true"}
_ALL = "SELECT * FROM {t} ORDER BY id"

_UPDATES = [
    "UPDATE {t} SET v = v + 1 WHERE id = 1",
    "update {t} as a set V = a.v * 2, a.Name = upper(A.name) where a.id < 3",
    "UPDATE {t} SET s.f = s.f + 100 WHERE s.g IS NOT NULL",
    "UPDATE {t} SET {t}.v = {t}.v - 1 WHERE {t}.id = 2",
    "UPDATE {t} SET default.{t}.v = 7 WHERE default.{t}.id = 3",
    "UPDATE {t} SET name = DEFAULT WHERE id = 4",
    "UPDATE {t} SET v = (SELECT max(v) FROM src) WHERE id = 1",
    "UPDATE {t} SET v = '55' WHERE id = 1",
    "/* all */ UPDATE {t} -- rows\n SET v = 1",
    "UPDATE {t} SET v = 1 WHERE false",
    "UPDATE {t} SET v = 1 WHERE id > 100",
    "UPDATE {t} SET v = 1, v = 2",
    "UPDATE {t} SET v = 1, V = 2",
    "UPDATE {t} SET s = named_struct('f', 1, 'g', 'a'), s.f = 2",
    "UPDATE {t} SET nope = 1",
    "UPDATE {t} SET v = nope",
    "UPDATE {t} SET v = 'no number'",
    "UPDATE {t} SET v = max(v)",
    "UPDATE {t} AS a SET {t}.v = 1",
    "UPDATE {t} SET v = 1 WHERE id",
    "UPDATE {t} SET v = 1 WHERE rand() > 2",
    "UPDATE {t} SET v = CASE WHEN name LIKE 'a%' THEN 1 ELSE length(name) END WHERE name IS NOT NULL OR id = 3",
]
_DELETES = [
    "DELETE FROM {t} WHERE id = 1",
    "delete from {t} AS a WHERE a.v > 25 or a.v is null",
    "DELETE FROM {t} WHERE {t}.id = 77",
    "DELETE FROM {t} WHERE NULL",
    "DELETE FROM {t} WHERE id = 'x'",
    "DELETE FROM {t} WHERE nope = 1",
    "DELETE FROM {t} WHERE s.f = 2",
    "DELETE FROM {t}",
    "DELETE FROM {t}",
]
_MERGES = [
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN MATCHED THEN UPDATE SET v = src.v, name = src.name "
    "WHEN NOT MATCHED THEN INSERT (id, name, v) VALUES (src.id, src.name, src.v)",
    "merge into {t} as a using (select id, name, v + 1 as v from src where id < 5) as b on A.ID = b.Id "
    "when matched and b.v > 20 then delete when matched then update set a.v = b.v, s.g = b.name",
    "WITH c AS (SELECT id + 1 AS id, 5 AS v FROM src) MERGE INTO {t} t USING c s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY TARGET AND s.id > 9 THEN INSERT (v, id) VALUES (s.v, s.id)"
    " WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN UPDATE SET name = 'lone' WHEN NOT MATCHED BY SOURCE AND t.id = 1 "
    "THEN DELETE",
    "MERGE INTO {t} USING (SELECT 10 AS id, 'new' AS name, 1 AS v, CAST(NULL AS struct<f:int,g:string>) AS s) n "
    "ON {t}.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} USING (SELECT * FROM VALUES (10, 'ten') AS x(id, name)) n ON {t}.id = n.id "
    "WHEN MATCHED THEN UPDATE SET name = n.name",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} USING (SELECT 11 AS id, 'e' AS name, 1 AS v, CAST(NULL AS struct<f:int,"
    "g:string>) AS s, 'more' AS extra) n ON {t}.id = n.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} USING other ON {t}.id = other.id WHEN MATCHED THEN UPDATE SET v = other.v",
    "MERGE INTO {t} USING plain p ON {t}.id = p.id WHEN MATCHED THEN UPDATE SET v = p.v",
    "MERGE INTO {t} a USING {t} b ON a.id = b.id AND a.id = 11 WHEN MATCHED THEN UPDATE SET v = b.v + 1",
    "MERGE INTO {t} USING src ON {t}.id = src.id AND {t}.id = 1 WHEN NOT MATCHED BY SOURCE AND {t}.id = 4 THEN DELETE",
    "MERGE INTO {t} USING src ON id = id WHEN MATCHED THEN DELETE",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN MATCHED THEN UPDATE SET v = v",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN MATCHED THEN UPDATE SET src.v = 1",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN MATCHED THEN UPDATE SET nope = 1",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN NOT MATCHED THEN INSERT (id) VALUES ({t}.id)",
    "MERGE INTO {t} USING src ON {t}.id = src.id WHEN MATCHED THEN UPDATE SET v = 1, v = 2",
    "MERGE INTO {t} USING (SELECT 1 id UNION ALL SELECT 1 id) d ON {t}.id = d.id WHEN MATCHED THEN UPDATE SET v = 0",
    "MERGE INTO {t} USING src ON {t}.id = src.id AND EXISTS (SELECT 1 FROM other) WHEN MATCHED THEN DELETE",
    "MERGE INTO {t} USING src ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
]


def jobs() -> list[dict[str, Any]]:
    """A job of `tests/interop/play_changes.py` for each family, each on a table of another kind."""
    families = {"updates": (_UPDATES, {}), "deletes": (_DELETES, _MASKS), "merges": (_MERGES, _FEED)}
    return [_job(family, statements, properties) for family, (statements, properties) in families.items()]


def _job(name: str, statements: list[str], properties: dict[str, str]) -> dict[str, Any]:
    tables = {
        name: {"select": _PEOPLE, "properties": properties},
        "src": {"select": _SOURCE},
        "other": {"select": "SELECT 2 AS id, 222 AS v", "properties": properties},
        "plain": {"select": "SELECT 4 AS id, 444 AS v", "format": "parquet"},
    }
    steps = []
    for statement in statements:
        text = statement.replace("{t}", name)
        steps += [text, _ALL.replace("{t}", name), f"HISTORY {name}"]
    return {"tables": tables, "steps": steps}
