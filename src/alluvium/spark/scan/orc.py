"""What Spark's own ORC reader reads as the format means it, and how it has to be asked.

It was made for files of Spark and Hive. Of other writers' files it reads the types below as they are; what it would
change without a word stays with the Python workers, and so does what it has no form for:

- Timestamps: ORC's are a writer's wall clock, which becomes the wall clock of the executor's JVM, where an hour each
  spring may not exist; instants (`timestamp with local time zone`) are a type that Spark's parser of types does not
  know, and it parses the types of all columns of a file, wanted or not.
- Dates before the Gregorian calendar: it takes all days for days of the hybrid calendar (`RebaseDateTime`), whatever
  the writer meant.
- Positions: there is no `_metadata.row_index`.
- Names: it takes a file whose names all begin with `_col` for one of Hive without names, and goes by places, and one
  that has those of Hive's transactions for the events of such; it fails over names that differ in case alone; and of a
  name with a backtick it knows what stands before it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import chain

from alluvium.plan.scan import RowPosition, ScanPart
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.schema.walk import holds
from alluvium.spark.naming.names import leaves

#: The class, not the short name, which is Hive's reader where `spark.sql.orc.impl` says so.
READER = "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"
#: Of a relation: they go to the reader on top of the session's Hadoop settings.
OPTIONS: Mapping[str, str] = {"orc.force.positional.evolution": "false"}
#: Of the session whose reader it is. Statistics of texts are ordered by UTF-16 in some writers and by bytes in others,
#: and those of floating point know neither NaN nor the sign of zero: by them the reader would leave out rows. Columns
#: go by their exact names where the file has them, and else without regard to case, as everywhere here.
SETTINGS: Mapping[str, str] = {"spark.sql.orc.filterPushdown": "false", "spark.sql.caseSensitive": "false"}
#: The first day of the Gregorian calendar: from here on the hybrid calendar is the same.
_GREGORIAN = dt.date(1582, 10, 15)
_HIVE = "_col"
_INSTANTS = (t.TIMESTAMP, t.TIMESTAMP_NANOS)
#: `SchemaEvolution.acidEventFieldNames`
_EVENTS = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row")


def misread(part: ScanPart) -> str | None:
    """What of a part Spark's ORC reader would not read as the format means it; None: nothing."""
    return next(_problems(part), None)


def _problems(part: ScanPart) -> Iterator[str]:
    if part.is_masked or any(isinstance(leaf, RowPosition) for c in part.output for leaf in leaves(c.value)):
        yield "the positions of rows"
    if any(holds(part.read_schema, kind) for kind in (*_INSTANTS, t.TIMESTAMP_NTZ)):
        yield "timestamps"
    if part.held is None:
        yield "files whose columns are not known beforehand"
        return
    if any(holds(part.held, kind) for kind in _INSTANTS):
        yield "files that hold timestamps with a time zone"
    if part.held.names and all(name.startswith(_HIVE) for name in part.held.names):
        yield f"files all of whose columns are named {_HIVE}..."
    if tuple(name.lower() for name in part.held.names) == _EVENTS:
        yield "files whose columns are named as those of Hive's transactions"
    structs = list(chain(_structs(part.held), _structs(part.read_schema)))
    if any("`" in name for struct in structs for name in struct.names):
        yield "columns that have a backtick in their names"
    if any(len({name.lower() for name in struct.names}) < len(struct.names) for struct in structs):
        yield "columns whose names differ in case alone"
    if holds(part.read_schema, t.DATE) and (part.earliest_date is None or part.earliest_date < _GREGORIAN):
        since = "that may be" if part.earliest_date is None else "that are"
        yield f"dates {since} before {_GREGORIAN}"


def _structs(kind: DataType) -> Iterator[Struct]:
    """A type and what is in it, as far as it has names."""
    if isinstance(kind, Struct):
        yield kind
        for f in kind.fields:
            yield from _structs(f.type)
    elif isinstance(kind, Array):
        yield from _structs(kind.element)
    elif isinstance(kind, Map):
        yield from _structs(kind.key)
        yield from _structs(kind.value)
