"""Which files of which buckets are compacted, and how: from a snapshot to a `Compaction`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.tree import Expression
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Replaced
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.append_compact import partitions_where
from alluvium.paimon.upkeep.keyed.compaction import Compaction
from alluvium.paimon.upkeep.keyed.expiry import row_expiry
from alluvium.paimon.upkeep.keyed.steps import Bucket, File, Rules, plan_steps
from alluvium.paimon.upkeep.keyed.universal import Run, Strategy, Unit, pick, pick_full
from alluvium.paimon.view.sections import key_sections, may_take_back
from alluvium.paimon.write.keyed import ensure_levels_alike
from alluvium.plan.write import Regrouped

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which compaction is meant.

    Attributes:
        is_full: All files of each bucket; otherwise what a writer would pick by itself.
        where: Of partitions: only those for which it is true.
        idle_since_ms: Only partitions to which nothing was written since then (milliseconds since 1970 by the wall
            clock, as manifests have times).
        places: Only these buckets: partitions and numbers; None: all.
        is_told: Whether it is told how rows change, where the table wants that.
    """

    is_full: bool = True
    where: Expression | None = None
    idle_since_ms: int | None = None
    places: frozenset[tuple[bytes, int]] | None = None
    is_told: bool = True


def plan_compaction(snapshot: Snapshot, asked: Asked) -> Compaction:
    """What is to be done; nothing where no bucket is to be compacted.

    Args:
        snapshot: The newest state.
        asked: Which compaction is meant.

    Raises:
        UnsupportedFeature: As of `ensure_levels_alike`; or the condition is not about partition keys alone
            (`"replace-where-data"`).
    """
    ensure_levels_alike(snapshot.schema)
    if not asked.is_full and not _may_pick(snapshot):
        return Compaction.nothing(snapshot, ENTRIES.empty_table())
    entries = asked_entries(snapshot, asked)
    # Rows that wait are in no bucket yet.
    entries = entries.filter(pc.not_equal(entries["bucket"], o.POSTPONE_BUCKET))
    if asked.places is not None and entries.num_rows:
        places = zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True)
        entries = entries.filter(pa.array([place in asked.places for place in places]))
    if not entries.num_rows:
        return Compaction.nothing(snapshot, entries)
    return _Planned(snapshot, entries, asked).compaction()


def asked_entries(snapshot: Snapshot, asked: Asked) -> pa.Table:
    """The files (`ENTRIES`) of the partitions that are meant."""
    entries = partitions_where(snapshot, removed_entries(snapshot, Replaced()), asked.where)
    return entries if asked.idle_since_ms is None else _idle(entries, asked.idle_since_ms)


def _may_pick(snapshot: Snapshot) -> bool:
    """Whether a bucket may have enough runs, by what is known of all files: whole entries are read only then."""
    strategy = Strategy.of(snapshot.schema.options)
    if strategy.picks_early or not snapshot.entries.num_rows:
        return strategy.picks_early
    # A file of level 0 is a run, and so is each level above.
    level = snapshot.entries["level"]
    run = pc.if_else(pc.equal(level, 0), snapshot.entries["file_name"], level.cast(pa.string()))
    places = snapshot.entries.select(["partition", "bucket"]).append_column("run", run)
    counts = places.group_by(["partition", "bucket"]).aggregate([("run", "count_distinct")])
    return bool(pc.max(counts["run_count_distinct"]).as_py() >= strategy.trigger)


def places_of(snapshot: Snapshot, paths: pa.ChunkedArray) -> frozenset[tuple[bytes, int]]:
    """The buckets that some live files are in."""
    names = pc.replace_substring_regex(paths, "^.*/", "")
    entries = snapshot.entries.filter(pc.is_in(snapshot.entries["file_name"], value_set=names.combine_chunks()))
    return frozenset(zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True))


def _idle(entries: pa.Table, since_ms: int) -> pa.Table:
    """Without the partitions that have a file of later."""
    times = pc.fill_null(entries["creation_time"].cast(pa.int64()), 0)
    late = pc.unique(entries.filter(pc.greater(times, since_ms))["partition"])
    return entries.filter(pc.invert(pc.is_in(entries["partition"], value_set=late)))


class _Planned:
    """One pass over the files of some buckets.

    Args:
        snapshot: The state.
        entries: The files (`ENTRIES`), all of each bucket.
        asked: Which compaction is meant.
    """

    def __init__(self, snapshot: Snapshot, entries: pa.Table, asked: Asked) -> None:
        self._snapshot = snapshot
        # The newest first: by which rows are youngest (`Levels`), as runs of level 0 stand.
        order = pc.sort_indices(entries, [("max_sequence_number", "descending"), ("min_sequence_number", "descending"),
                                          ("creation_time", "descending"), ("file_name", "ascending")])  # fmt: skip
        self._entries = entries.take(order)
        self._asked = asked
        self._levels = np.asarray(self._entries["level"].to_numpy(), np.int64)
        # Of rows with equal numbers those of the file that was added last are youngest; what was compacted is older.
        self._order = np.empty(entries.num_rows, np.int64)
        self._order[np.lexsort((order.to_numpy(), -self._levels))] = np.arange(entries.num_rows)
        self._sizes = np.asarray(self._entries["file_size"].to_numpy(), np.int64)
        takes_back = may_take_back(self._entries, snapshot.schema)
        self._takes_back = np.asarray(takes_back.combine_chunks().to_numpy(zero_copy_only=False), bool)
        self._marked = self._with_vectors()
        expiry = row_expiry(snapshot.schema)
        self._expired = np.zeros(entries.num_rows, bool) if expiry is None else expiry.among(snapshot, self._entries)
        partitions = self._entries["partition"].combine_chunks().dictionary_encode().indices
        buckets = np.asarray(self._entries["bucket"].to_numpy(), np.int64)
        pairs = np.stack([np.asarray(partitions.to_numpy(zero_copy_only=False), np.int64), buckets])
        self._places: _Numbers = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def _with_vectors(self) -> npt.NDArray[np.bool_]:
        masks = vector_masks(self._snapshot)
        if masks is None:
            return np.zeros(self._entries.num_rows, bool)
        found = pc.is_in(self._entries["file_name"], value_set=masks.ranges["name"].combine_chunks())
        return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False), bool)

    def compaction(self) -> Compaction:
        """What comes of all buckets."""
        schema, count = self._snapshot.schema, self._entries.num_rows
        strategy, rules = Strategy.of(schema.options), Rules.of(schema)
        if not self._asked.is_told:
            rules = replace(rules, tells="")
        order = np.argsort(self._places, kind="stable")
        units: list[tuple[_Numbers, Unit, int]] = []
        # One step a bucket.
        for rows in np.split(order, np.flatnonzero(np.diff(self._places[order])) + 1):
            top = max(strategy.top, int(self._levels[rows].max()))
            if (unit := self._unit(replace(strategy, levels=top + 1), rows)) is not None:
                units.append((rows, unit, top))
        sections = self._sections([number for _, unit, _ in units for number in unit.files])
        codes, levels = np.full(count, -1, np.int64), self._levels.copy()
        looks, in_unit = np.zeros(count, bool), np.zeros(count, bool)
        numbers = itertools.count()
        for rows, unit, top in units:
            in_unit[list(unit.files)] = True
            bucket = Bucket(unit, _in_order(unit, sections), int(self._levels[rows].max()), top)
            for step in plan_steps(bucket, self, rules):
                files = list(step.files)
                levels[files] = step.level
                looks[files] = step.looks & (self._levels[files] == 0)
                codes[files] = Regrouped.code(
                    next(numbers), rewrites=step.rewrites, logs=step.logs, drops=step.drops, looks=step.looks
                )
        above = ~in_unit & (self._levels > 0) & np.isin(self._places, self._places[looks])
        fates = {"code": codes, "level": levels, "looks": looks, "is_asked": above}
        fates |= {"place": self._places, "order": self._order}
        return Compaction(self._snapshot, self._entries, pa.table(fates))

    def __getitem__(self, number: int) -> File:
        """What decides on a file."""
        return File(
            int(self._levels[number]),
            int(self._sizes[number]),
            bool(self._takes_back[number]),
            bool(self._marked[number]),
            bool(self._expired[number]),
        )

    def _unit(self, strategy: Strategy, rows: _Numbers) -> Unit | None:
        runs = list(self._runs(rows))
        if self._asked.is_full or not self._numbers_rows(rows):
            return pick_full(strategy, runs, frozenset(rows[self._marked[rows] | self._expired[rows]].tolist()))
        return pick(strategy, runs)

    def _numbers_rows(self, rows: _Numbers) -> bool:
        """Whether rows of the bucket can be marked where they are, if any are to be: Parquet alone tells where."""
        if not o.DELETION_VECTORS.get(self._snapshot.schema.options):
            return True
        names = self._entries["file_name"].take(pa.array(rows, pa.int64()))
        return bool(pc.all(pc.ends_with(names, ".parquet")).as_py())

    def _runs(self, rows: _Numbers) -> Iterator[Run]:
        levels = self._levels[rows]
        for number in rows[levels == 0].tolist():
            yield Run(0, int(self._sizes[number]), (number,))
        for level in np.unique(levels[levels > 0]).tolist():
            files = rows[levels == level]
            yield Run(level, int(self._sizes[files].sum()), tuple(files.tolist()))

    def _sections(self, numbers: list[int]) -> dict[int, int]:
        """The section of each file that is compacted, in the order of keys within its bucket."""
        if not numbers:
            return {}
        entries = self._entries.take(pa.array(numbers, pa.int64()))
        found = key_sections(entries, partitions_of(entries, self._snapshot.schema), self._snapshot.schema)
        return dict(zip(numbers, found.tolist(), strict=True))


def _in_order(unit: Unit, sections: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """The files of a unit by their sections."""
    found: dict[int, list[int]] = {}
    for number in unit.files:
        found.setdefault(sections[number], []).append(number)
    return tuple(tuple(found[section]) for section in sorted(found))
