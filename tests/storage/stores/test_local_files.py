"""The steps by which files of the local disk come into being, one by one: what is there after each, and after a failure."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from alluvium.storage.parallel import DEFAULT_WORKERS
from alluvium.storage.stores import local_files
from alluvium.storage.stores.local_files import (
    changed_in_place,
    fill_temporary,
    hidden_name,
    make_directory,
    remove_checksum,
    remove_quietly,
    sync_directory,
    write_all,
    write_new,
    write_temporary,
    write_together,
)


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


class Synced:
    """What was made durable, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: Callable[[str], int] = lambda path: 0) -> None:
        self.paths: list[str] = []
        real = os.fsync

        def fsync(descriptor: int) -> None:
            path = os.path.realpath(f"/proc/self/fd/{descriptor}")
            self.paths.append(path)
            if code := fails(path):
                raise OSError(code, os.strerror(code))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize(
    ("slow", "count", "one_by_one", "threads"),
    [
        # A disk that answers at once needs no threads; where it waits, what is left is synced side by side.
        (None, 20, 20, None), (0, 1, 1, None), (0, 9, 1, 2), (0, 10, 1, DEFAULT_WORKERS), (3, 12, 4, 2), (3, 13, 4, DEFAULT_WORKERS), (19, 20, 20, None),
    ],
)  # fmt: skip
def test_a_disk_that_waits_is_asked_from_several_threads(
    monkeypatch: pytest.MonkeyPatch, slow: int | None, count: int, one_by_one: int, threads: int | None
) -> None:
    done: list[int] = []
    clock = [0.0]
    asked: list[tuple[int, int]] = []

    def sync(number: int) -> Callable[[], None]:
        def act() -> None:
            done.append(number)
            clock[0] += 0.0011 if number == slow else 0.0009

        return act

    def side_by_side(fn: Callable[[Any], None], items: Sequence[Any], workers: int) -> None:
        asked.append((len(items), workers))
        assert len(done) == one_by_one
        for item in items:
            fn(item)

    monkeypatch.setattr(local_files.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(local_files, "map_parallel", side_by_side)
    local_files._sync_all([sync(number) for number in range(count)])
    assert done == list(range(count))
    rest = count - one_by_one
    assert asked in ([], [(0, 2)]) if threads is None else asked == [(rest, threads)]


def test_files_together_are_durable_with_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = Synced(monkeypatch)
    files = [(f"{tmp_path}/d/a", b"1"), (f"{tmp_path}/d/e/b", b"22"), (f"{tmp_path}/c", b"")]
    write_together(files, [f"{tmp_path}/d", str(tmp_path)])
    assert [Path(full).read_bytes() for full, _ in files] == [b"1", b"22", b""]
    made = [str(tmp_path), f"{tmp_path}/d"]  # as the directories came into being
    assert synced.paths[:2] == made
    assert sorted(synced.paths[2:]) == sorted([f"{tmp_path}/d", str(tmp_path), *(full for full, _ in files)])


@pytest.mark.parametrize("which", ["b", "d"])
def test_of_files_together_none_is_left_where_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Be it in writing or in syncing; what was there of others stays."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/theirs").write_bytes(b"kept")
    Synced(monkeypatch, lambda path: errno.EIO if path.endswith(f"/{which}") else 0)
    with pytest.raises(OSError):
        write_together([(f"{tmp_path}/d/a", b"1"), (f"{tmp_path}/d/b", b"2")], [f"{tmp_path}/d"])
    assert names(tmp_path / "d") == ["theirs"]
    with pytest.raises(FileExistsError):
        write_together([(f"{tmp_path}/d/a", b"1"), (f"{tmp_path}/d/theirs", b"2"), (f"{tmp_path}/d/c", b"3")], [])
    assert names(tmp_path / "d") == ["theirs"] and (tmp_path / "d/theirs").read_bytes() == b"kept"


@pytest.mark.parametrize("most", [1, 3, 100])
def test_as_many_writes_as_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    real, calls = os.write, []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        return real(descriptor, data[:most])

    monkeypatch.setattr(os, "write", write)
    with open(tmp_path / "x", "wb", buffering=0) as file:
        write_all(file.fileno(), bytes(range(10)))
    write_new(f"{tmp_path}/y", bytes(range(10)))
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes() == bytes(range(10))
    assert calls == list(range(10, 0, -most)) * 2
    calls.clear()
    write_all(0, b"")
    assert calls == []


def test_a_new_file_is_nobody_s_and_half_a_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_new(f"{tmp_path}/d/e/x", b"1")
    assert (tmp_path / "d/e/x").read_bytes() == b"1" and os.stat(tmp_path / "d/e/x").st_mode & 0o111 == 0
    with pytest.raises(FileExistsError):
        write_new(f"{tmp_path}/d/e/x", b"2")
    assert (tmp_path / "d/e/x").read_bytes() == b"1"

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_new(f"{tmp_path}/d/y", b"1")
    assert names(tmp_path / "d") == ["e"]


def broken(parts: Sequence[bytes]) -> Iterable[bytes]:
    yield from parts
    raise LookupError("the source broke down")


@pytest.mark.parametrize("durable", [True, False])
def test_temporary_files_are_hidden_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    synced = Synced(monkeypatch)
    made = fill_temporary(str(tmp_path), iter([b"ab", b"", b"c"]), durable)
    assert Path(made).parent == tmp_path and Path(made).read_bytes() == b"abc"
    assert Path(made).name.startswith(".alluvium-") and made.endswith(".tmp")
    assert synced.paths == ([made] if durable else [])
    other = write_temporary(f"{tmp_path}/new/deep", b"x", durable)
    assert Path(other).read_bytes() == b"x" and Path(other).parent == tmp_path / "new/deep"
    assert hidden_name(str(tmp_path)) != hidden_name(str(tmp_path))
    with pytest.raises(LookupError):
        fill_temporary(f"{tmp_path}/new", broken([b"half"]), durable)
    assert names(tmp_path / "new") == ["deep"]
    with pytest.raises(FileNotFoundError):
        fill_temporary(f"{tmp_path}/none", [b"x"], durable, makes_directory=False)
    assert not (tmp_path / "none").exists()
    assert Path(write_temporary(str(tmp_path), b"x", durable, makes_directory=False)).read_bytes() == b"x"


def test_directories_that_are_there_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = Synced(monkeypatch)
    make_directory(str(tmp_path))
    make_directory("/")
    assert synced.paths == []
    make_directory(f"{tmp_path}/a/b/c")
    assert (tmp_path / "a/b/c").is_dir()
    assert synced.paths == [str(tmp_path), f"{tmp_path}/a", f"{tmp_path}/a/b"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        make_directory(f"{tmp_path}/file/d")


@pytest.mark.parametrize(
    ("code", "passes"),
    [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False), (errno.ENOSPC, False), (errno.EROFS, False)],
)
def test_directories_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, passes: bool
) -> None:
    """Some mounts know no such thing; what fails otherwise is told, and no descriptor is left open."""
    before = len(os.listdir("/proc/self/fd"))
    Synced(monkeypatch, lambda path: code)
    if passes:
        sync_directory(str(tmp_path))
    else:
        with pytest.raises(OSError) as caught:
            sync_directory(str(tmp_path))
        assert caught.value.errno == code
    assert len(os.listdir("/proc/self/fd")) == before


def test_checksums_and_litter(tmp_path: Path) -> None:
    for name in (".x.crc", ".y.crc", "x", "x.crc"):
        (tmp_path / name).write_bytes(b"1")
    remove_checksum(f"{tmp_path}/x")
    remove_checksum(f"{tmp_path}/none")
    assert names(tmp_path) == [".y.crc", "x", "x.crc"]
    remove_quietly(f"{tmp_path}/x")
    remove_quietly(f"{tmp_path}/x")
    remove_quietly(str(tmp_path))
    assert names(tmp_path) == [".y.crc", "x.crc"]


@pytest.mark.parametrize(
    ("old", "new", "in_place"),
    [
        (b"8", b"9", True), (b"8", b"8", True), (b"", b"", True), (b"18", b"19", True), (b"18", b"29", False), (b"9", b"10", False), (b"10", b"9", False),
        (b"x" * 64, b"x" * 63 + b"y", True), (b"x" * 65, b"x" * 64, False), (b"x" * 64, b"x" * 65, False), (None, b"1", False),
    ],
)  # fmt: skip
def test_a_byte_changes_in_place(tmp_path: Path, old: bytes | None, new: bytes, in_place: bool) -> None:
    path = tmp_path / "hint"
    if old is not None:
        path.write_bytes(old)
    assert changed_in_place(str(path), new) is in_place
    if old is None:
        assert not path.exists()
    else:
        assert path.read_bytes() == (new if in_place else old)


@pytest.mark.parametrize("call", ["pread", "fstat", "pwrite"])
def test_what_cannot_be_changed_in_place_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "hint"
    path.write_bytes(b"8")

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "I/O error")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, call, fails)
    assert changed_in_place(str(path), b"9") is False
    monkeypatch.undo()
    assert path.read_bytes() == b"8" and len(os.listdir("/proc/self/fd")) == before
    # Half of it written is not done, either.
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: 0)
    assert changed_in_place(str(path), b"9") is False
