"""Changes between snapshots: the files that hold them, row by row with their kinds.

Specification: `incremental-between`, `incremental-between-scan-mode`; "a exclusive, b inclusive".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.bits import contains
from alluvium.errors import InvalidRequest, NotFound
from alluvium.expr.tree import Expression
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.files.manifest import scan_entries
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import At, find_snapshot, list_snapshots, list_tags, read_changelog
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import SCANNED_ENTRIES, SnapshotDocument
from alluvium.paimon.view.merge import DEDUPLICATE, KIND, merge_engine
from alluvium.paimon.view.scan import plan_entries
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.sections import key_sections
from alluvium.paimon.view.selection import (
    Selection,
    as_streams_see,
    is_data_evolution,
    merges_on_read,
    unmerged,
    visible_entries,
)
from alluvium.plan.scan import FileConstant, Literal, OutputColumn, RowPosition, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.storage.parallel import map_parallel

#: As `auto`, never a difference: of an update one row, whose values are arrays of what was and what is.
BINLOG = "binlog"
MODES = ("auto", "delta", "changelog", "diff", BINLOG)
#: Kinds of changes by the number that files hold.
KINDS = ("+I", "-U", "+U", "-D")
#: The first column of a change.
ROW_KIND = "_row_kind"
#: As `delta`, for those who follow a table: what a snapshot brought, whatever later ones make of it.
STREAMED = "streamed"
#: The hidden column by which rows that went merge, where the one of their kind tells that they did.
_OWN_KIND = "_OWN_KIND"
_BEFORE, _AFTER, _DELETE = map(KINDS.index, ("-U", "+U", "-D"))
#: Hidden columns: the number of a row's file, and where in it the row stands.
PLACES = ("_FILE_NUMBER", "_ROW_NUMBER")


def change_mode(snapshot: Snapshot, mode: str) -> str:
    """The mode that is meant: `auto` and `binlog` are `changelog` where the table produces one, else `delta`.

    Raises:
        InvalidRequest: There is no such mode (`"invalid-mode"`).
    """
    if mode not in MODES:
        raise InvalidRequest(f"there is no mode {mode!r}", code="invalid-mode", hint=f"modes: {', '.join(MODES)}")
    if mode not in ("auto", BINLOG):
        return mode
    return "delta" if o.CHANGELOG_PRODUCER.get(snapshot.schema.options) == "none" else "changelog"


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Which changes are meant.

    Attributes:
        mode: `"delta"`, `"changelog"` or `"diff"`.
        start: The snapshot before the first one; 0: from the beginning.
        end: The last one.
    """

    mode: str
    start: int
    end: int


def resolve_range(snapshot: Snapshot, start: object, end: object, mode: str) -> ChangeRange:
    """The range that its ends name.

    Args:
        snapshot: The state that was opened, which is the end where there is none.
        start: Exclusive: a snapshot's id, a tag, or a time (`At`). A time before the first snapshot is the beginning.
        end: Inclusive.
        mode: One of `MODES`; see `change_mode`.

    Raises:
        NotFound: There is nothing there.
        InvalidRequest: No such mode, what is no point of the table's history, or an end that is before the start.
    """
    chosen = change_mode(snapshot, mode)
    tags = list_tags(snapshot.store, snapshot.branch)
    if mode == "auto" and start in tags and end in tags and snapshot.schema.primary_keys:
        # `IncrementalDiffStartingScanner.betweenTags`: what lies between may have expired.
        chosen = "diff"
    first, last = _start_of(snapshot, start, chosen), _end_of(snapshot, end)
    if last < first:
        raise InvalidRequest(f"the range ends at {last} before it starts at {first}", code="invalid-range")
    return ChangeRange(chosen, first, last)


def _start_of(snapshot: Snapshot, point: object, mode: str) -> int:
    if not isinstance(point, At):
        return resolve_end(snapshot, point)
    try:
        return _at(snapshot, point)
    except NotFound as error:
        if error.code != "no-snapshot-before":
            raise
    # `IncrementalDeltaStartingScanner.betweenTimestamps` takes the first snapshot in; a difference begins with it.
    numbers = list_snapshots(snapshot.store, snapshot.branch)
    if not numbers:
        raise _no_snapshot()
    return numbers[0] if mode == "diff" else numbers[0] - 1


def _end_of(snapshot: Snapshot, point: object) -> int:
    return _at(snapshot, point) if isinstance(point, At) else resolve_end(snapshot, point)


def _at(snapshot: Snapshot, point: At) -> int:
    found = find_snapshot(snapshot.store, point, snapshot.branch)
    if found is None:
        raise _no_snapshot()
    return found.id


def _no_snapshot() -> NotFound:
    return NotFound("the table has no snapshot", code="snapshot-not-found")


def resolve_end(snapshot: Snapshot, point: object) -> int:
    """The snapshot id that an end of a range names: an id, or a tag; None: the one that was opened.

    Raises:
        NotFound: There is nothing there.
    """
    if point is None:
        if snapshot.version is None:
            raise _no_snapshot()
        return snapshot.version
    if isinstance(point, str):
        text = point.strip()
        if text in list_tags(snapshot.store, snapshot.branch) or not re.fullmatch(r"\d+", text):
            found = find_snapshot(snapshot.store, At(tag=text), snapshot.branch)
            assert found is not None
            return found.id
        return int(text)
    if isinstance(point, bool) or not isinstance(point, int) or point < 0:
        raise InvalidRequest(f"{point!r} is neither a snapshot id nor a tag", code="invalid-version")
    return point


def plan_changes(snapshot: Snapshot, start: int, end: int, mode: str, where: Expression | None = None) -> ScanPlan:
    """The changes after one snapshot up to another, unmerged, each with its kind in the column `_VALUE_KIND`.

    Args:
        snapshot: Whose schema the rows have.
        start: Exclusive.
        end: Inclusive.
        mode: `"delta"`: data files that appends added; `"changelog"`: changelog files; or `STREAMED`: also those of
            rows that wait for a compaction to give them a bucket, which followers are never told of otherwise.
        where: Unused for skipping: changes are few, and a change that does not match may undo one that does.

    Raises:
        NotFound: A snapshot of the range has expired.
    """
    documents = documents_between(snapshot, start, end, mode)
    kinds = ("APPEND", "OVERWRITE") if mode == STREAMED and _adds_overwrites(snapshot.schema) else ("APPEND",)
    lists = [name for document in documents if (name := _list_of(document, mode, kinds)) is not None]
    if is_data_evolution(snapshot):
        plan = plan_files(snapshot, _written(snapshot, lists, mode), None, None)
        # Columns that were not written are null, whatever the table says of them.
        return replace(plan, schema=Struct(tuple(replace(f, nullable=True) for f in plan.schema.fields)))
    entries = _added(scan_entries(snapshot.store, lists), mode) if lists else SCANNED_ENTRIES.empty_table()
    return plan_files(snapshot, unmerged(snapshot, entries), None, None)


def _added(entries: pa.Table, mode: str) -> pa.Table:
    """Of tables whose batches wait for a compaction, files of level 0, too.

    Rows that wait for a bucket are for those who follow a table without a changelog alone (`DataTableStreamScan`:
    `onlyReadRealBuckets` where it makes one): the compaction that gives them one is no append.
    """
    entries = entries.filter(pc.equal(entries["kind"], 0))
    return entries if mode == STREAMED else entries.filter(pc.not_equal(entries["bucket"], o.POSTPONE_BUCKET))


def _adds_overwrites(schema: TableSchema) -> bool:
    """Whether what overwrites added is new to followers, as what appends added is (`AppendOnlyFileStoreTable`)."""
    return not schema.primary_keys and o.STREAMING_READ_APPEND_OVERWRITE.get(schema.options)


def _written(snapshot: Snapshot, lists: Sequence[str], mode: str) -> Selection:
    """The files of columns of rows, together or those of each snapshot apart.

    Batches merge what the whole range says of a row (`IncrementalDeltaStartingScanner` makes its splits of all files),
    streams go snapshot by snapshot (`DeltaFollowUpScanner`). Columns that no file has are null in both.
    """
    added = map_parallel(lambda name: _added(scan_entries(snapshot.store, [name]), mode), lists)
    entries = pa.concat_tables([SCANNED_ENTRIES.empty_table(), *added])
    apart = mode == STREAMED
    batches = np.repeat(np.arange(len(added)), [each.num_rows for each in added]) if apart else None
    return replace(unmerged(snapshot, entries), batches=batches)


def documents_between(snapshot: Snapshot, start: int, end: int, mode: str) -> list[SnapshotDocument]:
    """The snapshots of a range; arguments and errors as of `plan_changes`."""
    return list(map_parallel(lambda number: _document(snapshot, number, mode), range(start + 1, end + 1)))


def _document(snapshot: Snapshot, number: int, mode: str) -> SnapshotDocument:
    if mode == "changelog":
        return read_changelog(snapshot.store, number, snapshot.branch)
    found = find_snapshot(snapshot.store, At(snapshot_id=number), snapshot.branch)
    assert found is not None
    return found


def _list_of(document: SnapshotDocument, mode: str, kinds: Sequence[str]) -> str | None:
    """ "delta takes only APPEND snapshots' added files"."""
    if mode == "changelog":
        return document.changelog_manifest_list
    return document.delta_manifest_list if document.commit_kind in kinds else None


def plan_waiting(snapshot: Snapshot) -> ScanPlan:
    """The rows of a state that wait for a bucket, unmerged, each with its kind (`MergeFileSplitRead.createReader`)."""
    entries = snapshot.entries
    return plan_files(
        snapshot, unmerged(snapshot, entries.filter(pc.equal(entries["bucket"], o.POSTPONE_BUCKET))), None, None
    )


def plan_overwrite(snapshot: Snapshot, number: int) -> tuple[ScanPlan, ScanPlan]:
    """The rows of the files that an overwrite removed, as ones that went, and of those that it added; merged by key.

    Specification: `SnapshotReaderImpl.readChanges`, `IncrementalChangelogReadProvider`. Rows that were deleted by
    vectors are left out: Java, which reads none here, lets them go a second time.

    Args:
        snapshot: Whose schema the rows have.
        number: The overwrite's.

    Raises:
        NotFound: The snapshot has expired, or the one before it, and with that the files.
    """
    before, after = snapshot.state(number - 1), snapshot.state(number)
    assert after.document is not None
    entries = scan_entries(snapshot.store, [after.document.delta_manifest_list])
    removed, added = (entries.filter(pc.equal(entries["kind"], kind)) for kind in (1, 0))
    went, came = (
        plan_entries(as_streams_see(replace(state, schema=snapshot.schema)), _without(own, other))
        for state, own, other in ((before, removed, added), (after, added, removed))
    )
    return replace(went, parts=tuple(_gone(part) for part in went.parts)), came


def _without(entries: pa.Table, others: pa.Table) -> pa.Table:
    """Files that are not among others: what came and went at once is as it was."""
    return entries.filter(pc.invert(pc.is_in(entries["file_name"], value_set=others["file_name"].combine_chunks())))


def _gone(part: ScanPart) -> ScanPart:
    """A part whose rows tell that they went (`ReverseReader`), and merge by what they told when they came."""
    own = next(c for c in part.output if c.name == KIND)
    others = tuple(c for c in part.output if c is not own)
    gone = OutputColumn(KIND, t.BYTE, False, Literal(_DELETE, t.BYTE))
    if part.merge is None:
        return replace(part, output=(*others, gone))
    output = (*others, replace(own, name=_OWN_KIND), gone)
    return replace(part, output=output, merge=replace(part.merge, kind=_OWN_KIND))


def plan_difference(snapshot: Snapshot, start: Snapshot, end: Snapshot) -> tuple[ScanPlan, ScanPlan]:
    """The rows of the files that only the first state has, and of those that only the last has, merged by key.

    Specification: `IncrementalDiffStartingScanner`: files that both states have are left out. Not those whose rows
    merge with rows of other files into rows that are in neither: Java tells rows then that no reader has ever seen.
    Nor those whose rows a file or a vector has hidden that is gone: where an older state is the newest again, they are
    back.
    """
    before, after = visible_entries(start), visible_entries(end)
    plans = []
    for own, state in zip(_differing(snapshot, before, after, _unveiled(start, end)), (start, end), strict=True):
        plans.append(plan_entries(replace(state, schema=snapshot.schema), own))
    return plans[0], plans[1]


def _differing(snapshot: Snapshot, before: pa.Table, after: pa.Table, unveiled: pa.Array) -> tuple[pa.Table, pa.Table]:
    """The files of two states without which they differ nowhere; those that are `unveiled` among them."""
    both, schema = pa.concat_tables([before, after]), snapshot.schema
    common = pc.is_in(before["file_name"], value_set=after["file_name"].combine_chunks())
    common = pc.and_not(common, pc.is_in(before["file_name"], value_set=unveiled))
    is_common = pc.is_in(both["file_name"], value_set=before["file_name"].filter(common).combine_chunks())
    wanted = ~np.asarray(is_common.combine_chunks().to_numpy(zero_copy_only=False), bool)
    count = before.num_rows
    merging = wanted & (_takes_all(snapshot) | (np.arange(both.num_rows) < count))
    if merges_on_read(snapshot) and merging.any():
        sections = key_sections(both, partitions_of(both, schema), schema)
        wanted |= np.isin(sections, sections[merging])
    return before.filter(pa.array(wanted[:count])), after.filter(pa.array(wanted[count:]))


def _unveiled(start: Snapshot, end: Snapshot) -> pa.Array:
    """The names of data files of which a vector of the first state deletes a row that none of the last deletes."""
    before, after = vector_masks(start), vector_masks(end)
    if before is None or after is None:
        return pa.array([], pa.string()) if before is None else before.ranges["name"].combine_chunks()
    # A vector that lies where it lay is the same.
    place = ["name", "index", "offset"]
    others = before.ranges.join(after.ranges.select(place), place, join_type="left anti")["name"].to_pylist()
    old, new = before.load(others), after.load(others)
    names = [name for name, mask in old.items() if name not in new or not contains(new[name], mask)]
    return pa.array(names, pa.string())


def _takes_all(snapshot: Snapshot) -> bool:
    """Whether the newest file alone does not tell what becomes of its keys."""
    engine, options = merge_engine(snapshot.schema), snapshot.schema.options
    return engine != DEDUPLICATE or any(o.SEQUENCE_FIELD.get(options))


def kind_names(kinds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of kinds as `+I`, `-U`, `+U`, `-D`."""
    return pa.chunked_array(
        [pa.array(KINDS).take(chunk) for chunk in kinds.chunks] or [pa.array([], pa.string())], pa.string()
    )


def placed(plan: ScanPlan) -> ScanPlan:
    """The same plan, whose rows tell behind their columns in which file they are, and where (`PLACES`)."""
    parts, count = [], 0
    for part in plan.parts:
        files = part.files
        constants = files["constants"].combine_chunks()
        numbers = pa.array(np.arange(count, count + files.num_rows))
        fields = [*constants.type, pa.field(PLACES[0], pa.int64())]
        made = pa.StructArray.from_arrays([*constants.flatten(), numbers], fields=fields)
        count += files.num_rows
        output = (
            *part.output,
            OutputColumn(PLACES[0], t.LONG, False, FileConstant(PLACES[0], t.LONG)),
            OutputColumn(PLACES[1], t.LONG, False, RowPosition()),
        )
        place = files.schema.get_field_index("constants")
        parts.append(replace(part, files=files.set_column(place, "constants", made), output=output))
    behind = tuple(Field(name, t.LONG, False) for name in PLACES)
    return replace(plan, parts=tuple(parts), schema=Struct((*plan.schema.fields, *behind)))


def packed(rows: pa.Table) -> pa.Table:
    """Changes with their places, each value in an array: a `-U` and the `+U` behind it in its file are one row, a `+U`,
    whose arrays have both values (`PackChangelogReader`).

    Args:
        rows: Number of the kind, columns, `PLACES`.

    Returns:
        Number of the kind and columns.
    """
    rows = rows.sort_by([(name, "ascending") for name in PLACES])
    kinds, files = (rows[name].to_numpy() for name in (rows.column_names[0], PLACES[0]))
    follows = np.zeros(rows.num_rows, bool)
    follows[1:] = (kinds[1:] == _AFTER) & (kinds[:-1] == _BEFORE) & (files[1:] == files[:-1])
    firsts = np.flatnonzero(~follows)
    ends = np.append(firsts[1:], rows.num_rows)[: len(firsts)]
    told = rows.column(0).take(pa.array(ends - 1))
    return _in_arrays(rows.drop_columns(list(PLACES)), told, np.append(firsts, rows.num_rows))


def as_arrays(rows: pa.Table) -> pa.Table:
    """Rows behind their kind with each value in an array of its own, as `BinlogTable` has the rows of a state."""
    return _in_arrays(rows, rows.column(0), np.arange(rows.num_rows + 1))


def _in_arrays(rows: pa.Table, kinds: pa.ChunkedArray, offsets: np.ndarray) -> pa.Table:
    starts = pa.array(offsets.astype(np.int32))
    columns = [pa.ListArray.from_arrays(starts, _whole(column)) for column in rows.columns[1:]]
    return pa.table([kinds, *columns], names=rows.column_names)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])


def difference(before: pa.Table, after: pa.Table) -> pa.Table:
    """Rows of `after`, with their kind in `_VALUE_KIND`, that are new or other than in `before`.

    Specification: `IncrementalDiffSplitRead`; keys that are gone are left out, as batch reads leave deletions out.
    """
    # Whether the same values came as an insert or an update makes no difference between two states.
    names = [name for name in after.column_names if name != KIND]
    both = pa.concat_tables([before.select(names), after.select(names)])
    side = pa.array([0] * before.num_rows + [1] * after.num_rows, pa.int8())
    texts = [_comparable(both[name]) for name in names]
    whole = pa.table({str(i): column for i, column in enumerate(texts)}).append_column("side", side)
    places = [str(i) for i in range(len(names))]
    known = whole.filter(pc.equal(whole["side"], 0)).select(places)
    numbered = whole.filter(pc.equal(whole["side"], 1)).select(places)
    numbered = numbered.append_column("row", pa.array(range(after.num_rows), pa.int64()))
    joined = numbered.join(known.append_column("had", pa.repeat(pa.scalar(True), known.num_rows)), places, places)
    # The same key cannot stand twice in a side, so no row is joined to several.
    left = joined.filter(pc.is_null(joined["had"]))["row"]
    return after.take(_sorted(left))


def _sorted(rows: pa.ChunkedArray) -> pa.Array:
    values = rows.combine_chunks()
    return values.take(pc.array_sort_indices(values))


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Columns that joins can compare, null equal to null."""
    if pa.types.is_nested(values.type) or pa.types.is_floating(values.type) or pa.types.is_binary(values.type):
        made = [repr(value) for value in values.to_pylist()]
        return pa.chunked_array([pa.array(made, pa.string())])
    text = values.cast(pa.string())
    return pc.if_else(text.is_null(), "\x00", pc.binary_join_element_wise("=", text, ""))
