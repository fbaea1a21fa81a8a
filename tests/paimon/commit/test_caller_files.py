"""What callers' files say, and what is believed of them beside the snapshots there are: one file, one answer."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from alluvium.errors import CommitUnknown
from alluvium.paimon.commit.caller_files import (
    Caller,
    Seen,
    all_callers,
    caller_path,
    gone_path,
    read_caller,
    seen_path,
)
from alluvium.paimon.commit.callers import (
    Attempt,
    Callers,
    begin,
    callers_of,
    gave_up,
    is_committed,
    note_expiring,
    pass_on,
    stands,
    take_back,
    take_over,
)
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES, SnapshotDocument, format_snapshot
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = TableSchema.create([DataField(0, "k", parse_type("INT"))])
FOLDERS = {"main": "", "b": "branch/branch-b/"}


def document(number: int, user: str = "other", identifier: int = 1) -> SnapshotDocument:
    return SnapshotDocument(number, 0, f"base-{number}", f"delta-{number}", user, identifier, "APPEND", 0)


def table(*numbers: int, branch: str = "main", **own: tuple[int, int]) -> MemoryStore:
    """Snapshots of these numbers, some of them (`s3=...`) of the caller "job": what they are called."""
    store = MemoryStore(uuid.uuid4().hex, "t")
    for number in numbers:
        put(store, document(number), branch)
    for name, (number, identifier) in own.items():
        assert name.startswith("s")
        put(store, document(number, "job", identifier), branch)
    return store


def put(store: MemoryStore, said: SnapshotDocument, branch: str = "main") -> None:
    store.put(f"{FOLDERS[branch]}snapshot/snapshot-{said.id}", format_snapshot(said))


def note(store: MemoryStore, known: Caller, branch: str = "main") -> str:
    path = caller_path(branch, known.user)
    store.put(path, msgspec.json.encode(known))
    return path


def state(store: MemoryStore, number: int = 0, branch: str = "main") -> Snapshot:
    return Snapshot(store, document(number) if number else None, SCHEMA, branch)


def answer(store: MemoryStore, identifier: int, branch: str = "main") -> bool | None:
    """None: nobody knows."""
    try:
        return is_committed(state(store, branch=branch), "job", identifier)
    except CommitUnknown as error:
        assert error.code == "transaction-unknown" and error.path == caller_path(branch, "job")
        assert f'"done":{identifier}' in (error.hint or "")
        return None


def answers(store: MemoryStore, *identifiers: int, branch: str = "main") -> list[bool | None]:
    return [answer(store, one, branch) for one in identifiers]


def job(**said: Any) -> Caller:
    return Caller("job", **said)


@pytest.mark.parametrize("branch", ["main", "b"])
def test_snapshots_tell_where_nobody_has_noted_anything(branch: str) -> None:
    assert answers(table(branch=branch), 0, 5, branch=branch) == [False, False]
    assert answers(table(3, 4, branch=branch), 5, branch=branch) == [False]
    own = table(3, 5, branch=branch, s4=(4, 7))
    assert answers(own, 6, 7, 8, branch=branch) == [True, True, False]
    # The newest of the caller speaks for all before it.
    assert answers(table(branch=branch, s3=(3, 9), s4=(4, 7)), 7, 8, branch=branch) == [True, False]
    assert answers(own, 7, branch="b" if branch == "main" else "main") == [False]


@pytest.mark.parametrize(
    ("numbers", "known", "expected"),
    [
        # What stood stands, though its snapshot has expired.
        ((5, 6), job(done=5, snapshot=3), {4: True, 5: True, 6: False}),
        # Another one has its number now: it was taken back, and those before it are in doubt once something has expired.
        ((1, 2, 3), job(done=5, snapshot=3), {3: False, 4: False, 5: False, 6: False}),
        ((2, 3), job(done=5, snapshot=3), {4: None, 5: False, 6: False}),
        ((2, 3), job(done=5, snapshot=3, is_inherited=True), {5: True, 6: False}),
        # In the making behind snapshot 2.
        ((1, 2, 3), job(begun=5, after=2), {4: False, 5: False}),
        ((3, 4), job(begun=5, after=2), {5: False}),
        ((4, 5), job(begun=5, after=2), {4: None, 5: None, 6: False}),
        ((), job(begun=5, after=2), {5: False}),
        ((), job(begun=5, after=0), {5: False}),
        ((1,), job(begun=5, after=0), {5: False}),
        ((2,), job(begun=5, after=0), {5: None}),
        # A later one was taken back.
        ((2, 3), job(doubted=5), {5: None, 6: False}),
        ((1, 2), job(doubted=5), {5: False}),
        ((), job(doubted=5), {5: False}),
        ((2, 3), job(begun=7, after=2, doubted=5), {5: None, 6: False, 7: False}),
    ],
)
def test_what_a_file_tells_beside_snapshots_of_others(
    numbers: tuple[int, ...], known: Caller, expected: dict[int, bool | None]
) -> None:
    store = table(*numbers)
    note(store, known)
    assert {one: answer(store, one) for one in expected} == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Seen(through=2), {5: None}), (Seen(through=3), {5: False}), (Seen(snapshot=3), {5: True, 6: False}),
        (Seen(snapshot=3, identifier=7), {5: True, 7: True, 8: False}), (None, {5: None}),
    ],
)  # fmt: skip
def test_what_others_have_seen_of_it(seen: Seen | None, expected: dict[int, bool | None]) -> None:
    """Begun behind snapshot 1; of 4 and 5 none is its own."""
    store = table(4, 5)
    path = note(store, job(begun=5, after=1, mark="m"))
    store.put(seen_path(path, "other"), msgspec.json.encode(Seen(snapshot=2)))
    if seen is not None:
        store.put(seen_path(path, "m"), msgspec.json.encode(seen))
    assert {one: answer(store, one) for one in expected} == expected


@pytest.mark.parametrize("kept", ["nothing", "gone", "changelog", "tag", "other tag"])
def test_a_snapshot_whose_list_is_still_there_was_taken_back_or_is_kept(kept: str) -> None:
    store = table(5, 6)
    path = note(store, job(done=5, snapshot=3, manifests="delta-3"))
    assert answers(store, 5, 6) == [True, False]
    store.put("manifest/delta-3", b"")
    assert answers(store, 5, 6) == [None, False]
    if kept == "gone":
        store.put(gone_path(path, "delta-3"), b"")
    elif kept != "nothing":
        folder = "changelog/changelog-3" if kept == "changelog" else "tag/tag-x"
        store.put(folder, format_snapshot(document(3 if kept != "other tag" else 4, "job", 5)))
    assert answers(store, 5, 6) == [None if kept in ("nothing", "other tag") else True, False]


def draft(identifier: int) -> Draft:
    return Draft(SCHEMA, ENTRIES.empty_table(), user="job", identifier=identifier, is_named=True)


@pytest.mark.parametrize(
    ("numbers", "base", "after"), [((1, 2, 3), 3, 3), ((), 0, 0), ((4, 5), 3, 3), ((5, 6), 3, 4), ((9,), 9, 9)]
)
def test_a_commit_in_the_making_begins_behind_what_nobody_can_look_at(
    numbers: tuple[int, ...], base: int, after: int
) -> None:
    store = table(*numbers)
    first = begin(draft(5), state(store, base))
    known = read_caller(store, "main", "job")
    assert known == job(begun=5, after=after, mark=first.mark) and len(first.mark) == 16
    assert first.earlier == job()
    assert begin(draft(6), state(store, base)).mark != first.mark


@pytest.mark.parametrize(
    ("numbers", "own", "known", "earlier"),
    [
        # A snapshot tells what became of the one before it, or a later one of the caller.
        ((1, 3, 4), (2, 4), job(begun=4, after=1, mark="m"), job(done=4, snapshot=2, manifests="delta-2")),
        ((1, 3, 4), (2, 6), job(begun=4, after=1, mark="m"), job(done=6, snapshot=2, manifests="delta-2")),
        # One of before is not of it.
        ((1, 3, 4), (2, 3), job(begun=4, after=1, mark="m"), job()),
        ((3, 4), None, job(begun=4, after=3, mark="m"), job()),
        ((3, 4), None, job(done=2, snapshot=1, begun=4, after=3, mark="m"), job(done=2, snapshot=1)),
        # Some have expired, and nobody has noted what they told.
        ((3, 4), None, job(begun=4, after=1, mark="m"), job(doubted=4)),
        ((3, 4), None, job(begun=4, after=1, mark="m", doubted=9), job(doubted=9)),
        ((3, 4), None, job(begun=4, after=1, mark="m", doubted=2), job(doubted=4)),
    ],
)
def test_what_became_of_one_is_known_before_the_next_is_in_the_making(
    numbers: tuple[int, ...], own: tuple[int, int] | None, known: Caller, earlier: Caller
) -> None:
    store = table(*numbers) if own is None else table(*numbers, s=own)
    note(store, known)
    begun = begin(draft(7), state(store, 4))
    assert begun.earlier == earlier
    expected = msgspec.structs.replace(earlier, begun=7, after=4, mark=begun.mark)
    assert read_caller(store, "main", "job") == expected


@pytest.mark.parametrize("is_own", [True, False])
def test_who_gave_up_leaves_what_was_known_before(is_own: bool) -> None:
    store = table(1)
    earlier = job(begun=4, after=2, mark="old")
    mine = job(done=3, snapshot=1, begun=5, after=6, mark="mine", doubted=2, is_inherited=True)
    note(store, mine)
    gave_up(draft(5), state(store, 1), Attempt("mine" if is_own else "another", earlier))
    expected = msgspec.structs.replace(mine, begun=4, after=2, mark="old") if is_own else mine
    assert read_caller(store, "main", "job") == expected


def test_a_commit_that_stands_is_all_that_is_noted() -> None:
    store = table(1)
    note(store, job(begun=5, after=6, mark="mine", doubted=2))
    stands(draft(5), state(store, 1), document(7, "job", 5))
    assert read_caller(store, "main", "job") == job(done=5, snapshot=7, manifests="delta-7")


def test_what_expires_is_noted_first() -> None:
    """Of commits in the making what snapshots tell, of those that stand that theirs has expired."""
    store = table(1, 3, 4, s2=(2, 5))
    assert note_expiring(store, "main", [1, 2]) == []
    waiting = note(store, job(begun=5, after=1, mark="m"))
    none = note(store, Caller("none", begun=1, after=0, mark="n"))
    done = note(store, Caller("done", done=1, snapshot=3, manifests="delta-3"))
    other = note(store, Caller("stays", done=1, snapshot=4, manifests="delta-4"))
    note(store, Caller("late", begun=1, after=9, mark="l"))
    told = note_expiring(store, "main", [1, 2, 3])
    assert told == sorted([gone_path(waiting, "delta-2"), gone_path(done, "delta-3")])
    files = {info.path: store.get(info.path) for info in store.list_tree("alluvium-callers")}
    assert {path for path in files if path.endswith(".gone")} == set(told)
    seen = {path: msgspec.json.decode(data, type=Seen) for path, data in files.items() if path.endswith(".seen")}
    assert seen == {
        seen_path(waiting, "m"): Seen(0, 2, "delta-2", 5),
        seen_path(none, "n"): Seen(through=3),
    }
    # Once more it is no news; those of commits behind which others stand by now go.
    stale = gone_path(other, "delta-1")
    store.put(stale, b"")
    assert note_expiring(store, "main", [3]) == []
    assert stale not in {info.path for info in store.list_tree("alluvium-callers")}


@pytest.mark.parametrize(
    ("known", "left"),
    [
        (job(done=5, snapshot=2), job(done=5, snapshot=2)),
        # Those before it are in doubt, where no snapshot of the caller stays.
        (job(done=7, snapshot=4), job(doubted=6)),
        (job(done=7, snapshot=4, doubted=9), job(doubted=9)),
        (job(begun=8, after=2, mark="m"), job(begun=8, after=2, mark="m")),
        (job(begun=8, after=3, mark="m"), None),
        (job(doubted=3), job(doubted=3)),
        (job(done=7, snapshot=4, begun=8, after=4, mark="m"), job(doubted=6)),
    ],
)
def test_what_is_known_once_a_table_goes_back_to_its_second_snapshot(known: Caller, left: Caller | None) -> None:
    store = table(1, 2, 3)
    put(store, document(4, "job", 7))
    note(store, known)
    take_back(store, 2)
    assert [one for _, one in all_callers(store, "main")] == ([] if left is None else [left])


def test_the_newest_commit_that_stays_speaks_for_all_before_it() -> None:
    store = table(3, s1=(1, 4), s2=(2, 5), s4=(4, 7))
    note(store, job(done=7, snapshot=4, manifests="delta-4", doubted=6, is_inherited=True))
    take_back(store, 2)
    assert read_caller(store, "main", "job") == job(done=5, snapshot=2, manifests="delta-2")


def test_what_was_seen_of_numbers_that_are_given_again_is_forgotten() -> None:
    for through, stays in ((2, True), (3, False)):
        store = table(1, 2, 3)
        path = note(store, job(begun=5, after=1, mark="m"))
        store.put(seen_path(path, "m"), msgspec.json.encode(Seen(through=through)))
        take_back(store, 2)
        assert (seen_path(path, "m") in {info.path for info in store.list_tree("alluvium-callers")}) is stays


def test_a_branch_is_told_what_stood_when_it_began() -> None:
    store = table(1, 2, 3, 4, s2=(2, 5))
    note(store, job(done=5, snapshot=2, manifests="delta-2"))
    for known in (
        Caller("late", done=1, snapshot=4, manifests="delta-4"), Caller("making", begun=2, after=1, mark="m"),
        Caller("doubted", doubted=3),
    ):  # fmt: skip
        note(store, known)
    put(store, document(4, "late", 1))
    pass_on(store, "b", 3)
    told = {known.user: known for _, known in all_callers(store, "b")}
    assert told == {
        "job": job(done=5, snapshot=3, is_inherited=True),
        "late": Caller("late", doubted=0),
        "doubted": Caller("doubted", doubted=3),
    }
    found = callers_of(store, "b")
    assert found.is_complete and sorted(one.user for one in found.entries) == ["doubted", "job", "late"]
    assert not callers_of(store, "main").is_complete
    assert {one.mark for one in callers_of(store, "main").entries} == {None}


def test_the_main_branch_knows_what_one_knew_that_it_goes_on_as() -> None:
    store = table(1, 2, 3)
    old = note(store, Caller("old", begun=3, after=1, mark="m"))
    store.put(seen_path(old, "m"), msgspec.json.encode(Seen(through=2)))
    note(store, job(done=9, snapshot=3))
    told = Callers([job(done=5, snapshot=2, is_inherited=True), Caller("other", begun=4, after=1)], True)
    take_over(store, told, 2)
    assert {known.user: known for _, known in all_callers(store, "main")} == {
        "job": job(done=5, snapshot=2, is_inherited=True),
        "other": Caller("other", begun=4, after=2),
        "old": Caller("old", after=2),
    }
    assert not [info.path for info in store.list_tree("alluvium-callers") if info.path.endswith(".seen")]


def test_a_branch_that_was_told_nothing_adds_to_what_stood_before_it() -> None:
    store = table(1, s2=(2, 5))
    note(store, job(done=5, snapshot=2, manifests="delta-2", doubted=1))
    note(store, Caller("gone", done=5, snapshot=2))
    told = Callers([job(begun=6, after=3, doubted=2), Caller("new", done=1, snapshot=3)], False)
    take_over(store, told, 2)
    assert {known.user: known for _, known in all_callers(store, "main")} == {
        "job": job(done=5, snapshot=2, manifests="delta-2", begun=6, after=3, doubted=2),
        "new": Caller("new", done=1, snapshot=3),
    }


def test_files_say_no_more_than_they_must() -> None:
    assert json.loads(msgspec.json.encode(job(done=5, snapshot=2))) == {"user": "job", "done": 5, "snapshot": 2}
    assert json.loads(msgspec.json.encode(job(begun=5, is_inherited=True))) == {
        "user": "job",
        "begun": 5,
        "isInherited": True,
    }
    assert json.loads(msgspec.json.encode(Seen())) == {}
    main, branch = (caller_path(one, "a/b") for one in ("main", "b"))
    assert branch == f"branch/branch-b/{main}" and main.startswith("alluvium-callers/") and main.endswith(".json")
    assert caller_path("main", "a") != main and "/" not in main.removeprefix("alluvium-callers/")
