"""mergeSchema and overwriteSchema: what was seen of delta-spark 4.4."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.description.create import new_config
from alluvium.delta.description.merge_schema import merged_config, overwritten_config
from alluvium.delta.features.registry import BY_NAME
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
)
from alluvium.schema.walk import fields_within


def struct(**fields: DataType) -> Struct:
    return Struct(tuple(Field(name, data_type) for name, data_type in fields.items()))


AB = struct(a=INTEGER, b=STRING)


def test_small_integers_grow_wider_only_where_rows_are_not_cast():
    config = new_config(struct(a=BYTE, s=struct(x=SHORT)), [], {})
    data = struct(a=INTEGER, s=struct(x=INTEGER, y=LONG))
    assert merged_config(config, data).schema == struct(a=INTEGER, s=struct(x=INTEGER, y=LONG))
    assert merged_config(config, data, casts=True).schema == struct(a=BYTE, s=struct(x=SHORT, y=LONG))


#: What Spark casts where nobody asks for it; and a boolean, a number of another kind or a struct it does not.
GO_TOGETHER = [
    (LONG, INTEGER), (INTEGER, LONG), (BYTE, DOUBLE), (Decimal(5, 2), DOUBLE), (FLOAT, Decimal(3, 0)),
    (Decimal(3, 0), Decimal(10, 4)), (STRING, INTEGER), (STRING, DATE), (STRING, BINARY), (STRING, Decimal(5, 2)),
    (BOOLEAN, STRING), (BINARY, STRING), (TIMESTAMP, STRING), (DATE, TIMESTAMP), (TIMESTAMP, DATE),
    (TIMESTAMP_NTZ, TIMESTAMP), (VOID, BOOLEAN), (VOID, struct(x=LONG)), (BOOLEAN, VOID),
]  # fmt: skip
DO_NOT_GO_TOGETHER = [
    (LONG, TIMESTAMP), (INTEGER, TIMESTAMP), (TIMESTAMP, LONG), (DOUBLE, BOOLEAN), (BOOLEAN, DOUBLE), (BOOLEAN, INTEGER),
    (Decimal(5, 2), BOOLEAN), (BOOLEAN, TIMESTAMP), (STRING, BOOLEAN), (INTEGER, BINARY), (BINARY, LONG),
    (INTEGER, DATE), (DATE, INTEGER), (struct(x=LONG), STRING), (LONG, Array(LONG)), (Map(STRING, LONG), struct(x=LONG)),
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: struct(f=x), Array, lambda x: Map(STRING, struct(f=x))])
def test_a_merge_takes_what_spark_casts_without_a_word(wrap):
    # Neither may hold values of no type.
    holds_void = not isinstance(wrap(VOID), Array | Map)
    for data, table in (pair for pair in GO_TOGETHER if holds_void or VOID not in pair):
        config = new_config(struct(a=wrap(table)), [], {})
        kept = data if table == VOID else table
        assert merged_config(config, struct(a=wrap(data)), casts=True).schema == struct(a=wrap(kept))
    for data, table in DO_NOT_GO_TOGETHER:
        config = new_config(struct(a=wrap(table)), [], {})
        with pytest.raises(InvalidRequest, match="in the table and") as caught:
            merged_config(config, struct(a=wrap(data)), casts=True)
        assert caught.value.code == "schema-mismatch"
        # Without casts, the rows are refused where they are written.
        assert merged_config(config, struct(a=wrap(data))).schema == config.schema


def test_defaults_of_the_rows_own_table_do_not_come_with_them():
    """Unless the table keeps such promises; rows of a table show its columns with all that it says of them."""
    fresh = Field("b", STRING, metadata={"CURRENT_DEFAULT": "'x'", "EXISTS_DEFAULT": "'x'", "comment": "c"})
    data = Struct((Field("a", INTEGER, metadata={"CURRENT_DEFAULT": "1"}), fresh))
    plain = merged_config(new_config(struct(a=INTEGER), [], {}), data)
    assert [f.metadata for f in plain.schema.fields] == [{}, {"comment": "c"}]
    keeps = new_config(struct(a=INTEGER), [], {"delta.feature.allowColumnDefaults": "supported"})
    assert merged_config(keeps, data).schema.fields[1].metadata == {"CURRENT_DEFAULT": "'x'", "comment": "c"}
    # The same of a table that is made of them, and of one whose schema they replace.
    made = new_config(data, [], {})
    over = overwritten_config(new_config(struct(z=LONG), [], {}), data, [])
    for config in (made, over):
        assert [f.metadata for f in config.schema.fields] == [{}, {"comment": "c"}]
    assert new_config(data, [], {"DELTA.feature.AllowColumnDefaults": "Supported"}).schema.fields[0].metadata == {
        "CURRENT_DEFAULT": "1"
    }
    assert overwritten_config(keeps, data, []).schema.fields[0].metadata["CURRENT_DEFAULT"] == "1"


@pytest.mark.parametrize(
    ("table", "data", "merged"),
    [
        (AB, struct(a=INTEGER, b=STRING, c=INTEGER), struct(a=INTEGER, b=STRING, c=INTEGER)),
        (AB, struct(d=LONG, c=INTEGER, A=INTEGER), struct(a=INTEGER, b=STRING, d=LONG, c=INTEGER)),
        (struct(s=struct(x=LONG)), struct(S=struct(y=LONG, X=LONG)), struct(s=struct(x=LONG, y=LONG))),
        (
            struct(s=Array(struct(x=LONG)), m=Map(STRING, struct(v=LONG))),
            struct(s=Array(struct(x=LONG, y=LONG)), m=Map(STRING, struct(w=LONG, v=LONG))),
            struct(s=Array(struct(x=LONG, y=LONG)), m=Map(STRING, struct(v=LONG, w=LONG))),
        ),
        (struct(a=BYTE), struct(a=INTEGER), struct(a=INTEGER)),
        (struct(a=Array(BYTE)), struct(a=Array(SHORT)), struct(a=Array(SHORT))),
        (struct(a=INTEGER), struct(a=BYTE), struct(a=INTEGER)),
        # Left as they are: the rows are refused where they do not fit.
        (struct(a=INTEGER), struct(a=LONG), struct(a=INTEGER)),
        (struct(a=INTEGER), struct(a=STRING), struct(a=INTEGER)),
        (struct(a=LONG), struct(a=INTEGER), struct(a=LONG)),
    ],
)
def test_new_columns_come_last_and_narrow_integers_grow(table: Struct, data: Struct, merged: Struct):
    assert merged_config(new_config(table, [], {}), data).schema == merged


def test_nothing_new_is_no_change():
    config = new_config(AB, ["a"], {"x": "1"})
    assert merged_config(config, struct(B=STRING)) is config
    assert overwritten_config(config, AB, ["A"]) is config


def test_new_columns_are_nullable_at_every_depth_and_bring_nothing_along():
    fresh = Field("c", Array(Struct((Field("x", LONG, False),)), False), False, {"delta.identity.start": 1})
    merged = merged_config(new_config(AB, [], {}), Struct((fresh,)))
    assert merged.schema.fields[-1] == Field("c", Array(struct(x=LONG), True))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (Struct((Field("c", LONG), Field("C", LONG))), "duplicate-column"),
        (struct(**{"c d": LONG}), "invalid-column-name"),
        (struct(t=TIMESTAMP_NTZ), "feature-not-enabled"),
    ],
)
def test_columns_that_the_table_cannot_have(data: Struct, code: str):
    for change in (lambda c: merged_config(c, data), lambda c: overwritten_config(c, data, [])):
        with pytest.raises(InvalidRequest) as caught:
            change(new_config(AB, [], {}))
        assert caught.value.code == code


def test_types_widen_where_the_table_allows_it():
    config = new_config(AB, [], {})
    names = ("typeWidening",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names)
    document = {f: getattr(config.metadata, f) for f in Metadata.__struct_fields__}
    config = parse_config(protocol, Metadata(**{**document, "configuration": {"delta.enableTypeWidening": "true"}}))
    if not BY_NAME["typeWidening"].writable:
        with pytest.raises(UnsupportedFeature) as caught:
            merged_config(config, struct(a=DOUBLE))
        assert caught.value.features == ("typeWidening",)
        return
    widened = merged_config(config, struct(a=DOUBLE)).schema.fields[0]
    assert widened.type == DOUBLE
    assert widened.metadata == {"delta.typeChanges": [{"toType": "double", "fromType": "integer"}]}


def test_an_overwritten_schema_keeps_the_properties_and_loses_partitions():
    config = new_config(AB, ["a"], {"x": "1"})
    after = overwritten_config(config, struct(b=LONG, a=STRING, c=LONG), [])
    assert after.schema == struct(b=LONG, a=STRING, c=LONG)
    assert after.partition_columns == ()
    assert (after.metadata.id, after.metadata.configuration) == (config.metadata.id, {"x": "1"})
    assert overwritten_config(config, AB, ["b"]).partition_columns == ("b",)


def test_statistics_of_columns_that_go_are_an_error():
    config = new_config(AB, [], {"delta.dataSkippingStatsColumns": "a"})
    with pytest.raises(InvalidRequest) as caught:
        overwritten_config(config, struct(z=LONG), [])
    assert caught.value.code == "unknown-column"


def test_columns_that_stay_what_they_were_keep_their_identity():
    """Under column mapping files are read by it: another type, or another name, is another column."""
    inner = struct(x=INTEGER, l=Array(struct(y=STRING)), m=Map(STRING, INTEGER))
    before = new_config(struct(a=INTEGER, s=inner, gone=LONG), [], {"delta.columnMapping.mode": "name"})
    data = struct(gone=STRING, s=inner, new=LONG, a=INTEGER)
    after = overwritten_config(before, data, [])
    physical = [dict(zip(one.schema.names, one.physical_schema.names, strict=True)) for one in (before, after)]
    kept = {name for name in physical[1] if physical[0].get(name) == physical[1][name]}
    assert kept == {"a", "s"} and after.schema.names == data.names
    assert after.physical_schema.find(physical[1]["s"]) == before.physical_schema.find(physical[0]["s"])
    # Of a struct that goes on the members that do, at any depth.
    told = {}
    for other in (struct(x=LONG, l=Array(struct(y=LONG))), struct(x=INTEGER, l=Array(struct(y=STRING)))):
        changed = overwritten_config(before, struct(s=other), [])
        told[other] = {
            path: physical_path(changed, path) == physical_path(before, path) for path in ("s", "s.x", "s.l.element.y")
        }
    assert list(told.values()) == [
        {"s": True, "s.x": False, "s.l.element.y": False},
        dict.fromkeys(("s", "s.x", "s.l.element.y"), True),
    ]


def physical_path(config: TableConfig, path: str) -> tuple[str, ...]:
    pairs = zip(fields_within(config.schema), fields_within(config.physical_schema), strict=True)
    return next(physical for (logical, _), (physical, _) in pairs if ".".join(logical) == path)


def widening(schema: Struct, said: str = "true") -> TableConfig:
    names = ("typeWidening",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names)
    return make_config(schema, (), {"delta.enableTypeWidening": said}, protocol)


PLACES = {
    "a": lambda x: x, "a.f": lambda x: struct(e=LONG, f=x), "a.element": Array, "a.key": lambda x: Map(x, STRING), "a.value": lambda x: Map(STRING, x),
    "a.element.f": lambda x: Array(struct(f=x, g=STRING)), "a.value.element": lambda x: Map(x if x == STRING else LONG, Array(x)),
    "a.key.f.key": lambda x: Map(struct(f=Map(x, DATE)), BOOLEAN),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("casts", [False, True])
def test_types_grow_wider_at_every_place(place: str, casts: bool) -> None:
    """Small integers where rows are not cast; where the table allows it, whatever is wider, and with a record of it."""
    wrap = PLACES[place]
    for table, data, alike in (
        (BYTE, SHORT, True),
        (BYTE, INTEGER, True),
        (SHORT, INTEGER, True),
        (INTEGER, LONG, False),
        (FLOAT, DOUBLE, False),
    ):
        before, wanted = (struct(z=STRING, a=wrap(kind)) for kind in (table, data))
        plain = merged_config(make_config(before), wanted, casts=casts).schema
        assert plain == (wanted if alike and not casts else before)
        for said in ("true", " TRUE "):
            found = merged_config(widening(before, said), wanted, casts=casts).schema
            assert str(found) == str(wanted)
            assert [f.metadata for _, f in fields_within(found) if f.metadata] == [
                {"delta.typeChanges": [record(table, data, place)]}
            ]
        assert str(merged_config(widening(before, "false"), wanted, casts=casts).schema) == str(plain)
        # What is narrower, or the same, changes nothing.
        for config in (make_config(wanted), widening(wanted)):
            assert merged_config(config, before, casts=casts) is merged_config(config, wanted, casts=casts) is config


def record(table: DataType, data: DataType, place: str) -> dict[str, str]:
    """What is written down with the nearest field, under the way from there."""
    names = {BYTE: "byte", SHORT: "short", INTEGER: "integer", LONG: "long", FLOAT: "float", DOUBLE: "double"}
    inside = place.split(".")[1:]
    while "f" in inside:
        inside = inside[inside.index("f") + 1 :]
    found = {"toType": names[data], "fromType": names[table]}
    return {**found, "fieldPath": ".".join(inside)} if inside else found


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_cast_is_named_by_its_place(place: str) -> None:
    before, data = (struct(z=STRING, a=PLACES[place](kind)) for kind in (BOOLEAN, LONG))
    with pytest.raises(InvalidRequest) as caught:
        merged_config(make_config(before), data, casts=True)
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", place)
    assert f"column {place!r} is boolean in the table and bigint in the data" in caught.value.message


def test_columns_of_several_depths_come_and_grow_at_once() -> None:
    table = struct(a=BYTE, S=struct(X=SHORT, l=Array(struct(v=BYTE))), m=Map(BYTE, struct(k=VOID)), n=VOID)
    data = struct(
        b=STRING,
        s=struct(l=Array(struct(w=LONG, V=INTEGER)), x=INTEGER),
        M=Map(SHORT, struct(K=DATE)),
        n=Array(struct(q=LONG)),
        A=SHORT,
    )
    assert merged_config(make_config(table), data).schema == struct(
        a=SHORT, S=struct(X=INTEGER, l=Array(struct(v=INTEGER, w=LONG))), m=Map(SHORT, struct(k=DATE)), n=Array(struct(q=LONG)), b=STRING,
    )  # fmt: skip


def test_promises_and_records_of_columns_stay() -> None:
    """Of those of the table; those of rows say nothing of it."""
    own = Field("a", BYTE, False, {"comment": "own"})
    table = Struct((own, Field("l", Array(struct(x=LONG), False), False)))
    data = Struct((Field("A", SHORT, True, {"comment": "theirs"}), Field("l", Array(struct(x=LONG, y=LONG), True))))
    merged = merged_config(make_config(table), data).schema
    assert merged.fields[0] == Field("a", SHORT, False, {"comment": "own"})
    assert merged.fields[1] == Field("l", Array(struct(x=LONG, y=LONG), False), False)


def test_an_overwritten_schema_is_that_of_the_rows() -> None:
    config = make_config(AB, ("a",), {"x": "1"})
    fresh = Field("A", INTEGER, False, {"comment": "c", "delta.generationExpression": "1"})
    after = overwritten_config(config, Struct((fresh, Field("b", STRING))), ["b"])
    assert after.schema == Struct((Field("A", INTEGER, True, {"comment": "c"}), Field("b", STRING)))
    assert after.partition_columns == ("b",)
    # Another partitioning alone is a change as well.
    assert overwritten_config(config, AB, []).partition_columns == ()
    assert overwritten_config(config, AB, ["a"]) is config
    with pytest.raises(InvalidRequest) as caught:
        overwritten_config(config, struct(**{"p q": LONG, "a": LONG}), ["P q"])
    assert "partition column 'p q'" in caught.value.message
    # Under a mapping a name in another case is the same column still.
    mapped = new_config(struct(a=INTEGER, b=STRING), [], {"delta.columnMapping.mode": "name"})
    other = overwritten_config(mapped, struct(A=INTEGER, b=STRING), [])
    assert list(other.physical_names.items()) == [("A", mapped.physical_names["a"]), ("b", mapped.physical_names["b"])]
