"""What the model calls types, as Paimon has them. It imports nothing of ours: the reference engine's Python reads it."""

from typing import Any

TYPES: dict[str, Any] = {
    "long": "BIGINT", "int": "INT", "short": "SMALLINT", "byte": "TINYINT", "string": "STRING", "double": "DOUBLE",
    "boolean": "BOOLEAN", "date": "DATE", "decimal(9,2)": "DECIMAL(9, 2)",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "array<int>": {"type": "ARRAY", "element": "INT"},
    "map<string,int>": {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"},
    "struct<a:int,b:string>": {
        "type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "STRING"}],
    },
}  # fmt: skip
