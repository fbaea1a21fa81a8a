"""Keys whose rows may be in any partition: where they are is found out before rows are written."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from alluvium.plan.ports import ScanSource

#: What becomes of rows whose key is in another partition: it is taken back there; they go there; they are left out.
DELETES, STAYS, SKIPS = "deletes", "stays", "skips"


@dataclass(frozen=True, slots=True)
class Crossing:
    """A key may be in any partition, but in one: before rows are written it is asked where theirs are.

    Attributes:
        keys: Columns of the whole key.
        there: The newest state's rows as files have them, unmerged: `keys`, the partition's columns, `bucket`, `order`
            (by which the rows of a key are old or new), and the kind of each.
        bucket: Column of `there`.
        order: Columns of `there`, the first counts most.
        ends: Kinds of a key's last row after which it is not there.
        ignored: Kinds of rows that count for nothing.
        follows: What becomes of rows whose key is in another partition.
        rows_most: How many keys a bucket is filled with.
        counts: Of each bucket of a partition with files: the partition's values, `BUCKET_COLUMN`, and how many rows
            there are at most (`FIRST_COLUMN`).
    """

    keys: tuple[str, ...]
    there: ScanSource | None
    bucket: str
    order: tuple[str, ...]
    ends: tuple[int, ...]
    ignored: tuple[int, ...]
    follows: str
    rows_most: int
    counts: pa.Table | None


@dataclass(frozen=True, slots=True)
class UnseenRows:
    """Rows of keys that whoever made new ones of the same keys has not seen: these would hide them for ever.

    Attributes:
        there: They.
        keys: Columns of the key.
    """

    there: ScanSource
    keys: tuple[str, ...]
