"""What only the local disk can get wrong: races between processes, crashes, file systems without hard links."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from alluvium.errors import AlluviumError, InvalidRequest, NotFound, StorageError
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores import local
from alluvium.storage.stores.local import LocalStore

RACER = """
import sys, time
from alluvium.storage.stores.local import LocalStore
store, start = LocalStore(sys.argv[1]), float(sys.argv[2])
while time.time() < start:
    pass
for version in range(20):
    print(store.put_if_absent(f"_delta_log/{version:020}.json", sys.argv[3].encode()).value)
"""


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


@pytest.mark.long
def test_of_racing_processes_one_wins_each_name(tmp_path: Path) -> None:
    start = str(time.time() + 1.0)
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, str(tmp_path), start, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    outcomes = [racer.communicate(timeout=60)[0].split() for racer in racers]
    assert all(racer.returncode == 0 for racer in racers)
    for version, answers in enumerate(zip(*outcomes, strict=True)):
        assert sorted(answers) == ["done", "exists", "exists", "exists"]
        winner = str(answers.index("done"))
        assert (tmp_path / "_delta_log" / f"{version:020}.json").read_text() == winner
    assert len(names(tmp_path / "_delta_log")) == 20


CRASHER = """
import os, sys
from alluvium.storage.stores.local import LocalStore
real = getattr(os, sys.argv[2])
def die(*args, **kwargs):
    os._exit(9)
setattr(os, sys.argv[2], die)
getattr(LocalStore(sys.argv[1]), sys.argv[3])("0.json", b"x" * 100_000)
"""


@pytest.mark.long
@pytest.mark.parametrize(("call", "verb"), [("write", "put_if_absent"), ("link", "put_if_absent"), ("replace", "put")])
def test_a_crash_leaves_nothing_that_looks_like_a_file_of_the_table(tmp_path: Path, call: str, verb: str) -> None:
    done = subprocess.run([sys.executable, "-c", CRASHER, str(tmp_path), call, verb], check=False)
    assert done.returncode == 9
    (stray,) = names(tmp_path)
    assert stray.startswith(".alluvium-")
    assert stray.endswith(".tmp")
    store = LocalStore(str(tmp_path))
    assert store.list_from("", "0") == []
    assert store.put_if_absent("0.json", b"after") is PutOutcome.DONE
    assert store.get("0.json") == b"after"


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("x", b"1")
    store.put("x", b"2")
    store.put_if_absent("y", b"1")
    store.put_if_absent("y", b"2")
    assert names(tmp_path) == ["x", "y"]
    (tmp_path / "d").mkdir()
    with pytest.raises(AlluviumError) as caught:
        store.put("d", b"")
    assert caught.value.code == "storage"
    assert store.put_if_absent("d", b"") is PutOutcome.EXISTS
    assert names(tmp_path) == ["d", "x", "y"]


def failing(code: int, before: Callable[[str, str], None] | None = None) -> Callable[[str, str], None]:
    def link(source: str, target: str) -> None:
        if before is not None:
            before(source, target)
        raise OSError(code, os.strerror(code))

    return link


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_without_hard_links_a_conditional_put_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    # No file system without hard links can be mounted here: the kernel's answer is given instead.
    monkeypatch.setattr(os, "link", failing(code))
    with pytest.raises(InvalidRequest) as caught:
        open_store(tmp_path).put_if_absent("x", b"1")
    assert caught.value.code == "no-put-if-absent"
    assert "allow_unsafe_put" in str(caught.value)
    assert names(tmp_path) == []
    unsafe = open_store(tmp_path, {"allow_unsafe_put": "true"})
    assert unsafe.put_if_absent("x", b"1") is PutOutcome.DONE
    assert unsafe.put_if_absent("x", b"2") is PutOutcome.EXISTS
    assert unsafe.get("x") == b"1"
    assert names(tmp_path) == ["x"]


def test_a_link_whose_answer_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path))
    monkeypatch.setattr(os, "link", failing(errno.EEXIST, before=os.link))  # NFS repeats the request
    assert store.put_if_absent("x", b"1") is PutOutcome.DONE
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    assert store.put_if_absent("y", b"1") is PutOutcome.UNKNOWN
    assert names(tmp_path) == ["x"]


def test_a_directory_that_cannot_be_synced_leaves_the_outcome_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, "I/O error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert LocalStore(str(tmp_path)).put_if_absent("x", b"1") is PutOutcome.UNKNOWN


def test_a_full_disk_is_a_storage_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    for put in (LocalStore(str(tmp_path)).put, LocalStore(str(tmp_path)).put_if_absent):
        with pytest.raises(AlluviumError, match="No space left") as caught:
            put("x", b"1")
        assert (caught.value.code, caught.value.path) == ("storage", "x")
    assert names(tmp_path) == []


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    store = LocalStore(str(tmp_path))
    for put in (store.put, store.put_if_absent):
        with pytest.raises(AlluviumError):
            put("f/x", b"")
    assert store.list_from("f") == []
    store.delete("f/x")


def test_links_are_followed_to_files_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"123")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(".")
    store = LocalStore(str(tmp_path))
    assert [(info.path, info.size) for info in store.list_from("")] == [("link", 3), ("real", 3)]
    assert {info.path for info in store.list_tree("")} == {"link", "real"}


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/a\xffb", "wb") as file:
        file.write(b"1")
    store = LocalStore(str(tmp_path))
    (info,) = store.list_from("")
    assert store.get(info.path) == b"1"
    assert store.open_input(info.path).read() == b"1"


@pytest.mark.parametrize("length", [255, 256])
def test_names_as_long_as_the_file_system_allows(tmp_path: Path, length: int) -> None:
    store = LocalStore(str(tmp_path))
    if length == 255:
        assert store.put_if_absent("n" * length, b"1") is PutOutcome.DONE
    else:
        with pytest.raises(AlluviumError) as caught:
            store.put_if_absent("n" * length, b"1")
        assert caught.value.code == "storage"


def test_checksums_of_hadoop_go_with_their_files(tmp_path: Path) -> None:
    """It refuses a file that the checksum beside it does not fit, and leaves none that has none."""
    store = LocalStore(str(tmp_path))
    for name in ("put", "absent", "deleted", "source", "target"):
        (tmp_path / f".{name}.crc").write_bytes(b"crc\0 of other bytes")
    for name in ("deleted", "source"):
        (tmp_path / name).write_bytes(b"old")
    store.put("put", b"new")
    assert store.put_if_absent("absent", b"new") is PutOutcome.DONE
    store.delete("deleted")
    store.move("source", "target")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["absent", "put", "target"]
    (tmp_path / ".put.crc").write_bytes(b"crc\0 of these bytes")
    assert store.put_if_absent("put", b"newer") is PutOutcome.EXISTS
    assert (tmp_path / ".put.crc").exists()


def test_links_to_directories_are_neither_followed_nor_listed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "t"
    for folder in (outside, root):
        folder.mkdir()
        (folder / "file").write_bytes(b"1")
    (root / "linked").symlink_to(outside)
    (root / "circle").symlink_to(root)
    (root / "dangling").symlink_to(tmp_path / "none")
    (root / "alias").symlink_to(outside / "file")
    os.utime(outside / "file", (1, 1))
    store = LocalStore(str(root))
    found = pa.Table.from_batches(store.list_columns("", lambda name: False))
    assert sorted(found["path"].to_pylist()) == ["alias", "file"]
    # As large as what it leads to: a link itself has the length of a path.
    assert found["size"].to_pylist() == [1, 1] and not any(found["is_directory"].to_pylist())
    # A link is as young as the younger of itself and what it leads to.
    times = dict(zip(found["path"].to_pylist(), found["modified_ms"].to_pylist(), strict=True))
    assert times["alias"] > 1_000_000
    store.delete_all(["alias"])
    assert (outside / "file").exists()


def test_parts_that_cannot_be_written_take_back_their_own_alone(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("d/b", b"theirs")
    with pytest.raises(StorageError):
        store.put_new([("d/a", b"ours"), ("d/b", b"ours"), ("d/c", b"ours")])
    assert (names(tmp_path / "d"), store.get("d/b")) == (["b"], b"theirs")


def test_what_names_others_is_not_there_before_them(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("m/b", b"theirs")
    with pytest.raises(StorageError) as caught:
        store.put_behind([("m/a", b"ours"), ("m/b", b"ours")], "s/1", b"names a and b")
    assert (caught.value.path, names(tmp_path / "m"), store.get("m/b")) == ("m/b", ["b"], b"theirs")
    assert not (tmp_path / "s").exists() or names(tmp_path / "s") == []


def test_what_names_others_is_durable_before_it_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file's content, and the names of the others, are on the disk before the one that names them is linked."""
    store, done = LocalStore(str(tmp_path)), []
    real_sync, real_link = os.fsync, os.link
    store.put("m/x", b"")
    store.put("s/x", b"")

    def sync(descriptor: int) -> None:
        done.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        real_sync(descriptor)

    def link(source: str, target: str) -> None:
        done.append(f"link {target}")
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    assert store.put_behind([("m/a", b"1"), ("m/b", b"2")], "s/1", b"3") is PutOutcome.DONE
    place = done.index(f"link {tmp_path}/s/1")
    before, after = done[:place], done[place + 1 :]
    assert {f"{tmp_path}/m/a", f"{tmp_path}/m/b", f"{tmp_path}/m"} < set(before) and after == [f"{tmp_path}/s"]
    assert len(before) == 4 and any(path.endswith(".tmp") for path in before)


def test_a_hint_of_several_names_or_behind_a_link_is_replaced(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("hint", b"8")
    os.link(tmp_path / "hint", tmp_path / "backup")
    store.put("hint", b"9", durable=False)
    assert (store.get("hint"), store.get("backup")) == (b"9", b"8")
    (tmp_path / "hint").unlink()
    (tmp_path / "hint").symlink_to(tmp_path / "backup")
    store.put("hint", b"7", durable=False)
    assert (store.get("hint"), store.get("backup")) == (b"7", b"8")


def test_a_hint_changes_in_place_where_one_byte_does(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("hint", b"18")
    (tmp_path / ".hint.crc").write_bytes(b"of Hadoop")
    before = os.stat(tmp_path / "hint").st_ino
    store.put("hint", b"19", durable=False)
    assert (store.get("hint"), os.stat(tmp_path / "hint").st_ino, names(tmp_path)) == (b"19", before, ["hint"])
    # Two bytes: a reader could see one of them.
    store.put("hint", b"20", durable=False)
    assert store.get("hint") == b"20" and os.stat(tmp_path / "hint").st_ino != before


def test_a_range_that_the_system_gives_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One call gives at most 2 GiB, which no test writes: the kernel is asked for less.
    store, real = LocalStore(str(tmp_path)), os.pread
    store.put("x", bytes(range(20)))
    monkeypatch.setattr(os, "pread", lambda descriptor, length, start: real(descriptor, min(length, 3), start))
    assert store.get_range("x", 2, 10) == bytes(range(2, 12))
    assert store.get_range("x", 15, 10) == bytes(range(15, 20))


def test_an_object_is_the_same_while_its_name_is_made_and_whoever_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen, unlink = LocalStore(str(tmp_path)), [], os.unlink

    def looking(path: str) -> None:
        seen.append(store.head("0.json"))
        unlink(path)

    monkeypatch.setattr(os, "unlink", looking)
    assert store.put_if_absent("0.json", b"first") is PutOutcome.DONE
    monkeypatch.undo()
    # The clock of a file system ticks a few times in 10 ms.
    time.sleep(0.02)
    (tmp_path / "0.json").chmod(0o600)
    os.link(tmp_path / "0.json", tmp_path / ".backup")
    assert {*seen, store.head("0.json"), *store.list_from("", "0")} == {seen[0]}


@pytest.mark.parametrize("set_ns", [None, 1_700_000_000_000_000_000], ids=["as it is", "a time that was set"])
def test_another_object_of_the_same_name_is_another(tmp_path: Path, set_ns: int | None) -> None:
    store, found = LocalStore(str(tmp_path)), set()
    for _ in range(3):
        store.put("0.json", b"first")
        if set_ns is not None:
            os.utime(tmp_path / "0.json", ns=(set_ns, set_ns))
        found.add(store.head("0.json"))
        store.delete("0.json")
        time.sleep(0.02)
    assert len(found) == 3


def test_nothing_is_written_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    store, other = open_store(tmp_path / "file"), open_store(tmp_path)
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.put("a/b", b"x"),
        lambda: store.put_new([("a/b", b"x")]),
        lambda: store.put_if_absent("a", b"x"),
        lambda: store.copy_from(other, "file", "a"),
    )
    for write in writes:
        with pytest.raises(StorageError, match="Not a directory") as caught:
            write()
        assert "is a file" in (caught.value.hint or "")
    # Whoever clears away finds nothing there.
    store.delete_tree("a")
    store.delete("a/b")
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_what_is_written_over_an_object_is_another_though_its_time_was_set_back(tmp_path: Path) -> None:
    """Times that somebody sets are seldom finer than milliseconds: then the change time tells."""
    store, path = LocalStore(str(tmp_path)), tmp_path / "x"
    path.write_bytes(b"one")
    os.utime(path, ns=(1_700_000_000_000_000_000, 1_700_000_000_000_000_000))
    first = store.head("x")
    time.sleep(0.02)
    with open(path, "r+b") as file:
        file.write(b"two")
    os.utime(path, ns=(1_700_000_000_000_000_000, 1_700_000_000_000_000_000))
    second = store.head("x")
    assert (first.size, first.modified_ms) == (second.size, second.modified_ms) and first != second
    # A finer time is the content's own.
    os.utime(path, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))
    third = store.head("x")
    time.sleep(0.02)
    path.chmod(0o600)
    assert store.head("x") == third != second


def test_many_are_deleted_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_DELETED_TOGETHER", 3)
    store, paths = LocalStore(str(tmp_path)), [f"d/{n}" for n in range(8)]
    for path in paths:
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(b"")
    (tmp_path / "d/.2.crc").write_bytes(b"")
    starts: list[list[int]] = []
    real = local.map_parallel

    def side_by_side(fn: Callable[[int], None], items: Iterable[int]) -> list[None]:
        starts.append(list(items))
        return real(fn, starts[-1])

    monkeypatch.setattr(local, "map_parallel", side_by_side)
    store.delete_all(paths[:7])
    assert names(tmp_path / "d") == ["7"] and starts == [[0, 3, 6]]


def test_a_move_makes_the_directory_and_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
        (tmp_path / f".{name}.crc").write_bytes(b"crc")
    store.move("a", "b")
    assert names(tmp_path) == ["b"] and store.get("b") == b"a"
    store.move("b", "new/deep/c")
    assert store.get("new/deep/c") == b"a" and names(tmp_path) == ["new"]
    with pytest.raises(NotFound) as caught:
        store.move("gone", "new/d")
    assert (caught.value.path, caught.value.url) == ("gone", f"file:{tmp_path}")
    assert names(tmp_path / "new") == ["deep"]


def test_a_tree_as_columns_tells_sizes_and_times_of_files_and_folders(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for path, size in (("a/b/x", 3), ("a/y", 0), ("_s/z", 9), ("a/_s/w", 9), ("top", 5)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(bytes(size))
    for number, path in enumerate(("a/b/x", "a/y", "top", "a/b", "a")):
        os.utime(tmp_path / path, ns=(0, (number + 1) * 1_000_000_000 + 999_999))
    asked: list[str] = []

    def skips(name: str) -> bool:
        asked.append(name)
        return name == "_s"

    found = pa.Table.from_batches(store.list_columns("", skips)).sort_by("path").to_pylist()
    rows = {row["path"]: (row["size"], row["modified_ms"], row["is_directory"]) for row in found}
    assert rows == {
        "a": (0, 5000, True),
        "a/b": (0, 4000, True),
        "a/b/x": (3, 1000, False),
        "a/y": (0, 2000, False),
        "top": (5, 3000, False),
    }
    assert sorted(asked) == ["_s", "_s", "a", "b"]
    assert {info.path: (info.size, info.modified_ms) for info in store.list_from("a")} == {"a/y": (0, 2000)}
    assert store.head("top").modified_ms == 3000 and store.list_names("a") == ["y"]


def test_ranges_are_no_longer_than_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the system behind its end: a buffer of the length asked comes first."""
    store, real, asked = LocalStore(str(tmp_path)), os.pread, []
    store.put("x", b"0123456789")

    def pread(descriptor: int, length: int, start: int) -> bytes:
        asked.append((length, start))
        return real(descriptor, length, start)

    monkeypatch.setattr(os, "pread", pread)
    for start, length, part in (
        (0, 1 << 60, b"0123456789"),
        (8, 1 << 60, b"89"),
        (9, 1, b"9"),
        (10, 1, b""),
        (99, 5, b""),
        (3, 0, b""),
    ):
        assert store.get_range("x", start, length) == part
    assert asked == [(10, 0), (2, 8), (1, 9)]
