"""Settings of a session that change what a value means, and sources that have more than a merge takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .stage import MASK, REWRITE, Stage, Step, script

ANSI, POLICY = "spark.sql.ansi.enabled", "spark.sql.storeAssignmentPolicy"
NTZ = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}


def under(s: Stage, settings: dict[str, str], do: Callable[[], object]) -> Callable[[], object]:
    """The step, with other settings of the session."""

    def step() -> None:
        before = {key: s.spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            s.spark.conf.set(key, value)
        try:
            do()
        finally:
            for key, value in before.items():
                s.spark.conf.unset(key) if value is None else s.spark.conf.set(key, value)

    return step


@script(mask=MASK)
def store_assignment(s: Stage) -> Iterator[Step]:
    yield (
        "create",
        lambda: s.create(
            ("id", "int"), ("n", "int"), ("day", "date"), ("dec", "decimal(5,2)"), ("st", "struct<x:int>"), ("ar", "array<int>")
        ),
    )  # fmt: skip
    yield "append", lambda: s.append("select 1 id, 0 n, null day, null dec, named_struct('x', 0) st, array(0) ar")
    values = {"n": "3000000000L", "day": "'nonsense'", "dec": "12345.678", "st": "named_struct('x', 3000000000L)", "ar": "array(3000000000L)"}  # fmt: skip
    for policy in ("ANSI", "STRICT", "LEGACY"):
        settings = {ANSI: "false", POLICY: policy}
        for column, value in {**values, "id": "1L + 1L", "dec ": "'1.5'"}.items():
            name, source = column.strip(), f"select 1 id, {value} as v"
            yield (
                f"{policy}: update {column}",
                under(s, settings, lambda name=name, value=value: s.t.update("id = 1", {name: value})),
            )
            yield "back", lambda: s.t.update("id = 2", {"id": "1"})
            yield (
                f"{policy}: merge {column}",
                under(
                    s,
                    settings,
                    lambda name=name, source=source: s.merge(source).whenMatchedUpdate(set={name: "s.v"}).execute(),
                ),
            )
            yield "and back", lambda: s.t.update("id = 2", {"id": "1"})


@script(mask=MASK)
def timestamps(s: Stage) -> Iterator[Step]:
    yield "create", lambda: s.create(("id", "int"), ("at", "timestamp"), ("p", "timestamp"), partition_by=("p",))
    first = "select 1 id, timestamp_ltz'2024-01-02 10:30:00' at, timestamp_ltz'2024-01-02 10:30:00' p"
    yield "append", under(s, NTZ, lambda: s.append(first))
    source = "select 1 id, timestamp_ntz'2024-07-02 10:30:00' at, '2024-01-02 11:30:00' p"
    yield "merge", under(s, NTZ, lambda: s.merge(source).whenMatchedUpdateAll().execute())
    given = {"at": "'2024-07-02 12:00:00'", "p": "date'2024-01-01'"}
    yield "update", under(s, NTZ, lambda: s.t.update("id = 1", given))


@script(rewrite=REWRITE)
def source_columns(s: Stage) -> Iterator[Step]:
    yield "create", lambda: s.create(("id", "int"), ("v", "string"), ("small", "tinyint"))
    yield "append", lambda: s.append("select 1 id, 'old' v, cast(0 as tinyint) small")
    twice = "select 1 id, 'a' v, 1 small, 0 w, 1 w"
    yield "a column twice that nobody takes", lambda: s.merge(twice).whenMatchedUpdateAll().execute()
    yield "that the schema would take", lambda: s.merge(twice).whenMatchedUpdateAll().withSchemaEvolution().execute()
    taken = "select 1 id, 'a' v, 1 small, 'b' v"
    yield "a column twice by star", lambda: s.merge(taken).whenMatchedUpdateAll().execute()
    yield "inserted", lambda: s.merge(taken, "t.id = s.id + 1").whenNotMatchedInsertAll().execute()
    yield "by name", lambda: s.merge(taken).whenMatchedUpdate(set={"v": "s.v"}).execute()
    yield "nowhere", lambda: s.merge(taken).whenMatchedUpdate(set={"small": "s.small"}).execute()
    more = "select 1 id, 'x' v, 2 small, interval 1 day more"
    yield "an interval that nobody takes", lambda: s.merge(more).whenMatchedUpdateAll().execute()
    yield (
        "that the schema would take, too",
        lambda: s.merge(more).whenMatchedUpdateAll().withSchemaEvolution().execute(),
    )
    text = "select 1 id, interval 1 month v, 3 small"
    yield "an interval as text", lambda: s.merge(text).whenMatchedUpdateAll().execute()
    wider = "select 1 id, 'w' v, 100 small, 'new' new"
    yield "a wider integer", lambda: s.merge(wider).whenMatchedUpdateAll().withSchemaEvolution().execute()
    keys = "select * from values ('1', true), ('x', false) as s(k, good)"
    condition = "s.good and t.id = cast(s.k as int)"
    yield "a key that fails", lambda: s.merge(keys, condition).whenMatchedUpdate(set={"v": "s.k"}).execute()
