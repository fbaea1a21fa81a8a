"""Alluvium without Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

import alluvium
from alluvium.api.delta import maintenance
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.commands.rows_here.write import write_batches
from alluvium.commands.written import Request
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, is_enabled
from alluvium.delta.rows.candidates import Candidates, candidates_of
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Describe,
    NewFiles,
    Operation,
    ReadScope,
    RewriteFiles,
)
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store
from model.engines.python_rows import Rows, arrow_value, stored_rows, table_of, with_ids, write_rows
from model.engines.refused import Refused
from model.values import quoted

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
        "needs-spark",
    }
)


class PythonEngine:
    """Everything that the library can do without Spark. Rows are written by pyarrow as the library's plans say."""

    name = "python"

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        if call["verb"] == "replace_where":
            return bool(call.get("by_partition", False))
        # Constraints are Spark's to add: it looks at the rows that are there. MERGE evolves no schema without it.
        return call["verb"] not in ("z_order", "purge", "add_constraint", "replace_using", "merge_wider")

    def do(self, url: str, call: dict[str, Any]) -> None:
        try:
            getattr(self, "_" + call["verb"])(url, call)
        except CommitConflict as error:
            if not call.get("late"):
                raise
            raise Refused(f"late: {error.code}") from error
        except (InvalidRequest, UnsupportedFeature) as error:
            # Who is late may not know of a column that the rows have.
            if error.code not in KNOWN and not (call.get("late") and error.code == "schema-mismatch"):
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
        rows = table_of(call)
        if call["late"]:
            target, _ = self._target(url, call["late"])
            request = Request(None, Operation("WRITE", {"mode": "Append"}), ReadScope.nothing())
            write_batches(rows.to_reader(), target, request, format_partition_values)
            return
        files = call.get("files", 1)
        alluvium.write(rows, url, mode="append", maxRecordsPerFile=max(1, -(-rows.num_rows // files)))

    def _overwrite(self, url: str, call: dict[str, Any]) -> None:
        alluvium.write(table_of(call), url, mode="overwrite")

    def _append_wider(self, url: str, call: dict[str, Any]) -> None:
        alluvium.write(table_of(call), url, mode="append", mergeSchema=True)

    def _overwrite_wider(self, url: str, call: dict[str, Any]) -> None:
        alluvium.write(table_of(call), url, mode="overwrite", overwriteSchema=True)

    def _dynamic_overwrite(self, url: str, call: dict[str, Any]) -> None:
        alluvium.write(table_of(call), url, mode="overwrite", partitionOverwriteMode="dynamic")

    def _replace_where(self, url: str, call: dict[str, Any]) -> None:
        alluvium.write(table_of(call), url, mode="overwrite", replaceWhere=call["where"])

    def _delete(self, url: str, call: dict[str, Any]) -> None:
        PortableDeltaTable.forPath(url).delete(call["where"])

    def _update(self, url: str, call: dict[str, Any]) -> None:
        PortableDeltaTable.forPath(url).update(call["where"], call["set"])

    def _merge(self, url: str, call: dict[str, Any]) -> None:
        merge = PortableDeltaTable.forPath(url).merge(table_of(call), call["on"])
        for clause in call["clauses"]:
            kind, condition, sets = clause["clause"], clause.get("if"), clause.get("set")
            every = None if call["stars"] else {quoted(name): f"s.{quoted(name)}" for name, _ in call["columns"]}
            if kind == "matched delete":
                merge = merge.whenMatchedDelete(condition)
            elif kind == "matched update all":
                merge = merge.whenMatchedUpdateAll() if every is None else merge.whenMatchedUpdate(set=every)
            elif kind == "matched update":
                merge = merge.whenMatchedUpdate(condition, sets)
            elif kind == "insert all" and every is None:
                merge = merge.whenNotMatchedInsertAll(condition)
            elif kind == "insert all":
                merge = merge.whenNotMatchedInsert(condition, every)
            elif kind == "by source delete":
                merge = merge.whenNotMatchedBySourceDelete(condition)
            else:
                merge = merge.whenNotMatchedBySourceUpdate(condition, sets)
        merge.execute()

    # --- upkeep ---

    def _optimize(self, url: str, call: dict[str, Any]) -> None:
        if not call["is_clustered"]:
            PortableDeltaTable.forPath(url).optimize().executeCompaction()
            return
        # Rows of a clustered table are put in order by Spark alone: here they are written as they come.
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


def _keep_identity(snapshot: Snapshot, candidates: Candidates, copied: Rows, updated: Rows) -> None:
    configuration, names = snapshot.config.metadata.configuration, candidates.columns
    row_id, version = configuration[MATERIALIZED_ROW_ID], configuration[MATERIALIZED_ROW_COMMIT_VERSION]
    for row in (*copied, *updated):
        row[row_id] = row[str(names.row_id)]
    for row in copied:
        row[version] = row[str(names.row_version)]
