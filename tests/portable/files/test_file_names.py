"""Columns of a file by their names, and a file that is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.errors import CorruptTable
from alluvium.portable.files.file_names import damaged, own_member, own_names


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (["a", "B"], ["a", "b", "c"], {"a": "a", "b": "B"}),
        (["A", "a"], ["a", "A"], {"a": "a", "A": "A"}),
        (["Ab", "c", "cd"], ["ab", "C"], {"ab": "Ab", "C": "c"}),
        (["x"], ["X", "x"], {"X": "x", "x": "x"}),
        ([], ["a"], {}),
        (["a"], [], {}),
    ],
)
def test_exact_names_go_first(names: list[str], wanted: list[str], found: dict[str, str]) -> None:
    assert own_names(names, wanted, "f") == found and list(own_names(names, wanted, "f")) == list(found)


@pytest.mark.parametrize("seed", range(20))
def test_names_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    some = ["a", "A", "ab", "aB", "Ab", "AB", "é", "É", "ß"]
    names = lot.sample(some, lot.randint(0, 6))
    for name in [*some, "c", "ss"]:
        alike = [one for one in names if one == name] or [one for one in names if one.lower() == name.lower()]
        if len(alike) > 1:
            with pytest.raises(CorruptTable) as caught:
                own_names(names, [name], "f")
            with pytest.raises(CorruptTable):
                own_member(names, name, "s")
            assert (caught.value.code, caught.value.path) == ("damaged-file", "f")
            assert f"{name!r} may be {alike[0]!r} or {alike[1]!r}" in caught.value.message
        else:
            assert own_names(names, [name], "f") == ({name: alike[0]} if alike else {})
            assert own_member(names, name, "s") == next(iter(alike), None)


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("names", [("va", "Va"), ("va", "VA"), ("Va", "x")])
def test_rows_of_a_file_with_names_that_differ_in_case_alone(
    tmp_path: Path, names: tuple[str, str], is_nested: bool
) -> None:
    """Spark refuses to choose; here the one that is called as the column is taken."""
    url, kept = tmp_path / "t", pa.table({"VA": [1, 2], "other": [3, 4]})
    rows = pa.table({names[0]: [1, 2], names[1]: [10, 20]})
    if is_nested:
        kept, rows = (pa.table({"s": table.to_struct_array()}) for table in (kept, rows))
    alluvium.write(kept, str(url))
    (path,) = alluvium.open(str(url)).files()["path"].to_pylist()
    pq.write_table(rows, url / path)
    if names == ("va", "Va"):
        with pytest.raises(CorruptTable, match="'VA' may be 'va' or 'Va'"):
            alluvium.open(str(url)).to_arrow()
        return
    found = alluvium.open(str(url)).to_arrow()
    values = [row["s"]["VA"] if is_nested else row["VA"] for row in found.to_pylist()]
    assert values == ([10, 20] if "VA" in names else [1, 2])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("first line\nsecond line"), "first line"),
        (ValueError(""), "ValueError"),
        ("its values are no rows", "its values are no rows"),
    ],
)
def test_what_is_said_of_a_damaged_file(error: object, said: str) -> None:
    """One line of what the library says, or of which kind it is."""
    found = damaged("d/f", error)
    assert (found.code, found.path) == ("damaged-file", "d/f")
    assert f"cannot be read: {said}" in str(found) and "second" not in str(found)
