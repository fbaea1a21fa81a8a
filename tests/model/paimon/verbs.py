"""Verbs on Paimon tables: from a world and a seed to a call and the state afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.parquet as pq

import alluvium
from model.paimon.world import (
    PaimonWorld,
    Told,
    behind_deletions,
    by_writers,
    engine_of,
    evolves,
    is_keyed,
    merged,
    with_deletions,
)
from model.state import ID, Bound, Column, Version
from model.values import DECIMAL, NESTED, WIDER, Row, condition_sql, holds, random_condition
from model.verbs import rows as r

TYPES = ("int", "long", "string", "double", "date", "boolean", "short", "byte", DECIMAL, "timestamp", *NESTED)


@dataclass
class PaimonBound:
    """A step that is about to be done.

    Attributes:
        call: For the engine: plain JSON.
        after: What reading the table gives afterwards.
        commits: The fewest and the most snapshots that it may take.
        kinds: What these may be.
        came: Rows that an append brought, for the table's changes; None: it was none.
        written: Of a table of keys: the rows that were written over others, each with its kind.
        back_to: The snapshot that the table goes back to.
        keeps: So many of the newest snapshots stay.
        tag: The tag that is made, and of which snapshot; None of a snapshot: it is deleted.
        fresh: Keys of rows that are new: they have ids that no row has had.
        updated: Keys of rows that keep theirs, and are changed.
        stays: Of an overwrite: whether a row's file stays; None: it is none.
        again: The snapshot whose state is the newest again by a commit, and what it shows by its own columns.
        purges: Whether nothing stays but the newest snapshot, tags included.
        copies: Whether a copy is made.
        on_branch: A branch that is written to, and what it is afterwards.
        forward: Has the world go on as another branch did.
        also: Takes over what becomes of anything beside the main branch.
        by: The engine that did it.
        refused: It must change nothing.
    """

    call: dict[str, Any]
    after: Version
    commits: tuple[int, int] = (1, 1)
    kinds: frozenset[str] = frozenset({"APPEND"})
    came: list[Row] | None = None
    written: list[Told] = field(default_factory=list)
    back_to: int | None = None
    keeps: int | None = None
    tag: tuple[str, int | None] | None = None
    fresh: frozenset[int] = frozenset()
    updated: frozenset[int] = frozenset()
    stays: Callable[[Row], bool] | None = None
    again: tuple[int, Version] | None = None
    purges: bool = False
    copies: bool = False
    on_branch: tuple[str, Version] | None = None
    forward: Callable[[PaimonWorld], None] | None = None
    also: Callable[[PaimonWorld], None] | None = None
    by: Any = None
    refused: bool = False

    @property
    def compacts_too(self) -> bool:
        """Whether who writes rows may compact behind them, which is a snapshot of its own."""
        return getattr(self.by, "compacts_too", False)

    @property
    def keeps_schema(self) -> bool:
        """Whether the snapshot is of the schema of the one before it, be there a newer one."""
        return bool(self.call["verb"] == "compact_manifests")

    def refuse(self) -> None:
        """An engine did not do it."""
        self.refused = True
        self.fresh = self.updated = frozenset()
        self.written = []


Bind = Callable[[PaimonWorld, random.Random], PaimonBound | None]
REWRITES = frozenset({"APPEND", "OVERWRITE"})


def new_rows(chance: random.Random, now: Version, keys: list[int]) -> dict[int, Row]:
    return {key: behind_deletions(now, r.new_row(chance, now, key)) for key in keys}


def append(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """Of keys some that are there already."""
    now = world.now
    free = sorted(set(range(r.KEYS)) - (set() if is_keyed(now) else now.rows.keys()))
    rows = new_rows(chance, now, chance.sample(free, min(len(free), chance.randint(1, 6))))
    if not rows:
        return None
    # Another writer's commit is in between only where the library's own code stages the rows.
    is_late = chance.random() < 0.2 and not by_writers(now)
    call = {"verb": "append", **r.table_of(now, list(rows.values())), "late": is_late}
    after = now.with_rows(now.rows | {key: merged(now, now.rows.get(key), row) for key, row in rows.items()})
    written = [("+I", row) for row in rows.values()]
    return PaimonBound(call, after, came=list(rows.values()), written=written, fresh=frozenset(rows))


def overwrite(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    now = world.now
    rows = new_rows(chance, now, chance.sample(range(r.KEYS), chance.randint(1, 8)))
    call = {"verb": "overwrite", **r.table_of(now, list(rows.values()))}
    kinds = frozenset({"OVERWRITE"})
    return PaimonBound(call, now.with_rows(rows), kinds=kinds, fresh=frozenset(rows), stays=_none)


def _none(row: Row) -> bool:
    return False


def dynamic_overwrite(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    if not now.partition:
        return None
    rows = new_rows(chance, now, chance.sample(range(r.KEYS), 3))
    parts = {row["p"] for row in rows.values()}
    kept = {key: row for key, row in now.rows.items() if row["p"] not in parts}
    rows = {key: row for key, row in rows.items() if key not in kept}
    if {row["p"] for row in rows.values()} != parts:
        return None
    call = {"verb": "dynamic_overwrite", **r.table_of(now, list(rows.values()))}
    kinds, fresh = frozenset({"OVERWRITE"}), frozenset(rows)
    return PaimonBound(
        call, now.with_rows(kept | rows), kinds=kinds, fresh=fresh, stays=lambda row: row["p"] not in parts
    )


def replace_where(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    if not now.partition:
        return None
    tree = random_condition(chance, {"p": "int"})
    kept = {key: row for key, row in now.rows.items() if not holds(tree, row)}
    free = sorted(set(range(r.KEYS)) - kept.keys())
    rows = new_rows(chance, now, chance.sample(free, min(len(free), 8)))
    rows = {key: row for key, row in rows.items() if holds(tree, row)}
    call = {
        "verb": "replace_where",
        "where": condition_sql(tree, now.names()),
        **r.table_of(now, list(rows.values())),
    }
    # Where nothing goes and nothing comes there is still a snapshot.
    kinds, fresh = frozenset({"OVERWRITE"}), frozenset(rows)
    after = now.with_rows(kept | rows)
    return PaimonBound(call, after, (0, 1), kinds, fresh=fresh, stays=lambda row: not holds(tree, row))


def _as_paimon(now: Version, bound: Bound | None) -> PaimonBound | None:
    """A verb over rows that Delta's tables have, too; of keys its new rows merge with the old."""
    if bound is None or (is_keyed(now) and engine_of(now) != "deduplicate"):
        return None
    after = bound.after
    if is_keyed(now):
        if any(behind_deletions(now, row) != row for key, row in after.rows.items() if key not in now.rows):
            return None
        rows = {key: merged(now, now.rows.get(key), row) for key, row in after.rows.items()}
        after = with_deletions(now, after.with_rows(rows))
    gone = [key for key in now.rows if key not in after.rows]
    told = {"gone": gone, "updated": _shown(bound.after, bound.updated), "born": _shown(bound.after, bound.fresh)}
    call = {**bound.call, "edits": told}
    changes = bool(gone or bound.updated or bound.fresh)
    kinds = frozenset({"APPEND"}) if is_keyed(now) else REWRITES
    came = bound.after.rows
    written = [("-D", now.rows[key]) for key in gone]
    written += [("+U", came[key]) for key in sorted(bound.updated)] + [("+I", came[key]) for key in sorted(bound.fresh)]
    bound_to = {"fresh": bound.fresh, "updated": bound.updated, "written": written}
    # Of columns that are set to what they are nothing is written.
    least = bool(gone or bound.fresh) if evolves(now) else changes
    return PaimonBound(call, after, (int(least), int(changes)), kinds, **bound_to)


def _shown(after: Version, keys: frozenset[int]) -> list[Row]:
    return [after.shown(after.rows[key]) for key in sorted(keys)]


def delete(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    return _as_paimon(world.now, r.delete(world, chance))


def update(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    return _as_paimon(world.now, r.update(world, chance))


def merge(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    return _as_paimon(world.now, r.merge(world, chance))


def compact(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    """`full`: all files; otherwise what a writer would pick by itself."""
    call = {"verb": "compact", "full": chance.random() < 0.6}
    return PaimonBound(call, world.now, (0, 1), frozenset({"COMPACT"}))


def compact_manifests(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    return PaimonBound({"verb": "compact_manifests"}, world.now, (0, 1), frozenset({"COMPACT"}))


def create_tag(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    if not world.versions:
        return None
    number = chance.choice(world.whole)
    world.next_key += 1
    again = sorted(world.tags) if chance.random() < 0.3 else []
    name = chance.choice(again) if again else f"tag{world.next_key}"
    call = {"verb": "create_tag", "name": name, "snapshot": number, "replace": bool(again)}
    return PaimonBound(call, world.now, (0, 0), tag=(name, number))


def delete_tag(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    if not world.tags:
        return None
    name = chance.choice(sorted(world.tags))
    return PaimonBound({"verb": "delete_tag", "name": name}, world.now, (0, 0), tag=(name, None))


def rollback(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """To a snapshot, or to a tag, be its snapshot expired."""
    if world.tags and chance.random() < 0.4:
        name = chance.choice(sorted(world.tags))
        number, version = world.tags[name]
        call = {"verb": "rollback", "to": name}
    elif len(world.whole) > 1:
        number = chance.choice(world.whole[:-1])
        version, call = world.versions[number], {"verb": "rollback", "to": number}
    else:
        return None
    return PaimonBound(call, world.seen_now(version), (0, 0), back_to=number)


def rollback_as_latest(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """The state of a snapshot or a tag, by a commit."""
    if not world.versions:
        return None
    if world.tags and chance.random() < 0.4:
        name = chance.choice(sorted(world.tags))
        number, version = world.tags[name]
        call = {"verb": "rollback_as_latest", "tag": name, "snapshot": None}
    else:
        number = chance.choice(world.whole)
        version, call = world.versions[number], {"verb": "rollback_as_latest", "tag": None, "snapshot": number}
    return PaimonBound(call, world.seen_now(version), kinds=frozenset({"OVERWRITE"}), again=(number, version))


def purge(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    if not world.newest:
        return None
    after = world.now.with_rows({})
    kinds = frozenset({"OVERWRITE"})
    return PaimonBound({"verb": "purge"}, after, kinds=kinds, keeps=1, purges=True, stays=_none)


def lose_file(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """Somebody deletes a data file; what is left of the table is made the newest state, and nothing older stays."""
    now = world.now
    if is_keyed(now) or evolves(now) or "deletion-vectors.enabled" in now.properties or world.tags or not now.rows:
        return None
    if world.branches or world.consumers:
        return None  # they hold on to states that have the file
    # What is in it is read from the file itself: nothing of ours has a say.
    name = chance.choice(sorted(alluvium.open(world.url).files()["path"].to_pylist()))
    lost = set(pq.read_table(f"{world.url}/{name}", columns=[ID], partitioning=None)[ID].to_pylist())
    after = now.with_rows({key: row for key, row in now.rows.items() if key not in lost})
    return PaimonBound({"verb": "lose_file", "path": name}, after, kinds=frozenset({"OVERWRITE"}), keeps=1)


def copy(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    """Beside the table; of an earlier copy what has changed."""
    return PaimonBound({"verb": "copy", "to": world.copied_to}, world.now, (0, 0), copies=True)


def expire(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    if len(world.versions) < 2:
        return None
    keeps = chance.randint(1, len(world.versions) - 1)
    return PaimonBound({"verb": "expire", "keeps": keeps}, world.now, (0, 0), keeps=keeps)


def orphans(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    """All files that nothing names go, however young."""
    return PaimonBound({"verb": "orphans"}, world.now, (0, 0))


def _free(now: Version) -> list[Column]:
    """Columns on which nothing else of the table hangs."""
    bound = {ID, *now.partition, *now.keys, now.properties.get("sequence.field")}
    if engine_of(now) == "aggregation":
        bound.add("n")
    return [c for c in now.columns if c.key not in bound]


def in_orc(kind: str) -> str:
    """The type of a column of ORC files: instants before 1970 finer than milliseconds fail Java's reader, and are refused."""
    return DECIMAL if kind == "timestamp" else kind


def add_column(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    if len(now.columns) >= 9:
        return None
    world.next_key += 1
    kind = chance.choice(TYPES)
    kind = in_orc(kind) if now.properties.get("file.format") == "orc" else kind
    column = Column(f"k{world.next_key}", f"c{world.next_key}", kind)
    call = {"verb": "add_column", "name": column.name, "type": column.type}
    return PaimonBound(call, replace(now, columns=(*now.columns, column)), (0, 0))


def rename_column(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    if not _free(now):
        return None
    old = chance.choice(_free(now))
    world.next_key += 1
    # Avro has letters, digits and underscores alone.
    names = ("{key}_",) if now.properties.get("file.format") == "avro" else ("{key}_", "a b", "Ä;(1)")
    new = chance.choice(names).format(key=old.key) + str(world.next_key)
    columns = tuple(replace(c, name=new) if c == old else c for c in now.columns)
    call = {"verb": "rename_column", "name": old.name, "to": new}
    return PaimonBound(call, replace(now, columns=columns), (0, 0))


def drop_column(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    if len(_free(now)) < 2:
        return None
    gone = chance.choice(_free(now))
    after = replace(now, columns=tuple(c for c in now.columns if c != gone))
    return PaimonBound({"verb": "drop_column", "name": gone.name}, after, (0, 0))


def widen(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    now = world.now
    found = [c for c in _free(now) if c.type in WIDER]
    if not found:
        return None
    old = chance.choice(found)
    wide = chance.choice(WIDER[old.type])
    columns = tuple(replace(c, type=wide) if c == old else c for c in now.columns)
    call = {"verb": "widen", "name": old.name, "type": wide}
    return PaimonBound(call, replace(now, columns=columns), (0, 0))


def set_option(world: PaimonWorld, chance: random.Random) -> PaimonBound:
    name, value = chance.choice(
        [("manifest.merge-min-count", "2"), ("manifest.merge-min-count", "30"), ("metadata.stats-mode", "none"),
         ("metadata.stats-mode", "full"), ("compaction.min.file-num", "2"), ("snapshot.num-retained.min", "5")]
    )  # fmt: skip
    after = replace(world.now, properties={**world.now.properties, name: value})
    return PaimonBound({"verb": "set_option", "name": name, "value": value}, after, (0, 0))
