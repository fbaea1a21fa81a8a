"""Merges of random rows, beside an interpreter that takes them one at a time, as Java's merge functions do."""

from __future__ import annotations

import decimal
import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import KeyMerge, MergeRule, SortColumn
from alluvium.portable.merging.key_merge import PART, merge_rows

INSERT, BEFORE, AFTER, DELETE = 0, 1, 2, 3
RETRACTS = (BEFORE, DELETE)
Row = dict[str, Any]
TYPES = {
    "g": pa.int64(), "k": pa.int64(), "k2": pa.string(), "n": pa.int64(), "d": pa.int32(), "kind": pa.int8(),
    "level": pa.int32(), PART: pa.int32(), "x": pa.float64(), "lone": pa.bool_(),
}  # fmt: skip
NULLABLE = st.one_of(st.none(), st.integers(-3, 3))


class Column:
    """The accumulator of one column."""

    def __init__(self, rule: MergeRule) -> None:
        self.rule, self.value, self.seen = rule, None, False

    def add(self, new: Any) -> None:
        old, function = self.value, self.rule.function
        if function in ("last", "last_value", "primary-key"):
            self.value = new
        elif function in ("last_non_null", "last_non_null_value"):
            self.value = old if new is None else new
        elif function == "first_value":
            self.value, self.seen = old if self.seen else new, True
        elif function == "first_non_null_value":
            if new is not None and not self.seen:
                self.value, self.seen = new, True
        elif new is not None and old is None:
            self.value = new
        elif new is not None and old is not None:
            self.value = {
                "sum": lambda: old + new, "product": lambda: old * new, "min": lambda: min(old, new),
                "max": lambda: max(old, new), "bool_and": lambda: old and new, "bool_or": lambda: old or new,
                "listagg": lambda: f"{old},{new}",
            }[function]()  # fmt: skip

    def add_reversed(self, new: Any) -> None:
        """Of a row that is older: nothing of what is chosen by being the last changes, but where there is nothing."""
        if self.rule.function in ("last_value", "primary-key"):
            return
        if self.rule.function == "last_non_null_value":
            self.value = new if self.value is None else self.value
        elif self.rule.function == "listagg":
            old = self.value
            self.value = old if new is None else new if old is None else f"{new},{old}"
        else:
            self.add(new)

    def retract(self, new: Any) -> None:
        if self.rule.ignores_retract:
            return
        function = self.rule.function
        if function == "primary-key":
            self.value = new
        elif function == "last_value":
            self.value = None
        elif function == "last_non_null_value":
            self.value = None if new is not None else self.value
        elif function == "sum":
            if new is not None:
                self.value = -new if self.value is None else self.value - new
        elif function == "product":
            if new is not None and self.value is not None:
                if isinstance(new, int) and not new:
                    raise UnsupportedFeature("no", code="unsupported-retract")
                # Towards zero, as Java divides.
                self.value = int(Fraction(self.value, new)) if isinstance(new, int) else self.value / new
        else:
            raise UnsupportedFeature("no", code="unsupported-retract")


def aggregated(rows: list[Row], merge: KeyMerge) -> Row | None:
    columns = {rule.column: Column(rule) for rule in merge.rules}
    deleted = False
    for row in rows:
        deleted = False
        for name, column in columns.items():
            if row["kind"] == DELETE and merge.removes_on_delete:
                column.value, deleted = row[name], True
            elif row["kind"] in RETRACTS:
                column.retract(row[name])
            else:
                column.add(row[name])
    return None if deleted else {**rows[-1], **{name: column.value for name, column in columns.items()}}


def partly(rows: list[Row], merge: KeyMerge) -> Row | None:
    """`PartialUpdateMergeFunction`, a row at a time; sequence groups of one column each."""
    columns = {rule.column: Column(rule) for rule in merge.rules}
    groups = {rule.sequence[0] for rule in merge.rules if rule.sequence}
    newest: dict[str, Any] = dict.fromkeys(groups)
    deleted, inserted = False, False

    def is_newer(row: Row, group: str) -> bool:
        return row[group] is not None and (newest[group] is None or row[group] >= newest[group])

    def restart(row: Row) -> None:
        for name, column in columns.items():
            column.value = row[name]
        for group in groups:
            newest[group] = row[group] if row[group] is not None else newest[group]

    for number, row in enumerate(rows):
        deleted = False
        retracts = row["kind"] in RETRACTS
        if number == 0 and retracts:
            restart(row)
        if retracts:
            if merge.ignores_delete:
                continue
            if not groups:
                if not merge.removes_on_delete:
                    raise UnsupportedFeature("no", code="unsupported-retract")
                if row["kind"] == DELETE:
                    restart(row)
                    deleted = True
                continue
            newer = {group for group in groups if is_newer(row, group)}
            if row["kind"] == DELETE and newer & set(merge.removing_groups):
                restart(row)
                for group in newer:
                    newest[group] = row[group]
                deleted = True
                continue
            for name, column in columns.items():
                if not column.rule.sequence:
                    continue
                group = column.rule.sequence[0]
                if name == group:
                    column.value = row[name] if group in newer else column.value
                elif column.rule.function in ("last", "last_non_null"):
                    column.value = None if group in newer else column.value
                elif row[group] is not None:
                    column.retract(row[name])
            for group in newer:
                newest[group] = row[group]
            continue
        newer = {group for group in groups if is_newer(row, group)}
        inserted = True
        for name, column in columns.items():
            if not column.rule.sequence:
                column.add(row[name])
                continue
            group = column.rule.sequence[0]
            if group in newer:
                if column.rule.function in ("last", "last_non_null"):
                    column.value = row[name]
                else:
                    column.add(row[name])
            elif row[group] is not None and column.rule.function not in ("last", "last_non_null"):
                column.add_reversed(row[name])
        for group in newer:
            newest[group] = row[group]
    if deleted or not inserted:
        return None
    return {**rows[-1], **{name: column.value for name, column in columns.items()}}


def one(rows: list[Row], merge: KeyMerge, is_lone: bool) -> Row | None:
    """What becomes of the rows of a key, oldest first."""
    if merge.engine in ("deduplicate", "first-row") and merge.ignores_delete:
        rows = [row for row in rows if row["kind"] not in RETRACTS]
    if not rows:
        return None
    if merge.engine == "first-row":
        return next((row for row in rows if row["kind"] not in RETRACTS), None)
    if merge.engine == "deduplicate" or is_lone:
        return None if rows[-1]["kind"] in RETRACTS and not merge.keeps_deletes else rows[-1]
    return aggregated(rows, merge) if merge.engine == "aggregation" else partly(rows, merge)


def modelled(rows: list[Row], merge: KeyMerge) -> list[Row]:
    by_key: dict[Any, list[Row]] = {}
    for row in rows:
        by_key.setdefault((row["g"], row["k"], row["k2"]), []).append(row)
    found = []
    for own in by_key.values():

        def age(row: Row) -> Any:
            value = row["n"]
            return (value is not None, 0 if value is None else -value if merge.order[0].descending else value)

        ordered = sorted(own, key=age)
        if merge.level is not None:
            above = [row["level"] for row in ordered if row["level"] > 0]
            ordered = [row for row in ordered if row["level"] <= 0 or row["level"] == min(above)]
        made = one(ordered, merge, len(own) == 1 and merge.lone is None)
        found += [] if made is None else [made]
    return found


def shown(rows: list[Row], names: list[str]) -> list[str]:
    # A zero of decimals has no sign.
    return sorted(repr([row[n] + 0 if isinstance(row[n], decimal.Decimal) else row[n] for n in names]) for row in rows)


def compare(rows: list[Row], merge: KeyMerge, kinds: dict[str, pa.DataType]) -> None:
    names = [*TYPES, *kinds]
    types = {**TYPES, **kinds}
    table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
    needed = ["k2", "n", *kinds]
    try:
        wanted: list[Row] | None = modelled(rows, merge)
    except UnsupportedFeature:
        wanted = None
    if wanted is None:
        with pytest.raises(UnsupportedFeature) as caught:
            merge_rows(table, merge, needed, {})
        assert caught.value.code == "unsupported-retract"
        return
    found = merge_rows(table, merge, needed, {})
    assert found.column_names == needed
    assert shown(found.to_pylist(), needed) == shown(wanted, needed)
    assert merge_rows(table.slice(0, 0), merge, needed, {}).num_rows == 0


def rows_of(columns: dict[str, st.SearchStrategy[Any]], kinds: st.SearchStrategy[int]) -> st.SearchStrategy[list[Row]]:
    row = st.fixed_dictionaries(
        {"g": st.integers(0, 1), "k": st.integers(0, 1), "k2": st.sampled_from(["a", None]), "n": NULLABLE,
         "kind": kinds, "level": st.integers(0, 2), PART: st.just(0), "d": st.just(0), "x": st.just(0.0), "lone": st.just(False),
         **columns}
    )  # fmt: skip
    return st.lists(row, max_size=12)


ANY_KIND = st.sampled_from([INSERT, INSERT, AFTER, BEFORE, DELETE])
LONE = st.sampled_from([None, "lone"])
ORDERS = st.sampled_from([(SortColumn("n"),), (SortColumn("n", True),)])


@settings(max_examples=40, derandomize=True)
@given(
    rows_of({"v": NULLABLE}, ANY_KIND), ORDERS, st.sampled_from(["deduplicate", "first-row"]), st.booleans(),
    st.booleans(), st.sampled_from([None, "level"]),
)  # fmt: skip
def test_rows_that_are_chosen(
    rows: list[Row], order: tuple[SortColumn, ...], engine: str, ignores: bool, keeps: bool, level: str | None
) -> None:
    merge = KeyMerge("g", ("k", "k2"), order, "kind", engine, ignores_delete=ignores, level=None if ignores else level,
                     keeps_deletes=keeps and engine == "deduplicate")  # fmt: skip
    compare(rows, merge, {"v": pa.int64()})


FUNCTIONS = ["sum", "product", "min", "max", "last_value", "last_non_null_value", "first_value", "first_non_null_value"]


@settings(max_examples=50, derandomize=True)
@given(
    rows_of(dict.fromkeys(FUNCTIONS, NULLABLE), st.sampled_from([INSERT, INSERT, AFTER])), ORDERS,
    st.sampled_from([pa.int64(), pa.float64(), pa.decimal128(9, 0)]), st.sampled_from([None, "level"]),
)  # fmt: skip
def test_aggregates_of_numbers(
    rows: list[Row], order: tuple[SortColumn, ...], kind: pa.DataType, level: str | None
) -> None:
    rules = tuple(MergeRule(name, name) for name in FUNCTIONS)
    if pa.types.is_decimal(kind):
        rows = [
            {n: decimal.Decimal(v) if n in FUNCTIONS and v is not None else v for n, v in row.items()} for row in rows
        ]
    if pa.types.is_floating(kind):
        rows = [{n: float(v) if n in FUNCTIONS and v is not None else v for n, v in row.items()} for row in rows]
    if kind == pa.float64():
        rules = tuple(rule for rule in rules if rule.function != "product")  # -0.0 of zero times less
    compare(rows, KeyMerge("g", ("k", "k2"), order, "kind", "aggregation", rules, level=level),
            {rule.column: kind for rule in rules})  # fmt: skip


@settings(max_examples=50, derandomize=True)
@given(
    rows_of({"sum": NULLABLE, "last_value": NULLABLE, "last_non_null_value": NULLABLE, "max": NULLABLE}, ANY_KIND),
    st.booleans(), st.booleans(), LONE,
)  # fmt: skip
def test_aggregates_take_rows_back(rows: list[Row], removes: bool, max_ignores: bool, lone: str | None) -> None:
    rules = tuple(
        MergeRule(name, name, ignores_retract=max_ignores and name == "max")
        for name in ("sum", "last_value", "last_non_null_value", "max")
    )
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", rules, removes_on_delete=removes,
                     lone=lone)  # fmt: skip
    compare(rows, merge, {rule.column: pa.int64() for rule in rules})


@settings(max_examples=60, derandomize=True)
@given(
    rows_of({"product": st.sampled_from([None, -7, -2, -1, 1, 2, 3, 7, 0]), "max": NULLABLE}, ANY_KIND), st.booleans()
)
def test_products_take_rows_back(rows: list[Row], is_floating: bool) -> None:
    if is_floating:
        # Powers of two, which nothing rounds.
        rows = [{**row, "product": None if row["product"] is None else 2.0 ** row["product"]} for row in rows]
    rules = (MergeRule("product", "product"), MergeRule("max", "max", ignores_retract=True))
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", rules)
    compare(rows, merge, {"product": pa.float64() if is_floating else pa.int64(), "max": pa.int64()})


TEXTS = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
FLAGS = st.one_of(st.none(), st.booleans())


@settings(max_examples=40, derandomize=True)
@given(rows_of({"listagg": TEXTS, "bool_and": FLAGS, "bool_or": FLAGS, "min": TEXTS, "max": FLAGS}, st.just(INSERT)))
def test_aggregates_of_texts_and_flags(rows: list[Row]) -> None:
    kinds = {
        "listagg": pa.string(),
        "bool_and": pa.bool_(),
        "bool_or": pa.bool_(),
        "min": pa.string(),
        "max": pa.bool_(),
    }
    rules = tuple(MergeRule(name, name) for name in kinds)
    compare(rows, KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", rules), kinds)


@settings(max_examples=50, derandomize=True)
@given(rows_of({"a": NULLABLE, "b": TEXTS, "s": NULLABLE}, ANY_KIND), st.booleans(), st.booleans(), LONE)
def test_partial_updates(rows: list[Row], ignores: bool, removes: bool, lone: str | None) -> None:
    rules = (MergeRule("a", "last_non_null"), MergeRule("b", "last_non_null"), MergeRule("s", "sum"))
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "partial-update", rules,
                     ignores_delete=ignores, removes_on_delete=removes, lone=lone)  # fmt: skip
    compare(rows, merge, {"a": pa.int64(), "b": pa.string(), "s": pa.int64()})


GROUPED = {"a": NULLABLE, "t": NULLABLE, "ga": NULLABLE, "b": TEXTS, "l": TEXTS, "gb": NULLABLE, "free": NULLABLE}


@settings(max_examples=70, derandomize=True)
@given(rows_of(GROUPED, ANY_KIND), st.booleans(), st.sampled_from([(), ("gb",), ("ga", "gb")]), LONE)
def test_partial_updates_by_sequence_groups(
    rows: list[Row], ignores: bool, removing: tuple[str, ...], lone: str | None
) -> None:
    rules = (
        MergeRule("a", "last", sequence=("ga",)), MergeRule("ga", "last", sequence=("ga",)),
        MergeRule("t", "sum", sequence=("ga",)), MergeRule("b", "last", sequence=("gb",)),
        MergeRule("l", "last_non_null_value", sequence=("gb",)), MergeRule("gb", "last", sequence=("gb",)),
        MergeRule("free", "last_non_null"),
    )  # fmt: skip
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "partial-update", rules,
                     ignores_delete=ignores, removing_groups=removing, lone=lone)  # fmt: skip
    kinds = {n: pa.string() if n in ("b", "l") else pa.int64() for n in GROUPED}
    compare(rows, merge, kinds)


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 2), (37, 2), (18, 2), (9, 2)])
def test_products_of_decimals_of_every_width(precision: int, scale: int) -> None:
    """Rounded to the scale of the column; what its digits do not hold is null."""
    kind = pa.decimal128(precision, scale)
    largest = decimal.Decimal(10) ** (min(precision, 27) - scale) - 1
    for values, wanted in (
        (("1.5", "2.5"), "4" if scale == 0 else "3.75"), (("-3", "7"), "-21"), (("0", "5"), "0"), ((str(largest), "1"), str(largest)),
        ((str(largest), str(largest)), None if precision < 38 and precision <= 27 else "?"),
    ):  # fmt: skip
        if scale == 0 and values[0] == "1.5":
            continue
        rows = [{"g": 0, "k": 1, "k2": "a", "n": n, "kind": 0, "p": decimal.Decimal(v)} for n, v in enumerate(values)]
        types = {**TYPES, "p": kind}
        table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in types})
        merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", (MergeRule("p", "product"),))
        if wanted == "?":
            continue
        found = merge_rows(table, merge, ["p"], {})["p"].to_pylist()
        assert found == [None if wanted is None else decimal.Decimal(wanted)]


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 37), (37, 2), (19, 2), (18, 2), (18, 0), (5, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_decimals_of_every_width(precision: int, scale: int, seed: int) -> None:
    """A sum of more digits than the column has is null, and the next row begins anew; of at most 18 digits Java adds whole
    numbers of 64 bits, and does not look.
    """
    lot, kind, most = random.Random(f"{precision} {scale} {seed}"), pa.decimal128(precision, scale), 10**precision - 1
    rows, states = [], []
    for key in range(12):
        total: int | None = None
        for n in range(lot.randint(2, 4)):
            value = lot.choice([None, most, -most, most // 2, -(most // 3), 1, 0, lot.randint(-most, most)])
            back = lot.random() < 0.3
            exact = None if value is None else decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=40))
            rows.append({"g": 0, "k": key, "k2": "a", "n": n, "kind": DELETE if back else INSERT, "s": exact})
            if value is not None:
                total = (0 if total is None else total) + (-value if back else value)
                if precision > 18:
                    total = total if abs(total) <= most else None
                else:
                    total = (total + 2**63) % 2**64 - 2**63
        states.append(total)
    types = {**TYPES, "s": kind}
    table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in types})
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", (MergeRule("s", "sum"),))
    found = merge_rows(table, merge, ["k", "s"], {}).sort_by("k")["s"].combine_chunks()
    numbers = [
        None if value is None else int(value.scaleb(scale, decimal.Context(prec=60))) for value in found.to_pylist()
    ]
    assert numbers == states


LISTS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=3))
MAPS = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 2)), max_size=2).map(
        lambda d: list(d.items())
    ),
)


def collected(rows: list[Row], distinct: bool) -> Any:
    """Lists are joined, and each value taken back removes the first that is equal."""
    state: list[Any] | None = None
    for row in rows:
        value = row["c"]
        if row["kind"] in RETRACTS:
            for one in value or () if state is not None else ():
                if one in state:
                    state.remove(one)
        elif state is not None or value is not None:
            state = [*(state or ()), *(value or ())]
            state = list(dict.fromkeys(state)) if distinct else state
    return state


def joined(rows: list[Row]) -> Any:
    """Maps: the later value of a key; a key taken back is gone."""
    state: dict[str, Any] | None = None
    for row in rows:
        if row["m"] is None:
            continue
        if row["kind"] in RETRACTS:
            state = None if state is None else {k: v for k, v in state.items() if k not in dict(row["m"])}
        else:
            state = {**(state or {}), **dict(row["m"])}
    return None if state is None else list(state.items())


@settings(max_examples=50, derandomize=True)
@given(rows_of({"c": LISTS, "m": MAPS}, ANY_KIND), st.booleans())
def test_collections_take_rows_back(rows: list[Row], distinct: bool) -> None:
    kinds = {"c": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}
    rules = (MergeRule("c", "collect", (("distinct", str(distinct).lower()),)), MergeRule("m", "merge_map"))
    merge = KeyMerge("g", ("k", "k2"), (SortColumn("n"),), "kind", "aggregation", rules)
    types = {**TYPES, **kinds}
    table = pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})
    by_key: dict[Any, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["n"] is not None, row["n"] or 0)):
        by_key.setdefault((row["g"], row["k"], row["k2"]), []).append(row)
    wanted = []
    for own in by_key.values():
        if len(own) == 1:
            wanted += [{"c": own[0]["c"], "m": own[0]["m"]}] if own[0]["kind"] not in RETRACTS else []
        else:
            wanted.append({"c": collected(own, distinct), "m": joined(own)})
    found = merge_rows(table, merge, ["c", "m"], {}).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
