"""Skipping files never loses a row: predicates on every column of every table, with and without it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import alluvium
from alluvium.errors import NotFound
from conformance_paimon.cases import prepare_table

pytestmark = pytest.mark.conformance

_SHOWN = (int, str, float, Decimal, dt.date)


def literal(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and "'" not in value and "\\" not in value:
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        return None
    if isinstance(value, dt.date):
        return f"date'{value.isoformat()}'"
    return str(value) if isinstance(value, (int, Decimal)) else None


def test_no_row_is_lost(paimon_case):
    if any(read.get("error") for read in paimon_case.reads if read["id"] == "latest"):
        return
    try:
        table = alluvium.open(str(prepare_table(paimon_case)))
    except NotFound:
        return
    rows = table.to_arrow().to_pylist()
    for name in table.schema.names:
        for value in list(dict.fromkeys(row[name] for row in rows if isinstance(row[name], _SHOWN)))[:4]:
            text = literal(value)
            if text is None:
                continue
            for op, keeps in (("=", lambda v, w: v == w), ("<=", lambda v, w: v <= w), (">", lambda v, w: v > w)):
                where = f"`{name}` {op} {text}"
                found = table.to_arrow(where=where).to_pylist()
                expected = [row for row in rows if row[name] is not None and keeps(row[name], value)]
                assert sorted(map(str, found)) == sorted(map(str, expected)), where
        found = table.to_arrow(where=f"`{name}` is null").to_pylist()
        assert len(found) == sum(row[name] is None for row in rows), name
