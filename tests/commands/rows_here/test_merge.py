"""What a MERGE decides of random rows, batch by batch, beside a loop over all pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.commands.rows_here.judged import Judged
from alluvium.commands.rows_here.merge import ClauseText, Merging
from alluvium.commands.rows_here.places import Places
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.plan.changes import ChangeKind
from alluvium.plan.merging import Action, When
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct

Row = dict[str, Any]
TABLE = Struct(tuple(parse_fields("id bigint, v bigint, p string")))
SOURCE = Struct(tuple(parse_fields("ID bigint, w bigint, p string")))
COPY, UPDATE, DELETE = ChangeKind.COPY, ChangeKind.UPDATE, ChangeKind.DELETE


def both(*parts: bool | None) -> bool | None:
    return False if False in parts else None if None in parts else True


def compared(x: Any, y: Any, holds: Callable[[Any, Any], bool]) -> bool | None:
    return None if x is None or y is None else holds(x, y)


ON: dict[str, Callable[[Row, Row], bool | None]] = {
    "t.id = s.id": lambda r, s: compared(r["id"], s["ID"], lambda x, y: x == y),
    "s.ID = T.ID and t.v < s.w": lambda r, s: both(compared(r["id"], s["ID"], lambda x, y: x == y), compared(r["v"], s["w"], lambda x, y: x < y)),
    "t.id = s.id and t.p = s.p": lambda r, s: both(compared(r["id"], s["ID"], lambda x, y: x == y), compared(r["p"], s["p"], lambda x, y: x == y)),
    "t.id = s.id and t.v > 1": lambda r, s: both(compared(r["id"], s["ID"], lambda x, y: x == y), compared(r["v"], 1, lambda x, y: x > y)),
    "t.id + 1 = s.id": lambda r, s: compared(r["id"], s["ID"], lambda x, y: x + 1 == y),
}  # fmt: skip
OF_BOTH: dict[str | None, Callable[[Row, Row], bool | None]] = {
    None: lambda r, s: True, "t.v > s.w": lambda r, s: compared(r["v"], s["w"], lambda x, y: x > y), "s.p is null": lambda r, s: s["p"] is None,
    "t.p = 'a'": lambda r, s: compared(r["p"], "a", lambda x, y: x == y), "false": lambda r, s: False,
}  # fmt: skip
OF_SOURCE: dict[str | None, Callable[[Row], bool | None]] = {
    None: lambda s: True, "s.w > 1": lambda s: compared(s["w"], 1, lambda x, y: x > y), "w is null": lambda s: s["w"] is None, "s.p = 'b'": lambda s: compared(s["p"], "b", lambda x, y: x == y),
}  # fmt: skip
OF_TABLE: dict[str | None, Callable[[Row], bool | None]] = {
    None: lambda r: True, "t.v > 1": lambda r: compared(r["v"], 1, lambda x, y: x > y), "v is null": lambda r: r["v"] is None,
}  # fmt: skip


@dataclass
class Clause:
    text: ClauseText
    holds: Callable[..., bool | None]
    values: Callable[..., Row] | None


def clauses(lot: random.Random) -> list[Clause]:
    found = []
    for when, conditions in (
        (When.MATCHED, OF_BOTH),
        (When.NOT_MATCHED, OF_SOURCE),
        (When.NOT_MATCHED_BY_SOURCE, OF_TABLE),
    ):
        for _ in range(lot.choice([0, 1, 1, 2])):
            condition = lot.choice(list(conditions))
            holds: Any = conditions[condition]  # type: ignore[index]
            if when is When.NOT_MATCHED:
                sql, values = lot.choice(
                    [
                        (
                            {"id": "s.id", "v": "w * 2"},
                            lambda s: {"id": s["ID"], "v": None if s["w"] is None else s["w"] * 2},
                        ),
                        ({"p": "s.p"}, lambda s: {"p": s["p"]}),
                    ]
                )
                found.append(Clause(ClauseText(when, Action.INSERT, condition, sql), holds, values))
            elif lot.random() < 0.4:
                found.append(Clause(ClauseText(when, Action.DELETE, condition), holds, None))
            elif when is When.MATCHED:
                found.append(Clause(ClauseText(when, Action.UPDATE, condition, {"v": "s.w", "p": "concat(t.p, 'x')"}), holds,
                                    lambda r, s: {**r, "v": s["w"], "p": None if r["p"] is None else r["p"] + "x"}))  # fmt: skip
            else:
                found.append(
                    Clause(
                        ClauseText(when, Action.UPDATE, condition, {"v": "v + 1"}),
                        holds,
                        lambda r: {**r, "v": None if r["v"] is None else r["v"] + 1},
                    )
                )
    return found


def rows(lot: random.Random, names: tuple[str, str, str], count: int, *, unique: bool = False) -> list[Row]:
    ids = lot.sample(range(12), count) if unique else [lot.choice([None, *range(6)]) for _ in range(count)]
    return [
        dict(zip(names, (i, lot.choice([None, 0, 1, 2, 3]), lot.choice([None, "a", "b"])), strict=True)) for i in ids
    ]


def first(of: list[Clause], *row: Row) -> Clause | None:
    return next((clause for clause in of if clause.holds(*row)), None)


def expected(
    table: list[Row], source: list[Row], on: str, of: list[Clause]
) -> list[tuple[ChangeKind, Row | None, bool]] | None:
    """Of each row what becomes of it, and whether no row of the source met it; None: several met it, and it is not clear."""
    by = {when: [c for c in of if c.text.when is when] for when in When}
    matched, found, several = by[When.MATCHED], [], False
    for row in table:
        met = [s for s in source if ON[on](row, s)]
        taken = [(c, s) for s in met if (c := first(matched, row, s)) is not None]
        is_plain = len(matched) == 1 and matched[0].text.action is Action.DELETE and matched[0].text.condition is None
        several |= len(met) > 1 and bool(matched) and not is_plain
        if met:
            clause, args = (taken[-1][0], (row, taken[-1][1])) if taken else (None, (row,))
        else:
            clause, args = first(by[When.NOT_MATCHED_BY_SOURCE], row), (row,)
        if clause is None:
            found.append((COPY, None, not met))
        elif clause.values is None:
            found.append((DELETE, None, not met))
        else:
            found.append((UPDATE, clause.values(*args), not met))
    return None if several else found


@pytest.mark.parametrize("part", range(5))
def test_beside_all_pairs(part: int) -> None:
    lot, outcomes = random.Random(part), Counter[str]()
    for _ in range(20):
        outcomes[compare(lot)] += 1
    assert outcomes["done"] > 5


def compare(lot: random.Random) -> str:
    table = rows(lot, ("id", "v", "p"), lot.randint(0, 8))
    source = rows(lot, ("ID", "w", "p"), lot.randint(0, 6), unique=lot.random() < 0.6)
    on, of = lot.choice(list(ON)), clauses(lot)
    merging = Merging(
        TABLE, pa.Table.from_pylist(source, schema_to_arrow(SOURCE)), SOURCE, "t", "s", on, [c.text for c in of], "UTC"
    )
    assert merging.makes_rows == any(c.text.action is Action.UPDATE for c in of)
    whole = expected(table, source, on, of)
    found: list[tuple[ChangeKind, Row | None, bool]] = []
    try:
        start = 0
        while start < len(table):
            size = lot.randint(1, 4)
            batch = pa.Table.from_pylist(table[start : start + size], schema_to_arrow(TABLE))
            only = [name for name in TABLE.names if name in merging.columns]
            told = merging.judge(batch)
            # Of the columns alone that it asks for, it decides the same.
            again = merging.judge(batch.select(only)) if only else told
            assert again.kinds.equals(told.kinds)
            after = [] if told.after is None else told.after.to_pylist()
            assert told.of(UPDATE).true_count == len(after)
            lonely = told.lonely.to_pylist() if told.lonely is not None else []
            changed = iter(after)
            for kind, alone in zip(told.kinds.to_pylist(), lonely, strict=True):
                found.append((ChangeKind(kind), next(changed) if kind == UPDATE else None, alone))
            start += size
    except InvalidRequest as error:
        assert error.code == "multiple-matches" and whole is None
        return "several"
    assert whole is not None and found == whole
    met = [any(ON[on](row, s) for row in table) for s in source]
    inserts = [c for c in of if c.text.when is When.NOT_MATCHED]
    new = [
        (clause, clause.values(s))
        for s, is_met in zip(source, met, strict=True)
        if not is_met and (clause := first(inserts, s)) is not None and clause.values is not None
    ]
    wanted = [row for clause in inserts for own, row in new if own is clause]
    assert [row for part in merging.inserted() for row in part.to_pylist()] == wanted
    return "done"


@pytest.mark.parametrize(
    ("on", "given", "code"),
    [
        ("t.v < s.w", [], "needs-spark"), ("true", [], "needs-spark"), ("t.id = 1 and s.id = 1", [], "needs-spark"), ("t.id <=> s.id", [], "needs-spark"),
        ("cast(t.id as double) = s.w", [], "needs-spark"), ("t.id = nowhere", [], "unknown-column"), ("t.id = s.id", [ClauseText(When.MATCHED, Action.UPDATE, None, {"z": "1"})], "unknown-column"),
        ("t.id = s.id", [ClauseText(When.NOT_MATCHED, Action.INSERT, "t.id = 1", {"id": "1"})], "unknown-column"),
        ("t.id = s.id", [ClauseText(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, "s.w = 1")], "unknown-column"),
        ("t.id = s.id", [ClauseText(When.MATCHED, Action.UPDATE)], "unknown-column"), ("t.id = s.id", [ClauseText(When.MATCHED, Action.DELETE, "uuid() = 'x'")], "needs-spark"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(on: str, given: list[ClauseText], code: str) -> None:
    with pytest.raises(AlluviumError) as caught:
        Merging(TABLE, pa.Table.from_pylist([], schema_to_arrow(SOURCE)), SOURCE, "t", "s", on, given, "UTC")
    assert caught.value.code == code


def test_places_beside_a_dict() -> None:
    lot = random.Random(0)
    for _ in range(30):
        known: dict[int, set[int]] = {}
        places = Places()
        for _ in range(lot.randint(0, 4)):
            fresh = {
                (lot.randint(0, 3), lot.choice([0, 5, 2**33 + 1, lot.randint(0, 99)])) for _ in range(lot.randint(0, 6))
            }
            fresh = {(file, row) for file, row in fresh if row not in known.get(file, ())}
            for file, row in fresh:
                known.setdefault(file, set()).add(row)
            pairs = lot.sample(sorted(fresh), len(fresh))
            places.add(
                pa.chunked_array([[f for f, _ in pairs]], pa.int64()),
                pa.chunked_array([[r for _, r in pairs]], pa.int64()),
            )
        numbers = sorted(known)
        assert places.count == sum(map(len, known.values())) and places.numbers.to_pylist() == numbers
        assert places.counts.to_pylist() == [len(known[n]) for n in numbers]
        live = [lot.choice([None, len(known[n]), len(known[n]) + 1]) for n in numbers]
        assert places.emptied(pa.array(live, pa.int64())).to_pylist() == [
            own == len(known[n]) for n, own in zip(numbers, live, strict=True)
        ]
        from_masks = [sorted(decoded(mask)) for mask in places.masks.to_pylist()]
        assert from_masks == [sorted(known[n]) for n in numbers]


def decoded(mask: bytes) -> list[int]:
    return list(BitMap64.deserialize(mask))


def test_kinds_of_rows() -> None:
    kinds = [COPY, UPDATE, DELETE, UPDATE]
    judged = Judged(pa.array(np.array([int(k) for k in kinds], np.int8)))
    assert judged.of(UPDATE).to_pylist() == [False, True, False, True] and judged.of(UPDATE, DELETE).true_count == 3


@pytest.mark.parametrize("condition", [None, "s.w = 1", "s.w = 9"])
def test_several_matches_are_an_error_whatever_clauses_take(condition: str | None) -> None:
    """As in delta-spark, which does not ask whether a clause takes more than one of them, or any."""
    source = pa.Table.from_pylist([{"ID": 1, "w": w, "p": "a"} for w in (1, 2)], schema_to_arrow(SOURCE))
    clause = ClauseText(When.MATCHED, Action.UPDATE, condition, {"v": "s.w"})
    merging = Merging(TABLE, source, SOURCE, "t", "s", "t.id = s.ID", [clause], "UTC")
    with pytest.raises(InvalidRequest) as caught:
        merging.judge(pa.Table.from_pylist([{"id": 1, "v": 0, "p": "a"}], schema_to_arrow(TABLE)))
    assert caught.value.code == "multiple-matches"
