"""Alluvium without Spark: rows by pyarrow as the library's plans say, one commit an act."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.rows.candidates import Candidates, candidates_of, choose_candidates
from alluvium.delta.view.scan import select_files
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Append,
    Describe,
    EditRows,
    NewFiles,
    Operation,
    ReadScope,
    RewriteFiles,
)
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.open import open_store
from history.acts import ACCOUNTS, WEIGHTS, Act, effect, first_rows
from history.writers.loop import Idle, Lost
from model.engines.python_rows import Rows, places, stored_rows, write_rows

VERBS = frozenset(WEIGHTS)


class AlluviumWriter:
    """Carries acts out.

    Args:
        url: The table.
    """

    def __init__(self, url: str) -> None:
        self._store = open_store(url)

    def __call__(self, act: Act) -> None:
        snapshot = self._newest()
        try:
            getattr(self, "_" + act.verb)(act, snapshot, DeltaTarget(self._store, snapshot.config, snapshot))
        except CommitConflict as error:
            raise Lost from error

    def _newest(self) -> Snapshot:
        return load_snapshot(self._store)

    def _append(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        rows = [{"p": "e", "id": row, "v": 10, "last": act.token} for row in act.ids]
        self._put(act, target, rows, ReadScope.nothing())

    def _count(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        where = parse_predicate(act.condition, snapshot.config.schema)
        met = len(stored_rows(choose_candidates(snapshot, where), where))
        rows = [{"p": "c", "id": act.ids[0], "v": met, "last": act.token}]
        self._put(act, target, rows, ReadScope.rows(where))

    def _put(self, act: Act, target: DeltaTarget, rows: Rows, read: ReadScope) -> None:
        new = write_rows(target, target.plan_write(None, ()), rows)
        target.commit(Append(new, _operation("WRITE", act), read))

    def _add(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        self._edit(act, snapshot, target, "UPDATE", act.condition)

    _move = _stamp = _add

    def _drop(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        self._edit(act, snapshot, target, "DELETE", act.condition)

    def _collect(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        account = f"(p = '{ACCOUNTS[act.a]}' AND id = {act.a})"
        self._edit(act, snapshot, target, "MERGE", f"({act.condition}) OR {account}")

    def _edit(self, act: Act, snapshot: Snapshot, target: DeltaTarget, operation: str, text: str) -> None:
        where = parse_predicate(text, snapshot.config.schema)
        candidates = choose_candidates(snapshot, where)
        found = stored_rows(candidates, where)
        change = effect(act, {(row["p"], row["id"]): (row["v"], row["last"]) for row in found})
        if not change:
            raise Idle
        names = candidates.columns
        met = [row for row in found if (row["p"], row["id"]) in change]
        masks = snapshot.config.metadata.configuration.get("delta.enableDeletionVectors") == "true"
        rows = [] if masks else _copied(candidates, met)
        for (p, row), value in change.items():
            if value is not None:
                rows.append({"p": p, "id": row, "v": value[0], "last": value[1]})
        new = write_rows(target, target.plan_write(None, ()), rows) if rows else NewFiles.none()
        touched = _touched(candidates, places(met, (names.file, names.row)), masks=masks)
        target.commit(EditRows(new, touched, _operation(operation, act), ReadScope.rows(where)))

    def _compact(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        files = select_files(snapshot, parse_predicate("p = 'e'", snapshot.config.schema)).files
        if files.num_rows < 2:
            raise Idle
        candidates = candidates_of(snapshot, files)
        rows = stored_rows(candidates)
        new = write_rows(target, target.plan_write(None, ()), rows) if rows else NewFiles.none()
        touched = pa.table(
            [candidates.paths.combine_chunks(), pa.nulls(files.num_rows, pa.binary())], schema=TOUCHED_FILES
        )
        target.commit(RewriteFiles(new, touched, _operation("OPTIMIZE", act), ReadScope.nothing()))

    def _describe(self, act: Act, snapshot: Snapshot, target: DeltaTarget) -> None:
        change = set_properties(snapshot.config, {f"writer{act.writer}": str(act.n)})
        DeltaTarget(self._store, change.config, snapshot).commit(
            Describe(_operation("SET TBLPROPERTIES", act), ReadScope.nothing())
        )


def _operation(name: str, act: Act) -> Operation:
    return Operation(name, user_metadata=act.note)


def _copied(candidates: Candidates, met: Rows) -> Rows:
    """The other rows of the files that rows are in."""
    names = candidates.columns
    gone = {(row[names.file], row[names.row]) for row in met}
    if not met:
        return []
    whole = stored_rows(candidates.only(pa.array(sorted({row[names.file] for row in met}), pa.int64())))
    return [row for row in whole if (row[names.file], row[names.row]) not in gone]


def _touched(candidates: Candidates, found: dict[int, list[int]], *, masks: bool) -> pa.Table:
    numbers = pa.array(sorted(found), pa.int64())
    paths: Any = candidates.paths.combine_chunks().take(candidates.places(numbers))
    bitmaps = [BitMap64(found[n]).serialize() if masks else None for n in sorted(found)]
    return pa.table([paths, pa.array(bitmaps, pa.binary())], schema=TOUCHED_FILES)


def make_table(url: str, properties: dict[str, str]) -> None:
    """The table that writers meet at."""
    schema = Struct(tuple(Field(n, STRING if n in ("p", "last") else LONG) for n in ("p", "id", "v", "last")))
    target = DeltaTarget(open_store(url), new_config(schema, ["p"], properties), None)
    rows = [{"p": p, "id": row, "v": v, "last": last} for (p, row), (v, last) in first_rows().items()]
    new = write_rows(target, target.plan_write(None, ()), rows)
    target.commit(Append(new, Operation("CREATE TABLE AS SELECT"), ReadScope.nothing()))
