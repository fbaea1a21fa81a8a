"""Whatever speaks Arrow, as batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest
from alluvium.portable.writing.arrow_rows import arrow_rows

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


class Speaker:
    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [ROWS, ROWS.to_batches()[0], ROWS.to_reader(), Speaker(ROWS), ROWS.slice(0, 0)],
    ids=lambda d: type(d).__name__,
)
def test_rows_come_back(data: Any) -> None:
    expected = data if isinstance(data, pa.Table) else ROWS
    assert arrow_rows(data).read_all() == expected


def test_a_reader_is_read_once() -> None:
    reader = ROWS.to_reader()
    assert arrow_rows(reader) is reader


def test_large_tables_come_in_parts() -> None:
    count = (1 << 17) * 2 + 1
    sizes = [b.num_rows for b in arrow_rows(pa.table({"a": pa.nulls(count, pa.int8())}))]
    assert sizes == [1 << 17, 1 << 17, 1]


def test_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 9])
    found = arrow_rows(frame).read_all()
    assert found.to_pydict() == {"a": [1, 2], "b": ["x", None]}
    large = pandas.DataFrame({"a": range((1 << 17) + 1)})
    assert [b.num_rows for b in arrow_rows(large)] == [1 << 17, 1]
    with pytest.raises(InvalidRequest) as caught:
        arrow_rows(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    assert (caught.value.code, caught.value.column) == ("duplicate-column", "a")
    for values in ([1, "x"], ["x", 1]):
        with pytest.raises(InvalidRequest) as caught:
            arrow_rows(pandas.DataFrame({"a": values}))
        assert caught.value.code == "invalid-data"


@pytest.mark.parametrize("data", [[{"a": 1}], None, {"a": [1]}, "rows", ROWS["a"].type], ids=repr)
def test_other_things_are_no_rows(data: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        arrow_rows(data)
    assert caught.value.code == "not-rows"
    assert type(data).__name__ in str(caught.value)
