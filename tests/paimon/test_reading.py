"""Reading hand-written tables through the front door: travel, damage, changes, columns."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten, write_readings

import alluvium
from alluvium.api.paimon.paimon_pins import open_pinned, paimon_pins
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Column, Compare, Literal
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import SchemaChange as C
from alluvium.paimon.view.source import PaimonSource
from alluvium.portable.merging import merged as portable_merged
from alluvium.schema.types import LONG
from alluvium.storage.open import open_store


@pytest.fixture
def readings(tmp_path: Path) -> str:
    write_readings(tmp_path / "readings")
    return str(tmp_path / "readings")


def sensors(**at: object) -> list[str]:
    return sorted(alluvium.open(**at).to_arrow(columns=["sensor"])["sensor"].to_pylist())  # type: ignore[arg-type]


def test_keys_merge(readings: str) -> None:
    table = alluvium.open(readings)
    assert (table.format, table.version, table.schema.names) == ("paimon", 3, ("sensor", "place", "value"))
    # Without columns there are rows all the same.
    assert table.to_arrow(columns=[]).num_rows == table.to_arrow().num_rows == 2
    assert sum(batch.num_rows for batch in table.to_batches(columns=[])) == 2
    assert sorted(table.to_arrow(columns=["sensor", "value"]).to_pylist(), key=str) == [
        {"sensor": "a", "value": 2.5},
        {"sensor": "c", "value": 4.0},
    ]


def test_travel(readings: str) -> None:
    assert sensors(url=readings, version=1) == ["a", "b"]
    assert sensors(url=readings, tag="noon") == ["a", "b", "c"]
    at_two = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=1_700_000_000_000 + 2 * 60_000)
    assert sensors(url=readings, timestamp=at_two) == ["a", "b", "c"]
    for options in ({"scan.snapshot-id": 1}, {"scan.version": "1"}, {"scan.timestamp-millis": 1_700_000_060_000}):
        assert sensors(url=readings, options=options) == ["a", "b"]
    assert sensors(url=readings, options={"scan.version": "noon"}) == ["a", "b", "c"]


def test_what_is_not_there_is_said(readings: str, tmp_path: Path) -> None:
    for given, code in (
        ({"version": 9}, "snapshot-not-found"),
        ({"tag": "dawn"}, "tag-not-found"),
        ({"branch": "b"}, "branch-not-found"),
        ({"timestamp": "2001-01-01"}, "no-snapshot-before"),
    ):
        with pytest.raises(NotFound) as caught:
            alluvium.open(readings, **given)
        assert caught.value.code == code
        assert caught.value.url is not None
    (Path(readings) / "snapshot" / "snapshot-1").unlink()
    with pytest.raises(NotFound) as caught:
        alluvium.open(readings, version=1)
    assert caught.value.code == "snapshot-expired"
    assert "snapshots 2 to 3 exist" in str(caught.value)
    with pytest.raises(InvalidRequest):
        alluvium.open(readings, version=2, tag="noon")
    with pytest.raises(InvalidRequest):
        alluvium.open(readings, version=2, options={"scan.tag-name": "noon"})
    (tmp_path / "nothing").mkdir()
    with pytest.raises(AlluviumError):
        alluvium.open(str(tmp_path / "nothing"), tag="noon")


def test_changes(readings: str) -> None:
    table = alluvium.open(readings)
    delta = table.changes(1, 3)
    assert delta.column_names == ["_row_kind", "sensor", "place", "value"]
    assert sorted(zip(delta["_row_kind"].to_pylist(), delta["sensor"].to_pylist(), strict=True)) == [
        ("+I", "a"),
        ("+I", "c"),
        ("-D", "b"),
    ]
    assert table.changes(2, mode="delta")["_row_kind"].to_pylist() == ["-D"]
    assert sorted(table.changes(1, "noon", mode="diff", columns=["sensor"])["sensor"].to_pylist()) == ["a", "c"]
    with pytest.raises(InvalidRequest) as caught:
        table.changes(3, 1)
    assert caught.value.code == "invalid-range"
    with pytest.raises(InvalidRequest):
        table.changes(1, 2, mode="sideways")


def test_system_tables(readings: str) -> None:
    table = alluvium.open(readings)
    assert table.system("snapshots")["snapshot_id"].to_pylist() == [1, 2, 3]
    assert table.system("tags")["tag_name"].to_pylist() == ["noon"]
    assert sorted(table.system("audit_log")["rowkind"].to_pylist()) == ["+I", "+I", "-D"]
    log, packed = (table.system(name).to_pylist() for name in ("audit_log", "binlog"))
    assert packed == [{name: v if name == "rowkind" else [v] for name, v in row.items()} for row in log]
    for name in ("schemas", "options", "files", "manifests", "partitions", "buckets", "branches", "consumers",
                 "statistics", "aggregation_fields", "table_indexes", "ro"):  # fmt: skip
        table.system(name)
    with pytest.raises(InvalidRequest) as caught:
        table.system("snapshotz")
    assert "did you mean 'snapshots'" in str(caught.value)


def test_predicates_wait_for_the_merge(readings: str) -> None:
    """ "Value predicates must not prune single overlapping files; key predicates may"."""
    table = alluvium.open(readings)
    assert table.to_arrow(where="value < 2").num_rows == 0, "the old value of a is gone"
    assert table.files(where="value < 2").num_rows == 3
    assert table.files(where="sensor = 'c'").num_rows == 1


def test_history_and_refresh(readings: str) -> None:
    table = alluvium.open(readings, version=2)
    assert [row["version"] for row in table.history()] == [2, 1]
    assert table.refresh().version == 3
    assert table.refresh().refresh().version == 3


@pytest.mark.parametrize("kind", ["snapshot", "manifest-list", "manifest", "data"])
def test_damage(readings: str, kind: str) -> None:
    names = {"snapshot": "snapshot/snapshot-3", "manifest-list": "manifest/manifest-list-3-1",
             "manifest": "manifest/manifest-3-1", "data": "bucket-0/data-3-0.parquet"}  # fmt: skip
    file = Path(readings) / names[kind]
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"Obj\x01" + whole[4:20]):
        file.write_bytes(damaged)
        with pytest.raises(CorruptTable) as caught:
            alluvium.open(readings).to_arrow()
        assert caught.value.path is not None
    file.unlink()
    if kind != "snapshot":
        with pytest.raises(NotFound) as missing:
            alluvium.open(readings).to_arrow()
        assert missing.value.code in ("missing-manifest", "missing-file")


def test_unknown_engines_and_aggregates(tmp_path: Path) -> None:
    write_readings(tmp_path / "t")
    for options, code in (
        ({"merge-engine": "magic"}, "unsupported-merge-engine"),
        ({"merge-engine": "aggregation", "fields.value.aggregate-function": "magic"}, "unsupported-aggregate"),
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            alluvium.open(str(tmp_path / "t"), options=options).to_arrow()
        assert caught.value.code == code


def test_append_tables_skip_by_statistics(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([("n", pa.int64()), ("s", pa.string())]))
    for start in (0, 10, 20):
        table.commit([{"n": start + i, "s": f"v{start + i}"} for i in range(5)])
    opened = alluvium.open(str(tmp_path / "t"))
    assert opened.files(where="n >= 20").num_rows == 1
    assert opened.to_arrow(where="n >= 20 and s <> 'v21'")["n"].to_pylist() == [20, 22, 23, 24]
    assert opened.to_arrow(columns=["_file", "n"], where="n = 3")["_file"][0].as_py().endswith("data-1-0.parquet")


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    HandWritten(tmp_path / "t", pa.schema([("n", pa.int64())]))
    opened = alluvium.open(str(tmp_path / "t"))
    assert (opened.version, opened.timestamp, opened.to_arrow().num_rows) == (None, None, 0)
    assert opened.to_arrow().schema == pa.schema([("n", pa.int64())])
    assert opened.files().num_rows == 0
    assert opened.history().num_rows == 0


def test_sections_of_a_fallback_branch_are_its_own(tmp_path: Path) -> None:
    """Keys of the branch's partitions are no keys of the table's, though both merge."""
    schema = pa.schema(
        [pa.field("k", pa.int64(), False), pa.field("p", pa.string(), False), pa.field("v", pa.string())]
    )
    for root, partition, first in (("t", "x", 0), ("other", "y", 10)):
        table = HandWritten(tmp_path / root, schema, keys=("p", "k"), parted=("p",))
        table._id = first
        for value in ("old", "new"):
            table.commit([{"k": 1, "p": partition, "v": value}], time_ms=0 if partition == "x" else 1_600_000_000_000)
    for source, target in (("manifest", "manifest"), ("p=y", "p=y"), ("schema", "branch/branch-b/schema"),
                           ("snapshot", "branch/branch-b/snapshot")):  # fmt: skip
        shutil.copytree(tmp_path / "other" / source, tmp_path / "t" / target, dirs_exist_ok=True)
    opened = alluvium.open(str(tmp_path / "t"), options={"scan.fallback-branch": "b"})
    expected = [{"k": 1, "p": "x", "v": "new"}, {"k": 1, "p": "y", "v": "new"}]
    assert sorted(opened.to_arrow().to_pylist(), key=str) == expected
    assert opened.to_arrow(where="p = 'y'").to_pylist() == expected[1:]
    # Workers, who know snapshots by their numbers alone, see the newest of both, whatever their times.
    source = PaimonSource(load_snapshot(open_store(str(tmp_path / "t")), options={"scan.fallback-branch": "b"}))
    pins = {key.casefold(): value for key, value in paimon_pins(source).items()}
    pinned = open_pinned(open_store(str(tmp_path / "t")), pins, "UTC", open_store)
    assert pinned.snapshot.fallback_id == 12
    assert [p.files["path"].to_pylist() for p in pinned.plan_scan(None).parts] == [
        p.files["path"].to_pylist() for p in source.plan_scan(None).parts
    ]
    # A branch that the table got later is behind its older states, too: the option is the table's, not the snapshot's.
    PaimonTable.forPath(str(tmp_path / "t")).alter(
        [C.set_option("scan.fallback-branch", "b"), C.add_column("w", "INT")]
    )
    travelled = alluvium.open(str(tmp_path / "t"), version=1).to_arrow().sort_by("p")
    assert travelled.to_pylist() == [{"k": 1, "p": "x", "v": "old"}, {"k": 1, "p": "y", "v": "new"}]
    # A number that was asked for is one of the table's own snapshots.
    named = alluvium.open(str(tmp_path / "t"), options={"scan.fallback-branch": "b", "scan.snapshot-id": "1"})
    assert named.to_arrow().sort_by("p").to_pylist() == travelled.to_pylist()


def test_sections_keep_their_numbers(tmp_path: Path) -> None:
    """An engine asks again with a sharper predicate, and finds a section under its number."""
    schema = pa.schema(
        [pa.field("k", pa.int64(), False), pa.field("p", pa.string(), False), pa.field("v", pa.string())]
    )
    table = HandWritten(tmp_path / "t", schema, keys=("p", "k"), parted=("p",))
    for partition in "abc":
        for value in ("old", "new"):
            table.commit([{"k": 1, "p": partition, "v": value}, {"k": 5, "p": partition, "v": value}])
    source = PaimonSource(load_snapshot(open_store(str(tmp_path / "t"))))

    def groups(where: str | None) -> dict[str, int]:
        predicate = None if where is None else parse_predicate(where, source.plan_scan(None).schema)
        files = pa.concat_tables([part.files for part in source.plan_scan(predicate).parts])
        return {
            path: constants["_SECTION"]
            for path, constants in zip(files["path"].to_pylist(), files["constants"].to_pylist(), strict=True)
        }

    everything = groups(None)
    assert sorted(set(everything.values())) == [0, 1, 2]
    for where in ("p = 'b'", "p > 'a'", "k = 5 and p = 'c'", "v = 'old'"):
        found = groups(where)
        assert found
        assert found.items() <= everything.items()


def test_sections_that_are_other_tasks_are_not_skipped(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([pa.field("k", pa.int64(), False)]), keys=("k",))
    for start in (0, 0, 100, 100, 200):
        table.commit([{"k": start + i} for i in range(3)])
    source = PaimonSource(load_snapshot(open_store(str(tmp_path / "t"))))
    section = Column(("_SECTION",), LONG)
    for number, files in ((0, 2), (1, 2), (7, 0), (-1, 1)):
        plan = source.plan_scan(Compare("=", section, Literal(number, LONG)))
        assert sum(part.files.num_rows for part in plan.parts) == files
        assert dict(plan.skipped) == {"partition": 0, "statistics": 0}


def test_watermarks(tmp_path: Path) -> None:
    """The oldest snapshot whose watermark is at least the one asked for; snapshots without one are passed over."""
    table = HandWritten(tmp_path / "t", pa.schema([("n", pa.int64())]))
    for number, watermark in enumerate((None, 100, None, 200, 200, None)):
        table.commit([{"n": number}], watermark=watermark)
    for asked, snapshot in ((5, 2), (100, 2), (101, 4), (200, 4)):
        for options in ({"scan.watermark": asked}, {"scan.version": f"watermark-{asked}"}):
            assert alluvium.open(str(tmp_path / "t"), options=options).version == snapshot, options
    with pytest.raises(NotFound) as caught:
        alluvium.open(str(tmp_path / "t"), options={"scan.watermark": 201})
    assert caught.value.code == "snapshot-not-found"
    assert "the latest watermark is 200" in str(caught.value)


def test_changes_that_no_compaction_has_seen(tmp_path: Path) -> None:
    """Batches see no level 0 of first-row tables and of those with deletion vectors; streams of changes do."""
    schema = pa.schema([pa.field("k", pa.int64(), False)])
    for number, options in enumerate(({"merge-engine": "first-row"}, {"deletion-vectors.enabled": "true"}, {})):
        table = HandWritten(tmp_path / f"{number}", schema, keys=("k",), **options)
        table.commit([{"k": 1}])
        found = alluvium.open(str(tmp_path / f"{number}"))
        assert found.changes(0, 1, mode="delta").num_rows == 1
        assert found.to_arrow().num_rows == (0 if options else 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"merge-engine": "partial-update"}, [("+I", 1, 2, 5)]),
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}, [("+I", 1, 7, 5)]),
        # The row that came is older than the one that is there.
        ({"sequence.field": "a"}, []),
    ],
)
def test_a_difference_tells_rows_as_they_are_at_the_end(
    tmp_path: Path, options: dict[str, str], expected: list[tuple[object, ...]]
) -> None:
    """Not what a file of both states and a new one would have made of them: no reader ever saw that."""
    schema = pa.schema([pa.field("k", pa.int64(), False), ("a", pa.int64()), ("b", pa.int64())])
    table = HandWritten(tmp_path / "t", schema, ["k"], **options)
    table.commit([{"k": 1, "a": 5, "b": 5}, {"k": 2, "a": 6, "b": 6}])
    table.commit([{"k": 9, "a": 1, "b": 1}])
    table.commit([{"k": 1, "a": 2, "b": None}])
    opened = alluvium.open(str(tmp_path / "t"))
    found = opened.changes(2, 3, mode="diff").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == expected
    now = {tuple(row.values()) for row in opened.to_arrow().to_pylist()}
    assert {row[1:] for row in expected} <= now


def test_a_difference_tells_rows_that_came_back(tmp_path: Path) -> None:
    """A state that is the newest again lacks the files that hid rows of those which both states have."""
    table = HandWritten(tmp_path / "t", pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())]), ["k"])
    table.commit([{"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 3, "v": 3}])
    table.commit([{"k": 1, "v": 1}, {"k": 2, "v": 9}], ["-D", "+U"])
    assert PaimonTable.forPath(str(table.path)).rollback_to_as_latest(snapshot_id=1).current == 3
    opened = alluvium.open(str(table.path))
    found = opened.changes(2, 3, mode="diff").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("+I", 1, 1), ("+I", 2, 2)]


def test_changes_between_tags_outlive_their_snapshots(readings: str) -> None:
    """Java compares the states of two tags, whatever lies between them; other ends want every snapshot."""
    table = HandWritten(Path(readings).parent / "t", pa.schema([("k", pa.int64()), ("v", pa.int64())]), ["k"])
    for number in (1, 2, 3, 4):
        table.commit([{"k": 1, "v": number}, {"k": number + 1, "v": number}])
        table.tag(f"t{number}", number)
    opened = alluvium.open(str(table.path))
    expected = [("+I", 1, 3), ("+I", 3, 2), ("+I", 4, 3)]

    def changes(*ends: object, mode: str = "auto") -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in opened.changes(*ends, mode=mode).to_pylist())  # type: ignore[arg-type]

    assert changes("t1", "t3") == expected
    assert changes("t1", "t3", mode="delta") == sorted([("+I", 1, 2), *expected])
    assert changes(1, 3) == sorted([("+I", 1, 2), *expected])
    for number in (1, 2):
        table.expire(number)
    assert changes("t1", "t3") == expected
    assert changes(1, 3, mode="diff") == expected
    with pytest.raises(NotFound) as caught:
        changes("t1", "t3", mode="delta")
    assert caught.value.code == "snapshot-expired"
    # Times before the first snapshot are its beginning; a difference begins with it.
    early, late = dt.datetime(2001, 1, 1), dt.datetime(2100, 1, 1)
    assert changes(early, late) == [("+I", 1, 3), ("+I", 1, 4), ("+I", 4, 3), ("+I", 5, 4)]
    assert changes(early, late, mode="diff") == [("+I", 1, 4), ("+I", 5, 4)]
    with pytest.raises(NotFound) as none:
        changes(early, dt.datetime(2002, 1, 1))
    assert none.value.code == "no-snapshot-before"
    nothing = HandWritten(Path(readings).parent / "nothing", pa.schema([("k", pa.int64())]), ["k"])
    with pytest.raises(NotFound) as empty:
        alluvium.open(str(nothing.path)).changes(early, late)
    assert empty.value.code == "snapshot-not-found"


def test_travel_takes_the_options_of_today(tmp_path: Path) -> None:
    """`tryTimeTravel`: columns are those of the snapshot, options those of the table."""
    columns = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.int64())])
    table = HandWritten(tmp_path / "t", columns, ["k"], **{"sequence.field": "s"})
    table.commit([{"k": 1, "v": 1, "s": 1}])
    altered = PaimonTable.forPath(str(table.path))
    altered.alter([C.set_option("ignore-delete", "true"), C.rename_column("v", "w")])
    store = open_store(str(table.path))
    travelled = load_snapshot(store, At(snapshot_id=1)).schema
    assert travelled.names == ("k", "v", "s")
    assert travelled.options["ignore-delete"] == "true"
    assert load_snapshot(store).schema.names == ("k", "w", "s")
    # What names columns names those of the snapshot.
    altered.alter([C.rename_column("s", "t")])
    assert load_snapshot(store, At(snapshot_id=1)).schema.options["sequence.field"] == "s"
    assert load_snapshot(store).schema.options["sequence.field"] == "t"


def test_keys_that_are_not_a_number_are_one_key(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.float64(), False), ("v", pa.string())])
    table = HandWritten(tmp_path / "t", schema, ["k"])
    nan = float("nan")
    table.commit([{"k": nan, "v": "a"}, {"k": 1.0, "v": "a"}])
    table.commit([{"k": nan, "v": "b"}])
    table.commit([{"k": nan, "v": "c"}, {"k": 2.0, "v": "c"}])
    rows = alluvium.open(str(tmp_path / "t")).to_arrow().to_pylist()
    assert sorted((str(row["k"]), row["v"]) for row in rows) == [("1.0", "a"), ("2.0", "c"), ("nan", "c")]


@pytest.mark.parametrize("rows_at_once", [1, 2, 4])
def test_groups_are_merged_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    """Also where the last group fills the measure: then nothing is left."""
    monkeypatch.setattr(portable_merged, "_ROWS_AT_ONCE", rows_at_once)
    schema = pa.schema([pa.field("p", pa.string(), False), pa.field("k", pa.int64(), False), ("v", pa.string())])
    table = HandWritten(tmp_path / "t", schema, keys=("p", "k"), parted=("p",))
    for part in "ab":
        for value in ("old", "new"):
            table.commit([{"p": part, "k": 1, "v": value}])
    rows = alluvium.open(str(table.path)).to_arrow().to_pylist()
    assert sorted(row["p"] + row["v"] for row in rows) == ["anew", "bnew"]
