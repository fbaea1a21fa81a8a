"""Compaction of tables with data evolution: files of columns of the same rows, and of neighbouring rows, become one.

Rows keep their ids, so that a file holds rows whose ids follow each other.
Specification: `org.apache.paimon.append.dataevolution.DataEvolutionCompactCoordinator`, `DataEvolutionCompactTask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.range_candidates import RANGE, RangeCandidates, range_candidates
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.append_compact import partitions_where
from alluvium.paimon.view.row_ranges import IS_APART
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import NewFiles


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is compacted.

    Attributes:
        candidates: The files; each of their ranges has the number of the file that its rows come into.
        files: A row a new file, by its number: `partition`, `bucket`, `first_row_id`, `row_count`,
            `min_sequence_number`, `max_sequence_number`.
    """

    candidates: RangeCandidates
    files: pa.Table

    def renumbered(self, keys: Sequence[int]) -> RangeCandidates:
        """The ranges under other numbers of the new files."""
        return self.candidates.renumbered(pa.array(keys, pa.int64()).take(self.candidates.numbers))


def gather_ranges(snapshot: Snapshot, where: Expression | None = None) -> Gathered | None:
    """Which ranges of ids become one file each; None: none are worth it.

    Args:
        snapshot: The newest state.
        where: Of partitions: only those for which it is true.

    Raises:
        UnsupportedFeature: The condition is not about partition keys alone (`"replace-where-data"`), or large values
            lie in files of their own (`"unsupported-compaction"`).
    """
    entries = partitions_where(snapshot, snapshot.entries, where)
    if not entries.num_rows:
        return None
    if pc.any(pc.match_substring_regex(entries["file_name"], IS_APART)).as_py():
        raise UnsupportedFeature(
            "tables whose large values lie in files of their own are not compacted",
            code="unsupported-compaction",
            features=("BLOB",),
            hint="compact the table with Paimon's own engine",
        )
    found = range_candidates(snapshot, entries)
    ranges = _ranges(found, o.SPLIT_OPEN_COST.get(snapshot.schema.options))
    numbers, count = np.full(len(found.numbers), -1, np.int64), 0
    least = max(2, o.COMPACTION_MIN_FILES.get(snapshot.schema.options))
    for places in _tasks(ranges, o.TARGET_FILE_SIZE.get(snapshot.schema.options)):
        if sum(ranges[place].files for place in places) >= least:
            numbers[[ranges[place].number for place in places]] = count
            count += 1
    if not count:
        return None
    kept = pa.array(np.flatnonzero(numbers >= 0))
    chosen = found.only(kept).renumbered(pa.array(numbers[numbers >= 0]))
    return Gathered(chosen, _new_files(chosen))


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of ids: its number, where it is, how many files hold columns of it, and what they weigh."""

    number: int
    place: tuple[bytes, int]
    first: int
    end: int
    files: int
    weight: int


def _ranges(found: RangeCandidates, open_cost: int) -> list[_Range]:
    """In the order of ids within a bucket."""
    entries = found.entries
    weights = pc.max_element_wise(entries["file_size"], pa.scalar(open_cost, pa.int64()))
    table = pa.table({"range": found.ranges, "weight": weights, **{n: entries[n] for n in (*RANGE, "row_count")}})
    grouped = table.group_by(["range", *RANGE, "row_count"]).aggregate([("weight", "sum"), ("weight", "count")])
    order = [("partition", "ascending"), ("bucket", "ascending"), ("first_row_id", "ascending")]
    return [
        _Range(
            row["range"],
            (row["partition"], row["bucket"]),
            row["first_row_id"],
            row["first_row_id"] + row["row_count"],
            row["weight_count"],
            row["weight_sum"],
        )
        for row in grouped.sort_by(order).to_pylist()
    ]


def _tasks(ranges: Sequence[_Range], target: int) -> Iterator[list[int]]:
    """Which of them, by their places, come together: neighbours, until they are large enough."""
    waiting: list[int] = []
    weight = 0
    for at, one in enumerate(ranges):
        before = ranges[at - 1] if at else None
        if before is not None and (before.place != one.place or before.end != one.first):
            yield waiting
            waiting, weight = [], 0
        if one.weight > target:
            yield [at]
            yield waiting
            waiting, weight = [], 0
            continue
        waiting.append(at)
        weight += one.weight
        if weight > target:
            yield waiting
            waiting, weight = [], 0
    yield waiting


def _new_files(chosen: RangeCandidates) -> pa.Table:
    entries = chosen.entries
    table = entries.select([*RANGE, "row_count", "min_sequence_number", "max_sequence_number"])
    table = table.append_column("number", chosen.numbers.take(chosen.ranges))
    once = table.group_by(["number", *RANGE, "row_count"]).aggregate(
        [("min_sequence_number", "min"), ("max_sequence_number", "max")]
    )
    found = once.group_by(["number", "partition", "bucket"]).aggregate(
        [
            ("first_row_id", "min"),
            ("row_count", "sum"),
            ("min_sequence_number_min", "min"),
            ("max_sequence_number_max", "max"),
        ]
    )
    names = ["number", "partition", "bucket", "first_row_id", "row_count", "min_sequence_number", "max_sequence_number"]
    return found.rename_columns(names).sort_by("number")


def gathered_entries(snapshot: Snapshot, files: pa.Table, new: NewFiles, tasks: Sequence[int]) -> pa.Table:
    """The entries (`ENTRIES`) of the new files.

    Args:
        snapshot: Whose rows they hold.
        files: As of `Gathered`.
        new: What the job has left.
        tasks: Of each file its number.

    Raises:
        CorruptTable: A file has not the rows that it is to have (`"rows-differ"`): nothing may be published.
    """
    wanted = files.take(pa.array(tasks, pa.int64()))
    written = new.table["num_rows"].combine_chunks()
    if sorted(tasks) != list(range(files.num_rows)) or not written.equals(wanted["row_count"].combine_chunks()):
        raise CorruptTable(
            f"compacted files have {written.to_pylist()} rows, not {wanted['row_count'].to_pylist()}",
            code="rows-differ",
            url=snapshot.store.url,
        )
    # They lie where the rows were, and have the partition's values among their columns. As Java has it, nothing says
    # that they were compacted.
    added = added_entries(replace(snapshot.schema, partition_keys=()), new.table, new.footers)
    for name in ("partition", "bucket", "first_row_id", "min_sequence_number", "max_sequence_number"):
        place = added.schema.get_field_index(name)
        added = added.set_column(place, ENTRIES.field(name), wanted[name].cast(ENTRIES.field(name).type))
    return added
