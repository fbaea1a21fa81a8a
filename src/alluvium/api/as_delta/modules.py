"""The modules of delta-spark, by name, and what is in them.

A finder on `sys.meta_path` answers for these names alone, before any other finder: nothing is loaded until somebody
imports it, `importlib.util.find_spec` and `reload` work, and delta-spark, where it is installed, is never found.
Entries of `sys.modules` would have had all of PySpark imported at once, and could be dropped by anybody.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_HERE = "alluvium.api.as_delta"
_EXCEPTIONS = dict.fromkeys(
    (
        "DeltaConcurrentModificationException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    ),
    "alluvium.api.counterparts.exceptions",
)
_TYPING = dict.fromkeys(
    ("ColumnMapping", "ExpressionOrColumn", "OptionalColumnMapping", "OptionalExpressionOrColumn"), f"{_HERE}.typing"
)
_OURS = {
    "DeltaColumnBuilder": "alluvium.api.delta.delta_columns",
    "DeltaMergeBuilder": "alluvium.api.delta.delta_merge",
    "DeltaOptimizeBuilder": "alluvium.api.delta.optimize.builder",
    "DeltaTable": "alluvium.api.delta.delta_table",
    "DeltaTableBuilder": "alluvium.api.delta.delta_table",
    "IdentityGenerator": "alluvium.api.delta.delta_columns",
}
#: Guides say `from delta.tables import *`, and programs use what comes along.
_COME_ALONG = {
    **dict.fromkeys(("Column", "DataFrame", "SparkSession", "functions"), "pyspark.sql"),
    **dict.fromkeys(("DataType", "StructField", "StructType"), "pyspark.sql.types"),
    **dict.fromkeys(
        (
            "TYPE_CHECKING",
            "Any",
            "Dict",
            "Iterable",
            "List",
            "NoReturn",
            "Optional",
            "Tuple",
            "Union",
            "cast",
            "overload",
        ),
        "typing",
    ),
    "dataclass": "dataclasses",
    "is_remote": "pyspark.sql.utils",
    "since": "pyspark",
}
_VERSION = {"__version__": f"{_HERE}.version"}
_PIP = {"configure_spark_with_delta_pip": f"{_HERE}.configure"}

#: Each module of delta-spark: its names, and in which module of ours (or PySpark's) each is.
MODULES: Mapping[str, Mapping[str, str]] = {
    "delta": {"DeltaTable": _OURS["DeltaTable"], **_PIP, **_VERSION},
    "delta._typing": _TYPING,
    "delta.connect": {},
    "delta.connect.exceptions": _EXCEPTIONS,
    "delta.connect.tables": _OURS,
    "delta.exceptions": _EXCEPTIONS,
    "delta.exceptions.base": _EXCEPTIONS,
    "delta.exceptions.captured": _EXCEPTIONS,
    "delta.pip_utils": _PIP,
    "delta.tables": {**_OURS, **_TYPING, **_COME_ALONG},
    "delta.version": _VERSION,
}
#: Those that have modules in them, and which of them come with it.
_PACKAGES: Mapping[str, Sequence[str]] = {
    "delta": ("delta.exceptions", "delta.tables", "delta.pip_utils", "delta.version"),
    "delta.connect": (),
    "delta.exceptions": ("delta.exceptions.base", "delta.exceptions.captured"),
}
#: What `from delta import *` gives; elsewhere all names.
_ALL = {
    "delta": ("DeltaTable", "configure_spark_with_delta_pip", "__version__"),
    "delta.exceptions": tuple(_EXCEPTIONS),
}


class DeltaFinder(MetaPathFinder):
    """Finds the modules of delta-spark here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of delta-spark's; other names are for other finders."""
        if fullname not in MODULES:
            return None
        return ModuleSpec(fullname, _Loader(), origin="alluvium", is_package=fullname in _PACKAGES)


class _Loader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__doc__ = f"`{name}` of delta-spark's Python API, by Alluvium: see `alluvium.install_as_delta`."
        for exported, where in MODULES[name].items():
            setattr(module, exported, getattr(importlib.import_module(where), exported))
        if name in _ALL:
            vars(module)["__all__"] = list(_ALL[name])
        for inner in _PACKAGES.get(name, ()):
            importlib.import_module(inner)
        if name == "delta.tables":
            vars(module)["delta"] = sys.modules["delta"]
