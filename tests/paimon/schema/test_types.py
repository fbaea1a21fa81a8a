"""Types and their ranges: each at both ends and just beyond, its name in SQL, its parts, ids of fields."""

from __future__ import annotations

import random

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.types import (
    MAX_LENGTH,
    SYSTEM_FIELD_ID_START,
    DataField,
    DataType,
    duplicates,
    field_ids,
    highest_field_id,
)

INT = DataType("INTEGER")
#: What a root takes, its name, and what else stands in its neutral form.
NAMES: list[tuple[DataType, str, dict[str, object]]] = [
    *((DataType(root), root, {}) for root in ("BOOLEAN", "TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "VARIANT", "BLOB")),
    (INT, "INT", {}), *((DataType(root, length=3), f"{root}(3)", {"length": 3}) for root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")),
    (DataType("VARCHAR", length=MAX_LENGTH), "STRING", {"length": MAX_LENGTH}), (DataType("VARBINARY", length=MAX_LENGTH), "BYTES", {"length": MAX_LENGTH}),
    (DataType("VARCHAR", length=MAX_LENGTH - 1), f"VARCHAR({MAX_LENGTH - 1})", {"length": MAX_LENGTH - 1}), (DataType("CHAR", length=MAX_LENGTH), f"CHAR({MAX_LENGTH})", {"length": MAX_LENGTH}),
    (DataType("DECIMAL", precision=10, scale=2), "DECIMAL(10, 2)", {"precision": 10, "scale": 2}), (DataType("TIME_WITHOUT_TIME_ZONE", precision=3), "TIME(3)", {"precision": 3}),
    (DataType("TIMESTAMP_WITHOUT_TIME_ZONE", precision=6), "TIMESTAMP(6)", {"precision": 6}),
    (DataType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=0), "TIMESTAMP(0) WITH LOCAL TIME ZONE", {"precision": 0}),
    (DataType("ARRAY", element=INT), "ARRAY<INT>", {"element": INT.as_dict()}), (DataType("MULTISET", element=INT), "MULTISET<INT>", {"element": INT.as_dict()}),
    (DataType("VECTOR", element=DataType("FLOAT"), length=4), "VECTOR<FLOAT, 4>", {"length": 4, "element": DataType("FLOAT").as_dict()}),
    (DataType("MAP", key=INT, value=DataType("DATE", False)), "MAP<INT, DATE NOT NULL>", {"key": INT.as_dict(), "value": DataType("DATE", False).as_dict()}),
    (DataType("ROW", fields=(DataField(0, "a`b", INT, "it's"), DataField(1, "c", INT, None, "5"))),
     "ROW<`a``b` INT COMMENT 'it''s', `c` INT DEFAULT 5>",
     {"fields": [{"id": 0, "name": "a`b", "type": INT.as_dict(), "description": "it's", "default": None},
                 {"id": 1, "name": "c", "type": INT.as_dict(), "description": None, "default": "5"}]}),
    (DataType("GEOMETRY", crs="OGC:CRS84"), "GEOMETRY(OGC:CRS84)", {}), (DataType("GEOGRAPHY", crs="x", algorithm="karney"), "GEOGRAPHY(x, karney)", {}),
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "name", "more"), NAMES, ids=[name for _, name, _ in NAMES])
def test_names_and_neutral_forms(data_type: DataType, name: str, more: dict[str, object]) -> None:
    for nullable in (True, False):
        one = data_type.with_nullable(nullable)
        assert str(one) == name + ("" if nullable else " NOT NULL")
        assert one.as_dict() == {"root": data_type.root, "nullable": nullable, **more}
        assert one.shape == data_type and one.with_nullable(nullable) is one


@pytest.mark.parametrize(
    ("given", "fine"),
    [
        *(({"root": root, "length": n}, n in (1, MAX_LENGTH)) for root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY") for n in (0, 1, MAX_LENGTH, MAX_LENGTH + 1)),
        *(({"root": "VECTOR", "element": INT, "length": n}, n > 0) for n in (0, 1)), *(({"root": "DECIMAL", "precision": p, "scale": s}, fine) for p, s, fine in
          ((0, 0, False), (1, 0, True), (1, 1, True), (38, 0, True), (38, 38, True), (39, 0, False), (5, -1, False), (5, 6, False))),
        *(({"root": root, "precision": p}, p in (0, 9)) for root in ("TIME_WITHOUT_TIME_ZONE", "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE") for p in (-1, 0, 9, 10)),
        ({"root": "NUMBER"}, False), ({"root": "int"}, False), ({"root": "MAP", "key": INT}, False), ({"root": "MAP", "value": INT}, False), ({"root": "ARRAY"}, False),
        ({"root": "MULTISET"}, False), ({"root": "VECTOR", "length": 1}, False), *(({"root": "VECTOR", "length": 1, "element": DataType(root)}, True)
          for root in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")), ({"root": "VECTOR", "length": 1, "element": DataType("DATE")}, False),
        ({"root": "VECTOR", "length": 1, "element": DataType("DECIMAL", precision=3)}, False), ({"root": "ROW"}, True),
        ({"root": "ROW", "fields": (DataField(0, "a", INT), DataField(1, "A", INT))}, True), ({"root": "ROW", "fields": (DataField(0, "a", INT), DataField(1, "a", INT))}, False),
        ({"root": "ROW", "fields": (DataField(0, " ", INT),)}, False), *(({"root": "GEOGRAPHY", "algorithm": a}, True) for a in ("spherical", "vincenty", "thomas", "andoyer", "karney")),
        ({"root": "GEOGRAPHY", "algorithm": "flat"}, False), ({"root": "GEOMETRY"}, True),
    ],
    ids=lambda given: str(given)[:60],
)  # fmt: skip
def test_ranges(given: dict[str, object], fine: bool) -> None:
    if fine:
        assert DataType(**given).root == given["root"]  # type: ignore[arg-type]
        return
    with pytest.raises(InvalidRequest) as caught:
        DataType(**given)  # type: ignore[arg-type]
    assert caught.value.code == "invalid-type"


def test_ids_of_all_fields() -> None:
    """Beside a list of those that were given, at any depth."""
    lot = random.Random(0)
    for _ in range(30):
        given: list[int] = []

        def made(depth: int, given: list[int] = given) -> DataType:
            kind = lot.choice(["leaf", "ROW", "ARRAY", "MAP", "MULTISET"]) if depth else "leaf"
            if kind == "ROW":
                return DataType("ROW", fields=fields(depth - 1))
            if kind == "MAP":
                return DataType("MAP", key=made(depth - 1), value=made(depth - 1))
            return INT if kind == "leaf" else DataType(kind, element=made(depth - 1))

        def fields(depth: int, given: list[int] = given) -> tuple[DataField, ...]:
            found = []
            for n in range(lot.randint(0, 3)):
                given.append(lot.choice([lot.randint(0, 99), SYSTEM_FIELD_ID_START, SYSTEM_FIELD_ID_START - 1]))
                number = given[-1]
                found.append(DataField(number, f"f{n}", made(depth)))
            return tuple(found)

        top = fields(3)
        assert list(field_ids(top)) == given
        assert highest_field_id(top) == max((n for n in given if n < SYSTEM_FIELD_ID_START), default=-1)


def test_children_and_duplicates() -> None:
    key, value, date = INT, DataType("DOUBLE"), DataType("DATE")
    assert DataType("MAP", key=key, value=value).children() == (key, value) and DataType(
        "ARRAY", element=date
    ).children() == (date,)
    assert (
        DataType("ROW", fields=(DataField(0, "a", date), DataField(1, "b", key))).children() == (date, key)
        and INT.children() == ()
    )
    assert duplicates(["b", "a", "b", "c", "a", "B"]) == ["b", "a"] and duplicates(["a"]) == duplicates([]) == []
