from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from alluvium.codecs.z85 import format_z85
from alluvium.delta.description.create import new_config
from alluvium.delta.terms.spec import DELETION_VECTOR
from alluvium.delta.upkeep.vacuum.files import (
    Needed,
    choose_files,
    empty_directories,
    hides,
    needed_files,
    newest_of_each,
    stored_paths,
    vector_paths,
    with_unseen,
    without_inner_tables,
)
from alluvium.errors import CorruptTable
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.store import LISTED

ROOT = "file:/tables/t"
NAME = uuid.UUID("7f3a0b5e-8d63-4a0e-9c58-0d4a3b8a4d11")


def vector(path: str | None, kind: str = "u", offset: int | None = 1) -> dict[str, object] | None:
    if path is None:
        return None
    return {"storageType": kind, "pathOrInlineDv": path, "offset": offset, "sizeInBytes": 10, "cardinality": 2}


def actions(*rows: tuple[str, dict[str, object] | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([path for path, _ in rows], pa.string()), pa.array([dv for _, dv in rows], DELETION_VECTOR)],
        names=["path", "deletionVector"],
    )


def listing(*paths: str, modified_ms: int = 0) -> pa.Table:
    """Paths that end with a slash are directories."""
    rows = [
        {"path": path.rstrip("/"), "size": 1, "modified_ms": modified_ms, "is_directory": path.endswith("/")}
        for path in paths
    ]
    return pa.Table.from_pylist(rows, schema=LISTED)


def chosen(listed: pa.Table, needed: Needed, cutoff_ms: int = 100) -> set[str]:
    config = new_config(Struct((Field("a", LONG), Field("_p", STRING))), ["_p"], {})
    return set(choose_files(listed, needed, cutoff_ms, hides(config))["path"].to_pylist())


NOTHING = needed_files([], ROOT)


def test_names_that_are_hidden() -> None:
    fields = Struct((Field("a", LONG), Field("_p", STRING), Field("_q'r", STRING), Field("z", STRING)))
    is_hidden = hides(new_config(fields, ["_p", "_q'r", "z"], {}))
    for name in ("_delta_log", "_x", ".x", "_symlink_format_manifest", "_temporary", "_p", "_pp=1", ".p=1", "__p=1"):
        assert is_hidden(name), name
    for name in ("x", "_p=1", "_p=", "_q%27r=1", "_change_data", "_delta_index", "_change_data2", "metadata", "z=_1"):
        assert not is_hidden(name), name


def test_metadata_of_iceberg_is_hidden_where_the_table_has_such() -> None:
    formats = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
    config = new_config(Struct((Field("a", LONG),)), [], formats | {"delta.columnMapping.mode": "name"})
    assert hides(config)("metadata")
    assert not hides(config)("metadata2")


def test_young_files_stay_whatever_the_log_says() -> None:
    assert chosen(listing("x", modified_ms=99), NOTHING) == {"x"}
    assert chosen(listing("x", modified_ms=100), NOTHING) == set()
    assert chosen(listing("x", modified_ms=2**60), NOTHING) == set()


def test_files_are_told_apart_from_directories_and_hidden_ones() -> None:
    listed = listing("d/", "d/x", "d/_x", "d/.x", "_p=1/x", "_p=1/_p=2", "_change_data/x", "_change_data/_x")
    assert chosen(listed, NOTHING) == {"d/x", "_p=1/x", "_p=1/_p=2", "_change_data/x"}


@pytest.mark.parametrize(
    ("logged", "stored"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("p=a%20b/x.parquet", "p=a b/x.parquet"),
        ("p=%252F%C3%BC/x.parquet", "p=%2Fü/x.parquet"),
        ("p=ü/x.parquet", "p=ü/x.parquet"),
        # Not escaped, by a writer that knows no better.
        ("p=%2F/x.parquet", "p=%2F/x.parquet"),
        ("file:/tables/t/d/x.parquet", "d/x.parquet"),
        ("file:///tables/t/d/x.parquet", "d/x.parquet"),
        ("/tables/t/d/x.parquet", "d/x.parquet"),
        # By a link, or under another name of the same place.
        ("file:/mnt/other/d/x.parquet", "d/x.parquet"),
        ("s3://bucket/t/d/x%20y.parquet", "d/x y.parquet"),
        ("d/./x.parquet", "d/x.parquet"),
        ("d//x.parquet", "d/x.parquet"),
        ("./x.parquet", "x.parquet"),
        ("e/../d/x.parquet", "d/x.parquet"),
    ],
)
def test_a_file_of_the_log_stays_however_it_is_spelled(logged: str, stored: str) -> None:
    needed = needed_files([actions((logged, None))], ROOT)
    assert chosen(listing(stored, "other"), needed) == {"other"}


def test_a_path_that_nobody_can_read_stops_it_all() -> None:
    with pytest.raises(CorruptTable, match="well-formed"):
        needed_files([actions(("a%zz", None))], ROOT)
    with pytest.raises(CorruptTable):
        needed_files([actions(("a", vector("short")))], ROOT)


def test_vectors_are_files_of_the_table_too() -> None:
    encoded = format_z85(NAME.bytes)
    rows = [
        vector(encoded), vector("ab" + encoded), vector(encoded, offset=99), None, vector("wi5b", "i", None),
        vector(f"file:/tables/t/d/deletion_vector_{NAME}.bin", "p"), vector("s3://b/x%20y.bin", "p"),
    ]  # fmt: skip
    file = f"deletion_vector_{NAME}.bin"
    found = vector_paths(pa.array(rows, DELETION_VECTOR), ROOT).to_pylist()
    assert found == [file, f"ab/{file}", file, None, None, f"d/{file}", "s3://b/x y.bin"]
    needed = needed_files([actions(*((f"f{n}", row) for n, row in enumerate(rows)))], ROOT)
    assert chosen(listing(file, f"ab/{file}", "f0", "elsewhere/x y.bin", "other", "other.bin"), needed) == {
        "other",
        "other.bin",
    }
    assert vector_paths(pa.nulls(3, DELETION_VECTOR), ROOT).null_count == 3


def test_paths_below_the_root_lose_it() -> None:
    paths = pa.array(["a", "file:/tables/t/b%20c", "file:/tables/tt/d", "/x"])
    assert stored_paths(paths, ROOT).to_pylist() == ["a", "b c", "file:/tables/tt/d", "/x"]
    assert stored_paths(pa.array(["file:/x"]), "file:/").to_pylist() == ["x"]


def test_directories_go_when_no_file_is_below_them_the_deepest_first() -> None:
    listed = listing("a/", "a/b/", "a/b/c/", "d/", "d/e/", "d/e/f", "g/", "h/")
    needed = needed_files([actions(("g/i/j", None))], ROOT)
    assert empty_directories(listed, needed) == ("a/b/c", "a/b", "a", "h")
    assert empty_directories(listing("x"), needed) == ()


def test_of_a_file_that_is_listed_twice_the_younger_row_counts() -> None:
    listed = pa.concat_tables([listing("a", modified_ms=1), listing("a", "b", modified_ms=500)])
    assert newest_of_each(listed).num_rows == 2
    assert chosen(newest_of_each(listed), NOTHING) == set()
    assert newest_of_each(listing("a")).num_rows == 1


@pytest.mark.slow
def test_a_million_files_are_a_few_seconds_work() -> None:
    count = 1_000_000
    paths = pa.array([f"p={n % 1000}/part-{n:08d}.parquet" for n in range(count)])
    zeros = pa.repeat(pa.scalar(0, pa.int64()), count)
    listed = pa.Table.from_arrays([paths, zeros, zeros, pa.repeat(pa.scalar(False), count)], schema=LISTED)
    live = pa.RecordBatch.from_arrays(
        [paths.slice(0, count // 2), pa.nulls(count // 2, DELETION_VECTOR)], names=["path", "deletionVector"]
    )
    needed = needed_files([live], ROOT)
    assert choose_files(listed, needed, 1, lambda name: False).num_rows == count // 2
    assert empty_directories(listed, needed) == ()


def test_names_with_line_breaks_are_names_too() -> None:
    assert chosen(listing("a\nb/_x", "a\nb/y\nz"), NOTHING) == {"a\nb/y\nz"}
    needed = needed_files([actions(("file:/mnt/a\nb/x", None))], ROOT)
    assert chosen(listing("a\nb/x", "a\nb/y"), needed) == {"a\nb/y"}


def test_a_needed_file_that_is_not_listed_is_kept_by_its_name() -> None:
    """`link` leads to `real`."""
    listed = listing("real/x", "real/y", "x")
    needed = needed_files([actions(("link/y", None), ("x", None))], ROOT)
    assert chosen(listed, needed) == {"real/x", "real/y"}
    assert chosen(listed, with_unseen(needed, listed)) == {"real/x"}


def test_tables_within_the_table_are_not_its_files() -> None:
    inner = ["a/", "a/b/", "a/b/x", "a/b/_delta_log/", "a/b/_delta_log/0.json", "c/_delta_log/_sidecars/1", "c/d/x"]
    own = ["_delta_log/", "_delta_log/0.json", "a/y", "a/bb/x", "empty/", "empty/_delta_log/"]
    found = without_inner_tables(listing(*inner, *own))["path"].to_pylist()
    assert found == ["a/y", "a/bb/x", "empty", "empty/_delta_log"]
