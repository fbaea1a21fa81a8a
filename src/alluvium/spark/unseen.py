"""Rows that were made without others of their keys, which they would hide: looked for before anything is written."""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from alluvium.errors import UnsupportedFeature
from alluvium.plan.crossing import UnseenRows
from alluvium.plan.ports import ScanSource
from alluvium.spark.naming.names import quote
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.write import data_error


def ensure_none_hidden(rows: DataFrame, unseen: UnseenRows, root: str, read: Callable[[ScanSource], DataFrame]) -> None:
    """Refuses rows of keys of which there are others that nobody has seen who made them.

    Args:
        rows: To be written.
        unseen: The others.
        root: URL of the table.
        read: Gives the rows of a source.

    Raises:
        UnsupportedFeature: There are (`"hidden-rows"`); over Connect, where nobody can look: there may be.
        InvalidRequest: `"invalid-data"`: Spark fails on the data.
    """
    if not is_connect(rows.sparkSession) and not _meet(rows, unseen, root, read):
        return
    raise UnsupportedFeature(
        "rows were made of the table's without others of the same keys, which readers see after a compaction only: "
        "these would be lost",
        code="hidden-rows",
        url=root,
        features=("level 0",),
        hint="call compact() first, and repeat the operation",
    )


def _meet(rows: DataFrame, unseen: UnseenRows, root: str, read: Callable[[ScanSource], DataFrame]) -> bool:
    keys = [quote(name) for name in unseen.keys]
    there = read(unseen.there).select(*keys)
    try:
        return bool(rows.select(*keys).join(there, list(unseen.keys), "left_semi").head(1))
    except (PySparkException, Py4JJavaError) as error:
        raise data_error(error, root) from error
