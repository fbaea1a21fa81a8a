"""Vectors in files: in how few requests they are read, what stands around them, and what of a descriptor counts."""

from __future__ import annotations

import random
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_config, make_files
from msgspec import structs
from pyroaring import BitMap64

from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.codecs.z85 import format_z85
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.rows.deletion_vectors import (
    DeletionVectors,
    ensure_sound_vectors,
    has_vector,
    live_row_counts,
    load_vectors,
    mask_rows,
    masked_files,
    parse_descriptors,
    room_for_vectors,
    vector_address,
    vectors_of,
)
from alluvium.delta.terms.spec import DELETION_VECTOR, DeletionVector, Protocol
from alluvium.delta.view.scan import scan_files
from alluvium.errors import CorruptTable, NotFound
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

ID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
NAME = f"deletion_vector_{ID}.bin"
NEAR = 1 << 20


def content(rows: Iterable[int]) -> bytes:
    return (1_681_511_377).to_bytes(4, "little") + BitMap64(rows).serialize()


def framed(vector: bytes) -> bytes:
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def stored(rows: Iterable[int], offset: int | None, **more: Any) -> DeletionVector:
    rows = set(rows)
    told = {
        "storage_type": "u",
        "path_or_inline_dv": format_z85(ID.bytes),
        "size_in_bytes": len(content(rows)),
        "cardinality": len(rows),
    }
    return DeletionVector(**{**told, "offset": offset, **more})


class Reads(MemoryStore):
    """Notes what is asked for."""

    def __init__(self) -> None:
        super().__init__(uuid.uuid4().hex, "/t")
        self.reads: list[tuple[int, int]] = []

    def get_range(self, path: str, start: int, length: int) -> bytes:
        self.reads.append((start, start + length))
        return super().get_range(path, start, length)


def laid_out(gaps: list[int]) -> tuple[Reads, list[DeletionVector], list[tuple[int, int]]]:
    """A file whose vectors have so much between them; and where each begins and ends."""
    store, data, vectors, places = Reads(), b"\x01", [], []
    for number, gap in enumerate(gaps):
        data += bytes(gap)
        vectors.append(stored({number}, len(data)))
        places.append((len(data), len(data) + len(framed(content({number})))))
        data += framed(content({number}))
    store.put(NAME, data)
    return store, vectors, places


@pytest.mark.parametrize(
    ("gaps", "runs"),
    [
        ([0, 0, 0], [[0, 1, 2]]), ([0, NEAR, 0], [[0, 1, 2]]), ([0, NEAR + 1, 0], [[0], [1, 2]]), ([0, NEAR + 1, NEAR + 1], [[0], [1], [2]]),
        ([NEAR - 1, 0], [[0, 1]]), ([NEAR, 0], [[0, 1]]), ([0, 2 * NEAR, NEAR], [[0], [1, 2]]),
    ],
)  # fmt: skip
def test_what_is_read_at_once(gaps: list[int], runs: list[list[int]]) -> None:
    """Up to a megabyte in vain; the version at the file's beginning goes along where it is as near as that."""
    store, vectors, places = laid_out(gaps)
    masks = load_vectors(vectors[::-1], store, open_store)
    assert [list(positions_of(mask or b"")) for mask in masks[::-1]] == [[n] for n in range(len(gaps))]
    expected = []
    for run in runs:
        first, last = places[run[0]][0], places[run[-1]][1]
        expected.append((0 if first <= NEAR else first, last))
    assert sorted(store.reads) == expected


def test_vectors_in_each_other_s_place_are_read_as_they_are() -> None:
    """Descriptors of any order and size: a range reaches as far as the longest of them."""
    lot = random.Random(5)
    rows = [set(range(0, 9000, 2)), {1}, {2, 3}]
    data, offsets = b"\x01", []
    for one in rows:
        offsets.append(len(data))
        data += framed(content(one))
    store = Reads()
    store.put(NAME, data)
    vectors = [stored(one, offset) for one, offset in zip(rows, offsets, strict=True)]
    for _ in range(6):
        asked = lot.choices(range(3), k=lot.randint(1, 5))
        masks = load_vectors([vectors[n] for n in asked], store, open_store)
        assert [set(positions_of(mask or b"")) for mask in masks] == [rows[n] for n in asked]
    assert len(store.reads) == 6


@pytest.mark.parametrize("version", [0, 2, 255, None])
def test_files_of_another_version(version: int | None) -> None:
    """ "The format version of this file: `1` for the format described here": it is told where it was read."""
    store, vectors, _ = laid_out([0])
    data = store.get(NAME)
    store.delete(NAME)
    store.put(NAME, data if version is None else bytes([version]) + data[1:])
    if version is None:
        assert load_vectors(vectors, store, open_store)[0] is not None
        return
    with pytest.raises(CorruptTable) as caught:
        load_vectors(vectors, store, open_store)
    assert f"the file's format is {version:02x}, not version 1" in caught.value.message
    assert (caught.value.code, caught.value.path) == ("damaged-deletion-vector", f"{store.url}/{NAME}")


def test_a_vector_that_begins_at_the_file_s_first_byte_leaves_no_room_for_a_version() -> None:
    store = Reads()
    store.put(NAME, framed(content({4})))
    for offset in (0, None):
        (mask,) = load_vectors([stored({4}, offset)], store, open_store)
        assert list(positions_of(mask or b"")) == [4]


def test_where_an_error_is() -> None:
    store, vectors, places = laid_out([0, 0])
    with pytest.raises(CorruptTable) as caught:
        load_vectors([structs.replace(vectors[1], cardinality=2)], store, open_store)
    assert f"at offset {places[1][0]} is damaged: it has 1 rows, the log says 2" in caught.value.message
    with pytest.raises(CorruptTable) as caught:
        load_vectors(vectors, store, open_store, [1, 1])
    assert "it lists row 1 of a file of 1 rows" in caught.value.message
    assert (
        len(load_vectors(vectors, store, open_store, [1, 2]))
        == len(load_vectors(vectors, store, open_store, [1, None]))
        == 2
    )
    data = store.get(NAME)
    store.put(NAME, data[:-1])
    with pytest.raises(CorruptTable) as caught:
        load_vectors(vectors, store, open_store)
    assert "the file ends before the vector does" in caught.value.message
    store.put(NAME, data[: places[1][0]] + b"\x00\x00\x00\x07" + data[places[1][0] + 4 :])
    with pytest.raises(CorruptTable) as caught:
        load_vectors(vectors, store, open_store)
    assert f"its size is 7, the log says {vectors[1].size_in_bytes}" in caught.value.message
    store.put(NAME, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CorruptTable) as caught:
        load_vectors(vectors, store, open_store)
    assert "its checksum does not fit" in caught.value.message
    store.delete(NAME)
    with pytest.raises(NotFound) as gone:
        load_vectors(vectors, store, open_store)
    assert (gone.value.code, gone.value.path, gone.value.url) == ("missing-file", f"{store.url}/{NAME}", store.url)


@pytest.mark.parametrize(
    ("prefix", "folder"), [("", ""), ("ab", "ab/"), ("a/b", "a/b/"), ("..a", "..a/"), ("a..", "a../")]
)
def test_where_vectors_lie(prefix: str, folder: str) -> None:
    assert (
        vector_address(stored({1}, 1, path_or_inline_dv=prefix + format_z85(ID.bytes)), "memory://x/t")
        == f"memory://x/t/{folder}{NAME}"
    )
    for text in (
        "x" * 19,
        f"a/../{format_z85(ID.bytes)}",
        f"../{format_z85(ID.bytes)}",
        f"/a{format_z85(ID.bytes)}",
        "",
    ):
        with pytest.raises(CorruptTable) as caught:
            vector_address(stored({1}, 3, path_or_inline_dv=text), "memory://x/t")
        assert "names no file of the table" in caught.value.message and "at offset 3" in caught.value.message
    outside = stored({1}, 1, storage_type="p", path_or_inline_dv="memory://y/u/a%20b.bin")
    assert vector_address(outside, "memory://x/t") == "memory://y/u/a b.bin"


WHOLE = {"storageType": "i", "pathOrInlineDv": "x", "offset": None, "sizeInBytes": 4, "cardinality": 2}
NOTHING = dict.fromkeys(WHOLE)


def descriptors(*rows: dict[str, Any] | None) -> pa.StructArray:
    return pa.array(rows, DELETION_VECTOR)


def test_which_descriptors_are_there() -> None:
    """A number alone is none: some writers fill it in where there is nothing else."""
    one = [{**NOTHING, name: WHOLE[name]} for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")]
    found = has_vector(descriptors(None, NOTHING, {**NOTHING, "offset": 1}, WHOLE, *one))
    assert found.to_pylist() == [False, False, False, True, True, True, True, True]
    assert [one.cardinality for one in parse_descriptors(descriptors(WHOLE, {**WHOLE, "cardinality": None}))] == [2, -1]
    (parsed,) = parse_descriptors(descriptors({**WHOLE, "offset": 7}))
    assert parsed == DeletionVector(storage_type="i", path_or_inline_dv="x", offset=7, size_in_bytes=4, cardinality=2)
    for row in (None, *({**WHOLE, name: None} for name in ("storageType", "pathOrInlineDv", "sizeInBytes"))):
        with pytest.raises(CorruptTable) as caught:
            parse_descriptors(descriptors(WHOLE, row))
        assert (
            "a descriptor is incomplete" in caught.value.message and "offset" not in caught.value.message.split(":")[0]
        )


def test_rows_that_are_left() -> None:
    files = make_files(
        {"path": "a"}, {"path": "b", "deletionVector": WHOLE}, {"path": "c", "deletionVector": NOTHING}, {"path": "d", "deletionVector": {**WHOLE, "cardinality": None}},
    )  # fmt: skip
    for counts, left in (
        ([5, 5, 5, 5], [5, 3, 5, None]),
        ([1, 2, 0, 1], [1, 0, 0, None]),
        ([None, 1, None, 1], [None, 0, None, None]),
        ([0, None, 3, 3], [0, None, 3, None]),
    ):
        assert live_row_counts(files, pa.array(counts, pa.int64())).to_pylist() == left
    plain = pa.array([1, None], pa.int64())
    assert live_row_counts(make_files({"path": "a"}, {"path": "b"}), plain) is plain
    assert masked_files(files)["path"].to_pylist() == ["b", "d"] and masked_files(files.slice(0, 1)).num_rows == 0
    assert vectors_of(files).equals(files["deletionVector"].combine_chunks())


LISTED = ("deletionVectors",)
KNOWS = Protocol(min_reader_version=3, min_writer_version=7, reader_features=LISTED, writer_features=LISTED)
WRITERS = Protocol(min_reader_version=1, min_writer_version=7, writer_features=LISTED)
LEGACY = Protocol(min_reader_version=1, min_writer_version=2)


def test_vectors_of_which_nobody_can_say_what_they_delete() -> None:
    plain, masked = {"path": "a%62"}, {"path": "ab", "deletionVector": WHOLE}
    other = {"path": "ab", "deletionVector": {**WHOLE, "pathOrInlineDv": "y"}}
    for rows in ([plain, plain], [plain], [masked], [{"path": "x"}, {"path": "x"}, masked], []):
        for protocol in (KNOWS, WRITERS, None):
            ensure_sound_vectors(make_files(*rows), protocol, "u", 3)
    ensure_sound_vectors(make_files(plain), LEGACY, "u", 3)
    for rows in ([plain, masked], [masked, other], [{"path": "z", "deletionVector": WHOLE}, masked, plain]):
        with pytest.raises(CorruptTable) as caught:
            ensure_sound_vectors(make_files(*rows), None, "u", 3)
        error = caught.value
        assert (error.code, error.path, error.url, error.version) == ("damaged-deletion-vector", "ab", "u", 3)
    with pytest.raises(CorruptTable) as caught:
        ensure_sound_vectors(make_files({"path": "x"}, masked), LEGACY, "u", 3)
    assert (caught.value.code, caught.value.path, caught.value.version) == ("unsupported-deletion-vector", "ab", 3)


def test_plans_of_live_files_and_of_those_of_several_versions() -> None:
    """Of several versions nobody knows which protocol a file came by."""
    config = make_config(protocol=LEGACY)
    files = make_files({"path": "a"}, {"path": "b", "deletionVector": WHOLE})
    part = ScanPart("files", scan_files(files, config, "UTC"), "parquet", config.data_columns, ())
    plan = ScanPlan("memory://t", (part, replace(part, key="more", files=part.files.slice(0, 1))), config.schema)
    store = MemoryStore(uuid.uuid4().hex, "/t")
    with pytest.raises(CorruptTable) as caught:
        mask_rows(plan, ScanContext(config, files, store, "UTC", version=7))
    assert (caught.value.code, caught.value.version, caught.value.url) == ("unsupported-deletion-vector", 7, store.url)
    several = mask_rows(plan, ScanContext(config, files, store, "UTC", version=None))
    assert [(one.key, one.files["path"].to_pylist()) for one in several.parts] == [
        ("files", ["a"]),
        ("files/masked", ["b"]),
        ("more", ["a"]),
    ]
    assert [one.masks is None for one in several.parts] == [True, False, True]
    without = make_files({"path": "a"}, {"path": "b"})
    assert mask_rows(plan, ScanContext(config, without, store, "UTC", version=7)) is plan


def test_room_for_vectors_that_come_later() -> None:
    config, store = make_config(protocol=KNOWS), MemoryStore(uuid.uuid4().hex, "/t")
    part = ScanPart("files", scan_files(make_files({"path": "a"}), config, "UTC"), "parquet", config.data_columns, ())
    room = room_for_vectors(part, store, open_store, 7)
    assert (room.key, room.files.num_rows, room.files.schema, room.is_masked) == (
        "files/masked",
        0,
        part.files.schema,
        True,
    )
    assert isinstance(room.masks, DeletionVectors) and room.masks.version == 7 and len(room.masks.paths) == 0
    assert room.load_masks(room.files).num_rows == 0


def test_errors_of_a_plan_say_of_which_version() -> None:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    config = make_config(protocol=KNOWS)
    listed = make_files({"path": "b", "deletionVector": {**WHOLE, "storageType": "x"}})
    source = DeletionVectors(pa.array(["b"]), listed, store, open_store, 7)
    with pytest.raises(CorruptTable) as caught:
        source.load_masks(scan_files(listed, config, "UTC"))
    assert (caught.value.version, caught.value.url) == (7, store.url)
