"""Random statements over rows without Spark, beside the same over a list of rows."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from sessionless import KINDS, Rows, by_text, committed, rows, table_of

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.plan.changes import Committed, Preview
from alluvium.storage.open import open_store


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    return dict(request.param)


Condition = tuple[str, Callable[[dict[str, Any]], bool | None]]


def _less(value: Any, than: int) -> bool | None:
    return None if value is None else value < than


def condition(chance: random.Random) -> Condition:
    k, n = chance.randrange(12), chance.randrange(40)
    some: list[Condition] = [
        (f"id < {n}", lambda r: _less(r["id"], n)),
        (f"id = {n} or v is null", lambda r: r["id"] == n or r["v"] is None),
        (f"p = 'p{k % 3}'", lambda r: None if r["p"] is None else r["p"] == f"p{k % 3}"),
        (f"p = 'p{k % 3}' and v > {k}", lambda r: r["p"] == f"p{k % 3}" and r["v"] is not None and r["v"] > k),
        (f"v % 5 = {k % 5}", lambda r: None if r["v"] is None else r["v"] % 5 == k % 5),
        ("false", lambda r: False),
        (f"not (v < {k})", lambda r: None if r["v"] is None else r["v"] >= k),
    ]
    return chance.choice(some)


def deleted(found: Rows, table: PortableDeltaTable, chance: random.Random) -> Rows:
    sql, holds = condition(chance)
    gone = [r for r in found if holds(r)]
    told = table.delete(sql, dry_run=True)
    assert isinstance(told, Preview) and told.operation.metrics["numDeletedRows"] == str(len(gone))
    assert committed(table.delete(sql)).get("numDeletedRows", "0") == str(len(gone))
    return [r for r in found if not holds(r)]


def updated(found: Rows, table: PortableDeltaTable, chance: random.Random) -> Rows:
    sql, holds = condition(chance)
    after = [{**r, "v": r["id"] * 2, "p": f"p{r['id'] % 4}"} if holds(r) else r for r in found]
    values = {"v": "id * 2", "p": "concat('p', cast(id % 4 as string))"}
    told = table.update(sql, values, dry_run=True)
    count = str(sum(bool(holds(r)) for r in found))
    assert isinstance(told, Preview) and told.operation.metrics["numUpdatedRows"] == count
    assert committed(table.update(sql, values)).get("numUpdatedRows", "0") == count
    return after


def merged(found: Rows, table: PortableDeltaTable, chance: random.Random) -> Rows:
    ids = chance.sample(range(-3, 45), chance.randrange(10))
    source = [
        {"id": i, "p": chance.choice(["p0", "p1", "new", None]), "v": chance.choice([None, 7, 1000 + i])} for i in ids
    ]
    data = pa.Table.from_pylist(source, pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())]))
    by_id = {row["id"]: row for row in source}
    kind = chance.randrange(4)
    builder = table.merge(data, "t.id = s.id")
    if kind == 0:
        done = builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        found = [by_id.get(r["id"], r) for r in found]
    elif kind == 1:
        done = builder.whenMatchedDelete("s.v is null").whenMatchedUpdate("t.v < s.v", {"v": "s.v + 1"}).execute()
        kept = []
        for r in found:
            s = by_id.get(r["id"])
            if s is not None and s["v"] is None:
                continue
            grows = s is not None and r["v"] is not None and r["v"] < s["v"]
            kept.append({**r, "v": s["v"] + 1} if s is not None and grows else r)
        return kept
    elif kind == 2:
        done = (
            builder.whenMatchedUpdate(None, {"p": "s.p"})
            .whenNotMatchedBySourceDelete("t.v > 30")
            .whenNotMatchedBySourceUpdate("t.id % 2 = 0", {"v": "-1"})
            .execute()
        )
        kept = []
        for r in found:
            if r["id"] in by_id:
                kept.append({**r, "p": by_id[r["id"]]["p"]})
            elif not (r["v"] is not None and r["v"] > 30):
                kept.append({**r, "v": -1} if r["id"] % 2 == 0 else r)
        return kept
    else:
        done = (
            builder.whenNotMatchedInsert("s.id > 40", {"id": "s.id", "v": "s.id"})
            .whenNotMatchedInsertAll("s.id < 0")
            .execute()
        )
    assert isinstance(done, Committed)
    there = {r["id"] for r in found}
    new = [s for s in source if s["id"] not in there]
    if kind == 0:
        return found + new
    return found + [
        {"id": s["id"], "p": None, "v": s["id"]} if s["id"] > 40 else s for s in new if s["id"] > 40 or s["id"] < 0
    ]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_random_statements(url: str, properties: dict[str, str], seed: int) -> None:
    chance = random.Random(seed)
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
    names = ("p",) if seed % 2 else ()
    found: Rows = []
    for start in range(0, 40, 10):
        new = [{"id": i, "p": f"p{i % 3}", "v": None if i % 7 == 0 else i * 3 % 11} for i in range(start, start + 10)]
        alluvium.write(pa.Table.from_pylist(new, schema), url, mode="append", partition_by=names, **properties)
        found += new
    table = table_of(url)
    for _ in range(6):
        before, version = found, alluvium.open(url).version
        found = chance.choice([deleted, updated, merged])(found, table, chance)
        assert by_text(rows(url)) == by_text(found)
        if alluvium.open(url).version > version and "delta.enableChangeDataFeed" in properties:
            _ensure_told(url, version + 1, before, found)
    if "delta.enableRowTracking" in properties:
        ids = alluvium.open(url).to_arrow(columns=["_row_id"])["_row_id"].to_pylist()
        assert len(set(ids)) == len(ids) == len(found)
    # What lies there is what the log knows, but for what vectors and changes have left.
    live = {add["path"] for add in load_snapshot(open_store(url)).files.to_pylist()}
    there = {
        o.path for o in open_store(url).list_tree("") if o.path.endswith(".parquet") and "_delta_log" not in o.path
    }
    assert live <= there


def _ensure_told(url: str, version: int, before: Rows, after: Rows) -> None:
    feed = alluvium.open(url).changes(version, version).to_pylist()
    counts = by_text(before)
    for change in feed:
        row = {name: change[name] for name in ("id", "p", "v")}
        sign = 1 if change["_change_type"] in ("insert", "update_postimage") else -1
        for text, count in by_text([row]).items():
            counts[text] += sign * count
    assert +counts == by_text(after) and not -counts
