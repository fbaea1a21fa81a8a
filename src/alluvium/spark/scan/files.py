"""Data files as Hadoop `FileStatus` objects, all of them in one call.

`ArrayWritable(FileStatus).readFields` decodes a count and so many records: 4 bytes of length, big endian, and a
`FileStatusProto` (hadoop-hdfs' `FSProtos.proto`):

    fileType = 1 enum, path = 2 string, length = 3 uint64, permission = 4 {perm = 1 uint32},
    modification_time = 7 uint64, block_replication = 10 uint32, block_size = 11 uint64
"""

from __future__ import annotations

import zlib

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable
from alluvium.spark.jvm.gateway import Java, JavaObject
from alluvium.storage import paths
from alluvium.storage.elsewhere import ensure_all_same_side

_FILE_TYPE = b"\x08\x02"  # FT_FILE
_PATH, _LENGTH, _MODIFIED = b"\x12", b"\x18", b"\x38"
_PERMISSION = b"\x22\x02\x08\x00"
# Spark splits files by its own conf; the block size only bounds how blocks are looked up, so 128 MiB serves all.
_BLOCKS = b"\x50\x01\x58\x80\x80\x80\x40"
_VARINT_BYTES = 8
#: More than any store holds in one file. Spark plans a task for every 128 MiB of what a log says.
_MAX_SIZE = 1 << 46
#: The magic bytes at both ends of a file with rows. Spark reads as far as a log says, and so would see no row of it.
_MIN_SIZE = 8
#: All of a record but its path: three varints and the tags.
_FIXED_BYTES = len(_FILE_TYPE + _PATH + _LENGTH + _PERMISSION + _MODIFIED + _BLOCKS) + 3 * _VARINT_BYTES


def format_file_statuses(addresses: pa.Array, sizes: pa.Array, modified_ms: pa.Array) -> bytes:
    """The bytes that `ArrayWritable.readFields` wants.

    Args:
        addresses: Hadoop path strings, not escaped, as binary.
        sizes: Bytes.
        modified_ms: Milliseconds since 1970 UTC.
    """
    lengths = pc.binary_length(addresses).cast(pa.int64())
    record = pc.binary_join_element_wise(
        _big_endian_32(pc.add(lengths, _FIXED_BYTES)),
        _constant(_FILE_TYPE + _PATH),
        _varints(lengths),
        addresses,
        _constant(_LENGTH),
        _varints(sizes),
        _constant(_PERMISSION + _MODIFIED),
        _varints(modified_ms),
        _constant(_BLOCKS),
        _constant(b""),
    )
    return len(addresses).to_bytes(4, "big") + b"".join(_data(chunk) for chunk in _chunks(record))


def make_file_statuses(java: Java, root: str, files: pa.Table) -> JavaObject:
    """A Java `FileStatus[]` of a plan's files, in their order.

    Raises:
        CorruptTable: A file has a size that no file has (`impossible-size`), or see `address`.
    """
    _ensure_possible(files)
    addresses = address(root, files["path"])
    data = format_file_statuses(
        addresses.cast(pa.large_binary()),
        _whole(files["size"]),
        _whole(files["modification_time_ms"]),
    )
    writable = java.array_writable(java.file_status_class)
    writable.readFields(java.stream(zlib.compress(data, 1)))
    # `ArrayWritable.get()` is a `Writable[]`; Spark wants a `FileStatus[]`.
    statuses = java.gateway.new_array(java.file_status, files.num_rows)
    java.system.arraycopy(writable.get(), 0, statuses, 0, files.num_rows)
    return statuses


def address(root: str, file_paths: pa.ChunkedArray) -> pa.Array:
    """The files' addresses as Hadoop path strings, not escaped; local ones as Spark lists them: `file:///`.

    Every plan passes here on its way to Spark, whatever format and verb it comes from: what a table may not make its
    readers open is refused here.

    Raises:
        CorruptTable: A table that is not on this machine names a file of this machine (`path-escapes-root`).
    """
    ensure_all_same_side(root, file_paths)
    whole = _whole(file_paths.cast(pa.large_string()))
    below = _prefixed(f"{root.rstrip('/')}/", whole)
    # Absolute paths without a scheme lie in the table's own file system, not in the session's default one.
    url = paths.split_url(root)
    origin = (f"{url.scheme}:" if url.scheme else "") + (f"//{url.authority}" if url.authority else "")
    from_root = pc.if_else(pc.starts_with(whole, "/"), _prefixed(origin, whole), below)
    addresses = pc.if_else(pc.match_substring_regex(whole, r"^[A-Za-z][A-Za-z0-9+.\-]*:/"), whole, from_root)
    return pc.replace_substring_regex(addresses, r"^file:/+", "file:///")


def _ensure_possible(files: pa.Table) -> None:
    odd = pc.or_(pc.less(files["size"], _MIN_SIZE), pc.greater(files["size"], _MAX_SIZE))
    for file in files.select(["path", "size"]).filter(odd).slice(0, 1).to_pylist():
        raise CorruptTable(
            f"the table says that a file has {file['size']} bytes",
            code="impossible-size",
            path=file["path"],
            hint="the metadata was tampered with, or written by a broken client; do not trust the table",
        )


def directories_elsewhere(root: str, file_paths: pa.ChunkedArray) -> list[str]:
    """Addresses of the directories of those files that do not lie below the table's root."""
    absolute = file_paths.filter(pc.match_substring_regex(file_paths, r"^(/|[A-Za-z][A-Za-z0-9+.\-]*:/)"))
    parents = pc.replace_substring_regex(address(root, absolute), r"/[^/]*$", "")
    return list(pc.unique(parents).to_pylist())


def _prefixed(prefix: str, values: pa.Array) -> pa.Array:
    text = pa.large_string()
    return pc.binary_join_element_wise(pa.scalar(prefix, text), values, pa.scalar("", text))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _constant(data: bytes) -> pa.Scalar:
    return pa.scalar(data, pa.large_binary())


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def _data(array: pa.Array) -> bytes:
    """The values of a binary array end to end, which is how Arrow keeps them."""
    if not len(array):
        return b""
    _, offsets, data = array.buffers()
    first = int.from_bytes(offsets[array.offset * 8 : array.offset * 8 + 8].to_pybytes(), "little")
    return bytes(data[first : first + pc.sum(pc.binary_length(array)).as_py()].to_pybytes())


def _fixed(values: pa.Array, width: int) -> pa.Array:
    """The little-endian bytes of integers as binary values."""
    buffers = [None, values.buffers()[1].slice(values.offset * width)]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), buffers).cast(pa.large_binary())


def _varints(values: pa.Array) -> pa.Array:
    """Protobuf varints of numbers below 2^56, all 8 bytes wide: a decoder accepts groups of zeros at the end."""
    word = pc.bit_wise_and(values, 0x7F)
    for group in range(1, _VARINT_BYTES):
        bits = pc.bit_wise_and(pc.shift_right(values, 7 * group), 0x7F)
        word = pc.bit_wise_or(word, pc.shift_left(bits, 8 * group))
    return _fixed(pc.bit_wise_or(word, 0x0080808080808080), 8)


def _big_endian_32(values: pa.Array) -> pa.Array:
    swapped = pc.bit_wise_and(pc.shift_right(values, 24), 0xFF)
    for source, target in ((16, 8), (8, 16), (0, 24)):
        octet = pc.bit_wise_and(pc.shift_right(values, source), 0xFF)
        swapped = pc.bit_wise_or(swapped, pc.shift_left(octet, target))
    return _fixed(swapped.cast(pa.uint32(), safe=False), 4)
