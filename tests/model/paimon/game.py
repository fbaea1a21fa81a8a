"""Paimon tables as sequences play them: append tables and tables of keys, and how they are made."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from model.paimon.all_verbs import VERBS
from model.paimon.holders import held
from model.paimon.observe import PaimonObserver
from model.paimon.verbs import PaimonBound, in_orc
from model.paimon.world import PaimonWorld, by_writers, is_keyed
from model.script import Engine, Script, Step, random_steps
from model.state import ID, Column, Version
from model.values import DECIMAL, NESTED

__all__ = ["VERBS", "begin", "complete", "make_script"]

#: Engines that have no verb to make a table.
NOT_MAKERS = frozenset({"pypaimon", "spark", "spark-sql"})
#: Engines that write changelogs, and compact behind their commits.
WRITERS = frozenset({"java", "spark", "spark-sql"})


def make_script(seed: int, engines: Sequence[str], length: int, verbs: Sequence[str] | None) -> Script:
    """A Paimon table."""
    chance = random.Random(f"{seed} paimon")
    columns = (Column(ID, ID, "long"), Column("p", "p", "int"), Column("v", "v", "string"))
    columns = (*columns, Column("n", "n", chance.choice(["int", "short"])))
    if chance.random() < 0.5:
        columns = (*columns, Column("x", "x", chance.choice((DECIMAL, "timestamp", *NESTED))))
    is_keyed, is_parted = chance.random() < 0.5, chance.random() < 0.5
    options = _keyed_options(chance) if is_keyed else _append_options(chance)
    # By a lot of its own: what else a seed is stays as it was.
    more = random.Random(f"{seed} changelog")
    if is_keyed and WRITERS & set(engines) and more.random() < 0.4:
        options = _looked_up(options, more)
    if options.get("file.format") == "orc":
        columns = tuple(replace(c, type=in_orc(c.type)) for c in columns)
    if chance.random() < 0.5:
        options["manifest.merge-min-count"] = chance.choice(["2", "3"])
    steps = random_steps(chance, VERBS, engines, length, verbs)
    maker = chance.choice([name for name in engines if name not in NOT_MAKERS])
    first = Step("append", chance.choice(list(engines)), chance.getrandbits(32))
    return Script(
        seed, columns, ("p",) if is_parted else (), (), tuple(options.items()), maker, False, (first, *steps),
        "paimon", (*(("p",) if is_parted else ()), ID) if is_keyed else (),
    )  # fmt: skip


def _keyed_options(chance: random.Random) -> dict[str, str]:
    options = {"bucket": chance.choice(["1", "2", "-1"])}
    if options["bucket"] == "-1":
        options["dynamic-bucket.target-row-num"] = "3"
    engine = chance.choice(["deduplicate", "deduplicate", "deduplicate", "partial-update", "aggregation"])
    if engine != "deduplicate":
        options["merge-engine"] = engine
    elif chance.random() < 0.3:
        options["sequence.field"] = "n"
    if engine == "aggregation":
        options |= {"fields.n.aggregate-function": "sum", "fields.default-aggregate-function": "last_non_null_value"}
    return options | chance.choice([{}, {}, {"file.format": "orc"}, {"file.format": "avro"}])


def _looked_up(options: dict[str, str], chance: random.Random) -> dict[str, str]:
    """A table with a changelog, or whose readers see what compactions have seen."""
    kind = chance.choice(["input", "lookup", "lookup", "first-row", "first-row", "vectors", "full", "full"])
    if kind == "first-row":
        options = {
            key: value for key, value in options.items() if not key.startswith(("merge-", "fields.", "sequence."))
        }
        options["merge-engine"] = kind
    elif kind == "vectors":
        options = {**options, "deletion-vectors.enabled": "true"}
    if kind == "full":
        options = {**options, "changelog-producer": "full-compaction"}
        options |= chance.choice([{}, {}, {"full-compaction.delta-commits": "1"}])
    elif kind in ("input", "lookup") or chance.random() < 0.5:
        options = {**options, "changelog-producer": "input" if kind == "input" else "lookup"}
    is_looked_up = options.get("changelog-producer") in ("lookup", "full-compaction") and kind != "first-row"
    if is_looked_up and chance.random() < 0.3:
        options = {**options, "changelog-producer.row-deduplicate": "true"}
    return options


def _append_options(chance: random.Random) -> dict[str, str]:
    options = chance.choice([{}, {}, {"bucket": "2", "bucket-key": ID}])
    if chance.random() < 0.5:
        options |= {"deletion-vectors.enabled": "true"}
        options |= chance.choice([{}, {"deletion-vectors.bitmap64": "true"}])
    if "bucket" not in options and chance.random() < 0.5:
        options |= {"row-tracking.enabled": "true"}
        if "deletion-vectors.enabled" not in options and chance.random() < 0.5:
            options |= {"data-evolution.enabled": "true"}
    return options | chance.choice([{}, {"compaction.min.file-num": "2"}, {"compaction.min.file-num": "2"}])


def begin(url: str, sequence: Script, engines: Mapping[str, Engine], calls: list[dict[str, Any]]) -> PaimonObserver:
    """Creates it, without a snapshot."""
    # As catalogs have it.
    url = str(Path(url).parent / "model.db" / "t")
    now = Version(sequence.columns, {}, dict(sequence.properties), sequence.partition, keys=sequence.keys)
    call = {
        "verb": "create",
        "columns": [[c.name, c.type] for c in now.columns],
        "partition": list(now.partition),
        "keys": list(now.keys),
        "properties": now.properties,
    }
    calls.append({"engine": sequence.maker, **call})
    engines[sequence.maker].do(url, call)
    travellers = {name: engine for name, engine in engines.items() if hasattr(engine, "rows_at")}
    return PaimonObserver(PaimonWorld(url, now), travellers)


def complete(bound: PaimonBound, world: PaimonWorld) -> None:
    """What engines without SQL need to know is in the call, and whether rows are for writers alone that compact."""
    bound.call |= {"by_writers": by_writers(world.now), **held(world)}
    if bound.call["verb"] == "compact":
        bound.call["of_buckets"] = not is_keyed(world.now) and "bucket-key" in world.now.properties
    if "edits" in bound.call:
        bound.call["edits"] |= {"key": world.now.column(ID).name, "keyed": is_keyed(world.now)}
