"""Which path readers and writers of an enabled session are told: by an argument, or by an option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest

_PATH_OPTION = "spark.sql.legacy.pathOptionBehavior.enabled"


def table_path(spark: SparkSession, path: object, options: Mapping[str, Any], method: str) -> str:
    """What is read or written, of the argument or the option.

    Args:
        spark: The session, which may say that an argument counts before an option, as up to Spark 2.
        path: The argument.
        options: Of the reader or the writer.
        method: It is an argument of.

    Raises:
        InvalidRequest: There is none (`"no-path"`), or both are given (`"contradicting-options"`).
    """
    option = next((v for k, v in options.items() if k.lower() == "path"), None)
    if None not in (path, option) and str(spark.conf.get(_PATH_OPTION, "false")).lower() != "true":
        raise InvalidRequest(
            f"there is a 'path' option set and {method}() is called with a path parameter",
            code="contradicting-options",
            hint=f"remove the option, or call {method}() without the parameter; or set {_PATH_OPTION} to true",
        )
    found = path if path is not None else option
    if isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]
    if not isinstance(found, str) or not found.strip():
        raise InvalidRequest("one path is needed", code="no-path", hint=f'.{method}("/data/table")')
    return found
