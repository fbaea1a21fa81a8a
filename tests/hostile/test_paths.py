"""Paths that lead elsewhere: of data files, deletion vectors, sidecars."""

from __future__ import annotations

import json
import os
import uuid

import pytest
from fuzz_tables import add, metadata, protocol, remove

import alluvium
from alluvium.api.delta.maintenance import check_table
from alluvium.delta.log.sidecar import sidecar_file
from alluvium.delta.terms.spec import Sidecar
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.elsewhere import ensure_same_side, locate
from alluvium.storage.open import open_store
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("path", "kind", "code"),
    [
        ("../x.parquet", CorruptTable, "path-escapes-root"),
        ("%2e%2e/x.parquet", CorruptTable, "path-escapes-root"),
        ("%2E%2E%2Fx.parquet", CorruptTable, "path-escapes-root"),
        ("a/../../x.parquet", CorruptTable, "path-escapes-root"),
        ("file:///tmp/../etc/passwd", CorruptTable, "path-escapes-root"),
        ("/tmp/../etc/passwd", CorruptTable, "path-escapes-root"),
        ("s3://bucket/../../x", CorruptTable, "path-escapes-root"),
        ("", CorruptTable, "malformed-path"),
        (".", CorruptTable, "malformed-path"),
        ("a/", CorruptTable, "malformed-path"),
        ("/", CorruptTable, "malformed-path"),
        ("%00", CorruptTable, "malformed-path"),
        ("%zz", CorruptTable, "malformed-path"),
        ("%ff", CorruptTable, "malformed-path"),
        ("http://127.0.0.1:1/x.parquet", UnsupportedFeature, "unreachable-file"),
        ("ftp://host/x.parquet", UnsupportedFeature, "unreachable-file"),
        ("file://host/etc/passwd", UnsupportedFeature, "unreachable-file"),
        ("s3:/x", UnsupportedFeature, "unreachable-file"),
        ("javascript:alert", NotFound, "missing-file"),
        ("file:../x", NotFound, "missing-file"),
        ("..\\x", NotFound, "missing-file"),
        ("~/x", NotFound, "missing-file"),
        ("//host/x", NotFound, "missing-file"),
        ("/nowhere/x.parquet", NotFound, "missing-file"),
        ("file:///etc/passwd", CorruptTable, "damaged-file"),
        ("_delta_log/00000000000000000000.json", CorruptTable, "damaged-file"),
    ],
)
def test_a_data_file_that_lies_elsewhere(build, path: str, kind: type[AlluviumError], code: str) -> None:
    """ "`path`: A relative path to a data file from the root of the table or an absolute path to a file" """
    root = build().commit(2, add(path, 10)).write()
    with pytest.raises(kind) as caught:
        alluvium.open(root).to_arrow()
    assert caught.value.code == code
    assert caught.value.path is not None
    # A check-up reports, whatever it meets.
    assert any(f.level == "error" or "outside" in f.message for f in check_table(root))


def test_a_name_longer_than_the_disk_allows(build) -> None:
    with pytest.raises(AlluviumError, match="File name too long"):
        alluvium.open(build().commit(2, add("a" * 5000, 10)).write()).to_arrow()


def test_an_absolute_path_that_can_be_served_is_read(build, tmp_path) -> None:
    table = build()
    for name in ("x.parquet", "y.parquet"):
        (tmp_path / name).write_bytes(table.table.files["f1.parquet"])
    table.commit(2, add(str(tmp_path / "x.parquet"), 10), add((tmp_path / "y.parquet").as_uri(), 10))
    assert sorted(alluvium.open(table.write()).to_arrow()["id"].to_pylist()) == [0, 1, 1, 1]


class Remote(MemoryStore):
    """Objects in memory that pretend to lie in a bucket."""

    @property
    def url(self) -> str:
        return "s3://bucket/table"


@pytest.mark.parametrize("path", ["file:///etc/passwd", "FILE:/etc/passwd", "memory://x/y"])
def test_a_table_in_a_bucket_cannot_mean_this_disk(path: str) -> None:
    store = Remote(uuid.uuid4().hex, "table")
    lines = [protocol(), metadata([{"name": "id", "type": "long", "nullable": True, "metadata": {}}]), add(path, 1)]
    store.put("_delta_log/00000000000000000000.json", b"".join(_line(line) for line in lines))
    with pytest.raises(CorruptTable) as caught:
        plan_scan(load_snapshot(store), None)
    assert (caught.value.code, caught.value.path) == ("path-escapes-root", path)
    with pytest.raises(CorruptTable):
        locate(store, open_store, "file:/etc/passwd")


def _line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def test_a_table_on_this_disk_may_name_a_bucket() -> None:
    ensure_same_side("file:/table", "s3://bucket/x.parquet")
    ensure_same_side("s3://bucket/table", "s3://other/x.parquet")


def test_a_path_from_the_root_lies_in_the_tables_own_store() -> None:
    """A clone within a bucket leaves the scheme out; it is not the disk of whoever reads it."""
    asked: list[str] = []

    def opened(url: str) -> Remote:
        asked.append(url)
        return Remote(uuid.uuid4().hex, "")

    store, name = locate(Remote(uuid.uuid4().hex, "table"), opened, "s3://bucket/other/x.parquet")
    assert (asked, name) == (["s3://bucket/other"], "x.parquet")
    assert isinstance(store, Remote)


@pytest.mark.parametrize(
    ("vector", "kind", "code"),
    [
        ({"storageType": "p", "pathOrInlineDv": "file:///tmp/../etc/passwd"}, CorruptTable, "damaged-deletion-vector"),
        ({"storageType": "p", "pathOrInlineDv": "file:///etc/passwd"}, CorruptTable, "damaged-deletion-vector"),
        ({"storageType": "p", "pathOrInlineDv": "x.bin"}, CorruptTable, "damaged-deletion-vector"),
        ({"storageType": "p", "pathOrInlineDv": ""}, CorruptTable, "damaged-deletion-vector"),
        ({"storageType": "p", "pathOrInlineDv": "file:///"}, CorruptTable, "malformed-path"),
        ({"storageType": "p", "pathOrInlineDv": "http://127.0.0.1:1/x"}, UnsupportedFeature, "unreachable-file"),
        ({"pathOrInlineDv": "../^-aqEH.-t@S}K{vb[*k^"}, CorruptTable, "damaged-deletion-vector"),
        ({"pathOrInlineDv": "/etc^-aqEH.-t@S}K{vb[*k^"}, CorruptTable, "damaged-deletion-vector"),
        ({"pathOrInlineDv": "a/../../^-aqEH.-t@S}K{vb[*k^"}, CorruptTable, "damaged-deletion-vector"),
        ({"pathOrInlineDv": "http://h/^-aqEH.-t@S}K{vb[*k^"}, NotFound, "missing-file"),
        ({"pathOrInlineDv": "short"}, CorruptTable, "damaged-deletion-vector"),
        ({"storageType": "x"}, CorruptTable, "damaged-deletion-vector"),
    ],
)
def test_a_deletion_vector_that_lies_elsewhere(build, vector, kind: type[AlluviumError], code: str) -> None:
    """ "a path relative to the data directory of this Delta table" """
    whole = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    masked = add("f0.parquet", 10, deletionVector={**whole, **vector})
    root = build(features=["deletionVectors"]).commit(2, remove("f0.parquet"), masked).write()
    with pytest.raises(kind) as caught:
        alluvium.open(root).to_arrow()
    assert caught.value.code == code
    assert any(f.check == "deletion-vectors" for f in check_table(root))


@pytest.mark.parametrize(
    "path", ["../x.parquet", "a/b/../../../x.parquet", "/etc/x.parquet", "file:///etc/x.parquet", "%2Fetc%2Fx.parquet"]
)
def test_a_sidecar_lies_in_its_own_directory(path: str) -> None:
    """ "sidecar files must always reside in the table's own _delta_log/_sidecars directory" """
    made = sidecar_file(Sidecar(path=path, size_in_bytes=1, modification_time=1), "checkpoint")
    assert made.path == "_delta_log/_sidecars/x.parquet"


@pytest.mark.parametrize("path", ["", "/", "..", "a/..", "%2e%2e", "%zz"])
def test_a_sidecar_without_a_name(path: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        sidecar_file(Sidecar(path=path, size_in_bytes=1, modification_time=1), "checkpoint")
    assert caught.value.code == "damaged-checkpoint"


def test_links_that_lead_in_circles(build) -> None:
    root = build().write()
    os.symlink(root, f"{root}/loop")
    os.symlink(f"{root}/_delta_log", f"{root}/_delta_log/loop")
    os.symlink("self", f"{root}/_delta_log/self")
    os.symlink(f"{root}/_delta_log/00000000000000000003.json", f"{root}/_delta_log/00000000000000000003.json")
    assert alluvium.open(root).to_arrow().num_rows == 2
    assert len(list(LocalStore(root).list_tree(""))) == 4


def test_ranges_of_a_store_take_no_more_memory_than_the_file_has(tmp_path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    store = LocalStore(str(tmp_path))
    assert store.get_range("x", 2, 2**40) == b"345"
    assert store.get_range("x", 99, 2**40) == b""


def test_addresses_that_users_give_are_their_own_affair(tmp_path) -> None:
    with pytest.raises(InvalidRequest):
        alluvium.open("http://127.0.0.1:1/table")


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "jar", "webhdfs", "har", "nullscan"])
@pytest.mark.parametrize("root", ["/data/t", "s3a://bucket/t", "hdfs://name/t"])
def test_a_store_that_holds_no_tables_is_not_asked(root: str, scheme: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_same_side(root, f"{scheme}://127.0.0.1:1/x.parquet")
    assert caught.value.code == "unreachable-file"


def test_the_tables_own_store_is_asked_whatever_it_is() -> None:
    ensure_same_side("ofs://om/t", "ofs://om/other/x.parquet")
    ensure_same_side("/data/t", "s3://bucket/x.parquet")


def test_a_path_without_a_scheme_is_of_this_disk() -> None:
    ensure_same_side("file:/data/t", "/other/x.parquet")
    with pytest.raises(CorruptTable):
        ensure_same_side("s3://bucket/t", "/other/x.parquet")


def test_a_plan_does_not_leave_for_the_web(build) -> None:
    """An engine gets plans only, and would go wherever they say."""
    root = build().commit(2, add("http://127.0.0.1:1/x.parquet", 10)).write()
    with pytest.raises(UnsupportedFeature):
        plan_scan(load_snapshot(open_store(root)))
