"""Types to PySpark's and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as s

from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import PRIMITIVES, Array, DataType, Decimal, Field, Map, Struct
from alluvium.spark.naming.types import from_spark, from_spark_declared, to_spark

_leaves = st.sampled_from(sorted(PRIMITIVES.values(), key=str)) | st.builds(
    Decimal, st.integers(5, 38), st.integers(0, 5)
)


def _struct(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    metadata = st.dictionaries(st.text(max_size=3), st.integers(0, 9) | st.text(max_size=3), max_size=2)
    fields = st.builds(Field, st.text(min_size=1, max_size=4), children, st.booleans(), metadata)
    return st.lists(fields, max_size=3, unique_by=lambda f: f.name.casefold()).map(lambda fs: Struct(tuple(fs)))


_types = st.recursive(
    _leaves,
    lambda inner: st.builds(Array, inner, st.booleans()) | st.builds(Map, inner, inner, st.booleans()) | _struct(inner),
    max_leaves=6,
)


@given(_types)
def test_there_and_back(data_type: DataType) -> None:
    assert from_spark(to_spark(data_type)) == data_type


def test_character_types_are_strings() -> None:
    schema = s.StructType([s.StructField("c", s.CharType(3)), s.StructField("v", s.VarcharType(3))])
    assert {str(f.type) for f in from_spark(schema).fields} == {"string"}


def test_types_that_no_table_has_are_refused_by_column() -> None:
    schema = s.StructType([s.StructField("a", s.ArrayType(s.DayTimeIntervalType()))])
    with pytest.raises(UnsupportedFeature) as raised:
        from_spark(schema)
    assert (raised.value.code, raised.value.column) == ("unsupported-type", "a.element")


def test_lengths_of_texts_stand_beside_their_columns() -> None:
    members = s.StructType().add("a b", s.CharType(3)).add("n", s.IntegerType())
    schema = s.StructType(
        [
            s.StructField("v", s.VarcharType(4), True, {"comment": "c"}),
            s.StructField("m", s.ArrayType(members)),
            s.StructField("s", s.StringType()),
        ]
    )
    found = from_spark_declared(schema)
    assert [dict(f.metadata) for f in found.fields] == [
        {"comment": "c", CHAR_VARCHAR: "varchar(4)"},
        {CHAR_VARCHAR: "array<struct<`a b`:char(3),`n`:int>>"},
        {},
    ]
    assert (found.fields[0].type, str(found.fields[1].type)) == (t.STRING, str(from_spark(schema).fields[1].type))
