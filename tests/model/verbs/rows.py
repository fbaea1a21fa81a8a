"""Verbs that change rows."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from model.state import ID, Bound, Change, Present, Version, World, part_of
from model.values import (
    Row,
    Tree,
    Value,
    compute,
    condition_sql,
    expression_sql,
    holds,
    keys_of,
    quoted,
    random_condition,
    random_expression,
    random_value,
)

KEYS = 24
WRITES = frozenset({"WRITE", "STREAMING UPDATE"})


def new_row(chance: random.Random, now: Version, key: int) -> Row:
    row = {c.key: value_for(chance, now, c.key) for c in now.given} | {ID: key}
    return row | {"p": part_of(key)} if now.keys else row


def value_for(chance: random.Random, now: Version, key: str) -> Value:
    """An empty text is no partition of its own: "an empty string represents null", and engines differ on when."""
    value = random_value(chance, now.column(key).type)
    return "e" if value == "" and key in now.partition else value


def table_of(now: Version, rows: list[Row]) -> dict[str, Any]:
    """Rows as a call has them: names, types, and values in their order."""
    given = now.given
    return {
        "columns": [[c.name, c.type] for c in given],
        "rows": [[r.get(c.key) for c in given] for r in rows],
        # A star stands for all columns: it fits only where rows bring all.
        "stars": len(given) == len(now.columns),
    }


def _new(chance: random.Random, now: Version, keys: list[int]) -> dict[int, Row]:
    rows = {key: new_row(chance, now, key) for key in keys}
    return {key: row for key, row in rows.items() if now.admits(row)}


def inserts(now: Version, rows: dict[int, Row]) -> list[Change]:
    return [("insert", now.shown(row)) for row in rows.values()]


def deletes(now: Version, keys: set[int]) -> list[Change]:
    return [("delete", now.shown(now.rows[key])) for key in keys]


def images(now: Version, new: dict[int, Row]) -> list[Change]:
    before = [("update_preimage", now.shown(now.rows[key])) for key in new]
    return [*before, *(("update_postimage", now.shown(row)) for row in new.values())]


def append(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    free = sorted(set(range(KEYS)) - now.rows.keys())
    rows = _new(chance, now, chance.sample(free, min(len(free), chance.randint(1, 6))))
    if not rows:
        return None
    call = {
        "verb": "append",
        **table_of(now, list(rows.values())),
        "files": chance.choice([1, 1, 2]),
        "streams": chance.random() < 0.1,
    }
    # A writer that began some versions ago: it loses the race, and puts its rows upon what came since.
    call["late"] = min(chance.choice([0, 0, 0, 1, 2, 3]), world.newest - world.logged)
    return Bound(call, now.with_rows(now.rows | rows), WRITES, feed=inserts(now, rows), fresh=frozenset(rows))


def overwrite(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    rows = _new(chance, now, chance.sample(range(KEYS), chance.randint(1, 8)))
    if not rows:
        return None
    call = {"verb": "overwrite", **table_of(now, list(rows.values()))}
    feed = deletes(now, set(now.rows)) + inserts(now, rows)
    # Whoever writes all rows anew says anew what they are clustered by, as with delta-spark.
    after = replace(now.with_rows(rows), clustered=())
    return Bound(call, after, frozenset({"WRITE"}), feed=feed, fresh=frozenset(rows))


def _put(now: Version, gone: set[int], rows: dict[int, Row]) -> Version:
    return now.with_rows({k: r for k, r in now.rows.items() if k not in gone} | rows)


def replace_where(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    types = now.types() if chance.random() < 0.5 else {key: now.column(key).type for key in now.partition or (ID,)}
    tree = random_condition(chance, types)
    gone = {key for key, row in now.rows.items() if holds(tree, row)}
    free = sorted(set(range(KEYS)) - (now.rows.keys() - gone))
    rows = _new(chance, now, chance.sample(free, min(len(free), 8)))
    rows = {key: row for key, row in rows.items() if holds(tree, row)}
    if not rows:
        return None
    call = {
        "verb": "replace_where",
        "where": condition_sql(tree, now.names()),
        "by_partition": bool(now.partition) and keys_of(tree) <= set(now.partition),
        **table_of(now, list(rows.values())),
    }
    feed = deletes(now, gone) + inserts(now, rows)
    return Bound(call, _put(now, gone, rows), frozenset({"WRITE"}), feed=feed, fresh=frozenset(rows))


def dynamic_overwrite(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    if not now.partition:
        return None

    def part(row: Row) -> tuple[Value, ...]:
        return tuple(row.get(key) for key in now.partition)

    rows = _new(chance, now, chance.sample(range(KEYS), 3))
    parts = {part(row) for row in rows.values()}
    gone = {key for key, row in now.rows.items() if part(row) in parts}
    rows = {key: row for key, row in rows.items() if key not in now.rows.keys() - gone}
    if not rows or {part(row) for row in rows.values()} != parts:
        return None
    call = {"verb": "dynamic_overwrite", **table_of(now, list(rows.values()))}
    feed = deletes(now, gone) + inserts(now, rows)
    return Bound(call, _put(now, gone, rows), frozenset({"WRITE"}), feed=feed, fresh=frozenset(rows))


def replace_using(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    rows = _new(chance, now, chance.sample(range(KEYS), chance.randint(1, 4)))
    if not rows:
        return None
    call = {"verb": "replace_using", "using": quoted(now.column(ID).name), **table_of(now, list(rows.values()))}
    gone = now.rows.keys() & rows.keys()
    feed = deletes(now, gone) + inserts(now, rows)
    return Bound(call, _put(now, gone, rows), frozenset({"WRITE", "MERGE"}), feed=feed, fresh=frozenset(rows))


def _some_condition(chance: random.Random, now: Version) -> Tree | None:
    return None if chance.random() < 0.07 else random_condition(chance, now.types())


def delete(world: Present, chance: random.Random) -> Bound | None:
    now = world.now
    tree = _some_condition(chance, now)
    gone = {key for key, row in now.rows.items() if holds(tree, row)}
    call = {"verb": "delete", "where": None if tree is None else condition_sql(tree, now.names())}
    feed = deletes(now, gone)
    fewest = 1 if gone else 0
    return Bound(call, _put(now, gone, {}), frozenset({"DELETE", "TRUNCATE"}), (fewest, 1), feed)


def _settable(now: Version) -> list[str]:
    return [c.key for c in now.given if c.key not in (ID, *now.keys)]


def update(world: Present, chance: random.Random) -> Bound | None:
    now = world.now
    keys = chance.sample(_settable(now), chance.randint(1, min(2, len(_settable(now)))))
    trees = {key: random_expression(chance, key, now.column(key).type) for key in keys}
    # As `value_for`.
    trees |= {key: ["literal", "e"] for key in trees if key in now.partition and trees[key][1] == ""}
    tree = _some_condition(chance, now)
    new = {i: row | {k: compute(t, row) for k, t in trees.items()} for i, row in now.rows.items() if holds(tree, row)}
    if not all(now.admits(row) for row in new.values()):
        return None
    sets = {quoted(now.column(k).name): expression_sql(t, now.column(k).type, now.names()) for k, t in trees.items()}
    call = {"verb": "update", "where": None if tree is None else condition_sql(tree, now.names()), "set": sets}
    fewest = 1 if new else 0
    after = now.with_rows(now.rows | new)
    return Bound(call, after, frozenset({"UPDATE"}), (fewest, 1), images(now, new), updated=frozenset(new))


def merge(world: Present, chance: random.Random) -> Bound | None:
    """Every clause, each there or not; the conditions are over both sides or one."""
    now = world.now
    source = {key: new_row(chance, now, key) for key in chance.sample(range(KEYS), chance.randint(1, 6))}
    names, types = now.names(), now.types()
    clauses: list[dict[str, Any]] = []
    gone: set[int] = set()
    new: dict[int, Row] = {}
    born: dict[int, Row] = {}
    met = {key for key in source if key in now.rows}
    if chance.random() < 0.4:
        tree = random_condition(chance, types)
        clauses.append({"clause": "matched delete", "if": condition_sql(tree, names, "s.")})
        gone |= {key for key in met if holds(tree, source[key])}
    if chance.random() < 0.7:
        if chance.random() < 0.5:
            clauses.append({"clause": "matched update all"})
            new |= {key: now.rows[key] | source[key] for key in met - gone}
        else:
            tree = random_condition(chance, types)
            key = chance.choice(_settable(now))
            clauses.append(
                {
                    "clause": "matched update",
                    "if": condition_sql(tree, names, "t."),
                    "set": {quoted(names[key][0]): f"s.{quoted(names[key][0])}"},
                }
            )
            new |= {i: now.rows[i] | {key: source[i][key]} for i in met - gone if holds(tree, now.rows[i])}
    if chance.random() < 0.7:
        tree = random_condition(chance, types) if chance.random() < 0.4 else None
        clauses.append({"clause": "insert all"} | ({} if tree is None else {"if": condition_sql(tree, names, "s.")}))
        born = {key: row for key, row in source.items() if key not in now.rows and holds(tree, row)}
    if chance.random() < 0.3:
        tree = random_condition(chance, types)
        alone = {key for key, row in now.rows.items() if key not in source and holds(tree, row)}
        if chance.random() < 0.5:
            clauses.append({"clause": "by source delete", "if": condition_sql(tree, names, "t.")})
            gone |= alone
        else:
            key = chance.choice(_settable(now))
            value = value_for(chance, now, key)
            sets = {quoted(names[key][0]): expression_sql(["literal", value], types[key], names)}
            clauses.append({"clause": "by source update", "if": condition_sql(tree, names, "t."), "set": sets})
            new |= {i: now.rows[i] | {key: value} for i in alone}
    if not clauses or not all(now.admits(row) for row in (*new.values(), *born.values())):
        return None
    call = {
        "verb": "merge",
        "on": f"t.{quoted(names[ID][0])} = s.{quoted(names[ID][0])}",
        "clauses": clauses,
        **table_of(now, list(source.values())),
    }
    rows = {k: r for k, r in (now.rows | new).items() if k not in gone} | born
    feed = deletes(now, gone) + images(now, new) + inserts(now, born)
    fewest = 1 if feed else 0
    return Bound(call, now.with_rows(rows), frozenset({"MERGE"}), (fewest, 1), feed, frozenset(born), frozenset(new))
