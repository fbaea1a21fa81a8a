"""deletionVectors: rows that are deleted though they still stand in their data file.

Specification: "Deletion Vectors", "Deletion Vector Files", "Deletion Vector Format". The scan pass only notes where
the vectors are; they are read when an engine has chosen its files.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import Bitmap, parse_bitmap, parse_bitmap_list
from alluvium.codecs.z85 import parse_z85
from alluvium.delta.features.feature import Feature, ScanContext
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import FILES, DeletionVector, Protocol
from alluvium.errors import AlluviumError, CorruptTable, NotFound
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.schema.types import Struct
from alluvium.storage import paths
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

#: "magicNumber: 1681511377"; the number before it marks the format before it, a list of 32-bit bitmaps.
_PORTABLE, _NATIVE = 1_681_511_377, 1_681_511_376
#: "The format version of this file: `1` for the format described here."
_FILE_VERSION = 1
#: "the (20 characters fixed length) uuid"
_UUID_LENGTH = 20
#: Storage type of a vector that stands in the log itself. Read, but not written: see `delta.rows.vector_files`.
INLINE = "i"
_FRAME_BYTES = 8  # size before, checksum behind
#: Bytes between two vectors that are read and thrown away rather than asked for apart.
_WORTH_READING = 1 << 20


@dataclass(frozen=True, slots=True)
class _Stored:
    """A vector in a file of vectors."""

    address: str
    offset: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.size_bytes + _FRAME_BYTES


@dataclass(frozen=True, slots=True)
class _Range:
    """Vectors of one file that are read in one request."""

    vectors: tuple[_Stored, ...]

    @property
    def start(self) -> int:
        # The file's first byte is its version.
        first = self.vectors[0].offset
        return 0 if first <= _WORTH_READING else first

    @property
    def end(self) -> int:
        return max(vector.end for vector in self.vectors)


@dataclass(frozen=True, slots=True)
class DeletionVectors:
    """Where the deleted rows of some files are listed; implements `plan.scan.MaskSource`.

    Attributes:
        paths: The files, as a plan names them.
        files: Their `add` actions, one a path (`FILES`).
        store: The table's objects.
        open_store: From a URL to its store, for vectors outside the table.
        version: The table's version, for errors.
    """

    paths: pa.Array
    files: pa.Table
    store: Store
    open_store: Callable[[str], Store]
    version: int | None = None

    def load_masks(self, files: pa.Table) -> pa.Table:
        """Reads the vectors of these files, each file of vectors once.

        Raises:
            CorruptTable: A vector is not what its descriptor says.
            NotFound: A file of vectors is gone, code `missing-file`.
        """
        rows = pc.index_in(files["path"], value_set=self.paths)
        rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        try:
            listed = self.files.take(rows)
            counts = AddStatistics(listed, Struct(()), ()).num_rows().to_pylist()
            masks = load_vectors(parse_descriptors(vectors_of(listed)), self.store, self.open_store, counts)
        except AlluviumError as error:
            error.url, error.version = error.url or self.store.url, self.version
            raise
        index = files.schema.get_field_index("mask")
        return files.set_column(index, "mask", pa.array(masks, pa.binary()))


def has_vector(vectors: pa.Array) -> pa.Array:
    """Which descriptors are there: some writers leave a struct without content in checkpoints instead of a null."""
    filled = [pc.is_valid(member) for member in vectors.flatten()]
    return pc.and_(pc.is_valid(vectors), pc.or_(pc.or_(filled[0], filled[1]), pc.or_(filled[3], filled[4])))


def live_row_counts(files: pa.Table, num_records: pa.Array) -> pa.Array:
    """Rows of each file (`FILES`) that are not deleted; null where it is unknown.

    "It must equal the number of records in the data file, not the valid records in the logical file."

    Args:
        files: Live files.
        num_records: The statistic, one a file.
    """
    if files["deletionVector"].null_count == files.num_rows:
        return num_records
    vectors = vectors_of(files)
    deleted = pc.if_else(has_vector(vectors), pc.struct_field(vectors, "cardinality"), 0)
    return pc.max_element_wise(pc.subtract(num_records, deleted), 0, skip_nulls=False)


def mask_rows(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """ "If a snapshot contains logical files with records that are invalidated by a DV, then these records *must not*
    be returned in the output."

    Files with a vector become a part of their own: those without are read without asking row by row.
    "Readers must read the table considering the existence of DVs, even when the `delta.enableDeletionVectors` table
    property is not set."

    Raises:
        CorruptTable: See `ensure_sound_vectors`.
    """
    listed = masked_files(context.files)
    if not listed.num_rows:
        return plan
    protocol = None if context.version is None else context.config.protocol
    ensure_sound_vectors(context.files, protocol, context.store.url, context.version)
    file_paths = paths.decode_uri_paths(listed["path"].combine_chunks())
    source = DeletionVectors(file_paths, listed, context.store, context.open_store, context.version)
    parts = tuple(part for whole in plan.parts for part in _split(whole, source))
    return replace(plan, parts=parts)


def masked_files(files: pa.Table) -> pa.Table:
    """Those of some live files (`FILES`) that have a vector."""
    # Before the chunks are made one: most tables have no vectors, and a large log would pay for nulls.
    if files["deletionVector"].null_count == files.num_rows:
        return files.slice(0, 0)
    return files.filter(has_vector(vectors_of(files)))


def ensure_sound_vectors(files: pa.Table, protocol: Protocol | None, url: str, version: int | None) -> None:
    """Refuses vectors of which nobody can say what they delete.

    A file and its vector are one logical file, and of several of one file its path does not tell which is which. And
    engines that find no `deletionVectors` in the protocol show the rows that a vector deletes.

    Args:
        files: Live files (`FILES`).
        protocol: Of their version; None: they are of several, whose protocols may differ.
        url: Of the table, for errors.
        version: As `url`.

    Raises:
        CorruptTable: A file is live with two vectors, or with one and without (`damaged-deletion-vector`); or one has a
            vector where the protocol has no such feature (`unsupported-deletion-vector`).
    """
    masked = masked_files(files)
    if not masked.num_rows:
        return
    if protocol is not None and not _is_listed(protocol):
        raise CorruptTable(
            f"{masked['path'][0].as_py()} has a deletion vector, and the table does not have the feature of them",
            code="unsupported-deletion-vector",
            url=url,
            path=masked["path"][0].as_py(),
            version=version,
            hint="its writer left out the feature: read a version of the table before it",
        )
    path = _doubled_path(files, masked)
    if path is not None:
        raise CorruptTable(
            f"{path} is live with several deletion vectors, or with one and without",
            code="damaged-deletion-vector",
            url=url,
            path=path,
            version=version,
            hint="its writer left out a remove: restore a version of the table before it",
        )


def _doubled_path(files: pa.Table, masked: pa.Table) -> str | None:
    """A file with a vector that is live a second time, with another or with none; None where there is none."""
    every = canonical_paths(files["path"].combine_chunks())
    shown = every.filter(pc.is_in(every, value_set=canonical_paths(masked["path"].combine_chunks())))
    if len(shown.unique()) == len(shown):
        return None
    counted = shown.value_counts()
    path: str = counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0].as_py()
    return path


def _is_listed(protocol: Protocol) -> bool:
    """Listed for writers alone it breaks the protocol, but the vectors are there all the same."""
    return FEATURE.name in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}


def _split(part: ScanPart, source: DeletionVectors) -> Iterator[ScanPart]:
    """The part without its masked files, and these; what is empty is left out, as an engine that asks again by key
    takes a part that is missing for empty.
    """
    is_masked = pc.is_in(part.files["path"], value_set=source.paths)
    whole, masked = part.files.filter(pc.invert(is_masked)), part.files.filter(is_masked)
    if whole.num_rows:
        yield replace(part, files=whole)
    if masked.num_rows:
        yield replace(part, key=_masked_key(part), files=masked, masks=source)


def _masked_key(part: ScanPart) -> str:
    return f"{part.key}/masked"


def room_for_vectors(part: ScanPart, store: Store, open_store: Callable[[str], Store], version: int | None) -> ScanPart:
    """The masked files of a part, of which there are none yet, for engines that will ask again by key.

    Args:
        part: Files without vectors.
        store: The table's objects.
        open_store: From a URL to its store, for vectors outside the table.
        version: The table's version, for errors.
    """
    none = DeletionVectors(pa.array([], pa.string()), FILES.empty_table(), store, open_store, version)
    return replace(part, key=_masked_key(part), files=part.files.slice(0, 0), masks=none)


def vectors_of(files: pa.Table) -> pa.StructArray:
    """The descriptors of file actions, one a row."""
    column = files["deletionVector"]
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def parse_descriptors(vectors: pa.StructArray) -> list[DeletionVector]:
    """The rows as wire documents; a checkpoint's may lack what the log's JSON cannot.

    Raises:
        CorruptTable: A required member is null.
    """
    found = []
    for row in vectors.to_pylist():
        if row is None or any(row[name] is None for name in ("storageType", "pathOrInlineDv", "sizeInBytes")):
            raise _corrupt(f"a descriptor is incomplete: {row}", None, None)
        found.append(
            DeletionVector(
                storage_type=row["storageType"],
                path_or_inline_dv=row["pathOrInlineDv"],
                offset=row["offset"],
                size_in_bytes=row["sizeInBytes"],
                cardinality=-1 if row["cardinality"] is None else row["cardinality"],
            )
        )
    return found


def load_vectors(
    vectors: Sequence[DeletionVector],
    store: Store,
    open_store: Callable[[str], Store],
    num_records: Sequence[int | None] | None = None,
) -> list[bytes | None]:
    """The deleted rows as 64-bit roaring bitmaps in the portable format; None for none.

    Args:
        vectors: Descriptors.
        store: The table's objects.
        open_store: From a URL to its store, for vectors outside the table.
        num_records: How many rows each vector's data file holds, deleted ones included; None where it is unknown.

    Raises:
        CorruptTable: A vector is damaged, not what its descriptor says, or lists rows that its file has not.
        NotFound: A file of vectors is gone, code `missing-file`.
    """
    # A descriptor of no rows is written without any bytes.
    asked = [None if vector.cardinality == 0 else (vector, _locate(vector, store)) for vector in vectors]
    wanted = {stored for entry in asked if entry is not None and (stored := entry[1]) is not None}
    ranges = list(_ranges(wanted))
    found: dict[_Stored, bytes] = {}
    for loaded in map_parallel(lambda part: _load_range(part, store, open_store), ranges):
        found.update(loaded)
    masks: list[bytes | None] = []
    for entry, count in zip(asked, num_records or [None] * len(asked), strict=True):
        if entry is None:
            masks.append(None)
            continue
        vector, stored = entry
        data = _parse_inline(vector) if stored is None else found[stored]
        masks.append(_parse_vector(vector, data, stored, count))
    return masks


def _locate(vector: DeletionVector, store: Store) -> _Stored | None:
    """Where the vector is stored; None: in the log itself."""
    if vector.storage_type == INLINE:
        return None
    # "Interpret as `0` if absent for other `storageType`s."
    offset = vector.offset or 0
    address = vector_address(vector, store.url)
    if offset < 0 or vector.size_in_bytes < 0:
        raise _corrupt(f"offset {offset}, size {vector.size_in_bytes}", address, offset)
    return _Stored(address, offset, vector.size_in_bytes)


def vector_address(vector: DeletionVector, root: str) -> str:
    """The address of the file that a vector lies in.

    Args:
        vector: Of storage type `u` or `p`.
        root: URL of the table.

    Raises:
        CorruptTable: The storage type is unknown, or the path is malformed or leads out of the table.
    """
    text = vector.path_or_inline_dv
    if vector.storage_type == "p":
        # "which has the same format as the `path` field in the `add`/`remove` actions"
        path = paths.decode_uri_path(text)
        if not paths.is_absolute(path) or ".." in path.split("/"):
            raise _corrupt("its path is not absolute", path, vector.offset)
        return paths.resolve(root, path)
    if vector.storage_type != "u":
        # "Legal options are: `['u', 'i', 'p']`."
        raise _corrupt(f"the storage type {vector.storage_type!r} is not one of u, i, p", None, vector.offset)
    # "The random prefix is recovered as the extra characters before the (20 characters fixed length) uuid."
    prefix, encoded = text[:-_UUID_LENGTH], text[-_UUID_LENGTH:]
    if len(encoded) != _UUID_LENGTH or prefix.startswith("/") or ".." in prefix.split("/"):
        raise _corrupt(f"{text!r} names no file of the table", None, vector.offset)
    name = f"deletion_vector_{uuid.UUID(bytes=parse_z85(encoded))}.bin"
    # "stored at `<parent path>/<random prefix>/deletion_vector_<uuid in canonical textual representation>.bin`"
    return paths.join(root, prefix, name)


def _ranges(vectors: Iterable[_Stored]) -> Iterator[_Range]:
    """Vectors of a file in as few requests as reading little in vain allows: nearly always one a file."""
    ordered = sorted(vectors, key=lambda v: (v.address, v.offset))
    for _, of_file in groupby(ordered, key=lambda v: v.address):
        run: list[_Stored] = []
        for vector in of_file:
            if run and vector.offset > run[-1].end + _WORTH_READING:
                yield _Range(tuple(run))
                run = []
            run.append(vector)
        yield _Range(tuple(run))


def _load_range(part: _Range, store: Store, open_store: Callable[[str], Store]) -> dict[_Stored, bytes]:
    address = part.vectors[0].address
    holder, path = locate(store, open_store, address)
    try:
        data = holder.get_range(path, part.start, part.end - part.start)
    except NotFound:
        raise NotFound(
            "a deletion vector that the table lists does not exist",
            code="missing-file",
            url=store.url,
            path=address,
            hint="VACUUM may have removed it, or somebody deleted it by hand; read a newer version of the table",
        ) from None
    # A vector that begins at 0 leaves no room for a version.
    if part.start == 0 and part.vectors[0].offset > 0 and data[:1] != bytes([_FILE_VERSION]):
        raise _corrupt(f"the file's format is {data[:1].hex() or 'missing'}, not version 1", address, 0)
    return {stored: _unframe(stored, data, stored.offset - part.start) for stored in part.vectors}


def _unframe(stored: _Stored, data: bytes, start: int) -> bytes:
    """The bytes of one vector, its size and its checksum verified.

    The text leaves the order of bytes open here; writers use Java's: big endian.
    """
    size = int.from_bytes(data[start : start + 4], "big")
    content = data[start + 4 : start + 4 + stored.size_bytes]
    checksum = data[start + 4 + stored.size_bytes : start + _FRAME_BYTES + stored.size_bytes]
    if len(checksum) < 4:
        raise _corrupt("the file ends before the vector does", stored.address, stored.offset)
    # "dataSize: Size of this DV's data (without the checksum)"
    if size != stored.size_bytes:
        raise _corrupt(f"its size is {size}, the log says {stored.size_bytes}", stored.address, stored.offset)
    # "checksum: CRC-32 checksum of `bitmapData`"
    if zlib.crc32(content) != int.from_bytes(checksum, "big"):
        raise _corrupt("its checksum does not fit", stored.address, stored.offset)
    return content


def _parse_inline(vector: DeletionVector) -> bytes:
    """ "Size of the serialized DV in bytes (raw data size, i.e. before base85 encoding, if inline)." """
    data = parse_z85(vector.path_or_inline_dv)
    if not 0 <= len(data) - vector.size_in_bytes < 4:
        raise _corrupt(f"its size is {len(data)}, the log says {vector.size_in_bytes}", None, None)
    return data[: vector.size_in_bytes]


def _parse_vector(vector: DeletionVector, data: bytes, stored: _Stored | None, num_records: int | None) -> bytes:
    path, offset = (stored.address, stored.offset) if stored else (None, None)
    try:
        bitmap = _parse_format(data)
    except CorruptTable as error:
        raise _corrupt(error.message, path, offset) from None
    # "Number of rows the given DV logically removes from the file."
    if bitmap.cardinality != vector.cardinality:
        raise _corrupt(f"it has {bitmap.cardinality} rows, the log says {vector.cardinality}", path, offset)
    # A few bytes can name row 2^31, and whoever makes an array of bits of them is out of memory.
    if num_records is not None and bitmap.highest >= num_records:
        raise _corrupt(f"it lists row {bitmap.highest} of a file of {num_records} rows", path, offset)
    return bitmap.data


def _parse_format(data: bytes) -> Bitmap:
    """ "All numerical values are written in little endian byte order"; the specification's own example of an inline
    vector is older than that, and big endian.
    """
    magic, content = data[:4], data[4:]
    if magic == _PORTABLE.to_bytes(4, "little"):
        return parse_bitmap(content)
    if magic == _NATIVE.to_bytes(4, "little"):
        return parse_bitmap_list(content, "<")
    if magic == _NATIVE.to_bytes(4, "big"):
        return parse_bitmap_list(content, ">")
    raise CorruptTable(f"it begins with {magic.hex()!r}, which marks no format of vectors")


def _corrupt(reason: str, path: str | None, offset: int | None) -> CorruptTable:
    where = "" if offset is None else f" at offset {offset}"
    return CorruptTable(
        f"a deletion vector{where} is damaged: {reason}",
        code="damaged-deletion-vector",
        path=path,
        hint="without it nobody knows which rows are deleted: restore it from a copy, "
        "or read a version of the table before it",
    )


def is_used(config: TableConfig) -> bool:
    """Whether writers may add vectors: "`delta.enableDeletionVectors`"."""
    return config.metadata.configuration.get("delta.enableDeletionVectors", "false").strip().lower() == "true"


FEATURE = Feature(
    name="deletionVectors",
    reader=True,
    spec="Deletion Vectors",
    is_used=is_used,
    on_scan=mask_rows,
)
