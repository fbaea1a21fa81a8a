"""Files to the parts of a scan plan: what is read alike, and how each column comes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.files.evolution import file_columns, output_column, read_schema
from alluvium.paimon.files.partitions import data_paths
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.terms.options import tracks_rows
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.file_contents import earliest_date, has_local_instants, held_columns, instant_bounds
from alluvium.paimon.view.merge import FILE_ORDER, GROUP, KIND, LEVEL, SEQUENCE, key_merge
from alluvium.paimon.view.row_ranges import PATCHES, RangeMasks, anchors_of, patched_columns, row_ranges
from alluvium.paimon.view.sections import Sections
from alluvium.paimon.view.selection import Selection, is_data_evolution
from alluvium.plan.scan import (
    INSTANT_BOUNDS,
    SCAN_FILES,
    Coalesce,
    FileConstant,
    KeyMerge,
    Literal,
    MaskSource,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
    Sum,
)
from alluvium.schema import types as t
from alluvium.storage.elsewhere import ensure_same_side

#: Constants of a file that hidden columns are made of.
_FIRST_ROW_ID, _MAX_SEQUENCE = "_FIRST_ROW_ID", "_MAX_SEQUENCE_NUMBER"
_FORMATS = ("parquet", "orc", "avro", "blob")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What files that are read alike have in common.

    Attributes:
        schema_id: By which they were written.
        file_format: Theirs.
        written: The columns that they hold, names of that schema; None: all of them.
        merges: Whether their rows merge with those of other files.
    """

    schema_id: int
    file_format: str
    written: tuple[str, ...] | None
    merges: bool

    @property
    def key(self) -> str:
        """A name for it, stable within the table."""
        columns = "*" if self.written is None else ",".join(self.written)
        return f"{self.schema_id}.{self.file_format}.{str(self.merges).lower()}.{columns}"


def plan_selection(snapshot: Snapshot, selection: Selection) -> ScanPlan:
    """The plan of files of a snapshot, merged where they are to be, without the rows that are deleted."""
    merge = None
    if selection.sections is not None:
        merge = key_merge(snapshot.schema, selection.sections.has_retracts, selection.sections.has_ties)
    return plan_files(snapshot, selection, merge, vector_masks(snapshot))


def plan_files(snapshot: Snapshot, selection: Selection, merge: KeyMerge | None, masks: MaskSource | None) -> ScanPlan:
    """The plan of some files.

    Args:
        snapshot: Whose schema the rows have.
        selection: The files.
        merge: How the rows of the selection's sections merge.
        masks: Which rows of the files are gone.

    Raises:
        CorruptTable: A table in an object store names a file of this machine (`"path-escapes-root"`).
        UnsupportedFeature: A file of a format that is not known.
    """
    schema = snapshot.schema
    if is_data_evolution(snapshot) and selection.entries.num_rows:
        ranges = row_ranges(selection.entries, selection.partitions, selection.first, selection.batches)
        selection, merge = replace(selection, sections=Sections.of(ranges)), PATCHES
        masks = None if masks is None else RangeMasks(masks, anchors_of(selection.entries, ranges))
    files = _scan_files(snapshot, selection)
    parts = []
    for kind, rows in _alike(selection):
        merged_by = merge if kind.merges else None
        held = file_columns(snapshot.schema_of(kind.schema_id), kind.written)
        columns = schema.fields if merged_by is not PATCHES else patched_columns(schema, held, kind.file_format)
        output = [output_column(f, held, schema.partition_keys) for f in columns]
        output += _hidden_columns(snapshot, merged_by)
        key = f"{snapshot.branch}.{kind.key}"
        taken = files.take(pa.array(rows))
        part = ScanPart(key, taken, kind.file_format, read_schema(output), tuple(output), merged_by, masks)
        parts.append(_with_contents(part, snapshot, selection, kind, rows))
    if not parts:
        output = [output_column(f, {}, ()) for f in schema.fields] + _hidden_columns(snapshot, None)
        parts.append(ScanPart(f"{snapshot.branch}.none", files, "parquet", read_schema(output), tuple(output)))
    return ScanPlan(
        snapshot.store.url,
        tuple(parts),
        logical_schema(schema),
        schema.partition_keys,
        (("partition", selection.by_partition), ("statistics", selection.by_statistics)),
    )


def _with_contents(
    part: ScanPart, snapshot: Snapshot, selection: Selection, kind: _Kind, rows: npt.NDArray[np.int64]
) -> ScanPart:
    """The part of the files at some places of a selection, with what manifests and schemas tell of what is in them."""
    schema = snapshot.schema_of(kind.schema_id)
    held = held_columns(schema, kind.written)
    if kind.file_format != "orc":
        # The readers of the other formats need not ask.
        return replace(part, held=held)
    known = (snapshot, selection.entries.take(pa.array(rows)), selection.partitions, part.output)
    if has_local_instants(snapshot, schema, held):
        files = _with_constant(part.files, INSTANT_BOUNDS, instant_bounds(*known))
        part = replace(part, files=files, local_instants=True)
    return replace(part, held=held, earliest_date=earliest_date(*known))


def _with_constant(files: pa.Table, name: str, values: pa.Array) -> pa.Table:
    constants = files["constants"].combine_chunks()
    members = {f.name: constants.field(place) for place, f in enumerate(constants.type)} | {name: values}
    place = files.schema.get_field_index("constants")
    return files.set_column(place, "constants", pa.StructArray.from_arrays(list(members.values()), names=list(members)))


def _hidden_columns(snapshot: Snapshot, merge: KeyMerge | None) -> list[OutputColumn]:
    """Columns that are no part of the schema: what rows merge by, and what `_ROW_ID` and the like may be asked as."""
    return [*_tracked_columns(snapshot), *([] if merge is None else _merge_columns(merge))]


def _merge_columns(merge: KeyMerge) -> list[OutputColumn]:
    ordering = [FILE_ORDER] if any(c.name == FILE_ORDER for c in merge.order) else []
    levels = [] if merge.level is None else [merge.level]
    return [OutputColumn(name, t.LONG, False, FileConstant(name, t.LONG)) for name in (GROUP, *ordering, *levels)]


def _tracked_columns(snapshot: Snapshot) -> list[OutputColumn]:
    if snapshot.schema.primary_keys:
        kind = Coalesce((Physical((KIND,), t.BYTE), Literal(0, t.BYTE)))
        return [
            OutputColumn(SEQUENCE, t.LONG, False, Physical((SEQUENCE,), t.LONG)),
            OutputColumn(KIND, t.BYTE, False, kind),
        ]
    insert = OutputColumn(KIND, t.BYTE, False, Literal(0, t.BYTE))
    if not tracks_rows(snapshot.schema.options):
        return [insert]
    # "`_ROW_ID` = `_FIRST_ROW_ID` + position, `_SEQUENCE_NUMBER` = file's max sequence, both overridden by columns of
    # the same name stored in compacted files (null there: fall back)".
    position = Sum((FileConstant(_FIRST_ROW_ID, t.LONG), RowPosition()))
    row_id = Coalesce((Physical((ROW_ID,), t.LONG), position))
    sequence = Coalesce((Physical((SEQUENCE,), t.LONG), FileConstant(_MAX_SEQUENCE, t.LONG)))
    return [OutputColumn(ROW_ID, t.LONG, True, row_id), OutputColumn(SEQUENCE, t.LONG, True, sequence), insert]


def _alike(selection: Selection) -> Iterator[tuple[_Kind, npt.NDArray[np.int64]]]:
    """Files that are read alike, by their places."""
    entries = selection.entries
    if not entries.num_rows:
        return
    # "Take the format of a data file from its extension".
    extension = pc.replace_substring_regex(entries["file_name"].combine_chunks(), r"^.*\.", "")
    columns, written = _numbered_lists(entries["write_cols"].combine_chunks())
    merges = np.zeros(entries.num_rows, bool) if selection.sections is None else selection.sections.merges
    members = [entries["schema_id"].combine_chunks(), extension, written, pa.array(merges)]
    kinds = pa.table(members, names=["schema_id", "extension", "written", "merges"])
    kinds = kinds.append_column("row", pa.array(np.arange(entries.num_rows)))
    grouped = kinds.group_by(["schema_id", "extension", "written", "merges"], use_threads=False)
    for kind in grouped.aggregate([("row", "list")]).to_pylist():
        if kind["extension"] not in _FORMATS:
            raise UnsupportedFeature(
                f"data files of format {kind['extension']!r}",
                code="unsupported-file-format",
                features=(kind["extension"],),
            )
        names = columns[kind["written"]]
        yield (
            _Kind(kind["schema_id"], kind["extension"], None if names is None else tuple(names), kind["merges"]),
            np.asarray(kind["row_list"], np.int64),
        )


def _numbered_lists(lists: pa.ListArray) -> tuple[list[list[str] | None], pa.Array]:
    """The different lists, and the number of each one's. Arrow groups no lists, and there are few different ones."""
    numbers: dict[tuple[str, ...] | None, int] = {}
    found = [numbers.setdefault(None if v is None else tuple(v), len(numbers)) for v in lists.to_pylist()]
    return [None if key is None else list(key) for key in numbers], pa.array(found, pa.int64())


def _scan_files(snapshot: Snapshot, selection: Selection) -> pa.Table:
    entries, schema = selection.entries, snapshot.schema
    paths = data_paths(entries, selection.partitions, schema)
    _ensure_same_side(snapshot.store.url, entries["external_path"])
    sections = selection.sections or Sections.of(np.full(entries.num_rows, -1))
    constants = {name: selection.partitions.column(name) for name in schema.partition_keys}
    constants[_FIRST_ROW_ID] = entries["first_row_id"].combine_chunks()
    constants[_MAX_SEQUENCE] = entries["max_sequence_number"].combine_chunks()
    constants[GROUP] = sections.numbers["section"].combine_chunks()
    constants[LEVEL] = entries["level"].combine_chunks().cast(pa.int64())
    constants[FILE_ORDER] = sections.numbers["place"].combine_chunks()
    members = [pa.field(name, values.type) for name, values in constants.items()]
    created = entries["creation_time"].cast(pa.int64())
    return pa.table(
        {
            "path": paths,
            "size": entries["file_size"],
            "modification_time_ms": pc.fill_null(created, 0),
            "num_rows": entries["row_count"],
            "constants": pa.StructArray.from_arrays(list(constants.values()), fields=members),
            "mask": pa.nulls(entries.num_rows, pa.binary()),
        }
    ).select(SCAN_FILES.names)


def _ensure_same_side(root: str, external: pa.ChunkedArray) -> None:
    """Before an engine is handed them: whoever reads a remote table must not be made to open own files."""
    fronts = pc.replace_substring_regex(external.drop_null(), r"^([^/]*/+[^/]*).*$", r"\1/x")
    for address in pc.unique(fronts).to_pylist():
        ensure_same_side(root, address)
