"""Deletion vectors: which rows of a data file are gone, in index files of two versions.

Specification: `org.apache.paimon.deletionvectors`. An index file begins with the byte 1; then for each vector its
length (4 bytes, big endian), the vector, and the vector's CRC32 (4 bytes, big endian). A vector of 32 bits begins with
the number 1581511376 (big endian), one of 64 bits, which is Delta's too, with 1681511377 (little endian).
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import highest_of, parse_bitmap
from alluvium.errors import CorruptTable, NotFound, UnsupportedFeature
from alluvium.paimon.files.manifest import scan_index_manifest
from alluvium.paimon.files.partitions import bucket_directories, partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.options import DELETION_VECTORS_BITMAP64, INDEX_FILE_IN_DATA_FILE_DIR
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute, resolve

INDEX_TYPE = "DELETION_VECTORS"
_MAGIC_32, _MAGIC_64 = 1_581_511_376, 1_681_511_377
#: Data file, index file, where in it, how long, and how many rows it lists.
_RANGES = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("index", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("count", pa.int64()),
    ]
)


def parse_vector(data: bytes, place: str) -> bytes:
    """A vector with its length before and its checksum behind it, as a bitmap in the portable 64-bit format.

    Args:
        data: From the length on.
        place: The index file, for errors.

    Raises:
        CorruptTable: It is cut short, its checksum is wrong, or it is no bitmap (`"damaged-deletion-vector"`).
    """
    size = int.from_bytes(data[:4], "big", signed=True)
    body, rest = data[4 : 4 + max(size, 0)], data[4 + max(size, 0) :]
    if size < 8 or len(body) != size or len(rest) < 4:
        raise _damaged(f"a vector of {size} bytes is cut short", place)
    if zlib.crc32(body) != int.from_bytes(rest[:4], "big"):
        raise _damaged("the checksum of a vector is wrong", place)
    try:
        if int.from_bytes(body[:4], "big") == _MAGIC_32:
            # One 32-bit bitmap: the only bucket of a 64-bit one.
            return parse_bitmap((1).to_bytes(8, "little") + bytes(4) + body[4:]).data
        if int.from_bytes(body[:4], "little") == _MAGIC_64:
            return parse_bitmap(body[4:]).data
    except CorruptTable as error:
        raise _damaged(error.message, place) from None
    raise _damaged("a vector begins like none", place)


def format_vectors(vectors: Mapping[str, tuple[bytes, int]], is_wide: bool) -> tuple[bytes, list[dict[str, object]]]:
    """An index file, and where in it the vector of each data file is.

    Args:
        vectors: The bitmap (portable 64-bit format) of each data file, and how many rows it lists.
        is_wide: Whether vectors are of 64 bits.

    Raises:
        UnsupportedFeature: A row's number has more bits than a vector (`"unsupported-row-change"`).
    """
    content, ranges = bytearray(b"\x01"), []
    for name, (bitmap, cardinality) in vectors.items():
        body = _MAGIC_64.to_bytes(4, "little") + bitmap if is_wide else _MAGIC_32.to_bytes(4, "big") + _narrow(bitmap)
        # "`f1` points at the size"; "`f2` = size; of 64 bits size + 8".
        ranges.append({"f0": name, "f1": len(content), "f2": len(body) + 8 * is_wide, "_CARDINALITY": cardinality})
        content += len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return bytes(content), ranges


def _narrow(bitmap: bytes) -> bytes:
    """The one 32-bit bitmap of a 64-bit one."""
    if int.from_bytes(bitmap[:8], "little") != 1 or any(bitmap[8:12]):
        raise UnsupportedFeature(
            "a data file has more rows than vectors of 32 bits can list",
            code="unsupported-row-change",
            features=("deletion-vectors.bitmap64",),
            hint="set deletion-vectors.bitmap64 = true, or compact the table",
        )
    return bitmap[12:]


def vector_counts(snapshot: Snapshot, names: pa.Array) -> pa.Array:
    """How many rows of each data file are deleted; null where its vector does not say."""
    masks = vector_masks(snapshot)
    if masks is None:
        return pa.repeat(pa.scalar(0, pa.int64()), len(names))
    places = pc.index_in(names, value_set=masks.ranges["name"].combine_chunks())
    counts = masks.ranges["count"].combine_chunks().take(places)
    return pc.if_else(places.is_valid(), counts, pa.scalar(0, pa.int64()))


def index_folder(snapshot: Snapshot, entries: pa.Table) -> list[str]:
    """The directory of each index file."""
    if not INDEX_FILE_IN_DATA_FILE_DIR.get(snapshot.schema.options):
        return ["index"] * int(entries.num_rows)
    found = bucket_directories(entries, partitions_of(entries, snapshot.schema), snapshot.schema)
    return [str(folder) for folder in found.to_pylist()]


def _damaged(reason: str, place: str) -> CorruptTable:
    return CorruptTable(
        f"the deletion vectors cannot be read: {reason}",
        code="damaged-deletion-vector",
        path=place,
        hint="the rows that they delete would come back; restore the file, or read another snapshot",
    )


def ensure_rows_exist(files: pa.Table) -> None:
    """Raises where a vector lists rows that its file has not: a few bytes can name row 2^31, and whoever makes an array
    of bits of them is out of memory.

    Args:
        files: `SCAN_FILES`, masks loaded.

    Raises:
        CorruptTable: `"damaged-deletion-vector"`.
    """
    known = pc.and_(files["mask"].is_valid(), files["num_rows"].is_valid())
    masked = files.select(["path", "num_rows", "mask"]).filter(known)
    for path, count, mask in zip(*(column.to_pylist() for column in masked.columns), strict=True):
        if (highest := highest_of(mask)) >= count:
            raise _damaged(f"row {highest} is deleted of a file of {count} rows", path)


@dataclass(frozen=True, slots=True)
class VectorMasks:
    """Implements `plan.scan.MaskSource` over the index files of a snapshot.

    Attributes:
        snapshot: The snapshot.
        ranges: Schema `_RANGES`, one row a data file that has a vector; names of data files never repeat.
    """

    snapshot: Snapshot
    ranges: pa.Table

    def load_masks(self, files: pa.Table) -> pa.Table:
        names = pc.replace_substring_regex(files["path"], r"^.*/", "")
        places = pc.index_in(names, value_set=self.ranges["name"].combine_chunks())
        wanted = self.ranges.take(pc.unique(pc.drop_null(places)))
        requests = list(zip(*(wanted[name].to_pylist() for name in ("name", "index", "offset", "length")), strict=True))
        bodies = map_parallel(lambda request: self._load(*request[1:]), requests)
        index = pc.index_in(names, value_set=wanted["name"].combine_chunks())
        masks = pa.array(bodies, pa.binary()).take(index.combine_chunks() if hasattr(index, "chunks") else index)
        masked = files.set_column(files.schema.get_field_index("mask"), "mask", masks)
        ensure_rows_exist(masked)
        return masked

    def load(self, names: Sequence[str]) -> dict[str, bytes]:
        """The vectors of some data files, those that have any, as bitmaps in the portable 64-bit format."""
        wanted = self.ranges.filter(pc.is_in(self.ranges["name"], value_set=pa.array(names, pa.string())))
        columns = (wanted[name].to_pylist() for name in ("name", "index", "offset", "length"))
        requests = list(zip(*columns, strict=True))
        bodies = map_parallel(lambda request: self._load(*request[1:]), requests)
        return {request[0]: body for request, body in zip(requests, bodies, strict=True)}

    def _load(self, index: str, offset: int | None, length: int | None) -> bytes:
        if offset is None or length is None or length < 0:
            raise _damaged("a vector has no place", index)
        if offset < 0:
            raise _damaged(f"a vector begins at byte {offset}", index)
        store, name = self.snapshot.store, index
        if is_absolute(index):
            store, name = locate(store, self.snapshot.open_store, resolve(store.url, index))
        try:
            # "`f2` = size (of 32 bits), size + 8 (of 64)": the length and the checksum are in one, not in the other.
            data = store.get_range(name, offset, length + 8)
            if int.from_bytes(data[:4], "big") > length:
                data = store.get_range(name, offset, int.from_bytes(data[:4], "big") + 8)
        except NotFound:
            raise NotFound(
                "an index file of deletion vectors does not exist",
                code="missing-file",
                path=index,
                hint="the snapshot may have expired while it was read",
            ) from None
        return parse_vector(data, index)


def vector_masks(snapshot: Snapshot) -> VectorMasks | None:
    """The deletion vectors of a snapshot; None where it has none."""
    if snapshot.document is None or snapshot.document.index_manifest is None:
        return None
    entries = scan_index_manifest(snapshot.store, snapshot.document.index_manifest)
    entries = entries.filter(pc.equal(entries["index_type"], INDEX_TYPE))
    ranges = entries["ranges"].combine_chunks()
    if not entries.num_rows or not len(pc.list_flatten(ranges)):
        return None
    parents = pc.list_parent_indices(ranges)
    members = pc.list_flatten(ranges)
    table = pa.table(
        {
            "name": pc.struct_field(members, "f0"),
            "index": index_paths(snapshot, entries).take(parents),
            "offset": pc.struct_field(members, "f1").cast(pa.int64()),
            "length": pc.struct_field(members, "f2").cast(pa.int64()),
            "count": pc.struct_field(members, "_CARDINALITY").cast(pa.int64()),
        },
        schema=_RANGES,
    )
    return VectorMasks(snapshot, table)


def index_paths(snapshot: Snapshot, entries: pa.Table) -> pa.Array:
    """Where index files of vectors are, from the table's root, or absolute where their entries say so."""
    names = entries["file_name"].combine_chunks()
    if pc.any(pc.match_substring_regex(names, r"/|\x00|^\.{0,2}$")).as_py():
        raise CorruptTable("a manifest names an index file by a path", code="path-escapes-root")
    if INDEX_FILE_IN_DATA_FILE_DIR.get(snapshot.schema.options):
        buckets = bucket_directories(entries, partitions_of(entries, snapshot.schema), snapshot.schema)
        inside = pc.binary_join_element_wise(buckets, names, "/")
    else:
        inside = pc.binary_join_element_wise("index", names, "/")
    return pc.coalesce(entries["external_path"].combine_chunks(), inside)


def new_index_files(
    snapshot: Snapshot, vectors: Mapping[tuple[bytes, int], Mapping[str, tuple[bytes, int]]]
) -> tuple[pa.Table, dict[str, bytes]]:
    """New index files (`INDEX_ENTRIES`), one a bucket, and their contents by their paths.

    Args:
        snapshot: Whose options say in which form, and where.
        vectors: By partition and bucket, and the name of a data file, its bitmap (portable 64-bit format) and how many
            rows it takes.
    """
    is_wide = DELETION_VECTORS_BITMAP64.get(snapshot.schema.options)
    job, rows, contents = uuid.uuid4(), [], {}
    for number, ((partition, bucket), listed) in enumerate(vectors.items()):
        name = f"index-{job}-{number}"
        content, ranges = format_vectors(listed, is_wide)
        rows.append({
            "kind": 0, "partition": partition, "bucket": bucket, "index_type": INDEX_TYPE, "file_name": name,
            "file_size": len(content), "row_count": len(ranges), "ranges": ranges,
        })  # fmt: skip
        contents[name] = content
    added = pa.Table.from_pylist(rows, schema=INDEX_ENTRIES)
    folders = index_folder(snapshot, added)
    return added, {f"{folder}/{name}": contents[name] for folder, name in zip(folders, contents, strict=True)}
