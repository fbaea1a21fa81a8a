"""Data that a caller has in memory, or streams, as batches of Arrow."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from alluvium.errors import InvalidRequest

#: Of a batch: what is made of it is in memory, too.
_ROWS = 1 << 17


def arrow_rows(data: object) -> pa.RecordBatchReader:
    """The rows of whatever speaks Arrow.

    Args:
        data: A `pyarrow.Table`, `RecordBatch` or `RecordBatchReader`, a `pandas.DataFrame` (without its index), or any
            object with `__arrow_c_stream__`: frames of Polars, relations of DuckDB.

    Raises:
        InvalidRequest: It is none of these (`"not-rows"`), or pandas cannot say of which type a column is
            (`"invalid-data"`) or has columns of one name (`"duplicate-column"`).
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.Table):
        return data.to_reader(_ROWS)
    if _is_pandas(data):
        return _from_pandas(data).to_reader(_ROWS)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise InvalidRequest(
        f"{type(data).__name__} is no data that can be written",
        code="not-rows",
        hint="give a DataFrame of Spark, pandas or Polars, or a pyarrow.Table: pa.Table.from_pylist(rows)",
    )


def _is_pandas(data: object) -> bool:
    # Not imported: it may not be installed.
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def _from_pandas(data: object) -> pa.Table:
    counts = Counter(str(name) for name in data.columns)  # type: ignore[attr-defined]  # it is pandas'
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise InvalidRequest(
            f"the pandas frame has several columns called {twice!r}",
            code="duplicate-column",
            column=twice,
            hint="rename or drop all but one",
        )
    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidRequest(
            f"a column of the pandas frame has values of several types: {error}",
            code="invalid-data",
            hint="convert the column with astype()",
        ) from error
