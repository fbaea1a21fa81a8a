"""Files whose rows a verb may change, as a source of scan plans: each row tells its file and its place in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, is_enabled
from alluvium.delta.features.rows.row_tracking import METADATA_COLUMNS, ROW_ID
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.terms.actions import total
from alluvium.delta.view.scan import data_paths, plan_files, select_among, select_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.expr.tree import Expression
from alluvium.plan.changes import RowColumns
from alluvium.plan.scan import FileConstant, OutputColumn, RowPosition, ScanPart, ScanPlan
from alluvium.plan.write import StoredIds
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class Candidates:
    """Implements `plan.ports.RowPlaces` for some numbered live files.

    Attributes:
        snapshot: The version.
        files: The files (`FILES`).
        numbers: One a file; stays with the file when `only` leaves others out.
        columns: Under which names rows tell where they are.
    """

    snapshot: Snapshot
    files: pa.Table
    numbers: pa.Array
    columns: RowColumns

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        choice = hashlib.sha256(self.numbers.to_numpy(zero_copy_only=False).tobytes())
        choice.update("\n".join(self.files["path"].to_pylist()).encode(errors="surrogatepass"))
        chosen = choice.hexdigest()
        return (s.store.url, str(s.version), s.config.metadata.id, str(s.timestamp_ms), s.time_zone, "rows", chosen)

    @property
    def size_bytes(self) -> int:
        return total(self.files.column("size"))

    @property
    def url(self) -> str:
        return self.snapshot.store.url

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def table_schema(self) -> Struct:
        return self.snapshot.config.schema

    @property
    def total_files(self) -> int:
        return self.snapshot.count_files()

    @property
    def stored_ids(self) -> StoredIds | None:
        """Specification: "Row IDs": the columns that materialise them."""
        if self.columns.row_id is None:
            return None
        configuration = self.snapshot.config.metadata.configuration
        names = configuration[MATERIALIZED_ROW_ID], configuration[MATERIALIZED_ROW_COMMIT_VERSION]
        return StoredIds((Field(names[0], LONG), Field(names[1], LONG)))

    def live_counts(self, files: pa.Table) -> pa.Array:
        """Rows of each file that are not deleted; null where a file does not say."""
        return live_counts(self.snapshot, files) if files.num_rows else pa.array([], pa.int64())

    @property
    def paths(self) -> pa.ChunkedArray:
        """The files as plans name them."""
        return data_paths(self.files)

    def only(self, numbers: pa.Array) -> Candidates:
        """Those of the files that have these numbers."""
        kept = pc.is_in(self.numbers, value_set=numbers)
        return replace(self, files=self.files.filter(kept), numbers=self.numbers.filter(kept))

    def places(self, numbers: pa.Array) -> pa.Array:
        """Where the files of these numbers stand in `files`."""
        return pc.index_in(numbers, value_set=self.numbers)

    def renumbered(self, numbers: pa.Array) -> Candidates:
        """The same files under other numbers."""
        return replace(self, numbers=numbers)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        s = self.snapshot
        with locating(s.store, s.version):
            chosen = self.files
            if where is not None and chosen.num_rows:
                chosen = select_among(chosen, where, s.config, s.time_zone, s.statistics).files
            asked = METADATA_COLUMNS if self.columns.row_id is not None else ()
            plan = plan_files(s, chosen, asked)
            keys = self.paths.combine_chunks() if self.files.num_rows else pa.array([], pa.string())
            added = self._fields()
            return replace(
                plan,
                parts=tuple(self._placed(part, keys) for part in plan.parts if part.files.num_rows),
                schema=Struct((*plan.schema.fields, *added)),
            )

    def _fields(self) -> list[Field]:
        names = self.columns
        tracked = [] if names.row_id is None or names.row_version is None else [names.row_id, names.row_version]
        return [Field(name, LONG) for name in (*tracked, names.file, names.row)]

    def _placed(self, part: ScanPart, keys: pa.Array) -> ScanPart:
        names, own = self.columns, len(self.snapshot.config.schema.fields)
        given = {ROW_ID: names.row_id}
        tracked = [replace(c, name=given.get(c.name) or str(names.row_version)) for c in part.output[own:]]
        files = part.files
        index = files.schema.get_field_index("constants")
        constants = files.column(index)
        constants = constants.combine_chunks() if isinstance(constants, pa.ChunkedArray) else constants
        places = pc.index_in(files["path"], value_set=keys)
        places = places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places
        members = [*constants.flatten(), self.numbers.take(places)]
        fields = [*constants.type, pa.field(names.file, pa.int64())]
        return replace(
            part,
            files=files.set_column(index, "constants", pa.StructArray.from_arrays(members, fields=fields)),
            output=(
                *part.output[:own],
                *tracked,
                OutputColumn(names.file, LONG, False, FileConstant(names.file, LONG)),
                OutputColumn(names.row, LONG, False, RowPosition()),
            ),
            is_exact=True,
        )


def choose_candidates(snapshot: Snapshot, where: Expression | None) -> Candidates:
    """The files that may hold a row for which `where` is true."""
    return candidates_of(snapshot, select_files(snapshot, where).files)


def candidates_of(snapshot: Snapshot, files: pa.Table) -> Candidates:
    """Some live files, numbered."""
    columns = RowColumns.with_ids() if is_enabled(snapshot.config) else RowColumns()
    columns = columns.beside(snapshot.config.schema.names)
    return Candidates(snapshot, files, pa.array(range(files.num_rows), pa.int64()), columns)
