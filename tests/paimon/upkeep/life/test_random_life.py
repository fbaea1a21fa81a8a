"""Random lives of a table (tags, branches, rollbacks, expiry) beside dicts of what each snapshot holds."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from paimon_rows import append, ks, make

from alluvium.errors import AlluviumError
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots
from alluvium.paimon.upkeep.life.as_latest import rollback_to_as_latest
from alluvium.paimon.upkeep.life.branches import create_branch, delete_branch, fast_forward, rename_branch
from alluvium.paimon.upkeep.life.rollback import rollback_to_snapshot, rollback_to_tag
from alluvium.paimon.upkeep.life.tags import create_tag, delete_tag, list_all_tags, rename_tag
from alluvium.paimon.upkeep.removal.expire import expire_snapshots, repair_earliest
from alluvium.paimon.upkeep.removal.orphans import remove_orphan_files
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.paimon.write.target import PaimonTarget

Rows = frozenset[int]
NAMES, BRANCHES, FAR = ("t1", "t2", "t3"), ("main", "b", "c"), 1 << 60


@dataclass
class Branch:
    """What it has: rows by snapshot, and of each tag the snapshot and its rows."""

    snapshots: dict[int, Rows] = field(default_factory=dict)
    tags: dict[str, tuple[int, Rows]] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        return self.snapshots[max(self.snapshots)] if self.snapshots else frozenset()

    def missing(self, number: int) -> str | None:
        """The code of the error where there is no such snapshot."""
        if number in self.snapshots:
            return None
        return "snapshot-expired" if self.snapshots and 0 < number < min(self.snapshots) else "snapshot-not-found"

    def kept(self, number: int) -> tuple[str | None, Rows]:
        """The same, where that of a tag will do."""
        by_tag = [rows for own, rows in self.tags.values() if own == number]
        if number in self.snapshots:
            return None, self.snapshots[number]
        return (None, by_tag[0]) if by_tag else (self.missing(number), frozenset())

    def until(self, number: int, rows: Rows) -> Branch:
        """What is left of it behind a rollback."""
        snapshots = {one: held for one, held in self.snapshots.items() if one < number} | {number: rows}
        return Branch(snapshots, {name: tag for name, tag in self.tags.items() if tag[0] <= number})


class Life:
    def __init__(self, seed: int) -> None:
        self.lot = random.Random(seed)
        self.store = make(f"memory://{uuid.uuid4().hex}/t")
        self.known: dict[str, Branch] = {"main": Branch()}
        self.rows = iter(range(1000))
        self.seen: set[str] = set()

    def play(self, steps: int) -> None:
        acts = [self.append] * 3 + [self.tag, self.untag, self.rename_tag, self.branch, self.unbranch, self.rename, self.forward,
                                    self.back, self.back_to_tag, self.as_latest, self.expire, self.repair, self.orphans]  # fmt: skip
        for step in range(steps):
            act = self.lot.choice(acts)
            self.seen.add(act.__name__)
            act()
            self.check(whole=step % 6 == 5)
        self.check(whole=True)

    def check(self, whole: bool) -> None:
        assert list_branches(self.store) == sorted(set(self.known) - {"main"})
        for name, branch in self.known.items():
            assert list_snapshots(self.store, name) == sorted(branch.snapshots)
            assert {tag.name: tag.document.id for tag in list_all_tags(self.store, name)} == {
                n: t[0] for n, t in branch.tags.items()
            }
            assert ks(self.store, branch=name) == sorted(branch.rows)
            if whole:
                assert all(
                    ks(self.store, branch=name, version=number) == sorted(rows)
                    for number, rows in branch.snapshots.items()
                )
                assert all(
                    ks(self.store, branch=name, tag=tag) == sorted(rows) for tag, (_, rows) in branch.tags.items()
                )

    def done(self, act: Callable[[], object], *codes: str | None) -> bool:
        """Whether it was carried out; else for one of the reasons that there are."""
        wanted = {code for code in codes if code is not None}
        if not wanted:
            act()
            return True
        with pytest.raises(AlluviumError) as caught:
            act()
        assert caught.value.code in wanted
        self.seen.add(str(caught.value.code))
        return False

    def one(self) -> tuple[str, Branch]:
        name = self.lot.choice(list(self.known))
        return name, self.known[name]

    def number(self) -> int:
        return self.lot.randint(1, max([3, *(n for branch in self.known.values() for n in branch.snapshots)]))

    def append(self) -> None:
        name, branch = self.one()
        snapshot, k = load_snapshot(self.store, At(), name), next(self.rows)
        append(PaimonTarget(self.store, snapshot.schema, snapshot), [{"k": k}])
        branch.snapshots[max(branch.snapshots, default=0) + 1] = branch.rows | {k}

    def tag(self) -> None:
        (name, branch), tag, number = self.one(), self.lot.choice(NAMES), self.lot.choice([None, self.number()])
        if number is None:
            code, rows = (None, branch.rows) if branch.snapshots else ("snapshot-not-found", branch.rows)
        else:
            code, rows = branch.kept(number)
        if self.done(
            lambda: create_tag(self.store, tag, number, branch=name), code, "tag-exists" if tag in branch.tags else None
        ):
            branch.tags[tag] = (max(branch.snapshots) if number is None else number, rows)

    def untag(self) -> None:
        (name, branch), tag = self.one(), self.lot.choice(NAMES)
        delete_tag(self.store, tag, name)
        branch.tags.pop(tag, None)

    def rename_tag(self) -> None:
        (name, branch), tag, other = self.one(), self.lot.choice(NAMES), self.lot.choice(NAMES)
        codes = ["tag-not-found"] if tag not in branch.tags else ["tag-exists"] if other in branch.tags else []
        if self.done(lambda: rename_tag(self.store, tag, other, name), *codes):
            branch.tags[other] = branch.tags.pop(tag)

    def branch(self) -> None:
        main, name, tag = self.known["main"], self.lot.choice(BRANCHES), self.lot.choice([None, *NAMES])
        codes = ["invalid-name" if name == "main" else "branch-exists" if name in self.known else None,
                 "tag-not-found" if tag is not None and tag not in main.tags else None]  # fmt: skip
        if self.done(lambda: create_branch(self.store, name, tag), *codes):
            self.known[name] = Branch()
            if tag is not None:
                self.known[name] = Branch(dict([main.tags[tag]]), {tag: main.tags[tag]})

    def unbranch(self) -> None:
        name = self.lot.choice(BRANCHES)
        code = "invalid-name" if name == "main" else None if name in self.known else "branch-not-found"
        if self.done(lambda: delete_branch(self.store, name), code):
            del self.known[name]

    def rename(self) -> None:
        name, other = self.lot.choice(BRANCHES), self.lot.choice(BRANCHES)
        codes = ["invalid-name" if "main" in (name, other) else None, None if name in self.known else "branch-not-found",
                 "branch-exists" if other in self.known else None]  # fmt: skip
        if self.done(lambda: rename_branch(self.store, name, other), *codes):
            self.known[other] = self.known.pop(name)

    def forward(self) -> None:
        name, main = self.lot.choice(BRANCHES), self.known["main"]
        found = self.known.get(name, Branch())
        code = (
            "invalid-name"
            if name == "main"
            else "branch-not-found"
            if name not in self.known
            else None
            if found.snapshots
            else "empty-branch"
        )
        if self.done(lambda: fast_forward(self.store, name), code):
            first = min(found.snapshots)
            main.snapshots = {n: rows for n, rows in main.snapshots.items() if n < first} | found.snapshots
            main.tags = {n: tag for n, tag in main.tags.items() if tag[0] < first} | found.tags

    def back(self) -> None:
        (name, branch), number = self.one(), self.number()
        if self.done(lambda: rollback_to_snapshot(self.store, number, name), branch.missing(number)):
            self.known[name] = branch.until(number, branch.snapshots[number])

    def back_to_tag(self) -> None:
        (name, branch), tag = self.one(), self.lot.choice(NAMES)
        if self.done(lambda: rollback_to_tag(self.store, tag, name), None if tag in branch.tags else "tag-not-found"):
            self.known[name] = branch.until(*branch.tags[tag])

    def as_latest(self) -> None:
        (name, branch), tag, number = self.one(), self.lot.choice([None, *NAMES]), self.number()
        code, rows = branch.kept(number) if tag is None else (None, frozenset())
        if not branch.snapshots:
            code = "snapshot-not-found"
        elif tag is not None:
            code, rows = (None, branch.tags[tag][1]) if tag in branch.tags else ("tag-not-found", rows)
        given = {"tag": tag} if tag is not None else {"snapshot_id": number}
        if not self.done(lambda: rollback_to_as_latest(self.store, branch=name, **given), code):  # type: ignore[arg-type]
            return
        newest = max(branch.snapshots)
        branch.snapshots[newest + 1] = rows
        if tag is None:
            own = [t.name for t in list_all_tags(self.store, name) if t.name not in branch.tags]
            assert len(own) == 1 and own[0].startswith(f"rollback-to-as-latest-{number}-")
            branch.tags[own[0]] = (number, rows)

    def expire(self) -> None:
        (name, branch), least = self.one(), self.lot.randint(1, 3)
        gone = expire_snapshots(self.store, Retention(least, least, FAR, FAR), name).ids
        kept = [n for n in branch.snapshots if n > max(branch.snapshots) - least]
        assert sorted(gone) == sorted(set(branch.snapshots) - set(kept))
        branch.snapshots = {n: branch.snapshots[n] for n in kept}

    def repair(self) -> None:
        (name, branch), number = self.one(), self.number()
        if self.done(lambda: repair_earliest(self.store, number, name), branch.missing(number)):
            folder = "snapshot" if name == "main" else f"branch/branch-{name}/snapshot"
            assert self.store.get(f"{folder}/EARLIEST") == str(number).encode()

    def orphans(self) -> None:
        remove_orphan_files(self.store, load_snapshot(self.store, At()).schema, FAR, FAR + 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6, 7, 10])
def test_a_life(seed: int) -> None:
    Life(seed).play(40)


def test_what_hints_say_is_told() -> None:
    life = Life(0)
    for _ in range(3):
        life.append()
    store = life.store
    expire_snapshots(store, Retention(2, 2, FAR, FAR))
    for said, told in ((b"7", 7), (b" 2\n", 2), (b"x", 2), (None, 2), (b"", 2)):
        store.delete("snapshot/EARLIEST")
        if said is not None:
            store.put("snapshot/EARLIEST", said)
        assert repair_earliest(store, 3) == told and store.get("snapshot/EARLIEST") == b"3"
