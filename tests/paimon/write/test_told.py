"""Files of a job: those of rows apart from those that tell how rows changed; and names of files whose rows wait."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.postponed import as_waiting, data_prefix, is_postponed
from alluvium.paimon.write.told import apart, told_entries
from alluvium.plan.changes import NewFiles
from alluvium.plan.write import LOG_COLUMN, WRITTEN_FILES
from alluvium.schema import types as t


def files(*paths: str) -> NewFiles:
    rows: list[dict[str, Any]] = [
        {"path": path, "size": n, "modification_time_ms": 1, "num_rows": 10 + n, "partition": [], "bucket": None}
        for n, path in enumerate(paths)
    ]
    footers = tuple(FileFooter(10 + n, {("k",): ColumnStats(t.INTEGER, n, n, 0)}) for n in range(len(paths)))
    return NewFiles(pa.Table.from_pylist(rows, schema=WRITTEN_FILES), footers)


TELLS, ROWS = f"_staging/x/{LOG_COLUMN}=1/", f"_staging/x/{LOG_COLUMN}=0/"


@pytest.mark.parametrize(
    ("paths", "tells"),
    [
        ((), ()), (("a", "b"), ()), ((f"{ROWS}a", f"{TELLS}b", f"{ROWS}c", f"{TELLS}d"), (1, 3)), ((f"{TELLS}a",), (0,)),
        # Names that are nearly so are of rows.
        ((f"x{LOG_COLUMN}=1/a", f"{LOG_COLUMN}=1", f"_staging/{LOG_COLUMN}=11/a"), ()),
    ],
)  # fmt: skip
def test_files_of_rows_and_those_that_tell_of_changes(paths: tuple[str, ...], tells: tuple[int, ...]) -> None:
    new = files(*paths)
    rows, told = apart(new)
    stay = [n for n in range(len(paths)) if n not in tells]
    assert rows.table.to_pylist() == [new.table.to_pylist()[n] for n in stay]
    assert told.table.to_pylist() == [new.table.to_pylist()[n] for n in tells]
    # Each with its own footer.
    assert rows.footers == tuple(new.footers[n] for n in stay) and told.footers == tuple(new.footers[n] for n in tells)
    assert rows.table.schema.names == told.table.schema.names == WRITTEN_FILES.names


def schema_of(*keys: str, **options: str) -> TableSchema:
    return TableSchema.create([DataField(0, "k", parse_type("INT NOT NULL"))], (), keys, options)


@pytest.mark.parametrize(
    ("options", "prefix"),
    [({}, "changelog-"), ({"changelog-file.prefix": "log-", "data-file.prefix": "rows-"}, "log-")],
)
def test_entries_of_files_that_tell_of_changes(options: dict[str, str], prefix: str) -> None:
    found = told_entries(schema_of(**options), files("a", "b"))
    assert all(name.startswith(prefix) for name in found["file_name"].to_pylist())
    assert found["row_count"].to_pylist() == [10, 11] and found["kind"].to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("keys", "bucket", "waits"), [(("k",), "-2", True), (("k",), "-1", False), (("k",), "1", False), ((), "-1", False)]
)
def test_rows_of_keys_wait_where_the_table_says_so(keys: tuple[str, ...], bucket: str, waits: bool) -> None:
    schema = schema_of(*keys, bucket=bucket, **{"data-file.prefix": "mine-", "metadata.stats-mode": "full"})
    assert is_postponed(schema) is waits
    # Nobody skips such files.
    assert as_waiting(schema).options["metadata.stats-mode"] == ("none" if waits else "full")
    assert as_waiting(schema).fields == schema.fields and schema.options["metadata.stats-mode"] == "full"
    names = {data_prefix(schema) for _ in range(20)}
    if not waits:
        assert names == {"mine-"}
        return
    # "Each writer should have its unique prefix"; its number is a positive `int` of Java's.
    found = [re.fullmatch(r"mine--u-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-s-(\d+)-w-", name) for name in names]
    assert len(names) == 20 and all(one is not None and 0 <= int(one[2]) < 1 << 31 for one in found)
