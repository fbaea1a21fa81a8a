"""What must hold of timestamps in ORC: which columns are asked, how deep, and between which ends."""

from __future__ import annotations

import pytest

from alluvium.paimon.files.orc_times import times_of_orc
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type

ENDS = "between {0}'1677-09-21 00:12:43.146{1}' and {0}'2262-04-11 23:47:16.854775{1}'"
NTZ, LTZ = ENDS.format("timestamp_ntz", ""), ENDS.format("timestamp", "Z")


def conditions(*kinds: object, file_format: str = "orc") -> dict[str, str]:
    fields = number_fields(DataField(0, f"c{n}", parse_type(kind)) for n, kind in enumerate(kinds))
    schema = TableSchema.create(fields, options={"file.format": file_format})
    checks = list(times_of_orc(schema))
    assert all(
        check.code == "not-in-orc" and check.columns == (check.name.removesuffix(" in ORC"),) for check in checks
    )
    return {check.columns[0]: check.sql for check in checks}


@pytest.mark.parametrize(
    ("kind", "ends"),
    [("TIMESTAMP(3)", NTZ), ("TIMESTAMP_LTZ(3)", LTZ), ("TIMESTAMP(0)", NTZ), ("TIMESTAMP_LTZ(0)", LTZ)],
)
def test_milliseconds_need_ends_only(kind: str, ends: str) -> None:
    assert conditions(kind) == {"c0": f"(`c0` is null or (`c0` {ends}))"}


@pytest.mark.parametrize(
    ("kind", "ends", "epoch"),
    [
        ("TIMESTAMP(4)", NTZ, "timestamp_ntz'1970-01-01 00:00:00'"), ("TIMESTAMP(6)", NTZ, "timestamp_ntz'1970-01-01 00:00:00'"),
        ("TIMESTAMP_LTZ(6)", LTZ, "timestamp'1970-01-01 00:00:00Z'"),
    ],
)  # fmt: skip
def test_finer_ones_before_1970_are_whole_milliseconds(kind: str, ends: str, epoch: str) -> None:
    fine = "extract(second from `c0`) * 1000 % 1 = 0"
    assert conditions(kind) == {"c0": f"(`c0` is null or (`c0` {ends} and (`c0` >= {epoch} or {fine})))"}


def test_every_depth() -> None:
    row = {
        "type": "ROW",
        "fields": [{"id": 0, "name": "a b", "type": "TIMESTAMP(3)"}, {"id": 1, "name": "x", "type": "INT"}],
    }
    time = f"(e0 is null or (e0 {NTZ}))"
    found = conditions(
        row, {"type": "ARRAY", "element": "TIMESTAMP(3)"}, {"type": "MAP", "key": "TIMESTAMP(3)", "value": "INT"},
        {"type": "MAP", "key": "TIMESTAMP(3)", "value": "TIMESTAMP(3)"}, {"type": "MULTISET", "element": "TIMESTAMP(3)"},
        {"type": "ARRAY", "element": {"type": "ARRAY", "element": "TIMESTAMP(3)"}}, "INT", {"type": "ARRAY", "element": "INT"},
    )  # fmt: skip
    inner = f"forall(e0, e1 -> (e1 is null or (e1 {NTZ})))"
    assert found == {
        "c0": f"(`c0` is null or ((`c0`.`a b` is null or (`c0`.`a b` {NTZ}))))",
        "c1": f"(`c1` is null or (forall(`c1`, e0 -> {time})))",
        "c2": f"(`c2` is null or (forall(map_keys(`c2`), e0 -> {time})))",
        "c3": f"(`c3` is null or (forall(map_keys(`c3`), e0 -> {time}) and forall(map_values(`c3`), e0 -> {time})))",
        "c4": f"(`c4` is null or (forall(map_keys(`c4`), e0 -> {time})))",
        "c5": f"(`c5` is null or (forall(`c5`, e0 -> (e0 is null or ({inner})))))",
    }


def test_other_formats_have_no_such_ends() -> None:
    assert conditions("TIMESTAMP(6)", file_format="parquet") == {}
