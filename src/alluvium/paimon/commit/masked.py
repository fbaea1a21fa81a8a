"""Which data files have other deletion vectors after a commit than before it: rows of them are gone, or back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.paimon.features.deletion_vectors import INDEX_TYPE
from alluvium.paimon.files.manifest import scan_index_manifest
from alluvium.paimon.terms.spec import SCANNED_ENTRIES
from alluvium.storage.store import Store

#: Of each vector: its data file, where that is, where the vector is, and how many rows it lists.
_VECTORS = pa.schema([
    pa.field("partition", pa.binary()),
    pa.field("bucket", pa.int32()),
    pa.field("file_name", pa.string()),
    pa.field("place", pa.string()),
    pa.field("count", pa.int64()),
])  # fmt: skip


def changed_masks(store: Store, before: str | None, after: str | None) -> pa.Table:
    """The data files whose vectors differ (`SCANNED_ENTRIES`, of which the file's name and its bucket are told alone).

    Index files are written anew with the vectors of other files of their bucket, which do not change by it. The rows of
    a vector become more and never others: as many are the same.

    Args:
        store: The table's objects.
        before: The index manifest before the commit; None: there was none.
        after: The one after it.

    Raises:
        NotFound: One of them is gone.
    """
    if before == after:
        return SCANNED_ENTRIES.empty_table()
    old, new = _vectors(store, before), _vectors(store, after)
    gone = old.filter(pc.invert(pc.is_in(old["file_name"], value_set=new["file_name"].combine_chunks())))
    changed = pa.concat_tables([_others(new, old), gone])
    columns = {
        f.name: changed[f.name] if f.name in changed.column_names else pa.nulls(changed.num_rows, f.type)
        for f in SCANNED_ENTRIES
    }
    return pa.table(columns, schema=SCANNED_ENTRIES)


def _others(some: pa.Table, known: pa.Table) -> pa.Table:
    """Those of some vectors that are not among known ones."""
    same = known.take(pc.index_in(some["file_name"], value_set=known["file_name"].combine_chunks()))
    in_place = pc.equal(some["place"], same["place"])
    stays = pc.or_kleene(in_place, pc.equal(some["count"], same["count"]))
    return some.filter(pc.invert(pc.fill_null(stays, False)))


def _vectors(store: Store, manifest: str | None) -> pa.Table:
    if manifest is None:
        return _VECTORS.empty_table()
    entries = scan_index_manifest(store, manifest)
    entries = entries.filter(pc.equal(entries["index_type"], INDEX_TYPE))
    ranges = entries["ranges"].combine_chunks()
    members, parents = pc.list_flatten(ranges), pc.list_parent_indices(ranges)
    names = entries["file_name"].combine_chunks().take(parents)
    columns = {
        "partition": entries["partition"].combine_chunks().take(parents),
        "bucket": entries["bucket"].combine_chunks().take(parents),
        "file_name": pc.struct_field(members, "f0"),
        "place": pc.binary_join_element_wise(names, pc.struct_field(members, "f1").cast(pa.string()), "/"),
        "count": pc.struct_field(members, "_CARDINALITY").cast(pa.int64()),
    }
    return pa.table(columns, schema=_VECTORS)
