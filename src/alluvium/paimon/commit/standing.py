"""What a draft asks of the base that it lands on: that the table is the same, and has what the draft relies on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CommitConflict, Conflict, NotFound, UnsupportedFeature
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.type_json import format_field
from alluvium.paimon.terms.options import (
    BUCKET,
    BUCKET_FUNCTION,
    DATA_EVOLUTION,
    DELETION_VECTORS,
    DYNAMIC_BUCKET,
    MANIFEST_FORMAT,
)
from alluvium.paimon.view.selection import hidden


def ensure_newest(base: Snapshot, number: int) -> None:
    """A free place below another snapshot is one that expired: who takes it is in no newer state. A place that is taken
    is an ordinary race, and putting the snapshot tells.
    """
    known = list_snapshots(base.store, base.branch)
    if known and known[-1] > number and number not in known:
        message = f"snapshot {known[-1]} is there already, and {number} has expired"
        raise CommitConflict(
            message,
            conflicts=[Conflict("history-lost", known[-1], None, message)],
            code="history-lost",
            hint="read the table again and repeat the operation",
        )


def ensure_fits(draft: Draft, base: Snapshot) -> None:
    """The table may have been altered since the files were written; most of it makes no difference to them."""
    if not _is_same_table(draft.schema, base):
        message = "the table was dropped and made anew while the rows were written"
        raise CommitConflict(
            message,
            conflicts=[Conflict("table-replaced", base.version or 0, None, message)],
            code="table-replaced",
            hint="repeat the operation",
        )
    masks = draft.edits is not None and draft.edits.added.num_rows > 0
    if _layout(draft.schema, draft.rescales) == _layout(base.schema, draft.rescales):
        if not masks or DELETION_VECTORS.get(base.schema.options):
            return
        message = "deletion vectors were switched off while rows were deleted by them"
    else:
        message = "the table's keys or buckets were altered while the rows were written"
    raise CommitConflict(
        message,
        conflicts=[Conflict("metadata-changed", base.version or 0, "ALTER", message)],
        code="metadata-changed",
        hint="repeat the operation",
    )


def ensure_unmoved(draft: Draft, base: Snapshot) -> None:
    """The difference to one state is not that to another."""
    if draft.restored is not None and draft.restored.base != base.version:
        raise gone("others have committed since the difference to an earlier state was found", base)


def ensure_all_there(draft: Draft, base: Snapshot, removed: pa.Table) -> None:
    """ "Every DELETE must match a live file": rows of one that is gone would come back."""
    wanted = None if draft.replaced is None else draft.replaced.files
    if wanted is None or len(wanted) == removed.num_rows:
        return
    raise gone(f"{len(wanted) - removed.num_rows} files that are to be compacted are no longer in the table", base)


def ensure_masked_there(draft: Draft, base: Snapshot) -> None:
    """Rows that were deleted of a file are in another one after a compaction."""
    if draft.needed is None and draft.edits is None:
        return
    live = base.entries["file_name"].combine_chunks()
    if draft.needed is not None:
        # Of a range that was compacted meanwhile the rows may lie in larger ones.
        lost = draft.needed.filter(pc.invert(pc.is_in(draft.needed, value_set=live)))
        if len(lost):
            raise gone(f"{len(lost)} files of which columns are written are no longer in the table", base)
    if draft.edits is None:
        return
    there = pc.sum(pc.is_in(draft.edits.files, value_set=live)).as_py() or 0
    if there != len(draft.edits.files):
        raise gone(f"{len(draft.edits.files) - there} files whose rows change are no longer in the table", base)


def ensure_shown(draft: Draft, base: Snapshot, removed: pa.Table) -> None:
    """Rows made of what readers see do not come in the place of others, which a compaction would have shown."""
    if draft.replaced is None or not draft.reads or not draft.schema.primary_keys or draft.restored is not None:
        return
    unseen = hidden(base.schema, removed)
    if not unseen.num_rows:
        return
    raise UnsupportedFeature(
        "rows of the table itself would replace others that readers see only after a compaction: these would be lost",
        code="hidden-rows",
        path=unseen["file_name"][0].as_py(),
        features=("level 0",),
        hint="call compact() first, and read the table again",
    )


def ensure_ranges_whole(draft: Draft, base: Snapshot, removed: pa.Table) -> None:
    """Columns that somebody has written of rows while these were compacted are beside files that are gone."""
    if not draft.compacts or not draft.added.num_rows or not DATA_EVOLUTION.get(base.schema.options):
        return
    live = base.entries
    live = live.filter(pc.invert(pc.is_in(live["file_name"], value_set=removed["file_name"].combine_chunks())))
    own = draft.added.select(["partition", "first_row_id", "row_count"]).rename_columns(["partition", "low", "count"])
    met = live.select(["partition", "first_row_id", "row_count"]).join(own, "partition", join_type="inner")
    begins_before = pc.less(met["first_row_id"], pc.add(met["low"], met["count"]))
    ends_behind = pc.greater(pc.add(met["first_row_id"], met["row_count"]), met["low"])
    if pc.any(pc.and_(begins_before, ends_behind), min_count=0).as_py():
        raise gone("columns of rows that are to be compacted were written", base)


def ensure_avro(base: Snapshot) -> None:
    """Java reads every manifest of a table in the format that the option names: one in another is the table's end."""
    manifest_format = MANIFEST_FORMAT.get(base.schema.options)
    if manifest_format != "avro":
        raise UnsupportedFeature(
            f"tables with {MANIFEST_FORMAT.key} = {manifest_format} are read, but not written",
            code="unsupported-option",
            features=(MANIFEST_FORMAT.key,),
            hint="write it with Paimon's own engine",
        )


def gone(message: str, base: Snapshot) -> CommitConflict:
    return CommitConflict(
        message,
        conflicts=[Conflict("concurrent-delete-delete", base.version or 0, None, message)],
        code="concurrent-delete-delete",
        hint="repeat the operation",
    )


def _is_same_table(written: TableSchema, base: Snapshot) -> bool:
    """Whether the schema that files were written by is still the table's schema of that number."""
    try:
        known = base.schema_of(written.id)
    except NotFound:
        return False
    return known == written or _identity(known) == _identity(written)


def _identity(schema: TableSchema) -> tuple[object, ...]:
    fields = [format_field(f) for f in schema.fields]
    return (fields, schema.partition_keys, schema.primary_keys, schema.time_millis)


def _layout(schema: TableSchema, any_count: bool = False) -> tuple[object, ...]:
    keys = (schema.partition_keys, schema.primary_keys, schema.bucket_keys)
    count = BUCKET.get(schema.options)
    return (*keys, count != DYNAMIC_BUCKET if any_count else count, BUCKET_FUNCTION.get(schema.options))
