"""ORC files in Arrow: `char(n)`, which ORC fills with blanks that no reader shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.portable.files.orc_file import open_orc

#: A string, and `char(5)`, as types of a footer: Arrow writes no `char`, but the two are stored alike.
STRING, CHAR = b"\x22\x08\x08\x07\x20\x00", b"\x22\x08\x08\x11\x20\x05"
VALUES = {
    "c": ["ab   ", None, "abcde", " b   ", "     "],
    "s": [{"x": "a    ", "n": 1}, None, {"x": None, "n": 2}, {"x": "abcde", "n": None}, {"x": "b c  ", "n": 3}],
    "l": [["b    ", None, "c    "], None, [], ["d    "], ["e    "]],
    "m": [[("k    ", "v    ")], None, [], [("l    ", None), ("m    ", "w    ")], []],
    "t": ["x  ", "y", None, " ", ""],
}
TYPES = {
    "c": pa.string(),
    "s": pa.struct({"x": pa.string(), "n": pa.int64()}),
    "l": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.string()),
    "t": pa.string(),
}


def written(path: Path) -> Path:
    table = pa.table({name: pa.array(values, TYPES[name]) for name, values in VALUES.items()})
    orc.write_table(table, path, compression="uncompressed")
    data = path.read_bytes()
    assert data.count(STRING) == 6
    path.write_bytes(data.replace(STRING, CHAR, 5))  # all but the last, `t`
    return path


def read(path: Path, *names: str, batch_size: int = 2) -> dict[str, list[object]]:
    with pa.OSFile(str(path)) as source:
        file = open_orc("f.orc", source)
        batches = [columns for _, columns in file.batches({name: name for name in names}, batch_size)]
    return {name: [value for columns in batches for value in columns[name].to_pylist()] for name in names}


def unpadded(value: object) -> object:
    if isinstance(value, str):
        return value.rstrip(" ")
    if isinstance(value, dict):
        return {key: unpadded(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(unpadded, value))
    return value


@pytest.mark.parametrize("name", ["c", "s", "l", "m"])
def test_blanks_that_fill_a_char_are_not_read(tmp_path, name):
    assert read(written(tmp_path / "f.orc"), name) == {name: [unpadded(value) for value in VALUES[name]]}


def test_blanks_of_other_texts_stay(tmp_path):
    found = read(written(tmp_path / "f.orc"), "t", "c", batch_size=100)
    assert found["t"] == VALUES["t"]
    assert found["c"][0] == "ab"


@pytest.mark.parametrize("names", [["a.b"], ["a.b", "z"], ["a", "a.b"], ["l.x", "a.b", "a"], ["l", "z"], ["m.v"]])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_name_with_a_dot_is_no_member_of_another_column(tmp_path, names, is_reversed):
    """Arrow takes `a.b` for the member `b` of `a`, where there is one."""
    columns = {
        "a": pa.array([{"b": 1, "c": 2}]),
        "a.b": pa.array(["X"]),
        "l": pa.array([[{"x": 3}]]),
        "l.x": pa.array(["Y"]),
        "m": pa.array([[("k", {"v": 4})]], pa.map_(pa.string(), pa.struct({"v": pa.int64()}))),
        "m.v": pa.array(["W"]),
        "z": pa.array(["Z"]),
    }
    table = pa.table(dict(reversed(columns.items())) if is_reversed else columns)
    orc.write_table(table, tmp_path / "f.orc")
    assert read(tmp_path / "f.orc", *names) == table.select(names).to_pydict()


def test_a_type_that_is_a_member_twice_is_damage(tmp_path):
    """Else a few types were as many as 2 to the power of their number."""
    path = written(tmp_path / "f.orc")
    data = path.read_bytes()
    columns = b"\x12\x05\x01\x02\x05\x07\n"
    assert columns in data
    path.write_bytes(data.replace(columns, b"\x12\x05\x01\x02\x05\x07\x07"))
    with pytest.raises(CorruptTable) as caught:
        read(path, "c")
    assert caught.value.code == "damaged-file"


def numbers(path: Path, count: int, **options: object) -> Path:
    rows = {
        "n": pa.array(range(count), pa.int64()),
        "S": [f"text {k}" for k in range(count)],
        "f": [k / 2 for k in range(count)],
    }
    orc.write_table(pa.table(rows), path, **options)
    return path


def test_names_are_found_exactly_or_without_regard_to_case(tmp_path):
    with pa.OSFile(str(numbers(tmp_path / "f.orc", 3))) as source:
        file = open_orc("f.orc", source)
        assert file.names(["N", "s", "gone"]) == {"N": "n", "s": "S"} and file.num_rows == 3
        ((count, columns),) = file.batches({"b": "S", "a": "n", "again": "n"}, 100)
        assert count == 3 and {name: values.to_pylist() for name, values in columns.items()} == {
            "b": ["text 0", "text 1", "text 2"], "a": [0, 1, 2], "again": [0, 1, 2],
        }  # fmt: skip


@pytest.mark.parametrize("batch_size", [1000, 4096, 100_000])
def test_stripes_one_after_another(tmp_path, batch_size):
    """No batch is of two of them."""
    path = numbers(tmp_path / "f.orc", 30_000, stripe_size=1, batch_size=1024, compression="uncompressed")
    with pa.OSFile(str(path)) as source:
        file = open_orc("f.orc", source)
        assert file.reader.nstripes > 2
        stripes = [file.reader.read_stripe(k).num_rows for k in range(file.reader.nstripes)]
        found = list(file.batches({"n": "n", "f": "f"}, batch_size))
        sizes = [min(batch_size, rows - at) for rows in stripes for at in range(0, rows, batch_size)]
        assert [count for count, _ in found] == sizes
        assert [v for _, columns in found for v in columns["n"].to_pylist()] == list(range(30_000))
        assert sum(count for count, _ in file.batches({}, batch_size)) == 30_000
        file.close()
        assert source.closed


@pytest.mark.parametrize("year", [1500, 2300])
def test_times_that_arrow_does_not_read(tmp_path, year):
    times = pa.array([f"{year}-01-01 00:00:00"]).cast(pa.timestamp("us"))
    orc.write_table(pa.table({"t": times, "n": [1]}), tmp_path / "f.orc")
    assert read(tmp_path / "f.orc", "n") == {"n": [1]}
    with pytest.raises(UnsupportedFeature) as caught:
        read(tmp_path / "f.orc", "t")
    assert (caught.value.code, caught.value.path, caught.value.features) == (
        "unsupported-file-type",
        "f.orc",
        ("timestamp",),
    )


def test_a_damaged_stripe_is_told(tmp_path):
    path = numbers(tmp_path / "f.orc", 1000, compression="zlib")
    data = path.read_bytes()
    path.write_bytes(data[:3] + b"\xff" * 400 + data[403:])
    with pytest.raises(CorruptTable) as caught:
        read(path, "n", "S", "f")
    assert (caught.value.code, caught.value.path) == ("damaged-file", "f.orc")


@pytest.mark.parametrize("names", [["c", "t"], ["c"], ["s", "l", "m"], ["m", "t", "c"]])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_chars_of_several_columns_in_any_order(tmp_path, names, batch_size):
    found = read(written(tmp_path / "f.orc"), *names, batch_size=batch_size)
    assert found == {name: VALUES[name] if name == "t" else [unpadded(v) for v in VALUES[name]] for name in names}
