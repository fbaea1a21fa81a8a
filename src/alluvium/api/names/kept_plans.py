"""What tables by name were read as lately, for the next statement that names them.

A table that has not changed need not be planned anew: where its log says the same as before, Spark is given the same
relation, as it gives itself of its own tables. Each statement has the log listed all the same, so that none sees an old
version.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.calls import KeptRows
from alluvium.spark.sessions.catalog import FoundEntry
from alluvium.spark.sessions.catalog_relations import PutTable, stands

#: Plans hold the lists of files of their tables: what nobody asked for in this time is let go when the next one comes.
_IDLE_SECONDS = 60.0
_KEPT_NAMES = 64


@dataclass(slots=True)
class KeptName:
    """What is kept of a name.

    Attributes:
        entry: The catalog's entry that it was read by; None: it is that of a path.
        rows: The rows.
        put: Those of which Spark has a plan, and where; assigned as one, since threads share it.
        used_s: When somebody asked for it.
    """

    entry: FoundEntry | None
    rows: KeptRows = field(default_factory=KeptRows)
    put: tuple[DataFrame, PutTable] | None = None
    used_s: float = 0.0

    def found(self, spark: SparkSession, rows: DataFrame) -> PutTable | None:
        """What Spark has of these very rows."""
        put = self.put
        return put[1] if put is not None and put[0] is rows and stands(spark, put[1]) else None

    def keep(self, rows: DataFrame, put: PutTable) -> None:
        """Remembers it, unless something of the session went into the plan that may be otherwise next time."""
        self.put = (rows, put) if put.is_plain else None
        if not put.is_plain:
            self.rows.known = None


_kept: WeakKeyDictionary[SparkSession, OrderedDict[Hashable, KeptName]] = WeakKeyDictionary()
_changing = threading.Lock()


def kept_name(spark: SparkSession, name: Hashable, entry: FoundEntry | None) -> KeptName:
    """What is kept of a name; nothing yet, where the catalog has another entry than then."""
    now = time.monotonic()
    with _changing:
        names = _kept.setdefault(spark, OrderedDict())
        found = names.get(name)
        if found is None or found.entry is not entry:
            found = names[name] = KeptName(entry)
        found.used_s = now
        names.move_to_end(name)
        while len(names) > _KEPT_NAMES or next(iter(names.values())).used_s < now - _IDLE_SECONDS:
            names.popitem(last=False)
    return found


def forget_kept(spark: SparkSession) -> None:
    """Lets go what is kept of a session's names."""
    with _changing:
        _kept.pop(spark, None)
