"""What a plan of a version says: its columns, its files and their constants, and which paths no log may name."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.view.scan import plan_files, plan_scan, select_files, whole_files
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CorruptTable
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import FileConstant, OutputColumn, Physical
from alluvium.schema.types import INTEGER, LONG, STRING
from alluvium.storage.stores.memory import MemoryStore

FIELDS = [("id", "long", False), ("p", "integer", True), ("v", "string", True), ("q", "string", True)]


def add(
    path: str, p: str | None = "1", q: str | None = "x", ids: tuple[int, int] | None = (0, 9), **more: Any
) -> dict[str, Any]:
    stats = {"numRecords": 2}
    bounds = {} if ids is None else {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}, "nullCount": {"id": 0}}
    return {"add": {
        "path": path, "partitionValues": {"p": p, "q": q}, "size": len(path), "modificationTime": 7, "dataChange": True,
        "stats": json.dumps({**stats, **bounds}), **more,
    }}  # fmt: skip


def snapshot_of(*adds: dict[str, Any], partition_by: tuple[str, ...] = ("q", "p")) -> Snapshot:
    fields = [{"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind, nullable in FIELDS]
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [*partition_by],
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}}  # fmt: skip
    store = MemoryStore(uuid.uuid4().hex, "/t")
    lines = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, *adds]
    store.put(commit_path(0), "\n".join(map(json.dumps, lines)).encode())
    return load_snapshot(store)


def kept(snapshot: Snapshot, where: str | None) -> tuple[list[str], list[bool], tuple[int, int]]:
    condition = None if where is None else parse_predicate(where, snapshot.config.schema)
    found = select_files(snapshot, condition)
    assert found.skipped == (("partition", found.by_partition), ("statistics", found.by_statistics))
    return found.files["path"].to_pylist(), found.certain.to_pylist(), (found.by_partition, found.by_statistics)


def test_a_plan_of_all_files() -> None:
    snapshot = snapshot_of(add("a", p="2"), add("bb", p=None, q="y z"))
    plan = plan_scan(snapshot)
    assert (plan.root, plan.schema, plan.partition_columns) == (snapshot.store.url, snapshot.config.schema, ("q", "p"))
    assert plan.skipped == (("partition", 0), ("statistics", 0))
    (part,) = plan.parts
    assert (part.key, part.file_format, part.read_schema.names, part.is_complete, part.is_exact) == (
        "files",
        "parquet",
        ("id", "v"),
        True,
        False,
    )
    assert part.output == (
        OutputColumn("id", LONG, False, Physical(("id",), LONG)), OutputColumn("p", INTEGER, True, FileConstant("p", INTEGER)),
        OutputColumn("v", STRING, True, Physical(("v",), STRING)), OutputColumn("q", STRING, True, FileConstant("q", STRING)),
    )  # fmt: skip
    assert part.files.to_pylist() == [
        {
            "path": "a",
            "size": 1,
            "modification_time_ms": 7,
            "num_rows": None,
            "constants": {"q": "x", "p": 2},
            "mask": None,
        },
        {
            "path": "bb",
            "size": 2,
            "modification_time_ms": 7,
            "num_rows": None,
            "constants": {"q": "y z", "p": None},
            "mask": None,
        },
    ]
    # Every query begins with all files, which are made once.
    assert plan_scan(snapshot).parts[0].files is part.files
    other = plan_files(snapshot, snapshot.files.slice(1), skipped=(("why", 3),))
    assert (other.parts[0].files["path"].to_pylist(), other.skipped) == (["bb"], (("why", 3),))


FILES = (
    add("a", p="1", ids=(0, 4)), add("b", p="1", ids=(5, 9)), add("c", p="2", ids=(0, 9)), add("d", p=None, q="y", ids=None),
)  # fmt: skip


@pytest.mark.parametrize(
    ("where", "paths", "certain", "skipped"),
    [
        (None, "abcd", [True] * 4, (0, 0)), ("p = 1", "ab", [True, True], (2, 0)), ("p is null", "d", [True], (3, 0)), ("p = 7", "", [], (4, 0)),
        ("p = 1 and q = 'y'", "", [], (4, 0)), ("p = 1 or q = 'y'", "abd", [True] * 3, (1, 0)), ("id > 4", "bcd", [True, False, False], (0, 1)),
        ("id >= 0", "abcd", [True, True, True, False], (0, 0)), ("p = 1 and id > 4", "b", [True], (2, 1)), ("p = 1 and id > 40", "", [], (2, 2)),
        ("p = 1 or id > 4", "abcd", [True, True, False, False], (0, 0)), ("p = 2 and id < 5", "c", [False], (3, 0)), ("p = 7 and id > 4", "", [], (4, 0)),
    ],
)  # fmt: skip
def test_which_files_a_condition_leaves_and_why_others_go(
    where: str | None, paths: str, certain: list[bool], skipped: tuple[int, int]
) -> None:
    snapshot = snapshot_of(*FILES)
    assert kept(snapshot, where) == ([*paths], certain, skipped)
    if where is not None:
        plan = plan_scan(snapshot, parse_predicate(where, snapshot.config.schema))
        assert dict(plan.skipped) == {"partition": skipped[0], "statistics": skipped[1]}


def test_a_table_of_one_file() -> None:
    one = snapshot_of(FILES[0])
    assert kept(one, "p = 2") == ([], [], (1, 0)) and kept(one, "id > 9") == ([], [], (0, 1))
    assert kept(one, "id >= 0") == (["a"], [True], (0, 0)) and kept(one, None) == (["a"], [True], (0, 0))


def test_nothing_is_left_of_nothing() -> None:
    empty = snapshot_of()
    assert kept(empty, None) == ([], [], (0, 0)) and kept(empty, "p = 1 and id > 4") == ([], [], (0, 0))
    assert [part.files.num_rows for part in plan_scan(empty).parts] == [0]


def test_partition_values_alone_say_which_files_go_as_a_whole() -> None:
    snapshot = snapshot_of(*FILES)

    def whole(where: str | None) -> tuple[str, str]:
        found = whole_files(snapshot, None if where is None else parse_predicate(where, snapshot.config.schema))
        return "".join(found.every["path"].to_pylist()), "".join(found.undecided["path"].to_pylist())

    assert whole(None) == ("abcd", "")
    assert whole("p = 1") == ("ab", "")
    # Bounds say that all rows of "b" go, and none of "a": but they are what some writer found worth telling.
    assert whole("p = 1 and id > 4") == ("", "ab")
    assert whole("p = 2 or id > 4") == ("c", "abd")
    assert whole("p = 7") == ("", "")


@pytest.mark.parametrize(
    "path", ["a", "a/b", "..a/b", "a..", "a/..b/c", "%2e%2ea", "a%20b", "a/.b", ".a", "s3://b/t/a", "/t/a", "a\\..\\b"]
)
def test_paths_that_stay(path: str) -> None:
    (part,) = plan_scan(snapshot_of(add(path))).parts
    assert part.files["path"].to_pylist() == [path.replace("%20", " ").replace("%2e", ".")]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("..", "path-escapes-root"), ("../a", "path-escapes-root"), ("a/../b", "path-escapes-root"), ("a/..", "path-escapes-root"), ("%2e%2e/a", "path-escapes-root"),
        ("a%2F..%2Fb", "path-escapes-root"), ("/t/../u/a", "path-escapes-root"), ("", "malformed-path"), (".", "malformed-path"), ("a/", "malformed-path"),
        ("a/.", "malformed-path"), ("a%00b", "malformed-path"),
    ],
)  # fmt: skip
def test_paths_that_lead_astray(path: str, code: str) -> None:
    snapshot = snapshot_of(add("fine"), add(path), add("zz/../y"), add("zz/"))
    with pytest.raises(CorruptTable) as caught:
        plan_scan(snapshot)
    assert (caught.value.code, caught.value.path) == (code, unquote(path))
    assert repr(caught.value.path) in caught.value.message
    # Of files that nobody reads nothing is said.
    alone = replace(snapshot, state=replace(snapshot.state, files=snapshot.files.slice(0, 0)), _found={})
    assert plan_scan(alone).parts[0].files.num_rows == 0
