"""A table, or partitions of it, copied file by file: the newest state alone, without its past, tags and branches.

Files keep their names, and rows their ids, so that deletion vectors and later copies find them.
Specification: `org.apache.paimon.spark.copy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Draft, Replaced, Restored
from alluvium.paimon.features.deletion_vectors import index_paths
from alluvium.paimon.files.hash_index import FOLDER as HASH_FOLDER
from alluvium.paimon.files.hash_index import INDEX_TYPE as HASH
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.names import is_there
from alluvium.paimon.log.schema_log import BRANCH_OPTIONS, list_schema_ids, load_schema, schema_path
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.type_json import format_field
from alluvium.paimon.terms.options import (
    BUCKET,
    DELETION_VECTORS,
    DELETION_VECTORS_MERGE_ON_READ,
    FIELDS_PREFIX,
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    IMMUTABLE_OPTIONS,
    PARTITION_DEFAULT_NAME,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
)
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES
from alluvium.paimon.upkeep.again import again
from alluvium.paimon.upkeep.append_compact import partitions_where
from alluvium.paimon.upkeep.life.as_latest import identities
from alluvium.paimon.write.target import publish
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute, resolve
from alluvium.storage.store import PutOutcome, Store

#: Options that say where the table is.
_OWN = ("path", "branch")
#: Options that say which rows files hold, beside those that never change.
_ROWS = (
    DELETION_VECTORS.key,
    DELETION_VECTORS_MERGE_ON_READ.key,
    SEQUENCE_FIELD.key,
    SEQUENCE_FIELD_SORT_ORDER.key,
    IGNORE_DELETE.key,
    IGNORE_UPDATE_BEFORE.key,
    PARTITION_DEFAULT_NAME.key,
)


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes:
        version: The snapshot of the copy; None: there was nothing to commit.
        files: How many files came anew.
        size_bytes: How large they are together.
    """

    version: int | None
    files: int
    size_bytes: int


def copy_table(
    source: Snapshot, target: Store, where: Expression | None = None, retry: RetryPolicy = DEFAULT_RETRY
) -> Copied:
    """Makes a table of the files of another one; of a copy that was made before what has changed since.

    Args:
        source: The newest state of the table.
        target: Where the copy is to be.
        where: Only partitions for which this is true; those of an earlier copy for which it is not stay.
        retry: How often a lost commit is tried again.

    Raises:
        InvalidRequest: Something else is there (`"incompatible-target"`), or it is the table itself.
        UnsupportedFeature: The condition is not about partition keys alone, or the table shows another branch's rows.
        NotFound: A file of the source has expired meanwhile; no snapshot was made.
        CommitConflict: Others wrote to the copy every time.
    """
    if target.url == source.store.url or _is_within(target.url, source.store.url):
        raise InvalidRequest(
            "a table is not copied into itself", code="incompatible-target", url=target.url, hint="another place"
        )
    shown = [key for key in BRANCH_OPTIONS if key in source.schema.options]
    if shown:
        raise UnsupportedFeature(
            f"a copy has no branches, and {shown[0]} names one",
            code="unsupported-copy",
            url=source.store.url,
            features=tuple(shown),
            hint="copy each branch, or remove the option",
        )
    chosen = partitions_where(source, removed_entries(source, Replaced()), where)
    _copy_schemas(source, target)
    return again(lambda: _committed(source, target, chosen, where, retry), retry, "copied")


def _is_within(url: str, other: str) -> bool:
    return url.startswith(f"{other}/") or other.startswith(f"{url}/")


def _copy_schemas(source: Snapshot, target: Store) -> None:
    """The schemas under the ids that files name; the newest last."""
    ids, there = (list_schema_ids(store, branch) for store, branch in ((source.store, source.branch), (target, "main")))
    for number in there:
        if number not in ids:
            raise _incompatible(target, f"the table there has a schema {number}, and the source has none")
        _ensure_fits(load_schema(source.store, number, source.branch), target, number)
    for number in ids:
        if number in there:
            continue
        schema = load_schema(source.store, number, source.branch)
        options = {key: value for key, value in schema.options.items() if key not in _OWN}
        outcome = target.put_if_absent(schema_path(number), replace(schema, options=options).format())
        if outcome is PutOutcome.DONE:
            continue
        try:
            _ensure_fits(schema, target, number)
        except NotFound:
            raise _incompatible(target, f"somebody else has written schema {number} there") from None


def _ensure_fits(own: TableSchema, target: Store, number: int) -> None:
    """A schema of the target is that of the source, but for options that make no difference to what is in files."""
    other = load_schema(target, number)
    if _layout(own) != _layout(other):
        raise _incompatible(target, f"schema {number} of the table there is not that of the source")
    differing = sorted(key for key in own.options.keys() | other.options.keys() if _says_rows(key))
    for key in differing:
        if own.options.get(key) != other.options.get(key):
            problem = f"the table there has {key} = {other.options.get(key)}, and the source {own.options.get(key)}"
            raise _incompatible(target, problem)


def _says_rows(key: str) -> bool:
    """Whether an option says which rows files hold."""
    return key in IMMUTABLE_OPTIONS or key in _ROWS or key.startswith(f"{FIELDS_PREFIX}.")


def _layout(schema: TableSchema) -> tuple[object, ...]:
    fields = [format_field(f) for f in schema.fields]
    return (fields, schema.partition_keys, schema.primary_keys, schema.bucket_keys, BUCKET.get(schema.options))


def _incompatible(target: Store, reason: str) -> InvalidRequest:
    return InvalidRequest(reason, code="incompatible-target", url=target.url, hint="copy to a place where nothing is")


def _committed(
    source: Snapshot, target: Store, chosen: pa.Table, where: Expression | None, retry: RetryPolicy
) -> Copied:
    base = load_snapshot(target, At())
    every = removed_entries(base, Replaced())
    there = partitions_where(base, every, where)
    indexes = _indexes(source, chosen, where)
    inside = chosen.set_column(
        chosen.schema.get_field_index("external_path"),
        ENTRIES.field("external_path"),
        pa.nulls(len(chosen), pa.string()),
    )
    added = inside.filter(pc.invert(pc.is_in(identities(inside), value_set=identities(there))))
    gone = there.filter(pc.invert(pc.is_in(identities(there), value_set=identities(inside))))
    origins = [*_files(source, chosen), *_index_files(source, indexes)]
    own = indexes.set_column(
        indexes.schema.get_field_index("external_path"),
        INDEX_ENTRIES.field("external_path"),
        pa.nulls(len(indexes), pa.string()),
    )
    places = [*_files(base, inside), *_index_files(base, own)]
    sizes = _copy_files(source, target, origins, places)
    document = source.document
    if document is None or (not len(sizes) and not added.num_rows and not gone.num_rows and base.document is not None):
        return Copied(base.version, 0, 0)
    kept = _kept_indexes(base, pa.concat_tables([there.select(["partition"]), own.select(["partition"])]), where)
    draft = Draft(
        base.schema,
        added,
        Replaced(files=gone["file_name"].combine_chunks()),
        reads=True,
        # A file may come again: no manifest may tell of its deletion, see `as_latest`.
        merges_manifests=True,
        restored=Restored(base.version, pa.concat_tables([kept, own]), document.next_row_id or 0),
    )
    published = publish(target, draft, base, retry)
    return Copied(published.entry.version, len(sizes), sum(sizes))


def _indexes(source: Snapshot, chosen: pa.Table, where: Expression | None) -> pa.Table:
    """The index files of what is copied."""
    if source.document is None or source.document.index_manifest is None:
        return INDEX_ENTRIES.empty_table()
    entries = read_index_manifest(source.store, source.document.index_manifest)
    if where is None:
        return entries
    return entries.filter(pc.is_in(entries["partition"], value_set=chosen["partition"].combine_chunks()))


def _kept_indexes(base: Snapshot, there: pa.Table, where: Expression | None) -> pa.Table:
    """The index files of what stays of an earlier copy: not those of partitions that go, or come anew."""
    if where is None or base.document is None or base.document.index_manifest is None:
        return INDEX_ENTRIES.empty_table()
    entries = read_index_manifest(base.store, base.document.index_manifest)
    goes = pc.is_in(entries["partition"], value_set=there["partition"].combine_chunks())
    return entries.filter(pc.invert(goes))


def _index_files(snapshot: Snapshot, indexes: pa.Table) -> list[str]:
    hashes = pc.binary_join_element_wise(HASH_FOLDER, indexes["file_name"], "/")
    hashes = pc.coalesce(indexes["external_path"], hashes).combine_chunks()
    is_hash = pc.equal(indexes["index_type"], HASH).combine_chunks()
    return [str(path) for path in pc.if_else(is_hash, hashes, index_paths(snapshot, indexes)).to_pylist()]


def _files(snapshot: Snapshot, entries: pa.Table) -> list[str]:
    """The data files, and those beside them, in an order that is the same of both tables."""
    paths = data_paths(entries, partitions_of(entries, snapshot.schema), snapshot.schema)
    owners, beside = (
        step(entries["extra_files"].combine_chunks()) for step in (pc.list_parent_indices, pc.list_flatten)
    )
    folders = pc.replace_substring_regex(paths.take(owners), "[^/]*$", "")
    return [*paths.to_pylist(), *pc.binary_join_element_wise(folders, beside, "").to_pylist()]


def _copy_files(source: Snapshot, target: Store, origins: Sequence[str], places: Sequence[str]) -> list[int]:
    """Copies what is not there yet; the sizes."""

    def copy(pair: tuple[str, str]) -> int | None:
        origin, place = pair
        store, path = source.store, origin
        if is_absolute(origin):
            store, path = locate(store, source.open_store, resolve(store.url, origin))
        # Names are given once: what has the name, and the size, is the file.
        if is_there(target, place) and target.head(place).size == store.head(path).size:
            return None
        return target.copy_from(store, path, place)

    pairs = list(dict(zip(places, origins, strict=True)).items())
    sizes = map_parallel(copy, [(origin, place) for place, origin in pairs])
    return [size for size in sizes if size is not None]
