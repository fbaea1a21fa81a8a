"""The `schema-N` files of a table or branch: listed, read, published. Specification: "Update Schema".

"The schema file with the highest numerical value is usually the latest schema file."
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable

from alluvium.commit.landed import landed
from alluvium.commit.loop import Entry, commit
from alluvium.errors import Conflict, CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.schema.table_schema import TableSchema, ensure_consistent
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.store import PutOutcome, Store

MAIN_BRANCH = "main"
_PREFIX = "schema-"
_MARK_LENGTH = 64
#: Branches whose files are read where the table's own have none, or the reverse.
BRANCH_OPTIONS = ("scan.fallback-branch", "scan.primary-branch")


def schema_path(schema_id: int, branch: str = MAIN_BRANCH) -> str:
    """Where a schema lies, from the table's root."""
    return f"{_directory(branch)}/{_PREFIX}{schema_id}"


def list_schema_ids(store: Store, branch: str = MAIN_BRANCH) -> list[int]:
    """The ids of the schemas there are, ascending. Other files in the directory do not count."""
    names = store.list_names(_directory(branch), _PREFIX)
    texts = (name[len(_PREFIX) :] for name in names if name.startswith(_PREFIX))
    return sorted(int(text) for text in texts if text.isascii() and text.isdigit())


def load_schema(store: Store, schema_id: int, branch: str = MAIN_BRANCH) -> TableSchema:
    """A schema by id.

    Raises:
        NotFound: `"missing-schema"`: there is none; the message says which there are.
        CorruptTable: `"invalid-schema"`: the file is damaged, or says which column is which in two ways.
    """
    path = schema_path(schema_id, branch)
    try:
        data = store.get(path)
    except NotFound:
        ids = list_schema_ids(store, branch)
        there = f"there are {', '.join(map(str, ids[:20]))}" if ids else "there are none"
        raise NotFound(
            f"the table has no schema {schema_id}: {there}",
            code="missing-schema",
            url=store.url,
            path=path,
            hint="files that were written by a schema can be read with that schema only: restore it",
        ) from None
    schema = _parsed(data, path)
    if schema.id != schema_id:
        raise CorruptTable(f"the file {path} says that it is schema {schema.id}", code="invalid-schema", path=path)
    return schema


@functools.lru_cache(maxsize=64)
def _parsed(data: bytes, path: str) -> TableSchema:
    """What a file says. Schemas are values, and a commit asks for the same one several times."""
    schema = TableSchema.parse(data, path)
    ensure_consistent(schema, path)
    return schema


def load_latest_schema(store: Store, branch: str = MAIN_BRANCH) -> TableSchema | None:
    """The newest schema, or None where there is no table."""
    ids = list_schema_ids(store, branch)
    return load_schema(store, ids[-1], branch) if ids else None


def publish_first_schema(store: Store, schema: TableSchema) -> None:
    """Publishes `schema-0` of a new table.

    Raises:
        InvalidRequest: `"table-exists"`.
        CommitUnknown: The store does not say whether it stands.
    """
    _ensure_branches(store, schema)
    commit(_SchemaPort(store), lambda base: schema, load_latest_schema(store))


def publish_next_schema(
    store: Store,
    evolve: Callable[[TableSchema], TableSchema],
    branch: str = MAIN_BRANCH,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> TableSchema:
    """Publishes the next schema by put-if-absent; a lost race evolves the winner's schema instead.

    Args:
        store: The table's objects.
        evolve: The next schema from the newest one; called anew after each lost race, and may refuse.
        branch: Whose schema.
        retry: How often to try.

    Raises:
        NotFound: `"not-a-table"`.
        InvalidRequest: `evolve` refuses the newest schema.
        CommitConflict: `"attempts-exhausted"`.
        CommitUnknown: The store does not say whether it stands.
    """
    base = load_latest_schema(store, branch)
    if base is None:
        raise not_a_table(store)

    def draft(newest: TableSchema | None) -> TableSchema:
        assert newest is not None, "a table that exists goes on existing"
        evolved = evolve(newest)
        _ensure_branches(store, evolved)
        return evolved

    published = commit(_SchemaPort(store, branch), draft, base, retry)
    return TableSchema.parse(published.entry.data, published.entry.path)


def not_a_table(store: Store) -> NotFound:
    return NotFound(
        f"there is no Paimon table at {store.url}",
        code="not-a-table",
        url=store.url,
        hint="check the path; a Paimon table is the directory that holds schema/schema-0",
    )


class _SchemaPort:
    """The commit loop's verbs for schema files: a draft makes the next schema of any base."""

    def __init__(self, store: Store, branch: str = MAIN_BRANCH) -> None:
        self._store = store
        self._branch = branch

    @property
    def url(self) -> str:
        return self._store.url

    def assemble(self, draft: Callable[[TableSchema | None], TableSchema], base: TableSchema | None) -> Entry:
        schema = draft(base)
        if base is not None and schema.id != base.id + 1:
            raise InvalidRequest(
                f"there is a table at {self.url} already", code="table-exists", url=self.url, hint="alter it"
            )
        return Entry(schema.id, schema_path(schema.id, self._branch), schema.format() + _mark())

    def publish(self, entry: Entry) -> PutOutcome:
        return self._store.put_if_absent(entry.path, entry.data)

    def landed(self, entry: Entry) -> bool | None:
        return landed(self._store, entry.path, entry.data)

    def refresh(self, base: TableSchema | None) -> tuple[TableSchema | None, tuple[TableSchema, ...]]:
        newest = load_latest_schema(self._store, self._branch)
        return newest, () if newest is None else (newest,)

    def conflicts(self, draft: object, base: TableSchema | None, winner: TableSchema) -> tuple[Conflict, ...]:
        # What the winner forbids shows when the draft is made anew on its schema.
        return ()


def _mark() -> bytes:
    """Blanks that tell this file from another writer's.

    Two writers that make the same change in the same millisecond would write the same bytes, and each would take the
    other's file for its own. No reader of JSON sees what stands behind the document.
    """
    return bytes(secrets.choice(b" \t") for _ in range(_MARK_LENGTH))


def _directory(branch: str) -> str:
    return "schema" if branch == MAIN_BRANCH else f"branch/branch-{branch}/schema"


def _ensure_branches(store: Store, schema: TableSchema) -> None:
    """Branches that options name must exist.

    Raises:
        InvalidRequest: `"invalid-table-option"`.
    """
    named = {key: schema.options[key] for key in BRANCH_OPTIONS if schema.options.get(key, "").strip()}
    if len(named) > 1:
        raise InvalidRequest(f"{' and '.join(named)} exclude each other", code="invalid-table-option")
    for key, branch in named.items():
        if not list_schema_ids(store, branch):
            raise InvalidRequest(
                f"table option {key} names the branch {branch!r}, which does not exist", code="invalid-table-option"
            )
