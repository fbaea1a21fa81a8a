"""A warehouse: databases and tables as folders of a file system, `<database>.db/<table>`.

Specification: `org.apache.paimon.catalog.FileSystemCatalog`, `CachingCatalog`.
"""

from __future__ import annotations

import re

from alluvium.errors import InvalidRequest, suggest
from alluvium.storage.listing import list_folders
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

DEFAULT_DATABASE = "default"
_SUFFIX = ".db"
_NAME = re.compile(r"[^/\\\x00.$@][^/\\\x00.$@]*")


def may_be_table(database: str, table: str) -> bool:
    """Whether a table can have this name."""
    return all(map(_NAME.fullmatch, (database, table)))


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
    return f"{_folder(database)}/{ensure_folder_name(table, 'table')}"


def list_databases(store: Store) -> list[str]:
    """The databases, in order. `default` is always there. Folders that no name leads to are none."""
    found = {name.removesuffix(_SUFFIX) for name in list_folders(store, "") if name.endswith(_SUFFIX)}
    return sorted({name for name in found if _NAME.fullmatch(name)} | {DEFAULT_DATABASE})


def list_tables(store: Store, database: str) -> list[str]:
    """The tables of a database, in order; none where there is no such database.

    Their files are not listed: a folder is a table by its schemas alone, whatever it is called.
    """
    folder = _folder(database)
    names = list_folders(store, folder)
    schemas = map_parallel(lambda name: any(store.list_from(f"{folder}/{name}/schema", "schema-")), names)
    return [name for name, has_schema in zip(names, schemas, strict=True) if has_schema]


def is_empty(store: Store, database: str) -> bool:
    """Whether no file lies in a database, be it of a table or not: then nothing is lost with it."""
    return all(info.path == _mark(database) for info in store.list_tree(_folder(database)))


def create_database(store: Store, database: str) -> None:
    """Makes the folder of a database; where a store has no folders, an empty object stands for it."""
    store.put(_mark(database), b"")
    store.delete(_mark(database))
    if database not in list_databases(store):
        store.put(_mark(database), b"")


def ensure_database(store: Store, database: str) -> None:
    """Refuses to make something in a database that is not there.

    Raises:
        InvalidRequest: It is not (`"unknown-database"`).
    """
    known = list_databases(store)
    if database not in known:
        raise InvalidRequest(
            f"there is no database {database!r}", code="unknown-database", url=store.url, hint=suggest(database, known)
        )


def drop_database(store: Store, database: str) -> None:
    """Removes a database with all that is in it."""
    store.delete_tree(_folder(database))


def drop_table(store: Store, database: str, table: str) -> None:
    """Removes a table with all its files: first its schemas, without which it is none."""
    folder = table_folder(database, table)
    for info in store.list_from(f"{folder}/schema", "schema-"):
        store.delete(info.path)
    store.delete_tree(folder)


def _mark(database: str) -> str:
    return f"{_folder(database)}/.made"


def _folder(database: str) -> str:
    return f"{ensure_folder_name(database, 'database')}{_SUFFIX}"
