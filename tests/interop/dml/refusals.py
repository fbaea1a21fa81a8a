"""Requests that both engines refuse."""

from __future__ import annotations

from collections.abc import Iterator

from .stage import MASK, THREE, Stage, Step, script


@script(mask=MASK)
def refused(s: Stage) -> Iterator[Step]:
    yield "make", s.make
    for n, condition in enumerate(
        ["nope = 1", "t.nope = 1", "id", "max(id) > 1", "rand() < 0.5",
         "id = 1 and", "row_number() over (order by id) = 1", "x.id = 1", "'true'", "1"]
    ):  # fmt: skip
        yield f"delete {n}: {condition}", lambda c=condition: s.t.delete(c)
    for n, (condition, value) in enumerate(
        [
            ("id = 1", "nope"),
            ("id = 1", "(select 1)"),
            ("id = 1", "max(v)"),
            ("rand() < 2", "'x'"),
            ("id = 1", "explode(array(1))"),
        ]
    ):
        yield f"update {n}: {condition} {value}", lambda c=condition, v=value: s.t.update(c, {"v": v})
    yield "no clauses", lambda: s.merge(THREE).execute()
    yield "unreachable", lambda: s.merge(THREE).whenMatchedDelete().whenMatchedUpdateAll().execute()
    yield (
        "unreachable insert",
        lambda: s.merge(THREE).whenNotMatchedInsertAll().whenNotMatchedInsertAll("s.id = 1").execute(),
    )
    yield (
        "unreachable by source",
        lambda: (
            s.merge(THREE)
            .whenNotMatchedBySourceDelete()
            .whenNotMatchedBySourceUpdate("t.id = 1", {"v": "'x'"})
            .execute()
        ),
    )
    yield "ambiguous", lambda: s.merge(THREE, "id = 1").whenMatchedDelete().execute()
    yield "ambiguous value", lambda: s.merge(THREE).whenMatchedUpdate(set={"v": "v"}).execute()
    yield "target in insert", lambda: s.merge(THREE).whenNotMatchedInsert(values={"id": "t.id"}).execute()
    yield "source in the other", lambda: s.merge(THREE).whenNotMatchedBySourceUpdate(set={"v": "s.v"}).execute()
    yield "target in insert condition", lambda: s.merge(THREE).whenNotMatchedInsertAll("t.id = 1").execute()
    yield "aggregate", lambda: s.merge(THREE, "max(t.id) = s.id").whenMatchedDelete().execute()
    yield "not deterministic", lambda: s.merge(THREE, "t.id = s.id and rand() < 2").whenMatchedDelete().execute()
    yield "subquery", lambda: s.merge(THREE, "t.id in (select 1)").whenMatchedDelete().execute()
    yield "clause subquery", lambda: s.merge(THREE).whenMatchedDelete("t.id in (select 1)").execute()
    yield "clause not deterministic", lambda: s.merge(THREE).whenMatchedDelete("rand() < 2").execute()
    yield "not boolean", lambda: s.merge(THREE).whenMatchedDelete("s.v").execute()
    yield "set twice", lambda: s.merge(THREE).whenMatchedUpdate(set={"v": "1", "V": "2"}).execute()
    yield "insert twice", lambda: s.merge(THREE).whenNotMatchedInsert(values={"v": "1", "t.v": "2"}).execute()
    yield (
        "source has a column twice",
        lambda: s.merge("select 5L id, 5L ID, 1 p, 'v' v").whenMatchedUpdateAll().execute(),
    )
    yield "no values", lambda: s.t.update("id = 1", {})
    yield "insert no values", lambda: s.merge(THREE).whenNotMatchedInsert(values={}).execute()
    yield "update no values", lambda: s.merge(THREE).whenMatchedUpdate(set={}).execute()
