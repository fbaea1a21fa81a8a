"""One ORC file as a stream of record batches, a stripe at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from alluvium.codecs.footers.orc_footer import OrcType, read_char_columns
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.file_names import damaged, own_names


@dataclass(frozen=True, slots=True)
class OrcFile:
    """An open ORC file; implements `data_file.RowFile`.

    Attributes:
        path: Where it is.
        reader: pyarrow's.
        source: What it reads from.
    """

    path: str
    reader: orc.ORCFile
    source: pa.NativeFile

    def close(self) -> None:
        """Closes the file."""
        self.source.close()

    @property
    def num_rows(self) -> int:
        count: int = self.reader.nrows
        return count

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The file's own name of each column wanted that it has."""
        return own_names(self.reader.schema.names, wanted)

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the columns under the names wanted.

        Raises:
            CorruptTable: The file is damaged.
        """
        if not columns:
            yield from ((min(batch_size, self.num_rows - at), {}) for at in range(0, self.num_rows, batch_size))
            return
        own = sorted(set(columns.values()))
        schema = self.reader.schema
        asked = None if _have_another_meaning(own, schema.names) else own
        has_texts = any(_holds_text(schema.field(schema.get_field_index(name)).type) for name in own)
        chars = read_char_columns(self.source, self.path) if has_texts else {}
        for stripe in range(self.reader.nstripes):
            rows = self._stripe(stripe, asked)
            for name in chars.keys() & set(own):
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, name, _unpadded(rows.column(place), chars[name]))
            for start in range(0, rows.num_rows, batch_size):
                batch = rows.slice(start, batch_size)
                yield (
                    batch.num_rows,
                    {name: batch.column(mine) for name, mine in columns.items()},
                )

    def _stripe(self, number: int, own: list[str] | None) -> pa.RecordBatch:
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
            raise damaged(self.path, error) from None


def open_orc(path: str, source: pa.NativeFile) -> OrcFile:
    """Opens an ORC file and reads its footer.

    Raises:
        CorruptTable: It is none.
    """
    try:
        return OrcFile(path, orc.ORCFile(source), source)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, error) from None


def _have_another_meaning(wanted: Sequence[str], names: Sequence[str]) -> bool:
    """Whether Arrow may take the name of a column for a member of another: to it `a.b` is the member `b` of `a`, where
    there is one, be `a` a list of such. It then gives other columns, or crashes.
    """
    return any(name.startswith(f"{other}.") for name in wanted if "." in name for other in names)


def _holds_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or any(_holds_text(kind.field(n).type) for n in range(kind.num_fields))


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
    if pa.types.is_struct(values.type):
        members = [_unpadded(*pair) for pair in zip(values.flatten(), kind.members, strict=True)]
        return pa.StructArray.from_arrays(members, fields=list(values.type), mask=values.is_null())
    if pa.types.is_map(values.type):
        keys, items = (_unpadded(*pair) for pair in zip((values.keys, values.items), kind.members, strict=True))
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=values.type, mask=values.is_null())
    if pa.types.is_list(values.type):
        elements = _unpadded(values.values, kind.members[0])
        return pa.ListArray.from_arrays(values.offsets, elements, type=values.type, mask=values.is_null())
    return values
