"""Hadoop's file systems through a real Spark session; `test_store.py` holds what they share with all stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import S3Store

from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.hadoop import HadoopAccess, HadoopStore
from alluvium.storage.stores.objects import ObjectStore

pytestmark = pytest.mark.spark


def test_without_an_atomic_rename_writing_is_refused(hadoop: HadoopAccess, tmp_path: Path) -> None:
    store = HadoopStore(hadoop, f"file:{tmp_path}")
    with pytest.raises(InvalidRequest) as caught:
        store.put_if_absent("x", b"1")
    assert caught.value.code == "no-put-if-absent"
    assert "allow_unsafe_put" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_conditional_put_leaves_no_temporary_file(hadoop: HadoopAccess, tmp_path: Path) -> None:
    store = HadoopStore(hadoop, f"file:{tmp_path}/t", allow_unsafe_put=True)
    assert store.put_if_absent("0.json", b"1") is PutOutcome.DONE
    assert store.put_if_absent("0.json", b"2") is PutOutcome.EXISTS
    assert [path.name for path in (tmp_path / "t").iterdir() if path.suffix != ".crc"] == ["0.json"]
    assert (tmp_path / "t" / "0.json").read_bytes() == b"1"


def test_files_of_many_listings(hadoop: HadoopAccess, tmp_path: Path) -> None:
    for n in range(300):
        (tmp_path / f"{n:03}").write_bytes(b"x" * n)
    store = HadoopStore(hadoop, f"file:{tmp_path}")
    found = store.list_from("", "250")
    assert [(info.path, info.size) for info in found] == [(f"{n:03}", n) for n in range(250, 300)]
    assert abs(found[0].modified_ms - (tmp_path / "250").stat().st_mtime * 1000) < 2


def test_large_contents_cross_the_gateway(hadoop: HadoopAccess, tmp_path: Path) -> None:
    store = HadoopStore(hadoop, f"file:{tmp_path}")
    data = bytes(range(256)) * 20_000
    store.put("x", data)
    assert store.get("x") == data
    with store.open_input("x") as file:
        assert file.size() == len(data)
        file.seek(len(data) - 10)
        assert file.read() == data[-10:]
        file.seek(256)
        assert file.read(5) == bytes(range(5))


def test_a_scheme_that_nobody_knows(hadoop: HadoopAccess) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store("nosuch://x/y", hadoop=hadoop)
    assert caught.value.code == "unknown-scheme"
    assert "nosuch" in str(caught.value)


def test_a_file_system_that_cannot_be_reached(hadoop: HadoopAccess) -> None:
    with pytest.raises(AlluviumError) as caught:
        open_store("hdfs://no-such-host.invalid:1/x", hadoop=hadoop)
    assert caught.value.code == "storage"


def test_other_schemes_go_to_hadoop_with_options_of_their_own(hadoop: HadoopAccess, tmp_path: Path) -> None:
    # viewfs is a file system of Hadoop alone; its mount table is given by options of this store only.
    options = {"spark.hadoop.fs.viewfs.mounttable.mine.link./t": f"file:{tmp_path}", "allow_unsafe_put": "true"}
    store = open_store("viewfs://mine/t", options, hadoop)
    assert store.url == "viewfs://mine/t"
    store.put("a b/x", b"1")
    assert (tmp_path / "a b" / "x").read_bytes() == b"1"
    assert [info.path for info in store.list_tree("")] == ["a b/x"]
    del options["allow_unsafe_put"]
    with pytest.raises(InvalidRequest) as caught:
        open_store("viewfs://mine/t", options, hadoop).put_if_absent("y", b"")
    assert "'file'" in str(caught.value)


def test_object_stores_take_the_credentials_of_the_session(hadoop: HadoopAccess) -> None:
    hadoop.conf.set("fs.s3a.access.key", "from-the-session")
    hadoop.conf.set("fs.s3a.secret.key", "secret")
    try:
        store = open_store("s3a://bucket/t", {"region": "eu-west-1"}, hadoop)
        assert isinstance(store, ObjectStore)
        assert isinstance(store._bucket, S3Store)
        assert store._bucket.config.get("access_key_id") == "from-the-session"
        assert store._bucket.config.get("region") == "eu-west-1"
        own = open_store("s3a://bucket/t", {"fs.s3a.access.key": "own"}, hadoop)
        assert isinstance(own, ObjectStore)
        assert isinstance(own._bucket, S3Store)
        assert own._bucket.config.get("access_key_id") == "own"
    finally:
        hadoop.conf.unset("fs.s3a.access.key")
        hadoop.conf.unset("fs.s3a.secret.key")


def _written_by_hadoop(hadoop: HadoopAccess, path: Path, data: bytes) -> None:
    target = hadoop.jvm.org.apache.hadoop.fs.Path(f"file:{path}")
    stream = target.getFileSystem(hadoop.conf).create(target, True)
    stream.write(data)
    stream.close()


def _read_by_hadoop(hadoop: HadoopAccess, path: Path) -> bytes:
    target = hadoop.jvm.org.apache.hadoop.fs.Path(f"file:{path}")
    stream = target.getFileSystem(hadoop.conf).open(target)
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


@pytest.mark.parametrize("kind", ["local", "hadoop"])
def test_hadoop_reads_what_we_wrote_over_its_own_files(hadoop: HadoopAccess, tmp_path: Path, kind: str) -> None:
    """It keeps a checksum beside each file, and refuses a file that it does not fit."""
    root = f"file:{tmp_path}"
    store = open_store(str(tmp_path)) if kind == "local" else HadoopStore(hadoop, root, allow_unsafe_put=True)
    for name in ("put", "deleted", "source", "target"):
        _written_by_hadoop(hadoop, tmp_path / name, b"by hadoop, " + name.encode())
        assert (tmp_path / f".{name}.crc").exists()
    store.put("put", b"ours")
    assert _read_by_hadoop(hadoop, tmp_path / "put") == b"ours"
    store.put("put", b"ours again")
    assert _read_by_hadoop(hadoop, tmp_path / "put") == b"ours again"
    store.delete("deleted")
    assert store.put_if_absent("deleted", b"ours") is PutOutcome.DONE
    assert _read_by_hadoop(hadoop, tmp_path / "deleted") == b"ours"
    store.delete("target")
    store.move("source", "target")
    assert _read_by_hadoop(hadoop, tmp_path / "target") == b"by hadoop, source"
    store.delete("target")
    assert not (tmp_path / ".target.crc").exists()
    assert not [path.name for path in tmp_path.iterdir() if ".alluvium" in path.name]
