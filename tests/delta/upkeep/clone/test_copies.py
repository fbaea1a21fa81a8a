"""Which files a deep clone copies, and where they go: by path, size and time, and files of vectors by their names."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
from delta_values import make_metadata

from alluvium.codecs.z85 import format_z85
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.spec import FILES, Protocol, format_actions
from alluvium.delta.upkeep.clone.copies import COPIED, Copies, plan_copies
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.storage.stores.memory import MemoryStore

PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)
NUMBER = uuid.UUID(int=0xABCDEF)
ENCODED = format_z85(NUMBER.bytes)


def vector(kind: str, text: str) -> dict[str, Any]:
    return {"storageType": kind, "pathOrInlineDv": text, "offset": 1, "sizeInBytes": 9, "cardinality": 2}


def snapshot(*adds: dict[str, Any]) -> Snapshot:
    store = MemoryStore(uuid.uuid4().hex, "t")
    lines = [
        json.dumps({"add": {"partitionValues": {}, "size": 5, "modificationTime": 7, "dataChange": True, "stats": '{"numRecords":9}', **one}})
        for one in adds
    ]  # fmt: skip
    store.put(commit_path(0), format_actions([PROTOCOL, make_metadata()]) + "\n".join(lines).encode())
    return load_snapshot(store)


def planned(source: Snapshot, existing: Snapshot | None = None) -> Copies:
    return plan_copies(source, source.files.select(FILES.names), existing)


def after(copies: Copies) -> Snapshot:
    """The clone, once it is made."""
    rows = copies.files.to_pylist()
    named = ("path", "size", "modificationTime", "deletionVector")
    return snapshot(*({name: row[name] for name in named if row[name] is not None} for row in rows))


def test_files_have_below_the_folder_the_paths_that_they_have_in_the_source() -> None:
    source = snapshot({"path": "p=1/a%20b"}, {"path": "c%25", "size": 6})
    found = planned(source)
    assert re.fullmatch(r"copy-[0-9a-f]{32}", found.folder) and planned(source).folder != found.folder
    assert found.data.schema == COPIED and found.data.to_pylist() == [
        {"origin": "p=1/a b", "place": f"{found.folder}/p=1/a b", "size": 5},
        {"origin": "c%", "place": f"{found.folder}/c%", "size": 6},
    ]
    assert found.files["path"].to_pylist() == [f"{found.folder}/p=1/a%20b", f"{found.folder}/c%25"]
    assert found.files.schema == FILES and found.is_new.to_pylist() == [True, True]
    assert found.vectors.num_rows == 0 and found.files["deletionVector"].null_count == 2


def test_files_from_elsewhere_get_a_place_by_the_address_of_their_folder() -> None:
    source = snapshot(
        {"path": "file:/far/x/a%20b"}, {"path": "s3a://b/a%20b"}, {"path": "file:/far/x/c"}, {"path": "d"}
    )
    found = planned(source)
    places = [row["place"].removeprefix(f"{found.folder}/") for row in found.data.to_pylist()]
    assert found.data["origin"].to_pylist() == ["file:/far/x/a b", "s3a://b/a b", "file:/far/x/c", "d"]
    folders = [place.partition("/")[0] for place in places]
    assert folders[0] == folders[2] != folders[1] and all(re.fullmatch("from-[0-9a-f]{32}", one) for one in folders[:3])
    assert [place.partition("/")[2] for place in places] == ["a b", "a b", "c", ""] and places[3] == "d"
    assert folders == [row["place"].split("/")[1] for row in planned(source).data.to_pylist()]


@pytest.mark.parametrize(
    ("change", "is_new"), [({}, False), ({"size": 6}, True), ({"modificationTime": 8}, True), ({"path": "other"}, True)]
)
def test_what_is_there_since_an_earlier_clone_stays(change: dict[str, Any], is_new: bool) -> None:
    first = planned(snapshot({"path": "a%20b"}, {"path": "file:/far/x"}))
    there = after(first)
    again = planned(snapshot({"path": "a%20b", **change}, {"path": "file:/far/x"}), there)
    assert again.is_new.to_pylist() == [is_new, False] and again.data.num_rows == is_new
    kept = first.files["path"].to_pylist()
    assert again.files["path"].to_pylist()[1] == kept[1]
    assert (again.files["path"][0].as_py() == kept[0]) != is_new
    assert again.files["path"][0].as_py().startswith(again.folder) == is_new


def test_files_that_the_clone_itself_has_are_none_of_the_source() -> None:
    """A folder that only looks like one of a clone is part of the path."""
    there = snapshot({"path": "copy-1/a"}, {"path": "a"}, {"path": f"x/copy-{'0' * 32}/b"})
    found = planned(snapshot({"path": "a"}, {"path": "b"}), there)
    assert found.is_new.to_pylist() == [False, True] and found.files["path"][0].as_py() == "a"


@pytest.mark.parametrize("prefix", ["a", "a/b", "a/b c/d"])
def test_vectors_that_are_named_by_their_address_keep_their_folder(prefix: str) -> None:
    bare = snapshot({"path": "a"})
    address = f"{bare.store.url}/{prefix}/deletion_vector_{NUMBER}.bin"
    line = {
        "path": "b",
        "partitionValues": {},
        "size": 5,
        "modificationTime": 7,
        "dataChange": True,
        "stats": '{"numRecords":9}',
    }
    line["deletionVector"] = vector("p", address.replace(" ", "%20"))
    bare.store.put(commit_path(1), json.dumps({"add": line}).encode())
    found = planned(load_snapshot(bare.store))
    (row,) = found.vectors.to_pylist()
    assert row["origin"] == address
    assert row["place"].lstrip("/") == f"{found.folder}/{prefix}/deletion_vector_{NUMBER}.bin"
    named = [one for one in found.files["deletionVector"].to_pylist() if one is not None]
    assert named == [vector("u", f"{found.folder}/{prefix}{ENCODED}")]


@pytest.mark.parametrize("prefix", ["", "ab"])
def test_vectors_keep_their_number_and_prefix(prefix: str) -> None:
    source = snapshot({"path": "a", "deletionVector": vector("u", f"{prefix}{ENCODED}")},
                      {"path": "b", "deletionVector": {**vector("u", f"{prefix}{ENCODED}"), "offset": 9}}, {"path": "c"})  # fmt: skip
    found = planned(source)
    folder = f"{prefix}/" if prefix else ""
    stored = f"{folder}deletion_vector_{NUMBER}.bin"
    (row,) = found.vectors.to_pylist()
    assert row["origin"] == f"{source.store.url}/{stored}" and row["size"] is None
    assert row["place"].lstrip("/") == f"{found.folder}/{stored}"
    first, second, third = found.files["deletionVector"].to_pylist()
    name = f"{found.folder}/{prefix}{ENCODED}" if prefix else f"{found.folder}{ENCODED}"
    assert first == {**vector("u", name)} and second == {**vector("u", name), "offset": 9} and third is None
    again = planned(source, after(found))
    assert again.vectors.num_rows == 0 and again.files["deletionVector"].to_pylist() == [first, second, None]


def test_vectors_that_are_called_otherwise_or_lie_elsewhere_get_a_number() -> None:
    source = snapshot(
        {"path": "a", "deletionVector": vector("p", "file:/far/v.bin")},
        {"path": "b", "deletionVector": vector("p", f"file:/far/deletion_vector_{NUMBER}.bin")},
        {"path": "c", "deletionVector": vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")},
    )
    found = planned(source)
    assert set(found.vectors["origin"].to_pylist()) == {"file:/far/v.bin", f"file:/far/deletion_vector_{NUMBER}.bin"}
    expected = {
        origin: f"{found.folder}/deletion_vector_{uuid.uuid5(uuid.NAMESPACE_URL, origin)}.bin"
        for origin in found.vectors["origin"].to_pylist()
    }
    places = zip(found.vectors["origin"].to_pylist(), found.vectors["place"].to_pylist(), strict=True)
    assert {origin: place.lstrip("/") for origin, place in places} == expected
    inline = found.files["deletionVector"].to_pylist()[2]
    assert inline == source.files["deletionVector"].to_pylist()[2]
    again = planned(source, after(found))
    assert again.vectors.num_rows == 0 and again.data.num_rows == 0
    assert again.files["deletionVector"].to_pylist() == found.files["deletionVector"].to_pylist()


def test_of_vectors_alone_that_are_new_the_files_stay() -> None:
    source = snapshot({"path": "a", "deletionVector": vector("u", ENCODED)})
    first = planned(snapshot({"path": "a"}))
    found = planned(source, after(first))
    assert found.is_new.to_pylist() == [False] and found.vectors.num_rows == 1
    assert found.files["path"].to_pylist() == first.files["path"].to_pylist()


@pytest.mark.parametrize("prefix", ["", "ab"])
def test_a_vectors_number_may_begin_with_a_slash(prefix: str) -> None:
    """Base85 has one among its letters; it is none of a folder's, and the file is not copied again for it."""
    encoded = format_z85(uuid.UUID("d7000000-0000-4000-8000-000000000000").bytes)
    assert encoded.startswith("/")
    source = snapshot({"path": "a", "deletionVector": vector("u", prefix + encoded)})
    first = planned(source)
    again = planned(source, after(first))
    assert first.vectors.num_rows == 1 and again.vectors.num_rows == 0
    assert again.files["deletionVector"].to_pylist() == first.files["deletionVector"].to_pylist()
