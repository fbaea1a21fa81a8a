"""Pages of Parquet files: which are read, and when they are not told apart."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.page_index import parse_column_index, parse_offset_index, walk_pages
from alluvium.codecs.footers.parquet_pages import Chunk, Footer, Leaf, NoPages
from alluvium.codecs.footers.thrift_compact import CompactReader
from alluvium.portable.files import page_rows
from alluvium.portable.files.page_rows import PageRows

ROWS = 200_000
WRITE = {"data_page_size": 16_384, "use_dictionary": ["few"]}
POSITIONS = np.array([0, 777, 199_999])


@pytest.fixture(autouse=True)
def _cheap_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """These files are small."""
    monkeypatch.setattr(page_rows, "_NEAR_BYTES", 100)
    monkeypatch.setattr(page_rows, "_FAR_BYTES", 1000)


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    read_bytes = 0
    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.read_bytes += len(data)
        self.reads += 1
        return data


def table() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "few": pa.array([f"name {k % 7}" for k in range(ROWS)]),
            "x": random.random(ROWS),
            "n": pa.array([{"a": k, "b": None if k % 3 else [k, k]} for k in range(ROWS)]),
            "a.b": pa.array(np.arange(ROWS) % 11),
        }
    )


@pytest.fixture(scope="module", params=[False, True], ids=["headers", "index"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages") / "f.parquet"
    pq.write_table(table(), place, write_page_index=request.param, row_group_size=ROWS, **WRITE)
    return place


def opened(source: pa.NativeFile) -> tuple[PageRows, pq.ParquetFile]:
    reader = pq.ParquetFile(source)
    return PageRows(source, reader.metadata, "us"), reader


@pytest.mark.long
def test_the_rows_of_every_column(path: Path) -> None:
    pages, _ = opened(pa.OSFile(str(path)))
    for name in ("id", "few", "x", "a.b"):
        found = pages.rows(0, [name], POSITIONS)
        assert found is not None
        assert found[name].equals(table().column(name).take(POSITIONS).combine_chunks())


def test_all_columns_at_once_and_nested_ones_where_an_index_tells_their_rows(path: Path) -> None:
    pages, reader = opened(pa.OSFile(str(path)))
    has_index = reader.metadata.row_group(0).column(0).has_offset_index
    found = pages.rows(0, ["id", "n", "x"], POSITIONS)
    # Headers of pages of lists count values, not rows.
    assert (found is not None) == has_index
    if found is not None:
        assert pa.table(found).equals(table().select(["id", "n", "x"]).take(POSITIONS).combine_chunks())


def test_all_rows_are_read_as_a_whole(path: Path) -> None:
    pages, _ = opened(pa.OSFile(str(path)))
    assert pages.rows(0, ["id", "x"], np.arange(ROWS)) is None


def test_only_the_pages_of_the_rows_are_read(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "f", write_page_index=True, row_group_size=ROWS, **WRITE)
    data = (tmp_path / "f").read_bytes()
    source = Counted(data)
    pages, _ = opened(pa.PythonFile(source, mode="r"))
    before = source.read_bytes
    found = pages.rows(0, ["id", "x"], POSITIONS[1:2])
    assert found is not None
    assert found["id"].to_pylist() == [777]
    # The footer again, the indexes, and two pages.
    assert source.read_bytes - before < len(data) / 10


def test_pages_that_lie_close_are_read_by_one_request(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "f", write_page_index=True, row_group_size=ROWS, **WRITE)
    source = Counted((tmp_path / "f").read_bytes())
    pages, _ = opened(pa.PythonFile(source, mode="r"))
    assert pages.rows(0, ["id"], POSITIONS[1:2]) is not None
    one, counts = source.reads, []
    for positions in (np.array([777]), np.array([777, 3_000]), np.array([777, 150_777])):
        found = pages.rows(0, ["id"], positions)
        assert found is not None
        assert found["id"].to_pylist() == positions.tolist()
        counts.append(source.reads - one)
        one = source.reads
    close, neighbours, far = counts
    assert close == neighbours < far


def test_far_files_without_an_index_are_read_as_a_whole(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "f", row_group_size=ROWS, **WRITE)
    pages, _ = opened(pa.PythonFile(io.BytesIO((tmp_path / "f").read_bytes()), mode="r"))
    assert pages.rows(0, ["id"], POSITIONS) is None
    assert pages.bounds(0, "id") is None


def test_bounds_of_pages(path: Path) -> None:
    pages, _ = opened(pa.OSFile(str(path)))
    found = pages.bounds(0, "id")
    assert found is not None
    places, bounds = found
    lows = [int.from_bytes(low, "little") for low in bounds.lows]
    highs = [int.from_bytes(high, "little") for high in bounds.highs]
    assert lows == places.first_rows.tolist()
    assert highs == [*(low - 1 for low in lows[1:]), ROWS - 1]
    assert pages.bounds(0, "n") is None


def test_a_damaged_page_leaves_the_file_to_arrow(path: Path) -> None:
    data = bytearray(path.read_bytes())
    intact, _ = opened(pa.BufferReader(bytes(data)))
    found = intact.bounds(0, "x")
    assert found is not None
    # What is behind the header: how long the page is when it is uncompressed.
    reader = CompactReader(bytes(data), int(found[0].offsets[0]))
    reader.struct()
    data[reader.at : reader.at + 10] = b"\xff" * 10
    pages, _ = opened(pa.BufferReader(bytes(data)))
    assert pages.rows(0, ["x"], POSITIONS) is None
    assert pages.rows(0, ["id"], POSITIONS) is not None


def test_a_damaged_footer_or_index_leaves_the_file_to_arrow(path: Path) -> None:
    raw = path.read_bytes()
    size = pq.read_metadata(path).serialized_size
    footer = raw[-8 - size : -8]
    assert Footer(footer).leaves["id"][0].number == 0
    for cut in range(0, size - 1, 97):
        with pytest.raises(NoPages):
            Footer(footer[:cut])
    chunk = Footer(footer).chunk(0, 0)
    if chunk.offset_index is None or chunk.column_index is None:
        return
    for place, parse in (
        (chunk.offset_index, lambda data: parse_offset_index(data, chunk, ROWS)),
        (chunk.column_index, parse_column_index),
    ):
        written = raw[place[0] : sum(place)]
        parse(written)
        for cut in range(len(written) - 1):
            with pytest.raises(NoPages):
                parse(written[:cut])
    with pytest.raises(NoPages, match="not in order"):
        parse_offset_index(raw[chunk.offset_index[0] : sum(chunk.offset_index)], chunk, ROWS // 2)


def test_a_column_that_is_there_twice_is_left_to_arrow(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(range(10)), pa.array(range(10))], names=["a", "a"])
    pq.write_table(twice, tmp_path / "f")
    pages, _ = opened(pa.OSFile(str(tmp_path / "f")))
    assert pages.rows(0, ["a"], np.array([1])) is None


def test_numbers_and_indexes_without_end_are_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each further byte of a number would be added to all before it.
    with pytest.raises(ValueError, match="64 bits"):
        CompactReader(b"\x16" + b"\xff" * (1 << 16)).struct()
    least = b"\x16" + b"\xff" * 9 + b"\x01" + b"\x00"
    assert CompactReader(least).struct() == {1: -(1 << 63)}
    pages, _ = opened(pa.BufferReader(path.read_bytes()))
    has_index = pages._read_footer().chunk(0, 0).offset_index is not None
    monkeypatch.setattr(page_rows, "_MAX_INDEX_BYTES", 10)
    assert (pages.rows(0, ["x"], POSITIONS) is None) == has_index
    assert (pages.bounds(0, "x") is None) == has_index


def test_pages_without_values_are_given_up() -> None:
    chunk = Chunk({}, {5: 1, 7: 1 << 40, 9: 0})
    # A data page of no bytes and no values, of version 1: its header is all that there is.
    header = bytes.fromhex("1500150015002c15001500150015000000")
    asked = []

    def read(offset: int, size: int) -> bytes:
        asked.append(offset)
        assert len(asked) < 10
        return header

    with pytest.raises(NoPages, match="without values"):
        walk_pages(read, chunk, Leaf(0, False), 1)


def test_footers_of_too_many_chunks_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of columns times row groups: decoding such a footer would take longer than reading the rows."""
    rows = pa.table({"a": np.arange(60_000), "b": np.arange(60_000) * 7, "c": np.arange(60_000) % 5})
    pq.write_table(
        rows, tmp_path / "f", write_page_index=True, row_group_size=30_000, data_page_size=4096, use_dictionary=False
    )
    for most, is_read in ((6, True), (5, False)):
        monkeypatch.setattr(page_rows, "_MAX_CHUNKS", most)
        pages, reader = opened(pa.OSFile(str(tmp_path / "f")))
        assert reader.metadata.num_columns * reader.metadata.num_row_groups == 6
        found = pages.rows(0, ["a"], POSITIONS[:2])
        assert (found is not None) == is_read == (pages.bounds(0, "a") is not None)
        assert pages.statistics(0, 0)[2] == (0 if is_read else None)
        assert found is None or found["a"].to_pylist() == [0, 777]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("indexed") / "f.parquet"
    options = {"data_page_size": 4096, "use_dictionary": ["few"], "compression": "none", "write_page_index": True}
    rows = pa.table(
        {"id": np.arange(40_000), "few": [f"name {k % 7}" for k in range(40_000)], "x": np.arange(40_000) * 3}
    )
    pq.write_table(rows, place, row_group_size=40_000, **options)
    return place


def test_pages_are_worth_it_up_to_half_of_their_chunk(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trips of both counted: of one page, and of the whole."""
    pages, _ = opened(pa.OSFile(str(indexed)))
    footer = pages._read_footer()
    leaf = footer.leaves["id"][0]
    chunk = footer.chunk(0, leaf.number)
    sizes = pages._pages_of(0, leaf, chunk).sizes
    for positions, size in ((np.array([5]), int(sizes[0])), (np.array([5, 1500]), int(sizes[0] + sizes[1]))):
        worth = chunk.size - 2 * size
        for trip, is_read in ((worth, True), (worth + 1, False)):
            monkeypatch.setattr(page_rows, "_NEAR_BYTES", trip)
            assert (pages.rows(0, ["id"], positions) is not None) == is_read
    # Two runs of pages are two trips.
    two = np.array([5, 20_000])
    far = int(np.searchsorted(pages._pages_of(0, leaf, chunk).first_rows, 20_000, "right")) - 1
    worth = (chunk.size - 2 * int(sizes[0] + sizes[far])) // 3
    for trip, is_read in ((worth, True), (worth + 1, False)):
        monkeypatch.setattr(page_rows, "_NEAR_BYTES", trip)
        assert (pages.rows(0, ["id"], two) is not None) == is_read


def test_bounds_are_asked_of_chunks_of_two_trips(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, _ = opened(pa.OSFile(str(indexed)))
    size = pages._read_footer().chunk(0, 0).size
    for trip, is_asked in ((size // 2, True), (size // 2 + 1, False)):
        monkeypatch.setattr(page_rows, "_NEAR_BYTES", trip)
        assert (pages.bounds(0, "id") is not None) == is_asked
    # Beside a network trips are others.
    far, _ = opened(pa.PythonFile(io.BytesIO(indexed.read_bytes()), mode="r"))
    assert far.bounds(0, "id") is not None and not far.is_near and pages.is_near


def test_gaps_of_a_quarter_of_a_trip_are_read_over(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Counted(indexed.read_bytes())
    pages, _ = opened(pa.PythonFile(source, mode="r"))
    leaf = pages._read_footer().leaves["id"][0]
    told = pages._pages_of(0, leaf, pages._read_footer().chunk(0, leaf.number))
    first, third = int(told.first_rows[0]), int(told.first_rows[2])
    reads = {}
    for gap in (int(told.sizes[1]), int(told.sizes[1]) - 1):
        monkeypatch.setattr(page_rows, "_FAR_BYTES", 4 * gap)
        before = source.reads
        found = pages.rows(0, ["id"], np.array([first, third]))
        assert found is not None and found["id"].to_pylist() == [first, third]
        reads[gap] = source.reads - before
    assert list(reads.values()) == [1, 2]


def test_indexes_up_to_a_size_are_read(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, _ = opened(pa.OSFile(str(indexed)))
    chunk = pages._read_footer().chunk(0, 0)
    assert chunk.offset_index is not None and chunk.column_index is not None
    for most, is_read in ((chunk.offset_index[1], True), (chunk.offset_index[1] - 1, False)):
        monkeypatch.setattr(page_rows, "_MAX_INDEX_BYTES", most)
        pages, _ = opened(pa.OSFile(str(indexed)))
        assert (pages.rows(0, ["id"], np.array([1])) is not None) == is_read


def test_footers_are_made_of_so_many_chunks(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each column that is read one for every leaf of the file."""
    for most, wanted in ((6, [True, True, False]), (9, [True, True, True]), (3, [True, False, False])):
        monkeypatch.setattr(page_rows, "_MAX_CHUNKS", most)
        pages, _ = opened(pa.OSFile(str(indexed)))
        asked = (["id"], ["id", "x"], ["id", "x", "few"])
        assert [pages.rows(0, names, np.array([1])) is not None for names in asked] == wanted


@pytest.mark.parametrize("has_index", [False, True])
def test_a_dictionary_that_grew_too_large_on_its_way(tmp_path: Path, has_index: bool) -> None:
    """Pages behind it do without, those before need it: read of either and of both."""
    texts = [f"text number {k}" for k in range(20_000)]
    options = {"dictionary_pagesize_limit": 30_000, "data_page_size": 4096, "write_page_index": has_index}
    pq.write_table(pa.table({"s": texts}), tmp_path / "f", compression="none", write_batch_size=100, **options)
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(pq.read_metadata(tmp_path / "f").row_group(0).column(0).encodings)
    pages, _ = opened(pa.OSFile(str(tmp_path / "f")))
    for positions in ([3], [19_000], [3, 19_000], [0, 1, 500, 10_000, 19_999]):
        found = pages.rows(0, ["s"], np.array(positions))
        assert found is not None and found["s"].to_pylist() == [texts[n] for n in positions]


@pytest.mark.parametrize(
    ("places", "gap", "runs"),
    [
        ([], 0, []),
        ([(4, 6)], 0, [(4, 6)]),
        ([(10, 5), (4, 6)], 0, [(4, 11)]),
        ([(4, 5), (10, 5)], 0, [(4, 5), (10, 5)]),
        ([(4, 5), (10, 5)], 1, [(4, 11)]),
        ([(4, 5), (11, 5)], 1, [(4, 5), (11, 5)]),
        # One within another, and one twice.
        ([(4, 20), (6, 2), (24, 1)], 0, [(4, 21)]),
        ([(4, 5), (4, 5), (30, 1)], 0, [(4, 5), (30, 1)]),
    ],
)
def test_places_that_are_asked_together(places: list[tuple[int, int]], gap: int, runs: list[tuple[int, int]]) -> None:
    assert page_rows._merged(places, gap) == runs
