"""Which state of a fallback branch goes with a table's, and what of it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_tables import Evolved

import alluvium
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.view.fallback import ensure_own_rows, fallback_state
from alluvium.paimon.view.scan import plan_scan
from alluvium.storage.open import open_store

FIELDS = pa.schema([("p", pa.string()), ("id", pa.int32())])
BRANCH = {"scan.fallback-branch": "b"}
#: When the snapshots of the table and of the branch were made, minutes.
OWN, THEIRS = (10, 20, 30), (15, 20, 25, 40)


def at(minutes: float) -> int:
    return int(minutes * 60_000)


def date(path: Path, minutes: tuple[int, ...]) -> None:
    for number, minute in enumerate(minutes, start=1):
        file = path / f"snapshot/snapshot-{number}"
        file.write_text(json.dumps({**json.loads(file.read_text()), "timeMillis": at(minute)}))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of the table three snapshots, a file of partition `x` each, of the branch four: of `x`, `y`, and `z` twice."""
    table = Evolved(tmp_path / "t", FIELDS, ("p",))
    for number in range(len(OWN)):
        table.add({"id": [number]}, number, p="x")
    branch = Evolved(tmp_path / "t", FIELDS, ("p",), branch="b")
    for number, p in enumerate("xyzz"):
        branch.add({"id": [10 + number]}, number, p=p)
    date(tmp_path / "t", OWN)
    date(tmp_path / "t/branch/branch-b", THEIRS)
    return str(tmp_path / "t")


def state(url: str, point: At | None = None, **options: str) -> Snapshot:
    return load_snapshot(open_store(url), point or At(), options={**BRANCH, **options})


@pytest.mark.parametrize(
    ("own", "theirs", "versions"),
    [
        (None, None, (3, 4)), (None, "2", (3, 2)), ("2", None, (2, 4)), ("1", None, (1, 4)), ("2", "3", (2, 3)),
    ],
)  # fmt: skip
def test_neither_follows_a_point_in_the_others_options(
    url: str, own: str | None, theirs: str | None, versions: tuple[int, int]
) -> None:
    """As Java reads them: what a call asks for alone is carried over."""
    for branch, number in ((None, own), ("b", theirs)):
        if number is not None:
            PaimonTable.forPath(url, branch=branch).alter([SchemaChange.set_option("scan.snapshot-id", number)])
    found = load_snapshot(open_store(url), options=BRANCH)
    other = fallback_state(found)
    assert other is not None and (found.version, other.version) == versions
    # Whoever writes, and whoever asks for a point, is not bound by them.
    newest = fallback_state(state(url))
    assert newest is not None and newest.version == 4
    asked = fallback_state(load_snapshot(open_store(url), options={**BRANCH, "scan.snapshot-id": "2"}))
    assert asked is not None and asked.version == 2


@pytest.mark.parametrize(
    ("point", "version"),
    [
        (At(), 4),
        # At the time of the snapshot that was asked for, or at the very time.
        (At(snapshot_id=2), 2), (At(snapshot_id=3), 3), (At(timestamp_ms=at(26)), 3), (At(timestamp_ms=at(45)), 4),
        (At(timestamp_ms=at(20)), 2), (At(timestamp_ms=at(19)), 1),
        # Before the first: the first one all the same, but rows of after a time that was asked for are none of it.
        (At(snapshot_id=1), 1), (At(timestamp_ms=at(12)), None),
    ],
)  # fmt: skip
def test_the_state_of_the_branch(url: str, point: At, version: int | None) -> None:
    """Java, `FallbackReadFileStoreTable.rewriteFallbackOptions`: ids of its snapshots are others than the table's."""
    snapshot = state(url, point)
    other = fallback_state(snapshot)
    assert other is not None
    assert (other.version, other.branch, other.store) == (version, "b", snapshot.store)
    # Read once: what is newest there may be another later.
    assert fallback_state(snapshot) is other


@pytest.mark.parametrize(
    "asked",
    [
        {"scan.snapshot-id": "1"}, {"scan.version": "1"}, {"scan.tag-name": "g"}, {"scan.version": "g"},
        {"scan.timestamp-millis": str(at(15))},
    ],
)  # fmt: skip
def test_a_branch_without_a_snapshot_gives_nothing(tmp_path: Path, asked: dict[str, str]) -> None:
    """Java refuses all of these but the tag's: "There is currently no snapshot." What the table has is there."""
    url = str(tmp_path / "t")
    table = Evolved(tmp_path / "t", FIELDS, ("p",))
    table.add({"id": [1]}, 0, p="x")
    table.add({"id": [2]}, 1, p="y")
    date(tmp_path / "t", OWN[:2])
    paimon = PaimonTable.forPath(url)
    paimon.create_tag("g", 1)
    paimon.create_branch("b")
    assert alluvium.open(url, options=BRANCH).to_arrow()["id"].to_pylist() == [1, 2]
    assert alluvium.open(url, options={**BRANCH, **asked}).to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("asked", [{"scan.tag-name": "g"}, {"scan.version": "g"}])
def test_a_tag_is_of_the_tables_own_snapshots(url: str, asked: dict[str, str]) -> None:
    """Java 1.4 shows nothing of the branch beside one, whichever tags the branch has itself; by the id it does."""
    PaimonTable.forPath(url).create_tag("g", 3)
    PaimonTable.forPath(url, branch="b").create_tag("g", 2)
    assert alluvium.open(url, options={**BRANCH, **asked}).to_arrow()["p"].unique().to_pylist() == ["x"]
    by_id = alluvium.open(url, options={**BRANCH, "scan.snapshot-id": "3"}).to_arrow()["p"]
    assert sorted(by_id.unique().to_pylist()) == ["x", "y", "z"]


def test_what_the_branch_had_and_has_no_more(url: str) -> None:
    """Its first snapshot expired: nobody knows what it gave."""
    (Path(url) / "branch/branch-b/snapshot/snapshot-1").unlink()
    with pytest.raises(NotFound) as caught:
        fallback_state(state(url, At(snapshot_id=1)))
    assert caught.value.code == "no-snapshot-before"


def test_a_refreshed_view_shows_what_came_to_the_branch(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    Evolved(tmp_path / "t", FIELDS, ("p",)).add({"id": [1]}, 0, p="x")
    branch = Evolved(tmp_path / "t", FIELDS, ("p",), branch="b")
    branch.add({"id": [2]}, 0, p="y")
    view = alluvium.open(url, options=BRANCH)
    assert sorted(view.to_arrow()["id"].to_pylist()) == [1, 2]
    branch.add({"id": [3]}, 1, p="z")
    newer = view.refresh()
    assert (newer.version, sorted(newer.to_arrow()["id"].to_pylist())) == (1, [1, 2, 3])
    plain = alluvium.open(url)
    assert plain.refresh() is plain


def test_a_state_that_was_pinned_with_the_tables(url: str) -> None:
    pinned = replace(state(url), fallback_id=2)
    assert fallback_state(pinned).version == 2  # type: ignore[union-attr]
    with pytest.raises(NotFound) as caught:
        fallback_state(replace(state(url), fallback_id=9))
    assert caught.value.code == "snapshot-not-found"


def test_what_a_call_asks_of_the_table_is_not_asked_of_the_branch(url: str) -> None:
    snapshot = state(url, None, **{"scan.snapshot-id": "3", "read.batch-size": "7"})
    snapshot = replace(snapshot, time_zone="Asia/Tokyo", asked={**snapshot.asked, "branch": "main"})
    other = fallback_state(snapshot)
    assert other is not None
    assert (other.asked, other.time_zone) == ({"read.batch-size": "7"}, "Asia/Tokyo")
    assert (other.branch, other.version) == ("b", 3)


@pytest.mark.parametrize("named", ["", " ", "main"])
def test_tables_without_a_fallback(url: str, named: str) -> None:
    snapshot = load_snapshot(open_store(url), At(), options={"scan.fallback-branch": named})
    assert fallback_state(snapshot) is None
    assert {part.key.partition("/")[0] for part in plan_scan(snapshot).parts} == {"main.0.parquet.false.id"}


def test_a_branch_that_is_not_there(url: str) -> None:
    with pytest.raises(NotFound) as caught:
        fallback_state(state(url, None, **{"scan.fallback-branch": "c"}))
    assert caught.value.code == "branch-not-found"


def files(snapshot: Snapshot, where: str | None = None) -> dict[str, list[str]]:
    """Of each part the names of its files."""
    predicate = None if where is None else parse_predicate(where, logical_schema(snapshot.schema), "UTC")
    parts = plan_scan(snapshot, predicate).parts
    found: dict[str, list[str]] = {}
    for part in parts:
        found.setdefault(part.key, []).extend(path.rpartition("/")[2] for path in part.files["path"].to_pylist())
    return {key: sorted(names) for key, names in found.items() if names}


OWN_PART, THEIR_PART = "main.0.parquet.false.id", "b/b.0.parquet.false.id"
OWN_FILES = [f"data-main-{n}.parquet" for n in range(3)]
#: What the branch's files of `y` and `z` are called.
Y, Z, LAST = (f"data-b-{n}.parquet" for n in (1, 2, 3))


def test_partitions_that_the_table_lacks(url: str) -> None:
    """All of a partition is the table's own, or all of it the branch's."""
    assert files(state(url)) == {OWN_PART: OWN_FILES, THEIR_PART: [Y, Z, LAST]}
    assert files(state(url, At(snapshot_id=1))) == {OWN_PART: OWN_FILES[:1]}
    assert files(state(url, At(snapshot_id=3))) == {OWN_PART: OWN_FILES, THEIR_PART: [Y, Z]}
    for where, wanted in (
        ("p = 'y'", {THEIR_PART: [Y]}), ("p = 'x'", {OWN_PART: OWN_FILES}), ("p = 'z'", {THEIR_PART: [Z, LAST]}),
        ("p = 'w'", {}),
    ):  # fmt: skip
        assert files(state(url), where) == wanted, where
    # A partition that a condition leaves out is the table's all the same.
    nothing = state(url)
    empty = replace(nothing, document=None, _loaded={})
    assert files(empty) == {THEIR_PART: ["data-b-0.parquet", Y, Z, LAST]}


def test_what_merges_there_merges_with_nothing_of_the_table(tmp_path: Path) -> None:
    """Ranges are numbered behind the table's own: what has the same number is merged."""
    table = Evolved(tmp_path / "t", FIELDS, ("p",))
    branch = Evolved(tmp_path / "t", FIELDS, ("p",), branch="b")
    for made, p in ((table, "x"), (branch, "y")):
        for _ in range(2):
            made.add({"id": [1]}, 0, p=p)
    parts = plan_scan(state(str(tmp_path / "t"))).parts
    sections = {part.key: part.files["constants"].combine_chunks().field("_SECTION").to_pylist() for part in parts}
    assert sections == {"main.0.parquet.true.id": [0, 0], "b/b.0.parquet.true.id": [2, 2]}


def altered(url: str, fields: list[dict[str, Any]]) -> None:
    file = Path(url) / "branch/branch-b/schema/schema-0"
    file.write_text(json.dumps({**json.loads(file.read_text()), "fields": fields}))


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ([("p", "STRING"), ("id", "INT NOT NULL")], None),
        ([("p", "STRING"), ("id", {"type": "ARRAY", "element": "INT NOT NULL"})], "id"),
        ([("p", "STRING"), ("id", "BIGINT")], "id"),
        ([("p", "STRING"), ("di", "INT")], "id"),
        ([("p", "STRING")], "id"),
        ([("p", "STRING"), ("id", "INT"), ("more", "INT")], "more"),
        ([("p", "CHAR(3)"), ("id", "BIGINT")], "p"),
    ],
)
def test_columns_of_the_branch(url: str, fields: list[tuple[str, Any]], column: str | None) -> None:
    """ "The two row types must be equal (nullability aside)"."""
    altered(url, [{"id": n, "name": name, "type": kind} for n, (name, kind) in enumerate(fields)])
    if column is None:
        assert THEIR_PART in files(state(url))
        return
    with pytest.raises(InvalidRequest) as caught:
        plan_scan(state(url))
    assert (caught.value.code, caught.value.column) == ("fallback-schema", column)
    assert (
        caught.value.url == open_store(url).url and "'b'" in caught.value.message and "'main'" in caught.value.message
    )


def test_rows_of_such_tables_do_not_change_one_by_one(url: str) -> None:
    ensure_own_rows(load_snapshot(open_store(url), At()).schema)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_own_rows(state(url).schema)
    assert (caught.value.code, caught.value.features) == ("unsupported-row-change", ("scan.fallback-branch",))
