"""Spark's JSON of schemas: names that Spark tells apart."""

from __future__ import annotations

import json

import pytest

from alluvium.errors import CorruptTable
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import STRING


def test_names_are_compared_as_spark_compares_them() -> None:
    """Lower case, not folded: `ß` is no `ss`, and a final sigma is another letter."""
    for pair in (("straße", "strasse"), ("ς", "σ")):
        document = {
            "type": "struct",
            "fields": [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in pair],
        }
        assert parse_schema(json.dumps(document)).names == pair
    document = {
        "type": "struct",
        "fields": [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in ("É", "é")],
    }
    with pytest.raises(CorruptTable):
        parse_schema(json.dumps(document))


@pytest.mark.parametrize("name", ["char(3)", "varchar( 10 )", "string collate UTF8_LCASE"])
def test_texts_of_other_names_are_texts(name: str) -> None:
    document = {"type": "struct", "fields": [{"name": "c", "type": name, "nullable": True, "metadata": {}}]}
    assert parse_schema(json.dumps(document)).fields[0].type == STRING
