"""What the kernel may answer to each step on a local disk, and what becomes of it: error, path, and what is left.

No test can fill a disk or break one: the kernel's answer is given instead, once, where the call is about that name.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alluvium.errors import AlluviumError, InvalidRequest, NotFound, StorageError
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore


def answers(
    monkeypatch: pytest.MonkeyPatch, call: str, code: int, about: str = "", times: int = 1, module: Any = os
) -> list[str]:
    """`os.call` fails with a code, so many times, where its last path has a part of a name."""
    real, left = getattr(module, call), [times]
    asked: list[str] = []

    def failing(*args: Any, **named: Any) -> Any:
        path = next((str(a) for a in reversed(args) if isinstance(a, (str, Path))), "")
        if left[0] and about in path:
            left[0] -= 1
            asked.append(path)
            raise OSError(code, os.strerror(code), path)
        return real(*args, **named)

    monkeypatch.setattr(module, call, failing)
    return asked


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    made = LocalStore(str(tmp_path))
    made.put("d/a", b"1")
    made.put("d/b", b"22")
    return made


#: What a store does, the call that fails, the name that it is about, and what the store says it could not do.
STEPS: list[tuple[str, Callable[[LocalStore], object], str, str, str]] = [
    ("head", lambda s: s.head("d/a"), "stat", "d/a", "d/a"),
    ("range", lambda s: s.get_range("d/a", 0, 1), "fstat", "", "d/a"),
    ("put", lambda s: s.put("d/a", b"3"), "replace", "d/a", "d/a"),
    ("put at once", lambda s: s.put("d/c", b"3"), "open", "d/.alluvium", "d/c"),
    ("conditional put", lambda s: s.put_if_absent("d/c", b"3"), "open", "d/.alluvium", "d/c"),
    ("link", lambda s: s.put_if_absent("d/c", b"3"), "link", "d/c", "d/c"),
    ("new", lambda s: s.put_new([("d/c", b"3"), ("d/e", b"4")]), "open", "d/e", "d/e"),
    ("move", lambda s: s.move("d/a", "d/c"), "rename", "d/c", "d/a"),
    ("copy", lambda s: s.copy_from(s, "d/a", "d/c"), "replace", "d/c", "d/c"),
    ("delete", lambda s: s.delete("d/a"), "unlink", "d/a", "d/a"),
    ("delete all", lambda s: s.delete_all(["d/a", "d/b"]), "unlink", "d/b", "d/b"),
    ("remove directory", lambda s: s.remove_directory("d"), "rmdir", "d", "d"),
    ("list", lambda s: s.list_from("d"), "listdir", "d", "d"),
    ("list names", lambda s: s.list_names("d"), "scandir", "d", "d"),
    ("list tree", lambda s: list(s.list_tree("d")), "scandir", "d", "d"),
    ("list columns", lambda s: list(s.list_columns("d", lambda _: False)), "scandir", "d", "d"),
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=[step[0] for step in STEPS])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENAMETOOLONG])
def test_a_refusal_is_said_and_changes_nothing(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, step: Any, code: int
) -> None:
    _, act, call, about, path = step
    asked = answers(monkeypatch, call, code, about)
    with pytest.raises(StorageError) as caught:
        act(store)
    monkeypatch.undo()
    assert asked and (caught.value.code, caught.value.path, caught.value.url) == ("storage", path, store.url)
    assert os.strerror(code) in str(caught.value)
    assert ("permissions" in (caught.value.hint or "")) == (code == errno.EACCES)
    left = names(tmp_path / "d")
    assert left == (["b"] if step[0] == "delete all" else ["a", "b"])
    assert store.get("d/b") == b"22"


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR])
def test_a_link_may_have_been_made_or_not(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    answers(monkeypatch, "link", code)
    assert store.put_if_absent("d/c", b"3") is PutOutcome.UNKNOWN
    assert names(tmp_path / "d") == ["a", "b"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def test_without_links_a_look_and_a_rename(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    answers(monkeypatch, "link", code, times=9)
    with pytest.raises(InvalidRequest) as caught:
        store.put_if_absent("d/c", b"3")
    assert (caught.value.code, caught.value.path) == ("no-put-if-absent", "d/c")
    unsafe = LocalStore(str(tmp_path), allow_unsafe_put=True)
    assert unsafe.put_if_absent("d/a", b"3") is PutOutcome.EXISTS
    assert unsafe.put_if_absent("d/c", b"3") is PutOutcome.DONE
    (tmp_path / "d/broken").symlink_to("nowhere")
    assert unsafe.put_if_absent("d/broken", b"3") is PutOutcome.EXISTS
    answers(monkeypatch, "rename", errno.EACCES)
    with pytest.raises(StorageError) as refused:
        unsafe.put_if_absent("d/e", b"3")
    assert (refused.value.path, refused.value.code) == ("d/e", "storage")
    assert names(tmp_path / "d") == ["a", "b", "broken", "c"]
    assert (store.get("d/a"), store.get("d/c")) == (b"1", b"3")


@pytest.mark.parametrize("code", [errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY])
def test_a_directory_that_holds_something_stays(store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    answers(monkeypatch, "rmdir", code)
    assert store.remove_directory("d") is False
    assert store.remove_directory("nowhere") is False
    assert store.remove_directory("d/a") is False
    assert store.get("d/a") == b"1"


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_file_systems_that_sync_no_directories(store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    real, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        path = os.path.realpath(f"/proc/self/fd/{descriptor}")
        synced.append(os.path.isdir(path))
        if os.path.isdir(path):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert store.put_if_absent("d/c", b"3") is PutOutcome.DONE
    store.put("e/f", b"4")
    assert True in synced and False in synced
    assert store.get("e/f") == b"4"


def test_what_need_not_be_durable_is_not_synced(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store.put("d/a", b"a longer text", durable=False)
    assert synced == []
    store.put("d/a", b"another text")
    assert len(synced) == 2


def test_directories_are_durable_from_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each before something is put into it."""
    steps: list[str] = []
    real_mkdir, real_sync = os.mkdir, os.fsync

    def mkdir(path: str, *mode: int) -> None:
        steps.append(f"make {os.path.relpath(path, tmp_path)}")
        real_mkdir(path, *mode)

    def fsync(descriptor: int) -> None:
        path = os.path.realpath(f"/proc/self/fd/{descriptor}")
        steps.append(f"sync {os.path.relpath(path, tmp_path)}" if os.path.isdir(path) else "sync file")
        real_sync(descriptor)

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "fsync", fsync)
    LocalStore(str(tmp_path / "t")).put("x/y", b"1")
    assert steps == ["make t", "sync .", "make t/x", "sync t", "sync file", "sync t/x"]


def test_another_writer_makes_the_directory_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def mkdir(path: str, *mode: int) -> None:
        real(path, *mode)
        raise FileExistsError(errno.EEXIST, "File exists", path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    store = LocalStore(str(tmp_path / "t"))
    store.put("x/y", b"1")
    assert store.get("x/y") == b"1"


def test_a_tree_that_somebody_else_removes_too(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fails, ends_well in ((4, True), (5, False)):
        store.put("t/x/y", b"1")
        answers(monkeypatch, "rmtree", errno.ENOENT, "t", fails, shutil)
        if ends_well:
            store.delete_tree("t")
            assert names(tmp_path) == ["d"]
        else:
            with pytest.raises(NotFound) as caught:
                store.delete_tree("t")
            assert caught.value.path == "t" and store.get("t/x/y") == b"1"
        monkeypatch.undo()
    store.delete_tree("nowhere")
    answers(monkeypatch, "rmtree", errno.EACCES, "t", 1, shutil)
    with pytest.raises(StorageError) as refused:
        store.delete_tree("t")
    assert (refused.value.code, refused.value.path) == ("storage", "t")


def test_what_vanishes_while_it_is_listed_is_not_there(tmp_path: Path, store: LocalStore) -> None:
    (tmp_path / "d/gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d/circle").symlink_to("circle")
    assert [info.path for info in store.list_from("d")] == ["d/a", "d/b"]
    assert store.list_names("d") == ["a", "b"] and store.list_names("d", "b") == ["b"]
    assert sorted(info.path for info in store.list_tree("")) == ["d/a", "d/b"]
    for nothing in ("nowhere", "d/a"):
        assert store.list_from(nothing) == [] == store.list_names(nothing) == list(store.list_tree(nothing))
        assert sum(batch.num_rows for batch in store.list_columns(nothing, lambda _: False)) == 0


def test_a_file_in_the_place_of_a_folder(store: LocalStore) -> None:
    with pytest.raises(StorageError) as caught:
        store.put("d/a/x", b"")
    assert (caught.value.path, "folder is a file" in (caught.value.hint or "")) == ("d/a/x", True)
    for read in (store.get, store.head, store.open_input):
        with pytest.raises(NotFound) as missing:
            read("d/a/x")
        assert missing.value.path == "d/a/x"


def test_a_copy_of_what_is_not_there_makes_nothing(tmp_path: Path, store: LocalStore) -> None:
    source = MemoryStore("copies", "t")
    with pytest.raises(AlluviumError):
        store.copy_from(source, "x", "new/x")
    assert names(tmp_path) == ["d"]
    source.put("x", b"123")
    (tmp_path / "d" / ".a.crc").write_bytes(b"of what was there")
    assert store.copy_from(source, "x", "d/a") == 3
    assert (store.get("d/a"), names(tmp_path / "d")) == (b"123", ["a", "b"])


@pytest.mark.parametrize("size", [64, 65])
def test_small_files_alone_are_changed_in_place(tmp_path: Path, store: LocalStore, size: int) -> None:
    """Readers see one of the two, since a single byte of them differs."""
    path = tmp_path / "h"
    store.put("h", b"x" * size)
    before = os.stat(path).st_ino
    store.put("h", b"x" * (size - 1) + b"y", durable=False)
    assert (os.stat(path).st_ino == before) == (size == 64)
    # Numbers of files that are gone are given out again: only those of one moment and the next can be compared.
    before = os.stat(path).st_ino
    store.put("h", b"x" * (size - 1) + b"z", durable=True)
    assert os.stat(path).st_ino != before and store.get("h")[-1:] == b"z"
    inode = os.stat(path).st_ino
    store.put("h", b"x" * (size - 1) + b"z", durable=False)  # nothing differs
    assert (os.stat(path).st_ino == inode) == (size == 64)
    store.put("h", b"x" * size + b"z", durable=False)
    assert len(store.get("h")) == size + 1


def test_a_directory_in_memory_is_known_by_its_address() -> None:
    assert MemoryStore("name", "a b/t/").url == "memory://name/a b/t"
    assert MemoryStore("name", "").url == "memory://name"
