"""Version checksums: figures to check the state of a version against, and to write beside a commit. Pure.

Specification: "Version Checksum File". Only a check-up reads them, see `docs/decisions/0008`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import string_column
from alluvium.delta.log.columns import deletion_vector_column
from alluvium.delta.log.replay import logical_file_keys
from alluvium.delta.log.state import LogState
from alluvium.delta.terms.spec import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Long,
    Metadata,
    Protocol,
    Remove,
    Txn,
    Wire,
    known_metadata,
)
from alluvium.errors import DECODE_ERRORS, CorruptTable


class Checksum(Wire, frozen=True, kw_only=True):
    """Content of `n.crc`, as far as it is checked. Specification: "Version Checksum File Schema"."""

    table_size_bytes: Long
    num_files: Long
    num_metadata: Long
    num_protocol: Long
    set_transactions: tuple[Txn, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    num_deleted_records_opt: Long | None = None
    num_deletion_vectors_opt: Long | None = None
    txn_id: str | None = None
    in_commit_timestamp_opt: Long | None = None


_CHECKSUMS = msgspec.json.Decoder(Checksum)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A figure that differs: what it is of, as the checksum has it, as the log has it."""

    of: str
    recorded: object
    found: object


def parse_checksum(data: bytes, path: str, version: int) -> Checksum:
    """Reads a checksum file.

    Raises:
        CorruptTable: It is damaged (`damaged-checksum`).
    """
    try:
        return _CHECKSUMS.decode(data)
    except DECODE_ERRORS as error:
        raise CorruptTable(
            f"the version checksum is damaged: {error}", code="damaged-checksum", path=path, version=version
        ) from None


def check_checksum(state: LogState, checksum: Checksum) -> tuple[Discrepancy, ...]:
    """What the checksum of a version says otherwise than its log.

    "If any discrepancy is found between computed and recorded values, the table state at that version should be
    considered potentially corrupted." Fields that a writer left out are not checked.
    """
    return tuple(
        Discrepancy(of, recorded, found)
        for of, recorded, compute in _figures(checksum)
        if recorded is not None and (found := compute(state)) != recorded
    )


def checksum_after(state: LogState | None, actions: Iterable[Action]) -> Checksum | None:
    """The checksum of the version that a commit of ours made out of a state.

    It is reckoned on from the state's figures: live files that the commit names, be it to remove or to describe them
    anew, count no longer, and what it adds counts.

    Args:
        state: The version before; None: the commit creates the table.
        actions: Of the commit.

    Returns:
        None where the figures cannot be told: the state lacks files (`LogState.deferred`).
    """
    if state is not None and state.deferred:
        return None
    protocol, metadata = (None, None) if state is None else (state.protocol, state.metadata)
    txns = {} if state is None else dict(state.txns)
    domains = {} if state is None else dict(state.domains)
    tally = _Tally() if state is None else _Tally.of(state)
    named: list[Add | Remove] = []
    info = CommitInfo({})
    for action in actions:
        if isinstance(action, Protocol):
            protocol = action
        elif isinstance(action, Metadata):
            metadata = action
        elif isinstance(action, Txn):
            txns[action.app_id] = action
        elif isinstance(action, DomainMetadata):
            domains[action.domain] = action
        elif isinstance(action, CommitInfo):
            info = action
        elif isinstance(action, (Add, Remove)):
            named.append(action)
            if isinstance(action, Add):
                tally.count(action)
    if state is not None:
        tally.leave_out(_live_among(state, named))
    if protocol is None or metadata is None:
        return None
    with_vectors = "deletionVectors" in (protocol.writer_features or ())
    txn_id, timestamp = info.content.get("txnId"), info.content.get("inCommitTimestamp")
    return Checksum(
        table_size_bytes=tally.size,
        num_files=tally.files,
        num_metadata=1,
        num_protocol=1,
        set_transactions=tuple(txns.values()),
        # "Live Domain Metadata actions at this version, excluding tombstones"
        domain_metadata=tuple(domain for domain in domains.values() if not domain.removed),
        metadata=known_metadata(metadata),
        protocol=protocol,
        num_deleted_records_opt=tally.deleted if with_vectors else None,
        num_deletion_vectors_opt=tally.vectors if with_vectors else None,
        txn_id=txn_id if isinstance(txn_id, str) else None,
        in_commit_timestamp_opt=timestamp if isinstance(timestamp, int) else None,
    )


@dataclass(slots=True)
class _Tally:
    """What is counted of live files."""

    files: int = 0
    size: int = 0
    vectors: int = 0
    deleted: int = 0

    @classmethod
    def of(cls, state: LogState) -> _Tally:
        files = state.files
        return cls(files.num_rows, _count_bytes(files), _count_vectors(files), _count_deleted(files))

    def count(self, file: Add) -> None:
        self.files += 1
        self.size += file.size
        if file.deletion_vector is not None:
            self.vectors += 1
            self.deleted += file.deletion_vector.cardinality

    def leave_out(self, files: pa.Table) -> None:
        self.files -= files.num_rows
        self.size -= _count_bytes(files)
        self.vectors -= _count_vectors(files)
        self.deleted -= _count_deleted(files)


def _live_among(state: LogState, named: Sequence[Add | Remove]) -> pa.Table:
    """The live files that actions of a commit name.

    "keep only the newest reference for each logical file": a file that is added again, as row tracking does to number
    the rows of older files, is no second one.
    """
    files = state.files
    if not named or not files.num_rows:
        return files.slice(0, 0)
    keys = logical_file_keys(
        pa.record_batch(
            {
                "path": string_column([action.path for action in named]),
                "deletionVector": deletion_vector_column([action.deletion_vector for action in named]),
            }
        )
    )
    live = pa.chunked_array([logical_file_keys(batch) for batch in files.to_batches()], pa.string())
    return files.filter(pc.is_in(live, value_set=keys))


def _figures(checksum: Checksum) -> Iterator[tuple[str, object, Callable[[LogState], object]]]:
    yield "numFiles", checksum.num_files, lambda state: state.files.num_rows
    yield "tableSizeBytes", checksum.table_size_bytes, lambda state: _count_bytes(state.files)
    yield "numMetadata", checksum.num_metadata, lambda state: 1
    yield "numProtocol", checksum.num_protocol, lambda state: 1
    yield "metadata", _plain(checksum.metadata), lambda state: _plain(state.metadata)
    yield "protocol", _plain(checksum.protocol), lambda state: _plain(state.protocol)
    yield "setTransactions", _by_name(checksum.set_transactions), lambda state: _by_name(tuple(state.txns.values()))
    yield "domainMetadata", _by_name(checksum.domain_metadata), lambda state: _by_name(tuple(state.domains.values()))
    yield "numDeletionVectorsOpt", checksum.num_deletion_vectors_opt, lambda state: _count_vectors(state.files)
    yield "numDeletedRecordsOpt", checksum.num_deleted_records_opt, lambda state: _count_deleted(state.files)


def _plain(document: Metadata | Protocol | None) -> object:
    """Feature lists are sets; a protocol names them in any order."""
    if isinstance(document, Protocol):
        lists = (document.reader_features, document.writer_features)
        return (document.min_reader_version, document.min_writer_version, *(f and frozenset(f) for f in lists))
    return document and known_metadata(document)


def _by_name(actions: tuple[Txn, ...] | tuple[DomainMetadata, ...] | None) -> dict[str, object] | None:
    if actions is None:
        return None
    return {a.app_id: a.version for a in actions if isinstance(a, Txn)} | {
        a.domain: a.configuration for a in actions if isinstance(a, DomainMetadata) and not a.removed
    }


def _count_bytes(files: pa.Table) -> int:
    return int(pc.sum(files.column("size")).as_py() or 0)


def _count_vectors(files: pa.Table) -> int:
    vectors = files.column("deletionVector")
    return int(len(vectors) - vectors.null_count)


def _count_deleted(files: pa.Table) -> int:
    return int(pc.sum(pc.struct_field(files.column("deletionVector"), ["cardinality"])).as_py() or 0)
