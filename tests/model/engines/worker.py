"""Runs in the Python of another engine: carries out calls for as long as it is asked.

    worker.py delta-spark|deltalake|connect|pypaimon|java      (with the reference folder, `tests` and `tests/support` on PYTHONPATH)

A line of the standard input is JSON: {"do": call, "url"}, or "rows", "changes" (a version), "streamed" (a version, or
null), "row_ids" (a column), "at" (what of a Paimon table: version, tag, where); the answer {"result"} or {"error"}.
"""

import datetime as dt
import importlib
import json
import os
import sys
import traceback
from decimal import Decimal


def delta_spark():
    """delta-spark by DataFrames and by SQL, over one session."""
    engines, jvm = (importlib.import_module(name) for name in ("engines", "jvm"))
    spark = engines.delta_session(
        **{
            "spark.sql.shuffle.partitions": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
            # Else it goes back no further than a week by its clock, whatever files there are; `clean_log` makes logs old.
            "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
            "spark.driver.memory": "1g",
            "spark.buffer.pageSize": jvm.PAGE_BYTES,
            **jvm.INTERPRETED,
            **jvm.ALONE,
        }
    )
    jvm.lighten(spark.sparkContext)
    ours = importlib.import_module("model.engines.spark_engine")
    table = importlib.import_module("delta.tables")
    return {by: ours.DeltaSparkEngine("delta-spark", spark, table, by) for by in (False, True)}


def deltalake():
    engine = importlib.import_module("model.engines.deltalake_engine").DeltalakeEngine()
    return {False: engine, True: engine}


def connect():
    """By DataFrames and by SQL, over one session."""
    ours = importlib.import_module("model.engines.connect_engine")
    session = ours.connect_session()
    return {by: ours.ConnectEngine(session, by) for by in (False, True)}


def pypaimon():
    engine = importlib.import_module("model.paimon.pypaimon_engine").PypaimonEngine()
    return {False: engine, True: engine}


def java():
    engine = importlib.import_module("model.paimon.java_engine").JavaEngine()
    return {False: engine, True: engine}


def plain(value):
    if isinstance(value, dt.datetime):
        utc = value.astimezone(dt.timezone.utc) if value.tzinfo else value
        return utc.replace(tzinfo=None).isoformat(timespec="microseconds")
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return value.isoformat() if isinstance(value, dt.date) else str(value) if isinstance(value, Decimal) else value


def answer(engines, request):
    engine = engines[bool(request.get("by_sql"))]
    try:
        if "do" in request:
            return {"result": engine.do(request["url"], request["do"])}
        if "row_ids" in request:
            return {"result": engine.row_ids(request["url"], request["row_ids"])}
        if "at" in request:
            rows = engine.rows_at(request["url"], **request["at"])
        elif "streamed" in request:
            rows = engine.streamed(request["url"], request["streamed"])
        elif "changes" in request:
            rows = engine.changes(request["url"], request["changes"])
        else:
            rows = engine.rows(request["url"], request["rows"])
        return {"result": rows and [{name: plain(value) for name, value in row.items()} for row in rows]}
    except BaseException as error:  # noqa: BLE001  # told to whoever asks; a panic of delta-rs is no Exception
        return {"error": f"{type(error).__name__}: {error}"[:3000], "trace": traceback.format_exc()[-2000:]}


if __name__ == "__main__":
    os.environ["JAVA_TOOL_OPTIONS"] = importlib.import_module("jvm").OPTIONS
    # What libraries print must not get into the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engines = {f.__name__.replace("_", "-"): f for f in (delta_spark, deltalake, connect, pypaimon, java)}[
        sys.argv[1]
    ]()
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engines, json.loads(line))), file=answers, flush=True)
