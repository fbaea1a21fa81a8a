"""Everything that Spark's Hadoop file systems reach (HDFS and others), over the gateway to a JVM that the caller holds.

No type of py4j or pyspark is imported: a gateway is used by calling it, and its errors are known by their attributes.
One call costs 0.1-0.5 ms, so a listing crosses as one byte array (`FileStatus` is a Hadoop `Writable`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.storage.copying import Count, read_parts
from alluvium.storage.failures import no_put_if_absent, not_found, storage_error
from alluvium.storage.listing import Rows
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import ensure_relative, join, split_url
from alluvium.storage.range_file import open_ranges
from alluvium.storage.store import ObjectInfo, PutOutcome, Store
from alluvium.storage.stores.file_status import FileStatus, parse_file_statuses

#: Whose rename without overwriting is one atomic step of the name node.
ATOMIC_RENAME = frozenset({"hdfs", "webhdfs", "swebhdfs"})

_FS = "org.apache.hadoop.fs."
_WRITABLE = "org.apache.hadoop.io.Writable"
_MISSING = frozenset({"java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"})
_EXISTS = frozenset({_FS + "FileAlreadyExistsException", "java.nio.file.FileAlreadyExistsException"})
_DENIED = frozenset({"org.apache.hadoop.security.AccessControlException", "java.nio.file.AccessDeniedException"})
#: The request was not carried out, because it makes no sense to the file system.
_REFUSED = frozenset(
    {
        "java.lang.IllegalArgumentException",
        "java.lang.UnsupportedOperationException",
        _FS + "InvalidPathException",
        _FS + "UnsupportedFileSystemException",
    }
)
_NO_FILE_SYSTEM = _FS + "UnsupportedFileSystemException"


@dataclass(frozen=True, slots=True)
class HadoopAccess:
    """The way into a JVM that has Hadoop.

    Attributes:
        jvm: py4j's view of the JVM (`spark._jvm`).
        conf: The `org.apache.hadoop.conf.Configuration` to use (`spark._jsc.hadoopConfiguration()`).
    """

    jvm: Any  # a dynamic proxy: it has no static type
    conf: Any


class _JavaFailure(Exception):
    """An exception of the JVM, or of the way to it. Never leaves this module.

    Attributes:
        java_class: Name of the Java class; empty if the gateway itself failed.
    """

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(message)
        self.java_class = java_class


class HadoopStore:
    """A directory of a Hadoop file system; it need not exist yet.

    Args:
        access: The JVM.
        url: The root; qualified by the file system (`hdfs:/t` becomes `hdfs://namenode:8020/t`).
        options: Configuration entries for this store alone; `spark.hadoop.` in front of a name is dropped.
        allow_unsafe_put: Where no rename is known to be atomic, look and then rename instead of refusing.

    Raises:
        InvalidRequest: The JVM knows no file system for the URL's scheme.
    """

    def __init__(
        self, access: HadoopAccess, url: str, options: dict[str, str] | None = None, *, allow_unsafe_put: bool = False
    ) -> None:
        self._allow_unsafe_put = allow_unsafe_put
        self._jvm = access.jvm
        hadoop = access.jvm.org.apache.hadoop
        self._path_class = hadoop.fs.Path  # each attribute of the view is a round trip
        self._conf = access.conf
        try:
            with _java_failures():
                path = self._path_class(url)
                if options:
                    self._conf = hadoop.conf.Configuration(access.conf)
                    for name, value in options.items():
                        self._conf.set(name.removeprefix("spark.hadoop."), value)
                    # `get` would answer from a cache that knows no configuration.
                    self._fs = hadoop.fs.FileSystem.newInstance(path.toUri(), self._conf)
                else:
                    self._fs = path.getFileSystem(self._conf)
                self._url = str(split_url(self._fs.makeQualified(path).toString()))
        except _JavaFailure as failure:
            if failure.java_class == _NO_FILE_SYSTEM:
                raise InvalidRequest(
                    f"neither Alluvium nor this Spark session knows the scheme {split_url(url).scheme!r}",
                    code="unknown-scheme",
                    url=url,
                    hint="start the session with the connector's package and its fs.<scheme>.impl setting",
                ) from failure
            raise storage_error("open", url, url, failure) from failure

    @property
    def url(self) -> str:
        return self._url

    @property
    def access(self) -> object:
        # Hadoop gives the same one again, unless its cache is off or was cleared.
        return self._fs, self._allow_unsafe_put

    def uri(self, path: str) -> str:
        return join(self._url, ensure_relative(path))

    def get(self, path: str) -> bytes:
        return self._read("read", path, lambda stream: stream.readAllBytes())

    def get_range(self, path: str, start: int, length: int) -> bytes:
        if length <= 0 or start >= self.head(path).size:
            return b""  # a seek behind the end is an error on HDFS

        def read(stream: Any) -> Any:
            stream.seek(start)
            return stream.readNBytes(length)

        return self._read("read", path, read)

    def _read(self, what: str, path: str, read: Any) -> bytes:
        try:
            with _java_failures():
                stream = self._fs.open(self._java_path(path))
                try:
                    return bytes(read(stream))
                finally:
                    stream.close()
        except _JavaFailure as failure:
            raise self._failure(what, path, failure) from failure

    def head(self, path: str) -> ObjectInfo:
        try:
            with _java_failures():
                found = self._fs.getFileStatus(self._java_path(path))
                if found.isDirectory():
                    raise not_found(self._url, path)
                return ObjectInfo(path, found.getLen(), found.getModificationTime())
        except _JavaFailure as failure:
            raise self._failure("look at", path, failure) from failure

    def open_input(self, path: str) -> pa.NativeFile:
        try:
            with _java_failures():
                size = self.head(path).size
                stream = self._fs.open(self._java_path(path))
        except _JavaFailure as failure:
            raise self._failure("open", path, failure) from failure
        return open_ranges(_StreamReader(self, path, stream).read, size)

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        target = self._java_path(path)
        try:
            with _java_failures():
                temporary = self._write_temporary(path, data)
                try:
                    self._rename(temporary, target, overwrite=True)
                except _JavaFailure as failure:
                    if failure.java_class != _NO_FILE_SYSTEM:
                        raise
                    # Without a FileContext it is the connector of some object store, which shows a file on close.
                    self._write(target, data)
                finally:
                    self._discard(temporary)
        except _JavaFailure as failure:
            raise self._failure("write", path, failure) from failure

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        map_parallel(lambda part: self.put(*part), parts)

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        self.put_new(parts)
        return self.put_if_absent(path, data)

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        target = self._java_path(path)
        self._ensure_atomic_rename(path)
        try:
            with _java_failures():
                temporary = self._write_temporary(path, data, makes_directory)
        except _JavaFailure as failure:
            raise self._failure("write", path, failure) from failure
        try:
            self._rename(temporary, target, overwrite=False)
        except _JavaFailure as failure:
            ours_is_left = self._discard(temporary)
            if failure.java_class in _EXISTS:
                # A rename that was repeated because its answer was lost finds the name taken, by us.
                return PutOutcome.EXISTS if ours_is_left else PutOutcome.UNKNOWN
            if ours_is_left and (failure.java_class in _DENIED or failure.java_class in _REFUSED):
                raise self._failure("write", path, failure) from failure
            return PutOutcome.UNKNOWN
        return PutOutcome.DONE

    def _ensure_atomic_rename(self, path: str) -> None:
        scheme = split_url(self._url).scheme
        if self._allow_unsafe_put or scheme in ATOMIC_RENAME:
            return
        if scheme == "viewfs":  # a mount table: what counts is the file system behind it
            try:
                with _java_failures():
                    scheme = self._fs.resolvePath(self._path_class(self._url)).toUri().getScheme()
            except _JavaFailure as failure:
                raise self._failure("resolve", path, failure) from failure
            if scheme in ATOMIC_RENAME:
                return
        raise no_put_if_absent(self._url, path, f"no atomic rename is known of Hadoop's file system for {scheme!r}")

    def move(self, source: str, target: str) -> None:
        goal = self._java_path(target)
        try:
            with _java_failures():
                self._fs.mkdirs(goal.getParent())
            self._rename(self._java_path(source), goal, overwrite=False)
        except _JavaFailure as failure:
            raise self._failure("move", source, failure) from failure

    def copy_from(self, source: Store, path: str, target: str) -> int:
        size, count = source.head(path).size, Count()
        directory = ensure_relative(target).rpartition("/")[0]
        temporary = self._java_path(join(directory, f".alluvium-{uuid.uuid4().hex}.tmp"))
        try:
            with _java_failures():
                try:
                    if isinstance(source, HadoopStore):
                        # In the JVM, which reads both.
                        count(size)
                        copy, origin = self._jvm.org.apache.hadoop.fs.FileUtil.copy, source._java_path(path)
                        copy(source._fs, origin, self._fs, temporary, False, self._conf)
                    else:
                        self._write_all(temporary, read_parts(source, path, count))
                    self._rename_over(temporary, self._java_path(target))
                finally:
                    self._discard(temporary)
        except _JavaFailure as failure:
            raise self._failure("write", target, failure) from failure
        return count.total

    def _rename_over(self, source: Any, target: Any) -> None:
        try:
            self._rename(source, target, overwrite=True)
        except _JavaFailure as failure:
            if failure.java_class != _NO_FILE_SYSTEM:
                raise
            # Connectors of object stores without a FileContext rename by a copy, which is whole or not there.
            self._fs.rename(source, target)

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        prefix = ensure_relative(directory)
        return sorted(
            (
                ObjectInfo(join(prefix, status.name), status.size, status.modified_ms)
                for status in self._list(prefix)
                if not status.is_directory and status.name >= start
            ),
            key=lambda info: info.path,
        )

    def list_names(self, directory: str, start: str = "") -> list[str]:
        return [info.path.rpartition("/")[2] for info in self.list_from(directory, start)]

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        pending = [ensure_relative(directory)]
        while pending:
            prefix = pending.pop()
            for status in self._list(prefix):
                if status.is_directory:
                    pending.append(join(prefix, status.name))
                else:
                    yield ObjectInfo(join(prefix, status.name), status.size, status.modified_ms)

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        rows = Rows()
        pending = [ensure_relative(directory)]
        while pending:
            prefix = pending.pop()
            for status in self._list(prefix):
                path = f"{prefix}/{status.name}" if prefix else status.name
                if not status.is_directory:
                    rows.add(path, status.size, status.modified_ms)
                elif not skips(status.name):
                    pending.append(path)
                    rows.add(path, 0, status.modified_ms, is_directory=True)
            if rows.is_full:
                yield rows.take()
        yield rows.take()

    def _list(self, prefix: str) -> list[FileStatus]:
        """What is directly in a directory, in one piece."""
        jvm = self._jvm
        try:
            with _java_failures():
                statuses = self._fs.listStatus(self._java_path(prefix))
                if not len(statuses):
                    return []
                # py4j passes an array only where exactly its class is asked for: hence a `Writable[]`.
                class_of = jvm.java.lang.Class.forName
                writables = jvm.java.lang.reflect.Array.newInstance(class_of(_WRITABLE), len(statuses))
                jvm.java.lang.System.arraycopy(statuses, 0, writables, 0, len(statuses))
                message = jvm.org.apache.hadoop.io.ArrayWritable(class_of(_FS + "FileStatus"))
                message.set(writables)
                buffer = jvm.java.io.ByteArrayOutputStream()
                message.write(jvm.java.io.DataOutputStream(buffer))
                found = parse_file_statuses(bytes(buffer.toByteArray()))
        except _JavaFailure as failure:
            if failure.java_class in _MISSING:
                return []
            raise self._failure("list", prefix, failure) from failure
        # Hadoop lists a file as itself.
        is_file = len(found) == 1 and split_url(found[0].path).path == split_url(self.uri(prefix)).path
        return [] if is_file else found

    def delete(self, path: str) -> None:
        self._delete(path, recursive=False)

    def delete_all(self, paths: Sequence[str]) -> None:
        map_parallel(self.delete, paths)

    def remove_directory(self, directory: str) -> bool:
        try:
            with _java_failures():
                return bool(self._fs.delete(self._java_path(directory), False))
        except _JavaFailure as failure:
            # Of a directory that is not empty file systems say so in words and classes of their own.
            if failure.java_class in _DENIED:
                raise self._failure("delete", directory, failure) from failure
            return False

    def delete_tree(self, directory: str) -> None:
        self._delete(directory, recursive=True)

    def _delete(self, path: str, *, recursive: bool) -> None:
        try:
            with _java_failures():
                self._fs.delete(self._java_path(path), recursive)
        except _JavaFailure as failure:
            if failure.java_class not in _MISSING:
                raise self._failure("delete", path, failure) from failure

    def _write_temporary(self, path: str, data: bytes, makes_directory: bool = True) -> Any:
        directory = ensure_relative(path).rpartition("/")[0]
        temporary = self._java_path(join(directory, f".alluvium-{uuid.uuid4().hex}.tmp"))
        try:
            self._write(temporary, data, makes_directory)
        except BaseException:
            self._discard(temporary)
            raise
        return temporary

    def _write(self, target: Any, data: bytes, makes_directory: bool = True) -> None:
        # The former makes the parents, too; the latter fails without them.
        self._write_all(target, (data,), makes_directory)

    def _write_all(self, target: Any, parts: Iterable[bytes], makes_directory: bool = True) -> None:
        fs = self._fs
        stream = fs.create(target, True) if makes_directory else fs.createFile(target).create().overwrite(True).build()
        try:
            for part in parts:
                stream.write(part)
        finally:
            stream.close()

    def _rename(self, source: Any, target: Any, *, overwrite: bool) -> None:
        """`FileContext.rename`, which fails on an existing target where `FileSystem.rename` may say false or nest."""
        with _java_failures():
            fs = self._jvm.org.apache.hadoop.fs
            choices = getattr(fs, "Options$Rename")
            options = self._jvm.java.lang.reflect.Array.newInstance(choices.OVERWRITE.getClass(), int(overwrite))
            if overwrite:
                options[0] = choices.OVERWRITE
            fs.FileContext.getFileContext(source.toUri(), self._conf).rename(source, target, options)

    def _discard(self, temporary: Any) -> bool:
        """Removes a temporary file; whether it was there. What cannot be removed is litter that all readers ignore."""
        with suppress(_JavaFailure), _java_failures():
            return bool(self._fs.delete(temporary, False))
        return False

    def _java_path(self, path: str) -> Any:
        return self._path_class(self.uri(path))

    def _failure(self, what: str, path: str, failure: _JavaFailure) -> AlluviumError:
        if failure.java_class in _MISSING:
            return not_found(self._url, path)
        hint = "check the permissions of the directory and the file" if failure.java_class in _DENIED else None
        return storage_error(what, self._url, path, failure, hint)


class _StreamReader:
    """Range reads of one Java stream that stays open, closed with its reader."""

    def __init__(self, store: HadoopStore, path: str, stream: Any) -> None:
        self._store = store
        self._path = path
        self._stream = stream

    def read(self, start: int, length: int) -> bytes:
        """`length` bytes from `start`."""
        try:
            with _java_failures():
                self._stream.seek(start)
                return bytes(self._stream.readNBytes(length))
        except _JavaFailure as failure:
            raise storage_error("read", self._store.url, self._path, failure) from failure

    def __del__(self) -> None:
        with suppress(_JavaFailure), _java_failures():
            self._stream.close()


@contextmanager
def _java_failures() -> Iterator[None]:
    """Turns what the gateway raises into `_JavaFailure`; everything else passes."""
    try:
        yield
    except (_JavaFailure, AlluviumError):
        raise
    except Exception as error:
        # pyspark replaces some of py4j's errors by its own, which keep the Java exception elsewhere.
        if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark") and not isinstance(error, OSError):
            raise
        java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        if java is None:  # the gateway itself: the second line tells what is wrong, the first only where
            raise _JavaFailure("", " ".join(str(error).split("\n")[:2]) or type(error).__name__) from error
        raise _JavaFailure(java.getClass().getName(), str(java.getMessage() or java.toString())) from error
