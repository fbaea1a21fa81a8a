"""Which live files are gone for certain, or their deletion vectors.

Unknown is unknown: only "not found" counts, and only where it is answered twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.delta.upkeep.vacuum.files import vector_paths
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import AlluviumError, NotFound
from alluvium.storage.elsewhere import Mounts
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute, split_file
from alluvium.storage.progress import counting
from alluvium.storage.store import LISTED, Store

#: What FSCK REPAIR TABLE answers, as Databricks names it.
REPORT = pa.schema(
    [
        pa.field("dataFilePath", pa.string(), nullable=False),
        pa.field("dataFileMissing", pa.bool_(), nullable=False),
        pa.field("deletionVectorPath", pa.string()),
        pa.field("deletionVectorFileMissing", pa.bool_(), nullable=False),
    ]
)
#: Files that are looked up one by one; for more, a listing says first which to look for.
_FEW = 500


class _Seen(Enum):
    THERE = "there"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Missing:
    """What is gone.

    Attributes:
        files: Live files that cannot be read any more, schema `FILES`.
        report: One row each, schema `REPORT`.
        unknown: Files of which nobody can say.
    """

    files: pa.Table
    report: pa.Table
    unknown: tuple[Finding, ...]


def find_missing(snapshot: Snapshot, among: pa.Array | None = None) -> Missing:
    """Looks for live files and their vectors.

    A listing says only where to look: each file that it lacks is asked for twice, once among the others and once
    behind all of them. What fails otherwise, as for want of a permission, leaves the file where it is.

    Args:
        snapshot: The version.
        among: Paths, as the log has them, of the files to look for; None: all.
    """
    files = snapshot.files
    if among is not None:
        files = files.filter(pc.is_in(files.column("path"), value_set=among))
    data = data_paths(files).combine_chunks()
    vectors = vector_paths(vectors_of(files), snapshot.store.url)
    wanted = pc.unique(pa.chunked_array([data, vectors.drop_null()], pa.string()))
    doubtful = _doubtful(snapshot, wanted)
    asked = _Asked(snapshot)
    asked.ask(doubtful)
    asked.ask(asked.gone)
    gone = pa.array(asked.gone, pa.string())
    no_data, no_vector = pc.is_in(data, value_set=gone), pc.and_(pc.is_in(vectors, value_set=gone), vectors.is_valid())
    lost = pc.or_(no_data, no_vector)
    report = pa.Table.from_arrays([data, no_data, vectors, no_vector], schema=REPORT).filter(lost)
    rows = pa.Table.from_arrays([files.column(f.name).cast(f.type) for f in FILES], schema=FILES)
    return Missing(rows.filter(lost), report, tuple(summed_up("files", asked.unknown)))


def _doubtful(snapshot: Snapshot, wanted: pa.Array) -> list[str]:
    """The files to ask for: those that a listing does not have."""
    if len(wanted) <= _FEW:
        return list(wanted.to_pylist())
    try:
        listed = pa.Table.from_batches(snapshot.store.list_columns("", _is_log), LISTED).column("path")
    except AlluviumError:
        return list(wanted.to_pylist())
    return list(wanted.filter(pc.invert(pc.is_in(wanted, value_set=listed))).to_pylist())


def _is_log(name: str) -> bool:
    return name == LOG_DIRECTORY


class _Asked:
    """What the stores say of files, asked for one by one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._mounts = Mounts(snapshot.open_store)
        self.gone: list[str] = []
        self.unknown: list[Finding] = []

    def ask(self, paths: Iterable[str]) -> None:
        """Asks for files; `gone` are those of them that are not found."""
        names = list(paths)
        answers = map_parallel(self._look, names, advance=counting("files looked at", len(names)))
        self.gone = [name for name, answer in zip(names, answers, strict=True) if answer is _Seen.GONE]
        self.unknown += [answer for answer in answers if isinstance(answer, Finding)]

    def _look(self, path: str) -> _Seen | Finding:
        try:
            store, name = self._place(path)
            store.head(name)
        except NotFound:
            return _Seen.GONE if not is_absolute(path) or self._mounts.has(path) else _unknown(path, _NOT_MOUNTED)
        except AlluviumError as error:
            return _unknown(path, f"it cannot be looked at, so that nobody knows whether it is there: {error.message}")
        return _Seen.THERE

    def _place(self, path: str) -> tuple[Store, str]:
        if not is_absolute(path):
            return self._snapshot.store, path
        directory, name = split_file(path)
        return self._snapshot.open_store(directory), name


_NOT_MOUNTED = "it is not found, but neither is anything near it: perhaps the place is not mounted, or was moved"


def _unknown(path: str, problem: str) -> Finding:
    return Finding("warning", "files", problem, path)
