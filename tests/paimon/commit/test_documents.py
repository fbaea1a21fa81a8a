"""What a snapshot's document says of its draft: kind, counts, lists and their sizes, whose it is, and what it takes over."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from paimon_rows import append, make, open_target

from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.assemble import assemble, in_scope, removed_entries
from alluvium.paimon.commit.draft import BATCH_IDENTIFIER, READS, Draft, Replaced, Restored
from alluvium.paimon.files.manifest import read_entries, read_index_manifest, read_manifest_list
from alluvium.paimon.files.manifest_write import EMPTY_ROW
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, SnapshotDocument, parse_snapshot
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def entries(*rows: dict[str, Any]) -> pa.Table:
    usual: dict[str, Any] = {
        "kind": 0, "partition": EMPTY_ROW, "bucket": 0, "total_buckets": -1, "file_size": 9, "row_count": 5, "level": 0,
        "min_key": EMPTY_ROW, "max_key": EMPTY_ROW, "stats_min": EMPTY_ROW, "stats_max": EMPTY_ROW, "schema_id": 0,
        "key_stats_min": EMPTY_ROW, "key_stats_max": EMPTY_ROW, "extra_files": [], "min_sequence_number": 0,
        "max_sequence_number": 4, "file_source": 0,
    }  # fmt: skip
    made = [{**dict.fromkeys(ENTRIES.names), **usual, "file_name": f"new-{n}", **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(made, schema=ENTRIES)


@pytest.fixture
def store() -> Store:
    """Two appends of two rows each."""
    made = make(f"memory://{uuid.uuid4().hex}/t")
    for k in (0, 2):
        append(open_target(made), [{"k": k}, {"k": k + 1}])
    return made


def put(store: Store, draft: Draft, base: Snapshot | None = None) -> SnapshotDocument:
    """Assembles it, and leaves its files where readers find them."""
    entry = assemble(draft, load_snapshot(store, At()) if base is None else base)
    for path, data in entry.parts:
        store.put(path, data)
    document = parse_snapshot(entry.data, entry.path)
    assert (entry.path, entry.version) == (f"snapshot/snapshot-{document.id}", document.id)
    return document


def names(store: Store, manifests: str) -> list[tuple[int, str]]:
    found = read_entries(store, (manifests,))
    return list(zip(found["kind"].to_pylist(), found["file_name"].to_pylist(), strict=True))


def draft(store: Store, *added: dict[str, Any], **more: Any) -> Draft:
    return Draft(load_snapshot(store, At()).schema, entries(*added), **more)


def test_an_append(store: Store) -> None:
    before, began = load_snapshot(store, At()).document, int(time.time() * 1000)
    assert before is not None
    said = put(store, draft(store, {}, {"row_count": 7}, properties={"a": "b"}))
    assert (said.version, said.id, said.schema_id, said.commit_kind) == (3, 3, 0, "APPEND")
    assert (said.total_record_count, said.delta_record_count, said.changelog_record_count) == (16, 12, None)
    assert (said.commit_identifier, said.properties) == (BATCH_IDENTIFIER, {"a": "b"})
    assert len(said.commit_user) == 36 and said.commit_user != before.commit_user
    assert began <= said.time_millis <= int(time.time() * 1000)
    for name, size in (
        (said.base_manifest_list, said.base_manifest_list_size), (said.delta_manifest_list, said.delta_manifest_list_size)
    ):  # fmt: skip
        assert name.startswith("manifest-list-") and store.head(f"manifest/{name}").size == size
    assert names(store, said.delta_manifest_list) == [(0, "new-0"), (0, "new-1")]
    assert len(read_manifest_list(store, said.base_manifest_list)) == 2
    unset = (said.changelog_manifest_list, said.changelog_manifest_list_size, said.index_manifest, said.log_offsets,
             said.watermark, said.statistics, said.tag_create_time, said.tag_time_retained)  # fmt: skip
    assert set(unset) == {None}


def test_the_first_snapshot() -> None:
    empty = make(f"memory://{uuid.uuid4().hex}/t")
    said = put(empty, draft(empty, {}))
    assert (said.id, said.total_record_count, said.delta_record_count, said.properties) == (1, 5, 5, None)
    assert len(read_manifest_list(empty, said.base_manifest_list)) == 0


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({}, "APPEND"),
        ({"replaced": Replaced()}, "OVERWRITE"),
        ({"compacts": True}, "COMPACT"),
        ({"replaced": Replaced(), "compacts": True}, "COMPACT"),
        ({"statistics": b"{}"}, "ANALYZE"),
    ],
)
def test_what_a_commit_is_called(store: Store, more: dict[str, Any], kind: str) -> None:
    said = put(store, draft(store, {}, user="me", identifier=7, **more))
    assert (said.commit_kind, said.commit_user, said.commit_identifier) == (kind, "me", 7)
    if "replaced" in more:
        assert (said.total_record_count, said.delta_record_count) == (5, 1)
        gone = load_snapshot(store, At()).entries["file_name"].to_pylist()
        assert names(store, said.delta_manifest_list) == [*((1, name) for name in gone), (0, "new-0")]
    if kind == "ANALYZE":
        assert said.statistics is not None and store.get(f"statistics/{said.statistics}") == b"{}"


def test_files_that_tell_how_rows_changed(store: Store) -> None:
    told = entries({"file_name": "log-1", "row_count": 3}, {"file_name": "log-2", "row_count": 4})
    said = put(store, draft(store, {}, told=told))
    assert said.changelog_manifest_list is not None
    assert store.head(f"manifest/{said.changelog_manifest_list}").size == said.changelog_manifest_list_size
    assert names(store, said.changelog_manifest_list) == [(0, "log-1"), (0, "log-2")]
    # They are no rows of the table.
    assert (said.changelog_record_count, said.delta_record_count, said.total_record_count) == (7, 5, 9)
    none = put(store, draft(store, {}, told=told.slice(0, 0)))
    assert (none.changelog_manifest_list, none.changelog_record_count) == (None, None)


@pytest.mark.parametrize(
    ("keys", "more", "reads"),
    [
        (True, {}, "false"), (True, {"reads": True}, "true"), (True, {"compacts": True}, None), (False, {"reads": True}, None),
        (True, {"added": 0}, None), (True, {"restored": True}, None),
    ],
)  # fmt: skip
def test_rows_of_keys_say_whether_they_have_read(keys: bool, more: dict[str, Any], reads: str | None) -> None:
    url = f"memory://{uuid.uuid4().hex}/t"
    if keys:
        PaimonTable.create(url, pa.schema([("k", pa.int32())]), (), ["k"], {"bucket": "1"})
        made = open_store(url)
    else:
        made = make(url)
    given = [{"total_buckets": 1 if keys else -1}] * more.pop("added", 1)
    if more.pop("restored", False):
        more["restored"] = Restored(None, INDEX_ENTRIES.empty_table(), 0)
    said = put(made, draft(made, *given, properties={"a": "b"}, **more))
    assert said.properties == {"a": "b"} | ({} if reads is None else {READS: reads})


def with_document(base: Snapshot, **said: Any) -> Snapshot:
    assert base.document is not None
    return replace(base, document=msgspec.structs.replace(base.document, **said), _loaded={})


def test_what_is_taken_over_from_the_snapshot_before(store: Store) -> None:
    far = int(time.time() * 1000) + 10**9
    base = with_document(
        load_snapshot(store, At()), watermark=9, log_offsets={"0": 3}, statistics="stat-x", time_millis=far, total_record_count=None
    )  # fmt: skip
    said = put(store, draft(store, {}), base)
    assert (said.watermark, said.log_offsets, said.statistics, said.time_millis) == (9, {"0": 3}, "stat-x", far)
    # Where nobody has counted, the files are.
    assert (said.total_record_count, said.delta_record_count) == (9, 5)
    altered = replace(base, schema=replace(base.schema, id=1), _loaded={})
    altered._loaded[0] = base.schema
    other = put(store, draft(store, {}), altered)
    assert (other.statistics, other.watermark, other.schema_id) == (None, 9, 1)


def test_a_state_that_is_there_again(store: Store) -> None:
    base = with_document(load_snapshot(store, At()), next_row_id=20, statistics="stat-x", watermark=9)
    index = pa.Table.from_pylist(
        [{"kind": 0, "partition": EMPTY_ROW, "bucket": 0, "index_type": "HASH", "file_name": "i", "file_size": 4, "row_count": 1}],
        schema=INDEX_ENTRIES,
    )  # fmt: skip
    assert base.document is not None
    was = msgspec.structs.replace(base.document, id=1, schema_id=0, watermark=3, statistics="stat-old")
    for restored, ids in ((30, 30), (10, 20)):
        asked = draft(store, {"first_row_id": 4}, replaced=Replaced(), restored=Restored(2, index, restored, was))
        said = put(store, asked, base)
        assert (said.next_row_id, said.watermark, said.statistics, said.schema_id) == (ids, 3, "stat-old", 0)
        assert said.index_manifest is not None
        assert read_index_manifest(store, said.index_manifest)["file_name"].to_pylist() == ["i"]
        added = read_entries(store, (said.delta_manifest_list,)).slice(2)
        assert added.to_pylist()[0] == asked.added.to_pylist()[0]
    of_another = Restored(2, index.slice(0, 0), 0)
    said = put(store, draft(store, restored=of_another), base)
    assert (said.index_manifest, said.watermark, said.statistics, said.next_row_id) == (None, 9, "stat-x", 20)
    with pytest.raises(CommitConflict):
        assemble(draft(store, restored=replace(of_another, base=1)), base)


def test_manifests_that_are_all_merged_are_of_the_schema_of_their_state(store: Store) -> None:
    base = load_snapshot(store, At())
    altered = replace(base, schema=replace(base.schema, id=4), _loaded={0: base.schema})
    said = put(store, Draft(base.schema, entries(), compacts=True, merges_manifests=True), altered)
    assert said.schema_id == 0 and len(read_manifest_list(store, said.base_manifest_list)) == 1
    plain = put(store, Draft(base.schema, entries(), compacts=True), altered)
    assert plain.schema_id == 4 and len(read_manifest_list(store, plain.base_manifest_list)) == 2
    assert (said.total_record_count, said.delta_record_count) == (4, 0)


def test_files_that_an_overwrite_takes_out(store: Store) -> None:
    base = load_snapshot(store, At())
    every = base.entries["file_name"].to_pylist()
    other = pa.array([b"other"], pa.binary())

    def taken(replaced: Replaced | None) -> list[str]:
        found: list[str] = removed_entries(base, replaced)["file_name"].to_pylist()
        return found

    assert taken(None) == [] and taken(Replaced()) == every
    assert taken(Replaced(files=pa.array([every[1], "none"]))) == every[1:]
    assert taken(Replaced(files=pa.array([], pa.string()))) == []
    assert taken(Replaced(partitions=pa.array([EMPTY_ROW], pa.binary()))) == every
    assert taken(Replaced(partitions=other)) == []
    assert removed_entries(base, Replaced()).schema == ENTRIES
    assert in_scope(base, base.entries, None).num_rows == 0
    assert removed_entries(replace(base, document=None), Replaced()).num_rows == 0


def test_numbers_of_rows_go_on_within_each_bucket(store: Store) -> None:
    made = make(f"memory://{uuid.uuid4().hex}/t", bucket="2", **{"bucket-key": "k"})
    there = [{"bucket": b, "total_buckets": 2, "row_count": n} for b, n in ((0, 3), (1, 4), (0, 2))]
    said = put(made, draft(made, *there))
    made.put("snapshot/snapshot-1", store.get("snapshot/snapshot-1"))
    base = with_document(load_snapshot(made, At()), **{name: getattr(said, name) for name in said.__struct_fields__})

    def numbers(document: SnapshotDocument) -> list[tuple[int, int, int]]:
        rows = read_entries(made, (document.delta_manifest_list,)).to_pylist()
        return [
            (row["bucket"], row["min_sequence_number"], row["max_sequence_number"]) for row in rows if not row["kind"]
        ]

    first = [(0, 0, 2), (1, 0, 3), (0, 3, 4)]
    assert numbers(said) == first
    more = put(made, draft(made, *({**row, "file_name": f"more-{n}"} for n, row in enumerate(there))), base)
    assert numbers(more) == [(0, 5, 7), (1, 4, 7), (0, 8, 9)]
    # What goes at the same time does not count.
    anew = put(made, draft(made, *({**row, "file_name": f"anew-{n}"} for n, row in enumerate(there)), replaced=Replaced()), base)  # fmt: skip
    assert numbers(anew) == first
