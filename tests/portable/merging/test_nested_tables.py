"""Tables in a row: what joins them, and what takes from them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable
from alluvium.portable.merging.nested_tables import nested_partial_update, nested_update

KIND = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.int64())]))


def row(x: int | None = None, y: str | None = None, z: int | None = None) -> dict[str, Any]:
    return {"x": x, "y": y, "z": z}


def test_rows_without_a_key_are_all_kept() -> None:
    add, retract = nested_update({}, KIND)
    joined = add([row(1, "a")], [row(1, "a"), None, row(2)])
    assert joined == [row(1, "a"), row(1, "a"), row(2)]
    # `rows.removeIf`: all that are equal.
    assert retract(joined, [row(1, "a")]) == [row(2)]
    assert retract(joined, [row(1, "b")]) == joined
    assert (add(None, [row(1)]), add([row(1)], None), retract(None, [row(1)])) == ([row(1)], [row(1)], None)


def test_later_rows_replace_those_of_their_key() -> None:
    add, retract = nested_update({"nested-key": "x, y", "stats-mode": "full"}, KIND)
    joined = add([row(1, "a", 1), row(1, "b", 1)], [row(1, "a", 2), row(None, "a", 3), row(None, "a", 4)])
    assert joined == [row(1, "a", 2), row(1, "b", 1), row(None, "a", 4)]
    assert retract(joined, [row(1, "a", 99), row(7)]) == [row(1, "b", 1), row(None, "a", 4)]


def test_no_more_rows_than_the_limit() -> None:
    add, _ = nested_update({"count-limit": "3"}, KIND)
    assert add([row(1)], [row(2), None, row(3), row(4)]) == [row(1), row(2), row(3)]
    assert add([row(1), row(2), row(3)], [row(4)]) == [row(1), row(2), row(3)]


def test_a_limit_counts_keys_where_newer_options_are_set() -> None:
    """Java 1.4 leaves a full table as it is, updates of its keys included; the Java of these options does not."""
    full, update = [row(1, "a", 1), row(2, "b", 1)], [row(3, "c", 9), row(1, "new", 9), None, row(4, "d", 9)]
    plain, _ = nested_update({"nested-key": "x", "count-limit": "2"}, KIND)
    assert plain(full, update) == full
    for newer in ({"nested-sequence-field": "z"}, {"nested-key-null-strategy": "ignore"}):
        add, _ = nested_update({"nested-key": "x", "count-limit": "2", **newer}, KIND)
        assert add(full, update) == [row(1, "new", 9), row(2, "b", 1)]
        assert add([row(1, "a", 1)], update) == [row(1, "new", 9), row(3, "c", 9)]
        assert add(None, update) == [row(3, "c", 9), row(1, "new", 9)]
        # What has more rows than the limit keeps them.
        assert add([*full, row(5, "e", 1)], [row(5, "f", 2), row(6, "g", 2)]) == [*full, row(5, "f", 2)]


def test_an_older_row_of_a_key_stays_out() -> None:
    add, _ = nested_update({"nested-key": "x", "nested-sequence-field": "z,y"}, KIND)
    assert add([row(1, "new", 5)], [row(1, "old", 4)]) == [row(1, "new", 5)]
    # Equal is new enough; null is the smallest.
    assert add([row(1, "same", 5)], [row(1, "same", 5), row(1, None, 5)]) == [row(1, "same", 5)]
    assert add([row(1, "a", None)], [row(1, None, 0)]) == [row(1, None, 0)]
    assert add(None, [row(1, "b", 2), row(1, "a", 1)]) == [row(1, "b", 2)]


def test_keys_that_are_null() -> None:
    rows = [row(None, "a"), row(1, "b")]
    options = {"nested-key": "x", "nested-key-null-strategy": "IGNORE"}
    for function in (nested_update, nested_partial_update):
        assert function(options, KIND)[0](None, rows) == [row(1, "b")]
        with pytest.raises(CorruptTable) as caught:
            function({**options, "nested-key-null-strategy": "error"}, KIND)[0](rows, rows)
        assert caught.value.code == "null-nested-key"


def test_fields_that_are_not_null_are_laid_over() -> None:
    add, retract = nested_partial_update({"nested-key": "x"}, KIND)
    assert retract is None
    joined = add([row(1, "a"), row(2, None, 2)], [row(1, None, 1), None, row(3), row(2, "b")])
    assert joined == [row(1, "a", 1), row(2, "b", 2), row(3)]
    # What comes first is not looked at: what of it has one key is joined when more comes.
    first = [row(1, "a"), row(1, None, 4)]
    assert add(None, first) is first
    assert add(first, []) == [row(1, "a", 4)]
    assert add(joined, None) is joined
