"""The rules of conflicts as a table: every kind of draft beside every kind of winner."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from alluvium.paimon.commit import conflicts as rules
from alluvium.paimon.commit.conflicts import Unseen, Winner, conflicts, depends_on_masks, unseen_commit
from alluvium.paimon.commit.draft import BATCH_IDENTIFIER, READS, Draft, Replaced, VectorChange
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, SCANNED_ENTRIES, SnapshotDocument

FIELDS = [DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "v", parse_type("INT"))]


def schema_of(keys: tuple[str, ...] = (), **options: str) -> TableSchema:
    return TableSchema.create(FIELDS, (), keys, options={"bucket": "1" if keys else "-1", **options})


def entries(*rows: Mapping[str, Any], schema: pa.Schema = SCANNED_ENTRIES) -> pa.Table:
    """Of each file what is given, and else an addition to bucket 0 of level 0."""
    usual = {"kind": 0, "partition": b"p", "bucket": 0, "level": 0, "max_sequence_number": 9, "min_sequence_number": 5}
    loose = pa.schema([f.with_nullable(True) for f in schema])
    made = [{**usual, "file_name": f"f{n}", **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist([{f.name: row.get(f.name) for f in loose} for row in made], loose)


def document(kind: str, user: str = "other", identifier: int = 3, properties: Any = None) -> SnapshotDocument:
    return SnapshotDocument(
        id=7, schema_id=0, base_manifest_list="b", delta_manifest_list="d", commit_user=user,
        commit_identifier=identifier, commit_kind=kind, time_millis=1_000, properties=properties,
    )  # fmt: skip


EDITS = VectorChange(frozenset(), pa.array([], pa.string()), INDEX_ENTRIES.empty_table(), {})
NEW, GONE = {"kind": 0}, {"kind": 1}
CHANGES: dict[str, tuple[Mapping[str, Any], ...]] = {
    "adds": (NEW,),
    "removes": (GONE,),
    "both": (GONE, NEW),
    "nothing": (),
}


@pytest.mark.parametrize("commit", ["APPEND", "OVERWRITE", "COMPACT", "ANALYZE"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("masked", [False, True])
def test_every_kind_beside_every_other(commit: str, change: str, masked: bool) -> None:
    """Of a table without keys; the rules as the specification lists them."""
    winner = Winner(document(commit), entries(*CHANGES[change]), None, entries(*[GONE] * masked))
    adds, removes = change in ("adds", "both"), change in ("removes", "both")
    schema = schema_of()
    for replaced, reads, compacts, edits, added in itertools.product(
        (None, Replaced()), (False, True), (False, True), (None, EDITS), (False, True)
    ):
        draft = Draft(
            schema,
            entries(*[NEW] * added, schema=ENTRIES),
            replaced,
            "me",
            1,
            reads=reads,
            compacts=compacts,
            edits=edits,
        )
        depends = reads or replaced is not None
        wanted = []
        if depends and adds and commit != "COMPACT":
            wanted.append("concurrent-append")
        if depends and removes and (commit != "COMPACT" or compacts):
            wanted.append("concurrent-delete-delete")
        deletes_alone = edits is not None and not compacts and not added
        if depends and masked and commit != "COMPACT" and not deletes_alone:
            wanted.append("concurrent-delete-delete")
        found = conflicts(draft, winner)
        assert [one.rule for one in found] == wanted
        assert depends_on_masks(draft) == (depends and not deletes_alone)
        for one in found:
            assert (one.version, one.operation, one.timestamp_ms, one.engine) == (7, commit, 1_000, "other")
            assert ("read" in one.message) == reads
        seen = unseen_commit(draft, Unseen(8, "gone"))
        assert [one.rule for one in seen] == (["history-lost"] if depends else [])


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("user", ["me", "other"])
@pytest.mark.parametrize("identifier", [4, 5, 6])
def test_a_commit_of_the_same_caller(named: bool, user: str, identifier: int) -> None:
    """The same number or a later one of the same user."""
    draft = Draft(schema_of(), entries(schema=ENTRIES), None, "me", 5, is_named=named)
    found = conflicts(draft, Winner(document("APPEND", user, identifier), entries()))
    clashes = named and user == "me" and identifier >= 5
    assert [one.rule for one in found] == (["concurrent-transaction"] if clashes else [])
    unseen = unseen_commit(draft, Unseen(8, "gone"))
    assert [(one.rule, one.version) for one in unseen] == ([("history-lost", 8)] if named else [])


@pytest.mark.parametrize(
    ("commit", "identifier", "properties", "may_have_read"),
    [
        ("OVERWRITE", 3, {READS: "false"}, True),
        ("COMPACT", BATCH_IDENTIFIER, None, False),
        ("ANALYZE", BATCH_IDENTIFIER, {READS: "true"}, False),
        ("APPEND", 3, None, False),
        ("APPEND", 3, {"other": "x"}, False),
        ("APPEND", BATCH_IDENTIFIER, None, True),
        ("APPEND", BATCH_IDENTIFIER, {READS: "false"}, False),
        ("APPEND", 3, {READS: "true"}, True),
    ],
)
def test_numbers_that_are_not_above(commit: str, identifier: int, properties: Any, may_have_read: bool) -> None:
    """Rows of keys that have read nothing, beside those of one who may have read: in one bucket, with numbers as high."""
    mine = entries(
        {"min_sequence_number": 5, "max_sequence_number": 9}, {"min_sequence_number": 7, "bucket": 1},
        {"min_sequence_number": 3, "bucket": 1}, {"min_sequence_number": 5, "partition": b"q"}, schema=ENTRIES,
    )  # fmt: skip
    places = itertools.product((b"p", b"q", b"r"), (0, 1), (0, 1), (2, 3, 4, 5, 6))
    theirs = [
        {"partition": p, "bucket": b, "kind": k, "max_sequence_number": n, "file_name": f"{p!r}{b}{k}{n}"}
        for p, b, k, n in places
    ]
    firsts = {(b"p", 0): 5, (b"p", 1): 3, (b"q", 0): 5}
    later = {
        row["file_name"] for row in theirs
        if row["kind"] == 0 and row["max_sequence_number"] >= firsts.get((row["partition"], row["bucket"]), 99)
    }  # fmt: skip
    keyed = schema_of(("k",))
    winner = Winner(document(commit, "other", identifier, properties), entries(*theirs))
    found = conflicts(Draft(keyed, mine, None, "me", 1), winner)
    assert [one.rule for one in found] == (["concurrent-numbers"] if may_have_read else [])
    for one in found:
        assert set(one.paths) <= later and len(one.paths) == min(5, len(later))
    for name in sorted(later):
        alone = Winner(document("OVERWRITE"), entries(*[row for row in theirs if row["file_name"] == name]))
        assert [(c.rule, c.paths) for c in conflicts(Draft(keyed, mine, None, "me", 1), alone)] == [
            ("concurrent-numbers", (name,))
        ]
    others = Winner(document("OVERWRITE"), entries(*[row for row in theirs if row["file_name"] not in later]))
    assert conflicts(Draft(keyed, mine, None, "me", 1), others) == ()
    unseen = unseen_commit(Draft(keyed, mine, None, "me", 1), Unseen(8, "gone", winner.entries))
    assert [one.rule for one in unseen] == ["concurrent-numbers"]
    assert unseen_commit(Draft(keyed, mine, None, "me", 1), Unseen(8, "gone", others.entries)) == ()
    # Who has read is told of whatever was added; tables without keys number when they commit; no row, no number.
    for draft in (
        Draft(keyed, mine, None, "me", 1, reads=True), Draft(keyed, mine, Replaced(), "me", 1),
        Draft(schema_of(), mine, None, "me", 1), Draft(keyed, entries(schema=ENTRIES), None, "me", 1),
    ):  # fmt: skip
        assert "concurrent-numbers" not in [one.rule for one in conflicts(draft, winner)]


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize(("bucket", "level"), [(0, 0), (0, 1), (-2, 0), (-2, 1)])
@pytest.mark.parametrize("commit", ["APPEND", "COMPACT"])
def test_rows_that_a_compaction_shows(vectors: str, bucket: int, level: int, commit: str) -> None:
    """Files that wait, and new ones where readers see no new ones: what replaces all it has read was made without them."""
    keyed = schema_of(("k",), **{"deletion-vectors.enabled": vectors})
    was_hidden = bucket == -2 or (vectors == "true" and level == 0)
    gone = entries({"kind": 1, "bucket": bucket, "level": level})
    come = entries({"kind": 0, "bucket": bucket, "level": level})
    for schema, replaced, reads, compacts in itertools.product(
        (keyed, schema_of()), (None, Replaced()), (False, True), (False, True)
    ):
        draft = Draft(schema, entries(schema=ENTRIES), replaced, "me", 1, reads=reads, compacts=compacts)
        asked = schema is keyed and replaced is not None and reads and not compacts and commit == "COMPACT"
        assert (rules.concurrent_show(draft, Winner(document(commit), gone)) is not None) == (asked and was_hidden)
        assert rules.concurrent_show(draft, Winner(document(commit), come)) is None


def test_a_few_files_are_named() -> None:
    found = conflicts(
        Draft(schema_of(), entries(schema=ENTRIES), Replaced()), Winner(document("APPEND"), entries(*[NEW] * 8))
    )
    assert found[0].paths == ("f0", "f1", "f2", "f3", "f4") and "8 files" in found[0].message
