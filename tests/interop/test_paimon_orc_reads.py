"""Files of ORC that Paimon Java has written, through changes of their schema: Spark's own reader, Python workers and
Java itself give the same rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from orc_tables import NESTED, comparable, lanes
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon.schema import SchemaChange

pytestmark = NEEDS_PAIMON

TYPES: dict[str, Any] = {
    "b": "BOOLEAN", "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "f4": "FLOAT", "f8": "DOUBLE",
    "c": "CHAR(5)", "v": "VARCHAR(20)", "s": "STRING", "y": "BYTES", "d9": "DECIMAL(9, 2)", "d38": "DECIMAL(38, 10)",
    "day": "DATE", "list": {"type": "ARRAY", "element": "DECIMAL(5, 1)"}, "row": NESTED,
    "map": {"type": "MAP", "key": "STRING", "value": NESTED},
}  # fmt: skip
ROW = {"x": 1, "y": ["a", None, "ü"], "z": {"d": "-1.5"}}
ROWS: list[dict[str, Any]] = [
    {"k": 1, "b": True, "i1": -128, "i2": 1, "i4": -1, "i8": 2**62, "f4": 1.5, "f8": -0.0, "c": "ab", "v": " v ", "s": "😀",
     "y": "00ff", "d9": "-1.10", "d38": "9999999999999999999999999999.0000000001", "day": "1582-10-15", "list": ["1.5", None],
     "row": ROW, "map": [["a", ROW], ["b", None]]},
    {"k": 2, "c": "abcde", "v": "", "s": "\uffff", "row": {"x": None, "y": None, "z": None}, "list": [], "map": []},
    {"k": 3, "day": "9999-12-31", "c": "", "i1": 127, "f4": 0.1},
    {"k": 4},
]  # fmt: skip
CHANGES = [
    SchemaChange.rename_column("i4", "n"), SchemaChange.rename_column("s", "i4"), SchemaChange.drop_column("v"),
    SchemaChange.add_column("v", "INT"), SchemaChange.update_column_type("i1", "SMALLINT"),
    SchemaChange.update_column_type("i2", "BIGINT"), SchemaChange.update_column_type("f4", "DOUBLE"),
    SchemaChange.add_column("more", NESTED, after="k"),
]  # fmt: skip
LATER = [{"k": 5, "n": 7, "i4": "text", "v": 8, "i1": 300, "i2": 2**40, "f4": 0.1, "more": ROW}, {"k": 2, "c": "new"}]


@pytest.mark.parametrize(("codec", "keys"), [("zstd", []), ("snappy", ["k"]), ("lz4", ["k"]), ("zlib", [])])
def test_rows_of_java(tmp_path: Path, spark, codec: str, keys: list[str]) -> None:
    options = {"file.format": "orc", "file.compression": codec, "bucket": "1", "write-only": "true"}
    options |= {} if keys else {"bucket-key": "k"}
    fields = [{"name": "k", "type": "INT NOT NULL"}, *({"name": name, "type": kind} for name, kind in TYPES.items())]
    outs = [str(tmp_path / f"{n}.parquet") for n in range(2)]
    url = str(tmp_path / "t")
    steps: list[dict[str, Any]] = [
        {"create": {"fields": fields, "primaryKeys": keys, "options": options}},
        {"write": {"rows": ROWS}}, {"write": {"rows": ROWS[2:]}}, {"read": {"out": outs[0]}},
        {"alter": [change.as_dict() for change in CHANGES]}, {"write": {"rows": LATER}}, {"read": {"out": outs[1]}},
    ]  # fmt: skip
    paimon(tmp_path, {"table": url, "steps": json.loads(json.dumps(steps))})
    last = alluvium.open(url).version
    for version, out in ((last - 1, outs[0]), (None, outs[1])):
        df = alluvium.read(spark, url, version=version)
        assert lanes(df) == {"native"}
        expected = comparable(pq.read_table(out))
        assert comparable(df.toArrow()) == expected
        workers = alluvium.read(spark, url, version=version, lane="python")
        assert comparable(workers.toArrow()) == comparable(pq.read_table(out))
        assert df.where("c = 'ab'").count() == pq.read_table(out)["c"].to_pylist().count("ab")
        for condition in ("day = date'1582-10-15'", "row.z.d < 0", "i1 > 0", "d9 = -1.1", "f8 = 0"):
            assert df.where(condition).count() == alluvium.open(url, version=version).to_arrow(where=condition).num_rows
    assert alluvium.open(url).to_arrow().num_rows == (5 if keys else 8)
