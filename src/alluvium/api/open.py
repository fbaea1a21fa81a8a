"""The one function that finds out what lies at a URL, and the front door without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from alluvium.api.delta.table import Table
from alluvium.api.options import as_of
from alluvium.api.paimon.paimon_view import PaimonView, open_paimon
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.travel import At
from alluvium.storage.open import open_store
from alluvium.storage.paths import is_near
from alluvium.storage.store import Store
from alluvium.storage.stores.hadoop import HadoopAccess


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
    access = dict(storage_options or {})
    store = open_store(str(url), access)
    if tag is None and branch is None and not options:
        # Delta first, so that opening a Delta table takes not a request more.
        try:
            snapshot = load_snapshot(store, at_version, at_ms)
            return Table(replace(snapshot, open_store=partial(open_store, storage_options=access)), access)
        except NotFound as error:
            if error.code != "not-a-table" or not is_paimon(store):
                raise
    elif not is_paimon(store):
        ensure_no_paimon(store, tag, branch, options)
    at = paimon_point(at_version, at_ms, tag)
    return open_paimon(store, at, branch or MAIN_BRANCH, option_texts(options), access)


def is_paimon(store: Store) -> bool:
    """Whether a Paimon table lies at the store's root, and no Delta table."""
    return bool(store.list_from("schema", "schema-")) and not store.list_from("_delta_log")


def ensure_no_paimon(
    store: Store,
    tag: str | None,
    branch: str | None,
    options: Mapping[str, object] | None,
    asked: str | None = None,
) -> None:
    """Arguments of Paimon's tables mean nothing elsewhere.

    Raises:
        InvalidRequest: `"not-a-paimon-table"`.
    """
    if tag is not None or branch is not None or options or asked is not None:
        raise InvalidRequest(
            "tags, branches, options, system tables and modes are Paimon's: there is no Paimon table",
            code="not-a-paimon-table",
            url=store.url,
        )


def paimon_point(version: int | None, timestamp_ms: int | None, tag: str | None) -> At | None:
    """The one point in a Paimon table's history that was asked for; None: none was.

    Raises:
        InvalidRequest: More than one was.
    """
    if sum(value is not None for value in (version, timestamp_ms, tag)) > 1:
        raise InvalidRequest("give a version, a timestamp or a tag, only one of them", code="version-and-timestamp")
    at = At(snapshot_id=version, timestamp_ms=timestamp_ms, tag=tag)
    return None if at.is_latest else at


def option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as texts, as tables hold them."""
    return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in (options or {}).items()}


def open_snapshot(
    store: Store,
    version: int | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    open_elsewhere: Callable[[str], Store] = open_store,
    max_checkpoint_bytes: int | None = None,
) -> Snapshot:
    """The snapshot of the table in a store, whatever its format; today every table is Delta's.

    Args:
        store: The table's objects.
        version: The version; None: the newest, or the one at `timestamp_ms`.
        timestamp_ms: The newest version committed at or before this time, milliseconds since 1970 UTC.
        time_zone: In which partition values without a zone are read.
        open_elsewhere: From a URL to its store, for files that lie outside the table.
        max_checkpoint_bytes: Larger checkpoints are left for Spark to read.

    Raises:
        NotFound: Nothing at the URL is a table; says what there is instead.
        UnsupportedFeature: It is a Paimon table.
    """
    try:
        snapshot = load_snapshot(store, version, timestamp_ms, time_zone, max_checkpoint_bytes)
        return replace(snapshot, open_store=open_elsewhere)
    except NotFound as error:
        if error.code == "not-a-table" and is_paimon(store):
            raise UnsupportedFeature(
                "it is a Paimon table, which this call does not read yet", features=("paimon",), url=store.url
            ) from None
        raise


def storage_for(
    url: str, storage_options: Mapping[str, str] | None, hadoop: Callable[[], HadoopAccess] | None
) -> Store:
    """The store of a URL, over the session's Hadoop file systems where nothing else knows the scheme.

    Args:
        url: Of the table.
        storage_options: Credentials and settings.
        hadoop: Gives access to Hadoop; only called for a URL that may need it, since it costs 50 ms.
    """
    access = None if hadoop is None or is_near(str(url)) else hadoop()
    return open_store(str(url), dict(storage_options or {}), access)
