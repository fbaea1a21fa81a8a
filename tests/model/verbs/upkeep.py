"""Verbs that change no row, and those that bring older ones back."""

from __future__ import annotations

import random
from dataclasses import replace

from model.state import Bound, World
from model.values import NESTED, quoted

#: Types of columns that no curve of files orders.
UNORDERED = ("boolean", *NESTED)


def optimize(world: World, chance: random.Random) -> Bound | None:
    call = {"verb": "optimize", "full": chance.random() < 0.3, "is_clustered": bool(world.now.clustered)}
    return Bound(call, world.now, frozenset({"OPTIMIZE"}), (0, 3), feed=[])


def z_order(world: World, chance: random.Random) -> Bound | None:
    now = world.now
    free = [quoted(c.name) for c in now.columns if c.key not in now.partition and c.type not in UNORDERED]
    if now.clustered or not free:
        return None
    call = {"verb": "z_order", "names": chance.sample(free, min(len(free), chance.randint(1, 2)))}
    return Bound(call, now, frozenset({"OPTIMIZE"}), (0, 3), feed=[])


def purge(world: World, chance: random.Random) -> Bound | None:
    return Bound({"verb": "purge"}, world.now, frozenset({"REORG"}), (0, 3), feed=[])


def vacuum(world: World, chance: random.Random) -> Bound | None:
    all_gone = chance.random() < 0.5
    call = {"verb": "vacuum", "hours": 0 if all_gone else None}
    operations = frozenset({"VACUUM START", "VACUUM END"})
    return Bound(call, world.now, operations, (0, 2), feed=[], vacuums=all_gone)


def restore(world: World, chance: random.Random) -> Bound | None:
    kept = [v for v in range(max(world.readable, world.logged), world.newest) if v in world.versions]
    if not kept:
        return None
    version = chance.choice(kept)
    # What the table was is not all that comes back: features stay supported, row tracking stays on.
    after = world.versions[version]
    return Bound({"verb": "restore", "version": version}, after, frozenset({"RESTORE"}), (1, 1), restores=version)


def checkpoint(world: World, chance: random.Random) -> Bound | None:
    return Bound({"verb": "checkpoint"}, world.now, commits=(0, 0))


def compact_log(world: World, chance: random.Random) -> Bound | None:
    if world.newest - world.logged < 2:
        return None
    start = chance.randint(world.logged, world.newest - 1)
    call = {"verb": "compact_log", "start": start, "end": chance.randint(start + 1, world.newest)}
    return Bound(call, world.now, commits=(0, 0))


def clean_log(world: World, chance: random.Random) -> Bound | None:
    """Log files up to some version are made old first."""
    if world.newest - world.logged < 3:
        return None
    call = {"verb": "clean_log", "old_to": chance.randint(world.logged, world.newest - 1)}
    return Bound(call, world.now, commits=(0, 0), forgets=True)


def repair(world: World, chance: random.Random) -> Bound | None:
    # A table that is sound needs nothing; statistics that are missing are computed, which is a commit.
    return Bound({"verb": "repair"}, world.now, frozenset({"REPAIR", "FSCK", "COMPUTE STATS"}), (0, 1), feed=[])


def clone(world: World, chance: random.Random) -> Bound | None:
    """A clone of the newest or an older version; it may be one that is there, made again, and the table may go on in it."""
    kept = [v for v in range(max(world.readable, world.logged), world.newest + 1) if v in world.versions]
    version = world.newest if chance.random() < 0.6 else chance.choice(kept)
    there = sorted(world.clones)
    shallow = chance.random() < 0.5
    again = bool(there) and chance.random() < 0.5
    path = chance.choice(there) if again else f"{world.url}-c{len(world.clones)}"
    call = {"verb": "clone", "target": path, "shallow": shallow, "version": version, "replace": again}
    after = world.versions[version]
    # A clone has the row ids of its source; the model only looks that they are not given twice.
    moved = path if not again and chance.random() < 0.3 else None
    return Bound(call, replace(after), frozenset({"CLONE"}), (0, 0), moves_to=moved)
