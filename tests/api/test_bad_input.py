"""Bad input without Spark: each has its error, with a path and a hint, and leaves the table byte for byte as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.open import open_store


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "table"
    for n in range(12):
        commit_rows(open_target(open_store(str(root)), partitioned=True), [n], "a" if n % 2 else "b")
    return root


@pytest.fixture
def table(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "my table"))


def log(table: Path, version: int, suffix: str = "json") -> Path:
    return table / f"_delta_log/{version:020d}.{suffix}"


def drop_checkpoint(table: Path) -> None:
    log(table, 10, "checkpoint.parquet").unlink()
    (table / "_delta_log/_last_checkpoint").unlink()


def fails(table: Path, kind: type[AlluviumError], code: str, act: Callable[[], object]) -> AlluviumError:
    before = tree(table) if table.exists() else None
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.code == code, caught.value
    assert (tree(table) if table.exists() else None) == before
    return caught.value


def test_no_table(tmp_path: Path) -> None:
    error = fails(tmp_path / "none", NotFound, "not-a-table", lambda: alluvium.open(str(tmp_path / "none")))
    assert str(tmp_path / "none") in str(error) and "hint:" in str(error)


def test_parquet_files_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    fails(tmp_path, NotFound, "not-a-table", lambda: alluvium.open(str(tmp_path)))


def test_missing_version_says_which_exist(table: Path) -> None:
    error = fails(table, NotFound, "missing-version", lambda: alluvium.open(str(table), version=99))
    assert "0" in str(error) and "11" in str(error)


@pytest.mark.parametrize("version", [-1, "x", 1.5, True])
def test_a_version_that_is_none(table: Path, version: object) -> None:
    fails(table, InvalidRequest, "invalid-version", lambda: alluvium.open(str(table), version=version))  # type: ignore[arg-type]


def test_version_and_timestamp_exclude_each_other(table: Path) -> None:
    fails(table, InvalidRequest, "version-and-timestamp", lambda: alluvium.open(str(table), 1, "2024-01-01"))


def test_times_outside_the_history(table: Path) -> None:
    error = fails(table, NotFound, "missing-version", lambda: alluvium.open(str(table), timestamp="1999-01-01"))
    assert "1999" in str(error)
    fails(table, NotFound, "missing-version", lambda: alluvium.open(str(table), timestamp="2999-01-01"))
    fails(table, InvalidRequest, "invalid-timestamp", lambda: alluvium.open(str(table), timestamp="yesterday"))


def test_a_truncated_commit(table: Path) -> None:
    drop_checkpoint(table)
    data = log(table, 5).read_bytes()
    log(table, 5).write_bytes(data[:-20])
    error = fails(table, CorruptTable, "damaged-line", lambda: alluvium.open(str(table)))
    assert error.path is not None and error.path.endswith("5.json") and error.version == 5


def test_a_bit_flipped_commit(table: Path) -> None:
    drop_checkpoint(table)
    data = bytearray(log(table, 5).read_bytes())
    data[1] ^= 0x20
    log(table, 5).write_bytes(bytes(data))
    with pytest.raises(CorruptTable):
        alluvium.open(str(table))


def test_a_gap_in_the_log(table: Path) -> None:
    drop_checkpoint(table)
    log(table, 5).unlink()
    error = fails(table, CorruptTable, "gap-in-log", lambda: alluvium.open(str(table)))
    assert "5" in str(error)


def test_a_checkpoint_that_lies_about_its_bytes_is_passed_over(table: Path) -> None:
    log(table, 10, "checkpoint.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    assert alluvium.open(str(table)).files().num_rows == 12


def test_a_damaged_checkpoint_without_a_way_around_it(table: Path) -> None:
    log(table, 10, "checkpoint.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    log(table, 0).unlink()
    error = fails(table, CorruptTable, "damaged-checkpoint", lambda: alluvium.open(str(table)))
    assert error.path is not None and "checkpoint" in error.path


@pytest.mark.parametrize("hint", [b"", b"{", b'{"version":7,"size":1}', b'{"version":99999,"size":1}', b"\xff\xfe"])
def test_a_last_checkpoint_that_lies(table: Path, hint: bytes) -> None:
    (table / "_delta_log/_last_checkpoint").write_bytes(hint)
    assert alluvium.open(str(table)).version == 11


def test_a_missing_data_file(table: Path) -> None:
    victim = next(table.rglob("*.parquet"))
    while "_delta_log" in str(victim):
        victim = next(p for p in table.rglob("*.parquet") if "_delta_log" not in str(p))
    victim.unlink()
    error = fails(table, NotFound, "missing-file", lambda: alluvium.open(str(table)).to_arrow())
    assert error.path is not None and victim.name in error.path


def test_a_schema_that_does_not_parse(table: Path) -> None:
    drop_checkpoint(table)
    data = log(table, 0).read_text()
    log(table, 0).write_text(data.replace('\\"type\\":\\"long\\"', '\\"type\\":\\"lang\\"'))
    error = fails(table, CorruptTable, "invalid-schema", lambda: alluvium.open(str(table)))
    assert error.column == "id" and "lang" in str(error) and error.url is not None


def test_predicates(table: Path) -> None:
    t = alluvium.open(str(table))
    fails(table, InvalidRequest, "invalid-predicate", lambda: t.files("id >"))
    fails(table, InvalidRequest, "invalid-predicate", lambda: t.to_arrow(where="(select 1) = id"))
    error = fails(table, InvalidRequest, "unknown-column", lambda: t.to_arrow(where="idd = 1"))
    assert "did you mean 'id'" in str(error)
    error = fails(table, InvalidRequest, "unknown-column", lambda: t.to_arrow(columns=["ID ", "p"]))
    assert "hint" in str(error)


@pytest.mark.parametrize(
    ("protocol", "code", "features"),
    [
        ('{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["tomorrow"],"writerFeatures":["tomorrow"]}',
         "unsupported-feature", ("tomorrow",)),
        ('{"minReaderVersion":9,"minWriterVersion":9}', "unsupported-feature", ()),
        ('{"minReaderVersion":3,"minWriterVersion":7,"writerFeatures":[]}', "invalid-protocol", ()),
        ('{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["a"],"writerFeatures":[]}', "invalid-protocol", ()),
        ('{"minReaderVersion":0,"minWriterVersion":2}', "invalid-protocol", ()),
    ],
)  # fmt: skip
def test_protocols_that_are_not_ours(table: Path, protocol: str, code: str, features: tuple[str, ...]) -> None:
    log(table, 12).write_text('{"protocol":' + protocol + "}\n")
    with pytest.raises(AlluviumError) as caught:
        alluvium.open(str(table))
    assert caught.value.code == code
    assert isinstance(caught.value, UnsupportedFeature) == (code == "unsupported-feature")
    assert getattr(caught.value, "features", ()) == features
    assert alluvium.open(str(table), version=11).version == 11, "older versions stay readable"


def test_unknown_actions_fields_and_litter_are_ignored(table: Path) -> None:
    log(table, 12).write_text('{"future":{"x":1}}\n\n{"commitInfo":{"timestamp":1,"operation":"X"},"more":2}\n')
    (table / "_delta_log/0000013.json").write_text("litter")
    (table / "_delta_log/.00000000000000000013.json.tmp").write_text("litter")
    (table / "_delta_log/_staged").mkdir()
    assert alluvium.open(str(table)).version == 12


def test_a_path_that_climbs_out_of_the_table(table: Path) -> None:
    log(table, 12).write_text(
        '{"add":{"path":"%2e%2e/other/x.parquet","partitionValues":{"p":"a"},"size":1,"modificationTime":1,"dataChange":true}}\n'
    )
    t = alluvium.open(str(table))
    for act in (t.files, t.to_arrow):
        error = fails(table, CorruptTable, "path-escapes-root", act)
        assert error.path == "../other/x.parquet"
