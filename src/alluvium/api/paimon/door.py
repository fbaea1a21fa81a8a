"""Paimon's door, as `api.doors` asks for it: a view without Spark, a source for workers, and how it would be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow.compute as pc

from alluvium.api.doors import ArrowWriting, Asked
from alluvium.api.options import as_of
from alluvium.api.paimon.paimon_pins import open_pinned, paimon_pins
from alluvium.api.paimon.paimon_view import PaimonView, open_paimon
from alluvium.api.views.explanation import Explanation, why_portable
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import Committed
from alluvium.schema.types import Struct
from alluvium.storage.store import Store

#: What options of a reader begin with that nobody says of a table.
_OF_OTHERS = ("fs.", "dfs.", "hadoop.", "spark.")


def open_view(store: Store, asked: Asked, access: Mapping[str, str]) -> PaimonView:
    """The view of one state."""
    at = paimon_point(asked.version, asked.timestamp_ms, asked.tag)
    return open_paimon(store, at, asked.branch or MAIN_BRANCH, option_texts(asked.options), access)


def open_source(
    store: Store, given: Mapping[str, str], time_zone: str, open_any: Callable[[str], Store]
) -> tuple[PaimonSource, Struct]:
    """The state that options name."""
    # What no version or time can be is refused, whatever pins it.
    as_of(given.get("versionasof"), given.get("timestampasof"), time_zone)
    source = open_pinned(store, given, time_zone, open_any)
    return source, source.schema


def pins(source: PaimonSource) -> dict[str, str]:
    """Options that name the state that was opened."""
    return paimon_pins(source)


def explain(store: Store, where: str | None) -> Explanation:
    """How the newest snapshot would be read."""
    source = PaimonSource(load_snapshot(store))
    predicate = None if where is None else parse_predicate(where, source.schema)
    plan = source.plan_scan(predicate)
    merging = sum(part.files.num_rows for part in plan.parts if part.merge is not None)
    return Explanation(
        lane="portable",
        why=why_portable() + (f"; rows of {merging} files merge by key" if merging else ""),
        url=store.url,
        version=str(source.snapshot.version),
        files=sum(part.files.num_rows for part in plan.parts),
        size_bytes=sum(int(pc.sum(part.files.column("size")).as_py() or 0) for part in plan.parts),
        skipped=dict(plan.skipped),
        filters=() if where is None else (where,),
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


def dynamic_options(given: Mapping[str, str]) -> dict[str, str]:
    """Those of a reader's options that are the table's: all but the settings of file systems and of Spark."""
    return {key: value for key, value in given.items() if not key.lower().startswith(_OF_OTHERS)}


def option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as texts, as tables hold them."""
    return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in (options or {}).items()}


def write(writing: ArrowWriting) -> Committed:
    """Refused: rows of Paimon tables are written by a session."""
    raise UnsupportedFeature(
        "rows are not written into Paimon tables without Spark yet",
        code="needs-spark",
        url=writing.store.url,
        hint='alluvium.write(spark.createDataFrame(...), url, format="paimon")',
    )
