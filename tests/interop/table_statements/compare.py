"""What two engines tell of the same statement, without what may differ."""

from __future__ import annotations

import json
import re

#: What the reference copies into the entry when it replaces a table; whoever reads the table by its name asks the log.
_COPIED = ("schema", "properties", "partitions")
_PHYSICAL = re.compile(r"col-[0-9a-f-]{36}")

#: Steps in which we do otherwise, and why.
KNOWN: dict[tuple[str, str], str] = {
    ("like", "create table l5 like s using parquet"): "there it makes a Delta table all the same; here it is refused",
    ("like", "create table l6 like vw using delta"): "there the view's own properties become the table's",
    ("like", "create table l7 like cl"): "there the clustering columns are forgotten",
    ("like", "create table l12 like mp"): "there physical names are shared",
    ("dropped", "drop table delta.`{dir}/e`"): "there nothing is said, and nothing done",
    ("constraints", "create table t (a int, constraint pos check (a > 0)) using delta"): "refused there",
    ("constraints", "create table u (a int check (a > 0)) using delta"): "refused there",
}


def plain(step: dict) -> dict:
    """A step as it is compared: errors by whether there is one, tables by what a reader sees of them."""
    told: dict = {"error": "error" in step}
    if not told["error"]:
        told["answer"] = (step["columns"], step["rows"])
    for name, thing in step.get("changed", {}).items():
        kind = name.split(" ")[0]
        if kind == "table":
            told[name] = None if thing is None else _table(thing)
        elif thing is not None and "operation" in thing:
            told[name] = _log(thing)
    return json.loads(_PHYSICAL.sub("col", json.dumps(told)))


def _table(thing: dict) -> dict:
    entry = dict(thing["entry"])
    if entry["provider"] is None:
        return {"view": True}
    if str(entry["provider"]).lower() == "delta":
        entry = {key: value for key, value in entry.items() if key not in _COPIED}
    entry["location"] = re.sub("^file:/*", "/", str(entry["location"]))
    log = thing.get("log")
    return {"entry": entry, "log": _log(log) if log and "operation" in log else None}


def _log(log: dict) -> dict:
    told = {key: log[key] for key in ("versions", "operation", "metrics", "protocol", "metadata") if key in log}
    told["has rows"] = log["live"] > 0
    told["parameters"] = log["parameters"]
    told["domains"] = {name: domain.get("configuration") for name, domain in log.get("domains", {}).items()}
    return told


def differing(theirs: list[dict], ours: list[dict], name: str) -> list[str]:
    """The steps that differ, with what each engine tells of them."""
    found = []
    for their, our in zip(theirs, ours, strict=True):
        if (name, their["sql"]) in KNOWN:
            continue
        one, other = plain(their), plain(our)
        keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        if keys:
            lines = [f"  {key}\n    theirs {one.get(key)}\n    ours   {other.get(key)}" for key in keys]
            texts = [
                f"  {who}: {step.get('text')}" for who, step in (("theirs", their), ("ours", our)) if "text" in step
            ]
            found.append("\n".join([their["sql"], *lines, *texts]))
    return found
