"""The columns of one file, wherever it lies."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_table import make_table

from alluvium.delta.upkeep.stored_schema import read_stored_schema
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CorruptTable
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.open import open_store


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return load_snapshot(open_store(make_table(tmp_path / "t", Struct((Field("id", LONG),)))))


def write(path: Path, *names: str) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: [1] for name in names}), sink)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sink.getvalue())


def test_files_of_the_table_and_files_elsewhere(tmp_path: Path, snapshot: Snapshot) -> None:
    write(tmp_path / "t/p=1/x y.parquet", "a", "b")
    write(tmp_path / "far/x y.parquet", "c")
    for path, names in (
        ("p=1/x y.parquet", ["a", "b"]), (f"file:{tmp_path}/far/x y.parquet", ["c"]), (f"{tmp_path}/far/x y.parquet", ["c"]),
    ):  # fmt: skip
        assert read_stored_schema(snapshot, path).names == names


def test_what_is_no_parquet(tmp_path: Path, snapshot: Snapshot) -> None:
    for path in ("t/x.parquet", "far/x.parquet"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(b"PAR1 no PAR1")
    for path in ("x.parquet", f"file:{tmp_path}/far/x.parquet"):
        with pytest.raises(CorruptTable) as caught:
            read_stored_schema(snapshot, path)
        assert (caught.value.code, caught.value.path) == ("damaged-file", path)
