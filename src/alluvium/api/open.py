"""The front door without Spark: `alluvium.open`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING

from alluvium.api.doors import DELTA, Asked, format_at
from alluvium.api.options import as_of
from alluvium.errors import NotFound
from alluvium.storage.open import access_of, open_store

if TYPE_CHECKING:
    from alluvium.api.delta.table import Table
    from alluvium.api.paimon.paimon_view import PaimonView


def open(
    url: str,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    tag: str | None = None,
    branch: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Table | PaimonView:
    """Opens a table without Spark; its format is found from what is there.

    Args:
        url: A local path, `file:`, `s3://`, `s3a://`, `gs://`, `abfss://` or `memory:` URL.
        version: This version (of Paimon: snapshot) instead of the newest.
        timestamp: The newest version committed at or before this time (naive: UTC), or ISO text.
        storage_options: Credentials and settings of the object store.
        tag: Of Paimon: the snapshot that has this tag.
        branch: Of Paimon: the table as this branch has it.
        options: Of Paimon: dynamic table options, e.g. `scan.snapshot-id`.

    Returns:
        An immutable view of one version.

    Raises:
        NotFound: There is no table, or not that version; the error says which versions exist.
        UnsupportedFeature: The table needs something that is not implemented.
        CorruptTable: The log breaks the specification.

    Example:
        >>> t = alluvium.open("/data/flights")
        >>> t.to_arrow(columns=["carrier"], where="month = 1 and dep_delay > 60")
    """
    at_version, at_ms = as_of(version, timestamp)
    access = access_of(storage_options)
    store = open_store(url, access)
    asked = Asked(at_version, at_ms, tag, branch, options)
    if not asked.suits_any_format:
        return format_at(store).door.open_view(store, asked, access)
    # Delta first, so that opening a Delta table takes not a request more.
    try:
        return DELTA.door.open_view(store, asked, access)
    except NotFound as error:
        if error.code != "not-a-table" or (found := format_at(store)) is DELTA:
            raise
    return found.door.open_view(store, asked, access)
