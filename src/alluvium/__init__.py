"""Alluvium: Delta Lake and Apache Paimon tables for PySpark without a JAR, and without Spark for small work.

    import alluvium

    t = alluvium.open("/data/flights")                       # no JVM
    df = alluvium.read(spark, "/data/flights")               # Spark's own Parquet reader
    alluvium.write(df, "/data/copy", mode="overwrite")
    alluvium.enable(spark)                                   # then spark.read.format("delta"), df.write.format("delta")

Names are loaded when they are first used: importing the package is quick and imports no pyspark.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alluvium import errors as errors
    from alluvium import paimon as paimon
    from alluvium.api.as_delta.install import install_as_delta as install_as_delta
    from alluvium.api.delta.alter import alter as alter
    from alluvium.api.delta.delta_columns import IdentityGenerator as IdentityGenerator
    from alluvium.api.delta.delta_merge import DeltaMergeBuilder as DeltaMergeBuilder
    from alluvium.api.delta.delta_table import DeltaTable as DeltaTable
    from alluvium.api.delta.delta_table import DeltaTableBuilder as DeltaTableBuilder
    from alluvium.api.delta.table import Table as Table
    from alluvium.api.explain import explain as explain
    from alluvium.api.open import open as open
    from alluvium.api.progress import progress as progress
    from alluvium.api.reader import changes as changes
    from alluvium.api.reader import read as read
    from alluvium.api.session.enable import disable as disable
    from alluvium.api.session.enable import enable as enable
    from alluvium.api.writer import write as write
    from alluvium.plan.changes import Committed as Committed
    from alluvium.plan.changes import Preview as Preview
    from alluvium.plan.retry import RetryPolicy as RetryPolicy

__version__ = "0.1.0"

_WHERE = {
    "Committed": "alluvium.plan.changes",
    "DeltaMergeBuilder": "alluvium.api.delta.delta_merge",
    "DeltaTable": "alluvium.api.delta.delta_table",
    "DeltaTableBuilder": "alluvium.api.delta.delta_table",
    "IdentityGenerator": "alluvium.api.delta.delta_columns",
    "Preview": "alluvium.plan.changes",
    "RetryPolicy": "alluvium.plan.retry",
    "Table": "alluvium.api.delta.table",
    "alter": "alluvium.api.delta.alter",
    "changes": "alluvium.api.reader",
    "disable": "alluvium.api.session.enable",
    "enable": "alluvium.api.session.enable",
    "explain": "alluvium.api.explain",
    "install_as_delta": "alluvium.api.as_delta.install",
    "open": "alluvium.api.open",
    "progress": "alluvium.api.progress",
    "read": "alluvium.api.reader",
    "write": "alluvium.api.writer",
}

__all__ = [
    "Committed",
    "DeltaMergeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "Preview",
    "RetryPolicy",
    "Table",
    "alter",
    "changes",
    "disable",
    "enable",
    "errors",
    "explain",
    "install_as_delta",
    "open",
    "paimon",
    "progress",
    "read",
    "write",
]


def __getattr__(name: str) -> object:
    if name in ("errors", "paimon"):
        return importlib.import_module(f"alluvium.{name}")
    if name == "DeltaTable" and importlib.util.find_spec("pyspark") is None:
        # Without PySpark there are no sessions.
        return importlib.import_module("alluvium.api.delta.portable.delta_table").PortableDeltaTable
    if name not in _WHERE:
        raise AttributeError(f"module 'alluvium' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
