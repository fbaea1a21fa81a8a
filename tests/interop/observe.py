"""What a table is after a step, by an engine's own answers and by the commit in the log, without what differs by chance."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Numbers by which Spark tells columns of the same name apart, and times of day in what was asked for.
_CHANCE = re.compile(r"#\d+L?\b|(?<=\"timestamp\": \")\d{4}-[^\"]*|(?<=EnablementTimestamp\": \")\d+")
#: Metrics that are sizes or times: that they are there counts.
_VARYING = re.compile(r"bytes|time|size", re.IGNORECASE)


class Eye:
    """Looks at one table after each step."""

    def __init__(self, spark: Any, delta: Any, path: Path) -> None:
        self._spark = spark
        self._delta = delta
        self._path = path
        self._names: dict[str, str] = {}
        self._seen = self._versions()
        self._learn(self._seen)

    def _versions(self) -> list[str]:
        return sorted(p.name for p in (self._path / "_delta_log").glob("*.json") if p.stem.isdigit())

    def look(self, error: str | None) -> dict[str, Any]:
        """The versions that are new, with their actions."""
        versions = self._versions()
        new = [v for v in versions if v not in self._seen]
        self._seen = versions
        self._learn(new)
        found: dict[str, Any] = {"versions": len(new)}
        if not new or error is not None:
            return found
        return {**found, "log": self._tidy([commit(self._path / "_delta_log" / v) for v in new])}

    def _learn(self, versions: list[str]) -> None:
        """The names that schemas of these versions made up."""
        for version in versions:
            for line in (self._path / "_delta_log" / version).read_text().splitlines():
                described = json.loads(line).get("metaData")
                self._names.update(mapped_names(json.loads(described["schemaString"])) if described else {})

    def end(self) -> dict[str, Any]:
        """What the engine itself says of the table: rows, schema, detail and the whole history."""
        df = self._spark.read.format("delta").load(str(self._path))
        table = self._delta.DeltaTable.forPath(self._spark, str(self._path))
        (detail,) = table.detail().collect()
        return self._tidy(
            {
                "rows": texts(df),
                "schema": json.loads(df.schema.json()),
                "detail": self._detail(detail.asDict(recursive=True)),
                "history": [self._commit(row.asDict(recursive=True)) for row in table.history().collect()],
            }
        )

    @staticmethod
    def _commit(row: dict[str, Any]) -> dict[str, Any]:
        kept = ("version", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend",
                "userMetadata")  # fmt: skip
        return {
            **{k: row[k] for k in kept},
            "operationMetrics": metrics(row["operationMetrics"]),
            "columns": sorted(row),
        }

    @staticmethod
    def _detail(row: dict[str, Any]) -> dict[str, Any]:
        for chance in ("id", "location", "createdAt", "lastModified", "sizeInBytes"):
            row[chance] = row[chance] is not None
        return row

    def _tidy(self, value: Any) -> Any:
        """Names that are made up anew for each table, by what they stand for."""
        text = json.dumps(value, sort_keys=True, default=str)
        for name, meaning in self._names.items():
            text = text.replace(name, meaning)
        return json.loads(_CHANCE.sub("", _UUID.sub("UUID", text)))


def mapped_names(node: Any) -> dict[str, str]:
    """The physical names in a schema that were made up, and what to call them."""
    found: dict[str, str] = {}
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        found |= mapped_names(value)
    if isinstance(node, dict) and str(node.get("delta.columnMapping.physicalName", "")).startswith("col-"):
        found[node["delta.columnMapping.physicalName"]] = f"column {node['delta.columnMapping.id']}"
    return found


def rows_of(spark: Any, path: Path) -> list[str]:
    return texts(spark.read.format("delta").load(str(path)))


def texts(df: Any) -> list[str]:
    """Rows as text, made by Spark: Python has no year 0."""
    return sorted(row[0] for row in df.selectExpr("cast(struct(*) as string)").collect())


def feed(spark: Any, path: Path, start: int) -> list[str]:
    df = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start).load(str(path))
    return texts(df.drop("_commit_timestamp"))


def metrics(found: dict[str, str] | None) -> dict[str, str]:
    return {k: "..." if _VARYING.search(k) else v for k, v in (found or {}).items()}


def commit(file: Path) -> dict[str, Any]:
    """A commit's actions, what differs by chance left out; physical names by the ids that they stand for."""
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    kinds: dict[str, list[Any]] = {}
    for action in actions:
        ((kind, content),) = action.items()
        kinds.setdefault(kind, []).append(content)
    return {
        "first": next(iter(actions[0])),
        "files": files_of(kinds.get("add", [])),
        "removed": sorted(json.dumps(removed(r), sort_keys=True) for r in kinds.get("remove", [])),
        "cdc": len(kinds.get("cdc", [])) > 0,
        "protocol": [protocol(p) for p in kinds.get("protocol", [])],
        "metaData": [metadata(m) for m in kinds.get("metaData", [])],
        "txn": [{k: v for k, v in t.items() if k != "lastUpdated"} for t in kinds.get("txn", [])],
        "domainMetadata": [domain(d) for d in kinds.get("domainMetadata", [])],
        "info": info(kinds["commitInfo"][0]) if "commitInfo" in kinds else None,
    }


def files_of(adds: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(added(a), sort_keys=True) for a in adds)


def added(add: dict[str, Any]) -> dict[str, Any]:
    stats = json.loads(add["stats"]) if add.get("stats") else None
    return {
        "partition": add["partitionValues"],
        "dataChange": add["dataChange"],
        "stats": None if stats is None else {k: without_empty(v) for k, v in stats.items()},
        "tags": add.get("tags"),
        "baseRowId": add.get("baseRowId"),
        "defaultRowCommitVersion": add.get("defaultRowCommitVersion"),
        "clusteringProvider": add.get("clusteringProvider"),
        "deletionVector": "deletionVector" in add,
    }


def without_empty(value: Any) -> Any:
    """A struct without a statistic is `{}` to one engine and absent to the other."""
    if not isinstance(value, dict):
        return value
    kept = {k: without_empty(v) for k, v in value.items()}
    return {k: v for k, v in kept.items() if v != {}}


def removed(remove: dict[str, Any]) -> dict[str, Any]:
    kept = ("partitionValues", "dataChange", "extendedFileMetadata", "baseRowId", "defaultRowCommitVersion")
    return {**{k: remove.get(k) for k in kept}, "stats": "stats" in remove}


def protocol(found: dict[str, Any]) -> dict[str, Any]:
    return {k: sorted(v) if isinstance(v, list) else v for k, v in found.items()}


def metadata(found: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in found.items() if k not in ("id", "createdTime")}
    return {**kept, "createdTime": "createdTime" in found, "schemaString": json.loads(found["schemaString"])}


def domain(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "configuration": json.loads(found["configuration"] or "null")}


def info(found: dict[str, Any]) -> dict[str, Any]:
    kept = {k: found.get(k) for k in ("operation", "operationParameters", "readVersion", "isolationLevel",
                                     "isBlindAppend", "userMetadata", "tags")}  # fmt: skip
    return {
        **kept,
        "metrics": metrics(found.get("operationMetrics")),
        "inCommitTimestamp": "inCommitTimestamp" in found,
    }
