"""Index files of deletion vectors: byte by byte what is written, where they lie, and what is read of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from paimon_tables import EMPTY_ROW
from pyroaring import BitMap, BitMap64

from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.errors import CorruptTable, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.features.deletion_vectors import (
    VectorMasks,
    format_vectors,
    index_folder,
    index_paths,
    new_index_files,
    parse_vector,
    vector_counts,
    vector_masks,
)
from alluvium.paimon.files.manifest_write import format_index_manifest
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.storage.open import open_store

MAGIC_32, MAGIC_64 = struct.pack(">i", 1581511376), struct.pack("<i", 1681511377)
RANGES = ("name", "index", "offset", "length", "count")


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def bitmap(*rows: int) -> bytes:
    made: bytes = BitMap64(rows).serialize()
    return made


@pytest.mark.parametrize(("is_wide", "more"), [(False, 0), (True, 8)])
def test_what_is_written(is_wide: bool, more: int) -> None:
    """ "`f1` points at the size"; "`f2` = size; of 64 bits size + 8"."""
    rows = {"a": [1], "b": [2, 3, 70_000], "c": [0]}
    content, ranges = format_vectors({name: (bitmap(*of), len(of)) for name, of in rows.items()}, is_wide)
    bodies = [MAGIC_64 + bitmap(*of) if is_wide else MAGIC_32 + BitMap(of).serialize() for of in rows.values()]
    assert content == b"\x01" + b"".join(map(framed, bodies))
    places = [1, 1 + len(bodies[0]) + 8, 1 + len(bodies[0]) + len(bodies[1]) + 16]
    assert ranges == [
        {"f0": name, "f1": place, "f2": len(body) + more, "_CARDINALITY": len(of)}
        for (name, of), place, body in zip(rows.items(), places, bodies, strict=True)
    ]
    for entry, of in zip(ranges, rows.values(), strict=True):
        first = entry["f1"]
        assert isinstance(first, int)
        assert list(positions_of(parse_vector(content[first:], "f"))) == of
    assert format_vectors({}, is_wide) == (b"\x01", [])


@pytest.mark.parametrize("rows", [[1 << 32], [5, 1 << 32], [1 << 33, (1 << 33) + 1], [1 << 57]])
def test_rows_that_32_bits_do_not_name(rows: list[int]) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        format_vectors({"a": (bitmap(1), 1), "b": (bitmap(*rows), len(rows))}, is_wide=False)
    assert (caught.value.code, caught.value.features) == ("unsupported-row-change", ("deletion-vectors.bitmap64",))
    content, _ = format_vectors({"b": (bitmap(*rows), len(rows))}, is_wide=True)
    assert list(positions_of(parse_vector(content[1:], "f"))) == rows
    assert format_vectors({"a": (bitmap((1 << 32) - 1), 1)}, is_wide=False)[1][0]["_CARDINALITY"] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack(">i", -1) + framed(MAGIC_32 + BitMap([1]).serialize())[4:],
        struct.pack(">i", 0) + bytes(4),
        framed(MAGIC_32),
        framed(MAGIC_32 + b"abc"),
        framed(MAGIC_32 + BitMap([1]).serialize())[:-4],
        # The magic of one version in the order of bytes of the other.
        framed(MAGIC_32[::-1] + BitMap([1]).serialize()),
        framed(MAGIC_64[::-1] + bitmap(1)),
    ],
)
def test_vectors_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_vector(data, "index/x")
    assert (caught.value.code, caught.value.path) == ("damaged-deletion-vector", "index/x")
    assert "read another snapshot" in (caught.value.hint or "")


def test_what_stands_behind_a_vector_is_the_next_ones() -> None:
    whole = framed(MAGIC_32 + BitMap([7]).serialize())
    assert parse_vector(whole + b"more", "x") == parse_vector(whole, "x") == bitmap(7)


def parted(path: Path, **options: str) -> Snapshot:
    url = str(path / "t")
    PaimonTable.create(url, pa.schema([("p", pa.string()), ("k", pa.int32())]), ["p"], options=options)
    for p in ("a", "b"):
        append(open_target(open_store(url)), [{"p": p, "k": k} for k in range(5)])
    return load_snapshot(open_store(url))


def with_vectors(snapshot: Snapshot, entries: Sequence[Mapping[str, Any]]) -> Snapshot:
    """The same state with an index manifest of these entries."""
    table = pa.Table.from_pylist([{"kind": 0, "file_size": 1, "row_count": 1, **e} for e in entries], INDEX_ENTRIES)
    snapshot.store.put("manifest/index-manifest-x", format_index_manifest(table, "null"))
    assert snapshot.document is not None
    document = replace_document(snapshot.document, index_manifest="index-manifest-x")
    return replace(snapshot, document=document, _loaded={})


def replace_document(document: Any, **changed: Any) -> Any:
    return type(document)(**{**{name: getattr(document, name) for name in document.__struct_fields__}, **changed})


@pytest.mark.parametrize("beside", [False, True])
def test_new_index_files(tmp_path: Path, beside: bool) -> None:
    """One a bucket, all of one job; in the directory of indexes, or beside the data where the table wants it so."""
    options = {"index-file-in-data-file-dir": "true", "deletion-vectors.bitmap64": "true"} if beside else {}
    snapshot = parted(tmp_path, **options)
    first, second = snapshot.entries.to_pylist()
    vectors = {
        (e["partition"], e["bucket"]): {e["file_name"]: (bitmap(*rows), len(rows)), **more}
        for e, rows, more in ((first, [1, 2], {"other": (bitmap(9), 1)}), (second, [3], {}))
    }
    added, contents = new_index_files(snapshot, vectors)
    assert added.schema == INDEX_ENTRIES
    rows = added.to_pylist()
    assert [(row["kind"], row["partition"], row["bucket"], row["index_type"], row["row_count"]) for row in rows] == [
        (0, first["partition"], 0, "DELETION_VECTORS", 2), (0, second["partition"], 0, "DELETION_VECTORS", 1),
    ]  # fmt: skip
    names = [row["file_name"] for row in rows]
    assert [name.rpartition("-")[2] for name in names] == ["0", "1"]
    assert len({name.rpartition("-")[0] for name in names}) == 1 and names[0].startswith("index-")
    folders = ["p=a/bucket-0", "p=b/bucket-0"] if beside else ["index", "index"]
    assert index_folder(snapshot, added) == folders
    assert list(contents) == [f"{folder}/{name}" for folder, name in zip(folders, names, strict=True)]
    assert index_paths(snapshot, added).to_pylist() == list(contents)
    for (content, ranges), row, data in zip(
        (format_vectors(listed, beside) for listed in vectors.values()), rows, contents.values(), strict=True
    ):
        assert (data, row["file_size"], row["row_count"]) == (content, len(content), len(ranges))
        assert row["ranges"] == ranges
    # What was made is what is read.
    for place, data in contents.items():
        snapshot.store.put(place, data)
    read = vector_masks(with_vectors(snapshot, rows))
    assert read is not None and read.ranges["index"].to_pylist() == [*([*contents][:1] * 2), [*contents][1]]
    found = read.load([second["file_name"], "nowhere", first["file_name"]])
    assert {name: list(positions_of(mask)) for name, mask in found.items()} == {
        first["file_name"]: [1, 2], second["file_name"]: [3],
    }  # fmt: skip
    assert vector_counts(read.snapshot, pa.array(["other", "nowhere", first["file_name"]])).to_pylist() == [1, 0, 2]
    assert new_index_files(snapshot, {})[1] == {}


def test_states_without_vectors(tmp_path: Path) -> None:
    snapshot = parted(tmp_path)
    names = snapshot.entries["file_name"].combine_chunks()
    assert vector_masks(snapshot) is None and vector_counts(snapshot, names).to_pylist() == [0, 0]
    place = {"partition": EMPTY_ROW, "bucket": 0, "file_name": "h"}
    # Indexes of other kinds list no rows, and neither does one of vectors that is empty.
    ranges = [{"f0": "a", "f1": 1, "f2": 9, "_CARDINALITY": 1}]
    for entry in (
        {"index_type": "HASH", "ranges": None}, {"index_type": "HASH", "ranges": ranges},
        {"index_type": "DELETION_VECTORS", "ranges": []},
    ):  # fmt: skip
        assert vector_masks(with_vectors(snapshot, [{**place, **entry}])) is None
    assert vector_masks(replace(snapshot, document=None)) is None


def test_how_many_rows_nobody_says(tmp_path: Path) -> None:
    ranges = [{"f0": "a", "f1": 1, "f2": 9, "_CARDINALITY": None}, {"f0": "b", "f1": 9, "f2": 9, "_CARDINALITY": 4}]
    entry = {"partition": EMPTY_ROW, "bucket": 0, "file_name": "i", "index_type": "DELETION_VECTORS", "ranges": ranges}
    snapshot = with_vectors(parted(tmp_path), [entry])
    assert vector_counts(snapshot, pa.array(["b", "a", "c"])).to_pylist() == [4, None, 0]
    masks = vector_masks(snapshot)
    assert masks is not None and masks.ranges.to_pylist() == [
        dict(zip(RANGES, ("a", "index/i", 1, 9, None), strict=True)),
        dict(zip(RANGES, ("b", "index/i", 9, 9, 4), strict=True)),
    ]


def test_index_files_elsewhere(tmp_path: Path) -> None:
    snapshot = parted(tmp_path)
    content, ranges = format_vectors({"a": (bitmap(3), 1)}, is_wide=False)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "i").write_bytes(content)
    entry = {"partition": EMPTY_ROW, "bucket": 0, "file_name": "i", "index_type": "DELETION_VECTORS", "ranges": ranges}
    external = (tmp_path / "elsewhere" / "i").as_uri()
    masks = vector_masks(with_vectors(snapshot, [{**entry, "external_path": external}]))
    assert masks is not None and masks.ranges["index"].to_pylist() == [external]
    assert {name: list(positions_of(mask)) for name, mask in masks.load(["a"]).items()} == {"a": [3]}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../i", "/etc/passwd", "a\x00b"])
def test_index_files_by_a_path(tmp_path: Path, name: str) -> None:
    entries = pa.Table.from_pylist(
        [{"kind": 0, "partition": EMPTY_ROW, "bucket": 0, "index_type": "DELETION_VECTORS", "file_name": n,
          "file_size": 1, "row_count": 1} for n in ("fine", name)],
        INDEX_ENTRIES,
    )  # fmt: skip
    snapshot = parted(tmp_path)
    with pytest.raises(CorruptTable) as caught:
        index_paths(snapshot, entries)
    assert caught.value.code == "path-escapes-root"
    assert index_paths(snapshot, entries.slice(0, 1)).to_pylist() == ["index/fine"]


def masks_of(snapshot: Snapshot, *ranges: tuple[str, str, int, int]) -> VectorMasks:
    return VectorMasks(snapshot, pa.table([pa.array(column) for column in zip(*ranges, strict=True)], list(RANGES[:4])))


def test_what_is_asked_of_index_files(tmp_path: Path) -> None:
    """Lengths with and without the eight bytes around a vector, or too short: its own length tells."""
    snapshot = parted(tmp_path)
    body = MAGIC_32 + BitMap([1, 5]).serialize()
    snapshot.store.put("index/i", b"\x01" + framed(body) + framed(MAGIC_32 + BitMap([8]).serialize()))
    for length in (len(body), len(body) + 8, len(body) - 1, 1, len(body) - 8):
        found = masks_of(snapshot, ("a", "index/i", 1, length)).load(["a"])
        assert list(positions_of(found["a"])) == [1, 5], length
    for masks, kind, code in (
        (masks_of(snapshot, ("a", "index/gone", 1, 9)), NotFound, "missing-file"),
        (masks_of(snapshot, ("a", "index/i", -1, 9)), CorruptTable, "damaged-deletion-vector"),
        (masks_of(snapshot, ("a", "index/i", 2, len(body))), CorruptTable, "damaged-deletion-vector"),
    ):
        with pytest.raises(kind) as caught:
            masks.load(["a"])
        assert (caught.value.code, caught.value.path) == (code, masks.ranges["index"][0].as_py())
        # Of files that nobody asks for nothing is read.
        assert masks.load(["b"]) == masks.load([]) == {}
        files = pa.table({"path": ["b"], "num_rows": [9], "mask": pa.nulls(1, pa.binary())})
        assert masks.load_masks(files)["mask"].to_pylist() == [None]
