"""Log compactions. Specification: "Log Compaction Files"."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.delta.log.compaction import (
    choose_compactions,
    compacted,
    is_reconciled,
    may_lack_domains,
    may_lack_removes,
)
from alluvium.delta.log.names import CompactedName, commit_path, compacted_path
from alluvium.delta.log.read import read_commits
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import load_state
from alluvium.delta.terms.spec import Action, DomainMetadata, Protocol, Remove, RowIdHighWaterMark, Txn, format_actions
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.memory import MemoryStore

from .conftest import LogWriter


def info(path: str, modified_ms: int = 0) -> ObjectInfo:
    return ObjectInfo(path, 1, modified_ms)


def chosen(count: int, *ranges: tuple[int, int], first: int = 0) -> list[str]:
    commits = [info(commit_path(version)) for version in range(first, count)]
    found = choose_compactions(commits, [info(compacted_path(start, end)) for start, end in ranges])
    return [f.path.removeprefix("_delta_log/").removesuffix(".json").replace("0" * 19, "") for f in found]


def test_a_compaction_replaces_its_commits() -> None:
    """ "The compaction replaces the corresponding commits during action reconciliation" """
    assert chosen(6) == ["0", "1", "2", "3", "4", "5"]
    assert chosen(6, (1, 3)) == ["0", "1.3.compacted", "4", "5"]
    assert chosen(9, (6, 8), (1, 4)) == ["0", "1.4.compacted", "5", "6.8.compacted"]


def test_of_overlapping_ones_the_first_is_taken_and_of_equal_starts_the_longest() -> None:
    assert chosen(6, (0, 3), (2, 4)) == ["0.3.compacted", "4", "5"]
    assert chosen(6, (0, 1), (0, 3), (0, 2)) == ["0.3.compacted", "4", "5"]


def test_ranges_that_reach_beyond_the_commits_are_left_out() -> None:
    assert chosen(3, (1, 3)) == ["0", "1", "2"]
    assert chosen(4, (1, 3), first=2) == ["2", "3"]
    assert chosen(3, (1, 1)) == ["0", "1", "2"]
    assert choose_compactions([], [info(compacted_path(0, 1))]) == ()


@pytest.mark.parametrize(("written_ms", "lacks"), [(1_500, False), (1_999, False), (2_000, True), (99_000, True)])
def test_removes_older_than_the_retention_may_be_gone(written_ms: int, lacks: bool) -> None:
    commits = [info(commit_path(version), 1_000 + version) for version in range(4)]
    assert may_lack_removes([info(compacted_path(1, 3), written_ms + 1)], commits, 1_000) is lacks
    # nothing lies before version 0 that could come back
    assert not may_lack_removes([info(compacted_path(0, 3), written_ms)], commits, 1_000)


@pytest.fixture
def late(log) -> LogWriter:
    """Commits 0 to 3, of which the last removes what the first added; a compaction of 1 to 3 that says "c"."""
    log.commits(3)
    log.commit(3, [log.remove("f0")])
    log.store.put(compacted_path(1, 3), format_actions([log.add("c"), log.remove("f0")]))
    return log


def test_it_is_read_where_it_may_be(late: LogWriter) -> None:
    assert late.paths() == {"c"}
    # "For time travel" to a version within the range it does not fit
    assert late.paths(2) == {"f0", "f1", "f2"}


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"add":{"path":5}}\n', b'{"metaData":{}}\n', b'{"txn":{"appId":"a","ve']
)
def test_one_that_is_damaged_or_empty_is_passed_over(late: LogWriter, damage: bytes) -> None:
    late.store.put(compacted_path(1, 3), damage)
    assert late.paths() == {"f1", "f2"}


@pytest.mark.parametrize("repeated", ["file", "file that comes", "metadata", "txn", "domain", "protocol"])
def test_one_that_is_not_reconciled_is_passed_over(late: LogWriter, repeated: str) -> None:
    """Newest first, say: taken for a run of commits, the older of two actions would win."""
    head = late.head()
    actions: list[Action] = {
        "file": [late.remove("f0"), late.add("f0")],
        "file that comes": [late.add("x", size=2), late.add("./x".removeprefix("./"))],
        "metadata": [head[1], head[1]],
        "protocol": [head[0], head[0]],
        "txn": [Txn(app_id="a", version=2), Txn(app_id="a", version=1)],
        "domain": [DomainMetadata(domain="d", configuration=text, removed=False) for text in "ba"],
    }[repeated]
    late.store.put(compacted_path(1, 3), format_actions([*actions, late.add("c")]))
    state = late.load()
    assert set(state.files.column("path").to_pylist()) == {"f1", "f2"}
    assert (dict(state.txns), dict(state.domains)) == ({}, {})


def test_several_compactions_and_commits_in_a_row(log) -> None:
    log.commits(8)
    for start, end in ((1, 2), (3, 4), (6, 7)):
        adds = [log.add(f"c{version}") for version in range(start, end + 1)]
        log.store.put(compacted_path(start, end), format_actions([*adds, log.remove(f"f{start - 1}")]))
    assert log.paths() == {"c1", "c2", "c3", "c4", "c6", "c7"}


def test_damage_of_a_commit_is_still_told(late: LogWriter) -> None:
    late.store.put(commit_path(0), b"{")
    with pytest.raises(CorruptTable) as caught:
        late.load()
    assert caught.value.path == commit_path(0)


@pytest.mark.parametrize("where", ["before", "within"])
def test_domains_are_taken_from_the_commits(log, where: str) -> None:
    """Writers are known to leave the ends of domains out of compactions."""
    there = DomainMetadata(domain="d", configuration="1", removed=False)
    gone = DomainMetadata(domain="d", configuration="1", removed=True)
    log.commit(0, [*log.head(), *([there] if where == "before" else [])])
    log.commit(1, [*([there] if where == "within" else []), log.add("f1")])
    log.commit(2, [gone])
    log.store.put(compacted_path(1, 2), format_actions([log.add("f1")]))
    assert log.load().domains == {}
    log.checkpoint(0)
    assert log.load().domains == {}


def test_removes_are_taken_from_the_commits_where_the_compaction_is_late(late: LogWriter) -> None:
    late.commit(0, [*late.head(**{"delta.deletedFileRetentionDuration": "interval 0 days"}), late.add("f0")])
    late.store.put(compacted_path(1, 3), format_actions([late.add("f1"), late.add("f2")]))
    assert late.paths() == {"f1", "f2"}


_PATHS = st.sampled_from(["a", "b", "c"])


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[Action]], list[tuple[int, int]]]:
    log = LogWriter(MemoryStore("none", "table"))
    commits: list[list[Action]] = []
    for version in range(draw(st.integers(2, 7))):
        actions: list[Action] = log.head(n=str(version)) if version == 0 or draw(st.booleans()) else []
        for path in draw(st.lists(_PATHS, unique=True, max_size=2)):
            actions.append(draw(st.sampled_from([log.add(path), log.remove(path, at=10**13)])))
        if draw(st.booleans()):
            actions.append(Txn(app_id=draw(_PATHS), version=version))
        if draw(st.integers(0, 5)) == 0:
            actions.append(DomainMetadata(domain="d", configuration=str(version), removed=draw(st.booleans())))
        commits.append(actions)
    last = len(commits) - 1
    ends = st.tuples(st.integers(0, last), st.integers(0, last)).filter(lambda r: r[0] < r[1])
    return commits, draw(st.lists(ends, unique=True, max_size=3))


def reconciled(commits: list[list[Action]]) -> list[Action]:
    """A compaction as the reference makes it: domains that end are left out."""
    newest: dict[tuple[str, str], Action] = {}
    for action in (a for commit in commits for a in commit):
        if isinstance(action, DomainMetadata):
            newest.pop(("d", action.domain), None)
            if not action.removed:
                newest["d", action.domain] = action
        elif isinstance(action, Txn):
            newest["t", action.app_id] = action
        elif isinstance(action, Protocol):
            newest["p", ""] = action
        elif hasattr(action, "schema_string"):
            newest["m", ""] = action
        else:
            newest["f", action.path] = action  # type: ignore[union-attr]
    assert all(not isinstance(a, Remove) or a.path for a in newest.values())
    return list(newest.values())


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_version_is_the_same_with_and_without(history: tuple[list[list[Action]], list[tuple[int, int]]]) -> None:
    commits, ranges = history
    plain, both = (LogWriter(MemoryStore(uuid.uuid4().hex, "table")) for _ in range(2))
    for version, actions in enumerate(commits):
        # An empty commit would count as damage.
        plain.commit(version, actions or [Txn(app_id="x", version=1)])
        both.commit(version, actions or [Txn(app_id="x", version=1)])
    for start, end in ranges:
        data = format_actions(reconciled([c or [Txn(app_id="x", version=1)] for c in commits[start : end + 1]]))
        both.store.put(compacted_path(start, end), data)
    for version in range(len(commits)):
        expected, found = plain.load(version), both.load(version)
        for name in ("files", "tombstones"):
            paths = [sorted(getattr(state, name)["path"].to_pylist()) for state in (expected, found)]
            assert paths[0] == paths[1], name
        assert expected.metadata == found.metadata
        assert dict(expected.txns) == dict(found.txns)
        assert dict(expected.domains) == dict(found.domains)


def test_what_compactions_may_lack_of_before() -> None:
    commits = [info(commit_path(version)) for version in range(6)]
    early, later = info(compacted_path(0, 2)), info(compacted_path(3, 5))
    assert compacted([commits[0], early, commits[3], later]) == [
        (early, CompactedName(0, 2)),
        (later, CompactedName(3, 5)),
    ]
    assert (
        not may_lack_domains(commits) and not may_lack_domains([early, *commits]) and may_lack_domains([early, later])
    )
    assert may_lack_domains([info(compacted_path(1, 2))])


def test_a_compaction_of_commits_of_which_the_first_has_no_time() -> None:
    """Then it is as old as can be."""
    late = info(compacted_path(2, 3), 1_000)
    assert may_lack_removes([late], [info(commit_path(3), 900)], 1_000)
    assert not may_lack_removes([late], [info(commit_path(2), 900)], 1_000)
    assert may_lack_removes([info(compacted_path(0, 1), 10**9), late], [info(commit_path(2), 0)], 1_000)


def test_one_thing_is_said_of_each(log) -> None:
    protocol, metadata = log.head()
    mark = RowIdHighWaterMark(high_water_mark=3)
    txns = [Txn(app_id=name, version=1) for name in "ab"]
    domains = [DomainMetadata(domain=name, configuration="", removed=name == "b") for name in "ab"]
    files = [log.add("x"), log.add("x", "v"), log.remove("y"), log.remove("y", "w"), log.add("z")]
    every: list[Action] = [protocol, metadata, mark, *txns, *domains, *files]

    def said(actions: list[Action]) -> bool:
        log.store.put(compacted_path(0, 1), format_actions(actions))
        return is_reconciled(read_commits(log.store, [log.store.head(compacted_path(0, 1))]))

    assert said(every) and said(files) and said([protocol]) and said([metadata, mark])
    for action in every:
        assert said([other for other in every if other is not action])
        assert not said([*every, action])
    assert not said([*every, log.remove("x")]) and not said([*every, log.add("y", "w")])
    assert not said([*txns, Txn(app_id="a", version=9)])


@pytest.mark.parametrize("text", ["interval 7 days", "no interval"])
def test_where_the_retention_makes_no_sense_the_commits_are_read(log, text: str) -> None:
    log.commit(0, log.head(**{"delta.deletedFileRetentionDuration": text}))
    log.commit(1, [log.add("a")])
    log.commit(2, [log.add("b")])
    log.store.put(compacted_path(1, 2), format_actions([log.add("c")]))
    assert log.paths() == ({"c"} if text == "interval 7 days" else {"a", "b"})


def test_without_a_description_before_it_a_compaction_is_not_read(log) -> None:
    log.commit(0, [log.head()[0]])
    log.commit(1, [log.head()[1], log.add("a")])
    log.commit(2, [log.add("b")])
    log.store.put(compacted_path(1, 2), format_actions([log.add("c")]))
    assert log.paths() == {"a", "b"}


def test_one_that_goes_away_meanwhile_is_passed_over(late: LogWriter) -> None:
    segment = list_segment(late.store)
    late.store.delete(compacted_path(1, 3))
    assert set(load_state(late.store, segment, lambda protocol: None).files["path"].to_pylist()) == {"f1", "f2"}
    # A commit that is gone nobody stands for.
    late.store.delete(commit_path(0))
    with pytest.raises(NotFound) as caught:
        load_state(late.store, segment, lambda protocol: None)
    assert caught.value.path == commit_path(0)


def test_commits_beside_it_may_say_several_things_of_one_file(log) -> None:
    log.commit(0, [*log.head(), log.add("a"), log.add("b")])
    log.commit(1, [log.remove("a"), log.add("b", size=7), *log.head(n="1")])
    for version in (2, 3):
        log.commit(version, [log.add(f"f{version}")])
    log.store.put(compacted_path(2, 3), format_actions([log.add("c")]))
    log.commit(4, [log.add("c", size=9)])
    state = log.load()
    assert dict(zip(state.files["path"].to_pylist(), state.files["size"].to_pylist(), strict=True)) == {"b": 7, "c": 9}
    assert state.metadata.configuration == {"n": "1"}
