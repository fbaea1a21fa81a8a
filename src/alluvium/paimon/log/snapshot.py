"""Snapshot: one state of a table as a reader sees it: data files, schema, options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.files.manifest import snapshot_entries
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.schema_log import MAIN_BRANCH, list_schema_ids, load_schema
from alluvium.paimon.log.travel import At, find_snapshot, kept_by, parse_at
from alluvium.paimon.schema.option_names import travelled_options
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import SCAN_MODE
from alluvium.paimon.terms.spec import SCANNED_ENTRIES, SnapshotDocument
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a table.

    Attributes:
        store: The table's objects, also those of its branches.
        document: The snapshot file; None: the table has no snapshot yet, and no rows.
        schema: By which rows are read; its options with those of the call on top.
        branch: Whose schemas and snapshots these are.
        time_zone: The session's.
        open_store: From a URL to its store, for files that lie outside the table.
        asked: The options of the call alone.
        at: The point of history that was asked for.
        is_own_point: Whether nobody asked for a point: the table's own options name it, or it is the newest.
        fallback_id: The snapshot of the fallback branch that goes with it; None: by the time.
        lowest_level: Of a table with a primary key the level from which on files count, all of whose rows merge then;
            None: as batch readers see them, by the table's options.
    """

    store: Store
    document: SnapshotDocument | None
    schema: TableSchema
    branch: str = MAIN_BRANCH
    time_zone: str = "UTC"
    open_store: Callable[[str], Store] = field(default=open_store, repr=False, compare=False)
    asked: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    at: At = At()  # noqa: RUF009 - immutable
    is_own_point: bool = field(default=False, repr=False, compare=False)
    fallback_id: int | None = field(default=None, repr=False, compare=False)
    lowest_level: int | None = None
    _loaded: dict[object, pa.Table | TableSchema | Snapshot] = field(default_factory=dict, repr=False, compare=False)

    @property
    def version(self) -> int | None:
        return None if self.document is None else self.document.id

    @property
    def entries(self) -> pa.Table:
        """The live data files, schema `SCANNED_ENTRIES`; read once."""
        if self.document is None:
            return SCANNED_ENTRIES.empty_table()
        document = self.document
        return self.loaded("entries", lambda: snapshot_entries(self.store, document))

    def loaded(self, name: str, compute: Callable[[], pa.Table]) -> pa.Table:
        """What is computed once for this state, under a name."""
        if name not in self._loaded:
            self._loaded[name] = compute()
        found = self._loaded[name]
        assert isinstance(found, pa.Table)
        return found

    def beside(self, name: str, load: Callable[[], Snapshot]) -> Snapshot:
        """A state of another branch that goes with this one, read once: what is newest there may be another later."""
        key = ("beside", name)
        if key not in self._loaded:
            self._loaded[key] = load()
        found = self._loaded[key]
        assert isinstance(found, Snapshot)
        return found

    def state(self, number: int) -> Snapshot:
        """Another state of the same branch, read once; 0 is before the first snapshot.

        Raises:
            NotFound: There is no such snapshot.
        """
        key = ("state", number)
        if key not in self._loaded:
            if number == 0:
                self._loaded[key] = replace(self, document=None, _loaded={})
            else:
                tag = kept_by(self.store, number, self.branch)
                at = At(snapshot_id=number) if tag is None else At(tag=tag)
                self._loaded[key] = load_snapshot(self.store, at, self.branch, None, self.time_zone, self.open_store)
        found = self._loaded[key]
        assert isinstance(found, Snapshot)
        return found

    def schema_of(self, schema_id: int) -> TableSchema:
        """The schema that files were written with; each is read once.

        Raises:
            CorruptTable: There is no such schema file.
        """
        if schema_id == self.schema.id:
            return self.schema
        if schema_id not in self._loaded:
            self._loaded[schema_id] = load_schema(self.store, schema_id, self.branch)
        found = self._loaded[schema_id]
        assert isinstance(found, TableSchema)
        return found


def load_snapshot(
    store: Store,
    at: At | None = None,
    branch: str = MAIN_BRANCH,
    options: Mapping[str, str] | None = None,
    time_zone: str = "UTC",
    open_elsewhere: Callable[[str], Store] = open_store,
    schema_id: int | None = None,
) -> Snapshot:
    """Reads a state of the table at the store's root.

    Args:
        store: The table's objects.
        at: Which state, whatever point the table's own options pin; `At()`: the newest, as whoever writes must have it.
            None: the pinned state, and the newest where options pin none.
        branch: Of which branch.
        options: The table's dynamic options, on top of those that its schema has.
        time_zone: The session's, for casts and for `scan.timestamp`.
        open_elsewhere: From a URL to its store, for files that lie outside the table.
        schema_id: By which schema rows are read, whatever the state's own.

    Raises:
        NotFound: There is no table (`"not-a-table"`), no such branch, or nothing at that point.
        CorruptTable: Its files break the specification.
    """
    asked = dict(options or {})
    branch = asked.pop("branch", branch)
    _ensure_batch(asked)
    with locating(store, None if at is None else at.snapshot_id):
        schemas = list_schema_ids(store, branch)
        if not schemas:
            raise _no_table(store, branch)
        latest = load_schema(store, schemas[-1], branch)
        point = parse_at(at or At(), asked, time_zone)
        is_own = at is None and point.is_latest
        if is_own:
            point = parse_at(point, latest.options, time_zone)
        document = find_snapshot(store, point, branch)
        # "batch latest: latest schema file (not the snapshot's); time travel: that snapshot's schema".
        schema = latest
        if not point.is_latest and document is not None and document.schema_id != latest.id:
            schema = load_schema(store, document.schema_id, branch)
        if schema_id is not None and schema_id != schema.id:
            schema = latest if schema_id == latest.id else load_schema(store, schema_id, branch)
        # A tag outlives its snapshot, so it is what names the state.
        tag = point.tag_name
        named = {**asked, "scan.tag-name": tag} if tag else asked
        options = latest.options
        if schema is not latest:
            options = travelled_options(schema.fields, schema.options, latest.fields, latest.options)
        schema = replace(schema, options={**options, **asked})
        return Snapshot(store, document, schema, branch, time_zone, open_elsewhere, named, point, is_own)


def _ensure_batch(options: Mapping[str, str]) -> None:
    """Options that ask for other rows than those of a state are not simply left aside."""
    for name in options:
        if name.startswith("incremental-"):
            raise InvalidRequest(
                f"{name} asks for changes, not for a state", code="changes-as-of", hint="open(url).changes(start, end)"
            )
    mode = SCAN_MODE.get(options)
    if mode in ("compacted-full", "from-file-creation-time", "from-creation-timestamp", "incremental"):
        raise UnsupportedFeature(f"the scan mode {mode!r}", code="unsupported-scan", features=(mode,))


def is_table(store: Store) -> bool:
    """Whether a Paimon table lies at the store's root."""
    return bool(list_schema_ids(store))


def _no_table(store: Store, branch: str) -> NotFound:
    if branch == MAIN_BRANCH or not list_schema_ids(store):
        return NotFound("there is no Paimon table", code="not-a-table", hint="a table has a file schema/schema-0")
    known = list_branches(store)
    return NotFound(
        f"there is no branch {branch!r}",
        code="branch-not-found",
        hint=f"branches: {', '.join(known[:12])}" if known else "the table has no branches",
    )
