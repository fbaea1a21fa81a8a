"""What the options of a writer, and where they are silent the session's settings, make of a write."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from pyspark.sql import SparkSession

from alluvium.api.engine import engine_of
from alluvium.api.options import Options, parse_version
from alluvium.commands.delete import TABLE
from alluvium.commands.replace_matching import Matching
from alluvium.delta.terms.properties import is_known_property, parse_columns, parse_names
from alluvium.delta.terms.sort_order import SORT_BY, parse_sort
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation, Replace
from alluvium.schema.types import JsonValue, Struct
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.statements.conditions import steady_condition

log = logging.getLogger("alluvium")

#: The reference's settings of the session, each for what an option does not say.
_SETTINGS: Mapping[str, str] = {
    "partitionOverwriteMode": "spark.sql.sources.partitionOverwriteMode",
    "mergeSchema": "spark.databricks.delta.schema.autoMerge.enabled",
    "optimizeWrite": "spark.databricks.delta.optimizeWrite.enabled",
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
}
_REPLACES_ROWS = "spark.databricks.delta.replaceWhere.dataColumns.enabled"
_CHECKS_ROWS = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
_REPLACES_PARTITIONS = "spark.databricks.delta.dynamicPartitionOverwrite.enabled"
_FORGETS = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
#: As Java reads one.
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DEFAULTS = "spark.databricks.delta.properties.defaults."


def with_session(spark: SparkSession, parsed: Options) -> Options:
    """The options, with those that the session says in their place.

    Raises:
        InvalidRequest: A setting of the session makes no sense (`invalid-setting`).
    """
    known = dict(parsed.known)
    for name, setting in _SETTINGS.items():
        said = spark.conf.get(setting, None)
        if said is not None and name not in known:
            known[name] = said
    if "txnVersion" in known:
        _forgets(spark)  # read once before, so that a value that makes no sense fails nothing that stands
    return replace(parsed, known=known)


def _forgets(spark: SparkSession) -> bool:
    return read_flag(spark, _FORGETS, False)


def default_properties(spark: SparkSession) -> dict[str, str]:
    """Properties that the session gives to tables that are created. Who knows none of a name passes it over, as the
    reference does; the log tells of it.
    """
    said = {f"delta.{k[len(_DEFAULTS) :]}": v for k, v in spark.conf.getAll.items() if k.startswith(_DEFAULTS)}
    unknown = [name for name in said if not is_known_property(name)]
    if unknown:
        log.warning("no such properties, which tables that are created do not get: %s", ", ".join(sorted(unknown)))
    return {name: value for name, value in said.items() if name not in unknown}


def ensure_whole(parsed: Options, partition_columns: Sequence[str]) -> None:
    """What is left of the table would not fit a schema that was overwritten.

    Raises:
        InvalidRequest: `"contradicting-options"`.
    """
    partial_overwrite = "replaceWhere" if parsed.get("replaceWhere") is not None else None
    if is_dynamic(parsed) and partition_columns:
        partial_overwrite = "partitionOverwriteMode"
    if partial_overwrite is not None:
        raise InvalidRequest(
            f"overwriteSchema overwrites the whole table, {partial_overwrite} only a part of it",
            code="contradicting-options",
            hint="mergeSchema adds new columns while a part is replaced",
        )


def parse_replace(
    spark: SparkSession, given: Options, parsed: Options, save_mode: str, target: DeltaTarget
) -> Replace | None:
    """What an overwrite replaces; None: it is none.

    Args:
        spark: The session.
        given: The options of the writer.
        parsed: The same, and those of the session.
        save_mode: As the history names it.
        target: The table.

    Raises:
        InvalidRequest: `"contradicting-options"`, or the condition does not parse.
    """
    where = parsed.get("replaceWhere")
    if save_mode != "Overwrite":
        return None
    if where is None:
        dynamic = is_dynamic(parsed) and bool(target.config.partition_columns)
        if dynamic:
            ensure_dynamic_allowed(spark, target.store.url)
        return Replace(dynamic=dynamic)
    if is_dynamic(given) and target.config.partition_columns:
        # The session's habit does not contradict a condition, only the writer's own word does.
        raise InvalidRequest(
            "replaceWhere and dynamic partition overwrite exclude each other",
            code="contradicting-options",
            hint="replaceWhere names what is replaced; leave partitionOverwriteMode out",
        )
    snapshot, what = target.snapshot, "the condition of replaceWhere"
    if snapshot is None:
        text, condition = steady_condition(spark, where, target.schema, what)
    else:
        rows = partial(read_native, spark, DeltaSource(snapshot))
        text, condition = steady_condition(spark, where, snapshot.config.schema, what, rows)
    return Replace(
        condition,
        text,
        rows=_is_on(spark, _REPLACES_ROWS),
        unchecked=not _is_on(spark, _CHECKS_ROWS),
    )


def parse_matched(given: Options, parsed: Options, save_mode: str) -> Matching | None:
    """What an overwrite replaces, where that is the rows that the new ones meet; None: something else.

    Args:
        given: The options of the writer.
        parsed: The same, and those of the session.
        save_mode: As the history names it.

    Raises:
        InvalidRequest: Another option says otherwise what is replaced (`contradicting-options`), or no column is named
            (`invalid-option`).
    """
    using, condition = parsed.get("replaceUsing"), parsed.get("replaceOn")
    if save_mode != "Overwrite" or using is condition is None:
        return None
    _ensure_alone("replaceOn" if using is None else "replaceUsing", given, parsed)
    if using is None:
        alias = parsed.get("targetAlias")
        return Matching(condition=condition, name=(TABLE,) if alias is None else (alias,))
    columns = parse_names(using)
    if not columns:
        raise InvalidRequest(
            f"replaceUsing takes names of columns, not {using!r}",
            code="invalid-option",
            hint='.option("replaceUsing", "country, day")',
        )
    return Matching(columns)


def _ensure_alone(name: str, given: Options, parsed: Options) -> None:
    """The session's habits do not contradict it, only the writer's own words do."""
    said = {other: given.get(other) is not None for other in ("replaceWhere", "replaceOn", "replaceUsing")}
    said["partitionOverwriteMode"] = is_dynamic(given)
    said["overwriteSchema"] = given.flag("overwriteSchema")
    said["dataChange=false"] = not parsed.flag("dataChange", "true")
    other = next((other for other, is_said in said.items() if is_said and other != name), None)
    if other is not None:
        raise InvalidRequest(
            f"{name} says which rows are replaced, so that {other} cannot be said, too",
            code="contradicting-options",
            hint="leave one of them out",
        )


def _is_on(spark: SparkSession, setting: str) -> bool:
    # One that makes no sense must not turn a check off.
    return read_flag(spark, setting, True)


def ensure_dynamic_allowed(spark: SparkSession, url: str) -> None:
    """Refuses to overwrite single partitions where the session forbids it (`contradicting-options`)."""
    if not _is_on(spark, _REPLACES_PARTITIONS):
        raise InvalidRequest(
            f"dynamic partition overwrite is asked for, and forbidden by {_REPLACES_PARTITIONS}",
            code="contradicting-options",
            url=url,
            hint=f"set one of {_SETTINGS['partitionOverwriteMode']} = static and {_REPLACES_PARTITIONS} = true",
        )


def is_dynamic(parsed: Options) -> bool:
    """Whether exactly the partitions that rows are in are overwritten.

    Raises:
        InvalidRequest: The mode is neither static nor dynamic (`invalid-option`).
    """
    text = parsed.get("partitionOverwriteMode")
    if text is None or text.casefold() == "static":
        return False
    if text.casefold() != "dynamic":
        raise InvalidRequest(f"partitionOverwriteMode must be static or dynamic, not {text!r}", code="invalid-option")
    return True


def parse_data_change(parsed: Options, save_mode: str, target: DeltaTarget) -> bool:
    """False where the rows are said to be those that they replace.

    Raises:
        InvalidRequest: There is nothing that they could replace (`data-changed`), or the schema changes with them
            (`contradicting-options`).
    """
    if parsed.flag("dataChange", "true"):
        return True
    if target.snapshot is None or save_mode != "Overwrite":
        raise InvalidRequest(
            "the option dataChange=false is for an overwrite that only rearranges rows, not for new rows",
            code="data-changed",
            hint='say mode="overwrite", or leave dataChange out',
        )
    if target.config is not target.snapshot.config:
        raise InvalidRequest(
            "an overwrite with dataChange=false cannot change the schema or the partitioning",
            code="contradicting-options",
            hint="leave mergeSchema and overwriteSchema out",
        )
    return False


def parse_rebalance(parsed: Options) -> bool | None:
    """What is said of optimized writes; None: nothing, so that the table decides."""
    return None if parsed.get("optimizeWrite") is None else parsed.flag("optimizeWrite")


def parse_sort_by(parsed: Options, schema: Struct) -> tuple[str, ...] | None:
    """By which columns rows are sorted within files; None: nothing is said, so that the table decides.

    Raises:
        InvalidRequest: `"invalid-sort-column"`.
    """
    text = parsed.get("sort_by")
    return None if text is None else parse_sort(text, schema)


def sorted_as(parsed: Options) -> dict[str, str]:
    """The property of a table to create that makes it stay sorted."""
    text = parsed.get("sort_by")
    return {} if text is None else {SORT_BY: text}


def parse_clusters(parsed: Options) -> tuple[str, ...]:
    """Columns by which a table to create is clustered, dotted when nested."""
    return parse_columns(parsed.get("clusterBy") or "")


def parse_txn(parsed: Options) -> tuple[str, int] | None:
    """The application's id and version.

    Raises:
        InvalidRequest: `"contradicting-options"`: one without the other.
    """
    app_id, version = parsed.get("txnAppId"), parsed.get("txnVersion")
    if (app_id is None) != (version is None):
        raise InvalidRequest("txnAppId and txnVersion go together", code="contradicting-options")
    return None if app_id is None else (app_id, parse_version(version, "txnVersion"))


def session_txn(spark: SparkSession) -> tuple[str, int] | None:
    """The application's id and version that the session says, for verbs that have no options.

    Raises:
        InvalidRequest: As `parse_txn`.
    """
    return parse_txn(with_session(spark, Options({}, {}, {})))


def forget_version(spark: SparkSession, txn: tuple[str, int] | None, given: Options | None = None) -> None:
    """Has the session forget the version that it said, where it shall not count for the next verb, too.

    To be called once a verb stands, or has been left out because it did already.

    Args:
        spark: The session.
        txn: What the verb went by.
        given: Options of its own; what they say is not the session's.

    Raises:
        InvalidRequest: The setting is neither true nor false (`invalid-setting`).
    """
    is_own = given is not None and given.get("txnVersion") is not None
    if txn is not None and not is_own and _forgets(spark):
        spark.conf.unset(_SETTINGS["txnVersion"])


def engine_options(parsed: Options) -> tuple[tuple[str, str], ...]:
    """Options for Spark's Parquet writer.

    Raises:
        InvalidRequest: `maxRecordsPerFile` is no whole number (`invalid-option`).
    """
    most = parsed.get("maxRecordsPerFile")
    if most is not None and _WHOLE.fullmatch(most) is None:
        raise InvalidRequest(
            f"the option 'maxRecordsPerFile' must be a whole number, not {most!r}",
            code="invalid-option",
            hint="0 sets no limit",
        )
    own = {name: parsed.known[name] for name in ("compression", "maxRecordsPerFile") if name in parsed.known}
    return tuple({**parsed.engine, **own}.items())


def write_operation(spark: SparkSession, save_mode: str, names: Sequence[str], parsed: Options) -> Operation:
    """A WRITE as the history shows it."""
    parameters: dict[str, JsonValue] = {"mode": save_mode, "partitionBy": msgspec.json.encode(list(names)).decode()}
    if parsed.get("replaceWhere") is not None:
        parameters["predicate"] = parsed.get("replaceWhere")
    if (columns := parsed.get("replaceUsing")) is not None:
        parameters["replaceUsingCols"] = f"({columns})"
    if (condition := parsed.get("replaceOn")) is not None:
        parameters["replaceOnCond"] = condition
    if save_mode == "Overwrite" and is_dynamic(parsed) and columns is condition is None:
        parameters["isDynamicPartitionOverwrite"] = True
    if parsed.flag("overwriteSchema") and save_mode == "Overwrite":
        parameters["canOverwriteSchema"] = True
    if parsed.flag("mergeSchema"):
        parameters["canMergeSchema"] = True
    # An append replaces nothing, whatever it says; the reference's history tells of both.
    idle = save_mode == "Append" and parsed.get("replaceWhere") is not None
    metrics = {"numCopiedRows": "0", "numAddedChangeFiles": "0"} if idle else {}
    return Operation("WRITE", parameters, metrics, engine_of(spark), parsed.get("userMetadata"))


def parse_description(parsed: Options) -> dict[str, str]:
    """What a table to create says of itself: the option `description`, or `comment`, as the property of that name."""
    text = parsed.get("description") or parsed.get("comment")
    return {} if text is None else {"comment": text}
