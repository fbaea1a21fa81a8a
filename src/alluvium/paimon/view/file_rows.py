"""All rows of some files as these have them, whoever else has rows of the same keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.tree import Expression
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.terms.spec import SCANNED_ENTRIES
from alluvium.paimon.view.merge import KIND, SEQUENCE
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.selection import unmerged
from alluvium.plan.scan import FileConstant, OutputColumn, RowPosition, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.arrow import from_arrow
from alluvium.schema.types import Field, Struct

#: Columns that may be said of rows: the number of the file, and the place in it.
FILE, ROW = "__alluvium_file", "__alluvium_row"


@dataclass(frozen=True, slots=True)
class FileRows:
    """Implements `plan.ports.ScanSource`: all rows of some files as these have them, each with its number, its kind,
    and what is said of its file.

    Attributes:
        snapshot: Whose files.
        entries: The files (`ENTRIES`).
        said: A column each of what is said, by its name.
        is_placed: Whether rows tell their position in the file, too (`ROW`).
    """

    snapshot: Snapshot
    entries: pa.Table
    said: pa.Table
    is_placed: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        sink, told = pa.BufferOutputStream(), self.said.append_column("file_name", self.entries["file_name"])
        with pa.ipc.new_stream(sink, told.schema) as stream:
            stream.write_table(told)
        return (s.store.url, str(s.version), s.branch, "files", hashlib.sha256(sink.getvalue()).hexdigest())

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.entries["file_size"]).as_py() or 0)

    @property
    def schema(self) -> Struct:
        """The table's columns, and those of the rows' fate."""
        own = logical_schema(self.snapshot.schema).fields
        said = tuple(Field(f.name, from_arrow(f.type)) for f in self.said.schema)
        hidden = (Field(SEQUENCE, t.LONG), Field(KIND, t.BYTE), *said)
        return Struct((*own, *hidden, *([Field(ROW, t.LONG)] if self.is_placed else [])))

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        """All files, whatever the predicate: a row of a key tells nothing of the others."""
        entries = self.entries.select(SCANNED_ENTRIES.names)
        plan = plan_files(self.snapshot, unmerged(self.snapshot, entries), None, vector_masks(self.snapshot))
        parts = tuple(self._with_said(part) for part in plan.parts if part.files.num_rows)
        return replace(plan, schema=self.schema, parts=parts).exactly()

    def _with_said(self, part: ScanPart) -> ScanPart:
        files = part.files
        constants = files["constants"].combine_chunks()
        members = {f.name: constants.field(place) for place, f in enumerate(constants.type)}
        names = pc.replace_substring_regex(files["path"].combine_chunks(), "^.*/", "")
        places = pc.index_in(names, value_set=self.entries["file_name"].combine_chunks())
        own: dict[str, OutputColumn] = {ROW: OutputColumn(ROW, t.LONG, False, RowPosition())}
        for f in self.said.schema:
            members[f.name] = self.said[f.name].combine_chunks().take(places)
            own[f.name] = OutputColumn(f.name, from_arrow(f.type), True, FileConstant(f.name, from_arrow(f.type)))
        made = pa.StructArray.from_arrays(list(members.values()), names=list(members))
        by_name = {**{c.name: c for c in part.output}, **own}
        output = tuple(by_name[f.name] for f in self.schema.fields)
        place = files.schema.get_field_index("constants")
        return replace(part, files=files.set_column(place, "constants", made), output=output)
