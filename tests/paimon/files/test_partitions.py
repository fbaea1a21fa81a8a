"""Directories of partitions are those that Java makes (asked of Paimon 1.4.2), and lie in the table."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

import alluvium
from alluvium.errors import CorruptTable
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.terms.java_text import float_text
from alluvium.storage.open import open_store

DEFAULT = "__DEFAULT_PARTITION__"


def directories(tmp_path: Path, kind: str, values: list[Any], **options: str) -> list[str]:
    url = str(tmp_path / "t")
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "p", parse_type(kind))]
    PaimonTable.create(url, fields, ["p"], options=options)
    store = open_store(url)
    for k, value in enumerate(values):
        append(open_target(store), [{"k": k, "p": value}])
    found = alluvium.open(url).to_arrow(columns=["k", "p"]).sort_by("k")
    assert found["p"].to_pylist() == values
    paths = alluvium.open(url).files()["path"].to_pylist()
    return [path.partition("/bucket-0/")[0].partition("p=")[2] for path in paths]


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("DECIMAL(20, 12)", "0.000000010000", "0.000000010000"),
        ("DECIMAL(20, 12)", "0E-12", "0.000000000000"),
        ("DECIMAL(20, 12)", "-0.000000000001", "-0.000000000001"),
        ("DECIMAL(20, 12)", "12345678.500000000000", "12345678.500000000000"),
        ("DECIMAL(38, 18)", "-99999999999999999999.000000000000000001", "-99999999999999999999.000000000000000001"),
        ("DECIMAL(5, 0)", "-7", "-7"),
    ],
)
def test_decimals_have_no_exponent(tmp_path: Path, kind: str, value: str, name: str) -> None:
    assert directories(tmp_path, kind, [Decimal(value)]) == [name]


def test_which_texts_are_blank(tmp_path: Path) -> None:
    """`Character.isWhitespace`: what does not break is none, nor U+0085."""
    kept = ["\u00a0", "\u2007", "\u202f", "\u0085", "\u180e", "\u200b", "\ufeff", " a "]
    blank = ["\u001c", "\u2003", "\u3000", "\u2028", "\u1680", "\u205f", "\u2001", "\u200a"]
    assert directories(tmp_path, "STRING", kept + blank) == kept + [DEFAULT] * len(blank)


@pytest.mark.parametrize(
    ("value", "single", "text"),
    [
        (5e-324, False, "4.9E-324"),
        (1.401298464324817e-45, True, "1.4E-45"),
        (1e-8, True, "1.0E-8"),
        (1e-5, False, "1.0E-5"),
        (1e300, False, "1.0E300"),
        (1e7, True, "1.0E7"),
        (123456789.125, False, "1.23456789125E8"),
        (0.002, False, "0.002"),
        (5.0, True, "5.0"),
        (-0.0, False, "-0.0"),
    ],
)
def test_numbers_as_java_prints_them(value: float, single: bool, text: str) -> None:
    assert float_text(value, single) == text


@pytest.mark.parametrize("directory", ["../outside", "a/../../b", "./x", "a//b", ".."])
def test_data_does_not_lie_outside(tmp_path: Path, directory: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]))
    append(open_target(open_store(url)), [{"k": 1}])
    path = Path(url, "schema", "schema-0")
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "options": {**said["options"], "data-file.path-directory": directory}}))
    table = alluvium.open(url)
    for read in (table.files, table.to_arrow, lambda: append(open_target(open_store(url)), [{"k": 2}])):
        with pytest.raises(CorruptTable) as caught:
            read()
        assert caught.value.code == "path-escapes-root"
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_a_key_that_is_no_column(tmp_path: Path) -> None:
    directories(tmp_path, "STRING", ["a"])
    snapshot = load_snapshot(open_store(str(tmp_path / "t")))
    with pytest.raises(CorruptTable) as caught:
        partitions_of(snapshot.entries, replace(snapshot.schema, fields=snapshot.schema.fields[:1]))
    assert (caught.value.code, caught.value.column) == ("invalid-schema", "p")
