"""Version checksums. Specification: "Version Checksum File"."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from alluvium.delta.log.checksum import Checksum, check_checksum, checksum_after, parse_checksum
from alluvium.delta.terms.spec import CommitInfo, DomainMetadata, Protocol, Remove, Txn
from alluvium.errors import CorruptTable
from alluvium.storage.store import ObjectInfo


@pytest.fixture
def state(log):
    features = ("deletionVectors", "v2Checkpoint")
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    log.commit(
        0,
        [
            protocol, log.head()[1], log.add("a"), log.add("b", vector="v"), Txn(app_id="x", version=3, last_updated=9),
            DomainMetadata(domain="d", configuration="1", removed=False),
        ],
    )  # fmt: skip
    return log.load()


def right(state, **changes: object) -> Checksum:
    swapped = Protocol(
        min_reader_version=3, min_writer_version=7,
        reader_features=("v2Checkpoint", "deletionVectors"), writer_features=("v2Checkpoint", "deletionVectors"),
    )  # fmt: skip
    found = Checksum(
        table_size_bytes=2, num_files=2, num_metadata=1, num_protocol=1, metadata=state.metadata, protocol=swapped,
        set_transactions=(Txn(app_id="x", version=3),),
        domain_metadata=(DomainMetadata(domain="d", configuration="1", removed=False),),
        num_deletion_vectors_opt=1, num_deleted_records_opt=1,
    )  # fmt: skip
    return msgspec.structs.replace(found, **changes)


def test_a_checksum_that_agrees(state) -> None:
    assert check_checksum(state, right(state)) == ()


def test_what_a_writer_left_out_is_not_checked(state) -> None:
    assert check_checksum(state, Checksum(table_size_bytes=2, num_files=2, num_metadata=1, num_protocol=1)) == ()


@pytest.mark.parametrize(
    ("of", "changes"),
    [
        ("numFiles", {"num_files": 3}),
        ("tableSizeBytes", {"table_size_bytes": 1}),
        ("numMetadata", {"num_metadata": 2}),
        ("numProtocol", {"num_protocol": 0}),
        ("protocol", {"protocol": Protocol(min_reader_version=1, min_writer_version=2)}),
        ("setTransactions", {"set_transactions": (Txn(app_id="x", version=4),)}),
        ("setTransactions", {"set_transactions": ()}),
        ("domainMetadata", {"domain_metadata": ()}),
        ("numDeletionVectorsOpt", {"num_deletion_vectors_opt": 0}),
        ("numDeletedRecordsOpt", {"num_deleted_records_opt": 2}),
    ],
)
def test_every_figure_is_compared(state, of: str, changes: dict[str, object]) -> None:
    """ "readers SHOULD verify all required fields match computed values" """
    assert [problem.of for problem in check_checksum(state, right(state, **changes))] == [of]


def test_other_metadata(state) -> None:
    other = msgspec.structs.replace(state.metadata, configuration={"delta.appendOnly": "true"})
    (problem,) = check_checksum(state, right(state, metadata=other))
    assert (problem.of, problem.recorded, problem.found) == ("metadata", other, state.metadata)


def test_it_is_parsed() -> None:
    data = b'{"txnId":"x","tableSizeBytes":5,"numFiles":1,"numMetadata":1,"numProtocol":1,"histogramOpt":{"a":[1]}}'
    assert parse_checksum(data, "p", 0) == Checksum(
        table_size_bytes=5, num_files=1, num_metadata=1, num_protocol=1, txn_id="x"
    )  # fmt: skip


def test_what_a_writer_says_of_its_commit_agrees_with_the_log(log) -> None:
    """ "Writers MUST ensure all metrics in the Version Checksum accurately reflect table state after Action
    Reconciliation" """
    features = ("deletionVectors",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    domain = DomainMetadata(domain="d", configuration="1", removed=False)
    commits = [
        [CommitInfo({"txnId": "me", "inCommitTimestamp": 7}), protocol, log.head()[1], log.add("a"), log.add("b", "v")],
        [Txn(app_id="x", version=3), domain, sized(log.remove("b", "v")), log.add("b", "w"), log.add("c")],
        [sized(log.remove("a")), msgspec.structs.replace(domain, removed=True), Txn(app_id="x", version=4)],
    ]
    before = None
    for version, actions in enumerate(commits):
        checksum = checksum_after(before, actions)
        log.commit(version, actions)
        before = log.load()
        assert checksum is not None
        assert check_checksum(before, checksum) == ()
        assert (checksum.metadata, checksum.protocol) == (before.metadata, before.protocol)
        assert (checksum.txn_id, checksum.in_commit_timestamp_opt) == (("me", 7) if version == 0 else (None, None))
    assert (checksum.num_files, checksum.num_deletion_vectors_opt, checksum.domain_metadata) == (2, 1, ())


def test_files_that_are_committed_again_count_once(log) -> None:
    """ "keep only the newest reference for each logical file": a path of the same vector is the same file, however the
    path is spelled, and one without a remove, too."""
    features = ("deletionVectors",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    log.commit(0, [protocol, log.head()[1], log.add("a b", size=5), log.add("b", "v", size=7), log.add("c", size=11)])
    before = log.load()
    again = [log.add("a%20b", size=5), log.add("b", "v", size=7)]
    other = [log.remove("c"), log.add("c", "w", size=11), log.add("d", size=13)]
    checksum = checksum_after(before, [*again, *other])
    log.commit(1, [*again, *other])
    assert checksum is not None
    assert check_checksum(log.load(), checksum) == ()
    assert (checksum.num_files, checksum.table_size_bytes) == (4, 36)
    assert (checksum.num_deletion_vectors_opt, checksum.num_deleted_records_opt) == (2, 2)


def test_a_removed_file_counts_as_it_was_added(log) -> None:
    """What a remove says of the size is optional, and of a file that was not live it changes nothing."""
    log.commits(2)
    before = log.load()
    actions = [log.remove("f0"), sized(log.remove("elsewhere"))]
    checksum = checksum_after(before, actions)
    log.commit(2, actions)
    assert checksum is not None
    assert check_checksum(log.load(), checksum) == ()


def test_of_a_state_that_lacks_files_there_is_none(log) -> None:
    log.commits(1)
    state = dataclasses.replace(log.load(), deferred=(ObjectInfo("_delta_log/x.checkpoint.parquet", 1, 0),))
    assert checksum_after(state, [log.add("b")]) is None


def sized(remove: Remove) -> Remove:
    return msgspec.structs.replace(remove, size=1)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"numFiles":1}', b'{"tableSizeBytes":"5"}', b"\xff"])
def test_a_damaged_one(data: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_checksum(data, "_delta_log/n.crc", 7)
    assert (caught.value.code, caught.value.path, caught.value.version) == ("damaged-checksum", "_delta_log/n.crc", 7)


def test_of_a_table_without_vectors_nothing_is_said_of_them(log) -> None:
    log.commit(0, [*log.head(), log.add("a", size=3), log.add("b", vector="v")])
    for before in (None, log.load()):
        found = checksum_after(before, [*log.head(), log.add("c", size=5), log.add("d", vector="w")])
        assert found is not None
        assert (found.num_deleted_records_opt, found.num_deletion_vectors_opt) == (None, None)
        count = 2 if before is None else 4
        assert (found.num_files, found.table_size_bytes) == (count, 6 + (count == 4) * 4)
        assert (found.num_metadata, found.num_protocol) == (1, 1)


@pytest.mark.parametrize("missing", [0, 1])
def test_without_protocol_or_description_there_is_none(log, missing: int) -> None:
    actions = log.head()
    del actions[missing]
    assert checksum_after(None, [*actions, log.add("a")]) is None


@pytest.mark.parametrize(
    ("info", "txn_id", "timestamp"),
    [
        ({"txnId": "x", "inCommitTimestamp": 7}, "x", 7), ({}, None, None), ({"txnId": 7, "inCommitTimestamp": "x"}, None, None),
        ({"txnId": None, "inCommitTimestamp": 0}, None, 0),
    ],
)  # fmt: skip
def test_what_a_commit_says_of_itself(log, info: dict[str, object], txn_id: str | None, timestamp: int | None) -> None:
    found = checksum_after(None, [CommitInfo(info), *log.head()])
    assert found is not None and (found.txn_id, found.in_commit_timestamp_opt) == (txn_id, timestamp)


def test_what_replaces_what_was_there(log) -> None:
    """Domains that end are no longer there; of transactions and descriptions the newest counts."""
    domains = [DomainMetadata(domain=name, configuration="1", removed=False) for name in "de"]
    log.commit(0, [*log.head(a="1"), Txn(app_id="x", version=1), Txn(app_id="y", version=2), *domains])
    ended = DomainMetadata(domain="d", configuration="", removed=True)
    protocol, metadata = Protocol(min_reader_version=1, min_writer_version=4), log.head(a="2")[1]
    found = checksum_after(log.load(), [Txn(app_id="x", version=9), ended, protocol, metadata])
    assert found is not None
    assert found.set_transactions == (Txn(app_id="x", version=9), Txn(app_id="y", version=2))
    assert (found.domain_metadata, found.protocol, found.metadata) == ((domains[1],), protocol, metadata)
    kept = checksum_after(log.load(), [])
    assert kept is not None and (kept.domain_metadata, kept.metadata) == (tuple(domains), log.load().metadata)
