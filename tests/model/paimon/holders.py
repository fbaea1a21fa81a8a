"""Verbs of who else holds on to states of a Paimon table: branches, and consumers."""

from __future__ import annotations

import random

from model.paimon.verbs import PaimonBound, create_tag, new_rows
from model.paimon.world import Branch, PaimonWorld, by_writers, is_keyed, merged, tracks
from model.values import Row
from model.verbs import rows as r


def create_branch(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """Of a tag, which is made where there is none. Row ids and changelogs are looked at on the main branch alone."""
    if len(world.branches) > 1 or by_writers(world.now) or tracks(world.now):
        return None
    if not world.tags:
        return create_tag(world, chance)
    tag = chance.choice(sorted(world.tags))
    number, version = world.tags[tag]
    world.next_key += 1
    name = f"b{world.next_key}"

    def made(after: PaimonWorld) -> None:
        after.branches[name] = Branch(tag, number, version, {number: version})

    call = {"verb": "create_branch", "name": name, "tag": tag, "expired": number not in world.versions}
    return PaimonBound(call, world.now, (0, 0), also=made)


def append_to_branch(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """As an append to the main one; where there is no branch one is made."""
    if not world.branches:
        return create_branch(world, chance)
    name = chance.choice(sorted(world.branches))
    now = world.branches[name].now
    free = sorted(set(range(r.KEYS)) - (set() if is_keyed(now) else now.rows.keys()))
    rows: dict[int, Row] = new_rows(chance, now, chance.sample(free, min(len(free), chance.randint(1, 6))))
    if not rows:
        return None
    call = {"verb": "append_to_branch", "branch": name, **r.table_of(now, list(rows.values()))}
    after = now.with_rows(now.rows | {key: merged(now, now.rows.get(key), row) for key, row in rows.items()})
    return PaimonBound(call, world.now, (0, 0), on_branch=(name, after))


def delete_branch(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    if not world.branches:
        return None
    name = chance.choice(sorted(world.branches))

    def gone(after: PaimonWorld) -> None:
        del after.branches[name]

    return PaimonBound({"verb": "delete_branch", "name": name}, world.now, (0, 0), also=gone)


def fast_forward(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """The main branch goes on as another one, which goes: Java's next expiry on either would take the other's files."""
    # From a state that the main one was rolled back behind, or lost in between, its numbers would have a hole.
    low = min(world.versions, default=0)
    able = sorted(name for name, b in world.branches.items() if b.began in world.versions or b.began == low - 1)
    if not able:
        return append_to_branch(world, chance)
    name = chance.choice(able)
    branch = world.branches[name]

    def forward(after: PaimonWorld) -> None:
        del after.branches[name]
        after.versions = {n: v for n, v in after.versions.items() if n < branch.began} | branch.versions
        after.tags = {tag: (n, v) for tag, (n, v) in after.tags.items() if n < branch.began}
        after.tags[branch.tag] = (branch.began, branch.versions[branch.began])
        after.newest, after.now = max(branch.versions), branch.now
        after.copy, after.forwarded = None, after.forwarded + 1

    # Java puts `manifest.merge-min-count` and the like back to what they were on the branch, as we do.
    call = {"verb": "fast_forward", "name": name}
    return PaimonBound(call, branch.now, (0, 0), frozenset({"APPEND", "COMPACT"}), forward=forward)


def set_consumer(world: PaimonWorld, chance: random.Random) -> PaimonBound | None:
    """From the snapshot that it reads next on nothing expires; without one it is forgotten."""
    if not world.versions:
        return None
    name = chance.choice(["c1", "reader 2"])
    goes = name in world.consumers and chance.random() < 0.4
    number = None if goes else chance.randint(min(world.versions), world.newest + 1)

    def noted(after: PaimonWorld) -> None:
        after.consumers.pop(name, None)
        if number is not None:
            after.consumers[name] = number

    return PaimonBound({"verb": "set_consumer", "name": name, "next": number}, world.now, (0, 0), also=noted)


def held(world: PaimonWorld) -> dict[str, int]:
    """What an engine must know that looks at the main branch alone: whether others need files that its own verbs let go."""
    tags = {name: number for name, (number, _) in world.tags.items()}
    loose = [name for name, branch in world.branches.items() if tags.get(branch.tag) != branch.began]
    return {"branches": len(world.branches), "loose": len(loose)}
