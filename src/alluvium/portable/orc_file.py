"""One ORC file as a stream of record batches, a stripe at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import orc

from alluvium.errors import UnsupportedFeature
from alluvium.portable.file_names import damaged, own_names


@dataclass(frozen=True, slots=True)
class OrcFile:
    """An open ORC file; implements `data_file.RowFile`."""

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
        for stripe in range(self.reader.nstripes):
            rows = self._stripe(stripe, own)
            for start in range(0, rows.num_rows, batch_size):
                batch = rows.slice(start, batch_size)
                yield (
                    batch.num_rows,
                    {name: batch.column(batch.schema.get_field_index(mine)) for name, mine in columns.items()},
                )

    def _stripe(self, number: int, own: list[str]) -> pa.RecordBatch:
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
