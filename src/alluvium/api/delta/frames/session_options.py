"""What the session says of a write where its options are silent, and what only a session can understand of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from alluvium.api.delta.written.options import is_dynamic, parse_txn
from alluvium.api.options import Options
from alluvium.commands.delete import TABLE
from alluvium.commands.replace_matching import Matching
from alluvium.delta.terms.properties import is_known_property, parse_names
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Replace
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
