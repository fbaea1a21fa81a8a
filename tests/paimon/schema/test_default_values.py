"""Texts of default values at the edges of their types, and just beyond them."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import parse_type
from alluvium.paimon.schema.defaults import ensure_default

ARRAYS = {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}}
ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}

VALUES: list[tuple[object, list[str], list[str]]] = [
    ("BOOLEAN", ["t", "TRUE", "y", "Yes", "1", "f", "False", "n", "NO", "0"], ["on", "2", "tr", "", "''"]),
    ("TINYINT", ["127", "-128", "127.9", "-128.9", "+1", "1."], ["128", "-129", ".5", "1.5.", "1e1", "--1", "'1"]),
    ("SMALLINT", ["32767", "-32768"], ["32768", "-32769"]),
    ("INT", ["2147483647", "-2147483648", "'5'"], ["2147483648", "-2147483649", "'5", "5'", "'", "''", "٣"]),
    ("BIGINT", ["9223372036854775807", "-9223372036854775808"], ["9223372036854775808", "-9223372036854775809"]),
    ("FLOAT", ["1", "-1.", ".5", "1.5e-3", "1f", "1D", " 1 ", "NaN", "-Infinity", "+.5E+2F"], ["nan", "infinity", "1e", ".", "1ff", ""]),
    ("DOUBLE", ["1d", "Infinity"], ["0x1", "1 d", "e5"]),
    ("DECIMAL(5, 2)", ["1", "-1.234", "1e5", "+.5"], ["1_0", " 1", "1 ", "Infinity", "sNaN", "1d", ""]),
    ("DATE", ["2024-02-29", "2000-2-29", "2024-12-31", "2024-1-1 whatever", "-5", "123456789", "2024-11-30"],
     ["2023-02-29", "1900-02-29", "2100-2-29", "2024-00-01", "2024-13-01", "2024-01-00", "2024-04-31", "2024-06-31",
      "2024-09-31", "2024-11-31", "2024-01-32", "1234567890", "24-01-01", "2024-01-01x", "2024-1-1T"]),
    ("TIME(3)", ["1:2", "10:00:00", "10:00:00.", "10:00:00.123456789", " 5 ", "-5", "10"], ["10:", "10:00:", "x"]),
    ("TIMESTAMP(3)", ["2024-01-01", "2024-2-31", "2024-01-01 1:2:3", "2024-01-01 10:00:00.123456789", "-5", "1" * 18],
     ["2024-00-01", "2024-13-01", "2024-01-00", "2024-01-32", "2024-01-01 10:00", "1" * 19, "2024-01-01 10:00:00.1234567890"]),
    ("TIMESTAMP_LTZ(3)", ["2024-01-01", "2024-01-01 10:00:00.1"], ["5", "-5", "2024-13-01"]),
    ("STRING", ["", "'", "anything"], []),
    ("CHAR(1)", ["longer"], []),
    ("BYTES", ["x"], []),
    ({"type": "ARRAY", "element": "INT"}, ["[]", "[ ]", "[1, null, -3]", " [1] ", "'[1]'"], ["[1", "1]", "[", "]", "{1}", "[1,]", "[x]", "[1, x]"]),
    ({"type": "ARRAY", "element": "STRING"}, ["[a, b]"], ["a"]),
    (ARRAYS, ["[[1], [2]]", "[anything]"], ["[1", "x"]),
    ({"type": "MAP", "key": "STRING", "value": "INT"}, ["{}", "{a -> 1}"], ["[]", "{", "}"]),
    (ROW, ["{1}", "{}"], ["[1]", "(1)"]),
    ("VARIANT", [], ["1", ""]),
    ("BLOB", [], ["x"]),
    ("INT MULTISET", [], ["{}"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "good", "bad"), VALUES, ids=[str(kind)[:30] for kind, _, _ in VALUES])
def test_values(kind: object, good: list[str], bad: list[str]) -> None:
    data_type = parse_type(kind)
    for text in good:
        ensure_default(data_type, text, "c")
    for text in bad:
        with pytest.raises(InvalidRequest) as error:
            ensure_default(data_type, text, "c")
        assert (error.value.code, error.value.column) == ("bad-default-value", "c"), text


def test_no_default_is_fine_with_any_type() -> None:
    for kind, _, _ in VALUES:
        ensure_default(parse_type(kind), None, "c")
