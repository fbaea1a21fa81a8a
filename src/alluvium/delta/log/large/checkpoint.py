"""Writes the checkpoint of a state whose files are more than memory should hold: they go piece by piece to the disk of
this machine, sorted into the files of the checkpoint, and from there to the table's store.

Specification: "Checkpoints", "Checkpoint Specs".
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.log.checkpoint import (
    CheckpointOptions,
    file_action_rows,
    head_rows,
    kept_tombstones,
    part_numbers,
    part_of_nulls,
    put_v2_top,
    supports_vectors,
)
from alluvium.delta.log.checkpoint_rows import CheckpointFile, Rows, count_rows
from alluvium.delta.log.columns import conform_fitting
from alluvium.delta.log.large.pieces import Pieces
from alluvium.delta.log.last_checkpoint import publish_last_checkpoint
from alluvium.delta.log.names import SIDECAR_DIRECTORY, checkpoint_paths
from alluvium.delta.terms.spec import FILES, TOMBSTONES, LastCheckpoint, Sidecar
from alluvium.storage.failures import storage_error

#: Bytes of a file of the checkpoint, by those of the one before: each is held when it is sent.
_PART_BYTES = 128 << 20
#: Rows that a file waits for before they are written together, and all files together.
_HELD_ROWS, _ALL_HELD_ROWS = 50_000, 500_000


def write_large_checkpoint(
    pieces: Pieces, options: CheckpointOptions, formed: Callable[[pa.Table], pa.Table]
) -> LastCheckpoint:
    """As `write_checkpoint`, in the memory of some pieces.

    Args:
        pieces: The file actions of the state.
        options: How.
        formed: Live files with the columns that the checkpoint shall have.

    Raises:
        CorruptTable: The checkpoint before is damaged, or lists a file twice (`damaged-checkpoint`); nothing was
            written.
        StorageError: This machine's disk has no room; nothing was written.
    """
    store, state = pieces.store, pieces.state
    with _on_this_disk(store.url), tempfile.TemporaryDirectory(prefix="alluvium-checkpoint-") as folder:
        with _Sorter(Path(folder), pieces, options, formed) as sorter:
            adds, removes = sorter.sort()
        files = sorter.files()
        head = head_rows(state, options)
        if options.v2:
            sidecars = [_put_sidecar(pieces, file, options.now_ms) for file in files]
            sizes = [put_v2_top(store, state, head, sorter.shape, sidecars, options)]
            sizes += [sidecar.size_in_bytes for sidecar in sidecars]
        else:
            paths = checkpoint_paths(state.version, len(files) if len(files) > 1 else None)
            sizes = [_send(pieces, file, path) for file, path in zip(files, paths, strict=True)]
    last = LastCheckpoint(
        version=state.version,
        size=count_rows(head) + adds + removes,
        parts=len(sizes) if len(sizes) > 1 and not options.v2 else None,
        size_in_bytes=sum(sizes),
        num_of_add_files=adds,
    )
    publish_last_checkpoint(store, last)
    return last


class _Sorter:
    """Sorts the file actions into files of a folder. Use it in a `with`: behind it the files are whole."""

    def __init__(
        self, folder: Path, pieces: Pieces, options: CheckpointOptions, formed: Callable[[pa.Table], pa.Table]
    ) -> None:
        self._folder, self._pieces, self._options, self._formed = folder, pieces, options, formed
        state = pieces.state
        rows, size_bytes = pieces.count_rows(), sum(info.size for info in state.deferred)
        self._count = max(1, -(-rows // options.max_actions), -(-size_bytes // _PART_BYTES))
        self._each = -(-rows // self._count)
        self.shape = file_action_rows(_with_room(formed(FILES.empty_table())), self._kept(TOMBSTONES.empty_table()))
        head = {} if options.v2 else head_rows(state, options)
        self._columns: Rows = {**head, **self.shape}
        self._stack, self._open = ExitStack(), dict[int, CheckpointFile]()
        self._held: dict[int, list[tuple[str, pa.Array]]] = {}
        self._seen = 0
        if not options.v2:
            home = part_of_nulls(self._count) if self._count > 1 else 0
            for number in range(self._count):
                file = self._file(number)
                if number == home:
                    file.write(head)

    def __enter__(self) -> _Sorter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sort(self) -> tuple[int, int]:
        """Writes all of them; how many files are live, and how many removed."""
        counts = {"add": 0, "remove": 0}
        for kind, piece in self._actions():
            counts[kind] += piece.num_rows
            for number, rows in self._divided(kind, piece):
                self._held.setdefault(number, []).append((kind, rows))
            self._write_out(_HELD_ROWS if self._rows_held() < _ALL_HELD_ROWS else 0)
        self._write_out(0)
        return counts["add"], counts["remove"]

    def files(self) -> list[Path]:
        """The files, by their numbers."""
        return [self._path(number) for number in sorted(self._open)]

    def _actions(self) -> Iterator[tuple[str, pa.Table]]:
        for files in self._pieces.files():
            yield "add", files
        for tombstones in self._pieces.tombstones():
            yield "remove", self._kept(tombstones)

    def _divided(self, kind: str, piece: pa.Table) -> Iterator[tuple[int, pa.Array]]:
        """The actions by the number of the file that they go into."""
        if self._options.v2:
            self._seen += piece.num_rows
            yield (self._seen - 1) // self._each if piece.num_rows else 0, self._rows(kind, piece)
            return
        if self._count == 1:
            yield 0, self._rows(kind, piece)
            return
        numbers = part_numbers(piece, self._count, supports_vectors(self._pieces.state))
        for number in range(self._count):
            yield number, self._rows(kind, piece.filter(pc.equal(numbers, number)))

    def _rows(self, kind: str, piece: pa.Table) -> pa.Array:
        """Actions as the structs that every file has of them."""
        files = self._formed(piece) if kind == "add" else FILES.empty_table()
        chunks = file_action_rows(files, piece if kind == "remove" else self._kept(TOMBSTONES.empty_table()))[kind]
        return pa.concat_arrays([conform_fitting(chunk, self.shape[kind][0].type) for chunk in chunks])

    def _kept(self, tombstones: pa.Table) -> pa.Table:
        return kept_tombstones(tombstones, self._options)

    def _rows_held(self) -> int:
        return sum(len(rows) for held in self._held.values() for _, rows in held)

    def _write_out(self, least: int) -> None:
        """Writes what files hold that hold at least so many rows."""
        for number, held in self._held.items():
            if held and sum(len(rows) for _, rows in held) >= least:
                of_kind = {kind: [rows for k, rows in held if k == kind and len(rows)] for kind in ("add", "remove")}
                self._file(number).write({kind: rows for kind, rows in of_kind.items() if rows})
                held.clear()

    def _file(self, number: int) -> CheckpointFile:
        if number not in self._open:
            file = CheckpointFile(str(self._path(number)), self._columns)
            self._open[number] = self._stack.enter_context(file)
        return self._open[number]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.parquet"


@contextmanager
def _on_this_disk(url: str) -> Iterator[None]:
    """What goes wrong with the temporary folder, as an error of ours; stores word their own."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        hint = "the checkpoint is sorted in a temporary folder: name one that has room for it by TMPDIR"
        raise storage_error("write", url, folder, error, hint) from error


def _with_room(files: pa.Table) -> pa.Table:
    """No files, with a column for what only some statistics say: whether they are exact."""
    place = files.schema.get_field_index("stats_parsed")
    if place < 0 or files.schema.field(place).type.get_field_index("tightBounds") >= 0:
        return files
    wider = pa.struct([*files.schema.field(place).type, pa.field("tightBounds", pa.bool_())])
    return files.set_column(place, pa.field("stats_parsed", wider), pa.nulls(0, wider))


def _put_sidecar(pieces: Pieces, file: Path, now_ms: int) -> Sidecar:
    """ "they must have unique names" """
    name = f"{uuid.uuid4()}.parquet"
    size = _send(pieces, file, f"{SIDECAR_DIRECTORY}/{name}")
    return Sidecar(path=name, size_in_bytes=size, modification_time=now_ms)


def _send(pieces: Pieces, file: Path, path: str) -> int:
    data = file.read_bytes()
    pieces.store.put(path, data)
    return len(data)
