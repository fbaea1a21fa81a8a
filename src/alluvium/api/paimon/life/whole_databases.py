"""What is done with all tables of a warehouse, or of databases of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from alluvium.api.paimon.life.times import When
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.errors import AlluviumError
from alluvium.paimon.log.warehouse import ensure_database, list_databases, list_tables, table_folder
from alluvium.paimon.terms.patterns import parse_pattern
from alluvium.paimon.upkeep.removal.orphans import Orphans
from alluvium.storage.open import open_store
from alluvium.storage.paths import join

log = logging.getLogger("alluvium")


@dataclass(frozen=True, slots=True)
class CompactedTables:
    """What became of the tables of a warehouse.

    Attributes:
        compacted: `database.table` of those that are compacted, or that had nothing to compact.
        failed: Why others are not.
    """

    compacted: list[str] = field(default_factory=list)
    failed: dict[str, AlluviumError] = field(default_factory=dict)


def compact_database(
    warehouse: str,
    including_databases: str | None = None,
    including_tables: str | None = None,
    excluding_tables: str | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> CompactedTables:
    """Compacts tables of a warehouse one after the other, as `PaimonTable.compact` does. One that fails stops no other.

    Args:
        warehouse: Its URL; the active session moves the rows.
        including_databases: A regular expression that the whole name of a database matches; None: all.
        including_tables: One that `database.table` matches; None: all.
        excluding_tables: One that it does not match; None: no such.
        options: Of each table, on top of its own.
        storage_options: Credentials and settings of the object store.

    Raises:
        InvalidRequest: No regular expression (`"invalid-expression"`).
    """
    databases, tables = parse_pattern(including_databases), parse_pattern(including_tables)
    spared = parse_pattern(excluding_tables)
    store, found = open_store(warehouse, storage_options), CompactedTables()
    for database in list_databases(store):
        if databases is not None and not databases.fullmatch(database):
            continue
        for table in list_tables(store, database):
            name = f"{database}.{table}"
            is_wanted = tables is None or tables.fullmatch(name)
            if not is_wanted or (spared is not None and spared.fullmatch(name)):
                continue
            try:
                one = PaimonTable.forPath(join(store.url, table_folder(database, table)), storage_options)
                one.with_options(options or {}).compact()
            except AlluviumError as error:
                log.warning("%s is not compacted: %s", name, error)
                found.failed[name] = error
                continue
            found.compacted.append(name)
    return found


def remove_orphan_files(
    warehouse: str,
    database: str,
    older_than: When | None = None,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> list[Orphans]:
    """Deletes what nothing names in each table of a database, as `PaimonTable.remove_orphan_files`.

    As in Java (`LocalOrphanFilesClean.executeDatabaseOrphanFiles`) one that fails ends it; what went is gone.

    Args:
        warehouse: Its URL.
        database: The database.
        older_than: Only older files; None: a day.
        dry_run: Only say which.
        storage_options: Credentials and settings of the object store.

    Raises:
        InvalidRequest: There is no such database (`"unknown-database"`), or the time is not past.
        CorruptTable: It cannot be told what a table needs.
    """
    store = open_store(warehouse, storage_options)
    ensure_database(store, database)
    tables = (join(store.url, table_folder(database, table)) for table in list_tables(store, database))
    return [PaimonTable.forPath(url, storage_options).remove_orphan_files(older_than, dry_run) for url in tables]
