"""Alluvium without Spark on Paimon tables. Rows are written by pyarrow as the library's plans say."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from paimon_rows import append, open_target, stage, write_files
from pyroaring import BitMap64

import alluvium
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.candidates import Candidates, PaimonVersion, ensure_append_rows_change
from alluvium.paimon.rows.range_candidates import RangeCandidates
from alluvium.paimon.rows.row_ids import stored_ids, with_stored_ids
from alluvium.paimon.rows.vectors import edit_files
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.paimon.upkeep.append_compact import choose_small_files, ensure_append_compactable
from alluvium.paimon.upkeep.evolved_compact import gather_ranges, gathered_entries
from alluvium.paimon.upkeep.keyed.compaction import compacted_entries
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.paimon.upkeep.keyed.vectors import changed_vectors
from alluvium.paimon.view.merge import KIND, SEQUENCE
from alluvium.paimon.write.keyed import KIND_COLUMN, RowKinds, ensure_rows_change
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import (
    TOUCHED_FILES,
    EditRows,
    NewFiles,
    Operation,
    Patches,
    ReadScope,
    Replace,
    RowChangeMode,
    RowColumns,
)
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import BUCKET_COLUMN
from alluvium.portable.reader import read_batches
from alluvium.schema.arrow import to_arrow
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from model.engines.python_rows import Rows, arrow_value, places, rows_of
from model.engines.refused import Refused
from model.paimon.types import TYPES

_UPDATED, _DELETED = 2, 3
#: Codes of errors that are an answer: the table is not made for it.
KNOWN = frozenset({"unsupported-row-change", "unsupported-compaction"})


#: Verbs that move rows.
MOVES = frozenset({"append", "overwrite", "replace_where", "dynamic_overwrite", "delete", "update", "merge", "compact"})


class PaimonPython:
    """Everything that the library can do without Spark."""

    name = "python"

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        # Changelogs, and compactions that look keys up, are made by jobs of Spark.
        return not (call["by_writers"] and call["verb"] in MOVES)

    def do(self, url: str, call: dict[str, Any]) -> None:
        try:
            getattr(self, "_" + call["verb"])(url, call)
        except (InvalidRequest, UnsupportedFeature) as error:
            if error.code not in KNOWN:
                raise
            raise Refused(error.code) from error

    # --- rows ---

    def _create(self, url: str, call: dict[str, Any]) -> None:
        fields = [DataField(0, name, parse_type(TYPES[kind])) for name, kind in call["columns"]]
        PaimonTable.create(url, fields, call["partition"], call["keys"], call["properties"])

    def _append(self, url: str, call: dict[str, Any]) -> None:
        store = open_store(url)
        target = open_target(store)
        rows = typed(target, rows_of(call))
        new = stage(target, rows)
        if call["late"]:
            # Another commit lands first, one that touches no row: this one goes upon it.
            PaimonTable.forPath(url).compact_manifests()
        target.commit(new)

    def _append_to_branch(self, url: str, call: dict[str, Any]) -> None:
        target = open_target(open_store(url), call["branch"])
        target.commit(stage(target, typed(target, rows_of(call))))

    def _put(self, url: str, call: dict[str, Any], how: Replace) -> None:
        target = open_target(open_store(url))
        append(target, typed(target, rows_of(call)), how)

    def _overwrite(self, url: str, call: dict[str, Any]) -> None:
        self._put(url, call, Replace())

    def _dynamic_overwrite(self, url: str, call: dict[str, Any]) -> None:
        self._put(url, call, Replace(dynamic=True))

    def _replace_where(self, url: str, call: dict[str, Any]) -> None:
        where = parse_predicate(call["where"], open_target(open_store(url)).schema)
        self._put(url, call, Replace(where, call["where"]))

    def _delete(self, url: str, call: dict[str, Any]) -> None:
        self._change(url, call, call["where"])

    def _update(self, url: str, call: dict[str, Any]) -> None:
        self._change(url, call, call["where"])

    def _merge(self, url: str, call: dict[str, Any]) -> None:
        keys = [*call["edits"]["gone"], *(row[call["edits"]["key"]] for row in call["edits"]["updated"])]
        listed = ", ".join(map(str, keys)) or "-1"
        self._change(url, call, f"{call['edits']['key']} in ({listed})")

    def _change(self, url: str, call: dict[str, Any], text: str | None) -> None:
        """`edits`: keys that go; new rows; rows that come. What changes is found by the condition."""
        target, edits = open_target(open_store(url)), call["edits"]
        changed = {**dict.fromkeys(edits["gone"]), **{row[edits["key"]]: row for row in edits["updated"]}}
        change = _change_keys if target.table.primary_keys else _change_files
        if target.table.options.get("data-evolution.enabled") == "true":
            change = _change_columns
        change(target, text, changed, edits)

    # --- upkeep ---

    def _compact(self, url: str, call: dict[str, Any]) -> None:
        target = open_target(open_store(url))
        if target.table.primary_keys:
            _compact_keys(target, call["full"])
        elif target.table.options.get("data-evolution.enabled") == "true":
            _compact_ranges(target)
        else:
            _compact_files(target)

    def _compact_manifests(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).compact_manifests()

    def _create_tag(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).create_tag(call["name"], call["snapshot"], replace=call["replace"])

    def _delete_tag(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).delete_tag(call["name"])

    def _rollback(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).rollback_to(call["to"])

    def _expire(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).expire_snapshots(retain_max=call["keeps"], retain_min=1)

    def _orphans(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).remove_orphan_files(older_than=dt.datetime.now() - dt.timedelta(milliseconds=1))

    def _rollback_as_latest(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).rollback_to_as_latest(call["tag"], call["snapshot"])

    def _create_branch(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).create_branch(call["name"], call["tag"])

    def _delete_branch(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).delete_branch(call["name"])

    def _fast_forward(self, url: str, call: dict[str, Any]) -> None:
        table = PaimonTable.forPath(url)
        table.fast_forward(call["name"])
        table.delete_branch(call["name"])

    def _set_consumer(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).reset_consumer(call["name"], call["next"])

    def _purge(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).purge_files()

    def _lose_file(self, url: str, call: dict[str, Any]) -> None:
        open_store(url).delete(call["path"])
        table = PaimonTable.forPath(url)
        assert table.remove_unexisting_files().paths == (call["path"],)
        table.expire_snapshots(retain_max=1, retain_min=1)

    def _copy(self, url: str, call: dict[str, Any]) -> None:
        PaimonTable.forPath(url).copy(url + call["to"])

    # --- description ---

    def _alter(self, url: str, change: SchemaChange) -> None:
        PaimonTable.forPath(url).alter([change])

    def _add_column(self, url: str, call: dict[str, Any]) -> None:
        self._alter(url, SchemaChange.add_column(call["name"], TYPES[call["type"]]))

    def _rename_column(self, url: str, call: dict[str, Any]) -> None:
        self._alter(url, SchemaChange.rename_column(call["name"], call["to"]))

    def _drop_column(self, url: str, call: dict[str, Any]) -> None:
        self._alter(url, SchemaChange.drop_column(call["name"]))

    def _widen(self, url: str, call: dict[str, Any]) -> None:
        self._alter(url, SchemaChange.update_column_type(call["name"], TYPES[call["type"]]))

    def _set_option(self, url: str, call: dict[str, Any]) -> None:
        self._alter(url, SchemaChange.set_option(call["name"], call["value"]))


def typed(target: PaimonTarget, rows: Rows) -> Rows:
    """Rows of a call as Arrow takes them."""
    types = {f.name: to_arrow(f.type) for f in target.schema.fields}
    return [{k: arrow_value(v, types[k]) if k in types else v for k, v in row.items()} for row in rows]


def _read(store: Store, plan: ScanPlan, where: Any = None) -> Rows:
    return list(read_batches(plan, store, open_store, None, where).read_all().to_pylist())


def _ensure_found(found: Rows, changed: Mapping[int, Any], key: str, what: str | None) -> None:
    keys = sorted(row[key] for row in found)
    assert keys == sorted(changed), f"where {what} meets the rows {keys}, not {sorted(changed)}"


# --- tables of keys: rows beside rows ---


def _change_keys(
    target: PaimonTarget, text: str | None, changed: dict[int, dict[str, Any] | None], edits: dict[str, Any]
) -> None:
    deletes = any(new is None for new in changed.values())
    ensure_rows_change(target.table, deletes=deletes, updates=True)
    found = alluvium.open(target.url).to_arrow(where=text).to_pylist()
    _ensure_found(found, changed, edits["key"], text)
    rows = [{**row, KIND_COLUMN: _DELETED} for row in found if changed[row[edits["key"]]] is None]
    rows += [{**row, KIND_COLUMN: _UPDATED} for row in typed(target, edits["updated"])]
    rows += [{**row, KIND_COLUMN: 0} for row in typed(target, edits["born"])]
    if not rows:
        return
    target = replace(target, kind=RowKinds(takes_back=deletes))
    new = stage(target, rows).new
    target.commit(EditRows(new, TOUCHED_FILES.empty_table(), Operation("MERGE"), ReadScope.table()))


def _compact_keys(target: PaimonTarget, is_full: bool) -> None:
    """Each group of files becomes one file, with the newest row of each key and its number; others move up."""
    assert target.snapshot is not None
    compaction = plan_compaction(target.snapshot, Asked(is_full=is_full))
    if not compaction.before.num_rows:
        return
    plan = compaction.plan_write()
    assert plan.keyed is not None
    keys = target.table.primary_keys
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(_read(target.store, compaction.rows.plan_scan()), key=lambda row: row[SEQUENCE]):
        newest[tuple(row[name] for name in keys)] = row
    # What a key's rows come to is the reader's to say: its merge engines are tested by themselves.
    live = {tuple(row[name] for name in keys): row for row in alluvium.open(target.url).to_arrow().to_pylist()}
    groups: dict[tuple[Any, ...], Rows] = {}
    for key in sorted(newest.keys() & live.keys()):
        row = {**newest[key], **live[key], KIND: 0}
        row |= {f.name: row[f.name.removeprefix("_KEY_")] for f in plan.keyed.stored.fields if f.name not in row}
        texts = [None if row[name] is None else str(row[name]) for name in plan.partition_by]
        groups.setdefault((*texts, row[BUCKET_COLUMN]), []).append(row)
    own = [*plan.keyed.stored.fields, *plan.schema.fields]
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in own])
    new = write_files(target.store, plan, {p: pa.Table.from_pylist(rows, schema=schema) for p, rows in groups.items()})
    edits = changed_vectors(compaction, {})
    target.compact(new, compaction.added(new.table, new.footers), compaction.before, edits, compaction.moved)


# --- append tables: files written anew, or vectors ---


def _change_files(
    target: PaimonTarget, text: str | None, changed: dict[int, dict[str, Any] | None], edits: dict[str, Any]
) -> None:
    snapshot = target.snapshot
    assert snapshot is not None
    ensure_append_rows_change(snapshot)
    version = PaimonVersion(snapshot)
    where = None if text is None else parse_predicate(text, target.schema)
    candidates = version.candidates(where)
    names = candidates.columns
    found = _read(target.store, candidates.plan_scan(where), where) if candidates.entries.num_rows else []
    _ensure_found(found, changed, edits["key"], text)
    if not found and not edits["born"]:
        return
    masks = version.mode(candidates) is RowChangeMode.MASK_ROWS
    gone = places(found, (names.file, names.row))
    numbers = pa.array(sorted(gone), pa.int64())
    copied = [] if masks or not gone else _others(candidates.only(numbers), found)
    rows = [{k: v for k, v in row.items() if k not in (names.file, names.row)} for row in copied]
    updated, born = typed(target, edits["updated"]), typed(target, edits["born"])
    bitmaps = [BitMap64(gone[n]).serialize() if masks else None for n in sorted(gone)]
    paths = candidates.paths.take(candidates.places(numbers)) if gone else pa.array([], pa.string())
    touched = pa.table([paths, pa.array(bitmaps, pa.binary())], schema=TOUCHED_FILES)
    fresh = None
    if candidates.stored_ids is None:
        rows += [*updated, *born]
        new = stage(target, rows).new if rows else NewFiles.none()
    else:
        known = {row[edits["key"]]: row[str(names.row_id)] for row in found}
        rows += [{**row, names.row_id: known[row[edits["key"]]], names.row_version: None} for row in updated]
        new = _with_ids(target, candidates, rows)
        fresh = stage(target, born).new if born else None
    target.commit(EditRows(new, touched, Operation("UPDATE"), ReadScope.rows(where), fresh=fresh))


def _with_ids(target: PaimonTarget, candidates: Candidates, rows: Rows) -> NewFiles:
    """Files of rows that store their ids, and the snapshots that changed them."""
    ids, names = candidates.stored_ids, candidates.columns
    assert ids is not None
    plan = target.plan_write(None, ())
    plan = replace(plan, directory=f"{plan.directory}-ids", stats_columns=(*plan.stats_columns, *ids.stats))
    own = [pa.field(f.name, to_arrow(f.type)) for f in (*plan.schema.fields, *ids.fields)]
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        texts = [None if row[name] is None else str(row[name]) for name in plan.partition_by]
        kept = dict(zip((f.name for f in ids.fields), (row[names.row_id], row[names.row_version]), strict=True))
        groups.setdefault((*texts, None), []).append({**row, **kept})
    tables = {place: pa.Table.from_pylist(found, schema=pa.schema(own)) for place, found in groups.items()}
    return write_files(target.store, plan, tables)


def _change_columns(
    target: PaimonTarget, text: str | None, changed: dict[int, dict[str, Any] | None], edits: dict[str, Any]
) -> None:
    """Columns in which some row of a range changes, written of all of its rows; rows that come beside them."""
    snapshot, key = target.snapshot, edits["key"]
    assert snapshot is not None
    ranges = PaimonVersion(snapshot).candidates(None)
    assert isinstance(ranges, RangeCandidates)
    names, files = ranges.columns, dict[int, Rows]()
    for row in _read(target.store, ranges.plan_scan()) if ranges.entries.num_rows else []:
        files.setdefault(row[names.file], []).append(row)
    found = [row for rows in files.values() for row in rows if row[key] in changed]
    _ensure_found(found, changed, key, text)
    after = {row[key]: row for row in typed(target, edits["updated"])}
    differ = {c for row in found for c in target.schema.names if after.get(row[key], {}).get(c) != row[c]}
    if edits["gone"] or differ & {key, *target.table.partition_keys}:
        raise Refused("unsupported-row-change")
    columns = tuple(name for name in target.schema.names if name in differ)
    patches = None
    if columns:
        plan = target.plan_write(None, ()).only(columns)
        schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in plan.schema.fields])
        written: dict[int, NewFiles] = {}
        for number, rows in files.items():
            if any(row[key] in changed for row in rows):
                rows.sort(key=lambda row: row[names.row])
                values = [{c: after.get(row[key], row)[c] for c in columns} for row in rows]
                table = pa.Table.from_pylist(values, schema=schema)
                written[number] = write_files(target.store, plan, {(None,): table})
        paths = ranges.paths.take(ranges.places(pa.array(written, pa.int64())))
        tables, footers = [one.table for one in written.values()], [one.footers for one in written.values()]
        patches = Patches(NewFiles(pa.concat_tables(tables), sum(footers, ())), paths, columns)
    born = typed(target, edits["born"])
    if patches is None and not born:
        return
    fresh = stage(target, born).new if born else NewFiles.none()
    touched = TOUCHED_FILES.empty_table()
    target.commit(EditRows(fresh, touched, Operation("MERGE"), ReadScope.table(), patches=patches))


def _others(touched: Candidates, found: Rows) -> Rows:
    """The rows of files that stay as they are."""
    names = touched.columns
    gone = {(row[names.file], row[names.row]) for row in found}
    rows = _read(touched.snapshot.store, touched.plan_scan())
    return [row for row in rows if (row[names.file], row[names.row]) not in gone]


def _compact_ranges(target: PaimonTarget) -> None:
    """Rows whose ids follow each other come into one file, in the order of these."""
    snapshot = load_snapshot(target.store)
    ensure_append_compactable(snapshot)
    gathered = gather_ranges(snapshot)
    if gathered is None:
        return
    columns = target.schema.names
    plan = target.plan_write(None, ()).only(columns)
    schema = pa.schema([pa.field(f.name, to_arrow(f.type)) for f in plan.schema.fields])
    rows = sorted(_read(target.store, gathered.candidates.plan_scan()), key=lambda row: row["_ROW_ID"])
    written = []
    for number in range(gathered.files.num_rows):
        own = [{c: row[c] for c in columns} for row in rows if row[gathered.candidates.columns.file] == number]
        written.append(write_files(target.store, plan, {(None,): pa.Table.from_pylist(own, schema=schema)}))
    new = NewFiles(pa.concat_tables([one.table for one in written]), sum((one.footers for one in written), ()))
    added = gathered_entries(snapshot, gathered.files, new, range(len(written)))
    target.compact(new, added, gathered.candidates.entries)


def _compact_files(target: PaimonTarget) -> None:
    snapshot = load_snapshot(target.store)
    ensure_append_compactable(snapshot)
    entries = choose_small_files(snapshot)
    if not entries.num_rows:
        return
    numbers = pa.array(np.arange(entries.num_rows), pa.int64())
    is_tracked = stored_ids(snapshot.schema) is not None
    columns = RowColumns.with_ids() if is_tracked else RowColumns()
    candidates = Candidates(snapshot, entries, numbers, columns, is_placed=is_tracked)
    rows = _read(target.store, candidates.plan_scan())
    new = NewFiles.none()
    if rows:
        new = _with_ids(target, candidates, rows) if is_tracked else stage(target, rows).new
    touched = pa.table([candidates.paths, pa.nulls(entries.num_rows, pa.binary())], schema=TOUCHED_FILES)
    edited = edit_files(snapshot, entries, touched)
    added = added_entries(target.table, new.table, new.footers)
    added = compacted_entries(with_stored_ids(added, target.table, new.footers) if is_tracked else added)
    target.compact(new, added, entries, edits=edited.vectors)
