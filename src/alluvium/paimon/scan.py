"""Snapshot plus predicate to ScanPlan: which files, how columns come out of them, and which rows merge.

Specification: spec/paimon-format.md (d); `org.apache.paimon.table.source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import NotFound, UnsupportedFeature
from alluvium.expr.prune import prune
from alluvium.expr.tree import Expression, column_paths, conjunction, conjuncts
from alluvium.paimon import options as o
from alluvium.paimon.buckets import in_bucket, wanted_hash
from alluvium.paimon.evolution import file_columns, output_column, read_schema
from alluvium.paimon.features.deletion_vectors import VectorMasks, vector_masks
from alluvium.paimon.merge import FIRST_ROW, GROUP, KIND, SEQUENCE, key_merge, merge_engine
from alluvium.paimon.partitions import Partitions, data_paths, partitions_of
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.paimon.sections import sections
from alluvium.paimon.snapshot import Snapshot, load_snapshot
from alluvium.paimon.stats import EntryStatistics
from alluvium.paimon.travel import At
from alluvium.plan.scan import (
    SCAN_FILES,
    Coalesce,
    FileConstant,
    KeyMerge,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
    SortColumn,
    Sum,
)
from alluvium.schema import types as t

ROW_ID = "_ROW_ID"
#: Constants of a file that hidden columns are made of.
_FIRST_ROW_ID, _MAX_SEQUENCE = "_FIRST_ROW_ID", "_MAX_SEQUENCE_NUMBER"
_FORMATS = ("parquet", "orc", "avro", "blob")
#: Bucket of rows that wait for a compaction to distribute them: "invisible to batch reads".
_POSTPONED = -2


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that a reader wants.

    Attributes:
        entries: Schema `ENTRIES`.
        partitions: Theirs.
        section: Of each file, the section in which its rows merge, -1: none; None: rows are independent.
        has_retracts: Whether files that merge may hold rows that take others back.
        by_partition: How many files were left out by their partition, and
        by_statistics: by their statistics.
    """

    entries: pa.Table
    partitions: Partitions
    section: np.ndarray | None
    by_partition: int = 0
    by_statistics: int = 0
    has_retracts: bool = False


def plan_scan(snapshot: Snapshot, where: Expression | None = None) -> ScanPlan:
    """How to read the rows of a snapshot for which `where` may be true."""
    plan = _plan_branch(snapshot, where)
    fallback = o.FALLBACK_BRANCH.get(snapshot.schema.options)
    if fallback and fallback != snapshot.branch:
        plan = _with_fallback(plan, snapshot, fallback, where)
    return plan


def _plan_branch(snapshot: Snapshot, where: Expression | None) -> ScanPlan:
    selection = select_files(snapshot, where)
    return plan_files(snapshot, selection, _merge_of(snapshot, selection), vector_masks(snapshot))


def plan_entries(snapshot: Snapshot, entries: pa.Table) -> ScanPlan:
    """How to read some of a snapshot's files."""
    selection = _select(snapshot, _numbered(snapshot, entries), None)
    return plan_files(snapshot, selection, _merge_of(snapshot, selection), vector_masks(snapshot))


def _with_fallback(plan: ScanPlan, snapshot: Snapshot, branch: str, where: Expression | None) -> ScanPlan:
    """Partitions that the table lacks come from the branch. Specification: `FallbackReadFileStoreTable`."""
    options = {k: v for k, v in snapshot.asked.items() if k != "branch" and not k.startswith("scan.")}
    other = _fallback_state(snapshot, branch, options)
    visible = visible_entries(other)
    own = set(partition_rows(snapshot, visible_entries(snapshot)).to_pylist())
    rows = partition_rows(other, visible)
    mask = pa.array([row not in own for row in rows.dictionary.to_pylist()]).take(rows.indices)
    narrowed = replace(
        other, schema=replace(other.schema, options={**other.schema.options, "scan.fallback-branch": ""})
    )
    # Numbered behind the table's own sections: what has the same number is merged.
    behind = visible_entries(snapshot).num_rows
    selection = _select(narrowed, _numbered(narrowed, visible.filter(mask), behind), where)
    extra = plan_files(narrowed, selection, _merge_of(narrowed, selection), vector_masks(narrowed))
    renamed = tuple(replace(part, key=f"{branch}/{part.key}") for part in extra.parts)
    return replace(plan, parts=(*plan.parts, *renamed))


def _fallback_state(snapshot: Snapshot, branch: str, options: Mapping[str, str]) -> Snapshot:
    """The branch at the same time: ids of its snapshots are others than the table's."""
    rest = (branch, options, snapshot.time_zone, snapshot.open_store)
    if snapshot.at.is_latest or snapshot.document is None:
        return load_snapshot(snapshot.store, At(), *rest)
    time_ms = snapshot.at.timestamp_ms
    at = At(timestamp_ms=snapshot.document.time_millis if time_ms is None else time_ms)
    try:
        return load_snapshot(snapshot.store, at, *rest)
    except NotFound as error:
        if error.code != "no-snapshot-before":
            raise
        # Specification, `FallbackReadFileStoreTable.rewriteFallbackOptions`: the first one, where there is none.
        return load_snapshot(snapshot.store, At(snapshot_id=1), *rest)


def partition_rows(snapshot: Snapshot, entries: pa.Table) -> pa.DictionaryArray:
    """Partitions as the rows of bytes that manifests hold."""
    return entries["partition"].combine_chunks().dictionary_encode()


def visible_entries(snapshot: Snapshot) -> pa.Table:
    """The files that batch readers see.

    Specification: "Deletion vectors on, or merge-engine first-row: batch reads use only level>0 files".
    """
    entries = snapshot.entries
    entries = entries.filter(pc.not_equal(entries["bucket"], _POSTPONED))
    if snapshot.schema.primary_keys and not merges_on_read(snapshot):
        entries = entries.filter(pc.greater(entries["level"], 0))
    return entries


def plan_read_optimized(snapshot: Snapshot) -> ScanPlan:
    """Only the files of the highest level, whose rows need no merge. Specification: `ReadOptimizedTable`."""
    entries = visible_entries(snapshot)
    if merges_on_read(snapshot):
        options = snapshot.schema.options
        levels = o.NUM_LEVELS.get(options) or o.NUM_SORTED_RUN_COMPACTION_TRIGGER.get(options) + 1
        entries = entries.filter(pc.equal(entries["level"], levels - 1))
    selection = Selection(entries, partitions_of(entries, snapshot.schema), None)
    return plan_files(snapshot, selection, None, vector_masks(snapshot))


def merges_on_read(snapshot: Snapshot) -> bool:
    """Whether rows of a table with a primary key merge while reading."""
    schema = snapshot.schema
    if not schema.primary_keys:
        return False
    if merge_engine(schema) == FIRST_ROW:
        return False
    return not o.DELETION_VECTORS.get(schema.options) or o.DELETION_VECTORS_MERGE_ON_READ.get(schema.options)


def select_files(snapshot: Snapshot, where: Expression | None) -> Selection:
    """Skips files that cannot hold a row for which `where` is true."""
    entries = visible_entries(snapshot)
    if merges_on_read(snapshot):
        # Asked again and again with other predicates: sections are a matter of all files.
        numbered = snapshot.loaded("sections", lambda: with_sections(snapshot, entries))
        return _select(snapshot, numbered, where)
    return _select(snapshot, entries, where)


def _numbered(snapshot: Snapshot, entries: pa.Table, first: int = 0) -> pa.Table:
    return with_sections(snapshot, entries, first) if merges_on_read(snapshot) else entries


def with_sections(snapshot: Snapshot, entries: pa.Table, first: int = 0) -> pa.Table:
    """Files with the number of the section in which their rows merge, -1 for those that are alone.

    The numbers are taken before any file is skipped: an engine asks again with a sharper predicate, and must find a
    section under its number.
    """
    if not entries.num_rows:
        return entries.append_column(GROUP, pa.array([], pa.int64()))
    section, alone = sections(entries, partitions_of(entries, snapshot.schema), snapshot.schema)
    return entries.append_column(GROUP, pa.array(np.where(alone, -1, section + first), pa.int64()))


def _select(snapshot: Snapshot, entries: pa.Table, where: Expression | None) -> Selection:
    """What a predicate leaves of files, `with_sections` where rows merge."""
    schema = snapshot.schema
    merges = GROUP in entries.column_names
    has_retracts = merges and _has_retracts(entries)
    partitions = partitions_of(entries, schema)
    if merges and entries.num_rows and (sections_asked := _about(where, (GROUP,))) is not None:
        # An engine's tasks read some sections each: the files of the others are theirs, not skipped.
        keep = prune(sections_asked, EntryStatistics(snapshot, entries, partitions), snapshot.time_zone)
        entries = entries.filter(keep)
        partitions = partitions_of(entries, schema)
    before = entries.num_rows
    on_partitions = _about(where, schema.partition_keys)
    if on_partitions is not None and before:
        keep = prune(on_partitions, EntryStatistics(snapshot, entries, partitions), snapshot.time_zone)
        entries = entries.filter(keep)
        partitions = partitions_of(entries, schema)
    by_partition = before - entries.num_rows
    entries, partitions = _in_buckets(entries, partitions, schema, where)
    left = entries.num_rows
    if where is not None and left and not is_data_evolution(snapshot):
        statistics = EntryStatistics(snapshot, entries, partitions)
        keep = prune(where, statistics, snapshot.time_zone)
        if merges:
            # "Value predicates must not prune single overlapping files; key predicates may."
            on_keys = _about(where, (*schema.primary_keys, *schema.partition_keys))
            everything = pa.repeat(pa.scalar(True), left)
            by_key = everything if on_keys is None else prune(on_keys, statistics, snapshot.time_zone)
            keep = pc.if_else(pc.less(entries[GROUP].combine_chunks(), 0), keep, by_key)
        entries = entries.filter(keep)
        partitions = partitions_of(entries, schema)
    section = entries[GROUP].to_numpy() if merges else None
    own = entries.drop_columns([GROUP]) if merges else entries
    return Selection(own, partitions, section, by_partition, left - own.num_rows, has_retracts)


def _has_retracts(entries: pa.Table) -> bool:
    """ "`_DELETE_ROW_COUNT`" counts rows of the kinds -U and -D; older writers do not tell."""
    merging = entries.filter(pc.greater_equal(entries[GROUP], 0))
    return bool(pc.any(pc.not_equal(pc.fill_null(merging["delete_row_count"], 1), 0)).as_py())


def _in_buckets(
    entries: pa.Table, partitions: Partitions, schema: TableSchema, where: Expression | None
) -> tuple[pa.Table, Partitions]:
    """Only files of buckets that rows for which `where` is true can be in."""
    bucket_of = None if where is None else wanted_hash(schema, where)
    if bucket_of is None or not entries.num_rows:
        return entries, partitions
    keep = in_bucket(entries, bucket_of)
    return (entries, partitions) if keep is None else ((kept := entries.filter(keep)), partitions_of(kept, schema))


def _about(where: Expression | None, names: Sequence[str]) -> Expression | None:
    """The part of a predicate that is about these columns alone."""
    if where is None:
        return None
    paths = {(name,) for name in names}
    return conjunction(tuple(c for c in conjuncts(where) if column_paths(c) and column_paths(c) <= paths))


def is_data_evolution(snapshot: Snapshot) -> bool:
    return o.DATA_EVOLUTION.get(snapshot.schema.options)


def _merge_of(snapshot: Snapshot, selection: Selection) -> KeyMerge | None:
    return None if selection.section is None else key_merge(snapshot.schema, selection.has_retracts)


def plan_files(snapshot: Snapshot, selection: Selection, merge: KeyMerge | None, masks: VectorMasks | None) -> ScanPlan:
    """The plan of some files.

    Args:
        snapshot: Whose schema the rows have.
        selection: The files.
        merge: How the rows of the selection's sections merge.
        masks: Which rows of the files are gone.
    """
    schema = snapshot.schema
    entries = selection.entries
    section = selection.section
    if is_data_evolution(snapshot) and entries.num_rows:
        section, merge = _row_ranges(entries, selection.partitions), _patches()
    files = _scan_files(selection, section, schema.partition_keys, data_paths(entries, selection.partitions, schema))
    parts = []
    for alike, rows, schema_id, file_format, names, merged in _alike(entries, section):
        key = f"{snapshot.branch}.{alike}"
        held = file_columns(snapshot.schema_of(schema_id), names)
        if merged and merge is not None and merge.engine == "patch":
            held, columns = _patched(snapshot, held, file_format)
        else:
            columns = list(schema.fields)
        output = [output_column(f, held, schema.partition_keys) for f in columns]
        output += _hidden_columns(snapshot, merged and merge is not None)
        parts.append(
            ScanPart(
                key,
                files.take(pa.array(rows)),
                file_format,
                read_schema(output),
                tuple(output),
                merge if merged else None,
                masks,
            )
        )
    if not parts:
        output = [output_column(f, {}, ()) for f in schema.fields] + _hidden_columns(snapshot, False)
        parts.append(ScanPart(f"{snapshot.branch}.none", files, "parquet", read_schema(output), tuple(output)))
    return ScanPlan(
        snapshot.store.url,
        tuple(parts),
        logical_schema(schema),
        schema.partition_keys,
        (("partition", selection.by_partition), ("statistics", selection.by_statistics)),
    )


def _hidden_columns(snapshot: Snapshot, merged: bool) -> list[OutputColumn]:
    """Columns that are no part of the schema: what rows merge by, and what `_ROW_ID` and the like may be asked as."""
    if snapshot.schema.primary_keys:
        kind = Coalesce((Physical((KIND,), t.BYTE), Literal(0, t.BYTE)))
        hidden = [
            OutputColumn(SEQUENCE, t.LONG, False, Physical((SEQUENCE,), t.LONG)),
            OutputColumn(KIND, t.BYTE, False, kind),
        ]
        return [*hidden, OutputColumn(GROUP, t.LONG, False, FileConstant(GROUP, t.LONG))] if merged else hidden
    insert = OutputColumn(KIND, t.BYTE, False, Literal(0, t.BYTE))
    if not o.tracks_rows(snapshot.schema.options):
        return [insert]
    # "`_ROW_ID` = `_FIRST_ROW_ID` + position, `_SEQUENCE_NUMBER` = file's max sequence, both overridden by columns of
    # the same name stored in compacted files (null there: fall back)".
    position = Sum((FileConstant(_FIRST_ROW_ID, t.LONG), RowPosition()))
    row_id = Coalesce((Physical((ROW_ID,), t.LONG), position))
    sequence = Coalesce((Physical((SEQUENCE,), t.LONG), FileConstant(_MAX_SEQUENCE, t.LONG)))
    hidden = [OutputColumn(ROW_ID, t.LONG, True, row_id), OutputColumn(SEQUENCE, t.LONG, True, sequence), insert]
    return [*hidden, OutputColumn(GROUP, t.LONG, False, FileConstant(GROUP, t.LONG))] if merged else hidden


def _row_ranges(entries: pa.Table, partitions: Partitions) -> np.ndarray:
    """Of each file the range of row ids that it shares with others of its bucket; -1 where it is alone in it."""
    if entries["first_row_id"].null_count:
        raise UnsupportedFeature(
            "data files without row ids in a table with data evolution", code="unsupported-scan", features=("row-ids",)
        )
    first = entries["first_row_id"].to_numpy()
    last = first + entries["row_count"].to_numpy() - 1
    # Writers of other languages number the rows of each partition from 0: ranges of different buckets are set apart.
    place = np.asarray(partitions.indices.to_numpy(zero_copy_only=False), np.int64)
    group = np.unique(np.stack([place, entries["bucket"].to_numpy()]), axis=1, return_inverse=True)[1].reshape(-1)
    apart = group.astype(np.int64) * (int(last.max()) + 1)
    first, last = first + apart, last + apart
    order = np.lexsort((-last, first))
    highest = np.maximum.accumulate(last[order])
    begins = np.ones(len(order), bool)
    begins[1:] = first[order][1:] > highest[:-1]
    ranges = np.empty(len(order), np.int64)
    ranges[order] = np.cumsum(begins) - 1
    return np.where(np.bincount(ranges)[ranges] == 1, -1, ranges)


def _patches() -> KeyMerge:
    """ "files with overlapping row-id ranges are zipped by row id; each column comes from the newest file"."""
    return KeyMerge(GROUP, (ROW_ID,), (SortColumn(SEQUENCE),), None, "patch")


def _patched(
    snapshot: Snapshot, held: dict[int, DataField], file_format: str
) -> tuple[dict[int, DataField], list[DataField]]:
    """The columns that a file of a shared range supplies: those it holds, large values only from files of their own."""
    options = snapshot.schema.options
    kinds = (o.BLOB_DESCRIPTOR_FIELD, o.BLOB_EXTERNAL_STORAGE_FIELD, o.BLOB_VIEW_FIELD)
    inline = {name for option in kinds for name in option.get(options)}
    columns = []
    for f in snapshot.schema.fields:
        apart = _is_blob(f.type) and file_format != "blob" and f.name not in inline
        if f.name in snapshot.schema.partition_keys or (f.id in held and not apart):
            columns.append(f)
    return held, columns


def _is_blob(column: DataType) -> bool:
    return column.root == "BLOB"


def _alike(
    entries: pa.Table, section: np.ndarray | None
) -> list[tuple[str, np.ndarray, int, str, tuple[str, ...] | None, bool]]:
    """Files that are read alike: by schema, format, columns written, and whether their rows merge; with a name."""
    if not entries.num_rows:
        return []
    # "Take the format of a data file from its extension".
    extension = pc.replace_substring_regex(entries["file_name"].combine_chunks(), r"^.*\.", "")
    written = pc.fill_null(pc.binary_join(entries["write_cols"].combine_chunks(), "\x00"), "\x01")
    merged = pa.array(np.zeros(entries.num_rows, bool) if section is None else section >= 0)
    keys = pc.binary_join_element_wise(
        pc.cast(entries["schema_id"].combine_chunks(), pa.string()),
        extension,
        pc.cast(merged, pa.string()),
        written,
        "\x02",
    ).dictionary_encode()
    indices = keys.indices.to_numpy(zero_copy_only=False)
    found = []
    for number, key in enumerate(keys.dictionary.to_pylist()):
        schema_id, file_format, is_merged, names = key.split("\x02", 3)
        if file_format not in _FORMATS:
            raise UnsupportedFeature(
                f"data files of format {file_format!r}", code="unsupported-file-format", features=(file_format,)
            )
        columns = None if names == "\x01" else tuple(names.split("\x00"))
        name = key.translate({0: ",", 1: "*", 2: "."})
        rows = np.flatnonzero(indices == number)
        found.append((name, rows, int(schema_id), file_format, columns, is_merged == "true"))
    return found


def _scan_files(
    selection: Selection, section: np.ndarray | None, partition_keys: Sequence[str], paths: pa.Array
) -> pa.Table:
    entries = selection.entries
    count = entries.num_rows
    constants = {name: selection.partitions.column(name) for name in partition_keys}
    constants[_FIRST_ROW_ID] = entries["first_row_id"].combine_chunks()
    constants[_MAX_SEQUENCE] = entries["max_sequence_number"].combine_chunks()
    constants[GROUP] = pa.array(np.full(count, -1) if section is None else section, pa.int64())
    members = [pa.field(name, values.type) for name, values in constants.items()]
    created = entries["creation_time"].cast(pa.int64())
    return pa.table(
        {
            "path": paths,
            "size": entries["file_size"],
            "modification_time_ms": pc.fill_null(created, 0),
            "num_rows": entries["row_count"],
            "constants": pa.StructArray.from_arrays(list(constants.values()), fields=members),
            "mask": pa.nulls(count, pa.binary()),
        }
    ).select(SCAN_FILES.names)
