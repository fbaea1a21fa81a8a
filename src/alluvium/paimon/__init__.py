"""Apache Paimon tables, pure: schemas, snapshots, manifests, and how their rows come out of data files. No pyspark.

Twins of `delta/` carry the same names. Must not live here: pyspark, reading of data files (engines do that from plans).
The name is a front door, too: `alluvium.paimon.schema` and `alluvium.paimon.PaimonTable`, loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alluvium.api.paimon.paimon_table import PaimonTable as PaimonTable
    from alluvium.paimon import schema as schema

__all__ = ["PaimonTable", "schema"]

# By name: the table stands above the wing, and what is below must not depend on it (decision 11).
_WHERE = {"PaimonTable": "alluvium.api.paimon.paimon_table"}


def __getattr__(name: str) -> object:
    if name == "schema":
        return importlib.import_module("alluvium.paimon.schema")
    if name not in _WHERE:
        raise AttributeError(f"module 'alluvium.paimon' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
