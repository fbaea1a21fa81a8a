"""The conflict rules: one after the other, each with what breaks it and what does not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_config, make_draft, make_files, make_metadata, make_stats, removal_of

from alluvium.delta.commit.conflicts import CHECKS, Contest, Winner, conflicts, conflicts_of_rows
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.terms.spec import DomainMetadata, Txn
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Column, Compare, Literal
from alluvium.plan.changes import ReadScope
from alluvium.schema.types import LONG, STRING, TIMESTAMP, Field, Struct

IN_A = Compare("=", Column(("p",), STRING), Literal("a", STRING))
SMALL = Compare("<", Column(("id",), LONG), Literal(10, LONG))

FILE_A = {"path": "a1", "partitionValues": {"p": "a"}, "stats": make_stats(0, 5)}
FILE_B = {"path": "b1", "partitionValues": {"p": "b"}, "stats": make_stats(100, 105)}
LIVE = make_files(FILE_A, FILE_B)

BLIND = ReadScope.nothing()
ALL = ReadScope.table()
ONLY_A = ReadScope.rows(IN_A)
ONLY_SMALL = ReadScope.rows(SMALL)


def contest(
    winner: Actions,
    ours: Actions | None = None,
    read: ReadScope = BLIND,
    config: TableConfig | None = None,
    **how: object,
) -> Contest:
    draft = make_draft(ours or Actions(added=make_files({"path": "ours", "partitionValues": {"p": "a"}})), read)
    config = config or make_config(partition_by=["p"])
    return Contest(draft, config, picking_from(LIVE), Winner(7, winner, 1_000, "WRITE", "another engine", **how))  # type: ignore[arg-type]


def rules(found: Contest) -> list[str]:
    return [c.rule for c in conflicts(found)]


def added(*rows: dict[str, object], data_change: bool = True) -> Actions:
    return Actions(added=make_files(*rows, data_change=data_change))


def removed(files: pa.Table, data_change: bool = True) -> Actions:
    return Actions(removed=removal_of(files, data_change))


NEW_A = {"path": "new-a", "partitionValues": {"p": "a"}, "stats": make_stats(1, 2)}
NEW_B = {"path": "new-b", "partitionValues": {"p": "b"}, "stats": make_stats(101, 102)}


def test_blind_appends_never_fail_each_other():
    assert rules(contest(added(NEW_A, NEW_B))) == []


def test_a_blind_append_follows_a_removal():
    assert rules(contest(removed(LIVE))) == []


@pytest.mark.parametrize("read", [BLIND, ALL])
def test_a_new_protocol_forbids_everything(read: ReadScope):
    assert rules(contest(Actions(protocol=LEGACY), read=read)) == ["protocol-changed"]


@pytest.mark.parametrize("read", [BLIND, ALL])
def test_new_metadata_forbid_everything(read: ReadScope):
    assert rules(contest(Actions(metadata=make_metadata()), read=read)) == ["metadata-changed"]


@pytest.mark.parametrize(
    ("read", "winner", "expected"),
    [
        (ALL, added(NEW_B), ["concurrent-append"]),
        (ONLY_A, added(NEW_A), ["concurrent-append"]),
        (ONLY_A, added(NEW_B), []),
        # Statistics decide where partitions do not.
        (ONLY_SMALL, added(NEW_A), ["concurrent-append"]),
        (ONLY_SMALL, added(NEW_B), []),
        # A file that says nothing of itself may hold anything.
        (ONLY_SMALL, added({"path": "x", "partitionValues": {"p": "b"}}), ["concurrent-append"]),
        # Rows that were only rearranged are no news.
        (ALL, added(NEW_A, data_change=False), []),
    ],
)
def test_rows_added_to_what_was_read(read: ReadScope, winner: Actions, expected: list[str]):
    assert rules(contest(winner, read=read)) == expected


@pytest.mark.parametrize(
    ("level", "blind", "expected"),
    [
        ("Serializable", True, ["concurrent-append"]),
        ("WriteSerializable", True, []),
        ("WriteSerializable", False, ["concurrent-append"]),
    ],
)
def test_under_write_serializable_a_blind_append_comes_after_us(level: str, blind: bool, expected: list[str]):
    config = make_config(partition_by=["p"], properties={"delta.isolationLevel": level})
    assert rules(contest(added(NEW_A), read=ALL, config=config, is_blind_append=blind)) == expected


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_a_blind_append_is_checked_by_the_description_that_it_was_written_under(level: str):
    """Rows appended beside a new constraint were never held against it."""
    config = make_config(partition_by=["p"], properties={"delta.isolationLevel": level})
    constraint = Actions(metadata=make_metadata(partition_by=["p"]))
    found = rules(contest(added(NEW_A), constraint, ALL, config, is_blind_append=True))
    assert found == ["concurrent-append"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("p=é/f", "p=%C3%A9/f"), ("p=%C3%A9/f", "p=é/f"), ("file:/t/f", "/t/f"), ("file:///t/f", "file:/t/f")],
)
def test_one_file_is_one_file_however_writers_spell_its_path(ours: str, theirs: str):
    live = make_files({"path": ours, "partitionValues": {"p": "é"}})
    winner = removed(make_files({"path": theirs, "partitionValues": {"p": "é"}}))
    draft = make_draft(Actions(removed=removal_of(live)), ALL)
    met = Contest(draft, make_config(partition_by=["p"]), picking_from(live), Winner(7, winner))
    assert rules(met) == ["concurrent-delete-read", "concurrent-delete-delete"]
    assert conflicts(met)[0].paths == (ours,)


@pytest.mark.parametrize(
    ("read", "files", "expected"),
    [
        (ALL, LIVE, ["concurrent-delete-read"]),
        (ONLY_A, make_files(FILE_A), ["concurrent-delete-read"]),
        (ONLY_A, make_files(FILE_B), []),
        (ONLY_SMALL, make_files(FILE_B), []),
        # A file that our version never had was not read by us.
        (ALL, make_files({"path": "later"}), []),
    ],
)
def test_rows_removed_that_were_read(read: ReadScope, files: pa.Table, expected: list[str]):
    assert rules(contest(removed(files), read=read)) == expected


def test_files_that_were_only_rearranged_are_not_missed():
    assert rules(contest(removed(LIVE, data_change=False), read=ALL)) == []


@pytest.mark.parametrize("data_change", [True, False])
def test_the_same_file_is_not_removed_twice(data_change: bool):
    ours = Actions(removed=removal_of(make_files(FILE_B)))
    found = conflicts(contest(removed(LIVE, data_change), ours, ONLY_A))
    assert "concurrent-delete-delete" in [c.rule for c in found]
    assert next(c for c in found if c.rule == "concurrent-delete-delete").paths == ("b1",)
    assert "concurrent-delete-delete" not in rules(contest(removed(make_files(FILE_A)), ours, ONLY_A))


@pytest.mark.parametrize("data_change", [True, False])
def test_a_file_that_goes_does_not_come_back_by_being_committed_again(data_change: bool):
    ours = added(FILE_B, data_change=False)
    found = conflicts(contest(removed(LIVE, data_change), ours))
    assert [(c.rule, c.paths) for c in found] == [("concurrent-delete-delete", ("b1",))]
    assert rules(contest(removed(make_files(FILE_A), data_change), ours)) == []


@pytest.mark.parametrize(("app_id", "expected"), [("mine", ["concurrent-transaction"]), ("other", [])])
def test_a_transaction_identifier_that_both_move(app_id: str, expected: list[str]):
    winner = Actions(txns=(Txn(app_id=app_id, version=1),))
    ours = Actions(txns=(Txn(app_id="mine", version=1),))
    assert rules(contest(winner, ours)) == expected


@pytest.mark.parametrize(("domain", "expected"), [("d", ["concurrent-domain"]), ("e", [])])
def test_one_domain_changed_twice(domain: str, expected: list[str]):
    """ "Two overlapping transactions conflict if they both contain a domain metadata action for the same metadata
    domain."
    """
    ours = Actions(domains=(DomainMetadata(domain="d", configuration="{}", removed=False),))
    winner = Actions(domains=(DomainMetadata(domain=domain, configuration="", removed=True),))
    assert rules(contest(winner, ours)) == expected


def test_a_conflict_names_the_winner_and_the_overlap():
    (found,) = conflicts(contest(added(NEW_A, NEW_B), read=ONLY_A))
    assert (found.version, found.operation, found.engine, found.timestamp_ms) == (7, "WRITE", "another engine", 1_000)
    assert found.paths == ("new-a",)
    assert "added 1 files" in found.message


def test_only_a_few_paths_are_named():
    many = added(*({"path": f"f{n}", "partitionValues": {"p": "a"}} for n in range(50)))
    (found,) = conflicts(contest(many, read=ALL))
    assert len(found.paths) == 5
    assert "50 files" in found.message


def test_every_broken_rule_is_told_in_order():
    winner = Actions(protocol=LEGACY, metadata=make_metadata(), added=make_files(NEW_A), removed=removal_of(LIVE))
    ours = Actions(removed=removal_of(LIVE))
    assert rules(contest(winner, ours, ALL)) == [
        "protocol-changed", "metadata-changed", "concurrent-append", "concurrent-delete-read",
        "concurrent-delete-delete",
    ]  # fmt: skip
    assert len(CHECKS) == 8


def test_nobody_may_come_before_a_commit_that_stands_alone():
    draft = replace(make_draft(Actions()), is_alone=True)
    met = Contest(draft, make_config(), picking_from(LIVE), Winner(7, Actions(txns=(Txn(app_id="x", version=1),))))
    assert rules(met) == ["concurrent-commit"]


def test_of_the_rules_some_are_about_rows_alone():
    winner = Actions(protocol=LEGACY, metadata=make_metadata(), added=make_files(NEW_A), removed=removal_of(LIVE))
    met = contest(winner, Actions(removed=removal_of(LIVE)), ALL)
    assert [c.rule for c in conflicts_of_rows(met)] == ["concurrent-append", "concurrent-delete-read"]
    assert conflicts_of_rows(replace(met, draft=make_draft(Actions()))) == ()
    assert [c.rule for c in conflicts_of_rows(contest(added(NEW_A), read=ALL))] == ["concurrent-append"]


@pytest.mark.parametrize("admits", [True, False])
def test_a_blind_append_comes_after_us_only_where_that_is_admitted(admits: bool):
    config = make_config(partition_by=["p"], properties={"delta.isolationLevel": "WriteSerializable"})
    met = replace(contest(added(NEW_A), read=ALL, config=config, is_blind_append=True), admits_blind=admits)
    assert rules(met) == ([] if admits else ["concurrent-append"])


def test_conflicts_say_what_was_read_and_how_much_of_it():
    def said(found: Contest) -> list[tuple[str, str]]:
        return [(c.rule, c.message) for c in conflicts(found)]

    assert said(contest(added(NEW_A, NEW_B), read=ALL)) == [
        ("concurrent-append", "it added 2 files to the table, which this operation has read")
    ]
    ((rule, message),) = said(contest(added(NEW_A, NEW_B), read=ONLY_SMALL))
    assert rule == "concurrent-append" and message.startswith("it added 1 files to rows where ") and "10" in message
    assert said(contest(removed(LIVE), read=ALL)) == [
        ("concurrent-delete-read", "it removed 2 files of the table, which this operation has read")
    ]
    both = Actions(removed=removal_of(LIVE), added=make_files(FILE_A))
    ((rule, message),) = said(contest(removed(LIVE, data_change=False), both, read=ONLY_A))
    assert (rule, message) == ("concurrent-delete-delete", "it removed 2 files that we remove, or commit again")
    found = conflicts(contest(removed(LIVE, data_change=False), both, read=ONLY_A))
    # A file that is on both sides of ours is named once.
    assert found[0].paths == ("a1", "b1")


def test_of_several_the_first_name_is_told():
    theirs = Actions(
        txns=tuple(Txn(app_id=name, version=1) for name in "zbc"),
        domains=tuple(DomainMetadata(domain=name, configuration="", removed=False) for name in "zbc"),
    )
    ours = Actions(txns=theirs.txns[::-1], domains=theirs.domains[::-1])
    first, second = conflicts(contest(theirs, ours))
    assert (first.rule, second.rule) == ("concurrent-transaction", "concurrent-domain")
    assert first.message.endswith("'b'") and second.message.endswith("'b'")


def test_a_commit_of_no_files_takes_none_away():
    assert rules(contest(removed(LIVE), Actions(txns=(Txn(app_id="x", version=1),)))) == []
    assert rules(contest(Actions(), Actions(removed=removal_of(LIVE)), ALL)) == []


def test_partition_values_without_a_zone_are_read_in_that_of_the_draft():
    schema = Struct((Field("id", LONG), Field("t", TIMESTAMP)))
    config = make_config(schema, ["t"])
    read = ReadScope.rows(parse_predicate("t = timestamp '2024-01-01 00:00:00Z'", schema))
    winner = added({"path": "n", "partitionValues": {"t": "2024-01-01 09:00:00"}})
    for zone, expected in (("Asia/Tokyo", ["concurrent-append"]), ("UTC", [])):
        draft = make_draft(Actions(), read)
        assert rules(Contest(draft, config, picking_from(LIVE.slice(0, 0)), Winner(7, winner), zone)) == expected


def numbered(mark: int, step: int = 1, name: str = "id"):
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": step,
        "delta.identity.highWaterMark": mark,
        "delta.identity.allowExplicitInsert": False,
    }
    return make_metadata(Struct((Field(name, LONG, True, identity), Field("p", STRING))), ["p"])


def test_marks_that_moved_bother_only_those_who_move_them():
    """They have made the same values."""
    schema = Struct((Field("id", LONG), Field("p", STRING)))
    config = replace(make_config(schema, ["p"]), metadata=numbered(3))
    for theirs, ours, expected in (
        (numbered(9), None, []), (numbered(9), numbered(7), ["metadata-changed"]), (numbered(9, step=2), None, ["metadata-changed"]),
        (numbered(9, name="other"), None, ["metadata-changed"]), (None, numbered(7), []),
    ):  # fmt: skip
        met = contest(Actions(metadata=theirs), Actions(metadata=ours), config=config)
        assert rules(met) == expected
