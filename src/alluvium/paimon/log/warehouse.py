"""A warehouse: databases and tables as folders of a file system, `<database>.db/<table>`.

Specification: `org.apache.paimon.catalog.FileSystemCatalog`, `CachingCatalog`.
"""

from __future__ import annotations

import re

from alluvium.errors import InvalidRequest
from alluvium.storage.store import Store

DEFAULT_DATABASE = "default"
_SUFFIX = ".db"
_NAME = re.compile(r"[^/\\\x00.$@][^/\\\x00.$@]*")
#: Folders of tables in which no other table is: they are not looked into.
_INSIDE = frozenset(
    ("snapshot", "manifest", "index", "statistics", "tag", "branch", "changelog", "consumer", "_staging")
)


def ensure_folder_name(name: str, what: str) -> str:
    """A name as it is that of a folder.

    Raises:
        InvalidRequest: It would lead elsewhere (`"invalid-name"`).
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(f"{name!r} is no name of a {what}", code="invalid-name")
    return name


def table_folder(database: str, table: str) -> str:
    """Where a table lies, from the warehouse's root."""
    return f"{ensure_folder_name(database, 'database')}{_SUFFIX}/{ensure_folder_name(table, 'table')}"


def list_warehouse(store: Store) -> dict[str, list[str]]:
    """The tables of each database, both in order. `default` is always there."""
    found: dict[str, set[str]] = {DEFAULT_DATABASE: set()}
    for batch in store.list_columns("", _is_inside):
        for path, is_directory in zip(batch["path"].to_pylist(), batch["is_directory"].to_pylist(), strict=True):
            parts = path.split("/")
            if not parts[0].endswith(_SUFFIX) or (len(parts) == 1 and not is_directory):
                continue
            tables = found.setdefault(parts[0].removesuffix(_SUFFIX), set())
            if len(parts) == 4 and parts[2] == "schema" and parts[3].startswith("schema-"):
                tables.add(parts[1])
    return {database: sorted(tables) for database, tables in sorted(found.items())}


def create_database(store: Store, database: str) -> None:
    """Makes the folder of a database; where a store has no folders, a database is there as soon as it has a table."""
    folder = f"{ensure_folder_name(database, 'database')}{_SUFFIX}"
    store.put(f"{folder}/.made", b"")
    store.delete(f"{folder}/.made")


def drop_database(store: Store, database: str) -> None:
    """Removes a database with all that is in it."""
    store.delete_tree(f"{ensure_folder_name(database, 'database')}{_SUFFIX}")


def drop_table(store: Store, database: str, table: str) -> None:
    """Removes a table with all its files: first its schemas, without which it is none."""
    folder = table_folder(database, table)
    for info in store.list_from(f"{folder}/schema", "schema-"):
        store.delete(info.path)
    store.delete_tree(folder)


def _is_inside(name: str) -> bool:
    return name in _INSIDE or name.startswith("bucket-") or "=" in name
