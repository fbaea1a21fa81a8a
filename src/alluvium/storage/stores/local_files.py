"""Files of the local disk: written, made durable, made visible. The order of these steps is `stores.local`'s."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from alluvium.storage.parallel import DEFAULT_WORKERS, map_parallel

#: Threads that sync the few parts of a commit: once their writing has begun, two are as quick as more.
_SYNCING, _FEW = 2, 8
#: Seconds below which a disk has not waited.
_QUICK_S = 0.001
#: Bytes of a file that is worth a look before it is replaced.
_SMALL = 64


def write_together(files: Sequence[tuple[str, bytes]], listed: Sequence[str]) -> None:
    """Writes files under names that nobody else uses. All are durable in the end, or none is left.

    What is synced at one time shares a commit of the file system's journal.

    Args:
        files: Full paths and bytes.
        listed: Directories whose names are to be durable, too.
    """
    written = []
    try:
        for full, data in files:
            write_new(full, data)
            written.append(full)
        _sync_all([partial(sync_directory, each) for each in listed] + [partial(sync_file, full) for full, _ in files])
    except OSError:
        for full in written:
            remove_quietly(full)
        raise


def _sync_all(syncs: Sequence[Callable[[], None]]) -> None:
    """Runs them one after another while that is quick: a thread takes longer to begin than a fast disk to answer."""
    for place, sync in enumerate(syncs):
        began_s = time.perf_counter()
        sync()
        if time.perf_counter() - began_s > _QUICK_S:
            rest = syncs[place + 1 :]
            map_parallel(lambda each: each(), rest, _SYNCING if len(rest) <= _FEW else DEFAULT_WORKERS)
            return


def changed_in_place(full: str, data: bytes) -> bool:
    """Makes a small file another one where a single byte of it differs: readers see one of the two, as when it is
    replaced, for which a file system may wait for its journal.

    Args:
        full: The file's path.
        data: What it is to be.

    Returns:
        Whether that was done.
    """
    if len(data) > _SMALL:
        return False
    try:
        descriptor = os.open(full, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        old = os.pread(descriptor, _SMALL + 1, 0)
        # Of a file with several names the others keep what they had.
        is_close = len(old) == len(data) and sum(a != b for a, b in zip(old, data, strict=True)) <= 1
        if not is_close or os.fstat(descriptor).st_nlink != 1:
            return False
        # The whole: somebody may have written more of it since.
        return os.pwrite(descriptor, data, 0) == len(data)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def write_new(full: str, data: bytes) -> None:
    """Writes a file under a name that is nobody else's, not durable yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(full, flags, 0o666)
    except FileNotFoundError:
        make_directory(os.path.dirname(full))
        descriptor = os.open(full, flags, 0o666)
    try:
        write_all(descriptor, data)
        if hasattr(os, "posix_fadvise"):
            # Has the disk begin, so that whoever syncs the first file waits for all of them.
            with suppress(OSError):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except BaseException:
        remove_quietly(full)
        raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_temporary(directory: str, data: bytes, durable: bool = True, makes_directory: bool = True) -> str:
    """Writes a file under a hidden name of its own, and gives the name."""
    return fill_temporary(directory, (data,), durable, makes_directory)


def hidden_name(directory: str) -> str:
    """A name for a file that is not to be seen yet."""
    # It is independent of the final one, whose length may already be what the file system allows.
    return os.path.join(directory, f".alluvium-{uuid.uuid4().hex}.tmp")


def fill_temporary(directory: str, parts: Iterable[bytes], durable: bool = True, makes_directory: bool = True) -> str:
    """Writes a file of several parts under a hidden name of its own, and gives the name."""
    temporary = hidden_name(directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        if not makes_directory:
            raise
        make_directory(directory)
        descriptor = os.open(temporary, flags, 0o666)
    try:
        try:
            for part in parts:
                write_all(descriptor, part)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        remove_quietly(temporary)
        raise
    return temporary


def make_directory(directory: str) -> None:
    """Makes the directory and its missing parents, each durable before something is put into it."""
    missing: list[str] = []
    while not os.path.isdir(directory):
        missing.append(directory)
        parent = os.path.dirname(directory)
        if parent == directory:
            break
        directory = parent
    for path in reversed(missing):
        with suppress(FileExistsError):  # another writer made it meanwhile; a file in the way fails in the next step
            os.mkdir(path)
        sync_directory(os.path.dirname(path))


def sync_file(full: str) -> None:
    """Makes the content of a file durable, which was written a moment ago."""
    descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: str) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE mounts know no fsync of directories; they have no journal of ours to lose.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def remove_checksum(full: str) -> None:
    """Hadoop's checksum of a file that is no longer there, or is another now."""
    directory, name = os.path.split(full)
    remove_quietly(os.path.join(directory, f".{name}.crc"))


def remove_quietly(temporary: str) -> None:
    """Removes a file that nobody needs, if that can be done."""
    # A temporary file that cannot be removed is litter that all readers ignore: never a reason to fail a commit.
    with suppress(OSError):
        os.unlink(temporary)
