"""What Spark's own readers can read of a plan, and which of its parts at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import ScanPart
from alluvium.schema import types as t
from alluvium.schema.types import Struct
from alluvium.schema.walk import holds
from alluvium.spark.scan.orc import misread

#: `FileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME`.
_NUMBERS = "_tmp_metadata_row_index"
#: Of a relation or a reader: they stand above the session's settings `spark.sql.files.ignore...`.
EXACT: Mapping[str, str] = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


def read_alike(parts: Iterable[ScanPart]) -> list[tuple[ScanPart, ...]]:
    """Parts in groups that one relation can read: they differ in their files only, and in what is deleted in them.

    One relation has the column `_metadata`, a union of relations has none.
    """
    groups: list[list[ScanPart]] = []
    for part in parts:
        group = next((g for g in groups if _is_read_alike(g[0], part)), None)
        groups.append([part]) if group is None else group.append(part)
    return [tuple(group) for group in groups]


def _is_read_alike(one: ScanPart, other: ScanPart) -> bool:
    constants = (part.files.schema.field("constants").type for part in (one, other))
    # What is known of the files decides whether they can be read, not how.
    other = replace(other, held=one.held, earliest_date=one.earliest_date)
    same = replace(other, key=one.key, files=one.files, masks=one.masks) == one
    return same and next(constants) == next(constants)


def exact_options(part: ScanPart) -> Mapping[str, str]:
    """What makes Spark's readers fail over files of a part that they might otherwise leave out."""
    return EXACT if part.is_exact else {}


def ensure_readable(part: ScanPart) -> None:
    """Refuses parts whose files Spark's own reader cannot read.

    Raises:
        UnsupportedFeature: Another format than Parquet and ORC, types that Spark does not have, or files of ORC that
            its reader would read wrongly.
    """
    if part.file_format not in ("parquet", "orc"):
        raise UnsupportedFeature(f"files of format {part.file_format} cannot be read by Spark here")
    if part.file_format == "orc" and (problem := misread(part)) is not None:
        raise UnsupportedFeature(
            f"Spark's own reader of ORC cannot be trusted with {problem}",
            code="unsupported-scan",
            hint="Python workers do: leave lane= out; or read without Spark: alluvium.open(url)",
        )
    # Spark's reader knows neither times of day nor nanoseconds.
    for kind in (t.TIME, t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS):
        if holds(part.read_schema, kind) or any(holds(c.type, kind) for c in part.output):
            raise UnsupportedFeature(f"columns of type {kind} cannot be read by Spark here")
    if part.read_schema.find(_NUMBERS) is not None:
        raise UnsupportedFeature(
            f"Spark's reader puts row numbers into a column named {_NUMBERS}, whatever is in the files",
            code="unsupported-scan",
            column=_NUMBERS,
            hint="read the table without Spark: alluvium.open(url)",
        )


def ensure_constants(part: ScanPart, constants: Struct) -> None:
    """Refuses parts without the constants that their columns are made of.

    Raises:
        CorruptTable: One is missing from the files.
    """
    present = {f.name for f in part.files.schema.field("constants").type}
    if missing := [name for name in constants.names if name not in present]:
        raise CorruptTable(f"the files carry no value of {', '.join(missing)}", column=missing[0])
