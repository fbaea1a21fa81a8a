"""Object stores: what conditional puts come to when the store answers oddly or not at all."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore as ObstoreMemory
from s3_server import S3Bucket

from alluvium.errors import AlluviumError, InvalidRequest, NotFound, StorageError
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store
from alluvium.storage.stores import objects
from alluvium.storage.stores.object_options import parse_object_options
from alluvium.storage.stores.objects import ObjectStore


@pytest.fixture
def s3(s3_options: dict[str, str]) -> Store:
    return open_store("s3://bucket/t", s3_options)


def test_keys_carry_the_prefix(s3: Store, s3_bucket: S3Bucket) -> None:
    s3.put("a b/é%20", b"1")
    assert s3_bucket.objects == {"t/a b/é%20": b"1"}
    assert s3.url == "s3a://bucket/t"
    assert s3.uri("a b/é%20") == "s3a://bucket/t/a b/é%20"


@pytest.mark.parametrize("fault", [500, 503, 408, 425, 429, "drop"])
def test_without_a_clear_answer_the_outcome_is_unknown(s3: Store, s3_bucket: S3Bucket, fault: int | str) -> None:
    s3_bucket.fault = fault
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    assert s3_bucket.objects == {}


def test_a_lost_response_is_unknown_though_the_object_stands(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.fault = "lose"
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    assert s3_bucket.objects == {"t/x": b"1"}


def test_a_store_that_is_gone_is_unknown() -> None:
    gone = open_store(
        "s3://bucket/t",
        {"endpoint": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b", "max_retries": "0"},
    )
    assert gone.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    with pytest.raises(StorageError) as caught:
        gone.get("x")
    assert caught.value.code == "store-unreachable"
    assert "endpoint" in str(caught.value.hint)


@pytest.mark.parametrize("fault", [400, 401, 403, 404])
def test_a_clear_refusal_is_raised(s3: Store, s3_bucket: S3Bucket, fault: int) -> None:
    s3_bucket.fault = fault
    with pytest.raises(AlluviumError) as caught:
        s3.put_if_absent("x", b"1")
    assert caught.value.path == "x"
    assert ("credentials" in str(caught.value)) == (fault in (401, 403))


def test_a_conflict_with_nothing_there_is_unknown(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.fault = 409  # ConditionalRequestConflict: another put is under way, and may come to nothing
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    s3_bucket.objects["t/x"] = b"theirs"
    assert s3.put_if_absent("x", b"1") is PutOutcome.EXISTS


@pytest.mark.parametrize("by", ["server", "option"])
def test_without_conditional_put_writing_is_refused(s3_bucket: S3Bucket, s3_options: dict[str, str], by: str) -> None:
    if by == "server":
        s3_bucket.conditional = False
    else:
        s3_options["conditional_put"] = "disabled"
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3a://bucket/t", s3_options).put_if_absent("x", b"1")
    assert caught.value.code == "no-put-if-absent"
    assert "allow_unsafe_put" in str(caught.value)
    assert s3_bucket.objects == {}

    unsafe = open_store("s3a://bucket/t", {**s3_options, "allow_unsafe_put": "true"})
    assert unsafe.put_if_absent("x", b"1") is PutOutcome.DONE
    assert unsafe.put_if_absent("x", b"2") is PutOutcome.EXISTS
    assert s3_bucket.objects == {"t/x": b"1"}


def test_opting_out_does_not_weaken_a_store_that_can(s3_bucket: S3Bucket, s3_options: dict[str, str]) -> None:
    store = open_store("s3a://bucket/t", {**s3_options, "allow_unsafe_put": "true"})
    assert store.put_if_absent("x", b"1") is PutOutcome.DONE
    assert store.put_if_absent("x", b"2") is PutOutcome.EXISTS
    assert s3_bucket.puts == ["t/x", "t/x"]


def test_control_characters_are_refused_before_anything_is_sent(s3: Store, s3_bucket: S3Bucket) -> None:
    with pytest.raises(InvalidRequest) as caught:
        s3.put_if_absent("a\tb", b"1")
    assert caught.value.code == "invalid-path"
    assert s3_bucket.puts == []


def test_many_objects_are_deleted_and_listed(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.objects.update({f"t/d/{n}": b"" for n in range(2500)})
    s3_bucket.objects["t/e"] = b""
    assert len(list(s3.list_tree("d"))) == 2500
    s3.delete_tree("d")
    assert list(s3_bucket.objects) == ["t/e"]


def test_hadoop_spellings() -> None:
    options = parse_object_options(
        "s3",
        {
            "spark.hadoop.fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
            "fs.s3a.endpoint": "minio:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.bucket.my.bucket.endpoint.region": "eu",
            "fs.s3a.bucket.other.session.token": "no",
            "fs.s3a.encryption.algorithm": "SSE-KMS",
            "AWS_SESSION_TOKEN": "t",
            "timeout": "30s",
            "max_retries": "3",
            "allow_unsafe_put": "True",
        },
        "s3a://my.bucket/t",
    )
    assert options.config == {
        "access_key_id": "a", "secret_access_key": "b", "endpoint": "http://minio:9000", "region": "eu",
        "virtual_hosted_style_request": "false", "server_side_encryption": "aws:kms", "aws_session_token": "t",
    }  # fmt: skip
    assert options.client == {"timeout": "30s", "allow_http": "true"}
    assert options.max_retries == 3
    assert options.allow_unsafe_put


def test_azure_keys_belong_to_their_account() -> None:
    options = {
        "fs.azure.account.key.mine.dfs.core.windows.net": "bWluZQ==",
        "fs.azure.account.key.other.dfs.core.windows.net": "b3RoZXI=",
    }
    parsed = parse_object_options("azure", options, "abfss://c@mine.dfs.core.windows.net/t", "mine")
    assert parsed.config == {"account_key": "bWluZQ=="}


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({"fs.s3a.acces.key": "a"}, "unknown-option", "fs.s3a.access.key"),
        ({"nonsense": "a"}, "invalid-option", "nonsense"),
        ({"allow_unsafe_put": "maybe"}, "invalid-option", "true"),
        ({"max_retries": "many"}, "invalid-option", "number"),
        ({"retry_timeout_s": "long"}, "invalid-option", "retry_timeout_s is"),
        ({"timeout": "soon"}, "invalid-option", "soon"),
    ],
)
def test_options_that_cannot_be_understood(options: dict[str, str], code: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3://bucket/t", options)
    assert caught.value.code == code
    assert hint in str(caught.value)


_FORKED = """
import os, sys, json
from alluvium.storage.open import open_store
from alluvium.errors import StorageError
store = open_store("s3://bucket/t", json.loads(sys.argv[1]))
store.put("x", b"1")
child = os.fork()
if child == 0:
    try:
        store.get("x")
    except StorageError as error:
        os._exit(7 if error.code == "forked-process" else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), store.get("x").decode())
"""


def test_a_forked_process_is_told(s3_options: dict[str, str]) -> None:
    options = json.dumps(s3_options)
    done = subprocess.run((sys.executable, "-c", _FORKED, options), capture_output=True, timeout=60, check=False)
    assert done.stdout.split() == [b"7", b"1"], done.stderr.decode()[-500:]


_INTERRUPTED = """
import sys, json, threading, os, signal, time
from alluvium.storage.open import open_store
from alluvium.storage.parallel import map_parallel
# Who was started in the background of a script ignores interruptions, and so does whom he starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
store = open_store("s3://bucket/t", json.loads(sys.argv[1]))
for ask in (lambda: store.get("x"), lambda: map_parallel(store.get, ["x", "y", "z"])):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        ask()
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.long
def test_an_interruption_gets_through_while_a_store_hangs(s3_options: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = json.dumps({**s3_options, "fs.s3a.endpoint": endpoint, "timeout": "60s"})
        # Its end waits for no request either: with what is under way it would last a minute.
        done = subprocess.run(
            (sys.executable, "-c", _INTERRUPTED, options), capture_output=True, timeout=30, check=False
        )
    assert done.stdout.split() == [b"interrupted"] * 2, done.stderr.decode()[-500:]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"session_token": "hunter2\n"}, "invalid-option"),
        ({"fs.s3a.access.key": "hun\x00ter2"}, "invalid-option"),
        ({"endpoint": "http://me:hunter2@127.0.0.1:9"}, "credentials-in-url"),
    ],
)
def test_values_that_cannot_be_sent_are_refused_unseen(options: dict[str, str], code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3://bucket/t", options)
    assert caught.value.code == code
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["s3://key:hunter2@bucket/t", "s3a://hunter2@bucket/t", "abfss://c:hunter2@a.dfs.core.windows.net/t"]
)
def test_credentials_in_an_address_are_refused_unseen(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url)
    assert caught.value.code == "credentials-in-url"
    assert "hunter2" not in str(caught.value)


ASKED: dict[str, Callable[[Store], object]] = {
    "get": lambda s: s.get("x"),
    "get_range": lambda s: s.get_range("x", 0, 1),
    "head": lambda s: s.head("x"),
    "open_input": lambda s: s.open_input("x").read(),
    "put": lambda s: s.put("x", b"2"),
    "put_if_absent": lambda s: s.put_if_absent("y", b"2"),
    "list_from": lambda s: s.list_from("", "a"),
    "list_names": lambda s: s.list_names("d"),
    "list_tree": lambda s: list(s.list_tree("d")),
    "list_columns": lambda s: list(s.list_columns("", lambda name: False)),
    "delete": lambda s: s.delete("x"),
    "delete_all": lambda s: s.delete_all(["x", "y"]),
    "delete_tree": lambda s: s.delete_tree("d"),
    "move": lambda s: s.move("x", "y"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_denied_is_never_taken_for_done_or_empty(s3: Store, s3_bucket: S3Bucket, what: str) -> None:
    s3_bucket.objects.update({"t/x": b"1", "t/d/z": b"3"})
    s3_bucket.denied = True
    with pytest.raises(StorageError, match="credentials"):
        ASKED[what](s3)
    assert s3_bucket.objects == {"t/x": b"1", "t/d/z": b"3"}


def test_what_is_gone_already_needs_no_delete(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.objects["t/x"] = b"1"
    s3.delete("y")
    s3.delete_all(["y", "x"])
    assert s3_bucket.objects == {}


def test_a_copy_that_the_store_refuses_is_not_done(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.objects["t/x"] = b"1"
    s3_bucket.fault = 403
    with pytest.raises(StorageError) as caught:
        s3.copy_from(s3, "x", "copy")
    assert caught.value.path == "copy" and "credentials" in str(caught.value)
    assert s3_bucket.objects == {"t/x": b"1"}


def test_copies_from_another_bucket_are_not_of_the_own_object_of_that_name() -> None:
    own, other = (ObjectStore(ObstoreMemory(), "t", f"memory://{name}/t") for name in ("own", "other"))
    own.put("x", b"own")
    other.put("x", b"other")
    assert own.copy_from(other, "x", "copy") == 5
    assert own.get("copy") == b"other"


def in_memory(prefix: str = "t") -> ObjectStore:
    return ObjectStore(ObstoreMemory(), prefix, "memory://x/t")


def asking(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[tuple[object, ...], dict[str, object]]]:
    """What `obstore.name` is called with, but for the bucket."""
    real, asked = getattr(obstore, name), []

    def call(bucket: object, *args: object, **named: object) -> object:
        asked.append((args, named))
        return real(bucket, *args, **named)

    monkeypatch.setattr(obstore, name, call)
    return asked


def test_nothing_is_asked_for_where_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    store = in_memory()
    store.put("x", b"12345")
    ranges, heads = asking(monkeypatch, "get_range"), asking(monkeypatch, "head")
    assert store.get_range("x", 0, 0) == store.get_range("x", 3, -1) == store.get_range("gone", 0, 0) == b""
    assert ranges == [] == heads
    assert store.get_range("x", 4, 1) == b"5" and len(ranges) == 1 and heads == []
    # Behind the end the store minds; then the size tells.
    assert store.get_range("x", 5, 1) == b"" and len(heads) == 1
    with pytest.raises(NotFound) as caught:
        store.get_range("gone", 0, 1)
    assert caught.value.path == "gone"


def test_a_listing_begins_where_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before is not even listed: logs are long."""
    store = in_memory()
    for name in ("a", "b0", "b1", "b1/deeper", "c", ".x"):
        store.put(f"d/{name}", b"")
    listed, shallow = asking(monkeypatch, "list"), asking(monkeypatch, "list_with_delimiter")
    assert store.list_names("d", "b1") == ["b1", "c"]
    assert [named.get("offset") for _, named in listed] == ["t/d/b"] and shallow == []
    assert store.list_names("d") == [".x", "a", "b0", "b1", "c"] and len(shallow) == 1
    # Of a name of one letter, or of dots, nothing is known to come before.
    for start in ("b", ".x", "..x"):
        assert store.list_names("d", start) == [n for n in [".x", "a", "b0", "b1", "c"] if n >= start]
    assert [named.get("offset") for _, named in listed[1:]] == [None, None, None]
    assert in_memory("").list_names("", "x") == []


@pytest.mark.parametrize("prefix", ["t", "", "a b/t"])
def test_folders_are_listed_side_by_side_and_skipped_by_name(prefix: str) -> None:
    store = in_memory(prefix)
    paths = [f"p={n}/f{k}" for n in range(20) for k in range(2)] + ["top", "_x/1", "p=1/_x/2", "p=1/y/_x/3", "p=1/y/4"]
    for path in paths:
        store.put(path, path.encode())

    def listed(directory: str) -> list[str]:
        found = [b.to_pylist() for b in store.list_columns(directory, lambda name: name == "_x")]
        assert all(row["size"] == len(row["path"]) and not row["is_directory"] for rows in found for row in rows)
        return [row["path"] for rows in found for row in rows]

    assert sorted(listed("")) == sorted(path for path in paths if "_x" not in path)
    assert sorted(listed("p=1")) == ["p=1/f0", "p=1/f1", "p=1/y/4"]
    # Of the folder that is listed nobody asks.
    assert listed("_x") == ["_x/1"] and listed("p=1/y/_x") == ["p=1/y/_x/3"] and listed("none") == []
    assert sorted(info.path for info in store.list_tree("p=1/y")) == ["p=1/y/4", "p=1/y/_x/3"]


@pytest.mark.parametrize(("size", "calls"), [(0, ["get"]), (10, ["get"]), (11, ["parts"])])
def test_small_objects_of_others_come_in_one_piece(
    size: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 10)
    source, own = open_store("memory://objects-source/t"), in_memory()
    source.put("x", bytes(size))
    made: list[str] = []
    for name, verb in (("get", source.get), ("parts", objects.read_parts)):

        def call(*args: object, name: str = name, verb: Any = verb) -> object:
            made.append(name)
            return verb(*args)

        monkeypatch.setattr(*((source, "get") if name == "get" else (objects, "read_parts")), call)
    assert own.copy_from(source, "x", "d/y") == size and made == calls
    assert own.get("d/y") == bytes(size)


@pytest.mark.parametrize(("most", "within"), [(5, True), (4, False)])
def test_within_a_bucket_the_store_copies_what_it_can_at_once(
    most: int, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_COPIED_AT_ONCE", most)
    bucket = ObstoreMemory()
    one, other = (ObjectStore(bucket, prefix, f"memory://x/{prefix}") for prefix in ("t", "u"))
    one.put("x", b"12345")
    copies = asking(monkeypatch, "copy")
    assert other.copy_from(one, "x", "d/y") == 5 and other.get("d/y") == b"12345"
    assert copies == ([(("t/x", "u/d/y"), {})] if within else [])
    with pytest.raises(NotFound) as caught:
        other.copy_from(one, "gone", "d/z")
    assert caught.value.path == "gone" and caught.value.url == "memory://x/t"


def test_many_are_deleted_a_request_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_DELETED_TOGETHER", 3)
    store = in_memory()
    for n in range(8):
        store.put(f"d/{n}", b"")
    deleted = asking(monkeypatch, "delete")
    store.delete_all([f"d/{n}" for n in range(7)])
    assert sorted(args[0] for args, _ in deleted) == [
        ["t/d/0", "t/d/1", "t/d/2"],
        ["t/d/3", "t/d/4", "t/d/5"],
        ["t/d/6"],
    ]  # type: ignore[type-var]
    assert store.list_names("d") == ["7"]
    deleted.clear()
    store.delete_tree("none")
    assert deleted == []
    store.delete_tree("d")
    assert [args for args, _ in deleted] == [(["t/d/7"],)]


@pytest.mark.parametrize(
    ("path", "act"),
    [("a\tb", lambda s, p: s.get(p)), ("a\tb", lambda s, p: s.put(p, b"")), ("a\tb", lambda s, p: s.head(p)), ("a\nb/c", lambda s, p: s.open_input(p))],
)  # fmt: skip
def test_names_that_no_object_store_holds(s3: Store, path: str, act: Callable[[Store, str], object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        act(s3, path)
    assert (caught.value.code, caught.value.path, caught.value.url) == ("invalid-path", path, "s3a://bucket/t")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("status", "has_hint"), [(400, False), (401, True), (403, True), (405, False)])
def test_refusals_are_told_with_what_helps(s3: Store, s3_bucket: S3Bucket, status: int, has_hint: bool) -> None:
    s3_bucket.fault = status
    with pytest.raises(StorageError) as caught:
        s3.put("d/x", b"1")
    error = caught.value
    assert (error.path, error.url, "credentials" in (error.hint or "")) == ("d/x", "s3a://bucket/t", has_hint)
    assert "could not write" in str(error)
