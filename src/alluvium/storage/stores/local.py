"""Local disk, on `os` alone. Every character that the file system allows may stand in a path.

What makes it safe: a file comes into being under a hidden temporary name in the directory where it will live
(`.alluvium-<random>.tmp`, which no log reader, Spark or Hadoop takes for a table's file), is made durable there, and
only then gets its name in one step: `link`, which fails where the name is taken, or `rename`, which replaces it.

Hadoop keeps a checksum `.<name>.crc` beside each file that it writes to a local disk, and refuses files that it does
not fit. So what replaces, moves or deletes a file here takes away the checksum of what was there.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa

from alluvium.errors import AlluviumError
from alluvium.storage.copying import Count, read_parts
from alluvium.storage.failures import no_put_if_absent, not_found, storage_error
from alluvium.storage.listing import Rows
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import Url, ensure_relative, join
from alluvium.storage.store import ObjectInfo, PutOutcome, Store
from alluvium.storage.stores.local_files import (
    changed_in_place,
    fill_temporary,
    hidden_name,
    make_directory,
    remove_checksum,
    remove_quietly,
    sync_directory,
    write_temporary,
    write_together,
)

#: `link` answers so where the file system has no hard links (FAT, some FUSE and network mounts).
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
#: After these the change may have happened or not.
_UNSETTLED = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR})
#: A directory that vanished between two steps of its own removal is tried again this often.
_MAX_REMOVALS = 5
#: Files that a thread deletes one after the other; what a directory holds answers so where it is not empty.
_DELETED_TOGETHER = 500
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY})


class LocalStore:
    """A directory of the local disk; it need not exist yet.

    Args:
        root: Absolute path.
        allow_unsafe_put: Where hard links are missing, look and then rename instead of refusing.
    """

    def __init__(self, root: str, *, allow_unsafe_put: bool = False) -> None:
        self._root = root
        self._url = str(Url("file", "", root))
        self._allow_unsafe_put = allow_unsafe_put

    @property
    def url(self) -> str:
        return self._url

    @property
    def access(self) -> object:
        return self._allow_unsafe_put

    def uri(self, path: str) -> str:
        return join(self._url, ensure_relative(path))

    def get(self, path: str) -> bytes:
        try:
            with open(self._full(path), "rb", buffering=0) as file:
                return file.read()
        except OSError as error:
            raise self._failure("read", path, error) from error

    def get_range(self, path: str, start: int, length: int) -> bytes:
        chunks: list[bytes] = []
        try:
            with open(self._full(path), "rb", buffering=0) as file:
                # A buffer of the length asked is made before anything is read, and lengths may come from a log.
                length = min(length, max(os.fstat(file.fileno()).st_size - start, 0))
                # One system call gives at most 2 GiB.
                while length > 0 and (chunk := os.pread(file.fileno(), length, start)):
                    chunks.append(chunk)
                    start, length = start + len(chunk), length - len(chunk)
        except OSError as error:
            raise self._failure("read", path, error) from error
        return b"".join(chunks)

    def head(self, path: str) -> ObjectInfo:
        try:
            found = os.stat(self._full(path))
        except OSError as error:
            raise self._failure("look at", path, error) from error
        return _info(path, found)

    def open_input(self, path: str) -> pa.NativeFile:
        # Not a memory map: reading one of a file that is cut short meanwhile kills the process.
        try:
            return pa.OSFile(os.fsencode(self._full(path)), "rb")
        except OSError as error:
            raise self._failure("open", path, error) from error

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        full = self._full(path)
        try:
            if not durable and changed_in_place(full, data):
                remove_checksum(full)
                return
            temporary = write_temporary(os.path.dirname(full), data, durable)
            try:
                remove_checksum(full)
                os.replace(temporary, full)
            except OSError:
                remove_quietly(temporary)
                raise
            if durable:
                sync_directory(os.path.dirname(full))
        except OSError as error:
            raise self._failure("write", path, error) from error

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        # Nobody looks under these names before all of them stand, so they need neither a hidden name nor a step of its
        # own to become visible.
        self._write_together([(self._full(path), path, data) for path, data in parts])

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        full = self._full(path)
        temporary = hidden_name(os.path.dirname(full))
        named = [(self._full(part), part, content) for part, content in parts]
        self._write_together(named, (temporary, path, data))
        return self._made_visible(temporary, full, path)

    def _write_together(
        self, parts: Sequence[tuple[str, str, bytes]], hidden: tuple[str, str, bytes] | None = None
    ) -> None:
        """Writes files, full path, path and bytes, the names of which are durable then, but for the hidden one's."""
        files = parts if hidden is None else [*parts, hidden]
        paths = {full: path for full, path, _ in files}
        listed = list(dict.fromkeys(os.path.dirname(full) for full, _, _ in parts))
        try:
            write_together([(full, data) for full, _, data in files], listed)
        except OSError as error:
            path = paths.get(error.filename, next(iter(paths.values())))
            raise self._failure("write", path, error) from error

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        full = self._full(path)
        try:
            temporary = write_temporary(os.path.dirname(full), data, makes_directory=makes_directory)
        except OSError as error:
            raise self._failure("write", path, error) from error
        return self._made_visible(temporary, full, path)

    def _made_visible(self, temporary: str, full: str, path: str) -> PutOutcome:
        """Gives a file that is durable under a hidden name its own, if that is free."""
        try:
            outcome = self._publish(temporary, full, path)
        finally:
            remove_quietly(temporary)
        if outcome is PutOutcome.DONE:
            # Of a file that had this name before, and was deleted by somebody who left it.
            remove_checksum(full)
            try:
                sync_directory(os.path.dirname(full))
            except OSError:
                return PutOutcome.UNKNOWN  # visible, but a crash may still undo it
        return outcome

    def _publish(self, temporary: str, full: str, path: str) -> PutOutcome:
        """Gives the temporary file its final name if that is free."""
        try:
            os.link(temporary, full)
        except OSError as error:
            # NFS repeats a request whose reply was lost, and the repetition finds the name taken, by us.
            if _link_count(temporary) == 2:
                return PutOutcome.DONE
            if error.errno == errno.EEXIST:
                return PutOutcome.EXISTS
            if error.errno in _UNSETTLED:
                return PutOutcome.UNKNOWN
            if error.errno in _NO_LINKS:
                return self._publish_without_links(temporary, full, path, error)
            raise self._failure("write", path, error) from error
        return PutOutcome.DONE

    def _publish_without_links(self, temporary: str, full: str, path: str, cause: OSError) -> PutOutcome:
        if not self._allow_unsafe_put:
            raise no_put_if_absent(self._url, path, f"its file system has no hard links ({cause.strerror})") from cause
        try:
            if os.path.lexists(full):
                return PutOutcome.EXISTS
            os.rename(temporary, full)
        except OSError as error:
            raise self._failure("write", path, error) from error
        return PutOutcome.DONE

    def move(self, source: str, target: str) -> None:
        # As durable as its writer has left the content: that is not synced here either.
        full = self._full(target)
        try:
            remove_checksum(full)
            try:
                os.rename(self._full(source), full)
            except FileNotFoundError:
                make_directory(os.path.dirname(full))
                os.rename(self._full(source), full)
            remove_checksum(self._full(source))
        except OSError as error:
            raise self._failure("move", source, error) from error

    def copy_from(self, source: Store, path: str, target: str) -> int:
        full, count = self._full(target), Count()
        # Told of what is wrong with the source in its own words, before anything is made here.
        source.head(path)
        try:
            temporary = fill_temporary(os.path.dirname(full), read_parts(source, path, count))
            try:
                remove_checksum(full)
                os.replace(temporary, full)
            except OSError:
                remove_quietly(temporary)
                raise
            sync_directory(os.path.dirname(full))
        except OSError as error:
            raise self._failure("write", target, error) from error
        return count.total

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        prefix, full = ensure_relative(directory), self._full(directory)
        try:
            # Of a long log a few names are wanted, which a list of plain texts gives in two thirds of the time.
            wanted = sorted(name for name in os.listdir(full) if name >= start)
            found = (_described(os.path.join(full, name), join(prefix, name)) for name in wanted)
            return [info for info in found if info is not None]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", directory, error) from error

    def list_names(self, directory: str, start: str = "") -> list[str]:
        try:
            with os.scandir(self._full(directory)) as entries:
                # What is no plain file may be a link to one, and that takes a look.
                named = [e for e in entries if e.name >= start]
                names = [e.name for e in named if e.is_file(follow_symlinks=False) or _describe(e, "") is not None]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", directory, error) from error
        names.sort()
        return names

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        pending = [ensure_relative(directory)]
        while pending:
            prefix = pending.pop()
            try:
                with os.scandir(self._full(prefix)) as entries:
                    for entry in entries:
                        # A link to a directory is not followed: it may lead back up.
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(join(prefix, entry.name))
                        elif (info := _describe(entry, prefix)) is not None:
                            yield info
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._failure("list", prefix, error) from error

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        rows = Rows()
        pending = [ensure_relative(directory)]
        while pending:
            prefix = pending.pop()
            try:
                with os.scandir(self._full(prefix)) as entries:
                    for entry in entries:
                        self._list_entry(entry, prefix, skips, rows, pending)
                        if rows.is_full:
                            yield rows.take()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._failure("list", prefix, error) from error
        yield rows.take()

    def _list_entry(
        self, entry: os.DirEntry[str], prefix: str, skips: Callable[[str], bool], rows: Rows, pending: list[str]
    ) -> None:
        # What has no UTF-8 name is no file that anything here could name.
        if not entry.name.isascii() and not _is_text(entry.name):
            return
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        # A link to a directory is not followed: what lies there belongs to whoever made the link.
        if entry.is_dir(follow_symlinks=False):
            if not skips(entry.name):
                pending.append(path)
                rows.add(path, 0, _modified_ms(entry), is_directory=True)
        elif entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                rows.add(path, found.st_size, found.st_mtime_ns // 1_000_000)
        elif (info := _describe(entry, prefix)) is not None:
            # As young as the younger of the link and of what it leads to.
            rows.add(path, info.size, max(info.modified_ms, _modified_ms(entry)))

    def delete(self, path: str) -> None:
        full = self._full(path)
        try:
            os.unlink(full)
            remove_checksum(full)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._failure("delete", path, error) from error

    def delete_all(self, paths: Sequence[str]) -> None:
        def delete_some(start: int) -> None:
            for path in paths[start : start + _DELETED_TOGETHER]:
                self.delete(path)

        map_parallel(delete_some, range(0, len(paths), _DELETED_TOGETHER))

    def remove_directory(self, directory: str) -> bool:
        try:
            os.rmdir(self._full(directory))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno in _NOT_EMPTY:
                return False
            raise self._failure("delete", directory, error) from error
        return True

    def delete_tree(self, directory: str) -> None:
        full = self._full(directory)
        for attempt in range(_MAX_REMOVALS):
            try:
                shutil.rmtree(full)
            except (FileNotFoundError, NotADirectoryError) as error:
                # Either nothing was there, or somebody else removes the same things: go on with what is left.
                if os.path.lexists(full) and attempt == _MAX_REMOVALS - 1:
                    raise self._failure("delete", directory, error) from error
            except OSError as error:
                raise self._failure("delete", directory, error) from error
            if not os.path.lexists(full):
                return

    def _full(self, path: str) -> str:
        relative = ensure_relative(path)
        return os.path.join(self._root, relative) if relative else self._root

    def _failure(self, what: str, path: str, error: OSError) -> AlluviumError:
        if isinstance(error, NotADirectoryError) and what == "write":
            return storage_error(what, self._url, path, error.strerror or error, "what is to be a folder is a file")
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return not_found(self._url, path)
        hint = "check the permissions of the directory and the file" if isinstance(error, PermissionError) else None
        return storage_error(what, self._url, path, error.strerror or error, hint)


def _describe(entry: os.DirEntry[str], prefix: str) -> ObjectInfo | None:
    """The file behind a directory entry; None for directories and for what has vanished since."""
    return _described(entry.path, join(prefix, entry.name))


def _described(full: str, path: str) -> ObjectInfo | None:
    """The file at a place of the disk; None for directories and for what has vanished since."""
    try:
        found = os.stat(full)
    except FileNotFoundError:
        return None
    except OSError as error:
        # Links that lead in a circle are litter like any other.
        if error.errno == errno.ELOOP:
            return None
        raise
    return _info(path, found) if stat.S_ISREG(found.st_mode) else None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _modified_ms(entry: os.DirEntry[str]) -> int:
    """When an entry itself, be it a link, was last changed; 0 for one that has vanished since."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return 0


def _info(path: str, found: os.stat_result) -> ObjectInfo:
    # Links, permissions and owners change the change time, a writer between `link` and `unlink` too, but no content. So
    # it tells only where the time of the content has been set by somebody, who seldom sets more than milliseconds.
    known_ns = next((t for t in (found.st_mtime_ns, found.st_ctime_ns) if t % 1_000_000 != 0), None)
    # A file system that counts in seconds, or milliseconds, gives two files of one moment the same time, and an inode
    # is given again at once.
    identity = "" if known_ns is None else f"{found.st_ino}-{known_ns}"
    return ObjectInfo(path, found.st_size, found.st_mtime_ns // 1_000_000, identity)


def _link_count(path: str) -> int:
    try:
        return os.stat(path).st_nlink
    except OSError:
        return 0
