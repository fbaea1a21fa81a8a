"""deletionVectors. Specification: "Deletion Vectors", "Deletion Vector Files", "Deletion Vector Format"."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_config, make_files
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

import alluvium
from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.codecs.z85 import format_z85
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.registry import SCAN_PASSES, ensure_readable, ensure_writable
from alluvium.delta.features.rows.deletion_vectors import (
    FEATURE,
    DeletionVectors,
    live_row_counts,
    load_vectors,
    mask_rows,
    vector_address,
)
from alluvium.delta.rows.vector_files import frame
from alluvium.delta.terms.spec import DeletionVector, Protocol
from alluvium.delta.view.scan import scan_files
from alluvium.errors import CorruptTable, NotFound
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

TABLE_FEATURES = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)


def format_vector(rows: Iterable[int]) -> bytes:
    return (1_681_511_377).to_bytes(4, "little") + BitMap64(rows).serialize()


def format_file(*vectors: bytes, gap: int = 0) -> tuple[bytes, list[int]]:
    """A file of vectors, and the offset of each."""
    data, offsets = b"\x01", []
    for vector in vectors:
        offsets.append(len(data))
        data += len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big") + bytes(gap)
    return data, offsets


class CountingStore(MemoryStore):
    """Notes what is read."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name or uuid.uuid4().hex, "/t")
        self.reads: list[tuple[str, int, int]] = []

    def get_range(self, path: str, start: int, length: int) -> bytes:
        self.reads.append((path, start, length))
        return super().get_range(path, start, length)


ID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
NAME = f"deletion_vector_{ID}.bin"


def stored(rows: Iterable[int], offset: int, prefix: str = "") -> DeletionVector:
    rows = set(rows)
    return DeletionVector(
        storage_type="u",
        path_or_inline_dv=prefix + format_z85(ID.bytes),
        offset=offset,
        size_in_bytes=len(format_vector(rows)),
        cardinality=len(rows),
    )


def inline(rows: Iterable[int]) -> DeletionVector:
    rows = set(rows)
    data = format_vector(rows)
    return DeletionVector(
        storage_type="i", path_or_inline_dv=format_z85(data), size_in_bytes=len(data), cardinality=len(rows)
    )


def rows_of(mask: bytes | None) -> list[int]:
    return [] if mask is None else list(positions_of(mask))


def test_the_example_of_a_relative_path() -> None:
    """ "Assuming that this DV is stored relative to an `s3://mytable/` directory, the absolute path to be resolved here
    would be: `s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin`."
    """
    vector = DeletionVector(
        storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", offset=4, size_in_bytes=40, cardinality=6
    )
    assert vector_address(vector, "s3://mytable") == f"s3://mytable/ab/{NAME}"


def test_the_example_of_an_absolute_path() -> None:
    """ "If `storageType='p'`, just use the already absolute path", "which has the same format as the `path` field"."""
    vector = DeletionVector(
        storage_type="p", path_or_inline_dv=f"s3://my%20table/{NAME}", offset=4, size_in_bytes=40, cardinality=6
    )
    assert vector_address(vector, "s3://elsewhere/t") == f"s3://my table/{NAME}"


def test_the_example_of_an_inline_vector() -> None:
    """ "The row indexes encoded in this DV are: 3, 4, 7, 11, 18, 29." """
    vector = DeletionVector(
        storage_type="i",
        path_or_inline_dv="wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        size_in_bytes=40,
        cardinality=6,
    )
    (mask,) = load_vectors([vector], CountingStore(), open_store)
    assert rows_of(mask) == [3, 4, 7, 11, 18, 29]


@given(st.sets(st.integers(0, 300_000)))
def test_inline_vectors(rows: set[int]) -> None:
    """ "The deletion vector is stored inline in the log." """
    (mask,) = load_vectors([inline(rows)], CountingStore(), open_store)
    assert rows_of(mask) == sorted(rows)


def test_several_vectors_of_one_file_are_read_at_once() -> None:
    """ "A DV file contains one or more serialised DV"."""
    store = CountingStore()
    sets = [{1, 2}, {70_000}, set(range(0, 9000, 2))]
    data, offsets = format_file(*map(format_vector, sets))
    store.put(f"ab/{NAME}", data)
    vectors = [stored(rows, offset, "ab") for rows, offset in zip(sets, offsets, strict=True)]
    # Two data files may share a vector, and a plan asks in any order.
    masks = load_vectors([*reversed(vectors), vectors[0]], store, open_store)
    assert [rows_of(mask) for mask in masks] == [*map(sorted, reversed(sets)), [1, 2]]
    assert store.reads == [(f"ab/{NAME}", 0, len(data))]


def test_what_lies_far_between_vectors_is_not_read() -> None:
    store = CountingStore()
    data, offsets = format_file(format_vector({1}), format_vector({2}), format_vector({3}), gap=3_000_000)
    store.put(NAME, data)
    masks = load_vectors([stored({1}, offsets[0]), stored({3}, offsets[2])], store, open_store)
    assert [rows_of(mask) for mask in masks] == [[1], [3]]
    assert len(store.reads) == 2
    assert sum(length for _, _, length in store.reads) < 200


def test_a_vector_outside_of_the_table() -> None:
    elsewhere = CountingStore("elsewhere")
    data, offsets = format_file(format_vector({5}))
    elsewhere.put("a b.bin", data)
    vector = DeletionVector(
        storage_type="p",
        path_or_inline_dv=f"{elsewhere.url}/a%20b.bin",
        offset=offsets[0],
        size_in_bytes=len(format_vector({5})),
        cardinality=1,
    )
    opened: list[str] = []

    def open_other(url: str) -> CountingStore:
        opened.append(url)
        return elsewhere

    assert rows_of(load_vectors([vector], CountingStore(), open_other)[0]) == [5]
    assert opened == [elsewhere.url]
    assert rows_of(load_vectors([vector], elsewhere, open_other)[0]) == [5]
    assert len(opened) == 1


def test_a_vector_of_no_rows_needs_no_bytes() -> None:
    vector = DeletionVector(storage_type="i", path_or_inline_dv="", size_in_bytes=0, cardinality=0)
    assert load_vectors([vector], CountingStore(), open_store) == [None]


SAMPLE, OFFSETS = format_file(format_vector({1}), format_vector({0, 3, 80_000}))


@pytest.mark.parametrize("length", range(OFFSETS[1], len(SAMPLE)))
def test_a_file_that_was_cut(length: int) -> None:
    store = CountingStore()
    store.put(NAME, SAMPLE[:length])
    with pytest.raises(CorruptTable) as caught:
        load_vectors([stored({0, 3, 80_000}, OFFSETS[1])], store, open_store)
    assert caught.value.code == "damaged-deletion-vector"
    assert caught.value.path == f"{store.url}/{NAME}"
    assert f"offset {OFFSETS[1]}" in str(caught.value)


def test_every_flipped_bit_of_a_vector_is_found() -> None:
    """ "checksum: CRC-32 checksum of `bitmapData`" """
    store = CountingStore()
    checked = [0, *range(OFFSETS[1], len(SAMPLE))]
    for at in checked:
        for bit in range(8):
            data = bytearray(SAMPLE)
            data[at] ^= 1 << bit
            store.put(NAME, bytes(data))
            with pytest.raises(CorruptTable):
                load_vectors([stored({0, 3, 80_000}, OFFSETS[1])], store, open_store)
    store.put(NAME, SAMPLE)
    assert rows_of(load_vectors([stored({0, 3, 80_000}, OFFSETS[1])], store, open_store)[0]) == [0, 3, 80_000]


@given(st.data())
def test_a_flipped_character_of_an_inline_vector(draw: st.DataObject) -> None:
    """Without a checksum another set of as many rows cannot be told; anything else is found."""
    vector = inline({1, 9, 70_000})
    text = list(vector.path_or_inline_dv)
    at = draw.draw(st.integers(0, len(text) - 1))
    text[at] = draw.draw(st.characters(min_codepoint=32, max_codepoint=126))
    try:
        (mask,) = load_vectors([replace_of(vector, path_or_inline_dv="".join(text))], CountingStore(), open_store)
    except CorruptTable:
        return
    assert len(set(rows_of(mask))) == 3


def replace_of(vector: DeletionVector, **changes: object) -> DeletionVector:
    values = {name: getattr(vector, name) for name in vector.__struct_fields__}
    return DeletionVector(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cardinality": 2}, "it has 3 rows, the log says 2"),
        ({"cardinality": -1}, "it has 3 rows"),
        ({"size_in_bytes": 41}, "damaged"),
        ({"size_in_bytes": -5}, "size -5"),
        ({"offset": 2}, "damaged"),
        ({"offset": -1}, "offset -1"),
        ({"offset": None}, "damaged"),
        ({"offset": 1 << 30}, "the file ends before"),
        ({"storage_type": "x"}, "not one of u, i, p"),
        ({"path_or_inline_dv": "short"}, "names no file"),
        ({"path_or_inline_dv": "../" + format_z85(ID.bytes)}, "names no file"),
        ({"path_or_inline_dv": "/" + format_z85(ID.bytes)}, "names no file"),
        ({"path_or_inline_dv": "\u00e9" * 20}, "no Z85"),
        ({"storage_type": "p"}, "not absolute"),
        ({"storage_type": "p", "path_or_inline_dv": "file:/t/../x.bin"}, "not absolute"),
    ],
)
def test_descriptors_that_do_not_fit(changes: dict[str, object], reason: str) -> None:
    """ "Legal options are: `['u', 'i', 'p']`."; "Number of rows the given DV logically removes from the file." """
    store = CountingStore()
    store.put(NAME, SAMPLE)
    vector = stored({0, 3, 80_000}, OFFSETS[1])
    assert load_vectors([vector], store, open_store)[0] is not None
    with pytest.raises(CorruptTable, match=reason):
        load_vectors([replace_of(vector, **changes)], store, open_store)


@pytest.mark.parametrize("size", [0, 3, 7])
def test_inline_vectors_of_another_size(size: int) -> None:
    """ "Size of the serialized DV in bytes (raw data size, i.e. before base85 encoding, if inline)." """
    with pytest.raises(CorruptTable):
        load_vectors([replace_of(inline({1}), size_in_bytes=size)], CountingStore(), open_store)


def test_a_format_that_we_do_not_know() -> None:
    """ "Future alternative - but related - formats must have a different magic number"."""
    data = (1_681_511_378).to_bytes(4, "little") + BitMap64([1]).serialize()
    vector = replace_of(inline({1}), path_or_inline_dv=format_z85(data))
    with pytest.raises(CorruptTable, match="marks no format"):
        load_vectors([vector], CountingStore(), open_store)


def test_a_missing_file_of_vectors() -> None:
    with pytest.raises(NotFound) as caught:
        load_vectors([stored({1}, 1)], CountingStore(), open_store)
    assert caught.value.code == "missing-file"


def wire(vector: DeletionVector) -> dict[str, object]:
    return {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
    }


CONFIG = make_config(protocol=TABLE_FEATURES)


def planned(files: pa.Table, store: MemoryStore | None = None) -> ScanPlan:
    part = ScanPart("files", scan_files(files, CONFIG, "UTC"), "parquet", CONFIG.data_columns, ())
    context = ScanContext(CONFIG, files, store or CountingStore(), "UTC", version=7)
    return mask_rows(ScanPlan("memory://t", (part,), CONFIG.schema), context)


def test_masked_files_become_a_part_and_are_read_late() -> None:
    """ "these records *must not* be returned in the output" """
    store = CountingStore()
    store.put(NAME, SAMPLE)
    files = make_files(
        {"path": "a"},
        {"path": "b%20c", "deletionVector": wire(stored({1}, OFFSETS[0]))},
        {"path": "d", "deletionVector": wire(inline({4}))},
        {"path": "e"},
    )
    plan = planned(files, store)
    assert [part.key for part in plan.parts] == ["files", "files/masked"]
    whole, masked = plan.parts
    assert whole.files["path"].to_pylist() == ["a", "e"]
    assert masked.files["path"].to_pylist() == ["b c", "d"]
    assert (whole.is_masked, masked.is_masked) == (False, True)
    assert [rows_of(m) for m in masked.load_masks(masked.files.slice(1))["mask"].to_pylist()] == [[4]]
    assert store.reads == []
    loaded = masked.load_masks(masked.files)
    assert loaded.schema == masked.files.schema
    assert [rows_of(m) for m in loaded["mask"].to_pylist()] == [[1], [4]]
    # A sharper predicate that leaves one kind only gives its part under the same key.
    assert [part.key for part in planned(files.slice(1, 2), store).parts] == ["files/masked"]
    assert [part.key for part in planned(files.slice(0, 1), store).parts] == ["files"]
    assert [part.key for part in planned(files.slice(0, 0), store).parts] == ["files"]


def test_a_struct_without_content_is_no_vector() -> None:
    """Some writers of checkpoints leave a struct of nulls where there is none."""
    nothing = dict.fromkeys(("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"))
    files = make_files({"path": "a", "deletionVector": nothing}, {"path": "b", "deletionVector": wire(inline({4}))})
    whole, masked = planned(files).parts
    assert whole.files["path"].to_pylist() == ["a"]
    assert masked.files["path"].to_pylist() == ["b"]
    half = planned(make_files({"path": "a", "deletionVector": {**wire(inline({4})), "sizeInBytes": None}}))
    with pytest.raises(CorruptTable, match="incomplete"):
        half.parts[0].load_masks(half.parts[0].files)


def test_live_rows_are_counted() -> None:
    """ "It must equal the number of records in the data file, not the valid records in the logical file." """
    files = make_files({"path": "a"}, {"path": "b", "deletionVector": wire(inline({4, 5}))}, {"path": "c"})
    assert live_row_counts(files, pa.array([10, 10, None])).to_pylist() == [10, 8, None]
    assert live_row_counts(files.slice(0, 1), pa.array([10])).to_pylist() == [10]


def test_such_tables_are_read_and_written() -> None:
    assert FEATURE.on_scan in SCAN_PASSES
    ensure_readable(CONFIG)
    ensure_writable(CONFIG)


def write_table(root: Path, vectors: dict[str, DeletionVector | None], properties: dict[str, str]) -> None:
    """A table of files with rows 0 to 9 each."""
    (root / "_delta_log").mkdir(parents=True)
    schema = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    actions: list[dict[str, object]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }
        },
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": properties,
            }
        },
    ]
    for name, vector in vectors.items():
        pq.write_table(pa.table({"a": range(10)}), root / name, row_group_size=4)
        add = {"path": name, "partitionValues": {}, "size": (root / name).stat().st_size, "modificationTime": 0}
        add |= {"dataChange": True, "stats": '{"numRecords":10,"tightBounds":false}'}
        actions.append({"add": add if vector is None else {**add, "deletionVector": wire(vector)}})
    text = "\n".join(json.dumps(action) for action in actions)
    (root / "_delta_log/00000000000000000000.json").write_text(text)


def test_a_table_without_spark(tmp_path: Path) -> None:
    """ "Readers must read the table considering the existence of DVs, even when the `delta.enableDeletionVectors` table
    property is not set."
    """
    vectors = {"none": None, "some": inline({0, 3, 9}), "all": inline(range(10)), "one": inline({2})}
    write_table(tmp_path, vectors, {})
    t = alluvium.open(str(tmp_path))
    assert t.files()["num_rows"].to_pylist() == [10, 7, 0, 9]
    rows = sorted([*range(10), *(set(range(10)) - {0, 3, 9}), *(set(range(10)) - {2})])
    assert sorted(t.to_arrow()["a"].to_pylist()) == rows
    assert t.to_arrow(columns=[]).num_rows == len(rows)
    assert sorted(t.to_arrow(where="a < 3")["a"].to_pylist()) == [0, 0, 1, 1, 1, 2, 2]


def test_rows_that_the_file_has_not(tmp_path: Path) -> None:
    """One position of a few bytes would stand for a quarter of a GiB of bits."""
    write_table(tmp_path, {"f": None, "g": inline({2, (1 << 31) - 200})}, {})
    t = alluvium.open(str(tmp_path))
    with pytest.raises(CorruptTable, match=r"lists row 2147483448 of a file of 10 rows") as caught:
        t.to_arrow()
    assert (caught.value.code, caught.value.version) == ("damaged-deletion-vector", 0)
    vectors = [inline({8, 9}), inline({9})]
    assert None not in load_vectors(vectors, CountingStore(), open_store, [10, None])
    with pytest.raises(CorruptTable, match="row 9 of a file of 9 rows"):
        load_vectors(vectors, CountingStore(), open_store, [10, 9])


def test_a_vector_in_a_file_without_an_offset() -> None:
    """ "Interpret as `0` if absent for other `storageType`s." """
    data = (1_681_511_377).to_bytes(4, "little") + BitMap64([3]).serialize()
    store = CountingStore()
    store.put(NAME, frame(data))
    vector = replace_of(stored({3}, 0), offset=None, size_in_bytes=len(data))
    assert rows_of(load_vectors([vector], store, open_store)[0]) == [3]


def test_errors_say_where(tmp_path: Path) -> None:
    write_table(tmp_path, {"f": stored({1}, 1)}, {"delta.enableDeletionVectors": "true"})
    (tmp_path / NAME).write_bytes(SAMPLE[:20])
    t = alluvium.open(str(tmp_path))
    with pytest.raises(CorruptTable) as caught:
        t.to_arrow()
    assert caught.value.path == f"file:{tmp_path}/{NAME}"
    assert (caught.value.url, caught.value.version) == (t.url, 0)


def test_no_files_need_no_vectors() -> None:
    masked = make_files({"path": "a", "deletionVector": wire(inline({1}))})
    source = DeletionVectors(pa.array(["a"]), masked, CountingStore(), open_store)
    assert source.load_masks(planned(masked).parts[0].files.slice(0, 0)).num_rows == 0
