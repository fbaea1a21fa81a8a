"""INT96 timestamps as nanoseconds: pyarrow wraps the years that 64 bits do not hold, so they are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.data_file import Files, open_data_file
from alluvium.storage.open import open_store

NEAR = ["2262-04-11 23:47:16", "1677-09-21 00:12:44", "1969-12-31 23:59:59.999999", None]
FAR = ["9999-12-31 00:00:00", "0001-01-01 00:00:00", "2600-04-12 00:00:00", "1677-09-20 00:00:00"]


def written(folder: Path, texts: list[str | None], rows: int = 2) -> Files:
    times = pa.array(texts).cast(pa.timestamp("us"))
    structs = pa.StructArray.from_arrays([times], ["t"])
    lists = pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), times)
    ones = pa.array(range(len(texts) + 1), pa.int32())
    values = pa.MapArray.from_arrays(ones, pa.array(["k"] * len(texts)), times)
    keys = pa.MapArray.from_arrays(ones, times.fill_null(0), pa.array(["v"] * len(texts)))
    table = pa.table({"n": pa.array(range(len(texts))), "t": times, "s": structs, "l": lists, "m": values, "k": keys})
    pq.write_table(table, folder / "f.parquet", use_deprecated_int96_timestamps=True, row_group_size=rows)
    return Files(open_store(str(folder)), open_store)


@pytest.mark.parametrize("far", FAR)
def test_years_that_nanoseconds_lack_are_refused_at_any_depth(tmp_path: Path, far: str) -> None:
    files = written(tmp_path, [*NEAR, far])
    for column in ("t", "s", "l", "m", "k"):
        with pytest.raises(UnsupportedFeature) as caught:
            list(open_data_file(files, "f.parquet", "UTC", unit="ns").batches({column: column}, 100))
        assert (caught.value.column, caught.value.path) == (column, "f.parquet")
    assert len(list(open_data_file(files, "f.parquet", "UTC", unit="ns").batches({"n": "n"}, 100))) == 3
    coarse = [b for _, b in open_data_file(files, "f.parquet", "UTC", unit="us").batches({"t": "t"}, 100)]
    assert str(coarse[-1]["t"][0]) == far


def test_years_that_they_have_are_read(tmp_path: Path) -> None:
    files = written(tmp_path, NEAR)
    file = open_data_file(files, "f.parquet", "UTC", unit="ns")
    times = pa.concat_arrays([arrays["t"] for _, arrays in file.batches({"t": "t"}, 100)])
    file.close()
    assert times.type == pa.timestamp("ns")
    assert times.cast(pa.timestamp("us")).equals(pa.array(NEAR).cast(pa.timestamp("us")))


#: 1970-01-01, and the day before.
EPOCH_DAY, DAY_NS = 2_440_588, 86_400_000_000_000


@pytest.mark.parametrize("nanos", [-1, -616, -617, -999, -1000, -1001, -DAY_NS + 1])
def test_times_counted_back_from_the_next_midnight_are_what_they_are(tmp_path: Path, nanos: int) -> None:
    """As Paimon's Java writes them before 1970: Arrow takes the count for unsigned, and nanoseconds wrap back from it."""
    usual = (DAY_NS - 1000).to_bytes(8, "little") + (EPOCH_DAY - 1).to_bytes(4, "little")
    times = pa.array(["1969-12-31 23:59:59.999999", None]).cast(pa.timestamp("us"))
    options = {
        "use_deprecated_int96_timestamps": True,
        "use_dictionary": False,
        "compression": "none",
        "write_statistics": False,
    }
    pq.write_table(pa.table({"t": times}), tmp_path / "f.parquet", **options)
    data = (tmp_path / "f.parquet").read_bytes()
    assert data.count(usual) == 1
    (tmp_path / "f.parquet").write_bytes(
        data.replace(usual, nanos.to_bytes(8, "little", signed=True) + EPOCH_DAY.to_bytes(4, "little"))
    )
    files = Files(open_store(str(tmp_path)), open_store)
    ((_, arrays),) = open_data_file(files, "f.parquet", "UTC", unit="ns").batches({"t": "t"}, 100)
    assert arrays["t"].cast(pa.int64()).to_pylist() == [nanos, None]


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
@pytest.mark.parametrize("place", range(5))
def test_one_of_them_among_others_is_refused(tmp_path: Path, rows: int, place: int) -> None:
    texts = [*NEAR[:place], FAR[0], *NEAR[place:]]
    files = written(tmp_path, texts, rows)
    for column in ("t", "s", "l", "m", "k"):
        with pytest.raises(UnsupportedFeature):
            list(open_data_file(files, "f.parquet", "UTC", unit="ns").batches({column: column}, 100))
