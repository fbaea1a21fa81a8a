"""States and files as sources of plans: what tells one from another, which columns there are, and what is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from paimon_tables import HandWritten

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.file_rows import FILE, ROW, FileRows
from alluvium.paimon.view.selection import as_streams_see
from alluvium.paimon.view.source import PaimonSource, View, has_ids, named_columns, with_named_ids
from alluvium.plan.scan import FileConstant, RowPosition
from alluvium.portable.reader import read_batches
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.storage.open import open_store

KV = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
TRACKED = {"row-tracking.enabled": "true"}
KIND = Field("_VALUE_KIND", t.BYTE, False)


def keyed(path: Path, **options: str) -> Snapshot:
    """Of key 1 three rows, the last of which takes it back; of key 2 the first alone, in the highest level."""
    table = HandWritten(path / "t", KV, ["k"], **options)
    table.commit([{"k": 1, "v": 10}, {"k": 2, "v": 20}], level=5)
    table.commit([{"k": 1, "v": 11}], ["+U"])
    table.commit([{"k": 1, "v": 11}], ["-D"])
    return load_snapshot(open_store(str(path / "t")))


def rows(source: PaimonSource | FileRows) -> list[tuple[object, ...]]:
    plan = source.plan_scan()
    batches = read_batches(plan, source.snapshot.store, open_store, plan.schema.names)
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


def test_what_tells_one_source_from_another(tmp_path: Path) -> None:
    """Engines keep what they know of a source by its identity: whatever makes other rows, or may, is part of it."""
    state = keyed(tmp_path)
    plain = PaimonSource(state)
    assert plain.identity == PaimonSource(load_snapshot(state.store)).identity
    assert state.document is not None
    anew = replace(state, document=type(state.document)(**{**_fields(state), "time_millis": 1}))
    others = [
        PaimonSource(state.state(2)),
        PaimonSource(replace(state, branch="b")),
        PaimonSource(anew),
        PaimonSource(replace(state, document=type(state.document)(**{**_fields(state), "commit_user": "x"}))),
        PaimonSource(replace(state, schema=replace(state.schema, id=7))),
        PaimonSource(replace(state, asked={"a": "1"})),
        PaimonSource(replace(state, asked={"a": "2"})),
        PaimonSource(replace(state, time_zone="Asia/Tokyo")),
        PaimonSource(as_streams_see(state)),
        PaimonSource(as_streams_see(state, 1)),
        PaimonSource(replace(state, at=At(snapshot_id=3))),
        PaimonSource(state, View("audit_log")),
        PaimonSource(state, View("changes", 1, 2, "delta")),
        PaimonSource(state, View("changes", 1, 3, "delta")),
        PaimonSource(state, View("changes", 0, 2, "delta")),
        PaimonSource(state, View("changes", 1, 2, "changelog")),
        PaimonSource(state, is_exact=True),
    ]
    identities = [one.identity for one in (plain, *others)]
    assert len(set(identities)) == len(identities)
    # In whatever order options were given.
    two = [PaimonSource(replace(state, asked=asked)) for asked in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})]
    assert two[0].identity == two[1].identity
    assert PaimonSource(replace(state, document=None)).identity[1:4] == ("", "main", "")


def _fields(state: Snapshot) -> dict[str, object]:
    assert state.document is not None
    return {name: getattr(state.document, name) for name in state.document.__struct_fields__}


@pytest.mark.parametrize(
    ("name", "pinned"),
    [
        ("rows", False), ("audit_log", False), ("ro", False), ("row_tracking", False), ("waiting", False),
        ("changes", True), ("placed", True), ("diff_before", True), ("diff_after", True), ("went", True),
        ("came", True),
    ],
)  # fmt: skip
def test_sources_that_stay_what_they_are(tmp_path: Path, name: str, pinned: bool) -> None:
    """Whoever asked for a state, or for a range, has it for good; what is the newest may be overtaken."""
    state = keyed(tmp_path)
    assert PaimonSource(state, View(name)).is_pinned is pinned
    assert PaimonSource(replace(state, at=At(snapshot_id=3)), View(name)).is_pinned
    behind = {"row_tracking": ["_ROW_ID", "_SEQUENCE_NUMBER"], "placed": ["_FILE_NUMBER", "_ROW_NUMBER"]}
    found = PaimonSource(state, View(name)).schema
    has_kind = name in ("audit_log", "changes", "placed", "diff_before", "diff_after", "waiting", "went", "came")
    wanted = [Field(n, t.LONG) for n in behind.get(name, [])]
    own = (Field("k", t.LONG, False), Field("v", t.LONG))
    assert found == Struct((*([KIND] if has_kind else []), *own, *wanted))


def test_the_rows_of_each_view(tmp_path: Path) -> None:
    state = keyed(tmp_path)
    assert rows(PaimonSource(state)) == [(2, 20)]
    assert rows(PaimonSource(state, View("audit_log"))) == [(0, 2, 20), (3, 1, 11)]
    assert rows(PaimonSource(state, View("ro"))) == [(1, 10), (2, 20)]
    changes = PaimonSource(state, View("changes", 1, 3, "delta"))
    assert rows(changes) == [(2, 1, 11), (3, 1, 11)]
    placed = rows(PaimonSource(state, View("placed", 0, 3, "delta")))
    assert sorted(row[:3] for row in placed) == [(0, 1, 10), (0, 2, 20), (2, 1, 11), (3, 1, 11)]
    assert sorted(row[3:] for row in placed) == [(0, 0), (0, 1), (1, 0), (2, 0)]
    before, after = (PaimonSource(state, View(name, 1, 2)) for name in ("diff_before", "diff_after"))
    # The first file is in both states, and nothing of it is another in one of them alone.
    assert (rows(before), rows(after)) == ([], [(2, 1, 11)])
    assert rows(PaimonSource(state, View("waiting"))) == []
    with pytest.raises(InvalidRequest) as caught:
        PaimonSource(state, View("row_tracking")).plan_scan()
    assert (caught.value.code, caught.value.url) == ("row-tracking-disabled", state.store.url)
    assert PaimonSource(state).size_bytes == sum(state.entries["file_size"].to_pylist())
    assert PaimonSource(replace(state, document=None)).size_bytes == 0


def test_what_an_overwrite_removed_and_what_it_brought(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KV)
    table.commit([{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    table.commit([{"k": 3, "v": 3}], overwrites=True)
    state = load_snapshot(open_store(str(tmp_path / "t")))
    went, came = (PaimonSource(state, View(name, end=2)) for name in ("went", "came"))
    assert (rows(went), rows(came)) == ([(3, 1, 1), (3, 2, 2)], [(0, 3, 3)])


def test_parts_have_the_columns_of_the_view_in_its_order(tmp_path: Path) -> None:
    state = keyed(tmp_path)
    for view in (View(), View("audit_log"), View("changes", 0, 3, "delta"), View("placed", 0, 3, "delta"), View("ro")):
        source = PaimonSource(state, view)
        plan = source.plan_scan()
        assert plan.schema == source.schema
        for part in plan.parts:
            names = [c.name for c in part.output]
            # Who merges keeps what rows merge by.
            assert names == list(source.schema.names) if part.merge is None else {"_SECTION", "_VALUE_KIND"} <= {*names}
        assert {part.is_exact for part in plan.parts} == {False}
        assert {part.is_exact for part in replace(source, is_exact=True).plan_scan().parts} == {True}
        kept = {part.merge.keeps_deletes for part in plan.parts if part.merge is not None}
        assert kept <= {view.name == "audit_log"}


@pytest.mark.parametrize(("options", "ids"), [({}, False), (TRACKED, True), ({**TRACKED, "data-evolution.enabled": "true"}, True)])  # fmt: skip
def test_what_conditions_may_name(tmp_path: Path, options: dict[str, str], ids: bool) -> None:
    PaimonTable.create(str(tmp_path / "t"), KV, options=options)
    schema = load_snapshot(open_store(str(tmp_path / "t"))).schema
    more = (Field("_ROW_ID", t.LONG), Field("_SEQUENCE_NUMBER", t.LONG)) if ids else ()
    assert (has_ids(schema), named_columns(schema).fields[2:]) == (ids, more)
    assert with_named_ids(Struct(()), schema) == Struct(more)
    by_key = replace(schema, primary_keys=("k",))
    assert not has_ids(by_key) and named_columns(by_key).names == ("k", "v")


def test_rows_with_their_ids(tmp_path: Path) -> None:
    PaimonTable.create(str(tmp_path / "t"), KV, options=TRACKED)
    store = open_store(str(tmp_path / "t"))
    for ks in ([1, 2], [3]):
        append(open_target(store), [{"k": k} for k in ks])
    source = PaimonSource(load_snapshot(store), View("row_tracking"))
    assert rows(source) == [(1, None, 0, 1), (2, None, 1, 1), (3, None, 2, 2)]
    where = parse_predicate("_ROW_ID = 2", named_columns(source.snapshot.schema), "UTC")
    assert sum(part.files.num_rows for part in source.plan_scan(where).parts) == 1


def file_rows(state: Snapshot, said: list[int], is_placed: bool = False) -> FileRows:
    return FileRows(state, state.entries, pa.table({FILE: pa.array(said, pa.int64())}), is_placed)


def test_all_rows_of_some_files(tmp_path: Path) -> None:
    """Whoever else has rows of their keys: with their numbers, their kinds, and what is said of their files."""
    state = keyed(tmp_path)
    found = file_rows(state, [70, 80, 90])
    assert found.schema.names == ("k", "v", "_SEQUENCE_NUMBER", "_VALUE_KIND", FILE)
    everything = [(1, 10, 0, 0, 70), (1, 11, 2, 2, 80), (1, 11, 3, 3, 90), (2, 20, 1, 0, 70)]
    assert rows(found) == everything
    plan = found.plan_scan(parse_predicate("k = 9", named_columns(state.schema), "UTC"))
    assert sum(part.files.num_rows for part in plan.parts) == 3
    assert {part.is_exact for part in plan.parts} == {True} and {part.merge for part in plan.parts} == {None}
    column = next(c for c in plan.parts[0].output if c.name == FILE)
    assert (column.value, column.nullable) == (FileConstant(FILE, t.LONG), True)
    placed = file_rows(state, [70, 80, 90], is_placed=True)
    assert placed.schema == Struct((*found.schema.fields, Field(ROW, t.LONG)))
    assert [(row[0], row[-2], row[-1]) for row in rows(placed)] == [(1, 70, 0), (1, 80, 0), (1, 90, 0), (2, 70, 1)]
    position = placed.plan_scan().parts[0].output[-1]
    assert (position.name, position.value, position.nullable) == (ROW, RowPosition(), False)
    assert found.size_bytes == sum(state.entries["file_size"].to_pylist())
    empty = FileRows(state, state.entries.slice(0, 0), found.said.slice(0, 0))
    assert (empty.size_bytes, empty.plan_scan().parts) == (0, ())


def test_what_tells_some_files_from_others(tmp_path: Path) -> None:
    state = keyed(tmp_path)
    plain = file_rows(state, [70, 80, 90])
    assert plain.identity == file_rows(load_snapshot(state.store), [70, 80, 90]).identity
    assert plain.identity[:4] == (state.store.url, "3", "main", "files")
    some = FileRows(state, state.entries.slice(1), plain.said.slice(1))
    renamed = FileRows(state, state.entries, plain.said.rename_columns(["other"]))
    turned = replace(plain, entries=state.entries.take([1, 0, 2]))
    identities = {one.identity for one in (plain, file_rows(state, [70, 80, 91]), some, renamed, turned)}
    assert len(identities) == 5
    assert file_rows(replace(state, branch="b"), [70, 80, 90]).identity != plain.identity
