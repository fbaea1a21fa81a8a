"""Files of a feed by how they are laid out, what is known of them, and what a feed tells of itself."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_config
from stream_log import Log, add, cdc, masked, metadata, remove

from alluvium.delta.changes.bounds import Bound, Range
from alluvium.delta.changes.files import FileGroup
from alluvium.delta.changes.plan import Feed, Layout, lay_out, plan_changes
from alluvium.delta.changes.source import ChangeSource, feed_of, load_changes
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.log.names import version_prefix
from alluvium.delta.log.read_changes import CHANGED_FILES
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import FileConstant, Literal, OutputColumn, Physical
from alluvium.schema.types import LONG, STRING, TIMESTAMP, Field, Struct
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = Struct((Field("id", LONG, False), Field("p", STRING), Field("q", LONG)))
EXTRA = ("_change_type", "_commit_version", "_commit_timestamp")
TIMES = {3: 1_000, 4: 2_500, 5: 9_000}
FEED = {"delta__enableChangeDataFeed": "true"}


def group(*rows: Mapping[str, Any], change_type: str | None = "insert", **more: Any) -> FileGroup:
    complete = []
    for n, row in enumerate(rows):
        values = row.get("values", {})
        complete.append({"path": f"f{n}", "size": n + 1, "version": 3, **row, "partitionValues": list(values.items())})
    files = pa.Table.from_pylist([{k: v for k, v in row.items() if k != "values"} for row in complete], CHANGED_FILES)
    return FileGroup("added", change_type, files, **more)


def stats(low: int, high: int) -> str:
    return f'{{"numRecords":2,"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}}}'


def feed(config: TableConfig, *groups: FileGroup, loosened: frozenset[str] = frozenset()) -> Feed:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    return Feed(config, lay_out(groups, config, TIMES, "UTC"), TIMES, loosened, store, open_store, "UTC")


def paths(layouts: tuple[Layout, ...]) -> dict[str, list[str]]:
    return {one.key: one.group.files["path"].to_pylist() for one in layouts}


def test_files_by_the_columns_that_they_have_values_of() -> None:
    """Nearly always those of the table, in its order; a group is split only where its files differ."""
    config = make_config(SCHEMA, ("q", "p"))
    alike = group({"values": {"p": "x", "q": "1"}}, {"values": {"q": None, "p": None}})
    (whole,) = lay_out((alike,), config, TIMES, "UTC")
    assert whole.group is alike and whole.config is config and whole.key == "added[q,p]"
    mixed = group(
        {"values": {"p": "x", "q": "1"}},
        {"values": {}},
        {"values": {"q": "2"}},
        {"values": {"p": "y", "z": "1"}},
        {"values": {"q": "3", "p": "x"}},
    )
    found = lay_out((mixed,), config, TIMES, "UTC")
    assert paths(found) == {"added[p,q]": ["f0", "f4"], "added[]": ["f1"], "added[q]": ["f2"], "added[p]": ["f3"]}
    assert [one.config.partition_columns for one in found] == [("p", "q"), (), ("q",), ("p",)]
    # What no column of the table is called says nothing.
    assert paths(lay_out((group({"values": {"z": "1"}}),), make_config(SCHEMA), TIMES, "UTC")) == {"added[]": ["f0"]}
    assert lay_out((), config, TIMES, "UTC") == ()


def test_vectors_go_with_their_files() -> None:
    vectors = [{"storageType": "u", "pathOrInlineDv": f"v{n}", "sizeInBytes": 1, "cardinality": 1} for n in range(4)]
    rows = [{"values": {"p": "x"} if n % 2 else {}, "deletionVector": vectors[n]} for n in range(4)]
    made = group(*rows)
    both = replace(made, vectors=vectors_of(made.files), without=vectors_of(made.files).take(pa.array([3, 2, 1, 0])))
    found = lay_out((both,), make_config(SCHEMA, ("p",)), TIMES, "UTC")
    names = {
        one.key: [
            [v["pathOrInlineDv"] for v in some.to_pylist()]
            for some in (one.group.vectors, one.group.without)
            if some is not None
        ]
        for one in found
    }
    assert names == {"added[]": [["v0", "v2"], ["v3", "v1"]], "added[p]": [["v1", "v3"], ["v2", "v0"]]}


def test_what_is_known_of_files_in_a_feed() -> None:
    rows = [{"stats": stats(1, 5), "version": 3}, {"stats": None, "version": 5}]
    for change_type in ("delete", None):
        (layout,) = lay_out((group(*rows, change_type=change_type),), make_config(SCHEMA), TIMES, "UTC")
        known = layout.statistics
        known.prepare({("id",), ("_commit_version",)})
        assert known.num_files == 2
        exact = {
            name: found and found.to_pylist() for name in EXTRA if (found := known.exact((name,))) is not None or True
        }
        moments = [dt.datetime.fromtimestamp(TIMES[v] / 1000, dt.timezone.utc) for v in (3, 5)]
        assert exact == {
            "_change_type": ["delete"] * 2 if change_type else None,
            "_commit_version": [3, 5],
            "_commit_timestamp": moments,
        }
        low, high, nulls, count = (
            known.lower(("id",)),
            known.upper(("id",)),
            known.null_count(("id",)),
            known.num_rows(),
        )
        assert [None if found is None else found.to_pylist() for found in (low, high, nulls, count)] == [
            [1, None],
            [5, None],
            [0, None],
            [2, None],
        ]
        # A field of that name within a column is none of them.
        assert known.exact(("_commit_version", "x")) is None


WHERE = [
    (None, ["f0", "f1", "f2", "f3"], (0, 0)), ("_commit_version = 3", ["f0"], (3, 0)), ("_commit_version >= 4 and p = 'x'", ["f2"], (3, 0)),
    ("p = 'x'", ["f0", "f2"], (2, 0)), ("id > 6", ["f2", "f3"], (0, 2)), ("_commit_version >= 4 and id > 6", ["f2", "f3"], (1, 1)),
    ("_change_type = 'delete' and id > 6", [], (4, 0)), ("_change_type = 'insert' and id > 60", ["f3"], (0, 3)), ("_commit_version = 3 or id > 6", ["f0", "f2", "f3"], (0, 1)),
    ("_commit_timestamp >= timestamp'1970-01-01 00:00:02.5Z'", ["f1", "f2", "f3"], (1, 0)), ("_commit_timestamp > timestamp'1970-01-01 00:00:09Z'", [], (4, 0)),
    ("_commit_version = 7 and id > 6", [], (4, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("where", "left", "skipped"), WHERE)
def test_files_that_a_condition_leaves(where: str | None, left: list[str], skipped: tuple[int, int]) -> None:
    rows = [
        {"values": {"p": "x"}, "version": 3, "stats": stats(0, 5)}, {"values": {"p": "y"}, "version": 4, "stats": stats(1, 6)},
        {"values": {"p": "x"}, "version": 5, "stats": stats(5, 9)}, {"values": {"p": None}, "version": 5, "stats": None},
    ]  # fmt: skip
    made = feed(make_config(SCHEMA, ("p",)), group(*rows))
    plan = plan_changes(made, None if where is None else parse_predicate(where, made.schema))
    assert [path for part in plan.parts for path in part.files["path"].to_pylist()] == left
    assert plan.skipped == (("partition", skipped[0]), ("statistics", skipped[1]))


def test_a_part_of_a_feed() -> None:
    made = feed(
        make_config(SCHEMA, ("p",)),
        group({"values": {"p": "x"}, "version": 4, "modificationTime": 8}, {"values": {"p": "y"}, "version": 3}),
    )
    plan = plan_changes(made)
    assert (plan.root, plan.schema, plan.partition_columns) == (
        made.store.url,
        made.schema,
        ("p", "_commit_version", "_commit_timestamp"),
    )
    (part,) = plan.parts
    assert (part.key, part.read_schema.names, part.masks, part.keeps_masked) == ("added[p]", ("id", "q"), None, False)
    assert part.output == (
        OutputColumn("id", LONG, False, Physical(("id",), LONG)), OutputColumn("p", STRING, True, FileConstant("p", STRING)), OutputColumn("q", LONG, True, Physical(("q",), LONG)),
        OutputColumn("_change_type", STRING, True, Literal("insert", STRING)), OutputColumn("_commit_version", LONG, True, FileConstant("_commit_version", LONG)),
        OutputColumn("_commit_timestamp", TIMESTAMP, True, FileConstant("_commit_timestamp", TIMESTAMP)),
    )  # fmt: skip
    moment = dt.datetime.fromtimestamp(2.5, dt.timezone.utc)
    first, second = part.files.to_pylist()
    assert first == {
        "path": "f0", "size": 1, "modification_time_ms": 8, "num_rows": None, "constants": {"p": "x", "_commit_version": 4, "_commit_timestamp": moment}, "mask": None,
    }  # fmt: skip
    assert (second["modification_time_ms"], second["size"], second["constants"]["_commit_version"]) == (0, 2, 3)
    recorded = plan_changes(feed(make_config(SCHEMA), group({}, change_type=None))).parts[0]
    assert recorded.read_schema.names == ("id", "p", "q", "_change_type")
    assert recorded.output[3] == OutputColumn("_change_type", STRING, True, Physical(("_change_type",), STRING))


def test_columns_of_a_feed_that_may_be_null_after_all() -> None:
    made = feed(make_config(SCHEMA), group({}), loosened=frozenset(("id",)))
    assert [(f.name, f.nullable) for f in made.schema.fields] == [
        ("id", True),
        ("p", True),
        ("q", True),
        *((name, True) for name in EXTRA),
    ]
    assert plan_changes(made).parts[0].output[0].nullable
    assert not feed(make_config(SCHEMA)).schema.fields[0].nullable
    with pytest.raises(CorruptTable) as caught:
        plan_changes(feed(make_config(SCHEMA), group({"path": "../x"})))
    assert caught.value.code == "path-escapes-root"


def test_which_columns_are_loosened() -> None:
    snapshot = load_snapshot(Log("layouts-loosened", add("a")).store)
    strict, loose = make_config(SCHEMA), make_config(Struct((Field("id", LONG), Field("p", STRING, False))))
    for configs, names in (
        ([], set()),
        ([strict], set()),
        ([strict, loose], {"id"}),
        ([make_config(Struct((Field("p", STRING),)))], {"id"}),
    ):
        made = feed_of(snapshot, strict, (), {}, [(n, one) for n, one in enumerate(configs)])
        assert made.loosened == names
    assert feed_of(snapshot, loose, (), {}, [(0, strict)]).loosened == {"p"}


def test_feeds_are_told_apart_and_tell_their_size() -> None:
    log = Log("layouts-identity", add("a", size=5), **FEED)
    log.commit(add("b", size=7), cdc("c"), remove("a"))
    log.commit(masked(add("d", size=3)), add("e", size=2))
    snapshot = load_snapshot(log.store)
    tokyo = load_snapshot(log.store, time_zone="Asia/Tokyo")
    made = [
        load_changes(one, Bound(first), Bound(last))
        for one in (snapshot, tokyo)
        for first in range(3)
        for last in range(first, 3)
    ]
    assert len({source.identity for source in made}) == len(made) == 12
    assert (
        load_changes(snapshot, Bound(0)).identity
        == load_changes(snapshot, Bound(0), Bound(9)).identity
        == made[2].identity
    )
    sizes = {(source.range.first, source.range.last): source.size_bytes for source in made}
    assert sizes == {(0, 0): 5, (0, 1): 15, (0, 2): 20, (1, 1): 10, (1, 2): 15, (2, 2): 5}
    log.commit(metadata((("id", "long"), ("x", "long")), **FEED))
    other = load_changes(load_snapshot(log.store), Bound(0), Bound(2))
    assert other.identity != made[2].identity and other.schema.names == ("id", "x", *EXTRA)


def test_a_range_without_changes() -> None:
    log = Log("layouts-empty", add("a"), **FEED)
    snapshot = load_snapshot(log.store)
    empty = load_changes(snapshot, Bound(5), allow_out_of_range=True)
    assert isinstance(empty, ChangeSource) and (empty.range, empty.size_bytes) == (Range(5, 4), 0)
    assert empty.plan_scan().parts == () and empty.schema.names == ("id", *EXTRA)
    with pytest.raises(NotFound) as caught:
        load_changes(snapshot, Bound(5))
    assert (caught.value.code, caught.value.url) == ("missing-version", snapshot.store.url)
    # What has come since the snapshot does not count.
    log.commit(add("b"))
    with pytest.raises(NotFound):
        load_changes(snapshot, Bound(1))
    assert load_changes(snapshot, Bound(0), Bound(7)).range == Range(0, 0)
    # Its last version had a feed, an older one had none.
    off = Log("layouts-off", add("a"))
    off.commit(metadata(**FEED), add("b"))
    assert load_changes(load_snapshot(off.store), Bound(1)).range == Range(1, 1)
    with pytest.raises(InvalidRequest) as refused:
        load_changes(load_snapshot(off.store), Bound(0))
    assert (refused.value.code, refused.value.version) == ("change-feed-disabled", 0)


def test_a_range_by_version_needs_the_end_of_the_log_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hundred commits before it, since a file's time counts as later than those before it; one by time needs all."""
    log = Log("layouts-long", add("a"), **FEED)
    for version in range(1, 106):
        log.commit(add(str(version)))
    snapshot = load_snapshot(log.store)
    begins: list[str] = []

    def list_from(folder: str, start: str = "") -> Any:
        begins.append(start)
        return MemoryStore.list_from(log.store, folder, start)

    monkeypatch.setattr(log.store, "list_from", list_from)
    time = Bound(timestamp_ms=0)
    late = Bound(timestamp_ms=1 << 50)
    asked: list[tuple[tuple[Bound, Bound | None], int]] = [
        ((Bound(104), None), 4), ((Bound(103), Bound(104)), 3), ((Bound(100), None), 0), ((Bound(99), None), 0), ((time, None), 0), ((time, Bound(104)), 0), ((Bound(104), late), 0),
    ]  # fmt: skip
    for (start, end), first in asked:
        begins.clear()
        load_changes(snapshot, start, end, allow_out_of_range=True)
        assert begins[0] == version_prefix(first), (start, end)
