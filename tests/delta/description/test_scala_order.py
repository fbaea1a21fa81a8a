"""Maps of Scala, as histories of delta-spark 4.4 show them."""

from __future__ import annotations

from alluvium.delta.description.scala_order import as_a_map_has, as_a_map_has_paths


def test_keys_of_a_columns_metadata():
    said = ["comment", "delta.columnMapping.physicalName", "delta.columnMapping.id"]
    assert as_a_map_has(said) == ["delta.columnMapping.id", "comment", "delta.columnMapping.physicalName"]
    assert as_a_map_has("edcba") == list("edcba"), "larger maps are of another kind"


def test_columns_of_one_statement():
    assert as_a_map_has_paths([("i d",), ("s",)]) == [("s",), ("i d",)]
    assert sorted(as_a_map_has_paths([("a", "b", "c"), ("a", "b", "d"), ("a",)])) == [
        ("a",),
        ("a", "b", "c"),
        ("a", "b", "d"),
    ]
