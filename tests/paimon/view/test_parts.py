"""Parts of plans: which files are read alike, what each part says of them, and what comes out of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from paimon_tables import HandWritten

from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.view.scan import plan_scan
from alluvium.paimon.view.scan_parts import plan_files, plan_selection
from alluvium.paimon.view.selection import Selection, in_sections, select_files, unmerged
from alluvium.plan.scan import Coalesce, FileConstant, Literal, Physical, RowPosition, ScanPart, Sum
from alluvium.schema import types as t
from alluvium.storage.open import open_store

KV = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
PKV = pa.schema([pa.field("p", pa.string(), False), *KV])


def opened(table: HandWritten) -> Snapshot:
    return load_snapshot(open_store(str(table.path)))


def written(
    path: Path, *commits: Sequence[int], schema: pa.Schema = KV, keyed: bool = True, **options: str
) -> Snapshot:
    table = HandWritten(path / "t", schema, ["k"] if keyed else [], **options)
    for keys in commits:
        table.commit([{"k": k, "v": k} for k in keys])
    return opened(table)


def changed(entries: pa.Table, **columns: Sequence[Any]) -> pa.Table:
    for name, values in columns.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), pa.array(values, entries.field(place).type))
    return entries


def parts_of(snapshot: Snapshot, **columns: Sequence[Any]) -> tuple[ScanPart, ...]:
    """Of all files, of which the manifests say other things."""
    return plan_files(snapshot, unmerged(snapshot, changed(snapshot.entries, **columns)), None, None).parts


def outputs(part: ScanPart) -> dict[str, tuple[t.DataType, bool, object]]:
    return {c.name: (c.type, c.nullable, c.value) for c in part.output}


KIND = (t.BYTE, False, Coalesce((Physical(("_VALUE_KIND",), t.BYTE), Literal(0, t.BYTE))))
SEQUENCE = (t.LONG, False, Physical(("_SEQUENCE_NUMBER",), t.LONG))
INSERT = (t.BYTE, False, Literal(0, t.BYTE))


def constant(name: str) -> tuple[t.DataType, bool, object]:
    return t.LONG, False, FileConstant(name, t.LONG)


def test_what_comes_out_of_files_of_keys(tmp_path: Path) -> None:
    snapshot = written(tmp_path, [1, 3], [2], [9])
    alone, merged = sorted(plan_scan(snapshot).parts, key=lambda part: part.files.num_rows)
    assert list(outputs(alone)) == ["k", "v", "_SEQUENCE_NUMBER", "_VALUE_KIND"]
    assert outputs(alone)["k"] == (t.LONG, False, Physical(("k",), t.LONG))
    assert outputs(alone)["v"] == (t.LONG, True, Physical(("v",), t.LONG))
    assert (outputs(alone)["_SEQUENCE_NUMBER"], outputs(alone)["_VALUE_KIND"]) == (SEQUENCE, KIND)
    assert list(outputs(merged)) == [*outputs(alone), "_SECTION"]
    assert outputs(merged)["_SECTION"] == constant("_SECTION")
    assert alone.read_schema.names == merged.read_schema.names == ("k", "v", "_SEQUENCE_NUMBER", "_VALUE_KIND")
    assert alone.merge is None and merged.merge is not None
    assert (alone.key, merged.key) == ("main.0.parquet.false.*", "main.0.parquet.true.*")


def test_what_rows_of_equal_numbers_and_sums_merge_by(tmp_path: Path) -> None:
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "changelog-producer": "lookup"}
    table = HandWritten(tmp_path / "t", KV, ["k"], **options)
    for level in (5, 0):
        table._sequence = 7
        table.commit([{"k": 1, "v": 1}], level=level)
    (part,) = plan_scan(opened(table)).parts
    assert list(outputs(part))[-3:] == ["_SECTION", "_FILE_ORDER", "_LEVEL"]
    assert [outputs(part)[name] for name in ("_FILE_ORDER", "_LEVEL")] == [constant("_FILE_ORDER"), constant("_LEVEL")]
    constants = part.files["constants"].combine_chunks()
    assert constants.field("_LEVEL").to_pylist() == [5, 0] and constants.field("_LEVEL").type == pa.int64()
    assert constants.field("_FILE_ORDER").to_pylist() == [0, 1]


def test_what_comes_out_of_files_without_keys(tmp_path: Path) -> None:
    (part,) = plan_scan(written(tmp_path, [1], keyed=False)).parts
    assert outputs(part) == {
        "k": (t.LONG, False, Physical(("k",), t.LONG)),
        "v": (t.LONG, True, Physical(("v",), t.LONG)),
        "_VALUE_KIND": INSERT,
    }


def test_what_comes_out_of_files_whose_rows_have_ids(tmp_path: Path) -> None:
    """ "`_ROW_ID` = `_FIRST_ROW_ID` + position, `_SEQUENCE_NUMBER` = file's max sequence, both overridden by columns of
    the same name stored in compacted files (null there: fall back)".
    """
    url = str(tmp_path / "t")
    PaimonTable.create(url, KV, options={"row-tracking.enabled": "true"})
    for ks in ([1, 2, 3], [4]):
        append(open_target(open_store(url)), [{"k": k} for k in ks])
    (part,) = plan_scan(load_snapshot(open_store(url))).parts
    position = Sum((FileConstant("_FIRST_ROW_ID", t.LONG), RowPosition()))
    newest = FileConstant("_MAX_SEQUENCE_NUMBER", t.LONG)
    assert list(outputs(part).items())[2:] == [
        ("_ROW_ID", (t.LONG, True, Coalesce((Physical(("_ROW_ID",), t.LONG), position)))),
        ("_SEQUENCE_NUMBER", (t.LONG, True, Coalesce((Physical(("_SEQUENCE_NUMBER",), t.LONG), newest)))),
        ("_VALUE_KIND", INSERT),
    ]
    rows = sorted(part.files["constants"].to_pylist(), key=lambda row: row["_FIRST_ROW_ID"])
    assert [(row["_FIRST_ROW_ID"], row["_MAX_SEQUENCE_NUMBER"]) for row in rows] == [(0, 1), (3, 2)]


def test_what_is_told_of_each_file(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", PKV, ["p", "k"], ["p"])
    for p, keys in (("a", [1, 2]), ("b", [1]), ("a", [2, 3])):
        table.commit([{"p": p, "k": k, "v": 0} for k in keys])
    snapshot = opened(table)
    when = [dt.datetime(2024, 5, 9, 12, 30, 0, 250_000), None, dt.datetime(1970, 1, 1)]
    entries = changed(snapshot.entries, creation_time=when, first_row_id=[5, None, 7])
    plan = plan_selection(snapshot, in_sections(snapshot, entries, 4))
    rows = {row["path"]: row for part in plan.parts for row in part.files.to_pylist()}
    sizes = {place: (tmp_path / "t" / place).stat().st_size for place in rows}
    assert rows == {
        f"p={p}/bucket-0/data-{n}-0.parquet": {
            "path": f"p={p}/bucket-0/data-{n}-0.parquet",
            "size": sizes[f"p={p}/bucket-0/data-{n}-0.parquet"],
            "modification_time_ms": ms,
            "num_rows": count,
            "constants": {
                "p": p, "_FIRST_ROW_ID": first, "_MAX_SEQUENCE_NUMBER": last, "_SECTION": section, "_LEVEL": 0,
                "_FILE_ORDER": n - 1,
            },
            "mask": None,
        }
        for n, p, count, ms, first, last, section in (
            (1, "a", 2, 1_715_257_800_250, 5, 1, 4), (2, "b", 1, 0, None, 2, -1), (3, "a", 2, 0, 7, 4, 4),
        )
    }  # fmt: skip
    # Where nothing merges no file has a section, and files stand in the order of the manifests.
    (part,) = parts_of(snapshot)
    constants = part.files["constants"].combine_chunks()
    assert (constants.field("_SECTION").to_pylist(), constants.field("_FILE_ORDER").to_pylist()) == (
        [-1] * 3,
        [0, 1, 2],
    )
    assert plan.root == str(snapshot.store.url) and plan.partition_columns == ("p",)
    assert plan.schema.names == ("p", "k", "v")


def test_files_are_read_alike_that_are_alike(tmp_path: Path) -> None:
    """By their schema, their format, and the columns they hold; each with the places of its own files."""
    snapshot = written(tmp_path, [1], [2], [3], [4], [5], [6], keyed=False)
    names = ["a.parquet", "b.orc", "c.parquet", "d.parquet", "e.tar.orc", "f.parquet"]
    held = [None, None, ["k"], ["k", "v"], None, ["k"]]
    found = parts_of(snapshot, file_name=names, write_cols=held)
    assert {part.key: (part.file_format, part.files["path"].to_pylist()) for part in found} == {
        "main.0.parquet.false.*": ("parquet", ["bucket-0/a.parquet"]),
        "main.0.orc.false.*": ("orc", ["bucket-0/b.orc", "bucket-0/e.tar.orc"]),
        "main.0.parquet.false.k": ("parquet", ["bucket-0/c.parquet", "bucket-0/f.parquet"]),
        "main.0.parquet.false.k,v": ("parquet", ["bucket-0/d.parquet"]),
    }
    short = next(part for part in found if part.key.endswith(".k"))
    assert outputs(short)["v"] == (t.LONG, True, Literal(None, t.LONG))
    assert short.held is not None and short.held.names == ("k",) and short.read_schema.names == ("k",)


def test_files_of_other_schemas(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, KV)
    append(open_target(open_store(url)), [{"k": 1}])
    PaimonTable.forPath(url).alter([SchemaChange.rename_column("v", "w"), SchemaChange.add_column("x", "INT")])
    append(open_target(open_store(url)), [{"k": 2}])
    parts = {part.key: outputs(part) for part in plan_scan(load_snapshot(open_store(url))).parts}
    old, new = parts["main.0.parquet.false.*"], parts["main.1.parquet.false.*"]
    assert (old["w"][2], new["w"][2]) == (Physical(("v",), t.LONG), Physical(("w",), t.LONG))
    assert (old["x"][2], new["x"][2]) == (Literal(None, t.INTEGER), Physical(("x",), t.INTEGER))


@pytest.mark.parametrize("name", ["data.csv", "data.PARQUET", "parquet", "data.parquet.tmp"])
def test_files_of_formats_that_nobody_reads(tmp_path: Path, name: str) -> None:
    snapshot = written(tmp_path, [1], [2], keyed=False)
    if name == "parquet":
        # The text behind the last dot, or all of it.
        assert [part.file_format for part in parts_of(snapshot, file_name=["a.parquet", name])] == ["parquet"]
        return
    with pytest.raises(UnsupportedFeature) as caught:
        parts_of(snapshot, file_name=["a.parquet", name])
    assert (caught.value.code, caught.value.features) == ("unsupported-file-format", (name.rpartition(".")[2],))


def test_a_plan_without_files_has_one_part(tmp_path: Path) -> None:
    for keyed, hidden in ((True, ["_SEQUENCE_NUMBER", "_VALUE_KIND"]), (False, ["_VALUE_KIND"])):
        HandWritten(tmp_path / str(keyed), PKV, ["p", "k"] if keyed else [], ["p"])
        snapshot = load_snapshot(open_store(str(tmp_path / str(keyed))))
        plan = plan_scan(snapshot)
        (part,) = plan.parts
        assert (part.key, part.files.num_rows, part.file_format, part.merge) == ("main.none", 0, "parquet", None)
        assert list(outputs(part)) == ["p", "k", "v", *hidden]
        # No file has a value of a partition.
        assert {outputs(part)[name][2] for name in ("p", "k")} == {Literal(None, t.STRING), Literal(None, t.LONG)}
        assert plan.partition_columns == ("p",) and plan.skipped == (("partition", 0), ("statistics", 0))


def test_how_rows_merge_is_told_by_the_files(tmp_path: Path) -> None:
    """Whether some take others back, and whether numbers are equal: of the selection, not of the files that are left."""
    for kinds, first, wanted in (
        (["+I"], 5, (False, False)), (["-D"], 5, (True, False)), (["+I"], 0, (False, True)), (["-U"], 0, (True, True)),
    ):  # fmt: skip
        table = HandWritten(tmp_path / f"{kinds}{first}", KV, ["k"])
        table.commit([{"k": 1, "v": 1}])
        table._sequence = first
        table.commit([{"k": 1, "v": 2}], kinds)
        snapshot = opened(table)
        (part,) = plan_selection(snapshot, select_files(snapshot, None)).parts
        assert part.merge is not None
        assert (part.merge.has_retracts, len(part.merge.order) == 2) == wanted


def test_numbers_of_what_was_left_out(tmp_path: Path) -> None:
    snapshot = written(tmp_path, [1], keyed=False)
    entries = snapshot.entries
    selection = Selection(entries, partitions_of(entries, snapshot.schema), by_partition=3, by_statistics=5)
    skipped: Mapping[str, int] = dict(plan_files(snapshot, selection, None, None).skipped)
    assert skipped == {"partition": 3, "statistics": 5}
