"""Random verbs against a dict of rows: after each, rows, change feed and row ids are what the dict says."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import alluvium
from alluvium import DeltaTable
from alluvium.delta.upkeep.checks.checkup import check_snapshot
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.storage.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXAMPLES = int(os.environ.get("ALLUVIUM_EXAMPLES", "2"))

VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
FED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
#: Every pair of properties stands together, and apart, in one of them.
TABLES = {
    "plain": {},
    "vectors-fed-tracked": VECTORS | FED | TRACKED,
    "vectors-mapped": VECTORS | MAPPED,
    "mapped-fed-tracked": MAPPED | FED | TRACKED,
    "all": VECTORS | MAPPED | FED | TRACKED,
}
KEYS = 12


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the model; `p` follows from `id`."""

    id: int
    v: str | None

    @property
    def p(self) -> int:
        return self.id % 2


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL, and the same over the model."""

    sql: str
    holds: Callable[[Row], bool]


@dataclass(slots=True)
class Step:
    """What one commit does: rows before and after, by key."""

    deleted: dict[int, Row] = field(default_factory=dict)
    updated: dict[int, tuple[Row, Row]] = field(default_factory=dict)
    inserted: dict[int, Row] = field(default_factory=dict)

    def after(self, rows: dict[int, Row]) -> dict[int, Row]:
        kept = {i: row for i, row in rows.items() if i not in self.deleted}
        return kept | {i: new for i, (_, new) in self.updated.items()} | self.inserted

    @property
    def is_nothing(self) -> bool:
        return not (self.deleted or self.updated or self.inserted)

    def feed(self) -> list[tuple[int, str | None, str]]:
        kinds = (
            [(r, "delete") for r in self.deleted.values()],
            [(r, "insert") for r in self.inserted.values()],
            [(old, "update_preimage") for old, _ in self.updated.values()],
            [(new, "update_postimage") for _, new in self.updated.values()],
        )
        return [(row.id, row.v, kind) for row, kind in itertools.chain(*kinds)]


def _conditions(prefix: str = "") -> st.SearchStrategy[Condition]:
    key = st.integers(0, KEYS - 1)
    return st.one_of(
        key.map(lambda k: Condition(f"{prefix}id = {k}", lambda row: row.id == k)),
        key.map(lambda k: Condition(f"{prefix}id < {k}", lambda row: row.id < k)),
        st.integers(0, 1).map(lambda k: Condition(f"{prefix}p = {k}", lambda row: row.p == k)),
        st.just(Condition(f"{prefix}v is null", lambda row: row.v is None)),
        st.just(Condition(f"{prefix}v like 'm%'", lambda row: row.v is not None and row.v.startswith("m"))),
        # Null where the value is: neither true nor false.
        key.map(lambda k: Condition(f"{prefix}v <> 'v{k}'", lambda row: row.v is not None and row.v != f"v{k}")),
    )


#: New values: SQL over the table's columns, and the same over a row. Short, however often they are applied.
VALUES = st.sampled_from(
    [
        ("concat('u', right(v, 2))", lambda row: None if row.v is None else "u" + row.v[-2:]),
        ("null", lambda row: None),
        ("concat('v', id)", lambda row: f"v{row.id}"),
        ("v", lambda row: row.v),
    ]
)
SOURCES = st.dictionaries(
    st.integers(0, KEYS - 1), st.one_of(st.none(), st.sampled_from(["m1", "m2", "d"])), min_size=1, max_size=5
)


class TableMachine(RuleBasedStateMachine):
    """A table and its model. A subclass says where, and with which properties."""

    spark: object
    directory: Path
    properties: dict[str, str]
    _made = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.url = str(self.directory / f"t{next(self._made)}")
        builder = DeltaTable.create(self.spark).location(self.url).addColumn("id", "long").addColumn("p", "int")
        builder = builder.addColumn("v", "string").partitionedBy("p")
        for key, value in self.properties.items():
            builder = builder.property(key, value)
        self.table = builder.execute()
        self.versions: list[dict[int, Row]] = [{}]
        self.ids: dict[int, tuple[int, int]] = {}
        self.used: set[int] = set()
        self._append({i: Row(i, f"v{i}") for i in range(0, KEYS, 2)})

    @property
    def rows(self) -> dict[int, Row]:
        return self.versions[-1]

    @rule(keys=st.sets(st.integers(0, KEYS - 1), min_size=1, max_size=5), v=st.one_of(st.none(), st.just("a")))
    def append(self, keys: set[int], v: str | None) -> None:
        new = {k: Row(k, v) for k in keys - self.rows.keys()}
        if new:
            self._append(new)

    @rule(condition=st.one_of(st.none(), _conditions(), _conditions(), _conditions()))
    def delete(self, condition: Condition | None) -> None:
        step = Step(deleted={i: r for i, r in self.rows.items() if condition is None or condition.holds(r)})
        done = self.table.delete(None if condition is None else condition.sql)
        self._committed(step, done.attempts)
        assert int(done.metrics["numDeletedRows"]) == len(step.deleted)

    @rule(condition=st.one_of(st.none(), _conditions(), _conditions()), value=VALUES)
    def update(self, condition: Condition | None, value: tuple[str, Callable[[Row], str | None]]) -> None:
        sql, compute = value
        hit = {i: r for i, r in self.rows.items() if condition is None or condition.holds(r)}
        step = Step(updated={i: (r, Row(i, compute(r))) for i, r in hit.items()})
        done = self.table.update(None if condition is None else condition.sql, {"v": sql})
        self._committed(step, done.attempts)
        assert int(done.metrics["numUpdatedRows"]) == len(step.updated)

    @rule(source=SOURCES, deletes=st.booleans(), updates=st.booleans(), inserts=st.booleans(), own=st.one_of(st.none(), _conditions("t.")), removes=st.booleans())  # fmt: skip
    def merge(
        self,
        source: dict[int, str | None],
        deletes: bool,
        updates: bool,
        inserts: bool,
        own: Condition | None,
        removes: bool,
    ) -> None:
        if not (deletes or updates or inserts or own):
            return
        frame = self.spark.createDataFrame([(i, i % 2, v) for i, v in source.items()], "id long, p int, v string")  # type: ignore[attr-defined]
        merge = self.table.alias("t").merge(frame.alias("s"), "t.id = s.id")
        step, met = Step(), {i: r for i, r in self.rows.items() if i in source}
        if deletes:
            merge = merge.whenMatchedDelete("s.v = 'd'")
            step.deleted = {i: r for i, r in met.items() if source[i] == "d"}
        if updates:
            merge = merge.whenMatchedUpdate("s.v is null or t.v is null or s.v <> t.v", {"v": "s.v"})
            changed = {i: r for i, r in met.items() if None in (source[i], r.v) or source[i] != r.v}
            step.updated = {i: (r, Row(i, source[i])) for i, r in changed.items() if i not in step.deleted}
        if inserts:
            merge = merge.whenNotMatchedInsertAll("s.v is null or s.v <> 'd'")
            step.inserted = {i: Row(i, v) for i, v in source.items() if i not in self.rows and v != "d"}
        if own is not None:
            alone = {i: r for i, r in self.rows.items() if i not in source and own.holds(r)}
            if removes:
                merge = merge.whenNotMatchedBySourceDelete(own.sql)
                step.deleted = step.deleted | alone
            else:
                merge = merge.whenNotMatchedBySourceUpdate(own.sql, {"v": "'b'"})
                step.updated = step.updated | {i: (r, Row(i, "b")) for i, r in alone.items()}
        counts = tuple(merge.execute().first())  # type: ignore[union-attr]
        self._committed(step)
        assert counts[1:] == (len(step.updated), len(step.deleted), len(step.inserted))

    @precondition(lambda self: len(self.versions) > 2)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(1, len(self.versions) - 1))
        found = alluvium.read(self.spark, self.url, versionAsOf=version).collect()
        assert sorted((r.id, r.p, r.v or "") for r in found) == _listed(self.versions[version])

    @rule()
    def restart(self) -> None:
        """A new process knows nothing but the table."""
        RECENT.clear()
        self.table = DeltaTable.forPath(self.spark, self.url)

    @invariant()
    def agrees(self) -> None:
        table, version = alluvium.open(self.url), len(self.versions) - 1
        assert table.version == version
        found = table.to_arrow(["id", "p", "v"]).to_pylist()
        assert sorted((r["id"], r["p"], r["v"] or "") for r in found) == _listed(self.rows)
        findings = check_snapshot(load_snapshot(open_store(self.url)))
        assert [finding for finding in findings if finding.level == "error"] == []

    def _append(self, new: dict[int, Row]) -> None:
        df = self.spark.createDataFrame([(r.id, r.p, r.v) for r in new.values()], "id long, p int, v string")  # type: ignore[attr-defined]
        done = alluvium.write(df.coalesce(1), self.url, mode="append")
        self._committed(Step(inserted=new), done.attempts)

    def _committed(self, step: Step, attempts: int | None = None) -> None:
        """A verb that changed nothing made no version; another made one that says what it did."""
        if attempts is not None:
            assert attempts == (0 if step.is_nothing else 1)
        if step.is_nothing:
            return
        self.versions.append(step.after(self.rows))
        version = len(self.versions) - 1
        if "delta.enableChangeDataFeed" in self.properties:
            rows = alluvium.open(self.url).changes(version, version).to_pylist()
            found = [(r["id"], r["v"], r["_change_type"]) for r in rows]
            assert sorted(found, key=str) == sorted(step.feed(), key=str)
        if "delta.enableRowTracking" in self.properties:
            self._track(step, version)

    def _track(self, step: Step, version: int) -> None:
        """ "Row IDs [...] of a row must not change [...] when the row is copied or updated"; nobody's is used again."""
        found = alluvium.open(self.url).to_arrow(["id", "_row_id", "_row_commit_version"]).to_pylist()
        ids = {r["id"]: (r["_row_id"], r["_row_commit_version"]) for r in found}
        assert ids.keys() == self.rows.keys()
        for i, (row_id, row_version) in ids.items():
            if i in step.inserted:
                assert row_id not in self.used and row_version == version
            else:
                assert row_id == self.ids[i][0]
                assert row_version == (version if i in step.updated else self.ids[i][1])
        self.used |= {row_id for row_id, _ in ids.values()}
        assert len({row_id for row_id, _ in ids.values()}) == len(ids)
        self.ids = ids


def _listed(rows: dict[int, Row]) -> list[tuple[int, int, str]]:
    return sorted((r.id, r.p, r.v or "") for r in rows.values())


@pytest.mark.parametrize("name", TABLES)
def test_random_verbs_do_what_they_do_to_a_dict(spark, tmp_path: Path, name: str) -> None:
    machine = type("Machine", (TableMachine,), {"spark": spark, "directory": tmp_path, "properties": TABLES[name]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            # The first example is always the simplest, which does nothing. A step takes a second: ten of each of six
            # examples took ten minutes; ALLUVIUM_EXAMPLES=6 plays more.
            max_examples=EXAMPLES,
            stateful_step_count=6,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
