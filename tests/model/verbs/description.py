"""Verbs that change what the table says of itself."""

from __future__ import annotations

import random
from dataclasses import replace

from model.state import ID, Bound, Column, Version, World
from model.values import DECIMAL, NESTED, WIDER, condition_sql, holds, keys_of, quoted, random_condition
from model.verbs.upkeep import UNORDERED

TYPES = ("int", "long", "string", "double", "date", "boolean", "short", "byte", DECIMAL, "timestamp", *NESTED)
#: What a renamed column may be called: mapping lifts the ban on characters.
NAMES = ("{key}_", "{key}_", "a b", "x.y", "c,d", "Ä;(1)", "#%", "{key}=", "a/b\\")
#: What a step may switch, and to what. Row tracking and mapping are never switched off: a table cannot simply.
SWITCHES = {
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.enableRowTracking": ("true",),
    "delta.columnMapping.mode": ("name",),
    "delta.enableTypeWidening": ("true", "false"),
    "delta.enableInCommitTimestamps": ("true",),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.checkpointInterval": ("2", "3", "100"),
    "delta.dataSkippingNumIndexedCols": ("0", "1", "32"),
    "delta.checkpoint.writeStatsAsStruct": ("true", "false"),
}
#: Features that a table may lose again, by the properties that ask for them.
DROPPED = {
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.checkpointPolicy": "v2Checkpoint",
    "delta.columnMapping.mode": "columnMapping",
}
LEAVING = frozenset(
    {
        "DROP FEATURE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "REORG",
        "Empty Commit",
        "Deletion Vector Tombstones",
        "ROW TRACKING UNBACKFILL",
        "REMOVE COLUMN MAPPING",
    }
)
SETS = frozenset({"SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"})


def wider(world: World, chance: random.Random) -> Version | None:
    """The table with one column more, in the rows that are there null; None: it has enough."""
    now = world.now
    if len(now.columns) >= 9:
        return None
    world.next_key += 1
    column = Column(f"k{world.next_key}", f"c{world.next_key}", chance.choice(TYPES))
    return replace(now, columns=(*now.columns, column))


def add_column(world: World, chance: random.Random) -> Bound | None:
    if (wide := wider(world, chance)) is None:
        return None
    column = wide.columns[-1]
    call = {"verb": "add_column", "name": column.name, "type": column.type}
    return Bound(call, wide, frozenset({"ADD COLUMNS"}), feed=[])


def _bound_keys(world: World) -> set[str]:
    """Columns on which something else of the table hangs."""
    now = world.now
    named = {key for tree in now.constraints.values() for key in keys_of(tree)}
    numbered = {c.key for c in now.columns if c.numbered}
    return {ID, *now.partition, *now.clustered, *named, *numbered}


def rename_column(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    found = [c for c in now.columns if c.key not in {key for tree in now.constraints.values() for key in keys_of(tree)}]
    if not now.is_mapped or not found:
        return None
    old = chance.choice(found)
    world.next_key += 1
    new = chance.choice(NAMES).format(key=old.key) + str(world.next_key)
    columns = tuple(replace(c, name=new) if c == old else c for c in now.columns)
    call = {"verb": "rename_column", "name": quoted(old.name), "to": new}
    return Bound(call, replace(now, columns=columns), frozenset({"RENAME COLUMN"}), feed=[])


def drop_column(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    free = [c for c in now.columns if c.key not in _bound_keys(world)]
    if not now.is_mapped or len(free) < 2:
        return None
    gone = chance.choice(free)
    rows = {i: {k: v for k, v in row.items() if k != gone.key} for i, row in now.rows.items()}
    after = replace(now, columns=tuple(c for c in now.columns if c != gone), rows=rows)
    return Bound({"verb": "drop_column", "name": quoted(gone.name)}, after, frozenset({"DROP COLUMNS"}), feed=[])


def widen(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    found = [c for c in now.columns if c.type in WIDER and c.key not in _bound_keys(world)]
    if not now.has("enableTypeWidening") or not found:
        return None
    old = chance.choice(found)
    wide = chance.choice(WIDER[old.type])
    columns = tuple(replace(c, type=wide) if c == old else c for c in now.columns)
    call = {"verb": "widen", "name": quoted(old.name), "type": wide}
    return Bound(call, replace(now, columns=columns), frozenset({"CHANGE COLUMN"}), feed=[])


def set_property(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    name = chance.choice(sorted(SWITCHES))
    value = chance.choice(SWITCHES[name])
    if now.properties.get(name) == value:
        return None
    after = replace(now, properties={**now.properties, name: value})
    return Bound({"verb": "set_property", "name": name, "value": value}, after, SETS, (1, 4), feed=[])


def add_constraint(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    tree = random_condition(chance, now.types(), 0)
    tree = ["or", ["null", tree[1]], tree] if chance.random() < 0.7 else tree
    if len(now.constraints) > 1 or not all(holds(tree, row) for row in now.rows.values()):
        return None
    world.next_key += 1
    name = f"check{world.next_key}"
    after = replace(now, constraints={**now.constraints, name: tree})
    call = {"verb": "add_constraint", "name": name, "sql": condition_sql(tree, now.names())}
    return Bound(call, after, frozenset({"ADD CONSTRAINT"}), feed=[])


def drop_constraint(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    if not now.constraints:
        return None
    name = chance.choice(sorted(now.constraints))
    after = replace(now, constraints={k: v for k, v in now.constraints.items() if k != name})
    return Bound({"verb": "drop_constraint", "name": name}, after, frozenset({"DROP CONSTRAINT"}), feed=[])


def cluster_by(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    free = [c.key for c in now.given if c.type not in UNORDERED]
    if now.partition:
        return None
    keys = tuple(chance.sample(free, chance.randint(0, 2)))
    if keys == now.clustered:
        return None
    call = {"verb": "cluster_by", "names": [quoted(now.column(key).name) for key in keys]}
    return Bound(call, replace(now, clustered=keys), frozenset({"CLUSTER BY"}), (0, 2), feed=[])


def drop_feature(world: World, chance: random.Random) -> Bound | None:
    there = sorted(name for name in DROPPED if name in world.now.properties)
    if not there:
        return None
    call = {"verb": "drop_feature", "feature": DROPPED[chance.choice(there)]}
    return Bound(call, world.now, LEAVING, (0, 12), feed=[], syncs=True)
