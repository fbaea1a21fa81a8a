"""What a Paimon table must say after a step, asked without Spark: rows, changes, snapshots, tags, older states."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import alluvium
from alluvium.errors import NotFound
from alluvium.paimon import PaimonTable
from model.observe import Reader, ensure, same_rows, same_version, whole
from model.paimon import changelog
from model.paimon.verbs import PaimonBound
from model.paimon.world import PaimonWorld, Told, engine_of, evolves, hides, is_keyed, producer_of, tracks
from model.state import ID, Version
from model.values import condition_sql, holds, random_condition

#: Types of columns by whose values another engine is asked for rows.
PRUNED = frozenset({"long", "int", "short", "byte", "string", "date"})
#: Those of them that nothing is widened to.
NEVER_WIDENED = frozenset({"string", "date"})


class Traveller(Protocol):
    """Another engine that reads older states, too.

    Attributes:
        passes_over_new: Whether of a range without a changelog it leaves out files that readers of rows do not see.
        streams: Whether it has streams to read by.
    """

    passes_over_new: bool
    streams: bool

    def rows_at(self, url: str, **what: Any) -> list[dict[str, Any]]:
        """The newest state, that of a `version`, a `tag` or a `branch`; `where` [column, value] at least the rows that have it; what
        came `between` two snapshots, with its kind.
        """

    def streamed(self, url: str) -> list[dict[str, Any]]:
        """What a stream begins with: all rows, with their kind where the table tells changes."""


def snapshots_on_disk(url: str, branch: str | None = None) -> list[int]:
    """By the names of files alone: nothing of ours has a say."""
    folder = Path(url, f"branch/branch-{branch}" if branch else "", "snapshot")
    return sorted(int(f.name.removeprefix("snapshot-")) for f in folder.glob("snapshot-*"))


def _shown(version: Version) -> list[dict[str, Any]]:
    return [version.shown(row) for row in version.rows.values()]


class PaimonObserver:
    """Looks at one table, step by step; it keeps a view that is only ever refreshed."""

    def __init__(self, world: PaimonWorld, travellers: Mapping[str, Traveller] | None = None) -> None:
        self.world = world
        self.travellers = travellers or {}
        self.view = alluvium.open(world.url)

    def after(self, bound: PaimonBound, chance: random.Random) -> None:
        """Compares, and takes over which snapshots there are."""
        world, old = self.world, self.world.newest
        if not bound.refused:
            self._take_over(bound)
        there = snapshots_on_disk(world.url)
        ensure(there == sorted(world.versions), f"snapshots after {bound.call['verb']}", there, sorted(world.versions))
        self._rows(chance)
        if world.newest > old:
            self._changes(bound, old)
        self._snapshots(bound, old)
        if tracks(world.now):
            self._ids(bound, old)
        if bound.copies and not bound.refused:
            world.copy = world.now
        for number in chance.sample(sorted(world.versions), min(2, len(world.versions))):
            self._travel(number)
        for name in chance.sample(sorted(world.tags), min(1, len(world.tags))):
            self._tagged(name)
        for name in chance.sample(sorted(world.branches), min(1, len(world.branches))):
            self._branch(name)
        for name, reader in self.travellers.items():
            if chance.random() < 0.25:
                self._read_by(name, reader, chance)
                # Who has seen nothing yet asks for all rows instead.
                wanted = self._wanted(bound, old)
                if wanted is not None and world.newest > old > 0:
                    if reader.passes_over_new and hides(world.now) and producer_of(world.now) == "none":
                        wanted = []
                    rows = reader.rows_at(world.url, between=(old, world.newest))
                    same_rows(f"{name} reads the changes", rows, self._kinds(wanted))

    def _take_over(self, bound: PaimonBound) -> None:
        world, verb = self.world, bound.call["verb"]
        newest = max(snapshots_on_disk(world.url), default=0)
        if bound.back_to is not None:
            self._went_back(bound)
        elif bound.forward is not None:
            bound.forward(world)
        else:
            low, high = bound.commits
            if verb == "append" and bound.call["late"]:
                high += 1
            compacts_behind = bound.compacts_too and high and "COMPACT" not in bound.kinds
            high += compacts_behind
            made = newest - world.newest
            ensure(low <= made <= high, f"{verb} made {made} snapshots, not {low} to {high}")
            # Of an append that came late the first is another writer's, of manifests alone: it is of the schema that the
            # one before it has. Behind an append with a compaction of its own the last one is this.
            before = world.versions.get(world.newest)
            between = self._uncompacted(bound) if compacts_behind else before or world.now
            world.versions |= dict.fromkeys(range(world.newest + 1, newest), between)
            if producer_of(world.now) == "full-compaction":
                self._chain(bound, newest)
            elif made:
                number = world.newest + 1 if producer_of(world.now) == "input" else newest
                world.told[number] = changelog.told(world.now, bound)
            if hides(world.now) or producer_of(world.now) == "lookup":
                world.unfinished |= set(range(world.newest + 1, newest))
            world.now = bound.after
            if made:
                shown = before if bound.keeps_schema else None
                world.versions[newest] = shown or (bound.after if bound.again is None else bound.again[1])
            world.newest = newest
        if bound.on_branch is not None:
            self._wrote_to_branch(bound)
        if bound.also is not None:
            bound.also(world)
        if bound.purges:
            world.tags, world.branches, world.consumers = {}, {}, {}
        if bound.keeps is not None:
            first = min([sorted(world.versions)[-bound.keeps], *world.consumers.values()])
            world.versions = {n: version for n, version in world.versions.items() if n >= first}
        if bound.tag is not None:
            name, number = bound.tag
            world.tags.pop(name, None)
            if number is not None:
                world.tags[name] = (number, world.versions[number])

    def _chain(self, bound: PaimonBound, newest: int) -> None:
        """Takes over what full compactions told: when somebody compacts in full is not the model's to say."""
        world = self.world
        before = world.tops.get(world.newest if bound.again is None else bound.again[0], {})
        left = changelog.left_of(before, bound)
        world.tops |= dict.fromkeys(range(world.newest + 1, newest + 1), left)
        found: list[dict[str, Any]] = []
        if newest > world.newest:
            found = alluvium.open(world.url).changes(world.newest, newest).to_pylist()
        told, world.tops[newest] = changelog.chained(left, bound, found)
        if newest > world.newest:
            world.told[newest] = told

    def _wrote_to_branch(self, bound: PaimonBound) -> None:
        assert bound.on_branch is not None
        name, after = bound.on_branch
        branch = self.world.branches[name]
        newest = max(snapshots_on_disk(self.world.url, name))
        made = newest - max(branch.versions)
        ensure(1 <= made <= 1 + bound.compacts_too, f"{made} snapshots on the branch {name}")
        versions = branch.versions | dict.fromkeys(range(newest - made + 1, newest + 1), after)
        self.world.branches[name] = replace(branch, now=after, versions=versions)

    def _uncompacted(self, bound: PaimonBound) -> Version:
        """The state before a writer's compaction: readers may not see yet what was written."""
        if not hides(bound.after):
            return bound.after
        left = {key: row for key, row in bound.after.rows.items() if key not in bound.fresh}
        return bound.after.with_rows(left if "OVERWRITE" in bound.kinds else self.world.now.rows)

    def _went_back(self, bound: PaimonBound) -> None:
        world, to = self.world, bound.back_to
        assert to is not None
        older = world.versions.get(to) or next(v for n, v in world.tags.values() if n == to)
        world.versions = {n: v for n, v in world.versions.items() if n < to} | {to: older}
        world.tags = {name: (n, v) for name, (n, v) in world.tags.items() if n <= to}
        world.told = {n: changes for n, changes in world.told.items() if n <= to}
        world.tops = {n: told for n, told in world.tops.items() if n <= to}
        world.unfinished = {n for n in world.unfinished if n <= to}
        world.newest, world.now = to, bound.after

    def _rows(self, chance: random.Random) -> None:
        world, now = self.world, self.world.now
        self.view = self.view.refresh()
        ensure((self.view.version or 0) == world.newest, "a refreshed view is stale", self.view.version, world.newest)
        fresh = alluvium.open(world.url)
        for view in (self.view, fresh):
            ensure(view.schema.names == tuple(c.name for c in now.columns), "columns", view.schema.names, now.columns)
            same_version(f"rows of snapshot {view.version}", view.to_arrow().to_pylist(), now)
        tree = random_condition(chance, now.types())
        text = condition_sql(tree, now.names())
        expected = [now.shown(row) for row in now.rows.values() if holds(tree, row)]
        same_rows(f"rows where {text}", fresh.to_arrow(where=text).to_pylist(), expected)
        column = chance.choice(now.columns)
        values = [{column.name: row.get(column.key)} for row in now.rows.values()]
        same_rows(f"column {column.name}", fresh.to_arrow([column.name]).to_pylist(), values)
        counts = fresh.files().column("num_rows").to_pylist()
        if not is_keyed(now) and not evolves(now) and "deletion-vectors.enabled" not in now.properties:
            ensure(sum(counts) == len(now.rows), "rows of all files", counts, len(now.rows))

    def _ids(self, bound: PaimonBound, old: int) -> None:
        """Rows keep their ids whatever happens to them; new ones have such as no row has had."""
        world, key = self.world, self.world.now.column(ID).name
        rows = alluvium.open(world.url).to_arrow([key, "_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()
        found = {row[key]: (row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in rows}
        before, least = world.ids.get(old, {}), world.next_ids.get(old, 0)
        if bound.back_to is not None and not bound.refused:
            before, least = world.ids[bound.back_to], world.next_ids[bound.back_to]
        elif bound.again is not None and not bound.refused:
            before = world.ids[bound.again[0]]
        is_new = world.newest > old
        for row, (number, version) in found.items():
            if row in bound.fresh:
                ensure(number >= least, f"the id of the new row {row}", number, least)
            else:
                ensure(row in before and number == before[row][0], f"the id of row {row}", number, before.get(row))
            changed = row in bound.fresh or row in bound.updated
            last = world.newest if changed and is_new else before[row][1]
            # Columns are written of all rows of a range, be it that only some change, and files that come together say
            # what the newest of them said.
            is_told = evolves(world.now) and last < version <= world.newest
            ensure(is_told or version == last, f"the snapshot that changed row {row}", version, last)
        numbers = [number for number, _ in found.values()]
        ensure(len(set(numbers)) == len(numbers) == len(world.now.rows), "ids", sorted(numbers))
        # Another writer's, in between, changed no row.
        world.ids |= dict.fromkeys(range(old + 1, world.newest), before)
        world.next_ids |= dict.fromkeys(range(old + 1, world.newest), least)
        world.ids[world.newest] = found
        world.next_ids[world.newest] = max([least, *(number + 1 for number in numbers)])

    def _copied(self) -> None:
        """A copy is what the table was."""
        world, copied = self.world, alluvium.open(self.world.url + self.world.copied_to)
        assert world.copy is not None
        same_version("rows of the copy", copied.to_arrow().to_pylist(), world.copy)

    def _told(self, after: int) -> list[Told]:
        """What the changelogs of the snapshots behind one tell."""
        return [change for number, changes in self.world.told.items() if number > after for change in changes]

    def _wanted(self, bound: PaimonBound, old: int) -> list[Told] | None:
        """What changes of the table are: its changelog, or else what appends brought; None: something else."""
        if producer_of(self.world.now) != "none":
            return self._told(old)
        return None if bound.came is None else [("+I", row) for row in bound.came]

    def _kinds(self, changes: list[Told]) -> list[dict[str, Any]]:
        return [{"_row_kind": kind, **self.world.now.shown(row)} for kind, row in changes]

    def _changes(self, bound: PaimonBound, old: int) -> None:
        """What an append adds is told as changes, or what the changelog tells; of keys the difference, too."""
        world, now = self.world, self.world.now
        wanted = self._wanted(bound, old)
        if wanted is not None:
            same_rows("changes", self.view.changes(old, world.newest).to_pylist(), self._kinds(wanted))
        # Where old and new rows of a key make a third, a difference takes files of both states, too: tests of it tell.
        is_last = engine_of(now) == "deduplicate" and "sequence.field" not in now.properties
        if is_keyed(now) and is_last and old in world.versions:
            before = world.seen_now(world.versions[old])
            known, shown = (Counter(map(whole, rows)) for rows in (_shown(before), _shown(now)))
            found = Counter(whole(row, "_row_kind") for row in self.view.changes(old, mode="diff").to_pylist())
            # Files of both states are left out, so that a row that came again as it was may be told, too.
            ensure(not (shown - known) - found, "missing in the difference", (shown - known) - found)
            ensure(not found - shown, "too much in the difference", found - shown)

    def _snapshots(self, bound: PaimonBound, old: int) -> None:
        told = self.view.system("snapshots").to_pylist() if self.world.newest else []
        numbers = [row["snapshot_id"] for row in told]
        ensure(numbers == sorted(self.world.versions), "snapshots told", numbers, sorted(self.world.versions))
        kinds = {row["snapshot_id"]: row["commit_kind"] for row in told}
        is_late = bound.call.get("late") and not bound.compacts_too and self.world.newest > old + 1
        late = old + 1 if is_late else None
        for number in range(old + 1, self.world.newest + 1):
            behind = bound.compacts_too and number > old + 1
            allowed = {"COMPACT"} if number == late or behind else bound.kinds
            ensure(kinds[number] in allowed, f"{bound.call['verb']} is called", kinds[number], allowed)
        for row in told:
            if row["snapshot_id"] > old and not is_keyed(self.world.now):
                files = alluvium.open(self.world.url, version=row["snapshot_id"]).files()
                ensure(row["total_record_count"] == sum(files["num_rows"].to_pylist()), "total_record_count", row)

    def _read(self, what: str, state: Version, **at: Any) -> alluvium.Table:
        try:
            view = alluvium.open(self.world.url, **at)
            rows = view.to_arrow().to_pylist()
        except NotFound as error:
            ensure(False, f"{what} cannot be read: {error}")
            raise
        ensure(view.schema.names == tuple(c.name for c in state.columns), f"columns of {what}", view.schema.names)
        same_version(f"rows of {what}", rows, state)
        return view

    def _travel(self, number: int) -> None:
        view = self._read(f"the older snapshot {number}", self.world.versions[number], version=number)
        at = alluvium.open(self.world.url, timestamp=view.timestamp)
        ensure(at.timestamp == view.timestamp, f"the snapshot at {view.timestamp}", at.version, number)

    def _tagged(self, name: str) -> None:
        self._read(f"the tag {name}", self.world.tags[name][1], tag=name)

    def _branch(self, name: str) -> None:
        branch = self.world.branches[name]
        self._read(f"the branch {name}", branch.now, branch=name)
        there = snapshots_on_disk(self.world.url, name)
        ensure(there == sorted(branch.versions), f"snapshots of the branch {name}", there, sorted(branch.versions))
        for number, version in branch.versions.items():
            self._read(f"snapshot {number} of the branch {name}", version, branch=name, version=number)

    def _held(self) -> None:
        """Names of branches, and how far consumers have come."""
        told = PaimonTable.forPath(self.world.url)
        names = told.branches()["branch_name"].to_pylist()
        ensure(sorted(names) == sorted(self.world.branches), "branches", names, sorted(self.world.branches))
        columns = told.consumers().to_pydict()
        found = dict(zip(columns["consumer_id"], columns["next_snapshot_id"], strict=True))
        ensure(found == self.world.consumers, "consumers", found, self.world.consumers)

    def _read_by(self, name: str, reader: Traveller, chance: random.Random) -> None:
        """The newest state as another engine reads it, whole and by a condition; an older snapshot, and a tag."""
        world, now = self.world, self.world.now
        same_version(f"{name} reads", reader.rows_at(world.url), now)
        # Where files hold some columns, Java compares the wider value with what a file says of the narrower one, and
        # leaves out files that it wrote itself (1.4.2).
        evolves = now.properties.get("data-evolution.enabled") == "true"
        asked = [c for c in now.columns if c.type in (NEVER_WIDENED if evolves and name == "java" else PRUNED)]
        column = chance.choice(asked) if asked else None
        known = [row[column.key] for row in now.rows.values() if row.get(column.key) is not None] if column else []
        if column and known:
            value = chance.choice(sorted(known))
            found = reader.rows_at(world.url, where=[column.name, value])
            # It only leaves files out by it: what must be there is there.
            wanted = [now.shown(row) for row in now.rows.values() if row.get(column.key) == value]
            lost = Counter(map(whole, wanted)) - Counter(map(whole, found))
            ensure(not lost, f"{name} reads by a condition without rows that meet it", lost)
        if world.versions:
            number = chance.choice(sorted(world.versions))
            rows = reader.rows_at(world.url, version=number)
            same_version(f"{name} reads the older snapshot {number}", rows, world.versions[number])
        if world.tags:
            tag = chance.choice(sorted(world.tags))
            same_version(f"{name} reads the tag {tag}", reader.rows_at(world.url, tag=tag), world.tags[tag][1])
        if world.branches:
            branch = chance.choice(sorted(world.branches))
            rows = reader.rows_at(world.url, branch=branch)
            same_version(f"{name} reads the branch {branch}", rows, world.branches[branch].now)

    def _whole_changelog(self) -> None:
        """All that is told behind the oldest snapshot, whatever became of the files since; by the other engines, too."""
        world = self.world
        oldest = min(world.versions)
        wanted = self._kinds(self._told(oldest))
        if oldest == world.newest:
            return
        same_rows(f"changes from {oldest} on", self.view.changes(oldest, world.newest).to_pylist(), wanted)
        for name, reader in self.travellers.items():
            found = reader.rows_at(world.url, between=(oldest, world.newest))
            same_rows(f"{name} reads the changes from {oldest} on", found, wanted)

    def _streamed_by(self, name: str, reader: Traveller) -> None:
        """All rows; where full compactions tell of the table, those of which they have told."""
        world = self.world
        if not reader.streams:
            return
        rows = reader.streamed(world.url)
        found = [{key: value for key, value in row.items() if key != "_row_kind"} for row in rows]
        if producer_of(world.now) != "full-compaction":
            same_version(f"{name} streams all rows", found, world.now)
            return
        problem = changelog.not_as_told(world.tops.get(world.newest, {}), world.now, found)
        ensure(problem is None, f"{name} streams of {problem}")

    def at_end(self, readers: dict[str, Reader] | None = None) -> None:
        """Every snapshot and tag, and the newest state as other engines read it."""
        world = self.world
        for number in sorted(world.versions):
            self._travel(number)
        if world.newest and producer_of(world.now) != "none":
            self._whole_changelog()
        for name in sorted(world.tags):
            self._tagged(name)
        for name in sorted(world.branches):
            self._branch(name)
        self._held()
        if world.copy is not None:
            self._copied()
        names = self.view.system("tags")["tag_name"].to_pylist() if world.newest else []
        names = [name for name in names if not name.startswith("rollback-to-as-latest-")]
        ensure(sorted(names) == sorted(world.tags), "tags", names, sorted(world.tags))
        # pypaimon 2.1 knows vectors of 32 bits alone.
        is_read = world.newest and "deletion-vectors.bitmap64" not in world.now.properties
        for name, reader in (readers or {}).items():
            if name in self.travellers:
                self._read_by(name, self.travellers[name], random.Random(world.newest))
                self._streamed_by(name, self.travellers[name])
            elif is_read:
                same_version(f"{name} reads", reader.rows(world.url, world.newest), world.now)
