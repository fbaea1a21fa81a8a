"""Merging rows by key: what each engine makes of rows in order of age."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap
from sketch_tables import library, theta_sketch

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.paimon.schema.merge_checks import AGGREGATORS
from alluvium.plan.scan import KeyMerge, MergeRule, SortColumn
from alluvium.portable.merging.key_merge import PART, merge_rows

INSERT, BEFORE, AFTER, DELETE = 0, 1, 2, 3
MERGE = KeyMerge("g", ("k",), (SortColumn("seq"),), "kind", "deduplicate")


def merged(rows: list[dict[str, Any]], merge: KeyMerge, kinds: dict[str, pa.DataType] | None = None) -> list[Any]:
    """Rows are numbered in the order given; `g` is 0 and `kind` an insert unless a row says otherwise."""
    filled = [{"g": 0, "kind": INSERT, PART: 0, "seq": number, **row} for number, row in enumerate(rows)]
    names = list(dict.fromkeys(name for row in filled for name in row))
    known = {"g": pa.int64(), "kind": pa.int8(), PART: pa.int32(), "seq": pa.int64(), **(kinds or {})}
    table = pa.table({name: pa.array([row.get(name) for row in filled], known.get(name)) for name in names})
    needed = [name for name in names if name not in ("g", "kind", PART, "seq")]
    result = merge_rows(table, merge, needed, {name: [True] for name in names})
    return sorted((tuple(row.values()) for row in result.to_pylist()), key=repr)


def rule(column: str, function: str, *sequence: str, ignores: bool = False, **parameters: str) -> MergeRule:
    return MergeRule(column, function, tuple(parameters.items()), ignores, sequence)


def aggregation(*rules: MergeRule, **more: Any) -> KeyMerge:
    return replace(MERGE, engine="aggregation", rules=rules, **more)


def partial(*rules: MergeRule, **more: Any) -> KeyMerge:
    return replace(MERGE, engine="partial-update", rules=rules, **more)


def test_the_last_row_of_a_key_wins() -> None:
    rows = [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 1, "v": "c"}]
    assert merged(rows, MERGE) == [(1, "c"), (2, "b")]


def test_deletions_are_kept_by_any_engine() -> None:
    """As by who merges rows that are to be merged again."""
    rows = [{"k": 1, "v": 1}, {"k": 1, "v": None, "kind": DELETE}, {"k": 2, "v": 3}]
    removing = partial(removes_on_delete=True)
    assert merged(rows, removing) == [(2, 3)]
    assert [row[0] for row in merged(rows, replace(removing, keeps_deletes=True))] == [1, 2]


def test_groups_are_apart() -> None:
    assert merged([{"k": 1, "v": "a"}, {"k": 1, "v": "b", "g": 1}], MERGE) == [(1, "a"), (1, "b")]


def test_a_key_whose_last_row_is_deleted_is_gone() -> None:
    rows = [{"k": 1, "v": "a"}, {"k": 1, "v": "a", "kind": DELETE}]
    assert merged(rows, MERGE) == []
    assert merged(rows, replace(MERGE, ignores_delete=True)) == [(1, "a")]
    assert merged(rows, replace(MERGE, keeps_deletes=True)) == [(1, "a")]


def test_null_is_the_oldest_in_either_direction() -> None:
    rows = [{"k": 1, "s": 5, "v": "five"}, {"k": 1, "s": 3, "v": "three"}, {"k": 1, "s": None, "v": "null"}]
    assert merged(rows, replace(MERGE, order=(SortColumn("s"), SortColumn("seq")))) == [(1, 5, "five")]
    assert merged(rows, replace(MERGE, order=(SortColumn("s", True), SortColumn("seq")))) == [(1, 3, "three")]


def test_the_first_insert_wins() -> None:
    rows = [{"k": 1, "v": "x", "kind": DELETE}, {"k": 1, "v": "a"}, {"k": 1, "v": "b"}]
    assert merged(rows, replace(MERGE, engine="first-row")) == [(1, "a")]


def test_a_patch_overwrites_with_nulls_too() -> None:
    table = pa.table({"g": [0, 0], "k": [1, 1], "seq": [1, 2], "v": ["a", None], "w": ["x", "y"],
                      PART: pa.array([0, 1], pa.int32())})  # fmt: skip
    merge = KeyMerge("g", ("k",), (SortColumn("seq"),), None, "patch")
    result = merge_rows(table, merge, ["v", "w"], {"v": [True, True], "w": [True, False]})
    assert result.to_pylist() == [{"v": None, "w": "x"}]


def test_partial_updates_keep_what_is_not_null() -> None:
    merge = partial(rule("a", "last_non_null"), rule("b", "last_non_null"))
    rows = [{"k": 1, "a": 1, "b": None}, {"k": 1, "a": None, "b": "x"}, {"k": 2, "a": None, "b": None}]
    assert merged(rows, merge) == [(1, 1, "x"), (2, None, None)]


def test_partial_updates_do_not_take_back_unless_told_how() -> None:
    rows = [{"k": 1, "a": 1}, {"k": 1, "a": None, "kind": DELETE}, {"k": 1, "a": None}]
    with pytest.raises(UnsupportedFeature) as caught:
        merged(rows, partial(rule("a", "last_non_null")))
    assert caught.value.code == "unsupported-retract"
    assert merged(rows, partial(rule("a", "last_non_null"), removes_on_delete=True)) == [(1, None)]
    assert merged(rows[:2], partial(rule("a", "last_non_null"), removes_on_delete=True)) == []


def test_sequence_groups_go_together() -> None:
    merge = partial(rule("a", "last", "ga"), rule("ga", "last", "ga"), rule("b", "last_non_null"))
    rows = [
        {"k": 1, "a": "new", "ga": 5, "b": 1},
        {"k": 1, "a": "old", "ga": 3, "b": 2},
        {"k": 1, "a": "none", "ga": None, "b": None},
    ]
    assert merged(rows, merge) == [(1, "new", 5, 2)]
    assert merged([*rows, {"k": 1, "a": None, "ga": 5, "b": None}], merge) == [(1, None, 5, 2)]
    assert merged([*rows, {"k": 1, "a": "x", "ga": 6, "b": None, "kind": DELETE}], merge) == [(1, None, 6, 2)]


def test_a_group_may_remove_the_row() -> None:
    rules = (rule("a", "last", "ga"), rule("ga", "last", "ga"), rule("b", "last", "gb"), rule("gb", "last", "gb"))
    merge = partial(*rules, removing_groups=("gb",))
    rows = [
        {"k": 1, "a": 1, "ga": 1, "b": 1, "gb": 5},
        {"k": 1, "a": 2, "ga": 2, "b": 2, "gb": 4, "kind": DELETE},
    ]
    assert merged(rows, merge) == [(1, None, 2, 1, 5)]
    rows.append({"k": 1, "a": None, "ga": None, "b": None, "gb": 6, "kind": DELETE})
    assert merged(rows, merge) == []


def test_aggregates() -> None:
    rules = (
        rule("s", "sum"), rule("p", "product"), rule("lo", "min"), rule("hi", "max"), rule("last", "last_value"),
        rule("lnn", "last_non_null_value"), rule("first", "first_value"), rule("fnn", "first_non_null_value"),
        rule("all", "bool_and"), rule("any", "bool_or"), rule("list", "listagg"),
    )  # fmt: skip
    columns = {
        "s": [1, None, 2], "p": [2, 3, None], "lo": ["b", "a", None], "hi": [1.5, None, 2.5], "last": [1, 2, None],
        "lnn": [1, 2, None], "first": [None, 1, 2], "fnn": [None, 1, 2], "all": [True, None, False],
        "any": [False, None, True], "list": ["x", None, "y"],
    }  # fmt: skip
    rows = [{"k": 1, **{name: values[i] for name, values in columns.items()}} for i in range(3)]
    assert merged(rows, aggregation(*rules)) == [(1, 3, 6, "a", 2.5, None, 2, None, 1, False, True, "x,y")]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("values", [(-0.0, 0.0), (0.0, -0.0), (-0.0, 0.0, None), (None, 0.0, -0.0)])
def test_zero_is_greater_than_its_negative(kind: pa.DataType, values: tuple[float | None, ...]) -> None:
    """As in Java, whichever came first."""
    rows = [{"k": 1, "lo": value, "hi": value} for value in values]
    merge = aggregation(rule("lo", "min"), rule("hi", "max"))
    assert repr(merged(rows, merge, {"lo": kind, "hi": kind})) == "[(1, -0.0, 0.0)]"


def test_nan_is_greater_than_all() -> None:
    rows = [{"k": 1, "lo": value, "hi": value} for value in (1.0, float("nan"), float("inf"))]
    assert repr(merged(rows, aggregation(rule("lo", "min"), rule("hi", "max")))) == "[(1, 1.0, nan)]"


def test_maps_are_joined_and_the_later_value_counts() -> None:
    rows = [{"k": 1, "m": [("a", 1), ("b", 2)]}, {"k": 1, "m": [("c", 3), ("a", None)]}, {"k": 1}]
    kinds = {"m": pa.map_(pa.string(), pa.int64())}
    assert merged(rows, aggregation(rule("m", "merge_map")), kinds) == [(1, [("a", None), ("b", 2), ("c", 3)])]


def test_aggregates_take_back() -> None:
    rows = [{"k": 1, "s": 5, "m": [("a", 1), ("b", 2)]}, {"k": 1, "s": 7, "m": [("a", 1)], "kind": BEFORE}]
    kinds = {"m": pa.map_(pa.string(), pa.int64())}
    assert merged(rows, aggregation(rule("s", "sum"), rule("m", "merge_map")), kinds) == [(1, -2, [("b", 2)])]
    with pytest.raises(UnsupportedFeature):
        merged(rows, aggregation(rule("s", "max")), kinds)
    assert merged(rows, aggregation(rule("s", "max", ignores=True), rule("m", "merge_map")), kinds)[0][1] == 5


def test_a_single_row_is_seen_by_no_function() -> None:
    merge = aggregation(rule("s", "sum"))
    assert merged([{"k": 1, "s": 5, "kind": DELETE}], merge) == []
    # "All keys retracted still yield a row (sum 0)".
    assert merged([{"k": 1, "s": 5}, {"k": 1, "s": 5, "kind": DELETE}], merge) == [(1, 0)]
    removing = replace(merge, removes_on_delete=True)
    assert merged([{"k": 1, "s": 5}, {"k": 1, "s": 5, "kind": DELETE}], removing) == []


def test_functions_see_a_row_that_is_alone_where_a_column_says_so() -> None:
    """Compactions that look keys up send the row of every key through the merge."""
    sums = aggregation(rule("s", "sum"), rule("c", "collect", distinct="true"), lone="lone")
    kinds = {"s": pa.int64(), "c": pa.list_(pa.int64()), "g1": pa.int64(), "v": pa.int64(), "level": pa.int64()}
    twice = {"s": 5, "c": [2, 2]}
    rows = [{"k": 1, **twice, "lone": False, "kind": DELETE}, {"k": 2, **twice, "lone": False},
            {"k": 3, **twice, "lone": True}, {"k": 4, **twice, "lone": True, "kind": DELETE}]  # fmt: skip
    assert merged(rows, sums, kinds) == [(1, -5, None, False), (2, 5, [2], False), (3, 5, [2, 2], True)]
    grouped = partial(rule("g1", "last", "g1"), rule("v", "last", "g1"), lone="lone")
    late = {"k": 1, "g1": None, "v": 5}
    assert merged([{**late, "lone": False}], grouped, kinds) == [(1, None, None, False)]
    assert merged([{**late, "lone": True}], grouped, kinds) == [(1, None, 5, True)]


def test_a_row_of_a_key_of_two_levels_is_not_alone() -> None:
    """`ReducerMergeFunctionWrapper` counts what `LookupMergeFunction` leaves out."""
    merge = replace(partial(rule("g1", "last", "g1"), rule("v", "last", "g1")), level="level")
    kinds = {"g1": pa.int64(), "v": pa.int64(), "level": pa.int64()}
    row = {"k": 1, "g1": None, "v": 5, "level": 3}
    assert merged([row], merge, kinds) == [(1, None, 5, 3)]
    assert merged([{**row, "v": 4, "level": 5}, row], merge, kinds) == [(1, None, None, 3)]


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_a_removed_row_leaves_its_values_and_what_first_values_know(engine: str) -> None:
    """Java puts the deleted row's values into the row, past the functions, which know as before whether they began."""
    rules = (rule("f", "first_value", "ga"), rule("n", "first_non_null_value", "ga"), rule("ga", "last", "ga"))
    merge = partial(*rules, removing_groups=("ga",))
    if engine == "aggregation":
        merge = aggregation(rule("f", "first_value"), rule("n", "first_non_null_value"), removes_on_delete=True)
    kinds = {"f": pa.int64(), "n": pa.int64(), "ga": pa.int64()}

    def row(value: int | None, kind: int = INSERT) -> dict[str, Any]:
        return {"k": 1, "f": value, "n": value, "ga": 1, "kind": kind}

    def values(*rows: dict[str, Any]) -> list[Any]:
        return [r[1:3] for r in merged(list(rows), merge, kinds)]

    assert values(row(10), row(10, DELETE), row(30)) == [(10, 10)]
    assert values(row(10, DELETE), row(30)) == [(30, 30)]
    assert values(row(10), row(20, DELETE), row(30)) == [(20, 20)]
    assert values(row(10, DELETE), row(None)) == [(None, 10)]
    assert values(row(None), row(20, DELETE), row(None), row(40)) == [(20, 40)]


def test_older_rows_of_a_group_come_first() -> None:
    """`aggReversed` exchanges the arguments of `agg`, which knows only whether it was called before."""
    merge = partial(rule("f", "first_value", "ga"), rule("n", "first_non_null_value", "ga"), rule("ga", "last", "ga"))
    rows = [{"k": 1, "f": 1, "n": 1, "ga": 5}, {"k": 1, "f": 2, "n": 2, "ga": 4}]
    assert merged(rows, merge) == [(1, 2, 2, 5)]
    # A key that begins with a row taken back has values that no function saw: they stay for the first older row.
    rows = [
        {"k": 1, "f": 1, "n": 1, "ga": 5, "kind": DELETE},
        {"k": 1, "f": 2, "n": 2, "ga": 4},
        {"k": 1, "f": 3, "n": 3, "ga": 3},
    ]
    ignoring = replace(merge, ignores_delete=True)
    assert merged(rows[:2], ignoring) == [(1, 1, 1, 5)]
    assert merged(rows, ignoring) == [(1, 3, 3, 5)]


@pytest.mark.parametrize("function", ["max", "bool_or", "listagg", "first_value", "primary-key", "rbm32"])
def test_what_cannot_take_back_is_not_asked_to(function: str) -> None:
    """A row that is taken back in one group is no matter of another, whose sequence it leaves null."""
    kind = {"bool_or": pa.bool_(), "rbm32": pa.binary()}.get(function, pa.string())
    value = {"bool_or": True, "rbm32": BitMap([1]).serialize()}.get(function, "x")
    rules = (rule("v", function, "ga"), rule("ga", "last", "ga"), rule("w", "last", "h"), rule("h", "last", "h"))
    rows = [
        {"k": 1, "v": value, "ga": 1, "w": 1, "h": 1},
        {"k": 1, "v": value, "ga": None, "w": 1, "h": 2, "kind": DELETE},
    ]
    assert merged(rows, partial(*rules), {"v": kind}) == [(1, value, 1, None, 2)]


def test_an_ignored_deletion_leaves_its_values_where_updates_are_partial() -> None:
    rows = [
        {"k": 1, "a": 1, "b": 1, "kind": DELETE},
        {"k": 1, "a": None, "b": 2},
        {"k": 1, "a": 9, "b": 9, "kind": DELETE},
    ]
    merge = partial(rule("a", "last_non_null"), rule("b", "last_non_null"), ignores_delete=True)
    assert merged(rows, merge) == [(1, 1, 2)]
    assert merged([rows[0], rows[2]], merge) == []
    assert merged(rows, replace(MERGE, ignores_delete=True)) == [(1, None, 2)]


def test_whole_numbers_wrap_and_decimals_are_exact() -> None:
    rows = [{"k": 1, "i": 2**31 - 1, "d": Decimal("0.10")}, {"k": 1, "i": 1, "d": Decimal("0.20")}]
    kinds = {"i": pa.int32(), "d": pa.decimal128(20, 2)}
    assert merged(rows, aggregation(rule("i", "sum"), rule("d", "sum")), kinds) == [(1, -(2**31), Decimal("0.30"))]
    rows[1]["d"] = Decimal("999999999999999999.99")
    assert merged(rows, aggregation(rule("i", "sum"), rule("d", "sum")), kinds) == [(1, -(2**31), None)]


@pytest.mark.parametrize(("function", "expected"), [("sum", "3.70"), ("product", "3.00")])
def test_older_decimals_of_a_group_count_as_well(function: str, expected: str) -> None:
    merge = partial(rule("d", function, "ga"), rule("ga", "last", "ga"))
    rows = [{"k": 1, "d": Decimal("1.20"), "ga": 5}, {"k": 1, "d": Decimal("2.50"), "ga": 4}]
    assert merged(rows, merge, {"d": pa.decimal128(20, 2)}) == [(1, Decimal(expected), 5)]
    taken_back = [*rows, {"k": 1, "d": Decimal("0.70"), "ga": 6, "kind": BEFORE}]
    if function == "sum":
        assert merged(taken_back, merge, {"d": pa.decimal128(20, 2)}) == [(1, Decimal("3.00"), 6)]


def test_lists_and_rows_are_collected() -> None:
    kinds = {"c": pa.list_(pa.int64()), "n": pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))}
    merge = aggregation(rule("c", "collect", distinct="true"), rule("n", "nested_update", **{"nested-key": "x"}))
    rows = [
        {"k": 1, "c": [1, 2], "n": [{"x": 1, "y": "a"}]},
        {"k": 1, "c": [2, 3], "n": [{"x": 1, "y": "b"}, {"x": 2, "y": "c"}]},
    ]
    assert merged(rows, merge, kinds) == [(1, [1, 2, 3], [{"x": 1, "y": "b"}, {"x": 2, "y": "c"}])]


def test_many_keys_of_different_lengths() -> None:
    rows = [{"k": k, "s": 1} for n in range(7) for k in range(n, 50)]
    assert merged(rows, aggregation(rule("s", "sum"))) == sorted(((k, min(k + 1, 7)) for k in range(50)), key=repr)


def test_texts_that_are_empty_add_nothing() -> None:
    """`FieldListaggAgg`: neither the text nor a delimiter."""
    rows = [{"k": 1, "s": text} for text in ("", "a", "", "b", None, "")] + [{"k": 2, "s": ""}, {"k": 2, "s": ""}]
    assert merged(rows, aggregation(rule("s", "listagg"))) == [(1, "a,b"), (2, "")]


TIMED = pa.map_(pa.string(), pa.struct([("v", pa.int64()), ("t", pa.string())]))


def timed(**rows: tuple[int | None, str | None] | None) -> list[tuple[str, dict[str, Any] | None]]:
    return [(key, None if row is None else {"v": row[0], "t": row[1]}) for key, row in rows.items()]


def test_maps_keep_the_newest_row_of_a_key() -> None:
    """`FieldMergeMapWithKeyTimeAgg`: by a text in the rows, the last field unless `ts-field` says which."""
    merge = aggregation(rule("m", "merge_map_with_keytime"))
    rows = [
        {"k": 1, "m": timed(a=(1, "2024-01-02"), b=(1, None), c=(1, "2024-01-01"), d=(1, "x"))},
        {"k": 1, "m": timed(a=(2, "2024-01-01"), b=(2, "2023"), c=None, d=(2, None), e=(2, "x"), f=None)},
        {"k": 1, "m": None},
    ]
    expected = timed(a=(1, "2024-01-02"), b=(2, "2023"), d=(1, "x"), e=(2, "x"))
    assert merged(rows, merge, {"m": TIMED}) == [(1, expected)]
    # Equal times: what is there stays. Texts are compared by UTF-16, where what is beyond U+FFFF comes earlier.
    rows = [{"k": 1, "m": timed(a=(1, "t"), b=(1, "\U00010000"))}, {"k": 1, "m": timed(a=(2, "t"), b=(2, "\uff00"))}]
    assert merged(rows, merge, {"m": TIMED}) == [(1, timed(a=(1, "t"), b=(2, "\uff00")))]
    with pytest.raises(UnsupportedFeature) as caught:
        merged([rows[0], {**rows[1], "kind": BEFORE}], merge, {"m": TIMED})
    assert (caught.value.code, caught.value.column) == ("unsupported-retract", "m")
    for field in ("v", "no"):
        with pytest.raises(CorruptTable) as wrong:
            merged(rows, aggregation(rule("m", "merge_map_with_keytime", **{"ts-field": field})), {"m": TIMED})
        assert (wrong.value.code, wrong.value.column) == ("invalid-options", "m")


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch", "rbm32", "rbm64"])
def test_null_and_nothing_make_no_sketch_and_nobody_looks_at_a_single_one(function: str) -> None:
    if function.endswith("_sketch"):
        library()
    rows = [{"k": 1, "s": None}, {"k": 1, "s": b"any"}, {"k": 1, "s": None}, {"k": 2, "s": None}, {"k": 2, "s": None}]
    assert merged(rows, aggregation(rule("s", function)), {"s": pa.binary()}) == [(1, b"any"), (2, None)]
    with pytest.raises(CorruptTable) as damaged:
        merged([{"k": 1, "s": b"any"}, {"k": 1, "s": b"any"}], aggregation(rule("s", function)), {"s": pa.binary()})
    assert (damaged.value.code[:8], damaged.value.column) == ("damaged-", "s")
    with pytest.raises(UnsupportedFeature) as caught:
        merged([rows[1], {**rows[1], "kind": DELETE}], aggregation(rule("s", function)), {"s": pa.binary()})
    assert (caught.value.code, caught.value.column) == ("unsupported-retract", "s")
    ignoring = aggregation(rule("s", function, ignores=True))
    assert merged([rows[1], {**rows[1], "kind": DELETE}], ignoring, {"s": pa.binary()}) == [(1, b"any")]


def test_sketches_are_united() -> None:
    rows = [
        {"k": 1, "s": theta_sketch([1, 2])},
        {"k": 1, "s": theta_sketch([2, 3])},
        {"k": 1, "s": theta_sketch([3, 4])},
    ]
    ((_, united),) = merged(rows, aggregation(rule("s", "theta_sketch")), {"s": pa.binary()})
    assert library().compact_theta_sketch.deserialize(united).get_estimate() == 4
    bitmaps = [{"k": 1, "s": BitMap(numbers).serialize()} for numbers in ([1, 2], range(2, 9000), [70_000])]
    ((_, united),) = merged(bitmaps, aggregation(rule("s", "rbm32")), {"s": pa.binary()})
    assert BitMap.deserialize(united) == BitMap([*range(1, 9000), 70_000])


def test_older_rows_of_a_group_come_before_what_is_there_but_in_a_collection() -> None:
    """`aggReversed`, which `FieldCollectAgg` overrides."""
    functions = {"l": "listagg", "c": "collect"}
    merge = partial(*(rule(name, function, "n") for name, function in functions.items()), rule("n", "last", "n"))
    rows = [{"k": 1, "l": "new", "c": [1], "n": 5}, {"k": 1, "l": "old", "c": [2], "n": 3}]
    assert merged(rows, merge, {"c": pa.list_(pa.int64())}) == [(1, "old,new", [1, 2], 5)]


@pytest.mark.parametrize("function", sorted(AGGREGATORS - {"first_not_null_value"}))
def test_every_function_is_known(function: str) -> None:
    """`first_not_null_value` is an old name, and another by the time that rows are merged."""
    nested = pa.struct([("x", pa.int64()), ("t", pa.string())])
    kinds = [pa.int64(), pa.bool_(), pa.string(), pa.binary(), pa.list_(nested), pa.map_(pa.string(), nested)]
    parameters = {"nested-key": "x"} if function == "nested_partial_update" else {}
    made = 0
    for kind in kinds:
        with contextlib.suppress(UnsupportedFeature):
            merged([{"k": 1, "s": None}] * 2, aggregation(rule("s", function, **parameters)), {"s": kind})
            made += 1
    assert made


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("hll_sketch", pa.string()),
        ("rbm64", pa.int64()),
        ("listagg", pa.binary()),
        ("collect", pa.string()),
        ("merge_map", pa.list_(pa.int64())),
        ("merge_map_with_keytime", pa.map_(pa.string(), pa.struct([("t", pa.string())]))),
        ("merge_map_with_keytime", pa.map_(pa.string(), pa.string())),
        ("nested_update", pa.list_(pa.int64())),
        ("max", pa.list_(pa.int64())),
        ("count", pa.int64()),
    ],
)
def test_functions_are_for_columns_of_their_types(function: str, kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        merged([{"k": 1, "s": None}, {"k": 1, "s": None}], aggregation(rule("s", function)), {"s": kind})
    assert (caught.value.code, caught.value.column) == ("unsupported-aggregate", "s")


@pytest.mark.parametrize("function", ["min", "max", "first_value", "first_non_null_value", "bool_and", "listagg"])
def test_what_cannot_take_back_says_of_which_column(function: str) -> None:
    kind = {"bool_and": pa.bool_()}.get(function, pa.string())
    row = {"k": 1, "a": 1, "s": True if function == "bool_and" else "x"}
    rules = (rule("a", "sum"), rule("s", function))
    with pytest.raises(UnsupportedFeature) as caught:
        merged([row, {**row, "kind": DELETE}], aggregation(*rules), {"s": kind})
    assert (caught.value.code, caught.value.column, caught.value.features) == ("unsupported-retract", "s", (function,))
    ignoring = (rules[0], rule("s", function, ignores=True))
    assert merged([row, {**row, "kind": DELETE}], aggregation(*ignoring), {"s": kind}) == [(1, 0, row["s"])]
    # A row that is only updated takes nothing back, nor does one of another key.
    others = [row, {**row, "kind": AFTER}, {"k": 2, "a": 1, "s": row["s"]}]
    assert len(merged(others, aggregation(*rules), {"s": kind})) == 2


@pytest.mark.parametrize(
    ("values", "expected"), [((6, 2, 3), 4), ((-7, 1, 2), -3), ((7, 1, -2), -3), ((6, 1, None), 6)]
)
def test_products_of_whole_numbers_take_back_towards_zero(values: tuple[int | None, ...], expected: int) -> None:
    rows = [{"k": 1, "p": value} for value in values[:-1]] + [{"k": 1, "p": values[-1], "kind": BEFORE}]
    assert merged(rows, aggregation(rule("p", "product")), {"p": pa.int64()}) == [(1, expected)]


def test_a_zero_is_not_taken_back_of_a_product() -> None:
    rows = [{"k": 1, "p": 6}, {"k": 1, "p": 0, "kind": BEFORE}]
    with pytest.raises(UnsupportedFeature) as caught:
        merged(rows, aggregation(rule("p", "product")), {"p": pa.int64()})
    error = caught.value
    assert (error.code, error.column, error.features) == ("unsupported-retract", "p", ("product",))
    # Of floating point it is infinite, and where there is no product nothing is divided.
    ((_, found),) = merged(rows, aggregation(rule("p", "product")), {"p": pa.float64()})
    assert found == float("inf")
    assert merged([{"k": 1, "p": None}, rows[1]], aggregation(rule("p", "product")), {"p": pa.int64()}) == [(1, None)]


def test_products_of_decimals_take_nothing_back() -> None:
    rows = [{"k": 1, "p": Decimal("1.5")}, {"k": 1, "p": Decimal("1.5"), "kind": BEFORE}]
    kinds = {"p": pa.decimal128(10, 2)}
    with pytest.raises(UnsupportedFeature) as caught:
        merged(rows, aggregation(rule("p", "product")), kinds)
    assert (caught.value.code, caught.value.column) == ("unsupported-retract", "p")
    assert merged(rows, aggregation(rule("p", "product", ignores=True)), kinds) == [(1, Decimal("1.50"))]


def test_partial_updates_without_a_meaning_of_deletions_say_so() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        merged([{"k": 1, "a": 1}, {"k": 1, "a": 1, "kind": DELETE}], partial(rule("a", "last_non_null")))
    assert (caught.value.code, caught.value.features) == ("unsupported-retract", ("partial-update",))


def test_a_function_for_another_type_says_of_which_column() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        merged([{"k": 1, "s": "x"}, {"k": 1, "s": "y"}], aggregation(rule("s", "sum")))
    assert (caught.value.column, caught.value.features) == ("s", ("sum",))
