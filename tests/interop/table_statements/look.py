"""Plays statements and tells what came of them, in either engine's Python: the answer, each table's entry in the catalog
and its log. Logs are read as JSON: what is told does not go through the engine that is judged.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

#: What differs by nature: of each engine, of each run.
VOLATILE = {"id", "createdTime", "commitInfo", "timestamp", "delta.columnMapping.maxColumnId"}


def outcome(spark, statement: str) -> dict:
    try:
        found = spark.sql(statement)
        return {"columns": found.schema.simpleString(), "rows": sorted(map(str, found.collect()))}
    except Exception as error:  # noqa: BLE001  # the engine's verdict is data here
        condition = getattr(error, "getCondition", lambda: None)() or getattr(error, "code", None)
        return {"error": type(error).__name__, "condition": condition, "text": str(error).split("\n")[0][:300]}


def tables_of(spark, database: str) -> list[str]:
    return sorted(row.tableName for row in spark.sql(f"show tables in {database}").collect() if not row.isTemporary)


def entry_of(spark, database: str, name: str) -> dict:
    jvm, session = spark._jvm, spark._jsparkSession.sessionState().catalog()
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Option.apply(database))
    found = session.getTableMetadata(identifier)
    properties = {str(k): found.properties().apply(k) for k in keys(found.properties())}
    options = {str(k): found.storage().properties().apply(k) for k in keys(found.storage().properties())}
    options.pop("serialization.format", None)
    located = found.storage().locationUri()
    return {
        "provider": found.provider().get() if found.provider().isDefined() else None,
        "type": found.tableType().name(),
        "schema": json.loads(found.schema().json())["fields"],
        "partitions": found.partitionColumnNames().mkString(","),
        "comment": found.comment().get() if found.comment().isDefined() else None,
        "properties": properties,
        "options": options,
        "location": located.get().toString() if located.isDefined() else None,
    }


def keys(scala_map) -> list:
    found = scala_map.keys().toSeq()
    return [found.apply(n) for n in range(found.size())]


def log_of(folder: Path) -> dict | None:
    log = folder / "_delta_log"
    if not log.is_dir():
        return {"files": sorted(os.listdir(folder))[:3]} if folder.is_dir() else None
    versions = sorted(p for p in log.iterdir() if re.fullmatch(r"\d{20}\.json", p.name))
    if not versions:
        return {"versions": 0}
    told: dict = {"versions": len(versions), "live": 0}
    for version in versions:
        for line in version.read_text().splitlines():
            action = json.loads(line)
            if "metaData" in action:
                told["metadata"] = {k: v for k, v in action["metaData"].items() if k not in VOLATILE}
                told["metadata"]["schemaString"] = json.loads(action["metaData"]["schemaString"])["fields"]
            if "protocol" in action:
                told["protocol"] = {k: sorted(v) if isinstance(v, list) else v for k, v in action["protocol"].items()}
            if "domainMetadata" in action:
                told.setdefault("domains", {})[action["domainMetadata"]["domain"]] = action["domainMetadata"]
            told["live"] += ("add" in action) - ("remove" in action)
            if "commitInfo" in action:
                info = action["commitInfo"]
                told["operation"] = info.get("operation")
                parameters = dict(info.get("operationParameters", {}))
                if "properties" in parameters:
                    parameters["properties"] = json.loads(parameters["properties"])
                told["parameters"] = parameters
                told["metrics"] = sorted(info.get("operationMetrics", {}))
    return told


def state(spark, database: str, folder: Path) -> dict:
    told: dict = {"tables": {}, "folders": {}}
    for name in tables_of(spark, database):
        entry = entry_of(spark, database, name)
        told["tables"][name] = {"entry": entry}
        if entry["location"] and str(entry["provider"]).lower() == "delta":
            told["tables"][name]["log"] = log_of(Path(re.sub("^file:/*", "/", entry["location"])))
    for child in sorted(folder.iterdir()) if folder.is_dir() else []:
        told["folders"][child.name] = log_of(child)
    return told


def play(spark, name: str, statements: list[str], root: Path) -> list[dict]:
    """By step the outcome, and what has changed since the last."""
    database = "db_" + re.sub(r"\W", "_", name)
    folder, warehouse = root / name.replace(" ", "_"), root / f"{database}.db"
    folder.mkdir(parents=True)
    spark.sql(f"drop database if exists {database} cascade")
    spark.sql(f"create database {database} location '{warehouse}'")
    spark.sql(f"use {database}")
    told, before = [], {}
    for statement in statements:
        text = statement.replace("{dir}", str(folder)).replace("{db}", database)
        step = {"sql": statement, **outcome(spark, text)}
        now = state(spark, database, folder)
        step["changed"] = differences(before, now)
        step["warehouse"] = sorted(p.name for p in warehouse.iterdir()) if warehouse.is_dir() else []
        before = now
        told.append(json.loads(json.dumps(step).replace(str(root), "{root}")))
    spark.sql("use default")
    shutil.rmtree(folder, ignore_errors=True)
    return told


def differences(before: dict, now: dict) -> dict:
    """By kind and name what is new or other than before; None for what is gone."""
    found: dict = {}
    for kind, things in now.items():
        was = before.get(kind, {})
        found.update({f"{kind[:-1]} {k}": v for k, v in things.items() if was.get(k) != v})
        found.update({f"{kind[:-1]} {k}": None for k in was if k not in things})
    return found
