"""The Python lane: what a data source in Spark's Python workers is told by options, and what it makes of them.

The functions below run on the server: the pinned version, the files and the rows are found there.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.doors import Format, format_at
from alluvium.api.lane import read_batches
from alluvium.errors import InvalidRequest, suggest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, is_understood
from alluvium.plan.ports import ScanSource
from alluvium.spark.jvm import failures
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.connect_lane import connect_failures
from alluvium.spark.scan.connect_lane.marks import Mark, marked
from alluvium.spark.scan.native_lane.describe import ABOUT, About, describe_plan
from alluvium.spark.scan.source import OpenedScan, make_source
from alluvium.spark.sessions.session import is_connect
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

#: The name under which a source is registered for `read(lane="python")`.
OWN_FORMAT = "alluvium"
#: JSON; Spark hides the values of options with such a name from logs and plans.
_SECRETS = "storageSecret"
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")


def open_scan(options: Mapping[str, str]) -> OpenedScan:
    """The table version that options name: `path`, `versionAsOf`, `timestampAsOf`, `columns` (JSON), `where`."""
    given = _folded(options)
    zone = given.get("timezone") or "UTC"
    if "path" not in given:
        raise InvalidRequest("one path is needed", code="no-path", hint='.load("s3://bucket/table")')
    store = open_table_store(given, given["path"])
    source, schema = format_at(store).door.open_source(store, given, zone, partial(open_table_store, given))
    where = parse_predicate(given["where"], schema, zone) if given.get("where") else None
    names = msgspec.json.decode(given["columns"], type=list[str]) if given.get("columns") else schema.names
    return OpenedScan(source.plan_scan(where), resolve_columns(names, schema.names), where, zone)


def _folded(options: Mapping[str, str]) -> dict[str, str]:
    # Spark hands options over in lower case, in a mapping that does not care; a copy of it does.
    return {name.lower(): value for name, value in options.items()}


def open_table_store(options: Mapping[str, str], url: str) -> Store:
    """The store of a URL, with the settings that the options carry."""
    text = _folded(options).get(_SECRETS.lower())
    return open_store(url, msgspec.json.decode(text, type=dict[str, str]) if text else {})


def read_group(options: Mapping[str, str], scan: OpenedScan) -> Iterator[pa.RecordBatch]:
    """The rows of some files of a scan, read without Spark."""
    store = open_table_store(options, scan.plan.root)
    open_any = partial(open_table_store, options)
    yield from read_batches(scan.plan, store, open_any, scan.columns, scan.where, scan.time_zone)


def resolve_columns(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names of a schema that were asked for, without regard to case; `"*"` stands for all.

    Raises:
        InvalidRequest: `"unknown-column"`, `"invalid-columns"`.
    """
    if isinstance(asked, str):
        raise InvalidRequest("columns must be a list of names", code="invalid-columns", hint=f"[{asked!r}]")
    by_folded = {name.lower(): name for name in reversed(known)}
    found: list[str] = []
    for name in asked:
        if name == "*":
            found.extend(known)
        elif name in known or name.lower() in by_folded:
            found.append(name if name in known else by_folded[name.lower()])
        else:
            raise InvalidRequest(
                f"there is no column {name!r}", code="unknown-column", column=name, hint=suggest(name, known)
            )
    return tuple(found)


def register(spark: SparkSession, name: str) -> None:
    """Registers the source in a session; again is no error.

    Raises:
        InvalidRequest: `"format-taken"`: the server has a data source of that name already.
    """
    if not is_connect(spark):
        failures.expect_workers()
    try:
        spark.dataSource.register(make_source(name, open_scan, read_group))
    except PySparkException as error:
        raise InvalidRequest(
            f"the data source {name!r} cannot be registered: {str(error).splitlines()[0]}",
            code="format-taken",
            hint="alluvium.read(spark, url) needs no such name",
        ) from None


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """What Python workers are to read: a pinned version, with the session's zone and the store's settings.

    Attributes:
        format: Whose door pins the source.
        source: What to read.
        url: Of the table.
        time_zone: The session's.
        storage_options: Credentials and settings of the store.
        why: Why workers read.
        is_pinned: Whether somebody has asked for just this version.
    """

    format: Format
    source: ScanSource
    url: str
    time_zone: str
    storage_options: Mapping[str, str]
    why: str
    is_pinned: bool = False


def read_by_workers(
    spark: SparkSession,
    request: WorkerRequest,
    columns: Sequence[str] | None,
    where: str | Column | None,
    predicate: Expression | None,
) -> DataFrame:
    """A table version, read by Python workers.

    Args:
        spark: The session.
        request: What to read.
        columns: Names of the schema; None: all.
        where: Rows to keep. What the workers do not understand, Spark applies to what they bring.
        predicate: `where`, parsed, if it is text, and the session's settings make of it what we do.
    """
    register(spark, OWN_FORMAT)
    understood = predicate is not None and is_understood(predicate)
    source, url = request.source, request.url
    options = {**request.format.door.pins(source), "timeZone": request.time_zone}
    if understood:
        options["where"] = str(where)
    if columns is not None and (understood or where is None):
        options["columns"] = msgspec.json.encode(list(columns)).decode()
    if request.storage_options:
        options[_SECRETS] = msgspec.json.encode(dict(request.storage_options)).decode()
    about = About(source.identity, request.why, request.is_pinned)
    options[ABOUT] = msgspec.json.encode(about).decode()
    frame = _load(spark, options, url)
    if is_connect(spark):
        connect_failures.watch(spark, url)
        plan = source.plan_scan(predicate if understood else None)
        description = describe_plan(plan, about, "python", (str(where),) if understood else ())
        importlib.import_module("alluvium.spark.scan.connect_lane.connect_describe").note(frame, description)
        frame = marked(frame, Mark(about, description.filters, request.time_zone))
    if where is not None and not understood:
        frame = frame.where(where)
        frame = frame if columns is None else frame.select(*(quote(name) for name in columns))
    return frame


def _load(spark: SparkSession, options: Mapping[str, str], url: str) -> DataFrame:
    try:
        frame = spark.read.format(OWN_FORMAT).options(**options).load(url)
        # The server's Python runs here for the first time.
        frame.schema  # noqa: B018 - asked for its failing
    except PySparkException as error:
        missing = _MISSING_MODULE.search(str(error))
        if missing is None:
            raise
        raise InvalidRequest(
            f"the Python workers of the server lack the package {missing[1]!r}",
            code="missing-dependency",
            url=url,
            hint="install alluvium where the server's Python workers run: pip install alluvium",
        ) from None
    return frame
