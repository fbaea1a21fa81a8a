"""What becomes of the files of a unit: which are written anew together, which move up as they are, and of which rows
it is told how they changed.

Specification: `org.apache.paimon.mergetree.compact.MergeTreeCompactTask`, `ChangelogMergeTreeRewriter`,
`LookupMergeTreeCompactRewriter.upgradeStrategy`, `FullChangelogMergeTreeCompactRewriter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import compaction_options as c
from alluvium.paimon.terms import options as o
from alluvium.paimon.upkeep.keyed.universal import Unit


@dataclass(frozen=True, slots=True)
class File:
    """What decides on a file.

    Attributes:
        level: Its level.
        size: Bytes.
        takes_back: Whether rows that take others back may be in it.
        is_marked: Whether rows of it are deleted by a vector.
        is_expired: Whether the time of rows of it has passed.
    """

    level: int
    size: int
    takes_back: bool
    is_marked: bool
    is_expired: bool = False


class Files(Protocol):
    """Files by their numbers."""

    def __getitem__(self, number: int, /) -> File:
        """What decides on a file."""


@dataclass(frozen=True, slots=True)
class Step:
    """Files that are read together.

    Attributes:
        files: Their numbers; their key ranges touch those of no other step's.
        level: Where what becomes of them stands.
        rewrites: Whether their rows come into new files; the files move up as they are otherwise, or stay.
        logs: Whether it is told how rows changed.
        drops: Whether rows that take others back go: nothing older is left.
        looks: Whether new rows are among them, of whose keys the levels above may know.
    """

    files: tuple[int, ...]
    level: int
    rewrites: bool
    logs: bool
    drops: bool
    looks: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """What options say of steps.

    Attributes:
        large: Files of so many bytes move up as they are.
        top: The last level, by the options.
        looks_up: Whether new keys are looked up in the levels above.
        tells: What tells how rows changed: `"lookup"`, `"full-compaction"` or nothing.
        has_vectors: Whether old rows of keys that were looked up are deleted where they are.
        keeps_last: Whether a row of a key stands for itself, whatever others there are.
        rewrites_all: Whether files move up by being written anew alone.
    """

    large: int
    top: int
    looks_up: bool
    tells: str
    has_vectors: bool
    keeps_last: bool
    rewrites_all: bool

    @classmethod
    def of(cls, schema: TableSchema) -> Rules:
        """Those of a table."""
        options = schema.options
        producer = o.CHANGELOG_PRODUCER.get(options)
        return cls(
            c.large_size(options),
            c.num_levels(options) - 1,
            c.needs_lookup(options),
            producer if producer in ("lookup", "full-compaction") else "",
            o.DELETION_VECTORS.get(options),
            o.MERGE_ENGINE.get(options) == "deduplicate" and not any(o.SEQUENCE_FIELD.get(options)),
            c.FORCE_REWRITE.get(options),
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where a unit is.

    Attributes:
        unit: The unit.
        sections: Its files by sections whose key ranges do not touch, in the order of keys.
        highest: The highest level of the bucket that has files.
        top: Its last level.
    """

    unit: Unit
    sections: tuple[tuple[int, ...], ...]
    highest: int
    top: int


def plan_steps(bucket: Bucket, files: Files, rules: Rules) -> Iterator[Step]:
    """What becomes of the files of a bucket's unit; of those that no step has nothing."""
    together: list[tuple[int, ...]] = []
    for section in bucket.sections:
        if len(section) > 1 or files[section[0]].size < rules.large:
            together.append(section)
            continue
        # "Large file appear, rewrite previous and upgrade it".
        yield from _rewritten(together, bucket, files, rules)
        together = []
        yield from _moved(section[0], bucket, files, rules)
    yield from _rewritten(together, bucket, files, rules)


def _rewritten(sections: Sequence[tuple[int, ...]], bucket: Bucket, files: Files, rules: Rules) -> Iterator[Step]:
    if len(sections) == 1 and len(sections[0]) == 1:
        yield from _moved(sections[0][0], bucket, files, rules)
    elif sections:
        yield _together(tuple(number for section in sections for number in section), bucket, files, rules)


def _together(numbers: tuple[int, ...], bucket: Bucket, files: Files, rules: Rules) -> Step:
    level = bucket.unit.level
    has_new = any(files[number].level == 0 for number in numbers)
    logs = level == rules.top if rules.tells == "full-compaction" else rules.tells == "lookup" and has_new
    drops = level != 0 and (level >= bucket.highest or rules.has_vectors)
    return Step(numbers, level, True, logs, drops, rules.looks_up and has_new)


def _moved(number: int, bucket: Bucket, files: Files, rules: Rules) -> Iterator[Step]:
    """A file alone moves up where nothing is to be done to its rows."""
    file, level = files[number], bucket.unit.level
    alone = _together((number,), bucket, files, rules)
    if file.level == level:
        if rules.rewrites_all or file.is_marked or file.is_expired:
            yield alone
        return
    if rules.rewrites_all or file.is_expired or (level == bucket.top and file.takes_back):
        yield alone
    elif rules.tells == "full-compaction":
        yield Step((number,), level, False, level == rules.top, False, False)
    elif rules.looks_up and file.level == 0:
        anew = (rules.has_vectors and file.takes_back) or (level != bucket.top and not rules.keeps_last)
        drops = rules.has_vectors if anew else False
        yield Step((number,), level, anew, rules.tells == "lookup", drops, True)
    else:
        yield Step((number,), level, False, False, False, False)
