"""What manifests say that is newer than we are, or not looked at by scans, is there after a rewrite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from pyarrow import orc

import alluvium
from alluvium.codecs.avro.avro_container import format_avro, read_avro
from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import read_index_manifest, read_manifest, scan_index_manifest, scan_manifest
from alluvium.paimon.files.manifest_write import format_index_manifest
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SEQUENCES = {"type": "array", "items": "long"}
RANGE = {
    "type": "record",
    "name": "record__X",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "bytes"}],
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    url = str(tmp_path / "t")
    schema = pa.schema([("k", pa.int32()), ("day", pa.string())])
    PaimonTable.create(url, schema, ["day"], options={"manifest.merge-min-count": "3"})
    return open_store(url)


def delta_manifest(store: Store, number: int) -> str:
    name = json.loads(store.get(f"snapshot/snapshot-{number}"))["deltaManifestList"]
    (line,) = read_avro(store.get(f"manifest/{name}"), name)[1]
    return f"manifest/{line['_FILE_NAME']}"


def extend(store: Store, path: str, *added: tuple[list[str], Any, Any], is_null: bool = True) -> None:
    """Writes an Avro file anew, as a later writer would have: with more fields, each at its path, of a type, a value."""
    schema, records = read_avro(store.get(path), path)
    for (*front, name), kind, value in added:
        parent, members = schema, records
        for step in front:
            parent = next(f["type"] for f in parent["fields"] if f["name"] == step)
            members = [member[step] for member in members]
        if all(f["name"] != name for f in parent["fields"]):
            field = {"type": ["null", kind], "default": None} if is_null else {"type": kind}
            parent["fields"].append({"name": name, **field})
        for member in members:
            member[name] = value
    store.put(path, format_avro(schema, records))


LATER = (
    (["_FILE", "_EMBEDDED_FILE_INDEX"], "bytes", b"index"),
    (["_FILE", "_WRITE_COLS_SEQUENCES"], SEQUENCES, [3, 4]),
    (["_FILE", "_VALUE_STATS", "_SUMS"], "double", 2.5),
    (["_RANGE"], RANGE, {"a": 1, "b": b"x"}),
)


def entries_of(store: Store, number: int) -> list[dict[str, Any]]:
    path = delta_manifest(store, number)
    return read_avro(store.get(path), path)[1]


def test_deletions_are_whole(store: Store) -> None:
    """ "file.identifier()": partition, bucket, level, name, extra files, embedded index, external path."""
    append(open_target(store), [{"k": 1, "day": "a"}])
    extend(store, delta_manifest(store, 1), *LATER)
    append(open_target(store), [{"k": 2, "day": "a"}], Replace())
    added = entries_of(store, 1)[0]
    deleted, mine = entries_of(store, 2)
    assert (deleted["_KIND"], mine["_KIND"]) == (1, 0)
    assert deleted["_FILE"]["_EMBEDDED_FILE_INDEX"] == b"index"
    assert deleted == {**added, "_KIND": 1}
    assert (mine["_RANGE"], mine["_FILE"]["_WRITE_COLS_SEQUENCES"]) == (None, None)
    assert alluvium.open(store.url).to_arrow(columns=["k"])["k"].to_pylist() == [2]


def test_merged_manifests_are_whole(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}])
    append(open_target(store), [{"k": 2, "day": "b"}])
    extend(store, delta_manifest(store, 1), *LATER)
    extend(store, delta_manifest(store, 2), (["_FILE", "_MORE"], "string", "x"))
    before = [entries_of(store, number)[0] for number in (1, 2)]
    for k in (3, 4):
        append(open_target(store), [{"k": k, "day": "c"}])
    (merged, _) = alluvium.open(store.url).system("manifests")["file_name"].to_pylist()
    found = read_avro(store.get(f"manifest/{merged}"), merged)[1]
    assert len(found) == 3
    for was, now in zip(before, found, strict=False):
        said = {k: v for k, v in now["_FILE"].items() if v is not None or k in was["_FILE"]}
        said["_VALUE_STATS"] = {k: v for k, v in said["_VALUE_STATS"].items() if v is not None}
        assert said == was["_FILE"]
        assert now["_RANGE"] == was.get("_RANGE")


STATS = {"_MIN_VALUES": b"a", "_MAX_VALUES": b"b", "_NULL_COUNTS": [1, None]}


@pytest.mark.parametrize(
    "added",
    [
        ((["_FILE", "_X"], "record__FILE__KEY_STATS", STATS),),
        ((["_FILE", "_X"], {"type": "array", "items": "record__FILE__KEY_STATS"}, [STATS]),),
        ((["_RANGE"], RANGE, {"a": 1, "b": b"x"}), (["_RANGE_2"], "record__X", {"a": 2, "b": b"y"})),
        ((["_ENUM"], {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"), (["_ENUM_2"], "E", "A")),
    ],
)
def test_types_that_are_called_by_their_names(store: Store, added: Any) -> None:
    """A type stands written out once in a schema, perhaps where we know it; unknown fields stand alone."""
    for k in range(6):
        append(open_target(store), [{"k": k, "day": "a"}])
        extend(store, delta_manifest(store, k + 1), *added)
    append(open_target(store), [{"k": 6, "day": "a"}], Replace())
    *deleted, _ = entries_of(store, 7)
    assert [entry["_KIND"] for entry in deleted] == [1] * 6
    for (*front, name), _, value in added:
        found = deleted
        for step in front:
            found = [one[step] for one in found]
        assert [one[name] for one in found] == [value] * 6


def test_fields_of_two_writers_whose_types_have_one_name(store: Store) -> None:
    other = {**RANGE, "fields": [{"name": "c", "type": "string"}]}
    for n, (name, kind, value) in enumerate((("_A", RANGE, {"a": 1, "b": b"x"}), ("_B", other, {"c": "y"}))):
        append(open_target(store), [{"k": n, "day": "a"}])
        extend(store, delta_manifest(store, n + 1), ([name], kind, value))
    append(open_target(store), [{"k": 3, "day": "a"}], Replace())
    first, second, _ = entries_of(store, 3)
    assert (first["_A"], first["_B"], second["_A"], second["_B"]) == ({"a": 1, "b": b"x"}, None, None, {"c": "y"})


def test_lists_of_manifests_are_whole(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}])
    extend(store, f"manifest/{_list(store, 1, 'delta')}", (["_ROWS"], "long", 7))
    append(open_target(store), [{"k": 2, "day": "a"}])
    name = _list(store, 2, "base")
    assert [line["_ROWS"] for line in read_avro(store.get(f"manifest/{name}"), name)[1]] == [7]


def _list(store: Store, number: int, kind: str) -> str:
    # Its size is not told, for it is another than when it was written.
    said = json.loads(store.get(f"snapshot/snapshot-{number}"))
    said = {key: value for key, value in said.items() if not key.endswith("ListSize")}
    store.put(f"snapshot/snapshot-{number}", json.dumps(said).encode())
    name: str = said[f"{kind}ManifestList"]
    return name


def test_index_manifests_are_whole(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}, {"k": 2, "day": "b"}])
    partitions = {e["_PARTITION"][-8:-7]: e["_PARTITION"] for e in entries_of(store, 1)}
    rows = [{"kind": 0, "partition": value, "bucket": 0, "index_type": "GLOBAL", "file_name": f"index-{n}",
             "file_size": 5, "row_count": 1} for n, value in enumerate(partitions.values())]  # fmt: skip
    data = format_index_manifest(pa.Table.from_pylist(rows, schema=INDEX_ENTRIES), "null")
    store.put("manifest/index-manifest-0", data)
    extend(store, "manifest/index-manifest-0", (["_GLOBAL_INDEX"], RANGE, {"a": 9, "b": b"meta"}))
    said = json.loads(store.get("snapshot/snapshot-1"))
    store.put("snapshot/snapshot-1", json.dumps({**said, "indexManifest": "index-manifest-0"}).encode())
    append(open_target(store), [{"k": 3, "day": "a"}], Replace(dynamic=True))
    name = json.loads(store.get("snapshot/snapshot-2"))["indexManifest"]
    assert name != "index-manifest-0"
    (left,) = read_avro(store.get(f"manifest/{name}"), name)[1]
    assert (left["_FILE_NAME"], left["_GLOBAL_INDEX"]) == ("index-1", {"a": 9, "b": b"meta"})


@pytest.mark.parametrize("form", ["avro", "orc"])
def test_deletion_vectors_that_say_more_are_not_written_anew(store: Store, form: str) -> None:
    """What a range of a later writer says beyond ours would be lost: the list has a column as a whole."""
    ranged = {"f0": "x", "f1": 1, "f2": 2, "_CARDINALITY": 3, "_NEWER": 7}
    record = {"_VERSION": 1, "_KIND": 0, "_PARTITION": bytes(12), "_BUCKET": 0, "_INDEX_TYPE": "DELETION_VECTORS",
              "_FILE_NAME": "i", "_FILE_SIZE": 1, "_ROW_COUNT": 1, "_DELETIONS_VECTORS_RANGES": [ranged]}  # fmt: skip
    if form == "avro":
        nothing = format_index_manifest(INDEX_ENTRIES.empty_table(), "null")
        schema = read_avro(nothing, "nothing")[0]
        (ranges,) = (f["type"] for f in schema["fields"] if f["name"] == "_DELETIONS_VECTORS_RANGES")
        ranges[1]["items"][1]["fields"].append({"name": "_NEWER", "type": "long"})
        store.put("manifest/i", format_avro(schema, [record]))
    else:
        sink = pa.BufferOutputStream()
        orc.write_table(pa.Table.from_pylist([record]), sink)
        store.put("manifest/i", sink.getvalue().to_pybytes())
    assert scan_index_manifest(store, "i")["ranges"].to_pylist() == [[{"f0": "x", "f1": 1, "f2": 2, "_CARDINALITY": 3}]]
    with pytest.raises(UnsupportedFeature) as caught:
        read_index_manifest(store, "i")
    assert (caught.value.code, caught.value.features, caught.value.path) == (
        "unknown-manifest-field", ("_NEWER",), "manifest/i",
    )  # fmt: skip


def test_one_field_of_two_types(store: Store) -> None:
    for n, kind in enumerate(("long", "string")):
        append(open_target(store), [{"k": n, "day": "a"}])
        extend(store, delta_manifest(store, n + 1), (["_FILE", "_X"], kind, None))
    with pytest.raises(UnsupportedFeature) as caught:
        append(open_target(store), [{"k": 3, "day": "a"}], Replace())
    assert caught.value.code == "unknown-manifest-field"


def test_fields_of_entries_are_the_same_after_a_merge(store: Store) -> None:
    """A merge writes `["null", "long"]` where a later writer had written "long", and goes on writing."""
    for k in range(12):
        append(open_target(store), [{"k": k, "day": "a"}])
        if k % 4 != 3:
            extend(store, delta_manifest(store, k + 1), (["_FILE", "_X"], "long", k), is_null=False)
    names = alluvium.open(store.url).system("manifests")["file_name"].to_pylist()
    assert len(names) < 6
    found = [one["_FILE"] for name in names for one in read_avro(store.get(f"manifest/{name}"), name)[1]]
    assert [file.get("_X") for file in found] == [None if k % 4 == 3 else k for k in range(12)]


def test_manifests_that_cannot_be_joined_are_left(store: Store) -> None:
    """Appends go on, for nobody needs manifests merged."""
    for k in range(8):
        append(open_target(store), [{"k": k, "day": "a"}])
        extend(store, delta_manifest(store, k + 1), (["_FILE", "_X"], "long" if k % 2 else "string", None))
    view = alluvium.open(store.url)
    assert sorted(view.to_arrow(columns=["k"])["k"].to_pylist()) == list(range(8))
    named = set(view.system("manifests")["file_name"].to_pylist())
    there = {info.path.rpartition("/")[2] for info in store.list_from("manifest", "manifest-")}
    assert named == {name for name in there if not name.startswith("manifest-list")}


def test_orc_manifests_with_more_are_not_written_anew(store: Store) -> None:
    table = pa.table({"_KIND": pa.array([0], pa.int8()), "_BUCKET": [0], "_FILE": [{"_FILE_NAME": "x", "_LATER": 3}]})
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink)
    store.put("manifest/m", sink.getvalue().to_pybytes())
    assert scan_manifest(store, "m")["file_name"].to_pylist() == ["x"]
    with pytest.raises(UnsupportedFeature):
        read_manifest(store, "m")


@pytest.mark.long
@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("count", [1, 40])
def test_manifests_of_another_version_are_not_read(store: Store, version: int, count: int) -> None:
    """Java, `ManifestEntrySerializer.convertFrom`: "Unsupported version"."""
    for k in range(count):
        append(open_target(store, **{"manifest.merge-min-count": "1000"}), [{"k": k, "day": "a"}])
    path = delta_manifest(store, count)
    for other in (path, f"manifest/{_list(store, count, 'delta')}"):
        data = store.get(other)
        schema, records = read_avro(data, other)
        store.put(other, format_avro(schema, [{**record, "_VERSION": version} for record in records]))
        with pytest.raises(UnsupportedFeature) as caught:
            alluvium.open(store.url).to_arrow()
        assert caught.value.code == "manifest-version"
        store.put(other, data)
    assert alluvium.open(store.url).to_arrow().num_rows == count
