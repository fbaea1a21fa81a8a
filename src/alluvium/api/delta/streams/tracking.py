"""What `readStream` is told of columns that change while it runs: where their log lies, and what is agreed to."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from alluvium.api.options import Options
from alluvium.delta.streams.agreement import DROP, RENAME, TYPE_CHANGE, Agreement
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.streams.tracking import Tracker
from alluvium.delta.streams.tracking_log import directory_of, load_tracking_log
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest
from alluvium.storage.store import Store

_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")
_TRACKING_ID = "streamingSourceTrackingId"
_AGREED = (RENAME, DROP, TYPE_CHANGE)
TRACKING = (*_LOCATIONS, _TRACKING_ID, *_AGREED)


def track_columns(
    spark: SparkSession, snapshot: Snapshot, said: Options, asked: StreamOptions, open_any: Callable[[str], Store]
) -> Tracker | None:
    """Follows the columns of a table, as far as their log goes; None: nobody asks for it.

    Args:
        spark: The session, whose settings agree to changes, too.
        snapshot: The table as it is.
        said: What the reader was told.
        asked: The same, understood.
        open_any: From a URL to its store.

    Raises:
        InvalidRequest: The log is another table's, or what was lost may be passed over: changes of columns, too.
        CorruptTable: The log cannot be read.
    """
    location = next((said.known[name] for name in _LOCATIONS if name in said.known), None)
    if location is None:
        return None
    if not asked.fails_on_loss:
        raise InvalidRequest(
            'failOnDataLoss="false" and schemaTrackingLocation exclude each other: what the log has lost may have '
            "changed the columns",
            code="invalid-option",
            hint="leave one of them out",
        )
    table_id = snapshot.config.metadata.id
    directory = directory_of(location, table_id, said.get(_TRACKING_ID))
    log = load_tracking_log(open_any(directory), table_id)
    options = {name: said.known[name] for name in _AGREED if name in said.known}
    agreement = Agreement(options, lambda name: spark.conf.get(name, None))
    tracker = Tracker(snapshot.store, snapshot.config, log, open_any(location).uri("").rstrip("/"), agreement)
    tracker.skim()
    return tracker
