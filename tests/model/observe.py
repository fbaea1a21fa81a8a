"""What the real table must say after a step, asked without Spark: rows, changes, row ids, history, older versions."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import alluvium
from alluvium.api.delta.maintenance import check_table
from alluvium.delta.view.snapshot import RECENT
from alluvium.errors import NotFound
from model.state import ID, Bound, Change, Version, World
from model.values import WHOLE, condition_sql, holds, random_condition


class Reader(Protocol):
    """How another engine reads a table; `row_ids` only where it tells them."""

    def rows(self, url: str, version: int) -> list[dict[str, Any]]:
        """The rows of a version, by the columns' names."""

    def changes(self, url: str, start: int) -> list[dict[str, Any]] | None:
        """The feed from a version on, without times; None: it has none."""

    def streamed(self, url: str, start: int | None = None) -> list[dict[str, Any]] | None:
        """What a stream tells until now: all rows, or the feed from a version on; None: it has none."""

    def row_ids(self, url: str, name: str) -> dict[int, tuple[int, int]] | None:
        """Row id and last change of each value of a column, newest version; None: it does not tell."""


class Mismatch(AssertionError):
    """The table is not what the model says."""


def ensure(is_so: bool, what: str, found: object = None, expected: object = None) -> None:
    if not is_so:
        raise Mismatch(what if found is None and expected is None else f"{what}: found {found}, expected {expected}")


def plain(value: Any) -> Any:
    """As the model has it: what JSON can hold."""
    if isinstance(value, dt.datetime):
        # Instants by UTC's clock.
        utc = value if value.tzinfo is None else value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return utc.isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        # Arrow's pairs of a map.
        value = dict(value)
    if isinstance(value, dict):
        # A map without entries is told as a list by some.
        return {key: plain(value[key]) for key in sorted(value)} or []
    return [plain(v) for v in value] if isinstance(value, list) else value


def _bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    # Numbers that are equal whatever their type; texts with their quotes.
    return Counter(tuple(sorted((name, repr(plain(v))) for name, v in row.items())) for row in rows)


def whole(row: dict[str, Any], but: str = "") -> str:
    """A row as it can be compared, and counted; `but` a column."""
    return repr(sorted((name, repr(plain(value))) for name, value in row.items() if name != but))


def same_rows(what: str, found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Raises `Mismatch` with the rows that are there too often or too rarely."""
    left, right = _bag(found), _bag(expected)
    if left != right:
        more, less = (sorted(map(str, (a - b).elements()))[:3] for a, b in ((left, right), (right, left)))
        raise Mismatch(f"{what}: {sum(left.values())} rows, not {sum(right.values())}; too many {more}, missing {less}")


def same_version(what: str, found: list[dict[str, Any]], version: Version) -> None:
    same_rows(what, found, [version.shown(row) for row in version.rows.values()])


def newest_on_disk(url: str) -> int:
    """By the names of the log's files alone: nothing of ours has a say."""
    return max(
        (
            int(f.name[:20])
            for f in Path(url, "_delta_log").glob("*.json")
            if f.name[:20].isdigit() and len(f.name) == 25
        ),
        default=-1,
    )


def oldest_readable(url: str) -> int:
    """The oldest version that the log's files lead to: from 0, or from the first checkpoint where commits are gone."""
    log = Path(url, "_delta_log")
    commits = {int(f.name[:20]) for f in log.glob("*.json") if f.name[:20].isdigit() and len(f.name) == 25}
    if 0 in commits:
        return 0
    return min(int(f.name[:20]) for f in log.glob("*.checkpoint*") if f.name[:20].isdigit())


def before_feed(world: World) -> int:
    """The version from which one range of the feed leads to the newest: columns stay, and what they are called in files.

    That changes where column mapping is dropped: no feed goes across it, here as in delta-spark
    (`DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA`).
    """
    start, oldest = world.newest, max(world.readable, world.logged)
    while start > oldest and start - 1 in world.versions and world.versions[start].feeds:
        before, after = world.versions[start - 1], world.versions[start]
        if before.columns != world.now.columns or (before.is_mapped and not after.is_mapped):
            break
        start -= 1
    return start


class Observer:
    """Looks at one table, step by step; it keeps a view that is only ever refreshed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.view = alluvium.open(world.url)

    def after(self, bound: Bound, chance: random.Random) -> None:
        """Compares, and takes over what only the table knows: row ids, and which versions there are."""
        world = self.world
        before, old = world.now, world.newest
        if bound.call["verb"] == "clone" and not bound.refused:
            self._cloned(bound)
            if bound.moves_to is not None:
                return
        new = newest_on_disk(world.url)
        low, high = (0, 0) if bound.refused and not bound.syncs else bound.commits
        if bound.syncs:
            told = {k: v for k, v in alluvium.open(world.url).properties.items() if k in before.properties}
            bound.after = replace(before, properties=told)
        ensure(low <= new - old <= high, f"{bound.call['verb']} made {new - old} commits, not {low} to {high}")
        if new > old:
            # A feature is switched off by the first of the commits that drop it.
            between = bound.after if bound.syncs else replace(before, rows=bound.after.rows)
            world.versions |= dict.fromkeys(range(old + 1, new), between)
            world.versions[new] = bound.after
            world.newest = new
        if bound.vacuums:
            world.readable = world.newest
        self._number(bound)
        self._rows(chance)
        self._history(bound, old)
        self._feed(bound, before, old)
        self._ids(bound, before, old)
        world.logged = self._logged(bound)
        self._older(chance)
        if chance.random() < 0.15:
            self.healthy()

    def _number(self, bound: Bound) -> None:
        """Takes over the numbers that the table has made, and looks that none is another's."""
        world, after = self.world, bound.after
        made = after.numbered
        if made is None or not bound.fresh or bound.refused:
            return
        name = after.column(ID).name
        found = {r[name]: r[made.name] for r in alluvium.open(world.url).to_arrow([name, made.name]).to_pylist()}
        for key in bound.fresh:
            number = found.get(key)
            ensure(
                isinstance(number, int) and number % 2 == 1 and number > 0,
                f"the number of the new row {key}",
                number,
                "1, 3, 5 ...",
            )
            ensure(number not in world.numbers, f"the number of the new row {key} was another's", number, "a new one")
            world.numbers.add(number)
            after.rows[key][made.key] = number
        for kind, row in bound.feed or ():
            if kind == "insert":
                row[made.name] = after.rows[row[name]][made.key]

    def _rows(self, chance: random.Random) -> None:
        world, now = self.world, self.world.now
        if chance.random() < 0.3:
            RECENT.clear()
        self.view = self.view.refresh()
        ensure(self.view.version == world.newest, "a refreshed view is stale", self.view.version, world.newest)
        views = [self.view, alluvium.open(world.url)]
        for view in views:
            ensure(view.schema.names == tuple(c.name for c in now.columns), "columns", view.schema.names, now.columns)
            same_version(f"rows of version {view.version}", view.to_arrow().to_pylist(), now)
        tree = random_condition(chance, now.types())
        text = condition_sql(tree, now.names())
        expected = [now.shown(row) for row in now.rows.values() if holds(tree, row)]
        same_rows(f"rows where {text}", views[1].to_arrow(where=text).to_pylist(), expected)
        self._answers(views[1])
        found = views[1].count(text)
        ensure(found == len(expected), f"count where {text}", found, len(expected))

    def _answers(self, view: alluvium.Table) -> None:
        """What the log alone may answer."""
        now = self.world.now
        counts = view.files().column("num_rows").to_pylist()
        ensure(None in counts or sum(counts) == len(now.rows), "rows of all files", counts, len(now.rows))
        for name, key in [(c.name, c.key) for c in now.columns if c.type in WHOLE]:
            values = [row[key] for row in now.rows.values() if row.get(key) is not None]
            found = view.bounds([name])[name]
            expected = (min(values, default=None), max(values, default=None))
            ensure((found.min, found.max) == expected, f"bounds of {name}", found, expected)

    def _history(self, bound: Bound, old: int) -> None:
        world = self.world
        told = {row["version"]: row["operation"] for row in self.view.history()}
        gone = [v for v in range(old + 1, world.newest + 1) if v not in told]
        ensure(not gone, f"the history lacks versions {gone}")
        for version in range(old + 1, world.newest + 1):
            ensure(
                told[version] in bound.operations,
                f"the history calls {bound.call['verb']}",
                told[version],
                set(bound.operations),
            )
        for version, operation in told.items():
            before = world.history.setdefault(version, (operation, None))[0]
            ensure(before == operation, f"the history of version {version} changed", operation, before)

    def _feed(self, bound: Bound, before: Version, old: int) -> None:
        world, now = self.world, self.world.now
        if not (before.feeds and now.feeds) or world.newest == old:
            return
        rows = self.view.changes(old + 1, world.newest).to_pylist()
        kinds = [(r["_change_type"], {k: v for k, v in r.items() if not k.startswith("_c")}) for r in rows]
        late = [r["_commit_version"] for r in rows if not old < r["_commit_version"] <= world.newest]
        ensure(not late, f"changes of other versions: {late}")
        if bound.feed is not None:
            _same_changes(f"changes of {bound.call['verb']}", kinds, bound.feed)
        if [c.name for c in before.columns] == [c.name for c in now.columns]:
            _leads(
                "changes",
                [before.shown(r) for r in before.rows.values()],
                kinds,
                [now.shown(r) for r in now.rows.values()],
            )

    def _ids(self, bound: Bound, before: Version, old: int) -> None:
        world, now = self.world, self.world.now
        if not now.tracks:
            # Once the feature has gone, ids begin anew.
            world.ids, world.used = None, set()
            return
        name = now.column(ID).name
        rows = self.view.to_arrow([name, "_row_id", "_row_commit_version"]).to_pylist()
        ids = {r[name]: (r["_row_id"], r["_row_commit_version"]) for r in rows}
        ensure(len({i for i, _ in ids.values()}) == len(ids), "a row id is given twice", sorted(ids.items()))
        if bound.restores is not None and world.ids is not None:
            for key, (row_id, _) in world.ids_of.get(bound.restores, {}).items():
                ensure(ids[key][0] == row_id, f"row id of {key} after a restore", ids[key][0], row_id)
        elif bound.restores is None and world.ids is not None:
            for key, found in ids.items():
                self._same_identity(key, found, bound, world.ids)
        world.used |= {i for i, _ in ids.values()}
        world.ids = world.ids_of[world.newest] = ids

    def _same_identity(
        self, key: int, found: tuple[int, int], bound: Bound, earlier: dict[int, tuple[int, int]]
    ) -> None:
        if key in bound.fresh:
            ensure(found[0] not in self.world.used, f"the new row {key} has an id that was another's", found[0])
        else:
            ensure(found[0] == earlier[key][0], f"row id of {key}", found[0], earlier[key][0])
        is_new = key in bound.fresh or key in bound.updated
        version = self.world.newest if is_new else earlier[key][1]
        ensure(found[1] == version, f"last change of row {key}", found[1], version)

    def _logged(self, bound: Bound) -> int:
        found = oldest_readable(self.world.url)
        world = self.world
        if bound.forgets:
            world.aged = max(world.aged, bound.call["old_to"])
            world.logged = max(world.logged, min(found, world.newest))
        # Whoever writes a checkpoint later may take what is old.
        ensure(found <= max(world.logged, world.aged + 1), "log entries that are not old are gone", found, world.logged)
        return max(world.logged, found)

    def _older(self, chance: random.Random, most: int = 2) -> None:
        versions = [v for v in self.world.versions if self.world.logged <= v < self.world.newest]
        for version in chance.sample(versions, min(most, len(versions))):
            self._travel(version)

    def _travel(self, version: int) -> None:
        world = self.world
        try:
            old = alluvium.open(world.url, version=version)
            rows = old.to_arrow().to_pylist()
        except NotFound as error:
            ensure(version < world.readable, f"version {version} cannot be read any more: {error}")
            return
        self._at_its_time(version)
        same_version(f"rows of the older version {version}", rows, world.versions[version])
        known = world.ids_of.get(version)
        if known is not None:
            name = world.versions[version].column(ID).name
            found = {r[name]: r["_row_id"] for r in old.to_arrow([name, "_row_id"]).to_pylist()}
            ensure(
                found == {k: i for k, (i, _) in known.items()}, f"row ids of the older version {version}", found, known
            )

    def _at_its_time(self, version: int) -> None:
        """The time that the history tells of a version leads to it."""
        times = {row["version"]: row["timestamp"] for row in self.view.history()}
        if version in times:
            found = alluvium.open(self.world.url, timestamp=times[version]).version
            ensure(found == version, f"the version at {times[version]}", found, version)

    def _cloned(self, bound: Bound) -> None:
        path = bound.call["target"]
        clone = alluvium.open(path)
        same_version(f"rows of the clone {Path(path).name}", clone.to_arrow().to_pylist(), bound.after)
        world = self.world
        world.clones[path] = bound.after
        world.apart.pop(path, None)
        if not bound.call["shallow"]:
            world.apart[path] = bound.after
        if bound.moves_to is not None:
            del world.clones[path]
            world.apart.pop(path, None)
            world.apart[world.url] = world.now
            world.url, world.newest, world.readable, world.logged = path, clone.version, 0, 0
            world.aged = -1
            world.versions, world.history = {clone.version: bound.after}, {}
            world.ids, world.ids_of, world.used = None, {}, set()
            made = bound.after.numbered
            # A clone counts on from where its version was.
            world.numbers = set() if made is None else {row[made.key] for row in bound.after.rows.values()}
            self.view = clone

    def healthy(self) -> None:
        findings = [f for f in check_table(self.world.url) if f.level == "error"]
        ensure(not findings, f"check_table: {findings}")

    def at_end(self, readers: dict[str, Reader] | None = None) -> None:
        """Every version, and the newest as other engines read it."""
        world = self.world
        RECENT.clear()
        for version in sorted(v for v in world.versions if world.logged <= v):
            self._travel(version)
        self.healthy()
        for path, version in world.apart.items():
            same_version(
                f"rows of {Path(path).name}, which was left alone", alluvium.open(path).to_arrow().to_pylist(), version
            )
        others = readers or {}
        self._whole_feed(others)
        followed = [r for _, batch in alluvium.open(world.url).follow(wait_s=None) for r in batch.to_pylist()]
        same_version("rows followed from the beginning", followed, world.now)
        for name, reader in others.items():
            streamed = reader.streamed(world.url)
            if streamed is not None:
                same_version(f"{name} streams all rows", streamed, world.now)
            kept = [v for v in world.versions if max(world.readable, world.logged) <= v]
            for version in {world.newest, kept[len(kept) // 2]}:
                same_version(
                    f"{name} reads version {version}", reader.rows(world.url, version), world.versions[version]
                )
            ids = reader.row_ids(world.url, world.now.column(ID).name) if world.now.tracks else None
            # A clone that was the last step has identities of its own, which nobody has looked at.
            if ids is not None and world.ids is not None:
                ensure(ids == world.ids, f"{name} reads row ids", ids, world.ids)

    def _whole_feed(self, readers: dict[str, Reader]) -> None:
        """The longest range up to now with one set of columns leads from its first version to the newest."""
        world, now = self.world, self.world.now
        start = before_feed(world)
        if start < world.newest:
            view = alluvium.open(world.url)
            rows = view.changes(start + 1).to_pylist()
            followed = [
                r for _, batch in view.follow(start=start + 1, changes=True, wait_s=None) for r in batch.to_pylist()
            ]
            same_rows(f"changes followed from {start + 1} on", followed, rows)
            timeless = [{k: v for k, v in r.items() if k != "_commit_timestamp"} for r in rows]
            for name, reader in readers.items():
                found = reader.changes(world.url, start + 1)
                if found is not None:
                    same_rows(f"{name} reads changes from {start + 1} on", found, timeless)
                    streamed = reader.streamed(world.url, start + 1)
                    if streamed is not None:
                        same_rows(f"{name} streams changes from {start + 1} on", streamed, timeless)
            kinds = [(r["_change_type"], {k: v for k, v in r.items() if not k.startswith("_c")}) for r in rows]
            first = world.versions[start]
            _leads(
                f"changes from {start + 1} on",
                [first.shown(r) for r in first.rows.values()],
                kinds,
                [now.shown(r) for r in now.rows.values()],
            )


def _same_changes(what: str, found: list[Change], expected: list[Change]) -> None:
    same_rows(what, [{**row, "?": kind} for kind, row in found], [{**row, "?": kind} for kind, row in expected])


def _leads(what: str, before: list[dict[str, Any]], changes: list[Change], after: list[dict[str, Any]]) -> None:
    """What went and what came add up."""
    gone = [row for kind, row in changes if kind in ("delete", "update_preimage")]
    came = [row for kind, row in changes if kind in ("insert", "update_postimage")]
    same_rows(f"{what}, with the rows before", [*before, *came], [*after, *gone])
