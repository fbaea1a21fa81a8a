"""What a reader or writer of PySpark was told, which tells the JVM alone; what of it no table of ours has."""

from __future__ import annotations

from dataclasses import dataclass, field

from alluvium.errors import InvalidRequest, UnsupportedFeature


@dataclass(slots=True)
class Said:
    """What a reader or writer was told, beside what it told the JVM."""

    format: str | None = None
    mode: str = "error"
    partition_by: tuple[str, ...] = ()
    is_bucketed: bool = False
    is_sorted: bool = False
    schema: bool = False
    options: dict[str, object] = field(default_factory=dict)


def said_of(owner: object) -> Said:
    """What it was told so far."""
    found: Said = owner.__dict__.setdefault("_alluvium_said", Said())
    return found


def remember_mode(said: Said, mode: str | None) -> None:
    """`mode`."""
    # PySpark, too, takes None as "leave it".
    if mode is not None:
        said.mode = mode


def remember_partitions(said: Said, *columns: str | list[str]) -> None:
    """`partitionBy`."""
    said.partition_by = _flat(columns)


def remember_clusters(said: Said, *columns: str | list[str]) -> None:
    """`clusterBy`."""
    # As an option of the writer: it goes wherever these go.
    said.options["clusterBy"] = ", ".join(_flat(columns))


def ensure_unbucketed(said: Said) -> None:
    """Refuses what `bucketBy` and `sortBy` ask for.

    Raises:
        InvalidRequest: Rows are to be sorted within buckets that there are not (`"contradicting-options"`).
        UnsupportedFeature: They are to lie in buckets (`"unsupported-partitioning"`).
    """
    if said.is_sorted and not said.is_bucketed:
        raise InvalidRequest(
            "sortBy sorts the rows of buckets, and goes with bucketBy alone",
            code="contradicting-options",
            hint="leave sortBy out, and sort the DataFrame",
        )
    if said.is_bucketed:
        asked = "bucketBy and sortBy" if said.is_sorted else "bucketBy"
        raise UnsupportedFeature(
            f"bucketing as {asked} would have it is not a thing of Delta or Paimon tables",
            code="unsupported-partitioning",
            features=("bucketBy",),
            hint="leave bucketBy out: Delta tables have clusterBy, Paimon tables the option bucket",
        )


def ensure_inserts(said: Said) -> None:
    """Refuses what Spark's own `insertInto` does: partitions are those of the table.

    Raises:
        InvalidRequest: `partitionBy` was called, too (`"contradicting-options"`).
        UnsupportedFeature: As `ensure_unbucketed`.
    """
    ensure_unbucketed(said)
    if said.partition_by:
        raise InvalidRequest(
            "insertInto goes without partitionBy: the table has its partitions",
            code="contradicting-options",
            hint="leave partitionBy out",
        )


def _flat(columns: tuple[str | list[str], ...]) -> tuple[str, ...]:
    flat = columns[0] if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else columns
    return tuple(str(c) for c in flat)
