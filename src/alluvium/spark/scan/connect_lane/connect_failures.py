"""Errors of a Connect server about our files, turned into ours: the counterpart of `spark.jvm.failures`.

The client of each session that reads a table gets its own error function wrapped; no class of PySpark is touched, and
errors that name none of our tables pass as they are.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium import errors
from alluvium.errors import AlluviumError
from alluvium.spark.jvm import failures
from alluvium.spark.workers.worker_errors import carried_error
from alluvium.storage.paths import decode_uri_path

#: Where a file is named: escaped by a task that cannot read it, literal by an analysis that does not find it.
_FAILED_READ = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\. ")
_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?)\. SQLSTATE", re.DOTALL)
#: An error of ours that a Python worker raised, as its traceback ends.
_OURS = re.compile(r"^(?:\w+: )?alluvium\.errors\.(?P<kind>\w+): (?P<message>.+?)$", re.MULTILINE)


def watch(spark: SparkSession, root: str) -> None:
    """From now on errors of this session about files below `root` are ours.

    Args:
        spark: A Connect session.
        root: URL of a table, not escaped.
    """
    client: Any = spark._client  # type: ignore[attr-defined]
    original = client._handle_error
    if not hasattr(original, "alluvium_roots"):
        original = client._handle_error = _translating(original)
    original.alluvium_roots.add(root.rstrip("/") + "/")


def _translating(original: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    roots: set[str] = set()

    @functools.wraps(original)
    def handle_error(*args: Any, **kwargs: Any) -> NoReturn:
        try:
            original(*args, **kwargs)
        except PySparkException as error:
            ours = translated(error, roots)
            if ours is None:
                raise
            raise ours from None

    handle_error.alluvium_roots = roots  # type: ignore[attr-defined]
    return handle_error


@contextlib.contextmanager
def reading(root: str) -> Iterator[None]:
    """Errors of Spark within are ours where they are about a file below `root`."""
    try:
        yield
    except PySparkException as error:
        ours = translated(error, {root.rstrip("/") + "/"})
        if ours is None:
            raise
        raise ours from None


def translated(error: PySparkException, roots: set[str]) -> AlluviumError | None:
    """Our error for one of Spark's that names a file below one of the roots; None for any other."""
    if carried := carried_error(str(error)):
        return carried
    raised = _OURS.search(str(error))
    kind = getattr(errors, raised["kind"], None) if raised else None
    if raised is not None and isinstance(kind, type) and issubclass(kind, AlluviumError):
        return kind(raised["message"])
    if found := _FAILED_READ.search(str(error)):
        condition, path = found[1], decode_uri_path(found[2])
    elif found := _NOT_FOUND.search(str(error)):
        condition, path = failures.NOT_THERE, found[1]
    else:
        return None
    path = failures.plain_address(path)
    root = next((r.rstrip("/") for r in roots if path.startswith(_local(r))), None) or failures.root_elsewhere(path)
    if root is None:
        return None
    return failures.error_of_file(condition, _texts(error), root, path)


def _local(root: str) -> str:
    return f"file:{root}" if root.startswith("/") else root


def _texts(error: PySparkException) -> list[str]:
    """What the error says, and the causes that the server sent along."""
    text = f"{error}\n{getattr(error, '_stacktrace', '') or ''}"
    return [text, *re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)]
