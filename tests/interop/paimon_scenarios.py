"""Scenarios drawn at random: tables of every merge engine, in every file format, altered, compacted and read at many points."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS: Mapping[str, str] = {
    "i": "INT", "l": "BIGINT", "g": "INT", "h": "INT", "s": "STRING", "d": "DOUBLE", "f": "FLOAT", "m": "DECIMAL(10, 2)",
    "w": "DECIMAL(30, 4)", "t": "BOOLEAN", "y": "DATE", "z": "TIMESTAMP(3)", "a": "STRING", "c": "ARRAY", "r": "ROWS",
}  # fmt: skip
#: Columns of values, as schema files have their types.
NESTED: Mapping[str, Any] = {
    "ARRAY": {"type": "ARRAY", "element": "INT"},
    "ROWS": {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "v", "type": "STRING"}]}},
}  # fmt: skip
VALUES: Mapping[str, Sequence[Any]] = {
    "INT": (1, 2, 3, -7, None), "BIGINT": (5, 2**40, -1, None), "STRING": ("a", "b", "", "long enough", None),
    "DOUBLE": (0.5, 0.25, -1.5, -0.0, 0.0, float("nan"), None), "FLOAT": (0.5, 2.0, None), "DECIMAL(10, 2)": ("1.10", "-2.25", None),
    "DECIMAL(30, 4)": ("1.1000", "-2.2500", None), "BOOLEAN": (True, False, None), "DATE": ("2024-01-01", "1969-12-31", None),
    "TIMESTAMP(3)": ("2024-01-01 01:02:03.004", "1970-01-01 00:00:00", None),
    "ARRAY": ([1], [2, 3], [], [1, None, 1], None),
    "ROWS": ([{"x": 1, "v": "a"}], [{"x": 1, "v": "b"}, {"x": 2, "v": None}], [], None),
}  # fmt: skip
#: Aggregate functions, and the columns that they are tried on.
FUNCTIONS: Mapping[str, str] = {
    "sum": "ildfmw", "product": "ilmwd", "min": "ilsdfmwyz", "max": "ilsdfmwyz", "last_value": "ilsdmt",
    "last_non_null_value": "ilsdmt", "first_value": "ilsdmt", "first_non_null_value": "ilsdmt", "listagg": "sa",
    "bool_and": "t", "bool_or": "t", "collect": "c", "nested_update": "r",
}  # fmt: skip
#: Functions that take rows back.
RETRACTABLE = ("sum", "product", "last_value", "last_non_null_value", "collect", "nested_update")


@dataclass
class Scenario:
    """A script for Java, and what is to be read at its end.

    Attributes:
        table: Where.
        options: Of the table.
        steps: Of the script.
        reads: Name of a read to the arguments of `paimon_java.read`.
    """

    table: Path
    options: dict[str, str]
    steps: list[dict[str, Any]]
    reads: dict[str, dict[str, Any]] = field(default_factory=dict)


def _deduplicate(pick: random.Random) -> tuple[dict[str, str], Sequence[str]]:
    options = pick.choice([{}, {"sequence.field": "g"}, {"sequence.field": "g,h"},
                           {"sequence.field": "g", "sequence.field.sort-order": "descending"}, {"ignore-delete": "true"}])  # fmt: skip
    return dict(options), ("+I", "+I", "+U", "-D", "-U")


def _partial_update(pick: random.Random) -> tuple[dict[str, str], Sequence[str]]:
    kind = pick.randrange(6)
    groups = {"fields.g.sequence-group": "i,s", "fields.h.sequence-group": "l,d"}
    if pick.random() < 0.3:
        # Of several fields, the last of which may be of any type that has an order.
        groups = {f"fields.g,{pick.choice('hyzs')}.sequence-group": "i,l,d", "fields.w.sequence-group": "a,t"}
    inserts, any_kind = ("+I", "+U"), ("+I", "+I", "+U", "-D")
    if kind == 0:
        return {}, inserts
    if kind == 1:
        return {"ignore-delete": "true"}, any_kind
    if kind == 2:
        return {"partial-update.remove-record-on-delete": "true"}, any_kind
    if kind == 3:
        function = pick.choice(["sum", "max", "min", "last_value", "first_value", "last_non_null_value"])
        ignored = {"fields.i.ignore-retract": "true"} if pick.random() < 0.5 else {}
        kinds = any_kind if function in RETRACTABLE or ignored else inserts
        return {**groups, **ignored, "fields.i.aggregate-function": function}, kinds
    if kind == 4:
        name = next(iter(groups)).split(".")[1]
        return {**groups, "partial-update.remove-record-on-sequence-group": name}, any_kind
    return groups, pick.choice([inserts, any_kind])


def _aggregation(pick: random.Random) -> tuple[dict[str, str], Sequence[str]]:
    kinds = pick.choice([("+I", "+U"), ("+I", "+I", "+U", "-D", "-U")])
    options: dict[str, str] = {}
    for column in COLUMNS:
        fitting = [name for name in FUNCTIONS if column in FUNCTIONS[name]]
        if fitting and pick.random() < 0.8:
            options[f"fields.{column}.aggregate-function"] = chosen = pick.choice(fitting)
            if chosen == "collect" and pick.random() < 0.4:
                options[f"fields.{column}.distinct"] = "true"
            if chosen == "nested_update" and pick.random() < 0.6:
                options[f"fields.{column}.nested-key"] = "x"
            if len(kinds) > 2 and (chosen not in RETRACTABLE or pick.random() < 0.2):
                options[f"fields.{column}.ignore-retract"] = "true"
    if pick.random() < 0.3:
        options["sequence.field"] = "h"
        options.pop("fields.h.aggregate-function", None)
        options.pop("fields.h.ignore-retract", None)
    if len(kinds) > 2:
        options["fields.default-aggregate-function"] = "last_value"
        if pick.random() < 0.4:
            options["aggregation.remove-record-on-delete"] = "true"
    if "listagg" in options.values() and pick.random() < 0.5:
        column = next(key for key, value in options.items() if value == "listagg").split(".")[1]
        options[f"fields.{column}.list-agg-delimiter"] = "; "
        if pick.random() < 0.5:
            options[f"fields.{column}.distinct"] = "true"
    return options, kinds


def _first_row(pick: random.Random) -> tuple[dict[str, str], Sequence[str]]:
    return {}, ("+I",)


ENGINES: Mapping[str, Callable[[random.Random], tuple[dict[str, str], Sequence[str]]]] = {
    "deduplicate": _deduplicate, "partial-update": _partial_update, "aggregation": _aggregation, "first-row": _first_row,
}  # fmt: skip
ALTERATIONS: Sequence[list[dict[str, Any]]] = (
    [{"action": "addColumn", "fieldNames": ["n"], "dataType": "INT", "comment": None, "move": None}],
    [{"action": "renameColumn", "fieldNames": ["a"], "newName": "renamed"}],
    [{"action": "updateColumnType", "fieldNames": ["f"], "newDataType": "DOUBLE", "keepNullability": True}],
    [{"action": "dropColumn", "fieldNames": ["y"]}],
)


def draw(seed: int, folder: Path) -> Scenario:
    """The scenario of a seed."""
    pick = random.Random(seed)
    engine = pick.choice([*ENGINES, "deduplicate"])
    options, kinds = ENGINES[engine](pick)
    options |= {
        "bucket": str(pick.choice([1, 2])),
        "merge-engine": engine,
        "file.format": pick.choice(["parquet"] * 3 + ["orc", "avro"]),
    }
    vectors = engine == "deduplicate" and "sequence.field" not in options and pick.random() < 0.3
    if vectors:
        options |= {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": pick.choice(["true", "false"])}
    elif engine != "first-row":
        options["write-only"] = "true"
    if not vectors and pick.random() < 0.25 and engine != "first-row":
        options["changelog-producer"] = "input"
    parted = pick.random() < 0.4
    fields = [{"name": "k", "type": pick.choice(["INT NOT NULL", "STRING NOT NULL"])}]
    fields += [{"name": "p", "type": "STRING NOT NULL"}] if parted else []
    fields += [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
    columns = {f["name"]: f["type"] for f in fields}
    fields = [{**f, "type": NESTED.get(f["type"], f["type"])} for f in fields]
    keys = ["p", "k"] if parted else ["k"]
    create = {"fields": fields, "partitionKeys": ["p"] if parted else [], "primaryKeys": keys, "options": options}
    scenario = Scenario(folder / "db.db" / "t", options, [{"create": create}])
    _play(pick, scenario, columns, kinds)
    return scenario


def _play(pick: random.Random, scenario: Scenario, columns: dict[str, str], kinds: Sequence[str]) -> None:
    tagged = False
    altered = set()
    for commit in range(pick.randrange(4, 8)):
        chance = pick.random()
        if commit and chance < 0.2:
            scenario.steps.append({"compact": {"full": pick.random() < 0.5}})
        elif commit and chance < 0.4 and len(altered) < len(ALTERATIONS):
            number = pick.choice([n for n in range(len(ALTERATIONS)) if n not in altered])
            (change,) = ALTERATIONS[number]
            used = any(part == change["fieldNames"][0] for key in scenario.options for part in key.split("."))
            if not used or change["action"] == "renameColumn":
                altered.add(number)
                scenario.steps.append({"alter": [change]})
                _alter(columns, change)
        elif commit and not tagged and chance < 0.5:
            tagged = True
            scenario.steps.append({"tag": "noon"})
        rows = [_row(pick, columns) for _ in range(pick.randrange(3, 9))]
        scenario.steps.append({"write": {"rows": rows, "kinds": [pick.choice(kinds) for _ in rows]}})
    scenario.reads = {"latest": {}, "first": {"options": {"scan.snapshot-id": "1"}}, "third": {"options": {"scan.snapshot-id": "3"}},
                      "audit": {"system": "audit_log"}}  # fmt: skip
    waits = scenario.options.get("merge-engine") == "first-row" or "deletion-vectors.enabled" in scenario.options
    if not waits:
        # Java's batches leave out of such changes what waits for a compaction; ours are those of a stream.
        delta = {"incremental-between": "1,4", "incremental-between-scan-mode": "delta"}
        scenario.reads["delta"] = {"options": delta}
    if tagged:
        scenario.reads["tag"] = {"options": {"scan.tag-name": "noon"}}
    if "changelog-producer" in scenario.options:
        scenario.reads["changelog"] = {
            "options": {"incremental-between": "0,4", "incremental-between-scan-mode": "changelog"}
        }
    for name, read in scenario.reads.items():
        out = scenario.table.parent.parent / f"{name}.parquet"
        scenario.steps.append({"read": {"out": str(out), **read}})


def _row(pick: random.Random, columns: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, kind in columns.items():
        if name == "k":
            row[name] = (
                pick.randrange(4) if kind.startswith("INT") else pick.choice(["a", "b", "c", "a rather long key"])
            )
        elif name == "p":
            row[name] = pick.choice(["x", "y"])
        else:
            row[name] = pick.choice(VALUES[kind])
    return row


def _alter(columns: dict[str, str], change: Mapping[str, Any]) -> None:
    (name,) = change["fieldNames"]
    if change["action"] == "addColumn":
        columns[name] = change["dataType"]
    elif change["action"] == "updateColumnType":
        columns[name] = change["newDataType"]
    elif change["action"] == "dropColumn":
        del columns[name]
    else:
        columns[change["newName"]] = columns.pop(name)
