"""Files below a table that nothing of it names: what crashes, rollbacks and deleted branches have left.

Looked for where Paimon has files, and nowhere else: what others have put beside stays. A file goes only if it is old
enough that no writer can be about to name it. Specification: `org.apache.paimon.operation.OrphanFilesClean`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.schema_log import MAIN_BRANCH, list_schema_ids
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import DATA_FILE_DIRECTORY
from alluvium.paimon.upkeep.removal.needs import Reader
from alluvium.paimon.upkeep.removal.roots import list_roots
from alluvium.paimon.write.write import STAGING
from alluvium.storage.store import Store

#: Files of a history that are no document of it.
_KNOWN_IN_LOG = re.compile(r"(?:snapshot|changelog)-\d+|EARLIEST|LATEST")


@dataclass(frozen=True, slots=True)
class Orphans:
    """What nothing names.

    Attributes:
        files: `path` (from the table's root), `size` (bytes), `modified_ms`.
    """

    files: pa.Table

    @property
    def count(self) -> int:
        return int(self.files.num_rows)

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.files["size"]).as_py() or 0)


def remove_orphan_files(
    store: Store, schema: TableSchema, older_than_ms: int, now_ms: int, dry_run: bool = False
) -> Orphans:
    """Deletes files that are older than a time and that nothing names.

    Args:
        store: The table's objects.
        schema: The newest.
        older_than_ms: Milliseconds since 1970 UTC; before now.
        now_ms: Now.
        dry_run: Only say which.

    Raises:
        InvalidRequest: The time is not past (`"invalid-retention"`): files that are being written would go.
        CorruptTable: A document of the table cannot be read: nobody knows what it needs, and nothing is deleted.
        StorageError: Some could not be deleted.
    """
    if older_than_ms >= now_ms:
        raise InvalidRequest(
            "files that are being written would be deleted: older_than lies before now",
            code="invalid-retention",
            hint="a day ago, say",
        )
    _ensure_branches(store)
    # Listed before it is asked what is named: a file that is named meanwhile was not listed, or is found to be named.
    listed = _old_files(store, schema, older_than_ms)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "(?s)^.*/", "")
    named = _named(store)
    orphans = Orphans(listed.filter(pc.invert(pc.is_in(names, value_set=named))))
    if not dry_run:
        store.delete_all(orphans.files["path"].to_pylist())
    return orphans


def _ensure_branches(store: Store) -> None:
    broken = [name for name in (MAIN_BRANCH, *list_branches(store)) if not list_schema_ids(store, name)]
    if broken:
        raise CorruptTable(
            f"branches without a schema: {', '.join(broken)}",
            code="branch-without-schema",
            url=store.url,
            hint="delete_branch removes what is left of one",
        )


def _old_files(store: Store, schema: TableSchema, older_than_ms: int) -> pa.Table:
    tables = []
    for batch in store.list_columns("", lambda name: name in ("schema", "tag", "consumer")):
        rows = pa.table(batch)
        is_old = pc.and_(pc.invert(rows["is_directory"]), pc.less(rows["modified_ms"], older_than_ms))
        rows = rows.filter(is_old).select(["path", "size", "modified_ms"])
        tables.append(rows.filter(_is_ours(rows["path"], schema)))
    nothing = pa.table({"path": pa.array([], pa.string()), "size": pa.array([], pa.int64()),
                        "modified_ms": pa.array([], pa.int64())})  # fmt: skip
    return pa.concat_tables([nothing, *(t.cast(nothing.schema) for t in tables)])


def _is_ours(paths: pa.ChunkedArray, schema: TableSchema) -> pa.ChunkedArray:
    """Whether files lie where a table has its own."""
    front = DATA_FILE_DIRECTORY.get(schema.options)
    partitions = "".join(f"{re.escape(key)}=[^/]*/" for key in schema.partition_keys)
    data = rf"{re.escape(front) + '/' if front else ''}{partitions}bucket-[^/]+/[^/]+"
    folders = rf"(?:manifest|index|statistics)/[^/]+|{re.escape(STAGING)}/.+|{data}"
    log = r"(?:branch/branch-[^/]+/)?(?:snapshot|changelog)/[^/]+"
    in_log = pc.match_substring_regex(paths, rf"^(?:{log})$")
    document = pc.match_substring_regex(paths, rf"/(?:{_KNOWN_IN_LOG.pattern})$")
    return pc.or_(pc.match_substring_regex(paths, rf"^(?:{folders})$"), pc.and_(in_log, pc.invert(document)))


def _named(store: Store) -> pa.Array:
    """Names of all files that any document names, be they live or not: whatever is named stays."""
    while True:
        roots = list_roots(store)
        try:
            reader = Reader(store)
            reader.load(roots)
        except NotFound as error:
            if {root.path for root in list_roots(store)} != {root.path for root in roots}:
                continue  # its snapshot has just expired
            raise CorruptTable(
                f"what the table needs cannot be told, so nothing is deleted: {error.message}",
                code="missing-manifest",
                url=store.url,
                path=error.path,
                hint="a snapshot or tag names it: expire or delete that first",
            ) from None
        statistics = [root.document.statistics for root in roots if root.document.statistics is not None]
        return pa.concat_arrays([reader.names(), pa.array(statistics, pa.string())])
