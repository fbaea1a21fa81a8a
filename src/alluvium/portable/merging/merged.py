"""Rows of overlapping files merged by key: whole sections at a time, several small ones together."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import FILE_COLUMN, KeyMerge, ScanPart
from alluvium.portable.files.data_file import Files, open_data_file
from alluvium.portable.files.file_rows import FileRows, file_rows, made_batches
from alluvium.portable.merging.key_merge import PART, merge_rows
from alluvium.schema.arrow import to_arrow

#: Sections are gathered until they have so many rows: a merge costs some kernels, however few the rows.
_ROWS_AT_ONCE = 1 << 19


def merged_tables(
    parts: Sequence[ScanPart],
    merge: KeyMerge,
    needed: Mapping[str, pa.DataType],
    files: Files,
    batch_size: int,
    time_zone: str,
) -> Iterator[pa.Table]:
    """The rows of parts of equal `merge`, merged.

    Args:
        parts: They.
        merge: Theirs.
        needed: Columns of the result, and their types; none: a key stands for them, as the rows are counted by it.
        files: Where data files lie.
        batch_size: Rows that are decoded at once.
        time_zone: The session's.

    Raises:
        UnsupportedFeature: A row is taken back in a column that cannot take it back.
        CorruptTable: What a column merges by makes no sense, or a value of it.
    """
    needed = needed or _a_key(parts, merge)
    wanted = set(needed) | _merged_by(merge)
    schema = _schema(parts, wanted, needed)
    numbers = {id(part): number for number, part in enumerate(parts)}
    outputs = [{c.name for c in part.output} for part in parts]
    supplied = {name: [name in output or name == FILE_COLUMN for output in outputs] for name in schema.names}
    by_group: dict[int, list[FileRows]] = {}
    for rows in file_rows(parts):
        by_group.setdefault(rows.constants[merge.group].as_py(), []).append(rows)
    gathered: list[pa.Table] = []
    count = 0
    for _, group in sorted(by_group.items()):
        for rows in group:
            table = _file_table(rows, schema, numbers[id(rows.part)], files, batch_size, time_zone)
            gathered.append(table)
            count += table.num_rows
        if count >= _ROWS_AT_ONCE:
            yield _merged(gathered, merge, needed, supplied, files)
            gathered, count = [], 0
    if gathered:
        yield _merged(gathered, merge, needed, supplied, files)


def _merged(
    gathered: Sequence[pa.Table],
    merge: KeyMerge,
    needed: Collection[str],
    supplied: Mapping[str, Sequence[bool]],
    files: Files,
) -> pa.Table:
    try:
        return merge_rows(pa.concat_tables(gathered), merge, needed, supplied)
    except (CorruptTable, UnsupportedFeature) as error:
        # A merge sees rows, and knows not whose.
        error.url = error.url or files.store.url
        raise


def _a_key(parts: Sequence[ScanPart], merge: KeyMerge) -> Mapping[str, pa.DataType]:
    return {c.name: to_arrow(c.type) for part in parts for c in part.output if c.name == merge.keys[0]}


def _merged_by(merge: KeyMerge) -> set[str]:
    """The columns that decide about others."""
    columns = {merge.group, *merge.keys, *(c.name for c in merge.order), *merge.removing_groups}
    columns.update(name for name in (merge.kind, merge.level) if name is not None)
    for rule in merge.rules:
        columns.update(rule.sequence)
    return columns


def _schema(parts: Sequence[ScanPart], wanted: Collection[str], needed: Mapping[str, pa.DataType]) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for part in parts:
        for c in part.output:
            if c.name in wanted:
                fields.setdefault(c.name, pa.field(c.name, to_arrow(c.type)))
    # Columns that no part supplies are null.
    for name, kind in needed.items():
        fields.setdefault(name, pa.field(name, kind))
    return pa.schema(list(fields.values()))


def _file_table(
    rows: FileRows, schema: pa.Schema, number: int, files: Files, batch_size: int, time_zone: str
) -> pa.Table:
    batches = []
    target = schema.append(pa.field(PART, pa.int32()))
    part = rows.part
    data = open_data_file(files, rows.path, time_zone, part.file_format, rows.unit, rows.instants(time_zone))
    with contextlib.closing(data):
        for num_rows, batch, left in made_batches(
            rows, data, schema.names, batch_size, files.uri(rows.path), time_zone
        ):
            have = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays = [have[f.name] if f.name in have else pa.nulls(num_rows, f.type) for f in schema]
            arrays.append(pa.repeat(pa.scalar(number, pa.int32()), num_rows))
            made = pa.RecordBatch.from_arrays(arrays, schema=target)
            batches.append(made if left is None else made.filter(left))
    return pa.Table.from_batches(batches, target)
