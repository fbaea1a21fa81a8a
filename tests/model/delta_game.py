"""Delta tables as sequences play them: what a table may be, how it is made, and what calls must say."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from alluvium.delta.view.snapshot import RECENT
from model.observe import Observer, newest_on_disk
from model.script import Engine, Script, Step, random_steps
from model.state import ID, Bound, Column, Version, World
from model.values import DECIMAL, NESTED
from model.verbs.all_verbs import VERBS
from model.verbs.evolution import WIDER_VERBS
from model.verbs.rows import KEYS, new_row, table_of

#: What a table may be from its first version on.
FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "3",
}


#: What deltalake writes to, too: where it plays, some tables have no more than that, and get no more.
PLAIN = frozenset({"delta.enableChangeDataFeed", "delta.checkpointInterval"})
NOT_PLAIN = frozenset({"set_property", "drop_feature", "cluster_by", "add_constraint"})
#: Engines that cannot say all of what a table is when they make it.
NOT_MAKERS = frozenset({"deltalake", "connect"})


#: How many of the verbs that bring rows bring a column, too.
EVOLVING = 0.15


def _wider(verb: str) -> str:
    return WIDER_VERBS.get(verb, verb)


def make_script(seed: int, engines: Sequence[str], length: int, verbs: Sequence[str] | None) -> Script:
    """A Delta table."""
    chance = random.Random(seed)
    columns = (
        Column(ID, ID, "long"),
        Column("p", "p", "int"),
        Column("v", "v", "string"),
        Column("n", "n", chance.choice(["int", "short"])),
    )
    if chance.random() < 0.25:
        columns = (*columns, Column("seq", "seq", "long", numbered=True))
    # By a lot of its own: what else a seed is stays as it was.
    more = random.Random(f"{seed} more")
    if more.random() < 0.5:
        columns = (*columns[:4], Column("x", "x", more.choice((DECIMAL, "timestamp", *NESTED))), *columns[4:])
    kind = chance.choice(["plain", "partitioned", "clustered"])
    partition = chance.choice([("p",), ("p",), ("v",), ("p", "v")]) if kind == "partitioned" else ()
    if "deltalake" in engines:
        # It brings rows of partitions beyond ASCII back that it has deleted (docs/other-readers.md).
        partition = tuple(key for key in partition if key != "v")
    properties = tuple((k, v) for k, v in FEATURES.items() if chance.random() < 0.4)
    if "deltalake" in engines and more.random() < 0.7:
        kind = "plain" if kind == "clustered" else kind
        columns = tuple(c for c in columns if not c.numbered)
        properties = tuple((k, v) for k, v in properties if k in PLAIN)
        verbs = sorted((VERBS.keys() if verbs is None else set(verbs)) - NOT_PLAIN)
    steps = random_steps(chance, VERBS, engines, length, verbs)
    if verbs is None:
        evolves = random.Random(f"{seed} evolves")
        steps = tuple(replace(s, verb=_wider(s.verb)) if evolves.random() < EVOLVING else s for s in steps)
    maker = chance.choice([name for name in engines if name not in NOT_MAKERS])
    first = Step("append", chance.choice(list(engines)), chance.getrandbits(32))
    return Script(
        seed,
        columns,
        partition,
        ("n",) if kind == "clustered" else (),
        properties,
        maker,
        # Of Parquet files that lie there; a column of numbers, and clustering, tables get when they are made.
        maker == "python"
        and kind != "clustered"
        and not columns[-1].numbered
        and "v" not in partition
        and chance.random() < 0.3,
        (first, *steps),
    )


def begin(url: str, sequence: Script, engines: Mapping[str, Engine], calls: list[dict[str, Any]]) -> Observer:
    """Creates it, or converts a folder of Parquet files."""
    RECENT.clear()
    world = World(url)
    first = Version(sequence.columns, {}, dict(sequence.properties), sequence.partition, sequence.clustered)
    call = {
        "verb": "create",
        "columns": [[c.name, c.type] for c in first.columns],
        "numbered": None if first.numbered is None else first.numbered.name,
        "partition": list(first.partition),
        "clustered": list(first.clustered),
        "properties": first.properties,
    }
    if sequence.converts:
        chance = random.Random(sequence.seed)
        # Partition columns of folders stand behind those of the files.
        first = replace(first, columns=tuple(sorted(first.columns, key=lambda c: c.key in first.partition)))
        first = first.with_rows({key: new_row(chance, first, key) for key in chance.sample(range(KEYS), 5)})
        call |= {"verb": "convert", **table_of(first, list(first.rows.values()))}
    calls.append({"engine": sequence.maker, **call})
    engines[sequence.maker].do(world.url, call)
    world.newest = newest_on_disk(world.url)
    # What it took to get there had the rows, but not all of the properties yet.
    world.versions = {v: replace(first, properties={}) for v in range(world.newest)} | {world.newest: first}
    return Observer(world)


def complete(bound: Bound, world: World) -> None:
    """What engines without SQL need to know: which rows go, which change, which come."""
    now, after, call = world.now, bound.after, bound.call
    if call["verb"] in ("delete", "update", "merge", "replace_using"):
        gone = [k for k in now.rows if k not in after.rows or k in bound.fresh]
        updated = [after.shown(after.rows[k]) for k in bound.updated]
        born = [{c.name: after.rows[k].get(c.key) for c in after.given} for k in bound.fresh]
        call["edits"] = {"key": now.column(ID).name, "gone": gone, "updated": updated, "born": born}
