"""Errors that cross the JVM: ours on their way out of a callback, and Spark's turned into ours.

When Python code that the JVM calls raises, py4j keeps the text only, and the user would see a `Py4JJavaError` with two
stack traces. So the error is remembered here under a token, the token travels through the JVM, and where py4j makes
the answer of a call into an exception, the remembered error is raised instead. PySpark hooks the same function
(`py4j.protocol.get_return_value`) for its own errors; ours is innermost, so that PySpark's may be installed again.

Limits: an error reaches the user as itself only where a call from Python fails because of it, as one that waits for a
streaming query does. `query.exception()` reports it as text, as it does for all errors.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.errors.exceptions.captured import CapturedException, PythonException, UnknownException, convert_exception

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.workers.worker_errors import carried_error
from alluvium.storage.paths import decode_uri_path

_TOKEN = re.compile(r"alluvium-error-(\d+)!")
_KEPT = 64
_DEEPEST_CAUSE = 20
_SHOWN = 300

# How Spark reports, from a task, a file that it cannot read; the address is escaped.
_FAILED_READ = re.compile(r"FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\. ")
#: The condition of a file that is gone.
NOT_THERE = "FILE_NOT_EXIST"
# Below other conditions, one that went away between Hadoop's look at it and its opening it.
_GONE = re.compile(r"^java\.(io\.FileNotFound|nio\.file\.NoSuchFile)Exception\b")
# Below it, a column whose Parquet annotation is newer than Spark's Parquet library, which fails on the whole file.
_UNKNOWN_ANNOTATION = re.compile(
    r"NullPointerException.*at \S+\.ParquetMetadataConverter\.getLogicalTypeAnnotation", re.S
)
# Below it, a shredded variant where Spark (4.0, unless told otherwise) takes none.
_SHREDDED_VARIANT = "INVALID_VARIANT_FROM_PARQUET"
# Below it, the bytes of a variant.
_MALFORMED_VARIANT = "MALFORMED_VARIANT"

_roots: set[str] = set()
#: Not empty: Python workers of ours may have been at work.
_expected: set[str] = set()
#: Directories outside of a table's root that hold files of it, and the root.
_elsewhere: dict[str, str] = {}
_remembered: OrderedDict[int, Exception] = OrderedDict()
#: How Java tells of an error that a proxy's interface does not declare.
_UNDECLARED = "java.lang.reflect.UndeclaredThrowableException"
#: How the JVM tells that a query has failed, and our errors that are that, too.
_FAILED_QUERY = "org.apache.spark.sql.streaming.StreamingQueryException"
_OF_QUERIES: dict[type[Exception], type[Exception]] = {}
_numbers = itertools.count(1)


class CarriedError(Exception):
    """Raised inside a callback in place of a remembered error; its text is the token."""


def remember(error: Exception) -> CarriedError:
    """Keeps an error for the caller of the JVM, and returns what to raise inside the callback."""
    number = next(_numbers)
    _remembered[number] = error
    while len(_remembered) > _KEPT:
        _remembered.popitem(last=False)
    return CarriedError(f"alluvium-error-{number}! {type(error).__name__}: {error}")


def install() -> None:
    """Makes py4j raise remembered errors; idempotent."""
    if not hasattr(py4j.protocol.get_return_value, "carries_errors"):
        py4j.protocol.get_return_value = _carrying(py4j.protocol.get_return_value)
        # PySpark has put its own wrapper of the former function here, by value.
        py4j.java_gateway.get_return_value = _carrying(py4j.java_gateway.get_return_value)


def _carrying(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wrapped)
    def get_return_value(*args: Any, **kwargs: Any) -> Any:
        try:
            return wrapped(*args, **kwargs)
        except Py4JJavaError as error:
            # Nothing is remembered and no table read in the usual case: other people's errors pass untouched.
            carried = _find(error.java_exception) if _remembered else None
            carried = carried or _of_worker(error)
            if carried is None and _roots:
                carried = _failed_read(error.java_exception)
            if carried is None:
                declared = _undeclared(error.java_exception)
                if declared is None:
                    raise
                raise declared from None
            raise _of_query(carried, error.java_exception) from None
        except PythonException as error:
            # PySpark's own wrapper is within, where it was there before ours, and knows failures of Python workers.
            carried = _of_worker(error)
            if carried is None:
                raise
            raise carried from None
        except CapturedException as error:
            # So does an error that was thrown as one of Spark's, and that nobody caught.
            carried = _remembered_in(error._desc or "") if _remembered else None
            if carried is None or error._origin is None:
                raise
            raise _of_query(carried, error._origin) from None

    get_return_value.carries_errors = True  # type: ignore[attr-defined]
    return get_return_value


def _of_query(error: Exception, java_exception: JavaObject) -> Exception:
    """The error, which is PySpark's for a failed query, too, where that is what somebody waited for."""
    plain = type(error)
    if not issubclass(plain, AlluviumError) or issubclass(plain, StreamingQueryException):
        return error
    if str(java_exception.getClass().getName()) != _FAILED_QUERY:
        return error
    if plain not in _OF_QUERIES:
        members = {"__module__": plain.__module__, "__doc__": plain.__doc__}
        _OF_QUERIES[plain] = type(plain.__name__, (plain, StreamingQueryException), members)
    if not isinstance(error, PySparkException):
        made: Any = error
        args = error.args
        PySparkException.__init__(made, str(error))
        error.args = args
    error.__class__ = _OF_QUERIES[plain]
    return error


def _undeclared(java_exception: JavaObject) -> Exception | None:
    """Spark's error that came through a proxy of ours, as PySpark raises it; None: it is none.

    Java wraps what a method throws and its interface does not declare, as Spark's catalogs do, which are of Scala.
    """
    if str(java_exception.getClass().getName()) != _UNDECLARED:
        return None
    found: Exception = convert_exception(java_exception.getCause())
    return None if isinstance(found, UnknownException) else found


def _of_worker(error: Exception) -> AlluviumError | None:
    """What a Python worker of ours has to say, if it has."""
    return next(filter(None, map(carried_error, texts_of(error))), None) if _expected else None


def expect_workers() -> None:
    """From now on errors of ours that Python workers raise (`worker_errors`) are raised as what they are."""
    install()
    _expected.add("workers")


def watch(root: str) -> None:
    """From now on a file below `root` that Spark's tasks do not find is reported as `NotFound`, one with types that
    Spark's Parquet library does not know as `UnsupportedFeature`, any other that they cannot read as `CorruptTable`.

    Args:
        root: URL of a table, not escaped.
    """
    _roots.add(root.rstrip("/") + "/")


def watch_elsewhere(root: str, directories: Iterable[str]) -> None:
    """The same for files of the table that lie in other directories, as those of a shallow clone do.

    Args:
        root: URL of the table, not escaped.
        directories: Addresses, not escaped, as Hadoop has them.
    """
    _elsewhere.update((plain_address(directory).rstrip("/"), root.rstrip("/")) for directory in directories)


def root_elsewhere(path: str) -> str | None:
    """The table that a file outside of its root belongs to, as far as we know (`watch_elsewhere`).

    Args:
        path: As `plain_address` gives it.
    """
    return _elsewhere.get(path.rpartition("/")[0])


def plain_address(address: str) -> str:
    """Local addresses with one slash; Java writes one or three."""
    return re.sub(r"^file:/+", "file:/", address)


def _failed_read(java_exception: JavaObject) -> AlluviumError | None:
    """Ours for a failure to read a file of a table that is watched, where we know what is wrong with it."""
    texts = list(messages(java_exception))
    match = next(filter(None, map(_FAILED_READ.search, texts)), None)
    if match is None:
        return None
    path = plain_address(decode_uri_path(match[2]))
    root = next((r.rstrip("/") for r in _roots if path.startswith(r)), root_elsewhere(path))
    if root is None:
        return None
    return error_of_file(match[1], [f"{texts[-1]}\n at {_innermost_frame(java_exception)}", *texts], root, path)


def _innermost_frame(java_exception: JavaObject) -> str:
    """Where the last cause was thrown: a NullPointerException loses its text on the way from a task."""
    for _ in range(_DEEPEST_CAUSE):
        cause = java_exception.getCause()
        if cause is None:
            break
        java_exception = cause
    return " ".join(str(frame) for frame in java_exception.getStackTrace()[:1])


def error_of_file(condition: str, texts: list[str], url: str, path: str) -> AlluviumError:
    """Ours for a data file that Spark cannot read.

    Args:
        condition: Spark's condition below `FAILED_READ_FILE`.
        texts: What Spark and its causes say, the innermost last.
        url: The table.
        path: The file, not escaped.
    """
    if condition == NOT_THERE or any(map(_GONE.match, texts)):
        return NotFound(
            "a data file that the table names is gone",
            code="missing-file",
            url=url,
            path=path,
            hint="it was removed outside the table, or by VACUUM since: read the newest version",
        )
    if any(map(_UNKNOWN_ANNOTATION.search, texts)):
        return UnsupportedFeature(
            "a data file has a type, perhaps variant, that the Parquet library of this Spark does not know",
            code="unsupported-file-type",
            url=url,
            path=path,
            hint="read it with Spark 4.1 or newer, or without Spark: alluvium.open(url)",
        )
    if any(_SHREDDED_VARIANT in text for text in texts):
        return UnsupportedFeature(
            "a data file has shredded variants, which this Spark reads only when told to",
            code="shredded-variant",
            url=url,
            path=path,
            hint="spark.conf.set('spark.sql.variant.allowReadingShredded', 'true')",
        )
    if any(_MALFORMED_VARIANT in text for text in texts):
        return CorruptTable(
            "a variant is malformed",
            code="malformed-variant",
            url=url,
            path=path,
            hint="the data file was damaged, or written by a broken client; rewrite it",
        )
    return CorruptTable(
        f"the data file cannot be read: {texts[-1].splitlines()[0][:_SHOWN]}",
        code="damaged-file",
        url=url,
        path=path,
        hint="the file was cut or overwritten; restore it, or remove its rows from the table",
    )


def _find(java_exception: JavaObject) -> Exception | None:
    return next(filter(None, map(_remembered_in, messages(java_exception))), None)


def _remembered_in(text: str) -> Exception | None:
    match = _TOKEN.search(text)
    return None if match is None else _remembered.get(int(match[1]))


def messages(java_exception: JavaObject) -> Iterator[str]:
    """The texts of a Java exception and of its causes, outermost first."""
    for _ in range(_DEEPEST_CAUSE):
        if java_exception is None:
            return
        yield str(java_exception.toString())
        java_exception = java_exception.getCause()


def texts_of(error: Exception) -> list[str]:
    """What an error of Spark says, of a classic session or of Connect, and its causes; the innermost last."""
    if isinstance(error, Py4JJavaError):
        return [str(error), *messages(error.java_exception)]
    if isinstance(error, CapturedException):
        return [str(error), *messages(error._origin)]
    # A Connect server sends its stack along.
    stack = str(getattr(error, "_stacktrace", None) or "")
    return [str(error), *re.findall(r"^Caused by: (.+)$", stack, re.MULTILINE)]


class Unresolvable(InvalidRequest, AnalysisException):
    """An expression, or a list of columns, that does not fit the rows it is about; Spark's own kind of error, too."""


def analysis_problem(error: AnalysisException) -> str:
    """What Spark has against a query, one sentence without its codes."""
    return re.sub(r"^\[[A-Z_.]+\]\s*", "", str(error).split("SQLSTATE")[0].split(";")[0]).strip().rstrip(".")
