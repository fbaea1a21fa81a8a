"""Verbs that bring rows with a column that the table has not yet."""

from __future__ import annotations

import random
from dataclasses import replace

from model.state import ID, Bound, World
from model.values import keys_of, quoted
from model.verbs.description import wider
from model.verbs.rows import KEYS, WRITES, deletes, images, inserts, new_row, table_of

#: What a verb of sequences becomes where its rows bring a column more.
WIDER_VERBS = {"append": "append_wider", "overwrite": "overwrite_wider", "merge": "merge_wider"}


def append_wider(world: World, chance: random.Random) -> Bound | None:
    """`mergeSchema`; the rows may lack a column that the table has."""
    now, wide = world.now, wider(world, chance)
    free = sorted(set(range(KEYS)) - now.rows.keys())
    if wide is None or not free:
        return None
    needed = {ID, *now.partition, *(key for tree in now.constraints.values() for key in keys_of(tree))}
    left_out = [c.key for c in now.given if c.key not in needed and chance.random() < 0.2]
    brought = replace(wide, columns=tuple(c for c in wide.columns if c.key not in left_out))
    rows = {key: new_row(chance, brought, key) for key in chance.sample(free, min(len(free), chance.randint(1, 4)))}
    if not all(now.admits(row) for row in rows.values()):
        return None
    call = {"verb": "append_wider", **table_of(brought, list(rows.values()))}
    return Bound(call, wide.with_rows(now.rows | rows), WRITES, feed=inserts(wide, rows), fresh=frozenset(rows))


def overwrite_wider(world: World, chance: random.Random) -> Bound | None:
    """`overwriteSchema`. Without partitions and clustering, which an engine may take for given up where it is not told them."""
    now, wide = world.now, wider(world, chance)
    if wide is None or now.partition or now.clustered or now.numbered or (now.is_mapped and now.feeds):
        return None
    rows = {key: new_row(chance, wide, key) for key in chance.sample(range(KEYS), chance.randint(1, 6))}
    if not all(now.admits(row) for row in rows.values()):
        return None
    call = {"verb": "overwrite_wider", **table_of(wide, list(rows.values()))}
    feed = deletes(wide.with_rows(now.rows), set(now.rows)) + inserts(wide, rows)
    return Bound(call, wide.with_rows(rows), frozenset({"WRITE"}), feed=feed, fresh=frozenset(rows))


def merge_wider(world: World, chance: random.Random) -> Bound | None:
    """`WITH SCHEMA EVOLUTION`: stars bring the new column."""
    now, wide = world.now, wider(world, chance)
    if wide is None or now.numbered:
        return None
    source = {key: new_row(chance, wide, key) for key in chance.sample(range(KEYS), chance.randint(1, 6))}
    new = {key: now.rows[key] | row for key, row in source.items() if key in now.rows}
    born = {key: row for key, row in source.items() if key not in now.rows}
    if not all(now.admits(row) for row in (*new.values(), *born.values())):
        return None
    name = quoted(now.column(ID).name)
    call = {
        "verb": "merge_wider",
        "on": f"t.{name} = s.{name}",
        "clauses": [{"clause": "matched update all"}, {"clause": "insert all"}],
        **table_of(wide, list(source.values())),
    }
    feed = images(wide.with_rows(now.rows), new) + inserts(wide, born)
    after = wide.with_rows(now.rows | new | born)
    return Bound(call, after, frozenset({"MERGE"}), feed=feed, fresh=frozenset(born), updated=frozenset(new))
