"""What a table is at a version, read without Spark, and where two engines' tables differ after the same step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare_scenarios import differences
from observe import info, mapped_names, protocol
from row_texts import row_texts

import alluvium

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class View:
    """A table, version by version. Row ids are told by the version and the row at which they were first seen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._labels: dict[int, str] = {}
        self._names: dict[str, str] = {}

    def at(self, version: int) -> dict[str, Any]:
        table = alluvium.open(str(self._path), version=version)
        properties = table.properties
        found = {
            "rows": row_texts(table.to_arrow()),
            "protocol": self._protocol(version),
            "properties": {k: v for k, v in properties.items() if "materialized" not in k},
            "domains": sorted(set(table.domains) - {"delta.rowTracking"}),
            "partitions": list(table.partition_columns),
            **self._commit(version),
        }
        if properties.get("delta.enableRowTracking") == "true":
            found["row ids"] = self._row_ids(table, version)
        if properties.get("delta.enableChangeDataFeed") == "true" and version:
            found["feed"] = row_texts(table.changes(version, version).drop_columns(["_commit_timestamp"]))
        return self._tidy(found)

    def _protocol(self, version: int) -> dict[str, Any]:
        for known in range(version, -1, -1):
            for action in self._actions(known):
                if "protocol" in action:
                    return protocol(action["protocol"])
        raise AssertionError("a table has a protocol")

    def _commit(self, version: int) -> dict[str, Any]:
        said: dict[str, Any] = {"change files": False, "schema": None}
        for action in self._actions(version):
            if "commitInfo" in action:
                said["info"] = {k: v for k, v in info(action["commitInfo"]).items() if k != "tags"}
                parameters = said["info"]["operationParameters"]
                said["info"]["operationParameters"] = {k: _shown(v) for k, v in parameters.items()}
            if "cdc" in action:
                said["change files"] = True
        for known in range(version, -1, -1):
            described = next((a["metaData"] for a in self._actions(known) if "metaData" in a), None)
            if described is not None:
                said["schema"] = json.loads(described["schemaString"])
                self._names |= mapped_names(said["schema"])
                return said
        raise AssertionError("a table has a schema")

    def _actions(self, version: int) -> list[dict[str, Any]]:
        text = (self._path / "_delta_log" / f"{version:020}.json").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def _row_ids(self, table: Any, version: int) -> list[str]:
        tracked = table.to_arrow(columns=["*", "_row_id", "_row_commit_version"])
        ids, versions = tracked["_row_id"].to_pylist(), tracked["_row_commit_version"].to_pylist()
        assert len(set(ids)) == len(ids), "no row id twice"
        told = []
        plain = tracked.drop_columns(["_row_id", "_row_commit_version"])
        for place, (row_id, changed) in enumerate(zip(ids, versions, strict=True)):
            (row,) = row_texts(plain.slice(place, 1))
            told.append(f"{row} is {self._labels.setdefault(row_id, f'{row} of {version}')}, changed in {changed}")
        return sorted(told)

    def _tidy(self, value: Any) -> Any:
        text = json.dumps(value, sort_keys=True, default=str)
        for name, meaning in self._names.items():
            text = text.replace(name, meaning)
        return json.loads(_UUID.sub("UUID", text))


def _shown(parameter: Any) -> Any:
    """Columns go by number in one engine's conditions, and by the rows that they belong to in the other's."""
    return re.sub(r"#\d+L?|\b[ts]\.", "", parameter) if isinstance(parameter, str) else parameter


def step_differences(
    ours: Path, theirs: Path, mine: list[dict[str, Any]], other: list[dict[str, Any]]
) -> Iterator[str]:
    """`step: what: ours | theirs`, for all steps of one script on one table; ends where versions part."""
    views = View(ours), View(theirs)
    for own, known in zip(mine, other, strict=True):
        step = own["step"]
        if (own["error"] is None) != (known["error"] is None):
            yield f"{step}: refused by one: {own['error']} | {known['error']}"
        if (own["first"], own["end"]) != (known["first"], known["end"]):
            yield f"{step}: versions: {own['first']} to {own['end']} | {known['first']} to {known['end']}"
            return
        for version in range(own["first"], own["end"]):
            yield from differences(views[0].at(version), views[1].at(version), step)
