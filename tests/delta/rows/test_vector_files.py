"""Vectors as writers make them, read back by the reader's half."""

from __future__ import annotations

import uuid
import zlib

from pyroaring import BitMap64

from alluvium.delta.features.rows.deletion_vectors import load_vectors
from alluvium.delta.rows.vector_files import vector_column, write_vectors
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def bitmap(positions) -> tuple[bytes, int]:
    found = BitMap64(positions)
    return found.serialize(), len(found)


def test_vectors_of_a_commit_share_a_file():
    store = MemoryStore(str(uuid.uuid4()), "t")
    wanted = [bitmap(range(0, 9000, 7)), bitmap(range(1, 100000, 3))]
    vectors, path = write_vectors(store, wanted, uuid.UUID(int=7))
    assert path == f"deletion_vector_{uuid.UUID(int=7)}.bin"
    data = store.get(path)
    # "The format version of this file: `1` for the format described here."
    assert data[0] == 1
    for vector, (content, cardinality) in zip(vectors, wanted, strict=True):
        start = vector.offset
        framed = data[start : start + vector.size_in_bytes + 8]
        # "dataSize", "bitmapData", "checksum: CRC-32 checksum of `bitmapData`"
        assert int.from_bytes(framed[:4], "big") == vector.size_in_bytes == len(content) + 4
        assert int.from_bytes(framed[-4:], "big") == zlib.crc32(framed[4:-4])
        assert (vector.storage_type, vector.cardinality) == ("u", cardinality)
    assert load_vectors(vectors, store, open_store) == [content for content, _ in wanted]


def test_small_vectors_have_a_file_too():
    """The reference's VACUUM knows no vectors in the log itself."""
    store = MemoryStore(str(uuid.uuid4()), "t")
    vectors, path = write_vectors(store, [bitmap([3, 8]), bitmap([0])])
    assert [info.path for info in store.list_tree("")] == [path]
    assert [(vector.storage_type, vector.cardinality) for vector in vectors] == [("u", 2), ("u", 1)]
    assert load_vectors(vectors, store, open_store) == [bitmap([3, 8])[0], bitmap([0])[0]]
    assert [vector["cardinality"] for vector in vector_column(vectors).to_pylist()] == [2, 1]


def test_no_vectors_make_no_file():
    store = MemoryStore(str(uuid.uuid4()), "t")
    assert write_vectors(store, []) == ([], None)
    assert not list(store.list_tree(""))
