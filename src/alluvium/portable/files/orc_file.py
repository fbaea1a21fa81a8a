"""One ORC file as a stream of record batches, a stripe at a time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from alluvium.codecs.footers.orc_footer import OrcType, char_columns, read_sound_tail
from alluvium.codecs.footers.orc_stripe import StripeGuard
from alluvium.codecs.footers.orc_tail import OrcTail
from alluvium.codecs.footers.orc_writer_clock import read_writer_clock
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.file_names import damaged, ensure_told_apart, look_at_names, own_names
from alluvium.portable.files.java_times import holds_times, with_javas_times
from alluvium.portable.files.local_instants import KnownInstants, holds_instants, parsed_zone, shown_as_utc
from alluvium.portable.files.nested import holds, with_members

T = TypeVar("T")
#: Whose instants may go by the clock of its own zone.
_JAVA = "ORC_JAVA"
#: Zones such as `GMT+05:30`, which Java has beside the regions, and short names.
_NO_ZONE_FILE = re.compile(r"Time zone file (.+) does not exist")


@dataclass(frozen=True, slots=True)
class OrcFile:
    """An open ORC file; implements `data_file.RowFile`.

    Attributes:
        path: Where it is.
        reader: pyarrow's.
        source: What it reads from.
        tail: What it ends with.
        guard: Of its stripes.
        instants: What is known of its instants, which may go by its writer's clock; None: they do not.
    """

    path: str
    reader: orc.ORCFile
    source: pa.NativeFile
    tail: OrcTail
    guard: StripeGuard
    instants: KnownInstants | None = None

    def close(self) -> None:
        """Closes the file."""
        self.source.close()

    @property
    def num_rows(self) -> int:
        count: int = self.reader.nrows
        return count

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The file's own name of each column wanted that it has.

        Raises:
            CorruptTable: It has two of a name.
        """
        names = self.reader.schema.names
        found = own_names(names, wanted, self.path)
        ensure_told_apart(names, found.values(), self.path)
        return found

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the columns under the names wanted.

        Raises:
            CorruptTable: The file is damaged.
            UnsupportedFeature: Nobody can tell by whose clock its instants go, or Arrow does not know its writer's
                (`"unknown-writer-zone"`); or Arrow shows two of its times as one.
        """
        if not columns:
            yield from ((min(batch_size, self.num_rows - at), {}) for at in range(0, self.num_rows, batch_size))
            return
        own = sorted(set(columns.values()))
        schema = self.reader.schema
        asked = None if _have_another_meaning(own, schema.names) else own
        kinds = {name: schema.field(schema.get_field_index(name)).type for name in own}
        has_texts = any(holds(kind, pa.types.is_string) for kind in kinds.values())
        chars = char_columns(self.tail, self.path) if has_texts else {}
        is_of_java = self.reader.writer == _JAVA
        # Told by the tails of all stripes, which are read once, and only where it matters.
        clock = cache(lambda: read_writer_clock(self.source, self.tail, self.path))
        instants = [name for name, kind in kinds.items() if is_of_java and holds_instants(kind)]
        zones = self.instants.zones(clock(), instants, self.path) if self.instants is not None and instants else ()
        as_java = partial(with_javas_times, path=self.path)
        times = [name for name, kind in kinds.items() if is_of_java and holds_times(kind)]
        for stripe in range(self.reader.nstripes):
            rows = self._stripe(stripe, asked)
            try:
                for name in instants if zones else ():
                    rows = _with_column(rows, name, shown_as_utc, zones[stripe])
                for name in times:
                    rows = _with_column(rows, name, as_java, lambda at=stripe: self._zone(clock().zones[at]))
                for name in chars.keys() & set(own):
                    rows = _with_column(rows, name, _unpadded, chars[name])
            except pa.ArrowException as error:
                raise damaged(self.path, error) from None
            for start in range(0, rows.num_rows, batch_size):
                batch = rows.slice(start, batch_size)
                yield (
                    batch.num_rows,
                    {name: batch.column(mine) for name, mine in columns.items()},
                )

    def _zone(self, name: str | None) -> dt.tzinfo:
        """Of whoever wrote a stripe; UTC, where it does not say, as Arrow has it."""
        found = dt.timezone.utc if name is None else parsed_zone(name)
        if found is None:
            raise UnsupportedFeature(
                f"times of the file go by the clock of a zone {name!r} that is not known",
                code="unknown-writer-zone",
                path=self.path,
                features=("timestamp",),
                hint="read with Spark",
            )
        return found

    def _stripe(self, number: int, own: list[str] | None) -> pa.RecordBatch:
        self.guard.ensure_sound(number, own)
        try:
            return self.reader.read_stripe(number, own)
        except (pa.ArrowException, OSError) as error:
            if "out of range for nanosecond" in str(error):
                raise UnsupportedFeature(
                    f"pyarrow {pa.__version__} cannot read timestamps of ORC before 1677 and after 2262",
                    code="unsupported-file-type",
                    path=self.path,
                    features=("timestamp",),
                    hint="leave the column out, or have the engine that wrote the file write it again as Parquet",
                ) from None
            if missing := _NO_ZONE_FILE.search(str(error)):
                raise UnsupportedFeature(
                    "times of the file go by the clock of its writer's zone, for which pyarrow needs a file of the"
                    f" system: there is no {missing[1]}",
                    code="unknown-writer-zone",
                    path=self.path,
                    features=("timestamp",),
                    hint="read with Spark, or leave the column out; for a region, install the system's time zones",
                ) from None
            raise damaged(self.path, error) from None


def open_orc(path: str, source: pa.NativeFile, instants: KnownInstants | None = None) -> OrcFile:
    """Opens an ORC file and reads its footer; arguments as of `OrcFile`.

    Raises:
        CorruptTable: It is none.
    """
    tail = read_sound_tail(source, path)
    try:
        reader = orc.ORCFile(source)
        # Types and names are looked at here, so that failing is failing to open.
        look_at_names(reader.schema)
        return OrcFile(path, reader, source, tail, StripeGuard(source, tail, path), instants)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, error) from None


def _have_another_meaning(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Whether Arrow may take the name of a column for a member of another: to it `a.b` is the member `b` of `a`, where
    there is one, be `a` a list of such. It then gives other columns, or crashes.
    """
    return any(name.startswith(f"{other}.") for name in wanted if "." in name for other in names)


def _with_column(rows: pa.RecordBatch, name: str, made: Callable[[pa.Array, T], pa.Array], by: T) -> pa.RecordBatch:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, name, made(rows.column(place), by))


def _unpadded(values: pa.Array, kind: OrcType) -> pa.Array:
    """The values without the blanks by which ORC makes all `char(n)` equally long: no other reader gives them away.

    Args:
        values: Of a whole stripe, so that lists begin where their buffers do.
        kind: Their type in the file.
    """
    if kind.is_char:
        return pc.utf8_rtrim(values, characters=" ")
    if not kind.holds_char:
        return values
    return with_members(values, lambda number, member: _unpadded(member, kind.members[number]))
