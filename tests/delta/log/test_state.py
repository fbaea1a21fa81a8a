from __future__ import annotations

import pytest

from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import advance, apply_commits, load_state
from alluvium.delta.terms.spec import FILES, TOMBSTONES, DomainMetadata, Protocol, RowIdHighWaterMark, Txn
from alluvium.errors import CorruptTable, UnsupportedFeature


def open_gate(protocol: Protocol) -> None:
    pass


def shut_gate(protocol: Protocol) -> None:
    if protocol.min_reader_version > 1:
        raise UnsupportedFeature("newer", features=("x",))


def test_an_empty_table(log) -> None:
    log.commit(0, log.head())
    state = log.load()
    assert state.files.schema == FILES
    assert state.tombstones.schema == TOMBSTONES
    assert (state.version, state.files.num_rows, state.tombstones.num_rows) == (0, 0, 0)


def test_the_latest_of_each_wins(log) -> None:
    """ "The latest `protocol` action seen wins. The latest `metaData` action seen wins." and so on"""
    log.commit(0, [*log.head(a="1"), Txn(app_id="x", version=9), Txn(app_id="y", version=1)])
    log.commit(
        1,
        [
            Protocol(min_reader_version=2, min_writer_version=5),
            Txn(app_id="x", version=3),
            DomainMetadata(domain="d", configuration="1", removed=False),
            DomainMetadata(domain="e", configuration="1", removed=False),
            RowIdHighWaterMark(high_water_mark=5, preserved_row_ids=True),
        ],
    )
    log.commit(2, [log.head(a="2")[1], DomainMetadata(domain="d", configuration="1", removed=True)])
    state = log.load()
    assert state.protocol.min_reader_version == 2
    assert state.metadata.configuration == {"a": "2"}
    # "it would be valid for the `version` to decrease"
    assert {name: txn.version for name, txn in state.txns.items()} == {"x": 3, "y": 1}
    # "Snapshot reads do _not_ return removed `domainMetadata` actions."
    assert set(state.domains) == {"e"}
    assert state.row_id_high_water_mark == RowIdHighWaterMark(high_water_mark=5, preserved_row_ids=True)
    assert set(log.load(1).domains) == {"d", "e"}


@pytest.mark.parametrize(("position", "code"), [(1, "no-protocol"), (0, "no-metadata")])
def test_no_protocol_or_no_metadata(log, position: int, code: str) -> None:
    """ "The first version of a table must contain a `metaData` action." """
    log.commit(0, [log.head()[position]])
    with pytest.raises(CorruptTable) as caught:
        log.load()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "damage",
    [
        b'{"add":{"path":"x"',
        b'{"add":{"path":5}}\n',
        b'{"txn":\n{"appId":"a","version":1}}\n',
        b'{"txn":{"appId":"a","version":1}} {"txn":{"appId":"b","version":1}}\n',
        b"garbage\n",
    ],
)
def test_a_damaged_commit_is_named(log, damage: bytes) -> None:
    log.commits(2)
    log.store.put(commit_path(2), b'{"txn":{"appId":"a","version":1}}\n\n' + damage)
    log.commit(3, [log.add("z")])
    with pytest.raises(CorruptTable) as caught:
        log.load()
    assert caught.value.code == "damaged-line"
    assert (caught.value.path, caught.value.version) == (commit_path(2), 2)
    assert "line 3" in caught.value.message
    assert log.paths(1) == {"f0", "f1"}


def test_a_damaged_line_of_a_large_commit_is_named(log) -> None:
    log.commit(0, log.head())
    line = b'{"add":{"path":"p%07d","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n'
    lines = [line % n for n in range(30_000)]
    log.store.put(commit_path(1), b"".join(lines))
    assert log.load().files.num_rows == 30_000
    lines[25_000] = b'{"add":{}}\n'
    log.store.put(commit_path(1), b"".join(lines))
    with pytest.raises(CorruptTable, match="line 25001 "):
        log.load()


def test_an_empty_commit_is_a_version_without_actions(log) -> None:
    """ "A Delta file [...] contains an atomic set of actions": the empty set too. So does delta-spark 4.4 (measured)."""
    log.commits(2)
    log.store.put(commit_path(2), b"")
    log.commit(3, [log.add("f3")])
    with pytest.warns(UserWarning, match="2.json is empty"):
        assert log.paths() == {"f0", "f1", "f3"}


def test_a_first_commit_that_is_empty_is_no_table(log) -> None:
    log.store.put(commit_path(0), b"")
    with pytest.warns(UserWarning, match="is empty"), pytest.raises(CorruptTable) as caught:
        log.load()
    assert caught.value.code == "no-protocol"


def test_a_byte_order_mark_is_ignored(log) -> None:
    log.commits(2)
    log.store.put(commit_path(1), b"\xef\xbb\xbf" + log.store.get(commit_path(1)))
    assert log.paths() == {"f0", "f1"}


def test_lines_may_end_as_they_like(log) -> None:
    log.commits(1)
    log.store.put(
        commit_path(1),
        b'\n  \r\n{"txn":{"appId":"a","version":1}}\r\n\n{"unknownAction":{"x":[1]}}\n'
        b'{"txn":{"appId":"b","version":2}}',
    )
    log.commit(2, [log.add("g")])
    assert set(log.load().txns) == {"a", "b"}
    assert log.paths() == {"f0", "g"}


def test_metadata_that_was_replaced_need_not_be_whole(log) -> None:
    log.store.put(
        commit_path(0),
        b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
        b'{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"partitionColumns":[],"configuration":{}}}\n',
    )
    with pytest.raises(CorruptTable, match=r"line 2 .*schemaString"):
        log.load()
    log.commit(1, log.head()[1:])
    assert log.load().metadata.id == "t"


def test_the_protocol_is_judged_before_anything_is_interpreted(log) -> None:
    """ "an error should be thrown instructing the user to upgrade" """
    log.commits(1)
    log.store.put(commit_path(1), b'{"add":{"path":["a form of the future"]}}\n')
    log.commit(2, [Protocol(min_reader_version=3, min_writer_version=7, reader_features=(), writer_features=())])
    with pytest.raises(UnsupportedFeature):
        load_state(log.store, list_segment(log.store), shut_gate)
    with pytest.raises(CorruptTable):
        load_state(log.store, list_segment(log.store), open_gate)


def test_the_protocol_of_a_damaged_commit_is_found(log) -> None:
    log.commits(1)
    log.store.put(commit_path(1), b'{"add":{"path":5}}\n{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}\n')
    with pytest.raises(UnsupportedFeature):
        load_state(log.store, list_segment(log.store), shut_gate)


@pytest.mark.parametrize("damage", [b"not parquet at all", b"PAR1xxxxPAR1", None])
def test_a_damaged_checkpoint_is_passed_over(log, damage: bytes | None) -> None:
    log.commits(6)
    log.checkpoint(2)
    log.checkpoint(4)
    whole = log.store.get(checkpoint_paths(4)[0])
    log.store.put(
        checkpoint_paths(4)[0], whole[: len(whole) // 2] + bytes(99) + whole[-9:] if damage is None else damage
    )
    with pytest.warns(UserWarning, match=r"version 5 .* was read without .*0004\.checkpoint"):
        state = log.load()
    assert state.segment.checkpoint_version == 2
    assert state.files.num_rows == 6
    log.store.put(checkpoint_paths(2)[0], b"also damaged")
    with pytest.warns(UserWarning, match=r"0002\.checkpoint"):
        assert log.load().segment.checkpoint_version is None
    log.store.delete(commit_path(0))
    with pytest.raises(CorruptTable) as caught:
        log.load()
    assert caught.value.code == "damaged-checkpoint"
    assert caught.value.path in (checkpoint_paths(2)[0], checkpoint_paths(4)[0])


def test_advance_reads_only_what_is_new(log) -> None:
    log.commits(3)
    state = log.load()
    assert advance(log.store, state.segment, state, open_gate) == (state.segment, state)
    log.store.put(commit_path(1), b"damaged since, and not read again")
    log.commit(3, [log.add("g"), log.remove("f1"), Txn(app_id="a", version=1)])
    log.commit(4, [log.add("h")])
    segment, newer = advance(log.store, state.segment, state, open_gate)
    assert (segment.version, newer.version, newer.segment) == (4, 4, segment)
    assert set(newer.files.column("path").to_pylist()) == {"f0", "f2", "g", "h"}
    assert newer.tombstones.column("path").to_pylist() == ["f1"]
    assert set(newer.txns) == {"a"}
    assert state.files.num_rows == 3


def test_advance_judges_a_new_protocol(log) -> None:
    log.commits(1)
    state = log.load()
    log.commit(1, [Protocol(min_reader_version=2, min_writer_version=5)])
    with pytest.raises(UnsupportedFeature):
        advance(log.store, state.segment, state, shut_gate)


def test_advance_over_commits_that_were_cleaned_up(log) -> None:
    log.commits(2)
    state = log.load()
    log.commits(6)
    log.checkpoint(4)
    for version in range(4):
        log.store.delete(commit_path(version))
    segment, newer = advance(log.store, state.segment, state, open_gate)
    assert (segment.checkpoint_version, newer.files.num_rows) == (4, 6)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_advance_does_not_mix_two_tables(log, count: int) -> None:
    """A table that was dropped and made anew has commits of the same names."""
    log.commits(3)
    state = log.load()
    log.store.delete_tree("_delta_log")
    for version in range(count):
        log.commit(version, [*(log.head() if version == 0 else []), log.add(f"g{version}")])
    segment, newer = advance(log.store, state.segment, state, open_gate)
    assert (segment.version, newer.version) == (count - 1, count - 1)
    assert set(newer.files.column("path").to_pylist()) == {f"g{version}" for version in range(count)}


def test_advance_from_a_checkpoint_alone(log) -> None:
    log.commits(3)
    log.checkpoint(2)
    state = log.load()
    assert state.segment.commits == ()
    log.commit(3, [log.add("g")])
    log.store.delete(commit_path(0))
    log.store.put(commit_path(1), b"damaged since, and not read again")
    _, newer = advance(log.store, state.segment, state, open_gate)
    assert (newer.version, newer.files.num_rows) == (3, 4)
    assert newer.segment.checkpoint == state.segment.checkpoint


def test_commits_must_follow_the_state(log) -> None:
    log.commits(4)
    state = log.load(0)
    with pytest.raises(CorruptTable) as caught:
        apply_commits(state, log.store, list_segment(log.store).commits[2:], open_gate)
    assert (caught.value.code, caught.value.version, caught.value.path) == ("gap-in-log", 1, commit_path(1))
    assert apply_commits(state, log.store, (), open_gate) is state


@pytest.mark.long
def test_many_refreshes_do_not_splinter_the_files(log) -> None:
    log.commits(1)
    state = log.load()
    for version in range(1, 300):
        log.commit(version, [log.add(f"g{version}")])
        _, state = advance(log.store, state.segment, state, open_gate)
    assert state.files.num_rows == 300
    assert state.files.column("path").num_chunks < 100


def test_a_state_that_commits_follow(log) -> None:
    """What it is read from grows by them, and what they do not speak of stays."""
    mark, domain = RowIdHighWaterMark(high_water_mark=4), DomainMetadata(domain="d", configuration="1", removed=False)
    log.commit(0, [*log.head(a="1"), log.add("f"), Txn(app_id="x", version=1), domain, mark])
    log.commit(1, [log.add("g")])
    state = log.load()
    log.commit(2, [Txn(app_id="y", version=2), log.remove("f", at=7)])
    log.commit(3, [DomainMetadata(domain="d", configuration="", removed=True), RowIdHighWaterMark(high_water_mark=9)])
    log.commit(4, [log.head(a="2")[1]])
    commits = list_segment(log.store).commits
    newer = apply_commits(state, log.store, commits[2:], open_gate)
    assert (newer.version, newer.segment.commits, newer.segment.last) == (4, commits, commits[4])
    assert newer.segment.timestamp_ms == commits[4].modified_ms and newer.protocol == state.protocol
    assert {name: txn.version for name, txn in newer.txns.items()} == {"x": 1, "y": 2} and dict(newer.domains) == {}
    assert newer.row_id_high_water_mark == RowIdHighWaterMark(high_water_mark=9)
    assert newer.metadata.configuration == {"a": "2"} and newer.files["path"].to_pylist() == ["g"]
    assert newer.tombstones["path"].to_pylist() == ["f"] and dict(state.domains) == {"d": domain}
    whole = log.load()
    for name in ("protocol", "metadata", "txns", "domains", "row_id_high_water_mark", "segment"):
        assert getattr(newer, name) == getattr(whole, name), name


def test_each_damaged_checkpoint_that_was_passed_over_is_told_of(log) -> None:
    log.commits(6)
    for version in (2, 4):
        log.checkpoint(version)
    for version in (2, 4):
        log.store.put(checkpoint_paths(version)[0], b"damaged")
    with pytest.warns(UserWarning, match="was read without") as caught:
        state = log.load()
    assert state.segment.checkpoint_version is None and state.files.num_rows == 6
    told = [str(one.message) for one in caught]
    assert [path for text in told for path in (checkpoint_paths(4)[0], checkpoint_paths(2)[0]) if path in text] == [
        checkpoint_paths(4)[0], checkpoint_paths(2)[0]
    ]  # fmt: skip
    assert all(text.startswith(f"version 5 of {log.store.url} was read without ") for text in told)


def test_without_protocol_or_metadata_the_log_says_what_is_missing(log) -> None:
    log.commit(0, [log.head()[0]])
    with pytest.raises(CorruptTable, match="up to version 0 holds no metaData action") as caught:
        log.load()
    assert (caught.value.code, caught.value.version) == ("no-metadata", 0)
    log.commit(0, [log.head()[1]])
    with pytest.raises(CorruptTable, match="up to version 0 holds no protocol action"):
        log.load()
    # Another commit may bring what the first one lacks.
    log.commit(1, [log.head()[0]])
    assert log.load().version == 1
