"""Reconciliation of file actions, on Arrow. Pure.

Specification: "Action Reconciliation".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.text_hashes import MAX_BYTES, Numbers, hashes_of_length
from alluvium.delta.log.read import ORDER
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.delta.terms.spec import FILES, TOMBSTONES

# Batches smaller than this are merged where they pile up, as they do when a table is refreshed commit by commit.
_SMALL_ROWS = 512
_MANY_BATCHES = 64


def reconcile(
    files: list[pa.RecordBatch],
    tombstones: list[pa.RecordBatch],
    adds: list[pa.RecordBatch],
    removes: list[pa.RecordBatch],
) -> tuple[pa.Table, pa.Table]:
    """ "To replay the log, scan all file actions and keep only the newest reference for each logical file."

    The lists are used up: their batches are let go as soon as they are filtered, to keep memory low.

    Args:
        files: Live files of the version before; schema `FILES`, perhaps more columns.
        tombstones: Tombstones of the version before; schema `TOMBSTONES`.
        adds: Newer adds; schema `FILES` and `ORDER`.
        removes: Newer removes; schema `TOMBSTONES` and `ORDER`.

    Returns:
        Live files and tombstones.
    """
    file_schema = files[0].schema if files else FILES
    keys = pa.chunked_array([logical_file_keys(batch) for batch in (*adds, *removes)], pa.string())
    order = pa.chunked_array([batch.column(ORDER.name) for batch in (*adds, *removes)], pa.int64())
    keep = _newest(keys, order)
    add_count = sum(batch.num_rows for batch in adds)
    if len(keys):
        for older in (files, tombstones):
            if older:
                older_keys = pa.chunked_array([logical_file_keys(batch) for batch in older], pa.string())
                _filter(older, pc.invert(pc.is_in(older_keys, value_set=keys)))
    if keep is not None:
        _filter(adds, keep.slice(0, add_count))
        _filter(removes, keep.slice(add_count))
    return _table(files, adds, file_schema), _table(tombstones, removes, TOMBSTONES)


def without_repeats(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Files of which each is listed once, as a checkpoint should list them: of several rows of one file the last."""
    keys = pa.chunked_array([logical_file_keys(batch) for batch in batches], pa.string())
    keep = _newest(keys, pa.chunked_array([_long_array(np.arange(len(keys)))]))
    if keep is None:
        return batches
    kept = list(batches)
    _filter(kept, keep)
    return [batch for batch in kept if batch.num_rows]


def overlay(older: list[pa.RecordBatch], files: pa.Table, tombstones: pa.Table) -> pa.Table:
    """Some files of an older version with newer, reconciled actions on top of them: the live ones.

    Args:
        older: Live files of the version before; schema `FILES`. All of them, or those of interest.
        files: Files added since; schema `FILES`.
        tombstones: Files removed since; schema `TOMBSTONES`.
    """
    newer = [*files.to_batches(), *tombstones.to_batches()]
    keys = pa.chunked_array([logical_file_keys(batch) for batch in newer], pa.string())
    left = list(older)
    if len(keys) and left:
        older_keys = pa.chunked_array([logical_file_keys(batch) for batch in left], pa.string())
        _filter(left, pc.invert(pc.is_in(older_keys, value_set=keys)))
    return pa.Table.from_batches([*left, *files.select(FILES.names).to_batches()], FILES)


def logical_file_keys(batch: pa.RecordBatch) -> pa.Array:
    """The primary key of each row's logical file as one text.

    "Logical files in a table are identified by their `(path, deletionVector.uniqueId)` primary key."
    """
    paths = canonical_paths(batch.column("path"))
    vectors = batch.column("deletionVector")
    if vectors.null_count == len(vectors):
        return paths
    return pc.coalesce(pc.binary_join_element_wise(paths, vector_ids(vectors), "\0"), paths)


def vector_ids(vectors: pa.StructArray) -> pa.Array:
    """The `uniqueId` of deletion vectors; null where there is none.

    "If `offset` is `None` then `<storageType><pathOrInlineDv>`. Otherwise `<storageType><pathOrInlineDv>@<offset>`."
    """
    members = dict(zip((f.name for f in vectors.type), vectors.flatten(), strict=True))
    name = pc.binary_join_element_wise(members["storageType"], members["pathOrInlineDv"], "")
    offset = pc.cast(members["offset"], pa.string())
    return pc.coalesce(pc.binary_join_element_wise(name, offset, "@"), name)


def _newest(keys: pa.ChunkedArray, order: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Which references are the newest of their key; None if all are.

    Grouping by the keys themselves would copy them all. Nearly always every key stands once, which numbers that stand
    for them prove; only where two numbers are equal the keys are compared.
    """
    numbers = _hashes(keys) if _is_even(keys) else _numbers(keys)
    # Sorting takes a fraction of the memory of a hash table.
    ascending = np.sort(numbers)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    if not len(repeated):
        return None
    doubtful = pa.chunked_array([pc.is_in(_long_array(numbers), value_set=_long_array(repeated))])
    candidates = pa.table({"key": keys.filter(doubtful), "order": order.filter(doubtful)})
    newest = candidates.group_by("key", use_threads=False).aggregate([("order", "max")]).column("order_max")
    return pc.or_(pc.invert(doubtful), pc.is_in(order, value_set=newest))


def _is_even(keys: pa.ChunkedArray) -> bool:
    """Whether all keys have the same number of bytes, as they do where one writer made all the names."""
    ends = pc.min_max(pc.binary_length(keys))
    length = ends["max"].as_py()
    return length is not None and ends["min"].as_py() == length and 0 < length <= MAX_BYTES


def _hashes(keys: pa.ChunkedArray) -> Numbers:
    """A number for each of some keys of one length: of two equal ones the same, of two others hardly ever."""
    filled = [chunk for chunk in keys.chunks if len(chunk)]
    hashed = [hashes_of_length(chunk, pc.binary_length(chunk[0]).as_py()) for chunk in filled]
    return np.concatenate(hashed) if hashed else np.zeros(0, np.int64)


def _numbers(keys: pa.ChunkedArray) -> Numbers:
    """A number for each key: equal for equal ones."""
    chunks = keys.dictionary_encode().chunks
    return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]) if chunks else np.zeros(0, np.int32)


def _long_array(numbers: Numbers) -> pa.Array:
    whole = np.ascontiguousarray(numbers, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def _filter(batches: list[pa.RecordBatch], keep: pa.ChunkedArray) -> None:
    """Filters in place; a batch that is kept whole is not copied."""
    mask = keep.combine_chunks() if isinstance(keep, pa.ChunkedArray) else keep
    start = 0
    for index, batch in enumerate(batches):
        part = mask.slice(start, batch.num_rows)
        start += batch.num_rows
        if part.true_count < len(part):
            batches[index] = batch.filter(part)


def _table(older: list[pa.RecordBatch], newer: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    batches = [*older, *(_aligned(batch, schema) for batch in newer)]
    older.clear()
    newer.clear()
    return pa.Table.from_batches(_merged([batch for batch in batches if batch.num_rows]), schema)


def _aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    names = set(batch.schema.names)
    columns = [batch.column(f.name) if f.name in names else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _merged(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Runs of small batches as one, once there are many."""
    if len(batches) <= _MANY_BATCHES:
        return batches
    merged: list[pa.RecordBatch] = []
    run: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows >= _SMALL_ROWS:
            merged += _joined(run)
            run = []
            merged.append(batch)
        else:
            run.append(batch)
            if sum(b.num_rows for b in run) >= _SMALL_ROWS:
                merged += _joined(run)
                run = []
    return merged + _joined(run)


def _joined(run: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(run) < 2:
        return list(run)
    return list(pa.Table.from_batches(run).combine_chunks().to_batches())
