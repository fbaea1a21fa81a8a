"""Parts of a plan that merge by key, read from files: groups one after another, each from the rows of all its files."""

from __future__ import annotations

import io
import random
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import (
    SCAN_FILES,
    FileConstant,
    KeyMerge,
    MergeRule,
    OutputColumn,
    Physical,
    ScanPart,
    ScanPlan,
    SortColumn,
)
from alluvium.portable.merging import merged as module
from alluvium.portable.reader import read_batches, read_mixed
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Field, Struct
from alluvium.storage.open import open_store

STORED = Struct(
    (Field("k", t.LONG), Field("n", t.LONG), Field("kind", t.BYTE), Field("v", t.LONG), Field("s", t.STRING))
)
SCHEMA = Struct((Field("k", t.LONG), Field("v", t.LONG), Field("s", t.STRING)))
MERGE = KeyMerge("g", ("k",), (SortColumn("n"),), "kind", "deduplicate")
Row = dict[str, Any]


class Table:
    """Files in memory, and plans of them."""

    def __init__(self) -> None:
        self.root = f"memory://{uuid.uuid4().hex}/t"
        self.store = open_store(self.root)
        self.count = 0

    def part(self, files: Sequence[tuple[int, Sequence[Row]]], merge: KeyMerge = MERGE, lacks: str = "",
             masks: Sequence[Sequence[int] | None] | None = None) -> ScanPart:  # fmt: skip
        """A part of files, each of a group and of rows."""
        paths = []
        for _, rows in files:
            table = pa.Table.from_pylist(
                [{"kind": 0, **row} for row in rows],
                pa.schema(
                    [("k", pa.int64()), ("n", pa.int64()), ("kind", pa.int8()), ("v", pa.int64()), ("s", pa.string())]
                ),
            )
            out = io.BytesIO()
            pq.write_table(table, out, row_group_size=3)
            paths.append(f"f{self.count}")
            self.count += 1
            self.store.put(paths[-1], out.getvalue())
        schema = SCAN_FILES.set(
            SCAN_FILES.get_field_index("constants"), pa.field("constants", pa.struct([("g", pa.int64())]))
        )
        listed = pa.Table.from_pylist(
            [
                {"path": path, "size": 1, "modification_time_ms": 0, "num_rows": len(rows), "constants": {"g": group},
                 "mask": None if masks is None or masks[n] is None else BitMap64(masks[n]).serialize()}
                for n, (path, (group, rows)) in enumerate(zip(paths, files, strict=True))
            ],
            schema=schema,
        )  # fmt: skip
        output = [
            OutputColumn(f.name, f.type, True, Physical((f.name,), f.type)) for f in STORED.fields if f.name != lacks
        ]
        output.append(OutputColumn("g", t.LONG, False, FileConstant("g", t.LONG)))
        return ScanPart("p", listed, "parquet", STORED, tuple(output), merge=merge)

    def read(self, *parts: ScanPart, schema: Struct = SCHEMA, columns: list[str] | None = None, where: str | None = None,
             batch_size: int = 65_536) -> list[pa.RecordBatch]:  # fmt: skip
        condition = None if where is None else parse_predicate(where, schema)
        plan = ScanPlan(self.root, parts, schema)
        return list(read_batches(plan, self.store, open_store, columns, condition, batch_size=batch_size))

    def rows(self, *parts: ScanPart, **asked: Any) -> list[Row]:
        return [row for batch in self.read(*parts, **asked) for row in batch.to_pylist()]


def newest(files: Sequence[tuple[int, Sequence[Row]]]) -> list[Row]:
    """Of each group and key the row of the greatest number, groups and keys in order."""
    found: dict[tuple[int, int], Row] = {}
    for group, rows in files:
        for row in rows:
            known = found.get((group, row["k"]))
            if known is None or row["n"] >= known["n"]:
                found[(group, row["k"])] = row
    return [row for _, row in sorted(found.items())]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 19])
@pytest.mark.parametrize("seed", range(6))
def test_groups_merge_by_themselves_whatever_is_gathered(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", at_once)
    lot, numbers = random.Random(seed), iter(random.Random(seed).sample(range(1000), 1000))
    files = [
        (lot.randrange(4), [{"k": lot.randrange(5), "n": next(numbers), "v": lot.randrange(9), "s": lot.choice("abc")} for _ in range(lot.randint(0, 6))])
        for _ in range(8)
    ]  # fmt: skip
    table = Table()
    # One merge may be of several parts.
    parts = [table.part(files[:3]), table.part(files[3:])]
    wanted = [{name: row[name] for name in ("k", "v", "s")} for row in newest(files)]
    assert table.rows(*parts) == wanted
    assert table.rows(*parts, where="v > 3 AND s <> 'a'") == [r for r in wanted if r["v"] > 3 and r["s"] != "a"]
    assert table.rows(*parts, columns=["s"], where="v = 4") == [{"s": r["s"]} for r in wanted if r["v"] == 4]
    batches = table.read(*parts, columns=["v", "k"], batch_size=2)
    assert [b.schema.names for b in batches] == [["v", "k"]] * len(batches) and all(b.num_rows <= 2 for b in batches)
    assert [row for b in batches for row in b.to_pylist()] == [{"v": r["v"], "k": r["k"]} for r in wanted]
    # Rows are rows without a column, too.
    assert sum(b.num_rows for b in table.read(*parts, columns=[])) == len(wanted)


def test_as_many_rows_as_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are gathered until there are so many, and a group is never cut."""
    rows = [[{"k": k, "n": 1, "v": k, "s": "x"} for k in range(3)] for _ in range(4)]
    table = Table()
    part = table.part([(group, rows[group]) for group in range(4)])
    for at_once, sizes in ((1, [3] * 4), (3, [3] * 4), (4, [6, 6]), (6, [6, 6]), (7, [9, 3]), (12, [12]), (13, [12])):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", at_once)
        assert [b.num_rows for b in table.read(part)] == sizes


def test_parts_of_another_merge_are_apart() -> None:
    table = Table()
    row = {"k": 1, "n": 1, "v": 1, "s": "x"}
    first, second = table.part([(0, [row])]), table.part([(0, [{**row, "v": 2}])], replace(MERGE, ignores_delete=True))
    third = table.part([(0, [{**row, "n": 2, "v": 3}])])
    alone = replace(table.part([(0, [row, row])]), merge=None)
    assert [r["v"] for r in table.rows(first, second, third, alone)] == [1, 1, 3, 2]


def test_rows_that_are_masked_do_not_merge() -> None:
    table = Table()
    old, new = ([{"k": k, "n": n, "v": n, "s": "x"} for k in range(5)] for n in (1, 2))
    part = table.part([(0, old), (0, new)], masks=[[4], [0, 3, 4]])
    assert [(r["k"], r["v"]) for r in table.rows(part)] == [(0, 1), (1, 2), (2, 2), (3, 1)]


def test_columns_that_decide_need_not_be_asked_for() -> None:
    """The number, the kind, the group, and what sequences go by."""
    table = Table()
    rows = [{"k": 1, "n": 2, "v": 5, "s": "new"}, {"k": 1, "n": 1, "v": 7, "s": "old"}, {"k": 2, "n": 1, "v": 1, "s": "a"},
            {"k": 2, "n": 2, "v": 1, "s": "a", "kind": 3}]  # fmt: skip
    assert table.rows(table.part([(0, rows)]), columns=["s"]) == [{"s": "new"}]
    rules = (MergeRule("s", "last", sequence=("v",)), MergeRule("v", "last", sequence=("v",)))
    grouped = replace(MERGE, engine="partial-update", rules=rules)
    found = table.rows(table.part([(0, rows[:3])], grouped), columns=["s"])
    assert sorted(row["s"] for row in found) == ["a", "old"]
    removing = replace(grouped, removing_groups=("v",))
    gone = [*rows[:2], {"k": 1, "n": 3, "v": 8, "s": None, "kind": 3}, rows[2]]
    assert table.rows(table.part([(0, gone)], removing), columns=["s"]) == [{"s": "a"}]


def test_patches_are_of_what_a_part_has() -> None:
    """A part without a column leaves it; what no part has is null, and the address of the file is everybody's."""
    table, patch = Table(), replace(MERGE, engine="patch", kind=None)
    base = table.part([(0, [{"k": 1, "n": 1, "v": 1, "s": "a"}, {"k": 2, "n": 1, "v": 2, "s": "b"}])], patch)
    lacking = table.part([(0, [{"k": 1, "n": 2, "v": None, "s": "never seen"}])], patch, lacks="s")
    assert table.rows(base, lacking) == [{"k": 1, "v": None, "s": "a"}, {"k": 2, "v": 2, "s": "b"}]
    wider = Struct((*SCHEMA.fields, Field("gone", t.DATE)))
    found = table.read(base, lacking, schema=wider)
    assert [b["gone"].to_pylist() for b in found] == [[None, None]] and found[0]["gone"].type == pa.date32()
    shown = table.rows(base, lacking, columns=["k", "_file"])
    assert shown == [{"k": 1, "_file": f"{table.root}/f1"}, {"k": 2, "_file": f"{table.root}/f0"}]


def test_what_cannot_merge_says_of_which_table() -> None:
    table = Table()
    rows = [{"k": 1, "n": 1, "v": 1, "s": "a"}, {"k": 1, "n": 2, "v": 1, "s": "a", "kind": 3}]
    with pytest.raises(UnsupportedFeature) as caught:
        table.rows(table.part([(0, rows)], replace(MERGE, engine="aggregation", rules=(MergeRule("v", "max"),))))
    assert (caught.value.code, caught.value.column, caught.value.url) == ("unsupported-retract", "v", table.root)


def test_texts_of_char_are_shown_at_their_length_when_they_have_merged() -> None:
    table = Table()
    schema = Struct((Field("k", t.LONG), Field("s", t.STRING, True, {CHAR_VARCHAR: "char(4)"})))
    part = table.part([(0, [{"k": 1, "n": 1, "v": 1, "s": "ab"}, {"k": 2, "n": 1, "v": 1, "s": None}])])
    assert table.rows(part, schema=schema) == [{"k": 1, "s": "ab  "}, {"k": 2, "s": None}]
    assert table.rows(part, schema=schema, where="s = 'ab  '") == [{"k": 1, "s": "ab  "}]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (None, ["k", "v", "s"]), (["*"], ["k", "v", "s"]), (["S", "K"], ["s", "k"]), (["g", "KIND"], ["g", "kind"]), (["_FILE"], ["_file"]),
        (["v", "*"], None), (["k", "_file", "g"], ["k", "_file", "g"]),
    ],
)  # fmt: skip
def test_columns_by_their_names(asked: list[str] | None, names: list[str] | None) -> None:
    """Those of the plan's schema, and of its parts, which the schema leaves out."""
    table = Table()
    part = table.part([(7, [{"k": 1, "n": 1, "v": 2, "s": "a"}])])
    for one in (part, replace(part, merge=None)):
        if names is None:
            assert [b.schema.names for b in table.read(one, columns=asked)] == [["v", "k", "v", "s"]]
            continue
        (row,) = table.rows(one, columns=asked)
        assert list(row) == names
        known = {"k": 1, "v": 2, "s": "a", "g": 7, "kind": 0, "_file": f"{table.root}/f0"}
        assert row == {name: known[name] for name in names}


def test_columns_that_are_none() -> None:
    table = Table()
    part = table.part([(0, [{"k": 1, "n": 1, "v": 2, "s": "a"}])])
    with pytest.raises(InvalidRequest) as caught:
        table.rows(part, columns=["k", "knd"])
    assert (caught.value.code, caught.value.column) == ("unknown-column", "knd") and "kind" in str(caught.value)
    with pytest.raises(UnsupportedFeature) as unread:
        table.rows(part, replace(part, file_format="csv"))
    assert (unread.value.code, unread.value.url) == ("unsupported-scan", table.root) and "csv" in str(unread.value)


def test_engines_that_read_files_themselves_get_rows_of_all_others() -> None:
    """Files in memory are nobody's to open, and rows that merge are no file's; those that do not merge come first."""
    table = Table()
    rows = [{"k": k, "n": 1, "v": k, "s": "x"} for k in range(5)]
    part = table.part([(0, rows), (0, [{**row, "n": 2, "v": row["k"] + 10} for row in rows[:2]])])
    plan = ScanPlan(table.root, (part, replace(table.part([(0, rows)]), merge=None)), SCHEMA)
    where = parse_predicate("v > 2", SCHEMA)
    found = list(read_mixed(plan, table.store, open_store, ["v", "_file"], where, "UTC", 2))
    assert all(isinstance(batch, pa.RecordBatch) and batch.num_rows <= 2 for batch in found)
    shown = [(row["v"], row["_file"][-2:]) for batch in found for row in batch.to_pylist()]  # type: ignore[union-attr]
    assert shown == [(3, "f2"), (4, "f2"), (10, "f1"), (11, "f1"), (3, "f0"), (4, "f0")]
    with pytest.raises(InvalidRequest):
        read_mixed(plan, table.store, open_store, ["gone"], None, "UTC", 2)
