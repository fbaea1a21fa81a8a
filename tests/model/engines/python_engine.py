"""Alluvium without Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyroaring import BitMap64

import alluvium
from alluvium.api.delta import maintenance
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, is_enabled
from alluvium.delta.rows.candidates import Candidates, candidates_of, choose_candidates
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.delta.write.write import CHANGE_TYPE, plan_change_files
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Append,
    Describe,
    EditRows,
    NewFiles,
    Operation,
    Overwrite,
    ReadScope,
    Replace,
    RewriteFiles,
)
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store
from model.engines.python_rows import Rows, arrow_value, number, places, rows_of, stored_rows, with_ids, write_rows
from model.engines.refused import Refused

#: How long ago the log's files are said to be of which a clean-up is to take some.
_OLD_S = 60 * 86_400
_IDENTITY = {START: 1, STEP: 2, ALLOW_EXPLICIT_INSERT: False}


#: Codes of errors that are an answer: the table does not allow it, and the model does not ask why.
KNOWN = frozenset(
    {
        "invalid-clustering-column",
        "invalid-zorder-column",
        "feature-in-use",
        "unknown-feature",
        "feature-not-supported",
        "feature-not-droppable",
    }
)


class PythonEngine:
    """Everything that the library can do without Spark. Rows are written by pyarrow as the library's plans say."""

    name = "python"

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        # Constraints are SQL: engines check them, and pyarrow has no SQL.
        writes = "rows" in call or call["verb"] in ("update", "add_constraint")
        if call["verb"] == "replace_where":
            return not constrained and call.get("by_partition", False)
        return call["verb"] not in ("z_order", "purge", "add_constraint") and not (constrained and writes)

    def do(self, url: str, call: dict[str, Any]) -> None:
        try:
            getattr(self, "_" + call["verb"])(url, call)
        except CommitConflict as error:
            if not call.get("late"):
                raise
            raise Refused(f"late: {error.code}") from error
        except InvalidRequest as error:
            if error.code not in KNOWN:
                raise
            raise Refused(error.code) from error

    # --- rows ---

    def _create(self, url: str, call: dict[str, Any]) -> None:
        fields = parse_fields(", ".join(f"{n} {t}" for n, t in call["columns"]))
        schema = Struct(tuple(replace(f, metadata=_IDENTITY) if f.name == call["numbered"] else f for f in fields))
        config = table_config(NewTable(schema, call["partition"], call["properties"], cluster_by=call["clustered"]))
        target = DeltaTarget(open_store(url), config, None)
        target.commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))

    def _convert(self, url: str, call: dict[str, Any]) -> None:
        """A folder of Parquet files becomes a table; its properties are set afterwards."""
        types = [to_arrow(f.type) for f in parse_fields(", ".join(f"{n} {t}" for n, t in call["columns"]))]
        columns = {
            name: pa.array([arrow_value(row[n], data_type) for row in call["rows"]], data_type)
            for n, ((name, _), data_type) in enumerate(zip(call["columns"], types, strict=True))
        }
        partition = ds.partitioning(flavor="hive", schema=pa.schema([(n, pa.int32()) for n in call["partition"]]))
        ds.write_dataset(
            pa.table(columns), url, format="parquet", partitioning=partition if call["partition"] else None
        )
        maintenance.convert_table(url, ", ".join(f"{name} int" for name in call["partition"]) or None)
        if call["properties"]:
            alluvium.alter(url).set_properties(call["properties"])

    def _target(self, url: str, late: int = 0) -> tuple[DeltaTarget, Snapshot]:
        snapshot = load_snapshot(open_store(url))
        if late:
            snapshot = load_snapshot(open_store(url), max(0, snapshot.version - late))
        return DeltaTarget(snapshot.store, snapshot.config, snapshot), snapshot

    def _append(self, url: str, call: dict[str, Any]) -> None:
        target, _ = self._target(url, call["late"])
        rows = rows_of(call)
        reached = number(target, rows)
        new = write_rows(target, target.plan_write(None, ()), rows, call.get("files", 1))
        new = replace(new, reached=reached, numbers=bool(reached))
        target.commit(Append(new, Operation("WRITE", {"mode": "Append"}), ReadScope.nothing()))

    def _put(self, url: str, call: dict[str, Any], how: Replace) -> None:
        target, _ = self._target(url)
        rows = rows_of(call)
        reached = number(target, rows)
        new = write_rows(target, target.plan_write(how, ()), rows)
        new = replace(new, reached=reached, numbers=bool(reached))
        target.commit(Overwrite(new, how, Operation("WRITE", {"mode": "Overwrite"}), ReadScope.nothing()))

    def _overwrite(self, url: str, call: dict[str, Any]) -> None:
        self._put(url, call, Replace())

    def _dynamic_overwrite(self, url: str, call: dict[str, Any]) -> None:
        self._put(url, call, Replace(dynamic=True))

    def _replace_where(self, url: str, call: dict[str, Any]) -> None:
        _, snapshot = self._target(url)
        self._put(url, call, Replace(parse_predicate(call["where"], snapshot.config.schema), call["where"]))

    def _delete(self, url: str, call: dict[str, Any]) -> None:
        self._edit(url, call, "DELETE", call["where"])

    def _update(self, url: str, call: dict[str, Any]) -> None:
        self._edit(url, call, "UPDATE", call["where"])

    def _merge(self, url: str, call: dict[str, Any]) -> None:
        self._edit(url, call, "MERGE", None)

    def _replace_using(self, url: str, call: dict[str, Any]) -> None:
        self._edit(url, call, "MERGE", None)

    def _edit(self, url: str, call: dict[str, Any], operation: str, text: str | None) -> None:
        """`edits`: keys that go; new rows by key; rows that come. Rows are found by the condition, else by their key."""
        target, snapshot = self._target(url)
        edits = call["edits"]
        changed = {**dict.fromkeys(edits["gone"]), **{row[edits["key"]]: row for row in edits["updated"]}}
        if text is None and changed and operation == "MERGE":
            text = f"`{edits['key']}` in ({', '.join(map(str, changed))})"
        where = None if text is None else parse_predicate(text, snapshot.config.schema)
        candidates = choose_candidates(snapshot, where)
        found = stored_rows(candidates, where) if changed or operation != "MERGE" else []
        keys = sorted(row[edits["key"]] for row in found)
        assert keys == sorted(changed), f"{operation} where {text} meets the rows {keys}, not {sorted(changed)}"
        if not changed and not edits["born"]:
            return
        updated = [{**row, **new} for row in found if (new := changed[row[edits["key"]]]) is not None]
        masks = snapshot.config.metadata.configuration.get("delta.enableDeletionVectors") == "true"
        numbers = {row[candidates.columns.file] for row in found}
        copied = [] if masks else _others(candidates, found, numbers)
        plan = target.plan_write(None, ())
        if is_enabled(snapshot.config):
            plan = with_ids(plan, snapshot)
            _keep_identity(snapshot, candidates, copied, updated)
        reached = number(target, edits["born"])
        rows = [*copied, *updated, *edits["born"]]
        new = write_rows(target, plan, rows) if rows else NewFiles.none()
        new = replace(new, reached=reached, numbers=bool(reached))
        touched = _touched(candidates, places(found, (candidates.columns.file, candidates.columns.row)), masks=masks)
        records = _records(target, snapshot, found, changed, edits["born"], edits["key"])
        target.commit(EditRows(new, touched, Operation(operation), ReadScope.rows(where), records))

    # --- upkeep ---

    def _optimize(self, url: str, call: dict[str, Any]) -> None:
        target, snapshot = self._target(url)
        if snapshot.files.num_rows < 2:
            return
        candidates = candidates_of(snapshot, snapshot.files)
        rows = stored_rows(candidates)
        plan = target.plan_write(None, ())
        if is_enabled(snapshot.config):
            plan = with_ids(plan, snapshot)
            _keep_identity(snapshot, candidates, rows, [])
        touched = pa.table(
            [candidates.paths.combine_chunks(), pa.nulls(snapshot.files.num_rows, pa.binary())], schema=TOUCHED_FILES
        )
        new = write_rows(target, plan, rows) if rows else NewFiles.none()
        target.commit(RewriteFiles(new, touched, Operation("OPTIMIZE"), ReadScope.nothing()))

    def _vacuum(self, url: str, call: dict[str, Any]) -> None:
        maintenance.vacuum_table(url, call["hours"], checks=False)

    def _restore(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).restore(call["version"])

    def _checkpoint(self, url: str, call: dict[str, Any]) -> None:
        maintenance.write_checkpoint(url)

    def _compact_log(self, url: str, call: dict[str, Any]) -> None:
        maintenance.compact_commits(url, call["start"], call["end"])

    def _clean_log(self, url: str, call: dict[str, Any]) -> None:
        for file in sorted(Path(url, "_delta_log").glob("*")):
            digits = file.name[:20]
            if digits.isdigit() and int(digits) <= call["old_to"]:
                moment = file.stat().st_mtime - _OLD_S
                os.utime(file, (moment, moment))
        # Who keeps snapshots has no way to know that somebody turned back the clock.
        RECENT.clear()
        maintenance.clean_log(url)

    def _repair(self, url: str, call: dict[str, Any]) -> None:
        done = maintenance.repair_table(url)
        left = [finding for finding in done.left if finding.level == "error"]
        assert not left, f"left by repair: {left}"

    def _clone(self, url: str, call: dict[str, Any]) -> None:
        maintenance.clone_table(url, call["target"], call["shallow"], call["replace"], version=call["version"])

    # --- description ---

    def _add_column(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).add_columns({call["name"]: call["type"]})

    def _rename_column(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).rename_column(call["name"], call["to"])

    def _drop_column(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).drop_columns(call["name"])

    def _widen(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).alter_column(call["name"], type=call["type"])

    def _set_property(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).set_properties({call["name"]: call["value"]})

    def _drop_constraint(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).drop_constraint(call["name"])

    def _drop_feature(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).drop_feature(call["feature"])

    def _cluster_by(self, url: str, call: dict[str, Any]) -> None:
        alluvium.alter(url).cluster_by(*call["names"])


def _others(candidates: Candidates, found: Rows, numbers: set[int]) -> Rows:
    """The rows of touched files that stay as they are."""
    names = candidates.columns
    gone = {(row[names.file], row[names.row]) for row in found}
    if not numbers:
        return []
    whole = stored_rows(candidates.only(pa.array(sorted(numbers), pa.int64())))
    return [row for row in whole if (row[names.file], row[names.row]) not in gone]


def _keep_identity(snapshot: Snapshot, candidates: Candidates, copied: Rows, updated: Rows) -> None:
    configuration, names = snapshot.config.metadata.configuration, candidates.columns
    row_id, version = configuration[MATERIALIZED_ROW_ID], configuration[MATERIALIZED_ROW_COMMIT_VERSION]
    for row in (*copied, *updated):
        row[row_id] = row[str(names.row_id)]
    for row in copied:
        row[version] = row[str(names.row_version)]


def _touched(candidates: Candidates, found: dict[int, list[int]], *, masks: bool) -> pa.Table:
    numbers = pa.array(sorted(found), pa.int64())
    paths = candidates.paths.combine_chunks().take(candidates.places(numbers)) if found else pa.array([], pa.string())
    bitmaps = [BitMap64(found[n]).serialize() if masks else None for n in sorted(found)]
    return pa.table([paths, pa.array(bitmaps, pa.binary())], schema=TOUCHED_FILES)


def _records(
    target: DeltaTarget, snapshot: Snapshot, found: Rows, changed: dict[int, Any], born: Rows, key: str
) -> pa.Table | None:
    if snapshot.config.metadata.configuration.get("delta.enableChangeDataFeed") != "true":
        return None
    rows: Rows = [{**row, CHANGE_TYPE: "insert"} for row in born]
    for row in found:
        new = changed[row[key]]
        if new is None:
            rows.append({**row, CHANGE_TYPE: "delete"})
        else:
            rows += [{**row, CHANGE_TYPE: "update_preimage"}, {**row, **new, CHANGE_TYPE: "update_postimage"}]
    return write_rows(target, plan_change_files(target.plan_write(None, ())), rows).table
